"""HDF5 files, whole or in pieces.

Where arrays lie and how they are stored is what libhdf5 says, in a process with limits. Their bytes
are read here, at offsets that lie in the file, and unpacked here: the library unpacks whatever a
chunk gives, while its shape says how much that can be. What only the library can turn into numbers
or strings comes from that process, in pieces.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._archives import Entry
from tuckermix._reading import Refusal, check_fits, inflate, open_regular, reading, slack
from tuckermix.datasets._chunks import TOO_LARGE, Index, Region, covering, gather, unshuffled, whole
from tuckermix.datasets._container import STRING, assemble, check_strings
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._lazy import Slices, to_dask
from tuckermix.datasets._library import Library
from tuckermix.datasets._options import Options

DEFLATE, SHUFFLE, FLETCHER32, SZIP, LZF = 1, 2, 3, 4, 32000
"""Numbers of the filters that are known here."""

FILTERS = {DEFLATE: "gzip", SHUFFLE: "shuffle", FLETCHER32: "fletcher32", SZIP: "szip", LZF: "lzf"}
"""Their names. A file can ask for others, which the library would look for on the disk."""

NATIVE = (SZIP, LZF)
"""Filters that only the library can undo."""

LZF_RATIO = 90
"""The most bytes that one byte of lzf can give: three bytes repeat up to 264."""

MAX_OBJECTS = 10_000
"""Arrays and groups in a file; a hostile one can have very many."""

MAX_TEXT = 2**29 - 1
"""The longest text that NumPy allows, in characters."""

MAX_NUMBER = 2**62
"""Chunks that can be numbered in a word."""

PIECE_BYTES = 8 * 2**20
"""Bytes to ask of the library at a time where there are no chunks."""

WORDS = 2**20
"""Words of a checksum to add at a time."""

MODULUS = 65535
"""The modulus of Fletcher's checksum of 16-bit words."""


def read_hdf5(path: Path, options: Options) -> Dataset:
    """Read samples and labels from an HDF5 file."""
    with Library(path, options.max_bytes) as library:
        return assemble(path, hdf5_entries(library, options), options)


def hdf5_entries(library: Library, options: Options, *, matlab: bool = False) -> list[Entry]:
    """List the arrays of a file, those in groups as "group/name".

    Links are not followed, and arrays whose values lie in other files are refused when chosen: a
    file from a stranger must not make us read the rest of the disk.

    Parameters
    ----------
    library : Library
        The library with the file; entries can be loaded as long as its context lasts.
    options : Options
        What the caller asked for.
    matlab : bool, default=False
        Whether MATLAB wrote it: it stores its axes reversed, and its own bookkeeping beside them.

    Returns
    -------
    entries : list of Entry
        The arrays, unread.
    """
    entries: list[Entry] = []
    for name, shape, *kind, matlab_class in library.arrays(MAX_OBJECTS, matlab):
        dtype, note = _dtype(*kind)
        if matlab_class in ("cell", "char"):
            dtype, note = np.dtype(object), f"a MATLAB {matlab_class}"
        entries.append(
            Entry(
                name=name,
                shape=tuple(shape[::-1] if matlab else shape),
                dtype=dtype,
                load=functools.partial(_load, library, name, matlab, options.max_bytes),
                lazy=functools.partial(_open, library, name, matlab, options.max_bytes),
                note=note,
            )
        )
    return entries


def _dtype(kind: str, length: int, said: str) -> tuple[np.dtype, str]:
    """Return the type of an array, and its name where it is none of ours."""
    if kind == "number":
        return np.dtype(said), ""
    if kind == "string":
        return STRING, ""
    if kind == "text":
        return np.dtype(("U", min(length, MAX_TEXT))), ""
    return np.dtype(object), said


