r"""Samples with gaps: fill them by what the samples have in common, learn that again, in turn.

Samples :math:`x` are written as :math:`\mu + D y`, with few directions :math:`D` common to all.
Filling gaps with that and finding mean and directions again lowers the error over the observed
entries at every turn (it is the EM algorithm of probabilistic principal components, with
lengthened steps). Four things
keep it from believing what it filled: the number of directions grows from two up, as long as
entries that were hidden are predicted better; each direction is shrunk by the share of noise in it,

.. math:: d_k = \frac{\sigma_k^2 - \nu}{\sigma_k^2} ,

:math:`\nu` the energy of the error in one direction; turns end when hidden entries are predicted
no better; and offsets :math:`y` are averaged with those of the nearest samples
if that predicts hidden entries better, as it does where whole regions are missing. Entries are
hidden where other samples have gaps, so that rows or blocks are judged as rows or blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tuckermix._array_api import (
    Array,
    asarray_like,
    blocks,
    device,
    divisor,
    double,
    epsilon,
    get_namespace,
    is_dask,
    is_numpy,
    to_numpy,
)
from tuckermix._estimators import Settings
from tuckermix._records import Record
from tuckermix._threads import gather_rows, in_threads
from tuckermix._validation import check_stored
from tuckermix.decomposition.fit import choose_ranks
from tuckermix.decomposition.result import Decomposition
from tuckermix.numerics.linalg import leading_eigenvectors, random_basis, reduce_blocks
from tuckermix.numerics.points import nearest_neighbors
from tuckermix.numerics.tensor import multi_mode_dot, squared_norm
from tuckermix.sources import Source, add_parts
from tuckermix.sources.source import peak_of, scale_if_extreme


@dataclass(frozen=True)
class MissingSettings(Settings):
    """How gaps are filled.

    Attributes
    ----------
    hidden_share : float
        Share of the samples of which entries are hidden to judge the model.
    hidden_entries : float
        Share of entries hidden where all samples have the same gaps, and no pattern can be
        borrowed.
    first_directions, growth : int
        Directions at first, and by how much their number grows: in between a few turns suffice,
        because what is missing of the leading directions was filled before.
    max_step : float
        Steps are lengthened by the inverse of the share of known entries: a filled gap holds its
        place in the next fit, which therefore goes only that share of the way. Below 2 all
        directions converge, however little the known entries say of them.
    spare : int
        Directions carried beyond those of the model, so that a single product a turn keeps up with
        how the model changes.
    max_turns : int
        Most turns for one number of directions.
    gain : float
        A number of directions is left when a turn lowers the error by less than this share.
    worse : float
        More directions are not tried when the error is this much above the least.
    last_turns : int
        Turns at the end, with the hidden entries given back.
    shares : tuple
        How much of its own offsets a sample may keep beside those of its neighbours.
    n_neighbors : int
        How many neighbours are averaged: about half of those that the graph of the labels has,
        because here all of them should be of one kind.
    rounds : int
        How often neighbours are looked up: they change little once gaps are filled by them.
    max_references : int
        Most samples among which neighbours are looked up, for time and for the size of model files.
    max_solver_steps, solved : float
        Limits of the conjugate gradients that fill new samples: steps, and the share of the first
        residual that may be left. With half of the entries observed they converge in a dozen steps.
    least_likeness : float
        Weight of a neighbour that is not alike at all, so that weights never vanish together.
    """

    hidden_share: float = 0.1
    hidden_entries: float = 0.05
    first_directions: int = 4
    growth: int = 4
    max_step: float = 1.8
    spare: int = 8
    max_turns: int = 20
    gain: float = 0.02
    worse: float = 1.02
    last_turns: int = 1
    shares: tuple[float, ...] = (0.75, 0.5, 0.25)
    n_neighbors: int = 6
    rounds: int = 2
    max_references: int = 4096
    max_solver_steps: int = 60
    solved: float = 1e-08
    least_likeness: float = 1e-09


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
    own_share : float
        How much of its own offsets a sample keeps beside those of its neighbours: 1 where
        neighbours did not help.
    ranks : tuple of int
        The ranks of the factors. Those of the filled samples would be lower: what was filled has
        less detail than what was observed.
    """

    n_missing: int
    n_hidden: int
    held_out_error: float
    held_out_error_of_means: float
    n_directions: int
    n_turns: int
    own_share: float
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class Filling(Record):
    """Arrays that fill gaps of new samples.

    Attributes
    ----------
    mean : array of shape (n_features,)
        The mean sample, as a row.
    directions : array of shape (n_features, k)
        Orthonormal directions of the samples.
    ridge : array of shape (k,)
        What offsets along them are held to zero with: noise over variance.
    weights : array of shape (k,)
        What offsets are multiplied with to compare samples.
    references : array of shape (n_references, k)
        Offsets of samples among which neighbours are looked up; none where they do not help.
    own_share : float
        How much of its own offsets a sample keeps.
    """

    mean: Array
    directions: Array
    ridge: Array
    weights: Array
    references: Array
    own_share: float

    def check(self, n_features: int) -> None:
        """Raise where the parts, which a file may have made up, do not fit together."""
        k = self.directions.shape[-1] if np.ndim(self.directions) else 0
        for name in ("mean", "directions", "ridge", "weights", "references"):
            rows = {"mean": (n_features,), "directions": (n_features, k), "references": (None, k)}
            check_stored(self[name], name, rows.get(name, (k,)))
        if not isinstance(self.own_share, float) or not 0.0 <= self.own_share <= 1.0:
            raise ValueError(f"own_share is {self.own_share!r}")


