import numpy as np
import pytest
import scipy.io
import scipy.sparse

from tuckermix.datasets import ReadError, read

h5py = pytest.importorskip("h5py", reason="h5py is not installed")


def save73(path, **arrays):
    """Write arrays as MATLAB 7.3 does: reversed axes, its class as an attribute, its header."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in arrays.items():
            item = file.create_dataset(name, data=np.asarray(value).T, chunks=True)
            item.attrs["MATLAB_class"] = np.bytes_("double")
        file.create_group("#refs#").create_dataset("a", data=np.zeros((9, 9)))
    with open(path, "r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")


def save5(path, **arrays):
    scipy.io.savemat(path, arrays)


def save7(path, **arrays):
    scipy.io.savemat(path, arrays, do_compression=True)


ALL = pytest.mark.parametrize("save", [save5, save7, save73])


@ALL
def test_flat_images_are_stored_column_by_column(tmp_path, save):
    images = np.random.default_rng(0).random((6, 4, 3))
    fea = images.transpose(0, 2, 1).reshape(6, 12)  # what MATLAB's X(i, :) = I(:)' gives
    save(tmp_path / "a.mat", fea=fea, gnd=np.arange(1, 7)[:, None])
    data = read(tmp_path / "a.mat", sample_shape=(4, 3))
    assert np.array_equal(data.X, images)
    assert data.labels.tolist() == [1, 2, 3, 4, 5, 6]
    assert np.array_equal(read(tmp_path / "a.mat").X, fea)


@ALL
def test_stacks_have_their_samples_last(tmp_path, save):
    stack = np.random.default_rng(0).random((4, 3, 5))
    save(tmp_path / "a.mat", faces=stack)
    assert np.array_equal(read(tmp_path / "a.mat").X, stack.transpose(2, 0, 1))
    assert np.array_equal(read(tmp_path / "a.mat", sample_axis=1).X, stack.transpose(1, 0, 2))
    save(tmp_path / "a.mat", faces=stack, labels=np.arange(4)[None])
    assert np.array_equal(read(tmp_path / "a.mat").X, stack)


def test_version_73_stays_on_disk(tmp_path):
    pytest.importorskip("dask", reason="Dask is not installed")
    stack = np.random.default_rng(0).random((4, 3, 5))
    save73(tmp_path / "a.mat", faces=stack)
    lazy = read(tmp_path / "a.mat", lazy=True, chunks=2).X
    assert lazy.chunks == ((2, 2, 1), (4,), (3,))
    assert np.array_equal(lazy.compute(scheduler="synchronous"), stack.transpose(2, 0, 1))


def test_integers_and_logicals_keep_their_type(tmp_path):
    rng = np.random.default_rng(0)
    dtypes = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "?")
    for save, some in ((save5, dtypes), (save7, ("i2", "?"))):
        for dtype in some:
            X = rng.integers(0, 2, (3, 2)).astype(dtype)
            save(tmp_path / "a.mat", X=X)
            found = read(tmp_path / "a.mat").X
            assert found.dtype == np.dtype(dtype)
            assert np.array_equal(found, X)
    save5(tmp_path / "a.mat", X=np.ones((2, 2), complex))
    with pytest.raises(ReadError, match="'X' holds a MATLAB complex array, and samples are"):
        read(tmp_path / "a.mat")


def test_what_is_not_numeric_is_refused_unread(tmp_path):
    save5(tmp_path / "a.mat", c=np.array([[1, "x"]], dtype=object), s={"f": 1}, t="text")
    for name, kind in (("c", "cell"), ("s", "struct"), ("t", "char")):
        with pytest.raises(ReadError, match=f"a.mat: '{name}' holds a MATLAB {kind}, and samples"):
            read(tmp_path / "a.mat", key=name)
    save5(tmp_path / "a.mat", fea=scipy.sparse.csc_array(np.eye(3)))
    with pytest.raises(ReadError, match="'fea' holds a MATLAB sparse, and samples are"):
        read(tmp_path / "a.mat")
    save5(tmp_path / "a.mat", X=np.ones((2, 2)), labels=np.array(["a", "b"], dtype=object))
    with pytest.raises(ReadError, match="the labels 'labels' are a MATLAB cell"):
        read(tmp_path / "a.mat")


def test_version_4(tmp_path):
    X = np.random.default_rng(0).random((6, 4))
    scipy.io.savemat(tmp_path / "a.mat", {"fea": X, "gnd": np.arange(6.0)}, format="4")
    data = read(tmp_path / "a.mat")
    assert np.array_equal(data.X, X)
    assert data.labels.tolist() == [0, 1, 2, 3, 4, 5]
    scipy.io.savemat(tmp_path / "a.mat", {"t": "text"}, format="4")
    with pytest.raises(ReadError, match="'t' holds a MATLAB char, and samples are"):
        read(tmp_path / "a.mat")


@ALL
def test_truncated(tmp_path, save):
    save(tmp_path / "a.mat", X=np.random.default_rng(0).random((20, 20)))
    whole = (tmp_path / "a.mat").read_bytes()
    for length in (60, 200, len(whole) // 2):
        (tmp_path / "a.mat").write_bytes(whole[:length])
        with pytest.raises(ReadError, match=r"Cannot read .*a\.mat"):
            read(tmp_path / "a.mat")


def test_text_in_version_73(tmp_path):
    save73(tmp_path / "a.mat", t=np.zeros((3, 3)))
    with h5py.File(tmp_path / "a.mat", "r+") as file:
        file["t"].attrs["MATLAB_class"] = np.bytes_("char")
    with pytest.raises(ReadError, match="'t' holds a MATLAB char, and samples are"):
        read(tmp_path / "a.mat")
