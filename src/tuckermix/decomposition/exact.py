r"""The exact solver: alternate the closed forms of memberships and factors.

A plain sweep finds the best subspace `Q` of the memberships for the present factors and then the
best factors for that `Q`. Here a sweep keeps a few directions more than it needs. With
:math:`Q_+ = [1/\sqrt M, u_1, \dots, u_{L-1+p}]` the contracted tensor :math:`T = Q_+^\top X` is
small, and the alternation runs on `T` until it settles, at no cost in passes over `X`. Then the
samples are read again to improve :math:`Q_+`. A sweep reads `X` twice, whatever happens inside,
and no step lowers the explained part h of the objective.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from tuckermix._array_api import Array, asarray_like, device, get_namespace
from tuckermix._records import StopReason
from tuckermix.decomposition.factors import leading_eigenvectors, update_factors
from tuckermix.decomposition.result import Decomposition, SweepRecord
from tuckermix.decomposition.subspace import Subspace, centre_rows, closed_form, ritz
from tuckermix.sources import Source
from tuckermix.tensor import mode_dot, multi_mode_dot, relative_error

__all__ = ["assemble", "constant_direction", "solve_exact"]

MIN_OVERSAMPLING = 8
MAX_OVERSAMPLING = 96
OVERSAMPLING = 2.0
"""Extra directions for each direction of the model, within the two limits. With twice as many, a
sweep gains about four digits on face images, where without any it gains a sixth of one; more cost
time in the products and gain no further sweep."""

INNER_LIMIT = 12
"""Most rounds on the contracted tensor: after that the extra directions are the limit."""

INNER_SHARE = 0.1
"""The rounds on the contracted tensor go on until they gain less than this share of `tol`."""

Callback = Callable[[SweepRecord], bool | None]


def solve_exact(
    source: Source,
    factors: Sequence[Array],
    n_components: int,
    *,
    max_iter: int,
    tol: float,
    directions: Array | None = None,
    callback: Callback | None = None,
) -> Decomposition:
    """Minimise the error over memberships, core and factors by closed forms.

    Parameters
    ----------
    source : Source
        The samples.
    factors : sequence of arrays of shape (d_n, r_n)
        Orthonormal factors to start from, in float64.
    n_components : int
        The number of components L, at most the number of samples.
    max_iter : int
        Most sweeps.
    tol : float
        Stop when the relative error falls by less than this in one sweep.
    directions : array of shape (product of r_n, k) or None, default=None
        A guess of the subspace of the projected samples.
    callback : callable or None, default=None
        Called with each record; a true return value stops the solver.

    Returns
    -------
    decomposition : Decomposition
        The factors, the optimal subspace for them, and the course of the iteration.
    """
    began = time.perf_counter()
    total = source.squared_norm
    n_directions = n_components - 1
    width = widened(n_directions)
    factors = list(factors)
    subspace = _first_subspace(source, factors, width, directions)
    history: list[SweepRecord] = []

    def record(explained: float) -> bool:
        error = relative_error(total, explained)
        entry = SweepRecord(
            iteration=len(history),
            cost=0.5 * max(0.0, total - explained) / source.scale**2,
            relative_error=error,
            gap=math.nan,
            time=time.perf_counter() - began,
        )
        history.append(entry)
        return bool(callback(entry)) if callback is not None else False

    stop = StopReason.MAX_ITER
    wanted_to_stop = record(_explained_by(subspace, n_directions))
    settled = all(factor.shape[0] == factor.shape[1] for factor in factors)
    for _ in range(max_iter):
        if wanted_to_stop:
            stop = StopReason.CALLBACK
            break
        T = source.contract(with_constant(subspace.coordinates))
        factors, basis = _settle(T, factors, n_directions, tol * INNER_SHARE)
        subspace = _read_again(source, factors, basis, width)
        wanted_to_stop = record(_explained_by(subspace, n_directions))
        if settled or _left_to_gain(history) <= tol:
            stop = StopReason.TOLERANCE
            break
    exact = closed_form(source.project(factors), n_directions, start=subspace.directions)
    return assemble(source, factors, exact, history, stop)


def assemble(
    source: Source,
    factors: list[Array],
    subspace: Subspace,
    history: list[SweepRecord],
    stop: StopReason,
) -> Decomposition:
    """Put the solution together in the units of the samples."""
    xp = get_namespace(source.like)
    scale = source.scale
    Q = with_constant(subspace.coordinates)
    mean_row = subspace.mean * (source.n_samples**0.5)
    rows = subspace.directions.T * subspace.singular_values[:, None]
    core = xp.concat([mean_row[None, :], rows], axis=0) / scale
    ranks = [factor.shape[1] for factor in factors]
    return Decomposition(
        factors=[asarray_like(factor, source.like) for factor in factors],
        Q=Q,
        core=asarray_like(xp.reshape(core, (Q.shape[1], *ranks)), source.like),
        mean=subspace.mean / scale,
        directions=subspace.directions,
        singular_values=subspace.singular_values / scale,
        memberships=None,
        cost=0.5 * max(0.0, source.squared_norm - subspace.explained) / scale**2,
        relative_error=relative_error(source.squared_norm, subspace.explained),
        gap=0.0,
        history=history,
        n_iter=max(1, len(history) - 1),
        stop_reason=stop,
    )


def constant_direction(n_samples: int, like: Array) -> Array:
    """Return the constant unit vector as a column."""
    xp = get_namespace(like)
    return xp.full((n_samples, 1), n_samples**-0.5, dtype=like.dtype, device=device(like))


def with_constant(coordinates: Array) -> Array:
    """Put the constant unit vector before orthonormal centred coordinates."""
    xp = get_namespace(coordinates)
    constant = constant_direction(coordinates.shape[0], coordinates)
    return xp.concat([constant, coordinates], axis=1)


def widened(n_directions: int) -> int:
    """Return how many directions a sweep keeps."""
    extra = round(OVERSAMPLING * n_directions)
    return n_directions + max(MIN_OVERSAMPLING, min(MAX_OVERSAMPLING, extra))


def _left_to_gain(history: list[SweepRecord]) -> float:
    """Estimate by how much further sweeps would lower the relative error.

    The last gain bounds it once sweeps converge; from the second sweep on, the ratio r of two
    gains tells more, for with linear convergence the gains still to come sum to g r / (1 - r).
    """
    gain = history[-2].relative_error - history[-1].relative_error
    if len(history) < 3 or gain <= 0.0:
        return max(0.0, gain)
    ratio = gain / (history[-3].relative_error - history[-2].relative_error)
    return gain * ratio / (1.0 - ratio) if 0.0 < ratio < 0.5 else gain


def _explained_by(subspace: Subspace, n_directions: int) -> float:
    """Return what the leading part of a wider subspace explains."""
    xp = get_namespace(subspace.singular_values)
    surplus = subspace.singular_values[min(n_directions, subspace.singular_values.shape[0]) :]
    return subspace.explained - float(xp.vecdot(surplus, surplus))


def _first_subspace(
    source: Source, factors: list[Array], width: int, directions: Array | None
) -> Subspace:
    """Find a wider subspace than needed for the factors at the start."""
    if directions is not None:
        return _read_again(source, factors, directions, width)
    return closed_form(source.project(factors), width)


def _read_again(source: Source, factors: list[Array], basis: Array, width: int) -> Subspace:
    """Improve the subspace by one pass over the samples: project on `basis`, take the best."""
    xp = get_namespace(source.like)
    n_features = math.prod(factor.shape[1] for factor in factors)
    if basis.shape[1] >= n_features:
        return closed_form(source.project(factors), width)
    Y, mean = centre_rows(source.project(factors, basis))
    fixed = source.n_samples * float(xp.vecdot(mean, mean))
    identity = xp.eye(basis.shape[1], dtype=xp.float64, device=device(basis))
    found = ritz(Y, identity, mean, fixed, width)
    return Subspace(
        xp.matmul(basis, found.mean),
        xp.matmul(basis, found.directions),
        found.singular_values,
        found.coordinates,
        found.explained,
    )


def _settle(
    T: Array, factors: list[Array], n_directions: int, tol: float
) -> tuple[list[Array], Array]:
    """Alternate on the contracted tensor until it gains no more.

    Parameters
    ----------
    T : array of shape (1 + width, d_1, ...)
        The samples contracted with the constant direction and `width` others.
    factors : list of arrays of shape (d_n, r_n)
        The present factors.
    n_directions : int
        How many of the `width` directions the model has.
    tol : float
        Gain of relative error, with respect to `T`, below which to stop.

    Returns
    -------
    factors : list of arrays of shape (d_n, r_n)
        Better factors.
    basis : array of shape (product of r_n, k)
        Orthonormal directions of the projected space: the mean and all directions of `T`.
    """
    xp = get_namespace(T)
    width = T.shape[0] - 1
    n_directions = min(n_directions, width)
    constant, moving = T[:1, ...], T[1:, ...]
    total = float(xp.sum(T * T))
    error, projected = math.inf, None
    for _ in range(INNER_LIMIT):
        small = multi_mode_dot(T, factors, transpose=True)
        projected = xp.reshape(small, (width + 1, -1))
        values, rotation = leading_eigenvectors(
            xp.matmul(projected[1:, :], projected[1:, :].T), width
        )
        explained = float(xp.vecdot(projected[0, :], projected[0, :])) + float(
            xp.sum(values[:n_directions])
        )
        gain, error = error - relative_error(total, explained), relative_error(total, explained)
        if gain <= tol:
            break
        chosen = mode_dot(moving, rotation[:, :n_directions].T, 0)
        factors = update_factors(xp.concat([constant, chosen], axis=0), factors)
    projected = xp.reshape(multi_mode_dot(T, factors, transpose=True), (width + 1, -1))
    return factors, _row_space(projected)


def _row_space(rows: Array) -> Array:
    """Return an orthonormal basis of the space of a few long rows."""
    xp = get_namespace(rows)
    if rows.shape[0] >= rows.shape[1]:
        return xp.eye(rows.shape[1], dtype=rows.dtype, device=device(rows))
    return xp.linalg.qr(rows.T, mode="reduced")[0]
