"""Zarr stores of versions 2 and 3 in a folder, whole or in pieces.

The metadata are read here and the chunks are decoded here, so that what was checked is what is
used: no link is followed, no codec runs that `_zarr_codecs` does not name, and no chunk is unpacked
beyond the size that its shape gives.
"""

from __future__ import annotations

import functools
import json
import math
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tuckermix._archives import NUMERIC_KINDS, Entry
from tuckermix._reading import Refusal, check_fits, open_regular, reading, slack
from tuckermix.datasets._chunks import TOO_LARGE, Index, Region, covering, gather, whole
from tuckermix.datasets._container import LABEL_KINDS, STRING, assemble, check_strings
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._lazy import Slices, to_dask
from tuckermix.datasets._options import Options
from tuckermix.datasets._zarr_codecs import (
    FILTERS,
    UNPACKERS,
    UnknownCodec,
    decode_strings,
    filter_dtypes,
    name_of,
    size_of,
    unfilter,
    unpack,
)

VERSION_3, ARRAY_2, GROUP_2 = MARKERS = ("zarr.json", ".zarray", ".zgroup")
"""Files by which a folder is a Zarr store, of version 3 or 2."""

MAX_METADATA = 2**21
"""Bytes of one file of metadata, enough for those of a thousand arrays in one; parsed, they take
some twenty times as much memory."""

MAX_NODES = 10_000
"""Arrays and groups in a store; a hostile one can be endless."""

MAX_AXES = 32
"""Axes of an array, half of what NumPy allows."""

NO_CHUNK = 2**64 - 1
"""Offset and length of a chunk that is absent from its shard."""

