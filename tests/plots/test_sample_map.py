import numpy as np
import pytest

from tuckermix.plots import MapDisplay


@pytest.mark.parametrize("method", ["neighbors", "discriminant"])
def test_one_mark_for_each_sample(digits, model, method):
    display = MapDisplay.from_estimator(model, digits[0], method=method)
    assert sum(len(points.get_offsets()) for points in display.points_) == len(digits[0])
    assert {text.get_text() for text in display.ax_.texts} == {"0", "1", "2"}
    assert "alike" in display.ax_.get_title()


def test_many_samples_are_thinned_and_it_says_so(digits, model):
    display = MapDisplay.from_estimator(model, digits[0], max_samples=50)
    assert sum(len(points.get_offsets()) for points in display.points_) == 50
    assert f"(50 of {len(digits[0])} shown)" in display.ax_.get_title()


def test_options_are_checked(digits, model):
    with pytest.raises(ValueError, match="'method' parameter of MapDisplay must be one of"):
        MapDisplay.from_estimator(model, digits[0], method="tsne")
    with pytest.raises(ValueError, match="'method' parameter of MapDisplay must be one of"):
        MapDisplay.from_arrays(np.eye(3), [0, 1, 2], method="tsne")
    with pytest.raises(ValueError, match="'max_samples' parameter of MapDisplay"):
        MapDisplay.from_estimator(model, digits[0], max_samples=0)
