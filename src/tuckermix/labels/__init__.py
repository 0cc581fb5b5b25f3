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
)

__all__ = ["LABELLINGS", "ArgmaxLabels", "CenterLabels", "GraphLabels", "Labeller", "Labelling"]
__all__ += ["Learned", "VoteLabels", "fit_labels", "labeller_from_arrays"]
