"""Clusters against known classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from tuckermix._array_api import to_numpy
from tuckermix._records import Record
from tuckermix.plots.fitted import labels_of
from tuckermix.plots.style import SEQUENTIAL, axes_for

MAX_PRINTED = 20
"""With more classes than this the counts no longer fit their cells."""


@dataclass(frozen=True)
class MatchedTable(Record):
    """Counts of samples by class and cluster, clusters in the order of their classes.

    Attributes
    ----------
    counts : array of shape (n_classes, n_clusters)
        The number of samples of each class in each cluster.
    classes : array of shape (n_classes,)
        The values of the known labels.
    clusters : array of shape (n_clusters,)
        The clusters, so ordered that matched pairs lie on the diagonal; unmatched ones come last.
    """

    counts: np.ndarray
    classes: np.ndarray
    clusters: np.ndarray


def matched_table(y_true: Any, y_pred: Any) -> MatchedTable:
    """Count samples by class and cluster, and match the two so that most lie on the diagonal.

    Parameters
    ----------
    y_true : array of shape (n_samples,)
        The known classes: numbers or strings.
    y_pred : array of shape (n_samples,)
        The clusters.

    Returns
    -------
    table : MatchedTable
        The counts, in matched order.
    """
    y_true, y_pred = to_numpy(y_true), to_numpy(y_pred)
    if y_true.shape != y_pred.shape or y_true.ndim != 1:
        raise ValueError(
            f"y_true has shape {y_true.shape}, but y_pred has shape {y_pred.shape}: "
            "both must be 1-D and of one length."
        )
    classes, rows = np.unique(y_true, return_inverse=True)
    clusters, columns = np.unique(y_pred, return_inverse=True)
    counts = np.zeros((len(classes), len(clusters)), dtype=np.int64)
    np.add.at(counts, (rows, columns), 1)
    _, matched = linear_sum_assignment(counts, maximize=True)
    rest = np.setdiff1d(np.arange(len(clusters)), matched)
    order = np.concatenate([matched, rest])
    if len(classes) > len(clusters):  # classes that no cluster is left for go below the others
        row, matched = linear_sum_assignment(counts, maximize=True)
        below = np.setdiff1d(np.arange(len(classes)), row)
        top = np.concatenate([row, below])
        return MatchedTable(counts[top][:, matched], classes[top], clusters[matched])
    return MatchedTable(counts[:, order], classes, clusters[order])


class ConfusionDisplay:
    """Show how the clusters divide known classes, clusters matched to classes.

    Cell (i, j) counts the samples of class i in cluster j. The columns are ordered by the optimal
    matching, so the diagonal holds the samples that count as right in the clustering accuracy.

    Parameters
    ----------
    table : MatchedTable
        The counts, classes and clusters.

    Attributes
    ----------
    image_ : matplotlib AxesImage
        The shares of each class.
    texts_ : list of matplotlib Text
        The counts, where they fit.
    ax_, figure_ : matplotlib Axes and Figure
        Where they are.
    """

    def __init__(self, table: MatchedTable) -> None:
        self.table = table

    @classmethod
    def from_predictions(cls, y_true: Any, y_pred: Any, *, ax: Any = None) -> ConfusionDisplay:
        """Compare two labelings.

        Parameters
        ----------
        y_true : array of shape (n_samples,)
            The known classes.
        y_pred : array of shape (n_samples,)
            The clusters.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : ConfusionDisplay
            The display, drawn.
        """
        return cls(matched_table(y_true, y_pred)).plot(ax)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Any = None) -> ConfusionDisplay:
        """Compare the labels that an estimator gives to `X` with known classes.

        Parameters
        ----------
        estimator : estimator with `labels_`
            The fitted clustering.
        X : array of shape (n_samples, d_1, ...)
            The samples.
        y : array of shape (n_samples,)
            The known classes.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : ConfusionDisplay
            The display, drawn.
        """
        return cls.from_predictions(y, labels_of(estimator, X, cls.__name__), ax=ax)

    def plot(self, ax: Any = None) -> ConfusionDisplay:
        """Draw the table.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : ConfusionDisplay
            The display itself.
        """
        counts = self.table.counts
        n_rows, n_columns = counts.shape
        side = min(9.0, 2.2 + 0.36 * max(n_rows, n_columns))
        ax = axes_for(type(self).__name__, ax, (side + 0.6, side))
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        self.image_ = ax.imshow(shares, cmap=SEQUENTIAL, vmin=0, vmax=1)
        self.texts_ = []
        if max(n_rows, n_columns) <= MAX_PRINTED:
            self.texts_ = [
                ax.text(
                    j,
                    i,
                    str(counts[i, j]),
                    ha="center",
                    va="center",
                    fontsize=7,
                    color="white" if shares[i, j] < 0.5 else "black",
                )
                for i in range(n_rows)
                for j in range(n_columns)
                if counts[i, j]
            ]
            ax.set_xticks(range(n_columns), [str(c) for c in self.table.clusters], fontsize=8)
            ax.set_yticks(range(n_rows), [str(c) for c in self.table.classes], fontsize=8)
        ax.set(xlabel="cluster, matched to the classes", ylabel="class")
        right = np.trace(counts) / counts.sum()
        ax.set_title(f"Clusters against classes: {right:.1%} on the diagonal", fontsize=9)
        ax.figure.colorbar(self.image_, ax=ax, label="share of the class", shrink=0.8)
        self.ax_, self.figure_ = ax, ax.figure
        return self
