"""Eigenvectors of sparse matrices against LAPACK."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import eigh

from tuckermix.numerics import graph_eigen
from tuckermix.numerics.graph_eigen import (
    EigenSettings,
    graph_eigenvectors,
    improved_eigenvectors,
)

USE = EigenSettings()


def planted(rng, n_groups, size, link):
    """Return a normalised adjacency of groups joined by faint random edges."""
    n = n_groups * size
    names = np.repeat(np.arange(n_groups), size)
    A = (rng.random((n, n)) < 0.3) * (names[:, None] == names[None])
    A = A + link * (rng.random((n, n)) < 0.01)
    A = np.triu(A, 1) + np.triu(A, 1).T
    scale = 1 / np.sqrt(A.sum(axis=1))
    return A * scale[:, None] * scale[None]


@pytest.mark.parametrize("link", [0.1, 1e-6, 0.0])
@pytest.mark.parametrize(("n_groups", "size"), [(4, 60), (12, 60)])
def test_the_span_is_that_of_lapack(rng, link, n_groups, size):
    N = planted(rng, n_groups, size, link)
    values, vectors = graph_eigenvectors(sparse.csr_array(N), n_groups)
    expected, basis = eigh(N)
    np.testing.assert_allclose(values, expected[::-1][:n_groups], atol=1e-9)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(n_groups), atol=1e-9)
    cosines = np.linalg.svd(basis[:, -n_groups:].T @ vectors, compute_uv=False)
    assert cosines.min() > 1 - 1e-9


@pytest.mark.parametrize(("n_groups", "size"), [(4, 90), (12, 40), (3, 20)])
def test_a_guess_is_improved_to_the_span_of_lapack(seed, n_groups, size):
    rng = np.random.default_rng(seed)
    N = planted(rng, n_groups, size, 0.1)
    expected, basis = eigh(N)
    truth = basis[:, ::-1][:, :n_groups]
    for guess in (truth + 0.05 * rng.standard_normal(truth.shape), rng.random(truth.shape)):
        values, vectors = improved_eigenvectors(sparse.csr_array(N), guess)
        np.testing.assert_allclose(values, expected[::-1][:n_groups], atol=1e-5)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(n_groups), atol=1e-5)
        assert np.linalg.svd(truth.T @ vectors, compute_uv=False).min() > 0.999


@pytest.mark.parametrize("link", [0.0, 1e-9, 1e-4])
def test_copies_of_a_graph_are_all_found(rng, link):
    # Lanczos builds on one vector, in which eigenvectors of equal eigenvalues look like one.
    N = planted(rng, 3, 90, 0.1)
    A = np.kron(np.eye(3), N)
    A[0, 270] = A[270, 0] = A[270, 540] = A[540, 270] = link
    values, vectors = graph_eigenvectors(sparse.csr_array(A), 9)
    np.testing.assert_allclose(values, eigh(A, eigvals_only=True)[::-1][:9], atol=1e-9)
    np.testing.assert_allclose(A @ vectors, vectors * values, atol=1e-6)


@pytest.mark.parametrize("link", [0.1, 0.01])
def test_both_iterations_find_the_same(rng, link):
    N = sparse.csr_array(planted(rng, 12, 60, link))
    found = graph_eigen._lanczos(N, 12)
    assert found is not None
    values, vectors = graph_eigen._filtered_eigenvectors(N, 12)
    np.testing.assert_allclose(found[0], values, atol=1e-10)
    cosines = np.linalg.svd(found[1].T @ vectors, compute_uv=False)
    assert cosines.min() > 1 - 1e-9


@pytest.mark.parametrize(("n_groups", "size"), [(30, 25), (40, 20)])
def test_many_eigenvectors_come_from_a_block(monkeypatch, seed, n_groups, size):
    N = planted(np.random.default_rng(seed), n_groups, size, 0.1)
    monkeypatch.setattr(graph_eigen, "_lanczos", None)  # is not asked
    values, vectors = graph_eigenvectors(sparse.csr_array(N), n_groups)
    expected, basis = eigh(N)
    np.testing.assert_allclose(values, expected[::-1][:n_groups], atol=1e-9)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(n_groups), atol=1e-9)
    assert np.linalg.norm(N @ vectors - vectors * values, axis=0).max() <= USE.block_tolerance
    cosines = np.linalg.svd(basis[:, -n_groups:].T @ vectors, compute_uv=False)
    assert cosines.min() > 1 - 1e-7


@pytest.mark.parametrize("size", [400, 900])
def test_eigenvalues_that_crowd_at_1_are_told_apart_in_double(size):
    # A ring of samples: eigenvalues cos(2πk / n) in pairs, which float32 does not tell apart.
    ends = np.arange(size), np.roll(np.arange(size), 1)
    ring = sparse.csr_array((np.full(size, 0.5), ends))
    ring = ring + ring.T
    count = max(7, size // USE.many_wanted + 2) if size > USE.sparse_size else 7
    values, vectors = graph_eigenvectors(ring, count)
    expected = np.sort(np.cos(2 * np.pi * np.arange(size) / size))[::-1][:count]
    np.testing.assert_allclose(values, expected, atol=1e-10)
    np.testing.assert_allclose(ring @ vectors, vectors * values, atol=1e-6)


@pytest.mark.torch
@pytest.mark.parametrize(("limit", "n_groups"), [(40, 12), (1, 12), (40, 4)])
def test_sparse_tensors_are_worked_on_where_they_are(settings, rng, limit, n_groups):
    # By the filter; by LAPACK where that is not enough; as a dense matrix where it is small.
    torch = pytest.importorskip("torch")
    settings(EigenSettings(max_filters=limit))
    N = planted(rng, n_groups, 60, 0.1)
    ends = np.array(N.nonzero())
    matrix = torch.sparse_coo_tensor(ends, N[*ends], N.shape, check_invariants=True).coalesce()
    assert (graph_eigen.on_the_host(matrix) != sparse.csr_array(N)).nnz == 0
    values, vectors = graph_eigenvectors(matrix, n_groups)
    assert values.dtype == vectors.dtype == torch.float64
    np.testing.assert_allclose(values, eigh(N, eigvals_only=True)[::-1][:n_groups], atol=1e-9)
    np.testing.assert_allclose(N @ vectors.numpy(), vectors * values, atol=1e-6)


@pytest.mark.torch
@pytest.mark.parametrize("spoilt", ["nothing", "scales", "copy", "zero"])
def test_vectors_on_a_device_are_made_orthonormal(rng, spoilt):
    torch = pytest.importorskip("torch")
    vectors = rng.standard_normal((400, 7))
    if spoilt == "scales":
        vectors *= 10.0 ** np.arange(0, -140, -20)
    elif spoilt != "nothing":  # the span of the others is kept, and one more direction found
        vectors[:, 3] = vectors[:, 2] if spoilt == "copy" else 0.0
    basis = graph_eigen._quick_qr(torch.asarray(vectors)).numpy()
    np.testing.assert_allclose(basis.T @ basis, np.eye(7), atol=1e-13)
    lengths = np.linalg.norm(vectors, axis=0)
    unit = vectors / np.where(lengths > 0, lengths, 1.0)
    np.testing.assert_allclose(basis @ (basis.T @ unit), unit, atol=1e-12)


def test_equal_input_gives_equal_output(rng):
    N = sparse.csr_array(planted(rng, 12, 60, 0.1))
    for first, second in zip(graph_eigenvectors(N, 5), graph_eigenvectors(N, 5), strict=True):
        np.testing.assert_array_equal(first, second)


def test_lapack_helps_where_the_iteration_ends_too_early(settings, rng):
    N = planted(rng, 12, 60, 0.1)
    settings(EigenSettings(restarts=1, max_filters=1))
    values, _ = graph_eigenvectors(sparse.csr_array(N), 12)
    np.testing.assert_allclose(values, eigh(N, eigvals_only=True)[::-1][:12], atol=1e-12)


def test_a_large_problem_gives_what_it_has_when_time_is_up(settings, rng):
    N = planted(rng, 12, 60, 0.1)
    settings(EigenSettings(restarts=1, max_filters=2, fallback_size=0))
    values, vectors = graph_eigenvectors(sparse.csr_array(N), 12)
    assert values.shape == (12,)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(12), atol=1e-9)


def test_all_eigenvectors_may_be_asked_for(rng):
    N = planted(rng, 2, 20, 0.1)
    values, vectors = graph_eigenvectors(sparse.csr_array(N), 40)
    np.testing.assert_allclose(vectors * values @ vectors.T, N, atol=1e-12)


def chain(n_nodes, reach=5):
    """Return the normalised adjacency of a long chain, whose leading eigenvalues crowd at 1."""
    A = sparse.diags_array(
        [np.ones(n_nodes - k) for k in range(1, reach + 1)],
        offsets=list(range(1, reach + 1)),
        shape=(n_nodes, n_nodes),
    )
    A = (A + A.T).tocsr()
    scale = 1 / np.sqrt(A.sum(axis=1))
    return sparse.csr_array(A.multiply(scale[:, None]).multiply(scale[None, :]))


def test_a_long_chain_takes_inverse_iteration(settings, rng):
    settings(EigenSettings(fallback_size=0, restarts=1, max_filters=3))
    order = rng.permutation(900)
    N = chain(900)[order, :][:, order]
    values, vectors = graph_eigenvectors(N, 4)
    expected, basis = eigh(N.toarray())
    np.testing.assert_allclose(values, expected[::-1][:4], atol=1e-10)
    cosines = np.linalg.svd(basis[:, -4:].T @ vectors, compute_uv=False)
    assert cosines.min() > 1 - 1e-8
    settings(EigenSettings(max_band_work=0))
    rough, _ = graph_eigenvectors(N, 4)
    assert (rough <= values + 1e-12).all()
    assert rough[-1] < values[-1]


@pytest.mark.parametrize("count", [8, 12])
def test_vectors_of_a_chain_are_told_apart_although_their_values_crowd(count, rng):
    # Neighbouring eigenvalues differ by some hundred thousandths, the rounding of float32 by 1e-7.
    order = rng.permutation(1500)
    N = chain(1500, reach=3)[order, :][:, order]
    values, vectors = graph_eigenvectors(N, count)
    expected, basis = eigh(N.toarray())
    np.testing.assert_allclose(values, expected[::-1][:count], atol=1e-7)
    cosines = np.abs(np.sum(basis[:, ::-1][:, :count] * vectors, axis=0))
    assert cosines.min() > 1 - 1e-4
