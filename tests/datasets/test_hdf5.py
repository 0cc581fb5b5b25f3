import numpy as np
import pytest

from tuckermix.datasets import ReadError, read

h5py = pytest.importorskip("h5py", reason="h5py is not installed")


@pytest.fixture
def stored(tmp_path):
    X = np.random.default_rng(0).integers(0, 99, (11, 4, 3)).astype(">i4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("part/images", data=X, chunks=(2, 4, 3), compression="gzip")
        file.create_dataset("part/labels", data=[f"class {i % 3}" for i in range(11)])
        file.create_dataset("other/weights", data=np.zeros(5))
    return tmp_path / "a.h5", X


def test_arrays_in_groups(stored):
    path, X = stored
    data = read(path, key="part/images")
    assert np.array_equal(data.X, X)
    assert data.X.dtype.isnative
    assert data.labels.tolist() == [i % 3 for i in range(11)]
    assert data.class_names == ["class 0", "class 1", "class 2"]
    assert np.array_equal(read(path).X, X)


def test_out_of_core(stored):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    path, X = stored
    for options in ({"lazy": True}, {"chunks": 5}, {"lazy": "auto", "max_bytes": 400}):
        lazy = read(path, **options).X
        assert isinstance(lazy, da.Array)
        assert lazy.dtype.isnative
        assert np.array_equal(lazy.compute(scheduler="synchronous"), X)
    assert read(path, chunks=5).X.chunks == ((5, 5, 1), (4,), (3,))
    assert not isinstance(read(path, lazy="auto").X, da.Array)


def test_values_in_other_files_are_not_read(tmp_path):
    (tmp_path / "secret").write_bytes(b"x" * 64)
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file.create_dataset("X", data=np.ones((4, 4)))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        outside = [(str(tmp_path / "secret"), 0, 64)]
        file.create_dataset("raw", (8, 8), dtype="u1", external=outside)
        layout = h5py.VirtualLayout(shape=(4, 4), dtype="f8")
        layout[:] = h5py.VirtualSource(str(tmp_path / "b.h5"), "X", shape=(4, 4))
        file.create_virtual_dataset("virtual", layout)
        file["link"] = h5py.ExternalLink(str(tmp_path / "b.h5"), "X")
    for name in ("raw", "virtual"):
        for lazy in (False, True):
            with pytest.raises(ReadError, match=f"values of '/{name}' lie in other files. Copy"):
                read(tmp_path / "a.h5", key=name, lazy=lazy)
    with pytest.raises(ReadError, match="holds no array named 'link'"):
        read(tmp_path / "a.h5", key="link")


def test_a_declared_size_without_content(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("X", (10**6, 10**6), dtype="f8", chunks=(100, 100))
    with pytest.raises(ReadError, match=r"would take 8000000000000 bytes .* pass lazy=True"):
        read(tmp_path / "a.h5")


def test_truncated_and_foreign(stored):
    path, _ = stored
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"no HDF5 at all"):
        path.write_bytes(content)
        with pytest.raises(ReadError, match=r"a\.h5: it is damaged or not what its name says"):
            read(path)
