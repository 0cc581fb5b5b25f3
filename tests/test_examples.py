"""The examples run as they stand, and the pages on large data say what is true."""

import re
import runpy
import sys
from pathlib import Path

import pytest

from tuckermix import TuckerClustering
from tuckermix.metrics import clustering_accuracy

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Return a function that runs an example with a folder of its own and gives its names."""

    def call(name):
        monkeypatch.setattr(sys, "argv", [name, str(tmp_path)])
        return runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")

    return call


@pytest.mark.torch
def test_on_a_gpu(run, capsys):
    names = run("on_a_gpu.py")
    assert names["accuracy"] > 0.8
    expected = TuckerClustering(n_clusters=10, random_state=0).fit(names["digits"].X)
    assert clustering_accuracy(expected.labels_, names["labels"]) > 0.97
    assert "digits in the cluster of their class" in capsys.readouterr().out


@pytest.mark.slow
def test_more_data_than_memory(run, capsys):
    pytest.importorskip("zarr")
    pytest.importorskip("dask")
    names = run("more_data_than_memory.py")
    X, model = names["X"].compute(), names["model"]
    centres = names["kinds"]
    nearest = ((X[:, None] - centres) ** 2).sum(axis=(2, 3)).argmin(axis=1)
    assert clustering_accuracy(nearest, model.labels_.compute()) > 0.99
    assert "clusters of" in capsys.readouterr().out


def test_digits_by_strokes(run, capsys, data_home):
    names = run("digits_by_strokes.py")
    assert names["digits"].name == "mnist"
    assert names["accuracies"]["strokes"] > 0.9
    assert names["accuracies"]["strokes"] > names["accuracies"]["pixels"] + 0.1
    assert "digits in the cluster of their class, by strokes" in capsys.readouterr().out


def test_digits_by_strokes_without_mnist(run, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("TUCKERMIX_DATA", str(tmp_path))
    monkeypatch.setattr("tuckermix.datasets._registry._cache_folder", lambda: tmp_path)
    names = run("digits_by_strokes.py")
    assert names["digits"].name == "digits"
    assert min(names["accuracies"].values()) > 0.8
    assert len(names["labels"]) == 5


@pytest.mark.slow
def test_how_many_clusters(run, capsys):
    names = run("how_many_clusters.py")
    assert names["model"].n_clusters_ == 6
    assert 5 <= names["chosen"].n_clusters_ <= 20
    assert 0 < names["probabilities"].min() < names["probabilities"].max() < 1
    shown = capsys.readouterr().out
    assert "planted: 6 clusters found" in shown
    assert "Next number of clusters" in shown


def test_strangers_among_digits(run, capsys):
    names = run("strangers_among_digits.py")
    assert names["found"] >= 0.9
    assert names["alarms"] <= 0.07
    assert names["labels"][0] >= 0
    assert names["labels"][1] == -1
    assert "of the strangers found" in capsys.readouterr().out


@pytest.mark.parametrize("page", ["gpu.rst", "out_of_core.rst", "cost_model.rst", "outliers.rst"])
def test_pages_show_files_that_exist(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    files = re.findall(r"^\.\. (?:literalinclude|include):: (.+)$", text, re.MULTILINE)
    assert files
    for name in files:
        assert (ROOT / "docs" / name).is_file(), name
