"""Files of edits that nobody should have written."""

import json

import pytest

from tuckermix.cli._console import UsageError
from tuckermix.cli._edits import Edits, EditSettings

WRONG = {
    "no object": ([], "no object with"),
    "no format": ({}, "no object with"),
    "a later format": ({"format": 2}, "format is not 1"),
    "a text as format": ({"format": "1"}, "no object with"),
    "an unknown part": ({"format": 1, "run": "rm"}, "its part 'run' is not one"),
    "a name of a name": ({"format": 1, "names": {"a": "b"}}, "'a' where a number must be"),
    "a number of letters": ({"format": 1, "names": {"²": "b"}}, "where a number must be"),
    "a name that is a list": ({"format": 1, "names": {"0": ["b"]}}, "its part 'names' is not one"),
    "merging one": ({"format": 1, "merge": [1]}, "its part 'merge'"),
    "splitting a half": ({"format": 1, "split": [0.5]}, "its part 'split'"),
    "true as a number": ({"format": 1, "n_clusters": True}, "its part 'n_clusters'"),
    "a cluster below 0": ({"format": 1, "move": {"a": -1}}, "its part 'move'"),
    "a number too large": ({"format": 1, "move": {"a": 10**30}}, "its part 'move'"),
    "excluding a number": ({"format": 1, "exclude": [3]}, "its part 'exclude'"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_edits_are_told(tmp_path, what):
    values, message = WRONG[what]
    (tmp_path / "edits.json").write_text(json.dumps(values))
    with pytest.raises(UsageError, match=rf"Cannot read .*edits\.json: .*{message}"):
        Edits.read(tmp_path / "edits.json")


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"[" * 100_000, b'{"format": 1, "names": NaN}', b"{"]
)
def test_what_is_no_json_is_told(tmp_path, content):
    (tmp_path / "edits.json").write_bytes(content)
    with pytest.raises(UsageError, match=r"Cannot read .*Save the edits again"):
        Edits.read(tmp_path / "edits.json")


def test_large_files_are_not_read(tmp_path):
    (tmp_path / "edits.json").write_text('{"format": 1}' + " " * 100)
    with EditSettings(most_bytes=50).use(), pytest.raises(UsageError, match="more than 50 bytes"):
        Edits.read(tmp_path / "edits.json")


def test_names_are_one_line_of_limited_length(tmp_path):
    names = {"0": " a\n\x1b[31mb\u202e ", "1": "x" * 1000}
    (tmp_path / "edits.json").write_text(json.dumps({"format": 1, "names": names}))
    assert Edits.read(tmp_path / "edits.json").names == {0: "a[31mb", 1: "x" * 200}
