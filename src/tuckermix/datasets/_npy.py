"""NumPy's own files, read without ever unpickling."""

from __future__ import annotations

import functools
import math
import os
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format

from tuckermix.datasets._container import Entry, assemble
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._errors import read_error
from tuckermix.datasets._lazy import Slices, to_dask
from tuckermix.datasets._options import Options

__all__ = ["read_npy", "read_npz", "zip_entries"]

Header = tuple[tuple[int, ...], bool, np.dtype]

PICKLED = "pickled Python objects, which are never unpacked here because that can run any code"
"""What an array of objects is, for messages."""

MAX_MEMBERS = 10_000
"""Arrays in one archive; the table of contents of a hostile one can be endless."""


def read_npy(path: Path, options: Options) -> Dataset:
    """Read one array, or map it into memory."""
    with open(path, "rb") as stream:
        shape, fortran, dtype = _header(path, stream)
        offset = stream.tell()
    entry = Entry(
        name="",
        shape=shape,
        dtype=dtype,
        note=PICKLED if dtype.hasobject else "",
        load=functools.partial(_load_npy, path, offset, shape, fortran, dtype),
        lazy=functools.partial(_open_npy, path, offset, shape, fortran, dtype),
    )
    if entry.numeric and offset + entry.nbytes > os.path.getsize(path):
        raise read_error(
            path,
            f"it is truncated: {entry} needs {offset + entry.nbytes} bytes, and the file has "
            f"{os.path.getsize(path)}",
            "Get the file anew",
        )
    if options.key is not None or isinstance(options.label_key, str):
        raise read_error(
            path, "a .npy file holds one array without a name", "Leave out key and label_key"
        )
    return assemble(path, [entry], options)


def read_npz(path: Path, options: Options) -> Dataset:
    """Read samples and labels from an archive of arrays."""
    with zipfile.ZipFile(path) as archive:
        return assemble(path, zip_entries(path, archive), options)


def zip_entries(path: str | os.PathLike[str], archive: zipfile.ZipFile) -> Sequence[Entry]:
    """List the arrays of an open archive; `load` works as long as the archive is open.

    Only the headers are unpacked here. Members that are no arrays are left out.
    """
    members = archive.infolist()
    if len(members) > MAX_MEMBERS:
        raise read_error(
            path, f"it has {len(members)} members, more than {MAX_MEMBERS}", "Store fewer arrays"
        )
    entries = []
    for member in members:
        if not member.filename.endswith(".npy"):
            continue
        with archive.open(member) as stream:
            shape, fortran, dtype = _header(f"{os.fspath(path)}, {member.filename}", stream)
            offset = stream.tell()
        entry = Entry(
            name=member.filename.removesuffix(".npy"),
            shape=shape,
            dtype=dtype,
            note=PICKLED if dtype.hasobject else "",
            load=functools.partial(_load_member, archive, member, offset, shape, fortran, dtype),
        )
        if entry.numeric and offset + entry.nbytes != member.file_size:
            raise read_error(
                path,
                f"{entry} needs {offset + entry.nbytes} bytes, and {member.file_size} are stored",
                "Get the file anew",
            )
        entries.append(entry)
    return entries


def _header(path: str | os.PathLike[str], stream: IO[bytes]) -> Header:
    """Read and check the header of an array. NumPy parses it as a literal and runs nothing."""
    with warnings.catch_warnings():
        # Headers from Python 2 are rewritten with a warning that helps nobody here.
        warnings.filterwarnings("ignore", message=".*created on Python 2.*")
        version = npy_format.read_magic(stream)
        if version == (1, 0):
            shape, fortran, dtype = npy_format.read_array_header_1_0(stream)
        elif version == (2, 0):
            shape, fortran, dtype = npy_format.read_array_header_2_0(stream)
        else:
            raise read_error(
                path,
                f"it has version {version[0]}.{version[1]} of NumPy's format, and 1.0 and 2.0 "
                "hold plain numbers",
                "Store the samples as an array of integers or floating-point numbers",
            )
    if any(size < 0 for size in shape):
        raise read_error(path, f"its shape {shape} is impossible", "Get the file anew")
    return shape, fortran, dtype


def _load_npy(
    path: Path, offset: int, shape: tuple[int, ...], fortran: bool, dtype: np.dtype
) -> np.ndarray:
    flat = np.fromfile(path, dtype=dtype, count=math.prod(shape), offset=offset)
    return flat.reshape(shape, order="F" if fortran else "C")


def _map_npy(
    path: Path, offset: int, shape: tuple[int, ...], fortran: bool, dtype: np.dtype
) -> np.ndarray:
    return np.memmap(
        path, dtype=dtype, mode="r", offset=offset, shape=shape, order="F" if fortran else "C"
    )


def _fetch_npy(
    path: str, offset: int, shape: tuple[int, ...], fortran: bool, dtype: str, index: Any
) -> np.ndarray:
    return np.array(_map_npy(Path(path), offset, shape, fortran, np.dtype(dtype))[index])


def _open_npy(
    path: Path,
    offset: int,
    shape: tuple[int, ...],
    fortran: bool,
    dtype: np.dtype,
    axis: int,
    chunks: int | None,
) -> Any:
    """Map the file into memory, or wrap it as a Dask array where chunks were asked for."""
    if chunks is None:
        return np.moveaxis(_map_npy(path, offset, shape, fortran, dtype), axis, 0)
    arguments = (os.path.abspath(path), offset, shape, fortran, dtype.str)
    return to_dask(Slices(_fetch_npy, arguments, shape, dtype), axis, chunks)


def _load_member(
    archive: zipfile.ZipFile,
    member: zipfile.ZipInfo,
    offset: int,
    shape: tuple[int, ...],
    fortran: bool,
    dtype: np.dtype,
) -> np.ndarray:
    """Unpack one array straight into its own memory; the archive checks length and checksum."""
    array = np.empty(math.prod(shape), dtype=dtype)
    view = array.view(np.uint8).data
    with archive.open(member) as stream:
        stream.read(offset)
        done = 0
        while done < view.nbytes:
            count = stream.readinto(view[done:])  # type: ignore[attr-defined]
            if not count:
                raise EOFError(f"{member.filename} ends after {offset + done} bytes")
            done += count
        stream.read(1)  # the checksum is compared at the end of the stream only
    return array.reshape(shape, order="F" if fortran else "C")
