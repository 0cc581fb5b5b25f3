"""Tests of PCA-B, the Tucker model with memberships that are nonnegative only."""

import numpy as np
import pytest
import scipy.optimize
from sklearn.exceptions import ConvergenceWarning

from tuckermix import decompose
from tuckermix._records import StopReason
from tuckermix.baselines.tucker import PCAB, solve_nonnegative_tucker, start_tucker
from tuckermix.datasets import make_tensor_clusters
from tuckermix.decomposition.exact import closed_form
from tuckermix.metrics import clustering_accuracy
from tuckermix.numerics.tensor import multi_mode_dot, tucker_to_tensor


def _noise(seed, shape=(7, 6), n_samples=50):
    """Return data whose leading directions change sign, where nonnegativity costs something."""
    return np.random.default_rng(seed).standard_normal((n_samples, *shape))


def _solve(X, ranks, n_components, seed, **options):
    start = start_tucker(X, ranks, "PCAB")
    U = np.random.default_rng(seed).random((len(X), n_components))
    energies = np.sum(X.reshape(len(X), -1) ** 2, axis=1)
    options = {"max_iter": 100, "tol": 1e-9} | options
    return solve_nonnegative_tucker(start.source, start.factors, U, energies, **options)


@pytest.mark.parametrize("shape", [(12,), (7, 6), (5, 4, 3)])
def test_cost_never_rises_and_constraints_hold(seed, shape):
    X = _noise(seed, shape)
    run = _solve(X, 3, 4, seed)
    costs = np.array([step.cost for step in run.history])
    assert np.all(np.diff(costs) <= 1e-12 * costs[0])
    assert costs[-1] < costs[0]
    assert (run.memberships >= 0).all()
    for factor in run.fitted["factors_"]:
        np.testing.assert_allclose(factor.T @ factor, np.eye(3), atol=1e-12)
    rebuilt = tucker_to_tensor(run.fitted["core_"], run.fitted["factors_"], run.memberships)
    np.testing.assert_allclose(run.cost, 0.5 * np.sum((X - rebuilt) ** 2), rtol=1e-10)


def test_memberships_are_those_of_scipy(seed):
    X = _noise(seed)
    model = PCAB(4, ranks=3, tol=1e-3, random_state=seed).fit(X)
    design = model.components_.reshape(4, -1).T
    expected = np.stack([scipy.optimize.nnls(design, x.ravel())[0] for x in X])
    np.testing.assert_allclose(model.memberships_, expected, atol=1e-8)
    np.testing.assert_allclose(model.transform(X), model.memberships_, atol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(design, axis=0), 1.0)
    rebuilt = model.inverse_transform(model.memberships_)
    np.testing.assert_allclose(model.cost_, 0.5 * np.sum((X - rebuilt) ** 2), rtol=1e-8)


def test_core_and_factors_are_optimal_at_the_end(seed):
    X = _noise(seed)
    run = _solve(X, (3, 2), 4, seed, max_iter=500, tol=1e-12)
    U, factors = run.memberships, run.fitted["factors_"]
    B = multi_mode_dot(X, factors, transpose=True).reshape(len(X), -1)
    best = np.linalg.pinv(U) @ B
    cost = 0.5 * (np.sum(X**2) - np.sum((U @ best) ** 2))
    assert run.cost - cost < 1e-6 * cost
    Q = np.linalg.qr(U)[0]
    partial = np.einsum("il,iab,bc->alc", Q, X, factors[1]).reshape(7, -1)
    left = np.linalg.svd(partial)[0][:, :3]
    np.testing.assert_allclose(left @ left.T, factors[0] @ factors[0].T, atol=1e-2)


def test_positive_data_reach_the_unconstrained_optimum():
    # A positive leading singular vector: nonnegativity costs nothing, and the truncated singular
    # value decomposition is the optimum.
    X = np.random.default_rng(0).random((40, 12)) + 0.5
    run = _solve(X, 12, 3, 0, max_iter=3000, tol=1e-12)
    values = np.linalg.svd(X, compute_uv=False)
    np.testing.assert_allclose(run.cost, 0.5 * np.sum(values[3:] ** 2), rtol=1e-3)


