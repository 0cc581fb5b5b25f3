import numpy as np

from tuckermix.plots import ConvergenceDisplay


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
