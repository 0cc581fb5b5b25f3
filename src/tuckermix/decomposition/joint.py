r"""All modes at once: a trust region on the product of Grassmann and multinomial manifolds.

This is what the paper leaves for future work. The factors live on Grassmann rather than Stiefel
manifolds: the explained part of the data depends on the span of a factor only, so that on a
Stiefel manifold every solution would come with a rotation for each mode along which the objective
is flat and its Hessian singular. The trust region is the package's own; Pymanopt contributes the
Grassmann manifold and the product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tuckermix._array_api import asarray_like, double, get_namespace, is_dask, to_numpy
from tuckermix._optional import require
from tuckermix._records import StopReason
from tuckermix.decomposition.alternating import GRADIENT_SHARE, gap_if_cheap, subspace_of
from tuckermix.decomposition.exact import closed_form
from tuckermix.decomposition.result import Callback, Decomposition, Progress, Start, assemble
from tuckermix.manifolds import FromPymanopt, Multinomial, to_pymanopt
from tuckermix.numerics.simplex import regular_simplex
from tuckermix.numerics.tensor import multi_mode_dot
from tuckermix.objectives import MembershipObjective, TuckerObjective
from tuckermix.solvers import TrustRegionRecord, trust_region
from tuckermix.sources import Source

ROOM = 2.0
"""How much wider the first simplex is than it must be: room to turn before a weight gets small."""

MAX_INNER = 50
"""Hessian products of an iteration. Preconditioned, the inner iteration seldom needs half."""


def solve_joint(
    source: Source,
    start: Start,
    n_components: int,
    *,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
) -> Decomposition:
    """Fit the model over memberships and factors at once.

    The start is the optimum of the memberships for the given factors. An iteration is one of the
    trust region. All samples are held in memory, on the host.

    Parameters
    ----------
    source : Source
        The samples.
    start : Start
        Factors to start from.
    n_components : int
        The number of components L, at most the number of samples. Fewer are fitted where the
        projected samples have a lower rank.
    max_iter : int
        Most iterations.
    tol : float
        Stop when a full step lowers the relative error by less than this.
    callback : callable or None, default=None
        Called with each record; a true return value stops the solver.

    Returns
    -------
    decomposition : Decomposition
        The factors and memberships, with the distance of the memberships from their optimum.
    """
    progress = Progress(source, callback)
    X = _samples(source)
    bases = [to_numpy(factor) for factor in start.factors]
    rows = multi_mode_dot(X, bases, transpose=True).reshape(X.shape[0], -1)
    U = enclosing_memberships(closed_form(rows, n_components - 1).Q[:, 1:])
    objective = TuckerObjective(X)
    settled = False

    def watch(entry: TrustRegionRecord) -> bool:
        nonlocal settled
        if progress.record(-2.0 * entry.cost):
            return True
        # A rejected step, or one cut short by the radius, says nothing about what is left to gain.
        full = entry.inner_stop is not None and not entry.inner_stop.at_boundary
        if full and entry.accepted:
            before, now = progress.history[-2:]
            settled = before.relative_error - now.relative_error <= tol
        return settled

    result = trust_region(
        objective,
        product_manifold(U, bases),
        [U, *bases],
        max_iter=max_iter,
        max_inner=MAX_INNER,
        tol=GRADIENT_SHARE * max(source.squared_norm, float(np.finfo(float).tiny)),
        max_radius=Multinomial(*U.shape).diameter,
        preconditioner=objective.preconditioner,
        callback=watch,
    )
    progress.stop = StopReason.TOLERANCE if settled else result.stop_reason
    U, *bases = result.point
    B = multi_mode_dot(X, bases, transpose=True).reshape(X.shape[0], -1)
    gap = gap_if_cheap(MembershipObjective(B), U)
    dtype = get_namespace(source.like).float64
    U, B, *bases = (asarray_like(array, source.like, dtype=dtype) for array in (U, B, *bases))
    memberships = asarray_like(U, source.like)
    subspace = subspace_of(U, B, source.like)
    if not progress.history:  # interrupted before the start was looked at
        progress.record(subspace.explained)
    progress.history[-1] = replace(progress.history[-1], gap=gap)
    return assemble(source, bases, subspace, progress, memberships=memberships)


def product_manifold(U: np.ndarray, factors: Sequence[np.ndarray]) -> FromPymanopt:
    """Return the product of the multinomial manifold and a Grassmann manifold for each factor.

    Parameters
    ----------
    U : ndarray of shape (n_samples, n_components)
        Memberships, for their shape.
    factors : sequence of ndarray of shape (d_n, r_n)
        Factors, for their shapes.

    Returns
    -------
    manifold : FromPymanopt
        With points ``[U, U_1, ...]``.
    """
    manifolds = require("pymanopt.manifolds", 'solver="joint"', "pymanopt")
    grassmann = [manifolds.Grassmann(*factor.shape) for factor in factors]
    return FromPymanopt(manifolds.Product([to_pymanopt(Multinomial(*U.shape)), *grassmann]))


def enclosing_memberships(coordinates: np.ndarray) -> np.ndarray:
    r"""Return the weights of samples in a regular simplex that holds all of them.

    .. math:: U = \tfrac1L \bigl(1 + \tfrac1R Z A^\top\bigr)

    with unit vectors A from the centre to the vertices and R larger than needed for U > 0. Their
    columns span those of [1 | Z], so that they are optimal where Z is.

    Parameters
    ----------
    coordinates : ndarray of shape (n_samples, n_components - 1)
        The samples Z in the space of the simplex, centred.

    Returns
    -------
    U : ndarray of shape (n_samples, n_components)
        Positive rows that sum to one.
    """
    n_components = coordinates.shape[1] + 1
    directions = regular_simplex(n_components - 1)
    reach = coordinates @ directions.T
    farthest = -float(np.min(reach, initial=0.0))
    U = (1.0 + reach / (ROOM * farthest if farthest > 0 else 1.0)) / n_components
    return U / U.sum(axis=1, keepdims=True)


def _samples(source: Source) -> np.ndarray:
    """Return all samples on the host, in float64 and in units of the source."""
    identities = [asarray_like(np.eye(size), source.like) for size in source.sample_shape]
    rows: Any = source.project(identities)
    rows = to_numpy(double(rows.compute() if is_dask(rows) else rows))
    return rows.reshape(source.n_samples, *source.sample_shape)
