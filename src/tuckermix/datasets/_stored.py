"""Arrays in files of HDF5, MATLAB and Zarr, and the pages of TIFF, which the sandbox reads."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._archives import NUMERIC_KINDS, Entry
from tuckermix._reading import Refusal, check_fits, open_regular, reading
from tuckermix._sandbox import LIMITS, Said, Sandbox
from tuckermix.datasets._container import STRING, assemble
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._lazy import Region, to_dask
from tuckermix.datasets._options import Options
from tuckermix.datasets._zarr import nodes_of

HDF5_STARTS = (b"MATLAB 7.3 MAT-file", b"\x89HDF")
"""First bytes of MATLAB's version 7.3, which is HDF5 behind a header of MATLAB's."""


@dataclass(frozen=True, eq=False)
class Stored:
    """An array in a file, read where it is asked for.

    Attributes
    ----------
    sandbox : Sandbox
        What reads it.
    kind, path : str
        The kind of file, and where it is.
    shape : tuple of int
        The shape of the array.
    dtype : dtype
        Its type.
    chunks : tuple of int or None
        The shape of a chunk in the file.
    whole : bool
        Whether any part of it is read by reading all of it.
    details : dict
        What else the sandbox needs to find it, such as its name.
    stamp : tuple of int
        Length and time of the last change of the file when it was opened.
    """

    sandbox: Sandbox
    kind: str
    path: str
    shape: tuple[int, ...]
    dtype: np.dtype
    chunks: tuple[int, ...] | None = None
    whole: bool = False
    details: dict[str, Any] = field(default_factory=dict)
    stamp: tuple[int, int] = (0, 0)

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return (self.path, self.stamp, tuple(self.details.items()), self.shape)

    def load(self) -> np.ndarray:
        """Read all of it."""
        return self.region(tuple((0, size) for size in self.shape))

    def region(self, region: Region) -> np.ndarray:
        """Read a region."""
        with reading(self.path):
            return self._region(region)

    def _region(self, region: Region) -> np.ndarray:
        if stamp_of(self.path) != self.stamp:
            raise Refusal("it was changed after it was opened", "Read it again")
        self.check_chunk()
        chunks = zip(region, self.chunks or (), strict=bool(self.chunks))
        parts = math.prod(-(-(high - low) // size) + 1 for (low, high), size in chunks)
        values, step = None, 0
        if not self.whole and region and self.dtype.kind in NUMERIC_KINDS:
            values = np.empty(tuple(high - low for low, high in region), self.dtype)
            if not values.size:
                return values
            rows = self.chunks[0] if self.chunks else 1
            step = max(rows, LIMITS.piece // values[:1].nbytes // rows * rows)
        details = {**self.details, "region": region, "step": step, "parts": parts}
        details["expected"] = self.nbytes if values is None else values.nbytes
        _, read = self.sandbox.ask(self.kind, "read", self.path, values, **details)
        return read if values is None else values

    def check_chunk(self) -> None:
        """Refuse chunks that would pass the limit."""
        if self.chunks:
            check_fits(
                f"one chunk of {'/' + self.details.get('name', '')!r} with shape {self.chunks}",
                math.prod(self.chunks) * self.dtype.itemsize,
                self.sandbox.limit,
                "If you trust the file, raise max_bytes, or store it in smaller chunks",
            )

    def lazy(self, axis: int, chunks: int | None) -> Any:
        """Wrap it as a Dask array with its samples first."""
        self.check_chunk()
        stored = self.chunks[axis] if self.chunks else None
        return to_dask(self, axis, chunks, stored, self.sandbox.limit)


def stamp_of(path: str | os.PathLike[str]) -> tuple[int, int]:
    """Return what changes when a file is written: its length and the time of the last change."""
    found = os.stat(path)
    return (0, 0) if os.path.isdir(path) else (found.st_size, found.st_mtime_ns)


def read_hdf5(path: Path, options: Options) -> Dataset:
    """Read samples and labels from an HDF5 file."""
    return assemble(path, _entries("hdf5", path, options, matlab=False), options)


def read_mat(path: Path, options: Options) -> Dataset:
    """Read samples and labels from a MATLAB file of any version."""
    with open_regular(path) as stream:
        is_hdf5 = stream.read(max(map(len, HDF5_STARTS))).startswith(HDF5_STARTS)
    if is_hdf5:
        entries = _entries("hdf5", path, options, reverse=True, matlab=True)
    else:
        entries = _entries("mat", path, options)
    return assemble(path, entries, options, matlab=True)


def read_zarr(path: Path, options: Options) -> Dataset:
    """Read samples and labels from a Zarr store."""
    good, refused = nodes_of(path)
    return assemble(path, [*_entries("zarr", path, options, nodes=good), *refused], options)


def _entries(
    kind: str, path: Path, options: Options, *, reverse: bool = False, **details: Any
) -> list[Entry]:
    """List the arrays of a file, in groups as "group/name"; `reverse` is for MATLAB's axes."""
    parts: Iterable[Said] = options.sandbox.ask(kind, "list", path, **details)[0]["parts"]
    return [_entry(kind, path, options.sandbox, said, reverse) for said in parts]


def _entry(kind: str, path: Path, sandbox: Sandbox, said: Said, reverse: bool) -> Entry:
    name, note = str(said["name"]), str(said["note"])
    dtype = {"": np.dtype(object), "str": STRING}.get(said["dtype"]) or np.dtype(said["dtype"])
    details: dict[str, Any] = {key: said[key] for key in ("name", "version") if key in said}
    array = Stored(
        sandbox,
        kind,
        os.path.abspath(path),
        tuple(map(int, said["shape"])),
        dtype,
        tuple(map(int, said["chunks"])) if said.get("chunks") else None,
        kind == "mat",
        details,
        stamp_of(path),
    )
    shape = array.shape[::-1] if reverse else array.shape
    refusal = Refusal(*said["refusal"]) if "refusal" in said else None
    load, lazy = partial(_load, array, reverse, refusal), partial(_open, array, reverse, refusal)
    return Entry(name, shape, dtype, load, None if array.whole else lazy, note)


def _load(array: Stored, reverse: bool, refusal: Refusal | None) -> np.ndarray:
    if refusal is not None:
        raise refusal
    values = array.load()
    return values.T if reverse else values


def _open(
    array: Stored, reverse: bool, refusal: Refusal | None, axis: int, chunks: int | None
) -> Any:
    if refusal is not None:
        raise refusal
    if not reverse:
        return array.lazy(axis, chunks)
    X = array.lazy(len(array.shape) - 1 - axis, chunks)
    return X.transpose((0, *range(X.ndim - 1, 0, -1)))
