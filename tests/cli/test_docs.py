"""Every command that the documentation or the help shows is run as it stands."""

import json
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

from tuckermix.cli import cluster, predict
from tuckermix.datasets import make_tensor_clusters

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.rst"


def commands():
    shown = re.findall(r"^   \$ tuckermix (.*)$", PAGE.read_text(), re.MULTILINE)
    for command in (cluster.cluster, predict.predict):
        shown += re.findall(r"^    tuckermix (.*)$", command.__doc__, re.MULTILINE)
    return list(dict.fromkeys(shown))


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder with every input that the examples name."""
    from scipy.io import savemat

    Image = pytest.importorskip("PIL.Image")
    h5py = pytest.importorskip("h5py")
    path = tmp_path_factory.mktemp("desk")
    faces = make_tensor_clusters(40, (16, 16), 4, random_state=0)
    flat = faces.X.transpose(0, 2, 1).reshape(40, -1)  # MATLAB stores columns one by one
    savemat(path / "faces.mat", {"fea": flat, "gnd": faces.labels})
    scans = make_tensor_clusters(30, (6, 7, 8), 3, random_state=0)
    with h5py.File(path / "scans.h5", "w") as file:
        file["volumes"] = scans.X
    photos = make_tensor_clusters(36, (12, 12), 3, random_state=0)
    bytes_ = np.rint(255 * (photos.X - photos.X.min()) / np.ptp(photos.X)).astype(np.uint8)
    for name in ("photos", "new-photos"):
        (path / name).mkdir()
        for index, picture in enumerate(bytes_):
            Image.fromarray(picture).save(path / name / f"{index:02d}.png")
    rows = [f"{index:02d}.png,{label},k{label}" for index, label in enumerate(photos.labels)]
    (path / "classes.csv").write_text("\n".join(["name,label,kind", *rows]))
    return path


def test_every_command_is_shown():
    shown = {words.split()[0] for words in commands()}
    assert {"demo", "cluster", "predict", "datasets", "bench", "--help"} <= shown


@pytest.mark.slow
def test_all_examples_work(run, desk, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(desk)
    # The shell from which the tests were started, `make` included, need not have completion.
    monkeypatch.setattr("tuckermix.cli.demo.PICTURES", 2)
    monkeypatch.setattr("typer.completion._get_shell_name", lambda: "bash")
    for words in commands():
        code, out, err = run(*shlex.split(words))
        assert code == 0, f"{words}\n{err}"
        assert out or "-o" in words
    assert (desk / "photos-clusters" / "report.html").is_file()
    assert (desk / "tuckermix-demo" / "clusters.png").is_file()
    assert (desk / "new-labels.csv").read_text().startswith("name,label,confidence,p0")


def fields(heading):
    """Return the fields that the page on JSON lists below a heading."""
    page = (PAGE.parent / "json.rst").read_text().split(heading)[1]
    table = re.split(r"\n-{10,}\n", page)[1].split("\n\n``")[0]
    return re.findall(r"^   \* - ``(\w+)``$", table, re.MULTILINE)


def test_the_page_on_json_lists_what_is_written(run, desk, monkeypatch):
    monkeypatch.chdir(desk)
    monkeypatch.setattr(sys, "path", list(sys.path))  # the folder of a method joins it
    code, out, _ = run("cluster", "photos", "-k", 3, "-q", "--json", "-o", "for-json")
    assert code == 0
    values = json.loads(out)
    assert fields("``summary.json``: version 4") == list(values)
    assert values["schema_version"] == 4
    assert json.loads((desk / "for-json" / "summary.json").read_text()) == values
    _, out, _ = run("predict", "for-json/model.tuckermix", "new-photos", "-q", "--json")
    values = json.loads(out)
    assert fields("``predict``: version 1") == list(values)
    assert values["schema_version"] == predict.SCHEMA_VERSION
    (desk / "desk_own.py").write_text("def f(X, n_clusters):\n    return [0, 1, 2] * 20\n")
    quick = ("--quick", "--rows", "table3:K=3", "--jobs", 0, "--beside", "k-means", "--runs", 1)
    _, out, _ = run("bench", "--method", "desk_own:f", *quick, "-q", "--json")
    assert fields("``bench --method``: version 1") == list(json.loads(out))
    page = (PAGE.parent / "benchmark.rst").read_text()
    listed = re.findall(r"``(\w+)``", "".join(re.findall(r"^   \* - (``.*)$", page, re.MULTILINE)))
    assert listed == ["schema_version", *json.loads(out)["places"][0]]
    assert list(values["samples"][0]) == ["name", "label", "confidence", "probabilities"]
