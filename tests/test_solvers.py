"""The trust region: Manopt's runs, other manifolds, every reason to stop."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import each

from tuckermix._array_api import to_numpy
from tuckermix._records import StopReason
from tuckermix.manifolds import Multinomial
from tuckermix.objectives import MembershipObjective
from tuckermix.solvers import InnerStop, Problem, TruncatedCG, trust_region

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


class Bare:
    """A manifold without the shortcut for repeated Hessians."""

    def __init__(self, manifold):
        for name in ("inner", "projection", "rgrad", "rhess", "retraction", "transport"):
            setattr(self, name, getattr(manifold, name))


def _setting(rng):
    objective = MembershipObjective(rng.standard_normal((15, 6)))
    manifold = Multinomial(15, 4)
    U = manifold.random_point(rng)
    return objective, manifold, U, manifold.random_tangent(U, rng)


def test_derivatives_are_the_manifold_s(rng):
    objective, manifold, U, xi = _setting(rng)
    egrad, ehess = objective.egrad(U), objective.ehess(U, xi)
    for chosen in (manifold, Bare(manifold)):
        problem = Problem(objective, chosen)
        assert problem.cost(U) == objective.cost(U)
        np.testing.assert_allclose(problem.move(U), manifold.rgrad(U, egrad), rtol=1e-14)
        np.testing.assert_allclose(
            problem.hessian(xi), manifold.rhess(U, egrad, ehess, xi), rtol=1e-12, atol=1e-14
        )
        assert problem.n_hessians == 1


def test_differences_approach_the_hessian_at_a_solution(rng):
    """Elsewhere they miss a multiple of the gradient: the transport is a mere projection."""
    objective, manifold, U, xi = _setting(rng)
    U = trust_region(objective, manifold, U, tol=1e-9).point
    exact, differences = Problem(objective, manifold), Problem(WithoutHessian(objective), manifold)
    exact.move(U)
    differences.move(U)
    H = exact.hessian(xi)
    error = manifold.norm(U, differences.hessian(xi) - H)
    assert error <= 0.01 * max(1.0, manifold.norm(U, H))
    assert np.all(differences.hessian(0.0 * xi) == 0)


def test_preconditioner_gets_the_point(rng):
    objective, manifold, U, xi = _setting(rng)
    problem = Problem(objective, manifold, lambda point, vector: (point, vector))
    problem.move(U)
    point, vector = problem.precondition(xi)
    assert point is U
    assert vector is xi


def test_what_is_missing_is_named():
    with pytest.raises(TypeError, match="Bare lacks cost, egrad, which trust_region needs"):
        Problem(Bare(Multinomial(3, 2)), Multinomial(3, 2))
    with pytest.raises(TypeError, match="int lacks inner, projection, rgrad, rhess, retraction"):
        Problem(MembershipObjective(np.ones((3, 2))), 3)


GOLDEN = Path(__file__).resolve().parent / "golden"


class Euclidean:
    """Plain space, as a second manifold of the same interface."""

    typical_dist = 10.0

    def __init__(self, dim):
        self.dim = dim

    def inner(self, x, xi, zeta):
        return np.sum(xi * zeta)

    def projection(self, x, vector):
        return vector

    def rgrad(self, x, egrad):
        return egrad

    def rhess(self, x, egrad, ehess, xi):
        return ehess

    def retraction(self, x, xi):
        return x + xi

    def transport(self, x, y, xi):
        return xi

    def random_point(self, rng):
        return rng.standard_normal(self.dim)

    def random_tangent(self, x, rng):
        vector = rng.standard_normal(self.dim)
        return vector / np.linalg.norm(vector)


class Sphere(Euclidean):
    """The unit sphere."""

    typical_dist = math.pi

    def projection(self, x, vector):
        return vector - np.sum(x * vector) * x

    def rgrad(self, x, egrad):
        return self.projection(x, egrad)

    def rhess(self, x, egrad, ehess, xi):
        return self.projection(x, ehess) - np.sum(x * egrad) * xi

    def retraction(self, x, xi):
        return (x + xi) / np.linalg.norm(x + xi)

    def transport(self, x, y, xi):
        return self.projection(y, xi)

    def random_point(self, rng):
        return self.retraction(0.0, rng.standard_normal(self.dim))

    def random_tangent(self, x, rng):
        vector = self.projection(x, rng.standard_normal(self.dim))
        return vector / np.linalg.norm(vector)


class Quadratic:
    """½ xᵀAx − bᵀx."""

    def __init__(self, A, b):
        self.A, self.b = A, b

    def cost(self, x):
        return 0.5 * x @ self.A @ x - self.b @ x

    def egrad(self, x):
        return self.A @ x - self.b

    def ehess(self, x, xi):
        return self.A @ xi


class WithoutHessian:
    """The same objective for solvers that have to do without a Hessian."""

    def __init__(self, objective):
        self.cost, self.egrad = objective.cost, objective.egrad


def _planted(rng, M=40, P=9, L=4):
    centres = rng.standard_normal((L, P)) + 2.0
    B = centres[rng.integers(L, size=M)] + 0.1 * rng.standard_normal((M, P))
    manifold = Multinomial(M, L)
    return MembershipObjective(B), manifold, manifold.random_point(rng)


def _matrix(rng, size=8):
    A = rng.standard_normal((size, size))
    return A @ A.T + np.eye(size)


def _golden(name, data_home=None):
    folder = GOLDEN if data_home is None else data_home.parent / "golden"
    path = folder / f"manopt_rtr_{name}.npz"
    if not path.is_file():
        pytest.skip(f"{path.name} is not beside the datasets")
    return np.load(path)


def _compare_with_manopt(golden, result, objective):
    cost, radius = golden["cost"], golden["delta"]
    history = result.history
    assert len(history) == len(cost)
    np.testing.assert_allclose([entry.cost for entry in history], cost, rtol=1e-8)
    np.testing.assert_allclose([entry.radius for entry in history], radius, rtol=1e-12)
    assert [entry.accepted for entry in history[1:]] == golden["accepted"].tolist()
    # The gradient is a difference of large numbers at the end, so it agrees less closely there.
    np.testing.assert_allclose(
        [entry.grad_norm for entry in history],
        golden["gradnorm"],
        rtol=1e-6,
        atol=1e-8 * golden["gradnorm"][0],
    )
    assert result.stop_reason is StopReason.GRADIENT
    optimum = float(golden["optimum"])
    assert result.cost == pytest.approx(optimum, rel=1e-12)
    assert objective.optimum(golden["U0"].shape[1]) == pytest.approx(optimum, rel=1e-12)


@pytest.mark.parametrize("name", ["planted_60x4", "planted_150x6"])
def test_runs_follow_manopt_step_by_step(name, xp):
    golden = _golden(name)
    objective = MembershipObjective(xp.asarray(golden["B"]))
    manifold = Multinomial(*golden["U0"].shape)
    result = trust_region(objective, manifold, xp.asarray(golden["U0"]), max_inner=30)
    _compare_with_manopt(golden, result, objective)
    manifold.check_point(result.point)
    np.testing.assert_allclose(to_numpy(result.point), golden["U_final"], atol=1e-4)


def test_run_on_faces_follows_manopt(data_home):
    golden = _golden("orl_100x10", data_home)
    objective = MembershipObjective(golden["B"])
    result = trust_region(objective, Multinomial(100, 10), golden["U0"], max_inner=30)
    _compare_with_manopt(golden, result, objective)


def test_every_library_takes_the_same_path(xp, rng):
    objective, manifold, U = _planted(rng)
    plain = trust_region(objective, manifold, U, max_inner=20)
    other = MembershipObjective(xp.asarray(objective.B))
    result = trust_region(other, manifold, xp.asarray(U), max_inner=20)
    assert type(result.point) is type(xp.asarray(U))
    assert len(result.history) == len(plain.history)
    for ours, theirs in zip(plain.history, result.history, strict=True):
        assert theirs.cost == pytest.approx(ours.cost, rel=1e-8)
        assert (theirs.accepted, theirs.radius) == (ours.accepted, ours.radius)


def test_single_precision_ends_at_its_own_rounding(xp, rng):
    objective, manifold, U = _planted(rng)
    coarse = MembershipObjective(xp.asarray(objective.B, dtype=xp.float32))
    result = trust_region(coarse, manifold, xp.asarray(U, dtype=xp.float32), max_iter=300)
    assert result.point.dtype == xp.float32
    assert result.stop_reason is not StopReason.MAX_ITER
    assert result.cost == pytest.approx(objective.optimum(4), rel=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda U: U[:, :-1], "The point has shape .*: one row per sample, one column per comp"),
        (lambda U: 5 * U, "of the point sums to 5, not 1"),
        (lambda U: U - 1, "has an entry .*, not > 0"),
    ],
)
def test_a_start_that_is_no_point_is_refused(rng, change, message):
    objective, manifold, U = _planted(rng)
    with pytest.raises(ValueError, match=message):
        trust_region(objective, manifold, change(U))


def test_history_starts_with_the_start(rng):
    objective, manifold, U = _planted(rng)
    result = trust_region(objective, manifold, U, max_radius=8.0)
    start = result.history[0]
    assert (start.iteration, start.radius, start.accepted, start.n_inner) == (0, 1.0, True, 0)
    assert start.cost == objective.cost(U)
    assert start["grad_norm"] == pytest.approx(
        manifold.norm(U, manifold.rgrad(U, objective.egrad(U))), rel=1e-12
    )
    assert start.inner_stop is None
    assert math.isnan(start.rho)
    assert [entry.iteration for entry in result.history] == list(range(result.n_iter + 1))
    assert result.cost == result.history[-1].cost == objective.cost(result.point)


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 1e3), st.sampled_from([1e-3, 1.0, 1e4]))
def test_the_cost_never_rises_beyond_rounding(seed, radius, scale):
    rng = np.random.default_rng(seed)
    objective, manifold, U = _planted(rng, M=15, P=5, L=3)
    objective = MembershipObjective(scale * objective.B)
    result = trust_region(
        objective, manifold, U, max_radius=radius, max_iter=60, tol=1e-9 * scale**2
    )
    costs = np.array([entry.cost for entry in result.history])
    slack = 1e3 * np.finfo(float).eps * np.maximum(1.0, np.abs(costs[0]))
    assert np.all(np.diff(costs) <= slack)
    taken = [True, *(entry.accepted for entry in result.history[1:])]
    assert all(costs[i] == costs[i - 1] for i in range(1, len(costs)) if not taken[i])


def test_the_model_of_a_quadratic_is_exact(rng):
    A = _matrix(rng)
    b = rng.standard_normal(8)
    result = trust_region(Quadratic(A, b), Euclidean(8), np.zeros(8), max_radius=0.5, tol=1e-4)
    assert [entry.rho for entry in result.history[1:]] == pytest.approx(
        [1.0] * result.n_iter, abs=1e-6
    )
    assert all(entry.accepted for entry in result.history)
    np.testing.assert_allclose(result.point, np.linalg.solve(A, b), atol=1e-4)


def test_least_eigenvector_on_the_sphere(rng):
    A = _matrix(rng)
    result = trust_region(Quadratic(2 * A, np.zeros(8)), Sphere(8), random_state=rng, tol=1e-9)
    assert result.stop_reason is StopReason.GRADIENT
    assert result.cost == pytest.approx(np.linalg.eigvalsh(A)[0], rel=1e-10)


def test_differences_stand_in_for_a_missing_hessian(rng):
    objective, manifold, U = _planted(rng)
    result = trust_region(WithoutHessian(objective), manifold, U, max_iter=200, tol=1e-5)
    assert result.cost == pytest.approx(objective.optimum(4), rel=1e-8)


def test_preconditioner_is_used(rng):
    scales = np.logspace(0, 4, 30)
    objective = Quadratic(np.diag(scales), rng.standard_normal(30))
    options = {"max_radius": 1e6, "initial_radius": 1e5, "tol": 1e-8}
    plain = trust_region(objective, Euclidean(30), np.zeros(30), **options)
    better = trust_region(
        objective, Euclidean(30), np.zeros(30), preconditioner=lambda x, xi: xi / scales, **options
    )
    np.testing.assert_allclose(better.point, plain.point, atol=1e-8)
    assert better.history[-1].n_hessians <= 3 < plain.history[-1].n_hessians


def test_randomised_start_leaves_a_saddle():
    """At the origin of x² − y² + y⁴ the gradient is zero along the way down."""

    class Saddle:
        def cost(self, x):
            return x[0] ** 2 - x[1] ** 2 + x[1] ** 4

        def egrad(self, x):
            return np.array([2 * x[0], -2 * x[1] + 4 * x[1] ** 3])

        def ehess(self, x, xi):
            return np.array([2 * xi[0], (-2 + 12 * x[1] ** 2) * xi[1]])

    start = np.array([0.5, 0.0])
    stuck = trust_region(Saddle(), Euclidean(2), start)
    assert stuck.cost == pytest.approx(0.0, abs=1e-10)
    free = trust_region(Saddle(), Euclidean(2), start, randomize=True, random_state=0)
    assert free.cost == pytest.approx(-0.25, abs=1e-10)
    again = trust_region(Saddle(), Euclidean(2), start, randomize=True, random_state=0)
    assert np.array_equal(free.point, again.point)


def test_randomised_run_reaches_the_optimum(rng):
    objective, manifold, U = _planted(rng)
    result = trust_region(objective, manifold, U, randomize=True, random_state=1, max_inner=30)
    assert result.cost == pytest.approx(objective.optimum(4), rel=1e-9)


def test_random_start_follows_the_seed(seed):
    objective, manifold, _ = _planted(np.random.default_rng(seed))
    first = trust_region(objective, manifold, random_state=seed, max_iter=3)
    second = trust_region(objective, manifold, random_state=seed, max_iter=3)
    assert np.array_equal(first.point, second.point)


# Reasons to stop ------------------------------------------------------------------------------


def test_stop_on_the_gradient(rng):
    result = trust_region(*_planted(rng), tol=1e-3)
    assert result.stop_reason is StopReason.GRADIENT
    assert result.stop_reason.converged
    assert result.history[-1].grad_norm < 1e-3 <= result.history[-2].grad_norm


def test_stop_at_once_where_the_gradient_is_small(rng):
    result = trust_region(Quadratic(np.eye(3), np.zeros(3)), Euclidean(3), np.zeros(3))
    assert (result.stop_reason, result.n_iter) == (StopReason.GRADIENT, 0)


def test_stop_on_iterations(rng):
    result = trust_region(*_planted(rng), max_iter=2)
    assert (result.stop_reason, result.n_iter) == (StopReason.MAX_ITER, 2)
    assert not result.stop_reason.converged
    assert trust_region(*_planted(rng), max_iter=0).n_iter == 0


def test_stop_on_time(rng):
    objective, manifold, U = _planted(rng)
    result = trust_region(objective, manifold, U, max_time=0.0)
    assert (result.stop_reason, result.n_iter) == (StopReason.MAX_TIME, 0)
    assert result.cost == objective.cost(U)


def test_stop_by_callback(rng):
    seen = []

    def callback(entry):
        seen.append(entry)
        return entry.iteration == 3

    result = trust_region(*_planted(rng), callback=callback)
    assert (result.stop_reason, result.n_iter) == (StopReason.CALLBACK, 3)
    assert seen == result.history


def test_callback_that_returns_nothing_goes_on(rng):
    result = trust_region(*_planted(rng), callback=lambda entry: None)
    assert result.stop_reason is StopReason.GRADIENT


@pytest.mark.parametrize("name", ["cost", "egrad", "ehess"])
def test_interruption_returns_the_best_point(rng, name):
    objective, manifold, U = _planted(rng)
    start = objective.cost(U)
    inner = getattr(objective, name)
    calls = {"cost": 12, "egrad": 6, "ehess": 60}

    def interrupted(*args):
        calls[name] -= 1
        if calls[name] < 0:
            raise KeyboardInterrupt
        return inner(*args)

    setattr(objective, name, interrupted)
    result = trust_region(objective, manifold, U)
    assert result.stop_reason is StopReason.INTERRUPTED
    assert result.n_iter >= 1
    calls[name] = 10**9
    assert result.cost == objective.cost(result.point) < start
    assert result.cost <= min(entry.cost for entry in result.history)


def test_stop_when_stalled(rng):
    """Without a tolerance the run ends where rounding lets it go no further."""
    objective, manifold, U = _planted(rng)
    result = trust_region(objective, manifold, U, tol=0.0)
    assert result.stop_reason is StopReason.STALLED
    assert result.cost == pytest.approx(objective.optimum(4), rel=1e-12)


def test_stop_when_every_step_fails():
    """A wrong gradient shrinks the radius until nothing is left."""

    class Wrong(Quadratic):
        def egrad(self, x):
            return -super().egrad(x)

    objective = Wrong(np.eye(3), np.ones(3))
    result = trust_region(objective, Euclidean(3), np.zeros(3))
    assert result.stop_reason is StopReason.STALLED
    assert result.cost == pytest.approx(0.0, abs=1e-11)


def test_stop_on_a_meaningless_start():
    result = trust_region(Quadratic(np.eye(3), np.ones(3)), Euclidean(3), np.full(3, np.nan))
    assert result.stop_reason is StopReason.FAILED
    assert not result.stop_reason.converged


def test_a_cost_that_is_not_finite_is_a_rejected_step():
    class Barrier(Quadratic):
        def cost(self, x):
            return super().cost(x) if np.all(np.abs(x) < 2) else math.nan

    objective = Barrier(np.eye(2), np.array([1.5, 0.0]))
    objective.ehess = lambda x, xi: 0.0 * xi  # steps always go to the boundary of the region
    result = trust_region(objective, Euclidean(2), np.zeros(2), initial_radius=8.0, max_iter=40)
    assert not result.history[1].accepted
    assert math.isnan(result.history[1].rho)
    assert result.cost == pytest.approx(-0.5 * 1.5**2, abs=1e-2)


# Parameters -----------------------------------------------------------------------------------


@each(
    "options, message",
    [
        ({"max_iter": -1}, "'max_iter' parameter of trust_region must be an integer >= 0"),
        ({"max_inner": 0}, "'max_inner' parameter of trust_region must be an integer >= 1"),
        ({"tol": -1.0}, "'tol' parameter of trust_region must be a number >= 0"),
        ({"max_time": math.nan}, "'max_time' parameter of trust_region"),
        ({"max_radius": 0.0}, "'max_radius' parameter of trust_region must be a number > 0"),
        ({"rho_prime": 0.25}, "rho_prime=0.25 must be < 0.25: a poor step may not pass"),
        (
            {"max_radius": 1.0, "initial_radius": 2.0},
            "initial_radius=2 must be <= max_radius=1",
        ),
    ],
)
def test_bad_parameters_are_refused(options, message):
    objective = Quadratic(np.eye(2), np.ones(2))
    with pytest.raises(ValueError, match=message):
        trust_region(objective, Euclidean(2), np.zeros(2), **options)


def test_inner_stops_are_reported(rng):
    objective, manifold, U = _planted(rng)
    result = trust_region(objective, manifold, U, max_inner=3)
    stops = {entry.inner_stop for entry in result.history[1:]}
    assert InnerStop.MAX_INNER in stops
    assert stops & {InnerStop.BOUNDARY, InnerStop.NEGATIVE_CURVATURE}
    assert max(entry.n_inner for entry in result.history) == 3
