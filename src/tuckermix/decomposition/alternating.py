r"""The paper's solver: alternate a Riemannian trust region and the closed form of the factors.

The membership step minimises :math:`F(U) = -\tfrac12 \operatorname{tr}(B^\top P_U B)` over the
multinomial manifold for the projected samples `B`; the factor step is that of the exact solver,
with an orthonormal basis of the columns of `U` in place of the optimal one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tuckermix._array_api import Array, asarray_like, double, get_namespace, is_dask, to_numpy
from tuckermix._optional import require
from tuckermix._records import Record, StopReason
from tuckermix.decomposition.exact import closed_form, update_factors
from tuckermix.decomposition.result import Decomposition, Progress, Start, Subspace, assemble
from tuckermix.manifolds import FromPymanopt, Multinomial, to_pymanopt
from tuckermix.numerics import linalg
from tuckermix.numerics.simplex import regular_simplex
from tuckermix.numerics.tensor import multi_mode_dot
from tuckermix.objectives import MembershipObjective, TuckerObjective
from tuckermix.solvers import TrustRegionRecord, trust_region
from tuckermix.sources import Source

GRADIENT_SHARE = 1e-8
"""The trust region stops at a gradient of this share of the energy of the samples: the gap is
then near the rounding of the cost."""

REGAIN = 4.0
"""Factor on the radius from one call of the trust region to the next: room for it to grow where
the factors have changed, at the price of one rejected step where they have not."""


@dataclass(frozen=True)
class Recipe(Record):
    """How the trust region is called within the alternation.

    Attributes
    ----------
    first_iter, later_iter : int
        Iterations of the trust region in the first sweep and in each later one.
    max_inner : int
        Hessian products of an iteration.
    factor_loops : int
        How often a sweep goes through the factors.
    gradient_tol : float or None
        Norm of the gradient at which the trust region stops; None follows the energy of the data.
    preconditioned : bool
        Whether it uses the preconditioner of the objective.
    keeps_radius : bool
        Whether a call starts with the radius of the last one, within the diameter of the manifold;
        otherwise it starts as Manopt does, at an eighth of ``typical_dist``.
    starts_orthogonal : bool
        Whether the first record is that of the best orthonormal sample factor, with which a
        higher-order singular value decomposition comes, in place of the random memberships.
    """

    first_iter: int = 1000
    later_iter: int = 5
    max_inner: int = 30
    factor_loops: int = 2
    gradient_tol: float | None = None
    preconditioned: bool = True
    keeps_radius: bool = True
    starts_orthogonal: bool = False


PAPER = Recipe(gradient_tol=1e-6, preconditioned=False, keeps_radius=False, starts_orthogonal=True)
"""The experiments of the paper, section 5.3: Manopt's defaults with at most 30 inner iterations,
1000 iterations at first and 5 in each later call, the factors twice."""


@dataclass(frozen=True)
class Alternation(Record):
    """Where the alternation ended.

    Attributes
    ----------
    memberships : array of shape (n_samples, n_components)
        The mixing weights, in float64.
    factors : list of arrays of shape (d_n, r_n)
        The factors, in float64.
    B : array of shape (n_samples, product of r_n)
        The samples projected on the factors, in float64 and in units of the source.
    progress : Progress
        One record per sweep, the start first, and why it ended.
    """

    memberships: Array
    factors: list[Array]
    B: Array
    progress: Progress


def alternate(
    source: Source,
    start: Start,
    n_components: int,
    recipe: Recipe,
    *,
    memberships: Array | None = None,
) -> Alternation:
    """Alternate between memberships and factors.

    Parameters
    ----------
    source : Source
        The samples.
    start : Start
        Factors to start from, where the first memberships come from, and when to end.
    n_components : int
        The number of columns of the memberships.
    recipe : Recipe
        How the trust region is called.
    memberships : array of shape (n_samples, n_components) or None, default=None
        Where the memberships start; None means at a random point of the manifold.

    Returns
    -------
    alternation : Alternation
        The last memberships and factors.
    """
    progress = Progress(source, start.callback)
    factors = start.factors
    B = projected(source, factors)
    objective = MembershipObjective(B)
    manifold = Multinomial(source.n_samples, n_components)
    U = manifold.random_point(start.rng, like=B) if memberships is None else memberships
    least = GRADIENT_SHARE * max(source.squared_norm, float(np.finfo(float).tiny))
    max_radius = manifold.diameter if recipe.keeps_radius else None
    radius: float | None = None
    if recipe.starts_orthogonal:
        # What the best orthonormal sample factor explains, without any constraint on it.
        values = np.linalg.eigvalsh(to_numpy(B.T @ B))
        asked = progress.record(float(np.sum(np.clip(values[-n_components:], 0.0, None))))
    else:
        asked = progress.record(-2.0 * objective.cost(U), gap_if_cheap(objective, U))
    for sweep in range(start.max_iter):
        if asked:
            progress.stop = StopReason.CALLBACK
            break
        result = trust_region(
            objective,
            manifold,
            U,
            max_iter=recipe.later_iter if sweep else recipe.first_iter,
            max_inner=recipe.max_inner,
            tol=recipe.gradient_tol or least,
            max_radius=max_radius,
            initial_radius=radius,
            preconditioner=objective.preconditioner if recipe.preconditioned else None,
        )
        U = result.point
        if max_radius is not None:
            radius = min(max_radius, REGAIN * result.history[-1].radius)
        if result.stop_reason is not StopReason.INTERRUPTED:
            T = source.contract(orthonormal_columns(U))
            factors = update_factors(T, factors, n_loops=recipe.factor_loops)
            B = projected(source, factors)
            objective = MembershipObjective(B)
        asked = progress.record(-2.0 * objective.cost(U), gap_if_cheap(objective, U))
        if result.stop_reason is StopReason.INTERRUPTED:
            progress.stop = StopReason.INTERRUPTED
            break
        # The orthonormal factor of the first record fits better than any memberships can.
        comparable = sweep > 0 or not recipe.starts_orthogonal
        gain = progress.history[-2].relative_error - progress.history[-1].relative_error
        if comparable and gain <= start.tol:
            progress.stop = StopReason.TOLERANCE
            break
    return Alternation(U, factors, B, progress)


def solve_alternating(source: Source, start: Start, n_components: int) -> Decomposition:
    """Fit the model by the paper's alternation, with a preconditioned trust region.

    It differs from `PAPER` in what costs time and changes no result: the trust region is
    preconditioned, keeps its radius from sweep to sweep, and its tolerance follows the data.

    Parameters
    ----------
    source : Source
        The samples. Their projection is held in memory.
    start : Start
        Factors to start from, and when to end.
    n_components : int
        The number of components L, at most the number of samples. Fewer are fitted where the
        projected samples have a lower rank.

    Returns
    -------
    decomposition : Decomposition
        The factors and memberships, with the distance of the memberships from their optimum.
    """
    optimum = closed_form(projected(source, start.factors), n_components - 1)
    reached = alternate(source, start, optimum.Q.shape[1], Recipe())
    U, B = reached.memberships, reached.B
    return assemble(
        source,
        reached.factors,
        subspace_of(U, B, source.like),
        reached.progress,
        memberships=asarray_like(U, source.like),
    )


def subspace_of(U: Array, B: Array, like: Array) -> Subspace:
    """Return the column space of memberships as the exact solver gives its own.

    The basis is turned so that its columns belong to orthogonal directions of the projected space:
    ``Q[:, 1:].T @ B`` has orthogonal rows.

    Parameters
    ----------
    U : array of shape (n_samples, n_components)
        The memberships, in float64.
    B : array of shape (n_samples, n_projected)
        The projected samples, in float64.
    like : array
        An array of the floating type and device of the samples.

    Returns
    -------
    subspace : Subspace
        The subspace, with what the memberships explain.
    """
    xp = get_namespace(U)
    mean = xp.mean(B, axis=0)
    # Row sums of 1 make the centred columns dependent: one of the L directions is void.
    left = xp.linalg.svd(U - xp.mean(U, axis=0), full_matrices=False)[0][:, : U.shape[1] - 1]
    left = left - xp.mean(left, axis=0)
    turn, values, right = xp.linalg.svd(xp.matmul(left.T, B - mean), full_matrices=False)
    Q = asarray_like(linalg.with_constant(xp.matmul(left, turn)), like)
    return Subspace(mean, right.T, values, Q, -2.0 * MembershipObjective(B).cost(U))


def gap_if_cheap(objective: MembershipObjective, U: Array) -> float:
    """Return the gap of memberships for a record, NaN where the spectrum of B takes too long."""
    return objective.gap(U) if min(objective.B.shape) <= linalg.DENSE_SIDE else math.nan


def projected(source: Source, factors: Sequence[Array]) -> Array:
    """Return the projected samples in memory and in float64, which the derivatives need."""
    B: Any = source.project(factors)
    return double(B.compute() if is_dask(B) else B)


def orthonormal_columns(U: Array) -> Array:
    """Return an orthonormal basis of the columns of the memberships, the constant one first."""
    xp = get_namespace(U)
    left, values, _ = xp.linalg.svd(U - xp.mean(U, axis=0), full_matrices=False)
    noise = U.shape[0] * float(xp.finfo(U.dtype).eps)
    rank = int(xp.sum(xp.astype(values > noise * (1.0 + float(values[0])), xp.int64)))
    return linalg.with_constant(left[:, : min(rank, U.shape[1] - 1)])


FIRST_ROOM = 2.0
"""How much wider the first simplex is than it must be: room to turn before a weight gets small."""

JOINT_INNER = 50
"""Hessian products of an iteration. Preconditioned, the inner iteration seldom needs half."""


def solve_joint(source: Source, start: Start, n_components: int) -> Decomposition:
    """Fit the model over memberships and factors at once.

    The start is the optimum of the memberships for the given factors. An iteration is one of the
    trust region. All samples are held in memory, on the host.

    Parameters
    ----------
    source : Source
        The samples.
    start : Start
        Factors to start from, and when to end.
    n_components : int
        The number of components L, at most the number of samples. Fewer are fitted where the
        projected samples have a lower rank.

    Returns
    -------
    decomposition : Decomposition
        The factors and memberships, with the distance of the memberships from their optimum.
    """
    progress = Progress(source, start.callback)
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
            settled = before.relative_error - now.relative_error <= start.tol
        return settled

    result = trust_region(
        objective,
        product_manifold(U, bases),
        [U, *bases],
        max_iter=start.max_iter,
        max_inner=JOINT_INNER,
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
    reach = coordinates @ regular_simplex(n_components - 1).T
    farthest = -float(np.min(reach, initial=0.0))
    U = (1.0 + reach / (FIRST_ROOM * farthest if farthest > 0 else 1.0)) / n_components
    return U / U.sum(axis=1, keepdims=True)


def _samples(source: Source) -> np.ndarray:
    """Return all samples on the host, in float64 and in units of the source."""
    identities = [asarray_like(np.eye(size), source.like) for size in source.sample_shape]
    return to_numpy(projected(source, identities)).reshape(source.n_samples, *source.sample_shape)
