"""The old place of `tuckermix.numerics.tensor`, for one more version."""

from __future__ import annotations

import warnings
from typing import Any

from tuckermix.decomposition import result
from tuckermix.numerics import tensor

_HOMES = {**dict.fromkeys(tensor.__all__, tensor), "relative_error": result}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Hand out a function from its new place, and say where that is."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tuckermix.tensor' has no attribute {name!r}")
    home = _HOMES[name]
    warnings.warn(
        f"tuckermix.tensor.{name} has moved to {home.__name__}; "
        "the old place goes with version 0.3.",
        DeprecationWarning,
        stacklevel=2,
    )
    return getattr(home, name)
