"""The frame around an image: how wide it is, what it holds, and which part of the result counts.

A convolution needs values beyond the border. An image of size m is first completed to a multiple
of 2**J, then framed by one cell of 2**J pixels on each side; the cells of the frame are left out
of the result, so ⌈m / 2**J⌉ cells remain. Padding and leaving out are linear, and are written as
matrices that join the first and the last step of the transform.
"""

from __future__ import annotations

import numpy as np

from tuckermix.features._wavelets import crop_frequencies, low_pass

BORDERS = ("mirror", "zero", "periodic")
"""What lies beyond the border: the image mirrored at its outermost pixels, nothing, or the image
again, without a frame."""


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
        What lies beyond the border.

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
        What lies beyond the border: with a frame, its cells are left out.

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
