import logging
import os
import sys
import warnings

import pytest
from tests.cases import each

from tuckermix.cli._console import Console, in_options, one_line, visible


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


def test_spinner_on_a_terminal_shows_the_log(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    console = Console()
    assert console.live
    logger = logging.getLogger("tuckermix")
    before = (logger.level, list(logger.handlers))
    with console.stage("Fitting [1]"):
        logger.info("sweep %d", 1)
    assert (logger.level, list(logger.handlers)) == before


def test_tables_are_plain_off_a_terminal(capsys):
    Console().table(("name", "value"), [("a", "1"), ("long", "[red]2")])
    assert capsys.readouterr().out == "name  value\na     1\nlong  [red]2\n"


def test_tables_on_a_terminal_keep_markup_as_text(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    Console().table(None, [("a", "[red]2")])
    assert "[red]2" in capsys.readouterr().out


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
            "Pass grey=True to make all grey, or grey=False to",
            "Pass --grey to make all grey, or --colour to",
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


def test_bars_tell_how_far_the_work_has_come():
    from tuckermix.cli._console import bar

    assert bar(None) == ""
    assert bar(0.0).count("━") == 0
    assert bar(0.5).count("━") == 10
    assert bar(1.0).count("━") == 20
    assert bar(0.25).endswith("25%")


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
