r"""The exact solver: alternate the closed forms of memberships and factors.

A plain sweep finds the best subspace `Q` of the memberships for the present factors and then the
best factors for that `Q`. Here a sweep keeps a few directions more than it needs. With
:math:`Q_+ = [1/\sqrt M, u_1, \dots, u_{L-1+p}]` the contracted tensor :math:`T = Q_+^\top X` is
small, and the alternation runs on `T` until it settles, at no cost in passes over `X`.

The centred samples projected on a basis of the directions, `Y`, give both the coordinates and
the contracted tensor: with :math:`Y^\top Y = E \Lambda E^\top` one has
:math:`u = Y E \Lambda^{-1/2}` and :math:`u^\top X = \Lambda^{-1/2} E^\top (Y^\top X)`. So a sweep
reads `X` once, nothing of the size of the samples is stored, and no step lowers the explained part
h of the objective. Sweeps whose steps point the same way go on by what two of them tell, as long as
that holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tuckermix._array_api import Array, asarray_like, epsilon, get_namespace, is_numpy, to_numpy
from tuckermix._estimators import Settings
from tuckermix._records import StopReason
from tuckermix.decomposition.result import (
    Decomposition,
    Progress,
    Start,
    Subspace,
    assemble,
    relative_error,
)
from tuckermix.numerics import linalg
from tuckermix.numerics.tensor import mode_dot, mode_gram, multi_mode_dot, squared_norm, unfold
from tuckermix.sources import Source
from tuckermix.sources.source import SKETCH_FLOOR

MIN_OVERSAMPLING = 8
OVERSAMPLING, MAX_OVERSAMPLING = 1.0, 16
LAZY_OVERSAMPLING, LAZY_MAX_OVERSAMPLING = 3.0, 32
"""Extra directions for each direction of the model, and most of them; more where it takes longer to
read the samples than to multiply them. With twice as many, a sweep gains three to four digits on
face images, where without any it gains half of one; with
three times as many, a model of ten components for all digits in a Dask array takes two sweeps in
place of three. Models of many components need fewer: with more than 16, some fits save a sweep, and
take as long.
"""

COLUMNS = 8
"""The number of directions is a multiple of this: products of matrices take columns by as many, and
32 of them take less time than 27."""

LEAST_OVERSTEP, MOST_OVERSTEP = 0.05, 1.0
"""How much further than it went a sweep may go, relative to its step: a smaller part is not worth
looking at, and more would trust too much in two steps."""


@dataclass(frozen=True)
class ExactSettings(Settings):
    """How the exact solver sweeps.

    Attributes
    ----------
    inner_limit : int
        Most rounds on the contracted tensor: after that the extra directions are the limit.
    few_projected : int
        Up to as many projected features LAPACK takes no longer than ten milliseconds for all
        principal directions, and hardly less for a part of them: labels look at all of them later
        on.
    resolved : float
        Relative growth of the captured energy at which passes with a narrow basis have converged.
    """

    inner_limit: int = 12
    few_projected: int = 384
    resolved: float = 1e-13


HOST_TENSOR = 2**18
"""A contracted tensor of an accelerator with at most this many entries is worked on by the host:
its rounds are dozens of tiny operations, and launching them takes longer than doing them."""


def solve_exact(source: Source, start: Start, n_components: int) -> Decomposition:
    """Minimise the error over memberships, core and factors by closed forms.

    Parameters
    ----------
    source : Source
        The samples.
    start : Start
        Factors to start from, and when to end.
    n_components : int
        The number of components L, at most the number of samples.

    Returns
    -------
    decomposition : Decomposition
        The factors, the subspace of the memberships, and the progress of the iteration.
    """
    progress = Progress(source, start.callback)
    n_directions = n_components - 1
    # What a part of the samples does not tell, one wide sweep repairs. From there on narrow ones
    # are as good, and the last of them is the solution.
    near = start.directions is not None and not source.lazy
    wide = replace(start, max_iter=1) if near else start
    factors, basis = sweep(progress, wide, n_directions)
    if source.lazy:
        subspace = subspace_by_passes(source, factors, n_directions, basis)
        progress.record(subspace.explained)
        return assemble(source, factors, subspace, progress)
    measured = None
    while True:
        rows = source.centred(factors)
        subspace = _best_subspace(*rows, n_directions, start=basis, every=not near)
        asked = progress.record(subspace.explained)
        ended = progress.stop is not StopReason.MAX_ITER or len(progress.history) > start.max_iter
        if ended or not near:
            break
        if asked:
            progress.stop = StopReason.CALLBACK
            break
        # One reading tells whether the factors can be improved and, if not, how good they are.
        measured = source.measure(factors, subspace.Q)
        T, total = measured.contracted, source.squared_norm
        better, basis, error = improve_within(T, factors, n_directions, total, start.tol)
        if gains_little(progress, error, start.tol):
            progress.stop = StopReason.TOLERANCE
            break
        factors, measured = better, None
    return assemble(source, factors, subspace, progress, measured=measured)


def sweep(progress: Progress, start: Start, n_directions: int) -> tuple[list[Array], Array]:
    """Alternate over all modes; return better factors and a basis of directions for them.

    Parameters
    ----------
    progress : Progress
        The samples, and where each reading of them is recorded.
    start : Start
        Factors, and perhaps directions, to start from, and when to end.
    n_directions : int
        The number of centred directions of the model, one less than that of its components.

    Returns
    -------
    factors : list of arrays of shape (d_n, r_n)
        The factors at the end.
    basis : array of shape (n_projected, k)
        Orthonormal directions of the projected samples, more than the model has.
    """
    source = progress.source
    factors, basis = list(start.factors), start.directions
    width = widened(n_directions, source.lazy)
    if basis is None and source.lazy:
        basis = _first_basis(source, factors, width)
    elif basis is None:
        basis = linalg.leading_directions(source.centred(factors)[0], width, rough=True)
    reached, step = math.inf, math.inf
    for left in reversed(range(start.max_iter)):
        T, energies = source.contracted(factors, basis)
        constant = squared_norm(multi_mode_dot(T[:1, ...], factors, transpose=True))
        if progress.record(constant + float(np.sum(energies[:n_directions]))):
            progress.stop = StopReason.CALLBACK
            break
        before, total = factors, source.squared_norm
        factors, basis, error = improve_within(T, before, n_directions, total, start.tol)
        # What the contracted tensor still yields is what another sweep would: no need to read the
        # samples once more to learn that it is little. In float32 the two errors differ by
        # rounding, so the gain over the last sweep's tensor counts as well.
        if gains_little(progress, error, start.tol, reached):
            progress.stop = StopReason.TOLERANCE
            break
        reached = error
        further, step = extrapolate_factors(before, factors, step)
        if left and further is not None:
            ahead = improve_within(T, further, n_directions, total, math.inf)
            if ahead[2] <= progress.history[-1].relative_error:
                factors, basis, _ = ahead
    return factors, basis


def widened(n_directions: int, lazy: bool = False) -> int:
    """Return how many directions a sweep keeps."""
    each, most = (
        (LAZY_OVERSAMPLING, LAZY_MAX_OVERSAMPLING) if lazy else (OVERSAMPLING, MAX_OVERSAMPLING)
    )
    width = n_directions + max(MIN_OVERSAMPLING, min(most, round(each * n_directions)))
    return -(-width // COLUMNS) * COLUMNS


def _first_basis(source: Source, factors: list[Array], width: int) -> Array:
    """Find directions of lazy samples to begin with."""
    n_features = math.prod(factor.shape[1] for factor in factors)
    if n_features > linalg.DENSE_SIDE:
        width = min(width, n_features)
        return linalg.random_basis(n_features, width, np.random.default_rng(0), source.mean)
    return subspace_by_passes(source, factors, width, None).directions


def gains_little(progress: Progress, error: float, tol: float, reached: float = math.inf) -> bool:
    """Tell whether another sweep would lower the relative error by no more than a tolerance.

    Parameters
    ----------
    progress : Progress
        The records so far.
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
    before = progress.history[-1].relative_error
    # The error is a root of a difference of sums, e = sqrt(1 - s), and s is good to about eps:
    # so e is good to eps / e, and errors below sqrt(eps) cannot be told from zero.
    eps = epsilon(progress.source.like)
    return min(before, reached) - error <= max(tol, 2.0 * eps / max(before, eps**0.5))


