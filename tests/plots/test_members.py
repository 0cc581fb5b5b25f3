import numpy as np
import pytest
from sklearn.base import BaseEstimator
from tuckermix.plots.members import confidence_of, typical_members

from tuckermix.plots import MemberDisplay


@pytest.mark.parametrize("seed", range(5))
def test_typical_members_are_the_surest_and_doubtful_ones_the_least_sure(seed):
    rng = np.random.default_rng(seed)
    labels, confidence, distances = rng.integers(0, 3, size=60), rng.random(60), rng.random(60)
    typical, doubtful = typical_members(labels, confidence, distances, 3, 4)
    for k in range(3):
        inside = confidence[labels == k]
        np.testing.assert_array_equal(confidence[typical[k]], np.sort(inside)[::-1][:4])
        np.testing.assert_array_equal(confidence[doubtful[k]], np.sort(inside)[:4])
        assert (labels[typical[k]] == k).all()


@pytest.mark.parametrize("seed", range(5))
def test_among_equals_the_distance_decides(seed):
    rng = np.random.default_rng(seed)
    labels, distances = rng.integers(0, 3, size=60), rng.random(60)
    typical, doubtful = typical_members(labels, np.ones(60), distances, 3, 4)
    for k in range(3):
        inside = distances[labels == k]
        np.testing.assert_array_equal(distances[typical[k]], np.sort(inside)[:4])
        np.testing.assert_array_equal(distances[doubtful[k]], np.sort(inside)[::-1][:4])


def test_small_clusters_show_no_sample_twice():
    labels, sure = np.array([0, 0, 0, 1]), np.ones(4)
    typical, doubtful = typical_members(labels, sure, np.arange(4.0), 2, 2)
    assert [len(part) for part in typical] == [2, 1]
    assert [len(part) for part in doubtful] == [1, 0]
    assert not set(typical[0]) & set(doubtful[0])


def test_confidence_is_the_soft_label_of_the_own_cluster(digits, model):
    X, _ = digits
    proba = model.predict_proba(X)
    labels = model.labels_.copy()
    np.testing.assert_array_equal(confidence_of(model, X, labels), proba.max(axis=1))
    labels[:5] = -1  # outliers
    np.testing.assert_array_equal(confidence_of(model, X, labels), proba.max(axis=1))
    labels[5:] = (labels[5:] + 1) % 3
    expected = proba[np.arange(5, len(X)), labels[5:]]
    np.testing.assert_array_equal(confidence_of(model, X, labels)[5:], expected)


def test_display_and_report_mean_the_same_members():
    """One definition: what a display calls typical, the report calls typical."""
    pytest.importorskip("jinja2")
    from tuckermix import TuckerClustering
    from tuckermix.datasets import make_tensor_clusters
    from tuckermix.report._content import N_MEMBERS, Subject, cards

    X = make_tensor_clusters(90, (7, 6), 3, random_state=0).X
    model = TuckerClustering(3, random_state=0).fit(X)
    display = MemberDisplay.from_estimator(model, X, n_members=N_MEMBERS)
    subject = Subject(model, X, model.labels_, model.predict_proba(X), list(map(str, range(90))))
    for card, typical, doubtful in zip(
        cards(subject), display.typical, display.doubtful, strict=True
    ):
        np.testing.assert_array_equal(X[[member.sample for member in card.typical]], typical)
        np.testing.assert_array_equal(X[[member.sample for member in card.doubtful]], doubtful)


def test_draws_a_row_for_each_cluster(digits, model):
    X, _ = digits
    display = MemberDisplay.from_estimator(model, X, n_members=4)
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts == ["0", "1", "2", "centroid", "most typical first", "most doubtful first"]
    assert [len(part) for part in display.typical] == [4, 4, 4]


def test_works_with_very_small_clusters(make_model):
    X = np.random.default_rng(0).random((3, 5, 6))
    display = MemberDisplay.from_estimator(make_model(X), X)
    assert "most doubtful first" not in [text.get_text() for text in display.ax_.texts]


def test_an_estimator_without_soft_labels_goes_by_distance(digits, model):
    X, _ = digits

    class Plain(BaseEstimator):
        def fit(self, X):
            self.centroids_, self.labels_ = model.centroids_, model.labels_
            return self

    distances = np.linalg.norm((X - model.centroids_[model.labels_]).reshape(len(X), -1), axis=1)
    display = MemberDisplay.from_estimator(Plain().fit(X), X, n_members=2)
    for k in range(3):
        members = np.flatnonzero(model.labels_ == k)
        order = members[np.argsort(distances[members])]
        np.testing.assert_array_equal(display.typical[k], X[order[:2]])


def test_earlier_names_of_the_parameters_work_and_say_so(digits):
    X, _ = digits
    with pytest.warns(DeprecationWarning, match="nearest and farthest of MemberDisplay go with"):
        display = MemberDisplay(X[:2], nearest=[X[:1], X[1:2]], farthest=[X[2:3], X[3:4]])
    np.testing.assert_array_equal(display.typical[1], X[1:2])
    np.testing.assert_array_equal(display.doubtful[0], X[2:3])


def test_both_kinds_of_members_are_needed(digits):
    with pytest.raises(TypeError, match="MemberDisplay needs typical and doubtful"):
        MemberDisplay(digits[0][:2], [digits[0][:1], digits[0][1:2]])


def test_number_of_members_is_checked(digits, model):
    with pytest.raises(ValueError, match="'n_members' parameter of MemberDisplay must be"):
        MemberDisplay.from_estimator(model, digits[0], n_members=0)
