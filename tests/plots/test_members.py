import numpy as np
import pytest

from tuckermix.plots import MemberDisplay
from tuckermix.plots.members import extreme_members


@pytest.mark.parametrize("seed", range(5))
def test_chosen_members_are_the_extreme_ones(seed):
    rng = np.random.default_rng(seed)
    labels, distances = rng.integers(0, 3, size=60), rng.random(60)
    nearest, farthest = extreme_members(labels, distances, 3, 4)
    for k in range(3):
        inside = distances[labels == k]
        np.testing.assert_array_equal(distances[nearest[k]], np.sort(inside)[:4])
        np.testing.assert_array_equal(distances[farthest[k]], np.sort(inside)[::-1][:4])
        assert (labels[nearest[k]] == k).all()


def test_small_clusters_show_no_sample_twice():
    nearest, farthest = extreme_members(np.array([0, 0, 0, 1]), np.arange(4.0), 2, 2)
    assert [len(part) for part in nearest] == [2, 1]
    assert [len(part) for part in farthest] == [1, 0]
    assert not set(nearest[0]) & set(farthest[0])


def test_draws_a_row_for_each_cluster(digits, model):
    X, _ = digits
    display = MemberDisplay.from_estimator(model, X, n_members=4)
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts == ["0", "1", "2", "centroid", "nearest first", "farthest first"]
    assert [len(part) for part in display.nearest] == [4, 4, 4]


def test_works_with_very_small_clusters(make_model):
    X = np.random.default_rng(0).random((3, 5, 6))
    display = MemberDisplay.from_estimator(make_model(X), X)
    assert "farthest first" not in [text.get_text() for text in display.ax_.texts]


def test_number_of_members_is_checked(digits, model):
    with pytest.raises(ValueError, match="'n_members' parameter of MemberDisplay must be"):
        MemberDisplay.from_estimator(model, digits[0], n_members=0)
