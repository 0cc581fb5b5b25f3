r"""Samples with gaps: fill them by the model, fit the model to what was filled, in turn.

The fit of filled samples is a projection :math:`\hat x = \mu + D D^\top (x - \mu)`. Filling gaps
with it and fitting again lowers the error over the observed entries at every turn (it is the EM
algorithm of probabilistic principal components, here with Tucker factors). Three things keep it
from believing what it filled: the number of directions grows from two up, as long as entries that
were hidden are predicted better; each direction is shrunk by the share of noise in it,

.. math:: d_k = \frac{\sigma_k^2 - \nu}{\sigma_k^2} ,

:math:`\nu` the energy of the error in one direction; and the turns are accelerated by momentum only
while the hidden entries agree. Entries are hidden where other samples have gaps, so that rows or
blocks are judged as rows or blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuckermix._array_api import (
    Array,
    asarray_like,
    device,
    double,
    get_namespace,
    is_dask,
    to_numpy,
)
from tuckermix._records import Record
from tuckermix.decomposition.exact import solve_exact
from tuckermix.decomposition.fit import ranks_from_energy, start_factors
from tuckermix.decomposition.result import Decomposition, Start
from tuckermix.numerics.tensor import multi_mode_dot
from tuckermix.sources import as_source

__all__ = ["Imputation", "fill_gaps", "impute", "ridge_of", "split_gaps"]

HIDDEN_SHARE = 0.1
"""Share of the samples of which entries are hidden to judge the model."""

HIDDEN_ENTRIES = 0.05
"""Share of entries hidden where all samples have the same gaps, and no pattern can be borrowed."""

FIRST_DIRECTIONS = 2
GROWTH = 2
"""Directions at first, and by how much their number grows: between doublings a few turns suffice,
because what is missing of the leading directions was filled before."""

MAX_TURNS = 20
"""Most turns for one number of directions."""

GAIN = 0.01
"""A number of directions is left when a turn lowers the error by less than this share."""

WORSE = 1.02
"""More directions are not tried when the error is this much above the least."""

LAST_TURNS = 3
"""Turns at the end, with the hidden entries given back."""

MAX_SOLVER_STEPS = 60
SOLVED = 1e-8
"""Limits of the conjugate gradients that fill new samples: steps, and the share of the first
residual that may be left. With half of the entries observed they converge in a dozen steps."""


@dataclass(frozen=True)
class Imputation(Record):
    """How well gaps were filled.

    Attributes
    ----------
    n_missing : int
        The number of entries that were missing.
    n_hidden : int
        The number of observed entries that were hidden to judge the model.
    held_out_error : float
        The root mean squared error at the hidden entries.
    held_out_error_of_means : float
        The same if they are filled with the mean of the other samples' entries in their place.
    n_directions : int
        How many directions predict the hidden entries best.
    n_turns : int
        How often the gaps were filled.
    ranks : tuple of int
        The ranks of the factors. Those of the filled samples alone would be lower: what was filled
        has less detail than what was observed, and gaps would then be filled with less still.
    """

    n_missing: int
    n_hidden: int
    held_out_error: float
    held_out_error_of_means: float
    n_directions: int
    n_turns: int
    ranks: tuple[int, ...]


def split_gaps(X: Any, owner: str) -> tuple[Any, Array | None]:
    """Tell observed entries from gaps: NaN, and what a NumPy mask covers.

    Parameters
    ----------
    X : array of shape (n_samples, d_1, ...)
        The samples.
    owner : str
        Who asks, for messages.

    Returns
    -------
    X : array of shape (n_samples, d_1, ...)
        The samples, with zeros in the gaps.
    observed : array of bool of shape (n_samples, d_1, ...) or None
        Where entries are observed; None where all are.
    """
    if is_dask(X):
        raise TypeError(
            f"{owner} with missing='impute' needs the samples in memory, but X is a Dask array: "
            "call X.compute() first, or fill its gaps chunk by chunk with a fitted model."
        )
    covered = None
    if isinstance(X, np.ma.MaskedArray):
        covered, X = np.ma.getmaskarray(X), X.filled(0)
    if not hasattr(X, "dtype") or hasattr(X, "iloc"):
        X = np.asarray(X)
    xp = get_namespace(X)
    if not xp.isdtype(X.dtype, "real floating"):
        return X, None if covered is None or not covered.any() else ~covered
    gaps = xp.isnan(X)
    if covered is not None:
        gaps = gaps | covered
    if not bool(xp.any(gaps)):
        return X, None
    flat = xp.reshape(gaps, (X.shape[0], -1))
    empty = to_numpy(xp.all(flat, axis=1))
    if empty.any():
        raise ValueError(
            f"Sample {int(np.argmax(empty))} has no observed entry, and {int(empty.sum())} such "
            f"samples in all: {owner} cannot place them. Leave them out."
        )
    return xp.where(gaps, xp.zeros_like(X), X), ~gaps


def impute(
    X: Array,
    observed: Array,
    n_components: int,
    ranks: tuple[int, ...] | float | None,
    rng: np.random.Generator,
) -> tuple[Array, Imputation]:
    """Fill the gaps of samples by the model that predicts hidden entries best.

    Parameters
    ----------
    X : array of shape (n_samples, d_1, ...)
        The samples; what stands in the gaps does not matter.
    observed : array of bool of shape (n_samples, d_1, ...)
        Where entries are observed.
    n_components : int
        The most components.
    ranks : tuple of int or float
        The ranks of the factors, or the share of the energy of each mode to keep.
    rng : numpy.random.Generator
        The source of randomness.

    Returns
    -------
    filled : array of shape (n_samples, d_1, ...)
        The samples without gaps.
    imputation : Imputation
        How well it went.
    """
    xp = get_namespace(X)
    hidden = asarray_like(_hidden(to_numpy(observed), rng), observed, dtype=observed.dtype)
    known = observed & ~hidden
    turns = _Turns(X, known, hidden, ranks, rng)
    means = turns.error(turns.filled)
    most = max(1, min(n_components, X.shape[0]) - 1)
    n_directions = min(FIRST_DIRECTIONS, most)
    best, best_directions = math.inf, n_directions
    while True:
        error = turns.run(n_directions)
        if error < best:
            best, best_directions, best_filled = error, n_directions, turns.filled
        if n_directions == most or error > WORSE * best:
            break
        n_directions = min(GROWTH * n_directions, most)
    # The hidden entries are observed after all: a few turns more use them.
    last = _Turns(X, observed, hidden, ranks, rng, xp.where(observed, X, best_filled))
    last.factors = turns.factors
    for _ in range(LAST_TURNS):
        last.turn(best_directions)
    count = xp.sum(xp.astype(observed, xp.int64))
    return last.filled, Imputation(
        n_missing=math.prod(X.shape) - int(count),
        n_hidden=int(xp.sum(xp.astype(hidden, xp.int64))),
        held_out_error=best,
        held_out_error_of_means=means,
        n_directions=best_directions,
        n_turns=turns.count + last.count,
        ranks=tuple(int(factor.shape[1]) for factor in turns.factors or ()),
    )


def _hidden(observed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Choose observed entries to hide, by the gaps of other samples."""
    n_samples = observed.shape[0]
    some = rng.choice(n_samples, max(1, int(HIDDEN_SHARE * n_samples)), replace=False)
    hidden = np.zeros(observed.shape, dtype=bool)
    hidden[some] = observed[some] & ~observed[rng.permutation(n_samples)[: len(some)]]
    left = np.sum(observed & ~hidden, axis=tuple(range(1, observed.ndim)))
    hidden[left == 0] = False  # a sample keeps something to be judged by
    if not hidden.any():
        hidden = observed & (rng.random(observed.shape) < HIDDEN_ENTRIES)
        left = np.sum(observed & ~hidden, axis=tuple(range(1, observed.ndim)))
        hidden[left == 0] = False
    return hidden


