"""The data as the solvers see them: blocks of samples, and a few reductions over them.

`Blocks` are the two ways in which anything touches the samples: `map` gives rows that belong to
single samples, `reduce` a small result over all of them. In memory several threads work on the
blocks; a Dask array brings its own blocks.

`Source` holds the reductions of the solvers. A sweep of the exact solver needs the product of the
samples with a basis, its Gram matrix and the sums of the samples weighted by it. All three come
out of one pass, `Source.sketch`, because the weights of a block of samples follow from that block
alone once the mean is known.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tuckermix._array_api import (
    Array,
    asarray_like,
    blocks,
    double,
    get_namespace,
    is_dask,
    is_double,
    is_numpy,
    take_rows,
    to_numpy,
)
from tuckermix._estimators import Settings
from tuckermix._records import Record
from tuckermix._threads import gather_rows
from tuckermix.numerics import linalg
from tuckermix.numerics.linalg import add_parts
from tuckermix.numerics.tensor import mode_dot, mode_gram, multi_mode_dot, squared_norm

HOST_BLOCK_BYTES = 2 * 2**20
"""The least size of a block on a processor: what is done with a smaller one takes so little time
that its calls of Python, one thread at a time, would be the most of it."""


@dataclass(frozen=True)
class ReadingSettings(Settings):
    """How samples are cut into blocks.

    Attributes
    ----------
    host_blocks, wide_block_bytes : int
        Many samples make as many blocks, two for each of sixteen threads, or more where a block
        would be larger than the second figure. More blocks are more calls of Python between which
        threads wait: with three for each of sixteen, a model of 70,000 digits takes a quarter
        longer.
    together : int
        Samples in float32 that are added up in float32; their sums are added up in float64.
    safe_exponent : float
        Squares of squares must stay within the range of the floating type, so the largest entry may
        use a quarter of its exponents.
    """

    host_blocks: int = 32
    wide_block_bytes: int = 8 * 2**20
    together: int = 64
    safe_exponent: float = 0.25


HOST_BLOCK_SAMPLES = 128
LARGE_HOST_BLOCK_BYTES = 64 * 2**20
"""Large samples come this many at a time, as long as they take no more than the second figure: the
sums over a block are as large as some hundred samples, and adding them up after every few samples
would take longer than computing them (nine times as long for videos of 50 × 50 × 50)."""

DEVICE_BLOCK_BYTES = 512 * 2**20
"""On an accelerator few large launches beat many small ones."""

PARTS = 8
"""Least number of blocks on an accelerator: temporary arrays, some of them in float64, then stay
well below the size of the samples."""

SKETCH_FLOOR = 1e-11
"""Directions of a sketch with less than this share of the energy of the first are dropped: they are
known to few digits only, and what they could add is at the level of rounding."""


Combine = Callable[[Any, Any], Any]
"""Makes one result of two."""


class Blocks(ABC):
    """Samples as a sequence of blocks.

    Attributes
    ----------
    n_samples : int
        The number of samples.
    sample_shape : tuple of int
        The shape of one sample.
    like : array of shape (1, d_1, ...)
        A small array of the library, device and floating type of the samples.
    lazy : bool
        Whether `map` returns a Dask array.
    parts : list of slice or None
        Where blocks begin and end, in memory.
    """

    n_samples: int
    sample_shape: tuple[int, ...]
    like: Array
    lazy: bool = False
    parts: list[slice] | None = None

    @abstractmethod
    def map(self, function: Callable[..., Array], *rows: Array) -> Array:
        """Apply a function of samples that returns one row for each sample.

        Parameters
        ----------
        function : callable
            Takes a block of shape (n, d_1, ...), and of each of `rows` the part that belongs to
            it; returns an array of shape (n, ...).
        *rows : arrays of shape (n_samples, ...)
            Further arrays that are cut as the samples are.

        Returns
        -------
        rows : array of shape (n_samples, ...)
            The rows of all samples.
        """

    @abstractmethod
    def reduce(self, function: Callable[..., Any], combine: Combine, *rows: Array) -> Any:
        """Apply a function to every block and combine the results in one pass.

        Parameters
        ----------
        function : callable
            Takes a block of shape (n, d_1, ...), and of each of `rows` the part that belongs to
            it; returns something small.
        combine : callable
            Makes one result of two; associative.
        *rows : arrays of shape (n_samples, ...)
            Further arrays that are cut as the samples are.

        Returns
        -------
        result : object
            The combined result.
        """

    @abstractmethod
    def take(self, indices: np.ndarray, function: Callable[[Array], Array] | None = None) -> Array:
        """Return the samples with these sorted indices in memory, or what a function makes of them.

        Parameters
        ----------
        indices : ndarray of shape (n,)
            Rising.
        function : callable or None, default=None
            Makes one row of each sample, before they are joined.

        Returns
        -------
        rows : array of shape (n, ...)
            The samples, or their rows.
        """

    def scaled(self, scale: float) -> Blocks:
        """Return the samples multiplied by a number, which very large and very small ones need."""
        raise ValueError(f"{type(self).__name__} has no other units: divide X by a constant first.")


class MemoryBlocks(Blocks):
    """Samples that lie in the memory of one device.

    Parameters
    ----------
    X : array of shape (n_samples, d_1, ...)
        The samples, never copied as a whole.
    scale : float, default=1.0
        What each block is multiplied by when it is read.
    """

    def __init__(self, X: Array, scale: float = 1.0):
        use = ReadingSettings.current()
        self._X, self._scale = X, scale
        self.n_samples = int(X.shape[0])
        self.sample_shape = tuple(int(size) for size in X.shape[1:])
        self.like = X[:1, ...]
        size = math.prod(self.sample_shape) * (8 if is_double(X) else 4)
        if is_numpy(X):
            budget = min(-(-self.n_samples // use.host_blocks) * size, use.wide_block_bytes)
            budget = max(budget, HOST_BLOCK_BYTES)
            budget = max(budget, min(HOST_BLOCK_SAMPLES * size, LARGE_HOST_BLOCK_BYTES))
        else:
            budget = min(DEVICE_BLOCK_BYTES, max(HOST_BLOCK_BYTES, self.n_samples * size // PARTS))
        step = max(1, min(self.n_samples, budget // max(1, size)))
        # As many blocks, of about the same size, so that no thread waits for a larger one.
        step = -(-self.n_samples // -(-self.n_samples // step))
        self.parts: list[slice] = list(blocks(self.n_samples, 1, step))

    def map(self, function: Callable[..., Array], *rows: Array) -> Array:
        """Apply a function that returns one row for each sample, see `Blocks.map`."""
        read = partial(self._read, function=function, rows=rows)
        if len(self.parts) == 1:
            return read(self.parts[0])
        return gather_rows(read, self.parts, self.n_samples, self._X)

    def reduce(self, function: Callable[..., Any], combine: Combine, *rows: Array) -> Any:
        """Apply a function to every block and combine the results, see `Blocks.reduce`."""
        read = partial(self._read, function=function, rows=rows)
        if len(self.parts) == 1:
            return read(self.parts[0])
        if is_numpy(self._X) and combine is add_parts:
            combine = linalg.add_to
        return linalg.reduce_blocks(read, self.parts, self._X, combine)

    def take(self, indices: np.ndarray, function: Callable[[Array], Array] | None = None) -> Array:
        """Return chosen samples or rows of them, see `Blocks.take`."""
        chosen = take_rows(self._X, indices)
        chosen = chosen if self._scale == 1.0 else chosen * self._scale
        return chosen if function is None else MemoryBlocks(chosen).map(function)

    def scaled(self, scale: float) -> MemoryBlocks:
        """Return the samples in other units, see `Blocks.scaled`."""
        return MemoryBlocks(self._X, scale)

    def _read(self, part: slice, function: Callable[..., Any], rows: tuple[Array, ...]) -> Any:
        """Apply a function to one block."""
        block = self._X[part, ...]
        block = block if self._scale == 1.0 else block * self._scale
        return function(block, *(array[part, ...] for array in rows))


def as_blocks(X: Any) -> Blocks:
    """Wrap an array as blocks of samples.

    Parameters
    ----------
    X : array of shape (n_samples, d_1, ...), or Blocks
        A NumPy, PyTorch, CuPy, JAX or Dask array of float32 or float64; blocks stay as they are.

    Returns
    -------
    samples : Blocks
        The samples.
    """
    if isinstance(X, Blocks):
        return X
    if is_dask(X):
        from tuckermix.sources.dask import DaskBlocks

        return DaskBlocks(X)
    return MemoryBlocks(X)


@dataclass(frozen=True)
class Sketch(Record):
    """Measurements of one pass over the samples, of their part in a small subspace.

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


