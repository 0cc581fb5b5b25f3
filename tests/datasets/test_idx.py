import gzip
import struct

import numpy as np
import pytest

from tuckermix.datasets import ReadError, read


def idx(array):
    codes = {"u1": 8, "i1": 9, "i2": 11, "i4": 12, "f4": 13, "f8": 14}
    head = struct.pack(">HBB", 0, codes[array.dtype.str[1:]], array.ndim)
    head += struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(array.dtype.newbyteorder(">")).tobytes()


def write(path, array):
    content = idx(array)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


@pytest.fixture
def X():
    return np.random.default_rng(0).integers(0, 256, (9, 5, 4), dtype=np.uint8)


@pytest.mark.parametrize(
    "names",
    [
        ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
        ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
        ("t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte.gz"),
    ],
)
def test_labels_are_found_beside_the_images(tmp_path, X, names):
    y = np.arange(9, dtype=np.uint8)
    write(tmp_path / names[0], X)
    assert read(tmp_path / names[0]).labels is None
    write(tmp_path / names[1], y)
    data = read(tmp_path / names[0])
    assert np.array_equal(data.X, X)
    assert np.array_equal(data.labels, y)
    assert read(tmp_path / names[0], label_key=False).labels is None
    assert np.array_equal(read(tmp_path / names[0], label_key=names[1]).labels, y)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "f4", "f8"])
def test_other_types_and_names(tmp_path, X, dtype):
    write(tmp_path / "some.bin", (X // 2).astype(dtype))
    data = read(tmp_path / "some.bin")
    assert np.array_equal(data.X, X // 2)
    assert data.X.dtype == np.dtype(dtype)


def test_a_folder_is_one_dataset_with_the_training_part_first(tmp_path, X):
    for part, value in (("t10k", 1), ("train", 0)):
        write(tmp_path / f"{part}-images-idx3-ubyte.gz", X + np.uint8(value))
        write(tmp_path / f"{part}-labels-idx1-ubyte.gz", np.full(9, value, np.uint8))
    data = read(tmp_path)
    assert data.labels.tolist() == [0] * 9 + [1] * 9
    assert np.array_equal(data.X, np.concatenate([X, X + np.uint8(1)]))


def test_refused(tmp_path, X):
    path = tmp_path / "a-images-idx3-ubyte"
    whole = idx(X)
    for content, message in (
        (whole[:-1], r"it is shorter than its header says \(shape \(9, 5, 4\)\). Get"),
        (whole + b"\0", "it is longer than its header says"),
        (whole[:10], "it is truncated within its header"),
        (b"\1\1" + whole, "it does not start like an idx file. Get the file again; MNIST"),
        (whole[:3], "it does not start like an idx file"),
    ):
        path.write_bytes(content)
        with pytest.raises(ReadError, match=f"a-images-idx3-ubyte: {message}"):
            read(path)
    path.write_bytes(whole)
    with pytest.raises(ReadError, match=r"there is no file 'x' beside it. For idx files label_key"):
        read(path, label_key="x")
    packed = tmp_path / "b-images-idx3-ubyte.gz"
    packed.write_bytes(gzip.compress(whole)[:-20])
    with pytest.raises(ReadError, match=r"b-images-idx3-ubyte\.gz: it is damaged"):
        read(packed)
    packed.write_bytes(gzip.compress(idx(np.zeros((1, 1, 1), np.uint8))[:4] + b"\xff" * 12))
    with pytest.raises(ReadError, match=r"would take 7922816.* bytes in memory, and the limit is"):
        read(packed)
    path.write_bytes(whole)
    write(tmp_path / "a-labels-idx1-ubyte", np.zeros(8, np.uint8))
    with pytest.raises(ReadError, match="'labels' has 8 labels, but 'images'"):
        read(path)


def test_a_folder_of_unlike_parts(tmp_path, X):
    for part, images in (("train", X), ("t10k", X[:, 1:])):
        write(tmp_path / f"{part}-images-idx3-ubyte", images)
        write(tmp_path / f"{part}-labels-idx1-ubyte", np.zeros(9, np.uint8))
    with pytest.raises(ReadError, match=r"different shapes: \(4, 4\), \(5, 4\). Read them one by"):
        read(tmp_path)


def test_a_damaged_package_without_a_name_that_tells(tmp_path):
    (tmp_path / "some.bin").write_bytes(b"\x1f\x8b no package")
    with pytest.raises(ReadError, match=r"some\.bin: its kind is not known"):
        read(tmp_path / "some.bin")


def test_a_folder_with_one_part(tmp_path, X):
    write(tmp_path / "train-images-idx3-ubyte", X)
    write(tmp_path / "train-labels-idx1-ubyte", np.zeros(9, np.uint8))
    assert np.array_equal(read(tmp_path).X, X)
