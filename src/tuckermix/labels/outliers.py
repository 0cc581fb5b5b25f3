r"""How unlike the fitted samples a sample is.

Four things are compared with what is usual among the fitted samples, each on a logarithmic scale:

- its distance to its nearest neighbours in the view, relative to theirs;
- its part within the view that lies outside the directions in which most samples vary;
- its part outside the view, which the model does not explain at all;
- its strength, the mean of its absolute entries, in both directions: what is paler than all others
  lies between them, where nothing else finds it.

Outliers that come in groups are each other's neighbours and pull directions towards themselves. So
what is usual is learned from a *core* of the samples. At first a sample is judged by the directions
of all clusters but its own: a cluster of strangers is not explained by the others, one of several
kinds of the same thing mostly is. Then the samples that fit least leave the core, and the rest is
judged again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from tuckermix._array_api import (
    Array,
    asarray_like,
    double,
    epsilon,
    get_namespace,
    is_dask,
    take_rows,
    to_numpy,
)
from tuckermix._estimators import Settings
from tuckermix._names import OUTLIERS
from tuckermix._records import Record
from tuckermix._validation import check_option, inner_share
from tuckermix.labels.graph import COPY_POWER
from tuckermix.numerics.points import NearestPoints

CORE = 0.85
"""The share of the samples in the core. With 5 to 10 % outliers none is left in it; with a smaller
core whole clusters fall out of it."""


@dataclass(frozen=True)
class OutlierSettings(Settings):
    """How unusual samples are told.

    Attributes
    ----------
    rounds : int
        How often the core is chosen again. A third round changes it by little, and at the cost of
        small clusters.
    energy : float
        The share of the energy of the core that its directions hold.
    least_part : float
        A part of a sample below this share of the usual energy does not make it an outlier, however
        small it is among the others: it may be rounding.
    upper : float
        The unit of the scores: from the median of a part to this quantile of it, among the core.
    least_spread : float
        The least unit, on the logarithmic scale, where a part is the same in all samples.
    quartile_units : float
        From the median to the quantile 0.9 it is that many times as far as to the upper quartile,
        in a normal distribution. What is outside the view is known of all samples only, of which a
        few per cent may be outliers, and quartiles do not mind them.
    most_leverage : float
        A bound on the leverage of a sample, lest its part outside be divided by nothing.
    low, high : float
        Quantiles of scores from which their upper tail is foreseen.
    beyond_doubt : float
        Scores that so few would exceed by chance, if their tail were that of an exponential
        distribution, are those of outliers: they do not count where the threshold is set. With
        0.001 a fifth of some groups was missed, with 0.01 up to 9 % of ordinary samples are beyond
        one of 5 %.
    """

    rounds: int = 2
    energy: float = 0.95
    least_part: float = 0.001
    upper: float = 0.9
    least_spread: float = 0.001
    quartile_units: float = 1.9
    most_leverage: float = 0.9
    low: float = 0.5
    high: float = 0.8
    beyond_doubt: float = 0.003


@dataclass(frozen=True)
class Reference(Record):
    """What is usual among the fitted samples.

    Attributes
    ----------
    points : array of shape (n_core, n_features)
        The points of the core.
    spacing : array of shape (n_core,)
        The mean distance of each to its nearest neighbours among them, float64.
    n_neighbors : int
        How many neighbours.
    mean : array of shape (d,)
        The mean of the core in the view.
    directions : array of shape (d, r)
        The directions in which it varies.
    energies : array of shape (r,)
        The squared singular values of the core along them.
    floor : float
        What is added to squared parts.
    medians, units : ndarray of shape (3,)
        Of the logarithms of the first three parts.
    strengths : tuple of (float, float, float) or None, default=None
        The quantiles 0.1, 0.5 and 0.9 of the strengths; None where they are not known.
    """

    points: Array
    spacing: Array
    n_neighbors: int
    mean: Array
    directions: Array
    energies: Array
    floor: float
    medians: np.ndarray
    units: np.ndarray
    strengths: tuple[float, float, float] | None = None

    def score(self, points: Array, coordinates: Array, leftover: Array, strength: Array) -> Array:
        """Return how unlike the core samples are.

        Parameters
        ----------
        points : array of shape (n_samples, n_features)
            Where the labels place them.
        coordinates : array of shape (n_samples, d)
            Where they lie along orthonormal directions of the view.
        leftover : array of shape (n_samples,)
            The squares of their parts outside the view.
        strength : array of shape (n_samples,)
            The means of their absolute entries.

        Returns
        -------
        scores : array of shape (n_samples,)
            The largest of the four parts. 0 is usual, 1 is what one in ten of the core exceeds.
        """
        use = OutlierSettings.current()
        xp = get_namespace(points)
        rest = xp.log(double(leftover) + self.floor)
        scores = self._largest([*self._inside(points, coordinates), rest])
        if self.strengths is not None:
            least = max(use.least_part * self.strengths[1], float(np.finfo(np.float64).tiny))
            low, middle, high = (math.log(part + least) for part in self.strengths)
            above = xp.log(double(strength) + least) - middle
            scores = xp.maximum(scores, above / max(high - middle, use.least_spread))
            scores = xp.maximum(scores, -above / max(middle - low, use.least_spread))
        return xp.astype(scores, points.dtype)

    def _largest(self, parts: list[Array]) -> Array:
        """Return the largest of the first parts, in their units."""
        scores = [
            (part - float(median)) / float(unit)
            for part, median, unit in zip(parts, self.medians, self.units, strict=False)
        ]
        return reduce(get_namespace(parts[0]).maximum, scores)

    # The core, made ready for many blocks of samples.
    _near = cached_property(lambda self: NearestPoints(self.points))

    def __getstate__(self) -> dict[str, Any]:
        return self.to_dict()  # without what can be made again

    def _inside(self, points: Array, coordinates: Array) -> tuple[Array, Array]:
        """Return the logarithms of the relative distance and of the part within the view."""
        use = OutlierSettings.current()
        xp = get_namespace(points)
        count = min(self.n_neighbors + 1, int(self.points.shape[0]))
        indices, squares = self._near.find(points, count)
        # A sample of the core is none of its own neighbours; for others the last one is left out.
        own = squares[:, 0] <= epsilon(points) ** (2 * COPY_POWER)
        skip = xp.astype(own[:, None], xp.float64)
        distances = _without_one(xp.sqrt(squares), skip)
        around = xp.take(self.spacing, xp.reshape(indices, (-1,)), axis=0)
        around = _without_one(xp.reshape(around, indices.shape), skip)
        tiny = float(np.finfo(np.float64).tiny)
        near = xp.log((distances + tiny) / (around + tiny))
        rows = double(coordinates) - self.mean
        along = xp.matmul(rows, self.directions)
        # As if the sample had had no part in the directions.
        leverage = xp.clip(xp.sum(along**2 / self.energies, axis=1), 0.0, use.most_leverage)
        leverage = xp.where(own, leverage, 0.0)
        outside = xp.clip(xp.sum(rows**2, axis=1) - xp.sum(along**2, axis=1), 0.0, None)
        return near, xp.log(outside / (1.0 - leverage) ** 2 + self.floor)


def _without_one(values: Array, skip_first: Array) -> Array:
    """Return the means of rows without their first entry (where 1) or their last (where 0)."""
    xp = get_namespace(values)
    if values.shape[1] == 1:
        return xp.zeros_like(values[:, 0])
    return xp.mean(skip_first * values[:, 1:] + (1.0 - skip_first) * values[:, :-1], axis=1)


def learn_reference(
    points: Array,
    coordinates: Array,
    labels: np.ndarray,
    leftover: tuple[float, float],
    n_neighbors: int,
    strengths: tuple[float, float, float] | None = None,
) -> Reference:
    """Learn what is usual from samples of which some may be outliers.

    Parameters
    ----------
    points : array of shape (n_samples, n_features)
        Where the labels place the samples, no two of them at the same point.
    coordinates : array of shape (n_samples, d)
        Where they lie along orthonormal directions of the view.
    labels : ndarray of shape (n_samples,)
        Their clusters.
    leftover : tuple of (float, float)
        The median and the upper quartile of the squares of their parts outside the view.
    n_neighbors : int
        How many neighbours are compared.
    strengths : tuple of (float, float, float) or None, default=None
        The quantiles 0.1, 0.5 and 0.9 of their strengths; None leaves strengths out of the scores.

    Returns
    -------
    reference : Reference
        What `score` needs.
    """
    use, xp = OutlierSettings.current(), get_namespace(points)
    q = to_numpy(coordinates).astype(np.float64)
    floor = use.least_part * float(np.median(np.sum(q * q, axis=1)))
    floor = max(floor, float(np.finfo(np.float64).tiny))
    others = np.log(_outside_other_clusters(q, labels) + floor)

    def reference_of(core: np.ndarray) -> Reference:
        """Gather what is usual in a core."""
        inside = take_rows(points, core)
        count = min(n_neighbors, len(core) - 1)
        spacing = double(points[: len(core), 0]) * 0.0
        if count > 0:
            _, squares = NearestPoints(inside).find(inside, count, exclude_self=True)
            spacing = xp.mean(xp.sqrt(squares), axis=1)
        mean = q[core].mean(axis=0)
        rows = q[core] - mean
        directions, energies = _leading(rows.T @ rows)
        # What little there may be outside the view, in data that fill it, is no ground to judge by.
        low, high = (math.log(part + floor) for part in leftover)
        last = use.quartile_units * (high - low)
        found = Reference(
            points=inside,
            spacing=spacing,
            n_neighbors=count,
            mean=asarray_like(mean, spacing),
            directions=asarray_like(directions, spacing),
            energies=asarray_like(energies, spacing),
            floor=floor,
            medians=np.array([0.0, 0.0, low]),
            units=np.array([1.0, 1.0, max(last, use.least_spread)]),
        )
        parts = found._inside(inside, asarray_like(q[core], spacing))
        medians, units = found.medians.copy(), found.units.copy()
        for place, part in enumerate(parts):
            middle, upper = np.quantile(to_numpy(part), [0.5, use.upper])
            medians[place], units[place] = middle, max(float(upper - middle), use.least_spread)
        return replace(found, medians=medians, units=units)

    everything = reference_of(np.arange(len(q)))
    near = to_numpy(everything._inside(points, double(coordinates))[0])
    scores = np.maximum(_in_units(others), _in_units(near))
    for _ in range(use.rounds):
        core = np.sort(np.argsort(scores, kind="stable")[: math.ceil(CORE * len(q))])
        found = reference_of(core)
        inside = found._inside(points, asarray_like(q, found.spacing))
        scores = to_numpy(found._largest([*inside]))
    return replace(found, strengths=strengths)


def _in_units(values: np.ndarray) -> np.ndarray:
    """Return how far values are above their median, in units of the quantile 0.9."""
    use = OutlierSettings.current()
    low, high = np.quantile(values, [0.5, use.upper])
    return (values - low) / max(float(high - low), use.least_spread)


def _outside_other_clusters(q: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the squared part of samples outside the directions of all clusters but their own."""
    found = np.zeros(len(q))
    gram, total = q.T @ q, q.sum(axis=0)
    for label in np.unique(labels):
        own = q[labels == label]
        n_others = len(q) - len(own)
        if n_others < 2:
            continue
        mean = (total - own.sum(axis=0)) / n_others
        directions, _ = _leading(gram - own.T @ own - n_others * np.outer(mean, mean))
        rows = own - mean
        along = rows @ directions
        found[labels == label] = np.sum(rows * rows, axis=1) - np.sum(along * along, axis=1)
    return np.clip(found, 0.0, None)


