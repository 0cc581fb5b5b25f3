"""Go through samples block by block: the two ways in which anything touches them.

`map` gives rows that belong to single samples, `reduce` a small result over all of them. In memory
the blocks are worked on one after the other; a Dask array brings its own blocks.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tuckermix._array_api import (
    Array,
    asarray_like,
    blocks,
    gather_rows,
    get_namespace,
    is_dask,
    is_double,
    is_numpy,
)

__all__ = ["Blocks", "MemoryBlocks", "add_parts", "as_blocks"]

HOST_BLOCK_BYTES = 2 * 2**20
"""A block that stays in a processor's cache between the steps of a projection."""

HOST_BLOCK_SAMPLES = 128
LARGE_HOST_BLOCK_BYTES = 64 * 2**20
"""Large samples come this many at a time, as long as they take no more than the second figure: the
sums over a block are as large as some hundred samples, and adding them up after every few samples
would take longer than computing them (nine times as long for videos of 50 × 50 × 50)."""

DEVICE_BLOCK_BYTES = 512 * 2**20
"""On an accelerator few large launches beat many small ones."""


PARTS = 8
"""Least number of blocks on an accelerator: temporary arrays, some of them in float64, then stay
well below the size of the samples."""


class Blocks(ABC):
    """Samples as a sequence of blocks.

    Attributes
    ----------
    n_samples : int
        The number of samples.
    sample_shape : tuple of int
        The shape of one sample.
    like : array of shape (1, d_1, ...)
        A small array of the library, device and floating type of the samples.
    lazy : bool
        Whether `map` returns a Dask array.
    """

    n_samples: int
    sample_shape: tuple[int, ...]
    like: Array
    lazy: bool = False

    @abstractmethod
    def map(self, function: Callable[[Array], Array]) -> Array:
        """Apply a function of samples that returns one row for each sample.

        Parameters
        ----------
        function : callable
            Takes a block of shape (n, d_1, ...), returns an array of shape (n, ...).

        Returns
        -------
        rows : array of shape (n_samples, ...)
            The rows of all samples.
        """

    @abstractmethod
    def reduce(
        self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *rows: Array
    ) -> Any:
        """Apply a function to every block and combine the results in one pass.

        Parameters
        ----------
        function : callable
            Takes a block of shape (n, d_1, ...), and of each of `rows` the part that belongs to
            it; returns something small.
        combine : callable
            Makes one result of two; associative.
        *rows : arrays of shape (n_samples, ...)
            Further arrays that are cut as the samples are.

        Returns
        -------
        result : object
            The combined result.
        """

    @abstractmethod
    def take(self, indices: np.ndarray) -> Array:
        """Return the samples with these sorted indices as an array in memory."""


class MemoryBlocks(Blocks):
    """Samples that lie in the memory of one device.

    Parameters
    ----------
    X : array of shape (n_samples, d_1, ...)
        The samples, never copied as a whole.
    """

    def __init__(self, X: Array):
        self._X = X
        self.n_samples = int(X.shape[0])
        self.sample_shape = tuple(int(size) for size in X.shape[1:])
        self.like = X[:1, ...]

    def _slices(self) -> Iterator[slice]:
        size = math.prod(self.sample_shape) * (8 if is_double(self._X) else 4)
        budget = max(HOST_BLOCK_BYTES, min(HOST_BLOCK_SAMPLES * size, LARGE_HOST_BLOCK_BYTES))
        if not is_numpy(self._X):
            budget = min(DEVICE_BLOCK_BYTES, max(HOST_BLOCK_BYTES, self.n_samples * size // PARTS))
        return blocks(self.n_samples, size, budget)

    def map(self, function: Callable[[Array], Array]) -> Array:
        """Apply a function that returns one row for each sample, see `Blocks.map`."""
        results = ((part, function(self._X[part, ...])) for part in self._slices())
        return gather_rows(results, self.n_samples, self._X)

    def reduce(
        self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *rows: Array
    ) -> Any:
        """Apply a function to every block and combine the results, see `Blocks.reduce`."""
        total = None
        for part in self._slices():
            result = function(self._X[part, ...], *(other[part, ...] for other in rows))
            total = result if total is None else combine(total, result)
        return total

    def take(self, indices: np.ndarray) -> Array:
        """Return chosen samples, see `Blocks.take`."""
        xp = get_namespace(self._X)
        return xp.take(self._X, asarray_like(indices, self._X, dtype=xp.int64), axis=0)


def as_blocks(X: Any) -> Blocks:
    """Wrap an array as blocks of samples.

    Parameters
    ----------
    X : array of shape (n_samples, d_1, ...)
        A NumPy, PyTorch, CuPy, JAX or Dask array of float32 or float64.

    Returns
    -------
    samples : Blocks
        The samples.
    """
    if is_dask(X):
        from tuckermix.sources.dask import DaskBlocks

        return DaskBlocks(X)
    return MemoryBlocks(X)


def add_parts(left: Any, right: Any) -> Any:
    """Combine two results, each a tuple or list of things that can be added, None staying None."""
    return type(left)(
        None if one is None else one + other for one, other in zip(left, right, strict=True)
    )
