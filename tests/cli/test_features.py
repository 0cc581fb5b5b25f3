"""From options to an estimator: the command is what Python has, saved with how it was read."""

import csv
import html
import io
import json
import re

import numpy as np
import pytest

import tuckermix
from tuckermix import AutoClustering, TuckerClustering
from tuckermix.cli import _features
from tuckermix.cli.cluster import Model
from tuckermix.datasets import Dataset, make_tensor_clusters, read
from tuckermix.features import Scale, Scattering
from tuckermix.metrics import clustering_accuracy

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


def labels_in(folder):
    return [int(row["label"]) for row in table((folder / "labels.csv").read_text())]


def given(**options):
    usual = {name: getattr(Model, name, None) for name in Model.__annotations__}
    return Model({**usual, **options})


@pytest.mark.parametrize("words", [(), ("-k", 3), ("-k", 3, "--features", "scattering")])
def test_the_command_gives_the_labels_of_the_estimator(run, tmp_path, textures, words):
    X, _ = textures
    np.save(tmp_path / "waves.npy", X)
    code, _, _ = run("cluster", tmp_path / "waves.npy", *words, "-o", tmp_path / "out", "-q")
    assert code == 0
    options = {"features": "scattering"} if "--features" in words else {}
    number = 3 if "-k" in words else "auto"
    same = AutoClustering(number, random_state=0, **options).fit(read(tmp_path / "waves.npy").X)
    assert labels_in(tmp_path / "out") == same.labels_.tolist()
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["view"] == same.selection_.view
    assert summary["n_clusters"] == same.n_clusters_
    assert summary["settings"]["n_clusters"] == number
    assert summary["sample_shape"] == [16, 16]
    # The number of clusters changes nothing but the number.
    assert {trial["view"] for trial in summary["selection"]} == set(same.selection_.views)
    # What the report says is Python, and it is true.
    page = (tmp_path / "out" / "report.html").read_text()
    lines = html.unescape(re.findall(r"<pre[^>]*>([^<]*fit_predict[^<]*)</pre>", page)[0])
    scope = {}
    exec(lines, scope)
    assert scope["labels"].tolist() == same.labels_.tolist()
    code, out, _ = run("predict", tmp_path / "out", tmp_path / "waves.npy", "-q")
    assert (code, out) == (0, (tmp_path / "out" / "labels.csv").read_text())


@pytest.mark.parametrize(
    ("words", "view"),
    [
        (("-k", 3, "--features", "log-scattering"), "log-scattering"),
        (("-k", 3, "--ranks", "0.99", "--features", "scattering"), "scattering"),
        (("--features", "log-scattering"), "log-scattering"),
    ],
)
def test_options_of_a_single_model_run_that_and_say_so(run, tmp_path, textures, words, view):
    X, kind = textures
    np.save(tmp_path / "waves.npy", X)
    code, _, err = run("cluster", tmp_path / "waves.npy", *words, "-o", tmp_path / "out")
    assert code == 0
    why = "--ranks" if "--ranks" in words else "--features log-scattering"
    assert f"Only the view '{view}' is used, because of {why}: none are compared." in err
    assert clustering_accuracy(kind, labels_in(tmp_path / "out")) == 1
    page = (tmp_path / "out" / "report.html").read_text()
    lines = html.unescape(re.findall(r"<pre[^>]*>([^<]*fit_predict[^<]*)</pre>", page)[0])
    scope = {}
    exec(lines, scope)
    assert scope["labels"].tolist() == labels_in(tmp_path / "out")
    code, out, _ = run("predict", tmp_path / "out", tmp_path / "waves.npy", "-q")
    assert (code, out) == (0, (tmp_path / "out" / "labels.csv").read_text())


def test_scale_comes_before_the_choice(run, tmp_path, textures):
    X, kind = textures
    np.save(tmp_path / "waves.npy", X)
    words = ("-k", 3, "--scale", "sample", "-q", "-o", tmp_path / "out")
    assert run("cluster", tmp_path / "waves.npy", *words)[0] == 0
    model = tuckermix.load(tmp_path / "out" / "model.tuckermix")
    assert [type(step) for step in model] == [Scale, AutoClustering]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "make_pipeline(Scale(), AutoClustering(n_clusters=3, random_state=0))" in html.unescape(
        page
    )
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["settings"]["scale"]["mode"] == "sample"
    assert clustering_accuracy(kind, labels_in(tmp_path / "out")) == 1


@pytest.mark.parametrize(
    ("n_clusters", "features", "options", "expected"),
    [
        (None, None, {}, AutoClustering(random_state=7)),
        (4, None, {}, AutoClustering(4, random_state=7)),
        (4, "pixels", {}, AutoClustering(4, features="pixels", random_state=7)),
        (4, None, {"calibrate": True}, AutoClustering(4, calibrate=True, random_state=7)),
        (4, None, {"tol": 1e-4}, TuckerClustering(4, tol=1e-4, random_state=7)),
        (
            *(None, "pixels", {"max_iter": 9, "outliers": "label"}),
            AutoClustering(
                candidates=[("pixels", TuckerClustering(max_iter=9))],
                outliers="label",
                random_state=7,
            ),
        ),
    ],
)
def test_options_become_parameters(n_clusters, features, options, expected):
    model, note = _features.estimator(n_clusters, features, "none", given(**options), 7)
    assert repr(model) == repr(expected)
    assert bool(note) is bool(options.keys() - {"calibrate", "outliers"})


