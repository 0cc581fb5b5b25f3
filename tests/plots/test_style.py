from itertools import pairwise

import pytest

from tuckermix.plots import style


def test_colours_and_markers_differ_together():
    pairs = {tuple(style.look_of(k, "color", "marker").values()) for k in range(90)}
    assert len(pairs) == 90


def lightness(colour):
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_neighbouring_colours_differ_in_grey():
    greys = [lightness(colour) for colour in style.COLOURS]
    assert min(abs(a - b) for a, b in pairwise(greys)) > 0.05


def test_axes_are_made_only_where_none_are_given():
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    assert style.Display()._axes(ax, (3, 2)) is ax
    assert style.Display()._axes(None, (3, 2)).figure.get_size_inches() == pytest.approx([3, 2])
