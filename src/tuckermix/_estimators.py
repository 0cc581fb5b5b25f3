"""Estimators as dataclasses of their parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

Class = TypeVar("Class", bound=type)


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
