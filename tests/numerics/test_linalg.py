"""Eigenvectors, bases and singular values against LAPACK."""

from __future__ import annotations

import numpy as np
import pytest
from tests.cases import each

from tuckermix._array_api import to_numpy
from tuckermix.numerics import linalg
from tuckermix.numerics.linalg import (
    centre_rows,
    gram_of_columns,
    leading_directions,
    leading_eigenvectors,
    orthonormal_basis,
    random_basis,
    summed_times,
    tall_factors,
    times,
)


def tall_svd(A):
    """Multiply out the singular value decomposition of a tall matrix."""
    rows, _, turn, values, right = tall_factors(A, gram_of_columns(A))
    return times(rows, turn), values, right


@each("n_vectors", [0, 1, 3, 20])
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


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_fit_in_the_memory_of_the_rows(xp, rng, dtype):
    A, matrix = rng.standard_normal((40_000, 20)), rng.standard_normal((20, 7))
    rows, by = (xp.asarray(each, dtype=getattr(xp, dtype)) for each in (A.copy(), matrix))
    product = linalg.times_in_place(rows, by)
    assert product.dtype == rows.dtype
    atol = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(to_numpy(product), A @ matrix, atol=atol)
    if xp.__name__.endswith("numpy"):
        assert np.shares_memory(product, rows)
