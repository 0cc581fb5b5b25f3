"""Tests of doubly stochastic subspace clustering."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from tuckermix.baselines import ADSSC
from tuckermix.baselines.adssc import doubly_stochastic
from tuckermix.baselines.self_expression import ridge_coefficients


@pytest.mark.parametrize("eta", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("size", [2, 15, 60])
def test_optimality_conditions(seed, eta, size):
    """Feasible, and K - eta A = -(alpha_i + beta_j) on the support, less off it."""
    K = np.random.default_rng(seed).random((size, size)) ** 4
    A = doubly_stochastic(K, eta)
    assert A.min() >= 0
    np.testing.assert_allclose(A.sum(axis=0), 1.0, atol=2e-10)
    np.testing.assert_allclose(A.sum(axis=1), 1.0, atol=2e-10)
    # The linear problem whose costs are the gradient at A has A as a solution: no permutation,
    # and hence no doubly stochastic matrix, has a lower value.
    gradient = eta * A - K
    rows, columns = linear_sum_assignment(gradient)
    assert np.vdot(gradient, A) <= gradient[rows, columns].sum() + 1e-9


def dykstra(K, eta):
    """Project K / eta by turns on the matrices with sums of one and on those without negatives.

    Dykstra's corrections make the limit the nearest matrix that is both; the affine set needs none.
    """
    n = len(K)
    A, correction = K / eta, np.zeros_like(K)
    for _ in range(20_000):
        rows, columns = A.sum(axis=1, keepdims=True) - 1, A.sum(axis=0) - 1
        moved = A - rows / n - columns / n + columns.sum() / n**2 + correction
        before, A = A, np.maximum(moved, 0.0)
        correction = moved - A
        if np.abs(A - before).max() < 1e-14:
            break
    return A


@pytest.mark.parametrize("eta", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("size", [4, 15])
def test_agrees_with_alternating_projections(seed, eta, size):
    K = np.random.default_rng(seed).random((size, size)) ** 4
    np.testing.assert_allclose(doubly_stochastic(K, eta), dykstra(K, eta), atol=1e-9)


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
    A = doubly_stochastic(np.abs(ridge_coefficients(Z @ Z.T, 1.0, zero_diagonal=True)), 0.1)
    np.testing.assert_allclose(W, 0.5 * (A + A.T), atol=1e-9)


@pytest.mark.parametrize("name", ["penalty", "smoothing"])
def test_parameters_are_checked(name):
    with pytest.raises(ValueError, match=f"'{name}' parameter of ADSSC must be a number > 0"):
        ADSSC(2, **{name: 0.0}).fit(np.eye(5))
