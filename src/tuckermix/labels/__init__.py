"""Labels: from the learned subspace, or from the memberships, to clusters.

`fit_labels` learns from at most some 10,000 samples (`choose_landmarks`); the labeller it returns
labels any number of samples, in blocks, where they lie.
"""

from tuckermix.labels.assign import (
    METHODS,
    ArgmaxLabels,
    CenterLabels,
    Labeller,
    fit_labels,
    labeller_from_arrays,
    normalize_rows,
)
from tuckermix.labels.directions import compared_directions
from tuckermix.labels.kmeans import KMeansResult, kmeans
from tuckermix.labels.landmarks import MAX_LANDMARKS, choose_landmarks
from tuckermix.labels.neighbors import nearest_neighbors
from tuckermix.labels.votes import GraphLabels

__all__ = [
    "ArgmaxLabels",
    "CenterLabels",
    "GraphLabels",
    "KMeansResult",
    "Labeller",
    "MAX_LANDMARKS",
    "METHODS",
    "choose_landmarks",
    "compared_directions",
    "fit_labels",
    "kmeans",
    "labeller_from_arrays",
    "nearest_neighbors",
    "normalize_rows",
]
