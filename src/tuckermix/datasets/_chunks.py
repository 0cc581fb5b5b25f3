"""Arrays stored in pieces of equal shape, most or all of which may be absent."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

MAX_PROBES = 10_000
"""Chunks that are asked for one by one. A file can declare any number of chunks and store none:
beyond this, the stored ones are listed instead, so that the work follows what is there."""

TOO_LARGE = "If you trust the file, raise max_bytes, or store it anew in smaller chunks"
"""What to do about chunks that would pass the limit."""

Region = tuple[tuple[int, int], ...]
"""Start and stop along each axis."""

Index = tuple[int, ...]
"""The number of a chunk along each axis."""


def whole(shape: tuple[int, ...]) -> Region:
    """Return the region that is the whole array."""
    return tuple((0, size) for size in shape)


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


def unshuffled(content: bytes, size: int) -> bytes:
    """Put the bytes of each value together again; what is no whole value stays behind them."""
    count = len(content) // size
    turned = np.frombuffer(content, "u1", count=count * size).reshape(size, count)
    return turned.T.tobytes() + content[count * size :]


def gather(
    region: Region,
    chunk_shape: tuple[int, ...],
    dtype: np.dtype,
    fill: Any,
    stored: Callable[[], Iterable[Index]],
    read: Callable[[Index], np.ndarray | None],
) -> np.ndarray:
    """Put a region of an array together from the chunks that overlap it.

    Parameters
    ----------
    region : tuple of (int, int)
        Start and stop along each axis.
    chunk_shape : tuple of int
        The shape of a chunk, the same for those at the border.
    dtype : dtype
        The type of the values.
    fill : scalar
        The value where no chunk is stored.
    stored : callable
        Lists the indices of the chunks that are stored, of the whole array.
    read : callable
        Reads the chunk with an index; None where it is not stored.

    Returns
    -------
    values : ndarray
        The region.
    """
    ranges = [
        range(low // size, -(-high // size))
        for (low, high), size in zip(region, chunk_shape, strict=True)
    ]
    values = np.full(tuple(high - low for low, high in region), fill, dtype=dtype)
    indices: Iterable[Index]
    if math.prod(map(len, ranges)) <= MAX_PROBES:
        indices = itertools.product(*ranges)
    else:
        indices = (i for i in stored() if all(a in r for a, r in zip(i, ranges, strict=True)))
    for index in indices:
        chunk = read(index)
        if chunk is None:
            continue
        into, out_of = [], []
        for number, size, (low, high) in zip(index, chunk_shape, region, strict=True):
            start, stop = max(low, number * size), min(high, (number + 1) * size)
            into.append(slice(start - low, stop - low))
            out_of.append(slice(start - number * size, stop - number * size))
        values[tuple(into)] = chunk[tuple(out_of)]
    return values
