"""Lin's method: the step search, the stopping rule, the subproblem's solution."""

from itertools import pairwise

import numpy as np
import pytest

from tuckermix._records import StopReason
from tuckermix.baselines import nmf
from tuckermix.baselines.nmf import (
    projected_gradient_nmf,
    projected_gradient_nnls,
)
from tuckermix.baselines.nonnegative import (
    nonnegative_least_squares,
    projected_gradient_norm,
    random_start,
)


def problem(seed, n_samples=30, n_features=20, n_components=4):
    rng = np.random.default_rng(seed)
    left = np.maximum(rng.random((n_samples, n_components)) - 0.4, 0)
    X = left @ rng.random((n_components, n_features)) + 0.2 * rng.random((n_samples, n_features))
    return X, *random_start(X, n_components, rng)


def subproblem(seed):
    X, W, H = problem(seed)
    return H @ H.T, X @ H.T, W


def lin_step(V, gram, cross, alpha):
    """One iteration of the published search, written down plainly; all lengths, first to last."""
    gradient = V @ gram - cross
    tried = []

    def attempt(length):
        candidate = np.maximum(V - length * gradient, 0)
        d = candidate - V
        good = 0.99 * np.sum(gradient * d) + 0.5 * np.sum(d * (d @ gram)) < 0
        tried.append(length)
        return candidate, good

    candidate, good = attempt(alpha)
    if good:
        while good and len(tried) < 20:
            best = candidate
            alpha = alpha / 0.1
            candidate, good = attempt(alpha)
            if np.array_equal(candidate, best):
                break
        return best, alpha
    while not good:
        alpha = alpha * 0.1
        candidate, good = attempt(alpha)
    return candidate, alpha


def test_steps_are_those_of_the_published_search(seed):
    gram, cross, start = subproblem(seed)
    V, alpha = start, 1.0
    for n_steps in range(1, 12):
        V, alpha = lin_step(V, gram, cross, alpha)
        result, gradient, _ = projected_gradient_nnls(gram, cross, start, tol=0, max_iter=n_steps)
        np.testing.assert_allclose(result, V, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(gradient, V @ gram - cross, atol=1e-10)


def test_every_step_decreases_sufficiently(seed):
    gram, cross, start = subproblem(seed)
    points = [projected_gradient_nnls(gram, cross, start, tol=0, max_iter=n)[0] for n in range(15)]
    for before, after in pairwise(points):
        gradient, d = before @ gram - cross, after - before
        assert 0.99 * np.vdot(gradient, d) + 0.5 * np.vdot(d, d @ gram) < 0


def test_subproblem_agrees_with_pivoting(seed):
    gram, cross, start = subproblem(seed)
    result, gradient, n_iter = projected_gradient_nnls(gram, cross, start, tol=1e-9, max_iter=10**5)
    np.testing.assert_allclose(result, nonnegative_least_squares(gram, cross), atol=1e-8)
    assert n_iter < 10**5
    assert projected_gradient_norm((result, gradient)) < 1e-8


def test_a_good_start_stops_at_the_first_iteration():
    gram, cross, _ = subproblem(0)
    solution = nonnegative_least_squares(gram, cross)
    result, _, n_iter = projected_gradient_nnls(gram, cross, solution, tol=1e-6)
    assert n_iter == 1
    assert result is solution


def test_search_ends_when_rounding_is_all_that_is_left():
    gram, cross, _ = subproblem(0)
    solution = nonnegative_least_squares(gram, cross)
    result, _, n_iter = projected_gradient_nnls(gram, cross, solution, tol=0.0)
    assert n_iter < 1000
    np.testing.assert_allclose(result, solution, atol=1e-12)


def test_subproblem_tolerances_follow_lin(monkeypatch):
    calls = []
    original = nmf.projected_gradient_nnls

    def spy(*args, tol, **settings):
        result = original(*args, tol=tol, **settings)
        calls.append((tol, result[2]))
        return result

    monkeypatch.setattr(nmf, "projected_gradient_nnls", spy)
    X, W, H = problem(1)
    projected_gradient_nmf(X, W, H, max_iter=60, tol=1e-9)
    residual = W @ H - X
    first = np.sqrt(np.sum((residual @ H.T) ** 2) + np.sum((W.T @ residual) ** 2))
    tightened = 0
    for side in (calls[::2], calls[1::2]):
        assert side[0][0] == pytest.approx(1e-3 * first)
        for (tol, n_inner), (later, _) in pairwise(side):
            tightened += n_inner == 1
            assert later == pytest.approx(tol / 10 if n_inner == 1 else tol)
    assert tightened > 0


@pytest.mark.parametrize("tol", [1e-2, 1e-4])
def test_stops_by_the_projected_gradient(seed, tol):
    X, W, H = problem(seed)
    start = W @ H - X
    first = np.sqrt(np.sum((start @ H.T) ** 2) + np.sum((W.T @ start) ** 2))
    result = projected_gradient_nmf(X, W, H, tol=tol, max_iter=5000)
    residual = result.memberships @ result.fitted["components_"] - X
    norm = projected_gradient_norm(
        (result.memberships, residual @ result.fitted["components_"].T),
        (result.fitted["components_"], result.memberships.T @ residual),
    )
    assert result.stop_reason is StopReason.GRADIENT
    assert norm < tol * first
    assert result.residual == pytest.approx(norm / first, rel=1e-6)
    # One iteration fewer would not have been enough.
    earlier = projected_gradient_nmf(X, W, H, tol=tol, max_iter=result.n_iter - 1)
    assert earlier.residual >= tol


def test_cost_never_rises_and_is_that_of_the_factors(seed):
    X, W, H = problem(seed)
    result = projected_gradient_nmf(X, W, H, max_iter=50, tol=0)
    costs = [step.cost for step in result.history]
    assert all(after <= before + 1e-12 * costs[0] for before, after in pairwise(costs))
    assert costs[-1] == pytest.approx(
        0.5 * np.sum((X - result.memberships @ result.fitted["components_"]) ** 2)
    )


def test_zero_data_stop_at_once():
    result = projected_gradient_nmf(np.zeros((4, 3)), np.zeros((4, 2)), np.zeros((2, 3)))
    assert result.stop_reason is StopReason.GRADIENT
    assert result.n_iter == 1
