import csv
import io

import numpy as np
import pytest

from tuckermix.cli import _results
from tuckermix.cli._console import UsageError


def test_labels_round_trip_through_csv():
    names = ['a,"b".png', "c\nd.png", "=1+1"]
    proba = np.array([[0.25, 0.75], [1.0, 0.0], [0.123456789, 0.876543211]])
    text = _results.labels_text(names, proba, proba.argmax(axis=1))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["name"] for row in rows] == names
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
    names = [b"caf\xe9.png".decode("utf-8", "surrogateescape"), "b.png"]
    proba = np.eye(2)
    text = _results.labels_text(names, proba, np.array([0, 1]))
    text.encode("utf-8")
    assert "caf\ufffd.png" in text
