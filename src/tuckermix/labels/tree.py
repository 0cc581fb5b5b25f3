"""A tree of partitions that passes through a given one.

Landmarks are joined to their nearest neighbours by the graph that labels are cut from. Above the
given partition its clusters are merged; below it they are divided, each time the group first whose
halves hold together least. Every level of the tree is a partition, and each refines those above it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.validation import check_is_fitted

from tuckermix._array_api import Array, asarray_like, epsilon, get_namespace, is_dask, to_numpy
from tuckermix._estimators import Settings
from tuckermix._records import Record
from tuckermix._threads import one_blas_thread
from tuckermix._validation import check_integer, check_stored
from tuckermix.labels.graph import adjacency, distinct_rows, join_parts, normalized
from tuckermix.numerics.graph_eigen import graph_eigenvectors
from tuckermix.numerics.points import nearest_alike, nearest_neighbors

UNKNOWN = (
    "This model does not know where its samples lie, because an earlier version saved it or its "
    "labeller keeps no landmarks: fit it again with assign_labels='graph' to have a tree."
)


@dataclass(frozen=True)
class TreeSettings(Settings):
    """How a tree is grown.

    Attributes
    ----------
    per_leaf : int
        Samples for each leaf, on average: a cluster of fewer tells nothing of the samples.
    draws, share : int and float
        A split is made again on that many parts of its samples, each of that share of them.
    most : int
        The most samples of such a part: more of them change the figure by little.
    apart : float
        The weight of edges drawn at random that clusters have in common beside those of the graph,
        more of them between clusters whose means lie in the same direction: enough to say which of
        those that no edge joins come first.
    dense : int
        Up to this many samples all eigenvectors take less time than the first two.
    """

    per_leaf: int = 4
    draws: int = 4
    share: float = 0.8
    most: int = 400
    apart: float = 1e-6
    dense: int = 200


class Row(NamedTuple):
    """A node of the tree: its two parts, and how much they are apart."""

    node: int
    left: int
    right: int
    height: float


@dataclass(frozen=True)
class Tree(Record):
    """Partitions of the fitted samples, each of which refines the coarser ones.

    Attributes
    ----------
    merges : ndarray of shape (n_leaves - 1, 2)
        The two nodes that are joined, as in SciPy's ``linkage``: leaves have the numbers 0 to
        ``n_leaves - 1``, and row i makes node ``n_leaves + i``.
    heights : ndarray of shape (n_leaves - 1,)
        How much apart the two are, rising from row to row: 1 where no edge of the graph joins them,
        and 0 where they are joined as closely as edges drawn at random would.
    stability : ndarray of shape (n_leaves - 1,)
        The mean adjusted Rand index between the split of a node and that of parts of its samples.
    leaves : array of shape (n_samples,)
        The leaf of each fitted sample, of the library of the labels; -1 for outliers.
    n_clusters : int
        The level of the fitted labels.
    clusters : ndarray of shape (n_leaves,)
        The label that the samples of each leaf have there.
    sizes : ndarray of shape (n_leaves,)
        The number of landmarks in each leaf.
    landmarks : ndarray of shape (n_landmarks,)
        The leaf of each landmark; other samples belong to that of the nearest in their cluster.
    """

    merges: np.ndarray
    heights: np.ndarray
    stability: np.ndarray
    leaves: Array
    n_clusters: int
    clusters: np.ndarray
    sizes: np.ndarray
    landmarks: np.ndarray

    def __repr__(self) -> str:
        return f"Tree(n_leaves={self.n_leaves}, n_clusters={self.n_clusters})"

    @property
    def n_leaves(self) -> int:
        """The number of clusters at the finest level."""
        return len(self.sizes)

    def cut(self, n_clusters: int) -> np.ndarray:
        """Return the label of each leaf at a level.

        Parameters
        ----------
        n_clusters : int
            The number of clusters there, from 1 to `n_leaves`.

        Returns
        -------
        labels : ndarray of shape (n_leaves,)
            From 0 on, the largest cluster first; at the level of the fitted labels as they are.
        """
        check_integer(n_clusters, "n_clusters", "labels_at")
        if n_clusters == self.n_clusters:
            return self.clusters
        if n_clusters > self.n_leaves:
            raise ValueError(
                f"n_clusters={n_clusters} must be <= {self.n_leaves}, the number of leaves of the "
                "tree: a finer partition needs more samples."
            )
        node = np.arange(self.n_leaves)
        for row in range(self.n_leaves - n_clusters):
            node[np.isin(node, self.merges[row])] = self.n_leaves + row
        _, first, group = np.unique(node, return_index=True, return_inverse=True)
        sizes = np.bincount(group, weights=self.sizes)
        return np.argsort(np.lexsort((first, -sizes)))[group]

    def labels_at(self, n_clusters: int) -> Array:
        """Return the labels of the fitted samples at a level, see `cut`."""
        return labels_of(self.leaves, self.cut(n_clusters))

    def of_landmarks(self, n_clusters: int) -> np.ndarray:
        """Return the labels of the landmarks at a level, see `cut`."""
        return self.cut(n_clusters)[self.landmarks]

    def check(self, labels: np.ndarray, landmark_labels: np.ndarray) -> None:
        """Raise where the fields, which a file may have made up, do not fit together.

        Parameters
        ----------
        labels : ndarray of shape (n_samples,)
            The fitted labels.
        landmark_labels : ndarray of shape (n_landmarks,)
            Those of the landmarks.
        """
        n_leaves = len(check_stored(self.sizes, "sizes", (None,), kind="i"))
        merges = check_stored(self.merges, "merges", (n_leaves - 1, 2), kind="i")
        below = merges < n_leaves + np.arange(n_leaves - 1)[:, None]
        once = np.array_equal(np.sort(merges, axis=None), np.arange(2 * n_leaves - 2))
        if not below.all() or not once:
            raise ValueError("merges must join each node of its tree once")
        heights = check_stored(self.heights, "heights", (n_leaves - 1,))
        check_stored(self.stability, "stability", (n_leaves - 1,))
        clusters = check_stored(self.clusters, "clusters", (n_leaves,), kind="i")
        leaves = check_stored(self.leaves, "leaves", (len(labels),), kind="i")
        held = check_stored(self.landmarks, "landmarks", (len(landmark_labels),), kind="i")
        if np.any(np.diff(heights) < 0) or self.sizes.min() < 0:
            raise ValueError("heights must rise, and sizes be counts")
        if self.n_clusters != len(np.unique(clusters)) or leaves.min() < -1 or held.min() < 0:
            raise ValueError("leaves and clusters of its tree do not fit together")
        if max(leaves.max(), held.max()) >= n_leaves or not (
            np.array_equal(labels_of(leaves, clusters), labels)
            and np.array_equal(clusters[held], landmark_labels)
        ):
            raise ValueError("the tree does not pass through its labels")


def labels_of(places: Array, values: np.ndarray) -> Array:
    """Return the value at each place, and -1 at the place -1.

    Parameters
    ----------
    places : array of shape (n_samples,)
        Places in `values`, or -1; a Dask array gives another one.
    values : ndarray of shape (n_values,)
        Integers.

    Returns
    -------
    found : array of shape (n_samples,)
        Of the library of the places.
    """
    if is_dask(places):
        return places.map_blocks(labels_of, values, dtype=places.dtype)
    every = asarray_like(np.append(values, -1), places, dtype=places.dtype)
    return get_namespace(places).take(every, places % len(every), axis=0)


class TreeMixin:
    """Give an estimator the tree through its labels, grown when it is first asked for."""

    @property
    def tree_(self: Any) -> Tree:
        """The tree of partitions that passes through `labels_`; see :doc:`/tree`."""
        check_is_fitted(self)
        if getattr(self, "_tree_", None) is None:
            self._tree_ = self._grow()
        return self._tree_

    def labels_at(self: Any, n_clusters: int) -> Array:
        """Return the labels of the fitted samples at another level of the tree.

        Of two levels the finer one divides clusters of the coarser one.

        Parameters
        ----------
        n_clusters : int
            The number of clusters, from 1 to ``tree_.n_leaves``.

        Returns
        -------
        labels : array of shape (n_samples,)
            From 0 on, the largest cluster first, and -1 for outliers as in `labels_`; these are the
            labels at their own level.
        """
        check_is_fitted(self)
        if n_clusters == len(self.centroids_):
            return self.labels_
        return self.tree_.labels_at(n_clusters)

    def report(self: Any, X: Any, **options: Any) -> Any:
        """Show the fitted clusters as a page to work in, inside the cell of a notebook.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            The samples that the model was fitted on.
        **options : dict
            Options of `tuckermix.report.Report`, such as ``names``, ``truth`` and ``height``.

        Returns
        -------
        report : Report
            ``report.save(path)`` writes the page to a file.
        """
        return import_module("tuckermix.report").Report(self, X, **options)

    def _nearest_landmarks(
        self: Any, labellers: Sequence[Any], assign: Callable[..., Any]
    ) -> Array:
        """Return the nearest landmark of each fitted sample, -1 for outliers.

        Where the samples are the landmarks, these follow from what `assign` returns for the
        landmarks of all labellers: labels, and the nearest landmark of each.
        """
        nearest = getattr(self, "_nearest_", None)
        if nearest is not None:
            return nearest
        landmarks = [getattr(labeller, "landmarks", None) for labeller in labellers]
        if landmarks[0] is None or len(landmarks[0]) != len(self.labels_):
            raise ValueError(UNKNOWN)
        labels, nearest = assign(*landmarks)
        xp, held = get_namespace(labels), asarray_like(self.labels_, labels)
        if bool(xp.any((labels != held) & (held >= 0))):
            raise ValueError(UNKNOWN)
        return xp.where(held >= 0, nearest, -1)

    def _check_tree(self: Any, labellers: Sequence[Any]) -> None:
        """Raise where what a file says of nearest landmarks and of the tree does not fit."""
        held = getattr(labellers[0], "landmark_labels", None)
        if getattr(self, "_nearest_", None) is not None:
            nearest = check_stored(self._nearest_, "_nearest_", (len(self.labels_),), kind="i")
            most = -1 if held is None else len(held) - 1
            if nearest.min() < -1 or nearest.max() > most:
                raise ValueError(f"_nearest_ must lie between -1 and {most}")
        if getattr(self, "_tree_", None) is not None:
            if not isinstance(self._tree_, Tree) or held is None:
                raise ValueError("its tree is none")
            self._tree_.check(self.labels_, held)


@one_blas_thread
def grow_tree(
    labellers: Sequence[Any], widths: Sequence[int], nearest: Array, *, every_landmark: bool = False
) -> Tree:
    """Grow the tree through the labels of fitted samples.

    Parameters
    ----------
    labellers : sequence of Labeller
        What gave the labels, in one view or in several.
    widths : sequence of int
        The number of neighbours in each.
    nearest : array of shape (n_samples,)
        For each sample the nearest landmark of its label; -1 for outliers.
    every_landmark : bool, default=False
        Whether leaves may hold none of the samples, but only other landmarks.

    Returns
    -------
    tree : Tree
        The same for the same landmarks: nothing is random.
    """
    points = [to_numpy(labeller.landmarks) for labeller in labellers]
    own = to_numpy(labellers[0].landmark_labels)
    first, member = _distinct(points[0], own)
    inner = first
    if not every_landmark and not is_dask(nearest):
        among = np.unique(to_numpy(nearest))
        inner = np.unique(first[member[among[among >= 0]]])
    views = [(Z[inner], width) for Z, width in zip(points, widths, strict=True)]
    nodes = [np.flatnonzero(own[inner] == name) for name in np.unique(own[inner])]
    n_clusters = len(nodes)
    joins = _merge(views, nodes)
    splits = _divide(views, nodes, max(n_clusters, len(inner) // TreeSettings.current().per_leaf))
    rows = [*reversed(splits), *joins]
    divided = {row[0] for row in splits}
    bottom = [node for node in _in_order(range(n_clusters), splits) if node not in divided]
    number = {node: place for place, node in enumerate(bottom)}
    number |= {row[0]: len(bottom) + place for place, row in enumerate(rows)}
    leaf = np.empty(len(inner), dtype=np.int64)
    for node in bottom:
        leaf[nodes[node]] = number[node]
    steps = np.array([_stability(views, nodes, row) for row in rows])
    heights = np.array([row[3] for row in rows])
    below = len(splits)
    heights[:below] = np.minimum.accumulate(heights[:below][::-1])[::-1]
    every = _spread(points[0], own, first, member, inner, leaf)
    return Tree(
        merges=np.array([[number[a], number[b]] for _, a, b, _ in rows]).reshape(-1, 2),
        heights=np.maximum.accumulate(np.clip(heights, 0.0, 1.0)),
        stability=steps,
        leaves=labels_of(nearest, every),
        n_clusters=n_clusters,
        clusters=own[inner][np.unique(leaf, return_index=True)[1]],
        sizes=np.bincount(every, minlength=len(bottom)),
        landmarks=every,
    )


def _distinct(points: Array, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first of each set of copies with one label, and the set of each landmark."""
    every = np.arange(len(labels))
    if len(labels) < 2:
        return every, every
    indices, squares = nearest_neighbors(points, points, 1, exclude_self=True)
    member = distinct_rows(to_numpy(indices), to_numpy(squares), epsilon(points))[1]
    pairs = np.stack([member, labels])
    _, first, member = np.unique(pairs, axis=1, return_index=True, return_inverse=True)
    return first, member.ravel()


