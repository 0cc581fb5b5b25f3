"""Arrays that stay on disk: memory maps, and Dask arrays that open their file for each read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuckermix._array_api import BLOCK_BYTES
from tuckermix._optional import require
from tuckermix._reading import Refusal, check_fits

MAX_BLOCKS = 50_000
"""Chunks of one array, each of which costs Dask some memory beforehand; of the usual size, this
many hold more than a terabyte. A file can declare any number of samples."""


@dataclass(frozen=True, eq=False)
class Slices:
    """Part of a file that is read when it is indexed.

    It holds the way to open the array and not the open array: a copy can be sent to another
    process, which then opens the file itself, and no file stays open between reads.

    Parameters
    ----------
    fetch : callable
        A module-level function that reads ``array[index]``; called with `arguments`, then the
        index.
    arguments : tuple
        What `fetch` needs to find the array; strings, numbers and what can be pickled.
    shape : tuple of int
        The shape of the array.
    dtype : dtype
        Its type.
    """

    fetch: Callable[..., np.ndarray]
    arguments: tuple[Any, ...]
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __getitem__(self, index: Any) -> np.ndarray:
        return self.fetch(*self.arguments, index)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return (type(self).__name__, self.fetch.__name__, self.arguments, self.shape)


def to_dask(slices: Slices, axis: int, chunks: int | None, stored: int | None, limit: int) -> Any:
    """Wrap `slices` as a Dask array with its samples first, chunked along samples only.

    Parameters
    ----------
    slices : Slices
        What to read from.
    axis : int
        The axis of the samples.
    chunks : int or None
        Samples in a chunk; None means about 32 MiB, a whole number of stored chunks.
    stored : int or None
        Samples in a chunk of the file.
    limit : int
        The most bytes that a chunk may take in memory.

    Returns
    -------
    X : dask array of shape (n_samples, d_1, ...)
        The samples.
    """
    da = require("dask.array", "Reading in chunks", "dask")
    shape, dtype = tuple(slices.shape), np.dtype(slices.dtype)
    sample_bytes = max(1, math.prod(shape) // shape[axis] * dtype.itemsize)
    if chunks is None:
        fitting = max(1, min(BLOCK_BYTES, limit) // sample_bytes)
        chunks = fitting // stored * stored if stored else fitting
        if not chunks:  # a stored chunk is torn only where it would pass the limit
            assert stored is not None
            chunks = stored if stored * sample_bytes <= limit else fitting
    taken = min(chunks, shape[axis])
    remedy = "If you trust the file, pass smaller chunks or a larger max_bytes"
    check_fits(f"{taken} of its samples", taken * sample_bytes, limit, remedy)
    if -(-shape[axis] // chunks) > MAX_BLOCKS:
        raise Refusal(
            f"{shape[axis]} samples in chunks of {chunks} make more than {MAX_BLOCKS} chunks",
            "Pass larger chunks",
        )
    sizes = tuple(chunks if mode == axis else -1 for mode in range(len(shape)))
    # With an empty array to look at, Dask has no need to open the file for a first guess.
    meta = np.empty((0,) * len(shape), dtype=dtype)
    X = da.from_array(slices, chunks=sizes, asarray=True, fancy=False, meta=meta)
    X = da.moveaxis(X, axis, 0)
    return X.astype(dtype.newbyteorder("=")) if not dtype.isnative else X
