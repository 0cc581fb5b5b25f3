"""How well found clusters agree with known classes, by the paper's two measures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array

from tuckermix._array_api import is_array, to_numpy

__all__ = ["clustering_accuracy", "normalized_mutual_information"]


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
    table = _contingency(y_true, y_pred).toarray()
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].sum() / table.sum())


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
        The clusters.

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
    table = _contingency(y_true, y_pred)
    joint = _entropy(table.data)
    classes, clusters = _entropy(table.sum(axis=1)), _entropy(table.sum(axis=0))
    larger = max(classes, clusters)
    if larger == 0:
        return 1.0
    # Rounding can carry the difference a hair outside the range of the quotient.
    return min(1.0, max(0.0, (classes + clusters - joint) / larger))


def _entropy(counts: np.ndarray) -> float:
    """Compute the entropy of the distribution with these counts.

    `fsum` rounds once, whatever the order: equal partitions get equal entropies, and an NMI of
    exactly 1.
    """
    total = int(counts.sum())
    shares = np.sort(counts[counts > 0]) / total
    return abs(math.fsum(-shares * np.log(shares)))


def _contingency(y_true: Any, y_pred: Any) -> coo_array:
    """Count the samples of each class in each cluster; shape (n_classes, n_clusters), sparse."""
    classes, clusters = _codes(y_true, "y_true"), _codes(y_pred, "y_pred")
    if classes.size != clusters.size:
        raise ValueError(
            f"y_true has {classes.size} labels and y_pred has {clusters.size}: "
            "they must label the same samples."
        )
    table = coo_array(
        (np.ones(classes.size, dtype=np.int64), (classes, clusters)),
        shape=(classes.max() + 1, clusters.max() + 1),
    )
    table.sum_duplicates()
    return table


def _codes(labels: Any, name: str) -> np.ndarray:
    """Check a labeling and number its labels from 0."""
    values = to_numpy(labels) if is_array(labels) else np.asarray(labels)
    if values.ndim != 1:
        raise ValueError(
            f"{name} must be one-dimensional, one label a sample. Got shape {values.shape}."
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
    return codes
