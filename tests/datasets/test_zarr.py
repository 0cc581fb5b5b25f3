import json
import pickle

import numpy as np
import pytest

from tuckermix.datasets import ReadError, read

zarr = pytest.importorskip("zarr", reason="zarr is not installed")

FORMATS = pytest.mark.parametrize("zarr_format", [2, 3])


@pytest.fixture
def X():
    return np.random.default_rng(0).random((11, 4, 3)).astype("f4")


@FORMATS
def test_one_array(tmp_path, X, zarr_format):
    path = tmp_path / "a.zarr"
    zarr.create_array(path, data=X, chunks=(2, 4, 3), zarr_format=zarr_format)
    data = read(path)
    assert np.array_equal(data.X, X)
    assert data.labels is None
    assert data.name == "a.zarr"


@FORMATS
def test_a_group(tmp_path, X, zarr_format):
    root = zarr.open_group(tmp_path / "store", mode="w", zarr_format=zarr_format)
    root.create_array("images", data=X, chunks=(2, 4, 3))
    root.create_array("labels", data=np.arange(11) % 2)
    root.create_group("more").create_array("images", data=2 * X)
    data = read(tmp_path / "store")
    assert np.array_equal(data.X, X)
    assert data.labels.tolist() == [i % 2 for i in range(11)]
    assert np.array_equal(read(tmp_path / "store", key="more/images").X, 2 * X)


@FORMATS
def test_out_of_core(tmp_path, X, zarr_format):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    zarr.create_array(tmp_path / "a", data=X, chunks=(2, 4, 3), zarr_format=zarr_format)
    for options in ({"lazy": True}, {"chunks": 5}, {"lazy": "auto", "max_bytes": 400}):
        lazy = read(tmp_path / "a", **options).X
        assert isinstance(lazy, da.Array)
        assert np.array_equal(lazy.compute(scheduler="synchronous"), X)
    sent = pickle.loads(pickle.dumps(read(tmp_path / "a", chunks=4).X))
    assert np.array_equal(sent.compute(scheduler="synchronous"), X)


def test_shards(tmp_path, X):
    zarr.create_array(tmp_path / "a", data=X, chunks=(1, 4, 3), shards=(4, 4, 3))
    assert np.array_equal(read(tmp_path / "a").X, X)


def spoil(path, change):
    """Change the metadata of a stored array."""
    metadata = json.loads(path.read_text())
    change(metadata)
    path.write_text(json.dumps(metadata))


@pytest.mark.parametrize("where", ["compressor", "filters"])
def test_a_pickle_is_never_opened(tmp_path, where):
    zarr.create_array(tmp_path / "a", data=np.ones((4, 3)), zarr_format=2)
    codec = {"id": "pickle", "protocol": 5}
    spoil(
        tmp_path / "a" / ".zarray",
        lambda metadata: metadata.update({where: codec if where == "compressor" else [codec]}),
    )
    for lazy in (False, True):
        with pytest.raises(
            ReadError, match=r"it is stored with pickle, which may run code .* blosc"
        ):
            read(tmp_path / "a", lazy=lazy)


def test_a_pickle_within_a_shard(tmp_path):
    zarr.create_array(tmp_path / "a", data=np.ones((4, 3)), chunks=(1, 3), shards=(2, 3))

    def change(metadata):
        metadata["codecs"][0]["configuration"]["codecs"].append({"name": "numcodecs.pickle"})

    spoil(tmp_path / "a" / "zarr.json", change)
    with pytest.raises(ReadError, match="stored with pickle, which"):
        read(tmp_path / "a")


def test_a_declared_size_without_content(tmp_path):
    zarr.create_array(tmp_path / "a", shape=(10**6, 10**6), dtype="f8", chunks=(100, 100))
    with pytest.raises(ReadError, match=r"would take 8000000000000 bytes .* pass lazy=True"):
        read(tmp_path / "a")


@FORMATS
def test_damaged(tmp_path, zarr_format):
    zarr.create_array(
        tmp_path / "a", data=np.random.default_rng(0).random((4, 3)), zarr_format=zarr_format
    )
    marker = tmp_path / "a" / {2: ".zarray", 3: "zarr.json"}[zarr_format]
    chunk = tmp_path / "a" / {2: "0.0", 3: "c/0/0"}[zarr_format]
    chunk.write_bytes(b"nothing that can be unpacked")
    with pytest.raises(ReadError, match="a: it is damaged or not what its name says"):
        read(tmp_path / "a")
    marker.write_text(marker.read_text()[:-20])
    with pytest.raises(ReadError, match="a: it is damaged or not what its name says"):
        read(tmp_path / "a")