def improve_within(
    T: Array, factors: list[Array], n_directions: int, total: float, tol: float
) -> tuple[list[Array], Array, float]:
    """Alternate on the contracted tensor until it gains no more.

    Parameters
    ----------
    T : array of shape (1 + width, d_1, ...)
        The samples contracted with the constant direction and `width` others.
    factors : list of arrays of shape (d_n, r_n)
        The present factors.
    n_directions : int
        How many of the `width` directions the model has.
    total : float
        The squared norm of the samples.
    tol : float
        Gain of relative error below which to stop; infinity leaves the factors as they are.

    Returns
    -------
    factors : list of arrays of shape (d_n, r_n)
        Better factors.
    basis : array of shape (n_projected, k)
        Orthonormal directions of the projected space that hold all directions of `T`.
    error : float
        The relative error that the directions of `T` and the factors reach.
    """
    use = ExactSettings.current()
    if not is_numpy(T) and math.prod(T.shape) <= HOST_TENSOR:
        host = [to_numpy(factor) for factor in factors]
        found, basis, error = improve_within(to_numpy(T), host, n_directions, total, tol)
        return [asarray_like(factor, T) for factor in found], asarray_like(basis, T), error
    xp = get_namespace(T)
    constant, moving = T[:1, ...], T[1:, ...]
    error = math.inf
    for round_ in range(use.inner_limit + 1):
        small = multi_mode_dot(T, factors, transpose=True)
        projected = xp.reshape(small, (T.shape[0], math.prod(small.shape[1:])))
        gram = xp.matmul(projected[1:, :], projected[1:, :].T)
        values, vectors = linalg.leading_eigenvectors(gram, gram.shape[0])
        explained = squared_norm(projected[0, :]) + float(xp.sum(values[:n_directions]))
        gain, error = error - relative_error(total, explained), relative_error(total, explained)
        if gain <= tol or round_ == use.inner_limit:
            break
        chosen = mode_dot(moving, vectors[:, :n_directions].T, 0)
        factors = update_factors(xp.concat([constant, chosen], axis=0), factors)
    energies = to_numpy(values)
    keep = int(np.sum(energies > SKETCH_FLOOR * np.max(energies, initial=0.0)))
    basis = xp.matmul(projected[1:, :].T, vectors[:, :keep] / xp.sqrt(values[:keep]))
    return factors, basis, error


