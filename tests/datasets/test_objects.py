import numpy as np
import pytest
from tests.cases import each

from tuckermix.datasets import make_objects
from tuckermix.datasets._objects import SHAPES


def test_pictures_repeat_and_are_balanced():
    data = make_objects(3, 24, random_state=0)
    assert data.X.shape == (30, 24, 24, 3)
    assert np.bincount(data.labels).tolist() == [3] * 10
    assert data.class_names[0] == "ball"
    X, labels = make_objects(3, 24, random_state=0, return_X_y=True)
    assert np.array_equal(X, data.X)
    assert np.array_equal(labels, data.labels)
    assert not np.array_equal(make_objects(3, 24, random_state=1).X, data.X)


@each("name", SHAPES)
def test_distances_are_lengths_of_safe_steps(name):
    """A ray never steps through a surface if the distance changes no faster than the point."""
    rng = np.random.default_rng(0)
    p = rng.uniform(-1.5, 1.5, (4000, 3)).astype(np.float32)
    step = rng.normal(0, 0.1, p.shape).astype(np.float32)
    change = np.abs(SHAPES[name](p + step) - SHAPES[name](p))
    assert np.all(change <= np.linalg.norm(step, axis=1) * (1 + 1e-4) + 1e-5)
    inside = SHAPES[name](p) < 0
    assert 0.005 < inside.mean() < 0.3


def test_colour_says_nothing_and_the_outline_of_a_ball_is_round():
    data = make_objects(20, 32, random_state=0)
    means = data.X.reshape(200, -1, 3).mean(axis=1)
    between = np.array([means[data.labels == k].mean(axis=0) for k in range(10)]).std(axis=0)
    assert np.all(between < means.std(axis=0))
    ball = data.X[data.labels == 0][0].astype(float)
    there = np.abs(ball - ball[:, :1]).sum(axis=-1) > 40
    rows, columns = np.nonzero(there)
    assert abs(np.ptp(rows) - np.ptp(columns)) <= 2


@pytest.mark.parametrize(
    ("given", "said"), [({"n_per_class": 0}, "n_per_class"), ({"size": 4}, "size")]
)
def test_numbers_that_make_no_picture_are_refused(given, said):
    with pytest.raises(ValueError, match=said):
        make_objects(**given)
