"""The tree through a partition: nested levels, which new samples agree with, of all labellers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline

import tuckermix
from tuckermix import AutoClustering, MultiViewClustering, TuckerClustering
from tuckermix.features import Scale


def check_nested(model, labels, levels):
    """Check that labels at all levels have as many clusters, and that finer ones divide coarser."""
    every = [np.asarray(model.labels_at(k)) for k in levels]
    for k, fine in zip(levels, every, strict=True):
        assert set(fine[fine >= 0]) == set(range(k))
    for place, coarse in enumerate(every):
        for fine in every[place:]:
            pairs = {(int(a), int(b)) for a, b in zip(fine, coarse, strict=True)}
            assert len(pairs) == len(set(fine.tolist()))
    np.testing.assert_array_equal(model.labels_at(len(model.centroids_)), labels)


@pytest.fixture(scope="module")
def digits():
    digits = load_digits()
    return digits.images[:500] / 16.0, digits.target[:500]


VIEWS = [
    ("plain", TuckerClustering()),
    ("unit", make_pipeline(Scale("unit"), TuckerClustering())),
]
MODELS = [
    TuckerClustering(6, random_state=0),
    TuckerClustering(6, random_state=0, calibrate=True),
    TuckerClustering(6, random_state=0, outliers="label"),
    TuckerClustering(6, random_state=0, assign_labels="subspace"),
    TuckerClustering(6, random_state=0, assign_labels="memberships"),
    TuckerClustering(6, random_state=0, assign_labels="argmax"),
    MultiViewClustering(VIEWS, 6, random_state=0),
    MultiViewClustering(VIEWS, 6, random_state=0, outliers="label"),
    AutoClustering(6, random_state=0, candidates=VIEWS),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: repr(model)[:60])
def test_levels_are_nested_and_new_samples_agree(digits, model, tmp_path):
    X = digits[0][:240]
    model.fit(X)
    tree = model.tree_
    assert tree.n_clusters == 6
    assert tree.merges.shape == (tree.n_leaves - 1, 2)
    assert len(tree.heights) == len(tree.stability) == tree.n_leaves - 1
    assert tree.n_leaves == pytest.approx(len(X) / 4, abs=8)
    assert np.all(np.diff(tree.heights) >= 0)
    levels = [1, 2, 5, 6, 7, 20, tree.n_leaves]
    check_nested(model, model.labels_, levels)
    for k in levels:
        np.testing.assert_array_equal(model.predict(X, n_clusters=k), model.labels_at(k))
    assert model.tree_ is tree
    tuckermix.save(model, tmp_path / "model")
    again = tuckermix.load(tmp_path / "model")
    for k in levels:
        np.testing.assert_array_equal(again.labels_at(k), model.labels_at(k))
