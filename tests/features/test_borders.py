import numpy as np
import pytest

from tuckermix.features._borders import (
    BORDERS,
    averaging_matrix,
    n_cells,
    padded_size,
    padding_matrix,
)


@pytest.mark.parametrize(("size", "J", "cells"), [(32, 3, 4), (28, 3, 4), (19, 2, 5), (1, 3, 1)])
def test_cells_hold_all_pixels(size, J, cells):
    assert n_cells(size, J) == cells
    assert padded_size(size, J, "mirror") == (cells + 2) * 2**J
    assert padded_size(size, J, "periodic") == cells * 2**J


@pytest.mark.parametrize("size", [1, 2, 5, 19, 28, 32])
@pytest.mark.parametrize(("border", "mode"), [("mirror", "reflect"), ("zero", "constant")])
def test_padding_is_that_of_numpy(size, border, mode):
    signal = np.random.default_rng(size).random(size)
    total = padded_size(size, 3, border)
    left = (total - size) // 2
    expected = np.pad(signal, (left, total - size - left), mode=mode)
    assert np.array_equal(padding_matrix(size, 3, border) @ signal, expected)


def test_a_periodic_signal_of_whole_cells_is_left_alone():
    assert np.array_equal(padding_matrix(24, 3, "periodic"), np.eye(24))


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("factor", [1, 2, 4])
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
