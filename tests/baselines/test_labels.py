"""Labels from memberships."""

import numpy as np
import pytest

from tuckermix.baselines._base import label_memberships


@pytest.mark.parametrize("rule", ["kmeans", "argmax"])
def test_labels_of_clear_memberships(rule, seed):
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.repeat(np.arange(4), 5))
    memberships = np.eye(4)[truth] + 0.1 * rng.random((20, 4))
    labels, centers = label_memberships(memberships, 4, rule, rng)
    pairs = set(zip(labels.tolist(), truth.tolist(), strict=True))
    assert len(pairs) == 4
    assert labels.dtype == np.int64
    for k in range(4):
        np.testing.assert_allclose(centers[k], memberships[labels == k].mean(axis=0))


@pytest.mark.parametrize("rule", ["kmeans", "argmax"])
@pytest.mark.parametrize(
    "memberships",
    [np.zeros((9, 4)), np.ones((9, 4)), np.outer(np.arange(9.0), [1, 0, 0, 0]), np.eye(4)],
    ids=["zeros", "ones", "one column", "as many as clusters"],
)
def test_every_label_occurs(rule, memberships):
    labels, centers = label_memberships(memberships, 4, rule, np.random.default_rng(0))
    np.testing.assert_array_equal(np.unique(labels), np.arange(4))
    assert np.all(np.isfinite(centers))


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_labels_do_not_depend_on_the_scale(scale):
    memberships = np.random.default_rng(0).random((30, 3))
    base, _ = label_memberships(memberships, 3, "kmeans", np.random.default_rng(1))
    labels, _ = label_memberships(scale * memberships, 3, "kmeans", np.random.default_rng(1))
    np.testing.assert_array_equal(labels, base)