def _spread(
    points: np.ndarray,
    labels: np.ndarray,
    first: np.ndarray,
    member: np.ndarray,
    inner: np.ndarray,
    leaf: np.ndarray,
) -> np.ndarray:
    """Return the leaf of every landmark: that of the nearest one of its cluster that has one."""
    found = np.full(len(labels), -1)
    found[inner] = leaf
    found = found[first[member]]
    lost = np.flatnonzero(found < 0)
    found[lost] = leaf[nearest_alike(points[lost], labels[lost], points[inner], labels[inner])]
    return found


Views = list[tuple[np.ndarray, int]]
"""Landmarks as several views place them, and the number of neighbours in each."""


def _graph(views: Views, part: np.ndarray) -> sparse.csr_array:
    """Return the sum of the graphs of nearest neighbours within a part of the landmarks."""
    total: Any = 0
    for Z, width in views:
        rows = Z[part]
        lists = nearest_neighbors(rows, rows, min(width, len(part) - 1), exclude_self=True)
        total = total + adjacency(*lists, rows.shape[1] - 1)
    return total


def _merge(views: Views, nodes: list[np.ndarray]) -> list[Row]:
    """Join clusters, those first between which edges are densest; new nodes go to the list."""
    n_clusters = len(nodes)
    rows: list[Row] = []
    every = np.concatenate(nodes)
    labels = np.empty_like(every)
    labels[every] = np.repeat(np.arange(n_clusters), [len(node) for node in nodes])
    if n_clusters < 2:
        return rows
    A = _graph(views, np.arange(len(every)))
    marks = sparse.csr_array((np.ones(len(labels)), (np.arange(len(labels)), labels)))
    weights = (marks.T @ A @ marks).toarray()
    volumes = weights.sum(axis=1)
    shares = np.outer(volumes, volumes) / volumes.sum()
    for Z, _ in views:  # what no edge joins goes by the directions of its means
        means = marks.T @ Z
        means /= np.linalg.norm(means, axis=1, keepdims=True)
        weights += TreeSettings.current().apart * shares * (1.0 + means @ means.T)
    alive = list(range(n_clusters))
    while len(alive) > 1:
        volumes = weights.sum(axis=1)
        rates = weights / np.outer(volumes, volumes)
        np.fill_diagonal(rates, -1.0)
        a, b = np.unravel_index(np.argmax(rates), rates.shape)
        a, b = min(a, b), max(a, b)
        cut = weights[a, b] / (weights[a, a] + weights[a, b]) + weights[a, b] / (
            weights[b, b] + weights[a, b]
        )
        rows.append(Row(len(nodes), alive[a], alive[b], 1.0 - cut))
        nodes.append(np.concatenate([nodes[alive[a]], nodes[alive[b]]]))
        weights[a, :] += weights[b, :]
        weights[:, a] += weights[:, b]
        weights = np.delete(np.delete(weights, b, axis=0), b, axis=1)
        alive[a] = len(nodes) - 1
        del alive[b]
    return rows


