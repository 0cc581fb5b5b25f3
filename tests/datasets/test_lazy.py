import pickle

import numpy as np
import pytest

from tuckermix.datasets import read
from tuckermix.datasets._lazy import Slices, to_dask

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
    monkeypatch.setattr("tuckermix.datasets._lazy.BLOCK_BYTES", 8 * 3 * 10)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("X", data=np.zeros((50, 3)), chunks=(4, 3))
    assert read(tmp_path / "a.h5", lazy=True).X.chunks[0] == (8, 8, 8, 8, 8, 8, 2)


def fetch(scale, index):
    return scale * np.arange(24.0).reshape(4, 3, 2)[index]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_only_the_samples_asked_for_are_read(axis):
    reads = []

    def counting(scale, index):
        reads.append(index[axis])
        return fetch(scale, index)

    X = to_dask(Slices(counting, (2.0,), (4, 3, 2), np.dtype(float)), axis, 1)
    assert not reads
    one = X[1].compute(scheduler="synchronous")
    assert np.array_equal(one, np.moveaxis(2.0 * np.arange(24.0).reshape(4, 3, 2), axis, 0)[1])
    assert reads == [slice(1, 2, None)]


def test_equal_arrays_have_equal_names():
    def name(scale):
        return to_dask(Slices(fetch, (scale,), (4, 3, 2), np.dtype(float)), 0, 2).name

    assert name(1.0) == name(1.0) != name(2.0)
