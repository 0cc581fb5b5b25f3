r"""How far votes may be trusted: the agreement of fits on independent samples, learned from halves.

Two fits on disjoint halves of the samples know nothing of each other. How often both give a sample
the same label, after their clusters are matched, says what a vote is worth; no classes are needed.
A sample has no vote on itself there, so that it is nearly as new to the half that it is in as to
the other. `learn_agreement` finds the agreement as a rising function of the winning vote.

A half knows less than the whole, in two ways. Votes of the whole are larger: a vote is worth what
the vote of the same rank is worth in halves. And fits of the whole agree more: with e(s) the share
of samples on which fits on parts of the share s disagree, quarters foretell how it falls,

.. math:: e(1) \approx e(\tfrac12) \left(\frac{e(1/2)}{e(1/4)}\right)^{0.85} ,

and every probability of a disagreement is lowered as much.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.isotonic import IsotonicRegression

__all__ = ["N_SPLITS", "learn_agreement", "matched", "ranks_in"]

N_SPLITS = 8
"""Ways to divide the samples into parts: each gives as many votes as there are samples, and the
mean over several evens out how the cuts happen to fall."""

CERTAIN = 1e-3
"""No sample is surer than one in a thousand, nor less sure than chance by as much: few splits
cannot tell more."""

DAMPING = 0.85
"""The next doubling of the samples gains less than the last one did. On the tuning parts the best
power is 0.5 for faces under many lights, and 1 for digits."""

USUAL_RATIO = 0.7
"""By how much disagreement falls where quarters are too small to tell, as for ten pictures each of
twenty persons."""

LEAST_EACH = 2
"""The least samples for each cluster in a quarter that tells."""

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
        gives to all samples, none of which votes on itself, and the scores of their votes, each of
        shape (n_samples,).
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
    scores, agreed = _compare(fit_part, n_samples, 2, n_clusters, rng)
    ratio = USUAL_RATIO
    if n_samples >= 4 * LEAST_EACH * n_clusters:
        _, before = _compare(fit_part, n_samples, 4, n_clusters, rng)
        fall = (1.0 - agreed.mean()) / max(1.0 - before.mean(), CERTAIN)
        ratio = min(1.0, fall) ** DAMPING
    at = np.linspace(0.0, 1.0, N_KNOTS)
    values = _rising(ranks_in(scores, scores), agreed, ranks_in(whole, at), n_clusters)
    values = np.minimum(1.0 - ratio * (1.0 - values), 1.0 - CERTAIN)
    return np.stack([at, values])


def _compare(
    fit_part: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    n_samples: int,
    n_parts: int,
    n_clusters: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Fit pairs of disjoint parts; return the scores of all votes and whether the others agree."""
    found, agreement = [], []
    for _ in range(N_SPLITS):
        order = rng.permutation(n_samples)
        one, other = (np.sort(order[place::n_parts]) for place in range(2))
        (labels, scores), (others, other_scores) = fit_part(one), fit_part(other)
        same = labels == matched(labels, others, n_clusters)
        found += [scores, other_scores]
        agreement += [same, same]
    return np.concatenate(found), np.concatenate(agreement).astype(np.float64)


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
