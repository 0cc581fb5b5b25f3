"""Tests of dual regularised co-clustering."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tuckermix._records import StopReason
from tuckermix.baselines.drcc import DRCC, penalty_grid
from tuckermix.datasets import make_tensor_clusters
from tuckermix.metrics import clustering_accuracy


@parametrize_with_checks([DRCC()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("shape", [(8, 7), (6, 5, 4)])
def test_planted_clusters_are_found(shape):
    for seed in range(20):
        data = make_tensor_clusters(60, shape, 3, spread=0.2, random_state=seed)
        model = DRCC(3, max_iter=50, random_state=seed).fit(data.X)
        assert clustering_accuracy(data.labels, model.labels_) > 0.95


def test_fitted_attributes_belong_together(seed):
    X = make_tensor_clusters(40, (6, 5), 3, random_state=seed).X
    model = DRCC(3, n_feature_clusters=4, random_state=0).fit(X)
    F = model.feature_clusters_.reshape(4, -1)
    np.testing.assert_allclose(model.core_ @ F, model.components_.reshape(3, -1))
    np.testing.assert_array_equal(model.feature_labels_, np.argmax(model.feature_clusters_, axis=0))
    error = np.linalg.norm(X.reshape(40, -1) - model.memberships_ @ model.core_ @ F)
    np.testing.assert_allclose(
        error / np.linalg.norm(X), model.history_[-1].relative_error, rtol=1e-8
    )
    np.testing.assert_array_equal(model.labels_, np.argmax(model.memberships_, axis=1))
    norms = np.linalg.norm(X.reshape(40, -1), axis=1)
    np.testing.assert_allclose(model.data_scale_, np.sqrt(np.mean(norms**2)))


def test_unit_of_the_data_does_not_matter():
    X = make_tensor_clusters(40, (6, 5), 3, random_state=0).X
    plain = DRCC(3, random_state=0).fit(X)
    scaled = DRCC(3, random_state=0).fit(1024.0 * X)
    np.testing.assert_array_equal(plain.labels_, scaled.labels_)
    np.testing.assert_allclose(plain.cost_, scaled.cost_)


def test_awkward_data_give_finite_results(edge):
    X, n_clusters = edge
    model = DRCC(n_clusters, random_state=0).fit(X)
    for value in (model.memberships_, model.core_, model.feature_clusters_, model.cost_):
        assert np.all(np.isfinite(value))
    assert np.all(np.isfinite([step.cost for step in model.history_]))
    np.testing.assert_array_equal(np.unique(model.labels_), np.arange(n_clusters))


def test_stop_reasons():
    X = make_tensor_clusters(40, (6, 5), 3, random_state=0).X
    assert DRCC(3, tol=1e-2, random_state=0).fit(X).stop_reason_ is StopReason.TOLERANCE
    short = DRCC(3, max_iter=2, tol=0.0, random_state=0).fit(X)
    assert short.stop_reason_ is StopReason.MAX_ITER
    assert (short.n_iter_, len(short.history_)) == (2, 3)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("n_feature_clusters", 0, "an integer >= 1"),
        ("n_neighbors", 2.5, "an integer >= 1"),
        ("sample_penalty", -1.0, "a number >= 0"),
        ("feature_penalty", "much", "a number >= 0"),
        ("assign_labels", "vote", "one of 'kmeans', 'argmax'"),
    ],
)
def test_wrong_parameters_are_named(name, value, rule):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of DRCC must be {rule}"):
        DRCC(2, **{name: value}).fit(np.ones((4, 3)))


def test_faces(data_home):
    # Ten persons of ORL: the paper's table has accuracies from 0.56 to 0.73.
    with np.load(data_home / "orl.npz") as data:
        chosen = data["labels"] <= 10
        X, y = data["images"][chosen], data["labels"][chosen]
    model = DRCC(10, random_state=0).fit(X)
    costs = np.array([step.cost for step in model.history_])
    assert np.all(np.diff(costs) <= 1e-12 * costs[0])
    assert clustering_accuracy(y, model.labels_) > 0.5


def test_grid_of_the_authors():
    grid = penalty_grid()
    assert len({tuple(settings.values()) for settings in grid}) == 50
    for settings in grid:
        assert settings["sample_penalty"] == settings["feature_penalty"]
        DRCC(2, max_iter=1, **settings).fit(np.eye(6))
