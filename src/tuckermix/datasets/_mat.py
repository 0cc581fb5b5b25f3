"""MATLAB's files of all versions."""

from __future__ import annotations

from pathlib import Path

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
    version = _mat5 if _mat5.is_mat5(path) else _mat4
    found = list(version.entries(path, options.max_bytes))
    return assemble(path, found, options, matlab=True)
