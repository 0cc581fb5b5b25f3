import numpy as np
import pytest

from tuckermix.plots import MembershipDisplay


def weights(n, k, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(k), size=n)


def test_three_clusters_fill_a_triangle(digits, model):
    display = MembershipDisplay.from_estimator(model, digits[0])
    drawn = sum(len(points.get_offsets()) for points in display.artists_)
    assert drawn == len(digits[0])
    assert "corner" in display.ax_.get_title()


@pytest.mark.parametrize("seed", range(3))
def test_triangle_keeps_the_weights(seed):
    rows = weights(20, 3, seed)
    display = MembershipDisplay(rows).plot()
    for k, points in enumerate(display.artists_):
        xy = np.asarray(points.get_offsets())
        third = xy[:, 1] / (np.sqrt(3) / 2)
        second = xy[:, 0] - third / 2
        back = np.column_stack([1 - second - third, second, third])
        np.testing.assert_allclose(back, rows[rows.argmax(axis=1) == k], atol=1e-12)


@pytest.mark.parametrize("k", [1, 2, 5, 12])
def test_bars_fill_the_whole_height(k):
    display = MembershipDisplay(weights(30, k)).plot()
    assert len(display.artists_) == k
    corners = np.concatenate([area.get_paths()[0].vertices for area in display.artists_])
    assert corners[:, 1].min() == 0
    np.testing.assert_allclose(corners[:, 1].max(), 1)


def test_many_samples_are_thinned_and_it_says_so():
    display = MembershipDisplay(weights(5000, 4)).plot()
    assert "400 of 5000 shown" in display.ax_.get_xlabel()


def test_mixing_weights_are_another_response(digits, model):
    display = MembershipDisplay.from_estimator(
        model, digits[0], response="memberships", style="bars"
    )
    assert "Mixing weights" in display.ax_.get_title()


def test_options_are_checked(digits, model):
    with pytest.raises(ValueError, match="'response' parameter of MembershipDisplay must be"):
        MembershipDisplay.from_estimator(model, digits[0], response="labels")
    with pytest.raises(ValueError, match="'style' parameter of MembershipDisplay must be"):
        MembershipDisplay(weights(4, 3)).plot(style="pie")
    with pytest.raises(ValueError, match=r"style='ternary' needs 3 columns. Got 4"):
        MembershipDisplay(weights(4, 4)).plot(style="ternary")
