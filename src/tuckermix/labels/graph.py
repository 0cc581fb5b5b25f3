"""Clusters as groups of a graph that joins each sample to its nearest neighbours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import array_api_compat
import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse.csgraph import connected_components

from tuckermix._array_api import Array, asarray_like, device, get_namespace, is_numpy, to_numpy
from tuckermix._estimators import Settings
from tuckermix.numerics.graph_eigen import graph_eigenvectors, improved_eigenvectors, on_the_host
from tuckermix.numerics.points import kmeans, nearest_neighbors


@dataclass(frozen=True)
class GraphSettings(Settings):
    """How a graph of neighbours is built and cut.

    Attributes
    ----------
    decay : float
        The weight of the last of many neighbours is about exp(-6), far below a hundredth: it makes
        no difference whether there is one more.
    mutual : float
        How many times more an edge counts for being wanted from both ends. A small group has few
        mutual edges with a large one from which it has to borrow neighbours.
    densest : float
        Samples nearer to each other than this part of the median spacing count as that near:
        weights must not differ by more than the arithmetic of eigenvectors bears.
    steps : int
        Eigenvectors count by ``((1 + eigenvalue) / 2)^8``, as after eight steps of a random walk
        that stays where it is every other time: those of small eigenvalues hold more noise.
    more : float
        A second embedding has this part more eigenvectors than there are clusters. It finds groups
        of even size where the first splits off small ones.
    least_more : int
        The least number of further eigenvectors: one or two may show a single odd group only.
    cut_allowance : float
        The partition of the second embedding may cut that much more than that of the first. Without
        a limit, an even split through a cloud would be preferred to a small group that stands
        alone.
    fewest : int
        With fewer samples than this for each eigenvector, eigenvectors tell single samples apart:
        all of them are needed, with equal weights, and no more than there are clusters.
    """

    decay: float = 6.0
    mutual: float = 2.0
    densest: float = 0.01
    steps: int = 8
    more: float = 0.5
    least_more: int = 3
    cut_allowance: float = 1.5
    fewest: int = 5


STRIDE, MOST_STRIDES = 4, 16
"""Steps from neighbour to neighbour on a device between two questions of how far they have come,
and the most of these questions: graphs of some ten thousand samples take two or three."""

DEVICES = ("cuda", "xpu")
"""Where the graph of a PyTorch tensor stays on its device; elsewhere SciPy has the better tools."""


def stays_on_device(X: Any) -> bool:
    """Tell whether the graph of samples is built where they lie."""
    return array_api_compat.is_torch_array(X) and device(X).type in DEVICES


MAX_EDGES = 2_000_000
"""Widening the neighbourhood ends at this many directed edges (about 100 MB on the host)."""

COPY_POWER = 2 / 3
"""Rows of unit length that are nearer than eps^(2/3) (4e-11 in float64, 2e-5 in float32) are
copies: wider than the rounding of equal samples, narrower than the spacing of others."""


def rank_weights(n_neighbors: int) -> np.ndarray:
    """Return the weights ``exp(-6 (r - 1) / n)`` of the neighbours r = 1, …, n."""
    return np.exp(-GraphSettings.current().decay * np.arange(n_neighbors) / max(1, n_neighbors))


def distinct_rows(
    indices: np.ndarray, squares: np.ndarray, eps: float
) -> tuple[np.ndarray, np.ndarray]:
    """Find copies among rows of unit length from their nearest neighbours.

    Parameters
    ----------
    indices, squares : ndarray of shape (n_samples, n_neighbors)
        The nearest neighbours of each row, itself excluded, and their squared distances. Equal
        distances come in order of the index, so that copies point to the first others of their set
        and a set of any size hangs together.
    eps : float
        The machine epsilon of the rows.

    Returns
    -------
    first : ndarray of shape (n_distinct,)
        The place of the first of each set of copies, ascending.
    member : ndarray of shape (n_samples,)
        The set that each row belongs to: row i is a copy of row ``first[member[i]]``.
    """
    n_samples = len(indices)
    rows, columns = np.nonzero(squares <= eps ** (2 * COPY_POWER))
    if len(rows) == 0:
        every = np.arange(n_samples)
        return every, every
    links = (np.ones(len(rows)), (rows, indices[rows, columns]))
    member = connected_components(sparse.csr_array(links, shape=(n_samples,) * 2), False)[1]
    return _in_order_of_appearance(member)


def _in_order_of_appearance(names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give groups numbers by their first member; return the first members and the new numbers."""
    _, first, member = np.unique(names, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[member]


def adjacency(indices: Array, squares: Array, n_directions: int) -> Any:
    """Build the weighted graph of nearest neighbours.

    ``A_ij = w_ij + w_ji + 2 min(w_ij, w_ji)`` with ``w_ij = exp(-6 (r - 1) / n) h_ij`` where j is
    the r-th of the n neighbours of i, else 0. With s_i the distance of i to its middle neighbour,
    the factor ``h_ij = (s_i s_j)^(-1 / 2d)`` favours cuts where samples are sparse. On a line,
    ranks alone say nothing of that; in many directions d it makes no difference.

    Parameters
    ----------
    indices, squares : arrays of shape (n_samples, n_neighbors)
        The neighbours of each sample, nearest first, and their squared distances, in NumPy or
        PyTorch.
    n_directions : int
        The dimension d in which the samples lie.

    Returns
    -------
    A : scipy.sparse.csr_array or sparse tensor of PyTorch, of shape (n_samples, n_samples)
        Symmetric, nonnegative, without loops.
    """
    use = GraphSettings.current()
    xp = get_namespace(indices, squares)
    n_samples, n_neighbors = indices.shape
    flat = xp.reshape(indices, (-1,))
    spacing = xp.sqrt(squares[:, (n_neighbors - 1) // 2])
    spacing = xp.maximum(spacing, use.densest * xp.quantile(spacing, 0.5))
    spacings = spacing[:, None] * xp.reshape(xp.take(spacing, flat, axis=0), indices.shape)
    spacings = xp.clip(spacings, np.finfo(float).tiny, None)
    middle = xp.quantile(xp.reshape(spacings, (-1,)), 0.5)
    relative = xp.clip(spacings / middle, use.densest**2, None)
    weights = asarray_like(rank_weights(n_neighbors), squares)
    weights = weights / relative ** (0.5 / max(1, n_directions))
    if is_numpy(indices):
        # Numbers of half the size: products with the graph take as long as they take to read it.
        pointers = np.arange(0, n_samples * n_neighbors + 1, n_neighbors, dtype=np.int32)
        edges = (weights.ravel(), flat.astype(np.int32), pointers)
        W = sparse.csr_array(edges, shape=(n_samples,) * 2)
        back = W.T.tocsr()
        return (W + back + use.mutual * W.minimum(back)).tocsr()
    # A = M + Mᵀ, where M has the edges of W, and half of what counts more for mutual ones.
    cube = (n_samples, n_neighbors, n_neighbors)
    every = xp.arange(n_samples, device=device(indices))
    mutual = xp.reshape(xp.take(indices, flat, axis=0), cube) == every[:, None, None]
    back = xp.where(mutual, xp.reshape(xp.take(weights, flat, axis=0), cube), 0.0)
    weights = weights + 0.5 * use.mutual * xp.minimum(weights, xp.sum(back, axis=2))
    ends = xp.stack([xp.repeat(every, n_neighbors), flat])
    ends, weights = xp.concat([ends, xp.flip(ends, axis=0)], axis=1), xp.reshape(weights, (-1,))
    weights, shape = xp.concat([weights, weights]), (n_samples, n_samples)
    # Said aloud that nothing is to be checked, since PyTorch warns where nobody has.
    with xp.sparse.check_sparse_tensor_invariants(False):
        return xp.sparse_coo_tensor(ends, weights, shape).coalesce()


def graph_partition(
    places: Sequence[Array],
    lists: Sequence[tuple[Array, Array]],
    n_clusters: int,
    *,
    n_init: int,
    rng: np.random.Generator,
    max_edges: int = MAX_EDGES,
) -> np.ndarray:
    """Partition distinct samples by the normalised cut of their neighbour graph, or of a sum.

    With more connected components than clusters, the neighbourhood is widened by doubling; if that
    takes too many edges, components are joined by average linkage of their means.

    Parameters
    ----------
    places : sequence of arrays of shape (n_samples, n_features)
        The samples as each view places them, no two of them equal.
    lists : sequence of (indices, squares)
        In each view the nearest neighbours of each sample, itself excluded, and their squared
        distances, arrays of shape (n_samples, n_neighbors).
    n_clusters : int
        The number of groups.
    n_init : int
        Starts of k-means.
    rng : numpy.random.Generator
        The source of the starts.
    max_edges : int, default=2000000
        Where widening ends, in directed edges of a view.

    Returns
    -------
    labels : ndarray of shape (n_samples,)
        The group of each sample; every group occurs if there are as many samples.
    """
    first, n_samples = places[0], int(places[0].shape[0])
    if n_samples <= n_clusters:
        return np.arange(n_samples)
    if n_clusters == 1:
        return np.zeros(n_samples, dtype=np.int64)
    on_device = stays_on_device(first)
    while True:
        if not on_device:
            lists = [(to_numpy(indices), to_numpy(squares)) for indices, squares in lists]
        graphs = [adjacency(*pair, Z.shape[1] - 1) for Z, pair in zip(places, lists, strict=True)]
        A = reduce(add, graphs)
        A = A.coalesce() if on_device else A
        labels = cut_graph(A, n_clusters, n_init=n_init, rng=rng)
        if labels is not None:
            return labels
        width = min(2 * max(indices.shape[1] for indices, _ in lists), n_samples - 1)
        if width * n_samples > max_edges:
            part = connected_components(on_the_host(A) if on_device else A, directed=False)[1]
            return join_parts(get_namespace(first).concat(list(places), axis=1), part, n_clusters)
        lists = [nearest_neighbors(Z, Z, width, exclude_self=True) for Z in places]


def graph_vectors(
    A: sparse.csr_array, n_clusters: int, guess: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray] | None:
    """Find the eigenvectors by which `cut_connected` partitions a graph that hangs together.

    Parameters
    ----------
    A : scipy.sparse.csr_array of shape (n_samples, n_samples)
        Symmetric and nonnegative.
    n_clusters : int
        The number of groups.
    guess : ndarray of shape (n_samples, n_vectors) or None, default=None
        Those of a similar graph: as many are found, and only as far as k-means can tell.

    Returns
    -------
    pair : tuple of arrays of shapes (n_vectors,) and (n_samples, n_vectors), or None
        Eigenvalues and eigenvectors of the normalised adjacency; None where the graph falls into
        parts.
    """
    if connected_components(A, directed=False)[0] > 1:
        return None
    N = normalized(A)
    if guess is not None:
        return improved_eigenvectors(N, guess)
    return graph_eigenvectors(N, _with_more(n_clusters, A.shape[0]))


def cut_graph(
    A: Any, n_clusters: int, *, n_init: int, rng: np.random.Generator
) -> np.ndarray | None:
    """Partition the nodes of a graph by its normalised cut.

    Parameters
    ----------
    A : scipy.sparse.csr_array or sparse tensor of PyTorch, of shape (n_samples, n_samples)
        Symmetric and nonnegative, see `adjacency`; sums of such graphs are graphs too.
    n_clusters : int
        The number of groups.
    n_init : int
        Starts of k-means.
    rng : numpy.random.Generator
        The source of the starts.

    Returns
    -------
    labels : ndarray of shape (n_samples,) or None
        The group of each node; None where the graph falls into more parts than there are groups.
    """
    if sparse.issparse(A) or not _hangs_together(A):
        host = A if sparse.issparse(A) else on_the_host(A)
        n_parts, part = connected_components(host, directed=False)
        if n_parts > n_clusters:
            return None
        if n_parts > 1:
            return _cut_parts(host, normalized(host), part, n_clusters, n_init, rng)
    if n_clusters == 1:
        return np.zeros(A.shape[0], dtype=np.int64)
    pair = graph_eigenvectors(normalized(A), _with_more(n_clusters, A.shape[0]))
    return to_numpy(cut_connected(A, pair, n_clusters, n_init=n_init, rng=rng))


def _hangs_together(A: Any) -> bool:
    """Tell whether all nodes of a graph on a device are within reach of the first; maybe not."""
    xp, n_samples = get_namespace(A), int(A.shape[0])
    reached = xp.zeros((n_samples, 1), dtype=A.dtype, device=device(A))
    reached[0, 0] = 1.0
    count = 1
    for _ in range(MOST_STRIDES):
        for _ in range(STRIDE):
            reached = xp.astype(A @ reached + reached > 0, A.dtype)
        before, count = count, int(xp.sum(reached))
        if count in (before, n_samples):
            break
    return count == n_samples


def normalized(A: Any) -> Any:
    """Return the normalised adjacency ``D^-½ A D^-½``; degrees do not reach beyond a component."""
    if sparse.issparse(A):
        scale = 1 / np.sqrt(A.sum(axis=1))
        weights = A.data * np.repeat(scale, np.diff(A.indptr)) * scale[A.indices]
        return sparse.csr_array((weights, A.indices, A.indptr), shape=A.shape)
    xp, (rows, columns) = get_namespace(A), A.indices()
    ones = xp.ones((A.shape[0], 1), dtype=A.dtype, device=device(A))
    scale = 1 / xp.sqrt((A @ ones)[:, 0])
    weights = A.values() * xp.take(scale, rows, axis=0) * xp.take(scale, columns, axis=0)
    kind = {"is_coalesced": True, "check_invariants": False}
    return xp.sparse_coo_tensor(A.indices(), weights, A.shape, **kind)


def modularity(A: sparse.csr_array, labels: np.ndarray) -> float:
    """Return the modularity ``Σ a_k / v - (v_k / v)²`` of a partition of a graph.

    a_k is the weight within group k, v_k the weight of its samples, v that of all: how much more
    weight lies within groups than if edges were drawn at random.
    """
    return _cut_and_modularity(A, labels, int(labels.max()) + 1)[1]


def _cut_parts(
    A: sparse.csr_array,
    N: sparse.csr_array,
    part: np.ndarray,
    n_clusters: int,
    n_init: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Share the clusters out among connected components, and cluster within each.

    Each component has the eigenvalue 1; the remaining clusters go to the components with the
    next largest eigenvalues. Clusters never cross components.
    """
    n_parts = int(part.max()) + 1
    most = n_clusters - n_parts + 1
    members = [np.flatnonzero(part == name) for name in range(n_parts)]
    pairs = []
    for rows in members:
        if most == 1 or len(rows) == 1:
            pairs.append((np.ones(1), np.ones((len(rows), 1))))
        else:
            count = _with_more(min(most, len(rows)), len(rows))
            pairs.append(graph_eigenvectors(N[rows, :][:, rows], count))
    counts = _allot([values[:most] for values, _ in pairs], n_clusters)
    labels = np.empty(len(part), dtype=np.int64)
    for rows, pair, count, offset in zip(
        members, pairs, counts, np.cumsum(counts) - counts, strict=True
    ):
        labels[rows] = offset
        if count > 1:
            inner = A[rows, :][:, rows]
            labels[rows] += cut_connected(inner, pair, int(count), n_init=n_init, rng=rng)
    return labels


def _with_more(n_clusters: int, n_samples: int) -> int:
    """Return how many eigenvectors both embeddings take: for few samples the first one only."""
    use = GraphSettings.current()
    n_more = n_clusters + max(use.least_more, math.ceil(use.more * n_clusters))
    return n_more if n_more * use.fewest <= n_samples else n_clusters


def cut_connected(
    A: Any, pair: tuple[Array, Array], n_clusters: int, *, n_init: int, rng: np.random.Generator
) -> Array:
    """Cluster a connected graph by k-means on its eigenvectors, rows divided by their norms.

    The partition by `n_clusters` eigenvectors is kept, unless one by half as many more, and at
    least three, has a larger modularity at a normalised cut that is not much larger.

    Parameters
    ----------
    A : scipy.sparse.csr_array or sparse tensor of PyTorch, of shape (n_samples, n_samples)
        Symmetric and nonnegative, in one part.
    pair : tuple of arrays of shapes (n_vectors,) and (n_samples, n_vectors)
        What `graph_vectors` found.
    n_clusters : int
        The number of groups.
    n_init : int
        Starts of k-means.
    rng : numpy.random.Generator
        The source of the starts.

    Returns
    -------
    labels : array of shape (n_samples,)
        The group of each node.
    """
    use = GraphSettings.current()
    values, vectors = pair
    xp, n_samples = get_namespace(vectors), len(vectors)
    best, cut, modularity = None, math.inf, -math.inf
    # A set of one where there are too few samples for more eigenvectors.
    for width in sorted({n_clusters, _with_more(n_clusters, n_samples)}):
        steps = use.steps if use.fewest * width <= n_samples else 0
        embedding = vectors[:, :width] * ((1 + values[:width]) / 2) ** steps
        lengths = xp.sqrt(xp.sum(embedding * embedding, axis=1, keepdims=True))
        embedding = embedding / xp.where(lengths > 0, lengths, 1.0)
        labels = kmeans(embedding, n_clusters, n_init=n_init, rng=rng).labels
        its_cut, its_modularity = _cut_and_modularity(A, labels, n_clusters)
        if best is None or (its_modularity > modularity and its_cut <= use.cut_allowance * cut):
            best, cut, modularity = labels, its_cut, its_modularity
    assert best is not None
    return best


def _cut_and_modularity(A: Any, labels: Array, n_clusters: int) -> tuple[float, float]:
    """Return the normalised cut ``Σ 1 - a_k / v_k`` and the modularity ``Σ a_k / v - (v_k / v)²``.

    a_k is the weight within group k, v_k the weight of its samples, v that of all.
    """
    xp = get_namespace(labels)
    names = xp.arange(n_clusters, dtype=labels.dtype, device=device(labels))
    marks = xp.astype(labels[:, None] == names, xp.float64)
    weights = to_numpy(marks.T @ (A @ marks))
    within, volumes = np.diag(weights), weights.sum(axis=1)
    shares = volumes / volumes.sum()
    cut = n_clusters - float((within / volumes).sum())
    return cut, float((within / volumes.sum() - shares**2).sum())


def _allot(spectra: list[np.ndarray], n_clusters: int) -> np.ndarray:
    """Share the clusters out: one to each component, then in the order of the eigenvalues."""
    counts = np.ones(len(spectra), dtype=np.int64)
    owner = np.concatenate([np.full(len(s) - 1, i) for i, s in enumerate(spectra)])
    values = np.concatenate([s[1:] for s in spectra])
    best = np.argsort(-values, kind="stable")[: n_clusters - len(spectra)]
    np.add.at(counts, owner[best].astype(np.int64), 1)
    return counts


def join_parts(Z: Array, part: np.ndarray, n_clusters: int) -> np.ndarray:
    """Join components, nearest means first, until as many are left as there are clusters."""
    xp = get_namespace(Z)
    n_parts = int(part.max()) + 1
    marks = sparse.csr_array((np.ones(len(part)), (part, np.arange(len(part)))))
    means = to_numpy(xp.matmul(asarray_like(marks.toarray(), Z), Z)) / marks.sum(axis=1)[:, None]
    groups = fcluster(linkage(means, "average"), n_clusters, criterion="maxclust") - 1
    if len(np.unique(groups)) < n_clusters:  # tied heights: cut between them by size
        order = np.argsort(-np.bincount(part, minlength=n_parts), kind="stable")
        groups = np.full(n_parts, n_clusters - 1)
        groups[order[: n_clusters - 1]] = np.arange(n_clusters - 1)
    return groups[part]
