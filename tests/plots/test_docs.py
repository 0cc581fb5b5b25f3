"""The examples of the pages on plots, the report, weights, gaps and streams run."""

import re
import textwrap
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
IMAGE_BYTES = 150_000


def python_blocks(text):
    for block in re.findall(r"^\.\. code-block:: python\n\n((?:   .*\n|\n)+)", text, re.MULTILINE):
        yield textwrap.dedent(block)


PAGES = ["plots.rst", "report.rst", "memberships.rst", "missing.rst", "streams.rst"]


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope = {}
    blocks = list(python_blocks((DOCS / page).read_text()))
    assert blocks
    for block in blocks:
        exec(block, scope)


def test_every_display_has_an_image():
    from tuckermix import plots

    text = (DOCS / "plots.rst").read_text()
    for name in plots.__all__:
        assert f"{name}.from_estimator" in text
    images = re.findall(r"image:: (\S+)", text + (DOCS / "report.rst").read_text())
    assert len(images) >= len(plots.__all__)
    for image in images:
        assert 0 < (DOCS / image).stat().st_size < IMAGE_BYTES
