"""Files of arrays: NumPy's, idx, HDF5, MATLAB's and Zarr stores, in memory or left on disk."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._archives import NUMERIC_KINDS, Entry, array_header, open_archive, zip_entries
from tuckermix._array_api import BLOCK_BYTES
from tuckermix._axes import arrange, chosen_axes, kind_of
from tuckermix._optional import require
from tuckermix._reading import Refusal, check_fits, open_regular, open_unpacked, read_error, reading
from tuckermix._sandbox import LIMITS, Said, Sandbox
from tuckermix.datasets._container import STRING, assemble
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._options import FOR_PICTURES, Options
from tuckermix.datasets._zarr import arrays_of

MAX_BLOCKS = 50_000
"""Chunks of one array, each of which costs Dask some memory beforehand; of the usual size, this
many hold more than a terabyte. A file can declare any number of samples."""

Region = Sequence[tuple[int, int]]
"""Start and stop along each axis."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OnDisk(Entry):
    """An array in a file of its own, read where it is asked for.

    Attributes
    ----------
    path : str
        Where the file is.
    limit : int
        The most bytes that a part of it may take in memory.
    stamp : tuple of int
        Length and time of the last change of the file when it was opened.
    turned : bool
        Whether the file has its axes the other way round.
    chunks : tuple of int or None
        The shape of a chunk in the file.
    refused : tuple of (str, str) or None
        Why it is not read, and what to do about it.
    """

    path: str
    limit: int
    stamp: tuple[int, int]
    turned: bool = False
    chunks: tuple[int, ...] | None = None
    refused: tuple[str, str] | None = None
    stays: bool = True

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return (self.path, self.name, self.stamp, self.shape)

    def load(self) -> np.ndarray:
        """Read all of it."""
        return self.region([(0, size) for size in self.shape])

    def region(self, region: Region) -> np.ndarray:
        """Read a region."""
        with reading(self.path):
            if stamp_of(self.path) != self.stamp:
                raise Refusal("it was changed after it was opened", "Read it again")
            self.check_chunk()
            return self._region(region[::-1]).T if self.turned else self._region(region)

    def _region(self, region: Region) -> np.ndarray:
        """Read a region, with the axes as they are in the file."""
        raise NotImplementedError

    def check_chunk(self) -> None:
        """Refuse an array that the parser refuses, or whose chunks would pass the limit."""
        if self.refused:
            raise Refusal(*self.refused)
        if self.chunks:
            check_fits(
                f"one chunk of {'/' + self.name!r} with shape {self.chunks}",
                math.prod(self.chunks) * self.dtype.itemsize,
                self.limit,
                "If you trust the file, raise max_bytes, or store it in smaller chunks",
            )

    def lazy(self, axis: int, chunks: int | None) -> Any:
        """Wrap it as a Dask array with its samples, along `axis`, first."""
        self.check_chunk()
        return to_dask(self, axis, chunks, self.chunks[axis] if self.chunks else None, self.limit)


def stamp_of(path: str | os.PathLike[str]) -> tuple[int, int]:
    """Return what changes when a file is written: its length and the time of the last change."""
    found = os.stat(path)
    return (0, 0) if os.path.isdir(path) else (found.st_size, found.st_mtime_ns)


