"""Running the command line, and small inputs of every kind."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("typer")


@pytest.fixture(autouse=True)
def without_network(monkeypatch):
    """Compare the views that need no network: pictures of tests are not photographs."""
    from tuckermix.features import registry

    monkeypatch.setattr(registry, "has_network", lambda: False)


@pytest.fixture(scope="session", autouse=True)
def quick_trees():
    """Grow the trees of reports, which take most of a run, with a single draw at each split."""
    from tuckermix.labels.tree import TreeSettings

    with TreeSettings(per_leaf=8, draws=1, most=100).use():
        yield


@pytest.fixture
def run(capfd):
    """Return a function that runs the command line in this process."""
    from tuckermix.cli import main

    def call(*words):
        code = main([str(word) for word in words])
        out, err = capfd.readouterr()
        return code, out, err

    return call


@pytest.fixture
def shell():
    """Return a function that runs the command line in a process of its own."""

    def call(*words, start=("-m", "tuckermix"), **options):
        environment = {**os.environ, **options.pop("env", {})}
        return subprocess.run(
            [sys.executable, *start, *map(str, words)],
            capture_output=True,
            text=True,
            env=environment,
            timeout=120,
            **options,
        )

    return call


@pytest.fixture(scope="session")
def planted():
    """Three planted clusters of 12 × 10 pictures, as bytes, and their classes."""
    from tuckermix.datasets import make_tensor_clusters

    data = make_tensor_clusters(60, (12, 10), 3, noise=0.05, random_state=0)
    low, high = data.X.min(), data.X.max()
    return np.rint(255 * (data.X - low) / (high - low)).astype(np.uint8), data.labels


@pytest.fixture(scope="session")
def archive(planted, tmp_path_factory):
    path = tmp_path_factory.mktemp("input") / "planted.npz"
    np.savez(path, images=planted[0], classes=planted[1])
    return path


@pytest.fixture(scope="session")
def folder(planted, tmp_path_factory):
    """A folder of PNG files."""
    Image = pytest.importorskip("PIL.Image")
    path = tmp_path_factory.mktemp("input") / "photos"
    path.mkdir()
    for index, picture in enumerate(planted[0]):
        Image.fromarray(picture).save(path / f"{index:03d}.png")
    return path


@pytest.fixture
def summary():
    """Return a function that reads the summary of a folder of results."""
    return lambda path: json.loads((path / "summary.json").read_text())


@pytest.fixture
def page_value():
    """Return a function that reads a value of the page in a folder of results."""

    def call(path, part="data"):
        page = (path / "report.html").read_text(encoding="utf-8")
        return json.loads(
            re.search(rf'<script[^>]* id="{part}">(.*?)</script>', page, re.DOTALL)[1]
        )

    return call


def assert_one_line(text):
    assert text.endswith("\n")
    assert text.count("\n") == 1, text


@pytest.fixture
def fails(run):
    """Return a function that runs a command which must fail with one line."""

    def call(*words, code=2):
        got, out, err = run(*words)
        assert got == code
        assert out == ""
        err = re.sub(
            r"^(Reading|Rendering) .* [.]{3}\n", "", err
        )  # said where something takes a moment
        assert_one_line(err)
        assert err.startswith("tuckermix: ")
        return err

    return call


@pytest.fixture(scope="session")
def clustered(folder, tmp_path_factory):
    """The results of clustering that folder, to be copied before they are changed."""
    from tuckermix.cli import main

    path = tmp_path_factory.mktemp("results") / "photos-clusters"
    words = ("cluster", folder, "-k", 3, "--features", "pixels", "-o", path, "-q", "--json")
    assert main([str(word) for word in words]) == 0
    return path


@pytest.fixture
def table():
    """Return a function that reads labels.csv, a dictionary by column for each file."""
    import csv

    def read(folder):
        with open(folder / "labels.csv", encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        return {row["file" if "file" in row else "name"]: row for row in rows}

    return read


@pytest.fixture
def write_edits(tmp_path):
    """Return a function that writes a file of edits."""

    def write(**parts):
        path = tmp_path / "edits.json"
        path.write_text(json.dumps({"format": 1, **parts}))
        return path

    return write
