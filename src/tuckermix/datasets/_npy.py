"""NumPy's own files, read without ever unpickling."""

from __future__ import annotations

import functools
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tuckermix._archives import NUMERIC_KINDS, array_header, npy_entry, open_archive, zip_entries
from tuckermix._axes import arrange, chosen_axes, kind_of
from tuckermix._reading import Refusal, open_regular, reading
from tuckermix.datasets._container import assemble
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._lazy import Region, to_dask
from tuckermix.datasets._options import FOR_PICTURES, Options

NPY_SUFFIXES = frozenset({".npy"})
"""File names of single arrays."""


@dataclass(frozen=True)
class _Stored:
    """Where the one array of a file lies, as its header says."""

    path: str
    offset: int  # where the values start
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    dtype: np.dtype

    @property
    def end(self) -> int:
        """Where the values end."""
        return self.offset + math.prod(self.shape) * self.dtype.itemsize

    def map(self) -> np.ndarray:
        """Map the values into memory."""
        return np.memmap(self.path, self.dtype, "r", self.offset, self.shape, self.order)

    def open(self, limit: int, axis: int, chunks: int | None) -> Any:
        """Map them, or wrap them as a Dask array where chunks were asked for; samples first."""
        if chunks is None:
            return np.moveaxis(self.map(), axis, 0)
        return to_dask(self, axis, chunks, None, limit)

    def region(self, region: Region) -> np.ndarray:
        """Read a region; no more of the file is mapped than the entries of its slowest axis."""
        axis = 0 if self.order == "C" else len(self.shape) - 1
        low, high = region[axis]
        entry = (*self.shape[:axis], 1, *self.shape[axis + 1 :])
        start = self.offset + low * math.prod(entry) * self.dtype.itemsize
        shape = (*self.shape[:axis], high - low, *self.shape[axis + 1 :])
        inside = [slice(*one) for one in region]
        inside[axis] = slice(None)
        with reading(self.path):
            mapped = np.memmap(self.path, self.dtype, "r", start, shape, self.order)
            return np.array(mapped[tuple(inside)])

    def load(self) -> np.ndarray:
        """Read all of it."""
        return self.region(tuple((0, size) for size in self.shape))


def _stored(path: Path) -> _Stored:
    """Read the header of a file."""
    with open_regular(path) as stream:
        shape, fortran, dtype = array_header(stream)
        order: Literal["C", "F"] = "F" if fortran else "C"
        return _Stored(os.path.abspath(path), stream.tell(), shape, order, dtype)


def read_npy(path: Path, options: Options) -> Dataset:
    """Read one array, or map it into memory."""
    stored = _stored(path)
    lazy = functools.partial(stored.open, options.max_bytes)
    entry = npy_entry("", stored.shape, stored.dtype, stored.load, lazy=lazy)
    if entry.numeric and stored.end > os.path.getsize(path):
        raise Refusal(
            f"it is truncated: {entry} needs {stored.end} bytes, and the file has "
            f"{os.path.getsize(path)}"
        )
    if options.key is not None or isinstance(options.label_key, str):
        raise Refusal("a .npy file holds one array without a name", "Leave out key and label_key")
    return assemble(path, [entry], options)


def read_sample(path: Path, options: Options) -> tuple[np.ndarray, str]:
    """Read the array of one sample, and how it is drawn."""
    options.refuse(("size", "frames", "grey"), "stored arrays", FOR_PICTURES)
    stored = _stored(path)
    shape, dtype = stored.shape, stored.dtype
    if dtype.kind not in NUMERIC_KINDS or not shape or 0 in shape:
        raise Refusal(
            f"it holds {dtype} of shape {shape}, and a sample is an array of real numbers",
            "Store it as integers or floating-point numbers",
        )
    nbytes = stored.end - stored.offset
    if nbytes > min(options.max_bytes, os.path.getsize(path) - stored.offset):
        raise Refusal(
            f"its header declares {nbytes} bytes, more than the file has or "
            f"max_bytes={options.max_bytes} allows",
            "Get the file again, or raise max_bytes if you trust it",
        )
    X = np.ascontiguousarray(stored.load(), dtype=dtype.newbyteorder("="))
    axes = chosen_axes(options.axes, "", X.shape)
    X, axes = arrange(X, axes, channels=options.channels)
    return X, kind_of(axes, X.shape)


def read_npz(path: Path, options: Options) -> Dataset:
    """Read samples and labels from an archive of arrays."""
    with open_archive(path) as archive:
        return assemble(path, zip_entries(path, archive), options)
