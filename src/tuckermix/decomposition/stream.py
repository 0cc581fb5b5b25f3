r"""Samples that come in batches: a summary that stands for all of them.

The model depends on the samples through their mean, their number and the scatter about the mean.
The summary keeps the mean, the Gram matrix of each mode, and the scatter as a few rows :math:`R`
with :math:`R^\top R \approx \sum_m (x_m - \mu)(x_m - \mu)^\top`. A batch of b samples with mean
:math:`\mu_b` is appended below them, with one row more for the shift of the mean,

.. math:: \sqrt{\tfrac{n b}{n + b}} \, (\mu - \mu_b) ,

and the leading singular directions of the stack are kept. What is dropped lies beyond the model.
With a memory of T samples everything before is first multiplied by :math:`e^{-b / T}`.

The samples :math:`\mu \pm c R_k` then have the mean and, up to a factor, the scatter of all
samples: a fit to them is a fit to the stream.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tuckermix._array_api import Array, asarray_like, blocks, double, get_namespace, is_double
from tuckermix._estimators import Settings
from tuckermix._records import Record
from tuckermix.decomposition.exact import widened
from tuckermix.decomposition.fit import choose_ranks, decompose_source, lifted, ranks_from_energy
from tuckermix.decomposition.result import Decomposition
from tuckermix.numerics.linalg import leading_eigenvectors, reduce_blocks, with_constant
from tuckermix.numerics.tensor import mode_gram, multi_mode_dot, squared_norm
from tuckermix.sources import Source, SpanSettings, add_parts
from tuckermix.sources.source import peak_of, scale_if_extreme


@dataclass(frozen=True)
class StreamSettings(Settings):
    """What is kept of a stream.

    Attributes
    ----------
    landmarks : int
        The most samples that are kept, for labels and for the simplex of the mixing weights.
    landmark_bytes, least_landmarks : int
        Of large samples fewer are kept, as many as take this memory; but never fewer than the
        second figure, which labels need.
    chunk : int
        Samples that join the summary at a time: the cost of their Gram matrix grows with the
        square.
    block_bytes : int
        They are added up in pieces of this size, in float64, which is little beside large samples.
    """

    landmarks: int = 4096
    landmark_bytes: int = 2**28
    least_landmarks: int = 512
    chunk: int = 256
    block_bytes: int = 2**22


@dataclass(frozen=True)
class Summary(Record):
    """What is kept of a stream."""

    n_seen: int  # the number of samples so far
    weight: float  # the number of samples that count, less than `n_seen` with a limited memory
    squared_norm: float  # the weighted sum of squares of the samples
    mean: Array  # of shape (d_1, ...): their weighted mean, in float64
    grams: list[Array]  # of shape (d_n, d_n): weighted, of the feature modes, in float64; empty
    #   where a mode is too long for a matrix of its size
    rows: Array  # of shape (k, d_1, ...): the scatter about the mean, in float64
    landmarks: Array  # of shape (n, d_1, ...): samples of the stream, drawn with the weights
    priorities: np.ndarray  # of shape (n,): by which landmarks stay
    scale: float = 1.0  # what samples are multiplied by for the sums above, a power of two

    @classmethod
    def start(cls, X: Array) -> Summary:
        """Return the summary of no samples, for samples like those of `X`."""
        mean = double(X[0, ...]) * 0.0
        empty = get_namespace(X).stack([mean])[:0, ...]
        longest = SpanSettings.current().dense_side
        sizes = [size if size <= longest else 0 for size in X.shape[1:]]
        grams = [asarray_like(np.zeros((size, size)), mean) for size in sizes]
        return cls(0, 0.0, 0.0, mean, grams, empty, X[:0, ...], np.zeros(0))

    def updated(
        self, X: Array, n_directions: int, memory: float | None, rng: np.random.Generator
    ) -> Summary:
        """Return the summary with further samples.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            The samples, in memory.
        n_directions : int
            The directions of the model that will be fitted: a few times as many are kept.
        memory : float or None
            How many samples back the weight has fallen to 1/e; None forgets nothing.
        rng : numpy.random.Generator
            By which landmarks are drawn.

        Returns
        -------
        summary : Summary
            The new one.
        """
        summary = self._rescaled(peak_of(X), X)
        size = StreamSettings.current().chunk
        for first in range(0, X.shape[0], size):
            chunk = X[first : min(first + size, X.shape[0]), ...]
            summary = summary._with_chunk(chunk, widened(n_directions, lazy=True), memory)
        return summary._with_landmarks(X, memory, rng)

    def _rescaled(self, peak: float, like: Array) -> Summary:
        """Return the summary in units in which squares of entries up to `peak` are ordinary."""
        by = scale_if_extreme(peak * self.scale, like)
        # Samples that are next to nothing beside what was seen need no other units.
        if by == 1.0 or (self.n_seen and by > 1.0):
            return self
        return replace(
            self,
            scale=by * self.scale,
            squared_norm=self.squared_norm * by * by,
            mean=self.mean * by,
            grams=[gram * by * by for gram in self.grams],
            rows=self.rows * by,
        )

    def _with_chunk(self, X: Array, width: int, memory: float | None) -> Summary:
        xp, use = get_namespace(X), StreamSettings.current()
        count, size = X.shape[0], math.prod(X.shape[1:])
        fade = 1.0 if memory is None else math.exp(-count / memory)
        before, weight = fade * self.weight, fade * self.weight + count

        def sums(part: slice) -> list[Any]:
            rows = self._scaled(X[part, ...])
            grams = [mode_gram(rows, mode) if gram.shape[0] else gram for mode, gram in modes]
            return [squared_norm(rows), xp.sum(rows, axis=0), *grams]

        modes = list(enumerate(self.grams, start=1))
        squares, total, *grams = reduce_blocks(
            sums, list(blocks(count, 8 * size, use.block_bytes)), X, add_parts
        )
        batch_mean = total / count
        shift = (before * count / weight) ** 0.5 * (self.mean - batch_mean)
        old, new, mean, last = (
            xp.reshape(each, (-1, size)) for each in (self.rows, X, batch_mean, shift)
        )

        def stack(part: slice) -> Array:
            """Return some columns of the scatter before, of the samples and of the shift."""
            rows = self._scaled(new[:, part]) - mean[:, part]
            return xp.concat([fade**0.5 * old[:, part], rows, last[:, part]], axis=0)

        n_rows = old.shape[0] + count + 1
        parts = list(blocks(size, 8 * n_rows, use.block_bytes))
        gram = reduce_blocks(lambda part: mode_gram(stack(part), 0), parts, X, operator.add)
        _, vectors = leading_eigenvectors(gram, min(width, n_rows))
        rows = [xp.matmul(vectors.T, stack(part)) for part in parts]
        joined = rows[0] if len(rows) == 1 else xp.concat(rows, axis=1)
        return replace(
            self,
            n_seen=self.n_seen + count,
            weight=weight,
            squared_norm=fade * self.squared_norm + squares,
            mean=self.mean + (count / weight) * (batch_mean - self.mean),
            grams=[fade * gram + new for gram, new in zip(self.grams, grams, strict=True)],
            rows=xp.reshape(joined, (vectors.shape[1], *X.shape[1:])),
        )

    def _scaled(self, X: Array) -> Array:
        """Return samples in the units of the summary, in float64."""
        return double(X) if self.scale == 1.0 else double(X) * self.scale

    def _with_landmarks(self, X: Array, memory: float | None, rng: np.random.Generator) -> Summary:
        """Draw landmarks without replacement: the largest of Gumbel variates plus log weights."""
        xp = get_namespace(X)
        age = np.arange(self.n_seen - X.shape[0], self.n_seen) / (memory or math.inf)
        priorities = np.concatenate([self.priorities, age + rng.gumbel(size=X.shape[0])])
        size = math.prod(X.shape[1:]) * (8 if is_double(self.landmarks) else 4)
        use = StreamSettings.current()
        most = min(use.landmarks, max(use.least_landmarks, use.landmark_bytes // size))
        kept = np.sort(np.argsort(-priorities)[:most])
        n_old = self.landmarks.shape[0]
        places = asarray_like(kept, X, dtype=xp.int64)
        n_kept = int(np.sum(kept < n_old))
        new = asarray_like(xp.take(X, places[n_kept:] - n_old, axis=0), self.landmarks)
        old = self.landmarks
        old = old if n_kept == n_old else xp.take(old, places[:n_kept], axis=0)
        chosen = xp.concat([old, new], axis=0) if n_kept else new
        return replace(self, landmarks=chosen, priorities=priorities[kept])


def decompose_summary(
    summary: Summary, n_components: int, ranks: tuple[int, ...] | float | None, **options: Any
) -> Decomposition:
    """Fit the model to a summary.

    Parameters
    ----------
    summary : Summary
        What is kept of the stream.
    n_components : int
        The number of components.
    ranks : tuple of int or float
        The ranks, or the share of the energy of each mode to keep.
    **options : dict
        Further arguments of `decompose_source`.

    Returns
    -------
    decomposition : Decomposition
        The model of the stream. The rows of `Q` are those of the landmarks, and they are
        orthonormal only as far as landmarks stand for all samples.
    """
    xp = get_namespace(summary.mean)
    n_rows = max(1, summary.rows.shape[0])
    share = 2 * n_rows / summary.weight  # how many samples stand for one of the stream
    if not isinstance(ranks, tuple) and all(gram.shape[0] for gram in summary.grams):
        grams = [share * gram for gram in summary.grams]
        ranks = ranks_from_energy(grams, summary.mean, 2 * n_rows, ranks)
    elif not isinstance(ranks, tuple):
        # Landmarks may vary in more directions than those that are kept of all samples.
        most = (1 + summary.rows.shape[0]) * math.prod(summary.mean.shape)
        ranks = choose_ranks(Source(summary.landmarks), ranks)
        sizes = zip(ranks, summary.mean.shape, strict=True)
        ranks = tuple(min(rank, most // size) for rank, size in sizes)
    like, n_landmarks, unit = summary.landmarks, summary.landmarks.shape[0], 1.0 / summary.scale
    pseudo, bases = _pseudo_samples(summary, (share / 2.0) ** 0.5, ranks)
    fit = decompose_source(Source(pseudo), n_components, ranks, **options)
    explained = max(0.0, squared_norm(pseudo) - 2.0 * fit.cost) / share
    cost = 0.5 * max(0.0, summary.squared_norm - explained)
    # Place the landmarks where the samples of the fit were, in units of the samples.
    fit = replace(fit, factors=[asarray_like(factor, like) for factor in fit.factors])
    factors = lifted(fit, bases).factors
    mean = fit.mean * unit
    small = multi_mode_dot(like, factors, transpose=True)
    rows = xp.reshape(small, (n_landmarks, -1)) - asarray_like(mean, like)
    sigma = fit.singular_values * (n_landmarks / (2 * n_rows)) ** 0.5
    coordinates = xp.matmul(rows * summary.scale, asarray_like(fit.directions / sigma, like))
    sigma = sigma * unit
    mean_row = mean * n_landmarks**0.5
    core = xp.concat([mean_row[None, :], fit.directions.T * sigma[:, None]], axis=0)
    return replace(
        fit,
        factors=factors,
        Q=with_constant(coordinates),
        core=asarray_like(xp.reshape(core, fit.core.shape), like),
        mean=mean,
        singular_values=sigma,
        axes=None,  # those of the landmarks differ
        cost=cost * unit * unit,
        relative_error=(2.0 * cost / max(summary.squared_norm, float(np.finfo(float).tiny))) ** 0.5,
    )


def _pseudo_samples(
    summary: Summary, reach: float, ranks: tuple[int, ...]
) -> tuple[Array, list[Array | None]]:
    """Return samples with the mean and the scatter of all, along bases of long modes.

    None of them is made in full length where all lie within the bases, which are in the type of
    the landmarks.
    """
    rows = get_namespace(summary.mean).concat(
        [summary.mean[None, ...], reach * summary.rows], axis=0
    )
    bases, exact = Source(rows).spans(ranks)
    bases = bases if exact else [None] * len(bases)
    rows = multi_mode_dot(rows, bases, transpose=True)
    mean, steps = rows[:1, ...], rows[1:, ...] if rows.shape[0] > 1 else 0.0 * rows
    pseudo = get_namespace(rows).concat([mean + steps, mean - steps], axis=0)
    return pseudo, [None if B is None else asarray_like(B, summary.landmarks) for B in bases]
