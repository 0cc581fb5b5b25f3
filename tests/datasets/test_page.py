"""The documentation page on data names all of them."""

from pathlib import Path

import pytest

from tuckermix.datasets._registry import KNOWN

PAGE = Path(__file__).resolve().parents[2] / "docs" / "datasets.rst"


@pytest.fixture
def text():
    if not PAGE.is_file():
        pytest.skip("the documentation is not part of this copy")
    return PAGE.read_text(encoding="utf-8")


def test_all_known_datasets_are_listed(text):
    for name in KNOWN:
        assert f"``{name}``" in text
