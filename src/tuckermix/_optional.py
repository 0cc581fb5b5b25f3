"""What is imported where it is used: packages that only some parts need, names that have moved."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any


def require(module: str, owner: str, extra: str, *, package: str | None = None) -> Any:
    """Import a module, or say what to install.

    Parameters
    ----------
    module : str
        The module, such as "matplotlib.pyplot".
    owner : str
        Who needs it, the subject of the sentence.
    extra : str
        The extra of this package that brings it.
    package : str or None, default=None
        What people call the package; None means the first part of `module`.

    Returns
    -------
    module : module
        The module.
    """
    try:
        __import__(module)
    except ImportError as error:
        name = package or module.partition(".")[0]
        raise ImportError(f"{owner} needs {name}: install tuckermix[{extra}].") from error
    return sys.modules[module]


def moved(module: str, homes: dict[str, str]) -> Callable[[str], Any]:
    """Make the `__getattr__` of a module whose names have moved to others.

    Parameters
    ----------
    module : str
        The old place.
    homes : dict of str to str
        The new place of each name.

    Returns
    -------
    find : callable
        Hands out a name from its new place, and says where that is.
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(
            f"{module}.{name} has moved to {homes[name]}; the old place goes with version 0.3.",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(import_module(homes[name]), name)

    return find
