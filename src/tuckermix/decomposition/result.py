"""Start of a solver, records of its iteration, and its result."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tuckermix._array_api import Array, asarray_like, device, epsilon, get_namespace
from tuckermix._records import Record, StopReason
from tuckermix.sources import Measure, Source

logger = logging.getLogger("tuckermix")


@dataclass(frozen=True)
class SweepRecord(Record):
    """One sweep of a solver over all modes; the start is the first record.

    Attributes
    ----------
    iteration : int
        The number of the sweep, 0 for the start.
    cost : float
        Half the squared error.
    relative_error : float
        The norm of the error over the norm of the data.
    gap : float
        The distance of the memberships from the optimum of their subproblem, relative; NaN where
        the solver does not compute it at every sweep.
    time : float
        Seconds since the start.
    """

    iteration: int
    cost: float
    relative_error: float
    gap: float
    time: float


Callback = Callable[[SweepRecord], bool | None]
"""Called with each record; a true return value stops the solver."""


@dataclass(frozen=True)
class Start(Record):
    """Where a solver begins, and when it ends.

    Attributes
    ----------
    factors : list of arrays of shape (d_n, r_n)
        Orthonormal factors, in float64.
    rng : numpy.random.Generator
        The source of whatever else is random in the solver.
    directions : array of shape (product of r_n, k) or None, default=None
        A guess of the subspace of the projected samples, where there is one.
    max_iter : int, default=100
        Most sweeps.
    tol : float, default=1e-6
        Stop when a sweep lowers the relative error by less than this.
    callback : callable or None, default=None
        Called with each record; a true return value stops the solver.
    """

    factors: list[Array]
    rng: np.random.Generator
    directions: Array | None = None
    max_iter: int = 100
    tol: float = 1e-6
    callback: Callback | None = None


@dataclass
class Progress:
    """The progress of an iteration.

    Attributes
    ----------
    source : Source
        The samples.
    callback : callable or None
        Who wants to know of each record.
    history : list of SweepRecord
        The records so far.
    stop : StopReason
        Why the iteration ended; the limit on sweeps until a solver says otherwise.
    began : float
        When it began.
    """

    source: Source
    callback: Callback | None = None
    history: list[SweepRecord] = field(default_factory=list)
    stop: StopReason = StopReason.MAX_ITER
    began: float = field(default_factory=time.perf_counter)

    def record(self, explained: float, gap: float = math.nan) -> bool:
        """Record what the present solution explains; return whether the callback asks to stop.

        A callback that has stopped the iteration is not asked again.

        Parameters
        ----------
        explained : float
            The squared norm of the fit, which is an orthogonal projection, in units of the source.
        gap : float, default=nan
            The distance of the memberships from their optimum, where it is known.

        Returns
        -------
        asked : bool
            Whether the solver is asked to stop.
        """
        total = self.source.squared_norm
        entry = SweepRecord(
            iteration=len(self.history),
            cost=cost_of(self.source, total - explained),
            relative_error=relative_error(total, explained),
            gap=gap,
            time=time.perf_counter() - self.began,
        )
        self.history.append(entry)
        logger.info(
            "sweep %d: relative error %.9f after %.3f s",
            entry.iteration,
            entry.relative_error,
            entry.time,
        )
        asks = self.callback is not None and self.stop is not StopReason.CALLBACK
        return asks and bool(self.callback(entry))  # type: ignore[misc]

    def gains_little(self, error: float, tol: float, reached: float = math.inf) -> bool:
        """Tell whether another sweep would lower the relative error by no more than a tolerance.

        Parameters
        ----------
        error : float
            The relative error that it would reach.
        tol : float
            The tolerance, or what rounding hides where that is more.
        reached : float, default=inf
            The error that was expected of the present solution.

        Returns
        -------
        little : bool
            Whether it gains no more on the last record, or on what was expected of it.
        """
        before = self.history[-1].relative_error
        # The error is a root of a difference of sums, e = sqrt(1 - s), and s is good to about eps:
        # so e is good to eps / e, and errors below sqrt(eps) cannot be told from zero.
        eps = epsilon(self.source.like)
        return min(before, reached) - error <= max(tol, 2.0 * eps / max(before, eps**0.5))


@dataclass(frozen=True)
class Subspace(Record):
    """A subspace of the memberships for fixed factors, in units of the source.

    Attributes
    ----------
    mean : array of shape (n_projected,)
        The mean row of the projected samples, in float64.
    directions : array of shape (n_projected, r)
        Orthonormal directions of the projected space, in float64.
    singular_values : array of shape (r,)
        The singular values of the centred rows along them, in float64.
    Q : array of shape (n_samples, 1 + r)
        Orthonormal basis of the subspace, the constant direction first; a Dask array where the
        source is lazy.
    explained : float
        The squared norm of the rows projected on the subspace.
    axes : array of shape (n_projected, n_projected) or None
        All principal directions of the centred rows, strongest first, in float64, where they were
        found on the way.
    """

    mean: Array
    directions: Array
    singular_values: Array
    Q: Array
    explained: float
    axes: Array | None = None


@dataclass(frozen=True)
class Decomposition(Record):
    r"""The model without labels.

    .. math:: X \approx G \times_0 Q \times_1 U_1 \cdots \times_{N-1} U_{N-1}

    with orthonormal `Q` whose first column is constant. Every set of mixing weights whose columns
    span those of `Q` gives the same fit.

    Attributes
    ----------
    factors : list of arrays of shape (d_n, r_n)
        Orthonormal factors of the feature modes.
    Q : array of shape (n_samples, n_components)
        Orthonormal basis of the subspace of the memberships, the constant direction first.
    core : array of shape (n_components, r_1, ...)
        The core that belongs to `Q`.
    mean : array of shape (product of r_n,)
        The mean of the projected samples.
    directions : array of shape (product of r_n, n_components - 1)
        Orthonormal directions of the subspace in the projected space.
    singular_values : array of shape (n_components - 1,)
        The singular values of the centred, projected samples along `directions`.
    memberships : array of shape (n_samples, n_components) or None
        The mixing weights that the solver reached; None where it determines the subspace only.
    cost : float
        Half the squared error.
    relative_error : float
        The norm of the error over the norm of the data.
    gap : float
        What `Q` misses of the optimum for these factors, relative to the centred energy that as
        many components can explain; see `tuckermix.decomposition.fit.certify`.
    stationarity : float
        How far the factors are from a stationary point, relative to the same energy.
    history : list of SweepRecord
        One record per sweep, the start first.
    n_iter : int
        The number of sweeps done.
    stop_reason : StopReason
        Why the solver ended.
    axes : array of shape (product of r_n, product of r_n) or None
        All principal directions of the centred, projected samples, strongest first, where the
        solver found them on the way.
    measured : Measure or None
        The last reading of the samples, where a solver ended with it; None once `gap` and
        `stationarity` are known.
    """

    factors: list[Array]
    Q: Array
    core: Array
    mean: Array
    directions: Array
    singular_values: Array
    memberships: Array | None
    cost: float
    relative_error: float
    gap: float
    stationarity: float
    history: list[SweepRecord]
    n_iter: int
    stop_reason: StopReason
    axes: Array | None = None
    measured: Measure | None = None

    @property
    def n_components(self) -> int:
        """The number of components that the data support, at most the number asked for."""
        return int(self.Q.shape[1])

    @property
    def ranks(self) -> tuple[int, ...]:
        """The number of columns of each factor."""
        return tuple(int(factor.shape[1]) for factor in self.factors)


def assemble(
    source: Source,
    factors: list[Array],
    subspace: Subspace,
    progress: Progress,
    *,
    memberships: Array | None = None,
    measured: Measure | None = None,
) -> Decomposition:
    """Put a solution together, in the units and the floating type of the samples.

    Parameters
    ----------
    source : Source
        The samples.
    factors : list of arrays of shape (d_n, r_n)
        The factors, in float64.
    subspace : Subspace
        The subspace of the memberships.
    progress : Progress
        How the solver came there; its last record is that of the solution.
    memberships : array of shape (n_samples, n_components) or None, default=None
        The mixing weights, where the solver determines them.
    measured : Measure or None, default=None
        What `Source.measure` said of these factors and this subspace, where the solver asked it.

    Returns
    -------
    decomposition : Decomposition
        The model without labels; `gap` and `stationarity` are unknown (NaN) until they are
        measured apart from the solver.
    """
    xp = get_namespace(subspace.mean)
    mean_row = subspace.mean * source.n_samples**0.5
    rows = subspace.directions.T * subspace.singular_values[:, None]
    core = xp.concat([mean_row[None, :], rows], axis=0) / source.scale
    shape = (core.shape[0], *(factor.shape[1] for factor in factors))
    return Decomposition(
        factors=[asarray_like(factor, source.like) for factor in factors],
        Q=subspace.Q,
        core=asarray_like(xp.reshape(core, shape), source.like),
        mean=subspace.mean / source.scale,
        directions=subspace.directions,
        singular_values=subspace.singular_values / source.scale,
        memberships=memberships,
        cost=progress.history[-1].cost,
        relative_error=progress.history[-1].relative_error,
        gap=math.nan,
        stationarity=math.nan,
        history=progress.history,
        n_iter=max(1, len(progress.history) - 1),
        stop_reason=progress.stop,
        axes=subspace.axes,
        measured=measured,
    )


def with_constant(coordinates: Array, n_samples: int | None = None) -> Array:
    """Put the constant unit vector before orthonormal centred coordinates.

    Parameters
    ----------
    coordinates : array of shape (n, d)
        The coordinates of all samples, or of a block of them.
    n_samples : int or None, default=None
        The number of all samples; None means n.

    Returns
    -------
    Q : array of shape (n, 1 + d)
        The rows of the basis.
    """
    xp = get_namespace(coordinates)
    n_rows = coordinates.shape[0]
    constant = xp.full(
        (n_rows, 1),
        (n_samples or n_rows) ** -0.5,
        dtype=coordinates.dtype,
        device=device(coordinates),
    )
    return xp.concat([constant, coordinates], axis=1)


def cost_of(source: Source, squared_error: float) -> float:
    """Return half a squared error in the units of the samples.

    The result may be too small or too large for a float, 0 or infinity then.

    Parameters
    ----------
    source : Source
        The samples.
    squared_error : float
        The squared error of the scaled samples; rounding may have made it negative.

    Returns
    -------
    cost : float
        Half of it, undone of the scale.
    """
    return 0.5 * max(0.0, squared_error) / source.scale / source.scale


def relative_error(total: float, explained: float) -> float:
    r"""Get the relative error of a least-squares fit from squared norms alone.

    .. math:: \|X - \hat X\| / \|X\| = \sqrt{1 - \|\hat X\|^2 / \|X\|^2}

    holds because the fit is an orthogonal projection, so that nothing has to be rebuilt.

    Parameters
    ----------
    total : float
        The squared norm of the data.
    explained : float
        The squared norm of the fit.

    Returns
    -------
    error : float
        Between 0 and 1; 0 for data that are all zero.
    """
    return math.sqrt(max(0.0, 1.0 - explained / total)) if total > 0 else 0.0
