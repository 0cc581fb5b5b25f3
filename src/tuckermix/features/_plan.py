r"""The cascade on images in NumPy, as a list of few and long calls on memory that is used again.

The steps are those of `_cascade`, with the same matrices. What differs is for the processor's sake:

- Fresh memory costs more than what is done with it, and between two calls Python runs one thread
  at a time. A plan makes its arrays once and notes calls that write into them; to run it is to
  make these calls.
- Real and imaginary parts lie side by side, ``(n_1, n_2, columns, filters, 2)``, so that one call
  takes the modulus of complex numbers.
- A product along the second axis lays its result down with the two axes swapped. The next one,
  along the other axis, is then along the second as well, and all reading is in order.
- An image and the moduli of its finest wavelets have one resolution, and are columns of one
  spectrum: a coarser wavelet filters them in one call.

A signal is an image with a second axis of size one, along which there is nothing to do.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from tuckermix.features._cascade import Layout
from tuckermix.features._frequencies import basis, coarsen

PIECE_BYTES = 4 * 2**20
"""About how large the largest array between two steps is. Smaller ones stay nearer to the
processor; with larger ones there are fewer and longer calls, half a millisecond each at this size,
and many threads wait less for Python. On 16 processors, half of this and half as much again take a
sixth longer."""

NARROW = 10**6
"""Multiplications in a product of matrices up to which OpenBLAS copies neither factor first: where
one of them has a few dozen rows, copying the other takes longer than the product."""

Pair = tuple[np.ndarray, np.ndarray | None]
"""A matrix for each axis; a signal has none for the second."""


class Matrices:
    """The matrices of a transform in one floating type of NumPy.

    Parameters
    ----------
    layout : Layout
        The filters.
    dtype : dtype
        The floating type.
    """

    def __init__(self, layout: Layout, dtype: np.dtype):
        self.layout, self.dtype = layout, dtype
        scales = range(layout.J)
        bases = [[basis(len(order), order) for order in layout.orders(level)] for level in scales]
        self.analysis = [self._pair(each) for each in bases]
        self.averages = [self._pair(layout.averages(level)) for level in scales]
        # Those of the image pad it, too.
        self.first_analysis, self.first_averages = (
            self._pair([matrix @ pad for matrix, pad in zip(each, layout.pads, strict=True)])
            for each in (bases[0], layout.averages(0))
        )
        self.filters, self.synthesis = {}, {}
        for j in scales:
            for level in layout.sources(j):
                self.filters[level, j] = self._filters(level, j)
                coarse = [coarsen(order, 2 ** (j - level)) for order in layout.orders(level)]
                self.synthesis[level, j] = self._pair([basis(len(o), o).T for o in coarse])

    def _pair(self, matrices: list[np.ndarray]) -> Pair:
        first, *rest = (np.ascontiguousarray(matrix, dtype=self.dtype) for matrix in matrices)
        return first, rest[0] if rest else None

    def _filters(self, level: int, j: int) -> np.ndarray:
        """Return what filters each group of frequencies.

        Returns
        -------
        filters : ndarray of shape (g_2, 2, g_1, 2, members, 2 * n_filters)
            For each frequency on the coarse grid, a matrix from the members of its group on the
            fine one to real and imaginary parts. In one dimension the first axes have size 1.
        """
        L = self.layout.n_angles
        blocks = self.layout.blocks(level, j)
        if len(self.layout.padded) == 1:
            blocks = blocks[:, None]
        *groups, rows, members = blocks.shape
        blocks = blocks.reshape(*groups, 2, rows // (4 * L), 2, L, members)
        blocks = blocks.transpose(1, 3, 0, 2, 6, 5, 4)
        return np.ascontiguousarray(blocks.reshape(*blocks.shape[:5], 2 * L), dtype=self.dtype)


@functools.lru_cache(maxsize=2)
def matrices_for(layout: Layout, dtype: np.dtype) -> Matrices:
    """Return the matrices of a transform; the last are kept, because to make them takes a while."""
    return Matrices(layout, dtype)


class Plans:
    """The plans of one transform: each thread has its own, and their memory goes with this object.

    Parameters
    ----------
    layout : Layout
        The filters.
    dtype : dtype
        The floating type.

    Attributes
    ----------
    block_size : int
        How many images a plan should have for speed.
    """

    def __init__(self, layout: Layout, dtype: np.dtype):
        self._matrices = matrices_for(layout, dtype)
        self._local = threading.local()
        # Two pieces of the finest scale, and a few of the next one, which has the most values.
        bytes_of_finest = 2 * layout.n_angles * math.prod(layout.padded) * dtype.itemsize
        self.block_size = 2 * max(1, PIECE_BYTES // bytes_of_finest)

    def __call__(self, n_images: int) -> Plan:
        """Return the plan of this thread for a number of images; a thread has one at a time."""
        if getattr(self._local, "plan", None) is None or self._local.plan.n_images != n_images:
            self._local.plan = None  # gives its memory back before the next one takes some
            self._local.plan = Plan(self._matrices, n_images)
        return self._local.plan


class Plan:
    """The cascade of a number of images, as calls on arrays that are made once.

    Parameters
    ----------
    matrices : Matrices
        The filters and the floating type.
    n_images : int
        The number of images.
    """

    def __init__(self, matrices: Matrices, n_images: int):
        self.n_images = n_images
        self._matrices, self._layout = matrices, matrices.layout
        J, sources = self._layout.J, self._layout.sources
        self._grids = [as_image(tuple(n >> j for n in self._layout.padded)) for j in range(J)]
        self._cells = as_image(self._layout.cells)
        steps = [(level, j) for j in range(J) for level in sources(j)]
        largest = max(math.prod(self._piece(*step)) for step in steps)
        self._calls = Calls(matrices.dtype, max(largest, n_images * math.prod(self._grids[0])))
        self._images = self._calls.empty(*as_image(self._layout.shape), n_images)
        # Subsampling joins frequencies in groups, of 2 an axis for the finest wavelets, which see
        # images only, and of 4 or more for all others.
        self._finest = self._spectrum(0, 2, n_images)
        self._spectra = [
            self._spectrum(level, 4, self._n_columns(level, J - 1))
            for level in sources(J - 1)
            if level < J - 1
        ]
        self._rows = self._calls.empty(max(math.prod(self._row_shape(*step)) for step in steps))
        self._results: list[tuple[np.ndarray, int, int, int]] = []
        self._start()
        for step in steps:
            self._scatter(*step)

    def __call__(self, images: np.ndarray, coefficients: np.ndarray) -> None:
        """Compute coefficients.

        Parameters
        ----------
        images : ndarray of shape (n_samples, ..., m_1, m_2)
            As many images as planned.
        coefficients : ndarray of shape (n_samples, ..., n_paths, c_1, c_2)
            Where the coefficients go.
        """
        which = images.shape[:-2]
        x = np.moveaxis(self._images, -1, 0).reshape(images.shape)
        # The transform follows the size of the numbers; at size one no sum leaves their range.
        np.absolute(images, out=x)
        peaks = np.max(x, axis=(-2, -1), keepdims=True)
        peaks[peaks == 0] = 1
        np.divide(images, peaks, out=x)
        self._calls()
        for averages, start, n_scales, scale in self._results:
            n_first, n_second, *cells = averages.shape[1:]
            paths = coefficients[..., start : start + n_first * n_scales * n_second, :, :]
            paths = paths.reshape(*which, n_first, n_scales, n_second, *cells)
            averages = averages.reshape(*which, n_first, n_second, *cells)
            np.multiply(averages, peaks[..., None, None], out=paths[..., scale, :, :, :])

    def _start(self) -> None:
        """Average the images and find their spectrum."""
        first, second = self._matrices.first_averages
        averages = self._calls.empty(*self._cells, self.n_images)
        self._calls.product(first, self._calls.product(second, self._images), averages)
        self._keep(averages, (1, 1), 0, 1, 0)
        self._analyse(self._matrices.first_analysis, self._images, self._finest)
        for spectrum in self._spectra[:1]:
            self._copy_groups(self._finest, spectrum[..., : self.n_images])

    def _scatter(self, level: int, j: int) -> None:
        """Take the maps of a level through the wavelets of scale j, to averages of their moduli."""
        n, L, J = self.n_images, self._layout.n_angles, self._layout.J
        n_columns, (width, _) = self._n_columns(level, j), self._piece(level, j)
        shape = self._row_shape(level, j)
        rows = self._rows[: math.prod(shape)].reshape(shape)
        first, second = self._matrices.averages[j]
        for start in range(0, n_columns, width):
            stop = min(start + width, n_columns)
            maps = self._filter(level, j, slice(start, stop))
            for matrix in reversed(self._matrices.synthesis[level, j]):
                maps = self._calls.product(matrix, maps)
            moduli = self._calls.modulus(maps)
            self._calls.product(second, moduli, rows[..., start * L : stop * L])
            # Of level 0 the images come first: their moduli take a second wavelet.
            stop = min(stop, n)
            if level == 0 and start < stop and self._layout.order == 2 and j < J - 1:
                moduli = moduli[..., : (stop - start) * L]
                before = n if j == 0 else 0
                spectrum = self._spectra[j][..., before + start * L : before + stop * L]
                self._analyse(self._matrices.analysis[j], moduli, spectrum)
        averages = self._calls.empty(*self._cells, n_columns * L)
        self._calls.product(first, rows, averages)
        n_first = n * L if level == 0 else 0
        if n_first > 0:
            self._keep(averages[..., :n_first], (1, L), 1, J, j)
        if n_first < n_columns * L:
            begin = 1 + J * L + L * L * sum(J - 1 - finer for finer in range(level))
            self._keep(averages[..., n_first:], (L, L), begin, J - 1 - level, j - level - 1)

    def _filter(self, level: int, j: int, columns: slice) -> np.ndarray:
        """Filter columns of a spectrum, group by group of frequencies.

        Returns
        -------
        maps : ndarray of shape (n_1, n_2, n_columns * n_filters * 2)
            Frequencies on the grid of scale j.
        """
        filters = self._matrices.filters[level, j]
        g_2, p_2, g_1, p_1, members, parts = filters.shape
        spectrum = (self._spectra[level] if j > 0 else self._finest)[..., columns]
        n_groups, n_1, _, n_columns = spectrum.shape
        if g_2 < n_groups:
            finer = spectrum
            spectrum = self._calls.buffer((g_2, n_1, members * g_1 // n_1, n_columns), finer)
            self._copy_groups(finer, spectrum)
        groups = spectrum.reshape(g_2, 1, g_1, 1, members, n_columns)
        maps = self._calls.buffer((g_1, p_1, g_2, p_2, n_columns, parts), groups)
        out = maps.transpose(2, 3, 0, 1, 4, 5)
        self._calls.note(np.matmul, groups.swapaxes(-1, -2), filters, out=out)
        return maps.reshape(g_1 * p_1, g_2 * p_2, n_columns * parts)

    def _analyse(self, matrices: Pair, maps: np.ndarray, spectrum: np.ndarray) -> None:
        """Find the coefficients of maps in the basis of cosines and sines."""
        first, second = matrices
        half = self._calls.product(second, maps)
        groups, _, members, _ = spectrum.shape
        half = half.reshape(groups, members, *half.shape[1:])
        self._calls.multiply(first, half, spectrum.swapaxes(1, 2))

    def _copy_groups(self, finer: np.ndarray, coarser: np.ndarray) -> None:
        """Copy a spectrum to one with larger groups, each a union of neighbours."""
        n_groups, n_1, members, n_columns = finer.shape
        union = n_groups // len(coarser)
        finer = finer.reshape(-1, union, n_1, members, n_columns).swapaxes(1, 2)
        self._calls.note(np.copyto, coarser.reshape(finer.shape), finer)

    def _keep(
        self, averages: np.ndarray, counts: tuple[int, int], start: int, n_scales: int, scale: int
    ) -> None:
        """Note where averages of shape (c_1, c_2, paths of each image) go in the result."""
        averages = averages.reshape(*self._cells, self.n_images, *counts)
        self._results.append((np.moveaxis(averages, (0, 1), (-2, -1)), start, n_scales, scale))

    def _n_columns(self, level: int, j: int) -> int:
        """Return how many maps of a level the wavelets of scale j see."""
        if j == 0 or self._layout.order == 1:
            return self.n_images
        return self.n_images * (self._layout.n_angles + (level == 0))

    def _piece(self, level: int, j: int) -> tuple[int, int]:
        """Return how many columns are filtered at a time, and how many values each makes."""
        n_columns, n_filters = self._n_columns(level, j), self._layout.n_angles
        values = max(math.prod(self._grids[level]), 2 * n_filters * math.prod(self._grids[j]))
        n_bytes = n_columns * values * self._matrices.dtype.itemsize
        return -(-n_columns // max(1, round(n_bytes / PIECE_BYTES))), values

    def _row_shape(self, level: int, j: int) -> tuple[int, int, int]:
        """Return the shape of moduli that are averaged along the second axis, which comes first."""
        n_columns = self._n_columns(level, j) * self._layout.n_angles
        return self._cells[1], self._grids[j][0], n_columns

    def _spectrum(self, level: int, members: int, n_columns: int) -> np.ndarray:
        """Return memory for frequencies, with those of the second axis in groups."""
        n_1, n_2 = self._grids[level]
        members = min(members, n_2)
        return self._calls.empty(n_2 // members, n_1, members, n_columns)


class Calls:
    """Calls of NumPy on arrays that stay, noted once and made as often as wanted.

    Parameters
    ----------
    dtype : dtype
        The floating type.
    largest : int
        How many values the largest array has that need not outlast the next step.
    """

    def __init__(self, dtype: np.dtype, largest: int):
        self._dtype = dtype
        self._buffers = [self.empty(largest) for _ in range(2)]
        self._noted: list[Callable[[], Any]] = []

    def __call__(self) -> None:
        """Make the calls."""
        for call in self._noted:
            call()

    def note(self, function: Callable[..., Any], *arrays: np.ndarray, **out: np.ndarray) -> None:
        """Note a call."""
        self._noted.append(functools.partial(function, *arrays, **out))

    def empty(self, *shape: int) -> np.ndarray:
        """Return memory that stays."""
        return np.empty(shape, dtype=self._dtype)

    def buffer(self, shape: tuple[int, ...], beside: np.ndarray) -> np.ndarray:
        """Return memory in the one of two buffers that another array does not lie in."""
        buffer = self._buffers[np.may_share_memory(beside, self._buffers[0])]
        return buffer[: math.prod(shape)].reshape(shape)

    def modulus(self, maps: np.ndarray) -> np.ndarray:
        """Take the moduli of complex numbers whose parts lie side by side."""
        numbers = maps.view(np.result_type(self._dtype, np.complex64))
        moduli = self.buffer(numbers.shape, maps)
        self.note(np.absolute, numbers, out=moduli)
        return moduli

    def product(
        self, matrix: np.ndarray | None, maps: np.ndarray, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Apply a matrix along the second axis and swap the two; to a buffer unless `out` says."""
        if matrix is None:
            swapped = maps.swapaxes(0, 1)
            if out is None:
                return swapped
            self.note(np.copyto, out, swapped)
            return out
        if out is None:
            out = self.buffer((len(matrix), len(maps), maps.shape[-1]), maps)
        self.multiply(matrix, maps, out.swapaxes(0, 1))
        return out

    def multiply(self, matrix: np.ndarray, maps: np.ndarray, out: np.ndarray) -> None:
        """Multiply maps of shape (..., n, width) by a matrix, as a stack of narrow products."""
        width = maps.shape[-1]
        least = -(-matrix.size * width // NARROW)
        n_products = next((n for n in range(least, 4 * least) if width % n == 0), 1)
        maps, out = (
            each.reshape(*each.shape[:-1], n_products, -1).swapaxes(-3, -2) for each in (maps, out)
        )
        self.note(np.matmul, matrix, maps, out=out)


def as_image(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the size of an image; a signal is one with a second axis of size 1."""
    first, *rest = shape
    return first, rest[0] if rest else 1
