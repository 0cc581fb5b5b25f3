import logging
import os
import sys
import threading
import warnings

import pytest
from tests.cases import each

from tuckermix.cli._console import Console, in_options, left, one_line, visible


def test_stages_say_how_long_they_took(capsys):
    with Console().stage("Fitting"):
        pass
    assert capsys.readouterr().err.startswith("Fitting: 0.0")


def test_quiet_says_nothing(capsys):
    with Console(quiet=True).stage("Fitting"):
        warnings.warn("careful", stacklevel=1)
    assert capsys.readouterr() == ("", "")


def test_warnings_become_notes(capsys):
    with Console().stage("Fitting"):
        warnings.warn("stopped\n  early", RuntimeWarning, stacklevel=1)
        warnings.warn("old name", DeprecationWarning, stacklevel=1)
    err = capsys.readouterr().err
    assert "warning: stopped early\n" in err
    assert "old name" not in err


def test_a_terminal_has_one_line_that_changes(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("tuckermix.cli._console.REDRAWN", 0.0)
    logger = logging.getLogger("tuckermix")
    before = (logger.level, list(logger.handlers))
    with Console().stage("Fitting [1]"):
        logger.info("sweep %d of very many, which is long", 1, extra={"share": 0.25})
    assert (logger.level, list(logger.handlers)) == before
    _, shown, done = capsys.readouterr().err.split("\r\x1b[K")
    assert shown.startswith("Fitting [1]: 25% · sweep 1 of")
    assert len(shown) == 39
    assert done.startswith("Fitting [1]: 0.0")


def test_the_remaining_time_is_told_where_it_is_known():
    assert left(0.25, 30) == ", about 90 s left"
    assert left(0.1, 60) == ", about 9 min left"
    assert [left(share, seconds) for share, seconds in ((0.5, 1), (0.01, 30), (1, 30))] == [""] * 3


def test_what_begins_is_shown_at_once_and_once(capsys, monkeypatch):
    monkeypatch.setattr("tuckermix.cli._console.FIRST_LINE", 0.0)
    console = Console()
    console.begin("Reading")
    assert capsys.readouterr().err == "Reading ...\n"
    before = set(threading.enumerate())
    with console.stage("Reading"):
        new = set(threading.enumerate()) - before
    assert not any(isinstance(one, threading.Timer) for one in new)
    assert capsys.readouterr().err.startswith("Reading: 0.0")


def test_tables_are_aligned(capsys):
    Console().result({}, [("name", "value"), ("a", "1"), ("long", "[red]2")])
    assert capsys.readouterr().out == "name  value\na     1\nlong  [red]2\n"


@pytest.mark.parametrize(
    ("error", "text"), [(ValueError("a\n b"), "a b"), (ValueError(), "ValueError")]
)
def test_messages_fit_one_line(error, text):
    assert one_line(error) == text


def test_names_cannot_steer_the_terminal(capsys):
    assert visible("a\x1b[31m\x07\x9b\u202eb é × 日") == r"a\x1b[31m\x07\x9b\u202eb é × 日"
    Console().note("a\x1b]0;title\x07")
    assert capsys.readouterr().err == "a\\x1b]0;title\\x07\n"


@each(
    "said, told",
    [
        (
            "Set missing='impute' to fill gaps; or sample_shape=(28, 28)",
            "Set --missing impute to fill gaps; or --sample-shape 28x28",
        ),
        (
            "Leave out key and label_key. Set key to one of these",
            "Leave out --key and --truth. Set --key to one of these",
        ),
        ("Pass size=(height, width) to resize", "Pass --size HEIGHTxWIDTH to resize"),
        ("Set sample_axis between 0 and 2", "Set --sample-axis between 0 and 2"),
        (
            "the limit is max_bytes=80. If you trust it, raise max_bytes.",
            "the limit in bytes is 80. If you trust it, read it in Python with a larger max_bytes.",
        ),
        ("The 'n_init' parameter of TuckerClustering must be", "--n-init must be"),
        ("n_samples=5 must be >= n_clusters=8.", "n_samples=5 must be >= n_clusters=8."),
        (
            "-k: Input should be a valid integer, unable to parse it",
            "-k: it must be a whole number",
        ),
        ("pass size=(height, width), fit='pad'", "pass --size HEIGHTxWIDTH, --fit pad"),
        ("frames=1 or frames=...: scale='none'", "--frames 1 or --frames N: --scale none"),
        ("see sample_shape=(28, 28), drop='a,b'", "see --sample-shape 28x28, --drop a,b"),
    ],
)
def test_messages_speak_of_options(said, told):
    assert in_options(said) == told


def test_nobody_reads_stderr(monkeypatch):
    """It is closed, or its reader has gone: what is said is lost, and the work goes on."""
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as broken:
        for stream in (None, broken):
            monkeypatch.setattr(sys, "stderr", stream)
            console = Console()
            with console.stage("working"):
                done = True
            console.note("something")
            assert done
        monkeypatch.undo()
        os.dup2(os.open(os.devnull, os.O_WRONLY), writing)  # for what is still to be written
