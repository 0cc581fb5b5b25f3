"""Slope tests, which tell whether a gradient, a Hessian or a retraction is the right one.

Each test compares a function along a curve with its Taylor polynomial from the derivative under
test. The error of a right derivative falls with a known power of the step; on logarithmic axes
the curve of errors has that slope, over several decades, until rounding takes over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuckermix._estimators import Settings
from tuckermix._optional import require
from tuckermix._records import Record
from tuckermix._validation import check_option, check_random_state


@dataclass(frozen=True)
class CheckSettings(Settings):
    """How slopes are compared.

    Attributes
    ----------
    n_steps : int
        Steps from 1e-8 to 1: six in each decade.
    window : int
        Neighbouring steps over which the slope is measured: a decade and a half.
    straight : float
        Decades by which the errors of a straight window may miss their line, 5 %. The first
        straight window above rounding counts: further up, the next power of the step can hide a
        small mistake.
    slope_tolerance : float
        A slope may miss the expected one by this much. The orders to tell apart are integers.
    symmetry_tolerance : float
        Relative difference of ⟨Hξ, ζ⟩ and ⟨ξ, Hζ⟩ that passes: far above rounding, far below a
        mistake.
    """

    n_steps: int = 51
    window: int = 10
    straight: float = 0.02
    slope_tolerance: float = 0.1
    symmetry_tolerance: float = 1e-06


NOISE = 1e3
"""Errors below this many rounding errors of the values compared are rounding."""


@dataclass(frozen=True)
class SlopeCheck(Record):
    """The outcome of a slope test.

    Attributes
    ----------
    name : str
        What was tested.
    slope : float
        The slope measured; NaN where all errors are rounding.
    expected : float
        The least slope of a right derivative.
    passed : bool
        Whether the slope is at least the expected one, or there is no error at all.
    steps : ndarray of shape (n_steps,)
        The steps along the curve.
    errors : ndarray of shape (n_steps,)
        The errors of the Taylor polynomial.
    window : ndarray of shape (n_window,)
        The steps over which the slope was measured; empty where there is no error at all.
    asymmetry : float
        For a Hessian, how far it is from self-adjoint, relative to its size; 0 otherwise.
    """

    name: str
    slope: float
    expected: float
    passed: bool
    steps: np.ndarray
    errors: np.ndarray
    window: np.ndarray
    asymmetry: float = 0.0

    def plot(self, ax: Any = None) -> Any:
        """Draw the errors against the steps, beside a line of the expected slope.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes new axes.

        Returns
        -------
        ax : matplotlib Axes
            The axes drawn on.
        """
        plt = require("matplotlib.pyplot", "SlopeCheck.plot", "plot")
        if ax is None:
            ax = plt.figure().add_subplot()
        shown = self.errors > 0  # a logarithmic axis has no place for zero
        ax.loglog(self.steps[shown], self.errors[shown], ".-", label="error")
        if self.window.size:
            inside = np.isin(self.steps, self.window) & shown
            middle = np.flatnonzero(inside)[inside.sum() // 2]
            line = self.errors[middle] * (self.steps / self.steps[middle]) ** self.expected
            ax.loglog(self.steps, line, "--", label=f"slope {self.expected:g}")
            ax.loglog(
                self.steps[inside],
                self.errors[inside],
                lw=3,
                alpha=0.5,
                label=f"measured {self.slope:.2f}",
            )
        ax.set(xlabel="step", ylabel="error", title=self.name)
        ax.legend()
        return ax


def check_gradient(
    objective: Any,
    manifold: Any,
    point: Any = None,
    tangent: Any = None,
    *,
    random_state: Any = None,
) -> SlopeCheck:
    r"""Test a gradient: the error of the linear model falls with the square of the step.

    .. math:: |f(\gamma(t)) - f(x) - t \langle\operatorname{grad} f(x), \xi\rangle_x| = O(t^2)

    Parameters
    ----------
    objective : object
        Gives `cost` and `egrad`.
    manifold : object
        Gives `inner`, `rgrad` and `exp` or `retraction`.
    point : array, default=None
        The point x; None draws one.
    tangent : array, default=None
        The direction ξ; None draws one.
    random_state : None, int or Generator, default=None
        Where random numbers come from.

    Returns
    -------
    check : SlopeCheck
        Slope 2 is right. ``check.plot()`` draws it.
    """
    x, xi = _start(manifold, point, tangent, random_state)
    gradient = manifold.rgrad(x, objective.egrad(x))
    slope = float(manifold.inner(x, gradient, xi))
    move = getattr(manifold, "exp", manifold.retraction)
    start = float(objective.cost(x))

    def error(t: float) -> float:
        return abs(float(objective.cost(move(x, t * xi))) - start - t * slope)

    return _measure("gradient", error, 2.0, max(abs(start), abs(slope)))


def check_hessian(
    objective: Any,
    manifold: Any,
    point: Any = None,
    tangent: Any = None,
    *,
    random_state: Any = None,
) -> SlopeCheck:
    r"""Test a Hessian: the error of the quadratic model falls with the cube of the step.

    .. math:: |f(\gamma(t)) - f(x) - t \langle\operatorname{grad} f(x), \xi\rangle_x
        - \tfrac{t^2}{2} \langle\operatorname{Hess} f(x)[\xi], \xi\rangle_x| = O(t^3)

    The curve is the geodesic, or a second-order retraction (`retraction2`) where there is no
    `exp`: along a first-order retraction the second derivative is not the Hessian, except at
    critical points. The Hessian must be self-adjoint too.

    Parameters
    ----------
    objective : object
        Gives `cost`, `egrad` and `ehess`.
    manifold : object
        Gives `inner`, `rgrad`, `rhess`, `random_tangent` and `exp` or `retraction2`.
    point : array, default=None
        The point x; None draws one.
    tangent : array, default=None
        The direction ξ; None draws one.
    random_state : None, int or Generator, default=None
        Where random numbers come from.

    Returns
    -------
    check : SlopeCheck
        Slope 3 is right. ``check.plot()`` draws it.
    """
    rng = check_random_state(random_state)
    x, xi = _start(manifold, point, tangent, rng)
    move = getattr(manifold, "exp", None) or getattr(manifold, "retraction2", None)
    if move is None:
        raise TypeError(
            f"{type(manifold).__name__} has neither exp nor retraction2: along a first-order "
            "retraction the second derivative is not the Hessian."
        )
    egrad = objective.egrad(x)

    def hessian(vector: Any) -> Any:
        return manifold.rhess(x, egrad, objective.ehess(x, vector), vector)

    H = hessian(xi)
    slope = float(manifold.inner(x, manifold.rgrad(x, egrad), xi))
    curvature = float(manifold.inner(x, H, xi))
    start = float(objective.cost(x))

    def error(t: float) -> float:
        model = start + t * slope + 0.5 * t**2 * curvature
        return abs(float(objective.cost(move(x, t * xi))) - model)

    zeta = manifold.random_tangent(x, rng)
    one, other = float(manifold.inner(x, H, zeta)), float(manifold.inner(x, xi, hessian(zeta)))
    size = max(abs(one), abs(other), abs(curvature), float(np.finfo(float).tiny))
    scale = max(abs(start), abs(slope), abs(curvature))
    return _measure("Hessian", error, 3.0, scale, asymmetry=abs(one - other) / size)


def check_retraction(
    manifold: Any,
    point: Any = None,
    tangent: Any = None,
    *,
    name: str = "retraction",
    random_state: Any = None,
) -> SlopeCheck:
    r"""Test a retraction: its distance to the geodesic falls with a power of the step.

    .. math:: d(R_x(t\xi), \exp_x(t\xi)) = O(t^{p+1})

    with p = 1 for a retraction, p = 2 for one of second order.

    Parameters
    ----------
    manifold : object
        Gives the retraction, `exp` and `dist`.
    point : array, default=None
        The point x; None draws one.
    tangent : array, default=None
        The direction ξ; None draws one.
    name : {"retraction", "retraction2"}, default="retraction"
        Which one to test.
    random_state : None, int or Generator, default=None
        Where random numbers come from.

    Returns
    -------
    check : SlopeCheck
        Slope 2 is right for `retraction`, 3 for `retraction2`. ``check.plot()`` draws it.
    """
    check_option(name, "name", "check_retraction", ("retraction", "retraction2"))
    x, xi = _start(manifold, point, tangent, random_state)
    move = getattr(manifold, name)

    def error(t: float) -> float:
        return float(manifold.dist(move(x, t * xi), manifold.exp(x, t * xi)))

    return _measure(name, error, 2.0 if name == "retraction" else 3.0, 1.0)


def _start(manifold: Any, point: Any, tangent: Any, random_state: Any) -> tuple[Any, Any]:
    rng = check_random_state(random_state)
    if point is None:
        point = manifold.random_point(rng)
    if tangent is None:
        tangent = manifold.random_tangent(point, rng)
    return point, tangent


def _measure(
    name: str,
    error: Callable[[float], float],
    expected: float,
    scale: float,
    asymmetry: float = 0.0,
) -> SlopeCheck:
    """Evaluate the errors and find the slope of their first straight stretch."""
    use = CheckSettings.current()
    steps = np.logspace(-8, 0, use.n_steps)
    errors = np.array([error(float(t)) for t in steps])
    noise = NOISE * float(np.finfo(float).eps) * scale
    usable = np.isfinite(errors) & (errors > noise)
    best, slope, window = np.inf, np.nan, steps[:0]
    for start in range(use.n_steps - use.window + 1):
        part = slice(start, start + use.window)
        if not usable[part].all():
            continue
        x, y = np.log10(steps[part]), np.log10(errors[part])
        (fit, intercept) = np.polyfit(x, y, 1)
        misfit = float(np.max(np.abs(y - fit * x - intercept)))
        if misfit < best:
            best, slope, window = misfit, float(fit), steps[part]
        if misfit <= use.straight:
            break
    # A higher order than needed is right as well: the derivative one higher happens to vanish.
    no_error = bool(np.isfinite(errors).all() and not usable.any())
    passed = no_error or bool(slope >= expected - use.slope_tolerance)
    passed = passed and asymmetry <= use.symmetry_tolerance
    return SlopeCheck(name, slope, expected, passed, steps, errors, window, asymmetry)
