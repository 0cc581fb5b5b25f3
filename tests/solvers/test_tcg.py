"""Truncated conjugate gradients: the solution, the boundary, replay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuckermix.solvers._tcg import InnerStop, TruncatedCG

OPTIONS = {"kappa": 1e-10, "theta": 1.0, "min_inner": 1, "max_inner": 100}


class Plain:
    """Euclidean space."""

    def inner(self, x, xi, zeta):
        return np.sum(xi * zeta)

    def projection(self, x, vector):
        return vector


class Counter:
    """A Hessian that counts its products."""

    def __init__(self, A):
        self.A, self.count = A, 0

    def __call__(self, xi):
        self.count += 1
        return self.A @ xi


def _solver(A, g, precondition=None, **options):
    hessian = Counter(A)
    return TruncatedCG(Plain(), None, g, hessian, precondition, **{**OPTIONS, **options}), hessian


def _definite(rng, size=8):
    A = rng.standard_normal((size, size))
    return A @ A.T + np.eye(size), rng.standard_normal(size)


def test_inside_it_solves_the_newton_equation(rng):
    A, g = _definite(rng)
    step = _solver(A, g)[0].solve(1e6)
    np.testing.assert_allclose(step.eta, -np.linalg.solve(A, g), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(step.residual, g + A @ step.eta, atol=1e-9)
    assert step.stop in (InnerStop.LINEAR, InnerStop.SUPERLINEAR)
    assert not step.stop.at_boundary


def test_steps_end_on_the_boundary(rng):
    A, g = _definite(rng)
    step = _solver(A, g)[0].solve(0.01)
    assert np.linalg.norm(step.eta) == pytest.approx(0.01, rel=1e-12)
    assert step.stop is InnerStop.BOUNDARY
    np.testing.assert_allclose(step.residual, g + A @ step.eta, atol=1e-12)
    along = step.eta @ g / (np.linalg.norm(step.eta) * np.linalg.norm(g))
    assert along == pytest.approx(-1.0, abs=1e-10)  # short steps go down the gradient


def test_negative_curvature_goes_to_the_boundary(rng):
    A, g = _definite(rng)
    step = _solver(-A, g)[0].solve(3.0)
    assert np.linalg.norm(step.eta) == pytest.approx(3.0, rel=1e-12)
    assert step.stop is InnerStop.NEGATIVE_CURVATURE
    assert step.n_inner == 1


def test_limits_on_the_products(rng):
    A, g = _definite(rng)
    solver, hessian = _solver(A, g, max_inner=2)
    step = solver.solve(1e6)
    assert (step.stop, step.n_inner, hessian.count) == (InnerStop.MAX_INNER, 2, 2)
    loose = _solver(A, g, kappa=0.9, theta=0.0)[0].solve(1e6)
    patient = _solver(A, g, kappa=0.9, theta=0.0, min_inner=5)[0].solve(1e6)
    assert loose.stop is InnerStop.LINEAR
    assert loose.n_inner < patient.n_inner == 5


@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans(), st.floats(-2, 3))
def test_replay_gives_what_a_fresh_run_gives(seed, definite, with_preconditioner, exponent):
    rng = np.random.default_rng(seed)
    A, g = _definite(rng)
    if not definite:
        A = A - 4.0 * np.eye(8)
    weights = 1.0 / np.abs(np.diag(A)) if with_preconditioner else np.ones(8)

    def precondition(xi):
        return weights * xi

    chosen = precondition if with_preconditioner else None
    solver, hessian = _solver(A, g, chosen)
    radius = 10.0**exponent
    solver.solve(radius)
    products = hessian.count
    for _ in range(6):
        radius /= 4.0
        replayed = solver.solve(radius)
        fresh = _solver(A, g, chosen)[0].solve(radius)
        np.testing.assert_allclose(replayed.eta, fresh.eta, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(replayed.residual, fresh.residual, rtol=1e-9, atol=1e-9)
        assert (replayed.stop, replayed.n_inner) == (fresh.stop, fresh.n_inner)
    assert hessian.count == products


def test_a_larger_radius_is_computed_anew(rng):
    A, g = _definite(rng)
    solver, hessian = _solver(A, g)
    solver.solve(0.01)
    products = hessian.count
    step = solver.solve(0.5)
    assert hessian.count > products
    np.testing.assert_allclose(step.eta, _solver(A, g)[0].solve(0.5).eta, rtol=1e-12)


def test_start_away_from_zero(rng):
    A, g = _definite(rng)
    start = 1e-6 * rng.standard_normal(8)
    solver, _ = _solver(A, g, precondition=lambda xi: 0.0 * xi)  # must not be asked
    step = solver.solve(1e6, start)
    np.testing.assert_allclose(step.eta, -np.linalg.solve(A, g), rtol=1e-5, atol=1e-7)


def test_a_hessian_that_is_not_linear_keeps_the_best_vector(rng):
    g = rng.standard_normal(8)
    calls = []

    def hessian(xi):
        """Be right once; then claim a tiny curvature and a residual that grows."""
        calls.append(xi)
        if len(calls) == 1:
            return np.linspace(1.0, 3.0, 8) * xi
        return 1e-3 * xi + 1e3 * g * np.sign(xi @ g)

    solver = TruncatedCG(Plain(), None, g, hessian, None, **OPTIONS)
    step = solver.solve(1e9)
    assert step.stop is InnerStop.MODEL_INCREASED
    assert len(calls) == step.n_inner
    model = 0.5 * step.eta @ (g + step.residual)
    assert model < 0.0


def test_a_residual_of_zero_ends_the_path():
    g = np.array([1.0, 0.0])
    solver, hessian = _solver(np.eye(2), g, kappa=0.0, max_inner=5, min_inner=5)
    step = solver.solve(10.0)
    np.testing.assert_array_equal(step.eta, -g)
    assert hessian.count == 1
    assert str(step.stop) == step.stop.value
    nothing = _solver(np.eye(2), 0.0 * g)[0].solve(1.0)
    np.testing.assert_array_equal(nothing.eta, 0.0 * g)
