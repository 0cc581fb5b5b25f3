"""How stable labels are: the label step again on parts of the samples.

A partition that is in the data comes back when a fifth of the samples is left out; one that is not
changes. For views of this package no part is fitted again: the lists of neighbours, twice as long
as the graph needs them, are restricted to the part, and the graph is cut again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from tuckermix._array_api import Array, asarray_like, get_namespace, to_numpy
from tuckermix._estimators import Settings
from tuckermix._threads import in_threads
from tuckermix.labels.graph import (
    GraphSettings,
    adjacency,
    cut_connected,
    cut_graph,
    graph_vectors,
    modularity,
    normalized,
)
from tuckermix.numerics.graph_eigen import graph_eigenvectors, improved_eigenvectors
from tuckermix.numerics.points import nearest_neighbors
from tuckermix.selection.record import Trial, weight_of
from tuckermix.selection.shared import Features
from tuckermix.selection.views import (
    Look,
    Spectrum,
    decomposed,
    looks_of,
    projected,
    ridge_points,
    rotated,
)


@dataclass(frozen=True)
class ResamplingSettings(Settings):
    """How labels are found on parts of the samples.

    Attributes
    ----------
    share : float
        The share of samples in a subsample: with fewer, small clusters vanish; with more, nothing
        changes.
    longer : int
        Lists of neighbours are this many times longer than needed, so that enough are left in a
        part.
    starts, whole : int and int
        Starts of k-means in the cut of a part, and in that of all samples, with which all parts are
        compared. With half as many a poor cut of ten digits made eleven or thirteen of them.
    starts_given : int
        Starts where the number of clusters is given: views differ by more than cuts do.
    drawn : int
        Up to this number of clusters k-means begins at samples that are drawn. Among more clusters
        such starts miss some, and pivots are as good.
    steps : int
        Steps of k-means after pivots.
    neighbors : int
        Neighbours in the graph that judges labels of estimators which have none of their own.
    fewest : int
        Neighbours in the graphs that weigh the views: as many for all of them, since few neighbours
        make a larger modularity.
    dense : int
        Where more than one in this number of eigenvectors is wanted, LAPACK in float32 takes less
        time than an iteration.
    guessed : int
        Where at most one in this number of eigenvectors of a part is wanted, those of all samples
        are improved instead.
    at_once : int
        Up to this number of samples all distances are computed at once.
    single : int
        Distances in more directions than this are computed in float32: there they are of one size.
    """

    share: float = 0.8
    longer: int = 2
    starts: int = 10
    whole: int = 20
    starts_given: int = 5
    drawn: int = 30
    steps: int = 10
    neighbors: int = 15
    fewest: int = 8
    dense: int = 36
    guessed: int = 5
    at_once: int = 4096
    single: int = 64


Key = tuple[int, str]
"""A number of clusters and the name of a candidate."""

Recall = Callable[[str, Callable[[], list[float]]], list[float]]
"""Is given a name and a function; returns the values that an earlier run had, or computes them."""


@dataclass
class _Run:
    """What is known of a number of clusters in a view."""

    labels: np.ndarray
    quality: float
    within: float
    weight: float
    agreements: list[float]
    guess: np.ndarray | None = None


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
    given : bool, default=False
        Whether the number of clusters is given, so that only views are compared.
    features : Features or None, default=None
        Features of the same samples, where some are known.
    recall : callable, default=None
        Is asked for each agreement of subsamples, see `Recall`; None computes all of them.
    """

    def __init__(
        self,
        X: Array,
        candidates: list[tuple[str, Any]],
        rng: np.random.Generator,
        judge: str | None = None,
        *,
        weigh: bool = False,
        given: bool = False,
        features: Features | None = None,
        recall: Recall | None = None,
    ):
        self.X = X
        self.features = Features(X) if features is None else features
        self.judge, self.given = judge, given
        self.n_samples = int(X.shape[0])
        self.candidates = dict(candidates)
        self.looks = {name: looks_of(estimator) for name, estimator in candidates}
        self.weigh = weigh and None not in self.looks.values()
        self.seed = int(rng.integers(2**31))
        self._recall = recall or (lambda _, compute: compute())
        self._name = str(self.seed)
        self._spectra: dict[str, Spectrum] = {}
        self._forget()

    def _forget(self) -> None:
        self._lists: dict[tuple[Any, ...], tuple[np.ndarray, np.ndarray, int]] = {}
        self._runs: dict[Key, _Run] = {}
        self._scanned: dict[Key, np.ndarray] = {}
        self._flat: sparse.csr_array | None = None

    def subsample(self, place: int) -> np.ndarray:
        """Return the sorted indices of subsample number `place`."""
        rng = np.random.default_rng([self.seed, place])
        size = max(1, round(ResamplingSettings.current().share * self.n_samples))
        return np.sort(rng.choice(self.n_samples, size, replace=False))

    def prepare(self) -> Iterator[str]:
        """Compute the features of all candidates, naming each before its turn."""
        blocks: dict[str, Any] = {}
        for name, looks in self.looks.items():
            yield name
            for look in looks or []:
                if look.features not in self._spectra and look.features not in blocks:
                    blocks[look.features] = projected(look, self.features)
        names = list(blocks)
        found: list[Spectrum] = []
        in_threads(lambda name: decomposed(blocks[name]), names, np.empty(0), found.append)
        self._spectra.update(zip(names, found, strict=True))

    def of_noise(self, names: Sequence[str], place: int) -> Resampler:
        """Return the same for samples of one normal cloud that has the same directions.

        For samples of one normal distribution, of any covariance, the left singular vectors are a
        random rotation and say nothing else. So these are rotated, together for all views.

        Parameters
        ----------
        names : sequence of str
            The candidates that will be tried.
        place : int
            Which of these clouds.
        """
        looks = [look for name in names for look in self.looks[name] or []]
        wanted = list(dict.fromkeys(look.features for look in looks))
        noise = copy.copy(self)
        noise._name = f"{self._name}, noise {place}"
        rng = np.random.default_rng([self.seed, 1, place])
        turned = rotated([self._spectra[name] for name in wanted], rng)
        noise._spectra = dict(zip(wanted, turned, strict=True))
        noise._forget()
        return noise

    def scan(
        self, rung: int, numbers: Sequence[int], names: Sequence[str], n_subsamples: int
    ) -> list[Trial]:
        """Try neighbouring numbers of clusters on one graph of each view, cut by pivots.

        Eigenvectors serve all of them, and nothing is drawn.

        Parameters
        ----------
        rung : int
            The number of clusters that says where the edge of the ridge is.
        numbers : sequence of int
            Numbers of clusters, rising.
        names : sequence of str
            The candidates.
        n_subsamples : int
            The number of subsamples.

        Returns
        -------
        trials : list of Trial
            None of a number for which the graph of a candidate falls into more parts.
        """
        ours = [name for name in names if self.looks[name] is not None]
        others = [(k, name) for k in numbers for name in names if self.looks[name] is None]
        self._find_lists([(rung, name) for name in ours])
        keeps = [self.subsample(place) for place in range(n_subsamples)]

        def scan_view(name: str) -> list[tuple[Trial, np.ndarray]]:
            looks = self.looks[name]
            A = self._graph(looks, rung, None)
            parts, pair = _parts_and_vectors(A, numbers[-1])
            J = self._judging(name, rung, A)
            weighing = self._graph(looks, rung, None, few=True) if self.weigh else None
            labels = {n: pivoted_cut(pair, n) for n in numbers if n >= parts}

            def agreements() -> list[float]:
                graphs = [self._graph(looks, rung, keep) for keep in keeps]
                cuts = [
                    _parts_and_vectors(graph, numbers[-1], pair[1][keep])
                    for graph, keep in zip(graphs, keeps, strict=True)
                ]
                each = [
                    [
                        agreement(whole[keep], pivoted_cut(part, n)) if pieces <= n else 0.0
                        for keep, (pieces, part) in zip(keeps, cuts, strict=True)
                    ]
                    for n, whole in labels.items()
                ]
                return [float(np.mean(of_number)) for of_number in each]

            shares = self._recall(f"{self._name}, {numbers} {name}", agreements)
            found = []
            for (n_clusters, whole), share in zip(labels.items(), shares, strict=True):
                weight = 1.0
                if weighing is not None:
                    weight = weight_of(modularity(weighing, whole), n_clusters)
                about = (modularity(J, whole), len(keeps), weight_within(A, whole), weight)
                found.append((Trial(n_clusters, name, share, *about), whole))
            return found

        trials: list[Trial] = []

        def keep_all(found: list[tuple[Trial, np.ndarray]]) -> None:
            for trial, labels in found:
                self._scanned[trial.n_clusters, trial.view] = labels
                trials.append(trial)

        in_threads(scan_view, ours, np.empty(0), keep_all)
        return trials + self.compare(others, n_subsamples)

    def compare(self, wanted: Sequence[Key], n_subsamples: int) -> list[Trial]:
        """Measure stability and modularity as a fit would find the labels.

        Parameters
        ----------
        wanted : sequence of (int, str)
            Numbers of clusters and candidates.
        n_subsamples : int
            How many subsamples are wanted; those that were tried before are not tried again.

        Returns
        -------
        trials : list of Trial
            None where the graph falls into more parts than there are clusters.
        """
        new = [key for key in wanted if key not in self._runs]
        self._find_lists([key for key in wanted if self.looks[key[1]] is not None])
        found: list[_Run | None] = []
        self._each(self._whole, new, found.append)
        self._runs.update({key: run for key, run in zip(new, found, strict=True) if run})
        known = [key for key in wanted if key in self._runs]
        missing = [
            (key, place)
            for key in known
            for place in range(len(self._runs[key].agreements), n_subsamples)
        ]
        shares: list[float] = []
        self._each(self._part, missing, shares.append)
        for (key, _), share in zip(missing, shares, strict=True):
            self._runs[key].agreements.append(share)
        return [self._trial(key) for key in known]

    def labels(self, n_clusters: int, name: str) -> np.ndarray:
        """Return the labels of all samples that a trial found."""
        run = self._runs.get((n_clusters, name))
        return self._scanned[n_clusters, name] if run is None else run.labels

    def agreements(self, n_clusters: int, name: str) -> np.ndarray:
        """Return the adjusted Rand index of each subsample that was compared, in their order."""
        return np.array(self._runs[n_clusters, name].agreements)

    def _trial(self, key: Key) -> Trial:
        run = self._runs[key]
        stability = float(np.mean(run.agreements)) if run.agreements else 0.0
        return Trial(*key, stability, run.quality, len(run.agreements), run.within, run.weight)

    def _each(self, function: Any, items: Sequence[Any], consume: Any) -> None:
        """Apply a function in threads; one item after the other where estimators are not ours."""
        ours = None not in self.looks.values()
        if ours:
            in_threads(function, items, np.empty(0), consume)
        else:
            for item in items:
                consume(function(item))

    def _whole(self, key: Key) -> _Run | None:
        """Label all samples; None where the graph falls into more parts than clusters."""
        (n_clusters, name), use = key, ResamplingSettings.current()
        looks = self.looks[name]
        if looks is None:
            refitted, A = self._refit(n_clusters, name, None, 0), self._judging(name, 0, None)
            return _Run(refitted, modularity(A, refitted), weight_within(A, refitted), 1.0, [])
        A = self._graph(looks, n_clusters, None)
        labels, guess = self._cut(A, key, 0, None)
        if labels is None:
            return None
        weight = 1.0
        if self.weigh:
            few = A if use.fewest >= max(look.n_neighbors for look in looks) else None
            few = self._graph(looks, n_clusters, None, few=True) if few is None else few
            weight = weight_of(modularity(few, labels), n_clusters)
        quality = modularity(self._judging(name, n_clusters, A), labels)
        return _Run(labels, quality, weight_within(A, labels), weight, [], guess)

    def _part(self, item: tuple[Key, int]) -> float:
        """Return the agreement of a subsample's labels with those of all samples."""
        (n_clusters, name), place = item
        where = f"{self._name}, {n_clusters} {name} {place}"
        return self._recall(where, lambda: [self._agreement(item)])[0]

    def _agreement(self, item: tuple[Key, int]) -> float:
        (n_clusters, name), place = item
        run, keep = self._runs[item[0]], self.subsample(place)
        looks = self.looks[name]
        if looks is None:
            part: Any = self._refit(n_clusters, name, keep, place + 1)
        else:
            A = self._graph(looks, n_clusters, keep)
            guess = None if run.guess is None else run.guess[keep]
            part = self._cut(A, item[0], place + 1, guess)[0]
        return 0.0 if part is None else agreement(run.labels[keep], part)

    def _cut(
        self, A: sparse.csr_array, key: Key, place: int, guess: np.ndarray | None
    ) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Cut a graph as a fit does; return the eigenvectors too, as a guess for parts."""
        use, n_clusters = ResamplingSettings.current(), key[0]
        if A.shape[0] <= n_clusters:
            return np.arange(A.shape[0]), None
        if n_clusters > use.drawn:
            parts, found = _parts_and_vectors(A, n_clusters)
            return (pivoted_cut(found, n_clusters) if parts <= n_clusters else None), None
        rng = np.random.default_rng([self.seed, place, n_clusters])
        pair = graph_vectors(A, n_clusters, guess)
        starts = use.starts_given if self.given else use.starts if place else use.whole
        if pair is None:
            return cut_graph(A, n_clusters, n_init=starts, rng=rng), None
        return cut_connected(A, pair, n_clusters, n_init=starts, rng=rng), pair[1]

    def _judging(self, name: str, n_clusters: int, own: sparse.csr_array | None) -> Any:
        """Return the graph on which the modularity of a candidate's labels is measured."""
        judge = None if self.judge is None or self.judge == name else self.looks[self.judge]
        if own is not None:
            return own if judge is None else self._graph(judge, n_clusters, None)
        if self._flat is None:
            rows = to_numpy(self.X).reshape(self.n_samples, -1).astype(np.float64)
            width = min(ResamplingSettings.current().neighbors, self.n_samples - 1)
            found = nearest_neighbors(rows, rows, width, exclude_self=True)
            self._flat = adjacency(*found, rows.shape[1])
        return self._flat

    def _graph(
        self, looks: Any, n_clusters: int, keep: np.ndarray | None, *, few: bool = False
    ) -> sparse.csr_array:
        """Sum the graphs of the views, of all samples or those to keep."""
        total = None
        for look in looks:
            indices, squares, directions = self._lists[self._list_key(look, n_clusters)]
            size = self.n_samples if keep is None else len(keep)
            width = min(look.n_neighbors, size - 1)
            if few:
                width = min(width, ResamplingSettings.current().fewest)
            if keep is None:
                indices, squares = indices[:, :width], squares[:, :width]
            else:
                points = partial(self._points, look, n_clusters)
                indices, squares = restrict(points, indices, squares, keep, width)
            A = adjacency(indices, squares, directions)
            total = A if total is None else total + A
        return total

    def _find_lists(self, keys: Sequence[Key]) -> None:
        """Find the lists of neighbours that numbers of clusters and candidates need, in threads."""
        names = (self.judge,) if self.judge is not None else ()
        needed: dict[tuple[Any, ...], tuple[Look, int]] = {}
        for n_clusters, name in keys:
            for one in (name, *names):
                for look in self.looks[one] or []:
                    key = self._list_key(look, n_clusters)
                    if key not in self._lists:
                        needed[key] = (look, n_clusters)

        def find(item: tuple[Look, int]) -> tuple[np.ndarray, np.ndarray, int]:
            Z = self._points(*item)
            width = ResamplingSettings.current().longer * item[0].n_neighbors
            return *neighbor_lists(Z, min(width, self.n_samples - 1)), Z.shape[1] - 1

        found: list[tuple[np.ndarray, np.ndarray, int]] = []
        in_threads(find, list(needed.values()), np.empty(0), found.append)
        self._lists.update(zip(needed, found, strict=True))

    def _list_key(self, look: Look, n_clusters: int) -> tuple[Any, ...]:
        edge, power = look.weighting
        last = len(self._spectra[look.features].values) - 1
        place = min(round(edge * n_clusters), max(0, last))
        return (look.features, place, power, look.n_neighbors)

    def _points(self, look: Look, n_clusters: int) -> np.ndarray:
        edge, power = look.weighting
        return ridge_points(self._spectra[look.features], round(edge * n_clusters), power)

    def _refit(self, n_clusters: int, name: str, keep: np.ndarray | None, place: int) -> np.ndarray:
        """Fit a copy of an estimator whose label step is its own."""
        estimator = set_clusters(clone(self.candidates[name]), n_clusters, self.seed + place)
        X = self.X
        if keep is not None:
            xp = get_namespace(X)
            X = xp.take(X, asarray_like(keep, X, dtype=xp.int64), axis=0)
        labels = np.asarray(to_numpy(estimator.fit_predict(X)))
        return np.unique(labels, return_inverse=True)[1]