def _divide(views: Views, nodes: list[np.ndarray], n_leaves: int) -> list[Row]:
    """Divide clusters, those first whose halves hold together least; parts go to the list."""
    queue: list[tuple[float, int, np.ndarray]] = []
    count = (len(nodes) + 1) // 2  # the others are merged from them
    for node in range(count):
        _push(views, nodes, node, queue)
    rows = []
    while queue and count < n_leaves:
        cut, node, first = heapq.heappop(queue)
        part = nodes[node]
        rows.append(Row(node, len(nodes), len(nodes) + 1, 1.0 - cut))
        nodes += [part[first], part[~first]]
        _push(views, nodes, len(nodes) - 2, queue)
        _push(views, nodes, len(nodes) - 1, queue)
        count += 1
    return rows


def _push(views: Views, nodes: list[np.ndarray], node: int, queue: list[Any]) -> None:
    if len(nodes[node]) > 1:
        first, cut = _bisect(views, nodes[node])
        heapq.heappush(queue, (cut, node, first))


def _bisect(views: Views, part: np.ndarray) -> tuple[np.ndarray, float]:
    """Divide a part of the landmarks in two by the normalised cut of its graph.

    Returns which landmarks are in the first half, and the cut.
    """
    if len(part) == 2:
        return np.array([True, False]), 2.0
    A = _graph(views, part)
    n_parts, component = connected_components(A, directed=False)
    if n_parts > 1:
        return join_parts(views[0][0][part], component, 2) == 0, 0.0
    N = normalized(A)
    if len(part) <= TreeSettings.current().dense:
        vector = np.linalg.eigh(N.toarray())[1][:, -2]
    else:
        vector = graph_eigenvectors(N, 2)[1][:, 1]
    degrees = A.sum(axis=1)
    return _sweep(A, vector / np.sqrt(degrees), degrees)


