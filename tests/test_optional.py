"""Packages that only some parts need, and names that have moved."""

import math

import pytest

from tuckermix._optional import moved, require


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


def test_what_has_moved_is_found_with_a_warning():
    find = moved("old.place", {"sqrt": "math"})
    with pytest.warns(DeprecationWarning, match=r"old\.place\.sqrt has moved to math"):
        assert find("sqrt") is math.sqrt
    with pytest.raises(AttributeError, match=r"module 'old\.place' has no attribute 'cos'"):
        find("cos")
