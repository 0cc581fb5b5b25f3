"""Parameters of estimators: inherited, keyword-only."""

import inspect
import re

import pytest
from sklearn.base import BaseEstimator, clone

from tuckermix import baselines
from tuckermix._estimators import declare
from tuckermix.persistence import CLASSES


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


@pytest.mark.parametrize("name", [name for name in CLASSES if hasattr(baselines, name)])
def test_docstrings_list_parameters_and_fitted_attributes(name):
    cls = getattr(baselines, name)
    parameters, attributes = inspect.getdoc(cls).split("\nAttributes\n")
    listed = re.findall(r"^(\w+) : ", parameters.split("\nParameters\n")[1], re.MULTILINE)
    assert set(listed) == set(inspect.signature(cls).parameters)
    found = set(re.findall(r"^(\w+) : ", attributes, re.MULTILINE))
    assert {"labels_", "memberships_", "n_iter_"} <= found
