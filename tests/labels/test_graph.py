"""The neighbour graph: its weights, its components, copies, and what it finds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import adjusted_rand_score

from tuckermix._array_api import to_numpy
from tuckermix.labels import graph
from tuckermix.labels.graph import (
    adjacency,
    cut_connected,
    cut_graph,
    distinct_rows,
    graph_partition,
)
from tuckermix.numerics.points import nearest_neighbors


def host_neighbors(points, n_neighbors):
    count = min(n_neighbors, points.shape[0] - 1)
    found = nearest_neighbors(points, points, count, exclude_self=True)
    return tuple(to_numpy(part) for part in found)


def partition(points, n_clusters, n_neighbors=20, seed=0, **limits):
    indices, squares = host_neighbors(points, n_neighbors)
    rng = np.random.default_rng(seed)
    lists = [(indices, squares)]
    return graph_partition([points], lists, n_clusters, n_init=10, rng=rng, **limits)


def islands(rng, n_groups, size=30, n_features=3):
    """Return groups that share no edge: far apart compared with their width."""
    centers = 100.0 * rng.permutation(n_groups * 10)[: n_groups * n_features].reshape(n_groups, -1)
    names = np.repeat(np.arange(n_groups), size)
    return centers[names] + rng.normal(size=(len(names), n_features)), names


def test_adjacency_is_the_formula(rng):
    points = np.concatenate([rng.normal(size=(40, 3)), 6 + rng.normal(size=(8, 3))])
    indices, squares = host_neighbors(points, 10)
    A = adjacency(indices, squares, 2).toarray()
    w = np.zeros_like(A)
    spacing = np.sqrt(squares[:, 4])
    middle = np.median(spacing[:, None] * spacing[indices])
    for i in range(48):
        for rank, j in enumerate(indices[i]):
            w[i, j] = np.exp(-0.6 * rank) / (spacing[i] * spacing[j] / middle) ** 0.25
    np.testing.assert_allclose(A, w + w.T + 2 * np.minimum(w, w.T), rtol=1e-12)
    assert (np.diag(A) == 0).all()


@pytest.mark.parametrize("n_clusters", [2, 10, 20, 50])
def test_groups_that_share_no_edge_are_found_exactly(seed, n_clusters):
    points, names = islands(np.random.default_rng(seed), n_clusters)
    indices, squares = host_neighbors(points, 20)
    assert connected_components(adjacency(indices, squares, 3), directed=False)[0] == n_clusters
    labels = partition(points, n_clusters, seed=seed)
    assert adjusted_rand_score(names, labels) == 1.0
    assert set(labels) == set(range(n_clusters))


def test_one_more_cluster_than_components_splits_one_of_them(seed):
    rng = np.random.default_rng(seed)
    points, names = islands(rng, 9)
    points[names == 8, 0] += np.where(np.arange(30) < 15, 12.0, -12.0)  # two halves
    names[-15:] = 9
    assert adjusted_rand_score(names, partition(points, 10, seed=seed)) == 1.0


def test_more_components_than_clusters_join_the_nearest(seed):
    rng = np.random.default_rng(seed)
    centers = np.array([[0.0, 0.0], [20.0, 0.0], [200.0, 0.0], [220.0, 0.0]])
    names = np.repeat(np.arange(4), 40)
    points = centers[names] + rng.normal(size=(160, 2))
    assert adjusted_rand_score(names // 2, partition(points, 2)) == 1.0


def test_components_are_joined_by_their_means_when_widening_costs_too_much(xp, rng):
    centers = np.array([[0.0, 0.0], [20.0, 0.0], [200.0, 0.0], [220.0, 0.0]])
    names = np.repeat(np.arange(4), 40)
    points = centers[names] + rng.normal(size=(160, 2))
    two = partition(xp.asarray(points), 2, max_edges=0)
    assert adjusted_rand_score(names // 2, two) == 1.0
    three = partition(points, 3, max_edges=0)
    assert len(np.unique(three)) == 3
    assert all(len(set(three[names == name])) == 1 for name in range(4))


def test_joining_gives_every_cluster_a_component_even_with_equal_means():
    points = np.zeros((12, 2))
    labels = graph.join_parts(points, np.repeat(np.arange(6), 2), 4)
    assert set(labels) == set(range(4))


def test_the_first_embedding_is_the_normalised_cut(rng):
    """Two blobs that touch: the sign of the second eigenvector, computed densely."""
    points = rng.normal(size=(120, 2))
    points[60:, 0] += 3.5
    A = adjacency(*host_neighbors(points, 20), 1)
    scale = 1 / np.sqrt(A.sum(axis=1))
    values, vectors = eigh(A.toarray() * scale[:, None] * scale[None])
    second = vectors[:, -2] * scale
    pair = values[::-1], vectors[:, ::-1]
    with graph.GraphSettings(cut_allowance=0.0).use():
        labels = cut_connected(A, pair, 2, n_init=10, rng=rng)
    assert adjusted_rand_score(labels, second > 0) > 0.9


def test_components_share_clusters_by_eigenvalue():
    spectra = [np.array([1.0, 0.5, 0.1]), np.array([1.0, 0.9, 0.8]), np.array([1.0])]
    np.testing.assert_array_equal(graph._allot(spectra, 3), [1, 1, 1])
    np.testing.assert_array_equal(graph._allot(spectra, 5), [1, 3, 1])
    np.testing.assert_array_equal(graph._allot(spectra, 7), [3, 3, 1])


def test_copies_are_found_whatever_their_number(xp, rng):
    base = rng.normal(size=(12, 4))
    base /= np.linalg.norm(base, axis=1, keepdims=True)
    names = rng.permutation(np.repeat(np.arange(12), rng.integers(1, 60, size=12)))
    points = base[names] + 1e-15 * rng.normal(size=(len(names), 4))
    first, member = distinct_rows(*host_neighbors(xp.asarray(points), 20), 2.2e-16)
    assert len(first) == 12
    assert (np.diff(first) > 0).all()
    np.testing.assert_array_equal(names[first][member], names)


def test_near_samples_are_no_copies(rng):
    points = np.linspace(0, 1e-6, 50)[:, None] + np.array([[1.0]])
    first, member = distinct_rows(*host_neighbors(points, 20), 2.2e-16)
    np.testing.assert_array_equal(first, np.arange(50))
    np.testing.assert_array_equal(member, np.arange(50))


@pytest.mark.parametrize("n_samples", [1, 2, 5])
def test_tiny_numbers_of_samples(n_samples, rng):
    points = rng.normal(size=(n_samples, 2))
    np.testing.assert_array_equal(partition(points, n_samples), np.arange(n_samples))
    np.testing.assert_array_equal(partition(points, 1), np.zeros(n_samples))


@pytest.mark.parametrize("n_clusters", [2, 7, 38, 39])
def test_every_group_occurs_for_any_number_of_clusters(seed, n_clusters):
    points = np.random.default_rng(seed).normal(size=(40, 3))
    assert set(partition(points, n_clusters)) == set(range(n_clusters))


def test_samples_on_a_line_are_cut_where_they_are_sparse(seed):
    rng = np.random.default_rng(seed)
    names = np.repeat(np.arange(3), [120, 90, 90])
    points = np.stack([np.full(300, 10.0), 5.5 * names + rng.normal(size=300)], axis=1)
    assert adjusted_rand_score(names, partition(points, 3)) > 0.95


@pytest.mark.parametrize("spread", [1e-3, 1e-7])
def test_a_dense_bunch_does_not_outweigh_the_rest(seed, spread):
    """On a line weights grow where samples are dense, without bound but for ours."""
    rng = np.random.default_rng(seed)
    names = np.repeat(np.arange(3), [100, 100, 60])
    along = np.concatenate([rng.normal(size=100), 9 + rng.normal(size=100)])
    along = np.concatenate([along, 20 + spread * rng.normal(size=60)])
    points = np.stack([np.full(260, 10.0), along], axis=1)
    assert adjusted_rand_score(names, partition(points, 3)) > 0.95


def test_libraries_agree(xp, seed):
    points, _ = islands(np.random.default_rng(seed), 4)
    points = points / 300 + np.random.default_rng(seed).normal(size=points.shape) * 0.1
    np.testing.assert_array_equal(partition(xp.asarray(points), 4), partition(points, 4))


def test_cut_and_modularity_are_their_formulas(rng):
    A = rng.random((12, 12))
    A = np.triu(A, 1) + np.triu(A, 1).T
    labels = np.arange(12) % 3
    cut, modularity = graph._cut_and_modularity(sparse.csr_array(A), labels, 3)
    groups = [labels == name for name in range(3)]
    expected = sum(A[g][:, ~g].sum() / A[g].sum() for g in groups)
    assert cut == pytest.approx(expected)
    degrees, total = A.sum(axis=1), A.sum()
    same = labels[:, None] == labels[None]
    assert modularity == pytest.approx(
        ((A - np.outer(degrees, degrees) / total) * same).sum() / total
    )


def test_a_second_embedding_is_taken_only_for_more_modularity_at_a_similar_cut(rng):
    points = rng.normal(size=(150, 4))
    A = adjacency(*host_neighbors(points, 20), 1)
    scale = 1 / np.sqrt(A.sum(axis=1))
    N = sparse.csr_array(A.multiply(scale[:, None]).multiply(scale[None, :]))
    pair = graph.graph_eigenvectors(N, 8)

    def cut(allowance):
        with graph.GraphSettings(cut_allowance=allowance).use():
            labels = cut_connected(A, pair, 5, n_init=10, rng=np.random.default_rng(0))
        return labels, *graph._cut_and_modularity(A, labels, 5)

    first, free, kept = cut(0.0), cut(np.inf), cut(1.1)
    assert free[2] >= first[2]
    assert kept[1] <= 1.1 * first[1]
    assert kept[2] >= first[2]


@pytest.fixture
def torch_on_device(monkeypatch):
    """Let PyTorch on the host go the way of a device."""
    monkeypatch.setattr(graph, "DEVICES", ("cpu",))
    return pytest.importorskip("torch")


@pytest.mark.torch
@pytest.mark.parametrize("n_directions", [1, 7])
def test_the_graph_on_a_device_is_that_of_the_host(torch_on_device, rng, n_directions):
    Z = rng.standard_normal((300, 5))
    indices, squares = nearest_neighbors(Z, Z, 9, exclude_self=True)
    expected = adjacency(indices, squares, n_directions).toarray()
    torch = torch_on_device
    found = adjacency(torch.asarray(indices), torch.asarray(squares), n_directions)
    np.testing.assert_allclose(found.to_dense().numpy(), expected, rtol=1e-12)
    np.testing.assert_array_equal(expected, expected.T)


@pytest.mark.torch
@pytest.mark.parametrize("apart", [0.0, 2.5, 30.0])  # one cloud, clusters that touch, parts
@pytest.mark.parametrize("n_samples", [90, 700])  # dense eigenproblems, and sparse ones
def test_a_device_gives_the_labels_of_the_host(torch_on_device, rng, apart, n_samples):
    centers = rng.standard_normal((5, 6))
    Z = apart * centers[np.arange(n_samples) % 5] + rng.standard_normal((n_samples, 6))
    indices, squares = nearest_neighbors(Z, Z, 10, exclude_self=True)

    def partition(move):
        generator = np.random.default_rng(0)
        lists = [(move(indices), move(squares))]
        return graph_partition([move(Z)], lists, 5, n_init=3, rng=generator)

    labels = partition(torch_on_device.asarray)
    assert isinstance(labels, np.ndarray)
    # To rounding: a sample between clusters may fall to either side.
    assert adjusted_rand_score(labels, partition(np.asarray)) > 0.98


@pytest.mark.torch
@pytest.mark.parametrize("count", [1, 2])
def test_more_parts_than_clusters_are_joined_on_a_device_too(torch_on_device, rng, limits, count):
    Z = 100.0 * np.repeat(np.arange(6.0), 30)[:, None] + rng.standard_normal((180, 2))
    indices, squares = nearest_neighbors(Z, Z, 5, exclude_self=True)
    torch = torch_on_device
    for edges in (graph.MAX_EDGES, 0):  # wider neighbourhoods, then joining by means
        limits(graph_edges=edges)
        labels = [
            graph_partition(
                [move(Z)] * count,
                [(move(indices), move(squares))] * count,
                3,
                n_init=3,
                rng=np.random.default_rng(0),
            )
            for move in (np.asarray, torch.asarray)
        ]
        np.testing.assert_array_equal(*labels)
        assert len(np.unique(labels[0])) == 3


@pytest.mark.torch
@pytest.mark.parametrize("n_samples", [40, 120, 1000])  # in reach, at the last step, and beyond
def test_a_long_chain_on_a_device_hangs_together(torch_on_device, n_samples):
    # The way from end to end is longer than the steps that are taken: the host decides then.
    torch, Z = torch_on_device, np.arange(n_samples, dtype=float)[:, None]

    def joined(Z):
        indices, squares = nearest_neighbors(Z, Z, 4, exclude_self=True)
        return adjacency(torch.asarray(indices), torch.asarray(squares), 1)

    chain = joined(Z)
    assert graph._hangs_together(chain) == (n_samples < 2 * graph.STRIDE * graph.MOST_STRIDES)
    labels = cut_graph(chain, 2, n_init=3, rng=np.random.default_rng(0))
    assert abs(np.diff(labels)).sum() == 1  # two halves
    assert not graph._hangs_together(joined(np.concatenate([Z, Z + 10.0 * n_samples])))
