"""NumPy's own files, read without ever unpickling."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._archives import array_header, open_archive, zip_entries
from tuckermix._axes import arrange, chosen_axes, kind_of
from tuckermix._reading import Refusal, check_fits, open_regular
from tuckermix.datasets._container import assemble
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._lazy import OnDisk, Region, stamp_of
from tuckermix.datasets._options import FOR_PICTURES, Options

NPY_SUFFIXES = frozenset({".npy"})
"""File names of single arrays."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Npy(OnDisk):
    """The one array of a file, with its axes in the order of C: mapped into memory, not read."""

    offset: int = 0  # where the values start

    def map(self, low: int, high: int) -> np.ndarray:
        """Map entries of the file's first axis, and no more: addresses may be limited."""
        others = self.shape[-2::-1] if self.turned else self.shape[1:]
        start = self.offset + low * math.prod(others) * self.dtype.itemsize
        return np.memmap(self.path, self.dtype, "r", start, (high - low, *others))

    def _region(self, region: Region) -> np.ndarray:
        first, *others = region
        return np.array(self.map(*first)[(slice(None), *(slice(*one) for one in others))])

    def lazy(self, axis: int, chunks: int | None) -> Any:
        """Map all of it, or wrap it as a Dask array where chunks were asked for."""
        if chunks is not None:
            return super().lazy(axis, chunks)
        whole = self.map(0, self.shape[-1]).T if self.turned else self.map(0, self.shape[0])
        return np.moveaxis(whole, axis, 0)


def _npy(path: Path, options: Options) -> Npy:
    """Read the header of a file."""
    with open_regular(path) as stream:
        shape, fortran, dtype, offset = array_header(stream)
        length = os.fstat(stream.fileno()).st_size
    array = Npy(
        shape=shape, dtype=dtype, path=os.path.abspath(path), limit=options.max_bytes,
        stamp=stamp_of(path), turned=fortran, offset=offset,
    )  # fmt: skip
    if not dtype.hasobject and offset + array.nbytes > length:
        needed = f"{array} needs {offset + array.nbytes} bytes, and the file has {length}"
        raise Refusal(f"it is truncated: {needed}")
    return array


def read_npy(path: Path, options: Options) -> Dataset:
    """Read one array, or map it into memory."""
    if options.key is not None or isinstance(options.label_key, str):
        raise Refusal("a .npy file holds one array without a name", "Leave out key and label_key")
    return assemble(path, [_npy(path, options)], options)


def read_sample(path: Path, options: Options) -> tuple[np.ndarray, str]:
    """Read the array of one sample, and how it is drawn."""
    options.refuse(("size", "frames", "grey"), "stored arrays", FOR_PICTURES)
    entry = _npy(path, options)
    if not entry.numeric or not entry.shape or 0 in entry.shape:
        raise Refusal(
            f"it holds {entry.kind} of shape {entry.shape}, and samples are arrays of real numbers",
            "Store it as integers or floating-point numbers",
        )
    check_fits(str(entry), entry.nbytes, options.max_bytes)
    X = np.ascontiguousarray(entry.load(), dtype=entry.dtype.newbyteorder("="))
    axes = chosen_axes(options.axes, "", X.shape)
    X, axes = arrange(X, axes, channels=options.channels)
    return X, kind_of(axes, X.shape)


def read_npz(path: Path, options: Options) -> Dataset:
    """Read samples and labels from an archive of arrays."""
    with open_archive(path) as archive:
        return assemble(path, zip_entries(path, archive), options)
