"""Cluster stacks of images, videos, volumes and other N-way arrays without flattening them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tuckermix._version import __version__

if TYPE_CHECKING:
    from tuckermix.clustering import TuckerClustering
    from tuckermix.decomposition import Decomposition, decompose
    from tuckermix.persistence import load, save
    from tuckermix.selection import AutoClustering, MultiViewClustering

__all__ = [
    "AutoClustering",
    "Decomposition",
    "MultiViewClustering",
    "TuckerClustering",
    "__version__",
    "baselines",
    "datasets",
    "decompose",
    "features",
    "labels",
    "load",
    "manifolds",
    "metrics",
    "numerics",
    "objectives",
    "plots",
    "report",
    "save",
    "selection",
    "solvers",
    "sources",
]

_HOMES = {
    "AutoClustering": "tuckermix.selection",
    "Decomposition": "tuckermix.decomposition",
    "MultiViewClustering": "tuckermix.selection",
    "TuckerClustering": "tuckermix.clustering",
    "decompose": "tuckermix.decomposition",
    "load": "tuckermix.persistence",
    "save": "tuckermix.persistence",
}


def __getattr__(name: str) -> Any:
    """Import public names when they are first used, so that ``import tuckermix`` is quick."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in __all__ or name == "experiments":  # which says where it has moved
        return importlib.import_module(f"tuckermix.{name}")
    raise AttributeError(f"module 'tuckermix' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
