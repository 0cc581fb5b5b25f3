"""NumPy's own files, read without ever unpickling."""

from __future__ import annotations

import functools
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._archives import PICKLED, Entry, array_header, open_archive, zip_entries
from tuckermix._reading import open_regular, read_error, reading
from tuckermix.datasets._container import assemble
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._lazy import Slices, to_dask
from tuckermix.datasets._options import Options

__all__ = ["read_npy", "read_npz"]


def read_npy(path: Path, options: Options) -> Dataset:
    """Read one array, or map it into memory."""
    with open_regular(path) as stream:
        shape, fortran, dtype = array_header(path, stream)
        offset = stream.tell()
    entry = Entry(
        name="",
        shape=shape,
        dtype=dtype,
        note=PICKLED if dtype.hasobject else "",
        load=functools.partial(_load_npy, path, offset, shape, fortran, dtype),
        lazy=functools.partial(_open_npy, path, offset, shape, fortran, dtype, options.max_bytes),
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
    with open_archive(path) as archive:
        return assemble(path, zip_entries(path, archive), options)


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
    with reading(path):
        return np.array(_map_npy(Path(path), offset, shape, fortran, np.dtype(dtype))[index])


def _open_npy(
    path: Path,
    offset: int,
    shape: tuple[int, ...],
    fortran: bool,
    dtype: np.dtype,
    limit: int,
    axis: int,
    chunks: int | None,
) -> Any:
    """Map the file into memory, or wrap it as a Dask array where chunks were asked for."""
    if chunks is None:
        return np.moveaxis(_map_npy(path, offset, shape, fortran, dtype), axis, 0)
    arguments = (os.path.abspath(path), offset, shape, fortran, dtype.str)
    slices = Slices(_fetch_npy, arguments, shape, dtype)
    return to_dask(path, slices, axis, chunks, None, limit)
