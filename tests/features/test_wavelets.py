import math

import numpy as np
import pytest
from tests.cases import each

from tuckermix.features._wavelets import (
    BORDERS,
    averaging_matrix,
    basis,
    coarsen,
    crop_frequencies,
    filter_blocks,
    low_pass,
    morlet,
    n_cells,
    order_frequencies,
    padded_size,
    padding_matrix,
)


@pytest.mark.parametrize(("size", "n_halvings"), [(8, 0), (24, 2), (48, 3), (40, 2)])
def test_the_basis_is_orthonormal(size, n_halvings):
    rows = basis(size, order_frequencies(size, n_halvings))
    assert np.allclose(rows @ rows.T, np.eye(size), atol=1e-12)


@pytest.mark.parametrize("factor", [1, 2, 4])
def test_groups_are_closed_under_subsampling(factor):
    order = order_frequencies(48, 2)
    fine, coarse = basis(48, order), basis(48 // factor, coarsen(order, factor))
    mixed = np.abs(coarse @ fine[:, ::factor].T) > 1e-12
    groups = mixed.reshape(24 // factor, 2, 24 // factor, 2 * factor).any(axis=(1, 3))
    assert np.array_equal(groups, np.eye(24 // factor, dtype=bool))


@pytest.mark.parametrize("shape", [(24,), (24, 16)])
@pytest.mark.parametrize("factor", [1, 2, 4])
def test_blocks_filter_and_subsample(rng, shape, factor):
    """Compare with a product in Fourier space and slices of the result."""
    filters = rng.normal(size=(3, *shape))
    maps = rng.normal(size=shape)
    axes = tuple(range(1, len(shape) + 1))
    expected = np.fft.ifftn(filters * np.fft.fftn(maps), axes=axes)
    for axis in axes:
        expected = np.take(expected, range(0, shape[axis - 1], factor), axis=axis)

    orders = [order_frequencies(n, 2) for n in shape]
    blocks = filter_blocks(filters, orders, factor)
    spectrum = maps
    for axis, (n, order) in enumerate(zip(shape, orders, strict=True)):
        spectrum = np.moveaxis(np.tensordot(basis(n, order), spectrum, (1, axis)), 0, axis)
    if len(shape) == 1:
        spectrum = spectrum.reshape(-1, 2 * factor, 1)
    else:
        groups = [n // factor // 2 for n in shape]
        spectrum = spectrum.reshape(groups[0], 2 * factor, groups[1], 2 * factor)
        spectrum = spectrum.transpose(0, 2, 1, 3).reshape(*groups, -1, 1)
    found = (blocks @ spectrum)[..., 0]
    found = found.reshape(*found.shape[: len(shape)], *(2,) * len(shape), 2, 3)
    if len(shape) == 2:
        found = found.transpose(0, 2, 1, 3, 4, 5)
    found = found.reshape(*(n // factor for n in shape), 2, 3)
    for axis, (n, order) in enumerate(zip(shape, orders, strict=True)):
        back = basis(n // factor, coarsen(order, factor)).T
        found = np.moveaxis(np.tensordot(back, found, (1, axis)), 0, axis)
    found = found[..., 0, :] + 1j * found[..., 1, :]
    assert np.allclose(np.moveaxis(found, -1, 0), expected, atol=1e-12)


SIZE = 64


@each("shape", [(SIZE,), (SIZE, 48)])
@each("j", [0, 1, 2])
def test_a_wavelet_has_no_mean_and_answers_to_its_own_frequency(shape, j):
    transform = morlet(shape, j, angle=3, n_angles=8)
    assert abs(transform.flat[0]) < 1e-12
    peak = np.unravel_index(np.argmax(transform), shape)
    # The third angle of eight is zero: the wave runs along the first axis.
    frequency = np.array([np.fft.fftfreq(n)[k] for n, k in zip(shape, peak, strict=True)])
    wanted = np.zeros(len(shape))
    wanted[0] = 3 / 8 / 2**j
    # The mean is taken off by a Gaussian at zero, which moves the top a little outwards.
    assert np.allclose(frequency, wanted, atol=0.06 / 2**j + 0.5 / min(shape))


@pytest.mark.parametrize("n_angles", [1, 3, 4, 8])
def test_angles_are_turned_copies(n_angles):
    directions = []
    for angle in range(n_angles):
        transform = morlet((SIZE, SIZE), 1, angle, n_angles)
        k = np.fft.fftfreq(SIZE)
        weights = np.maximum(transform, 0) ** 2
        centre = (k[:, None] * weights).sum(), (k[None, :] * weights).sum()
        directions.append(math.atan2(centre[1], centre[0]))
    turns = np.diff(directions)
    assert np.allclose(turns, -math.pi / n_angles, atol=0.02)


def test_a_quarter_turn_swaps_the_axes():
    along, across = (morlet((SIZE, SIZE), 0, angle, 8) for angle in (3, 7))
    assert np.allclose(across, np.fft.fft2(np.conj(np.fft.ifft2(along))).real.T, atol=1e-12)


def test_the_low_pass_keeps_the_mean():
    # ScatNet and kymatio write π with four digits, in the plane; along one axis its root.
    assert low_pass(SIZE, 3)[0] == pytest.approx(math.sqrt(math.pi / 3.1415), rel=1e-12)
    assert np.all(np.diff(low_pass(SIZE, 3)[: SIZE // 2]) <= 1e-15)


def test_wavelets_and_low_pass_cover_the_plane_without_gain():
    total = np.outer(low_pass(SIZE, 3), low_pass(SIZE, 3)) ** 2
    for j in range(3):
        for angle in range(8):
            power = morlet((SIZE, SIZE), j, angle, 8) ** 2
            mirrored = np.roll(power[::-1, ::-1], 1, axis=(0, 1))
            total += (power + mirrored) / 2
    assert total.max() < 1.02  # these filters overshoot by 1.4 % where two bands meet
    radius = np.hypot(*np.meshgrid(*[np.fft.fftfreq(SIZE)] * 2))
    assert total[radius < 0.4].min() > 0.15


def test_cropping_keeps_the_low_frequencies():
    values = np.fft.fftfreq(16, 1 / 16)
    assert crop_frequencies(values, 4).tolist() == [0, 1, -2, -1]
    grid = np.add.outer(values, 100 * values)
    assert (
        crop_frequencies(grid, 2).tolist()
        == grid[np.ix_([0, 1, 2, 3, 12, 13, 14, 15], [0, 1, 2, 3, 12, 13, 14, 15])].tolist()
    )


@pytest.mark.parametrize(("size", "J", "cells"), [(32, 3, 4), (28, 3, 4), (19, 2, 5), (1, 3, 1)])
def test_cells_hold_all_pixels(size, J, cells):
    assert n_cells(size, J) == cells
    assert padded_size(size, J, "mirror") == (cells + 2) * 2**J
    assert padded_size(size, J, "periodic") == cells * 2**J


@each("size", [1, 2, 5, 19, 28, 32])
@each("border, mode", [("mirror", "reflect"), ("zero", "constant")])
def test_padding_is_that_of_numpy(size, border, mode):
    signal = np.random.default_rng(size).random(size)
    total = padded_size(size, 3, border)
    left = (total - size) // 2
    expected = np.pad(signal, (left, total - size - left), mode=mode)
    assert np.array_equal(padding_matrix(size, 3, border) @ signal, expected)


def test_a_periodic_signal_of_whole_cells_is_left_alone():
    assert np.array_equal(padding_matrix(24, 3, "periodic"), np.eye(24))


@each("border", BORDERS)
@each("factor", [1, 2, 4])
def test_averages_of_a_constant(border, factor):
    matrix = averaging_matrix(48, 3, factor, border)
    assert len(matrix) == (6 if border == "periodic" else 4)
    assert np.allclose(matrix.sum(axis=1), np.sqrt(np.pi / 3.1415), rtol=1e-12)


def test_averages_on_a_coarse_grid_are_those_of_the_fine_one():
    # A signal without high frequencies is the same on both grids.
    wave = np.cos(2 * np.pi * 2 * np.arange(48) / 48 + 0.3)
    fine = averaging_matrix(48, 3, 1, "mirror") @ wave
    coarse = averaging_matrix(48, 3, 4, "mirror") @ wave[::4]
    assert np.allclose(fine, coarse, atol=1e-12)
