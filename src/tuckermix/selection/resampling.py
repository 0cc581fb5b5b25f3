"""How stable labels are: the label step again on parts of the samples.

A partition that is in the data comes back when a fifth of the samples is left out; one that is not
changes. For views of this package no part is fitted again: the lists of neighbours, twice as long
as the graph needs them, are restricted to the part, and the graph is cut again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from tuckermix._array_api import Array, asarray_like, get_namespace, to_numpy
from tuckermix.labels.graph import adjacency, cut_graph, graph_vectors, modularity
from tuckermix.numerics.points import nearest_neighbors
from tuckermix.selection.record import Trial, weight_of
from tuckermix.selection.shared import Features
from tuckermix.selection.views import Look, Spectrum, looks_of, ridge_points

__all__ = ["Resampler", "agreement", "restrict", "set_clusters"]

SHARE = 0.8
"""The share of samples in a subsample: with fewer, small clusters vanish; with more, nothing
changes."""

LONGER = 2
"""Lists of neighbours are that many times longer than needed, so that enough are left in a part."""

N_INIT = 5
"""Starts of k-means in each cut: half of those of a fit, since many cuts are averaged."""

NEIGHBORS = 15
"""Neighbours in the graph that judges labels of estimators which have none of their own."""


FEWEST = 8
"""Neighbours in the graphs that weigh the views: as many for all of them, since few neighbours make
a larger modularity."""

NUMBERS_KEPT = 7
"""How many numbers of clusters have their neighbours and eigenvectors kept: those that lead at the
end, which are looked at by turns, and the one that stands for none."""


class _Kept:
    """What is kept for a number of clusters: lists of neighbours, and eigenvectors as guesses."""

    def __init__(self) -> None:
        self.lists: dict[tuple[Any, ...], tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        self.guesses: dict[str, np.ndarray] = {}


class Resampler:
    """Try numbers of clusters on candidates, with the same subsamples for all of them.

    Parameters
    ----------
    X : array of shape (n_samples, d_1, ...)
        Samples in memory, no two of them equal.
    candidates : list of (str, estimator)
        What is compared; never fitted itself.
    rng : numpy.random.Generator
        The source of subsamples and of starts.
    judge : str or None, default=None
        The candidate on whose graph the modularity of all partitions is measured; None means that
        each has its own.
    weigh : bool, default=False
        Whether modularity counts where views are compared, see `weight_of`. It does not where a
        candidate has no graph of its own.
    features : Features or None, default=None
        Features of the same samples, where some are known.
    """

    def __init__(
        self,
        X: Array,
        candidates: list[tuple[str, Any]],
        rng: np.random.Generator,
        judge: str | None = None,
        *,
        weigh: bool = False,
        features: Features | None = None,
    ):
        self.X = X
        self.features = Features(X) if features is None else features
        self.judge = judge
        self.n_samples = int(X.shape[0])
        self.candidates = dict(candidates)
        self.looks = {name: looks_of(estimator) for name, estimator in candidates}
        self.weigh = weigh and None not in self.looks.values()
        self.seed = int(rng.integers(2**31))
        self._spectra: dict[str, Spectrum] = {}
        self._kept: dict[int, _Kept] = {}
        self._within: dict[tuple[int, str], float] = {}
        self._weights: dict[tuple[int, str], float] = {}
        self._runs: dict[tuple[int, str], tuple[np.ndarray, float, list[float]]] = {}

    def subsample(self, place: int) -> np.ndarray:
        """Return the sorted indices of subsample number `place`."""
        rng = np.random.default_rng([self.seed, place])
        size = max(1, round(SHARE * self.n_samples))
        return np.sort(rng.choice(self.n_samples, size, replace=False))

    def prepare(self, name: str) -> None:
        """Compute the features of a candidate now rather than when they are first needed."""
        for look in self.looks[name] or []:
            self._spectrum(look)

    def trial(self, n_clusters: int, name: str, n_subsamples: int) -> Trial | None:
        """Measure stability and modularity of a candidate for a number of clusters.

        Parameters
        ----------
        n_clusters : int
            The number of clusters.
        name : str
            The candidate.
        n_subsamples : int
            How many subsamples are wanted; those that were tried before are not tried again.

        Returns
        -------
        trial : Trial or None
            None where the graph falls into more parts than there are clusters.
        """
        key = (n_clusters, name)
        if key not in self._runs:
            labels, quality = self._whole(n_clusters, name)
            if labels is None:
                return None
            self._runs[key] = (labels, quality, [])
            looks = self.looks[name]
            A = self._graph(looks, n_clusters, None) if looks else self._judging_graph()
            self._within[key] = weight_within(A, labels)
        labels, quality, found = self._runs[key]
        for place in range(len(found), n_subsamples):
            keep = self.subsample(place)
            part = self._part(n_clusters, name, keep, place)
            found.append(0.0 if part is None else agreement(labels[keep], part))
        stability, within = float(np.mean(found)), self._within[key]
        weight = self._weight(n_clusters, name, labels) if self.weigh else 1.0
        return Trial(n_clusters, name, stability, quality, len(found), within, weight)

    def labels(self, n_clusters: int, name: str) -> np.ndarray:
        """Return the labels of all samples that a trial found."""
        return self._runs[n_clusters, name][0]

    def agreements(self, n_clusters: int, name: str) -> np.ndarray:
        """Return the adjusted Rand index of each subsample that was tried, in their order."""
        return np.array(self._runs[n_clusters, name][2])

    def _weight(self, n_clusters: int, name: str, labels: np.ndarray) -> float:
        """Return what the stability of labels counts by, see `weight_of`."""
        key, looks = (n_clusters, name), self.looks[name]
        if key not in self._weights:
            assert looks is not None
            A = self._graph(looks, n_clusters, None, FEWEST)
            self._weights[key] = weight_of(modularity(A, labels), n_clusters)
        return self._weights[key]

    def _kept_for(self, n_clusters: int) -> _Kept:
        """Return what is kept for a number of clusters; the numbers tried last have something."""
        kept = self._kept.pop(n_clusters, None) or _Kept()
        self._kept[n_clusters] = kept
        if len(self._kept) > NUMBERS_KEPT:
            del self._kept[next(iter(self._kept))]
        return kept

    def _whole(self, n_clusters: int, name: str) -> tuple[np.ndarray | None, float]:
        looks = self.looks[name]
        if looks is None:
            found = self._refit(n_clusters, name, None, 0)
            return found, modularity(self._judging_graph(), found)
        A = self._graph(looks, n_clusters, None)
        labels = self._cut(A, n_clusters, 0, self._vectors(A, n_clusters, name))
        if labels is None:
            return None, 0.0
        judging = None if self.judge is None else self.looks[self.judge]
        return labels, modularity(self._graph(judging, n_clusters, None) if judging else A, labels)

    def _part(self, n_clusters: int, name: str, keep: np.ndarray, place: int) -> np.ndarray | None:
        looks = self.looks[name]
        if looks is None:
            return self._refit(n_clusters, name, keep, place + 1)
        guesses = self._kept_for(n_clusters).guesses
        if name not in guesses:
            self._vectors(self._graph(looks, n_clusters, None), n_clusters, name)
        A = self._graph(looks, n_clusters, keep)
        guess = guesses.get(name)
        pair = graph_vectors(A, n_clusters, None if guess is None else guess[keep])
        return self._cut(A, n_clusters, place + 1, pair)

    def _vectors(
        self, A: sparse.csr_array, n_clusters: int, name: str
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Find the eigenvectors of the graph of all samples, and keep them as a guess for parts."""
        pair = graph_vectors(A, n_clusters)
        if pair is not None:
            self._kept_for(n_clusters).guesses[name] = pair[1]
        return pair

    def _cut(
        self,
        A: sparse.csr_array,
        n_clusters: int,
        place: int,
        pair: tuple[np.ndarray, np.ndarray] | None,
    ) -> np.ndarray | None:
        if A.shape[0] <= n_clusters:
            return np.arange(A.shape[0])
        rng = np.random.default_rng([self.seed, place, n_clusters])
        return cut_graph(A, n_clusters, n_init=N_INIT, rng=rng, pair=pair)

    def _graph(
        self,
        looks: list[Look],
        n_clusters: int,
        keep: np.ndarray | None,
        most: int | None = None,
    ) -> sparse.csr_array:
        """Sum the graphs of the views, of at most this number of neighbours."""
        total = None
        for look in looks:
            Z, indices, squares = self._neighbors(look, n_clusters)
            size = self.n_samples if keep is None else len(keep)
            width = min(look.model.n_neighbors, size - 1)
            width = width if most is None else min(width, most)
            if keep is None:
                indices, squares = indices[:, :width], squares[:, :width]
            else:
                indices, squares = restrict(Z, indices, squares, keep, width)
            A = adjacency(indices, squares, Z.shape[1] - 1)
            total = A if total is None else total + A
        return total

    def _neighbors(self, look: Look, n_clusters: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return points and their long lists of neighbours."""
        lists = self._kept_for(n_clusters).lists
        edge, power = look.weighting
        key = (look.features, edge, power, look.model.n_neighbors)
        if key not in lists:
            Z = ridge_points(self._spectrum(look), round(edge * n_clusters), power)
            width = min(LONGER * look.model.n_neighbors, self.n_samples - 1)
            lists[key] = (Z, *nearest_neighbors(Z, Z, width, exclude_self=True))
        return lists[key]

    def _spectrum(self, look: Look) -> Spectrum:
        if look.features not in self._spectra:
            self._spectra[look.features] = look.spectrum(self.features)
        return self._spectra[look.features]

    def _refit(self, n_clusters: int, name: str, keep: np.ndarray | None, place: int) -> np.ndarray:
        """Fit a copy of an estimator whose label step is its own."""
        estimator = set_clusters(clone(self.candidates[name]), n_clusters, self.seed + place)
        X = self.X
        if keep is not None:
            xp = get_namespace(X)
            X = xp.take(X, asarray_like(keep, X, dtype=xp.int64), axis=0)
        labels = np.asarray(to_numpy(estimator.fit_predict(X)))
        return np.unique(labels, return_inverse=True)[1]

    def _judging_graph(self) -> sparse.csr_array:
        """Return the neighbour graph of the flattened samples."""
        lists, key = self._kept_for(0).lists, ("flattened",)
        if key not in lists:
            rows = to_numpy(self.X).reshape(self.n_samples, -1).astype(np.float64)
            width = min(NEIGHBORS, self.n_samples - 1)
            lists[key] = (rows, *nearest_neighbors(rows, rows, width, exclude_self=True))
        rows, indices, squares = lists[key]
        return adjacency(indices, squares, rows.shape[1])


def agreement(labels: np.ndarray, others: np.ndarray) -> float:
    """Return the adjusted Rand index of two labellings, from the table of their labels.

    scikit-learn checks its arguments first, which takes longer than a cut.
    """
    width = int(others.max()) + 1
    table = np.bincount(labels * width + others, minlength=(int(labels.max()) + 1) * width)
    table = table.reshape(-1, width).astype(np.float64)
    rows, columns, total = table.sum(axis=1), table.sum(axis=0), float(len(labels))
    both, ones, twos = (float((n * (n - 1)).sum()) for n in (table, rows, columns))
    by_chance = ones * twos / max(1.0, total * (total - 1))
    most = (ones + twos) / 2
    return 1.0 if most == by_chance else (both - by_chance) / (most - by_chance)


def weight_within(A: sparse.csr_array, labels: np.ndarray) -> float:
    """Return the share of the weight of a graph that lies within groups."""
    edges = A.tocoo()
    same = labels[edges.row] == labels[edges.col]
    return float(edges.data[same].sum() / edges.data.sum())


def restrict(
    Z: np.ndarray, indices: np.ndarray, squares: np.ndarray, keep: np.ndarray, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest neighbours within a part from those within all samples.

    Parameters
    ----------
    Z : ndarray of shape (n_samples, d)
        The points.
    indices, squares : ndarray of shape (n_samples, n_neighbors)
        The neighbours of each point, nearest first, and their squared distances.
    keep : ndarray of shape (n_kept,)
        The points of the part.
    width : int
        How many neighbours are wanted, less than `n_kept`.

    Returns
    -------
    indices, squares : ndarray of shape (n_kept, width)
        The same for the part; `indices` count within it. Where too few of a list are left, the
        neighbours are looked for again.
    """
    place = np.full(len(Z), -1)
    place[keep] = np.arange(len(keep))
    inside, distances = place[indices[keep]], squares[keep]
    order = np.argsort(inside < 0, axis=1, kind="stable")[:, :width]
    inside = np.take_along_axis(inside, order, axis=1)
    distances = np.take_along_axis(distances, order, axis=1)
    if inside.shape[1] < width:
        short = np.arange(len(keep))
        inside = np.empty((len(keep), width), dtype=inside.dtype)
        distances = np.empty((len(keep), width))
    else:
        short = np.flatnonzero((inside < 0).any(axis=1))
    if len(short):
        points = Z[keep]
        found, gaps = nearest_neighbors(points[short], points, width + 1)
        own = found == short[:, None]
        own[~own.any(axis=1), -1] = True  # among many copies a point may miss itself
        inside[short] = found[~own].reshape(len(short), width)
        distances[short] = gaps[~own].reshape(len(short), width)
    return inside, distances


def set_clusters(estimator: Any, n_clusters: int, seed: int | None = None) -> Any:
    """Set the number of clusters, and the seed where there is one, of a candidate; return it."""
    final, prefix = estimator, ""
    while isinstance(final, Pipeline):
        prefix += f"{final.steps[-1][0]}__"
        final = final.steps[-1][1]
    estimator.set_params(**{f"{prefix}n_clusters": n_clusters})
    if seed is not None and "random_state" in final.get_params(deep=False):
        estimator.set_params(**{f"{prefix}random_state": seed})
    return estimator
