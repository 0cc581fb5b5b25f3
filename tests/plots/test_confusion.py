import numpy as np

from tuckermix.plots import ConfusionDisplay


def test_classes_may_be_words(digits, model):
    words = np.array(["zero", "one", "two"])[digits[1]]
    display = ConfusionDisplay.from_estimator(model, digits[0], words)
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == ["one", "two", "zero"]
    assert "on the diagonal" in display.ax_.get_title()
    assert display.image_.get_cmap().name == "cividis"


def test_many_classes_leave_the_counts_out():
    y = np.arange(60) % 30
    assert ConfusionDisplay.from_predictions(y, y).texts_ == []
