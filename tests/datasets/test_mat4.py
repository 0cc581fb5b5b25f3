import io
import struct

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from tuckermix.datasets import ReadError, read


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "i2", "u2", "u1"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_matrices_of_both_byte_orders(tmp_path, dtype, order):
    X = np.random.default_rng(0).integers(0, 99, (6, 4)).astype(order + dtype)
    kind = 1000 * (order == ">") + 10 * ["f8", "f4", "i4", "i2", "u2", "u1"].index(dtype)
    content = b""
    for name, value in (("fea", X), ("gnd", np.arange(6).astype(order + dtype)[:, None])):
        head = struct.pack(f"{order}5i", kind, *value.shape, 0, len(name) + 1)
        content += head + name.encode() + b"\0" + value.tobytes("F")
    (tmp_path / "a.mat").write_bytes(content)
    expected = scipy.io.loadmat(io.BytesIO(content))["fea"]
    data = read(tmp_path / "a.mat")
    assert np.array_equal(data.X, X)
    assert np.array_equal(data.X, expected)
    assert data.X.dtype == np.dtype(dtype)
    assert data.labels.tolist() == [0, 1, 2, 3, 4, 5]


def test_what_is_not_numeric(tmp_path):
    arrays = {"t": "text", "z": np.ones((2, 2), complex), "s": scipy.sparse.csc_matrix(np.eye(3))}
    scipy.io.savemat(tmp_path / "a.mat", arrays, format="4")
    for name, kind in (("t", "char"), ("z", "complex array"), ("s", "sparse")):
        with pytest.raises(ReadError, match=f"'{name}' holds a MATLAB {kind}, and samples are"):
            read(tmp_path / "a.mat", key=name)


def test_the_compiled_reader_is_never_reached(tmp_path, monkeypatch):
    """A version 5 file with a spoilt byte order mark once went to SciPy and ended the process."""
    scipy.io.savemat(tmp_path / "a.mat", {"X": np.random.default_rng(0).random((9, 7))})
    whole = (tmp_path / "a.mat").read_bytes()

    def reached(*args, **kwargs):
        raise AssertionError("SciPy was asked to read")

    monkeypatch.setattr(scipy.io, "whosmat", reached)
    monkeypatch.setattr(scipy.io, "loadmat", reached)
    for mark in (b"\0\0", b"IN", b"XM", b"mi", b"\xff\xff", b"II"):
        for at in range(128, len(whole), 8):
            spoilt = bytearray(whole)
            spoilt[126:128] = mark
            spoilt[at] ^= 0xFF
            (tmp_path / "a.mat").write_bytes(spoilt)
            with pytest.raises(ReadError, match="start no matrix, in no version of MATLAB's"):
                read(tmp_path / "a.mat")


def test_lengths_are_compared_with_the_file(tmp_path, monkeypatch):
    def save(*numbers, rest=b"X\0"):
        (tmp_path / "a.mat").write_bytes(struct.pack("<5i", *numbers) + rest)

    for numbers in [(0, 2**30, 2**30, 0, 2), (0, 2, 2, 0, 2)]:
        save(*numbers)
        with pytest.raises(ReadError, match=r"a matrix at byte 0 needs \d+ bytes and the file has"):
            read(tmp_path / "a.mat")
    for numbers in [
        (0, -1, 2, 0, 2),
        (0, 2, 2, 2, 2),
        (0, 2, 2, 0, 0),
        (0, 2, 2, 0, 300),
        (60, 2, 2, 0, 2),
        (3, 2, 2, 0, 2),
        (2000, 2, 2, 0, 2),
        (100, 2, 2, 0, 2),
    ]:
        save(*numbers)
        with pytest.raises(ReadError, match="the bytes at 0 start no matrix"):
            read(tmp_path / "a.mat")
    save(50, 1, 1, 0, 2, rest=b"X\0\0" + 9 * (struct.pack("<5i", 50, 1, 1, 0, 2) + b"X\0\0"))
    monkeypatch.setattr("tuckermix.datasets._mat4.MAX_ELEMENTS", 9)
    with pytest.raises(ReadError, match="it has more than 9 variables"):
        read(tmp_path / "a.mat")
