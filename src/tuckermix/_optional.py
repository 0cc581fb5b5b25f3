"""Packages that only some parts need, imported where they are used."""

from __future__ import annotations

import sys
from typing import Any


def require(module: str, owner: str, extra: str, package: str | None = None) -> Any:
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
