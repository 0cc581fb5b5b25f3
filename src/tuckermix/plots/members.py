"""The samples nearest to and farthest from each centroid."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from tuckermix._declaration import describe
from tuckermix._validation import check_integer
from tuckermix.plots.centroids import draw_tiles, figure_size
from tuckermix.plots.fitted import centroids_of, distances_to, labels_of, rows_of
from tuckermix.plots.pictures import picture, value_range
from tuckermix.plots.style import DRAWN, INK, Display, axes_for, require_matplotlib

TILE_INCHES = 0.55
HEAD_INCHES = 0.2
"""Room for the line between the title and the first row."""


def extreme_members(
    labels: np.ndarray, distances: np.ndarray, n_clusters: int, n_members: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Choose the nearest and the farthest members of each cluster.

    A cluster with fewer than twice `n_members` samples shows none of them twice: the nearest come
    first, the farthest take what is left.

    Parameters
    ----------
    labels : array of shape (n,)
        The cluster of each sample.
    distances : array of shape (n,)
        The distance of each sample from its centroid.
    n_clusters, n_members : int
        The number of clusters, and of members wanted on each side.

    Returns
    -------
    nearest, farthest : lists of arrays
        For each cluster the sample indices, the most extreme first.
    """
    nearest, farthest = [], []
    for cluster in range(n_clusters):
        members = np.flatnonzero(labels == cluster)
        members = members[np.argsort(distances[members], kind="stable")]
        nearest.append(members[:n_members])
        farthest.append(members[n_members:][::-1][:n_members])
    return nearest, farthest


@dataclass(eq=False, repr=False)
class MemberDisplay(Display):
    """Show the samples nearest to and farthest from the centroid of each cluster.

    The distance is ‖x − c_k‖ in the space of the samples. What is near shows what the cluster is
    about; what is far shows where it is doubtful.

    Parameters
    ----------
    centroids : array of shape (n_clusters, d_1, ...)
        The centroids.
    nearest, farthest : sequences of arrays of shape (n_k, d_1, ...)
        For each cluster the chosen samples, the most extreme first.
    kind : str, default="auto"
        How a sample is shown; videos by their middle frame, volumes by a middle slice.

    Attributes
    ----------
    image_ : matplotlib AxesImage
        The pictures: one row a cluster.
    ax_, figure_ : matplotlib Axes and Figure
        Where they are.
    """

    centroids: Any
    nearest: Any
    farthest: Any
    _: KW_ONLY
    kind: str = "auto"

    @classmethod
    @describe(DRAWN)
    def from_estimator(
        cls, estimator: Any, X: Any, *, n_members: int = 5, kind: str = "auto", ax: Any = None
    ) -> MemberDisplay:
        """Show members among the samples `X`.

        Parameters
        ----------
        estimator : estimator with `centroids_`
            The fitted clustering.
        n_members : int, default=5
            How many on each side.
        """
        check_integer(n_members, "n_members", cls.__name__)
        centroids = centroids_of(estimator, cls.__name__)
        labels = labels_of(estimator, X, cls.__name__)
        distances = distances_to(X, centroids, labels)
        nearest, farthest = extreme_members(labels, distances, len(centroids), n_members)
        return cls(
            centroids,
            [rows_of(X, indices) for indices in nearest],
            [rows_of(X, indices) for indices in farthest],
            kind=kind,
        ).plot(ax)

    def _draw(self, ax: Any) -> Any:
        """Draw one row for each cluster: its centroid, the nearest, the farthest."""
        owner = type(self).__name__
        require_matplotlib(owner)
        centroids = np.asarray(self.centroids)
        n_near = max(len(chosen) for chosen in self.nearest)
        n_far = max((len(chosen) for chosen in self.farthest), default=0)
        limits = value_range(np.concatenate([centroids, *self.nearest]))
        middle = picture(centroids, self.kind, limits)
        blank = np.ones((1, *middle.shape[1:]), dtype=np.float32)
        rows = []
        for cluster in range(len(centroids)):
            row = [middle[cluster : cluster + 1], blank]
            for chosen, count in ((self.nearest[cluster], n_near), (self.farthest[cluster], n_far)):
                if len(chosen):
                    row.append(picture(chosen, self.kind, limits))
                row.extend([blank] * (count - len(chosen) + 1))
            rows.append(np.concatenate(row[:-1]))
        tiles = np.concatenate(rows)
        columns = n_near + n_far + 3
        height, width = tiles.shape[1:3]
        wide, high = figure_size(tiles, columns, False, TILE_INCHES)
        ax = axes_for(owner, ax, (wide, high + HEAD_INCHES))
        names = [str(cluster) for cluster in range(len(centroids))]
        self.image_ = draw_tiles(ax, tiles, columns, names, [])
        step = width + max(1, round(max(height, width) / 12))
        heads = [("centroid", 0.5), ("nearest first", 2 + n_near / 2)]
        if n_far:
            heads.append(("farthest first", 3 + n_near + n_far / 2))
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
