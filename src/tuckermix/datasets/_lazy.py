"""Arrays that stay on disk, and Dask arrays that read their file piece by piece."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tuckermix._archives import Entry
from tuckermix._array_api import BLOCK_BYTES
from tuckermix._optional import require
from tuckermix._reading import Refusal, check_fits, reading

MAX_BLOCKS = 50_000
"""Chunks of one array, each of which costs Dask some memory beforehand; of the usual size, this
many hold more than a terabyte. A file can declare any number of samples."""

Region = Sequence[tuple[int, int]]
"""Start and stop along each axis."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OnDisk(Entry):
    """An array in a file of its own, read where it is asked for.

    Attributes
    ----------
    path : str
        Where the file is.
    limit : int
        The most bytes that a part of it may take in memory.
    stamp : tuple of int
        Length and time of the last change of the file when it was opened.
    turned : bool
        Whether the file has its axes the other way round.
    chunks : tuple of int or None
        The shape of a chunk in the file.
    """

    path: str
    limit: int
    stamp: tuple[int, int]
    turned: bool = False
    chunks: tuple[int, ...] | None = None

    stays = True

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return (self.path, self.name, self.stamp, self.shape)

    def load(self) -> np.ndarray:
        """Read all of it."""
        return self.region([(0, size) for size in self.shape])

    def region(self, region: Region) -> np.ndarray:
        """Read a region."""
        with reading(self.path):
            if stamp_of(self.path) != self.stamp:
                raise Refusal("it was changed after it was opened", "Read it again")
            self.check_chunk()
            return self._region(region[::-1]).T if self.turned else self._region(region)

    def _region(self, region: Region) -> np.ndarray:
        """Read a region, with the axes as they are in the file."""
        raise NotImplementedError

    def check_chunk(self) -> None:
        """Refuse an array whose chunks would pass the limit."""
        if self.chunks:
            check_fits(
                f"one chunk of {'/' + self.name!r} with shape {self.chunks}",
                math.prod(self.chunks) * self.dtype.itemsize,
                self.limit,
                "If you trust the file, raise max_bytes, or store it in smaller chunks",
            )

    def lazy(self, axis: int, chunks: int | None) -> Any:
        """Wrap it as a Dask array with its samples, along `axis`, first."""
        self.check_chunk()
        return to_dask(self, axis, chunks, self.chunks[axis] if self.chunks else None, self.limit)


def stamp_of(path: str | os.PathLike[str]) -> tuple[int, int]:
    """Return what changes when a file is written: its length and the time of the last change."""
    found = os.stat(path)
    return (0, 0) if os.path.isdir(path) else (found.st_size, found.st_mtime_ns)


def to_dask(array: Any, axis: int, chunks: int | None, stored: int | None, limit: int) -> Any:
    """Wrap an array on disk as a Dask array with its samples first, chunked along samples only.

    Parameters
    ----------
    array : OnDisk
        Or anything with `shape`, `dtype` and `region(region)`, in any process that it is sent to.
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
        chunks = fitting = max(1, min(BLOCK_BYTES, limit) // sample_bytes)
        if stored:  # a stored chunk is torn only where it would pass the limit
            whole = max(stored, fitting // stored * stored)
            chunks = whole if whole * sample_bytes <= limit else fitting
    taken = min(chunks, shape[axis])
    remedy = "If you trust the file, pass smaller chunks or a larger max_bytes"
    check_fits(f"{taken} of its samples", taken * sample_bytes, limit, remedy)
    if -(-shape[axis] // chunks) > MAX_BLOCKS:
        raise Refusal(
            f"{shape[axis]} samples in chunks of {chunks} make more than {MAX_BLOCKS} chunks",
            "Pass larger chunks",
        )
    others = shape[:axis] + shape[axis + 1 :]
    sizes = da.core.normalize_chunks((chunks, *others), (shape[axis], *others))
    # With an empty array to look at, Dask has no need to open the file for a first guess.
    meta = np.empty((0,) * len(shape), dtype=dtype.newbyteorder("="))
    return da.map_blocks(
        partial(_block, array, axis), chunks=sizes, dtype=meta.dtype, meta=meta, name=None
    )


def _block(array: Any, axis: int, block_info: Any = None) -> np.ndarray:
    """Read the samples of one chunk."""
    samples, *others = block_info[None]["array-location"]
    values = np.moveaxis(array.region((*others[:axis], samples, *others[axis:])), axis, 0)
    return values.astype(values.dtype.newbyteorder("="), copy=False)
