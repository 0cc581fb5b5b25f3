"""The idx files in which MNIST and its relatives are passed around."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from tuckermix._archives import Entry
from tuckermix._reading import open_unpacked, read_error
from tuckermix.datasets._container import assemble
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._options import Options

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