@pytest.mark.parametrize("shape", [(7, 6), (5, 4, 3)])
def test_row_sums_added_back_never_beat_the_model(shape):
    for seed in range(10):
        data = make_tensor_clusters(40, shape, 3, positive=True, random_state=seed)
        model = PCAB(3, ranks=3, random_state=seed).fit(data.X)
        sums = model.memberships_.sum(axis=1, keepdims=True)
        U = model.memberships_ / np.where(sums > 0, sums, 1.0)
        U[sums[:, 0] == 0] = 1 / 3
        B = multi_mode_dot(data.X, model.factors_, transpose=True).reshape(40, -1)
        explained = np.sum((U @ (np.linalg.pinv(U) @ B)) ** 2)
        cost = 0.5 * (np.sum(data.X**2) - explained)
        # For the same factors the optimum of the model is known ...
        assert explained <= closed_form(B.copy(), 2).explained * (1 + 1e-12)
        # ... and the fitted model, with factors of its own, is no worse.
        assert decompose(data.X, 3, 3).cost <= cost * (1 + 1e-9)


def test_dead_components_are_revived(seed):
    X = _noise(seed)
    start = start_tucker(X, 3, "PCAB")
    U = np.random.default_rng(seed).random((50, 4))
    U[:, 2] = 0.0
    energies = np.sum(X.reshape(50, -1) ** 2, axis=1)
    run = solve_nonnegative_tucker(start.source, start.factors, U, energies, max_iter=50, tol=0.0)
    assert run.memberships.any(axis=0).all()
    costs = np.array([step.cost for step in run.history])
    assert np.all(np.diff(costs) <= 1e-12 * costs[0])


@pytest.mark.parametrize("shape", [(8, 7), (6, 5, 4)])
def test_planted_clusters_are_found(shape):
    for seed in range(20):
        data = make_tensor_clusters(60, shape, 3, spread=0.2, random_state=seed)
        for ranks in (3, None):
            model = PCAB(3, ranks=ranks, random_state=seed).fit(data.X)
            assert clustering_accuracy(data.labels, model.labels_) > 0.95
        np.testing.assert_array_equal(model.predict(data.X), model.labels_)


def test_awkward_data_give_finite_results(edge):
    X, n_clusters = edge
    model = PCAB(n_clusters, random_state=0).fit(X)
    arrays = (model.memberships_, model.core_, model.components_, model.cost_, *model.factors_)
    assert all(np.all(np.isfinite(value)) for value in arrays)
    assert np.all(np.isfinite([step.cost for step in model.history_]))
    np.testing.assert_array_equal(np.unique(model.labels_), np.arange(n_clusters))


def test_stop_reasons():
    X = _noise(0)
    assert PCAB(3, ranks=2, tol=1e-2, random_state=0).fit(X).stop_reason_ is StopReason.TOLERANCE
    with pytest.warns(ConvergenceWarning, match="PCAB stopped after max_iter=2 with decrease"):
        model = PCAB(3, ranks=2, max_iter=2, tol=1e-9, random_state=0).fit(X)
    assert model.stop_reason_ is StopReason.MAX_ITER
    assert (model.n_iter_, len(model.history_)) == (2, 3)


def test_ranks_must_fit_the_samples():
    with pytest.raises(ValueError, match="The 'ranks' parameter of PCAB must be"):
        PCAB(2, ranks=(2, 2, 2)).fit(_noise(0))


def test_faces(data_home):
    # Ten persons of ORL: the paper's table has accuracies from 0.56 to 0.73.
    with np.load(data_home / "orl.npz") as data:
        chosen = data["labels"] <= 10
        X, y = data["images"][chosen], data["labels"][chosen]
    model = PCAB(10, ranks=12, random_state=0).fit(X)
    costs = np.array([step.cost for step in model.history_])
    assert np.all(np.diff(costs) <= 1e-12 * costs[0])
    assert clustering_accuracy(y, model.labels_) > 0.5
