"""Which numbers of clusters are tried."""

from itertools import pairwise

import pytest

from tuckermix.selection.grid import coarse_grid, values_between


@pytest.mark.parametrize("n_samples", [10, 11, 25, 60, 100, 333, 500, 5000])
def test_the_grid_rises_from_two_to_its_end(n_samples):
    grid = coarse_grid(n_samples)
    assert grid[0] == 2
    assert grid == sorted(set(grid))
    assert grid[-1] <= min(n_samples // 5, 100)
    # Neighbours differ by a factor of 1.5 at most, and the last value is near the end.
    assert all(high <= 1.5 * low for low, high in pairwise(grid))
    assert 1.34 * grid[-1] >= min(n_samples // 5, 100)


@pytest.mark.parametrize(("n_samples", "grid"), [(1, [1]), (2, [2]), (9, [2])])
def test_few_samples_leave_one_number(n_samples, grid):
    assert coarse_grid(n_samples) == grid


def test_small_gaps_are_filled_and_large_ones_divided():
    assert values_between([2, 3, 5, 8], 5) == [4, 6, 7]
    between = values_between([48, 58, 70], 58)
    assert len(between) == 8
    assert all(48 < value < 70 and value != 58 for value in between)
    assert values_between([2, 3, 4], 3) == []
    assert values_between([2, 3, 5], 2) == []


def test_repeating_finds_every_neighbour():
    tried, best = [2, 60, 100], 60
    for _ in range(4):
        tried = sorted({*tried, *values_between(tried, best)})
    assert {59, 61} <= set(tried)
