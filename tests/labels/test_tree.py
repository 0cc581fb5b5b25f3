"""The tree through a partition: nested levels, which new samples agree with, of all labellers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_circles,
    make_moons,
)
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

import tuckermix
from tuckermix import AutoClustering, MultiViewClustering, TuckerClustering
from tuckermix.datasets import make_dynamic_textures, make_tensor_clusters
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
    assert repr(tree) == f"Tree(n_leaves={tree.n_leaves}, n_clusters=6)"
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


def point_sets():
    """Ten datasets, small enough for every level of their trees."""
    yield load_iris().data
    yield load_wine().data
    yield load_breast_cancer().data[:200]
    yield load_digits().images[:150]
    yield make_moons(120, noise=0.1, random_state=0)[0]
    yield make_circles(120, noise=0.05, factor=0.5, random_state=0)[0]
    yield np.random.default_rng(0).standard_normal((100, 12))
    yield make_tensor_clusters(150, (6, 5, 4), n_clusters=5, random_state=0).X
    yield make_dynamic_textures(60, 3, shape=8, n_frames=6, random_state=0).X
    yield np.concatenate([np.full((4, 9), value) for value in np.arange(20.0)])  # copies


@pytest.mark.slow
def test_all_levels_are_nested_on_ten_datasets():
    for X in point_sets():
        model = TuckerClustering(4, random_state=0).fit(X)
        check_nested(model, model.labels_, [1, 2])
        coarse = model.labels_at(1)
        for k in range(2, model.tree_.n_leaves + 1):
            fine = model.labels_at(k)
            assert len(np.unique(np.stack([fine, coarse]), axis=1).T) == k
            coarse = fine


def test_groups_of_groups_are_levels():
    rng = np.random.default_rng(0)
    angles = 2 * np.pi * np.arange(3) / 3
    corners = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    coarse, fine = np.repeat(np.arange(3), 90), np.repeat(np.arange(9), 30)
    X = 30 * corners[coarse] + 8 * corners[fine % 3] + rng.standard_normal((270, 3))
    model = TuckerClustering(9, random_state=0).fit(X)
    assert adjusted_rand_score(coarse, model.labels_at(3)) > 0.99


@pytest.mark.slow
@pytest.mark.parametrize("lazy", [False, True])
def test_landmarks_and_samples_on_disk_have_a_tree(lazy):
    n_samples = 800 if lazy else 10_100  # more than there are landmarks
    X, y = make_tensor_clusters(n_samples, (6, 5), n_clusters=8, random_state=0, return_X_y=True)
    if lazy:
        X = pytest.importorskip("dask.array").from_array(X, chunks=(300, 6, 5))
    model = TuckerClustering(5, random_state=0).fit(X)
    check_nested(model, model.labels_, [1, 2, 5, 8, 30])
    assert adjusted_rand_score(y, np.asarray(model.labels_at(8))) > 0.8
    for k in (2, 5, 8, 30):
        np.testing.assert_array_equal(model.predict(X, n_clusters=k), model.labels_at(k))