class _Turns:
    """Samples that are filled in turns; `filled` is their present state."""

    def __init__(
        self,
        X: Array,
        known: Array,
        hidden: Array,
        ranks: tuple[int, ...] | float | None,
        rng: np.random.Generator,
        filled: Array | None = None,
    ):
        xp = get_namespace(X)
        self.xp, self.X, self.known, self.hidden = xp, X, known, hidden
        self.ranks, self.rng, self.count = ranks, rng, 0
        self.factors: list[Array] | None = None
        self.filled = self._with_means() if filled is None else filled

    def _with_means(self) -> Array:
        """Fill each gap with the mean of the entries that other samples have in its place."""
        xp = self.xp
        zeros = xp.zeros_like(self.X)
        counts = xp.sum(xp.astype(self.known, xp.float64), axis=0)
        sums = xp.sum(double(xp.where(self.known, self.X, zeros)), axis=0)
        overall = float(xp.sum(sums)) / float(xp.sum(counts))
        means = xp.where(counts > 0, sums / xp.clip(counts, 1.0, None), xp.full_like(sums, overall))
        return xp.where(self.known, self.X, asarray_like(means, self.X)[None, ...])

    def error(self, rebuilt: Array) -> float:
        """Return the root mean squared error at the hidden entries."""
        xp = self.xp
        off = xp.where(self.hidden, rebuilt - self.X, xp.zeros_like(self.X))
        count = float(xp.sum(xp.astype(self.hidden, xp.float64)))
        return (float(xp.sum(double(off) ** 2)) / max(count, 1.0)) ** 0.5

    def turn(self, n_directions: int, directions: Array | None = None) -> tuple[Array, Array]:
        """Fit the filled samples and fill the gaps anew; return the fit and its directions."""
        xp, source = self.xp, as_source(self.filled)
        if self.factors is None:
            ranks = self.ranks
            if not isinstance(ranks, tuple):
                ranks = ranks_from_energy(source, source.mode_grams(), ranks)
            self.factors = start_factors(source, ranks, "hosvd", self.rng)
        start = Start([double(factor) for factor in self.factors], self.rng, directions)
        fit = solve_exact(source, start, n_directions + 1, max_iter=1, tol=0.0)
        self.factors = fit.factors
        rebuilt = _rebuilt(fit)
        self.filled = xp.where(self.known, self.X, rebuilt)
        self.count += 1
        return rebuilt, fit.directions

    def run(self, n_directions: int) -> float:
        """Take turns with a number of directions; return the least error at hidden entries."""
        xp = self.xp
        best, best_filled, before, directions, momentum = math.inf, self.filled, None, None, 1.0
        for _ in range(MAX_TURNS):
            rebuilt, directions = self.turn(n_directions, directions)
            error = self.error(rebuilt)
            slow = error > (1.0 - GAIN) * best
            if error < best:
                best, best_filled = error, self.filled
            if slow:
                break
            if before is not None:
                following = 0.5 * (1.0 + (1.0 + 4.0 * momentum**2) ** 0.5)
                further = rebuilt + (momentum - 1.0) / following * (rebuilt - before)
                self.filled = xp.where(self.known, self.X, further)
                momentum = following
            before = rebuilt
        self.filled = best_filled
        return best


