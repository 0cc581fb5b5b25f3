"""The page on features says what is true."""

import re
import textwrap
from pathlib import Path

import numpy as np

PAGE = Path(__file__).resolve().parents[2] / "docs" / "features.rst"


def test_the_snippets_of_the_page_run():
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^\.\. code-block:: python\n\n((?:   .*\n|\n)+)", text, re.MULTILINE)
    assert len(blocks) >= 2
    names = {}
    for block in blocks:
        exec(compile(textwrap.dedent(block), str(PAGE), "exec"), names)
    assert np.array_equal(names["model"].predict(names["digits"].X), names["labels"])