def extrapolate_factors(
    before: Sequence[Array], after: Sequence[Array], last: float
) -> tuple[list[Array] | None, float]:
    r"""Go on where factors went in a sweep, as far as later sweeps would.

    Steps that become shorter by a factor :math:`\rho` from one sweep to the next add up to
    :math:`\rho / (1 - \rho)` times the present one (Aitken's extrapolation).

    Parameters
    ----------
    before, after : sequences of arrays of shape (d_n, r_n)
        The factors before and after a sweep.
    last : float
        The length of the step before this one, infinity where there was none.

    Returns
    -------
    further : list of arrays of shape (d_n, r_n) or None
        Orthonormal factors beyond `after`; None where that is not worth while.
    step : float
        How far this goes from `before`.
    """
    starts, ends = ([to_numpy(factor) for factor in factors] for factors in (before, after))
    for mode, (old, new) in enumerate(zip(starts, ends, strict=True)):
        # Only the span counts: take the columns that come nearest to the old ones.
        left, _, right = np.linalg.svd(new.T @ old)
        ends[mode] = new @ (left @ right)
    moves = [new - old for old, new in zip(starts, ends, strict=True)]
    step = math.sqrt(sum(float(np.vdot(move, move)) for move in moves))
    # At a half and beyond, the sum is as long as the step or longer.
    shrink = min(step / last, 0.5) if last > 0.0 else 0.0
    share = min(MOST_OVERSTEP, shrink / (1.0 - shrink))
    if share < LEAST_OVERSTEP:
        return None, step
    ahead = (new + share * move for new, move in zip(ends, moves, strict=True))
    further = [asarray_like(linalg.orthonormal_basis(factor), after[0]) for factor in ahead]
    return further, (1.0 + share) * step