@dataclass(frozen=True)
class Measure(Record):
    """Measurements of one pass over the samples, of a solution.

    With `Q` the basis of its memberships and `B` the centred samples projected on its factors,

    Attributes
    ----------
    contracted : array of shape (k, d_1, ...)
        Qᵀ X, in float64.
    within : array of shape (k, k)
        Qᵀ Q, in float64.
    cross : array of shape (k, n_projected)
        Qᵀ B, in float64.
    gram : array of shape (n_projected, n_projected) or None
        Bᵀ B, or the smaller B Bᵀ, in float64, unless both are large. For many samples in float32
        this and `cross` are added up in float64 from products in float32.
    """

    contracted: Array
    within: Array
    cross: Array
    gram: Array | None


@dataclass(frozen=True)
class SpanSettings(Settings):
    """When a mode is too long for matrices of its size.

    Attributes
    ----------
    long_mode : int
        A shorter mode is worked on as it is: matrices of its size cost next to nothing.
    dense_side : int
        A longer mode is always worked on within a basis: a decomposition of a matrix of its size
        would take seconds and a hundred megabytes.
    width : int
        The most fibres that a basis of such a mode has. Of images, spectra and features fewer hold
        all but a thousandth of the energy.
    many_entries : int
        A longer mode of samples with several modes is narrowed to its strongest directions.
    wider, further : float and int
        Their number: `wider` times the columns of the factor, and `further` more.
    most_directions : int
        The most that such a mode gets where no ranks are asked for. Of maps of 1,280 channels,
        256 to 600 directions give no better labels, and 128 slightly worse ones.
    """

    long_mode: int = 256
    dense_side: int = 2048
    width: int = 1024
    many_entries: int = 1024
    wider: float = 1.5
    further: int = 32
    most_directions: int = 192


