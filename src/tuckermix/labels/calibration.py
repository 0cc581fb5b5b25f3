r"""How far votes may be trusted: the agreement of fits on independent samples, learned from halves.

Two fits on disjoint halves of the samples know nothing of each other. How often both give a sample
the same label, after their clusters are matched, says what a vote is worth; no classes are needed.
A sample has no vote on itself there, so that it is nearly as new to the half that it is in as to
the other. `learn_agreement` finds the agreement as a rising function of the winning vote.

A half knows less than the whole, in two ways. Votes of the whole are larger: a vote is worth what
the vote of the same rank is worth in halves. And fits of the whole agree more: with e(s) the share
of samples on which fits on disjoint parts of the share s disagree, quarters foretell how it falls,

.. math::

    e(1) \approx \min \left( e(\tfrac12) \, \frac{e(1/2)}{e(1/4)} \, \frac{d_0}{d_1} , \;
    d_0 \right) ,

and every probability of a disagreement is lowered as much. Here d_0 and d_1 are the disagreement of
halves from different divisions, on samples that are in none of both and in one of them. Of disjoint
halves every sample is in one, and its neighbours go by it: a new sample is a little less sure.

That draws disagree no more than d_0 is the argument of half-samples, for what varies smoothly.
Halves that are drawn without regard to each other vary around what all n samples say by the
variance (2/n - 1/n) σ², as draws of n do around the truth; they would disagree as draws do, were a
half as good as the whole. Disjoint halves of one draw are opposites, what one has more of the other
has less of, and disagree more. It matters where halves are hardly better than quarters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, product
from typing import TypeAlias

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.isotonic import IsotonicRegression

from tuckermix._estimators import Settings

N_SPLITS = 8
"""Ways to divide the samples into parts: each gives as many votes as there are samples, and the
mean over several evens out how the cuts happen to fall."""

CERTAIN = 1e-3
"""No sample is surer than one in a thousand, nor less sure than chance by as much: few splits
cannot tell more."""

USUAL_RATIO = 0.7
"""By how much disagreement falls where quarters are too small to tell, as for ten pictures each of
twenty persons."""


@dataclass(frozen=True)
class CalibrationSettings(Settings):
    """How votes become probabilities.

    Attributes
    ----------
    least_each : int
        The least samples for each cluster in a quarter that tells.
    n_knots : int
        Steps of the stored function: finer than samples of any usual number support.
    """

    least_each: int = 2
    n_knots: int = 33


Pair: TypeAlias = tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Two disjoint parts: the places of their samples, and the labels that each gives to all."""


def matching(labels: np.ndarray, others: np.ndarray, n_clusters: int) -> np.ndarray:
    """Find the label of `others` that goes with each of `labels`, for most samples in all.

    Parameters
    ----------
    labels, others : ndarray of shape (n_samples,)
        Two labellings of the same samples.
    n_clusters : int
        The number of labels.

    Returns
    -------
    order : ndarray of shape (n_clusters,)
        Different labels.
    """
    shared = np.zeros((n_clusters, n_clusters))
    np.add.at(shared, (labels, others), 1.0)
    return linear_sum_assignment(-shared)[1]


def matched(labels: np.ndarray, others: np.ndarray, n_clusters: int) -> np.ndarray:
    """Rename `others` so that they agree with `labels` on as many samples as possible."""
    return np.argsort(matching(labels, others, n_clusters))[others]


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
        Scores of `VoteLabels.scores`, rising, and the agreement at each; linear between them.
    """
    use = CalibrationSettings.current()

    def compare(n_parts: int) -> tuple[np.ndarray, np.ndarray, list[Pair]]:
        """Fit pairs of disjoint parts; return scores of votes, whether others agree, and pairs."""
        found, agreement, pairs = [], [], []
        for _ in range(N_SPLITS):
            order = rng.permutation(n_samples)
            one, other = (np.sort(order[place::n_parts]) for place in range(2))
            (labels, scores), (others, other_scores) = fit_part(one), fit_part(other)
            same = labels == matched(labels, others, n_clusters)
            found += [scores, other_scores]
            agreement += [same, same]
            pairs.append(((one, labels), (other, others)))
        return np.concatenate(found), np.concatenate(agreement).astype(np.float64), pairs

    scores, agreed, pairs = compare(2)
    apart, ratio = 1.0 - agreed.mean(), USUAL_RATIO
    if n_samples >= 4 * use.least_each * n_clusters:
        ratio = min(1.0, apart / max(1.0 - compare(4)[1].mean(), CERTAIN))
    in_none, in_one = _apart_across(pairs, n_clusters)
    ratio *= max(1.0, in_none / max(in_one, CERTAIN))
    ratio = min(ratio, in_none / max(apart, CERTAIN))
    at = np.linspace(0.0, 1.0, use.n_knots)
    ends = (min((1.0 + CERTAIN) / n_clusters, 1.0 - CERTAIN), 1.0 - CERTAIN)
    rising = IsotonicRegression(y_min=ends[0], y_max=ends[1], out_of_bounds="clip")
    rising.fit(ranks_in(scores, scores), agreed)
    values = rising.predict(ranks_in(whole, at))
    values = np.clip(1.0 - ratio * (1.0 - values), *ends)
    return np.stack([at, values])


def _apart_across(pairs: list[Pair], n_clusters: int) -> tuple[float, float]:
    """Return how often parts of different pairs disagree on samples in none of both, and in one."""
    differ, count = np.zeros(3), np.zeros(3)
    for pair, other_pair in combinations(pairs, 2):
        for (one, labels), (other, others) in product(pair, other_pair):
            within = np.bincount(np.concatenate([one, other]), minlength=len(labels))
            apart = labels != matched(labels, others, n_clusters)
            differ += np.bincount(within, weights=apart, minlength=3)
            count += np.bincount(within, minlength=3)
    in_none, in_one, _ = differ / np.maximum(count, 1.0)
    return float(in_none), float(in_one)


def ranks_in(pool: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return which share of a pool is below each value, of equal ones a half."""
    order = np.sort(pool)
    below, up_to = (np.searchsorted(order, values, side=side) for side in ("left", "right"))
    return (below + up_to) / (2 * len(order))