def to_dask(array: Any, axis: int, chunks: int | None, stored: int | None, limit: int) -> Any:
    """Wrap an array on disk as a Dask array with its samples first, chunked along samples only.

    Parameters
    ----------
    array : OnDisk
        Or anything with `shape`, `dtype` and `region(region)`, in any process that it is sent to.
    axis : int
        The axis of the samples.
    chunks : int or None
        Samples in a chunk; None means about 32 MiB, a whole number of stored chunks.
    stored : int or None
        Samples in a chunk of the file.
    limit : int
        The most bytes that a chunk may take in memory.

    Returns
    -------
    X : dask array of shape (n_samples, d_1, ...)
        The samples.
    """
    da = require("dask.array", "Reading in chunks", "dask")
    shape, dtype = tuple(array.shape), np.dtype(array.dtype)
    sample_bytes = max(1, math.prod(shape) // shape[axis] * dtype.itemsize)
    if chunks is None:
        chunks = fitting = max(1, min(BLOCK_BYTES, limit) // sample_bytes)
        if stored:  # a stored chunk is torn only where it would pass the limit
            whole = max(stored, fitting // stored * stored)
            chunks = whole if whole * sample_bytes <= limit else fitting
    taken = min(chunks, shape[axis])
    remedy = "If you trust the file, pass smaller chunks or a larger max_bytes"
    check_fits(f"{taken} of its samples", taken * sample_bytes, limit, remedy)
    if -(-shape[axis] // chunks) > MAX_BLOCKS:
        raise Refusal(
            f"{shape[axis]} samples in chunks of {chunks} make more than {MAX_BLOCKS} chunks",
            "Pass larger chunks",
        )
    others = shape[:axis] + shape[axis + 1 :]
    sizes = da.core.normalize_chunks((chunks, *others), (shape[axis], *others))
    # With an empty array to look at, Dask has no need to open the file for a first guess.
    meta = np.empty((0,) * len(shape), dtype=dtype.newbyteorder("="))
    return da.map_blocks(
        partial(_block, array, axis), chunks=sizes, dtype=meta.dtype, meta=meta, name=None
    )


def _block(array: Any, axis: int, block_info: Any = None) -> np.ndarray:
    """Read the samples of one chunk."""
    samples, *others = block_info[None]["array-location"]
    values = np.moveaxis(array.region((*others[:axis], samples, *others[axis:])), axis, 0)
    return values.astype(values.dtype.newbyteorder("="), copy=False)


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


TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
"""The element types of the format, big-endian."""

IMAGES_NAME = re.compile(r"images([-.]idx\d)?([-._]ubyte)?(\.gz)?$", re.IGNORECASE)
"""The end of the name of a file of images, whose labels lie beside it under a similar name."""


def is_idx(path: Path) -> bool:
    """Tell whether the first bytes are those of an idx file: two zeros, a type, 1 axis or more."""
    with open_unpacked(path) as stream, suppress(OSError, EOFError):  # gzipped and damaged at once
        return _starts_well(stream.read(4))
    return False


def _starts_well(head: bytes) -> bool:
    return len(head) == 4 and head[:2] == b"\0\0" and head[2] in TYPES and head[3] > 0


def read_idx(path: Path, options: Options) -> Dataset:
    """Read a file of images and, where it lies beside it, its file of labels."""
    entries = [idx_entry(path, "images")]
    label_path = _labels_beside(path)
    if isinstance(options.label_key, str):
        label_path = path.with_name(options.label_key)
        if not label_path.is_file():
            raise read_error(
                path,
                f"there is no file {options.label_key!r} beside it",
                "For idx files label_key is the name of the file of labels",
            )
        options = replace(options, label_key="labels")
    if label_path is not None and options.label_key is not False:
        entries.append(idx_entry(label_path, "labels"))
    return assemble(path, entries, options)


def find_pairs(folder: Path) -> list[Path]:
    """List the files of images in a folder that have labels beside them, training part first."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.is_file() and IMAGES_NAME.search(path.name) and _labels_beside(path) is not None:
            found.setdefault(path.name.removesuffix(".gz"), path)
    return sorted(found.values(), key=lambda path: ("train" not in path.name, path.name))


def _values(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Read the values, which end with the file."""
    nbytes = math.prod(shape) * dtype.itemsize
    with open_unpacked(path) as stream:
        stream.read(4 + 4 * len(shape))
        content = stream.read(nbytes + 1)  # one more, to see whether it ends there
    if len(content) != nbytes:
        fault = "longer" if len(content) > nbytes else "shorter"
        raise read_error(path, f"it is {fault} than its header says (shape {shape})")
    return np.frombuffer(content, dtype).reshape(shape).astype(dtype.newbyteorder("="))


def idx_entry(path: Path, name: str) -> Entry:
    """Describe the one array of an idx file from its header."""
    with open_unpacked(path) as stream:
        head = stream.read(4)
        if not _starts_well(head):
            raise read_error(
                path,
                "it does not start like an idx file",
                "Get the file again; MNIST's own are named like train-images-idx3-ubyte.gz",
            )
        sizes = stream.read(4 * head[3])
    if len(sizes) < 4 * head[3]:
        raise read_error(path, "it is truncated within its header")
    shape = tuple(np.frombuffer(sizes, dtype=">u4").tolist())
    dtype = np.dtype(TYPES[head[2]])
    return Entry(name=name, shape=shape, dtype=dtype, read=partial(_values, path, shape, dtype))


def _labels_beside(path: Path) -> Path | None:
    """Find the labels that belong to a file of images, packed or not."""
    if not IMAGES_NAME.search(path.name):
        return None
    plain = path.name.removesuffix(".gz")
    start, _, end = plain.rpartition("images")
    labels = f"{start}labels{end}".replace("idx3", "idx1")
    for name in (labels, f"{labels}.gz"):
        if (candidate := path.with_name(name)).is_file():
            return candidate
    return None


HDF5_STARTS = (b"MATLAB 7.3 MAT-file", b"\x89HDF")
"""First bytes of MATLAB's version 7.3, which is HDF5 behind a header of MATLAB's."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Stored(OnDisk):
    """An array that a parser in the sandbox finds."""

    parser: str
    sandbox: Sandbox

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
            colour=said.get("colour"),
            limit=options.max_bytes,
            stamp=stamp_of(path),
            turned=turned,
            chunks=tuple(map(int, said.get("chunks") or ()))[order] or None,
            stays=kind != "mat",  # any part of a .mat file is read by reading all of it
            parser=kind,
            refused=said.get("refusal"),
            sandbox=options.sandbox,
        )

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
