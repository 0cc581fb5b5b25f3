import io
import zipfile

import numpy as np
import pytest

from tuckermix.datasets import ReadError, read


class Bomb:
    """Unpickling this would end the process with a status that no test survives."""

    def __reduce__(self):
        import os

        return os._exit, (77,)


@pytest.mark.parametrize("dtype", ["u1", "?", "<i4", ">i2", "f4", ">f8", "f2"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_of_any_type_and_order(tmp_path, dtype, order):
    X = np.asarray(np.random.default_rng(0).integers(0, 2, (6, 4, 3)), dtype=dtype, order=order)
    np.save(tmp_path / "a.npy", X)
    data = read(tmp_path / "a.npy")
    assert np.array_equal(data.X, X)
    assert data.X.dtype == np.dtype(dtype).newbyteorder("=")
    assert data.X.flags.c_contiguous
    assert data.labels is data.names is None
    assert data.name == "a.npy"
    for axis in (1, -1):
        assert np.array_equal(read(tmp_path / "a.npy", sample_axis=axis).X, np.moveaxis(X, axis, 0))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("axis", [0, 2])
def test_npy_stays_on_disk(tmp_path, order, axis):
    X = np.asarray(np.random.default_rng(0).standard_normal((6, 4, 5)), order=order)
    np.save(tmp_path / "a.npy", X)
    mapped = read(tmp_path / "a.npy", lazy=True, sample_axis=axis).X
    assert isinstance(mapped, np.memmap)
    assert np.array_equal(mapped, np.moveaxis(X, axis, 0))
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    chunked = read(tmp_path / "a.npy", chunks=2, sample_axis=axis).X
    assert isinstance(chunked, da.Array)
    assert chunked.chunks[0][0] == 2
    assert all(len(sizes) == 1 for sizes in chunked.chunks[1:])
    assert np.array_equal(chunked.compute(scheduler="synchronous"), np.moveaxis(X, axis, 0))


def test_npy_lazy_only_where_needed(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((10, 10)))
    assert isinstance(read(tmp_path / "a.npy", lazy="auto", max_bytes=799).X, np.memmap)
    assert not isinstance(read(tmp_path / "a.npy", lazy="auto", max_bytes=800).X, np.memmap)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_by_common_names(tmp_path, save):
    X = np.random.default_rng(0).integers(0, 256, (7, 5, 4), dtype=np.uint8)
    y = np.arange(7) % 3
    for names in (("images", "labels"), ("X", "y"), ("fea", "gnd"), ("data", "target")):
        save(tmp_path / "a.npz", **dict(zip(names, (X, y), strict=True)))
        data = read(tmp_path / "a.npz")
        assert np.array_equal(data.X, X)
        assert np.array_equal(data.labels, y)
        assert data.labels.dtype == np.int64


def test_npz_by_given_names_and_axis(tmp_path):
    rng = np.random.default_rng(0)
    a, b, c = rng.random((5, 4, 6)), rng.random((5, 4)), np.array(list("nynyny"))
    np.savez(tmp_path / "a.npz", first=a, second=b, answer=c)
    data = read(tmp_path / "a.npz", key="first", label_key="answer")
    assert np.array_equal(data.X, np.moveaxis(a, 2, 0))  # the axis that is as long as the labels
    assert data.labels.tolist() == [0, 1] * 3
    assert data.class_names == ["n", "y"]
    with pytest.raises(
        ReadError, match=r"a\.npz: it is not clear which .* Set key to one of these"
    ):
        read(tmp_path / "a.npz")
    with pytest.raises(ReadError, match=r"holds no array named 'third'. Set key to .*'first'"):
        read(tmp_path / "a.npz", key="third")
    with pytest.raises(ReadError, match=r"holds no array named 'third'. Set label_key to"):
        read(tmp_path / "a.npz", key="first", label_key="third")


def test_a_pickle_is_never_opened(tmp_path):
    bombs = np.array([Bomb(), Bomb()], dtype=object)
    np.save(tmp_path / "a.npy", bombs, allow_pickle=True)
    with pytest.raises(ReadError, match=r"a\.npy: its array holds pickled Python objects, which"):
        read(tmp_path / "a.npy")
    with pytest.raises(ReadError, match="pickled Python objects"):
        read(tmp_path / "a.npy", lazy=True)
    np.savez(tmp_path / "a.npz", images=bombs, allow_pickle=True)
    with pytest.raises(ReadError, match=r"a\.npz: 'images' holds pickled .* Store the samples as"):
        read(tmp_path / "a.npz", key="images")
    np.savez(tmp_path / "a.npz", images=np.zeros((2, 2)), labels=bombs)
    with pytest.raises(ReadError, match=r"the labels 'labels' are pickled .* label_key=False"):
        read(tmp_path / "a.npz")
    assert read(tmp_path / "a.npz", label_key=False).X.shape == (2, 2)
    (tmp_path / "b.npz").write_bytes(b"\x80\x04c__builtin__\nprint\n")
    with pytest.raises(ReadError, match=r"b\.npz: it is damaged or not what its name says"):
        read(tmp_path / "b.npz")


def write_member(path, header, body, declared=None):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, header)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("images.npy", stream.getvalue() + body)


def test_a_zip_bomb_is_refused_before_unpacking(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", images=np.zeros((1000, 100, 100), np.uint8))
    assert (tmp_path / "a.npz").stat().st_size < 20_000
    with pytest.raises(ReadError, match=r"'images' \(1000, 100, 100\) uint8 would take 10000000 b"):
        read(tmp_path / "a.npz", max_bytes=9_999_999)
    assert read(tmp_path / "a.npz", max_bytes=10_000_000).n_samples == 1000
    # A header that claims more than is stored allocates nothing either.
    header = {"shape": (10**6, 10**6), "fortran_order": False, "descr": "<f8"}
    write_member(tmp_path / "b.npz", header, b"\0" * 8)
    with pytest.raises(ReadError, match=r"b\.npz: 'images' .* needs 8000000000128 bytes, and \d+ "):
        read(tmp_path / "b.npz")
    header["shape"] = (-1, 4)
    write_member(tmp_path / "c.npz", header, b"")
    with pytest.raises(ReadError, match=r"its shape \(-1, 4\) is impossible. Get the file again"):
        read(tmp_path / "c.npz")


def test_truncated_files(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((10, 10)))
    whole = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(whole[:-1])
    with pytest.raises(
        ReadError, match=r"it is truncated: its array .* needs 928 bytes, and .* 927"
    ):
        read(tmp_path / "a.npy")
    (tmp_path / "a.npy").write_bytes(whole[:20])
    with pytest.raises(ReadError, match=r"a\.npy: it is damaged .* Get the file again"):
        read(tmp_path / "a.npy")
    np.savez(tmp_path / "a.npz", images=np.ones((10, 10)))
    whole = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(whole[:-30])
    with pytest.raises(ReadError, match=r"a\.npz: it is damaged .*BadZipFile"):
        read(tmp_path / "a.npz")
    spoilt = bytearray(whole)
    spoilt[300] ^= 1
    (tmp_path / "a.npz").write_bytes(bytes(spoilt))
    with pytest.raises(ReadError, match=r"a\.npz, images\.npy: it is damaged .*CRC"):
        read(tmp_path / "a.npz")


def test_other_refusals(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((4, 4)))
    for option in ({"key": "x"}, {"label_key": "y"}):
        with pytest.raises(
            ReadError, match=r"one array without a name. Leave out key and label_key"
        ):
            read(tmp_path / "a.npy", **option)
    content = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "b.npy").write_bytes(content[:6] + b"\x03\x00" + content[8:])
    with pytest.raises(ReadError, match=r"b\.npy: it is damaged"):
        read(tmp_path / "b.npy")
    with zipfile.ZipFile(tmp_path / "c.npz", "w") as archive:
        for index in range(23_000):
            archive.writestr(str(index), b"")
    with pytest.raises(ReadError, match=r"its table of contents has \d+ bytes, more than"):
        read(tmp_path / "c.npz")


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_versions_of_the_format(tmp_path, version):
    X = np.arange(6.0).reshape(2, 3)
    with open(tmp_path / "a.npy", "wb") as stream:
        np.lib.format.write_array(stream, X, version=version)
    assert np.array_equal(read(tmp_path / "a.npy").X, X)


def test_a_folder_of_arrays(tmp_path):
    X = np.random.default_rng(0).random((4, 5, 2, 6))
    for index, sample in enumerate(X):
        folder = tmp_path / ("a" if index < 2 else "b")
        folder.mkdir(exist_ok=True)
        np.save(folder / f"{index}.npy", np.asfortranarray(sample).astype(">f8"))
    data = read(tmp_path)
    assert np.array_equal(data.X, X)
    assert data.class_names == ["a", "b"]
    assert data.extra["kind"] == "auto"
    moved = read(tmp_path, axes="YCX", channels=1)
    assert np.array_equal(moved.X, X[:, :, 1])
    assert read(tmp_path, axes="YTX").extra["kind"] == "video"
    with pytest.raises(ReadError, match="axes='YX' names 2 axes, and it has 3"):
        read(tmp_path, axes="YX")
    with pytest.raises(ReadError, match="size and grey cannot be applied to stored arrays"):
        read(tmp_path, size=3, grey=True)


def test_arrays_of_a_folder_that_cannot_be(tmp_path):
    np.save(tmp_path / "a.npy", np.array(["text"]))
    with pytest.raises(ReadError, match="and samples are arrays of real numbers"):
        read(tmp_path)
    np.save(tmp_path / "a.npy", np.zeros(100))
    with pytest.raises(ReadError, match=r"its array .* would take 800 bytes in memory, and"):
        read(tmp_path, max_bytes=799)
    whole = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(whole[:-1])
    with pytest.raises(ReadError, match=r"it is truncated: its array .* needs 928 bytes"):
        read(tmp_path)
