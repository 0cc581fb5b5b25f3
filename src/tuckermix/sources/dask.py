"""Samples in a Dask array: more than fits in memory, or spread over a cluster.

Big arrays stay lazy, small ones are concrete. A reduction is one task for each chunk, a tree of
sums and a single `compute`, so a pass over the data is one round with the scheduler. Tasks are
pure functions of a chunk and small arrays: the scheduler may run them anywhere and again. Within
a task a chunk is worked on like an array in memory, in blocks that fit a processor's cache.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuckermix._array_api import Array
from tuckermix._estimators import Settings
from tuckermix._machine import default_limit
from tuckermix._threads import one_blas_thread
from tuckermix._validation import check_dask
from tuckermix.sources.source import Blocks, Combine, MemoryBlocks

FAN_IN = 8
"""How many partial results one task of the tree of sums takes."""

LOST_SCHEDULER = frozenset(
    {
        "CancelledError",
        "ClosedClientError",
        "CommClosedError",
        "FutureCancelledError",
        "FuturesCancelledError",
        "SchedulerClosed",
    }
)
"""Errors of `dask.distributed` when nobody answers any more. They are told by name, so that a
threaded run needs no `dask.distributed`."""


@dataclass(frozen=True)
class GatherSettings(Settings):
    """How rows of chosen samples come into memory.

    Attributes
    ----------
    bytes_at_once : int
        They come in rounds of this size: it is held by all workers together, beside their chunks.
    kept_share : float
        The share of the memory of workers that may be filled with rows that are needed again: what
        a pass takes needs the rest.
    """

    bytes_at_once: int = 2**27
    kept_share: float = 0.25


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

    def map(self, function: Callable[..., Array], *rows: Array) -> Array:
        """Apply a function that returns one row for each sample, lazily; see `Blocks.map`."""
        import dask.array as da

        arguments, n_axes = self._arguments(rows)
        arrays = arguments[::2]
        sample = function(*(np.zeros((1, *a.shape[1:]), dtype=a.dtype) for a in arrays))
        new = tuple(range(n_axes, n_axes + sample.ndim - 1))
        # The feature axes are contracted: Dask hands over a nested list with the one chunk in it,
        # where joining the chunks, its other way, would copy them.
        return da.blockwise(
            functools.partial(_on_chunk, "map"),
            (0, *new),
            *(*arguments[:2], _shared(function), None, *arguments[2:]),
            align_arrays=False,
            token=_task_name(function),
            new_axes=dict(zip(new, sample.shape[1:], strict=True)),
            dtype=sample.dtype,
            meta=sample[:0],
        )

    def reduce(self, function: Callable[..., Any], combine: Combine, *rows: Array) -> Any:
        """Apply a function to every chunk and combine the results; see `Blocks.reduce`."""
        import dask
        import dask.array as da

        self.n_passes += 1
        arguments, n_axes = self._arguments(rows)
        shared = _shared(function), None, _shared(combine), None
        # An array in name only: its chunks are the partial results. It keeps all axes, so that
        # nothing is contracted, and a chunk that several arguments need is read once.
        parts = da.blockwise(
            functools.partial(_on_chunk, "reduce"),
            tuple(range(n_axes)),
            *(*arguments[:2], *shared, *arguments[2:]),
            token=_task_name(function),
            align_arrays=False,
            dtype=object,
            meta=np.empty((0,) * n_axes, dtype=object),
        )
        merge = dask.delayed(functools.reduce, pure=True)
        layer = list(parts.to_delayed().ravel())
        while len(layer) > 1:
            layer = [merge(combine, layer[i : i + FAN_IN]) for i in range(0, len(layer), FAN_IN)]
        return _run(layer)[0]

    def _arguments(self, rows: tuple[Array, ...]) -> tuple[list[Any], int]:
        """Return samples and rows, cut as the samples are, with numbers for their axes.

        All share the first axis; how many different axes there are comes along.
        """
        import dask.array as da

        arguments: list[Any] = [self._X, tuple(range(self._X.ndim))]
        n_axes = self._X.ndim
        for array in rows:
            chunks = (self._X.chunks[0], *((size,) for size in array.shape[1:]))
            lazy = isinstance(array, da.Array)
            cut = array.rechunk(chunks) if lazy else da.from_array(array, chunks)
            arguments += [cut, (0, *range(n_axes, n_axes + cut.ndim - 1))]
            n_axes += cut.ndim - 1
        return arguments, n_axes

    def scaled(self, scale: float) -> DaskBlocks:
        """Return the samples in other units, see `Blocks.scaled`."""
        return DaskBlocks(self._X * scale)

    def take(self, indices: np.ndarray, function: Callable[[Array], Array] | None = None) -> Array:
        """Return chosen samples in memory, or rows that are made of them; see `Blocks.take`.

        What is taken leaves the task that reads its chunk, and comes straight here: no task joins
        it, and no more of it waits with the workers than `GatherSettings.bytes_at_once`.
        """
        import dask

        self.n_passes += 1
        ends = np.cumsum(self._X.chunks[0])
        starts = ends - np.asarray(self._X.chunks[0])
        cuts = np.searchsorted(indices, [starts, ends])
        pick, make = dask.delayed(_on_chunk, pure=True), _shared(function)
        chunks = self._X.to_delayed().ravel()
        parts = [
            pick("take", chunk, indices[first:last] - start, make)
            for chunk, first, last, start in zip(chunks, *cuts, starts, strict=True)
            if last > first
        ]
        like = self.like if function is None else function(self.like)
        rows = np.empty((len(indices), *like.shape[1:]), dtype=like.dtype)
        at_once = max(1, len(parts) * GatherSettings.current().bytes_at_once // max(1, rows.nbytes))
        done = 0
        for first in range(0, len(parts), at_once):
            for part in _run(parts[first : first + at_once]):
                rows[done : done + len(part)] = part
                done += len(part)
        return rows


def keep(rows: Any) -> Any:
    """Keep rows that several passes need where they are computed, if there is memory for them."""
    return rows.persist() if rows.nbytes <= _memory_to_keep() else rows


def _memory_to_keep() -> int:
    distributed = sys.modules.get("distributed")  # loaded where there is a cluster
    client = None
    if distributed is not None:
        with contextlib.suppress(ValueError):
            client = distributed.get_client()
    workers = client.scheduler_info()["workers"].values() if client is not None else ()
    least = min((worker["memory_limit"] for worker in workers), default=0)
    if client is None or not least:  # threads of this process, or workers without a limit
        return default_limit()
    return int(GatherSettings.current().kept_share * least * len(client.nthreads()))


def _shared(function: Any) -> Any:
    """Make one task of a function and the arrays it holds, so that a worker gets them once."""
    import dask

    return dask.delayed(function, pure=True, traverse=False)


def _task_name(function: Any) -> str:
    """Return the name under which Dask's dashboard shows the tasks of a function."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", type(function).__name__)
    return "tuckermix-" + name.strip("_").removesuffix("_block").replace("_", "-").lower()


# Dask shares out the processors among chunks: within a chunk there is one thread.
@functools.partial(one_blas_thread, n_jobs=1)
def _on_chunk(method: str, chunk: Any, *arguments: Any) -> Any:
    """Call a method of the blocks of a chunk."""
    samples, *rest = map(_only, (chunk, *arguments))
    return getattr(MemoryBlocks(samples), method)(*rest)


def _only(chunk: Any) -> Any:
    """Take a chunk out of the nested list that holds it alone; return others as they are."""
    while isinstance(chunk, list):
        (chunk,) = chunk
    return chunk


def _run(tasks: list[Any]) -> tuple[Any, ...]:
    """Compute lazy results, with an error that says what to do when the cluster is lost."""
    import dask

    try:
        return dask.compute(*tasks)
    except Exception as error:
        kind = type(error).__name__
        if kind in LOST_SCHEDULER:
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