def split_gaps(X: Any, owner: str, filling: Filling | None = None) -> tuple[Any, Array | None]:
    """Tell observed entries from gaps: NaN, and what a NumPy mask covers.

    Parameters
    ----------
    X : array of shape (n_samples, d_1, ...)
        The samples.
    owner : str
        Who asks, for messages.
    filling : Filling or None, default=None
        What fills the gaps of a Dask array, chunk by chunk and lazily; None refuses such arrays.

    Returns
    -------
    X : array of shape (n_samples, d_1, ...)
        The samples, with zeros in the gaps.
    observed : array of bool of shape (n_samples, d_1, ...) or None
        Where entries are observed; None where all are.
    """
    if is_dask(X) and filling is not None:
        dtype = filling.mean.dtype
        X = X.rechunk(dict.fromkeys(range(1, X.ndim), -1)).astype(dtype)
        return X.map_blocks(_fill_chunk, filling=filling, owner=owner, dtype=dtype), None
    if is_dask(X):
        raise TypeError(
            f"{owner} with missing='impute' needs the samples in memory to learn from them, but X "
            "is a Dask array: call X.compute() first, or fit to some of the samples in memory; "
            "the fitted model takes Dask arrays with gaps in predict and fill_missing."
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
    empty = to_numpy(xp.all(xp.reshape(gaps, (X.shape[0], -1)), axis=1))
    if empty.any():
        raise ValueError(
            f"Sample {int(np.argmax(empty))} has no observed entry, and {int(empty.sum())} such "
            f"samples in all: {owner} cannot place them. Leave them out."
        )
    return xp.where(gaps, xp.zeros((), dtype=X.dtype, device=device(X)), X), ~gaps


def impute(
    X: Array,
    observed: Array,
    n_components: int,
    ranks: tuple[int, ...] | float | None,
    rng: np.random.Generator,
) -> tuple[Array, Imputation, Filling]:
    """Fill the gaps of samples by the model that predicts hidden entries best.

    Parameters
    ----------
    X : array of shape (n_samples, d_1, ...)
        The samples; what stands in the gaps does not matter. NumPy works in their memory.
    observed : array of bool of shape (n_samples, d_1, ...)
        Where entries are observed.
    n_components : int
        The most components: one more than the directions.
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
    filling : Filling
        What fills gaps of new samples in the same way.
    """
    use = MissingSettings.current()
    xp = get_namespace(X)
    scale = scale_if_extreme(peak_of(X), X)
    if scale != 1.0:
        filled, imputation, filling = impute(X * scale, observed, n_components, ranks, rng)
        errors = {
            name: imputation[name] / scale for name in ("held_out_error", "held_out_error_of_means")
        }
        units = {"mean": filling.mean / scale, "references": filling.references / scale}
        return filled / scale, replace(imputation, **errors), replace(filling, **units)
    hidden = _hidden(to_numpy(observed), rng)
    n_observed, n_hidden = (int(np.count_nonzero(to_numpy(mask))) for mask in (observed, hidden))
    gaps = ~observed | asarray_like(hidden, observed, dtype=observed.dtype)
    turns = _Turns(X, gaps, hidden, (n_observed - n_hidden) / math.prod(X.shape), rng)
    means = turns.error()
    if not isinstance(ranks, tuple):
        ranks = choose_ranks(Source(xp.reshape(turns.rows, X.shape)), ranks)
    most = max(1, min(n_components - 1, X.shape[0] - 1, turns.rows.shape[1]))
    n_directions = min(use.first_directions, most)
    best, best_directions, best_state = math.inf, n_directions, turns.state
    while True:
        error, state = turns.run(n_directions)
        if error < best:
            best, best_directions, best_state = error, n_directions, state
        if n_directions == most or error > use.worse * best:
            break
        n_directions = min(use.growth * n_directions, most)
    turns.go_back_to(best_state)
    own_share = 1.0
    if X.shape[0] > use.n_neighbors:
        for share, error in turns.errors_with_neighbours(best_directions):
            if error < best:
                best, own_share = error, share
    # The hidden entries are observed after all: a few turns more use them.
    turns.give_back(X, ~observed)
    for _ in range(use.last_turns):
        turns.turn(best_directions)
    for _ in range(use.rounds if own_share < 1.0 else 0):
        turns.average(best_directions, own_share)
    imputation = Imputation(
        n_missing=math.prod(X.shape) - n_observed,
        n_hidden=n_hidden,
        held_out_error=best,
        held_out_error_of_means=means,
        n_directions=best_directions,
        n_turns=turns.count,
        own_share=own_share,
        ranks=tuple(int(rank) for rank in ranks),
    )
    return xp.reshape(turns.rows, X.shape), imputation, turns.filling(best_directions, own_share)


def _hidden(observed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Choose observed entries to hide, by the gaps of other samples."""
    use = MissingSettings.current()
    n_samples = observed.shape[0]
    some = rng.choice(n_samples, max(1, int(use.hidden_share * n_samples)), replace=False)
    hidden = np.zeros(observed.shape, dtype=bool)
    hidden[some] = observed[some] & ~observed[rng.permutation(n_samples)[: len(some)]]
    left = np.sum(observed & ~hidden, axis=tuple(range(1, observed.ndim)))
    hidden[left == 0] = False  # a sample keeps something to be judged by
    if not hidden.any():
        hidden = observed & (rng.random(observed.shape) < use.hidden_entries)
        left = np.sum(observed & ~hidden, axis=tuple(range(1, observed.ndim)))
        hidden[left == 0] = False
    return hidden


@dataclass(frozen=True)
class _State:
    """Directions of filled samples with some to spare, their energies, and what is in the gaps."""

    mean: Array
    directions: Array
    energies: np.ndarray
    noise: float
    filled: Array = None


class _Turns:
    """Samples as rows whose gaps are filled in turns."""

    def __init__(
        self,
        X: Array,
        gaps: Array,
        hidden: np.ndarray,
        known_share: float,
        rng: np.random.Generator,
    ):
        self.xp = xp = get_namespace(X)
        self.rng, self.count = rng, 0
        self.step = min(1.0 / known_share, MissingSettings.current().max_step)
        self.rows = rows = xp.reshape(X, (X.shape[0], -1))
        self.gaps = xp.reshape(gaps, rows.shape)
        self.places = asarray_like(np.flatnonzero(hidden), X, dtype=xp.int64)
        self.truth = xp.take(xp.reshape(rows, (-1,)), self.places, axis=0)
        # Columns at a time, which make disjoint parts of what has the length of a sample.
        self.parts = list(blocks(rows.shape[1], 8 * rows.shape[0], 2**22))
        zero = xp.zeros((), dtype=X.dtype, device=device(X))
        self.rows = _put(rows, self.gaps, lambda rows: xp.broadcast_to(zero, rows.shape))
        mean = self._means()
        self.rows = _put(self.rows, self.gaps, lambda rows: xp.broadcast_to(mean, rows.shape))
        none = xp.zeros((rows.shape[1], 0), dtype=X.dtype, device=device(X))
        self.state = _State(mean, none, np.zeros(0), 0.0)

    def _mean(self) -> Array:
        """Return the mean of the filled samples, in float64."""
        xp, F = self.xp, self.rows
        total = partial(xp.sum, axis=0, dtype=xp.float64)
        return gather_rows(lambda part: total(F[:, part]), self.parts, F.shape[1], F) / F.shape[0]

    def _means(self) -> Array:
        """Return the mean of the known entries in each place; of all, where nobody has one."""
        xp, n_samples = self.xp, self.rows.shape[0]
        unknown = xp.astype(xp.count_nonzero(self.gaps, axis=0), xp.float64)
        counts, sums = n_samples - unknown, self._mean() * n_samples
        overall = float(xp.sum(sums)) / float(xp.sum(counts))
        means = xp.where(counts > 0, sums / xp.clip(counts, 1.0, None), xp.full_like(sums, overall))
        return asarray_like(means, self.rows)

    def _offsets(self, mean: Array, directions: Array) -> tuple[Array, float]:
        """Return where filled samples lie along directions, and their energy about the mean."""
        xp, F = self.xp, self.rows

        def products(part: slice) -> tuple[Array, float]:
            rows = F[:, part] - mean[part]
            return xp.matmul(rows, directions[part, :]), squared_norm(rows)

        return reduce_blocks(products, self.parts, F, add_parts)

    def error(self) -> float:
        """Return the root mean squared error at the hidden entries."""
        xp = self.xp
        found = xp.take(xp.reshape(self.rows, (-1,)), self.places, axis=0)
        off = double(found - self.truth)
        return (float(xp.sum(off * off)) / max(1, self.places.shape[0])) ** 0.5

    def fill(self, rebuild: Callable[..., Array], scores: Array) -> None:
        """Fill the gaps with what is rebuilt from scores."""
        self.rows = _put(self.rows, self.gaps, rebuild, scores)
        self.count += 1

    def go_back_to(self, state: _State) -> None:
        """Fill the gaps as they were filled in an earlier state."""
        self.state = state
        if is_numpy(self.rows):
            self.rows[self.gaps] = state.filled
        else:
            self.rows = state.filled

    def give_back(self, X: Array, gaps: Array) -> None:
        """Let the hidden entries be observed."""
        xp = self.xp
        self.gaps = xp.reshape(gaps, self.rows.shape)
        if is_numpy(self.rows):
            np.put(self.rows, self.places, self.truth)
        else:
            self.rows = xp.where(self.gaps, self.rows, xp.reshape(X, self.rows.shape))

    def turn(self, n_directions: int) -> None:
        """Find mean and directions of the filled samples, and fill the gaps by them."""
        xp, F = self.xp, self.rows
        n_samples, n_features = F.shape
        basis = self.state.directions
        width = min(n_directions + MissingSettings.current().spare, n_samples - 1, n_features)
        further = width - basis.shape[1]
        if further > 0:
            basis = xp.concat([basis, random_basis(n_features, further, self.rng, F)], axis=1)
        mean = asarray_like(self._mean(), F)
        for _ in range(2 if further > 0 else 1):  # random directions turn twice
            image, energy = self._offsets(mean, basis)
            Q = xp.linalg.qr(image, mode="reduced")[0]
            del basis
            basis = gather_rows(
                lambda part, Q=Q: xp.matmul((F[:, part] - mean[part]).T, Q),  # type: ignore[misc]
                self.parts,
                n_features,
                F,
            )
        squares, turned = leading_eigenvectors(double(xp.matmul(basis.T, basis)), width)
        # What rounding leaves of a square is no length to divide by.
        floor = max(_smallest(F), epsilon(squares) * float(xp.max(squares)))
        lengths = xp.sqrt(xp.clip(squares, floor, None))
        turned = asarray_like(turned, F)
        directions = xp.matmul(basis, turned)
        del basis
        directions /= asarray_like(lengths, F)[None, :]
        energies = np.maximum(to_numpy(squares), 0.0)
        left = max(energy - float(np.sum(energies[:n_directions])), 0.0)
        freedom = max(1, n_samples - 1 - n_directions) * max(1, n_features - n_directions)
        noise = left / freedom * max(1, n_samples - 1)
        self.state = _State(mean, directions, energies, noise)
        kept = asarray_like(self._kept(n_directions) * energies[:n_directions] ** 0.5, F)
        scores = xp.matmul(Q, turned[:, :n_directions]) * kept[None, :]
        lines = directions[:, :n_directions].T

        def rebuild(rows: Array, scores: Array) -> Array:
            rebuilt = xp.matmul(self.step * scores, lines)
            rebuilt += self.step * mean
            rebuilt += (1.0 - self.step) * rows
            return rebuilt

        self.fill(rebuild, scores)

    def _kept(self, n_directions: int) -> np.ndarray:
        """Return by how much each direction is shrunk."""
        noise = self.state.noise
        return 1.0 - noise / np.maximum(
            self.state.energies[:n_directions], max(noise, _smallest(self.rows))
        )

    def run(self, n_directions: int) -> tuple[float, _State]:
        """Take turns with a number of directions; return the least error and how it was reached."""
        use = MissingSettings.current()
        best, state = math.inf, self.state
        for _ in range(use.max_turns):
            self.turn(n_directions)
            error = self.error()
            slow = error > (1.0 - use.gain) * best
            if error < best:
                filled = self.rows[self.gaps] if is_numpy(self.rows) else self.rows
                best, state = error, replace(self.state, filled=filled)
            if slow:
                break
        self.go_back_to(state)
        return best, state

    def _weights(self, n_directions: int) -> Array:
        """Return weights that compare samples: equal for strong directions, falling for others."""
        energies = self.state.energies[:n_directions]
        edge = max(float(energies[-1]), _smallest(self.rows))
        return asarray_like(energies**0.5 / (energies + edge), self.rows)

    def _with_neighbours(self, n_directions: int) -> tuple[Array, Array]:
        """Return the shrunk offsets of the samples, and those of their neighbours averaged."""
        xp, state, some = self.xp, self.state, self._references()
        offsets = self._offsets(state.mean, state.directions[:, :n_directions])[0]
        references = xp.take(offsets, some, axis=0) if some is not None else offsets
        weights = self._weights(n_directions)
        near = _neighbour_means(offsets, references, weights, exclude_self=some is None)
        return offsets * asarray_like(self._kept(n_directions), offsets)[None, :], near

    def errors_with_neighbours(self, n_directions: int) -> list[tuple[float, float]]:
        """Return shares of own offsets with the error at hidden entries that each leads to."""
        use = MissingSettings.current()
        xp, state = self.xp, self.state
        own, near = self._with_neighbours(n_directions)
        n_features = self.rows.shape[1]
        which, column = self.places // n_features, self.places % n_features
        lines = xp.take(state.directions[:, :n_directions], column, axis=0)
        own, near = (xp.sum(xp.take(each, which, axis=0) * lines, axis=1) for each in (own, near))
        off = xp.take(state.mean, column, axis=0) - self.truth
        errors = []
        for share in use.shares:
            wrong = double(share * own + (1.0 - share) * near + off)
            errors.append((share, float(xp.mean(wrong * wrong)) ** 0.5))
        return errors

    def average(self, n_directions: int, share: float) -> None:
        """Fill the gaps from offsets averaged with those of the neighbours."""
        xp, state = self.xp, self.state
        own, near = self._with_neighbours(n_directions)
        blend = share * own + (1.0 - share) * near
        lines = state.directions[:, :n_directions].T
        self.fill(lambda rows, scores: xp.matmul(scores, lines) + state.mean[None, :], blend)

    def _references(self) -> Array | None:
        """Choose samples among which to look for neighbours; None for all."""
        use = MissingSettings.current()
        n_samples = self.rows.shape[0]
        if n_samples <= use.max_references:
            return None
        some = np.random.default_rng(n_samples).choice(n_samples, use.max_references, replace=False)
        return asarray_like(np.sort(some), self.rows, dtype=self.xp.int64)

    def filling(self, n_directions: int, own_share: float) -> Filling:
        """Return what fills gaps of new samples as those of the fitted ones were filled."""
        xp, state, some = self.xp, self.state, self._references()
        energies = np.maximum(state.energies[:n_directions], _smallest(self.rows))
        references = self._offsets(state.mean, state.directions[:, :n_directions])[0]
        if own_share == 1.0:
            references = references[:0, :]
        elif some is not None:
            references = xp.take(references, some, axis=0)
        return Filling(
            mean=state.mean,
            directions=state.directions[:, :n_directions],
            ridge=asarray_like(state.noise / energies, self.rows),
            weights=self._weights(n_directions),
            references=references,
            own_share=own_share,
        )


def _smallest(like: Array) -> float:
    """Return the smallest normal number of the type of an array."""
    return float(get_namespace(like).finfo(like.dtype).smallest_normal)


def _put(rows: Array, gaps: Array, rebuild: Callable[..., Array], *scores: Array) -> Array:
    """Put rebuilt entries in the gaps of rows, some rows at a time; in place in NumPy.

    `rebuild` takes some of the rows, and of each of `scores` what belongs to them.
    """
    xp = get_namespace(rows)
    parts = list(
        blocks(rows.shape[0], 8 * rows.shape[1], 2**22)
    )  # a rebuilt row is not all it takes

    def put(part: slice) -> Array:
        chosen = rows[part, ...]
        rebuilt = rebuild(chosen, *(each[part, ...] for each in scores))
        if not is_numpy(rows):
            return xp.where(gaps[part, ...], rebuilt, chosen)
        np.copyto(chosen, rebuilt, where=gaps[part, ...])
        return chosen

    if not is_numpy(rows):
        return gather_rows(put, parts, rows.shape[0], rows)
    in_threads(put, parts, rows)
    return rows


def _neighbour_means(
    offsets: Array, references: Array, weights: Array, *, exclude_self: bool
) -> Array:
    """Average the offsets of the references most like each sample, by likeness."""
    use = MissingSettings.current()
    xp = get_namespace(offsets)

    def unit(rows: Array) -> Array:
        rows = rows * weights[None, :]
        return rows / divisor(xp.sqrt(xp.sum(rows * rows, axis=1)))[:, None]

    count = min(use.n_neighbors, references.shape[0] - exclude_self)
    near, distances = nearest_neighbors(
        unit(offsets), unit(references), count, exclude_self=exclude_self
    )
    # Of unit vectors the cosine is 1 - |a - b|² / 2; those at right angles count next to nothing.
    likeness = asarray_like(xp.clip(1.0 - 0.5 * distances, use.least_likeness, None), offsets)
    chosen = xp.reshape(
        xp.take(references, xp.reshape(near, (-1,)), axis=0), (*near.shape, offsets.shape[1])
    )
    total = xp.sum(likeness, axis=1)
    return xp.sum(likeness[:, :, None] * chosen, axis=1) / total[:, None]


def filling_of(fit: Decomposition) -> Filling:
    """Return what fills gaps of new samples from a fit to samples without any.

    Parameters
    ----------
    fit : Decomposition
        The model without labels.

    Returns
    -------
    filling : Filling
        Its mean and directions, held back by the noise that it leaves.
    """
    xp = get_namespace(fit.core)
    ranks = [int(factor.shape[1]) for factor in fit.factors]
    k = fit.directions.shape[1]
    rows = xp.concat([fit.mean[None, :], fit.directions.T], axis=0)
    lifted = multi_mode_dot(xp.reshape(asarray_like(rows, fit.core), (k + 1, *ranks)), fit.factors)
    lifted = xp.reshape(lifted, (k + 1, -1))
    # The energy that noise has along one direction, from what the fit leaves.
    n_samples, n_entries = fit.Q.shape[0], lifted.shape[1]
    freedom = max(1, n_samples - 1 - k) * max(1, n_entries - k)
    noise = 2.0 * fit.cost / freedom * max(1, n_samples - 1)
    ridge = noise / xp.clip(fit.singular_values**2, _smallest(fit.core), None)
    return Filling(
        mean=lifted[0, :],
        directions=lifted[1:, :].T,
        ridge=asarray_like(ridge, fit.core),
        weights=asarray_like(xp.ones_like(ridge), fit.core),
        references=xp.zeros((0, k), dtype=lifted.dtype, device=device(lifted)),
        own_share=1.0,
    )


def fill_gaps(X: Array, observed: Array, filling: Filling) -> Array:
    r"""Fill the gaps of samples by what is known of such samples.

    The offsets :math:`y` along the directions minimise the error over the observed entries,

    .. math:: \| O (x - \mu - D y) \|^2 + \sum_k \rho_k y_k^2 ,

    with :math:`\rho` the ridge. Conjugate gradients solve for all samples at once. Where the
    neighbours of the fitted samples helped, those of the new ones are averaged in.

    Parameters
    ----------
    X : array of shape (n_samples, d_1, ...)
        The samples. NumPy works in their memory.
    observed : array of bool of shape (n_samples, d_1, ...)
        Where entries are observed.
    filling : Filling
        What fills them.

    Returns
    -------
    filled : array of shape (n_samples, d_1, ...)
        The samples, with entries of the model in the gaps.
    """
    xp = get_namespace(X)
    scale = scale_if_extreme(max(peak_of(X), peak_of(filling.mean)), X)
    if scale != 1.0:
        units = {"mean": filling.mean * scale, "references": filling.references * scale}
        return fill_gaps(X * scale, observed, replace(filling, **units)) / scale
    rows, observed = (xp.reshape(each, (X.shape[0], -1)) for each in (X, observed))
    rebuild = partial(_rebuild, filling=filling)
    return xp.reshape(_put(rows, ~observed, rebuild, observed), X.shape)


def _rebuild(rows: Array, observed: Array, filling: Filling) -> Array:
    """Return what the model has for rows of which some entries are observed."""
    use = MissingSettings.current()
    xp = get_namespace(rows)
    mean, directions, ridge = filling.mean[None, :], filling.directions, filling.ridge[None, :]
    zero = xp.zeros((), dtype=rows.dtype, device=device(rows))

    def gather(rows: Array) -> Array:
        """Return Dᵀ O of rows."""
        return xp.matmul(xp.where(observed, rows, zero), directions)

    residual = gather(rows - mean)
    offsets = xp.zeros_like(residual)
    step = residual
    energy = xp.sum(residual**2, axis=1)
    enough = use.solved**2 * energy
    for _ in range(min(use.max_solver_steps, 2 * directions.shape[1])):
        going = energy > enough
        if not bool(xp.any(going)):
            break
        image = gather(xp.matmul(step, directions.T)) + ridge * step
        curvature = xp.sum(step * image, axis=1)
        length = xp.where(going & (curvature > 0), energy, xp.zeros_like(energy))
        length = length / divisor(curvature)
        offsets = offsets + length[:, None] * step
        residual = residual - length[:, None] * image
        after = xp.sum(residual**2, axis=1)
        step = residual + (after / divisor(energy))[:, None] * step
        energy = after
    if filling.own_share < 1.0:
        near = _neighbour_means(offsets, filling.references, filling.weights, exclude_self=False)
        offsets = filling.own_share * offsets + (1.0 - filling.own_share) * near
    return xp.matmul(offsets, directions.T) + mean


def _fill_chunk(chunk: Array, filling: Filling, owner: str) -> Array:
    chunk, observed = split_gaps(chunk, owner)
    return chunk if observed is None else fill_gaps(chunk, observed, filling)
