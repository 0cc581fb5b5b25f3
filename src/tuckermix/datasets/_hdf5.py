"""HDF5 files, whole or in pieces."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix.datasets._container import Entry, assemble
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._errors import needs, read_error
from tuckermix.datasets._lazy import Slices, to_dask
from tuckermix.datasets._options import Options

__all__ = ["hdf5_entries", "read_hdf5"]


def read_hdf5(path: Path, options: Options) -> Dataset:
    """Read samples and labels from an HDF5 file."""
    return assemble(path, hdf5_entries(path), options)


def hdf5_entries(path: Path, *, matlab: bool = False) -> list[Entry]:
    """List the arrays of a file, those in groups as "group/name".

    Links are not followed, and arrays whose values lie in other files are refused when chosen: a
    file from a stranger must not make us read the rest of the disk.

    Parameters
    ----------
    path : Path
        The file.
    matlab : bool, default=False
        Whether MATLAB wrote it: it stores its axes reversed, and its own bookkeeping beside them.

    Returns
    -------
    entries : list of Entry
        The arrays, unread.
    """
    entries: list[Entry] = []
    h5py = _h5py()
    with h5py.File(path, "r") as file:

        def visit(name: str, item: Any) -> None:
            if not isinstance(item, h5py.Dataset) or (matlab and name.startswith("#")):
                return
            shape = tuple(int(size) for size in item.shape or ())
            dtype = np.dtype(item.dtype)
            if h5py.check_string_dtype(dtype) is not None:
                dtype = np.dtype("U1")
            kind = item.attrs.get("MATLAB_class") if matlab else None
            note = ""
            if kind in (b"cell", b"char"):
                dtype, note = np.dtype(object), f"a MATLAB {kind.decode()}"
            entries.append(
                Entry(
                    name=name,
                    shape=shape[::-1] if matlab else shape,
                    dtype=dtype,
                    load=functools.partial(_load, path, name, matlab),
                    lazy=functools.partial(_open, path, name, matlab),
                    note=note,
                )
            )

        file.visititems(visit)
    return entries


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise needs("Reading HDF5", "h5py", "io") from error
    return h5py


def _check_inside(path: Path, item: Any) -> None:
    """Refuse an array whose values lie in other files."""
    if item.external or item.is_virtual:
        raise read_error(
            path,
            f"the values of {item.name!r} lie in other files",
            "Copy them into this file, with h5repack for example",
        )


def _load(path: Path, name: str, matlab: bool) -> np.ndarray:
    h5py = _h5py()
    with h5py.File(path, "r") as file:
        item = file[name]
        _check_inside(path, item)
        if h5py.check_string_dtype(item.dtype) is not None:
            return np.asarray(item.asstr()[()], dtype=str)
        values = np.asarray(item[()])
    return values.T if matlab else values


def _fetch(path: str, name: str, index: Any) -> np.ndarray:
    with _h5py().File(path, "r") as file:
        return np.asarray(file[name][index])


def _open(path: Path, name: str, matlab: bool, axis: int, chunks: int | None) -> Any:
    """Wrap an array as a Dask array with its samples first."""
    with _h5py().File(path, "r") as file:
        item = file[name]
        _check_inside(path, item)
        shape, dtype, stored = tuple(item.shape), np.dtype(item.dtype), item.chunks
    if matlab:  # MATLAB's axis 0 is the last one in the file
        axis = len(shape) - 1 - axis
    slices = Slices(_fetch, (os.path.abspath(path), name), shape, dtype)
    X = to_dask(slices, axis, chunks, stored[axis] if stored else None)
    return X.transpose((0, *range(X.ndim - 1, 0, -1))) if matlab else X
