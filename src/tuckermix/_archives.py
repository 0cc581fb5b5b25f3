"""Archives of NumPy arrays (.npz), read within limits and without ever unpickling."""

from __future__ import annotations

import functools
import io
import math
import os
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format

from tuckermix._reading import Refusal, open_regular, reading

Header = tuple[tuple[int, ...], bool, np.dtype]

NUMERIC_KINDS = "buif"
"""NumPy's kinds of real numbers: boolean, unsigned, signed, floating."""

PICKLED = "pickled Python objects, which are never unpacked here because that can run any code"
"""The words for an array of objects, for messages."""

MAX_MEMBERS = 10_000
"""Arrays in one archive; the table of contents of a hostile one can be endless."""

MAX_DIRECTORY = 2**20
"""Bytes of the table of contents, which is read before anything can be checked: a hundred for each
of `MAX_MEMBERS` arrays."""

MAX_ARRAY_HEADER = 10_000
"""Bytes of the header of an array, NumPy's own limit for headers that it parses safely. NumPy looks
at it only after unpacking as much as the file claims."""

METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Ways of packing that NumPy uses. Others, such as LZMA, allocate what the file asks for."""

LENGTHS = {(1, 0): struct.Struct("<H"), (2, 0): struct.Struct("<I")}
"""How the versions of NumPy's format write the length of the header of an array."""


@dataclass(frozen=True)
class Entry:
    """An array in a file that has not been read yet."""

    name: str  # its name in the file
    shape: tuple[int, ...]  # its declared shape
    dtype: np.dtype  # its declared type; object where the type is none of NumPy's
    load: Callable[[], np.ndarray]  # reads it into memory
    # Opens it without reading, given the sample axis and the number of samples in a chunk (or
    # None); None where the format does not allow that.
    lazy: Callable[[int, int | None], Any] | None = None
    note: str = ""  # what it is where the type does not tell, for messages

    @property
    def nbytes(self) -> int:
        """The declared size in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def numeric(self) -> bool:
        """Whether it holds real numbers."""
        return self.dtype.kind in NUMERIC_KINDS

    @property
    def kind(self) -> str:
        """The content in words."""
        return self.note or ("Python objects" if self.dtype.hasobject else str(self.dtype))

    def __str__(self) -> str:
        kind = "no numbers" if self.dtype.hasobject else str(self.dtype)
        return (
            f"{self.name!r} {self.shape} {kind}" if self.name else f"its array {self.shape} {kind}"
        )


def npy_entry(
    name: str, shape: tuple[int, ...], dtype: np.dtype, load: Callable[[], np.ndarray], **more: Any
) -> Entry:
    """Describe an array in NumPy's format, in which objects are pickled."""
    return Entry(name, shape, dtype, load, note=PICKLED if dtype.hasobject else "", **more)


@contextmanager
def open_archive(path: str | os.PathLike[str]) -> Iterator[zipfile.ZipFile]:
    """Open an archive; its table of contents must not be longer than `MAX_DIRECTORY`."""
    with open_regular(path, longest=MAX_DIRECTORY) as stream:
        # The table is read in one go, and before anything of it can be looked at.
        archive = zipfile.ZipFile(stream)
        stream.longest = None  # type: ignore[attr-defined]
        with archive:
            yield archive


def zip_entries(path: str | os.PathLike[str], archive: zipfile.ZipFile) -> Sequence[Entry]:
    """List the arrays of an open archive; `load` works as long as the archive is open.

    Only the headers are unpacked here. Members that are no arrays are left out.
    """
    members = archive.infolist()
    if len(members) > MAX_MEMBERS:
        raise Refusal(
            f"it has {len(members)} members, more than {MAX_MEMBERS}", "Store fewer arrays"
        )
    entries = []
    for member in members:
        if not member.filename.endswith(".npy"):
            continue
        if member.compress_type not in METHODS:
            raise Refusal(
                f"{member.filename!r} is packed in a way that NumPy does not use",
                "Store it again with numpy.savez or numpy.savez_compressed",
            )
        where = f"{os.fspath(path)}, {member.filename}"
        with archive.open(member) as stream, reading(where):
            shape, _, dtype = array_header(stream)
            offset = stream.tell()
        load = functools.partial(_load_member, archive, member)
        entry = npy_entry(member.filename.removesuffix(".npy"), shape, dtype, load)
        if entry.numeric and offset + entry.nbytes != member.file_size:
            raise Refusal(
                f"{entry} needs {offset + entry.nbytes} bytes, and {member.file_size} are stored"
            )
        entries.append(entry)
    return entries


def array_header(stream: IO[bytes]) -> Header:
    """Read and check the header of an array. NumPy parses it as a literal and runs nothing."""
    version = npy_format.read_magic(stream)
    if version not in LENGTHS:
        raise Refusal(
            f"it has version {version[0]}.{version[1]} of NumPy's format, and 1.0 and 2.0 "
            "hold plain numbers",
            "Store the samples as an array of integers or floating-point numbers",
        )
    prefix = stream.read(LENGTHS[version].size)
    (length,) = LENGTHS[version].unpack(prefix)
    if length > MAX_ARRAY_HEADER:
        raise Refusal(f"its header claims {length} bytes, and {MAX_ARRAY_HEADER} is the limit")
    head = io.BytesIO(prefix + stream.read(length))
    with _without_python_2():
        if version == (1, 0):
            shape, fortran, dtype = npy_format.read_array_header_1_0(head)
        else:
            shape, fortran, dtype = npy_format.read_array_header_2_0(head)
    if any(size < 0 for size in shape):
        raise Refusal(f"its shape {shape} is impossible")
    return shape, fortran, dtype


def _load_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """Unpack one array whose header was checked; the archive checks length and checksum."""
    with archive.open(member) as stream, _without_python_2():
        array = npy_format.read_array(stream, allow_pickle=False)
        stream.read(1)  # the checksum is compared at the end of the stream only
    return array


@contextmanager
def _without_python_2() -> Iterator[None]:
    """Say nothing of headers from Python 2: the warning that they are rewritten helps nobody."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*created on Python 2.*")
        yield
