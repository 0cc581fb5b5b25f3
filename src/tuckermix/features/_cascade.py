r"""The cascade of wavelets, moduli and averages, on a block of samples in any array library.

With the low-pass :math:`\phi`, the wavelets :math:`\psi_{j,\theta}` and subsampling by what each
band allows,

.. math::

    S_0 = x * \phi, \qquad S_1 = |x * \psi_{j_1,\theta_1}| * \phi, \qquad
    S_2 = ||x * \psi_{j_1,\theta_1}| * \psi_{j_2,\theta_2}| * \phi
    \quad (j_2 > j_1).

A modulus moves energy to lower frequencies, so paths with :math:`j_2 \le j_1` hold next to nothing
and are not computed. Maps lie in arrays of shape ``(n_1[, n_2], columns)``, samples and paths last,
so that every step is a product of a small matrix with a wide one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tuckermix._array_api import Array, asarray_like, device, get_namespace, is_numpy
from tuckermix.features._wavelets import Layout, basis, coarsen


@dataclass(frozen=True)
class CascadeSettings:
    """How the work of a transform is cut into pieces.

    Attributes
    ----------
    matrix_side : int
        Largest padded axis for Fourier transforms as matrix products: their cost per pixel grows
        with the size, that of fast transforms hardly does.
    host_bytes : int
        Largest array between two steps on a processor: it stays in the cache, and memory that was
        freed is used again.
    device_bytes : int
        The same on an accelerator, where a launch should be worth its while. Three such arrays are
        alive at a time.
    """

    matrix_side: int = 160
    host_bytes: int = 2 * 2**20
    device_bytes: int = 256 * 2**20


SETTINGS = CascadeSettings()


class Cascade:
    """The transform of one shape of images, in the library, device and type of an array.

    Parameters
    ----------
    layout : Layout
        The filters, see `layout_for`.
    like : array
        An array of the library, device and floating type in question.

    Attributes
    ----------
    block_size : int
        How many columns one call should have for speed.
    """

    def __init__(self, layout: Layout, like: Array):
        self.layout, J = layout, layout.J
        self._xp = xp = get_namespace(like)
        on_host = is_numpy(like) or str(device(like)).lower().startswith("cpu")
        itemsize = 8 if like.dtype == xp.float64 else 4
        values = (SETTINGS.host_bytes if on_host else SETTINGS.device_bytes) // itemsize
        # Real and imaginary part of every angle, at the resolution of each scale.
        sizes = [2 * layout.n_angles * math.prod(n >> j for n in layout.padded) for j in range(J)]
        self._n_columns = [max(1, values // size) for size in sizes]
        # The maps of the first scale are kept for the second wavelet, those of others are not.
        self.block_size = 2 * self._n_columns[0]

        def move(matrices: list[np.ndarray]) -> list[Array]:
            return [asarray_like(matrix, like) for matrix in matrices]

        self._direct = move([a @ p for a, p in zip(layout.averages(0), layout.pads, strict=True)])
        self._averages = [move(layout.averages(level)) for level in range(J)]
        matrices = max(layout.padded) <= SETTINGS.matrix_side
        engine = MatrixWavelets if matrices else FourierWavelets
        self._first = engine(layout, 0, list(range(J)), like, move(layout.pads))
        self._second = [
            engine(layout, level, list(range(level + 1, J)), like, None)
            for level in range(J - 1 if layout.order == 2 else 0)
        ]

    def averages(self, x: Array) -> Array:
        """Return the low-pass coefficients alone.

        Parameters
        ----------
        x : array of shape (m_1[, m_2], columns)
            The images.

        Returns
        -------
        averages : array of shape (c_1[, c_2], columns)
            One average for each cell.
        """
        return along_axes(self._direct, x)

    def __call__(self, x: Array) -> Array:
        """Return all coefficients.

        Parameters
        ----------
        x : array of shape (m_1[, m_2], columns)
            The images.

        Returns
        -------
        coefficients : array of shape (columns, n_paths, c_1[, c_2])
            The paths in the customary order: by the first wavelet, then by the second.
        """
        xp = self._xp
        columns = x.shape[-1]
        parts = [self._ordered(self.averages(x), columns)]
        second = []
        spectrum = self._first.analyse(x)
        for j1 in range(self.layout.J):
            maps = self._first.modulus(spectrum, j1)
            parts.append(self._ordered(along_axes(self._averages[j1], maps), columns))
            if j1 >= len(self._second):
                continue
            wavelets = self._second[j1]
            inner = wavelets.analyse(maps)
            scales = range(j1 + 1, self.layout.J)
            found = [self._ordered(self._second_order(wavelets, inner, j), columns) for j in scales]
            second.append(self._by_first_wavelet(found))
        return xp.concat(parts + second, axis=1)

    def _second_order(
        self, wavelets: MatrixWavelets | FourierWavelets, maps: Array, j: int
    ) -> Array:
        """Average the moduli of a second wavelet, of as many columns at a time as the cache holds.

        Returns
        -------
        averages : array of shape (c_1[, c_2], n_filters * columns)
            Filter by filter.
        """
        xp = self._xp
        columns, step = maps.shape[-1], self._n_columns[j]
        parts = []
        for start in range(0, columns, step):
            piece = maps[..., start : min(start + step, columns)]
            averages = along_axes(self._averages[j], wavelets.modulus(piece, j))
            cells = averages.shape[:-1]
            parts.append(xp.reshape(averages, (*cells, -1, piece.shape[-1])))
        return xp.reshape(xp.concat(parts, axis=-1), (*cells, -1))

    def _ordered(self, averages: Array, columns: int) -> Array:
        """Bring averages of shape (c_1[, c_2], paths * columns) into the order of the result."""
        xp = self._xp
        cells = averages.shape[:-1]
        averages = xp.reshape(averages, (*cells, -1, columns))
        d = len(cells)
        return xp.permute_dims(averages, (d + 1, d, *range(d)))

    def _by_first_wavelet(self, found: list[Array]) -> Array:
        """Join the paths of order two that start at one scale: first angle, then what follows."""
        xp = self._xp
        L = self.layout.n_angles
        columns, _, *cells = found[0].shape
        # The angle of the second wavelet varies before that of the first one.
        by_angle = [
            xp.permute_dims(
                xp.reshape(each, (columns, L, L, *cells)), (0, 2, 1, *range(3, 3 + len(cells)))
            )
            for each in found
        ]
        return xp.reshape(xp.concat(by_angle, axis=2), (columns, -1, *cells))


class MatrixWavelets:
    """Wavelets of several scales on maps of one resolution, by products of matrices.

    Parameters
    ----------
    layout : Layout
        The filters.
    level : int
        The maps are subsampled by 2**level.
    scales : list of int
        The scales of the wavelets.
    like : array
        An array of the library, device and floating type in question.
    pads : list of arrays or None
        Padding matrices to apply first.
    """

    def __init__(
        self, layout: Layout, level: int, scales: list[int], like: Array, pads: list[Array] | None
    ):
        self._n_filters = layout.n_angles
        orders = layout.orders(level)
        self._analysis = [asarray_like(basis(len(order), order), like) for order in orders]
        if pads is not None:
            self._analysis = [a @ pad for a, pad in zip(self._analysis, pads, strict=True)]
        self._blocks, self._synthesis = {}, {}
        for j in scales:
            self._blocks[j] = asarray_like(layout.blocks(level, j), like)
            coarse = [coarsen(order, 2 ** (j - level)) for order in orders]
            self._synthesis[j] = [
                asarray_like(basis(len(order), order).T, like) for order in coarse
            ]

    def analyse(self, maps: Array) -> Array:
        """Return the coefficients of maps in the basis of cosines and sines."""
        return along_axes(self._analysis, maps)

    def modulus(self, spectrum: Array, j: int) -> Array:
        """Filter by the wavelets of scale j, subsample and take the modulus.

        Parameters
        ----------
        spectrum : array of shape (n_1[, n_2], columns)
            The coefficients that `analyse` returns.
        j : int
            The scale.

        Returns
        -------
        maps : array of shape (n_1 / s[, n_2 / s], n_filters * columns)
            The moduli, filter by filter.
        """
        xp = get_namespace(spectrum)
        blocks = self._blocks[j]
        *groups, _, members = blocks.shape
        d, columns = len(groups), spectrum.shape[-1]
        inside = round(members ** (1 / d))
        split = [size for group in groups for size in (group, inside)]
        spectrum = xp.reshape(spectrum, (*split, columns))
        if d == 2:
            spectrum = xp.permute_dims(spectrum, (0, 2, 1, 3, 4))
        spectrum = xp.reshape(spectrum, (*groups, members, columns))
        filtered = self._filter(blocks, spectrum)
        filtered = along_axes(self._synthesis[j], filtered)
        filtered *= filtered  # in place: fresh memory costs more than the product
        pairs = xp.reshape(filtered, (*filtered.shape[:-1], 2, self._n_filters * columns))
        squares = pairs[..., 0, :]
        squares += pairs[..., 1, :]
        return xp.sqrt(squares)

    def _filter(self, blocks: Array, spectrum: Array) -> Array:
        """Apply the matrix of each group; frequencies and filters end up in separate axes."""
        xp = get_namespace(spectrum)
        *groups, rows, _ = blocks.shape
        columns = spectrum.shape[-1]
        d = len(groups)
        if d == 1:
            return xp.reshape(blocks @ spectrum, (2 * groups[0], -1))
        rows //= 4
        out = xp.reshape(blocks @ spectrum, (*groups, 2, 2, rows, columns))
        out = xp.permute_dims(out, (0, 2, 1, 3, 4, 5))
        return xp.reshape(out, (2 * groups[0], 2 * groups[1], rows * columns))


class FourierWavelets:
    """The same as `MatrixWavelets`, by fast Fourier transforms: for large images.

    Parameters
    ----------
    layout, level, scales, like, pads
        See `MatrixWavelets`.
    """

    def __init__(
        self, layout: Layout, level: int, scales: list[int], like: Array, pads: list[Array] | None
    ):
        self._level = level
        self._pads = pads
        self._axes = tuple(range(len(layout.padded)))
        self._filters = {
            j: asarray_like(np.moveaxis(layout.wavelets(level, j), 0, -1)[..., None], like)
            for j in scales
        }

    def analyse(self, maps: Array) -> Array:
        """Return the Fourier transform of maps."""
        maps = maps if self._pads is None else along_axes(self._pads, maps)
        xp = get_namespace(maps)
        kind = xp.complex128 if maps.dtype == xp.float64 else xp.complex64
        return xp.fft.fftn(xp.astype(maps, kind), axes=self._axes)

    def modulus(self, spectrum: Array, j: int) -> Array:
        """Filter by the wavelets of scale j, subsample and take the modulus, filter by filter."""
        xp = get_namespace(spectrum)
        factor = 2 ** (j - self._level)
        filters = self._filters[j]
        maps = []
        for index in range(filters.shape[-2]):  # one by one: each is as large as the spectrum
            product = spectrum * filters[..., index, :]
            split = [n for axis in self._axes for n in (factor, spectrum.shape[axis] // factor)]
            product = xp.reshape(product, (*split, spectrum.shape[-1]))
            # Subsampling in space adds up what lies apart by the new limit in frequency.
            product = xp.mean(product, axis=tuple(2 * axis for axis in self._axes))
            maps.append(xp.abs(xp.fft.ifftn(product, axes=self._axes)))
        return xp.concat(maps, axis=-1)


def along_axes(matrices: list[Array], maps: Array) -> Array:
    """Apply a matrix along each of the leading axes of ``(n_1[, n_2], columns)``."""
    xp = get_namespace(maps)
    first, *rest = matrices
    tail = maps.shape[1:]
    maps = xp.reshape(first @ xp.reshape(maps, (maps.shape[0], -1)), (first.shape[0], *tail))
    return rest[0] @ maps if rest else maps
