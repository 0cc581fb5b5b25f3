"""MATLAB's file format of version 4: matrices of plain numbers, one behind the other.

SciPy decides by the first bytes whether a file has this version, and where it thinks otherwise
hands the bytes to its compiled reader of version 5, which wrong lengths can crash. So this version
too is read here, with each length checked against what is there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np

from tuckermix._archives import Entry
from tuckermix._reading import Refusal, open_regular
from tuckermix.datasets._mat5 import MAX_ELEMENTS, MAX_NAME

HEAD_BYTES = 20
"""Five integers of four bytes: the type, rows, columns, whether complex, length of the name."""

STORED = {0: "f8", 1: "f4", 2: "i4", 3: "i2", 4: "u2", 5: "u1"}
"""Types of values, by the tens of the type."""

KINDS = {0: "", 1: "a MATLAB char", 2: "a MATLAB sparse"}
"""Kinds of matrices, by the ones of the type; the first holds plain numbers."""

ORDERS = {0: "<", 1: ">"}
"""Byte orders, by the thousands of the type; the others belong to machines long gone."""


def entries(path: Path, limit: int) -> Iterator[Entry]:
    """Yield the variables of a file, unread; later at most `limit` bytes of each are read."""
    size = os.path.getsize(path)
    with open_regular(path) as stream:
        start = 0
        for _ in range(MAX_ELEMENTS):
            if start >= size:
                return
            entry, start = _entry(path, stream, start, size, limit)
            yield entry
    raise ValueError(f"it has more than {MAX_ELEMENTS} variables")


def _load(
    path: Path, start: int, shape: tuple[int, int], stored: np.dtype, limit: int
) -> np.ndarray:
    """Read the values that start at a place; the caller has compared their size with `limit`."""
    with open_regular(path) as stream:
        stream.seek(start)
        content = stream.read(min(limit, shape[0] * shape[1] * stored.itemsize))
    # Stored column by column.
    values = np.frombuffer(content, dtype=stored).reshape(shape[::-1]).T
    return values.astype(stored.newbyteorder("="), copy=False)


def _entry(path: Path, stream: IO[bytes], start: int, size: int, limit: int) -> tuple[Entry, int]:
    """Read the head of a matrix: what it is, and where it ends."""
    stream.seek(start)
    head = stream.read(HEAD_BYTES)
    whole = len(head) == HEAD_BYTES
    for order in ORDERS.values():
        numbers = np.frombuffer(head, dtype=f"{order}i4").tolist() if whole else []
        if whole and _plausible(numbers, order):
            break
    else:
        raise Refusal(
            f"the bytes at {start} start no matrix, in no version of MATLAB's format",
            "Get the file anew, or save it again from MATLAB",
        )
    code, n_rows, n_columns, imaginary, name_length = numbers
    stored, kind = np.dtype(order + STORED[code // 10 % 10]), KINDS[code % 10]
    values_start = start + HEAD_BYTES + name_length
    end = values_start + n_rows * n_columns * stored.itemsize * (2 if imaginary else 1)
    if end > size:
        raise EOFError(f"a matrix at byte {start} needs {end} bytes and the file has {size}")
    name = stream.read(name_length).rstrip(b"\0").decode("latin-1")
    if imaginary and not kind:
        kind = "a MATLAB complex array"
    shape, dtype = (n_rows, n_columns), np.dtype(object) if kind else stored.newbyteorder("=")
    load = partial(_load, path, values_start, shape, stored, limit)
    return Entry(name, shape, dtype, load, note=kind), end


def _plausible(numbers: list[int], order: str) -> bool:
    """Tell whether five integers can be the head of a matrix in a byte order."""
    code, n_rows, n_columns, imaginary, name_length = numbers
    return (
        0 <= code < 10_000
        and ORDERS.get(code // 1000) == order
        and code // 100 % 10 == 0
        and code // 10 % 10 in STORED
        and code % 10 in KINDS
        and min(n_rows, n_columns) >= 0
        and imaginary in (0, 1)
        and 0 < name_length <= MAX_NAME
    )
