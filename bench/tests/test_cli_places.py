import csv
import json
import sys

import pytest
from tests.cases import each

from tuckermix_bench import cli_bench as command
from tuckermix_bench.cli_bench import _stands
from tuckermix_bench.places import PLACE_FIELDS
from tuckermix_bench.summaries import Place

METHODS = """
import numpy as np
from sklearn.cluster import AgglomerativeClustering


def cluster(X, n_clusters):
    print("words of the method")
    return AgglomerativeClustering(n_clusters).fit_predict(X.reshape(len(X), -1))


class Ready:
    n_clusters = 2

    def fit_predict(self, X):
        return np.arange(len(X)) % self.n_clusters


ready = Ready()


def breaks(X, n_clusters):
    raise ValueError("out of luck")
"""


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """The current folder, with a module of methods."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "desk_methods.py").write_text(METHODS)
    yield tmp_path
    sys.modules.pop("desk_methods", None)


QUICK = ("--quick", "--rows", "table3:K=3", "--jobs", 0)


def bench(run, method, *words):
    return run("bench", "--method", f"desk_methods:{method}", *QUICK, *words)


def test_the_place_of_a_method_is_printed(run, desk):
    code, out, err = bench(run, "cluster", "--name", "mine")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split()[:4] == ["method", "row", "measure", "yours"]
    assert lines[1].startswith("mine    table3 · K=3  AC")
    assert " of 4  " in lines[1]
    assert "words of the method" not in out
    assert [line for line in lines if line.startswith("mine, AC: ")]
    assert "8 cells computed" in err  # four columns, two draws
    assert "their places mean little" in err
    code, again, err = bench(run, "cluster", "--name", "mine", "--quiet")
    assert code == 0
    assert again.splitlines()[1:3] == lines[1:3]  # nothing is computed again, times included
    assert err == ""


def test_places_as_json_and_as_csv(run, desk):
    code, out, _ = bench(
        run, "ready", "--method", "desk_methods:cluster", "--json", "--csv", "out.csv", "-q"
    )
    assert code == 0
    values = json.loads(out)
    assert (values["schema_version"], values["failures"], values["older"]) == (1, [], 0)
    with open("out.csv", newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert [line["mean"] for line in lines] == [str(one["mean"]) for one in values["places"]]
    assert list(values["places"][0]) == list(PLACE_FIELDS)
    assert set(values["summary"]) == {"desk_methods:ready", "desk_methods:cluster"}
    tally = values["summary"]["desk_methods:ready"]["AC"]
    assert tally["rows"] == tally["behind"] == 1  # labels by turns are right by chance only
    assert set(tally["behind_whom"]) <= {"k-means", "spectral", "TuckerClustering"}


def test_several_methods_have_a_column_with_their_names(run, desk):
    _, out, _ = bench(run, "ready", "--method", "desk_methods:cluster")
    assert out.splitlines()[0].split()[0] == "method"
    assert {line.split()[0] for line in out.splitlines()[1:3]} == {"desk_methods:ready"}


def test_a_method_that_fails_is_told_and_fails(run, desk):
    code, out, err = bench(run, "breaks")
    assert code == 1
    assert out == ""
    assert (
        "desk_methods:breaks failed in 2 runs (the first: table3 · K=3 · run 0): ValueError" in err
    )
    assert "(desk_methods.py, line 22)" in err
    code, out, _ = bench(run, "breaks", "--method", "desk_methods:ready", "--json", "-q")
    assert code == 0  # the other one has a place
    values = json.loads(out)
    assert [one["status"] for one in values["failures"]] == ["failed", "failed"]
    assert {one["method"] for one in values["places"]} == {"desk_methods:ready"}


def test_methods_run_in_processes_of_their_own(shell, desk):
    words = ("--quick", "--rows", "table3:K=3", "--runs", 1, "--beside", "k-means", "--jobs", 1)
    done = shell("bench", "--method", "desk_methods:cluster", *words, "--json", cwd=desk)
    assert done.returncode == 0, done.stderr
    assert {one["columns"] for one in json.loads(done.stdout)["places"]} == {2}
    assert "words of the method" in done.stderr


def test_wrong_use(fails, desk):
    assert "Two methods are called 'a': tell them apart with --name" in fails(
        *("bench", "--method", "desk_methods:ready", "--method", "desk_methods:cluster"),
        *("--name", "a", "--name", "a"),
    )
    assert "--name must be given once for each --method. Got 1 for 2." in fails(
        *("bench", "--method", "desk_methods:ready", "--method", "desk_methods:cluster"),
        *("--name", "a"),
    )
    assert "must be named as module:object" in fails("bench", "--method", "ready")
    assert "There is no module 'absent'" in fails("bench", "--method", "absent:ready")
    ready = ("bench", "--method", "desk_methods:ready")
    assert "There are no rows 'table9'" in fails(*ready, "--rows", "table9")
    assert "--as must be one of auto, tensors" in fails(*ready, "--as", "cubes")


@each(
    "words",
    [
        ("--rows", "table3"),
        ("--as", "pixels"),
        ("--db", "mine.jsonl"),
        ("--refresh",),
        ("--runs", "2"),
        ("--jobs", "0"),
        ("--time-limit", "5"),
        ("--quick",),
    ],
)
def test_options_of_a_method_want_one(fails, words):
    assert f"{words[0]} goes with --method MODULE:OBJECT" in fails("bench", *words)


def test_a_file_in_use_is_told(fails, desk):
    from tuckermix_bench import Store

    with Store("used.jsonl"):
        text = fails("bench", "--method", "desk_methods:ready", *QUICK, "--db", "used.jsonl")
    assert "Another run is writing to 'used.jsonl'" in text


def test_those_ahead_are_named():
    values = dict.fromkeys((name for name in Place.__dataclass_fields__), None)
    one = Place(**values | {"verdict": "behind", "winners": tuple("abcde")})
    assert _stands(one) == "behind a, b, c and 2 more"
    assert _stands(Place(**values | {"verdict": "first", "winners": ()})) == "first"


def test_many_kinds_of_failures_are_summed_up(monkeypatch):
    from tuckermix_bench import RunRecord

    failures = [
        RunRecord("paper", "t", "r", "m", run, "d", "failed", error=f"E{run}") for run in range(8)
    ]
    texts = list(command._failures(failures))
    assert texts[0] == "m failed in 1 run (t · r · run 0): E0"
    assert texts[-1] == "and in 5 other ways, see the file of records."
