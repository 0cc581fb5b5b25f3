"""Alternating least squares: optimality of each step, descent, the toolbox variants."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import nnls

from tuckermix.baselines import AlternatingNMF
from tuckermix.baselines.nmf import _operate, alternating_nmf, truncated_nmf
from tuckermix.baselines.nonnegative import projected_gradient_norm, random_start

VARIANTS = {
    "anls": alternating_nmf,
    "truncated": truncated_nmf,
    "obs": lambda *args, **settings: truncated_nmf(*args, surgeon=True, **settings),
}


def problem(seed, n_samples=30, n_features=20, n_components=4, noise=0.2):
    rng = np.random.default_rng(seed)
    left = np.maximum(rng.random((n_samples, n_components)) - 0.4, 0)
    X = left @ rng.random((n_components, n_features)) + noise * rng.random((n_samples, n_features))
    return X, *random_start(X, n_components, rng)


def rows_by_scipy(X, H):
    return np.stack([nnls(H.T, x)[0] for x in X])


def test_one_iteration_is_two_exact_least_squares(seed):
    X, W, H = problem(seed)
    result = alternating_nmf(X, W, H, max_iter=1)
    right = rows_by_scipy(X.T, W.T).T
    right /= np.linalg.norm(right, axis=1, keepdims=True)
    np.testing.assert_allclose(result.fitted["components_"], right, atol=1e-10)
    np.testing.assert_allclose(result.memberships, rows_by_scipy(X, right), atol=1e-10)


def test_cost_never_rises(seed):
    X, W, H = problem(seed)
    result = alternating_nmf(X, W, H, max_iter=200, tol=0)
    costs = [step.cost for step in result.history]
    assert len(costs) == 201
    assert all(after <= before + 1e-12 * costs[0] for before, after in pairwise(costs))
    assert costs[-1] == pytest.approx(
        0.5 * np.sum((X - result.memberships @ result.fitted["components_"]) ** 2)
    )


def test_ends_at_a_stationary_point(seed):
    X, W, H = problem(seed)
    result = alternating_nmf(X, W, H, max_iter=1000, tol=1e-10)
    residual = result.memberships @ result.fitted["components_"] - X
    norm = projected_gradient_norm(
        (result.memberships, residual @ result.fitted["components_"].T),
        (result.fitted["components_"], result.memberships.T @ residual),
    )
    assert norm < 1e-3 * np.linalg.norm(X)


def test_truncated_step_is_that_of_the_toolbox(seed):
    X, W, H = problem(seed)
    result = truncated_nmf(X, W, H, max_iter=1)
    right = np.maximum(np.linalg.pinv(W) @ X, 0)
    right /= right.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(result.fitted["components_"], right, atol=1e-10)
    np.testing.assert_allclose(
        result.memberships, np.maximum(X @ np.linalg.pinv(right), 0), atol=1e-10
    )


@pytest.mark.parametrize("name", ["truncated", "obs"])
def test_the_best_pair_is_returned(seed, name):
    X, W, H = problem(seed, n_components=8)
    result = VARIANTS[name](X, W, H, max_iter=60, tol=0)
    costs = [step.cost for step in result.history]
    assert costs[-1] == min(costs[1:])
    assert costs[-1] == pytest.approx(
        0.5 * np.sum((X - result.memberships @ result.fitted["components_"]) ** 2)
    )
    assert result.n_iter == 60


def test_surgeon_gives_the_constrained_minimum(seed):
    """Moving the negatives to zero costs least among all ways to do so."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((5, 7))
    gram = root @ root.T
    rows = rng.standard_normal((20, 5))
    moved, done = _operate(rows, np.linalg.inv(gram))
    assert not done
    for before, after in zip(rows, moved, strict=True):
        negative = before < 0
        free = ~negative
        assert np.all(after[negative] == 0)
        gradient = gram @ (after - before)
        np.testing.assert_allclose(gradient[free], 0, atol=1e-9)
    unchanged, done = _operate(np.abs(rows), np.linalg.inv(gram))
    assert done
    np.testing.assert_array_equal(unchanged, np.abs(rows))


def test_surgeon_fits_better_than_truncation():
    costs = {"truncated": 0.0, "obs": 0.0}
    for seed in range(5):
        X, W, H = problem(seed, n_components=6)
        for name in costs:
            costs[name] += VARIANTS[name](X, W, H, max_iter=25, tol=0).history[-1].cost
    assert costs["obs"] < costs["truncated"]


@pytest.mark.parametrize("name", VARIANTS)
def test_dead_components_are_revived(seed, name):
    X, W, H = problem(seed)
    W[:, 1] = 0
    H[1] = 0
    result = VARIANTS[name](X, W, H, max_iter=30, tol=0)
    assert np.all(np.any(result.fitted["components_"] > 0, axis=1))
    assert np.all(np.any(result.memberships > 0, axis=0))


def test_exact_data_are_fitted_exactly():
    rng = np.random.default_rng(0)
    X = rng.random((25, 3)) @ rng.random((3, 12))
    X[:3], X[3:6] = 0, X[0]
    W, H = random_start(X, 5, rng)
    result = alternating_nmf(X, W, H, max_iter=500)
    assert result.history[-1].relative_error < 1e-2


def test_variant_is_checked():
    with pytest.raises(ValueError, match="'variant' parameter of AlternatingNMF must be one of"):
        AlternatingNMF(2, variant="hals").fit(np.ones((4, 3)))
