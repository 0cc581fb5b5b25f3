"""NumPy's own files, read without ever unpickling."""

from __future__ import annotations

import functools
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._archives import (
    NUMERIC_KINDS,
    PICKLED,
    Entry,
    array_header,
    open_archive,
    zip_entries,
)
from tuckermix._reading import Refusal, open_regular, reading
from tuckermix.datasets._axes import arrange, chosen_axes, kind_of, take_channels
from tuckermix.datasets._container import assemble
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._folder import stack_files
from tuckermix.datasets._lazy import Slices, to_dask
from tuckermix.datasets._options import Options

NPY_SUFFIXES = frozenset({".npy"})
"""File names of single arrays."""


def read_npy(path: Path, options: Options) -> Dataset:
    """Read one array, or map it into memory."""
    with open_regular(path) as stream:
        shape, fortran, dtype = array_header(stream)
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
        raise Refusal(
            f"it is truncated: {entry} needs {offset + entry.nbytes} bytes, and the file has "
            f"{os.path.getsize(path)}",
            "Get the file anew",
        )
    if options.key is not None or isinstance(options.label_key, str):
        raise Refusal("a .npy file holds one array without a name", "Leave out key and label_key")
    return assemble(path, [entry], options)


def read_npy_folder(path: Path, names: list[str], options: Options) -> Dataset:
    """Read a folder of arrays, one sample each; subfolders are classes."""
    return stack_files(path, names, _read_one, options, "arrays")


def _read_one(path: Path, options: Options) -> tuple[np.ndarray, str]:
    """Read the array of one sample, and how it is drawn."""
    X = _one_sample(path, options)
    axes = chosen_axes(options.axes, "", X.shape)
    X, axes = take_channels(*arrange(X, axes), options.channels)
    return X, kind_of(axes, X.shape)


def _one_sample(path: Path, options: Options) -> np.ndarray:
    """Read the array of one sample."""
    given = [*options.pixel_options, *(["grey"] if options.grey is not None else [])]
    if given:
        raise Refusal(
            f"{' and '.join(given)} cannot be applied to stored arrays",
            "These options are for images and videos; leave them out",
        )
    with open_regular(path) as stream:
        shape, fortran, dtype = array_header(stream)
        offset = stream.tell()
    if dtype.kind not in NUMERIC_KINDS or not shape or 0 in shape:
        raise Refusal(
            f"it holds {dtype} of shape {shape}, and a sample is an array of real numbers",
            "Store it as integers or floating-point numbers",
        )
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes > min(options.max_bytes, os.path.getsize(path) - offset):
        raise Refusal(
            f"its header declares {nbytes} bytes, more than the file has or "
            f"max_bytes={options.max_bytes} allows",
            "Get the file anew, or raise max_bytes if you trust it",
        )
    X = _load_npy(path, offset, shape, fortran, dtype)
    return np.ascontiguousarray(X, dtype=dtype.newbyteorder("="))


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
    return to_dask(slices, axis, chunks, None, limit)
