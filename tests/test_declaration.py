"""Parameters and descriptions that classes inherit and functions share."""

import inspect

import pytest
from sklearn.base import BaseEstimator, clone

from tuckermix import baselines
from tuckermix._declaration import (
    _entries,
    _sections,
    declare,
    describe,
)
from tuckermix.persistence import CLASSES


@declare
class Base(BaseEstimator):
    """A base.

    Parameters
    ----------
    size : int, default=3
        How large.
    tol : float, default=1e-5
        How exact.

    Attributes
    ----------
    found_ : int
        What was found.
    """

    size: int = 3
    tol: float = 1e-5


@declare
class Derived(Base):
    """A method.

    Parameters
    ----------
    shape : str, default="round"
        Which shape.

    Attributes
    ----------
    found_ : float
        Found differently.
    more_ : int
        More.

    Notes
    -----
    Parameters
    are explained above.
    """

    tol: float = 0.25
    shape: str = "round"


def test_parameters_are_inherited():
    model = Derived(size=4, shape="flat")
    assert model.get_params() == {"size": 4, "tol": 0.25, "shape": "flat"}
    assert clone(model).get_params() == model.get_params()
    assert Base().tol == 1e-5


def test_unknown_parameters_are_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'depth'"):
        Derived(depth=1)


def test_descriptions_are_inherited_with_the_defaults_of_the_class():
    sections = _sections(Derived.__doc__)
    assert sections[""].strip() == "A method."
    assert list(_entries(sections["Parameters"]).items()) == [
        ("shape", 'shape : str, default="round"\n    Which shape.'),
        ("size", "size : int, default=3\n    How large."),
        ("tol", "tol : float, default=0.25\n    How exact."),
    ]
    assert list(_entries(sections["Attributes"]).items()) == [
        ("found_", "found_ : float\n    Found differently."),
        ("more_", "more_ : int\n    More."),
    ]
    assert sections["Notes"].strip() == "Parameters\nare explained above."


def test_a_class_without_docstring_inherits_all_descriptions():
    class Silent(Base):
        size: int = 5

    declare(Silent)
    parameters = _entries(_sections(Silent.__doc__)["Parameters"])
    assert parameters["size"] == "size : int, default=5\n    How large."
    assert Silent().size == 5


@pytest.mark.parametrize("name", [name for name in CLASSES if hasattr(baselines, name)])
def test_docstrings_list_parameters_and_fitted_attributes(name):
    cls = getattr(baselines, name)
    sections = _sections(cls.__doc__)
    assert set(_entries(sections["Parameters"])) == set(inspect.signature(cls).parameters)
    assert {"labels_", "memberships_", "n_iter_"} <= set(_entries(sections["Attributes"]))


COMMON = """
Parameters
----------
X : array of shape (n_samples, d_1, ...)
    The samples.
y : Ignored
    For others' sake.
**options : dict
    More.

Returns
-------
found : float
    What was found.
"""


def test_functions_share_what_they_do_not_say_themselves():
    @describe(COMMON)
    def look(X, n_rows, n_columns, *, deep=False, **options):
        """Look for it.

        Closely.

        Parameters
        ----------
        n_rows, n_columns : int
            The shape.
        deep : bool, default=False
            Whether to dig.

        Examples
        --------
        >>> 1 + 1
        2
        """

    sections = _sections(look.__doc__)
    assert list(sections) == ["", "Parameters", "Returns", "Examples"]
    entries = _entries(sections["Parameters"])
    assert list(entries) == ["X", "n_rows, n_columns", "deep", "**options"]
    assert entries["X"].endswith("The samples.")
    assert sections["Returns"].strip() == "found : float\n    What was found."
    assert look.__doc__.startswith("Look for it.\n\nClosely.\n\nParameters\n----------\nX : ")


def test_what_a_function_says_itself_stays():
    @describe(COMMON)
    def look(y, X):
        """Look for it.

        Parameters
        ----------
        X : str
            A place.

        Returns
        -------
        it : str
            The thing.
        """

    sections = _sections(look.__doc__)
    entries = _entries(sections["Parameters"])
    assert list(entries) == ["y", "X"]
    assert entries["X"] == "X : str\n    A place."
    assert sections["Returns"].strip() == "it : str\n    The thing."


def test_without_docstrings_of_their_own_functions_have_the_shared_one():
    def look(X):
        pass

    assert "The samples." in describe(COMMON)(look).__doc__  # as under python -OO


def test_one_function_may_describe_the_parameters_of_another():
    def first(X, y):
        """Look.

        Parameters
        ----------
        X : array
            The samples.
        y : array
            The classes.

        Returns
        -------
        found : float
            How much.
        """

    @describe(first)
    def second(X):
        """Look again."""

    assert second.__doc__ == (
        "Look again.\n\nParameters\n----------\nX : array\n    The samples.\n\n"
        "Returns\n-------\nfound : float\n    How much."
    )
