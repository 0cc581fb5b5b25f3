"""Arrays in files of HDF5, MATLAB and Zarr, and the pages of TIFF, which the sandbox reads."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
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


@dataclass(frozen=True, eq=False, kw_only=True)
class Stored(OnDisk):
    """An array that a parser in the sandbox finds; `refused` says why it is not read."""

    parser: str
    refused: tuple[str, str] | None
    sandbox: Sandbox

    @property
    def stays(self) -> bool:  # type: ignore[override]
        """Whether it can stay on disk: any part of a .mat file is read by reading all of it."""
        return self.parser != "mat"

    @classmethod
    def told(
        cls, kind: str, path: Path, options: Options, said: Said, turned: bool = False
    ) -> Stored:
        """Make it from what the parser says of an array."""
        strange = {"": np.dtype(object), "str": STRING}
        order = slice(None, None, -1 if turned else 1)
        return cls(
            path=os.path.abspath(path),
            name=str(said["name"]),
            shape=tuple(map(int, said["shape"]))[order],
            dtype=strange.get(said["dtype"]) or np.dtype(said["dtype"]),
            note=str(said["note"]),
            axes=str(said.get("axes", "")),
            channels=said.get("channels", ()),
            limit=options.max_bytes,
            stamp=stamp_of(path),
            turned=turned,
            chunks=tuple(map(int, said.get("chunks") or ()))[order] or None,
            parser=kind,
            refused=said.get("refusal"),
            sandbox=options.sandbox,
        )

    def check_chunk(self) -> None:
        """Refuse an array that the parser refuses, or whose chunks would pass the limit."""
        if self.refused:
            raise Refusal(*self.refused)
        super().check_chunk()

    def _region(self, region: Region) -> np.ndarray:
        chunks = (self.chunks or ())[:: -1 if self.turned else 1]
        within = zip(region, chunks, strict=bool(chunks))
        parts = math.prod(-(-(high - low) // size) + 1 for (low, high), size in within)
        values, step, expected = None, 0, self.nbytes
        if region and self.dtype.kind in NUMERIC_KINDS:
            values = np.empty([high - low for low, high in region], self.dtype)
            if not values.size:
                return values
            rows = chunks[0] if chunks else 1
            step = max(rows, LIMITS.piece // values[:1].nbytes // rows * rows)
            expected = values.nbytes
        _, read = self.sandbox.ask(
            self.parser, "read", self.path, values,
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
    turned = bool(details.get("matlab"))  # MATLAB's axes in HDF5 are the other way round
    entries = [Stored.told(kind, path, options, said, turned) for said in parts]
    return assemble(path, entries, options, matlab=turned or kind == "mat")
