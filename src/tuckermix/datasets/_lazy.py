"""Arrays that stay on disk, as Dask arrays that read their file piece by piece."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from tuckermix._array_api import BLOCK_BYTES
from tuckermix._optional import require
from tuckermix._reading import Refusal, check_fits

MAX_BLOCKS = 50_000
"""Chunks of one array, each of which costs Dask some memory beforehand; of the usual size, this
many hold more than a terabyte. A file can declare any number of samples."""

Region = tuple[tuple[int, int], ...]
"""Start and stop along each axis."""


def to_dask(array: Any, axis: int, chunks: int | None, stored: int | None, limit: int) -> Any:
    """Wrap an array on disk as a Dask array with its samples first, chunked along samples only.

    Parameters
    ----------
    array : object
        It has `shape`, `dtype` and `region(region)`, which reads a region, in any process that it
        is sent to.
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
    shape, dtype = tuple(array.shape), np.dtype(array.dtype)
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
    low = (*range(0, shape[axis], chunks), shape[axis])
    first = tuple(after - before for before, after in pairwise(low))
    sizes = (first, *((size,) for mode, size in enumerate(shape) if mode != axis))
    # With an empty array to look at, Dask has no need to open the file for a first guess.
    meta = np.empty((0,) * len(shape), dtype=dtype.newbyteorder("="))
    return da.map_blocks(
        partial(_block, array, axis), chunks=sizes, dtype=meta.dtype, meta=meta, name=None
    )


def _block(array: Any, axis: int, block_info: Any = None) -> np.ndarray:
    """Read the samples of one chunk."""
    samples, *others = block_info[None]["array-location"]
    region = (*others[:axis], samples, *others[axis:])
    values = np.moveaxis(array.region(region), axis, 0)
    return values.astype(values.dtype.newbyteorder("="), copy=False)
