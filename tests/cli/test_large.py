"""Inputs left on disk: asked for, or because they would not fit in memory."""

import sys

import numpy as np
import pytest

from tuckermix.cli import _input

da = pytest.importorskip("dask.array")


@pytest.fixture(scope="module")
def stored(planted, tmp_path_factory):
    """Store the planted pictures in every format that can stay on disk, and in one that cannot."""
    h5py, zarr = pytest.importorskip("h5py"), pytest.importorskip("zarr")
    folder = tmp_path_factory.mktemp("large")
    X, classes = planted
    np.save(folder / "a.npy", X)
    np.savez(folder / "a.npz", X=X)
    group = zarr.open_group(folder / "a.zarr", mode="w")
    group.create_array("images", data=X, chunks=(20, *X.shape[1:]))
    with h5py.File(folder / "a.h5", "w") as file:
        file["images"], file["labels"] = X, classes
    return folder


@pytest.fixture(scope="module")
def in_memory(stored, tmp_path_factory):
    """Give the labels that the same pictures get when they are read."""
    from tuckermix.cli import main

    out = tmp_path_factory.mktemp("memory")
    assert main(["cluster", str(stored / "a.npz"), "-k", "3", "-o", str(out), "--quiet"]) == 0
    return (out / "labels.csv").read_text()


@pytest.mark.parametrize("name", ["a.npy", "a.h5"])
def test_samples_stay_on_disk_when_asked_to(run, stored, in_memory, tmp_path, summary, name):
    code, _, err = run("cluster", stored / name, "-k", 3, "--chunk", 25, "-o", tmp_path)
    assert code == 0
    assert "60 samples of shape 12 × 10, left on disk" in err
    assert (tmp_path / "labels.csv").read_text() == in_memory
    assert summary(tmp_path)["cluster_sizes"] == [20, 20, 20]
    code, again, _ = run("predict", tmp_path / "model.tuckermix", stored / name)
    assert code == 0
    assert again == in_memory


@pytest.mark.parametrize("name", ["a.npy", "a.zarr"])
def test_samples_larger_than_memory_stay_on_disk(
    run, stored, in_memory, tmp_path, monkeypatch, name
):
    # Memory for less than all samples and more than one piece of them.
    monkeypatch.setattr("tuckermix.datasets._options.default_limit", lambda: 5000)
    monkeypatch.setattr("tuckermix.cli._input.BLOCK_BYTES", 2400)
    code, _, err = run("cluster", stored / name, "-k", 3, "-o", tmp_path)
    assert code == 0, err
    assert "left on disk" in err
    assert (tmp_path / "labels.csv").read_text() == in_memory
    code, again, _ = run("predict", tmp_path / "model.tuckermix", stored / name)
    assert code == 0
    assert again == in_memory


def test_small_inputs_are_read(run, stored, tmp_path):
    _, _, err = run("cluster", stored / "a.npy", "-k", 3, "-o", tmp_path)
    assert "left on disk" not in err


def test_a_known_dataset_can_be_cut_too(run, tmp_path):
    code, _, err = run(
        *("cluster", "digits", "-k", 3, "--features", "pixels", "--chunk", 500, "-o", tmp_path)
    )
    assert code == 0
    assert "1797 samples of shape 8 × 8, left on disk" in err


@pytest.mark.slow
def test_a_cluster_does_the_work(run, stored, in_memory, tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        before = cluster.scheduler.transition_counter
        code, _, err = run(
            *("cluster", stored / "a.npy", "-k", 3, "-o", tmp_path),
            *("--scheduler", cluster.scheduler_address),
        )
        assert code == 0
        assert "left on disk" in err
        assert cluster.scheduler.transition_counter > before + 20
    assert (tmp_path / "labels.csv").read_text() == in_memory


def test_what_cannot_be_done_is_said(fails, stored, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    words = ("cluster", stored / "a.npy", "-k", 3, "-q")
    cuda = ("--chunk", 9, "--device", "cuda")
    assert "leave out --chunk and --scheduler" in fails(*words, *cuda)
    assert "cannot be left on disk" in fails("cluster", stored / "a.npz", "--chunk", 9)
    pytest.importorskip("distributed")
    monkeypatch.setattr(_input, "CONNECT_SECONDS", 1)
    error = fails(*words, "--scheduler", "tcp://127.0.0.1:1")
    assert "no Dask scheduler answers there. Start one with 'dask scheduler'" in error
    assert list(tmp_path.iterdir()) == []


def test_missing_packages_are_named(fails, stored, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "distributed", None)
    words = ("cluster", stored / "a.npy", "-k", 3, "--scheduler", "tcp://127.0.0.1:1")
    assert "--scheduler needs dask.distributed: install tuckermix[dask]" in fails(*words, code=1)
    monkeypatch.setitem(sys.modules, "dask.array", None)
    assert "need Dask: install tuckermix[dask]" in fails("cluster", "digits", "--chunk", 9, code=1)