SPECIAL_VALUES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""Numbers that JSON does not know."""

TYPES_3 = frozenset(
    {"bool", *(f"{s}int{n}" for s in ("", "u") for n in (8, 16, 32, 64))}
    | {f"float{n}" for n in (16, 32, 64)}
)
"""Types of numbers by their names in version 3."""

OTHER: np.dtype = np.dtype("V")
"""Stands for the types of values that are not read."""


@dataclass(frozen=True)
class Chunk:
    """What a chunk holds, and how."""

    shape: tuple[int, ...]
    dtype: np.dtype  # the type of the values; object for strings of any length
    fill: Any  # the value where no chunk is stored
    codecs: tuple[Any, ...]  # what was done to the values, in the order in which it was done


@dataclass(frozen=True)
class Node:
    """An array as its metadata describe it."""

    root: str  # the folder of the store
    name: str  # the path of the array in the store, "" for the store itself
    shape: tuple[int, ...]
    chunk: Chunk
    says: str  # the type in words
    separator: str  # what stands between the numbers of a chunk in its name
    prefix: str  # what stands before them

    def __post_init__(self) -> None:
        if self.separator not in (".", "/"):
            raise ValueError("the numbers of a chunk are separated by neither '.' nor '/'")

    @property
    def folder(self) -> str:
        """Where its chunks lie."""
        return os.path.join(self.root, *self.name.split("/")) if self.name else self.root

    def key(self, index: Index) -> str:
        """Return the path of a chunk relative to the folder."""
        return self.prefix + (self.separator.join(map(str, index)) or ("" if self.prefix else "0"))


def is_zarr(path: Path) -> bool:
    """Tell whether a folder is a Zarr store."""
    return any((path / marker).is_file() for marker in MARKERS)


def read_zarr(path: Path, options: Options) -> Dataset:
    """Read samples and labels from a Zarr store."""
    entries = []
    for node in sorted(_nodes(path), key=lambda node: node.name):
        dtype = node.chunk.dtype
        entries.append(
            Entry(
                name=node.name,
                shape=node.shape,
                dtype={"O": STRING, OTHER.kind: np.dtype(object)}.get(dtype.kind, dtype),
                load=functools.partial(_load, node, options.max_bytes),
                lazy=functools.partial(_open, node, options.max_bytes),
                note=f"values of type {node.says}" if dtype == OTHER else "",
            )
        )
    return assemble(path, entries, options)


# --- the metadata -------------------------------------------------------------------------------


def _nodes(path: Path) -> Iterator[Node]:
    """Yield the arrays of a store, from the metadata in the folders themselves.

    Copies of the metadata in the root, "consolidated" ones, are not looked at.
    """
    root = os.path.realpath(path)
    pending = [""]
    seen = 0
    while pending:
        name = pending.pop()
        seen += 1
        if seen > MAX_NODES:
            raise Refusal(f"it has more than {MAX_NODES} folders", "Store fewer arrays")
        folder = os.path.join(root, *name.split("/")) if name else root
        with os.scandir(folder) as scan:
            # A link is kept, to be refused.
            kept = [i for i in scan if i.name in MARKERS or i.is_symlink() or i.is_dir()]
        items = {item.name: item for item in kept}
        for item in items.values():
            if item.is_symlink():
                raise _link(f"{name}/{item.name}".lstrip("/"))
        markers = [marker for marker in MARKERS if marker in items]
        if len(markers) > 1:
            raise Refusal(
                f"{name or 'its root'!r} has {' and '.join(markers)}, and can be one of them only",
                "Remove the one that does not belong there",
            )
        if not markers:
            continue  # neither array nor group, and nothing below is part of the store
        metadata = _metadata(os.path.join(folder, markers[0]))
        if markers[0] == ARRAY_2:
            yield _version_2(root, name, metadata)
        elif markers[0] == VERSION_3 and metadata.get("node_type") == "array":
            yield _version_3(root, name, metadata)
        else:
            pending += [f"{name}/{one}".lstrip("/") for one in items if one not in MARKERS]


def _link(name: str) -> ValueError:
    return Refusal(
        f"{name!r} is a link, and links may lead out of the store",
        "Copy what it names to its place",
    )


def _metadata(file: str) -> dict[str, Any]:
    with open_regular(file) as stream:
        content = stream.read(MAX_METADATA + 1)
    if len(content) > MAX_METADATA:
        raise ValueError(f"{os.path.basename(file)} has more than {MAX_METADATA} bytes")
    metadata = json.loads(content)
    if not isinstance(metadata, dict):
        raise ValueError(f"{os.path.basename(file)} holds no metadata")
    return metadata


def _sizes(value: Any, what: str, least: int) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) > MAX_AXES:
        raise ValueError(f"{what} is no list of at most {MAX_AXES} sizes")
    if not all(type(size) is int and least <= size < 2**63 for size in value):
        raise ValueError(f"{what} is impossible")
    return tuple(value)


def _grid(shape: Any, chunks: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    sizes, parts = _sizes(shape, "shape", 0), _sizes(chunks, "the shape of a chunk", 1)
    if len(sizes) != len(parts):
        raise ValueError(f"an array with {len(sizes)} axes has chunks with {len(parts)}")
    return sizes, parts


def _version_2(root: str, name: str, metadata: dict[str, Any]) -> Node:
    shape, chunks = _grid(metadata.get("shape"), metadata.get("chunks"))
    code, filters = metadata.get("dtype"), metadata.get("filters") or []
    if not isinstance(filters, list):
        raise ValueError("filters are no list")
    codecs = list(filters)
    dtype = OTHER
    if code == "|O" and [name_of(codec)[0] for codec in filters[:1]] == ["vlen-utf8"]:
        dtype = np.dtype(object)
    elif isinstance(code, str) and code != "|O":
        dtype = np.dtype(code) if np.dtype(code).kind in LABEL_KINDS else OTHER
        codecs.append({"name": "bytes", "configuration": {"order": metadata.get("order", "C")}})
    if metadata.get("compressor") is not None:
        codecs.append(metadata["compressor"])
    separator = metadata.get("dimension_separator", ".")
    chunk = Chunk(chunks, dtype, _fill(metadata.get("fill_value"), dtype), tuple(codecs))
    return Node(root, name, shape, chunk, str(code), separator, "")


def _version_3(root: str, name: str, metadata: dict[str, Any]) -> Node:
    grid, keys = metadata.get("chunk_grid"), metadata.get("chunk_key_encoding")
    grid_name, grid_config = name_of(grid)
    if grid_name != "regular":
        raise ValueError(f"its chunks lie on the unknown grid {grid_name!r}")
    shape, chunks = _grid(metadata.get("shape"), grid_config.get("chunk_shape"))
    keys_name, keys_config = name_of(keys if keys is not None else "default")
    if keys_name not in ("default", "v2"):
        raise ValueError(f"its chunks have the unknown names {keys_name!r}")
    separator = keys_config.get("separator", "/" if keys_name == "default" else ".")
    prefix = "c" + (separator if shape else "") if keys_name == "default" else ""
    codecs = metadata.get("codecs")
    if not isinstance(codecs, list):
        raise ValueError("codecs are no list")
    if metadata.get("storage_transformers"):
        raise ValueError("it is stored with transformers")
    code = metadata.get("data_type")
    type_name, type_config = name_of(code)
    length = type_config.get("length_bytes", 0)
    dtype = OTHER
    if type_name in TYPES_3:
        dtype = np.dtype(type_name)
    elif type_name == "string":
        dtype = np.dtype(object)
    elif type(length) is int and 0 < length < 2**31:
        if type_name == "fixed_length_utf32":
            dtype = np.dtype(f"U{length // 4}")
        elif type_name in ("null_terminated_bytes", "fixed_length_ascii"):
            dtype = np.dtype(f"S{length}")
    chunk = Chunk(chunks, dtype, _fill(metadata.get("fill_value"), dtype), tuple(codecs))
    return Node(root, name, shape, chunk, type_name, separator, prefix)


def _fill(value: Any, dtype: np.dtype) -> Any:
    """Return the value of chunks that are not stored."""
    if dtype == OTHER:
        return None
    if dtype.kind in "SUO":
        return value if isinstance(value, str) and dtype.kind != "S" else ""
    if value is None or value == "":
        return dtype.type(0)
    if isinstance(value, str) and value not in SPECIAL_VALUES:
        bits = int(value, 16).to_bytes(dtype.itemsize, "big")
        return np.frombuffer(bits, dtype=dtype.newbyteorder(">"))[0]
    number = SPECIAL_VALUES[value] if isinstance(value, str) else value
    if not isinstance(number, bool | int | float):
        raise ValueError("fill_value is no number")
    with np.errstate(all="ignore"):
        return np.array([number]).astype(dtype)[0]


# --- the values ---------------------------------------------------------------------------------


def _check(node: Node, limit: int) -> None:
    """Refuse an array with chunks beyond the limit or codecs that are not known, unread."""
    chunk = node.chunk
    declared = size_of(chunk.shape, STRING if chunk.dtype.hasobject else chunk.dtype)
    with reading(node.folder):
        check_fits(f"one chunk of shape {chunk.shape}", declared, limit, TOO_LARGE)
        try:
            _stages(chunk)
        except UnknownCodec as error:
            raise Refusal(
                f"it is stored with {error}, which is not decoded here: some codecs may run code "
                "when unpacked",
                "Store it anew with blosc, gzip or zstd",
            ) from error


def _load(node: Node, limit: int) -> np.ndarray:
    _check(node, limit)
    values = _region(node, limit, whole(node.shape))
    if not values.dtype.hasobject:
        return values
    longest = max(map(len, values.flat), default=0)
    check_strings(node.name, values.size, longest, limit)
    return values.astype(str)


def _open(node: Node, limit: int, axis: int, chunks: int | None) -> Any:
    _check(node, limit)
    slices = Slices(_fetch, (node, limit), node.shape, node.chunk.dtype)
    return to_dask(slices, axis, chunks, node.chunk.shape[axis], limit)


def _fetch(node: Node, limit: int, index: Any) -> np.ndarray:
    region, rest = covering(index, node.shape)
    with reading(node.folder):
        return _region(node, limit, region)[rest]


def _region(node: Node, limit: int, region: Region) -> np.ndarray:
    chunk, stored = node.chunk, functools.partial(_stored, node)
    read = functools.partial(_chunk, node, limit)
    return gather(region, chunk.shape, chunk.dtype, chunk.fill, stored, read)


def _stored(node: Node) -> Iterator[Index]:
    """List the chunks of which there is a file."""
    nested = node.prefix.endswith("/")
    yield from _numbered(node, os.path.join(node.folder, "c") if nested else node.folder, ())


def _numbered(node: Node, folder: str, start: Index) -> Iterator[Index]:
    if not os.path.isdir(folder):
        return
    with os.scandir(folder) as scan:
        for item in scan:
            parts = item.name.removeprefix(node.prefix).split(".")
            if not all(part.isascii() and part.isdigit() for part in parts):
                continue
            if item.is_symlink():
                raise _link(os.path.relpath(item.path, node.root))
            index = (*start, *map(int, parts))
            if len(index) == len(node.shape):
                yield index
            elif node.separator == "/" and item.is_dir(follow_symlinks=False):
                yield from _numbered(node, item.path, index)


def _chunk(node: Node, limit: int, index: Index) -> np.ndarray | None:
    """Read one chunk from its file, if there is one."""
    key = node.key(index)
    file = os.path.join(node.folder, *key.split("/"))
    try:
        found = os.stat(file, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(found.st_mode) or os.path.realpath(file) != file:
        raise _link(f"{node.name}/{key}".lstrip("/"))
    chunk = node.chunk
    most = limit if chunk.dtype.hasobject else slack(size_of(chunk.shape, chunk.dtype))
    shards = any(name_of(codec)[0] == "sharding_indexed" for codec in chunk.codecs)
    if shards:  # each chunk of a shard may be longer packed, and the index comes on top
        most = limit + slack(most)
    if found.st_size > most:
        raise ValueError(f"the chunk {key} has {found.st_size} bytes and can have {most}")
    with open_regular(file) as stream:
        packed = stream.read(most + 1)
    return _decode(packed, chunk, limit)


def _stages(
    chunk: Chunk,
) -> tuple[list[Any], tuple[str, dict[str, Any]], list[tuple[str, dict[str, Any]]], Chunk]:
    """Sort codecs into those of values, the one that makes bytes, and those of bytes.

    Shape and type before each codec of values are noted with it, and the chunk behind the last is
    returned at the end.
    """
    shape, dtype = chunk.shape, chunk.dtype
    named = [name_of(codec) for codec in chunk.codecs]
    middle = next((i for i, (name, _) in enumerate(named) if name in SERIALIZERS), None)
    known = {*FILTERS, *UNPACKERS, *SERIALIZERS, "transpose"}
    strange = [name for name, _ in named if name not in known]
    if strange:
        raise UnknownCodec(", ".join(sorted(set(strange))))
    if middle is None:
        raise ValueError("no codec turns the values into bytes")
    before: list[Any] = []
    for name, config in named[:middle]:
        if name == "transpose":
            order = config.get("order")
            if not isinstance(order, list) or sorted(map(str, order)) != sorted(
                map(str, range(len(shape)))
            ):
                raise ValueError("the order of a transpose is none of the axes")
            before.append((name, tuple(order), shape, dtype))
            shape = tuple(shape[axis] for axis in order)
        elif name in FILTERS:
            if dtype.hasobject or dtype.kind not in NUMERIC_KINDS:
                raise ValueError(f"{name} is for numbers")
            decoded, stored = filter_dtypes(name, config, dtype)
            before.append((name, config, shape, decoded))
            dtype = stored
        elif name == "shuffle":  # version 2 calls it a filter
            named.insert(middle + 1, (name, config))
        else:
            raise ValueError(f"{name} comes before the values are bytes")
    after = named[middle + 1 :]
    if any(name not in UNPACKERS for name, _ in after):
        raise ValueError("a codec of values comes after the values are bytes")
    name, config = named[middle]
    if (name == "vlen-utf8") != dtype.hasobject:
        raise ValueError(f"{name} does not store values of type {dtype}")
    if name == "sharding_indexed":
        inner = _sizes(config.get("chunk_shape"), "the shape of a chunk in a shard", 1)
        if len(inner) != len(shape) or any(n % m for n, m in zip(shape, inner, strict=True)):
            raise ValueError(f"a shard of shape {shape} has chunks of shape {inner}")
        for part in _in_shard(config, replace(chunk, shape=shape, dtype=dtype)):
            _stages(part)
    return before, (name, config), after, replace(chunk, shape=shape, dtype=dtype)


def _in_shard(config: dict[str, Any], shard: Chunk) -> tuple[Chunk, Chunk]:
    """Return what a chunk in a shard holds, and what the index does."""
    inner = tuple(config["chunk_shape"])
    grid = tuple(n // m for n, m in zip(shard.shape, inner, strict=True))
    codecs, index_codecs = (tuple(config.get(name) or ()) for name in ("codecs", "index_codecs"))
    return (
        Chunk(inner, shard.dtype, shard.fill, codecs),
        Chunk((*grid, 2), np.dtype("<u8"), 0, index_codecs),
    )


SERIALIZERS = ("bytes", "vlen-utf8", "sharding_indexed")
"""What turns values into bytes."""


def _decode(packed: bytes, chunk: Chunk, limit: int) -> np.ndarray:
    """Undo all codecs of a chunk."""
    before, (name, config), after, stored = _stages(chunk)
    axis_order: Literal["C", "F"] = "F" if config.get("order") == "F" else "C"
    nbytes = size_of(stored.shape, stored.dtype)
    most = limit if stored.dtype.hasobject else nbytes
    if name == "sharding_indexed":
        most = limit + slack(nbytes)
    for position, (codec, settings) in reversed(list(enumerate(after))):
        # Only what lies between two codecs of bytes can be longer than the values themselves.
        packed = unpack(codec, settings, packed, most if position == 0 else slack(most))
    if name == "vlen-utf8":
        values = np.empty(math.prod(stored.shape), dtype=object)
        values[:] = decode_strings(packed, values.size)
        values = values.reshape(stored.shape)
    elif name == "sharding_indexed":
        values = _shard(packed, config, stored, limit)
    else:
        if len(packed) != nbytes:
            raise ValueError(f"a chunk has {len(packed)} bytes and must have {nbytes}")
        ends: Any = {"big": ">", "little": "<"}.get(str(config.get("endian")), "|")  # | as it is
        flat = np.frombuffer(packed, stored.dtype.newbyteorder(ends))
        values = flat.reshape(stored.shape, order=axis_order)
    for codec, settings, shape_before, dtype_before in reversed(before):
        if codec == "transpose":
            values = values.transpose(np.argsort(settings))
        else:
            flat = unfilter(codec, settings, values.ravel(axis_order), dtype_before)
            values = flat.reshape(shape_before, order=axis_order)
    return values


def _shard(content: bytes, config: dict[str, Any], shard: Chunk, limit: int) -> np.ndarray:
    """Put a shard together from the chunks in it, which its index finds."""
    inner, found = _in_shard(config, shard)
    checksums = sum(name_of(codec)[0] in ("crc32c", "crc32", "adler32") for codec in found.codecs)
    length = size_of(found.shape, found.dtype) + 4 * checksums
    if length > len(content):
        raise EOFError(f"a shard of {len(content)} bytes has no room for its index of {length}")
    at_start = config.get("index_location", "end") == "start"
    packed = content[:length] if at_start else content[-length:]
    index = _decode(packed, found, limit)
    lengths = index[..., 1][index[..., 0] != NO_CHUNK]
    if lengths.size and (int(lengths.max()) > len(content) or int(lengths.sum()) > len(content)):
        raise ValueError("the chunks of a shard are longer than the shard")

    def read(number: Index) -> np.ndarray | None:
        start, count = (int(value) for value in index[number])
        if start == NO_CHUNK:
            return None
        if start + count > len(content):
            raise EOFError("a chunk lies beyond the end of its shard")
        return _decode(content[start : start + count], inner, limit)

    def listing() -> Iterator[Index]:
        yield from zip(*np.nonzero(index[..., 0] != NO_CHUNK), strict=True)

    return gather(whole(shard.shape), inner.shape, inner.dtype, inner.fill, listing, read)
