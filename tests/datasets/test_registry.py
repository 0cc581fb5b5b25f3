import hashlib
import os
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tuckermix.datasets import (
    DatasetNotFound,
    ReadError,
    data_folders,
    describe,
    list_datasets,
    load,
)
from tuckermix.datasets._registry import KNOWN

PAPER = ["cbcl", "mnist", "pie", "orl", "yaleb", "dyntex++"]


@pytest.fixture
def tiny(monkeypatch):
    """Make a known dataset small enough to be written in a test."""

    def shrink(name, n_samples, n_classes, sample_shape=None):
        known = KNOWN[name]
        shape = sample_shape or known.sample_shape
        small = replace(known, n_samples=(n_samples,), n_classes=n_classes, sample_shape=shape)
        monkeypatch.setitem(KNOWN, name, small)

    return shrink


def stack(n_samples, shape=(32, 32)):
    return np.random.default_rng(0).integers(0, 256, (n_samples, *shape), dtype=np.uint8)


def test_digits():
    data = load("digits")
    truth = load_digits()
    assert np.array_equal(data.X, truth.images)
    assert np.array_equal(data.labels, truth.target)
    assert data.labels.dtype == np.int64
    assert data.class_names == list("0123456789")


def test_all_are_described(tmp_path):
    infos = list_datasets(tmp_path)
    assert [info.name for info in infos][:6] == PAPER
    assert {info.name for info in infos} >= {*PAPER, "modelnet10", "samson", "digits"}
    for info in infos:
        assert info.state == ("built in" if info.name == "digits" else "missing")
        assert (info.remedy == "") == (info.name == "digits")
        assert info.terms
        assert info.source
        assert info.path is None


@pytest.mark.parametrize("name", [*PAPER, "modelnet10", "samson"])
def test_a_missing_dataset_says_what_to_get_and_where_to_put_it(tmp_path, name):
    with pytest.raises(DatasetNotFound) as caught:
        load(name, tmp_path)
    text = str(caught.value)
    known = KNOWN[name]
    assert isinstance(caught.value, FileNotFoundError)
    assert text == describe(name, tmp_path).remedy
    for part in (name, known.title, known.source, known.terms, f"Put it into {tmp_path}"):
        assert part in text
    for layout in known.layouts:
        assert layout.says in text
    assert "TUCKERMIX_DATA" in text


def test_where_datasets_are_looked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("TUCKERMIX_DATA", str(tmp_path / "named"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("sys.platform", "linux")
    assert data_folders() == [tmp_path / "named", tmp_path / "cache" / "tuckermix"]
    assert data_folders(tmp_path) == [tmp_path]
    monkeypatch.delenv("TUCKERMIX_DATA")
    assert data_folders() == [tmp_path / "cache" / "tuckermix"]
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folders() == [tmp_path / ".cache" / "tuckermix"]
    monkeypatch.setattr("sys.platform", "darwin")
    assert data_folders() == [tmp_path / "Library" / "Caches" / "tuckermix"]
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert data_folders() == [tmp_path / "local" / "tuckermix"]


def test_the_variable_and_the_cache_are_used(tmp_path, monkeypatch, tiny):
    tiny("orl", 4, 2)
    monkeypatch.setenv("TUCKERMIX_DATA", str(tmp_path / "named"))
    monkeypatch.setattr("tuckermix.datasets._registry._cache_folder", lambda: tmp_path / "cache")
    with pytest.raises(DatasetNotFound, match=r"is not in .*named or .*cache\. Get orl\.npz"):
        load("orl")
    (tmp_path / "cache").mkdir()
    np.savez(tmp_path / "cache" / "orl.npz", images=stack(4), labels=[1, 1, 2, 2])
    assert load("orl").labels.tolist() == [1, 1, 2, 2]
    (tmp_path / "named" / "ORL").mkdir(parents=True)
    with open(tmp_path / "named" / "ORL" / "ORL.NPZ", "wb") as stream:
        np.savez(stream, images=stack(4), labels=[3, 3, 4, 4])
    assert load("orl").labels.tolist() == [3, 3, 4, 4]


def test_states(tmp_path, monkeypatch, tiny):
    tiny("orl", 4, 2)
    np.savez(tmp_path / "orl.npz", images=stack(4), labels=[1, 1, 2, 2])
    assert describe("orl", tmp_path).state == "found"
    assert describe("orl", tmp_path).path == str(tmp_path / "orl.npz")
    digest = hashlib.sha256((tmp_path / "orl.npz").read_bytes()).hexdigest()
    known = replace(KNOWN["orl"], sha256={"orl.npz": digest})
    monkeypatch.setitem(KNOWN, "orl", known)
    assert describe("orl", tmp_path).state == "verified"


def test_what_is_found_is_checked(tmp_path):
    np.savez(tmp_path / "orl.npz", images=stack(4), labels=[1, 1, 2, 2])
    with pytest.raises(
        ReadError,
        match=r"orl\.npz: it holds 4 samples of shape \(32, 32\) in 2 classes, and 'orl' has 400 "
        r"of \(32, 32\) in 40\. Download or copy it again from AT&T .* tuckermix\.datasets\.read",
    ):
        load("orl", tmp_path)
    np.savez(tmp_path / "pie.npz", images=stack(4), labels=[1, 1, 2, 2])
    with pytest.raises(ReadError, match="'pie' has 2856 or 3329 of"):
        load("pie", tmp_path)
    (tmp_path / "orl.npz").write_bytes(b"broken")
    with pytest.raises(ReadError, match=r"orl\.npz: it is damaged"):
        load("orl", tmp_path)


def test_unknown_names():
    for function in (load, describe):
        with pytest.raises(ValueError, match=r"'name' parameter of (load|describe) must be one of"):
            function("imagenet")


@pytest.mark.data
@pytest.mark.parametrize("name", [name for name in KNOWN if name != "digits"])
def test_the_files_on_this_machine(name):
    if "TUCKERMIX_DATA" not in os.environ:
        pytest.skip("TUCKERMIX_DATA is not set")
    info = describe(name)
    if info.state == "missing":
        pytest.skip(f"{name} is not in TUCKERMIX_DATA")
    data = load(name)
    assert data.name == name
    assert data.X.dtype == (np.float32 if name == "samson" else np.uint8)
    if data.class_names is not None:
        assert 0 <= data.labels.min() <= data.labels.max() < len(data.class_names)
