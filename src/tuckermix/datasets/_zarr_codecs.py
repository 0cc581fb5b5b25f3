"""The codecs of Zarr chunks that are decoded here, each within a limit on what it gives.

A store names its codecs, and the libraries behind know some that run code (`pickle`) and some that
allocate whatever the packed bytes ask for. So only those of the tables below are known here, and
each looks at the size that the packed bytes declare before it unpacks them.
"""

from __future__ import annotations

import bz2
import lzma
import math
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tuckermix._archives import NUMERIC_KINDS
from tuckermix._optional import require
from tuckermix._reading import LZMA_MEMORY, inflate
from tuckermix.datasets._chunks import unshuffled

BLOSC_HEADER = 16
"""Bytes before the packed bytes of blosc: flags, then three sizes of four bytes each."""

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
"""The first bytes of a frame of zstd."""

GZIP_WBITS = 16 + zlib.MAX_WBITS
"""Says to zlib that a header of gzip comes first."""

CHECKSUM_BYTES = 4
"""Length of all checksums."""

Config = dict[str, Any]


class UnknownCodec(ValueError):
    """A codec that is not decoded here; its message is the name."""


def name_of(codec: Any) -> tuple[str, Config]:
    """Return name and settings of a codec, as either version of Zarr writes them."""
    if isinstance(codec, str):  # version 3 allows this where there are no settings
        return codec.removeprefix("numcodecs."), {}
    if not isinstance(codec, dict):
        raise ValueError(f"a codec is given as {type(codec).__name__}")
    if "id" in codec:
        name, config = codec["id"], codec
    else:
        name, config = codec.get("name"), codec.get("configuration") or {}
    if not isinstance(name, str) or not isinstance(config, dict):
        raise ValueError("a codec has no name, or settings that are none")
    return name.removeprefix("numcodecs."), config


def _plain_dtype(code: Any) -> np.dtype:
    """Return the dtype of a code, which must be one of real numbers."""
    if not isinstance(code, str):
        raise ValueError(f"a dtype is given as {type(code).__name__}")
    dtype = np.dtype(code)
    if dtype.kind not in NUMERIC_KINDS or dtype.shape:
        raise ValueError(f"the dtype {dtype} is none of real numbers")
    return dtype


# --- bytes to bytes -----------------------------------------------------------------------------


def unpack(name: str, config: Config, packed: bytes, limit: int) -> bytes:
    """Undo one codec that turns bytes into bytes.

    Parameters
    ----------
    name : str
        Its name.
    config : dict
        Its settings.
    packed : bytes
        What is stored.
    limit : int
        The most bytes that may come out.

    Returns
    -------
    content : bytes
        What was packed.
    """
    if name not in UNPACKERS:
        raise UnknownCodec(name)
    content = UNPACKERS[name](config, packed, limit)
    _check_length(len(content), limit)
    return content


def _check_length(length: int, limit: int) -> None:
    if length > limit:
        raise ValueError(f"a chunk claims {length} bytes and can have {limit}")


def _numcodecs() -> Any:
    return require("numcodecs", "Reading this Zarr store", "io")


def _lzma(config: Config, packed: bytes, limit: int) -> bytes:
    if config.get("format", lzma.FORMAT_XZ) not in (lzma.FORMAT_XZ, lzma.FORMAT_ALONE):
        raise UnknownCodec("lzma without a header")
    return _stream(lzma.LZMADecompressor(memlimit=LZMA_MEMORY), packed, limit)


def _stream(unpacker: Any, packed: bytes, limit: int) -> bytes:
    content = unpacker.decompress(packed, limit + 1)
    _check_length(len(content), limit)
    if not unpacker.eof:
        raise EOFError("the packed bytes end early")
    return content


def _blosc(config: Config, packed: bytes, limit: int) -> bytes:
    if len(packed) < BLOSC_HEADER:
        raise EOFError("a chunk is shorter than the header of blosc")
    length, block, stored = np.frombuffer(packed, "<u4", count=3, offset=4).tolist()
    # No block is longer than all of them, but for that of an empty chunk.
    _check_length(block, max(length, 1))
    _check_length(length, limit)
    if stored != len(packed):
        raise ValueError(f"a chunk of {len(packed)} bytes claims to have {stored}")
    return bytes(_numcodecs().blosc.decompress(packed))


def _zstd(config: Config, packed: bytes, limit: int) -> bytes:
    length = _zstd_length(packed)
    length = limit if length is None else length
    _check_length(length, limit)
    # With memory of our own to unpack into, nothing else in the chunk can ask for more.
    content = np.empty(length, dtype=np.uint8)
    _numcodecs().zstd.decompress(packed, content)
    return content.tobytes()


def _zstd_length(packed: bytes) -> int | None:
    """Read from a frame how long its content is; None where it does not say."""
    if not packed.startswith(ZSTD_MAGIC) or len(packed) < 6:
        raise ValueError("a chunk does not start like zstd")
    flags = packed[4]
    single = flags >> 5 & 1
    width = (single, 2, 4, 8)[flags >> 6]
    if width == 0:
        return None
    start = 5 + (1 - single) + (0, 1, 2, 4)[flags & 3]
    length = int.from_bytes(packed[start : start + width], "little")
    return length + 256 if width == 2 else length


