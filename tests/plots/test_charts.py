"""Displays made of marks and curves."""

import numpy as np
import pytest

from tuckermix.plots import (
    ConfusionDisplay,
    ConvergenceDisplay,
    EnergyDisplay,
    MapDisplay,
    MembershipDisplay,
    SelectionDisplay,
)
from tuckermix.plots.charts import mode_spectra
from tuckermix.selection import Selection, Trial


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


def weights(n, k, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(k), size=n)


def test_three_clusters_fill_a_triangle(digits, model):
    display = MembershipDisplay.from_estimator(model, digits[0])
    drawn = sum(len(points.get_offsets()) for points in display.artists_)
    assert drawn == len(digits[0])
    assert "corner" in display.ax_.get_title()


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


def test_many_samples_are_thinned_and_it_says_so_by_memberships():
    display = MembershipDisplay(weights(5000, 4)).plot()
    assert "400 of 5000 shown" in display.ax_.get_xlabel()


def test_mixing_weights_are_another_response(digits, model):
    display = MembershipDisplay.from_estimator(
        model, digits[0], response="memberships", style="bars"
    )
    assert "Mixing weights" in display.ax_.get_title()


def test_options_are_checked_by_memberships(digits, model):
    with pytest.raises(ValueError, match="'response' parameter of MembershipDisplay must be"):
        MembershipDisplay.from_estimator(model, digits[0], response="labels")
    with pytest.raises(ValueError, match="'style' parameter of MembershipDisplay must be"):
        MembershipDisplay(weights(4, 3)).plot(style="pie")
    with pytest.raises(ValueError, match=r"style='ternary' needs 3 columns. Got 4"):
        MembershipDisplay(weights(4, 4)).plot(style="ternary")


@pytest.mark.parametrize("shape", [(50, 6), (30, 5, 7), (20, 3, 4, 5)])
def test_spectra_are_those_of_the_centred_unfoldings(shape):
    X = np.random.default_rng(0).normal(size=shape) + 5
    centred = X - X.mean(axis=0)
    for mode, spectrum in enumerate(mode_spectra(X)):
        unfolded = np.moveaxis(centred, mode + 1, 0).reshape(shape[mode + 1], -1)
        np.testing.assert_allclose(spectrum, np.linalg.svd(unfolded, compute_uv=False), rtol=1e-9)


def test_shares_grow_to_one(digits, model):
    display = EnergyDisplay.from_estimator(model, digits[0])
    assert len(display.lines_) == 2
    for line in display.lines_:
        shares = line.get_ydata()
        assert (np.diff(shares) >= -1e-12).all()
        np.testing.assert_allclose(shares[-1], 1)
    assert "rings mark the ranks" in display.ax_.get_title()


def test_singular_values_on_a_log_scale(digits):
    display = EnergyDisplay.from_array(digits[0][:, 1:7, 1:7], values="singular values")
    assert display.ax_.get_yscale() == "log"
    assert "rings" not in display.ax_.get_title()


def test_constant_data_have_no_energy_to_lose():
    display = EnergyDisplay.from_array(np.ones((5, 3, 4)))
    assert (display.lines_[0].get_ydata() == 1).all()


def test_option_is_checked(digits):
    with pytest.raises(ValueError, match="'values' parameter of EnergyDisplay must be one of"):
        EnergyDisplay.from_array(digits[0], values="power")


def test_shows_cost_and_gap(model):
    display = ConvergenceDisplay.from_estimator(model)
    np.testing.assert_allclose(display.cost_line_.get_ydata(), [r.cost for r in model.history_])
    np.testing.assert_allclose(display.gap_line_.get_ydata(), [r.gap for r in model.history_])
    assert display.gap_ax_.get_yscale() == "log"
    assert "gap" in display.ax_.get_title()


def test_zero_gap_is_drawn_on_the_log_scale():
    display = ConvergenceDisplay([0, 1], [2.0, 1.0], gap=[1e-3, 0.0]).plot()
    assert (display.gap_line_.get_ydata() > 0).all()


def test_unknown_gaps_are_left_out():
    display = ConvergenceDisplay([0, 1, 2], [3.0, 2.0, 1.0], gap=[np.nan, np.nan, 1e-4]).plot()
    assert list(display.gap_line_.get_xdata()) == [2]
    assert ConvergenceDisplay([0, 1], [2.0, 1.0], gap=[np.nan] * 2).plot().gap_line_ is None
    assert ConvergenceDisplay([0, 1], [2.0, 1.0]).plot().gap_line_ is None


def test_history_without_numbers_is_numbered(model):
    class Bare:
        cost = 1.0

    class Other(type(model)):
        pass

    other = Other()
    other.history_ = [Bare(), Bare()]
    display = ConvergenceDisplay.from_estimator(other)
    assert list(display.cost_line_.get_xdata()) == [0, 1]


def test_classes_may_be_words(digits, model):
    words = np.array(["zero", "one", "two"])[digits[1]]
    display = ConfusionDisplay.from_estimator(model, digits[0], words)
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == ["one", "two", "zero"]
    assert "on the diagonal" in display.ax_.get_title()
    assert display.image_.get_cmap().name == "cividis"


def test_many_classes_leave_the_counts_out():
    y = np.arange(60) % 30
    assert ConfusionDisplay.from_predictions(y, y).texts_ == []


TRIALS = [
    Trial(2, "a", 0.9, 0.5, 4),
    Trial(2, "b", 0.8, 0.5, 4),
    Trial(3, "a", 1.0, 0.7, 4),
    Trial(3, "b", 0.7, 0.6, 4),
    Trial(5, "a", 0.5, 0.8, 4),
]


@pytest.mark.parametrize("quantity", ["score", "stability", "modularity"])
def test_each_view_is_a_line(quantity):
    display = SelectionDisplay(Selection(TRIALS, 3, "a"), quantity=quantity).plot()
    assert list(display.lines_) == ["a", "b"]
    assert list(display.lines_["a"].get_xdata()) == [2, 3, 5]
    heights = [getattr(t, quantity) for t in TRIALS if t.view == "b"]
    assert list(display.lines_["b"].get_ydata()) == heights
    assert list(display.chosen_.get_xdata()) == [3]
    assert list(display.chosen_.get_ydata()) == [getattr(TRIALS[2], quantity)]


def test_an_estimator_has_its_choice_shown():
    from tuckermix import AutoClustering
    from tuckermix.datasets import make_tensor_clusters

    X = make_tensor_clusters(60, n_clusters=3, random_state=0).X
    model = AutoClustering(random_state=0).fit(X)
    display = SelectionDisplay.from_estimator(model, X)
    assert str(model.n_clusters_) in display.ax_.get_title()
