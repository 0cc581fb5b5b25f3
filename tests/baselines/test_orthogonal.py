"""Tests of Tucker models with nonnegative and orthogonal factors."""

import numpy as np
import pytest

from tuckermix._records import StopReason
from tuckermix.baselines.orthogonal import factorize_orthogonal, keep_largest, refine_exactly
from tuckermix.numerics.tensor import tucker_to_tensor


def _positive_factors(seed, shape, ranks):
    rng = np.random.default_rng(seed)
    return [rng.random(size) + 0.1 for size in zip(shape, ranks, strict=True)]


@pytest.mark.parametrize("shape", [(9,), (7, 6), (5, 4, 3)])
def test_rules_never_raise_their_lagrangian(seed, shape):
    X = np.random.default_rng(seed).random((30, *shape))
    start = _positive_factors(seed, X.shape, (3,) + (2,) * len(shape))
    factors, history, reason = factorize_orthogonal(X, start, max_iter=100, tol=0.0)
    assert reason is StopReason.MAX_ITER
    assert max(step.lagrangian_change for step in history) <= 1e-14
    assert min(step.lagrangian_change for step in history) < -1e-4
    assert all((factor >= 0).all() for factor in factors)
    assert history[-1].orthogonality < history[0].orthogonality
    assert history[-1].cost < history[0].cost


def test_lagrangian_is_the_error_with_multipliers(seed):
    # Independent of the code: rebuild the model, and differentiate nothing.
    rng = np.random.default_rng(seed)
    X, S = rng.random((8, 6)), rng.random((3, 2))
    W, U = rng.random((8, 3)), rng.random((6, 2))
    N = X @ (S @ U.T).T
    product = W.T @ N
    symmetric = (product + product.T) / 2
    multiplier = symmetric - S @ U.T @ U @ S.T
    new = W * np.sqrt(N / (W @ symmetric))

    def lagrangian(Z):
        error = np.linalg.norm(X - Z @ S @ U.T) ** 2
        return error + np.trace(multiplier @ (Z.T @ Z - np.eye(3)))

    assert lagrangian(new) < lagrangian(W)
    for scale in (0.9, 1.1):
        # The step minimises an upper bound, so moving on in the same ratio is worse for the bound.
        assert _bound(scale * new, W, N, symmetric) > _bound(new, W, N, symmetric)


def _bound(Z, W, N, symmetric):
    """Evaluate the auxiliary function of the multiplicative rule."""
    return np.sum((W @ symmetric) * Z**2 / W) - 2 * np.sum(N * W * (1 + np.log(Z / W)))


@pytest.mark.parametrize("shape", [(9,), (7, 6), (5, 4, 3)])
def test_exact_phase_never_raises_the_error(seed, shape):
    X = np.random.default_rng(seed).random((30, *shape))
    start = [keep_largest(f) for f in _positive_factors(seed, X.shape, (3,) + (2,) * len(shape))]
    factors, core, history, reason = refine_exactly(X, start, max_iter=100, tol=0.0)
    costs = np.array([step.cost for step in history])
    assert np.all(np.diff(costs) <= 1e-12 * costs[0])
    assert costs[-1] < costs[0]
    assert reason is StopReason.TOLERANCE
    rebuilt = tucker_to_tensor(core, factors[1:], factors[0])
    np.testing.assert_allclose(costs[-1], 0.5 * np.sum((X - rebuilt) ** 2), rtol=1e-10)
