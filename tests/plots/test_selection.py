import pytest

from tuckermix.plots import SelectionDisplay
from tuckermix.selection import Selection, Trial

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
    display = SelectionDisplay.from_estimator(model)
    assert str(model.n_clusters_) in display.ax_.get_title()
