"""MATLAB's files: up to version 7 through SciPy, version 7.3 through h5py."""

from __future__ import annotations

import functools
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix.datasets._container import Entry, assemble
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._errors import read_error
from tuckermix.datasets._hdf5 import hdf5_entries
from tuckermix.datasets._options import Options

__all__ = ["mat_entries", "read_mat"]

NUMERIC_CLASSES: dict[str, Any] = {
    "double": np.float64,
    "single": np.float32,
    "logical": np.bool_,
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
"""MATLAB's classes of real numbers; cells, structures, functions and objects stay unread."""

DEFLATE_RATIO = 1032
"""The most that one compressed byte can unpack to, by the format of deflate."""

HEADER_BYTES = 128
"""The text at the head of a version-5 file."""

TAG_BYTES = 8
"""Type and length before each of its elements."""

COMPRESSED = 15
"""The type of a compressed element."""

UNPACK_STEP = 2**20
"""Bytes to unpack at a time while only counting them."""


def read_mat(path: Path, options: Options) -> Dataset:
    """Read samples and labels from a MATLAB file of any version."""
    with open(path, "rb") as stream:
        head = stream.read(HEADER_BYTES)
    if head.startswith((b"MATLAB 7.3 MAT-file", b"\x89HDF")):
        return assemble(path, hdf5_entries(path, matlab=True), options, matlab=True)
    return assemble(path, mat_entries(path, options), options, matlab=True)


def mat_entries(path: Path, options: Options) -> list[Entry]:
    """List the variables of a file of version 4 to 7; only their headers are read here."""
    from scipy.io import whosmat

    _check_unpacked(path, options)
    entries = []
    for name, shape, kind in whosmat(os.fspath(path)):
        dtype = np.dtype(NUMERIC_CLASSES.get(kind, object))
        # What is not numeric cannot be chosen, hence is never loaded.
        note = "" if kind in NUMERIC_CLASSES else f"a MATLAB {kind}"
        load = functools.partial(_load, path, name)
        entries.append(Entry(name, tuple(shape), dtype, load, note=note))
    return entries


def _load(path: Path, name: str) -> np.ndarray:
    from scipy.io import loadmat

    return np.asarray(loadmat(os.fspath(path), variable_names=[name])[name])


def _check_unpacked(path: Path, options: Options) -> None:
    """Refuse a file whose compressed elements unpack to more than the limit.

    SciPy trusts the lengths inside the compressed stream. Where the size of the file itself does
    not rule it out, the stream is unpacked once without keeping anything, and counted.
    """
    if os.path.getsize(path) * DEFLATE_RATIO <= options.max_bytes:
        return
    total = 0
    with open(path, "rb") as stream:
        order = {b"IM": "<", b"MI": ">"}.get(stream.read(HEADER_BYTES)[-2:])
        while order is not None and len(tag := stream.read(TAG_BYTES)) == TAG_BYTES:
            kind, length = np.frombuffer(tag, dtype=f"{order}u4").tolist()
            if kind != COMPRESSED:
                stream.seek(length, os.SEEK_CUR)
                continue
            unpacker, left = zlib.decompressobj(), length
            while left > 0 and (packed := stream.read(min(left, UNPACK_STEP))):
                left -= len(packed)
                while packed:
                    total += len(unpacker.decompress(packed, UNPACK_STEP))
                    packed = unpacker.unconsumed_tail
                    if total > options.max_bytes:
                        raise read_error(
                            path,
                            "it unpacks to more than the limit of "
                            f"max_bytes={options.max_bytes} bytes",
                            "If you trust the file, raise max_bytes",
                        )
