import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from tuckermix.plots import ConfusionDisplay
from tuckermix.plots.confusion import matched_table


@pytest.mark.parametrize("seed", range(5))
def test_renamed_clusters_come_back_to_the_diagonal(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 6, size=200)
    table = matched_table(y, rng.permutation(6)[y])
    assert np.trace(table.counts) == 200


@pytest.mark.parametrize(("n_classes", "n_clusters"), [(4, 7), (7, 4), (3, 1), (1, 3)])
def test_counts_are_kept_when_the_numbers_differ(n_classes, n_clusters):
    rng = np.random.default_rng(1)
    y, labels = rng.integers(0, n_classes, 300), rng.integers(0, n_clusters, 300)
    table = matched_table(y, labels)
    assert table.counts.sum() == 300
    size = max(n_classes, n_clusters)
    plain = confusion_matrix(y, labels, labels=range(size))
    for i, true in enumerate(table.classes):
        for j, cluster in enumerate(table.clusters):
            assert table.counts[i, j] == plain[true, cluster]


def test_classes_may_be_words(digits, model):
    words = np.array(["zero", "one", "two"])[digits[1]]
    display = ConfusionDisplay.from_estimator(model, digits[0], words)
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == ["one", "two", "zero"]
    assert "on the diagonal" in display.ax_.get_title()
    assert display.image_.get_cmap().name == "cividis"


def test_many_classes_leave_the_counts_out():
    y = np.arange(60) % 30
    assert ConfusionDisplay.from_predictions(y, y).texts_ == []


def test_lengths_must_agree():
    with pytest.raises(ValueError, match=r"y_true has shape \(3,\), but y_pred has shape \(4,\)"):
        matched_table([0, 1, 2], [0, 1, 2, 3])
