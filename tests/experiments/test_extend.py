"""The examples of the page "add something of your own" are this test."""

import re
import sys
import textwrap
from pathlib import Path

import pytest

from tuckermix.datasets import READERS
from tuckermix.decomposition import SOLVERS
from tuckermix.experiments import DATASETS, METHODS, Store
from tuckermix.labels import LABELLINGS

PAGE = Path(__file__).parents[2] / "docs" / "extend.rst"


@pytest.fixture
def blocks():
    if not PAGE.is_file():
        pytest.skip("the documentation is not part of this copy")
    found = re.findall(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)", PAGE.read_text())
    return [textwrap.dedent(block) for block in found]


def test_the_examples_run_and_say_what_the_page_says(blocks, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tables = (METHODS, DATASETS, SOLVERS, LABELLINGS, READERS)
    before = [set(table) for table in tables]
    assert len(blocks) == 8
    names: dict = {"__name__": "example"}
    try:
        for block in blocks:
            exec(compile(block, str(PAGE), "exec"), names)
    finally:
        for table, known in zip(tables, before, strict=True):
            for name in set(table) - known:
                del table[name]
        sys.modules.pop("my_solvers", None)
    printed = capsys.readouterr().out
    assert "mixture" in printed
    assert "Stripes of three phases" in printed
    with Store("mine.sqlite", read_only=True) as store:
        stripes = store.records(experiment="stripes")
        assert len(stripes) == 2 * 3 * 3
        assert all(record.status == "ok" for record in stripes), [r.error for r in stripes]
        assert all(record.ac == 1.0 for record in stripes if record.method == "mixture")
    assert (tmp_path / "mine" / "stripes.md").is_file()
    assert (tmp_path / "sizes.png").stat().st_size > 0
