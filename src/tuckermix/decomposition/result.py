"""Start of a solver, records of its iteration, and its result."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tuckermix._array_api import Array, asarray_like, double, epsilon, get_namespace, to_numpy
from tuckermix._estimators import Settings
from tuckermix._records import Record, StopReason
from tuckermix.numerics import linalg
from tuckermix.numerics.tensor import mode_dot, multi_mode_dot, unfold
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
        many components can explain; see `certify`.
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


@dataclass(frozen=True)
class ProbeSettings(Settings):
    """How large problems are judged.

    Attributes
    ----------
    probes : int
        Random directions beside those of the solver, where no Gram matrix can be formed: a leading
        direction that the solver missed has a part in all of them.
    probe_steps : int
        Rounds of power iteration on them. A direction twice as energetic as the rest stands out by
        a factor of 2^12 in the energy after six.
    """

    probes: int = 16
    probe_steps: int = 6


def certify(source: Source, fit: Decomposition, n_directions: int) -> Decomposition:
    r"""Measure the gap and the stationarity of a solution, in one more pass over the samples.

    For fixed factors the theorem gives the largest value :math:`h^*` that memberships with L
    columns can reach. The **gap** is what a solution misses of it, relative to the centred energy
    that L components can explain,

    .. math:: \text{gap} = \frac{h^* - h}{\tfrac12 \sum_{k<L} \sigma_k^2},

    so that adding a constant to all samples does not hide it. The singular values come from the
    Gram matrix of the smaller side of the projected samples, which knows nothing of the solver's
    subspace `Q`; h is measured by multiplying the samples with `Q`. Where both sides are too large
    for a Gram matrix, a random block that is orthogonal to what the solver found is iterated
    instead: the energy that it finds is a lower bound on what exists, and the gap is then a lower
    bound on the true one.

    The alternation over the factors ends at a point where no single mode can be improved, one of
    possibly several. The **stationarity** says how far from such a point the factors are: the
    largest norm over the modes of the Riemannian gradient :math:`(I - U_n U_n^\top) S_n U_n`, with
    :math:`S_n` the Gram matrix of mode n of the samples contracted with `Q` and the other factors,
    relative to the same centred energy.

    Parameters
    ----------
    source : Source
        The samples.
    fit : Decomposition
        The solution; what it says of itself is not used. Where the solver ended with such a pass,
        over the same factors and basis, that one is taken.
    n_directions : int
        How many centred directions it was allowed, one less than the components asked for.

    Returns
    -------
    fit : Decomposition
        The same with `gap` and `stationarity` set.
    """
    measured = fit.measured or source.measure(fit.factors, fit.Q)
    # The first column of Q is constant: what it explains is the mean, which no solution misses.
    within, cross, gram = measured.within[1:, 1:], measured.cross[1:, :], measured.gram
    if gram is None:
        gram = _smaller_gram(source, fit.factors, cross)
    sigma = np.sqrt(np.clip(np.linalg.eigvalsh(to_numpy(gram))[::-1][:n_directions], 0.0, None))
    rank = linalg.rank_of(sigma, source.squared_norm**0.5, epsilon(source.like))
    possible = float(np.sum(sigma[:rank] ** 2))
    if possible == 0.0:  # samples that are equal up to rounding
        return replace(fit, gap=0.0, stationarity=0.0, measured=None)
    reached, xp = 0.0, get_namespace(within)
    if cross.shape[0]:
        values, vectors = linalg.leading_eigenvectors(within, within.shape[0])
        keep = int(np.sum(to_numpy(values) > epsilon(values) * float(values[0])))
        if keep == within.shape[0]:
            reached = float(xp.sum(xp.linalg.solve(within, cross) * cross))
        else:  # columns that depend on others, as rounding may leave them, tell nothing more
            along = xp.matmul(vectors[:, :keep].T, cross)
            reached = float(xp.sum(along * along / values[:keep, None]))
    steepest = 0.0
    factors = [double(factor) for factor in fit.factors]
    for mode, factor in enumerate(factors):
        others = [None if n == mode else other for n, other in enumerate(factors)]
        B = multi_mode_dot(measured.contracted, others, transpose=True)
        if math.prod(B.shape) < math.prod(factor.shape):
            # No matrix of the size of the factor, which is that of a long mode.
            B = unfold(B, mode + 1)
            along = xp.matmul(factor.T, B)
            beyond = B - xp.matmul(factor, along)
            squares = xp.sum(xp.matmul(along, xp.matmul(beyond.T, beyond)) * along)
        else:
            rest = [axis for axis in range(B.ndim) if axis != mode + 1]
            image = xp.tensordot(B, mode_dot(B, factor.T, mode + 1), axes=(rest, rest))
            slope = image - xp.matmul(factor, xp.matmul(factor.T, image))
            squares = xp.sum(slope * slope)
        # Rounding may leave less than nothing.
        steepest = max(steepest, max(float(squares), 0.0) ** 0.5)
    gap = max(0.0, possible - reached) / possible
    return replace(fit, gap=gap, stationarity=steepest / possible, measured=None)


def _smaller_gram(source: Source, factors: list[Array], cross: Array) -> Array:
    """Return a Gram matrix with the leading energies where that of the columns is too large.

    For few samples it is that of the rows. With many of both, it is that of a subspace: the one
    that the solver found (`cross` holds its rows) and a random block, iterated outside it. Its
    eigenvalues are then lower bounds.
    """
    use = ProbeSettings.current()
    xp = get_namespace(source.mean)
    if source.n_samples <= linalg.DENSE_SIDE:
        B: Any = source.centred(factors)[0]
        B = double(B.compute() if source.lazy else B)
        return xp.matmul(B, B.T)
    found = linalg.orthonormal_basis(cross.T)
    rng = np.random.default_rng(use.probes)
    probe = linalg.random_basis(cross.shape[1], use.probes, rng, source.mean)
    for _ in range(use.probe_steps):
        probe = probe - xp.matmul(found, xp.matmul(found.T, probe))
        image = source.sketch(factors, linalg.orthonormal_basis(probe)).cross
        rows = multi_mode_dot(image, [double(factor) for factor in factors], transpose=True)
        probe = xp.reshape(rows, (rows.shape[0], cross.shape[1])).T
    basis = linalg.orthonormal_basis(xp.concat([found, probe], axis=1))
    return source.sketch(factors, basis, cross=False).gram


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
