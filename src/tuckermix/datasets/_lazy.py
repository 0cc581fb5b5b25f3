"""Arrays that stay on disk, as Dask arrays that read their file piece by piece."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from tuckermix._array_api import BLOCK_BYTES
from tuckermix._optional import require
from tuckermix._reading import Refusal, check_fits

MAX_BLOCKS = 50_000
"""Chunks of one array, each of which costs Dask some memory beforehand; of the usual size, this
many hold more than a terabyte. A file can declare any number of samples."""

Region = tuple[tuple[int, int], ...]
"""Start and stop along each axis."""


class OnDisk(Protocol):
    """An array that is read when it is indexed, in any process that it is sent to."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""

    @property
    def dtype(self) -> np.dtype:
        """The type of the values."""

    @property
    def ndim(self) -> int:
        """The number of axes."""

    def __getitem__(self, index: Any) -> np.ndarray: ...


def covering(index: Any, shape: tuple[int, ...]) -> tuple[Region, tuple[Any, ...]]:
    """Split an index into the region that covers it and what to take from that region.

    Parameters
    ----------
    index : tuple of slice and int
        One entry an axis, or fewer.
    shape : tuple of int
        The shape of the array.

    Returns
    -------
    region : tuple of (int, int)
        Start and stop along each axis.
    rest : tuple of slice and int
        ``array[index]`` is ``array[region][rest]``.
    """
    given = index if isinstance(index, tuple) else (index,)
    given = (*given, *(slice(None),) * (len(shape) - len(given)))
    region: list[tuple[int, int]] = []
    rest: list[Any] = []
    for size, one in zip(shape, given, strict=True):
        if isinstance(one, slice):
            taken = range(size)[one]
            low, high = (min(taken), max(taken) + 1) if taken else (0, 0)
            stop = taken.stop - low
            rest.append(slice(taken.start - low, stop if stop >= 0 else None, taken.step))
        else:
            low = range(size)[one]
            high = low + 1
            rest.append(0)
        region.append((low, high))
    return tuple(region), tuple(rest)


def to_dask(array: OnDisk, axis: int, chunks: int | None, stored: int | None, limit: int) -> Any:
    """Wrap an array on disk as a Dask array with its samples first, chunked along samples only.

    Parameters
    ----------
    array : OnDisk
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
    sizes = tuple(chunks if mode == axis else -1 for mode in range(len(shape)))
    # With an empty array to look at, Dask has no need to open the file for a first guess.
    meta = np.empty((0,) * len(shape), dtype=dtype)
    X = da.from_array(array, chunks=sizes, asarray=True, fancy=False, meta=meta)
    X = da.moveaxis(X, axis, 0)
    return X.astype(dtype.newbyteorder("=")) if not dtype.isnative else X
