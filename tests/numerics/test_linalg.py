"""Eigenvectors, bases and singular values against LAPACK."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import eigh

from tuckermix._array_api import to_numpy
from tuckermix.numerics import linalg
from tuckermix.numerics.linalg import (
    centre_rows,
    improved_eigenvectors,
    leading_directions,
    leading_eigenvectors,
    orthonormal_basis,
    random_basis,
    summed_times,
    tall_svd,
)


@pytest.mark.parametrize("n_vectors", [0, 1, 3, 20])
def test_leading_eigenpairs_solve_the_problem(xp, n_vectors, seed):
    A = np.random.default_rng(seed).standard_normal((20, 20))
    gram = A @ A.T
    values, vectors = leading_eigenvectors(xp.asarray(gram), n_vectors)
    values, vectors = to_numpy(values), to_numpy(vectors)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(gram)[::-1][:n_vectors], rtol=1e-10)
    np.testing.assert_allclose(gram @ vectors, vectors * values, atol=1e-10)
    if n_vectors:
        peaks = np.abs(vectors).argmax(axis=0)
        assert np.all(vectors[peaks, np.arange(n_vectors)] > 0)


@pytest.mark.torch
def test_large_problems_stay_on_the_device(limits):
    torch = pytest.importorskip("torch")
    limits(eigenproblem_on_host=4)
    A = np.random.default_rng(0).standard_normal((9, 9))
    gram = torch.asarray(A @ A.T)
    values, vectors = leading_eigenvectors(gram, 3)
    np.testing.assert_allclose(gram @ vectors, vectors * values, atol=1e-10)


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


@pytest.mark.parametrize(("n_groups", "size"), [(4, 90), (12, 40), (3, 20)])
def test_a_guess_is_improved_to_the_span_of_lapack(seed, n_groups, size):
    rng = np.random.default_rng(seed)
    N = planted(rng, n_groups, size, 0.1)
    expected, basis = eigh(N)
    truth = basis[:, ::-1][:, :n_groups]
    for guess in (truth + 0.05 * rng.standard_normal(truth.shape), rng.random(truth.shape)):
        values, vectors = improved_eigenvectors(sparse.csr_array(N), guess)
        np.testing.assert_allclose(values, expected[::-1][:n_groups], atol=1e-5)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(n_groups), atol=1e-9)
        assert np.linalg.svd(truth.T @ vectors, compute_uv=False).min() > 0.999


@pytest.mark.parametrize("link", [0.0, 1e-9, 1e-4])
def test_copies_of_a_graph_are_all_found(rng, link):
    # Lanczos builds on one vector, in which eigenvectors of equal eigenvalues look like one.
    N = planted(rng, 3, 90, 0.1)
    A = np.kron(np.eye(3), N)
    A[0, 270] = A[270, 0] = A[270, 540] = A[540, 270] = link
    values, vectors = leading_eigenvectors(sparse.csr_array(A), 9)
    np.testing.assert_allclose(values, eigh(A, eigvals_only=True)[::-1][:9], atol=1e-9)
    np.testing.assert_allclose(A @ vectors, vectors * values, atol=1e-6)


@pytest.mark.parametrize("link", [0.1, 0.01])
def test_both_iterations_find_the_same(rng, link):
    N = sparse.csr_array(planted(rng, 12, 60, link))
    found = linalg._lanczos(N, 12)
    assert found is not None
    values, vectors = linalg._filtered_eigenvectors(N, 12)
    np.testing.assert_allclose(found[0], values, atol=1e-10)
    cosines = np.linalg.svd(found[1].T @ vectors, compute_uv=False)
    assert cosines.min() > 1 - 1e-9


@pytest.mark.parametrize(("n_groups", "size"), [(30, 25), (40, 20)])
def test_many_eigenvectors_come_from_a_block(monkeypatch, seed, n_groups, size):
    N = planted(np.random.default_rng(seed), n_groups, size, 0.1)
    monkeypatch.setattr(linalg, "_lanczos", None)  # is not asked
    values, vectors = leading_eigenvectors(sparse.csr_array(N), n_groups)
    expected, basis = eigh(N)
    np.testing.assert_allclose(values, expected[::-1][:n_groups], atol=1e-9)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(n_groups), atol=1e-9)
    assert np.linalg.norm(N @ vectors - vectors * values, axis=0).max() <= linalg.BLOCK_TOLERANCE
    cosines = np.linalg.svd(basis[:, -n_groups:].T @ vectors, compute_uv=False)
    assert cosines.min() > 1 - 1e-7


@pytest.mark.parametrize("size", [400, 900])
def test_eigenvalues_that_crowd_at_1_are_told_apart_in_double(size):
    # A ring of samples: eigenvalues cos(2πk / n) in pairs, which float32 does not tell apart.
    ends = np.arange(size), np.roll(np.arange(size), 1)
    ring = sparse.csr_array((np.full(size, 0.5), ends))
    ring = ring + ring.T
    count = max(7, size // linalg.MANY_WANTED + 2) if size > linalg.SPARSE_SIZE else 7
    values, vectors = leading_eigenvectors(ring, count)
    expected = np.sort(np.cos(2 * np.pi * np.arange(size) / size))[::-1][:count]
    np.testing.assert_allclose(values, expected, atol=1e-10)
    np.testing.assert_allclose(ring @ vectors, vectors * values, atol=1e-6)


@pytest.mark.torch
@pytest.mark.parametrize(("limit", "n_groups"), [(40, 12), (1, 12), (40, 4)])
def test_sparse_tensors_are_worked_on_where_they_are(limits, rng, limit, n_groups):
    # By the filter; by LAPACK where that is not enough; as a dense matrix where it is small.
    torch = pytest.importorskip("torch")
    limits(filters=limit)
    N = planted(rng, n_groups, 60, 0.1)
    ends = np.array(N.nonzero())
    matrix = torch.sparse_coo_tensor(ends, N[*ends], N.shape, check_invariants=True).coalesce()
    assert (linalg.on_the_host(matrix) != sparse.csr_array(N)).nnz == 0
    values, vectors = leading_eigenvectors(matrix, n_groups)
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
    basis = linalg._quick_qr(torch.asarray(vectors)).numpy()
    np.testing.assert_allclose(basis.T @ basis, np.eye(7), atol=1e-13)
    lengths = np.linalg.norm(vectors, axis=0)
    unit = vectors / np.where(lengths > 0, lengths, 1.0)
    np.testing.assert_allclose(basis @ (basis.T @ unit), unit, atol=1e-12)


def test_equal_input_gives_equal_output(rng):
    N = sparse.csr_array(planted(rng, 12, 60, 0.1))
    for first, second in zip(leading_eigenvectors(N, 5), leading_eigenvectors(N, 5), strict=True):
        np.testing.assert_array_equal(first, second)


def test_lapack_helps_where_the_iteration_ends_too_early(limits, rng):
    N = planted(rng, 12, 60, 0.1)
    limits(restarts=1, filters=1)
    values, _ = leading_eigenvectors(sparse.csr_array(N), 12)
    np.testing.assert_allclose(values, eigh(N, eigvals_only=True)[::-1][:12], atol=1e-12)


def test_a_large_problem_gives_what_it_has_when_time_is_up(limits, rng):
    N = planted(rng, 12, 60, 0.1)
    limits(restarts=1, filters=2, size_for_lapack=0)
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


def test_a_long_chain_takes_inverse_iteration(limits, rng):
    limits(size_for_lapack=0, restarts=1, filters=3)
    order = rng.permutation(900)
    N = chain(900)[order, :][:, order]
    values, vectors = leading_eigenvectors(N, 4)
    expected, basis = eigh(N.toarray())
    np.testing.assert_allclose(values, expected[::-1][:4], atol=1e-10)
    cosines = np.linalg.svd(basis[:, -4:].T @ vectors, compute_uv=False)
    assert cosines.min() > 1 - 1e-8
    limits(band_work=0)
    rough, _ = leading_eigenvectors(N, 4)
    assert (rough <= values + 1e-12).all()
    assert rough[-1] < values[-1]


@pytest.mark.parametrize("count", [8, 12])
def test_vectors_of_a_chain_are_told_apart_although_their_values_crowd(count, rng):
    # Neighbouring eigenvalues differ by some hundred thousandths, the rounding of float32 by 1e-7.
    order = rng.permutation(1500)
    N = chain(1500, reach=3)[order, :][:, order]
    values, vectors = leading_eigenvectors(N, count)
    expected, basis = eigh(N.toarray())
    np.testing.assert_allclose(values, expected[::-1][:count], atol=1e-7)
    cosines = np.abs(np.sum(basis[:, ::-1][:, :count] * vectors, axis=0))
    assert cosines.min() > 1 - 1e-4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1000, 3), (50, 30), (7, 1), (0, 4)])
def test_products_do_not_depend_on_the_blocks_of_rows(dtype, shape, limits, rng):
    A, matrix = rng.standard_normal(shape).astype(dtype), rng.standard_normal((shape[1], 2))
    for work in (1.0, 1e9):
        limits(row_work=work)
        parts = linalg._row_blocks(A)
        assert [row for part in parts for row in range(shape[0])[part]] == list(range(shape[0]))
        product = linalg.times(A, matrix)
        eps = np.finfo(dtype).eps
        np.testing.assert_allclose(product, A.astype(float) @ matrix, atol=100 * eps)
        gram = linalg.gram_of_columns(A)
        assert gram.dtype == np.float64
        np.testing.assert_allclose(gram, A.T.astype(float) @ A, rtol=1e-12, atol=1e-11)


def test_tall_svd_of_badly_scaled_columns(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((80, 6)) * np.logspace(0, -9, 6)
    left, values, right = tall_svd(A)
    np.testing.assert_allclose(left.T @ left, np.eye(6), atol=1e-12)
    np.testing.assert_allclose((left * values) @ right.T, A, atol=1e-11)
    np.testing.assert_allclose(values[:3], np.linalg.svd(A, compute_uv=False)[:3], rtol=1e-8)


def test_tall_svd_of_no_columns():
    left, values, right = tall_svd(np.ones((5, 0)))
    assert left.shape == (5, 0)
    assert values.shape == (0,)
    assert right.shape == (0, 0)


@pytest.mark.parametrize("shape", [(30, 5), (8, 20)])
@pytest.mark.parametrize("dense_side", [None, 1], ids=["dense", "iteration"])
def test_leading_directions_are_right_singular_vectors(xp, seed, shape, dense_side, limits):
    if dense_side is not None:
        limits(dense_side=dense_side)
    rng = np.random.default_rng(seed)
    B = rng.standard_normal(shape) * 0.3 ** np.arange(shape[1])
    B -= B.mean(axis=0)
    found = to_numpy(leading_directions(xp.asarray(B), 2))[:, :2]
    right = np.linalg.svd(B, full_matrices=False)[2][:2].T
    np.testing.assert_allclose(found @ found.T, right @ right.T, atol=1e-7)


@pytest.mark.parametrize("B", [np.zeros((6, 3)), np.ones((1, 3))], ids=["zeros", "one row"])
def test_rows_without_spread_have_no_directions(B):
    assert leading_directions(B, 2).shape == (3, 0)


def test_an_orthonormal_basis_holds_the_columns(xp, rng):
    A = rng.standard_normal((7, 3))
    basis = to_numpy(orthonormal_basis(xp.asarray(A)))
    np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(basis @ basis.T @ A, A, atol=1e-12)
    np.testing.assert_array_equal(to_numpy(orthonormal_basis(xp.asarray(A.T))), np.eye(3))


def test_random_bases_are_orthonormal_and_repeat(xp, seed):
    like = xp.asarray(np.zeros(1, dtype=np.float32))
    one, two = (to_numpy(random_basis(6, 2, np.random.default_rng(seed), like)) for _ in range(2))
    assert one.dtype == np.float32
    np.testing.assert_allclose(one.T @ one, np.eye(2), atol=1e-6)
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_centred_rows_have_mean_zero_to_rounding(dtype, rng):
    rows = (rng.standard_normal((1000, 4)) + 1e4).astype(dtype)
    expected = rows.astype(float).mean(axis=0)
    centred, mean = centre_rows(rows.copy())
    np.testing.assert_allclose(mean, expected, rtol=1e-11)
    # Rounding the mean once to the type of the rows would leave 1e4 roundings of it.
    assert np.abs(centred.astype(float).mean(axis=0)).max() < 1e-5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_below_all_rounding_do_no_harm(dtype, seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((16, 8)) * 10.0 ** np.array([0, -1, -8, -16, -25, -32, -39, -44])
    A = A.astype(dtype)
    left, values, right = tall_svd(A)
    assert np.all(np.isfinite(left))
    np.testing.assert_allclose((left * values) @ right.T, A, atol=1e-6 * np.abs(A).max())
    np.testing.assert_allclose(left.T @ left, np.eye(len(values)), atol=1e-5)


@pytest.mark.parametrize("n_rows", [0, 1, 7, 5000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_are_summed_in_the_same_pass(xp, n_rows, dtype, rng, limits):
    limits(row_work=2e5)
    A, matrix = rng.standard_normal((n_rows, 6)).astype(dtype), rng.standard_normal((6, 4))
    product, gram, total = summed_times(xp.asarray(A), xp.asarray(matrix))
    assert product.dtype == getattr(xp, dtype)
    exact = A.astype(float) @ matrix
    rtol = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(to_numpy(product), exact, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(to_numpy(gram), exact.T @ exact, rtol=rtol, atol=rtol * (1 + n_rows))
    np.testing.assert_allclose(to_numpy(total), exact.sum(axis=0), atol=rtol * (1 + n_rows))
