import struct
import zlib

import numpy as np
import pytest
import scipy.io

from tuckermix.datasets import ReadError, read
from tuckermix.datasets._mat5 import entries, is_mat5


def save5(path, **arrays):
    scipy.io.savemat(path, arrays)


def save7(path, **arrays):
    scipy.io.savemat(path, arrays, do_compression=True)


@pytest.mark.parametrize("save", [save5, save7])
@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_scipy(tmp_path, save, seed):
    rng = np.random.default_rng(seed)
    arrays = {
        f"v{index}_{'n' * rng.integers(1, 30)}": rng.integers(
            0, 100, rng.integers(0, 5, rng.integers(2, 5))
        ).astype(rng.choice(["i1", "u2", "i4", "u8", "f4", "f8"]))
        for index in range(6)
    }
    save(tmp_path / "a.mat", **arrays)
    truth = scipy.io.loadmat(tmp_path / "a.mat")
    assert is_mat5(tmp_path / "a.mat")
    variables = list(entries(tmp_path / "a.mat", 10**6))
    assert [variable.name for variable in variables] == list(arrays)
    for variable in variables:
        values = variable.load()
        assert values.dtype == truth[variable.name].dtype
        assert np.array_equal(values, truth[variable.name])


def test_big_endian(tmp_path):
    values = np.arange(6.0).reshape(2, 3)
    matrix = struct.pack(">IIII", 6, 8, 6, 0) + struct.pack(">IIii", 5, 8, 2, 3)
    matrix += struct.pack(">II", 1 << 16 | 1, ord("X") << 24)
    matrix += struct.pack(">II", 9, 48) + values.T.astype(">f8").tobytes()
    head = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI"
    (tmp_path / "a.mat").write_bytes(head + struct.pack(">II", 14, len(matrix)) + matrix)
    assert np.array_equal(scipy.io.loadmat(tmp_path / "a.mat")["X"], values)
    assert np.array_equal(read(tmp_path / "a.mat").X, values)


def test_bombs(tmp_path):
    save7(tmp_path / "a.mat", X=np.zeros((1000, 1000)))
    with pytest.raises(ReadError, match=r"'X' \(1000, 1000\) float64 would take 8000000 bytes"):
        read(tmp_path / "a.mat", max_bytes=1_000_000)
    # A small declared shape before values without end.
    head = (tmp_path / "a.mat").read_bytes()[:128]
    matrix = struct.pack("<II", 14, 2**31) + struct.pack("<IIII", 6, 8, 6, 0)
    matrix += struct.pack("<IIii", 5, 8, 2, 3) + struct.pack("<HHI", 1, 1, ord("X"))
    values = struct.pack("<II", 9, 50_000_000) + b"\0" * 50_000_000
    for content, message in (
        (values, "an element of 50000000 bytes passes the limit of 4000000"),
        (struct.pack("<II", 9, 48) + b"\0" * 50_000_000, "more is packed than the values of"),
        (struct.pack("<II", 9, 40) + b"\0" * 40, r"'X' has 5 values for \(2, 3\)"),
    ):
        packed = zlib.compress(matrix + content)
        (tmp_path / "b.mat").write_bytes(head + struct.pack("<II", 15, len(packed)) + packed)
        with pytest.raises(ReadError, match=rf"b\.mat: it is damaged .*{message}"):
            read(tmp_path / "b.mat", max_bytes=4_000_000)
    save5(tmp_path / "c.mat", X=np.zeros((1000, 100)))
    with pytest.raises(ReadError, match=r"'X' \(1000, 100\) float64 would take 800000 bytes"):
        read(tmp_path / "c.mat", max_bytes=799_999)


def test_a_checksum_that_fails(tmp_path):
    save7(tmp_path / "a.mat", X=np.random.default_rng(0).random((20, 20)))
    whole = bytearray((tmp_path / "a.mat").read_bytes())
    whole[-3] ^= 1
    (tmp_path / "a.mat").write_bytes(whole)
    with pytest.raises(ReadError, match=r"a\.mat: it is damaged .*incorrect data check"):
        read(tmp_path / "a.mat")


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (struct.pack("<IIII", 6, 4, 6, 0), "the flags of a matrix have 4 bytes"),
        (struct.pack("<IIIIIIii", 6, 8, 6, 0, 5, 6, 2, 3), "the shape of a matrix has 6 bytes"),
        (
            struct.pack("<IIIIIIii", 6, 8, 6, 0, 5, 8, -2, 3) + b"\0" * 8,
            "the shape .* is impossible",
        ),
        (
            struct.pack("<IIIIIIii", 6, 8, 6, 0, 5, 8, 2, 3) + struct.pack("<HHI", 1, 9, 0),
            "a short",
        ),
        (struct.pack("<IIIIII", 6, 8, 6, 0, 5, 800), "an element of 800 bytes passes the limit"),
        (struct.pack("<IIII", 6, 8, 6, 0), "8 bytes are needed and the element has 0 more"),
    ],
)
def test_impossible_heads(tmp_path, matrix, message):
    head = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
    (tmp_path / "a.mat").write_bytes(head + struct.pack("<II", 14, len(matrix)) + matrix)
    with pytest.raises(ReadError, match=f"a.mat: it is damaged .*{message}"):
        read(tmp_path / "a.mat")
    packed = zlib.compress(struct.pack("<II", 7, 0))
    (tmp_path / "a.mat").write_bytes(head + struct.pack("<II", 15, len(packed)) + packed)
    with pytest.raises(ReadError, match="a packed element has the unknown type 7"):
        read(tmp_path / "a.mat")
    (tmp_path / "a.mat").write_bytes(head + struct.pack("<II", 14, 1000) + matrix)
    with pytest.raises(ReadError, match="an element of 1000 bytes at byte 128 is cut off"):
        read(tmp_path / "a.mat")


def test_values_of_an_unknown_type(tmp_path):
    save5(tmp_path / "a.mat", X=np.ones((3, 3)) / 3)
    whole = (tmp_path / "a.mat").read_bytes()
    start = whole.index(struct.pack("<II", 9, 72))
    (tmp_path / "a.mat").write_bytes(
        whole[:start] + struct.pack("<II", 77, 72) + whole[start + 8 :]
    )
    with pytest.raises(ReadError, match="values of 'X' have the unknown type 77"):
        read(tmp_path / "a.mat")


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        (slice(0, -4), "the packed bytes end early"),
        (slice(0, 60), "bytes more are needed than were"),
    ],
)
def test_packed_bytes_that_end_early(tmp_path, cut, message):
    save7(tmp_path / "a.mat", X=np.random.default_rng(0).random((9, 9)))
    whole = (tmp_path / "a.mat").read_bytes()
    packed = whole[136:][cut]
    (tmp_path / "a.mat").write_bytes(whole[:128] + struct.pack("<II", 15, len(packed)) + packed)
    with pytest.raises(ReadError, match=message):
        read(tmp_path / "a.mat")


def test_a_stream_that_ends_before_the_values(tmp_path):
    save7(tmp_path / "a.mat", X=np.random.default_rng(0).random((9, 9)))
    whole = (tmp_path / "a.mat").read_bytes()
    packed = zlib.compress(zlib.decompress(whole[136:])[:200]) + b"more"
    (tmp_path / "a.mat").write_bytes(whole[:128] + struct.pack("<II", 15, len(packed)) + packed)
    with pytest.raises(ReadError, match="bytes more are needed than were packed"):
        read(tmp_path / "a.mat")