class Source:
    """Samples that are only ever reduced, never handed out as a whole.

    The samples are multiplied by `scale`, a power of two, wherever they are read, so that squares
    neither overflow nor vanish. It is 1 for data of ordinary size.

    Parameters
    ----------
    samples : array of shape (n_samples, d_1, ...), or Blocks
        The samples: a NumPy, PyTorch, CuPy, JAX or Dask array of float32 or float64.

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

    def __init__(self, samples: Any):
        use, samples = ReadingSettings.current(), as_blocks(samples)
        self.n_samples = samples.n_samples
        self.sample_shape = samples.sample_shape
        self.like = samples.like
        self.lazy = samples.lazy
        self.scale = 1.0
        total, summed = samples.reduce(_moments, add_parts)
        # Squares of squares must stay within the range of the floating type, and the square of
        # a gradient, which is their square again over small weights, within that of doubles.
        limit = float(get_namespace(self.like).finfo(self.like.dtype).max)
        largest = min(limit ** (2 * use.safe_exponent), sys.float_info.max**use.safe_exponent)
        if not 1.0 / largest < total < largest:
            self.scale = choose_scale(samples.reduce(peak_of, np.maximum), self.like)
            samples = samples.scaled(self.scale)
            total, summed = samples.reduce(_moments, add_parts)
        if total**0.5 / self.scale > limit:
            raise ValueError(
                f"The norm of X must be within the range of {self.like.dtype}, whose largest "
                f"number is {limit:.1e}. Got entries of up to "
                f"{samples.reduce(peak_of, np.maximum) / self.scale:.1e}: divide X by a constant, "
                "or pass float64."
            )
        self._samples = samples
        self.squared_norm = total
        self.mean = summed / self.n_samples

    def mode_grams(self) -> list[Array]:
        """Compute the Gram matrix of each feature mode.

        Returns
        -------
        grams : list of arrays of shape (d_n, d_n)
            In float64.
        """
        return self._samples.reduce(
            lambda block: [double(mode_gram(block, mode)) for mode in range(1, block.ndim)],
            add_parts,
        )

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
        others = [None if n == mode else asarray_like(f, self.like) for n, f in enumerate(factors)]
        function = partial(_projected_gram, others=others, mode=mode)
        return self._samples.reduce(function, add_parts)[0]

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
        return self._samples.map(Projection(factors, basis, self.like))

    def centred(self, factors: Sequence[Array]) -> tuple[Array, Array]:
        """Project the samples on the factors and subtract the mean.

        Parameters
        ----------
        factors : sequence of arrays of shape (d_n, r_n)
            Orthonormal factors.

        Returns
        -------
        B : array of shape (n_samples, product of r_n)
            The centred rows.
        mean : array of shape (product of r_n,)
            What was subtracted, in float64.
        """
        projection = Projection(factors, None, self.like, self.mean)
        return self._samples.map(projection), projection.mean[0, :]

    def contract(self, Q: Array) -> Array:
        """Sum the samples with weights `Q` of shape (n_samples, k), k times, in float64."""
        return self._samples.reduce(_contract, add_parts, Q)[0]

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
        projection = Projection(factors, basis, self.like, self.mean)
        function = partial(_sketch, projection=projection, cross=cross)
        return Sketch(*self._samples.reduce(function, add_parts))

    def contracted(self, factors: Sequence[Array], basis: Array) -> tuple[Array, np.ndarray]:
        r"""Contract the samples with the constant and the directions of a basis, in one pass.

        With `gram` :math:`= E \Lambda E^\top` and `cross` those of `sketch`, the moving part of the
        result is :math:`\Lambda^{-1/2} E^\top` `cross`.

        Parameters
        ----------
        factors : sequence of arrays of shape (d_n, r_n)
            Orthonormal factors.
        basis : array of shape (product of r_n, k)
            A basis of part of the projected space.

        Returns
        -------
        T : array of shape (1 + width, d_1, ...)
            The samples contracted with the constant direction and `width` others, in float64.
        energies : ndarray of shape (width,)
            The energy of the samples along these, falling.
        """
        constant = self.mean[None, ...] * self.n_samples**0.5
        if basis.shape[1] == 0:
            return constant, np.zeros(0)
        sketch = self.sketch(factors, basis)
        xp = get_namespace(sketch.gram)
        energies, vectors = linalg.leading_eigenvectors(sketch.gram, sketch.gram.shape[0])
        host = to_numpy(energies)
        keep = int(np.sum(host > SKETCH_FLOOR * max(float(host[0]), 0.0)))
        whiten = vectors[:, :keep] / xp.sqrt(energies[:keep])
        return xp.concat([constant, mode_dot(sketch.cross, whiten.T, 0)], axis=0), host[:keep]

    def measure(self, factors: Sequence[Array], Q: Array) -> Measure:
        """Read the samples once for all that is needed to judge a solution.

        Parameters
        ----------
        factors : sequence of arrays of shape (d_n, r_n)
            Orthonormal factors.
        Q : array of shape (n_samples, k)
            A basis of the memberships.

        Returns
        -------
        measure : Measure
            The sums over all samples.
        """
        projection = Projection(factors, None, self.like, self.mean)
        n_projected = projection.mean.shape[1]
        if not self.lazy and self.n_samples <= min(linalg.DENSE_SIDE, n_projected - 1):
            # Few samples of many features: their own products are the smaller matrix.
            xp, basis = get_namespace(self.like), double(Q)
            B = double(self._samples.map(projection))
            cross, gram = xp.matmul(basis.T, B), xp.matmul(B, B.T)
            return Measure(self.contract(Q), xp.matmul(basis.T, basis), cross, gram)
        exact = 2.0 * self.n_samples * n_projected**2 < linalg.UPCAST_FLOPS
        gram = n_projected <= min(linalg.DENSE_SIDE, self.n_samples)
        function = partial(_measure, projection=projection, exact=exact, gram=gram)
        return Measure(*self._samples.reduce(function, add_parts, Q))

    def spans(self, ranks: Sequence[int] | None = None) -> tuple[list[Array | None], bool]:
        """Find bases of long modes in which the solvers work, see `SpanSettings`.

        A table of 300 samples with 6,000 columns has at most 300 directions. Found in a basis of
        these, they are the same, and no matrix of the size of the long mode is needed. Where a mode
        has too many fibres for that, a random part of them stands for all, improved by one step of
        power iteration: what lies beyond their span is the weakest part.

        Parameters
        ----------
        ranks : sequence of int or None, default=None
            The ranks that are asked for, if any: a basis has at least as many columns.

        Returns
        -------
        bases : list of arrays of shape (d_n, w_n) or None
            Orthonormal columns in the type of the samples, ``w_n < d_n``; None for other modes.
        exact : bool
            Whether all samples lie within them.
        """
        settings, shape = SpanSettings.current(), self.sample_shape
        whole = math.prod(shape)
        bases: list[Array | None] = [None] * len(shape)
        exact = True
        for mode, size in enumerate(shape):
            rank = 1 if ranks is None else ranks[mode]
            n_fibres = self.n_samples * (whole // size)
            if size <= settings.dense_side:
                if settings.long_mode < size and rank <= n_fibres < size:
                    bases[mode] = self._span(mode, n_fibres, rank)
            elif max(rank, min(n_fibres, settings.width)) < size:
                bases[mode] = self._span(mode, settings.width, rank)
                exact = exact and n_fibres <= settings.width
        return bases, exact

    def _span(self, mode: int, width: int, rank: int) -> Array:
        """Return a basis of the fibres of a mode, or of `width` of them where there are more."""
        xp, size = get_namespace(self.like), self.sample_shape[mode]
        # Fixed: the result depends on the samples alone.
        rng = np.random.default_rng(0)
        some = np.arange(self.n_samples)
        if self.n_samples > width:
            some = np.sort(rng.choice(self.n_samples, width, replace=False))
        rows = xp.moveaxis(self._samples.take(some), mode + 1, -1)
        fibres = xp.reshape(rows, (-1, size))
        if fibres.shape[0] > width:
            some = np.sort(rng.choice(fibres.shape[0], width, replace=False))
            fibres = take_rows(fibres, some)
        if rank > fibres.shape[0]:  # more than the samples span: any others do
            further = rng.standard_normal((rank - fibres.shape[0], size))
            fibres = xp.concat([fibres, asarray_like(further, fibres)], axis=0)
        del rows
        basis = linalg.orthonormal_columns(fibres)
        if width < self.n_samples * math.prod(self.sample_shape) // size:
            function = partial(_power_step, basis=basis, mode=mode)
            basis = linalg.orthonormal_columns(self._samples.reduce(function, add_parts)[0])
        return basis

    def within(self, bases: Sequence[Array | None]) -> Source:
        """Return the samples along bases of some modes; norms and units are those of the whole."""
        if all(basis is None for basis in bases):
            return self
        matrices = [None if basis is None else asarray_like(basis, self.like) for basis in bases]
        rows = self._samples.map(partial(multi_mode_dot, matrices=matrices, transpose=True))
        short = Source(rows)
        short.scale, short.squared_norm = self.scale, self.squared_norm
        return short

    def take(self, indices: np.ndarray) -> Source:
        """Return a source in memory of the samples with these sorted indices."""
        return Source(self._samples.take(indices))


def as_source(X: Any) -> Source:
    """Wrap an array as a source, as version 0.1 did."""
    return Source(X)


def choose_scale(peak: float, like: Array) -> float:
    """Return the power of two that brings the largest entry near 1; 1 for data all zero.

    Powers of two change exponents only, so scaling costs no accuracy. The factor itself must be
    finite in the floating type, which caps it for the smallest subnormal numbers.
    """
    if not math.isfinite(peak):
        raise ValueError("Input X contains NaN or infinity.")
    if peak == 0:
        return 1.0
    limit = int(math.log2(float(get_namespace(like).finfo(like.dtype).max))) - 1
    return 2.0 ** max(-limit, min(limit, -math.frexp(peak)[1]))


def scale_if_extreme(peak: float, like: Array) -> float:
    """Return the scale of `choose_scale` where fourth powers would leave the range, else 1."""
    use = ReadingSettings.current()
    most = float(get_namespace(like).finfo(like.dtype).max) ** use.safe_exponent
    return 1.0 if peak == 0.0 or 1.0 / most < peak < most else choose_scale(peak, like)


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
    mean : array of shape (d_1, ...) or None, default=None
        The mean of the samples in float64, where centred rows are wanted.

    Attributes
    ----------
    mean : array of shape (1, k)
        The projected mean, in float64.
    offset : array of shape (1, k) or None
        The same in the type of the samples; None where nothing is subtracted.
    """

    mean: Array
    offset: Array | None = None

    def __init__(
        self, factors: Sequence[Array], basis: Array | None, like: Array, mean: Array | None = None
    ):
        self.factors = [asarray_like(factor, like) for factor in factors]
        self.basis = self.lifted = None
        if mean is not None:
            self.mean = Projection(self.factors, basis, mean)(mean[None, ...])
            self.offset = asarray_like(self.mean, like)
        if basis is None:
            return
        self.basis = asarray_like(basis, like)
        whole = math.prod(factor.shape[0] for factor in self.factors)
        cost_in_steps, size = 0, whole
        for factor in reversed(self.factors):
            cost_in_steps += size * factor.shape[1]
            size = size // factor.shape[0] * factor.shape[1]
        cost_in_steps += size * basis.shape[1]
        # One product with the basis in sample space where that beats the chain of small ones: a
        # single large product runs at about twice the speed.
        if whole * basis.shape[1] <= 2 * cost_in_steps:
            xp = get_namespace(self.basis)
            ranks = [factor.shape[1] for factor in self.factors]
            small = xp.reshape(self.basis.T, (basis.shape[1], *ranks))
            lifted = multi_mode_dot(small, self.factors)
            self.lifted = xp.reshape(lifted, (basis.shape[1], whole)).T

    def __call__(self, block: Array) -> Array:
        """Return the rows of shape (n, k) for a block of shape (n, d_1, ...)."""
        xp = get_namespace(block)
        if self.lifted is not None:
            flat = xp.reshape(block, (block.shape[0], self.lifted.shape[0]))
            rows = xp.matmul(flat, self.lifted)
        else:
            small = multi_mode_dot(block, self.factors, transpose=True)
            rows = xp.reshape(small, (small.shape[0], math.prod(small.shape[1:])))
            rows = rows if self.basis is None else xp.matmul(rows, self.basis)
        if self.offset is not None:
            rows -= self.offset  # in place where the library can
        return rows


