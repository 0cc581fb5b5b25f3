import io
import struct
import zipfile

import numpy as np
import pytest

from tuckermix import _archives
from tuckermix._archives import array_header, open_archive, zip_entries
from tuckermix.datasets import ReadError, read


def test_arrays_of_an_archive(tmp_path, rng):
    arrays = {"a": rng.random((3, 4)), "b": np.asfortranarray(rng.random((4, 2)))}
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", **arrays)
        with open_archive(tmp_path / "a.npz") as archive:
            entries = {entry.name: entry for entry in zip_entries("a.npz", archive)}
            assert {name: entry.nbytes for name, entry in entries.items()} == {"a": 96, "b": 64}
            for name, array in arrays.items():
                assert np.array_equal(entries[name].load(), array)


def test_a_header_that_claims_much_is_not_unpacked(tmp_path):
    """Four gigabytes of zeros behind a header of that length pack into a few megabytes."""
    content = b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1) + bytes(10**6)
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", content)
    with pytest.raises(ReadError, match=r"X.npy: it is damaged .* expected 4294967295 bytes"):
        read(tmp_path / "a.npz")
    stream = io.BytesIO(content)
    with pytest.raises(ValueError, match="expected 4294967295 bytes"):
        array_header(stream)
    assert stream.tell() == 10_000


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_other_ways_of_packing_are_refused(tmp_path, method):
    stream = io.BytesIO()
    np.save(stream, np.ones((3, 3)))
    with zipfile.ZipFile(tmp_path / "a.npz", "w", method) as archive:
        archive.writestr("X.npy", stream.getvalue())
    with pytest.raises(ReadError, match=r"'X.npy' is packed in a way that NumPy does not use"):
        read(tmp_path / "a.npz")


def test_a_long_table_of_contents_is_not_read(tmp_path, monkeypatch):
    np.savez(tmp_path / "a.npz", X=np.ones((3, 3)))
    whole = (tmp_path / "a.npz").read_bytes()
    end = whole.rindex(b"PK\x05\x06")
    with monkeypatch.context() as patch:
        patch.setattr(_archives, "MAX_DIRECTORY", 40)
        with pytest.raises(ReadError, match=r"its table of contents has \d+ bytes, more than 40"):
            read(tmp_path / "a.npz")
    for length in (2**20 + 1, 2**30):
        long = bytearray(whole)
        long[end + 12 : end + 16] = struct.pack("<I", length)
        wide = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, length, 0)
        locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, end, 1)
        for content in (long, whole[:end] + wide + locator + whole[end:]):
            (tmp_path / "a.npz").write_bytes(content)
            with pytest.raises(ReadError, match=r"its table of contents has|damaged"):
                read(tmp_path / "a.npz")
    (tmp_path / "a.npz").write_bytes(b"no archive")
    with pytest.raises(ReadError, match=r"damaged .*BadZipFile"):
        read(tmp_path / "a.npz")
