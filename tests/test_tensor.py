"""The old place of the tensor operations still works, and says where they are."""

import numpy as np
import pytest

import tuckermix
from tuckermix import tensor
from tuckermix.decomposition import result
from tuckermix.numerics import tensor as home


@pytest.mark.parametrize("name", tensor.__all__)
def test_every_function_is_handed_out_with_a_word(name):
    place = result if name == "relative_error" else home
    with pytest.warns(DeprecationWarning, match=rf"\.{name} has moved to {place.__name__};"):
        assert getattr(tensor, name) is getattr(place, name)


def test_importing_by_name_works_as_before():
    with pytest.warns(DeprecationWarning, match="unfold has moved"):
        from tuckermix.tensor import unfold
    np.testing.assert_array_equal(unfold(np.arange(6).reshape(2, 3), 1), [[0, 3], [1, 4], [2, 5]])


def test_other_names_are_unknown():
    with pytest.raises(AttributeError, match="has no attribute 'refold'"):
        tensor.refold  # noqa: B018


def test_it_is_still_found_in_the_package_but_no_longer_offered():
    assert tuckermix.__getattr__("tensor") is tensor
    assert "tensor" not in tuckermix.__all__
