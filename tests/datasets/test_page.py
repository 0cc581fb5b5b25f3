"""The documentation page on data: its examples run, from top to bottom."""

import re
import textwrap
from pathlib import Path

import pytest

from tuckermix.datasets._known import KNOWN

PAGE = Path(__file__).resolve().parents[2] / "docs" / "datasets.rst"


@pytest.fixture
def text():
    if not PAGE.is_file():
        pytest.skip("the documentation is not part of this copy")
    return PAGE.read_text(encoding="utf-8")


def test_the_examples_run(text, tmp_path, monkeypatch):
    pytest.importorskip("PIL", reason="pillow is not installed")
    pytest.importorskip("dask", reason="Dask is not installed")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^\.\. code-block:: python\n\n((?:   .*\n|\n)+)", text, re.MULTILINE)
    assert len(blocks) > 8
    names = {}
    for block in blocks:
        exec(compile(textwrap.dedent(block), str(PAGE), "exec"), names)
    assert names["data"].class_names == ["cats", "dogs"]
    assert names["message"].startswith("Cannot read broken.npz: it is damaged or not what its name")
    assert names["videos"].name == "dynamic-texture stand-in"


def test_all_known_datasets_are_listed(text):
    for name in KNOWN:
        assert f"``{name}``" in text
