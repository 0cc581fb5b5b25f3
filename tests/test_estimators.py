"""Parameters of estimators: inherited, keyword-only, and held to their rules."""

import pytest
from sklearn.base import BaseEstimator, clone

from tuckermix._estimators import check_declared, declare, ruled
from tuckermix._validation import one_of, positive


@declare
class Base(BaseEstimator):
    """A base."""

    size: int = ruled(3, positive)
    shape: str = ruled("round", one_of(("round", "flat")))


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


def test_rules_are_inherited_too():
    check_declared(Derived())
    with pytest.raises(ValueError, match="size"):
        check_declared(Derived(size=0))
    with pytest.raises(ValueError, match="shape"):
        check_declared(Derived(shape="square"))