def update_factors(T: Array, factors: Sequence[Array], *, n_loops: int = 1) -> list[Array]:
    r"""Improve each factor with the others fixed.

    The best factor of mode n spans the leading left singular vectors of the mode-n unfolding of
    the contracted data `T` projected on the other factors, which are the leading eigenvectors of

    .. math:: S_n = B_n B_n^\top, \quad B_n = \bigl(T \times_{m \ne n} U_m^\top\bigr)_{(n)} .

    This is what the paper's equation (6) stands for.

    Parameters
    ----------
    T : array of shape (n_components, d_1, ...)
        The samples contracted with an orthonormal basis of the memberships.
    factors : sequence of arrays of shape (d_n, r_n)
        The present factors.
    n_loops : int, default=1
        How often to go through all modes.

    Returns
    -------
    factors : list of arrays of shape (d_n, r_n)
        The new factors.
    """
    new = list(factors)
    n_modes = len(new)
    for _ in range(n_loops if n_modes > 1 else 1):
        for mode in range(n_modes):
            if new[mode].shape[0] == new[mode].shape[1]:
                continue  # a square factor spans its mode whatever it is
            others = [None if other == mode else new[other] for other in range(n_modes)]
            B = multi_mode_dot(T, others, transpose=True)
            size, rank = new[mode].shape
            if math.prod(B.shape) < size**2:  # a long mode: the other side is shorter
                new[mode] = linalg.leading_left_vectors(unfold(B, mode + 1), rank)
            else:
                new[mode] = linalg.leading_eigenvectors(mode_gram(B, mode + 1), rank)[1]
    return new


def closed_form(B: Array, n_directions: int, *, start: Array | None = None) -> Subspace:
    r"""Find the best subspace of the memberships for given projected samples.

    With :math:`\mu` the mean row, the largest value of
    :math:`\tfrac12 \operatorname{tr}(B^\top P_U B)` over all memberships with L columns is

    .. math:: h^* = \tfrac12 \Bigl( M \|\mu\|^2 + \sum_{k < L} \sigma_k^2 \Bigr),

    reached exactly where the columns of the memberships span the constant vector and the L - 1
    leading left singular vectors of the centred rows (see the page on the method).

    Parameters
    ----------
    B : array of shape (n_samples, n_projected)
        The projected samples as rows; overwritten.
    n_directions : int
        How many centred directions to find, one less than the number of components. Fewer come
        back where the rank of the centred rows is lower.
    start : array of shape (n_projected, k) or None, default=None
        Directions from which an iteration starts, such as those of the last sweep.

    Returns
    -------
    subspace : Subspace
        The optimum.
    """
    return _best_subspace(*linalg.centre_rows(B), n_directions, start=start)


