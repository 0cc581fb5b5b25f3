"""HDF5 files, whole or in pieces.

Names, shapes and types are read by h5py. Chunks are unpacked here: the library behind h5py unpacks
whatever a chunk gives, while its shape says how much that can be.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._archives import NUMERIC_KINDS, Entry
from tuckermix._reading import inflate, needs, read_error, reading, slack
from tuckermix.datasets._chunks import Index, Region, covering, gather, whole
from tuckermix.datasets._container import STRING, assemble, check_strings
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._lazy import Slices, to_dask
from tuckermix.datasets._options import Options

__all__ = ["hdf5_entries", "read_hdf5"]

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

MAX_ATTRIBUTE = 64
"""Bytes of the attribute in which MATLAB keeps the name of a class."""

REFERENCE_BYTES = 16
"""Bytes that stand in the place of a string of any length: its length, and where it lies."""

WORDS = 2**20
"""Words of a checksum to add at a time."""

MODULUS = 65535
"""The modulus of Fletcher's checksum of 16-bit words."""


def read_hdf5(path: Path, options: Options) -> Dataset:
    """Read samples and labels from an HDF5 file."""
    return assemble(path, hdf5_entries(path, options), options)


def hdf5_entries(path: Path, options: Options, *, matlab: bool = False) -> list[Entry]:
    """List the arrays of a file, those in groups as "group/name".

    Links are not followed, and arrays whose values lie in other files are refused when chosen: a
    file from a stranger must not make us read the rest of the disk.

    Parameters
    ----------
    path : Path
        The file.
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
    seen = [0]
    h5py = _h5py()

    def visit(name: str, item: Any) -> None:
        seen[0] += 1
        if seen[0] > MAX_OBJECTS:
            raise read_error(
                path, f"it holds more than {MAX_OBJECTS} objects", "Store fewer arrays"
            )
        if not isinstance(item, h5py.Dataset) or (matlab and name.startswith("#")):
            return
        shape = tuple(int(size) for size in item.shape or ())
        dtype, note = _dtype(item)
        kind = _matlab_class(item) if matlab else ""
        if kind in ("cell", "char"):
            dtype, note = np.dtype(object), f"a MATLAB {kind}"
        entries.append(
            Entry(
                name=name,
                shape=shape[::-1] if matlab else shape,
                dtype=dtype,
                load=functools.partial(_load, path, name, matlab, options.max_bytes),
                lazy=functools.partial(_open, path, name, matlab, options.max_bytes),
                note=note,
            )
        )

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return entries


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise needs("Reading HDF5", "h5py", "io") from error
    return h5py


def _dtype(item: Any) -> tuple[np.dtype, str]:
    """Return the type of an array, and its name where it is none of ours."""
    try:
        dtype = np.dtype(item.dtype)
    except TypeError:
        return np.dtype(object), "values of a type that NumPy does not know"
    string = _h5py().check_string_dtype(dtype)
    if string is None:
        return dtype, ""
    if string.length is None:
        return STRING, ""
    return np.dtype(("U", min(string.length, 2**29 - 1))), ""  # the longest that NumPy allows


def _matlab_class(item: Any) -> str:
    """Read the class that MATLAB noted, if it is a short text as MATLAB writes it."""
    h5a = _h5py().h5a
    if not h5a.exists(item.id, b"MATLAB_class"):
        return ""
    attribute = h5a.open(item.id, b"MATLAB_class")
    dtype = attribute.dtype
    if attribute.shape != () or dtype.kind != "S" or dtype.itemsize > MAX_ATTRIBUTE:
        return ""
    value = np.empty((), dtype=dtype)
    attribute.read(value)
    return bytes(value[()]).decode("ascii", "replace")


@contextmanager
def _item(path: str | os.PathLike[str], name: str, limit: int) -> Iterator[Any]:
    """Open an array, after a look at where its values lie and how they are stored."""
    with _h5py().File(path, "r") as file:
        item = file[name]
        if item.external or item.is_virtual:
            raise read_error(
                path,
                f"the values of {item.name!r} lie in other files",
                "Copy them into this file, with h5repack for example",
            )
        declared = _chunk_bytes(item)
        if declared > limit:
            raise read_error(
                path,
                f"one chunk of {item.name!r} with shape {item.chunks} would take {declared} bytes "
                f"in memory, and the limit is max_bytes={limit}",
                "If you trust the file, raise max_bytes, or store it anew in smaller chunks",
            )
        strange = [number for number, *_ in _filters(item) if number not in FILTERS]
        if strange:
            raise read_error(
                path,
                f"{item.name!r} is packed with the filter number {strange[0]}, which is not known "
                "here",
                "Store it anew with gzip, with h5repack for example",
            )
        yield item


def _chunk_bytes(item: Any) -> int:
    """Return the size of a chunk in the file once unpacked; 0 where there are no chunks."""
    if item.chunks is None:
        return 0
    kind = item.id.get_type()
    string = isinstance(kind, _h5py().h5t.TypeStringID) and kind.is_variable_str()
    return math.prod(item.chunks) * (REFERENCE_BYTES if string else kind.get_size())


def _filters(item: Any) -> list[tuple[int, tuple[int, ...]]]:
    """Return number and settings of each filter, in the order in which they were applied."""
    plist = item.id.get_create_plist()
    found = [plist.get_filter(position) for position in range(plist.get_nfilters())]
    return [(number, settings) for number, _, settings, _ in found]


def _load(path: Path, name: str, matlab: bool, limit: int) -> np.ndarray:
    h5py = _h5py()
    with _item(path, name, limit) as item:
        string = h5py.check_string_dtype(item.dtype)
        if string is not None and string.length is None:
            return _strings(path, item, limit)
        values = _region(path, item, limit, whole(item.shape))
    return values.T if matlab else values


def _strings(path: Path, item: Any, limit: int) -> np.ndarray:
    """Read strings of any length, few enough at a time that they fit however long they are."""
    n_strings = max(item.shape, default=0)
    if n_strings != item.size:
        return np.empty(item.shape, dtype="U1")  # no labels, which the caller says
    for index in _stored(item) if item.chunks else []:
        _content(path, item, index, limit)  # unpacked once, to see that it is what it must be
    axis = item.shape.index(n_strings) if item.shape else 0
    # Each string lies in the file, but many may be the same one.
    step = max(1, limit // max(1, os.path.getsize(path)))
    texts: list[str] = []
    longest = 0
    for start in range(0, n_strings, step):
        place = [slice(None)] * len(item.shape)
        place[axis : axis + 1] = [slice(start, start + step)]
        found = np.ravel(item.asstr()[tuple(place)]).tolist()
        texts += found
        longest = max(longest, *map(len, found))
        check_strings(path, item.name, n_strings, longest, limit)
    return np.array(texts, dtype=str)


def _region(path: str | os.PathLike[str], item: Any, limit: int, region: Region) -> np.ndarray:
    """Read a region, chunk by chunk where it is stored so."""
    if item.chunks is None:
        return np.asarray(item[tuple(slice(low, high) for low, high in region)])
    chunks, dtype = tuple(item.chunks), np.dtype(item.dtype)
    plain = dtype.kind in NUMERIC_KINDS and item.id.get_type() == _h5py().h5t.py_create(
        dtype, logical=True
    )

    def read(index: Index) -> np.ndarray | None:
        content = _content(path, item, index, limit)
        if content is None:
            return None
        if plain and content:
            return np.frombuffer(content, dtype=dtype).reshape(chunks)
        # Looked at, and read by the library: numbers to convert, strings, filters of its own.
        places = zip(index, chunks, item.shape, strict=True)
        return np.asarray(item[tuple(slice(a * b, min(a * b + b, c)) for a, b, c in places)])

    fill = item.fillvalue if dtype.kind in NUMERIC_KINDS else b""
    return gather(region, chunks, dtype, fill, functools.partial(_stored, item), read)


def _stored(item: Any) -> list[Index]:
    """List the chunks that are stored."""
    found: list[Index] = []
    item.id.chunk_iter(
        lambda info: found.append(
            tuple(a // b for a, b in zip(info.chunk_offset, item.chunks, strict=True))
        )
    )
    return found


def _content(path: str | os.PathLike[str], item: Any, index: Index, limit: int) -> bytes | None:
    """Unpack one chunk; None where it is not stored, nothing where only the library can do it."""
    offset = tuple(a * b for a, b in zip(index, item.chunks, strict=True))
    info = item.id.get_chunk_info_by_coord(offset)
    if info.byte_offset is None:
        return None
    nbytes = _chunk_bytes(item)
    if info.size > slack(nbytes):
        raise ValueError(f"a chunk of {nbytes} bytes takes {info.size} bytes in the file")
    mask, packed = item.id.read_direct_chunk(offset)
    filters = _filters(item)
    if any(number in NATIVE for number, _ in filters):
        _check_native(path, item, packed, filters, nbytes, limit)
        return b""
    return _unpack(packed, mask, filters, nbytes)


def _check_native(
    path: str | os.PathLike[str],
    item: Any,
    packed: bytes,
    filters: list[tuple[int, tuple[int, ...]]],
    nbytes: int,
    limit: int,
) -> None:
    """Refuse a chunk that the library would unpack to more than its shape allows."""
    numbers = [number for number, _ in filters]
    packers = [number for number in numbers if number in (DEFLATE, *NATIVE)]
    if len(packers) > 1:
        raise ValueError("a chunk is packed more than once")
    if packers == [SZIP]:
        claimed = int.from_bytes(packed[:4], "little")
    else:
        settings = dict(filters)[LZF]
        claimed = settings[2] if len(settings) > 2 else nbytes
        if len(packed) * LZF_RATIO > limit:
            raise read_error(
                path,
                f"a chunk of {item.name!r}, packed with lzf, could take "
                f"{len(packed) * LZF_RATIO} bytes in memory, and the limit is max_bytes={limit}",
                "If you trust the file, raise max_bytes, or store it anew with gzip",
            )
    if claimed > nbytes:
        raise ValueError(f"a chunk of {nbytes} bytes claims {claimed}")


def _unpack(
    content: bytes, mask: int, filters: list[tuple[int, tuple[int, ...]]], nbytes: int
) -> bytes:
    """Undo the filters of a chunk, the last first; the mask names those that were left out."""
    for position, (number, settings) in reversed(list(enumerate(filters))):
        if mask >> position & 1:
            continue
        if number == DEFLATE:
            content = inflate(content, slack(nbytes))
        elif number == SHUFFLE:
            content = _unshuffle(content, settings[0] if settings else 1)
        else:
            content = _checked(content)
    if len(content) != nbytes:
        raise ValueError(f"a chunk has {len(content)} bytes and must have {nbytes}")
    return content


def _unshuffle(content: bytes, size: int) -> bytes:
    """Put the bytes of each value together again; what is no whole value stays behind them."""
    if size <= 1:
        return content
    count = len(content) // size
    turned = np.frombuffer(content, "u1", count=count * size).reshape(size, count)
    return turned.T.tobytes() + content[count * size :]


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


def _fetch(path: str, name: str, limit: int, index: Any) -> np.ndarray:
    with reading(path), _item(path, name, limit) as item:
        region, rest = covering(index, tuple(item.shape))
        return _region(path, item, limit, region)[rest]


def _open(path: Path, name: str, matlab: bool, limit: int, axis: int, chunks: int | None) -> Any:
    """Wrap an array as a Dask array with its samples first."""
    with _item(path, name, limit) as item:
        shape, dtype, stored = tuple(item.shape), np.dtype(item.dtype), item.chunks
    if matlab:  # MATLAB's axis 0 is the last one in the file
        axis = len(shape) - 1 - axis
    slices = Slices(_fetch, (os.path.abspath(path), name, limit), shape, dtype)
    X = to_dask(path, slices, axis, chunks, stored[axis] if stored else None, limit)
    return X.transpose((0, *range(X.ndim - 1, 0, -1))) if matlab else X
