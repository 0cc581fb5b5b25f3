import re
from pathlib import Path

import pytest
import typer
from tests.cases import each
from typer.testing import CliRunner

from tuckermix_bench import METHODS as ALL
from tuckermix_bench import RunReport, Store
from tuckermix_bench.cli_reproduce import add_to, split_methods, summary_line

METHODS = "k-means,spectral"
app = typer.Typer()
add_to(app)


def call(*arguments):
    return CliRunner().invoke(app, [str(part) for part in arguments])


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    path = tmp_path_factory.mktemp("reproduce") / "r.jsonl"
    done = call("table3", "--quick", "--jobs", 0, "--methods", METHODS, "--db", path)
    assert done.exit_code == 0, done.output
    assert "8 cells computed, 0 were stored before" in done.output
    return path


def test_a_second_call_continues(db):
    done = call("table3", "--quick", "--jobs", 0, "--methods", METHODS, "--db", db)
    assert "0 cells computed, 8 were stored before" in done.output


def test_lines_report_progress_where_there_is_no_terminal(tmp_path):
    path = tmp_path / "r.jsonl"
    done = call("table2", "--quick", "--jobs", 0, "--runs", 1, "--methods", "k-means", "--db", path)
    assert re.search(r"1/1.*table2 · CBCL · k-means · run 0 · AC 0\.\d{4}", done.output)


@each(
    "text, names",
    [
        (None, None),
        ("MM,ALS", ["MM", "ALS"]),
        ("MM (our labels), MM,", ["MM (our labels)", "MM"]),
    ],
)
def test_columns_are_divided_at_commas(text, names):
    assert split_methods(text) == names


def test_every_column_can_be_asked_for():
    assert split_methods(",".join(ALL)) == list(ALL)


def test_a_plan_names_what_is_left_and_computes_nothing(db):
    words = ("table3", "--quick", "--methods", "k-means,MM", "--db", db)
    done = call(*words, "--plan")
    lines = done.output.splitlines()
    assert lines[0].split() == ["table", "cells", "seconds", "longest"]
    assert [line.split()[:2] for line in lines[1:3]] == [["table3", "4"], ["all", "4"]]
    assert call(*words, "--plan").output == done.output


def test_show_prints_the_table(db):
    shown = call("show", "table3", "--quick", "--db", db)
    assert shown.exit_code == 0
    assert "k-means" in shown.output
    assert "2/2" in shown.output


def test_show_writes_files(db, tmp_path):
    shown = call("show", "--quick", "--db", db, "--out", tmp_path)
    assert shown.exit_code == 0
    names = {path.name for path in tmp_path.iterdir()}
    assert {"table1.md", "table3.md", "table6.csv", "records.csv"} <= names
    assert "k-means" in (tmp_path / "table3.md").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("table9",), "must be one of 'table1'"),
        (("table3", "--methods", "unknown"), "must be one of 'MM'"),
        (("show", "--db", "absent"), "There are no results"),
    ],
)
def test_mistakes_get_one_line_and_their_exit_code(fails, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    assert message in fails("reproduce", *words)


def test_a_file_in_use_is_told(fails, tmp_path):
    path = tmp_path / "r.jsonl"
    with Store(path):
        words = ("table3", "--quick", "--jobs", 0, "--methods", METHODS, "--db", path)
        assert "Another run is writing to" in fails("reproduce", *words)


def test_without_any_data_nothing_is_done_and_said_so(tmp_path, monkeypatch):
    """A newcomer has none of the datasets: a table of empty cells is no success."""
    monkeypatch.delenv("TUCKERMIX_DATA", raising=False)
    words = ("table3", "--runs", 1, "--methods", "k-means", "--jobs", 0, "--db", tmp_path / "r")
    done = call(*words, "--data", tmp_path)
    assert done.exit_code == 2
    assert "8 lack their data" in done.output
    assert "tuckermix: 1 dataset was not found: mnist. " in done.output
    assert f"Put it into {tmp_path}" in done.output
    assert "with --data" in done.output
    assert "--quick computes" in done.output
    again = call(*words, "--data", tmp_path)  # what lacks its data is tried again
    assert again.exit_code == 2


def test_an_interrupted_run_says_so(tmp_path, monkeypatch):
    def interrupt(progress):
        raise KeyboardInterrupt

    monkeypatch.setattr("tuckermix_bench.cli_reproduce.progress_line", interrupt)
    path = tmp_path / "r.jsonl"
    done = call("table3", "--quick", "--jobs", 0, "--methods", METHODS, "--db", path)
    assert done.exit_code == 130
    assert "1 cells computed" in done.output


def test_a_run_ends_with_its_table_and_names_the_data_it_used(tmp_path):
    done = call("table5", "--quick", "--jobs", 0, "--methods", METHODS, "--db", tmp_path / "r")
    assert "scikit-learn's digits, in place of ORL" in done.output
    assert "k-means" in done.output
    assert done.output.splitlines()[-1].endswith(f"Records: {tmp_path / 'r'}")


def test_without_some_of_the_data_the_rest_is_done(tmp_path, monkeypatch):
    monkeypatch.delenv("TUCKERMIX_DATA", raising=False)
    words = ("beyond", "--runs", 1, "--methods", "k-means", "--jobs", 0, "--db", tmp_path / "r")
    done = call(*words, "--row", "digits, 10 × 80", "--row", "Yale, 15 persons")
    assert "1 cells computed, 0 were stored before, 1 lack their data" in done.output
    assert done.output.startswith("tuckermix: 1 dataset was not found: yale. ")
    assert done.exit_code == 3


def test_durations_are_written_for_people():
    report = RunReport(Path("r"), 1, 0, 0, 0, 0, {}, 3723.4, False)
    assert "1:02:03 in all" in summary_line(report)
