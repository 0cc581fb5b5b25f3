"""The data as the solvers see them: a few reductions over the samples.

A sweep of the exact solver needs the product of the samples with a basis, its Gram matrix and the
sums of the samples weighted by it. All three come out of one pass, `Source.sketch`, because the
weights of a block of samples follow from that block alone once the mean is known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tuckermix._array_api import Array, asarray_like, double, get_namespace
from tuckermix._records import Record
from tuckermix.sources.blocks import Blocks, add_parts, as_blocks
from tuckermix.tensor import mode_gram, multi_mode_dot, squared_norm

__all__ = ["Sketch", "Source", "as_source"]

SAFE_EXPONENT = 0.25
"""Squares of squares must stay within the range of the floating type, so the largest entry may
use a quarter of its exponents."""


@dataclass(frozen=True)
class Sketch(Record):
    """What one pass over the samples tells of their part in a small subspace.

    With `y` the centred samples projected on the factors and the basis,

    Attributes
    ----------
    gram : array of shape (k, k)
        The sum of y yᵀ over the samples, in float64.
    cross : array of shape (k, d_1, ...) or None
        The sum of y xᵀ over the samples, in float64, where it was asked for.
    """

    gram: Array
    cross: Array | None


class Source:
    """Samples that are only ever reduced, never handed out as a whole.

    The samples are multiplied by `scale`, a power of two, wherever they are read, so that squares
    neither overflow nor vanish. It is 1 for data of ordinary size.

    Parameters
    ----------
    samples : Blocks
        The samples.

    Attributes
    ----------
    n_samples : int
        The number of samples M.
    sample_shape : tuple of int
        The shape of one sample.
    like : array of shape (1, d_1, ...)
        A small array of the library, device and floating type of the data.
    lazy : bool
        Whether rows of samples come back as a Dask array.
    scale : float
        What the samples are multiplied by.
    squared_norm : float
        The squared norm of the scaled samples.
    mean : array of shape (d_1, ...)
        The mean of the scaled samples, in float64.
    """

    def __init__(self, samples: Blocks):
        self._samples = samples
        self.n_samples = samples.n_samples
        self.sample_shape = samples.sample_shape
        self.like = samples.like
        self.lazy = samples.lazy
        self.scale = 1.0
        total, summed = samples.reduce(partial(_moments, scale=1.0), add_parts)
        if not is_ordinary(total, self.like):
            peak = samples.reduce(_peak, _larger)
            if not math.isfinite(peak):
                raise ValueError("Input X contains NaN or infinity.")
            self.scale = choose_scale(peak, self.like)
            total, summed = samples.reduce(partial(_moments, scale=self.scale), add_parts)
        self.squared_norm = total
        self.mean = summed / self.n_samples

    def _small(self, factors: Sequence[Array]) -> list[Array]:
        """Bring the factors to the floating type and the device of the samples."""
        return [asarray_like(factor, self.like) for factor in factors]

    def cost_of(self, squared_error: float) -> float:
        """Return half a squared error in the units of the samples.

        The result may be too small or too large for a float, 0 or infinity then.

        Parameters
        ----------
        squared_error : float
            The squared error of the scaled samples; rounding may have made it negative.

        Returns
        -------
        cost : float
            Half of it, undone of the scale.
        """
        return 0.5 * max(0.0, squared_error) / self.scale / self.scale

    def mode_grams(self) -> list[Array]:
        """Compute the Gram matrix of each feature mode.

        Returns
        -------
        grams : list of arrays of shape (d_n, d_n)
            In float64.
        """
        return self._samples.reduce(partial(_grams_of_block, scale=self.scale), add_parts)

    def projected_gram(self, factors: Sequence[Array], mode: int) -> Array:
        """Compute the Gram matrix of one feature mode, the others projected on their factors.

        Parameters
        ----------
        factors : sequence of arrays of shape (d_n, r_n)
            The factors of all feature modes; that of `mode` is not used.
        mode : int
            The feature mode, counted from 0.

        Returns
        -------
        gram : array of shape (d_mode, d_mode)
            In float64.
        """
        others = [None if n == mode else f for n, f in enumerate(self._small(factors))]
        block_gram = partial(_projected_gram_of_block, others=others, mode=mode, scale=self.scale)
        return self._samples.reduce(block_gram, add_parts)[0]

    def project(self, factors: Sequence[Array], basis: Array | None = None) -> Array:
        """Project the samples on the factors, and further on a basis of the projected space.

        Parameters
        ----------
        factors : sequence of arrays of shape (d_n, r_n)
            Orthonormal factors.
        basis : array of shape (product of r_n, k) or None, default=None
            A basis of part of the projected space.

        Returns
        -------
        B : array of shape (n_samples, product of r_n) or (n_samples, k)
            The projected samples as rows.
        """
        return self._samples.map(Projection(self._small(factors), basis, self.like, self.scale))

    def contract(self, Q: Array) -> Array:
        """Sum the samples with weights.

        Parameters
        ----------
        Q : array of shape (n_samples, k)
            The weights.

        Returns
        -------
        T : array of shape (k, d_1, ...)
            The k weighted sums, in float64.
        """
        contract = partial(_contract_block, scale=self.scale)
        return self._samples.reduce(contract, add_parts, Q)[0]

    def sketch(self, factors: Sequence[Array], basis: Array, *, cross: bool = True) -> Sketch:
        """Read the samples once for all that a sweep of the exact solver needs.

        Parameters
        ----------
        factors : sequence of arrays of shape (d_n, r_n)
            Orthonormal factors.
        basis : array of shape (product of r_n, k)
            A basis of part of the projected space.
        cross : bool, default=True
            Whether the sums with the whole samples are wanted as well.

        Returns
        -------
        sketch : Sketch
            The sums over all samples.
        """
        projection = Projection(self._small(factors), basis, self.like, self.scale)
        exact = Projection([double(f) for f in projection.factors], double(basis), self.mean)
        offset = asarray_like(exact(self.mean[None, ...]), self.like)
        function = partial(_sketch_block, projection=projection, offset=offset, cross=cross)
        return Sketch(*self._samples.reduce(function, add_parts))

    def take(self, indices: np.ndarray) -> Source:
        """Return a source in memory of the samples with these sorted indices."""
        return as_source(self._samples.take(indices))


def as_source(X: Any) -> Source:
    """Wrap an array as a source.

    Parameters
    ----------
    X : array of shape (n_samples, d_1, ...)
        A NumPy, PyTorch, CuPy, JAX or Dask array of float32 or float64.

    Returns
    -------
    source : Source
        The samples, ready to be reduced.
    """
    return Source(as_blocks(X))


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


class Projection:
    """The function that projects a block of samples on factors and a basis.

    Parameters
    ----------
    factors : sequence of arrays of shape (d_n, r_n)
        Orthonormal factors.
    basis : array of shape (product of r_n, k) or None
        A basis of part of the projected space.
    like : array
        An array of the type and device of the samples.
    scale : float, default=1.0
        What the samples are multiplied by.
    """

    def __init__(
        self, factors: Sequence[Array], basis: Array | None, like: Array, scale: float = 1.0
    ):
        self.factors = list(factors)
        self.basis = None if basis is None else asarray_like(basis, like)
        self.scale = scale
        # One product with the basis in sample space where that beats the chain of small ones.
        self.lifted = None if self.basis is None else self._lift_if_cheaper(self.basis)

    def _lift_if_cheaper(self, basis: Array) -> Array | None:
        whole = math.prod(factor.shape[0] for factor in self.factors)
        cost_in_steps, size = 0, whole
        for factor in reversed(self.factors):
            cost_in_steps += size * factor.shape[1]
            size = size // factor.shape[0] * factor.shape[1]
        cost_in_steps += size * basis.shape[1]
        # A single large product runs at about twice the speed of the chain of small ones.
        if whole * basis.shape[1] > 2 * cost_in_steps:
            return None
        xp = get_namespace(basis)
        ranks = [factor.shape[1] for factor in self.factors]
        lifted = multi_mode_dot(xp.reshape(basis.T, (basis.shape[1], *ranks)), self.factors)
        return xp.reshape(lifted, (basis.shape[1], whole)).T

    def __call__(self, block: Array) -> Array:
        """Return the rows of shape (n, k) for a block of shape (n, d_1, ...)."""
        xp = get_namespace(block)
        block = _scaled(block, self.scale)
        if self.lifted is not None:
            flat = xp.reshape(block, (block.shape[0], self.lifted.shape[0]))
            return xp.matmul(flat, self.lifted)
        small = multi_mode_dot(block, self.factors, transpose=True)
        rows = xp.reshape(small, (small.shape[0], math.prod(small.shape[1:])))
        return rows if self.basis is None else xp.matmul(rows, self.basis)


def _scaled(block: Array, scale: float) -> Array:
    return block if scale == 1.0 else block * scale


def _moments(block: Array, scale: float) -> tuple[float, Array]:
    """Return the sum of squares and the sum of the samples of a block."""
    xp = get_namespace(block)
    block = _scaled(block, scale)
    # Libraries sum float32 in pairs or trees, which is accurate enough within a block; a cast of
    # the whole block would take time and memory.
    return squared_norm(block), double(xp.sum(block, axis=0))


def _peak(block: Array) -> float:
    xp = get_namespace(block)
    return float(xp.max(xp.abs(block)))


def _larger(left: float, right: float) -> float:
    """Return the larger of two numbers; NaN, which compares with nothing, wins."""
    return left if left > right or math.isnan(left) else right


def _grams_of_block(block: Array, scale: float) -> list[Array]:
    """Compute the Gram matrices of the feature modes of one block, in float64."""
    block = _scaled(block, scale)
    return [double(mode_gram(block, mode)) for mode in range(1, block.ndim)]


def _projected_gram_of_block(
    block: Array, others: Sequence[Array | None], mode: int, scale: float
) -> tuple[Array]:
    """Compute the Gram matrix of one feature mode of a projected block, in float64."""
    part = multi_mode_dot(_scaled(block, scale), others, transpose=True)
    return (double(mode_gram(part, mode + 1)),)


def _contract_block(block: Array, Q: Array, scale: float = 1.0) -> tuple[Array]:
    """Sum the samples of one block with weights, in float64."""
    xp = get_namespace(block)
    block = _scaled(block, scale)
    flat = xp.reshape(block, (block.shape[0], math.prod(block.shape[1:])))
    summed = xp.matmul(asarray_like(Q, block).T, flat)
    return (double(xp.reshape(summed, (Q.shape[1], *block.shape[1:]))),)


def _sketch_block(
    block: Array, projection: Projection, offset: Array, cross: bool
) -> tuple[Array, Array | None]:
    """Sketch one block of samples, see `Source.sketch`."""
    xp = get_namespace(block)
    Y = projection(block) - offset
    gram = double(xp.matmul(Y.T, Y))
    return gram, (_contract_block(block, Y, projection.scale)[0] if cross else None)
