"""Displays: objects that hold the numbers of one picture and draw it with matplotlib.

They follow scikit-learn's pattern: a class method such as `from_estimator` computes the numbers
and draws them, `plot(ax=None)` draws them again, and the artists are kept as `ax_`, `figure_` and
so on. Nothing here calls ``plt.show``. Colours are those of Okabe and Ito, doubled by markers,
line styles or hatches, so that every picture can be read in grey.
"""

from tuckermix.plots.charts import (
    ConfusionDisplay,
    ConvergenceDisplay,
    EnergyDisplay,
    MapDisplay,
    MembershipDisplay,
    SelectionDisplay,
)
from tuckermix.plots.tiles import (
    AbundanceDisplay,
    CentroidDisplay,
    ComponentDisplay,
    MemberDisplay,
    TreeDisplay,
)

__all__ = [
    "CentroidDisplay",
    "MemberDisplay",
    "MembershipDisplay",
    "MapDisplay",
    "ConvergenceDisplay",
    "EnergyDisplay",
    "ConfusionDisplay",
    "ComponentDisplay",
    "AbundanceDisplay",
    "SelectionDisplay",
    "TreeDisplay",
]