def _sweep(
    A: sparse.csr_array, values: np.ndarray, degrees: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return which nodes have values below the threshold with the smallest cut, and the cut."""
    order = np.argsort(values, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    later = np.maximum(np.repeat(rank, np.diff(A.indptr)), rank[A.indices])
    within = np.cumsum(np.bincount(later, weights=A.data, minlength=len(order)))[:-1]
    volume, total = np.cumsum(degrees[order])[:-1], degrees.sum()
    cuts = (volume - within) * (1.0 / volume + 1.0 / (total - volume))
    best = int(np.argmin(cuts))
    return rank <= best, float(cuts[best])


def _stability(views: Views, nodes: list[np.ndarray], row: Row) -> float:
    """Return how far the split of a node agrees with splits of parts of its landmarks."""
    use = TreeSettings.current()
    whole = nodes[row.node]
    first = np.isin(whole, nodes[row.left])
    size = min(use.most, round(use.share * len(whole)))
    if size < 3:
        return 0.0
    rng = np.random.default_rng(len(whole))
    found = []
    for _ in range(use.draws):
        some = np.sort(rng.choice(len(whole), size, replace=False))
        found.append(adjusted_rand_score(first[some], _bisect(views, whole[some])[0]))
    return float(np.mean(found))


def _in_order(roots: Any, splits: list[Row]) -> list[int]:
    """Return all nodes below the roots, the parts of each next to each other."""
    parts = {row.node: (row.left, row.right) for row in splits}
    found, stack = [], list(reversed(list(roots)))
    while stack:
        node = stack.pop()
        found.append(node)
        stack.extend(reversed(parts.get(node, ())))
    return found
