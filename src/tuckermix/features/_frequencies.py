r"""Fourier transforms and filters as matrix products, for axes of moderate size.

Real maps are written in the orthonormal basis of cosines and sines. A convolution followed by
subsampling mixes only frequencies that become the same one on the coarser grid: those are put
next to each other, and the filter is a stack of small matrices, one for each group. All work is
then products of real matrices, which every array library does at the full speed of its processor
and which, for a few dozen pixels a side, beat fast Fourier transforms.
"""

from __future__ import annotations

import numpy as np


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
