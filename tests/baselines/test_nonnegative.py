"""Nonnegative least squares against SciPy and against its own optimality conditions."""

import numpy as np
import pytest
from scipy.optimize import nnls

from tuckermix.baselines import nonnegative
from tuckermix.baselines.nonnegative import (
    Pivoting,
    least_squares_cost,
    nonnegative_least_squares,
    projected_gradient_norm,
    random_start,
    scale_of,
    solve_components,
)


def problem(seed, n_rows=60, n_features=30, n_components=8, sign=0.5):
    rng = np.random.default_rng(seed)
    components = rng.random((n_components, n_features)) - 0.5 * sign
    weights = np.maximum(rng.random((n_rows, n_components)) - 0.5, 0)
    return weights @ components + 0.3 * rng.standard_normal((n_rows, n_features)), components


def columnwise(X, components):
    return np.stack([nnls(components.T, x)[0] for x in X])


@pytest.mark.parametrize("n_components", [1, 2, 8, 25])
def test_agrees_with_scipy(seed, n_components):
    X, components = problem(seed, n_components=n_components)
    np.testing.assert_allclose(
        solve_components(X, components), columnwise(X, components), rtol=0, atol=1e-8
    )


def test_start_does_not_matter(seed):
    X, components = problem(seed)
    rng = np.random.default_rng(seed)
    products = components @ components.T, X @ components.T
    cold = nonnegative_least_squares(*products)
    for start in (cold, np.ones_like(cold), rng.random(cold.shape) - 0.5):
        warm = nonnegative_least_squares(*products, start=start)
        np.testing.assert_allclose(warm, cold, rtol=0, atol=1e-12)


def test_optimality_conditions_on_singular_grams(seed):
    """More components than features, and two equal ones: the minimiser is not unique."""
    X, components = problem(seed, n_features=6, n_components=9)
    components[3] = components[2]
    H = solve_components(X, components)
    gradient = (H @ components - X) @ components.T
    assert np.all(H >= 0)
    assert np.min(gradient) > -1e-7
    assert np.max(np.abs(H * gradient)) < 1e-7
    expected = np.linalg.norm(X - columnwise(X, components) @ components)
    assert np.linalg.norm(X - H @ components) == pytest.approx(expected, rel=1e-8)


def test_nearly_dependent_components(seed):
    rng = np.random.default_rng(seed)
    X, components = problem(seed, n_components=5)
    components = np.vstack([components, components + 1e-7 * rng.random(components.shape)])
    H = solve_components(X, components)
    expected = np.linalg.norm(X - columnwise(X, components) @ components)
    assert np.linalg.norm(X - H @ components) == pytest.approx(expected, rel=1e-6)


def unit_problem():
    """Return a Gram matrix of unit diagonal, cross products, and what SciPy makes of them."""
    X, components = problem(0)
    components /= np.linalg.norm(components, axis=1, keepdims=True)
    return components @ components.T, X @ components.T, columnwise(X, components)


def test_rows_that_cycle_go_to_the_active_set_method():
    A, R, expected = unit_problem()
    found = nonnegative._pivot(
        A, R, np.zeros(R.shape, bool), Pivoting(full_exchanges=1, rounds_per_component=0)
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


def test_single_exchanges_reach_the_same_solution(monkeypatch):
    """Without full exchanges the method is Murty's, which is finite."""
    A, R, expected = unit_problem()
    monkeypatch.setattr(nonnegative, "_active_set", None)
    found = nonnegative._pivot(
        A, R, np.zeros(R.shape, bool), Pivoting(full_exchanges=0, rounds_per_component=50)
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


def test_zero_components_and_rows():
    X, components = problem(0)
    components[2] = 0
    X[5] = 0
    H = solve_components(X, components)
    assert np.all(H[:, 2] == 0)
    assert np.all(H[5] == 0)
    assert np.all(solve_components(X, 0 * components) == 0)
    assert solve_components(X[:0], components).shape == (0, 8)


@pytest.mark.parametrize("scale", [1e-150, 1e-300, 1e150])
def test_scale_of_data_and_components(scale):
    X, components = problem(0)
    H = solve_components(X, components)
    np.testing.assert_allclose(solve_components(scale * X, components) / scale, H, rtol=1e-9)
    np.testing.assert_allclose(solve_components(X, scale * components) * scale, H, rtol=1e-9)


def test_rows_do_not_depend_on_their_batch():
    X, components = problem(0)
    H = solve_components(X, components)
    alone = np.vstack([solve_components(x[None], components) for x in X])
    np.testing.assert_allclose(alone, H, rtol=0, atol=1e-12)


def test_gram_form_takes_any_positive_definite_matrix():
    rng = np.random.default_rng(3)
    root = rng.standard_normal((6, 6))
    gram, cross = root @ root.T, rng.standard_normal((40, 6))
    H = nonnegative_least_squares(gram, cross)
    gradient = H @ gram - cross
    assert np.min(gradient) > -1e-9
    assert np.max(np.abs(H * gradient)) < 1e-9


def test_cost_from_products():
    X, components = problem(1)
    H = solve_components(X, components)
    cost = least_squares_cost(np.sum(X**2), H, X @ components.T, components @ components.T)
    assert cost == pytest.approx(0.5 * np.sum((X - H @ components) ** 2), rel=1e-12)
    assert least_squares_cost(1.0, np.eye(1), np.full((1, 1), 5.0), np.eye(1)) == 0.0


def test_projected_gradient_norm_counts_feasible_directions():
    variable = np.array([0.0, 0.0, 1.0, 1.0])
    gradient = np.array([3.0, -4.0, 12.0, -5.0])
    assert projected_gradient_norm((variable, gradient)) == pytest.approx(np.sqrt(16 + 144 + 25))
    assert projected_gradient_norm((np.zeros(2), np.ones(2))) == 0


def test_projected_gradient_vanishes_at_the_solution():
    X, components = problem(2)
    H = solve_components(X, components)
    gradient = (H @ components - X) @ components.T
    assert projected_gradient_norm((H, gradient)) < 1e-10


def test_random_start_has_the_mean_of_the_data():
    rng = np.random.default_rng(0)
    X = 7.0 * rng.random((20, 15))
    W, H = random_start(X, 4, rng)
    assert (W @ H).sum() == pytest.approx(X.sum())
    assert W.min() >= 0
    assert H.min() >= 0
    W, H = random_start(np.zeros((5, 4), dtype=np.float32), 2, rng)
    assert W.dtype == H.dtype == np.float32
    assert np.isfinite(W).all()


def test_scale_of_zeros_is_one():
    assert scale_of(np.zeros(3)) == 1.0
    assert scale_of(np.array([-3.0, 2.0])) == 3.0
