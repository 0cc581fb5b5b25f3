"""MATLAB's files of all versions."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import numpy as np

from tuckermix.datasets._container import Entry, assemble
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._hdf5 import hdf5_entries
from tuckermix.datasets._mat5 import is_mat5, list_variables, load_variable
from tuckermix.datasets._options import Options

__all__ = ["mat_entries", "read_mat"]

HDF5_STARTS = (b"MATLAB 7.3 MAT-file", b"\x89HDF")
"""First bytes of version 7.3, which is HDF5 behind a header of MATLAB's."""

NUMERIC_CLASSES = ("double", "single", "int8", "uint8", "int16", "uint16", "int32")
"""What version 4 can hold, by the names that SciPy gives."""


def read_mat(path: Path, options: Options) -> Dataset:
    """Read samples and labels from a MATLAB file of any version."""
    with open(path, "rb") as stream:
        head = stream.read(max(map(len, HDF5_STARTS)))
    if head.startswith(HDF5_STARTS):
        entries = hdf5_entries(path, matlab=True)
    else:
        entries = mat_entries(path, options)
    return assemble(path, entries, options, matlab=True)


def mat_entries(path: Path, options: Options) -> list[Entry]:
    """List the variables of a file of version 4 to 7; only their heads are read here."""
    if not is_mat5(path):
        return _version_4(path)
    return [
        Entry(
            name=variable.name,
            shape=variable.shape,
            dtype=np.dtype(object) if variable.dtype is None else variable.dtype,
            load=functools.partial(load_variable, path, variable, options.max_bytes),
            note=variable.kind,
        )
        for variable in list_variables(path)
    ]


def _version_4(path: Path) -> list[Entry]:
    """List the variables of the oldest version, which has no packing and no objects."""
    from scipy.io import whosmat

    entries = []
    for name, shape, kind in whosmat(os.fspath(path)):
        numeric = kind in NUMERIC_CLASSES
        load = functools.partial(_load_version_4, path, name)
        # SciPy reads all numeric classes of this version as they are; eight bytes at most.
        dtype = np.dtype(np.float64 if numeric else object)
        note = "" if numeric else f"a MATLAB {kind}"
        entries.append(Entry(name, tuple(int(size) for size in shape), dtype, load, note=note))
    return entries


def _load_version_4(path: Path, name: str) -> np.ndarray:
    from scipy.io import loadmat

    return np.asarray(loadmat(os.fspath(path), variable_names=[name])[name])
