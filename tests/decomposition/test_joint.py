"""All modes at once: the same optimum as the alternations, in few iterations."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tuckermix import TuckerClustering, decompose
from tuckermix._array_api import to_numpy
from tuckermix._records import StopReason
from tuckermix.decomposition.alternating import enclosing_memberships, product_manifold
from tuckermix.decomposition.exact import closed_form
from tuckermix.manifolds import Multinomial
from tuckermix.numerics.tensor import tucker_to_tensor
from tuckermix.objectives import MembershipObjective

pytest.importorskip("pymanopt")


def _samples(seed, shape=(6, 5), n_samples=40):
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((4, *shape)) + 1.0
    return centres[rng.integers(4, size=n_samples)] + 0.3 * rng.standard_normal((n_samples, *shape))


def _solve(X, L, ranks, **options):
    options = {"tol": 1e-10, "max_iter": 100, "random_state": 0} | options
    return decompose(X, L, ranks, solver="joint", **options)


@pytest.mark.parametrize("shape", [(12,), (6, 5), (4, 3, 5)])
def test_the_cost_is_that_of_the_exact_solver_or_less(seed, shape):
    X = _samples(seed, shape)
    exact = decompose(X, 4, 3, tol=1e-10, max_iter=500)
    fit = _solve(X, 4, 3)
    assert fit.stop_reason.converged
    assert fit.cost <= exact.cost * (1 + 1e-6)
    assert fit.gap <= 1e-7


def test_the_result_is_consistent(seed):
    X = _samples(seed)
    fit = _solve(X, 4, (3, 2), max_iter=2, tol=0.0)
    Multinomial(40, 4).check_point(fit.memberships, tol=1e-9)
    for factor in fit.factors:
        np.testing.assert_allclose(factor.T @ factor, np.eye(factor.shape[1]), atol=1e-10)
    rebuilt = tucker_to_tensor(fit.core, fit.factors, fit.Q)
    assert fit.cost == pytest.approx(0.5 * np.sum((X - rebuilt) ** 2), rel=1e-9)
    assert fit.cost == pytest.approx(fit.history[-1].cost, rel=1e-9)
    assert fit.history[-1].gap == pytest.approx(fit.gap, abs=1e-12)
    costs = [entry.cost for entry in fit.history]
    assert np.all(np.diff(costs) <= 1e-9 * costs[0])


@pytest.mark.parametrize("case", ["low rank", "constant", "zero", "one component", "full ranks"])
def test_awkward_samples(case):
    rng = np.random.default_rng(0)
    X, L, ranks = rng.standard_normal((12, 4, 3)), 4, (3, 2)
    if case == "low rank":
        X = (rng.standard_normal((12, 2)) @ rng.standard_normal((2, 12))).reshape(12, 4, 3)
    elif case == "constant":
        X = np.ones_like(X)
    elif case == "zero":
        X = np.zeros_like(X)
    elif case == "one component":
        L = 1
    else:
        ranks = (4, 3)
    exact = decompose(X, L, ranks, tol=1e-9)
    fit = _solve(X, L, ranks, tol=1e-9)
    assert fit.n_components == exact.n_components
    assert fit.cost == pytest.approx(exact.cost, rel=1e-3, abs=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_follow_the_library_of_the_samples(xp, dtype):
    X = _samples(0)
    fit = _solve(xp.asarray(X, dtype=getattr(xp, dtype)), 4, 3, tol=1e-7)
    assert fit.memberships.dtype == fit.core.dtype == getattr(xp, dtype)
    assert fit.cost == pytest.approx(_solve(X, 4, 3, tol=1e-7).cost, rel=1e-4)
    np.testing.assert_allclose(to_numpy(fit.Q).T @ to_numpy(fit.Q), np.eye(4), atol=1e-5)


def test_dask_samples_are_taken():
    da = pytest.importorskip("dask.array")
    X = _samples(1)
    fit = _solve(da.from_array(X, chunks=(15, 6, 5)), 4, 3)
    assert fit.cost == pytest.approx(_solve(X, 4, 3).cost, rel=1e-9)


def test_callback_and_limits():
    X = _samples(0)
    seen = []
    fit = _solve(X, 4, 3, tol=0.0, callback=lambda entry: seen.append(entry) or len(seen) > 1)
    assert (fit.stop_reason, fit.n_iter, len(seen)) == (StopReason.CALLBACK, 1, 2)
    fit = _solve(X, 4, 3, tol=0.0, max_iter=1)
    assert (fit.stop_reason, fit.n_iter) == (StopReason.MAX_ITER, 1)
    fit = _solve(X, 4, 3, tol=1e-2)
    assert fit.stop_reason is StopReason.TOLERANCE


def test_enclosing_memberships_are_optimal(rng):
    B = rng.standard_normal((30, 8)) + 2.0
    U = enclosing_memberships(closed_form(B.copy(), 3).Q[:, 1:])
    Multinomial(30, 4).check_point(U)
    objective = MembershipObjective(B)
    assert objective.cost(U) == pytest.approx(objective.optimum(4), rel=1e-10)
    assert U.min() > 0.1 / 4
    np.testing.assert_array_equal(enclosing_memberships(np.zeros((3, 0))), np.ones((3, 1)))


def test_the_product_counts_spans_once():
    manifold = product_manifold(np.ones((10, 3)), [np.ones((6, 2)), np.ones((5, 5))])
    assert manifold.dim == 10 * 2 + 2 * (6 - 2) + 0


def test_without_pymanopt_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymanopt.manifolds", None)
    with pytest.raises(ImportError, match=r'solver="joint" needs pymanopt: install'):
        _solve(_samples(0), 4, 3)


def test_the_estimator_takes_it(seed):
    X = _samples(seed)
    options = {"assign_labels": "subspace", "random_state": seed, "tol": 1e-9}
    model = TuckerClustering(4, solver="joint", **options).fit(X)
    exact = TuckerClustering(4, **options).fit(X)
    assert model.cost_ <= exact.cost_ * (1 + 1e-6)
    rebuilt = model.inverse_transform(model.memberships_)
    assert model.cost_ == pytest.approx(0.5 * np.sum((X - rebuilt) ** 2), rel=1e-6)
