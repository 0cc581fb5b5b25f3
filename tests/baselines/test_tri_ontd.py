"""Tests of the orthogonal nonnegative tensor decomposition."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from tuckermix._records import StopReason
from tuckermix.baselines.tri_ontd import (
    TriONTD,
    factorize_orthogonal,
    keep_largest,
    refine_exactly,
)
from tuckermix.datasets import make_tensor_clusters
from tuckermix.metrics import clustering_accuracy
from tuckermix.numerics.tensor import multi_mode_dot, tucker_to_tensor


def test_blobs_of_the_scikit_learn_check():
    X, y = make_blobs(n_samples=50, random_state=1)
    for seed in range(5):
        model = TriONTD(3, random_state=seed)
        labels = model.fit_predict(X - X.min(axis=0))
        assert adjusted_rand_score(y, labels) > 0.4
        np.testing.assert_array_equal(np.unique(labels), np.arange(3))
        np.testing.assert_array_equal(labels, model.labels_)


def _blocks(seed, shape, n_samples=60):
    """Plant groups in all modes: the model of the method, with a little noise."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n_samples) % 3)
    core = rng.random((3,) + (3,) * len(shape)) ** 3
    weights = rng.uniform(0.7, 1.3, n_samples).reshape(-1, *[1] * len(shape))
    groups = [np.eye(3)[rng.permutation(np.arange(size) % 3)] for size in shape]
    factors = [g * rng.uniform(0.9, 1.1, (len(g), 1)) for g in groups]
    X = multi_mode_dot(core[labels] * weights, factors)
    return X + 0.02 * rng.random(X.shape), labels, groups


def test_constraints_hold_exactly(seed):
    X = make_tensor_clusters(40, (6, 5), 3, positive=True, random_state=seed).X
    model = TriONTD(3, ranks=2, random_state=seed).fit(X)
    for factor in (model.memberships_, *model.factors_):
        assert (factor >= 0).all()
        assert np.max(np.count_nonzero(factor, axis=1)) == 1
        np.testing.assert_allclose(factor.T @ factor, np.eye(factor.shape[1]), atol=1e-12)
    assert (model.core_ >= 0).all()
    rebuilt = tucker_to_tensor(model.core_, model.factors_, model.memberships_)
    np.testing.assert_allclose(model.cost_, 0.5 * np.sum((X - rebuilt) ** 2), rtol=1e-10)
    np.testing.assert_allclose(model.cost_, model.history_[-1].cost)
    np.testing.assert_array_equal(model.labels_, np.argmax(model.memberships_, axis=1))
    iterations = [step.iteration for step in model.history_]
    assert iterations == list(range(len(iterations)))


def test_last_phase_improves_on_rounding_alone(seed):
    X, _, _ = _blocks(seed, (8, 7))
    model = TriONTD(3, ranks=3, random_state=seed).fit(X)
    feasible = [step.cost for step in model.history_ if step.orthogonality == 0]
    assert model.cost_ <= feasible[0]
    assert model.history_[-1].relative_error < 0.1


@pytest.mark.parametrize("shape", [(8, 7), (6, 5, 4)])
def test_planted_groups_are_found_in_all_modes(shape):
    for seed in range(4):
        X, labels, groups = _blocks(seed, shape)
        model = TriONTD(3, ranks=3, max_iter=100, random_state=seed).fit(X)
        assert clustering_accuracy(labels, model.labels_) == 1.0
        for factor, group in zip(model.factors_, groups, strict=True):
            assert clustering_accuracy(np.argmax(group, 1), np.argmax(factor, 1)) > 0.7


@pytest.mark.parametrize("shape", [(8, 7), (6, 5, 4)])
def test_planted_clusters_are_found_with_default_ranks(shape):
    for seed in range(4):
        data = make_tensor_clusters(60, shape, 3, spread=0.2, positive=True, random_state=seed)
        model = TriONTD(3, max_iter=50, random_state=seed).fit(data.X)
        assert clustering_accuracy(data.labels, model.labels_) > 0.95


@pytest.mark.filterwarnings("ignore:TriONTD failed")
def test_awkward_data_give_finite_results(edges):
    for X, n_clusters in edges:
        model = TriONTD(n_clusters, random_state=0).fit(X)
        arrays = (model.memberships_, model.core_, model.components_, model.cost_, *model.factors_)
        assert all(np.all(np.isfinite(value)) for value in arrays)
        assert np.all(np.isfinite([step.cost for step in model.history_]))
        np.testing.assert_array_equal(np.unique(model.labels_), np.arange(n_clusters))
        assert (model.stop_reason_ is StopReason.FAILED) == bool(model.failure_)


def test_failure_is_reported():
    X = np.ones((10, 4, 3))
    with pytest.warns(ConvergenceWarning, match="TriONTD failed: only 1 of 3 columns"):
        model = TriONTD(3, random_state=0).fit(X)
    assert model.stop_reason_ is StopReason.FAILED
    assert not model.stop_reason_.converged
    assert model.failure_ == "only 1 of 3 columns of the indicator keep a sample."


