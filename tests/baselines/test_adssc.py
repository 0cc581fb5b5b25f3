"""Tests of doubly stochastic subspace clustering."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment, minimize

from tuckermix.baselines import ADSSC
from tuckermix.baselines.adssc import doubly_stochastic
from tuckermix.baselines.lsr import ridge_coefficients


@pytest.mark.parametrize("eta", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("size", [2, 15, 60])
def test_optimality_conditions(seed, eta, size):
    """Feasible, and K - eta A = -(alpha_i + beta_j) on the support, less off it."""
    K = np.random.default_rng(seed).random((size, size)) ** 4
    A = doubly_stochastic(K, eta)
    assert A.min() >= 0
    np.testing.assert_allclose(A.sum(axis=0), 1.0, atol=1e-9)
    np.testing.assert_allclose(A.sum(axis=1), 1.0, atol=1e-9)
    # The linear problem whose costs are the gradient at A has A as a solution: no permutation,
    # and hence no doubly stochastic matrix, has a lower value.
    gradient = eta * A - K
    rows, columns = linear_sum_assignment(gradient)
    assert np.vdot(gradient, A) <= gradient[rows, columns].sum() + 1e-7


def test_agrees_with_a_general_solver():
    K, eta, n = np.random.default_rng(0).random((4, 4)), 0.5, 4
    ones = np.ones(n)
    sums = [
        {"type": "eq", "fun": lambda a: a.reshape(n, n) @ ones - 1},
        {"type": "eq", "fun": lambda a: a.reshape(n, n).T[1:] @ ones - 1},
    ]
    found = minimize(
        lambda a: 0.5 * eta * a @ a - K.ravel() @ a,
        np.full(n * n, 1 / n),
        jac=lambda a: eta * a - K.ravel(),
        bounds=[(0, None)] * (n * n),
        constraints=sums,
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    np.testing.assert_allclose(doubly_stochastic(K, eta).ravel(), found.x, atol=1e-7)


def test_closed_forms():
    # With a large weight of the squares all entries are equal, up to what K adds.
    K = np.random.default_rng(0).random((6, 6))
    centred = K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean()
    np.testing.assert_allclose(doubly_stochastic(K, 100.0), 1 / 6 + centred / 100, atol=1e-10)
    # With a small one it is the best permutation.
    rows, columns = linear_sum_assignment(-K)
    permutation = np.zeros((6, 6))
    permutation[rows, columns] = 1.0
    np.testing.assert_allclose(doubly_stochastic(K, 1e-3), permutation, atol=1e-9)


def test_affinity_is_doubly_stochastic(seed):
    Z = np.random.default_rng(seed).standard_normal((30, 8))
    model = ADSSC(3, random_state=0).fit(Z)
    W = model.affinity_matrix_
    np.testing.assert_allclose(W.sum(axis=0), 1.0, atol=1e-9)
    Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    A = doubly_stochastic(np.abs(ridge_coefficients(Z @ Z.T, 1.0, zero_diagonal=True)), 0.05)
    np.testing.assert_allclose(W, 0.5 * (A + A.T), atol=1e-9)


@pytest.mark.parametrize("name", ["penalty", "smoothing"])
def test_parameters_are_checked(name):
    with pytest.raises(ValueError, match=f"'{name}' parameter of ADSSC must be a number > 0"):
        ADSSC(2, **{name: 0.0}).fit(np.eye(5))