def _leading(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvectors of a Gram matrix that hold 95 % of its trace, and their values."""
    values, vectors = np.linalg.eigh(gram)
    values, vectors = np.clip(values[::-1], 0.0, None), vectors[:, ::-1]
    shares = np.cumsum(values)
    if len(values) == 0 or shares[-1] == 0.0:
        return vectors[:, :0], values[:0]
    rank = int(np.searchsorted(shares, OutlierSettings.current().energy * shares[-1])) + 1
    return vectors[:, :rank], values[:rank]


def check_outliers(outliers: Any, false_alarms: Any, owner: str) -> None:
    """Raise where the parameters `outliers` and `false_alarms` of an estimator are not valid."""
    check_option(outliers, "outliers", owner, OUTLIERS)
    inner_share(false_alarms, "false_alarms", owner)


def threshold_at(scores: np.ndarray, false_alarms: float) -> float:
    """Return the score that a given share of ordinary samples exceeds.

    Parameters
    ----------
    scores : ndarray of shape (n_samples,)
        Those of the fitted samples, outliers among them.
    false_alarms : float
        The share.

    Returns
    -------
    threshold : float
        The quantile of those scores that are not beyond doubt.
    """
    use = OutlierSettings.current()
    low, high = np.quantile(scores, [use.low, use.high])
    rate = math.log((1 - use.low) / use.beyond_doubt) / math.log((1 - use.low) / (1 - use.high))
    doubtful = scores[scores <= low + rate * (high - low)]
    return float(np.quantile(doubtful, 1.0 - false_alarms))


def fade(shares: Array, scores: Array, threshold: float) -> Array:
    """Make soft labels of outliers more alike, the more so the less they fit.

    ``w p + (1 - w) / K`` with ``w = exp(-(score - threshold))`` beyond the threshold and 1 below:
    votes of neighbours that are far away say little of which cluster a sample belongs to.

    Parameters
    ----------
    shares : array of shape (n_samples, n_clusters)
        Rows that sum to one.
    scores : array of shape (n_samples,)
        See `Reference.score`.
    threshold : float
        See `threshold_at`.

    Returns
    -------
    shares : array of shape (n_samples, n_clusters)
        Rows that sum to one, the largest entry where it was.
    """
    xp: Any = np if is_dask(shares) else get_namespace(shares)
    weight = xp.exp(-xp.clip(scores - threshold, 0.0, None))[:, None]
    return weight * shares + (1.0 - weight) / int(shares.shape[1])
