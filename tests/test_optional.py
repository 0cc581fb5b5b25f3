"""Packages that only some parts need."""

import math

import pytest

from tuckermix._optional import require


def test_what_is_there_is_handed_out_whole():
    import xml.etree.ElementTree as expected

    assert require("math", "It", "plot") is math
    assert require("xml.etree.ElementTree", "It", "plot") is expected


@pytest.mark.parametrize(
    ("package", "named"), [(None, "no_such_package"), ("a package", "a package")]
)
def test_what_is_missing_is_named_with_the_remedy(package, named):
    with pytest.raises(ImportError, match=rf"^It needs {named}: install tuckermix\[plot\]\.$"):
        require("no_such_package.module", "It", "plot", package=package)
