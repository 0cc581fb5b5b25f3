"""The old place of `tuckermix.numerics.tensor`, for one more version."""

from __future__ import annotations

from tuckermix._optional import moved
from tuckermix.decomposition import result
from tuckermix.numerics import tensor

_HOMES = {**dict.fromkeys(tensor.__all__, tensor.__name__), "relative_error": result.__name__}

__all__ = list(_HOMES)

__getattr__ = moved(__name__, _HOMES)
