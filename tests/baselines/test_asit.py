"""Tests of adaptive subspace iteration on tensors."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from tuckermix._records import StopReason
from tuckermix.baselines.tucker import ASIT
from tuckermix.datasets import make_tensor_clusters
from tuckermix.metrics import clustering_accuracy
from tuckermix.numerics.tensor import multi_mode_dot


def _hard(seed, shape=(7, 6)):
    """Return data without clear clusters, on which the rounds have work to do."""
    return np.random.default_rng(seed).standard_normal((80, *shape)) + 0.5


@pytest.mark.parametrize("shape", [(12,), (7, 6), (5, 4, 3)])
def test_cost_never_rises_and_constraints_hold(seed, shape):
    X = _hard(seed, shape)
    model = ASIT(6, ranks=2, n_init=1, random_state=seed).fit(X)
    costs = np.array([step.cost for step in model.history_])
    assert np.all(np.diff(costs) <= 1e-12 * costs[0])
    assert model.n_iter_ >= 2
    for factor in model.factors_:
        np.testing.assert_allclose(factor.T @ factor, np.eye(2), atol=1e-12)
    np.testing.assert_array_equal(model.memberships_, np.eye(6)[model.labels_])


def test_end_is_optimal_in_each_block(seed):
    X = _hard(seed)
    model = ASIT(4, ranks=(3, 2), random_state=seed, tol=1e-13).fit(X)
    assert model.stop_reason_ is StopReason.STABLE
    B = multi_mode_dot(X, model.factors_, transpose=True)
    means = np.stack([B[model.labels_ == c].mean(axis=0) for c in range(4)])
    np.testing.assert_allclose(model.core_, means, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    # Each factor spans the leading singular vectors of the weighted cluster means.
    counts = np.bincount(model.labels_)
    M = np.stack([X[model.labels_ == c].mean(axis=0) for c in range(4)])
    M *= np.sqrt(counts)[:, None, None]
    left = np.linalg.svd(np.concatenate(list(M @ model.factors_[1]), axis=1))[0][:, :3]
    projector = model.factors_[0] @ model.factors_[0].T
    np.testing.assert_allclose(left @ left.T, projector, atol=1e-4)
    rebuilt = model.centroids_[model.labels_]
    np.testing.assert_allclose(model.cost_, 0.5 * np.sum((X - rebuilt) ** 2), rtol=1e-10)


def test_with_full_ranks_it_is_kmeans():
    X = _hard(0, (4, 3))
    ours = ASIT(5, ranks=(4, 3), n_init=30, random_state=0).fit(X)
    theirs = KMeans(5, n_init=30, random_state=0).fit(X.reshape(80, -1))
    np.testing.assert_allclose(2 * ours.cost_, theirs.inertia_, rtol=0.01)


def test_more_starts_are_never_worse():
    X = _hard(1)
    costs = [ASIT(6, ranks=2, n_init=n, random_state=3).fit(X).cost_ for n in (1, 3, 10)]
    assert costs[0] >= costs[1] >= costs[2]


@pytest.mark.parametrize("shape", [(8, 7), (6, 5, 4)])
def test_planted_clusters_are_found(shape):
    for seed in range(20):
        data = make_tensor_clusters(60, shape, 3, spread=0.2, random_state=seed)
        for ranks in (3, None):
            model = ASIT(3, ranks=ranks, random_state=seed).fit(data.X)
            assert clustering_accuracy(data.labels, model.labels_) > 0.95
    new = make_tensor_clusters(60, shape, 3, spread=0.2, random_state=19).X[:7]
    np.testing.assert_array_equal(model.predict(new), model.labels_[:7])


def test_awkward_data_give_finite_results(edge):
    X, n_clusters = edge
    model = ASIT(n_clusters, random_state=0).fit(X)
    for value in (model.core_, model.centroids_, model.cost_, *model.factors_):
        assert np.all(np.isfinite(value))
    np.testing.assert_array_equal(np.unique(model.labels_), np.arange(n_clusters))
    assert np.all(model.predict(X) < n_clusters)


def test_max_iter_is_reported():
    with pytest.warns(UserWarning, match="ASIT stopped after max_iter=1"):
        model = ASIT(6, ranks=2, n_init=1, max_iter=1, tol=1e-12, random_state=0).fit(_hard(0))
    assert model.stop_reason_ is StopReason.MAX_ITER


def test_ranks_must_fit_the_samples():
    with pytest.raises(ValueError, match="rank 9 of feature mode 0 is larger than 7"):
        ASIT(2, ranks=(9, 2)).fit(_hard(0))


def test_faces(data_home):
    # Ten persons of ORL: the paper's table has accuracies from 0.56 to 0.73.
    with np.load(data_home / "orl.npz") as data:
        chosen = data["labels"] <= 10
        X, y = data["images"][chosen], data["labels"][chosen]
    model = ASIT(10, ranks=12, random_state=0).fit(X)
    costs = np.array([step.cost for step in model.history_])
    assert np.all(np.diff(costs) <= 1e-12 * costs[0])
    assert clustering_accuracy(y, model.labels_) > 0.5
