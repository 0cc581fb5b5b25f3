import lzma

import numpy as np
import pytest

from tuckermix.datasets import _zarr_codecs
from tuckermix.datasets._zarr_codecs import (
    UnknownCodec,
    decode_strings,
    filter_dtypes,
    name_of,
    unfilter,
    unpack,
)

numcodecs = pytest.importorskip("numcodecs", reason="numcodecs is not installed")

PACKERS = ("gzip", "zlib", "bz2", "lzma", "blosc", "zstd", "lz4", "shuffle", "crc32", "adler32")


@pytest.mark.parametrize("name", PACKERS)
@pytest.mark.parametrize("size", [40, 80_004])
def test_packed_bytes_come_back_up_to_the_limit(rng, name, size):
    content = rng.integers(0, 9, size, dtype=np.uint8).tobytes()
    packed = bytes(numcodecs.get_codec({"id": name}).encode(content))
    assert unpack(name, {}, packed, size) == content
    with pytest.raises(ValueError, match=r"more than the expected|a chunk claims \d+ bytes"):
        unpack(name, {}, packed, size - 1)


@pytest.mark.parametrize("name", ["blosc", "zstd", "lz4", "crc32", "crc32c", "bz2", "lzma"])
def test_short_and_wrong_bytes(name):
    for content in (b"", b"abc", b"nothing that was ever packed"):
        with pytest.raises((ValueError, EOFError, OSError, RuntimeError, lzma.LZMAError)):
            unpack(name, {}, content, 100)


def test_sizes_that_blosc_claims():
    packed = bytearray(numcodecs.Blosc().encode(bytes(4000)))
    with pytest.raises(ValueError, match="claims to have"):
        unpack("blosc", {}, bytes(packed) + b"x", 4000)
    packed[8:12] = (2**31).to_bytes(4, "little")
    with pytest.raises(ValueError, match="a chunk claims 2147483648 bytes and can have 4000"):
        unpack("blosc", {}, bytes(packed), 4000)


def test_xz_without_a_header():
    with pytest.raises(UnknownCodec, match="lzma without a header"):
        unpack("lzma", {"format": lzma.FORMAT_RAW}, b"x", 9)


@pytest.mark.parametrize("compiled", [True, False])
def test_the_checksum_of_castagnoli(monkeypatch, compiled):
    if compiled:
        pytest.importorskip("google_crc32c")
    else:
        monkeypatch.setitem(__import__("sys").modules, "google_crc32c", None)
    # The check value of the catalogue of checksums.
    assert _zarr_codecs._crc32c(b"123456789") == 0xE3069283
    assert unpack("crc32c", {}, b"123456789" + (0xE3069283).to_bytes(4, "little"), 9)
    with pytest.raises(ValueError, match="a checksum does not fit its chunk"):
        unpack("crc32c", {}, b"123456780" + (0xE3069283).to_bytes(4, "little"), 9)


@pytest.mark.parametrize(
    "config",
    [
        {"id": "delta", "dtype": "<i4"},
        {"id": "delta", "dtype": "<f8", "astype": "<f4"},
        {"id": "fixedscaleoffset", "dtype": "<f8", "astype": "<i2", "scale": 10, "offset": 5},
        {"id": "quantize", "dtype": "<f8", "astype": "<f4", "digits": 3},
        {"id": "astype", "decode_dtype": "<f8", "encode_dtype": "<f4"},
    ],
    ids=str,
)
def test_filters_agree_with_the_library(rng, config):
    values = rng.integers(0, 99, 60).astype(config.get("dtype", "<f8"))
    codec = numcodecs.get_codec(dict(config))
    before, after = filter_dtypes(config["id"], config, values.dtype)
    stored = np.frombuffer(codec.encode(values), dtype=after)
    assert before == values.dtype
    assert np.array_equal(
        unfilter(config["id"], config, stored, before), codec.decode(stored.copy())
    )


def test_strings():
    content = bytes(numcodecs.VLenUTF8().encode(np.array(["a", "", "äö"], dtype=object)))
    assert decode_strings(content, 3) == ["a", "", "äö"]
    with pytest.raises(ValueError, match="a chunk of strings does not hold the 4 that it must"):
        decode_strings(content, 4)
    for cut in (10, len(content) - 1):
        with pytest.raises(EOFError, match="a chunk of strings ends early"):
            decode_strings(content[:cut], 3)


def test_names():
    assert name_of("bytes") == ("bytes", {})
    assert name_of({"name": "numcodecs.zlib", "configuration": {"level": 1}})[0] == "zlib"
    with pytest.raises(ValueError, match="a codec is given as int"):
        name_of(3)
    with pytest.raises(ValueError, match="a codec has no name, or settings that are none"):
        name_of({"name": 3})
    with pytest.raises(UnknownCodec, match="pickle"):
        unpack("pickle", {}, b"", 9)
    with pytest.raises(ValueError, match="elementsize of shuffle is 0"):
        unpack("shuffle", {"elementsize": 0}, b"", 9)
    with pytest.raises(ValueError, match="the dtype object is none of real numbers"):
        filter_dtypes("delta", {"dtype": "O"}, np.dtype("f8"))
    with pytest.raises(ValueError, match="a dtype is given as NoneType"):
        filter_dtypes("astype", {}, np.dtype("f8"))
