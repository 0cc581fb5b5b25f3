"""How far votes may be trusted: the agreement of fits on independent samples, learned from halves.

Two fits on disjoint halves of the samples know nothing of each other. Where a sample is in neither
of them or in one, how often both give it the same label, after their clusters are matched, says
what a vote is worth; no classes are needed. `learn_agreement` finds that as a rising function of
the winning vote.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.isotonic import IsotonicRegression

from tuckermix._array_api import to_numpy
from tuckermix.labels.labellers import GraphLabels

__all__ = ["N_SPLITS", "learn_agreement", "matched"]

N_SPLITS = 5
"""Ways to divide the samples into halves: each gives as many votes as there are samples, and the
mean over several evens out how the cut happens to fall."""

CERTAIN = 1e-3
"""No sample is surer than one in a thousand, nor less sure than chance by as much: few splits
cannot tell more."""

N_KNOTS = 33
"""Steps of the stored function: finer than samples of any usual number support."""


def matched(labels: np.ndarray, others: np.ndarray, n_clusters: int) -> np.ndarray:
    """Rename `others` so that they agree with `labels` on as many samples as possible.

    Parameters
    ----------
    labels, others : ndarray of shape (n_samples,)
        Two labellings of the same samples.
    n_clusters : int
        The number of labels.

    Returns
    -------
    renamed : ndarray of shape (n_samples,)
        The second labelling with the names of the first.
    """
    shared = np.zeros((n_clusters, n_clusters))
    np.add.at(shared, (labels, others), 1.0)
    rows, columns = linear_sum_assignment(-shared)
    names = np.empty(n_clusters, dtype=np.int64)
    names[columns] = rows
    return names[others]


def learn_agreement(
    fit_part: Callable[[np.ndarray], tuple[GraphLabels, np.ndarray]],
    n_samples: int,
    n_clusters: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Learn how probable it is that an independent fit agrees with a vote.

    Parameters
    ----------
    fit_part : callable
        ``fit_part(indices)`` fits labels to some of the samples; it returns the labeller and the
        votes that it gives to all samples, of shape (n_samples, n_clusters).
    n_samples : int
        The number of samples.
    n_clusters : int
        The number of labels.
    rng : numpy.random.Generator
        The source of the halves.

    Returns
    -------
    knots : ndarray of shape (2, n_knots)
        Scores of `GraphLabels.scores`, rising, and the agreement at each; linear between them.
    """
    scores, agreement = [], []
    for _ in range(N_SPLITS):
        order = rng.permutation(n_samples)
        halves = np.sort(order[: n_samples // 2]), np.sort(order[n_samples // 2 :])
        (first, votes), (second, other_votes) = fit_part(halves[0]), fit_part(halves[1])
        labels, others = votes.argmax(axis=1), other_votes.argmax(axis=1)
        same = labels == matched(labels, others, n_clusters)
        # A sample of its own half votes for itself: only those of the other one are new to a fit.
        scores += [to_numpy(first.scores(votes))[halves[1]]]
        scores += [to_numpy(second.scores(other_votes))[halves[0]]]
        agreement += [same[halves[1]], same[halves[0]]]
    least = (1 + CERTAIN) / n_clusters
    rising = IsotonicRegression(y_min=min(least, 1 - CERTAIN), y_max=1 - CERTAIN)
    rising.fit(np.concatenate(scores), np.concatenate(agreement).astype(np.float64))
    at = np.linspace(0.0, 1.0, N_KNOTS)
    span = np.clip(at, rising.X_min_, rising.X_max_)
    return np.stack([at, rising.predict(span)])
