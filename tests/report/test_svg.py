import re

import numpy as np
import pytest

from tuckermix.report._svg import MAP_HEIGHT, MAP_WIDTH, SHAPES, chart, map_positions, mark


def test_marks_differ_and_stay_near_their_place():
    marks = [mark(k, 3) for k in range(len(SHAPES))]
    assert len(set(marks)) == len(SHAPES)
    for path in marks[1:]:
        x = y = 0.0
        for dx, dy in re.findall(r"[ml](-?[\d.]+) (-?[\d.]+)", path):
            x, y = x + float(dx), y + float(dy)
            assert max(abs(x), abs(y)) <= 4


@pytest.mark.parametrize("seed", range(5))
def test_positions_fill_the_map_and_stay_inside(seed):
    rng = np.random.default_rng(seed)
    placed = map_positions(rng.normal(size=(50, 2)) * rng.uniform(0.1, 100, size=2))
    assert placed.min() >= 0
    assert (placed.max(axis=0) <= [MAP_WIDTH, MAP_HEIGHT]).all()
    used = np.ptp(placed, axis=0) / [MAP_WIDTH, MAP_HEIGHT]
    assert used.max() > 0.9


def test_a_single_position_lies_in_the_middle():
    assert map_positions(np.zeros((1, 2))).tolist() == [[MAP_WIDTH // 2, MAP_HEIGHT // 2]]


def test_chart_falls_with_its_numbers():
    drawn = chart("Cost", [0, 1, 2], [9.0, 4.0, 1.0])
    heights = [y for _, y in drawn.points]
    assert heights == sorted(heights)  # y grows downwards
    assert drawn.table[0] == ("0", "9")


@pytest.mark.parametrize("values", [[5.0], [5.0, 5.0], [0.0, 0.0], [1e-16, 0.0], [1e200, 1.0]])
@pytest.mark.parametrize("log", [False, True])
def test_chart_of_anything_is_finite(values, log):
    drawn = chart("Gap", range(len(values)), values, log=log)
    assert np.isfinite(drawn.points).all()


def test_chart_leaves_out_what_is_unknown():
    assert chart("Gap", [0, 1], [np.nan, np.nan]) is None
    assert len(chart("Gap", [0, 1, 2], [np.nan, 1.0, 2.0]).points) == 2


def test_ticks_tell_neighbours_apart():
    for low, high in [(128212.0, 128650.0), (1e-9, 2e-9), (3e12, 4e12), (0.5, 0.50001)]:
        texts = [text for _, text in chart("Cost", [0, 1], [high, low]).y_ticks]
        assert len(set(texts)) == len(texts)
