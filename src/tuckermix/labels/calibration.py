"""How far votes may be trusted: the agreement of fits on independent samples, learned from halves.

Two fits on disjoint halves of the samples know nothing of each other. Where a sample is in neither
of them or in one, how often both give it the same label, after their clusters are matched, says
what a vote is worth; no classes are needed. `learn_agreement` finds that as a rising function of
the winning vote.

A half knows less than the whole. So a vote of the whole fit is worth what the same vote is worth in
halves, or what the vote of the same rank is: the larger of both. Where votes do not depend on the
number of samples the first holds, where clusters have few samples only the second does.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.isotonic import IsotonicRegression

__all__ = ["N_SPLITS", "learn_agreement", "matched", "ranks_in"]

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
    fit_part: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    n_samples: int,
    n_clusters: int,
    rng: np.random.Generator,
    whole: np.ndarray,
) -> np.ndarray:
    """Learn how probable it is that an independent fit agrees with a vote.

    Parameters
    ----------
    fit_part : callable
        ``fit_part(indices)`` fits labels to some of the samples; it returns the labels that it
        gives to all samples and the scores of their votes, each of shape (n_samples,).
    n_samples : int
        The number of samples.
    n_clusters : int
        The number of labels.
    rng : numpy.random.Generator
        The source of the halves.
    whole : ndarray of shape (n_landmarks,)
        Scores of the fit to all samples, of samples that do not vote for themselves.

    Returns
    -------
    knots : ndarray of shape (2, n_knots)
        Scores of `GraphLabels.scores`, rising, and the agreement at each; linear between them.
    """
    found, agreement = [], []
    for _ in range(N_SPLITS):
        order = rng.permutation(n_samples)
        halves = np.sort(order[: n_samples // 2]), np.sort(order[n_samples // 2 :])
        (labels, scores), (others, other_scores) = fit_part(halves[0]), fit_part(halves[1])
        same = labels == matched(labels, others, n_clusters)
        # A sample of its own half votes for itself: only those of the other one are new to a fit.
        found += [scores[halves[1]], other_scores[halves[0]]]
        agreement += [same[halves[1]], same[halves[0]]]
    pooled, agreed = np.concatenate(found), np.concatenate(agreement).astype(np.float64)
    at = np.linspace(0.0, 1.0, N_KNOTS)
    by_value = _rising(pooled, agreed, at, n_clusters)
    by_rank = _rising(ranks_in(pooled, pooled), agreed, ranks_in(whole, at), n_clusters)
    return np.stack([at, np.maximum(by_value, by_rank)])


def ranks_in(pool: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return which share of a pool is below each value, of equal ones a half."""
    order = np.sort(pool)
    below, up_to = (np.searchsorted(order, values, side=side) for side in ("left", "right"))
    return (below + up_to) / (2 * len(order))


def _rising(x: np.ndarray, y: np.ndarray, at: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the mean of y as a rising function of x, at other places."""
    least = (1 + CERTAIN) / n_clusters
    rising = IsotonicRegression(y_min=min(least, 1 - CERTAIN), y_max=1 - CERTAIN)
    rising.fit(x, y)
    return rising.predict(np.clip(at, rising.X_min_, rising.X_max_))