def _rebuilt(fit: Decomposition) -> Array:
    """Rebuild samples from their fit, each direction shrunk by its share of noise."""
    xp = get_namespace(fit.core)
    sigma = fit.singular_values
    noise = _noise_energy(fit)
    kept = xp.clip(1.0 - noise / xp.clip(sigma**2, float(np.finfo(float).tiny), None), 0.0, None)
    rows = asarray_like((sigma * kept)[:, None] * fit.directions.T, fit.core)
    rows = xp.matmul(fit.Q[:, 1:], rows) + asarray_like(fit.mean, fit.core)
    small = xp.reshape(rows, (rows.shape[0], *fit.core.shape[1:]))
    return multi_mode_dot(small, fit.factors)


def _noise_energy(fit: Decomposition) -> float:
    """Estimate the energy that noise has along one direction, from what the fit leaves."""
    n_samples, n_directions = fit.Q.shape[0], fit.Q.shape[1] - 1
    n_entries = math.prod(int(factor.shape[0]) for factor in fit.factors)
    freedom = max(1, n_samples - 1 - n_directions) * max(1, n_entries - n_directions)
    return 2.0 * fit.cost / freedom * max(1, n_samples - 1)


def ridge_of(fit: Decomposition) -> Array:
    """Return what a new sample's offsets are held to zero with: noise over variance.

    Parameters
    ----------
    fit : Decomposition
        The model without labels.

    Returns
    -------
    ridge : array of shape (n_components - 1,)
        One number for each direction, in float64.
    """
    xp = get_namespace(fit.singular_values)
    tiny = float(np.finfo(float).tiny)
    return _noise_energy(fit) / xp.clip(fit.singular_values**2, tiny, None)


