"""Labels from memberships, as the comparison methods take them."""

from __future__ import annotations

import numpy as np

from tuckermix.baselines.nonnegative import scale_of
from tuckermix.numerics.points import kmeans

LABEL_RULES = ("kmeans", "argmax")

KMEANS_STARTS = 10
"""Starts of k-means on the memberships; the best counts. One start alone decides the labels of
a run by luck; ten cost less than a tenth of any factorisation here."""

START_OFFSET = 0.2
"""Added to the 0/1 indicators from which multiplicative rules start, as the authors of DRCC do:
such a rule cannot move an entry away from zero."""


def label_memberships(
    memberships: np.ndarray, n_clusters: int, rule: str, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Turn memberships into labels, every one of which occurs.

    Parameters
    ----------
    memberships : ndarray of shape (n_samples, n_components)
        The weights.
    n_clusters : int
        The number of clusters, at most `n_samples`.
    rule : {"kmeans", "argmax"}
        K-means on the rows, or the largest weight of each row (`n_components` clusters).
    rng : numpy.random.Generator
        Source of randomness for k-means.

    Returns
    -------
    labels : ndarray of shape (n_samples,)
        Labels from 0 to `n_clusters` - 1, int64.
    centers : ndarray of shape (n_clusters, n_components)
        The mean row of each cluster.
    """
    scale = scale_of(memberships)  # squares of tiny or huge weights leave the range of floats
    rows = np.asarray(memberships, dtype=np.float64) / scale
    if rule == "argmax":
        labels = np.argmax(rows, axis=1).astype(np.int64)
    else:
        labels = kmeans(rows, n_clusters, n_init=KMEANS_STARTS, rng=rng).labels
    labels = _occupy(rows, labels, n_clusters)
    counts = np.bincount(labels, minlength=n_clusters)
    sums = np.zeros((n_clusters, rows.shape[1]))
    np.add.at(sums, labels, rows)
    return labels, sums / counts[:, None] * scale


def _occupy(rows: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Give each empty cluster the sample that lies farthest from the mean of its own."""
    counts = np.bincount(labels, minlength=n_clusters)
    for empty in np.flatnonzero(counts == 0):
        sums = np.zeros((n_clusters, rows.shape[1]))
        np.add.at(sums, labels, rows)
        means = sums / np.maximum(counts, 1)[:, None]
        distance = np.sum((rows - means[labels]) ** 2, axis=1)
        distance[counts[labels] < 2] = -1.0  # the last sample of a cluster stays
        moved = int(np.argmax(distance))
        counts[labels[moved]] -= 1
        labels[moved] = empty
        counts[empty] = 1
    return labels


def lifted_indicator(labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Turn labels into a 0/1 matrix, lifted off zero."""
    return np.eye(n_clusters)[labels] + START_OFFSET
