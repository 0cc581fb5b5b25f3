"""The paper's alternation: it reaches the exact solver, and says how far it is when it does not."""

from __future__ import annotations

import numpy as np
import pytest

from tuckermix import TuckerClustering, decompose
from tuckermix._array_api import to_numpy
from tuckermix._records import StopReason
from tuckermix.decomposition.alternating import (
    PAPER,
    Recipe,
    alternate,
    gap_if_cheap,
    orthonormal_columns,
    projected,
)
from tuckermix.decomposition.fit import start_factors
from tuckermix.decomposition.result import Start
from tuckermix.manifolds import Multinomial
from tuckermix.numerics.tensor import multi_mode_dot, tucker_to_tensor
from tuckermix.objectives import MembershipObjective
from tuckermix.sources import as_source


def _samples(seed, shape=(6, 5), n_samples=40):
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((4, *shape)) + 1.0
    return centres[rng.integers(4, size=n_samples)] + 0.3 * rng.standard_normal((n_samples, *shape))


def _solve(X, L, ranks, **options):
    options = {"tol": 1e-10, "max_iter": 300, "random_state": 0} | options
    return decompose(X, L, ranks, solver="trust-region", **options)


@pytest.mark.parametrize("shape", [(12,), (6, 5), (4, 3, 5)])
def test_it_reaches_the_exact_solver(seed, shape):
    X = _samples(seed, shape)
    exact = decompose(X, 4, 3, tol=1e-10, max_iter=300)
    fit = _solve(X, 4, 3)
    assert fit.stop_reason.converged
    assert fit.cost <= exact.cost * (1 + 1e-6)
    assert fit.gap <= 1e-8


def test_the_result_is_consistent(seed):
    X = _samples(seed)
    fit = _solve(X, 4, (3, 2), max_iter=2, tol=0.0)
    U, Q = fit.memberships, fit.Q
    Multinomial(40, 4).check_point(U)
    np.testing.assert_allclose(Q.T @ Q, np.eye(4), atol=1e-10)
    np.testing.assert_allclose(Q[:, 0], 40**-0.5)
    np.testing.assert_allclose(Q @ (Q.T @ U), U, atol=1e-9)
    rebuilt = tucker_to_tensor(fit.core, fit.factors, Q)
    assert fit.cost == pytest.approx(0.5 * np.sum((X - rebuilt) ** 2), rel=1e-9)
    assert fit.relative_error == pytest.approx(
        np.linalg.norm(X - rebuilt) / np.linalg.norm(X), rel=1e-9
    )
    B = multi_mode_dot(X, fit.factors, transpose=True).reshape(40, -1)
    np.testing.assert_allclose(B.mean(axis=0), fit.mean, atol=1e-12)
    moving = (fit.directions * fit.singular_values).T
    np.testing.assert_allclose(Q[:, 1:].T @ B, moving, atol=1e-9)
    assert fit.cost == pytest.approx(fit.history[-1].cost, rel=1e-9)
    assert fit.gap == pytest.approx(fit.history[-1].gap, abs=1e-12)


def test_the_gap_shows_how_far_an_early_stop_is(seed):
    X = _samples(seed)
    source = as_source(X)
    factors = start_factors(source, (3, 2), "hosvd", np.random.default_rng(0))
    start = Start(factors, np.random.default_rng(seed), max_iter=1, tol=0.0)
    early = alternate(source, start, 4, Recipe(first_iter=2, later_iter=1))
    objective = MembershipObjective(early.B)
    missed = objective.cost(early.memberships) - objective.optimum(4)
    possible = np.linalg.svd(early.B - early.B.mean(axis=0), compute_uv=False)[:3] ** 2
    assert early.progress.history[-1].gap == pytest.approx(2 * missed / possible.sum(), rel=1e-9)
    assert early.progress.history[-1].gap > 1e-6
    gaps = [entry.gap for entry in _solve(X, 4, (3, 2)).history]
    assert gaps[0] > gaps[-1]


def test_the_error_never_rises(seed):
    errors = [entry.relative_error for entry in _solve(_samples(seed), 4, 3).history]
    assert np.all(np.diff(errors) <= 1e-12)


def test_the_recipe_of_the_paper_starts_with_an_orthonormal_factor(seed):
    X = _samples(seed)
    source = as_source(X)
    rng = np.random.default_rng(seed)
    factors = start_factors(source, (3, 3), "hosvd", rng)
    run = alternate(source, Start(factors, rng, max_iter=5, tol=1e-9), 4, PAPER)
    B = projected(source, factors)
    explained = np.sum(np.linalg.svd(B, compute_uv=False)[:4] ** 2)
    start = np.sqrt(1.0 - explained / np.sum(X**2))
    assert run.progress.history[0].relative_error == pytest.approx(start, rel=1e-9)
    # No memberships for the same factors come as close, so the curve may rise at first.
    first = run.progress.history[1].relative_error
    best = -2.0 * MembershipObjective(B).optimum(4)
    assert start <= np.sqrt(1.0 - best / np.sum(X**2)) + 1e-12
    assert first <= np.sqrt(1.0 - best / np.sum(X**2)) + 1e-3


