from itertools import permutations

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, normalized_mutual_info_score

from tuckermix.metrics import (
    clustering_accuracy,
    matched_table,
    normalized_mutual_information,
)

BOTH = pytest.mark.parametrize("metric", [clustering_accuracy, normalized_mutual_information])


def draw(seed):
    rng = np.random.default_rng(seed)
    n, classes, clusters = rng.integers(1, 40), rng.integers(1, 6), rng.integers(1, 6)
    return rng.integers(classes, size=n), rng.integers(clusters, size=n)


def accuracy_by_search(y_true, y_pred):
    """Try every injective renaming of clusters; the names beyond the classes match nothing."""
    clusters = np.unique(y_pred)
    targets = [*np.unique(y_true), *range(-clusters.size, 0)]
    return max(
        np.mean(y_true == np.array([dict(zip(clusters, p, strict=True))[y] for y in y_pred]))
        for p in permutations(targets, clusters.size)
    )


def test_accuracy_is_that_of_the_best_matching():
    for seed in range(6):
        y_true, y_pred = draw(seed)
        expected = accuracy_by_search(y_true, y_pred)
        assert clustering_accuracy(y_true, y_pred) == pytest.approx(expected, abs=1e-15)


def test_nmi_agrees_with_scikit_learn():
    for seed in range(30):
        y_true, y_pred = draw(seed)
        expected = normalized_mutual_info_score(y_true, y_pred, average_method="max")
        assert normalized_mutual_information(y_true, y_pred) == pytest.approx(expected, abs=1e-12)


@BOTH
def test_symmetric_bounded_and_blind_to_names_and_order(metric):
    for seed in range(20):
        y_true, y_pred = draw(seed)
        rng = np.random.default_rng(seed)
        value = metric(y_true, y_pred)
        order = rng.permutation(y_true.size)
        names = np.array(["e", "a", "d", "b", "c", "f"])
        assert 0.0 <= value <= 1.0
        assert metric(y_pred, y_true) == pytest.approx(value, abs=1e-15)
        assert metric(names[y_true[order]], -7 * y_pred[order]) == pytest.approx(value, abs=1e-15)


@BOTH
def test_equal_partitions_give_exactly_one(metric):
    for seed in range(20):
        y_true, _ = draw(seed)
        assert metric(y_true, np.random.default_rng(seed).permutation(10)[y_true]) == 1.0


@BOTH
def test_labels_of_any_type(metric):
    y_true = [0, 0, 1, 1, 2, 2]
    for other in (
        ["x", "x", "y", "y", "z", "z"],
        [-5, -5, 3, 3, 0, 0],
        [0.5, 0.5, 1.0, 1.0, -2.0, -2.0],
        np.array(["x", "x", "y", "y", "z", "z"], dtype=object),
        np.array([2, 2, 0, 0, 1, 1], dtype=np.uint8),
        range(6),
    ):
        expected = 1.0 if len(set(other)) == 3 else None
        value = metric(y_true, other)
        assert value == expected or (expected is None and 0 < value < 1)
    assert metric([True, False], ["no", "yes"]) == 1.0


@BOTH
def test_labels_of_another_library(metric):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    assert metric(torch.tensor([0, 0, 1]), np.array([1, 1, 0])) == 1.0


def test_constant_labelings():
    constant, varying = [0, 0, 0, 0], [0, 1, 2, 3]
    assert normalized_mutual_information(constant, ["a"] * 4) == 1.0
    assert clustering_accuracy(constant, ["a"] * 4) == 1.0
    assert normalized_mutual_information(constant, varying) == 0.0
    assert clustering_accuracy(constant, varying) == 0.25
    assert normalized_mutual_information([3], [9]) == clustering_accuracy([3], [9]) == 1.0


def test_independent_labelings_have_no_information():
    y_true, y_pred = np.divmod(np.arange(12), 3)
    assert normalized_mutual_information(y_true, y_pred) == pytest.approx(0.0, abs=1e-15)


@BOTH
def test_refused(metric):
    with pytest.raises(ValueError, match="y_true has 3 labels and y_pred has 2: they must label"):
        metric([0, 1, 2], [0, 1])
    with pytest.raises(ValueError, match=r"y_true must be one-dimensional.*shape \(2, 1\)"):
        metric([[0], [1]], [0, 1])
    with pytest.raises(ValueError, match=r"y_pred must be one-dimensional.*shape \(\)"):
        metric([0], 0)
    with pytest.raises(ValueError, match="y_true is empty: at least one label"):
        metric([], [])
    with pytest.raises(ValueError, match="y_pred contains NaN: leave the samples without"):
        metric([0, 1], [0.0, np.nan])
    with pytest.raises(ValueError, match=r"y_pred mixes labels .*\(NoneType, str\): use one type"):
        metric([0, 1], ["a", None])


def test_renamed_clusters_come_back_to_the_diagonal():
    for seed in range(5):
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


def test_the_diagonal_of_the_table_is_the_accuracy():
    for seed in range(4):
        y_true, y_pred = draw(seed)
        counts = matched_table(y_true, y_pred).counts
        assert np.trace(counts) / y_true.size == pytest.approx(accuracy_by_search(y_true, y_pred))


def test_many_labels_give_no_warning_and_need_no_square_table():
    y = np.arange(50_000)
    assert normalized_mutual_information(y, y[::-1]) == 1.0
    assert 0 < normalized_mutual_information(y, y // 2) < 1
