"""Parameters of estimators: inherited, keyword-only."""

import pytest
from sklearn.base import BaseEstimator, clone

from tuckermix._estimators import declare


@declare
class Base(BaseEstimator):
    """A base."""

    size: int = 3
    shape: str = "round"


@declare
class Derived(Base):
    """A class with another default and a parameter of its own."""

    size: int = 5
    tol: float = 0.1


def test_parameters_are_inherited_and_stored():
    model = Derived(shape="flat")
    assert clone(model).get_params() == {"shape": "flat", "size": 5, "tol": 0.1}
    with pytest.raises(TypeError):
        Derived(5)