def _lz4(config: Config, packed: bytes, limit: int) -> bytes:
    _check_length(int.from_bytes(packed[:4], "little"), limit)
    return bytes(_numcodecs().lz4.decompress(packed))


def _shuffle(config: Config, packed: bytes, limit: int) -> bytes:
    size = config.get("elementsize", 4)
    if type(size) is not int or size < 1:
        raise ValueError(f"elementsize of shuffle is {size!r}")
    return unshuffled(packed, size)


def _checksum(compute: Callable[[bytes], int] | None, place: str) -> Callable[..., bytes]:
    def check(config: Config, packed: bytes, limit: int) -> bytes:
        where = config.get("location", place)
        if len(packed) < CHECKSUM_BYTES or where not in ("start", "end"):
            raise ValueError("a chunk has no room for its checksum")
        if where == "start":
            said, content = packed[:CHECKSUM_BYTES], packed[CHECKSUM_BYTES:]
        else:
            said, content = packed[-CHECKSUM_BYTES:], packed[:-CHECKSUM_BYTES]
        if compute is not None and compute(content) != int.from_bytes(said, "little"):
            raise ValueError("a checksum does not fit its chunk")
        return content

    return check


def _crc32c(content: bytes) -> int:
    """Compute the checksum of Castagnoli, byte by byte where no compiled one is at hand."""
    try:
        import google_crc32c
    except ImportError:
        value = 0xFFFFFFFF
        for byte in content:
            value = CASTAGNOLI[(value ^ byte) & 0xFF] ^ value >> 8
        return value ^ 0xFFFFFFFF
    return int(google_crc32c.value(content))


def _castagnoli() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


CASTAGNOLI = _castagnoli()
"""The checksums of single bytes; 0x82F63B78 is the polynomial with its bits reversed."""

UNPACKERS: dict[str, Callable[[Config, bytes, int], bytes]] = {
    "gzip": lambda config, packed, limit: inflate(packed, limit, GZIP_WBITS),
    "zlib": lambda config, packed, limit: inflate(packed, limit),
    "bz2": lambda config, packed, limit: _stream(bz2.BZ2Decompressor(), packed, limit),
    "lzma": _lzma,
    "blosc": _blosc,
    "zstd": _zstd,
    "lz4": _lz4,
    "shuffle": _shuffle,
    "crc32": _checksum(zlib.crc32, "start"),
    "adler32": _checksum(zlib.adler32, "start"),
    "crc32c": _checksum(_crc32c, "end"),
}
"""What turns bytes into bytes."""


# --- values to values ---------------------------------------------------------------------------


def unfilter(name: str, config: Config, values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Undo one codec that turns values into as many other values.

    Parameters
    ----------
    name : str
        Its name.
    config : dict
        Its settings.
    values : ndarray of shape (n,)
        What is stored, of the type that `stored_dtype` gave.
    dtype : dtype
        The type of the values before.

    Returns
    -------
    values : ndarray of shape (n,)
        The values before.
    """
    with np.errstate(all="ignore"):  # damaged values may overflow, which harms nobody
        if name == "delta":
            return np.cumsum(values, dtype=dtype)
        if name == "fixedscaleoffset":
            return (values / float(config["scale"]) + float(config["offset"])).astype(dtype)
        return values.astype(dtype)  # rounding and conversions lose what they lose


FILTERS = ("delta", "fixedscaleoffset", "quantize", "bitround", "astype")
"""What turns values into values."""


def filter_dtypes(name: str, config: Config, dtype: np.dtype) -> tuple[np.dtype, np.dtype]:
    """Return the types of the values before and after one of `FILTERS`."""
    if name == "astype":
        return _plain_dtype(config.get("decode_dtype")), _plain_dtype(config.get("encode_dtype"))
    before = _plain_dtype(config["dtype"]) if "dtype" in config else dtype
    return before, _plain_dtype(config["astype"]) if config.get("astype") else before


def decode_strings(content: bytes, count: int) -> list[str]:
    """Read strings of any length: their number, then each with its length before it."""
    if int.from_bytes(content[:4], "little") != count:
        raise ValueError(f"a chunk of strings does not hold the {count} that it must")
    if len(content) < 4 * (count + 1):
        raise EOFError("a chunk of strings ends early")
    strings, start = [], 4
    for _ in range(count):
        length = int.from_bytes(content[start : start + 4], "little")
        start += 4 + length
        if start > len(content):
            raise EOFError("a chunk of strings ends early")
        strings.append(content[start - length : start].decode("utf-8"))
    return strings


def size_of(shape: tuple[int, ...], dtype: np.dtype) -> int:
    """Return the size of an array in bytes, however large."""
    return math.prod(shape) * dtype.itemsize
