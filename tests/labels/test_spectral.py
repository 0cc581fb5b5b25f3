"""Leading eigenvectors against LAPACK, with repeated and crowded eigenvalues."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import eigh

from tuckermix.labels import spectral
from tuckermix.labels.spectral import leading_eigenvectors


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
    values, vectors = leading_eigenvectors(sparse.csr_array(N), n_groups)
    expected, basis = eigh(N)
    np.testing.assert_allclose(values, expected[::-1][:n_groups], atol=1e-9)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(n_groups), atol=1e-9)
    cosines = np.linalg.svd(basis[:, -n_groups:].T @ vectors, compute_uv=False)
    assert cosines.min() > 1 - 1e-9


def test_equal_input_gives_equal_output(rng):
    N = sparse.csr_array(planted(rng, 12, 60, 0.1))
    for first, second in zip(leading_eigenvectors(N, 5), leading_eigenvectors(N, 5), strict=True):
        np.testing.assert_array_equal(first, second)


def test_lapack_helps_where_the_iteration_ends_too_early(monkeypatch, rng):
    N = planted(rng, 12, 60, 0.1)
    monkeypatch.setattr(spectral, "MAX_FILTERS", 1)
    values, _ = leading_eigenvectors(sparse.csr_array(N), 12)
    np.testing.assert_allclose(values, eigh(N, eigvals_only=True)[::-1][:12], atol=1e-12)


def test_a_large_problem_gives_what_it_has_when_time_is_up(monkeypatch, rng):
    N = planted(rng, 12, 60, 0.1)
    monkeypatch.setattr(spectral, "MAX_FILTERS", 2)
    monkeypatch.setattr(spectral, "FALLBACK_SIZE", 0)
    values, vectors = leading_eigenvectors(sparse.csr_array(N), 12)
    assert values.shape == (12,)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(12), atol=1e-9)


def test_all_eigenvectors_may_be_asked_for(rng):
    N = planted(rng, 2, 20, 0.1)
    values, vectors = leading_eigenvectors(sparse.csr_array(N), 40)
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


def test_a_long_chain_takes_inverse_iteration(monkeypatch, rng):
    monkeypatch.setattr(spectral, "FALLBACK_SIZE", 0)
    monkeypatch.setattr(spectral, "MAX_FILTERS", 3)
    order = rng.permutation(900)
    N = chain(900)[order, :][:, order]
    values, vectors = leading_eigenvectors(N, 4)
    expected, basis = eigh(N.toarray())
    np.testing.assert_allclose(values, expected[::-1][:4], atol=1e-10)
    cosines = np.linalg.svd(basis[:, -4:].T @ vectors, compute_uv=False)
    assert cosines.min() > 1 - 1e-8
    monkeypatch.setattr(spectral, "MAX_BAND_WORK", 0)
    rough, _ = leading_eigenvectors(N, 4)
    assert (rough <= values + 1e-12).all()
    assert rough[-1] < values[-1]
