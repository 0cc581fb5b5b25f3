"""Which members of a cluster are typical, which doubtful, and a display of both."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tuckermix._array_api import to_numpy
from tuckermix._declaration import describe
from tuckermix._validation import check_integer
from tuckermix.plots.centroids import draw_tiles, figure_size
from tuckermix.plots.fitted import as_fitted, centroids_of, distances_to, labels_of, rows_of
from tuckermix.plots.pictures import picture, value_range
from tuckermix.plots.style import DRAWN, INK, Display, axes_for

TILE_INCHES = 0.55
HEAD_INCHES = 0.2
"""Room for the line between the title and the first row."""


def confidence_of(estimator: Any, X: Any, labels: np.ndarray) -> np.ndarray:
    """Return the soft label of each sample for its own cluster; ones where there are none.

    Outliers, of label -1, get the largest of their soft labels.
    """
    if not hasattr(estimator, "predict_proba"):
        return np.ones(len(labels))
    proba = to_numpy(estimator.predict_proba(as_fitted(estimator, X)))
    return proba[np.arange(len(labels)), np.where(labels < 0, proba.argmax(axis=1), labels)]


def typical_members(
    labels: np.ndarray,
    confidence: np.ndarray,
    distances: np.ndarray,
    n_clusters: int,
    n_members: int,
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Choose the typical and the doubtful members of each cluster.

    Typical members have the largest soft label for their cluster and, among equals, lie nearest
    to its centroid; doubtful ones have the smallest and, among equals, lie farthest. This is what
    the two words mean everywhere: in displays, in the report and in the documentation.

    A cluster with fewer than twice `n_members` samples shows none of them twice: the typical come
    first, the doubtful take what is left.

    Parameters
    ----------
    labels : array of shape (n,)
        The cluster of each sample.
    confidence : array of shape (n,)
        The soft label of each sample for its cluster.
    distances : array of shape (n,)
        The distance of each sample from its centroid.
    n_clusters, n_members : int
        The number of clusters, and of members wanted on each side.

    Returns
    -------
    typical, doubtful : lists of arrays
        For each cluster the sample indices, the most typical or doubtful first.
    """
    typical, doubtful = [], []
    for cluster in range(n_clusters):
        members = np.flatnonzero(labels == cluster)
        order = members[np.lexsort((distances[members], -confidence[members]))]
        typical.append(order[:n_members])
        doubtful.append(order[n_members:][::-1][:n_members])
    return typical, doubtful


class MemberDisplay(Display):
    """Show the centroid of each cluster, its typical members and its doubtful ones.

    Typical members have the largest soft label and, among equals, lie nearest to the centroid:
    they show what the cluster is about. Doubtful ones have the smallest and, among equals, lie
    farthest. Of an estimator without `predict_proba` all are equal, and the distance decides.

    Parameters
    ----------
    centroids : array of shape (n_clusters, d_1, ...)
        The centroids.
    typical, doubtful : sequences of arrays of shape (n_k, d_1, ...), default=None
        For each cluster the chosen samples, the most typical or doubtful first.
    kind : str, default="auto"
        How a sample is shown; videos by their middle frame, volumes by a middle slice.
    nearest, farthest : sequences of arrays, default=None
        Earlier names of `typical` and `doubtful`; they go with version 0.3.

    Attributes
    ----------
    image_ : matplotlib AxesImage
        The pictures: one row a cluster.
    ax_, figure_ : matplotlib Axes and Figure
        Where they are.
    """

    def __init__(
        self,
        centroids: Any,
        typical: Any = None,
        doubtful: Any = None,
        *,
        kind: str = "auto",
        nearest: Any = None,
        farthest: Any = None,
    ) -> None:
        if nearest is not None or farthest is not None:
            warnings.warn(
                "The parameters nearest and farthest of MemberDisplay go with version 0.3: pass "
                "typical and doubtful.",
                DeprecationWarning,
                stacklevel=2,
            )
            typical = nearest if typical is None else typical
            doubtful = farthest if doubtful is None else doubtful
        if typical is None or doubtful is None:
            raise TypeError(
                "MemberDisplay needs typical and doubtful, the chosen samples of each cluster: "
                "pass both, or use MemberDisplay.from_estimator."
            )
        self.centroids = centroids
        self.typical = typical
        self.doubtful = doubtful
        self.kind = kind

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, n_members: int = 5, kind: str = "auto", ax: Any = None
    ) -> MemberDisplay:
        """Show members among the samples `X`.

        Parameters
        ----------
        estimator : estimator with `centroids_`
            The fitted clustering.
        X : array of shape (n_samples, d_1, ...)
            The samples.
        n_members : int, default=5
            How many on each side.
        kind : str, default="auto"
            How a sample is shown.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : Display
            The display, drawn.
        """
        check_integer(n_members, "n_members", cls.__name__)
        centroids = centroids_of(estimator, cls.__name__)
        labels = labels_of(estimator, X, cls.__name__)
        typical, doubtful = typical_members(
            labels,
            confidence_of(estimator, X, labels),
            distances_to(X, centroids, labels),
            len(centroids),
            n_members,
        )
        return cls(
            centroids,
            [rows_of(X, indices) for indices in typical],
            [rows_of(X, indices) for indices in doubtful],
            kind=kind,
        ).plot(ax)

    def _draw(self, ax: Any) -> Any:
        """Draw one row for each cluster: its centroid, the typical, the doubtful."""
        centroids = np.asarray(self.centroids)
        n_typical = max(len(chosen) for chosen in self.typical)
        n_doubtful = max((len(chosen) for chosen in self.doubtful), default=0)
        limits = value_range(np.concatenate([centroids, *self.typical]))
        middle = picture(centroids, self.kind, limits)
        blank = np.ones((1, *middle.shape[1:]), dtype=np.float32)
        rows = []
        for cluster in range(len(centroids)):
            row = [middle[cluster : cluster + 1], blank]
            for chosen, count in (
                (self.typical[cluster], n_typical),
                (self.doubtful[cluster], n_doubtful),
            ):
                if len(chosen):
                    row.append(picture(chosen, self.kind, limits))
                row.extend([blank] * (count - len(chosen) + 1))
            rows.append(np.concatenate(row[:-1]))
        tiles = np.concatenate(rows)
        columns = n_typical + n_doubtful + 3
        height, width = tiles.shape[1:3]
        wide, high = figure_size(tiles, columns, False, TILE_INCHES)
        ax = axes_for(type(self).__name__, ax, (wide, high + HEAD_INCHES))
        names = [str(cluster) for cluster in range(len(centroids))]
        self.image_ = draw_tiles(ax, tiles, columns, names, [])
        step = width + max(1, round(max(height, width) / 12))
        heads = [("centroid", 0.5), ("most typical first", 2 + n_typical / 2)]
        if n_doubtful:
            heads.append(("most doubtful first", 3 + n_typical + n_doubtful / 2))
        for text, column in heads:
            ax.text(
                column * step,
                -0.5 - 0.12 * height,
                text,
                ha="center",
                va="bottom",
                fontsize=8,
                color=INK,
            )
        ax.set_title("Each cluster: its centroid, typical and doubtful members", fontsize=9, pad=18)
        return ax