def _best_subspace(
    B: Array, mean: Array, n_directions: int, *, start: Array | None = None, every: bool = False
) -> Subspace:
    """Do what `closed_form` does with rows whose mean has been subtracted.

    With `every`, all principal directions come along where they are found as soon as a few.
    """
    xp, (n_samples, n_projected) = get_namespace(B), B.shape
    fixed = n_samples * float(xp.vecdot(mean, mean))
    axes = None
    if every and n_projected <= min(ExactSettings.current().few_projected, n_samples):
        axes = linalg.leading_directions(B, n_projected)
        basis = axes[:, : min(n_directions + linalg.EXTRA_DIRECTIONS, axes.shape[1])]
    else:
        basis = linalg.leading_directions(B, n_directions, start=start)
    rows, gram, _ = linalg.summed_times(B, basis)
    rows, total, turn, sigma, right = linalg.tall_factors(rows, gram)
    host = to_numpy(sigma)
    norm = (fixed + float(np.max(host, initial=0.0)) ** 2) ** 0.5
    rank = min(n_directions, linalg.rank_of(host, norm, epsilon(B)))
    sigma = sigma[:rank]
    directions = xp.matmul(basis, right[:, :rank])
    signs = linalg.signs_of(directions)
    directions = directions * signs
    turn = turn[:, :rank] * signs
    # Rounding leaves a trace of the constant vector, which the theorem needs orthogonal.
    trace = asarray_like(xp.matmul(total / n_samples, turn), B)
    Q = linalg.times(rows, turn, lambda part: linalg.with_constant(part - trace, n_samples))
    return Subspace(mean, directions, sigma, Q, fixed + float(xp.vecdot(sigma, sigma)), axes)


def subspace_by_passes(
    source: Source, factors: Sequence[Array], n_directions: int, start: Array | None
) -> Subspace:
    """Find the subspace of `closed_form` from sums over the samples, with a lazy basis.

    One pass gives the Gram matrix of the projected samples. Where that is too large, passes with
    a narrow basis converge to its leading directions instead.

    Parameters
    ----------
    source : Source
        The samples, in a Dask array.
    factors : sequence of arrays of shape (d_n, r_n)
        Orthonormal factors.
    n_directions : int
        How many centred directions to find.
    start : array of shape (n_projected, k) or None
        Directions from which the passes start; needed where there are many.

    Returns
    -------
    subspace : Subspace
        The optimum.
    """
    use = ExactSettings.current()
    xp = get_namespace(source.mean)
    n_features = math.prod(factor.shape[1] for factor in factors)
    if n_features <= linalg.DENSE_SIDE:
        basis = asarray_like(np.eye(n_features), source.mean)
    else:
        assert start is not None
        basis, captured = start, 0.0
        for _ in range(linalg.KRYLOV_LIMIT):
            T, energies = source.contracted(factors, basis)
            if float(np.sum(energies[:n_directions])) <= captured * (1 + use.resolved):
                break
            captured = float(np.sum(energies[:n_directions]))
            rows = multi_mode_dot(T[1:, ...], list(factors), transpose=True)
            basis = linalg.orthonormal_basis(xp.reshape(rows, (rows.shape[0], n_features)).T)
    gram = source.sketch(factors, basis, cross=False).gram
    values, vectors = linalg.leading_eigenvectors(gram, min(n_directions, gram.shape[0]))
    mean = multi_mode_dot(source.mean[None, ...], list(factors), transpose=True)
    mean = xp.reshape(mean, (n_features,))
    fixed = source.n_samples * float(xp.vecdot(mean, mean))
    host = np.sqrt(np.clip(to_numpy(values), 0.0, None))
    # Squares were summed, so what lies below the root of the rounding is noise.
    floor = (n_features * epsilon(source.mean)) ** 0.5
    rank = int(np.sum(host > floor * (fixed + float(np.sum(host**2))) ** 0.5))
    sigma = asarray_like(host[:rank], source.mean)
    directions = xp.matmul(basis, vectors[:, :rank])
    directions = directions * linalg.signs_of(directions)
    whiten = directions / sigma
    offset = asarray_like(xp.matmul(mean, whiten), source.like)
    rows = source.project(factors, whiten)
    n_samples, chunks = source.n_samples, (rows.chunks[0], (1 + rank,))
    Q = rows.map_blocks(  # the function goes to every worker, so that it holds small things only
        lambda part: linalg.with_constant(part - offset, n_samples),
        chunks=chunks,
        dtype=rows.dtype,
        meta=rows._meta,
    )
    return Subspace(mean, directions, sigma, Q, fixed + float(xp.vecdot(sigma, sigma)))
