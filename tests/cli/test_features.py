"""``--features`` and ``--scale``: pipelines on the command line, saved with how they read."""

import csv
import io
import json

import numpy as np
import pytest

import tuckermix
from tuckermix.cli import _features
from tuckermix.cli._console import UsageError
from tuckermix.clustering import TuckerClustering
from tuckermix.datasets import Dataset, make_tensor_clusters, read
from tuckermix.features import Scale, Scattering
from tuckermix.features.registry import last_step
from tuckermix.metrics import clustering_accuracy
from tuckermix.selection.auto import (
    NEAREST,
    NORM_ONE,
    RELATIVE_SCATTERING,
    built_in_candidates,
)

PIL = pytest.importorskip("PIL.Image")


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture
def textures(rng):
    """Three kinds of waves at random places, as bytes, and their kinds."""
    y, x = np.mgrid[:16, :16]
    kind = np.tile([0, 1, 2], 30)
    angle, phase = np.array([0.0, 1.0, 2.0])[kind], rng.uniform(0, 2 * np.pi, 90)
    wave = np.cos(angle)[:, None, None] * x + np.sin(angle)[:, None, None] * y
    X = 120 + 80 * np.sin(1.5 * wave + phase[:, None, None]) + 5 * rng.normal(size=(90, 16, 16))
    return np.clip(X, 0, 255).astype(np.uint8), kind


@pytest.mark.parametrize("features", ["scattering", "log-scattering"])
def test_textures_are_told_apart_by_their_waves(run, tmp_path, textures, features):
    X, kind = textures
    np.savez(tmp_path / "waves.npz", images=X, kinds=kind)
    words = (tmp_path / "waves.npz", "-k", 3, "--key", "images", "--features", features, "-q")
    code, _, err = run("cluster", *words, "--scale", "sample", "-o", tmp_path / "out")
    assert (code, err) == (0, "")
    rows = table((tmp_path / "out" / "labels.csv").read_text())
    assert clustering_accuracy(kind, [int(row["label"]) for row in rows]) == 1
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["sample_shape"] == [217, 2, 2]
    assert summary["settings"]["scale"]["mode"] == "sample"
    assert summary["settings"]["scattering"]["log"] is (features == "log-scattering")
    model = tuckermix.load(tmp_path / "out" / "model.tuckermix")
    assert [type(step) for step in model][:2] == [Scale, Scattering]
    assert model.reading_["key"] == "images"
    page = (tmp_path / "out" / "report.html").read_text()
    assert "make_pipeline(Scale(), Scattering(" in page
    # The same file needs no options any more, and gives the same labels.
    code, out, _ = run(
        "predict", tmp_path / "out" / "model.tuckermix", tmp_path / "waves.npz", "-q"
    )
    assert code == 0
    assert out == (tmp_path / "out" / "labels.csv").read_text()


def test_new_pictures_are_read_as_the_old_ones(run, tmp_path, textures):
    X, _ = textures
    for folder, images in (("old", X), ("new", X.repeat(2, axis=1).repeat(2, axis=2))):
        (tmp_path / folder).mkdir()
        for index, image in enumerate(images):
            PIL.fromarray(image).convert("RGB").save(tmp_path / folder / f"{index:02}.png")
    words = ("-k", 3, "--features", "scattering", "--size", "16", "--grey", "-q")
    code, _, _ = run("cluster", tmp_path / "old", *words, "-o", tmp_path / "out")
    assert code == 0
    code, out, _ = run("predict", tmp_path / "out" / "model.tuckermix", tmp_path / "new", "-q")
    assert code == 0
    # No option was given again: size and grey come from the model.
    same = read(tmp_path / "new", size=16, grey=True).X
    model = tuckermix.load(tmp_path / "out" / "model.tuckermix")
    assert [int(row["label"]) for row in table(out)] == model.predict(same).tolist()


@pytest.fixture
def mixed(tmp_path, textures):
    """A folder with the same pictures in 8 and in 16 bits."""
    X, kind = textures
    (tmp_path / "mixed").mkdir()
    for index, image in enumerate(X):
        deep = image.astype(np.uint16) * 257 if index % 2 else image
        PIL.fromarray(deep).save(tmp_path / "mixed" / f"{index:02}.png")
    return tmp_path / "mixed", kind


