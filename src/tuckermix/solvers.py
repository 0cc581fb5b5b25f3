"""Riemannian solvers for any objective on any manifold like those of `tuckermix.manifolds`."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from tuckermix._array_api import epsilon, is_array
from tuckermix._estimators import Settings
from tuckermix._records import Record, SolverResult, StopReason
from tuckermix._validation import check_integer, check_random_state, check_real
from tuckermix.manifolds import check_methods

__all__ = ["InnerStop", "TrustRegionRecord", "trust_region"]

SHRINK = 0.25
"""Factor on the radius after a bad step; replay keeps the segments that such radii cross."""


class InnerStop(StrEnum):
    """Why the inner iteration ended."""

    NEGATIVE_CURVATURE = "negative curvature"
    BOUNDARY = "boundary"
    LINEAR = "residual below kappa"
    SUPERLINEAR = "residual below norm to the theta"
    MAX_INNER = "max_inner"
    MODEL_INCREASED = "model increased"

    @property
    def at_boundary(self) -> bool:
        """Whether the step ends on the boundary of the trust region."""
        return self in (InnerStop.NEGATIVE_CURVATURE, InnerStop.BOUNDARY)


@dataclass(frozen=True)
class Step:
    """A trial step: the vector η, the residual r = grad + Hess[η], and how it came about."""

    eta: Any
    residual: Any
    n_inner: int
    stop: InnerStop


@dataclass(frozen=True)
class _Segment:
    """One segment of the path of conjugate gradients, from η along δ, with squared norms."""

    eta: Any
    residual: Any
    delta: Any
    Hdelta: Any
    e_e: float
    e_d: float
    d_d: float
    end: float
    n_inner: int
    stop: InnerStop

    def at_radius(self, radius: float) -> Step:
        """Return the step where the segment leaves the ball of the given radius."""
        root = math.sqrt(self.e_d**2 + self.d_d * max(0.0, radius**2 - self.e_e))
        tau = (root - self.e_d) / self.d_d
        return Step(
            self.eta + tau * self.delta, self.residual + tau * self.Hdelta, self.n_inner, self.stop
        )


@dataclass(eq=False, repr=False)
class TruncatedCG:
    r"""The Steihaug–Toint method at one point of a manifold.

    .. math:: \min_\eta\ \langle\eta, g\rangle + \tfrac12\langle\eta, H\eta\rangle
        \quad\text{subject to}\quad \|\eta\| \le \Delta.

    The norm is that of the preconditioner where there is one. The path does not depend on the
    radius, which only tells where to leave it: after a rejected step, the step for the smaller
    radius lies on a segment that was already computed, so no Hessian product is spent on it.
    Kept are the segments that the radii Δ/4, Δ/16, … cross.

    Parameters
    ----------
    manifold : object
        Gives `inner` and `projection`.
    point : array
        The point x.
    gradient : array
        The Riemannian gradient g at the point.
    hessian : callable
        Maps a tangent vector ξ to Hess[ξ].
    preconditioner : callable, default=None
        Maps a tangent vector to one; symmetric and positive definite in the metric.
    kappa, theta : float
        The residual is small enough at ‖g‖·min(‖g‖^θ, κ).
    min_inner, max_inner : int
        Limits on the number of Hessian products.

    References
    ----------
    .. [1] P.-A. Absil, C. G. Baker, K. A. Gallivan, "Trust-region methods on Riemannian
       manifolds", Foundations of Computational Mathematics 7, 2007.
    .. [2] A. R. Conn, N. I. M. Gould, P. L. Toint, "Trust-region methods", SIAM, 2000, section 7.5.
    """

    manifold: Any
    point: Any
    gradient: Any
    hessian: Callable[[Any], Any]
    preconditioner: Callable[[Any], Any] | None
    _: KW_ONLY
    kappa: float
    theta: float
    min_inner: int
    max_inner: int
    _segments: list[_Segment] = field(default_factory=list, init=False)
    _inside: Step | None = field(default=None, init=False)

    def solve(self, radius: float, start: Any = None) -> Step:
        """Return the step for a radius: replayed where the path is known, computed otherwise.

        Parameters
        ----------
        radius : float
            The radius Δ.
        start : array, default=None
            A small tangent vector from which to start in place of zero. The path then depends on
            it: it is not replayed, and goes without the preconditioner.

        Returns
        -------
        step : Step
            The step, with the residual that tells the decrease of the model.
        """
        if start is None:
            square = radius**2
            for segment in self._segments:
                if segment.e_e < square <= segment.end:
                    return segment.at_radius(radius)
            # A path that ended inside every radius so far ends at the same vector again.
            if self._inside is not None and self._norm_inside < radius:
                return self._inside
        self._segments, self._inside = [], None
        return self._run(radius, start)

    def _inner(self, xi: Any, zeta: Any) -> float:
        return float(self.manifold.inner(self.point, xi, zeta))

    def _run(self, radius: float, start: Any) -> Step:
        """Follow the path up to the radius; letters as in [2]_, algorithm 7.5.1."""
        g, inner = self.gradient, self._inner
        precondition = self.preconditioner if start is None else None
        square = radius**2
        r, eta, e_e = g, None, 0.0
        if start is not None:
            eta, r, e_e = start, g + self.hessian(start), inner(start, start)
        r_r = inner(r, r)
        norm_0 = math.sqrt(max(0.0, r_r))
        target = norm_0 * min(norm_0**self.theta, self.kappa)
        linear = self.kappa < norm_0**self.theta
        z = r if precondition is None else precondition(r)
        z_r = r_r if precondition is None else inner(z, r)
        delta = -z
        d_d = z_r
        e_d = 0.0 if start is None else inner(eta, delta)
        model = 0.0 if start is None else 0.5 * inner(eta, g + r)
        stop, n_inner = InnerStop.MAX_INNER, 0
        while n_inner < self.max_inner:
            if not z_r > 0.0:  # nothing is left to reduce, not even by rounding
                stop = InnerStop.LINEAR if linear else InnerStop.SUPERLINEAR
                break
            n_inner += 1
            Hdelta = self.hessian(delta)
            d_Hd = inner(delta, Hdelta)
            alpha = z_r / d_Hd if d_Hd > 0 else math.inf
            end = e_e + 2.0 * alpha * e_d + alpha**2 * d_d if d_Hd > 0 else math.inf
            leaves = not end < square  # NaN counts as leaving
            if leaves or (start is None and _crossed(square, e_e, end)):
                here = 0.0 * delta if eta is None else eta
                kind = InnerStop.BOUNDARY if d_Hd > 0 else InnerStop.NEGATIVE_CURVATURE
                limit = min(end, square) if d_Hd > 0 else square
                segment = _Segment(here, r, delta, Hdelta, e_e, e_d, d_d, limit, n_inner, kind)
                if start is None:
                    self._segments.append(segment)
                if leaves:
                    return segment.at_radius(radius)
            trial = alpha * delta if eta is None else eta + alpha * delta
            r_trial = r + alpha * Hdelta
            # The model is ⟨η, g⟩ + ½⟨η, Hη⟩ with Hη = r − g. It can only rise by rounding, or
            # when the Hessian is not linear (finite differences); the last vector is best then.
            model_trial = 0.5 * inner(trial, g + r_trial)
            if not model_trial < model:
                stop = InnerStop.MODEL_INCREASED
                break
            eta, r, e_e, model = trial, r_trial, end, model_trial
            r_r = inner(r, r)
            if n_inner >= self.min_inner and math.sqrt(max(0.0, r_r)) <= target:
                stop = InnerStop.LINEAR if linear else InnerStop.SUPERLINEAR
                break
            z = r if precondition is None else precondition(r)
            z_r_old, z_r = z_r, (r_r if precondition is None else inner(z, r))
            beta = z_r / z_r_old
            # Rounding would let the direction drift out of the tangent space.
            delta = self.manifold.projection(self.point, beta * delta - z)
            e_d = beta * (e_d + alpha * d_d)
            d_d = z_r + beta**2 * d_d
        step = Step(0.0 * g if eta is None else eta, r, n_inner, stop)
        if start is None:
            self._inside, self._norm_inside = step, math.sqrt(e_e)
        return step


def _crossed(square: float, start: float, end: float) -> bool:
    """Tell whether one of Δ²/16, Δ²/256, … lies in (start, end]."""
    if not end > 0.0:
        return False
    times = max(1.0, math.ceil(math.log(square / end) / math.log(1.0 / SHRINK**2)))
    return square * SHRINK ** (2.0 * times) > start


DIFFERENCE_STEP = 2.0**-14
"""Length of the step for finite differences of the gradient: the fourth root of the machine
epsilon rounded to a power of 2, which Manopt uses too."""


@dataclass(eq=False, repr=False)
class Problem:
    """Cost, Riemannian gradient and Hessian at the current point, and a count of the products.

    Parameters
    ----------
    objective : object
        Gives `cost`, `egrad` and, where it can, `ehess`.
    manifold : object
        Turns them into Riemannian ones.
    preconditioner : callable, default=None
        Maps a point and a tangent vector to a tangent vector.
    """

    objective: Any
    manifold: Any
    preconditioner: Callable[[Any, Any], Any] | None = None
    n_hessians: int = field(default=0, init=False)
    point: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        check_methods(self.objective, ("cost", "egrad"), OWNER)
        check_methods(self.manifold, ("inner", "projection", "rgrad", "rhess", "retraction"), OWNER)

    def cost(self, point: Any) -> float:
        """Return the cost of any point."""
        return float(self.objective.cost(point))

    def inner(self, xi: Any, zeta: Any) -> float:
        """Return the inner product at the current point."""
        return float(self.manifold.inner(self.point, xi, zeta))

    def move(self, point: Any) -> Any:
        """Make `point` the current one and return the Riemannian gradient there."""
        self.point = point
        self.egrad = self.objective.egrad(point)
        self.gradient = self.manifold.rgrad(point, self.egrad)
        self._prepared = None
        return self.gradient

    def hessian(self, xi: Any) -> Any:
        """Return the Riemannian Hessian at the current point along `xi`."""
        self.n_hessians += 1
        if not hasattr(self.objective, "ehess"):
            return self._difference(xi)
        ehess = self.objective.ehess(self.point, xi)
        if not hasattr(self.manifold, "rhess_from"):
            return self.manifold.rhess(self.point, self.egrad, ehess, xi)
        if self._prepared is None:
            self._prepared = self.manifold.prepare_rhess(self.point, self.egrad)
        return self.manifold.rhess_from(self.point, self._prepared, ehess, xi)

    def precondition(self, xi: Any) -> Any:
        """Apply the preconditioner at the current point."""
        assert self.preconditioner is not None
        return self.preconditioner(self.point, xi)

    def _difference(self, xi: Any) -> Any:
        """Approximate the Hessian by the change of the gradient along a short step."""
        norm = self.inner(xi, xi) ** 0.5
        if norm == 0.0:
            return 0.0 * xi
        length = DIFFERENCE_STEP / norm
        ahead = self.manifold.retraction(self.point, length * xi)
        gradient = self.manifold.rgrad(ahead, self.objective.egrad(ahead))
        back = self.manifold.transport(ahead, self.point, gradient)
        return (back - self.gradient) / length


logger = logging.getLogger(__name__)

OWNER = "trust_region"


@dataclass(frozen=True)
class TrustRegionSettings(Settings):
    """How a trust region grows and shrinks.

    Attributes
    ----------
    grow : float
        Factor on the radius after a good step that reached the boundary (Manopt's, as below).
    poor, good : float
        Quality ρ below which the radius shrinks, and above which it may grow.
    first_radius : float
        The first radius as a share of the largest one.
    random_start : float
        Norm of the random vector from which the inner iteration starts when randomised.
    stall_iterations : int
        Iterations in a row without a lower gradient and with changes of the cost that the
        regularisation of ρ covers, after which the run is called stalled. Newton steps converge
        quadratically, so even two would do; a few more let some badly rounded gradients pass.
    """

    grow: float = 2.0
    poor: float = 0.25
    good: float = 0.75
    first_radius: float = 1.0 / 8.0
    random_start: float = 1e-06
    stall_iterations: int = 10


@dataclass(frozen=True)
class TrustRegionRecord(Record):
    """One iteration of a trust region.

    Attributes
    ----------
    iteration : int
        0 is the start.
    cost : float
        The objective after the iteration.
    grad_norm : float
        The norm of the Riemannian gradient after the iteration.
    radius : float
        The radius after the iteration.
    accepted : bool
        Whether the trial step was taken; True for the start.
    n_inner : int
        Length of the inner path up to the trial step.
    rho : float
        Actual by predicted decrease of the trial step; NaN for the start.
    inner_stop : InnerStop or None
        Why the inner iteration ended; None for the start.
    n_hessians : int
        Hessian products so far, in all iterations together.
    time : float
        Seconds since the start.
    """

    iteration: int
    cost: float
    grad_norm: float
    radius: float
    accepted: bool
    n_inner: int
    rho: float
    inner_stop: InnerStop | None
    n_hessians: int
    time: float


def trust_region(
    objective: Any,
    manifold: Any,
    point: Any = None,
    *,
    max_iter: int = 1000,
    max_inner: int | None = None,
    min_inner: int = 1,
    tol: float = 1e-6,
    max_time: float | None = None,
    max_radius: float | None = None,
    initial_radius: float | None = None,
    kappa: float = 0.1,
    theta: float = 1.0,
    rho_prime: float = 0.1,
    rho_regularization: float = 1e3,
    preconditioner: Callable[[Any, Any], Any] | None = None,
    randomize: bool = False,
    random_state: Any = None,
    callback: Callable[[TrustRegionRecord], bool | None] | None = None,
) -> SolverResult:
    r"""Minimise an objective over a manifold by a Riemannian trust-region method.

    Each iteration minimises the quadratic model

    .. math:: m(\eta) = f(x) + \langle\operatorname{grad} f(x), \eta\rangle_x
        + \tfrac12\langle\operatorname{Hess} f(x)[\eta], \eta\rangle_x, \qquad
        \|\eta\|_x \le \Delta,

    by truncated conjugate gradients, tries :math:`R_x(\eta)`, and compares the decrease with the
    predicted one, :math:`\rho`: the step is taken if :math:`\rho > \rho'`, the radius divided by
    4 if :math:`\rho < 1/4`, doubled if :math:`\rho > 3/4` on the boundary. Defaults are Manopt's.

    Parameters
    ----------
    objective : object
        Gives `cost(x)` and `egrad(x)`; `ehess(x, xi)` is replaced by finite differences of the
        gradient where it is missing.
    manifold : object
        Gives `inner`, `projection`, `rgrad`, `rhess` and `retraction` with the arguments of
        `tuckermix.manifolds.Multinomial`; `dim` and `typical_dist` are used where present,
        `transport` where there is no `ehess`.
    point : array, default=None
        The start; None means `manifold.random_point(random_state)`.
    max_iter : int, default=1000
        Limit on the iterations.
    max_inner : int, default=None
        Limit on the Hessian products of an iteration; None means the dimension.
    min_inner : int, default=1
        Hessian products before the residual is looked at.
    tol : float, default=1e-6
        Stop when the norm of the gradient falls below.
    max_time : float, default=None
        Limit on the seconds, looked at after each iteration.
    max_radius : float, default=None
        The largest radius; None means `manifold.typical_dist`, or the root of the dimension.
        On the multinomial manifold, `manifold.diameter` is the smaller, truer choice.
    initial_radius : float, default=None
        The first radius; None means an eighth of `max_radius`.
    kappa : float, default=0.1
        The inner iteration ends at a residual of ‖grad‖·min(‖grad‖^θ, κ).
    theta : float, default=1.0
        The exponent θ of that rule.
    rho_prime : float, default=0.1
        Quality above which a step is taken, in [0, 1/4).
    rho_regularization : float, default=1e3
        This number of rounding errors of the cost is added to both parts of ρ: close to convergence
        both are differences of nearly equal numbers, and their quotient must tend to 1.
    preconditioner : callable, default=None
        Maps a point and a tangent vector to a tangent vector, as an approximate inverse of the
        Hessian that is symmetric and positive definite in the metric. The radius is then
        measured in its norm.
    randomize : bool, default=False
        Start the inner iteration from a tiny random vector, and keep the Cauchy step where that
        is better: escapes from saddle points at the price of a Hessian product or two.
    random_state : None, int or Generator, default=None
        Where random numbers come from.
    callback : callable, default=None
        Called with each record, the start first; a true return value stops the run.

    Returns
    -------
    result : SolverResult
        `point`, `cost`, `n_iter`, `stop_reason` and `history`, one `TrustRegionRecord` an
        iteration, the start first. After an interruption (Ctrl-C) it holds the best point.

    References
    ----------
    .. [1] P.-A. Absil, C. G. Baker, K. A. Gallivan, "Trust-region methods on Riemannian
       manifolds", Foundations of Computational Mathematics 7, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from tuckermix.manifolds import Multinomial
    >>> from tuckermix.objectives import MembershipObjective
    >>> from tuckermix.solvers import trust_region
    >>> objective = MembershipObjective(np.random.default_rng(0).standard_normal((30, 5)))
    >>> result = trust_region(objective, Multinomial(30, 3), random_state=0)
    >>> result.stop_reason.converged
    True
    >>> bool(np.isclose(result.cost, objective.optimum(n_components=3)))
    True
    """
    use = TrustRegionSettings.current()
    max_iter = check_integer(max_iter, "max_iter", OWNER, minimum=0)
    min_inner = check_integer(min_inner, "min_inner", OWNER, minimum=0)
    tol = check_real(tol, "tol", OWNER)
    kappa, theta = check_real(kappa, "kappa", OWNER), check_real(theta, "theta", OWNER)
    max_time = math.inf if max_time is None else check_real(max_time, "max_time", OWNER)
    if not 0.0 <= check_real(rho_prime, "rho_prime", OWNER) < use.poor:
        raise ValueError(f"rho_prime={rho_prime!r} must be < {use.poor}: a poor step may not pass.")
    dim = int(getattr(manifold, "dim", 0))
    max_radius = _radius(max_radius, "max_radius", getattr(manifold, "typical_dist", None), dim)
    initial_radius = _radius(initial_radius, "initial_radius", use.first_radius * max_radius, dim)
    if initial_radius > max_radius:
        raise ValueError(f"initial_radius={initial_radius:g} must be <= max_radius={max_radius:g}.")
    rng = check_random_state(random_state)
    if point is None:
        point = manifold.random_point(rng)
    elif hasattr(manifold, "check_point"):
        manifold.check_point(point, tol=math.sqrt(epsilon(point)))
    if max_inner is None:
        max_inner = max(1, dim or int(np.prod(point.shape)))
    max_inner = check_integer(max_inner, "max_inner", OWNER)

    run = _Run(
        Problem(objective, manifold, preconditioner),
        point,
        initial_radius,
        max_radius,
        regularization=check_real(rho_regularization, "rho_regularization", OWNER),
        rho_prime=rho_prime,
        rng=rng if randomize else None,
        settings={"kappa": kappa, "theta": theta, "min_inner": min_inner, "max_inner": max_inner},
    )
    return run.loop(max_iter, tol, max_time, callback)


def _radius(value: float | None, name: str, default: float | None, dim: int) -> float:
    """Check a radius, or fall back on its default, or on the root of the dimension."""
    if value is None:
        value = default if default else math.sqrt(max(1, dim))
    return check_real(value, name, OWNER, strict=True)


def _epsilon_of(point: Any) -> float:
    """Return the rounding error of the coarsest array of a point, which the cost inherits."""
    blocks = point if isinstance(point, list | tuple) else [point]
    return max((epsilon(b) for b in blocks if is_array(b)), default=float(np.finfo(float).eps))


@dataclass(eq=False, repr=False)
class _Run:
    """The state of a run, so that an interruption at any moment leaves a point to return."""

    problem: Problem
    point: Any
    radius: float
    max_radius: float
    regularization: float
    rho_prime: float
    rng: np.random.Generator | None
    settings: dict[str, Any]
    history: list[TrustRegionRecord] = field(default_factory=list)
    cost: float = math.nan
    grad_norm: float = math.nan
    lowest_grad_norm: float = math.inf
    flat: int = 0
    inner: TruncatedCG = field(init=False)

    def __post_init__(self) -> None:
        self.begin, self.eps = time.perf_counter(), _epsilon_of(self.point)

    def loop(
        self, max_iter: int, tol: float, max_time: float, callback: Callable[..., Any] | None
    ) -> SolverResult:
        """Iterate until a reason to stop turns up."""
        reason: StopReason | None = None
        try:
            self.cost = self.problem.cost(self.point)
            self._arrive()
            self._note(accepted=True, n_inner=0, rho=math.nan, inner_stop=None)
            while reason is None:
                reason = self._reason(max_iter, tol, max_time)
                if callback is not None and callback(self.history[-1]):
                    reason = reason or StopReason.CALLBACK
                if reason is None:
                    self._iterate()
        except KeyboardInterrupt:
            reason = StopReason.INTERRUPTED
            logger.info("interrupted: the best point so far is returned")
        n_iter = max(0, len(self.history) - 1)
        logger.debug("trust_region: %s after %d iterations, cost %g", reason, n_iter, self.cost)
        return SolverResult(self.point, self.cost, n_iter, reason, self.history)

    def _reason(self, max_iter: int, tol: float, max_time: float) -> StopReason | None:
        use = TrustRegionSettings.current()
        last = self.history[-1]
        # A step of this length is lost in rounding.
        resolution = self.eps * min(1.0, self.max_radius)
        if not (math.isfinite(self.cost) and math.isfinite(self.grad_norm)):
            return StopReason.FAILED
        if self.grad_norm < tol or self.grad_norm == 0.0:
            return StopReason.GRADIENT
        if self.flat >= use.stall_iterations or self.radius <= resolution:
            return StopReason.STALLED
        if last.iteration >= max_iter:
            return StopReason.MAX_ITER
        if last.time >= max_time:
            return StopReason.MAX_TIME
        return None

    def _note(self, **step: Any) -> None:
        """Record the state after a step, of which the facts are given."""
        step |= {"cost": self.cost, "grad_norm": self.grad_norm, "radius": self.radius}
        step |= {"n_hessians": self.problem.n_hessians, "time": time.perf_counter() - self.begin}
        self.history.append(TrustRegionRecord(len(self.history), **step))

    def _arrive(self) -> None:
        """Take stock at a new point."""
        problem = self.problem
        gradient = problem.move(self.point)
        self.grad_norm = math.sqrt(max(0.0, problem.inner(gradient, gradient)))
        self.inner = TruncatedCG(
            problem.manifold,
            self.point,
            gradient,
            problem.hessian,
            problem.precondition if problem.preconditioner is not None else None,
            **self.settings,
        )

    def _iterate(self) -> None:
        """Do one trial step."""
        use = TrustRegionSettings.current()
        problem = self.problem
        step = self._step()
        trial = problem.manifold.retraction(self.point, step.eta)
        trial_cost = problem.cost(trial)
        # The model at η is f + ½⟨η, g + r⟩ with the residual r = g + Hη.
        predicted = -0.5 * problem.inner(step.eta, problem.gradient + step.residual)
        rounding = max(1.0, abs(self.cost)) * self.eps * self.regularization
        change = self.cost - trial_cost
        rho = math.nan
        if predicted + rounding != 0.0:
            rho = (change + rounding) / (predicted + rounding)
        decreased = predicted + rounding >= 0.0
        if not (decreased and rho >= use.poor):  # NaN shrinks the radius too
            self.radius *= SHRINK
        elif rho > use.good and step.stop.at_boundary:
            self.radius = min(use.grow * self.radius, self.max_radius)
        accepted = decreased and rho > self.rho_prime
        if accepted:
            self.point, self.cost = trial, trial_cost
            self._arrive()
            is_flat = abs(change) <= rounding and self.grad_norm >= self.lowest_grad_norm
            self.flat = self.flat + 1 if is_flat else 0
            self.lowest_grad_norm = min(self.lowest_grad_norm, self.grad_norm)
        self._note(accepted=accepted, n_inner=step.n_inner, rho=rho, inner_stop=step.stop)

    def _step(self) -> Step:
        """Solve the subproblem; when randomised, fall back on the Cauchy step if it is better."""
        use = TrustRegionSettings.current()
        if self.rng is None:
            return self.inner.solve(self.radius)
        problem = self.problem
        start = problem.manifold.random_tangent(self.point, self.rng)
        start = start * min(use.random_start, 0.5 * self.radius)
        step = self.inner.solve(self.radius, start)
        gradient = problem.gradient
        Hg = problem.hessian(gradient)
        curvature = problem.inner(gradient, Hg)
        length = self.radius / self.grad_norm
        if curvature > 0:
            length = min(length, self.grad_norm**2 / curvature)
        cauchy = Step(-length * gradient, gradient - length * Hg, step.n_inner + 1, step.stop)
        if self._model(cauchy) < self._model(step):
            return cauchy
        return step

    def _model(self, step: Step) -> float:
        return self.problem.inner(step.eta, self.problem.gradient + step.residual)