def neighbor_lists(Z: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest neighbours of points of unit length, all of them at once.

    Parameters
    ----------
    Z : ndarray of shape (n_samples, d)
        The points.
    width : int
        How many neighbours are wanted, less than `n_samples`.

    Returns
    -------
    indices, squares : ndarray of shape (n_samples, width)
        The neighbours, nearest first, and their squared distances.
    """
    use = ResamplingSettings.current()
    if len(Z) > use.at_once:
        return nearest_neighbors(Z, Z, width, exclude_self=True)
    Z = Z.astype(np.float32) if Z.shape[1] > use.single else Z
    likeness = Z @ Z.T
    np.fill_diagonal(likeness, -2.0)
    indices = np.argpartition(likeness, len(Z) - width, axis=1)[:, -width:]
    values = np.take_along_axis(likeness, indices, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    indices = np.take_along_axis(indices, order, axis=1)
    squares = 2.0 - 2.0 * np.take_along_axis(values, order, axis=1).astype(np.float64)
    return indices, np.clip(squares, 0.0, None)


def _parts_and_vectors(
    A: sparse.csr_array, count: int, guess: np.ndarray | None = None
) -> tuple[int, tuple[np.ndarray, np.ndarray]]:
    """Return the number of parts of a graph, and the leading eigenpairs of its random walk.

    `guess` has the vectors of all samples, of which those of the graph are a part.
    """
    parts, N = connected_components(A, directed=False)[0], normalized(A)
    use, size = ResamplingSettings.current(), A.shape[0]
    count = min(count, size)
    if guess is not None and count * use.guessed <= size:
        return parts, improved_eigenvectors(N, guess)
    if count * use.dense <= size:
        return parts, graph_eigenvectors(N, count)
    values, vectors = scipy.linalg.eigh(
        N.astype(np.float32).toarray(),
        subset_by_index=(size - count, size - 1),
        check_finite=False,
        overwrite_a=True,
    )
    return parts, (values[::-1], vectors[:, ::-1])


def pivoted_cut(pair: tuple[np.ndarray, np.ndarray], n_clusters: int) -> np.ndarray:
    """Cut a graph by pivots among the rows of its eigenvectors; nothing is drawn.

    A pivoted QR decomposition picks as many rows as there are clusters, as different from each
    other as possible. The rotation that brings these nearest to the axes gives first labels, from
    which k-means takes a few steps.

    Parameters
    ----------
    pair : tuple of ndarray of shapes (n_vectors,) and (n_samples, n_vectors)
        Eigenvalues, falling, and eigenvectors; at least as many as clusters, unless there are fewer
        samples.
    n_clusters : int
        The number of groups.

    Returns
    -------
    labels : ndarray of shape (n_samples,)
        From 0 on. A group may get lost.

    References
    ----------
    Damle, Minden and Ying, Simple, direct and efficient multi-way spectral clustering, Information
    and Inference 8(1), 2019.
    """
    values, vectors = pair[0], pair[1][:, :n_clusters].astype(np.float32)
    if len(vectors) <= n_clusters:
        return np.arange(len(vectors))
    pivots = scipy.linalg.qr(vectors.T, mode="r", pivoting=True, check_finite=False)[1]
    left, _, right = np.linalg.svd(vectors[pivots[:n_clusters]].T, full_matrices=False)
    labels = np.abs(vectors @ (left @ right)).argmax(axis=1)
    graph, samples = GraphSettings.current(), np.arange(len(vectors))
    weights = ((1 + np.asarray(values[:n_clusters], dtype=np.float32)) / 2) ** graph.steps
    rows = vectors * (weights if graph.fewest * n_clusters <= len(vectors) else 1.0)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    for _ in range(ResamplingSettings.current().steps):
        marks = np.zeros((n_clusters, len(rows)), dtype=np.float32)
        marks[labels, samples] = 1.0
        sizes = marks.sum(axis=1)
        centers = (marks @ rows) / np.maximum(sizes, 1.0)[:, None]
        distances = (centers * centers).sum(axis=1) - 2.0 * (rows @ centers.T)
        distances[:, sizes == 0] = np.inf
        before, labels = labels, distances.argmin(axis=1)
        if np.array_equal(before, labels):
            break
    return np.unique(labels, return_inverse=True)[1]


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
    points: Callable[[], np.ndarray],
    indices: np.ndarray,
    squares: np.ndarray,
    keep: np.ndarray,
    width: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest neighbours within a part from those within all samples.

    Parameters
    ----------
    points : callable
        Returns the points, an array of shape (n_samples, d).
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
    place = np.full(len(indices), -1)
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
        Z = points()[keep]
        found, gaps = nearest_neighbors(Z[short], Z, width + 1)
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
