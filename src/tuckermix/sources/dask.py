"""Samples in a Dask array: more than fits in memory, or spread over a cluster.

Big arrays stay lazy, small ones are concrete. A reduction is one task for each chunk, a tree of
sums and a single `compute`, so a pass over the data is one round with the scheduler. Tasks are
pure functions of a chunk and small arrays: the scheduler may run them anywhere and again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tuckermix._array_api import Array
from tuckermix.sources.blocks import Blocks

__all__ = ["DaskBlocks", "check_dask"]

FAN_IN = 8
"""How many partial results one task of the tree of sums takes."""


class DaskBlocks(Blocks):
    """Samples in a Dask array, cut along the samples.

    Parameters
    ----------
    X : dask.array.Array of shape (n_samples, d_1, ...)
        The samples. Chunks along the feature modes are joined.

    Attributes
    ----------
    n_passes : int
        How often the samples have been read so far.
    """

    lazy = True

    def __init__(self, X: Any):
        self._X = check_dask(X)
        self.n_samples = int(self._X.shape[0])
        self.sample_shape = tuple(int(size) for size in self._X.shape[1:])
        self.like = np.zeros((1, *self.sample_shape), dtype=self._X.dtype)
        self.n_passes = 0

    def map(self, function: Callable[[Array], Array]) -> Array:
        """Apply a function that returns one row for each sample, lazily; see `Blocks.map`."""
        sample = function(np.zeros((1, *self.sample_shape), dtype=self._X.dtype))
        return self._X.map_blocks(
            _apply,
            function=function,
            dtype=sample.dtype,
            chunks=(self._X.chunks[0], *((size,) for size in sample.shape[1:])),
            drop_axis=list(range(1, self._X.ndim)),
            new_axis=list(range(1, sample.ndim)) or None,
            meta=sample[:0],
        )

    def reduce(
        self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *rows: Array
    ) -> Any:
        """Apply a function to every chunk and combine the results; see `Blocks.reduce`."""
        import dask

        self.n_passes += 1
        shared = dask.delayed(function, pure=True, traverse=False)
        apply = dask.delayed(_apply_with_rows, pure=True)
        bounds = np.cumsum((0, *self._X.chunks[0]))
        parts = [
            apply(shared, chunk, [_cut(other, start, stop) for other in rows])
            for chunk, start, stop in zip(
                self._X.to_delayed().ravel(), bounds[:-1], bounds[1:], strict=True
            )
        ]
        merge = dask.delayed(_combine, pure=True, traverse=True)
        while len(parts) > 1:
            parts = [merge(parts[i : i + FAN_IN], combine) for i in range(0, len(parts), FAN_IN)]
        return _run(parts[0])

    def take(self, indices: np.ndarray) -> Array:
        """Return chosen samples in memory, see `Blocks.take`."""
        self.n_passes += 1
        return _run(self._X[indices])


def check_dask(X: Any) -> Any:
    """Return a Dask array that can be worked on chunk by chunk, or say what to change.

    Parameters
    ----------
    X : dask.array.Array of shape (n_samples, d_1, ...)
        The samples.

    Returns
    -------
    X : dask.array.Array of shape (n_samples, d_1, ...)
        The samples in float32 or float64, whole along the feature modes, without empty chunks.
    """
    if X.ndim < 2:
        raise ValueError(
            f"Expected a Dask array of shape (n_samples, ...) with at least 2 axes, got {X.ndim}. "
            "Reshape your data using X.reshape(-1, 1) if it has a single feature."
        )
    if any(math.isnan(size) for size in X.shape):
        raise ValueError(
            "X is a Dask array with unknown chunk sizes. Either (1) call X.compute_chunk_sizes(), "
            "which reads the data once, or (2) pass lengths=True to DataFrame.to_dask_array, or "
            "(3) build X from arrays of known shape."
        )
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: pass real and imaginary parts.")
    if X.dtype.kind not in "fbiu":
        raise ValueError(f"X must hold real numbers, but it has dtype {X.dtype}.")
    if X.dtype.kind == "f" and X.dtype.itemsize == 2:
        raise TypeError("X has dtype float16: convert it with X.astype('float32') first.")
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    if any(len(sizes) > 1 for sizes in X.chunks[1:]):
        X = X.rechunk(dict.fromkeys(range(1, X.ndim), -1))
    if 0 in X.chunks[0]:
        X = X.rechunk({0: tuple(size for size in X.chunks[0] if size)})
    return X


def _apply(block: Array, function: Callable[[Array], Array]) -> Array:
    return function(block)


def _apply_with_rows(function: Callable[..., Any], block: Array, rows: list[Array]) -> Any:
    return function(block, *rows)


def _combine(parts: list[Any], combine: Callable[[Any, Any], Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = combine(total, part)
    return total


def _cut(rows: Any, start: int, stop: int) -> Any:
    """Take the rows of one chunk, from an array in memory or a lazy one."""
    part = rows[int(start) : int(stop)]
    if hasattr(part, "to_delayed"):
        return part.rechunk(part.shape).to_delayed().ravel()[0]
    return part


def _run(task: Any) -> Any:
    """Compute a lazy result, with an error that says what to do when the cluster is lost."""
    try:
        return task.compute()
    except Exception as error:
        kind = type(error).__name__
        if kind in ("CommClosedError", "SchedulerClosed", "FutureCancelledError", "CancelledError"):
            raise RuntimeError(
                "The Dask scheduler went away while the samples were read: start the cluster "
                "again, connect a new Client and repeat the call. The data are unharmed."
            ) from error
        if kind == "KilledWorker":
            raise MemoryError(
                "A task on the Dask cluster killed its worker several times, which usually means "
                "that a chunk does not fit in the worker's memory: use smaller chunks along the "
                "samples, such as X.rechunk({0: 'auto'}), or workers with more memory."
            ) from error
        raise