def fill_gaps(
    X: Array,
    observed: Array,
    factors: Sequence[Array],
    mean: Array,
    directions: Array,
    ridge: Array,
) -> Array:
    r"""Fill the gaps of samples by a given model.

    The offsets :math:`y` along the directions minimise the error over the observed entries,

    .. math:: \| O (x - \mu - D y) \|^2 + \sum_k \rho_k y_k^2 ,

    with :math:`\rho` the ridge. Conjugate gradients solve for all samples at once.

    Parameters
    ----------
    X : array of shape (n_samples, d_1, ...)
        The samples.
    observed : array of bool of shape (n_samples, d_1, ...)
        Where entries are observed.
    factors : sequence of arrays of shape (d_n, r_n)
        Orthonormal factors.
    mean : array of shape (n_projected,)
        The mean of the projected samples.
    directions : array of shape (n_projected, n_directions)
        Directions of the model.
    ridge : array of shape (n_directions,)
        See `ridge_of`.

    Returns
    -------
    filled : array of shape (n_samples, d_1, ...)
        The samples, with the model's entries in the gaps.
    """
    xp = get_namespace(X)
    ranks = [factor.shape[1] for factor in factors]

    def lift(rows: Array) -> Array:
        return multi_mode_dot(xp.reshape(rows, (rows.shape[0], *ranks)), factors)

    def gather(block: Array) -> Array:
        """Return Dᵀ O of a block."""
        kept = xp.where(observed, block, xp.zeros_like(block))
        small = multi_mode_dot(kept, factors, transpose=True)
        return xp.matmul(xp.reshape(small, (small.shape[0], -1)), directions)

    centre = lift(mean[None, :])
    ridge = asarray_like(ridge, X)[None, :]
    offsets = xp.zeros((X.shape[0], directions.shape[1]), dtype=X.dtype, device=device(X))
    residual = gather(X - centre)
    step = residual
    energy = xp.sum(residual**2, axis=1)
    enough = SOLVED**2 * energy
    for _ in range(min(MAX_SOLVER_STEPS, 2 * directions.shape[1])):
        going = energy > enough
        if not bool(xp.any(going)):
            break
        image = gather(lift(xp.matmul(step, directions.T))) + ridge * step
        curvature = xp.sum(step * image, axis=1)
        length = xp.where(going & (curvature > 0), energy, xp.zeros_like(energy))
        length = length / xp.where(curvature > 0, curvature, xp.ones_like(curvature))
        offsets = offsets + length[:, None] * step
        residual = residual - length[:, None] * image
        after = xp.sum(residual**2, axis=1)
        step = (
            residual + (after / xp.where(energy > 0, energy, xp.ones_like(energy)))[:, None] * step
        )
        energy = after
    rebuilt = lift(xp.matmul(offsets, directions.T)) + centre
    return xp.where(observed, X, rebuilt)
