"""Arrays in files of HDF5, MATLAB and Zarr, and the pages of TIFF, which the sandbox reads."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._archives import NUMERIC_KINDS
from tuckermix._reading import Refusal, open_regular
from tuckermix._sandbox import LIMITS, Said, Sandbox
from tuckermix.datasets._container import STRING, assemble
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._lazy import OnDisk, Region, stamp_of
from tuckermix.datasets._options import Options
from tuckermix.datasets._zarr import arrays_of

HDF5_STARTS = (b"MATLAB 7.3 MAT-file", b"\x89HDF")
"""First bytes of MATLAB's version 7.3, which is HDF5 behind a header of MATLAB's."""


@dataclass(frozen=True, eq=False)
class Stored(OnDisk):
    """An array that a parser in the sandbox finds; `refused` says why it is not read."""

    kind: str = ""
    refused: tuple[str, str] | None = None
    sandbox: Sandbox = field(default_factory=lambda: Sandbox(0))

    @classmethod
    def told(
        cls, kind: str, path: Path, options: Options, said: Said, reverse: bool = False
    ) -> Stored:
        """Make it from what the parser says of an array."""
        strange = {"": np.dtype(object), "str": STRING}
        return cls(
            path=os.path.abspath(path),
            name=str(said["name"]),
            shape=tuple(map(int, said["shape"])),
            dtype=strange.get(said["dtype"]) or np.dtype(said["dtype"]),
            limit=options.max_bytes,
            stamp=stamp_of(path),
            reverse=reverse,
            chunks=tuple(map(int, said.get("chunks") or ())) or None,
            kind=kind,
            refused=said.get("refusal"),
            sandbox=options.sandbox,
        )

    def check_chunk(self) -> None:
        """Refuse an array that the parser refuses, or whose chunks would pass the limit."""
        if self.refused:
            raise Refusal(*self.refused)
        super().check_chunk()

    def _region(self, region: Region) -> np.ndarray:
        chunks = zip(region, self.chunks or (), strict=bool(self.chunks))
        parts = math.prod(-(-(high - low) // size) + 1 for (low, high), size in chunks)
        values, step, expected = None, 0, self.nbytes
        if region and self.dtype.kind in NUMERIC_KINDS:
            values = np.empty([high - low for low, high in region], self.dtype)
            if not values.size:
                return values
            rows = self.chunks[0] if self.chunks else 1
            step = max(rows, LIMITS.piece // values[:1].nbytes // rows * rows)
            expected = values.nbytes
        _, read = self.sandbox.ask(
            self.kind, "read", self.path, values,
            name=self.name, region=region, step=step, parts=parts, expected=expected,
        )  # fmt: skip
        return read if values is None else values


def read_hdf5(path: Path, options: Options) -> Dataset:
    """Read samples and labels from an HDF5 file."""
    return _read("hdf5", path, options, matlab=False)


def read_mat(path: Path, options: Options) -> Dataset:
    """Read samples and labels from a MATLAB file of any version."""
    with open_regular(path) as stream:
        if stream.read(max(map(len, HDF5_STARTS))).startswith(HDF5_STARTS):
            return _read("hdf5", path, options, matlab=True)
    return _read("mat", path, options)


def read_zarr(path: Path, options: Options) -> Dataset:
    """Read samples and labels from a Zarr store."""
    return _read("zarr", path, options, arrays=arrays_of(path))


def _read(kind: str, path: Path, options: Options, **details: Any) -> Dataset:
    """List the arrays of a file, in groups as "group/name", and take samples and labels."""
    parts = options.sandbox.ask(kind, "list", path, **details)[0]["parts"]
    reverse = bool(details.get("matlab"))  # MATLAB's axes in HDF5 are the other way round
    entries = [
        Stored.told(kind, path, options, said, reverse).entry(str(said["note"])) for said in parts
    ]
    if kind == "mat":  # any part of it is read by reading all of it
        entries = [replace(entry, lazy=None) for entry in entries]
    return assemble(path, entries, options, matlab=reverse or kind == "mat")
