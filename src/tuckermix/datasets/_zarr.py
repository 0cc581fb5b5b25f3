"""Zarr stores, as far as something must be decided before the library opens them.

A store is a folder. It names its codecs, some of which run code (`pickle`), and links in it may
lead anywhere. So its metadata are read here first: links are refused, and an array with a codec
that is not in the list below is never opened.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tuckermix._reading import Refusal, open_regular

MARKERS = ("zarr.json", ".zarray", ".zgroup")
"""Files by which a folder is a Zarr store, of version 3 or 2."""

CODECS = frozenset(
    {
        *("blosc", "zstd", "gzip", "zlib", "lz4", "lzma", "bz2", "shuffle", "delta", "quantize"),
        *("fixedscaleoffset", "bitround", "astype", "packbits", "crc32", "crc32c", "adler32"),
        *("fletcher32", "bytes", "transpose", "sharding_indexed", "vlen-utf8", "zfpy"),
    }
)
"""Codecs that turn bytes into bytes or numbers into numbers, and nothing else."""

MAX_METADATA = 2**21
"""Bytes of one file of metadata, enough for those of a thousand arrays in one."""

MAX_NODES = 10_000
"""Arrays and groups in a store; a hostile one can be endless."""


def is_zarr(path: Path) -> bool:
    """Tell whether a folder is a Zarr store."""
    return any((path / marker).is_file() for marker in MARKERS)


def arrays_of(path: Path) -> list[dict[str, Any]]:
    """List the arrays of a store: what the parser in the sandbox may open, and what it must not.

    Parameters
    ----------
    path : Path
        The folder.

    Returns
    -------
    arrays : list of dict
        Of each array its name, shape and number of files, and in "refusal" why it must not be
        opened, or None; in the order of the names.
    """
    found: list[dict[str, Any]] = []
    pending, seen = [""], 0
    while pending:
        name = pending.pop()
        folders, files = _inside(path, name)
        markers = [marker for marker in MARKERS if marker in files]
        if len(markers) > 1:
            raise Refusal(
                f"{name or 'its root'!r} has {' and '.join(markers)}, and can be one of them only",
                "Remove the one that does not belong there",
            )
        seen += 1
        if seen > MAX_NODES:
            raise Refusal(f"it has more than {MAX_NODES} folders", "Store fewer arrays")
        if not markers:
            continue  # neither array nor group, and nothing below is part of the store
        metadata = _metadata(path / name / markers[0])
        if markers[0] != ".zarray" and metadata.get("node_type") != "array":
            pending += folders
            continue
        n_files = len(files)
        while folders:  # of chunks
            below, files = _inside(path, folders.pop())
            folders += below
            n_files += len(files)
        shape = [size for size in metadata.get("shape") or () if type(size) is int]
        refusal = _refusal(name, metadata)
        found.append({"name": name, "shape": shape, "files": n_files, "refusal": refusal})
    return sorted(found, key=lambda array: str(array["name"]))


def _refusal(name: str, metadata: dict[str, Any]) -> tuple[str, str] | None:
    """Say why an array must not be opened, or return None."""
    strange = sorted(set(_codecs(metadata)) - CODECS)
    if not strange:
        return None
    problem = (
        f"{repr(name) if name else 'it'} is stored with {', '.join(strange)}, which is not decoded "
        "here: some codecs may run code when unpacked"
    )
    return problem, "Store it again with blosc, gzip or zstd"


def _inside(path: Path, name: str) -> tuple[list[str], list[str]]:
    """List folders, by their place in the store, and files; refuse links and what is neither."""
    folders, files = [], []
    with os.scandir(path / name) as scan:
        for item in scan:
            place = f"{name}/{item.name}".lstrip("/")
            if item.is_symlink():
                raise Refusal(
                    f"{place!r} is a link, and links may lead out of the store",
                    "Copy what it names to its place",
                )
            if item.is_dir(follow_symlinks=False):
                folders.append(place)
            elif item.is_file(follow_symlinks=False):
                files.append(item.name)
            else:
                raise Refusal(f"{place!r} is no regular file", "Remove it")
    return folders, files


def _metadata(file: Path) -> dict[str, Any]:
    with open_regular(file) as stream:
        content = stream.read(MAX_METADATA + 1)
    metadata = json.loads(content) if len(content) <= MAX_METADATA else None
    if not isinstance(metadata, dict):
        raise ValueError(f"{file.name} holds no metadata, or more than {MAX_METADATA} bytes")
    return metadata


def _codecs(metadata: dict[str, Any]) -> Iterator[str]:
    """Yield the names of all codecs, those within others too."""
    pending: list[Any] = [metadata.get(key) for key in ("codecs", "filters", "compressor")]
    pending.append(metadata.get("storage_transformers"))
    while pending:
        one = pending.pop()
        if isinstance(one, str):  # version 3 allows a name alone
            yield one.removeprefix("numcodecs.")
        elif isinstance(one, list):
            pending += one
        elif isinstance(one, dict):
            yield str(one.get("id", one.get("name"))).removeprefix("numcodecs.")
            inner = one.get("configuration")
            for config in (one, inner if isinstance(inner, dict) else {}):
                pending += [config.get(key) for key in ("codecs", "index_codecs", "codec")]
