r"""The exact solver: alternate the closed forms of memberships and factors.

A plain sweep finds the best subspace `Q` of the memberships for the present factors and then the
best factors for that `Q`. Here a sweep keeps a few directions more than it needs. With
:math:`Q_+ = [1/\sqrt M, u_1, \dots, u_{L-1+p}]` the contracted tensor :math:`T = Q_+^\top X` is
small, and the alternation runs on `T` until it settles, at no cost in passes over `X`.

The centred samples projected on a basis of the directions, `Y`, give both the coordinates and
the contracted tensor: with :math:`Y^\top Y = E \Lambda E^\top` one has
:math:`u = Y E \Lambda^{-1/2}` and :math:`u^\top X = \Lambda^{-1/2} E^\top (Y^\top X)`. So a sweep
reads `X` once, nothing of the size of the samples is stored, and no step lowers the explained part
h of the objective.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from tuckermix._array_api import (
    Array,
    asarray_like,
    device,
    epsilon,
    get_namespace,
    is_dask,
    to_numpy,
)
from tuckermix._records import StopReason
from tuckermix.decomposition.contracted import contracted, row_space, settle
from tuckermix.decomposition.factors import leading_eigenvectors, signs_of
from tuckermix.decomposition.result import Decomposition, SweepRecord
from tuckermix.decomposition.subspace import (
    DENSE_SIDE,
    KRYLOV_LIMIT,
    Subspace,
    closed_form,
    rough_directions,
)
from tuckermix.sources import Source, as_blocks
from tuckermix.tensor import multi_mode_dot, relative_error, squared_norm

__all__ = ["Sweeps", "assemble", "optimal_subspace", "solve_exact", "with_constant"]

MIN_OVERSAMPLING = 8
MAX_OVERSAMPLING = 96
OVERSAMPLING = 2.0
"""Extra directions for each direction of the model, within the two limits. With twice as many, a
sweep gains three to four digits on face images, where without any it gains half of one
(`python -m benchmarks.bench_sweeps`); more cost time in the products and save no sweep.
"""

INNER_SHARE = 0.1
"""The rounds on the contracted tensor go on until they gain less than this share of `tol`."""

RESOLVED = 1e-13
"""Relative growth of the captured energy at which passes with a narrow basis have converged."""

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
    n_directions = n_components - 1
    sweeps = Sweeps(source, n_directions, tol, callback)
    factors, basis = sweeps.run(factors, directions, max_iter)
    subspace = optimal_subspace(source, factors, n_directions, basis)
    sweeps.record(subspace.explained)
    return assemble(source, factors, subspace, sweeps.history, sweeps.stop)


class Sweeps:
    """The alternation over all modes, and its course.

    Parameters
    ----------
    source : Source
        The samples.
    n_directions : int
        The number of centred directions of the model, one less than that of its components.
    tol : float
        Stop when a sweep would lower the relative error by less than this.
    callback : callable or None, default=None
        Called with each record; a true return value ends the sweeps.

    Attributes
    ----------
    history : list of SweepRecord
        One record for each reading of the samples.
    stop : StopReason
        Why the sweeps ended.
    """

    def __init__(
        self, source: Source, n_directions: int, tol: float, callback: Callback | None = None
    ):
        self._source, self._n_directions, self._tol = source, n_directions, tol
        self._callback = callback
        self._began = time.perf_counter()
        self.history: list[SweepRecord] = []
        self.stop = StopReason.MAX_ITER

    def record(self, explained: float) -> bool:
        """Note what the present solution explains; return whether the callback asks to stop."""
        total = self._source.squared_norm
        entry = SweepRecord(
            iteration=len(self.history),
            cost=self._source.cost_of(total - explained),
            relative_error=relative_error(total, explained),
            gap=math.nan,
            time=time.perf_counter() - self._began,
        )
        self.history.append(entry)
        asked_already = self.stop is StopReason.CALLBACK
        return self._callback is not None and not asked_already and bool(self._callback(entry))

    def run(
        self, factors: Sequence[Array], basis: Array | None, max_iter: int
    ) -> tuple[list[Array], Array]:
        """Sweep from given factors; return better ones and a basis of directions for them.

        Parameters
        ----------
        factors : sequence of arrays of shape (d_n, r_n)
            Orthonormal factors, in float64.
        basis : array of shape (product of r_n, k) or None
            A guess of the directions of the projected samples.
        max_iter : int
            Most sweeps.

        Returns
        -------
        factors : list of arrays of shape (d_n, r_n)
            The factors at the end.
        basis : array of shape (product of r_n, k)
            Orthonormal directions of the projected samples, more than the model has.
        """
        source, n_directions = self._source, self._n_directions
        factors = list(factors)
        if basis is None:
            basis = _first_basis(source, factors, widened(n_directions))
        reached = math.inf
        for _ in range(max_iter):
            T, energies = contracted(source, factors, basis)
            explained = _energy_of_mean(source, factors) + float(np.sum(energies[:n_directions]))
            if self.record(explained):
                self.stop = StopReason.CALLBACK
                break
            before = self.history[-1].relative_error
            factors, basis, error = settle(
                T, factors, n_directions, source.squared_norm, self._tol * INNER_SHARE
            )
            # What the contracted tensor still yields is what another sweep would: no need to
            # read the samples once more to learn that it is little. In float32 the two errors
            # differ by rounding, so the gain over the last sweep's tensor counts as well.
            gain = min(before, reached) - error
            if gain <= max(self._tol, _resolution(before, epsilon(source.like))):
                self.stop = StopReason.TOLERANCE
                break
            reached = error
        return factors, basis


def optimal_subspace(
    source: Source, factors: Sequence[Array], n_directions: int, start: Array | None = None
) -> Subspace:
    """Find the subspace of the theorem for the samples projected on given factors.

    Parameters
    ----------
    source : Source
        The samples.
    factors : sequence of arrays of shape (d_n, r_n)
        Orthonormal factors.
    n_directions : int
        How many centred directions to find.
    start : array of shape (product of r_n, k) or None, default=None
        Directions from which an iteration may start.

    Returns
    -------
    subspace : Subspace
        The optimum; its coordinates are a Dask array where the source is lazy.
    """
    if source.lazy:
        return _subspace_by_passes(source, factors, n_directions, start)
    return closed_form(source.project(factors), n_directions, start=start)


def _subspace_by_passes(
    source: Source, factors: Sequence[Array], n_directions: int, start: Array | None
) -> Subspace:
    """Find the subspace from sums over the samples, with lazy coordinates.

    One pass gives the Gram matrix of the projected samples. Where that is too large, passes with
    a narrow basis converge to its leading directions instead.
    """
    xp = get_namespace(source.mean)
    n_features = math.prod(factor.shape[1] for factor in factors)
    width = min(n_features, source.n_samples - 1, widened(n_directions))
    if n_features <= DENSE_SIDE:
        basis = xp.eye(n_features, dtype=xp.float64, device=device(source.mean))
        gram = source.sketch(factors, basis, cross=False).gram
    else:
        basis = _random_basis(source, n_features, width) if start is None else start
        captured = 0.0
        for _ in range(KRYLOV_LIMIT):
            T, energies = contracted(source, factors, basis)
            if float(np.sum(energies[:n_directions])) <= captured * (1 + RESOLVED):
                break
            captured = float(np.sum(energies[:n_directions]))
            rows = multi_mode_dot(T[1:, ...], list(factors), transpose=True)
            basis = row_space(xp.reshape(rows, (rows.shape[0], n_features)))
        gram = source.sketch(factors, basis, cross=False).gram
    values, vectors = leading_eigenvectors(gram, min(n_directions, gram.shape[0]))
    fixed = _energy_of_mean(source, factors)
    mean = multi_mode_dot(source.mean[None, ...], list(factors), transpose=True)
    mean = xp.reshape(mean, (n_features,))
    host = np.sqrt(np.clip(to_numpy(values), 0.0, None))
    # Squares were summed, so what lies below the root of the rounding is noise.
    floor = (n_features * epsilon(source.mean)) ** 0.5
    rank = int(np.sum(host > floor * (fixed + float(np.sum(host**2))) ** 0.5))
    sigma = asarray_like(host[:rank], source.mean)
    directions = xp.matmul(basis, vectors[:, :rank])
    directions = directions * signs_of(directions)
    whiten = directions / sigma
    offset = asarray_like(xp.matmul(mean, whiten), source.like)
    rows = source.project(factors, whiten)
    coordinates = rows.map_blocks(_subtract, offset, dtype=rows.dtype, meta=rows._meta)
    explained = fixed + float(xp.vecdot(sigma, sigma))
    return Subspace(mean, directions, sigma, coordinates, explained)


def _subtract(rows: Array, offset: Array) -> Array:
    return rows - offset


def _random_basis(source: Source, n_features: int, width: int) -> Array:
    rng = np.random.default_rng(0)
    guess = np.linalg.qr(rng.standard_normal((n_features, width)))[0]
    return asarray_like(guess, source.mean)


def assemble(
    source: Source,
    factors: list[Array],
    subspace: Subspace,
    history: list[SweepRecord],
    stop: StopReason,
) -> Decomposition:
    """Put the solution together in the units of the samples."""
    xp = get_namespace(subspace.mean)
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
        cost=source.cost_of(source.squared_norm - subspace.explained),
        relative_error=relative_error(source.squared_norm, subspace.explained),
        gap=0.0,
        history=history,
        n_iter=max(1, len(history) - 1),
        stop_reason=stop,
    )


def with_constant(coordinates: Array) -> Array:
    """Put the constant unit vector before orthonormal centred coordinates."""
    function = partial(_with_constant_block, n_samples=coordinates.shape[0])
    if coordinates.shape[1] == 0 and not is_dask(coordinates):
        return function(coordinates)
    return as_blocks(coordinates).map(function)


def _with_constant_block(block: Array, n_samples: int) -> Array:
    xp = get_namespace(block)
    constant = xp.full(
        (block.shape[0], 1), n_samples**-0.5, dtype=block.dtype, device=device(block)
    )
    return xp.concat([constant, block], axis=1)


def widened(n_directions: int) -> int:
    """Return how many directions a sweep keeps."""
    extra = round(OVERSAMPLING * n_directions)
    return n_directions + max(MIN_OVERSAMPLING, min(MAX_OVERSAMPLING, extra))


def _resolution(error: float, eps: float) -> float:
    """Return the least change of a relative error that rounding does not hide.

    The error is a root of a difference of sums, e = sqrt(1 - s), and s is good to about eps: so e
    is good to eps / e, and errors below sqrt(eps) cannot be told from zero.
    """
    return 2.0 * eps / max(error, eps**0.5)


def _first_basis(source: Source, factors: list[Array], width: int) -> Array:
    """Find directions of the projected samples to begin with."""
    if not source.lazy:
        return rough_directions(source.project(factors), width)
    n_features = math.prod(factor.shape[1] for factor in factors)
    if n_features > DENSE_SIDE:
        return _random_basis(source, n_features, min(n_features, width))
    return _subspace_by_passes(source, factors, width, None).directions


def _energy_of_mean(source: Source, factors: Sequence[Array]) -> float:
    """Return the part of the explained squared norm that the mean sample contributes."""
    projected = multi_mode_dot(source.mean[None, ...], list(factors), transpose=True)
    return source.n_samples * squared_norm(projected)
