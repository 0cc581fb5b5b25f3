"""Truncated conjugate gradients for the trust-region subproblem, with replay after a rejection."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import Any

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