@pytest.mark.parametrize("scale", ["none", "dataset"])
def test_a_folder_of_mixed_bit_depths_names_the_option(run, mixed, scale, tmp_path):
    folder, _ = mixed
    words = ("-k", 3, "--scale", scale, "-o", tmp_path / "out", "-q")
    code, _, err = run("cluster", folder, *words)
    assert code != 0
    for part in ("differ in bit depth", "00.png (uint8)", "01.png (uint16)", "--scale sample"):
        assert part in " ".join(err.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("scale", ["sample", "unit"])
def test_a_scaled_folder_of_mixed_bit_depths_clusters_by_content(run, mixed, scale, tmp_path):
    folder, kind = mixed
    words = ("-k", 3, "--scale", scale, "--features", "scattering", "-o", tmp_path / "out", "-q")
    code, _, err = run("cluster", folder, *words)
    assert (code, err) == (0, "")
    rows = table((tmp_path / "out" / "labels.csv").read_text())
    assert clustering_accuracy(kind, [int(row["label"]) for row in rows]) == 1
    code, out, _ = run("predict", tmp_path / "out" / "model.tuckermix", folder, "-q")
    assert code == 0
    assert out == (tmp_path / "out" / "labels.csv").read_text()


def test_samples_on_disk(run, tmp_path, textures):
    pytest.importorskip("dask")
    X, _ = textures
    np.save(tmp_path / "waves.npy", X)
    for name, more in (("memory", ()), ("disk", ("--chunk", 10))):
        words = ("-k", 3, "--features", "scattering", *more, "-o", tmp_path / name, "-q")
        assert run("cluster", tmp_path / "waves.npy", *words)[0] == 0
    assert [row["label"] for row in table((tmp_path / "disk" / "labels.csv").read_text())] == [
        row["label"] for row in table((tmp_path / "memory" / "labels.csv").read_text())
    ]


def test_features_too_large_for_memory_stay_lazy(monkeypatch, rng):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    X = da.from_array(rng.random((6, 8, 8)), chunks=(3, 8, 8))
    pipeline = _features.with_features(TuckerClustering(2), "scattering", "none")
    kept = _features.fit_features(pipeline, X)
    assert all(not callable(task) for task in kept.dask.values())
    monkeypatch.setattr(_features, "default_limit", lambda: 10)
    lazy = _features.fit_features(pipeline, X)
    assert len(lazy.dask) > len(kept.dask)
    assert np.allclose(lazy.compute(), kept.compute())


def test_pixels_need_no_pipeline():
    model = TuckerClustering(2)
    assert _features.with_features(model, "pixels", "none") is model
    assert last_step(model) is model
    assert _features.scale_of(model) == "none"
    pipeline = _features.with_features(model, "pixels", "unit")
    assert _features.scale_of(pipeline) == "unit"
    assert last_step(pipeline) is model


@pytest.mark.parametrize(("features", "scale"), [("edges", "none"), ("pixels", "both")])
def test_unknown_words_are_refused(features, scale):
    with pytest.raises(UsageError, match=r"must be .* or .*\. Got"):
        _features.with_features(TuckerClustering(2), features, scale)


def test_how_the_input_was_read(tmp_path):
    grey = Dataset(X=np.zeros((2, 4, 4)), names=["a.png", "b.png"])
    colour = Dataset(X=np.zeros((2, 4, 4, 3)), names=["a.png", "b.png"])
    assert _features.reading_of(str(tmp_path), grey, {"size": (4, 4), "key": None}) == {
        "suffix": "",
        "size": (4, 4),
        "grey": True,
    }
    assert _features.reading_of(str(tmp_path), colour, {})["grey"] is False
    model = TuckerClustering(2)
    options = {"key": None, "size": None, "grey": None}
    assert _features.reading_as_before(model, str(tmp_path), options) == options
    model.reading_ = {"suffix": ".npz", "key": "images", "size": (4, 4)}
    found = _features.reading_as_before(model, str(tmp_path), {**options, "size": (8, 8)})
    assert found == {"key": None, "size": (8, 8), "grey": None}  # a folder has no key
    (tmp_path / "new.npz").touch()
    found = _features.reading_as_before(model, str(tmp_path / "new.npz"), options)
    assert found == {"key": "images", "size": (4, 4), "grey": None}


def test_without_a_number_one_is_chosen_and_said(run, tmp_path):
    X, kind = make_tensor_clusters(
        150, shape=(12, 10), n_clusters=3, noise=1.0, random_state=0, return_X_y=True
    )
    np.savez(tmp_path / "planted.npz", images=X)
    code, _, err = run("cluster", tmp_path / "planted.npz", "--key", "images", "-o", tmp_path / "o")
    assert code == 0
    assert "3 clusters in the view 'pixels'" in err
    rows = table((tmp_path / "o" / "labels.csv").read_text())
    assert clustering_accuracy(kind, [int(row["label"]) for row in rows]) == 1
    summary = json.loads((tmp_path / "o" / "summary.json").read_text())
    assert {trial["view"] for trial in summary["selection"]} == {"pixels"}
    assert summary["n_clusters"] == 3
    page = (tmp_path / "o" / "report.html").read_text()
    assert "Why 3 clusters" in page
    assert "Score by number of clusters" in page
    model = tmp_path / "o" / "model.tuckermix"
    code, out, _ = run("predict", model, tmp_path / "planted.npz", "-q")
    assert (code, out) == (0, (tmp_path / "o" / "labels.csv").read_text())


def test_the_view_is_chosen(run, tmp_path, textures):
    X, kind = textures
    np.savez(tmp_path / "waves.npz", images=X)
    words = (tmp_path / "waves.npz", "--key", "images", "-k", 3, "--features", "auto")
    code, _, err = run("cluster", *words, "-o", tmp_path / "out")
    assert code == 0
    assert "3 clusters in the view" in err
    rows = table((tmp_path / "out" / "labels.csv").read_text())
    assert clustering_accuracy(kind, [int(row["label"]) for row in rows]) == 1
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    views = {trial["view"] for trial in summary["selection"]}
    near = f"{NORM_ONE}, {NEAREST}"
    assert views == {"pixels", "scattering", "log-scattering", near, RELATIVE_SCATTERING}
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Why this view" in page
    assert "touch each other least" in page
    weights = {trial["view"]: trial["weight"] for trial in summary["selection"]}
    assert 0 < min(weights.values()) < max(weights.values()) <= 1
    assert f"<td>{weights['scattering']:.3f}</td>" in page
    assert "<b>scattering</b> compares their strokes and edges" in page
    assert f"<b>{near}</b> compares images whose brightness does not count" in page


@pytest.mark.parametrize("scale", ["none", "dataset"])
def test_tables_are_compared_at_norm_1_unless_scaled(run, tmp_path, scale):
    X, kind = make_tensor_clusters(
        120, (40,), 3, noise=0.5, positive=True, random_state=0, return_X_y=True
    )
    X = X * np.exp(0.7 * np.random.default_rng(0).standard_normal((120, 1)))
    np.savez(tmp_path / "spectra.npz", spectra=X)
    words = (tmp_path / "spectra.npz", "--key", "spectra", "-k", 3, "--features", "auto")
    code, _, err = run("cluster", *words, "--scale", scale, "-o", tmp_path / "out")
    assert code == 0
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    views = {trial["view"] for trial in summary["selection"]}
    if scale != "none":
        assert views == {"pixels"}
        return
    assert views == {"pixels", NORM_ONE}
    assert f"3 clusters in the view '{NORM_ONE}'" in err
    assert {trial["weight"] for trial in summary["selection"]} == {1.0}
    text = (tmp_path / "out" / "labels.csv").read_text()
    assert clustering_accuracy(kind, [int(row["label"]) for row in table(text)]) > 0.95
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Why this view" in page
    assert f"<b>{NORM_ONE}</b> compares samples whose brightness" in page
    model = tmp_path / "out" / "model.tuckermix"
    code, out, _ = run("predict", model, tmp_path / "spectra.npz", "-q")
    assert (code, out) == (0, text)


@pytest.mark.parametrize("name", [f"{NORM_ONE}, {NEAREST}", RELATIVE_SCATTERING])
def test_views_of_images_keep_the_options_that_were_given(name):
    view = _features._view(TuckerClustering(3, n_neighbors=12), name, "none")
    (_, candidate) = next(pair for pair in built_in_candidates((16, 16), "auto") if pair[0] == name)
    assert repr(view[:-1]) == repr(candidate[:-1])
    expected = candidate[-1].get_params() | {"n_clusters": 3, "n_neighbors": 12}
    assert view[-1].get_params() == expected


def test_the_view_of_dark_images_is_used_from_a_terminal(run, tmp_path):
    rng = np.random.default_rng(0)
    kinds = np.repeat(np.arange(4), 30)
    shapes = rng.random((4, 4, 18, 18)) * rng.random((4, 4, 18, 18)).round()
    light = rng.dirichlet(np.ones(4), 120)
    images = np.einsum("nl,nlhw->nhw", light, shapes[kinds]) * rng.choice([0.02, 1.0], (120, 1, 1))
    np.savez(tmp_path / "dark.npz", images=images)
    words = (tmp_path / "dark.npz", "--key", "images", "-k", 4, "--features", "auto")
    code, _, err = run("cluster", *words, "-o", tmp_path / "out")
    assert code == 0
    view = f"{NORM_ONE}, {NEAREST}"
    assert f"4 clusters in the view '{view}'" in err
    text = (tmp_path / "out" / "labels.csv").read_text()
    assert clustering_accuracy(kinds, [int(row["label"]) for row in table(text)]) > 0.95
    model = tmp_path / "out" / "model.tuckermix"
    code, out, _ = run("predict", model, tmp_path / "dark.npz", "-q")
    assert (code, out) == (0, text)


def test_a_number_and_pixels_choose_nothing(run, tmp_path, archive):
    code, _, err = run("cluster", archive, "--key", "images", "-k", 3, "-o", tmp_path / "out")
    assert code == 0
    assert "view" not in err
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["selection"] is None
    assert "h-choice" not in (tmp_path / "out" / "report.html").read_text()
