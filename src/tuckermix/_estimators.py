"""Estimators as dataclasses: their parameters, and the rules that values of these obey."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

Class = TypeVar("Class", bound=type)

Rule = Callable[[Any, str, str], Any]
"""What the values of a parameter obey: called with the value, its name and the estimator's."""


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def declare(estimator: Class) -> Class:
    """Make an estimator of a class whose annotated attributes are its parameters.

    The constructor takes the parameters of the class and of its bases and stores them, which is
    what scikit-learn asks for.

    Parameters
    ----------
    estimator : type
        The class, with annotations and defaults of its own parameters only.

    Returns
    -------
    estimator : type
        The same class.
    """
    make: Any = dataclass(eq=False, repr=False, match_args=False, kw_only=True)
    return make(estimator)


def ruled(default: Any, rule: Rule) -> Any:
    """Declare a parameter with its default and the rule that its values obey."""
    return field(default=default, metadata={"rule": rule})


def check_declared(estimator: Any) -> None:
    """Hold the parameters of an estimator to their rules; new defaults keep inherited ones."""
    cls = type(estimator)
    for name in cls.__dataclass_fields__:
        entries = [vars(base).get("__dataclass_fields__", {}).get(name) for base in cls.__mro__]
        rules = [entry.metadata["rule"] for entry in entries if entry and "rule" in entry.metadata]
        for rule in rules[:1]:
            rule(getattr(estimator, name), name, cls.__name__)
