"""How well found clusters agree with known classes, by the paper's two measures."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from tuckermix._array_api import is_array, to_numpy
from tuckermix._records import Record

__all__ = ["MatchedTable", "clustering_accuracy", "matched_table", "normalized_mutual_information"]


def clustering_accuracy(y_true: Any, y_pred: Any) -> float:
    r"""Compute the share of samples that the best matching of clusters to classes gets right.

    .. math:: AC = \frac{1}{M} \max_{\pi} \sum_i [\, y_i = \pi(\hat{y}_i) \,]

    The maximum is over the one-to-one matchings :math:`\pi` of clusters to classes and is exact
    (an assignment problem on the contingency table). Where there are more clusters than classes,
    or fewer, those left over match nothing, and their samples count as wrong.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The classes, as numbers or strings.
    y_pred : array-like of shape (n_samples,)
        The clusters. Only equality matters; the names need not be those of the classes.

    Returns
    -------
    accuracy : float
        In (0, 1]; 1 means the same partition. Two constant labelings are the same partition.

    Examples
    --------
    >>> from tuckermix.metrics import clustering_accuracy
    >>> clustering_accuracy(["cat", "cat", "dog", "dog"], [1, 1, 0, 1])
    0.75
    """
    counts = matched_table(y_true, y_pred).counts
    return float(np.trace(counts) / counts.sum())


def normalized_mutual_information(y_true: Any, y_pred: Any) -> float:
    r"""Compute the mutual information of classes and clusters over the larger entropy.

    .. math:: NMI = \frac{I(y; \hat{y})}{\max(H(y), H(\hat{y}))}
        = \frac{H(y) + H(\hat{y}) - H(y, \hat{y})}{\max(H(y), H(\hat{y}))}

    Two constant labelings, for which this is 0/0, are the same partition: their value is 1. One
    constant labeling tells nothing about a labeling that varies: the value is 0.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The classes, as numbers or strings.
    y_pred : array-like of shape (n_samples,)
        The clusters. Only equality matters; the names need not be those of the classes.

    Returns
    -------
    nmi : float
        In [0, 1]; 1 means the same partition.

    Examples
    --------
    >>> from tuckermix.metrics import normalized_mutual_information
    >>> normalized_mutual_information([0, 0, 1, 1], ["b", "b", "a", "a"])
    1.0
    """
    (_, classes), (_, clusters) = _numbered(y_true, y_pred)
    table = contingency_matrix(classes, clusters, sparse=True)
    if table.shape == (table.nnz, table.nnz):
        return 1.0  # one partition under two names; a quotient of logarithms can miss 1 by rounding
    with warnings.catch_warnings():
        # scikit-learn takes many small classes for the targets of a regression.
        warnings.simplefilter("ignore", UserWarning)
        value = normalized_mutual_info_score(classes, clusters, average_method="max")
    return min(1.0, float(value))


@dataclass(frozen=True)
class MatchedTable(Record):
    """Counts of samples by class and cluster, clusters in the order of their classes.

    Attributes
    ----------
    counts : array of shape (n_classes, n_clusters)
        The number of samples of each class in each cluster.
    classes : array of shape (n_classes,)
        The values of the known labels; those that no cluster is left for come last.
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
    y_true : array-like of shape (n_samples,)
        The classes, as numbers or strings.
    y_pred : array-like of shape (n_samples,)
        The clusters. Only equality matters; the names need not be those of the classes.

    Returns
    -------
    table : MatchedTable
        The counts, in matched order.
    """
    (classes, rows), (clusters, columns) = _numbered(y_true, y_pred)
    counts = contingency_matrix(rows, columns)
    matched = linear_sum_assignment(counts, maximize=True)
    top, left = (
        np.concatenate([chosen, np.setdiff1d(np.arange(size), chosen)])
        for chosen, size in zip(matched, counts.shape, strict=True)
    )
    return MatchedTable(counts[np.ix_(top, left)], classes[top], clusters[left])


def _numbered(y_true: Any, y_pred: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Check two labelings of the same samples; return the values and the numbers of each."""
    found = [_codes(y_true, "y_true"), _codes(y_pred, "y_pred")]
    n_true, n_pred = (codes.size for _, codes in found)
    if n_true != n_pred:
        raise ValueError(
            f"y_true has {n_true} labels and y_pred has {n_pred}: they must label the same samples."
        )
    return found


def _codes(labels: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Check a labeling; return its values, and their numbers from 0."""
    values = to_numpy(labels) if is_array(labels) else np.asarray(labels)
    if values.ndim != 1:
        raise ValueError(
            f"{name} must be one-dimensional, one label per sample. Got shape {values.shape}."
        )
    if values.size == 0:
        raise ValueError(f"{name} is empty: at least one label is needed.")
    try:
        distinct, codes = np.unique(values, return_inverse=True)
    except TypeError as error:
        kinds = ", ".join(sorted({type(value).__name__ for value in values}))
        raise ValueError(
            f"{name} mixes labels that cannot be compared ({kinds}): use one type for all."
        ) from error
    if np.any(distinct != distinct):  # NaN alone differs from itself
        raise ValueError(f"{name} contains NaN: leave the samples without a label out of both.")
    return distinct, codes
