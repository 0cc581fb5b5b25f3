"""Multiplicative updates against scikit-learn's solver, iterate for iterate."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from tests.cases import each

from tuckermix._records import StopReason
from tuckermix.baselines.nmf import multiplicative_nmf
from tuckermix.baselines.nonnegative import random_start


def problem(seed, n_samples=30, n_features=20, n_components=4, sparse=False):
    rng = np.random.default_rng(seed)
    X = rng.random((n_samples, n_components)) @ rng.random((n_components, n_features))
    X += 0.2 * rng.random(X.shape)
    if sparse:
        X *= rng.random(X.shape) < 0.3
        X[:, 2] = 0
        X[5] = 0
    return X, *random_start(X, n_components, rng)


def scikit_learn(X, W, H, max_iter, tol=0.0):
    model = NMF(W.shape[1], solver="mu", init="custom", max_iter=max_iter, tol=tol)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        left = model.fit_transform(X, W=W.copy(), H=H.copy())
    return left, model.components_, model


@each("sparse", [False, True])
@each("max_iter", [1, 2, 3, 10, 100])
def test_iterates_are_those_of_scikit_learn(seed, max_iter, sparse):
    X, W, H = problem(seed, sparse=sparse)
    result = multiplicative_nmf(X, W, H, max_iter=max_iter, tol=0)
    left, right, _ = scikit_learn(X, W, H, max_iter)
    np.testing.assert_allclose(result.memberships, left, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(result.fitted["components_"], right, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-4])
def test_stops_where_scikit_learn_stops(seed, tol):
    X, W, H = problem(seed)
    result = multiplicative_nmf(X, W, H, tol=tol)
    _, _, model = scikit_learn(X, W, H, 1000, tol)
    assert result.n_iter == model.n_iter_ < 1000
    assert result.stop_reason is StopReason.TOLERANCE
    assert result.residual < tol
    final = np.sqrt(2 * result.history[-1].cost)
    assert final == pytest.approx(model.reconstruction_err_, rel=1e-9)


def test_cost_never_rises_and_is_that_of_the_factors(seed):
    X, W, H = problem(seed)
    result = multiplicative_nmf(X, W, H, max_iter=200, tol=0)
    costs = [step.cost for step in result.history]
    assert len(costs) == 201
    assert all(after <= before * (1 + 1e-12) for before, after in pairwise(costs))
    assert costs[0] == pytest.approx(0.5 * np.sum((X - W @ H) ** 2))
    assert costs[-1] == pytest.approx(
        0.5 * np.sum((X - result.memberships @ result.fitted["components_"]) ** 2)
    )


def test_start_is_not_changed_and_zeros_stay_zero(seed):
    X, W, H = problem(seed)
    W[3, 1] = H[2, 4] = 0
    H[0] = 0  # a dead component
    W_before, H_before = W.copy(), H.copy()
    result = multiplicative_nmf(X, W, H, max_iter=20, tol=0)
    np.testing.assert_array_equal(W, W_before)
    np.testing.assert_array_equal(H, H_before)
    assert result.memberships[3, 1] == result.fitted["components_"][2, 4] == 0
    assert np.all(result.fitted["components_"][0] == 0)
    assert np.all(np.isfinite(result.memberships))


def test_exact_start_stops_at_once():
    X = np.zeros((4, 3))
    result = multiplicative_nmf(X, np.zeros((4, 2)), np.zeros((2, 3)))
    assert result.n_iter == 0
    assert result.stop_reason is StopReason.TOLERANCE
