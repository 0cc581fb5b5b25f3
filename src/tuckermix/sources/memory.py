"""Samples that lie in the memory of one device, worked through in blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tuckermix._array_api import (
    Array,
    asarray_like,
    blocks,
    double,
    gather_rows,
    get_namespace,
    is_numpy,
)
from tuckermix.sources.base import Sketch, Source
from tuckermix.tensor import mode_gram, multi_mode_dot, squared_norm

__all__ = ["MemorySource", "choose_scale", "contract_block", "grams_of_block", "project_block"]

HOST_BLOCK_BYTES = 2 * 2**20
"""A block that stays in a processor's cache between the steps of a projection."""

DEVICE_BLOCK_BYTES = 512 * 2**20
"""On an accelerator few large launches beat many small ones."""

SAFE_EXPONENT = 0.25
"""Squares of squares must stay within the range of the floating type, so the largest entry may
use a quarter of its exponents."""


class MemorySource(Source):
    """Samples in memory: one array of any array-API library.

    Parameters
    ----------
    X : array of shape (n_samples, d_1, ...)
        The samples, float32 or float64. Never copied as a whole.
    """

    def __init__(self, X: Array):
        xp = get_namespace(X)
        self._X = X
        self.n_samples = int(X.shape[0])
        self.sample_shape = tuple(int(size) for size in X.shape[1:])
        self.like = X[:1, ...]
        self.scale = 1.0
        total = sum(squared_norm(block) for _, block in self._blocks())
        if not is_ordinary(total, X):
            peak = max((float(xp.max(xp.abs(block))) for _, block in self._blocks()), default=0.0)
            if not math.isfinite(peak):
                raise ValueError("Input X contains NaN or infinity.")
            self.scale = choose_scale(peak, X)
            total = sum(squared_norm(block) for _, block in self._blocks())
        self.squared_norm = total
        self.mean = self._mean()

    def _mean(self) -> Array:
        xp = get_namespace(self._X)
        total: Array = 0.0
        for _, block in self._blocks():
            summed = (
                double(xp.sum(block, axis=0))
                if is_numpy(block)
                else xp.sum(block, axis=0, dtype=xp.float64)
            )
            total = total + summed
        return total / self.n_samples

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield slices of samples with their data, scaled."""
        itemsize = 8 if self._X.dtype == get_namespace(self._X).float64 else 4
        budget = HOST_BLOCK_BYTES if is_numpy(self._X) else DEVICE_BLOCK_BYTES
        for part in blocks(self.n_samples, itemsize * math.prod(self.sample_shape), budget):
            block = self._X[part, ...]
            yield part, (block if self.scale == 1.0 else block * self.scale)

    def _small(self, factors: Sequence[Array]) -> list[Array]:
        """Bring the factors to the floating type and the device of the samples."""
        return [asarray_like(factor, self._X) for factor in factors]

    def mode_grams(self, factors: Sequence[Array] | None = None) -> list[Array]:
        """Compute the Gram matrix of each feature mode, see `Source.mode_grams`."""
        factors = None if factors is None else self._small(factors)
        total: list[Array] | None = None
        for _, block in self._blocks():
            part = grams_of_block(block, factors)
            total = part if total is None else [a + b for a, b in zip(total, part, strict=True)]
        assert total is not None
        return total

    def project(self, factors: Sequence[Array], basis: Array | None = None) -> Array:
        """Project the samples on the factors, see `Source.project`."""
        factors = self._small(factors)
        basis = None if basis is None else asarray_like(basis, self._X)
        lifted = lift_if_cheaper(factors, basis, self.sample_shape)
        projected = (
            (part, project_block(block, factors, basis, lifted)) for part, block in self._blocks()
        )
        return gather_rows(projected, self.n_samples, self._X)

    def contract(self, Q: Array) -> Array:
        """Sum the samples with weights, see `Source.contract`."""
        total = None
        for part, block in self._blocks():
            summed = contract_block(block, asarray_like(Q[part, :], block))
            total = summed if total is None else total + summed
        return total

    def sketch(self, factors: Sequence[Array], basis: Array, *, cross: bool = True) -> Sketch:
        """Read the samples once for a sweep, see `Source.sketch`."""
        plan = SketchPlan(self._small(factors), asarray_like(basis, self._X), self.mean)
        total: tuple[Array, Array | None] | None = None
        for _, block in self._blocks():
            total = add_sketches(total, sketch_block(block, plan, cross))
        assert total is not None
        return Sketch(*total)

    def take(self, indices: np.ndarray) -> MemorySource:
        """Return a source of the samples with these indices, see `Source.take`."""
        xp = get_namespace(self._X)
        index = asarray_like(indices, self._X, dtype=xp.int64)
        return MemorySource(xp.take(self._X, index, axis=0))


def is_ordinary(total: float, like: Array) -> bool:
    """Tell whether squares of data with this squared norm are safe in the type of `like`."""
    limits = get_namespace(like).finfo(like.dtype)
    largest = float(limits.max) ** (2 * SAFE_EXPONENT)
    return math.isfinite(total) and (1.0 / largest < total < largest)


def choose_scale(peak: float, like: Array) -> float:
    """Return the power of two that brings the largest entry near 1; 1 for data all zero.

    Powers of two change exponents only, so scaling costs no accuracy. The factor itself must be
    finite in the floating type, which caps it for the smallest subnormal numbers.
    """
    if not (peak > 0 and math.isfinite(peak)):
        return 1.0
    limit = int(math.log2(float(get_namespace(like).finfo(like.dtype).max))) - 1
    return 2.0 ** max(-limit, min(limit, -math.frexp(peak)[1]))


def grams_of_block(block: Array, factors: Sequence[Array] | None) -> list[Array]:
    """Compute the Gram matrices of the feature modes of one block, in float64."""
    n_modes = block.ndim - 1
    if factors is None:
        return [double(mode_gram(block, mode + 1)) for mode in range(n_modes)]
    grams = []
    for mode in range(n_modes):
        others = [None if other == mode else factors[other] for other in range(n_modes)]
        grams.append(double(mode_gram(multi_mode_dot(block, others, transpose=True), mode + 1)))
    return grams


def lift_if_cheaper(
    factors: Sequence[Array], basis: Array | None, sample_shape: Sequence[int]
) -> Array | None:
    """Return the basis lifted to sample space if one product with it beats the projection."""
    if basis is None:
        return None
    cost_in_steps, size = 0, math.prod(sample_shape)
    for factor in reversed(list(factors)):
        cost_in_steps += size * factor.shape[1]
        size = size // factor.shape[0] * factor.shape[1]
    cost_in_steps += size * basis.shape[1]
    # A single large product runs at about twice the speed of the chain of small ones.
    if math.prod(sample_shape) * basis.shape[1] > 2 * cost_in_steps:
        return None
    xp = get_namespace(basis)
    ranks = [factor.shape[1] for factor in factors]
    lifted = multi_mode_dot(xp.reshape(basis.T, (basis.shape[1], *ranks)), factors)
    return xp.reshape(lifted, (basis.shape[1], -1)).T


def project_block(
    block: Array, factors: Sequence[Array], basis: Array | None, lifted: Array | None
) -> Array:
    """Project one block of samples on the factors, then on the basis; `lifted` combines both."""
    xp = get_namespace(block)
    if lifted is not None:
        return xp.matmul(xp.reshape(block, (block.shape[0], -1)), lifted)
    B = xp.reshape(multi_mode_dot(block, factors, transpose=True), (block.shape[0], -1))
    return B if basis is None else xp.matmul(B, basis)


@dataclass
class SketchPlan:
    """Everything small that the sketch of a block needs, in the type of the samples."""

    factors: Sequence[Array]
    basis: Array
    mean: Array

    @cached_property
    def lifted(self) -> Array | None:
        """The basis in sample space where that is cheaper."""
        shape = [factor.shape[0] for factor in self.factors]
        return lift_if_cheaper(self.factors, self.basis, shape)

    @cached_property
    def offset(self) -> Array:
        """The mean sample, projected as the samples are."""
        small = [double(factor) for factor in self.factors]
        return asarray_like(
            project_block(self.mean[None, ...], small, double(self.basis), None), self.basis
        )


def sketch_block(block: Array, plan: SketchPlan, cross: bool) -> tuple[Array, Array | None]:
    """Sketch one block of samples, see `Source.sketch`."""
    xp = get_namespace(block)
    Y = project_block(block, plan.factors, plan.basis, plan.lifted) - plan.offset
    gram = double(xp.matmul(Y.T, Y))
    return gram, (contract_block(block, Y) if cross else None)


def add_sketches(
    total: tuple[Array, Array | None] | None, part: tuple[Array, Array | None]
) -> tuple[Array, Array | None]:
    """Add the sketch of a block to that of the blocks before it."""
    if total is None:
        return part
    cross = None if total[1] is None else total[1] + part[1]
    return total[0] + part[0], cross


def contract_block(block: Array, Q: Array) -> Array:
    """Sum the samples of one block with weights, in float64."""
    xp = get_namespace(block)
    flat = xp.reshape(block, (block.shape[0], -1))
    return double(xp.reshape(xp.matmul(Q.T, flat), (Q.shape[1], *block.shape[1:])))
