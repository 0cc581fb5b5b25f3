"""The closed form against a full singular value decomposition and against feasible points."""

import numpy as np
import pytest
import scipy.optimize

from tuckermix._array_api import to_numpy
from tuckermix.decomposition import subspace
from tuckermix.decomposition.subspace import closed_form, tall_svd


def optimum(B, n_components):
    """Compute twice the theorem's value with NumPy's own routine."""
    mean = B.mean(axis=0)
    sigma = np.linalg.svd(B - mean, compute_uv=False)
    return len(B) * mean @ mean + np.sum(sigma[: n_components - 1] ** 2)


def explained_by(B, U):
    """Compute tr(BᵀP_U B) for any memberships."""
    Q = np.linalg.qr(U)[0]
    return np.sum((Q.T @ B) ** 2)


@pytest.mark.parametrize("shape", [(30, 5), (12, 40), (25, 25), (9, 1)])
def test_closed_form_reaches_the_theorem(xp, seed, shape):
    B = np.random.default_rng(seed).standard_normal(shape) + 2.0
    for n_components in (1, 2, 4):
        found = closed_form(xp.asarray(B.copy()), n_components - 1)
        expected = optimum(B, n_components)
        assert found.explained == pytest.approx(expected, rel=1e-12)
        u = to_numpy(found.coordinates)
        Q = np.column_stack([np.full(len(B), len(B) ** -0.5), u])
        np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-13)
        assert np.sum((Q.T @ B) ** 2) == pytest.approx(expected, rel=1e-12)
        rebuilt = (B - B.mean(axis=0)) @ to_numpy(found.directions)
        np.testing.assert_allclose(rebuilt, u * to_numpy(found.singular_values), atol=1e-10)


def test_no_feasible_memberships_do_better(seed):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((12, 4)) + 1.0
    best = closed_form(B.copy(), 2).explained
    for _ in range(300):
        U = rng.dirichlet(np.full(3, 10 ** rng.uniform(-1, 1)), size=12)
        assert explained_by(B, U) <= best * (1 + 1e-12)

    def loss(flat):
        U = np.exp(flat.reshape(12, 3))
        return -explained_by(B, U / U.sum(axis=1, keepdims=True))

    found = scipy.optimize.minimize(loss, rng.standard_normal(36), method="L-BFGS-B")
    assert -found.fun <= best * (1 + 1e-12)
    assert -found.fun >= best * (1 - 1e-3)  # and the search gets near, so the bound is sharp


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_rank_of_the_centred_rows_limits_the_directions(rank, seed):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((40, rank)) @ rng.standard_normal((rank, 9)) + rng.standard_normal(9)
    found = closed_form(B.copy(), 6)
    assert found.singular_values.shape == (rank,)
    assert found.explained == pytest.approx(np.sum(B**2), rel=1e-12)


def test_repeated_singular_values_are_no_trouble():
    corners = np.repeat(np.eye(6), 5, axis=0)
    found = closed_form(corners.copy(), 3)
    assert found.explained == pytest.approx(optimum(corners, 4), rel=1e-12)


def test_large_matrices_take_the_iteration(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((150, 12)) @ rng.standard_normal((12, 200)) * 3
    B += rng.standard_normal((150, 200))
    expected = optimum(B, 6)
    monkeypatch.setattr(subspace, "DENSE_SIDE", 10)
    found = closed_form(B.copy(), 5)
    assert found.explained == pytest.approx(expected, rel=1e-11)
    warm = closed_form(B.copy(), 5, start=found.directions)
    assert warm.explained == pytest.approx(expected, rel=1e-11)


def test_a_mean_far_from_zero_costs_no_accuracy():
    B = np.random.default_rng(0).standard_normal((50, 6)) + 1e7
    mean = B.mean(axis=0)
    sigma = np.linalg.svd(B - mean, compute_uv=False)
    found = closed_form(B.copy(), 3)
    np.testing.assert_allclose(found.singular_values, sigma[:3], rtol=1e-7)


def test_float32_keeps_orthonormal_coordinates():
    rng = np.random.default_rng(3)
    B = (rng.standard_normal((500, 20)) * np.logspace(0, -3, 20) + 5).astype(np.float32)
    found = closed_form(B.copy(), 19)
    u = found.coordinates
    assert u.dtype == np.float32
    assert np.abs(u.T.astype(float) @ u - np.eye(u.shape[1])).max() < 1e-5
    assert found.explained == pytest.approx(optimum(B.astype(float), 20), rel=1e-6)


def test_tall_svd_of_badly_scaled_columns(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((80, 6)) * np.logspace(0, -9, 6)
    left, values, right = tall_svd(A)
    np.testing.assert_allclose(left.T @ left, np.eye(6), atol=1e-12)
    np.testing.assert_allclose((left * values) @ right.T, A, atol=1e-11)
    np.testing.assert_allclose(values[:3], np.linalg.svd(A, compute_uv=False)[:3], rtol=1e-8)
