"""Features of images and other N-way samples, to be clustered in place of their pixels."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tuckermix.features.registry import TRANSFORMERS

if TYPE_CHECKING:
    from tuckermix.features.network import Network
    from tuckermix.features.scale import Scale
    from tuckermix.features.scattering import Scattering
    from tuckermix.features.texture import Texture

__all__ = ["Network", "Scale", "Scattering", "Texture"]


def __getattr__(name: str) -> Any:
    """Import a transformer when it is first used: the command line reads names alone."""
    if name in TRANSFORMERS:
        return getattr(import_module(TRANSFORMERS[name]), name)
    raise AttributeError(f"module 'tuckermix.features' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
