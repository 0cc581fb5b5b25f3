"""``tuckermix predict``: labels for new samples from a saved model."""

import csv
import io
import json

import numpy as np
import pytest

import tuckermix
from tuckermix.datasets import make_tensor_clusters


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predict")
    data = make_tensor_clusters(n_samples=90, n_clusters=3, random_state=0)
    model = tuckermix.TuckerClustering(n_clusters=3, random_state=0).fit(data.X[:60])
    tuckermix.save(model, folder / "model.tuckermix")
    np.save(folder / "new.npy", data.X[60:])
    return folder, model, data.X[60:]


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_new_samples_get_the_labels_of_the_model(run, saved):
    folder, model, X = saved
    code, out, err = run("predict", folder / "model.tuckermix", folder / "new.npy", "-q")
    assert code == 0
    assert err == ""
    rows = table(out)
    assert [int(row["label"]) for row in rows] == model.predict(X).tolist()
    shares = np.array([[float(row[f"p{k}"]) for k in range(3)] for row in rows])
    np.testing.assert_allclose(shares, model.predict_proba(X), atol=1e-4)
    confidence = [float(row["confidence"]) for row in rows]
    np.testing.assert_allclose(confidence, shares.max(axis=1), atol=1e-4)


def test_a_file_gets_what_stdout_would(run, saved, tmp_path):
    folder, _, _ = saved
    words = ("predict", folder / "model.tuckermix", folder / "new.npy")
    _, expected, _ = run(*words, "-q")
    code, out, err = run(*words, "-o", tmp_path / "labels.csv")
    assert code == 0
    assert out == ""
    assert "30 labels in" in err
    assert (tmp_path / "labels.csv").read_text() == expected


def test_json_has_what_csv_has(run, saved):
    folder, _, _ = saved
    words = ("predict", folder / "model.tuckermix", folder / "new.npy", "-q")
    rows = table(run(*words)[1])
    code, out, _ = run(*words, "--json")
    assert code == 0
    values = json.loads(out)
    assert values["schema_version"] == 1
    assert (values["n_samples"], values["n_clusters"]) == (30, 3)
    assert (values["skipped"], values["notes"]) == ([], [])
    for index, (row, sample) in enumerate(zip(rows, values["samples"], strict=True)):
        assert sample["index"] == int(row["index"]) == index
        assert sample["label"] == int(row["label"])
        assert sample["confidence"] == float(row["confidence"])
        assert sample["probabilities"] == [float(row[f"p{k}"]) for k in range(3)]


def test_there_is_no_device_to_choose(fails, saved):
    folder, _, _ = saved
    words = ("predict", folder / "model.tuckermix", folder / "new.npy", "--device", "nonsense")
    assert "No such option: --device" in fails(*words)


def test_samples_of_another_shape_are_refused(run, saved, tmp_path):
    folder, _, X = saved
    np.save(tmp_path / "cut.npy", X[:, :-1])
    code, out, err = run("predict", folder / "model.tuckermix", tmp_path / "cut.npy", "-q")
    assert code != 0
    assert out == ""
    assert "per-sample shape" in err


def test_outliers_are_labelled_as_they_were_in_the_fit(run, saved, tmp_path, summary):
    _, _, X = saved
    X = np.concatenate([X, np.random.default_rng(0).uniform(-9, 9, (2, *X.shape[1:]))])
    np.save(tmp_path / "all.npy", X)
    words = ("cluster", tmp_path / "all.npy", "-k", 3, "--outliers", "label", "-q")
    code, _, _ = run(*words, "-o", tmp_path / "out")
    assert code == 0
    text = (tmp_path / "out" / "labels.csv").read_text()
    rows = table(text)
    assert [row["label"] for row in rows[-2:]] == ["-1", "-1"]
    assert summary(tmp_path / "out")["n_outliers"] == sum(row["label"] == "-1" for row in rows)
    assert all(float(row["outlier_score"]) > 1 for row in rows[-2:])
    assert "Outliers" in (tmp_path / "out" / "report.html").read_text()
    model = tmp_path / "out" / "model.tuckermix"
    _, again, _ = run("predict", model, tmp_path / "all.npy", "-q")
    assert [row["label"] for row in table(again)] == [row["label"] for row in rows]


def test_a_model_of_pixels_takes_scenes_and_spectra(run, tmp_path):
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 40).reshape(10, 12)
    spectra = rng.random((3, 8))
    scene, other = (spectra[truth] + 0.01 * rng.standard_normal((10, 12, 8)) for _ in range(2))
    np.savez(tmp_path / "scene.npz", cube=scene)
    np.savez(tmp_path / "other.npz", cube=other[:4])
    np.save(tmp_path / "rows.npy", other[:4].reshape(-1, 8))
    np.save(tmp_path / "cube.npy", np.ones((2, 3, 4, 8)))
    out = tmp_path / "out"
    options = ("--key", "cube", "--pixels", "-k", "3", "-o", out, "-q")
    assert run("cluster", tmp_path / "scene.npz", *options)[0] == 0
    code, again, _ = run("predict", out / "model.tuckermix", tmp_path / "scene.npz", "-q")
    assert code == 0
    assert again == (out / "labels.csv").read_text()
    code, text, _ = run("predict", out / "model.tuckermix", tmp_path / "other.npz", "-q")
    assert code == 0
    rows = table(text)
    assert [row["name"] for row in rows[:13]] == [f"0,{k}" for k in range(12)] + ["1,0"]
    code, flat, _ = run("predict", out / "model.tuckermix", tmp_path / "rows.npy", "-q")
    assert code == 0
    assert [row["label"] for row in table(flat)] == [row["label"] for row in rows]
    code, _, err = run("predict", out / "model.tuckermix", tmp_path / "cube.npy", "-q")
    assert code == 2
    assert "--pixels needs a scene" in err
