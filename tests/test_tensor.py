"""The old place of the tensor operations still works, and says where they are."""

import numpy as np
import pytest

from tuckermix import tensor
from tuckermix.numerics import tensor as home


@pytest.mark.parametrize("name", home.__all__)
def test_every_function_is_handed_out_with_a_word(name):
    with pytest.warns(DeprecationWarning, match=rf"tuckermix\.tensor\.{name} has moved to"):
        assert getattr(tensor, name) is getattr(home, name)


def test_importing_by_name_works_as_before():
    with pytest.warns(DeprecationWarning, match="unfold has moved"):
        from tuckermix.tensor import unfold
    np.testing.assert_array_equal(unfold(np.arange(6).reshape(2, 3), 1), [[0, 3], [1, 4], [2, 5]])


def test_other_names_are_unknown():
    with pytest.raises(AttributeError, match="has no attribute 'refold'"):
        tensor.refold  # noqa: B018
