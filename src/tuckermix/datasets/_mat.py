"""MATLAB's files of all versions."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from tuckermix._archives import Entry
from tuckermix._reading import open_regular
from tuckermix.datasets import _mat4, _mat5
from tuckermix.datasets._container import assemble
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._hdf5 import hdf5_entries
from tuckermix.datasets._library import Library
from tuckermix.datasets._options import Options

HDF5_STARTS = (b"MATLAB 7.3 MAT-file", b"\x89HDF")
"""First bytes of version 7.3, which is HDF5 behind a header of MATLAB's."""


def read_mat(path: Path, options: Options) -> Dataset:
    """Read samples and labels from a MATLAB file of any version."""
    with open_regular(path) as stream:
        head = stream.read(max(map(len, HDF5_STARTS)))
    if head.startswith(HDF5_STARTS):
        with Library(path, options.max_bytes) as library:
            entries = hdf5_entries(library, options, matlab=True)
            return assemble(path, entries, options, matlab=True)
    return assemble(path, mat_entries(path, options), options, matlab=True)


def mat_entries(path: Path, options: Options) -> list[Entry]:
    """List the variables of a file of version 4 to 7; only their heads are read here."""
    version = _mat5 if _mat5.is_mat5(path) else _mat4
    return [
        Entry(
            name=variable.name,
            shape=variable.shape,
            dtype=np.dtype(object) if variable.dtype is None else variable.dtype,
            load=functools.partial(version.load_variable, path, variable, options.max_bytes),
            note=variable.kind,
        )
        for variable in version.list_variables(path)
    ]