@dataclass(frozen=True, eq=False)
class _Stored:
    """How an array is stored, as the library said and as far as it could be checked.

    Attributes
    ----------
    path : str
        The file.
    stamp : tuple of int
        Its length and the time of its last change when the library looked at it.
    name : str
        The name of the array.
    shape : tuple of int
        Its shape.
    dtype : dtype
        The type of its values; object for strings of any length and for what is not read.
    plain : bool
        Whether the bytes in the file are values as they are, once unpacked.
    fill : scalar
        The value where nothing is stored.
    offset : int or None
        Where the values start in the file, if they are in one piece and stored there.
    inside : bool
        Whether the values are stored among the structures, where only the library finds them.
    chunks : tuple of int
        The shape of a chunk, empty where the values are in one piece.
    chunk_bytes : int
        The size of a chunk once unpacked.
    filters : tuple of (int, tuple of int)
        Number and settings of each filter, in the order in which they were applied.
    table : ndarray of shape (n_chunks, n_axes + 3)
        Where the chunks are: index, offset, bytes in the file, filters that were left out.
    """

    path: str
    stamp: tuple[int, int]
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    plain: bool
    fill: Any
    offset: int | None
    inside: bool
    chunks: tuple[int, ...]
    chunk_bytes: int
    filters: tuple[tuple[int, tuple[int, ...]], ...]
    table: np.ndarray = field(repr=False)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return (self.path, self.stamp, self.name)

    def indices(self) -> Iterator[Index]:
        """Yield the index of each chunk that is stored."""
        for row in self.table:
            yield tuple(row[: len(self.shape)].tolist())

    @functools.cached_property
    def order(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows of the table in the order of their chunks, and the numbers of these chunks."""
        if math.prod(self.grid) > MAX_NUMBER:
            raise ValueError(f"{self.grid} chunks are too many to count")
        indices = self.table[:, : len(self.grid)]
        rows = np.flatnonzero(((indices >= 0) & (indices < self.grid)).all(axis=1))
        numbers = np.ravel_multi_index(tuple(indices[rows].T), self.grid)
        order = np.argsort(numbers, kind="stable")
        return rows[order], numbers[order]

    @property
    def grid(self) -> tuple[int, ...]:
        """The number of chunks along each axis."""
        return tuple(-(-a // b) for a, b in zip(self.shape, self.chunks, strict=True))

    def place(self, index: Index) -> tuple[int, int, int] | None:
        """Return offset, bytes and filters left out of a chunk, or None if it is not stored."""
        number = 0
        for one, size in zip(index, self.grid, strict=True):
            number = number * size + one
        rows, numbers = self.order
        found = int(np.searchsorted(numbers, number))
        if found == len(numbers) or numbers[found] != number:
            return None
        offset, size, mask = self.table[rows[found], len(self.shape) :].tolist()
        return offset, size, mask


def _stamp(path: str | os.PathLike[str]) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


def _describe(library: Library, name: str, limit: int) -> _Stored:
    """Ask how an array is stored, and refuse what would pass the limit or is not known."""
    stamp = _stamp(library.path)
    said, table = library.describe(name)
    kind, length, typename = said["type"]
    dtype = np.dtype({"number": typename, "text": f"S{length}"}.get(kind, object))
    chunks = tuple(said["chunks"] or ())
    chunk_bytes = math.prod(chunks) * said["value_bytes"] if chunks else 0
    place = f"/{name}"
    check_fits(f"one chunk of {place!r} with shape {chunks}", chunk_bytes, limit, TOO_LARGE)
    for number, _ in said["filters"]:
        if number not in FILTERS:
            raise Refusal(
                f"{place!r} is packed with the filter number {number}, which is not known here",
                "Store it anew with gzip, with h5repack for example",
            )
    fill = np.frombuffer(bytes.fromhex(said["fill"]), dtype)[0] if kind == "number" else b""
    return _Stored(
        path=os.path.abspath(library.path),
        stamp=stamp,
        name=name,
        shape=tuple(said["shape"]),
        dtype=dtype,
        plain=said["plain"],
        fill=fill,
        offset=said["offset"],
        inside=said.get("compact", False),
        chunks=chunks,
        chunk_bytes=chunk_bytes,
        filters=tuple((number, tuple(settings)) for number, settings in said["filters"]),
        table=table,
    )


def _load(library: Library, name: str, matlab: bool, limit: int) -> np.ndarray:
    stored = _describe(library, name, limit)
    if stored.dtype.hasobject:
        return _strings(library, stored, limit)
    values = _region(library, stored, limit, whole(stored.shape))
    return values.T if matlab else values


def _strings(library: Library, stored: _Stored, limit: int) -> np.ndarray:
    """Read strings of any length, few enough at a time that they fit however long they are."""
    shape = stored.shape
    n_strings = max(shape, default=0)
    if n_strings != math.prod(shape):
        return np.empty(shape, dtype="U1")  # no labels, which the caller says
    for index in stored.indices():
        _content(stored, index, limit)  # unpacked once, to see that it is what it must be
    axis = shape.index(n_strings) if shape else 0
    # Each string lies in the file, but many may be the same one.
    step = max(1, limit // max(1, stored.stamp[0]))
    texts: list[str] = []
    longest = 0
    for start in range(0, n_strings, step):
        place = [(0, size) for size in shape]
        place[axis : axis + 1] = [(start, min(n_strings, start + step))]
        found = library.strings(stored.name, tuple(place))
        texts += found
        longest = max(longest, *map(len, found))
        check_strings(f"/{stored.name}", n_strings, longest, limit)
    return np.array(texts, dtype=str)


def _region(library: Library, stored: _Stored, limit: int, region: Region) -> np.ndarray:
    """Read a region, chunk by chunk where it is stored so."""
    if not stored.chunks:
        return _contiguous(library, stored, region)
    chunks, dtype = stored.chunks, stored.dtype

    def read(index: Index) -> np.ndarray | None:
        content = _content(stored, index, limit)
        if content is None:
            return None
        if stored.plain and content:
            return np.frombuffer(content, dtype=dtype).reshape(chunks)
        # Looked at, and read by the library: numbers to convert, strings, filters of its own.
        places = zip(index, chunks, stored.shape, strict=True)
        place = tuple((a * b, min(a * b + b, c)) for a, b, c in places)
        return library.read(stored.name, place, dtype)

    return gather(region, chunks, dtype, stored.fill, stored.indices, read)


def _contiguous(library: Library, stored: _Stored, region: Region) -> np.ndarray:
    """Read a region of values that are stored in one piece."""
    dtype, shape = stored.dtype, tuple(high - low for low, high in region)
    if stored.offset is None and not stored.inside:
        return np.full(shape, stored.fill, dtype=dtype)
    if stored.plain and stored.offset is not None:
        needed = stored.offset + math.prod(stored.shape) * dtype.itemsize
        if needed > stored.stamp[0]:
            raise ValueError(f"the values end at byte {needed}, and the file at {stored.stamp[0]}")
        if 0 in shape:
            return np.empty(shape, dtype=dtype)
        with open_regular(stored.path) as stream:
            _check_unchanged(stored, stream)
            mapped = np.memmap(stream, dtype, "r", stored.offset, stored.shape)
            return np.array(mapped[tuple(slice(low, high) for low, high in region)])
    if not region:
        return library.read(stored.name, region, dtype)
    values = np.empty(shape, dtype=dtype)
    (first, last), rest = region[0], region[1:]
    step = max(1, PIECE_BYTES // max(1, values[:1].nbytes))
    for low in range(first, last, step):
        high = min(last, low + step)
        values[low - first : high - first] = library.read(stored.name, ((low, high), *rest), dtype)
    return values


def _check_unchanged(stored: _Stored, stream: Any) -> None:
    """Refuse a file that was changed after the library looked: its offsets mean nothing then."""
    if _stamp(stream.fileno()) != stored.stamp:
        raise Refusal("it was changed after it was opened", "Read it anew")


def _content(stored: _Stored, index: Index, limit: int) -> bytes | None:
    """Unpack one chunk; None where it is not stored, nothing where only the library can do it."""
    place = stored.place(index)
    if place is None:
        return None
    offset, size, mask = place
    if size > slack(stored.chunk_bytes):
        raise ValueError(f"a chunk of {stored.chunk_bytes} bytes takes {size} bytes in the file")
    with open_regular(stored.path) as stream:
        _check_unchanged(stored, stream)
        if not 0 <= offset <= offset + size <= stored.stamp[0]:
            raise ValueError(f"a chunk of {size} bytes at byte {offset} is not in the file")
        stream.seek(offset)
        packed = stream.read(size)
    if any(number in NATIVE for number, _ in stored.filters):
        _check_native(stored, packed, limit)
        return b""
    return _unpack(packed, mask, stored.filters, stored.chunk_bytes)


def _check_native(stored: _Stored, packed: bytes, limit: int) -> None:
    """Refuse a chunk that the library would unpack to more than its shape allows."""
    nbytes = stored.chunk_bytes
    numbers = [number for number, _ in stored.filters]
    packers = [number for number in numbers if number in (DEFLATE, *NATIVE)]
    if len(packers) > 1:
        raise ValueError("a chunk is packed more than once")
    if packers == [SZIP]:
        claimed = int.from_bytes(packed[:4], "little")
    else:
        settings = dict(stored.filters)[LZF]
        claimed = settings[2] if len(settings) > 2 else nbytes
        what = f"a chunk of {'/' + stored.name!r}, packed with lzf,"
        remedy = "If you trust the file, raise max_bytes, or store it anew with gzip"
        check_fits(what, len(packed) * LZF_RATIO, limit, remedy, verb="could take")
    if claimed > nbytes:
        raise ValueError(f"a chunk of {nbytes} bytes claims {claimed}")


def _unpack(
    content: bytes, mask: int, filters: tuple[tuple[int, tuple[int, ...]], ...], nbytes: int
) -> bytes:
    """Undo the filters of a chunk, the last first; the mask names those that were left out."""
    for position, (number, settings) in reversed(list(enumerate(filters))):
        if mask >> position & 1:
            continue
        if number == DEFLATE:
            content = inflate(content, slack(nbytes))
        elif number == SHUFFLE:
            content = unshuffled(content, max(1, settings[0]) if settings else 1)
        else:
            content = _checked(content)
    if len(content) != nbytes:
        raise ValueError(f"a chunk has {len(content)} bytes and must have {nbytes}")
    return content


def _checked(content: bytes) -> bytes:
    """Compare Fletcher's checksum, the last four bytes, with what stands before it."""
    body, said = content[:-4], int.from_bytes(content[-4:], "little")
    words = np.frombuffer(body + b"\0" * (len(body) % 2), dtype=">u2")
    first = second = 0
    for start in range(0, words.size, WORDS):
        piece = words[start : start + WORDS].astype(np.uint64)
        weights = np.arange(piece.size, 0, -1, dtype=np.uint64)
        second = (second + first * piece.size + int((weights * piece).sum())) % MODULUS
        first = (first + int(piece.sum())) % MODULUS
    if (said & 0xFFFF) % MODULUS != first or (said >> 16) % MODULUS != second:
        raise ValueError("a checksum does not fit its chunk")
    return body


def _fetch(stored: _Stored, limit: int, index: Any) -> np.ndarray:
    with reading(stored.path), Library(stored.path, limit) as library:
        region, rest = covering(index, stored.shape)
        return _region(library, stored, limit, region)[rest]


def _open(
    library: Library, name: str, matlab: bool, limit: int, axis: int, chunks: int | None
) -> Any:
    """Wrap an array as a Dask array with its samples first."""
    stored = _describe(library, name, limit)
    if matlab:  # MATLAB's axis 0 is the last one in the file
        axis = len(stored.shape) - 1 - axis
    slices = Slices(_fetch, (stored, limit), stored.shape, stored.dtype)
    together = stored.chunks[axis] if stored.chunks else None
    X = to_dask(slices, axis, chunks, together, limit)
    return X.transpose((0, *range(X.ndim - 1, 0, -1))) if matlab else X
