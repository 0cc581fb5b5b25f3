"""Labels: from points, or from mixing weights, to clusters.

`fit_labels` learns from some samples; the labeller it returns labels any number of them, in blocks,
where they lie.
"""

import warnings
from typing import Any

from tuckermix.labels.labellers import (
    LABELLINGS,
    ArgmaxLabels,
    CenterLabels,
    GraphLabels,
    Labeller,
    Labelling,
    fit_labels,
    labeller_from_arrays,
)

__all__ = [
    "LABELLINGS",
    "ArgmaxLabels",
    "CenterLabels",
    "GraphLabels",
    "Labeller",
    "Labelling",
    "fit_labels",
    "labeller_from_arrays",
]


_MOVED = ("kmeans", "nearest_neighbors")


def __getattr__(name: str) -> Any:
    """Hand out a function that stood here from its new place, and say where that is."""
    if name not in _MOVED:
        raise AttributeError(f"module 'tuckermix.labels' has no attribute {name!r}")
    from tuckermix.numerics import points

    warnings.warn(
        f"tuckermix.labels.{name} has moved to tuckermix.numerics.points; "
        "the old place goes with version 0.3.",
        DeprecationWarning,
        stacklevel=2,
    )
    return getattr(points, name)
