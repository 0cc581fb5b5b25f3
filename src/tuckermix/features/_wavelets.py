r"""Morlet wavelets and the Gaussian low-pass, on the grid of Fourier frequencies.

A Morlet wavelet of scale :math:`2^j` and angle :math:`\theta` is a plane wave under a Gaussian,
less the multiple :math:`\kappa` of that Gaussian that makes its mean zero:

.. math::

    \psi(u) = \frac{1}{Z}\, e^{-u^\top \Sigma^{-1} u / 2}
        \left(e^{i \xi (u_1 \cos\theta + u_2 \sin\theta)} - \kappa\right),
    \qquad \sigma = 0.8 \cdot 2^j,\quad \xi = \tfrac34 \pi\, 2^{-j},

where the Gaussian has the standard deviation :math:`\sigma` along the wave and
:math:`\sigma / s` across it, with the slant :math:`s = 4 / L` for `L` angles. The low-pass is a
round Gaussian of standard deviation :math:`0.8 \cdot 2^{J-1}`. Both are made periodic by adding
up shifted copies, and have real Fourier transforms. A signal in one dimension has the same
wavelets without the angle.

A convolution needs values beyond the border. An image of size m is first completed to a multiple
of 2**J, then framed by one cell of 2**J pixels on each side; the cells of the frame are left out
of the result, so ⌈m / 2**J⌉ cells remain. Padding and leaving out are linear, and are written as
matrices that join the first and the last step of the transform.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tuckermix.features._pictures import resizing_matrix


def order_frequencies(size: int, n_halvings: int) -> np.ndarray:
    """Order the frequencies of an axis so that those which subsampling joins stand together.

    On a grid of c points the frequencies k and −k have the same cosine, and sines up to sign. The
    frequencies 0 and c/2, which have no sine, share a group, so that every group has two members
    on the coarse grid and 2·size/c on the fine one. Groups of a coarser grid are unions of groups
    of a finer one, which is what lets one order serve all.

    Parameters
    ----------
    size : int
        The number of points, a multiple of ``2**(n_halvings + 1)``.
    n_halvings : int
        How often the grid may be halved.

    Returns
    -------
    order : ndarray of shape (size, 2)
        Frequency and kind (0: cosine, 1: sine) of each basis function.
    """
    keys = []
    for frequency in range(size // 2 + 1):
        for kind in range(2):
            if kind == 1 and frequency in (0, size // 2):
                continue
            groups = [_group(frequency, size >> level) for level in range(n_halvings, -1, -1)]
            keys.append((*groups, frequency, kind))
    return np.array(sorted(keys))[:, -2:]


def basis(size: int, order: np.ndarray) -> np.ndarray:
    """Return the orthonormal basis of cosines and sines, one in each row.

    Parameters
    ----------
    size : int
        The number of points.
    order : ndarray of shape (size, 2)
        Frequency and kind of each basis function.

    Returns
    -------
    basis : ndarray of shape (size, size)
        An orthogonal matrix.
    """
    angle = 2 * np.pi * order[:, :1] * np.arange(size) / size
    rows = np.where(order[:, 1:] == 0, np.cos(angle), np.sin(angle))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def coarsen(order: np.ndarray, factor: int) -> np.ndarray:
    """Return the order of the frequencies on a coarser grid, group by group as on the fine one.

    Parameters
    ----------
    order : ndarray of shape (size, 2)
        Frequency and kind of each basis function on the fine grid.
    factor : int
        By how much the grid is coarser.

    Returns
    -------
    order : ndarray of shape (size // factor, 2)
        Frequency and kind of each basis function on the coarse grid.
    """
    size = len(order) // factor
    groups = [_group(frequency, size) for frequency, _ in order[:: 2 * factor]]
    pairs = [
        [(0, 0), (size // 2, 0)] if group == 0 else [(group, 0), (group, 1)] for group in groups
    ]
    return np.array(pairs).reshape(-1, 2)


def filter_blocks(filters: np.ndarray, orders: list[np.ndarray], factor: int) -> np.ndarray:
    """Return the matrices that filter and subsample, group by group of frequencies.

    Parameters
    ----------
    filters : ndarray of shape (n_filters, n_1[, n_2])
        Fourier transforms of the filters on the fine grid.
    orders : list of ndarrays of shape (n_i, 2)
        The order of the frequencies on the fine grid, for each axis.
    factor : int
        By how much the result is subsampled.

    Returns
    -------
    blocks : ndarray of shape (g_1[, g_2], 2**d * 2 * n_filters, (2 * factor)**d)
        For each group, a matrix from its coefficients on the fine grid to those on the coarse
        one: for each of these, the real parts of all filters, then the imaginary ones.
    """
    mixing, places = zip(*(_mixing(order, factor) for order in orders), strict=True)
    if len(orders) == 1:
        blocks = np.einsum("fgk,goik->gofi", filters[:, places[0]], mixing[0])
    else:
        values = filters[:, places[0][:, None, :, None], places[1][None, :, None, :]]
        half = np.einsum("fghkl,goik->fghoil", values, mixing[0], optimize=True)
        blocks = np.einsum("fghoil,hpjl->ghopfij", half, mixing[1], optimize=True)
    n_groups = blocks.shape[: len(orders)]
    blocks = blocks.reshape(*n_groups, 2 ** len(orders), len(filters), -1)
    blocks = np.concatenate([blocks.real, blocks.imag], axis=-2)
    return blocks.reshape(*n_groups, -1, blocks.shape[-1])


def _mixing(order: np.ndarray, factor: int) -> tuple[np.ndarray, np.ndarray]:
    """Say how each Fourier frequency carries a fine basis function over to a coarse one.

    Returns
    -------
    mixing : ndarray of shape (n_groups, 2, 2 * factor, 2 * factor)
        By group, coarse function, fine function and frequency.
    frequencies : ndarray of shape (n_groups, 2 * factor)
        The frequencies of each group on the fine grid.
    """
    coarse_order = coarsen(order, factor)
    size, coarse = len(order), len(coarse_order)
    n_groups = coarse // 2
    frequencies = []
    for pair in coarse_order[:, 0].reshape(n_groups, 2):
        wanted = {int(sign * k) % coarse for k in pair for sign in (1, -1)}
        frequencies.append([k for k in range(size) if k % coarse in wanted])
    places = np.array(frequencies)
    spectrum = np.fft.fft(basis(size, order), axis=1).reshape(n_groups, 2 * factor, size)
    waves = np.exp(2j * np.pi * np.outer(np.arange(coarse), np.arange(size)) / coarse)
    back = (basis(coarse, coarse_order) @ waves / size).reshape(n_groups, 2, size)
    spectrum = np.take_along_axis(spectrum, places[:, None, :], axis=2)
    back = np.take_along_axis(back, places[:, None, :], axis=2)
    return back[:, :, None, :] * spectrum[:, None, :, :], places


def _group(frequency: int, size: int) -> int:
    """Return the group of a frequency on a grid of `size` points."""
    place = frequency % size
    place = min(place, size - place)
    return 0 if 2 * place == size else place


@dataclass(frozen=True)
class WaveletSettings:
    """Constants of the wavelets.

    Attributes
    ----------
    bandwidth : float
        Standard deviation of the finest wavelet, in pixels: the bands of neighbouring scales meet
        where each has fallen to about two thirds.
    centre : float
        Frequency of the finest wavelet, in radians per pixel: below the limit of the grid, pi.
    slant : float
        Slant of the Gaussian times the number of angles: the more angles, the longer the wavelet is
        across its wave and the sharper its angle.
    rounded_pi : float
        Pi in the normalisation of the customary filters (ScatNet, kymatio). With the exact one,
        coefficients of order two would be 6e-5 off theirs.
    n_copies : int
        Shifted copies on each side when a filter is made periodic. The padded grid is at least
        three standard deviations wide, so what the next copy adds is below 1e-20.
    """

    bandwidth: float = 0.8
    centre: float = 3 * math.pi / 4
    slant: float = 4.0
    rounded_pi: float = 3.1415
    n_copies: int = 2


SETTINGS = WaveletSettings()

BORDERS = ("mirror", "zero", "periodic")
"""Values beyond the border: the image mirrored at its outermost pixels, zeros, or the image again,
without a frame."""


def morlet(shape: Sequence[int], j: int, angle: int, n_angles: int) -> np.ndarray:
    """Return the Fourier transform of a Morlet wavelet.

    Parameters
    ----------
    shape : sequence of one or two int
        The size of the periodic grid.
    j : int
        The scale: its wavelength is 2**j times that of the finest wavelet.
    angle : int
        Which of the angles, from 0 on; of no effect in one dimension.
    n_angles : int
        The number of angles L in half a turn.

    Returns
    -------
    transform : ndarray of shape `shape`
        Real values at the frequencies in the order of `numpy.fft.fftn`.
    """
    sigma = SETTINGS.bandwidth * 2**j
    theta, slant = 0.0, 1.0
    if len(shape) == 2:
        # The customary order of the angles: from just below a quarter turn downwards.
        theta = (max(n_angles // 2 - 1, 0) - angle) * math.pi / n_angles
        slant = SETTINGS.slant / n_angles
    wave = _gabor(shape, sigma, theta, SETTINGS.centre / 2**j, slant)
    envelope = _gabor(shape, sigma, theta, 0.0, slant)
    kappa = np.sum(wave) / np.sum(envelope)
    return np.real(np.fft.fftn(wave - kappa * envelope))


def low_pass(size: int, J: int) -> np.ndarray:
    """Return the Fourier transform of the low-pass along one axis.

    A round Gaussian is a product of Gaussians along the axes, so this serves any dimension.

    Parameters
    ----------
    size : int
        The size of the periodic grid.
    J : int
        The scale of the transform: averages are taken over about 2**J pixels.

    Returns
    -------
    transform : ndarray of shape (size,)
        Real values at the frequencies in the order of `numpy.fft.fft`.
    """
    return np.real(np.fft.fft(_gabor((size,), SETTINGS.bandwidth * 2 ** (J - 1), 0.0, 0.0, 1.0)))


def crop_frequencies(transform: np.ndarray, factor: int) -> np.ndarray:
    """Keep the frequencies that a grid coarser by `factor` has: the filter on that grid.

    Parameters
    ----------
    transform : ndarray
        Values at the frequencies of the fine grid, in the order of `numpy.fft.fftn`.
    factor : int
        By how much the coarse grid is coarser along each axis; it divides all sizes.

    Returns
    -------
    transform : ndarray
        Values at the frequencies of the coarse grid, in the same order.
    """
    for axis, size in enumerate(transform.shape):
        signed = np.fft.fftfreq(size // factor, 1 / (size // factor)).astype(int)
        transform = np.take(transform, signed % size, axis=axis)
    return transform


def n_cells(size: int, J: int) -> int:
    """Return the number of cells of 2**J pixels that hold `size` pixels: ⌈size / 2**J⌉."""
    return -(-size // 2**J)


def padded_size(size: int, J: int, border: str) -> int:
    """Return the size of an axis with its frame."""
    return (n_cells(size, J) + _frame(border) * 2) * 2**J


def padding_matrix(size: int, J: int, border: str) -> np.ndarray:
    """Return the matrix that pads one axis.

    Parameters
    ----------
    size : int
        The number of pixels.
    J : int
        The scale of the transform.
    border : {"mirror", "zero", "periodic"}
        The values beyond the border.

    Returns
    -------
    matrix : ndarray of shape (padded_size, size)
        Zeros and ones, at most a one in each row.
    """
    total = padded_size(size, J, border)
    place = np.arange(total) - (total - size) // 2
    if border == "mirror":
        # A zigzag of period 2(m - 1): the outermost pixel is not repeated.
        period = max(2 * (size - 1), 1)
        source = place % period
        source = np.where(source < size, source, period - source)
    else:
        # A periodic image that fills no whole number of cells is completed by zeros as well.
        source = np.where((place >= 0) & (place < size), place, -1)
    matrix = np.zeros((total, size))
    inside = source >= 0
    matrix[np.flatnonzero(inside), source[inside]] = 1.0
    return matrix


def averaging_matrix(size: int, J: int, factor: int, border: str) -> np.ndarray:
    """Return the matrix that averages one axis over each cell and leaves out the frame.

    Parameters
    ----------
    size : int
        The padded size at full resolution.
    J : int
        The scale of the transform.
    factor : int
        By how much the axis has been subsampled so far; it divides 2**J.
    border : {"mirror", "zero", "periodic"}
        The values beyond the border: with a frame, its cells are left out.

    Returns
    -------
    matrix : ndarray of shape (n_cells, size // factor)
        The low-pass, sampled once a cell.
    """
    coarse = size // factor
    kernel = np.real(np.fft.ifft(crop_frequencies(low_pass(size, J), factor)))
    centres = np.arange(0, coarse, 2**J // factor)
    frame = _frame(border)
    centres = centres[frame : len(centres) - frame]
    return kernel[(centres[:, None] - np.arange(coarse)[None, :]) % coarse]


def _frame(border: str) -> int:
    """Return how many cells the frame has on each side."""
    return 0 if border == "periodic" else 1


def _gabor(
    shape: Sequence[int], sigma: float, theta: float, frequency: float, slant: float
) -> np.ndarray:
    """Return a plane wave under a Gaussian of unit mass, periodic, in space."""
    along = [math.cos(theta), math.sin(theta)]
    across = [-math.sin(theta), math.cos(theta)]
    total = np.zeros(shape, dtype=complex)
    for copy in itertools.product(
        range(-SETTINGS.n_copies, SETTINGS.n_copies + 1), repeat=len(shape)
    ):
        axes = [np.arange(size) + shift * size for size, shift in zip(shape, copy, strict=True)]
        grid = np.meshgrid(*axes, indexing="ij")
        phase = along[0] * grid[0]
        squares = phase**2
        if len(shape) == 2:
            phase = phase + along[1] * grid[1]
            squares = phase**2 + (slant * (across[0] * grid[0] + across[1] * grid[1])) ** 2
        total += np.exp(-squares / (2 * sigma**2) + 1j * frequency * phase)
    root = math.sqrt(2 * SETTINGS.rounded_pi) * sigma
    return total / (root if len(shape) == 1 else root**2 / slant)


class Layout:
    """The filters of a transform, in NumPy and float64, for one shape of images.

    Parameters
    ----------
    shape : tuple of one or two int
        The size of an image or signal.
    J : int
        The number of scales.
    L : int
        The number of angles.
    order : {1, 2}
        The largest number of wavelets along a path.
    border : {"mirror", "zero", "periodic"}
        The values beyond the border.
    size : int or None, default=None
        Images whose shorter side is longer are shrunk to it, in proportion, as they are padded.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        J: int,
        L: int,
        order: int,
        border: str,
        size: int | None = None,
    ):
        given, scale = shape, 1.0 if size is None else min(1.0, size / min(shape))
        self.shape = shape = tuple(max(1, round(scale * side)) for side in given)
        self.J, self.order, self.border = J, order, border
        self.n_angles = L if len(shape) == 2 else 1
        self.cells = tuple(n_cells(size, J) for size in shape)
        n_second = self.n_angles**2 * J * (J - 1) // 2
        self.n_paths = 1 + J * self.n_angles + (n_second if order == 2 else 0)
        self.padded = tuple(padded_size(size, J, border) for size in shape)
        self.pads = [
            padding_matrix(side, J, border) @ resizing_matrix(whole, side)
            for whole, side in zip(given, shape, strict=True)
        ]
        self.filters = [
            np.stack([morlet(self.padded, j, angle, L) for angle in range(self.n_angles)])
            for j in range(J)
        ]
        self.blocks = functools.cache(self._blocks)

    def averages(self, level: int) -> list[np.ndarray]:
        """Return the averaging matrices of maps subsampled by 2**level."""
        return [averaging_matrix(size, self.J, 2**level, self.border) for size in self.padded]

    def wavelets(self, level: int, j: int) -> np.ndarray:
        """Return the wavelets of scale j for maps subsampled by 2**level."""
        return np.stack([crop_frequencies(each, 2**level) for each in self.filters[j]])

    def orders(self, level: int) -> list[np.ndarray]:
        """Return the order of the frequencies of each axis of maps subsampled by 2**level."""
        return [order_frequencies(size >> level, self.J - 1 - level) for size in self.padded]

    def _blocks(self, level: int, j: int) -> np.ndarray:
        """Return the matrices that filter maps subsampled by 2**level with wavelets of scale j."""
        return filter_blocks(self.wavelets(level, j), self.orders(level), 2 ** (j - level))


layout_for = functools.lru_cache(maxsize=8)(Layout)
"""The last few layouts are kept: one serves many blocks."""
