import re
from typing import Annotated

import pytest
from tests.cases import each

from tuckermix.cli._app import build
from tuckermix.cli._console import UsageError
from tuckermix.cli._options import add, check, described, listed, parse_ranks, plain, sizes, within


@pytest.mark.parametrize(
    ("text", "value"),
    [("32", 32), ("32x24", (32, 24)), ("3,4,5", (3, 4, 5)), ("8×9", (8, 9))],
)
def test_sizes(text, value):
    assert sizes(text, "--size") == value


@pytest.mark.parametrize(("text", "value"), [("12", 12), ("12x10", (12, 10)), ("0.95", 0.95)])
def test_ranks(text, value):
    assert parse_ranks(text, "--ranks") == value


@pytest.mark.parametrize("text", ["big", "3x", "1.5", "0", "-1"])
def test_wrong_ranks_are_told(text):
    if text in ("0", "-1"):  # whole numbers: the estimator knows which are allowed
        assert parse_ranks(text, "--ranks") == int(text)
    else:
        with pytest.raises(UsageError, match="--ranks must be one or more whole numbers"):
            parse_ranks(text, "--ranks")


@each(
    "record, words",
    [
        (
            ("-k, --n-clusters <int range>", "How many.  [x>=1]"),
            ("-k, --n-clusters N", "How many."),
        ),
        (
            ("--tol <float range>", "T.  [default: 1e-06; x>=0.0]"),
            ("--tol NUMBER", "T.  [default: 1e-06]"),
        ),
        (("--out <path>", "Folder."), ("--out PATH", "Folder.")),
        (("--axes LETTERS", "What axes mean."), ("--axes LETTERS", "What axes mean.")),
        (("--row <list[str]>", "Only this."), ("--row WORD", "Only this.")),
        (("TARGETS <list[str]>", "Which.  [required]"), ("TARGETS", "Which.")),
    ],
)
def test_help_is_in_words(record, words):
    assert plain(record) == words


@pytest.mark.parametrize(
    "command", ["demo", "cluster", "predict", "datasets", "reproduce", "bench"]
)
def test_no_help_speaks_of_types(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0
    assert not re.search(r"<[a-z\[\] ]+>|x>=|[{}]", out)
    assert "COMMAND" not in out


def test_words_complete_a_help_that_leaves_them_open():
    typer = pytest.importorskip("typer")
    word = Annotated[str, within("Heading")(words=("a", "b"))]

    def command(bare: word = "a", which: word = "a", said: word = "a"):
        """Do something.

        Parameters
        ----------
        which
            Which one:
        said
            What a and b mean.
        """

    program = typer.Typer(add_completion=False)
    add(program, command)
    helps = {one.name: one.help for one in typer.main.get_command(program).params}
    assert helps == {"bare": "a or b.", "which": "Which one: a or b.", "said": "What a and b mean."}


def test_values_are_listed_as_people_do():
    assert listed(("a", "b", "c")) == "a, b or c"
    assert listed(("a",)) == "a"
    with pytest.raises(UsageError, match=r"--kind must be a or b. Got 'c'."):
        check("c", "--kind", ("a", "b"))


def test_docstrings_describe_options():
    def command():
        """Do something.

        Parameters
        ----------
        key : NAME
            The array
            of samples.
        seed
            Makes runs repeat.
        """

    found = {"key": ("NAME", "The array of samples."), "seed": ("", "Makes runs repeat.")}
    assert described(command) == found
    assert described(lambda: None) == {}


def test_every_option_is_described():
    typer = pytest.importorskip("typer")
    for name, command in typer.main.get_command(build()).commands.items():
        for option in command.params:
            assert option.help.strip(), (name, option.name)