@pytest.mark.parametrize("case", ["low rank", "constant", "zero", "one component", "all samples"])
def test_awkward_samples(case):
    rng = np.random.default_rng(0)
    X, L = rng.standard_normal((12, 4, 3)), 5
    if case == "low rank":
        X = rng.standard_normal((12, 2)) @ rng.standard_normal((2, 12))
        X = X.reshape(12, 4, 3)
    elif case == "constant":
        X = np.ones_like(X)
    elif case == "zero":
        X = np.zeros_like(X)
    elif case == "one component":
        L = 1
    elif case == "all samples":
        L = 12
    exact = decompose(X, L, (3, 2), tol=1e-9)
    fit = _solve(X, L, (3, 2), tol=1e-9)
    assert fit.n_components == exact.n_components
    assert fit.memberships.shape == (12, fit.n_components)
    assert fit.cost == pytest.approx(exact.cost, rel=1e-4, abs=1e-10)
    assert np.isfinite(fit.core).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_library_gives_the_same(xp, dtype):
    X = _samples(0)
    plain = _solve(X, 4, 3, tol=1e-6)
    fit = _solve(xp.asarray(X, dtype=getattr(xp, dtype)), 4, 3, tol=1e-6)
    assert fit.memberships.dtype == getattr(xp, dtype)
    rtol = 1e-8 if dtype == "float64" else 1e-3
    assert fit.cost == pytest.approx(plain.cost, rel=rtol)
    np.testing.assert_allclose(to_numpy(fit.Q).T @ to_numpy(fit.Q), np.eye(4), atol=1e-5)


def test_dask_samples_are_taken():
    da = pytest.importorskip("dask.array")
    X = _samples(1)
    fit = _solve(da.from_array(X, chunks=(15, 6, 5)), 4, 3)
    assert fit.cost == pytest.approx(_solve(X, 4, 3).cost, rel=1e-9)


def test_scale_of_the_samples_does_not_matter(seed):
    X = _samples(seed)
    one, other = _solve(X, 4, 3), _solve(1e5 * X, 4, 3)
    assert other.relative_error == pytest.approx(one.relative_error, rel=1e-6)


def test_callback_and_limits():
    X = _samples(0)
    seen = []
    fit = _solve(X, 4, 3, tol=0.0, callback=lambda entry: seen.append(entry) or len(seen) > 2)
    assert (fit.stop_reason, fit.n_iter) == (StopReason.CALLBACK, 2)
    assert fit.history == seen
    fit = _solve(X, 4, 3, tol=0.0, max_iter=1)
    assert (fit.stop_reason, fit.n_iter) == (StopReason.MAX_ITER, 1)


def test_interruption_keeps_what_is_there(monkeypatch):
    X = _samples(0)
    original = MembershipObjective.egrad
    calls = []

    def interrupted(self, U):
        calls.append(1)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return original(self, U)

    monkeypatch.setattr(MembershipObjective, "egrad", interrupted)
    fit = _solve(X, 4, 3)
    assert fit.stop_reason is StopReason.INTERRUPTED
    assert fit.cost < fit.history[0].cost


def test_a_gap_that_takes_too_long_is_left_out(rng, limits):
    objective, U = MembershipObjective(rng.standard_normal((10, 8))), Multinomial(10, 4)
    U = U.random_point(rng)
    assert gap_if_cheap(objective, U) == objective.gap(U)
    limits(dense_side=5)
    assert np.isnan(gap_if_cheap(objective, U))


def test_columns_that_depend_on_each_other_count_once():
    U = np.array([[0.2, 0.2, 0.6], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4], [0.25, 0.25, 0.5]])
    Q = orthonormal_columns(U)
    assert Q.shape == (4, 2)
    np.testing.assert_allclose(Q @ (Q.T @ U), U, atol=1e-12)


def test_the_estimator_takes_it(seed):
    X = _samples(seed)
    model = TuckerClustering(
        4, solver="trust-region", assign_labels="subspace", random_state=seed, tol=1e-9
    ).fit(X)
    exact = TuckerClustering(4, assign_labels="subspace", random_state=seed, tol=1e-9).fit(X)
    assert model.cost_ == pytest.approx(exact.cost_, rel=1e-5)
    assert model.gap_ <= 1e-6
    np.testing.assert_allclose(model.memberships_.sum(axis=1), 1.0, rtol=1e-9)
    rebuilt = model.inverse_transform(model.memberships_)
    assert model.cost_ == pytest.approx(0.5 * np.sum((X - rebuilt) ** 2), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "L"), [("orl", 10), ("pie_pose27", 24)])
def test_faces(data_home, name, L):
    path = data_home / f"{name}.npz"
    if not path.is_file():
        pytest.skip(f"{path.name} is not among the datasets")
    with np.load(path) as data:
        people = np.random.default_rng(0).choice(np.unique(data["labels"]), L, replace=False)
        X = data["images"][np.isin(data["labels"], people)].astype(np.float64)
    exact = decompose(X, L, 12, tol=1e-10, max_iter=500)
    fit = _solve(X, L, 12, max_iter=500)
    assert fit.cost <= exact.cost * (1 + 1e-6)
    assert fit.gap <= 1e-9
    factors = start_factors(as_source(X), (12, 12), "hosvd", np.random.default_rng(0))
    start = Start(factors, np.random.default_rng(0), max_iter=1, tol=0.0)
    early = alternate(as_source(X), start, L, Recipe(first_iter=20))
    assert early.progress.history[-1].gap > 1e-6
