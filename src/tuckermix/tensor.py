"""The old place of `tuckermix.numerics.tensor`, for one more version."""

from __future__ import annotations

import warnings
from typing import Any

from tuckermix.numerics import tensor as _tensor

__all__ = list(_tensor.__all__)


def __getattr__(name: str) -> Any:
    """Hand out a function of `tuckermix.numerics.tensor`, and say that it has moved."""
    if name not in __all__:
        raise AttributeError(f"module 'tuckermix.tensor' has no attribute {name!r}")
    warnings.warn(
        f"tuckermix.tensor.{name} has moved to tuckermix.numerics.tensor; "
        "the old place goes with version 0.3.",
        DeprecationWarning,
        stacklevel=2,
    )
    return getattr(_tensor, name)
