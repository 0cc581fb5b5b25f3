"""Zarr stores in a folder, whole or in pieces."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix.datasets._container import Entry, assemble
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._errors import needs, read_error
from tuckermix.datasets._lazy import to_dask
from tuckermix.datasets._options import Options

__all__ = ["is_zarr", "read_zarr"]

MARKERS = ("zarr.json", ".zarray", ".zgroup")
"""Files by which a folder is a Zarr store, of version 3 or 2."""

METADATA = frozenset({*MARKERS, ".zmetadata"})
"""Files that say how the chunks are stored."""

CODEC_KEYS = ("codecs", "index_codecs", "filters", "compressor")
"""Where in the metadata codecs are named."""

# fmt: off
SAFE_CODECS = frozenset({
    "adler32", "astype", "bitround", "blosc", "bytes", "bz2", "crc32", "crc32c", "delta",
    "fixedscaleoffset", "gzip", "jenkins_lookup3", "lz4", "lzma", "packbits", "quantize",
    "sharding_indexed", "shuffle", "transpose", "vlen-utf8", "zlib", "zstd",
})
# fmt: on
"""Codecs that turn bytes into numbers and do nothing else. A store can also ask for `pickle`, which
runs whatever code the chunks contain."""


def is_zarr(path: Path) -> bool:
    """Tell whether a folder is a Zarr store."""
    return any((path / marker).is_file() for marker in MARKERS)


def read_zarr(path: Path, options: Options) -> Dataset:
    """Read samples and labels from a Zarr store."""
    try:
        import zarr
    except ImportError as error:
        raise needs("Reading Zarr", "zarr", "io") from error

    _check_codecs(path)
    root = zarr.open(str(path), mode="r")
    if isinstance(root, zarr.Array):
        arrays = [("", root)]
    else:
        arrays = [(n, a) for n, a in root.members(max_depth=None) if isinstance(a, zarr.Array)]
    entries = []
    for name, array in sorted(arrays, key=lambda pair: pair[0]):
        entries.append(
            Entry(
                name=name,
                shape=tuple(int(size) for size in array.shape),
                dtype=_dtype(array),
                load=functools.partial(_load, array),
                lazy=functools.partial(_open, array),
            )
        )
    return assemble(path, entries, options)


def _dtype(array: Any) -> np.dtype:
    dtype = np.dtype(array.dtype)
    return np.dtype("U1") if dtype.kind in "TU" else dtype


def _load(array: Any) -> np.ndarray:
    values = np.asarray(array[...])
    return values.astype(str) if values.dtype.kind == "T" else values


def _open(array: Any, axis: int, chunks: int | None) -> Any:
    stored = getattr(array, "shards", None) or array.chunks
    return to_dask(array, axis, chunks, stored[axis])


def _check_codecs(path: Path) -> None:
    """Refuse codecs that may run code, from the metadata alone: nothing is decoded before."""
    for folder, folders, files in os.walk(path):
        for name in METADATA.intersection(files):
            with open(os.path.join(folder, name), "rb") as stream:
                metadata = json.load(stream)
            strange = sorted(set(_codecs(metadata)) - SAFE_CODECS)
            if strange:
                raise read_error(
                    path,
                    f"it is stored with {', '.join(strange)}, which may run code when unpacked",
                    "Store it anew with blosc, gzip or zstd",
                )
            if name == ".zarray" or metadata.get("node_type") == "array":
                folders.clear()  # below an array there are chunks only, and many


def _codecs(metadata: Any) -> Iterator[str]:
    """Yield the names of all codecs, however deep in the metadata they are."""
    if isinstance(metadata, list):
        for item in metadata:
            yield from _codecs(item)
    elif isinstance(metadata, dict):
        for key, value in metadata.items():
            if key in CODEC_KEYS:
                for codec in value if isinstance(value, list) else [value]:
                    if isinstance(codec, dict):
                        name = str(codec.get("name") or codec.get("id"))
                        yield name.removeprefix("numcodecs.")
            yield from _codecs(value)
