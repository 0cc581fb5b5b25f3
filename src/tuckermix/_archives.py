"""Archives of NumPy arrays (.npz), read within limits and without ever unpickling."""

from __future__ import annotations

import io
import math
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format

from tuckermix._reading import Refusal, open_regular, reading

NUMERIC_KINDS = "buif"
"""NumPy's kinds of real numbers: boolean, unsigned, signed, floating."""

PICKLED = "pickled Python objects, which are never unpacked here because that can run any code"
"""The words for an array of objects, for messages."""

MAX_DIRECTORY = 2**20
"""Bytes of the table of contents, which is read before anything can be checked: a hundred for each
of ten thousand arrays. That of a hostile archive can be endless."""

MAX_ARRAY_HEADER = 10_000
"""Bytes of the header of an array, NumPy's own limit for headers that it parses safely."""

METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Ways of packing that NumPy uses. Others, such as LZMA, allocate what the file asks for."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Entry:
    """An array in a file that has not been read yet."""

    name: str = ""  # its name in the file
    shape: tuple[int, ...]  # its declared shape
    dtype: np.dtype  # its declared type; object where the type is none of NumPy's
    note: str = ""  # what it is where the type does not tell, for messages
    axes: str = ""  # a letter for each axis, where the file says what they mean
    channels: Sequence[str] = ()  # the names of its channels, where they have any
    colour: bool | None = None  # whether it is a picture in colours, or grey; None for others
    read: Callable[[], np.ndarray] | None = None  # reads all of it
    stays: bool = False  # whether it can stay on disk

    def load(self) -> np.ndarray:
        """Read it into memory."""
        assert self.read is not None
        return self.read()

    def lazy(self, axis: int, chunks: int | None) -> Any:
        """Leave it on disk, with its samples, along `axis`, first."""
        raise NotImplementedError

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
        return self.note or (PICKLED if self.dtype.hasobject else str(self.dtype))

    def __str__(self) -> str:
        kind = "no numbers" if self.dtype.hasobject else str(self.dtype)
        return (
            f"{self.name!r} {self.shape} {kind}" if self.name else f"its array {self.shape} {kind}"
        )


def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """Unpack an array whose header was checked; the archive checks length and checksum."""
    with archive.open(member) as stream:
        array = npy_format.read_array(stream, allow_pickle=False)
        stream.read(1)  # the checksum is compared at the end of the stream only
    return array


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
    entries = []
    for member in archive.infolist():
        if not member.filename.endswith(".npy"):
            continue
        if member.compress_type not in METHODS:
            raise Refusal(
                f"{member.filename!r} is packed in a way that NumPy does not use",
                "Store it again with numpy.savez or numpy.savez_compressed",
            )
        with archive.open(member) as stream, reading(f"{os.fspath(path)}, {member.filename}"):
            shape, _, dtype, offset = array_header(stream)
        name = member.filename.removesuffix(".npy")
        unpack = partial(_unpacked, archive, member)
        entry = Entry(name=name, shape=shape, dtype=dtype, read=unpack)
        if entry.numeric and offset + entry.nbytes != member.file_size:
            raise Refusal(
                f"{entry} needs {offset + entry.nbytes} bytes, and {member.file_size} are stored"
            )
        entries.append(entry)
    return entries


def array_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype, int]:
    """Return shape, order (whether Fortran's), type and place of the values of an array.

    NumPy parses the header as a literal and runs nothing. It looks at the length only after reading
    as much as the file claims, so no more than `MAX_ARRAY_HEADER` bytes are handed to it.
    """
    head = io.BytesIO(stream.read(MAX_ARRAY_HEADER))
    first = npy_format.read_magic(head) == (1, 0)
    read = npy_format.read_array_header_1_0 if first else npy_format.read_array_header_2_0
    shape, fortran, dtype = read(head)
    if any(size < 0 for size in shape):
        raise Refusal(f"its shape {shape} is impossible")
    return shape, fortran, dtype, head.tell()