def _moments(block: Array) -> tuple[float, Array]:
    """Return the sum of squares and the sum of the samples of a block."""
    use = ReadingSettings.current()
    xp = get_namespace(block)
    squares = squared_norm(block)
    if is_double(block) or not is_numpy(block):
        return squares, double(xp.sum(block, axis=0))  # others sum float32 in trees
    # NumPy adds one sample after the other. A cast of all of them would take longer.
    end = block.shape[0] - block.shape[0] % use.together
    groups = (
        block[:end, ...].reshape(end // use.together, use.together, *block.shape[1:]).sum(axis=1)
    )
    total = groups.sum(axis=0, dtype=np.float64) + block[end:, ...].sum(axis=0, dtype=np.float64)
    return squares, total


def peak_of(block: Array) -> float:
    """Return the largest absolute entry, or NaN where there is one."""
    xp = get_namespace(block)
    return max(float(xp.max(block)), -float(xp.min(block)))


def _projected_gram(block: Array, others: Sequence[Array | None], mode: int) -> tuple[Array]:
    """Compute the Gram matrix of one feature mode of a projected block, in float64."""
    return (double(mode_gram(multi_mode_dot(block, others, transpose=True), mode + 1)),)


def _power_step(block: Array, basis: Array, mode: int) -> tuple[Array]:
    """Sum the fibres of a mode with the weights that they have along a basis, in their own type."""
    along = mode_dot(block, basis.T, mode + 1)
    rest = [axis for axis in range(block.ndim) if axis != mode + 1]
    return (get_namespace(block).tensordot(along, block, axes=(rest, rest)),)


def _contract(block: Array, Q: Array) -> tuple[Array]:
    """Sum the samples of one block with weights, in float64."""
    xp = get_namespace(block)
    return (double(xp.tensordot(asarray_like(Q, block), block, axes=((0,), (0,)))),)


def _sketch(block: Array, projection: Projection, cross: bool) -> tuple[Array, Array | None]:
    """Sketch one block of samples, see `Source.sketch`."""
    xp = get_namespace(block)
    Y = projection(block)
    sums = double(xp.tensordot(Y, block, axes=((0,), (0,)))) if cross else None
    return double(xp.matmul(Y.T, Y)), sums


def _measure(
    block: Array, Q: Array, projection: Projection, exact: bool, gram: bool
) -> tuple[Array, Array, Array, Array | None]:
    """Measure one block of samples, see `Source.measure`; if exact, from products in float64."""
    xp = get_namespace(block)
    T = double(xp.tensordot(Q, block, axes=((0,), (0,))))
    rows = projection(block)
    if exact and not is_double(rows):
        # What the rounding of the mean left.
        rows = double(rows) - (projection.mean - double(projection.offset))
    energy = double(xp.matmul(rows.T, rows)) if gram else None
    cross = double(xp.matmul(asarray_like(Q, rows).T, rows))
    return T, xp.matmul(double(Q).T, double(Q)), cross, energy
