"""MATLAB's file format of versions 5 to 7, as far as numeric arrays go.

SciPy's compiled reader of this format trusts the lengths that a file states: a few wrong bytes end
the process. This one checks each length against what is there, unpacks no more than was declared,
and leaves cells, structures, functions and objects alone.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np

from tuckermix._archives import Entry
from tuckermix._reading import open_regular

HEADER_BYTES = 128
"""Text, version and byte order at the head of a file."""

TAG_BYTES = 8
"""Type and length before each element; elements inside a matrix also start at such multiples."""

COMPRESSED, MATRIX = 15, 14
"""Types of elements at the top level."""

STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8"}
STORED |= {12: "i8", 13: "u8"}
"""Types in which values are stored; MATLAB takes the narrowest that holds them."""

CLASSES = dict(enumerate(("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"), start=6))
"""Types that the values have in MATLAB."""

OTHER_CLASSES = {1: "cell", 2: "struct", 3: "object", 4: "char", 5: "sparse", 16: "function"}
"""Classes that hold no plain numbers."""

COMPLEX_FLAG, LOGICAL_FLAG = 0x0800, 0x0200
"""Bits of the flags of a matrix."""

MAX_AXES = 32
"""Axes of an array; a damaged file may claim any number."""

MAX_NAME = 256
"""Bytes of the name of a variable; MATLAB allows 63."""

MAX_ELEMENTS = 100_000
"""Variables in a file; a hostile one can have one in every few bytes."""

PIECE = 2**16
"""Packed bytes to read at a time."""


def is_mat5(path: Path) -> bool:
    """Tell whether a file is of version 5 to 7, by its byte order mark."""
    with open_regular(path) as stream:
        return _byte_order(stream.read(HEADER_BYTES)) is not None


def entries(path: Path, limit: int) -> Iterator[Entry]:
    """Yield the variables of a file; of packed ones only the head is unpacked.

    Parameters
    ----------
    path : Path
        The file.
    limit : int
        The most bytes that the stored values of one may take.

    Yields
    ------
    entry : Entry
        A variable, in MATLAB's shape and type.
    """
    size = os.path.getsize(path)
    with open_regular(path) as stream:
        order = _byte_order(stream.read(HEADER_BYTES)) or "<"
        start = HEADER_BYTES
        for _ in range(MAX_ELEMENTS):
            if start >= size:
                return
            stream.seek(start)
            kind, length = _tag(_exactly(stream, TAG_BYTES), order)
            if start + TAG_BYTES + length > size:
                raise EOFError(f"an element of {length} bytes at byte {start} is cut off")
            if kind in (COMPRESSED, MATRIX):
                name, shape, dtype, note = _head(_open(stream, kind, length, order), order)
                load = partial(_load, path, start, shape, dtype, limit)
                yield Entry(name, shape, dtype, load, note=note)
            start += TAG_BYTES + length
    raise ValueError(f"it has more than {MAX_ELEMENTS} elements")


def _load(
    path: Path, start: int, shape: tuple[int, ...], dtype: np.dtype, limit: int
) -> np.ndarray:
    """Read the values of the numeric variable whose element starts at a place."""
    with open_regular(path) as stream:
        order = _byte_order(stream.read(HEADER_BYTES)) or "<"
        stream.seek(start)
        kind, length = _tag(_exactly(stream, TAG_BYTES), order)
        source = _open(stream, kind, length, order)
        name = _head(source, order)[0]
        kind, length, content = _element(source, order, limit, last=True)
        if kind not in STORED:
            raise ValueError(f"values of {name!r} have the unknown type {kind}")
        values = np.frombuffer(content, dtype=order + STORED[kind])
        if values.size != math.prod(shape):
            raise ValueError(f"{name!r} has {values.size} values for {shape}")
        source.finish()
    return values.astype(dtype).reshape(shape, order="F")


class _Plain:
    """The bytes of an element as they lie in the file."""

    def __init__(self, stream: IO[bytes], length: int) -> None:
        self.stream = stream
        self.left = length

    def read(self, count: int) -> bytes:
        if count > self.left:
            raise EOFError(f"{count} bytes are needed and the element has {self.left} more")
        self.left -= count
        return _exactly(self.stream, count)

    def finish(self) -> None:
        """Nothing guards the end of an element that is not packed."""


class _Packed:
    """The bytes of a packed element, unpacked as far as they are asked for."""

    def __init__(self, stream: IO[bytes], length: int) -> None:
        self.source = _Plain(stream, length)
        self.unpacker = zlib.decompressobj()
        self.packed = b""

    def read(self, count: int) -> bytes:
        pieces, missing = [], count
        while missing > 0:
            if not self.packed and self.source.left:
                self.packed = self.source.read(min(PIECE, self.source.left))
            piece = self.unpacker.decompress(self.packed, missing)
            self.packed = self.unpacker.unconsumed_tail
            ended = self.unpacker.eof or not (self.packed or self.source.left)
            if not piece and ended:
                raise EOFError(f"{missing} bytes more are needed than were packed")
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)

    def finish(self) -> None:
        """Unpack the padding, behind which the checksum is compared."""
        while not self.unpacker.eof:
            if not self.packed and not self.source.left:
                raise EOFError("the packed bytes end early")
            self.packed = self.packed or self.source.read(min(PIECE, self.source.left))
            if len(self.unpacker.decompress(self.packed, PIECE)) == PIECE:
                raise ValueError("more is packed than the values of the variable")
            self.packed = self.unpacker.unconsumed_tail


_Source = _Plain | _Packed


def _byte_order(head: bytes) -> str | None:
    return {b"IM": "<", b"MI": ">"}.get(head[HEADER_BYTES - 2 :])


def _exactly(stream: IO[bytes], count: int) -> bytes:
    content = stream.read(count)
    if len(content) != count:
        raise EOFError(f"{count} bytes are needed and {len(content)} are left")
    return content


def _tag(content: bytes, order: str) -> tuple[int, int]:
    kind, length = np.frombuffer(content, dtype=f"{order}u4").tolist()
    return kind, length


def _open(stream: IO[bytes], kind: int, length: int, order: str) -> _Source:
    """Open the content of a matrix at the top level, packed or not, behind its tag."""
    if kind == MATRIX:
        return _Plain(stream, length)
    source = _Packed(stream, length)
    inner, _ = _tag(source.read(TAG_BYTES), order)
    if inner != MATRIX:
        raise ValueError(f"a packed element has the unknown type {inner}")
    return source


def _element(
    source: _Source, order: str, limit: int, *, last: bool = False
) -> tuple[int, int, bytes]:
    """Read one element inside a matrix: its type, its length and its content.

    Behind the last element some writers leave the padding out; it is not read there.
    """
    tag = source.read(TAG_BYTES)
    kind, length = _tag(tag, order)
    if kind >> 16:  # up to four bytes are stored in the tag itself
        kind, length = kind & 0xFFFF, kind >> 16
        if length > TAG_BYTES // 2:
            raise ValueError(f"a short element claims {length} bytes")
        return kind, length, tag[TAG_BYTES // 2 :][:length]
    if length > limit:
        raise ValueError(f"an element of {length} bytes passes the limit of {limit}")
    content = source.read(length)
    if not last:
        source.read(-length % TAG_BYTES)
    return kind, length, content


def _head(source: _Source, order: str) -> tuple[str, tuple[int, ...], np.dtype, str]:
    """Read name, shape and type of a matrix, and what it is where that is no array of numbers."""
    _, length, flags = _element(source, order, TAG_BYTES)
    if length != TAG_BYTES:
        raise ValueError(f"the flags of a matrix have {length} bytes")
    word = int(np.frombuffer(flags, dtype=f"{order}u4")[0])
    _, length, dims = _element(source, order, 4 * MAX_AXES)
    if length % 4 or not length:
        raise ValueError(f"the shape of a matrix has {length} bytes")
    shape = tuple(np.frombuffer(dims, dtype=f"{order}i4").tolist())
    if min(shape) < 0:
        raise ValueError(f"the shape {shape} is impossible")
    name = _element(source, order, MAX_NAME)[2].decode("ascii")
    code = word & 0xFF
    if code not in CLASSES or word & COMPLEX_FLAG:
        kind = "complex array" if code in CLASSES else OTHER_CLASSES.get(code, "object")
        return name, shape, np.dtype(object), f"a MATLAB {kind}"
    return name, shape, np.dtype(bool if word & LOGICAL_FLAG else CLASSES[code]), ""
