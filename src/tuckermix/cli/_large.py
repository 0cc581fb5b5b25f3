"""Inputs that are larger than memory: read in chunks, on this machine or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from tuckermix._array_api import BLOCK_BYTES, is_dask, to_numpy
from tuckermix._optional import require
from tuckermix._resources import one_blas_thread
from tuckermix.cli._console import UsageError
from tuckermix.datasets import Dataset

CONNECT_SECONDS = 10
"""How long to wait for a scheduler: a machine that is there answers in a fraction of it."""


def read_in_chunks(
    read: Callable[..., Dataset], chunks: int | None, everything: bool = False
) -> Dataset:
    """Read samples, and leave those on disk that would not fit in memory.

    Parameters
    ----------
    read : callable
        Reads the input, given `lazy` and `chunks`; see `tuckermix.datasets.read`.
    chunks : int or None
        Samples in a chunk; None leaves the choice to the reader.
    everything : bool, default=False
        Whether to leave all inputs on disk, whatever their size.

    Returns
    -------
    data : Dataset
        `X` is a NumPy array that was read, or a Dask array that was not.
    """
    data = read(lazy=True if everything else "auto", chunks=chunks)
    if isinstance(data.X, np.memmap):
        # A map counts as an array in memory, and integers in it would be converted as a whole.
        data = read(chunks=_chunk_of(data.X))
    return data


def in_chunks(data: Dataset, chunks: int | None) -> Dataset:
    """Wrap samples in memory as a Dask array."""
    try:
        import dask.array as da
    except ImportError as error:
        raise ImportError("--chunk and --scheduler need Dask: install tuckermix[dask].") from error
    sizes = (chunks or _chunk_of(data.X), *data.sample_shape)
    return replace(data, X=da.from_array(data.X, chunks=sizes))


def _chunk_of(X: np.ndarray) -> int:
    """Return how many samples make a chunk of the usual size."""
    return max(1, BLOCK_BYTES // max(1, X.nbytes // X.shape[0]))


@contextmanager
def scheduler(address: str | None) -> Iterator[None]:
    """Let a Dask cluster do the work as long as the context lasts; None means this machine."""
    if address is None:
        yield
        return
    distributed = require("distributed", "--scheduler", "dask", package="dask.distributed")
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=True)
    except (OSError, TimeoutError, ValueError) as error:
        raise UsageError(
            f"--scheduler {address}: no Dask scheduler answers there. Start one with "
            "'dask scheduler', or leave the option out to compute here."
        ) from error
    with client:
        yield


@one_blas_thread
def soft_labels(model: Any, X: Any) -> np.ndarray:
    """Return the soft labels of the fitted samples, and make what is lazy in the model concrete.

    All that is written has a few numbers for each sample; one pass computes it.
    """
    if not is_dask(X):
        return to_numpy(model.predict_proba(X))
    import dask

    proba, model.labels_, model.memberships_ = dask.compute(
        model.predict_proba(X), model.labels_, model.memberships_
    )
    return proba
