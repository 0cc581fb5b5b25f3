"""Labels: from points, or from mixing weights, to clusters.

`fit_labels` learns from some samples; the labeller it returns labels any number of them, in blocks,
where they lie.
"""

from tuckermix.labels.labellers import (
    LABELLINGS,
    ArgmaxLabels,
    CenterLabels,
    GraphLabels,
    Labeller,
    Labelling,
    Learned,
    VoteLabels,
    fit_labels,
    labeller_from_arrays,
    learn_labels,
)

__all__ = [
    "LABELLINGS",
    "ArgmaxLabels",
    "CenterLabels",
    "GraphLabels",
    "VoteLabels",
    "Labeller",
    "Labelling",
    "Learned",
    "fit_labels",
    "learn_labels",
    "labeller_from_arrays",
]
