import pickle

import numpy as np
import pytest

from tuckermix.datasets import ReadError, read
from tuckermix.datasets._arrays import to_dask

pytest.importorskip("dask", reason="Dask is not installed")


def test_chunks_travel_to_other_processes(tmp_path):
    X = np.arange(60.0).reshape(10, 6)
    np.save(tmp_path / "a.npy", X)
    lazy = read(tmp_path / "a.npy", chunks=3).X
    sent = pickle.dumps(lazy)
    assert len(sent) < 4000 + X.nbytes  # the way to the file, not its content
    assert np.array_equal(pickle.loads(sent).compute(scheduler="synchronous"), X)


def test_chunks_of_the_file_are_not_torn(tmp_path, monkeypatch):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    monkeypatch.setattr("tuckermix.datasets._arrays.BLOCK_BYTES", 8 * 3 * 10)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("X", data=np.zeros((50, 3)), chunks=(4, 3))
    assert read(tmp_path / "a.h5", lazy=True).X.chunks[0] == (8, 8, 8, 8, 8, 8, 2)


class Counted:
    """An array that notes what is read of it."""

    def __init__(self, scale):
        self.values = scale * np.arange(24.0).reshape(4, 3, 2)
        self.scale, self.reads = scale, []
        self.shape, self.dtype, self.ndim = (4, 3, 2), np.dtype(float), 3

    def __dask_tokenize__(self):
        return self.scale

    def region(self, region):
        self.reads.append(region)
        return self.values[tuple(slice(low, high) for low, high in region)]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_only_the_samples_asked_for_are_read(axis):
    array = Counted(2.0)
    X = to_dask(array, axis, 1, None, 999)
    assert not array.reads
    one = X[1].compute(scheduler="synchronous")
    assert np.array_equal(one, np.moveaxis(array.values, axis, 0)[1])
    assert [read[axis] for read in array.reads] == [(1, 2)]


def test_equal_arrays_have_equal_names():
    def name(scale):
        return to_dask(Counted(scale), 0, 2, None, 999).name

    assert name(1.0) == name(1.0) != name(2.0)


def test_chunks_within_the_limit():
    def chunks(shape, chunks, stored, limit):
        array = Counted(1.0)
        array.shape, array.ndim = shape, len(shape)
        return to_dask(array, 0, chunks, stored, limit).chunks[0]

    assert chunks((100, 10), None, None, 10**4) == (100,)
    assert chunks((100, 10), None, 30, 8000) == (90, 10)
    assert chunks((100, 10), None, 60, 4000) == (50, 50)  # a stored chunk would pass the limit
    with pytest.raises(ReadError, match=r"51 of its samples would take 4080 bytes in memory"):
        chunks((100, 10), 51, None, 4000)
    with pytest.raises(ReadError, match=r"1 of its samples would take 80 bytes .* max_bytes=79"):
        chunks((100, 10), None, None, 79)
    with pytest.raises(ReadError, match=r"in chunks of 1 make more than 50000 chunks. Pass larger"):
        chunks((10**15, 10), 1, None, 4000)


def test_damage_found_late_is_the_same_error(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((100, 10)))
    lazy = read(tmp_path / "a.npy", chunks=10).X
    (tmp_path / "a.npy").write_bytes(b"")
    with pytest.raises(ReadError, match=r"a\.npy: it was changed after it was opened"):
        lazy.compute(scheduler="synchronous")
    (tmp_path / "a.npy").unlink()
    with pytest.raises(ReadError, match=r"a\.npy: it does not exist"):
        lazy.compute(scheduler="synchronous")
