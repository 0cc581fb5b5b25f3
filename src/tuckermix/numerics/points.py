"""Points: k-means and nearest neighbours, on the device that holds the data.

One algorithm for all libraries. The starts of k-means are stacked, so that an iteration of all of
them is two matrix products, one for the distances and one for the sums, with the labels as a 0/1
matrix between them; on NumPy that is about as fast as compiled code for the sizes met here (a few
thousand samples or landmarks, tens of clusters), and on a GPU it needs no kernel of its own.
Neighbours are found by brute force, in blocks.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from functools import partial
from typing import Any

import array_api_compat
import numpy as np

from tuckermix._array_api import (
    Array,
    asarray_like,
    blocks,
    device,
    divisor,
    double,
    epsilon,
    get_namespace,
    is_numpy,
    take_rows,
    to_numpy,
)
from tuckermix._estimators import Settings
from tuckermix._records import Record
from tuckermix._threads import in_threads, one_blas_thread

MAX_ITER = 300
"""Lloyd's iteration ends by itself, after some tens of steps; this only stops a cycle that
rounding might make."""


@dataclass(frozen=True)
class PointSettings(Settings):
    """How neighbours and means are found.

    Attributes
    ----------
    still : float
        Centres that move less than this, relative to the largest sample, stand still: labels may go
        on changing between clusters whose centres coincide.
    same_inertia : float
        Starts whose inertia agrees to this relative accuracy count as equal and the first one is
        kept, so that rounding, which differs between libraries, does not decide which start wins.
    group : int
        Points are first compared in groups of this size: the k nearest points lie in the k groups
        whose nearest members are nearest, so that the slow selection sees ``n / 16 + 16 k`` values
        and not n.
    device_step : int
        The same elsewhere, where a step of k-means takes less time than its calls.
    device_block : int
        Bytes of a block of distances elsewhere: enough work for each of the few calls of a block,
        and little beside the samples that fill such a device.
    drowned : int
        Scores are rounded by some machine epsilons of the squared distance |x|² of a query from the
        mean of the points. Neighbours whose squared distance is below 64 of them are sought with
        more digits.
    query_share : int
        Elsewhere many queries come with many samples, and blocks may grow with them: up to this
        number of times the size of the queries, which are a small part of the samples.
    """

    still: float = 1e-14
    same_inertia: float = 1e-09
    group: int = 16
    device_step: int = 128 * 2**20
    device_block: int = 352 * 2**20
    drowned: int = 64
    query_share: int = 32


_BYTES = 8  # all sums are taken in float64


HOST_BLOCK = 48 * 2**20
"""Most bytes of a block of distances on a CPU."""

HOST_QUERIES, MANY_QUERIES = 256, 512
"""Queries that are compared with all points at a time on a CPU: with a quarter of the first number
the product runs at two thirds of its speed, with more some thousand samples make too few blocks for
the threads of a large machine. The second holds where the queries are a block already: longer calls
keep many threads from waiting for each other."""

STEP_BLOCK = 2 * 2**20
"""Bytes of a block of a step of k-means on NumPy: a few blocks for each thread even of the some
thousand samples that are met most."""


_COPIES = 3  # arrays of the size of a block of distances that exist at once


@dataclass(frozen=True)
class KMeansResult(Record):
    """Result of `kmeans`.

    Attributes
    ----------
    centers : array of shape (n_clusters, n_features)
        The means of the clusters, float64.
    labels : array of shape (n_samples,)
        The cluster of each sample, int64. Every cluster occurs.
    inertia : float
        The sum of squared distances of the samples to the centres of their clusters.
    n_iter : int
        The number of iterations of the start that won.
    """

    centers: Array
    labels: Array
    inertia: float
    n_iter: int


@one_blas_thread
def kmeans(
    X: Array,
    n_clusters: int,
    *,
    n_init: int = 10,
    rng: np.random.Generator | None = None,
    init: Array | None = None,
    max_iter: int = MAX_ITER,
) -> KMeansResult:
    """Partition samples so that the sum of squared distances to the cluster means is small.

    Lloyd's iteration for ``sum_i min_k |x_i - c_k|²`` from `n_init` greedy k-means++ starts, worked
    on together; the best result is kept. A cluster that loses all its samples takes the sample
    that lies farthest from its own centre. The iteration of a start ends when no label changes, or
    no centre moves.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The samples. Float32 samples are summed in float64.
    n_clusters : int
        The number of clusters, at most `n_samples`.
    n_init : int, default=10
        The number of starts; ignored with `init`.
    rng : numpy.random.Generator or None, default=None
        The source of random numbers for the starts; needed unless `init` is given.
    init : array of shape (n_clusters, n_features) or None, default=None
        Begin from these centres, once.
    max_iter : int, default=300
        The limit on the number of iterations.

    Returns
    -------
    result : KMeansResult
        Centres, labels, inertia. All labels occur, even where there are fewer distinct samples
        than clusters: equal samples are then split between clusters whose centres coincide.
    """
    use = PointSettings.current()
    n_samples = int(X.shape[0])
    if n_samples < n_clusters:
        raise ValueError(f"n_samples={n_samples} must be >= n_clusters={n_clusters}.")
    xp = get_namespace(X)
    X = double(X)
    mean = xp.mean(X, axis=0)
    X = X - mean  # distances from norms and products lose fewer digits about the mean
    if init is not None:
        centers = double(init)[None, :, :] - mean
    elif n_clusters == 1:
        centers = xp.zeros((1, 1, X.shape[1]), dtype=xp.float64, device=device(X))
    else:
        if rng is None:
            raise ValueError("kmeans needs rng, or init: pass numpy.random.default_rng(0).")
        centers = _plus_plus(X, n_clusters, n_init, rng)
    labels, centers, n_iter = _lloyd(X, centers, max_iter)
    n_starts = int(centers.shape[0])
    every = xp.reshape(centers, (n_starts * n_clusters, centers.shape[2]))
    first = xp.arange(n_starts, dtype=xp.int64, device=device(X)) * n_clusters
    squares = xp.zeros((n_starts,), dtype=xp.float64, device=device(X))
    budget = STEP_BLOCK if is_numpy(X) else use.device_step
    for cut in blocks(n_samples, 2 * n_starts * int(X.shape[1]) * _BYTES, budget):
        own = xp.take(every, xp.reshape(labels[cut, :] + first, (-1,)), axis=0)
        own = xp.reshape(own, (cut.stop - cut.start, n_starts, X.shape[1]))
        gaps = X[cut, :][:, None, :] - own
        squares += xp.sum(gaps * gaps, axis=(0, 2))
    inertias = to_numpy(squares)
    best = int(np.flatnonzero(inertias <= inertias.min() * (1 + use.same_inertia))[0])
    return KMeansResult(
        centers=centers[best, :, :] + mean,
        labels=labels[:, best],
        inertia=float(inertias[best]),
        n_iter=int(n_iter[best]),
    )


def _plus_plus(X: Array, n_clusters: int, n_init: int, rng: np.random.Generator) -> Array:
    """Draw starting centres by greedy k-means++, for all starts at once.

    Each next centre is the best of ``2 + log(n_clusters)`` samples drawn with probability
    proportional to ``min_k |x - c_k|²``: the one that leaves the smallest sum.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The samples, float64.
    n_clusters, n_init : int
        The number of centres of a start and the number of starts.
    rng : numpy.random.Generator
        Draws all random numbers, in NumPy, whatever the library of `X`.

    Returns
    -------
    centers : array of shape (n_init, n_clusters, n_features)
        The centres, each of them a sample.
    """
    xp = get_namespace(X)
    n_samples, n_features = int(X.shape[0]), int(X.shape[1])
    n_trials = 2 + int(math.log(n_clusters))  # the number that scikit-learn draws
    picks = asarray_like(rng.integers(n_samples, size=(n_init, 1)), X, dtype=xp.int64)
    draws = asarray_like(rng.random((n_clusters - 1, n_init, n_trials)), X)
    starts = xp.arange(n_init, dtype=xp.int64, device=device(X))
    lower = xp.astype(starts, X.dtype)[:, None]
    norms = xp.sum(X * X, axis=1, keepdims=True)
    ones = xp.ones((n_samples, 1), dtype=X.dtype, device=device(X))
    lines = xp.concat([X, norms, ones], axis=1).T
    even = xp.arange(1, n_samples + 1, dtype=X.dtype, device=device(X)) / n_samples
    zero = xp.zeros((), dtype=X.dtype, device=device(X))
    chosen: list[Array] = []
    closest: Any = None
    for step in range(n_clusters):
        if step > 0:
            ends = xp.cumulative_sum(closest, axis=1)
            total = ends[:, -1:]
            # A start that already holds every distinct sample has no weight left: draw evenly.
            ends = xp.where(total > 0, ends / divisor(total), even)
            # All starts share one search: row r covers the interval [r, r + 1].
            wanted = draws[step - 1, :, :] + lower
            found = xp.searchsorted(
                xp.reshape(ends + lower, (-1,)), xp.reshape(wanted, (-1,)), side="right"
            )
            picks = xp.reshape(xp.astype(found, xp.int64), wanted.shape) % n_samples
        candidates = xp.take(X, xp.reshape(picks, (-1,)), axis=0)
        # The products of [-2c, 1, |c|²] and [x, |x|², 1] are the squared distances.
        squares = xp.sum(candidates * candidates, axis=1, keepdims=True)
        rows = xp.concat([-2.0 * candidates, xp.ones_like(squares), squares], axis=1)
        # Rounding must not push a distance below zero.
        distances = xp.maximum(xp.matmul(rows, lines), zero)
        distances = xp.reshape(distances, (n_init, -1, n_samples))
        if step > 0:
            distances = xp.minimum(distances, closest[:, None, :])
        rows = starts * picks.shape[1] + xp.argmin(xp.sum(distances, axis=2), axis=1)
        chosen.append(xp.take(candidates, rows, axis=0))
        closest = xp.take(xp.reshape(distances, (-1, n_samples)), rows, axis=0)
    return xp.reshape(xp.stack(chosen, axis=1), (n_init, n_clusters, n_features))


def _lloyd(X: Array, centers: Array, max_iter: int) -> tuple[Array, Array, np.ndarray]:
    """Iterate all starts until their labels stand still; return labels (n_samples, n_init)."""
    xp = get_namespace(X)
    n_samples, n_init, n_clusters = int(X.shape[0]), int(centers.shape[0]), int(centers.shape[1])
    data = xp.concat([X, xp.ones((n_samples, 1), dtype=X.dtype, device=device(X))], axis=1)
    n_iter = np.zeros(n_init, dtype=np.int64)
    done: dict[int, tuple[Array, Array]] = {}
    active = np.arange(n_init)
    limit = PointSettings.current().still ** 2 * xp.max(xp.sum(X * X, axis=1))
    labels: Any = None
    for iteration in range(1, max_iter + 1):
        previous, old = labels, centers
        labels, sums = _step(data, old, n_clusters)
        n_iter[active] = iteration
        while True:
            sizes = sums[:, :, -1:]
            centers = sums[:, :, :-1] / divisor(sizes)
            state = [xp.any(sizes == 0, axis=(1, 2))]
            if previous is not None:
                shifts = xp.max(xp.sum((centers - old) ** 2, axis=2), axis=1)
                state.append(xp.any(labels != previous, axis=0) & (shifts > limit))
            # Asked for together: a device is kept waiting by every question.
            empty, *moves = to_numpy(xp.stack(state))
            if not empty.any():
                break
            labels, sums = _reseed(data, old, labels, sums)
        moved = moves[0] if moves else np.ones(len(active), dtype=bool)
        for place in np.flatnonzero(~moved):
            done[int(active[place])] = (labels[:, int(place)], centers[int(place), :, :])
        if not moved.any():
            break
        if not moved.all():  # starts that stand still leave the batch
            keep = asarray_like(np.flatnonzero(moved), X, dtype=xp.int64)
            labels, centers = xp.take(labels, keep, axis=1), xp.take(centers, keep, axis=0)
            active = active[moved]
    else:
        for last, start in enumerate(active):
            done[int(start)] = (labels[:, last], centers[last, :, :])
    labels = xp.stack([done[start][0] for start in range(n_init)], axis=1)
    return labels, xp.stack([done[start][1] for start in range(n_init)], axis=0), n_iter


def _step(data: Array, centers: Array, n_clusters: int) -> tuple[Array, Array]:
    """Assign all samples to their nearest centres and sum those of a cluster, for all starts.

    `data` has a last column of ones, so that the products with ``[-2c, |c|²]`` are the squared
    distances less ``|x|²``, and the sums of the rows of a cluster hold its size.
    """
    xp = get_namespace(data)
    n_samples, n_init = int(data.shape[0]), int(centers.shape[0])
    squares = xp.sum(centers * centers, axis=2, keepdims=True)
    coefficients = xp.reshape(xp.concat([-2.0 * centers, squares], axis=2), (-1, data.shape[1]))
    names = xp.arange(n_clusters, dtype=xp.int64, device=device(data))

    def assign(cut: slice) -> tuple[Array, Array]:
        block = data[cut, :]
        scores = xp.reshape(xp.matmul(coefficients, block.T), (n_init, n_clusters, -1))
        if is_numpy(data):  # the least of few scores is found faster than where it is
            marks = (scores == scores.min(axis=1, keepdims=True)).astype(data.dtype)
            if marks.sum() == marks.shape[0] * marks.shape[2]:  # no ties
                nearest = np.matmul(names.astype(data.dtype), marks).astype(np.int64)
                return nearest.T, marks.reshape(n_init * n_clusters, -1) @ block
        nearest = xp.astype(xp.argmin(scores, axis=1), xp.int64, copy=False)
        marks = xp.astype(nearest[:, None, :] == names[:, None], data.dtype)
        return nearest.T, xp.matmul(xp.reshape(marks, (n_init * n_clusters, -1)), block)

    budget = STEP_BLOCK if is_numpy(data) else PointSettings.current().device_step
    cuts = list(blocks(n_samples, 3 * n_init * n_clusters * _BYTES, budget))
    parts: list[tuple[Array, Array]] = []
    in_threads(assign, cuts, data, parts.append)
    assigned, sums = parts[0]
    if len(parts) > 1:
        assigned = xp.concat([labels for labels, _ in parts], axis=0)
        sums = sum((part for _, part in parts[1:]), sums)
    return assigned, xp.reshape(sums, (n_init, n_clusters, -1))


def _reseed(data: Array, centers: Array, labels: Array, sums: Array) -> tuple[Array, Array]:
    """Give each empty cluster the sample that is farthest from its centre.

    A sample that is alone in its cluster stays; as ``n_samples >= n_clusters`` there is always
    another one. The bookkeeping is on the host: it is rare and small.
    """
    xp = get_namespace(data)
    n_clusters = int(centers.shape[1])
    limit = PointSettings.current().still ** 2 * float(xp.max(xp.sum(data[:, :-1] ** 2, axis=1)))
    new_labels, new_sums = [], []
    for start in range(int(centers.shape[0])):
        own, total = labels[:, start], sums[start, :, :]
        sizes = np.rint(to_numpy(total[:, -1])).astype(np.int64)
        if (sizes == 0).any():
            gaps = data[:, :-1] - xp.take(centers[start, :, :], own, axis=0)
            squares = to_numpy(xp.sum(gaps * gaps, axis=1))
            # Copies of a centre are taken in order, lest rounding send the cluster to and fro.
            squares = np.where(squares <= limit, 0.0, squares)
            far = np.argsort(-squares, kind="stable")
            hosted = np.array(to_numpy(own))
            candidates = iter(far)
            for cluster in np.flatnonzero(sizes == 0):
                sample = next(i for i in candidates if sizes[hosted[i]] > 1)
                sizes[hosted[sample]] -= 1
                sizes[cluster] += 1
                hosted[sample] = cluster
            own = asarray_like(hosted, data, dtype=xp.int64)
            names = xp.arange(n_clusters, dtype=xp.int64, device=device(data))
            total = xp.matmul(xp.astype(own[None, :] == names[:, None], data.dtype), data)
        new_labels.append(own)
        new_sums.append(total)
    return xp.stack(new_labels, axis=1), xp.stack(new_sums, axis=0)


def nearest_neighbors(
    queries: Array, points: Array, n_neighbors: int, *, exclude_self: bool = False
) -> tuple[Array, Array]:
    """Find the points nearest to each query, in order, see `NearestPoints.find`.

    Parameters
    ----------
    queries : array of shape (n_queries, n_features)
        The samples whose neighbours are wanted.
    points : array of shape (n_points, n_features)
        The samples among which to look.
    n_neighbors : int
        How many to find; at most `n_points`, or one fewer with `exclude_self`.
    exclude_self : bool, default=False
        Whether `queries` are the `points` and a sample is not to count as its own neighbour.

    Returns
    -------
    indices : array of shape (n_queries, n_neighbors)
        The places of the neighbours in `points`, nearest first, int64.
    distances : array of shape (n_queries, n_neighbors)
        Their squared distances, float64.
    """
    get_namespace(queries, points)
    return NearestPoints(points).find(queries, n_neighbors, exclude_self=exclude_self)


def nearest_alike(rows: Array, labels: Array, points: Array, held: np.ndarray) -> Array:
    """Find for each row the nearest of the points that have its label.

    Parameters
    ----------
    rows : array of shape (n_samples, n_features)
        The samples.
    labels : array of shape (n_samples,)
        Their labels.
    points : array of shape (n_points, n_features)
        The samples among which to look.
    held : ndarray of shape (n_points,)
        The labels of these.

    Returns
    -------
    nearest : array of shape (n_samples,)
        Places among the points; -1 where none has the label.
    """
    xp = get_namespace(rows)
    nearest = xp.full_like(labels, -1)
    for name in np.unique(to_numpy(labels)):
        some = asarray_like(np.flatnonzero(held == name), rows, dtype=xp.int64)
        if some.shape[0]:
            found, _ = nearest_neighbors(rows, xp.take(points, some, axis=0), 1)
            nearest = xp.where(labels == int(name), xp.take(some, found[:, 0], axis=0), nearest)
    return nearest


class NearestPoints:
    """Points, made ready for finding those nearest to one block of queries after another.

    Parameters
    ----------
    points : array of shape (n_points, n_features)
        The samples among which to look.
    """

    def __init__(self, points: Array):
        use = PointSettings.current()
        xp = get_namespace(points)
        self._center = xp.mean(points, axis=0)
        self._points = points = points - self._center
        n_points = int(points.shape[0])
        self._n_groups = -(-n_points // use.group)
        # The columns [-2y, |y|²] give the scores; more of them, which no query comes near, fill
        # groups.
        squares = xp.sum(double(points) * double(points), axis=1)
        lines = xp.concat([-2.0 * points.T, xp.astype(squares, points.dtype)[None, :]], axis=0)
        far = float(xp.finfo(points.dtype).max) / 4
        last = xp.full((1, 1), far, dtype=points.dtype, device=device(points))
        column = xp.concat([xp.zeros_like(lines[:-1, :1]), last], axis=0)
        filling = (lines.shape[0], self._n_groups * use.group - n_points)
        self._lines = xp.concat([lines, xp.broadcast_to(column, filling)], axis=1)

    def find(
        self,
        queries: Array,
        n_neighbors: int,
        *,
        exclude_self: bool = False,
        at_once: int = HOST_QUERIES,
    ) -> tuple[Array, Array]:
        """Find the points nearest to each query, in order.

        Candidates are selected by ``|y|² - 2⟨x, y⟩`` in the precision of the data; their distances
        ``|x - y|²`` are then taken from the differences, in float64, so that a copy of a query has
        distance exactly 0 and the order does not suffer from cancellation. Where the selection
        itself would, because neighbours are much nearer to the query than the mean of the points
        is, it is repeated in float64, and then from differences. Equal distances are ordered by
        index.

        Parameters
        ----------
        queries : array of shape (n_queries, n_features)
            The samples whose neighbours are wanted.
        n_neighbors : int
            How many to find; at most `n_points`, or one fewer with `exclude_self`.
        exclude_self : bool, default=False
            Whether `queries` are the points and a sample is not to count as its own neighbour.
        at_once : int, default=256
            How many queries are compared at a time on a CPU; threads work on as many each.

        Returns
        -------
        indices, distances : arrays of shape (n_queries, n_neighbors)
            See `nearest_neighbors`.
        """
        use = PointSettings.current()
        xp = get_namespace(queries, self._points)
        n_points = int(self._points.shape[0])
        n_found = n_neighbors + exclude_self
        if n_found > n_points:
            raise ValueError(
                f"n_neighbors={n_neighbors} must be <= {n_points - exclude_self}, the number of "
                "points to choose from."
            )
        # With few groups nothing is saved by comparing them first.
        grouped = n_points > 4 * use.group and self._n_groups > 2 * n_found
        lines = self._lines if grouped else self._lines[:, :n_points]
        on_numpy = is_numpy(queries)
        scratch = threading.local()  # fresh memory for all scores of a block costs as much as they

        def find_block(cut: slice, careful: bool = True) -> tuple[Array, Array, Array]:
            block = queries[cut, :] - self._center
            ones = xp.ones((block.shape[0], 1), dtype=block.dtype, device=device(block))
            rows = xp.concat([block, ones], axis=1)
            if on_numpy:
                shape = (rows.shape[0], lines.shape[1])
                if getattr(scratch, "shape", None) != shape:
                    scratch.shape, scratch.scores = shape, np.empty(shape, dtype=rows.dtype)
                scores = np.matmul(rows, lines, out=scratch.scores)
            else:
                scores = xp.matmul(rows, lines)
            if grouped:
                indices = _smallest_grouped(scores, n_found, self._n_groups)
            else:
                indices = smallest(scores, n_found)
            # In the order of the exact distances, then of the indices.
            indices = xp.sort(xp.astype(indices, xp.int64, copy=False), axis=1)
            near = xp.take(self._points, xp.reshape(indices, (-1,)), axis=0)
            near = xp.reshape(near, (*indices.shape, -1))
            near -= block[:, None, :]
            gaps = double(near)
            if on_numpy:
                squares = xp.vecdot(gaps, gaps)
            else:  # elsewhere that is a product of matrices of one row for every pair
                gaps *= gaps
                squares = xp.sum(gaps, axis=2)
            level = use.drowned * epsilon(block) * xp.sum(double(block) * double(block), axis=1)
            reach = xp.max(squares, axis=1)
            drowned = (reach > 0) & (reach < level)
            which = np.flatnonzero(to_numpy(drowned) if careful else [])
            if len(which):
                indices, squares = _sought_again(block, self._points, indices, squares, which)
            if exclude_self:  # the sample itself goes last
                own = xp.arange(cut.start, cut.stop, device=device(queries))
                squares = xp.where(indices == own[:, None], xp.inf, squares)
            order = xp.argsort(squares, axis=1, stable=True)[:, :n_neighbors]
            return (
                xp.take_along_axis(indices, order, axis=1),
                xp.take_along_axis(squares, order, axis=1),
                drowned,
            )

        itemsize = 8 if queries.dtype == xp.float64 else 4
        per_query = _COPIES * itemsize * int(lines.shape[1])
        per_query += 16 * n_found * int(self._points.shape[1])
        budget = min(HOST_BLOCK, at_once * per_query)
        if "cpu" not in str(device(queries)).lower():
            budget = max(use.device_block, use.query_share * itemsize * math.prod(queries.shape))
        found: list[tuple[Array, Array, Array]] = []
        cuts = list(blocks(int(queries.shape[0]), per_query, budget))
        # A device works on one block while the next is prepared, as long as nobody asks it for an
        # answer: what is to be sought again, which is rare, is asked for at the end.
        in_threads(partial(find_block, careful=on_numpy), cuts, queries, found.append)
        if not on_numpy:
            drowned = to_numpy(xp.concat([part[2] for part in found], axis=0))
            found = [
                find_block(cut) if drowned[cut].any() else part
                for cut, part in zip(cuts, found, strict=True)
            ]
        indices, distances, _ = zip(*found, strict=True)
        return xp.concat(indices, axis=0), xp.concat(distances, axis=0)


def _sought_again(
    block: Array, points: Array, indices: Array, squares: Array, which: np.ndarray
) -> tuple[Array, Array]:
    """Select the candidates of some queries with more digits, in order of their indices.

    In float64 that is by the differences of all pairs, which lose no digits and take longer.
    """
    xp = get_namespace(block)
    count = int(indices.shape[1])
    rows = double(take_rows(block, which))
    if block.dtype != xp.float64:
        found, gaps = nearest_neighbors(rows, double(points), count)
        order = xp.argsort(found, axis=1)
        parts = [tuple(xp.take_along_axis(one, order, axis=1) for one in (found, gaps))]
    else:
        parts = []
        for cut in blocks(len(which), 2 * _BYTES * math.prod(points.shape)):
            near = points[None, :, :] - rows[cut, :][:, None, :]
            every = xp.vecdot(near, near)
            chosen = xp.sort(xp.astype(smallest(every, count), xp.int64, copy=False), axis=1)
            parts.append((chosen, xp.take_along_axis(every, chosen, axis=1)))
    # The standard has no assignment to rows: what was found again is put behind, and taken.
    places = np.arange(int(indices.shape[0]))
    places[which] = len(places) + np.arange(len(which))
    indices = xp.concat([indices, *(part[0] for part in parts)], axis=0)
    squares = xp.concat([squares, *(part[1] for part in parts)], axis=0)
    return take_rows(indices, places), take_rows(squares, places)


def smallest(values: Array, count: int) -> Array:
    """Return the places of the `count` smallest values of each row, in no particular order.

    The standard has no partial sort, so that each library is asked in its own way; others sort.
    """
    if count >= values.shape[1]:
        xp = get_namespace(values)
        places = xp.arange(values.shape[1], dtype=xp.int64, device=device(values))
        return xp.broadcast_to(places, values.shape)
    if is_numpy(values) or array_api_compat.is_cupy_array(values):
        xp = get_namespace(values)
        return xp.argpartition(values, count - 1, axis=1)[:, :count]
    if array_api_compat.is_torch_array(values):
        return values.topk(count, dim=1, largest=False, sorted=False).indices
    if array_api_compat.is_jax_array(values):
        from jax.lax import top_k  # type: ignore[import-not-found,unused-ignore]

        return top_k(-values, count)[1]
    return get_namespace(values).argsort(values, axis=1)[:, :count]


def _smallest_grouped(scores: Array, count: int, n_groups: int) -> Array:
    """Select in two levels: groups by their smallest member, then members of those groups.

    Group q holds the places q, q + n_groups, q + 2·n_groups, …, so that the smallest members come
    from comparing long contiguous rows.
    """
    use = PointSettings.current()
    xp = get_namespace(scores)
    n_rows = int(scores.shape[0])
    heads = xp.min(xp.reshape(scores, (n_rows, use.group, n_groups)), axis=1)
    groups = xp.astype(smallest(heads, count), xp.int64, copy=False)
    steps = n_groups * xp.arange(use.group, dtype=xp.int64, device=device(scores))
    members = xp.reshape(steps[None, :, None] + groups[:, None, :], (n_rows, use.group * count))
    picks = smallest(xp.take_along_axis(scores, members, axis=1), count)
    return xp.take_along_axis(members, picks, axis=1)
