import csv
import io

import numpy as np
import pytest

from tuckermix._files import from_csv_cell
from tuckermix.cli import _results
from tuckermix.cli._console import UsageError
from tuckermix.clustering import TuckerClustering
from tuckermix.datasets import Dataset
from tuckermix.plots.fitted import Placed, placed


def said(proba, scores=None):
    return Placed(proba, None, None, scores=scores)


def test_labels_round_trip_through_csv():
    names = ['a,"b".png', "c\nd.png", "=1+1"]
    proba = np.array([[0.25, 0.75], [1.0, 0.0], [0.123456789, 0.876543211]])
    text = _results.labels_text(_results.labels_values(names, said(proba), proba.argmax(axis=1)))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [from_csv_cell(row["name"]) for row in rows] == names
    assert rows[2]["name"] == "'=1+1"  # a spreadsheet must not take it for a formula
    assert [row["label"] for row in rows] == ["1", "0", "1"]
    np.testing.assert_allclose([float(row["p0"]) for row in rows], proba[:, 0], rtol=1e-5)


def test_folder_that_stays_empty_goes_again(tmp_path):
    path = tmp_path / "a" / "b"
    with pytest.raises(RuntimeError), _results.result_folder(path):
        raise RuntimeError
    assert not path.exists()
    with _results.result_folder(path):
        (path / "x").write_text("kept")
    with _results.result_folder(path):
        pass
    assert (path / "x").exists()


def test_file_in_the_way_is_told(tmp_path):
    (tmp_path / "x").write_text("")
    with (
        pytest.raises(UsageError, match=r"it is a file\. Name a folder"),
        _results.result_folder(tmp_path / "x"),
    ):
        pass


def test_folder_without_permission_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(_results.os, "access", lambda *_: False)
    with (
        pytest.raises(UsageError, match="permission is denied"),
        _results.result_folder(tmp_path / "out"),
    ):
        pass


def test_names_that_are_no_text_are_still_written(tmp_path):
    names = [name.decode("utf-8", "surrogateescape") for name in (b"caf\xe9", b"caf\xe8")]
    proba = np.eye(2)
    text = _results.labels_text(_results.labels_values(names, said(proba), np.array([0, 1])))
    assert b"caf\\udce9,0" in text.encode("utf-8")
    assert b"caf\\udce8,1" in text.encode("utf-8")


@pytest.mark.parametrize("existed", [True, False])
@pytest.mark.parametrize("step", ["labels_text", "write_text"])
def test_results_appear_together_or_not_at_all(tmp_path, monkeypatch, step, existed):
    # What fails or is interrupted in between leaves the results of an earlier run, or none.
    pytest.importorskip("jinja2")
    pytest.importorskip("PIL")
    X = np.random.default_rng(0).random((12, 4, 4))
    model = TuckerClustering(2, random_state=0).fit(X)
    given = (tmp_path, model, Dataset(X), placed(model, X))
    options = {"truth": None, "seconds": 1.0, "source": "here", "title": "T", "kind": "auto"}
    if existed:
        _results.write_results(*given, **options)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(before) == 4 * existed
    work, calls = getattr(_results, step), []

    def interrupted(*args):
        calls.append(args)
        if step == "labels_text" or len(calls) == 3:
            raise KeyboardInterrupt
        return work(*args)

    monkeypatch.setattr(_results, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        _results.write_results(*given, **(options | {"title": "another"}))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_outliers_have_a_score_in_json():
    proba = np.array([[0.25, 0.75], [0.5, 0.5]])
    values = _results.labels_values(["a", "b"], said(proba, [3.0, 0.123456]), np.array([-1, 0]))
    assert values[0] == {
        "name": "a",
        "label": -1,
        "confidence": 0.75,
        "probabilities": [0.25, 0.75],
        "outlier_score": 3.0,
    }
    assert values[1]["outlier_score"] == 0.1235