def test_log_scattering_is_a_step_before_the_model():
    model, _ = _features.estimator(4, "log-scattering", "unit", given(), 0)
    assert [type(step) for step in model] == [Scale, Scattering, TuckerClustering]
    assert model[1].log


@pytest.mark.parametrize(("features", "scale"), [("edges", "none"), ("pixels", "both")])
def test_unknown_words_are_refused(fails, features, scale):
    words = ("cluster", "none.npy", "--features", features, "--scale", scale)
    assert re.search(r"must be .* or .*\. Got", fails(*words))


def test_wrong_values_are_told_before_anything_is_read(fails, tmp_path):
    (tmp_path / "a.npy").write_bytes(b"")
    assert "--ranks must be" in fails("cluster", tmp_path / "a.npy", "--ranks", "many")
    assert "it is empty" in fails("cluster", tmp_path / "a.npy")


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


def test_how_the_input_was_read(tmp_path):
    chosen = Dataset(X=np.zeros((2, 4, 4)), extra={"reading": {"grey": True, "size": (4, 4)}})
    assert _features.reading_of(str(tmp_path), chosen, {"size": None, "key": None}) == {
        "suffix": "",
        "size": (4, 4),
        "grey": True,
    }
    plain = Dataset(X=np.zeros((2, 4, 4)))
    assert _features.reading_of(str(tmp_path), plain, {"size": (4, 4)}) == {
        "suffix": "",
        "size": (4, 4),
    }
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
    assert "3 clusters" in err
    assert clustering_accuracy(kind, labels_in(tmp_path / "o")) == 1
    summary = json.loads((tmp_path / "o" / "summary.json").read_text())
    assert summary["n_clusters"] == 3


def test_embeddings_are_one_more_view(run, fails, tmp_path, rng):
    kind = np.tile([0, 1, 2], 20)
    images = rng.integers(0, 256, (60, 16, 16), dtype=np.uint8)  # noise: only embeddings tell
    (tmp_path / "in").mkdir()
    for index, image in enumerate(images):
        PIL.fromarray(image).save(tmp_path / "in" / f"{index:02}.png")
    E = 4 * np.eye(3)[kind] + 0.1 * rng.normal(size=(60, 3))
    mixed = rng.permutation(60)
    rows = [f"{i:02}.png," + ",".join(map(str, E[i])) for i in mixed]
    table_ = tmp_path / "vectors.csv"
    table_.write_text("name,a,b,c\n" + "\n".join(rows) + "\n")
    words = ("cluster", tmp_path / "in", "-k", 3, "--embeddings", table_, "-q")
    assert run(*words, "-o", tmp_path / "out")[0] == 0
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["view"] == "embeddings"
    assert clustering_accuracy(kind, labels_in(tmp_path / "out")) == 1
    page = (tmp_path / "out" / "report.html").read_text()
    scope = {}
    exec(html.unescape(re.findall(r"<pre[^>]*>([^<]*fit_predict[^<]*)</pre>", page)[0]), scope)
    assert scope["labels"].tolist() == labels_in(tmp_path / "out")
    again = ("predict", tmp_path / "out", tmp_path / "in", "-q")
    assert "MODEL chose embeddings: add --embeddings." in fails(*again)
    code, out, _ = run(*again, "--embeddings", table_)
    assert (code, out) == (0, (tmp_path / "out" / "labels.csv").read_text())
    one_view = (*words, "--ranks", "0.9", "-o", tmp_path / "other")
    assert "--embeddings adds views to compare, and --ranks has one: leave one out." in fails(
        *one_view
    )


def test_a_network_of_ones_own(run, fails, tmp_path, textures, onnx_file):
    X, _ = textures
    np.save(tmp_path / "waves.npy", X)
    words = ("cluster", tmp_path / "waves.npy", "-k", 3, "--network", onnx_file, "-q")
    assert run(*words, "--features", "network", "-o", tmp_path / "out")[0] == 0
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["view"].startswith("network, ")
    assert {trial["view"] for trial in summary["selection"]} == {
        "network, last map",
        "network, pooled",
    }
    again = ("predict", tmp_path / "out", tmp_path / "waves.npy", "-q")
    assert "Add --network with small.onnx." in fails(*again)
    code, out, _ = run(*again, "--network", onnx_file)
    assert (code, out) == (0, (tmp_path / "out" / "labels.csv").read_text())
    assert "--network needs --features network or all" in fails(*words, "--features", "pixels")
    assert "it does not exist" in fails(*words[:4], "--network", tmp_path / "none.onnx")
