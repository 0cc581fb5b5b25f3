"""A map of the samples in two dimensions."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from tuckermix._declaration import describe
from tuckermix._validation import check_integer, check_option
from tuckermix.plots.fitted import even_subsample, labels_of, subspace_of
from tuckermix.plots.layout import discriminant_map, neighbor_map
from tuckermix.plots.style import DRAWN, INK, Display, axes_for, colour_of, marker_of

METHODS = {"neighbors": neighbor_map, "discriminant": discriminant_map}
MAX_SAMPLES = 10_000
"""More marks than this cover each other, and a file of them no longer opens at once."""

AREA = 30_000.0
MARK_AREAS = (7.0, 30.0)
"""The area of a mark in square points: `AREA` shared among the samples, within these limits."""


@dataclass(eq=False, repr=False)
class MapDisplay(Display):
    """Show all samples on a plane, by their place in the learned subspace.

    The labels are made in a subspace of some dozens of dimensions, in which each sample has a
    direction. The map keeps neighbours there together ("neighbors") or projects on the two
    directions that separate the clusters best ("discriminant"). Both are deterministic.

    Parameters
    ----------
    positions : array of shape (n_samples, 2)
        Where the samples are.
    labels : array of shape (n_samples,)
        The cluster of each.
    n_total : int, default=None
        The number of samples of which these were taken.

    Attributes
    ----------
    points_ : list of matplotlib PathCollection
        One for each cluster.
    ax_, figure_ : matplotlib Axes and Figure
        Where they are.
    """

    positions: Any
    labels: Any
    _: KW_ONLY
    n_total: int | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        method: str = "neighbors",
        max_samples: int = MAX_SAMPLES,
        ax: Any = None,
    ) -> MapDisplay:
        """Show the samples `X` on a map.

        Parameters
        ----------
        estimator : fitted estimator
            The clustering.
        X : array of shape (n_samples, d_1, ...)
            The samples.
        method : {"neighbors", "discriminant"}, default="neighbors"
            How two dimensions are made of many.
        max_samples : int, default=10000
            Of more samples, so many are taken, evenly spaced.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : Display
            The display, drawn.
        """
        check_option(method, "method", cls.__name__, METHODS)
        check_integer(max_samples, "max_samples", cls.__name__)
        labels = labels_of(estimator, X, cls.__name__)
        chosen = even_subsample(X.shape[0], max_samples)
        rows = subspace_of(estimator, X if len(chosen) == X.shape[0] else X[chosen])
        positions = METHODS[method](rows, labels[chosen])
        return cls(positions, labels[chosen], n_total=X.shape[0]).plot(ax)

    @classmethod
    def from_arrays(
        cls, Z: Any, labels: Any, *, method: str = "neighbors", ax: Any = None
    ) -> MapDisplay:
        """Show the rows of `Z`, coordinates of any kind.

        Parameters
        ----------
        Z : array of shape (n_samples, L)
            Coordinates of the samples.
        labels : array of shape (n_samples,)
            The cluster of each.
        method : {"neighbors", "discriminant"}, default="neighbors"
            How two dimensions are made of many.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : Display
            The display, drawn.
        """
        check_option(method, "method", cls.__name__, METHODS)
        labels = np.asarray(labels)
        return cls(METHODS[method](np.asarray(Z), labels), labels).plot(ax)

    def _draw(self, ax: Any) -> Any:
        """Draw the map."""
        ax = axes_for(type(self).__name__, ax, (6.4, 5.2))
        positions, labels = np.asarray(self.positions), np.asarray(self.labels)
        size = float(np.clip(AREA / len(positions), *MARK_AREAS))
        self.points_ = []
        for cluster in np.unique(labels):
            here = positions[labels == cluster]
            self.points_.append(
                ax.scatter(
                    *here.T,
                    s=size,
                    marker=marker_of(int(cluster)),
                    color=colour_of(int(cluster)),
                    linewidth=0,
                    label=str(cluster),
                )
            )
        for cluster in np.unique(labels):  # after all marks, so that none hides a number
            x, y = np.median(positions[labels == cluster], axis=0)
            box = {
                "boxstyle": "round,pad=0.2",
                "facecolor": "white",
                "edgecolor": INK,
                "linewidth": 0.6,
            }
            ax.text(x, y, str(cluster), ha="center", va="center", fontsize=9, bbox=box)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        total = len(positions) if self.n_total is None else self.n_total
        shown = "" if total == len(positions) else f" ({len(positions):,} of {total:,} shown)"
        ax.set_title(f"Samples that are close are alike in the learned subspace{shown}", fontsize=9)
        return ax