def test_groups_without_rows_are_left_out():
    X, _, _ = _blocks(0, (8, 7))
    X[:, 2:] = 0.0  # two rows are left for six groups
    model = TriONTD(3, ranks=(6, 3), random_state=0).fit(X)
    assert model.ranks_[0] <= 2
    assert model.core_.shape == (3, *model.ranks_)
    assert [factor.shape[1] for factor in model.factors_] == list(model.ranks_)


def test_negative_data_are_refused():
    with pytest.raises(ValueError, match="Negative values in data passed to TriONTD"):
        TriONTD(2).fit(-np.ones((4, 3)))


def test_faces(data_home):
    # Ten persons of ORL: the paper's table has accuracies from 0.56 to 0.73.
    with np.load(data_home / "orl.npz") as data:
        chosen = data["labels"] <= 10
        X, y = data["images"][chosen], data["labels"][chosen]
    model = TriONTD(10, ranks=12, random_state=0).fit(X)
    costs = np.array([step.cost for step in model.history_ if step.orthogonality == 0])
    assert np.all(np.diff(costs) <= 1e-12 * costs[0])
    assert max(step.lagrangian_change for step in model.history_) <= 1e-14
    assert clustering_accuracy(y, model.labels_) > 0.5


def test_reaching_the_limit_in_either_phase_is_said():
    X = make_tensor_clusters(40, (6, 5), 3, positive=True, random_state=0).X
    assert (
        TriONTD(3, max_iter=2, tol=0.0, random_state=0).fit(X).stop_reason_ is StopReason.MAX_ITER
    )
    first = TriONTD(3, max_iter=5, tol=1e-12, random_state=0).fit(X)
    assert first.stop_reason_ is StopReason.MAX_ITER
    both = TriONTD(3, max_iter=2000, tol=1e-3, random_state=0).fit(X)
    assert both.stop_reason_ is StopReason.TOLERANCE


def _positive_factors(seed, shape, ranks):
    rng = np.random.default_rng(seed)
    return [rng.random(size) + 0.1 for size in zip(shape, ranks, strict=True)]


@pytest.mark.parametrize("shape", [(9,), (7, 6), (5, 4, 3)])
def test_rules_never_raise_their_lagrangian(seed, shape):
    X = np.random.default_rng(seed).random((30, *shape))
    start = _positive_factors(seed, X.shape, (3,) + (2,) * len(shape))
    factors, history, reason = factorize_orthogonal(X, start, max_iter=100, tol=0.0)
    assert reason is StopReason.MAX_ITER
    assert max(step.lagrangian_change for step in history) <= 1e-14
    assert min(step.lagrangian_change for step in history) < -1e-4
    assert all((factor >= 0).all() for factor in factors)
    assert history[-1].orthogonality < history[0].orthogonality
    assert history[-1].cost < history[0].cost


def test_lagrangian_is_the_error_with_multipliers(seed):
    # Independent of the code: rebuild the model, and differentiate nothing.
    rng = np.random.default_rng(seed)
    X, S = rng.random((8, 6)), rng.random((3, 2))
    W, U = rng.random((8, 3)), rng.random((6, 2))
    N = X @ (S @ U.T).T
    product = W.T @ N
    symmetric = (product + product.T) / 2
    multiplier = symmetric - S @ U.T @ U @ S.T
    new = W * np.sqrt(N / (W @ symmetric))

    def lagrangian(Z):
        error = np.linalg.norm(X - Z @ S @ U.T) ** 2
        return error + np.trace(multiplier @ (Z.T @ Z - np.eye(3)))

    assert lagrangian(new) < lagrangian(W)
    for scale in (0.9, 1.1):
        # The step minimises an upper bound, so moving on in the same ratio is worse for the bound.
        assert _bound(scale * new, W, N, symmetric) > _bound(new, W, N, symmetric)


def _bound(Z, W, N, symmetric):
    """Evaluate the auxiliary function of the multiplicative rule."""
    return np.sum((W @ symmetric) * Z**2 / W) - 2 * np.sum(N * W * (1 + np.log(Z / W)))


@pytest.mark.parametrize("shape", [(9,), (7, 6), (5, 4, 3)])
def test_exact_phase_never_raises_the_error(seed, shape):
    X = np.random.default_rng(seed).random((30, *shape))
    start = [keep_largest(f) for f in _positive_factors(seed, X.shape, (3,) + (2,) * len(shape))]
    factors, core, history, reason = refine_exactly(X, start, max_iter=100, tol=0.0)
    costs = np.array([step.cost for step in history])
    assert np.all(np.diff(costs) <= 1e-12 * costs[0])
    assert costs[-1] < costs[0]
    assert reason is StopReason.TOLERANCE
    rebuilt = tucker_to_tensor(core, factors[1:], factors[0])
    np.testing.assert_allclose(costs[-1], 0.5 * np.sum((X - rebuilt) ** 2), rtol=1e-10)
