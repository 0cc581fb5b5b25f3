"""Tests of dual regularised co-clustering."""

import numpy as np
import pytest
from sklearn.neighbors import kneighbors_graph

from tuckermix._records import StopReason
from tuckermix.baselines.drcc import DRCC, Side, cocluster, neighbor_graph, penalty_grid
from tuckermix.datasets import make_tensor_clusters
from tuckermix.metrics import clustering_accuracy


@pytest.mark.parametrize("shape", [(8, 7), (6, 5, 4)])
def test_planted_clusters_are_found(shape):
    for seed in range(4):
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


def test_awkward_data_give_finite_results(edges):
    for X, n_clusters in edges:
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


def _problem(seed, n=30, d=18):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) @ rng.standard_normal((3, d)) + rng.standard_normal((n, d))
    return X, rng.random((n, 3)) + 0.1, rng.random((d, 4)) + 0.1


def _run(seed, weight, max_iter=100, tol=0.0):
    X, G, F = _problem(seed)
    graphs = neighbor_graph(X, 4), neighbor_graph(X.T, 4)
    sides = Side(G, graphs[0], weight), Side(F, graphs[1], 2 * weight)
    run = cocluster(X, *sides, max_iter=max_iter, tol=tol)
    return X, graphs, run


def _objective(X, graphs, weight, G, S, F):
    laplacians = [np.diag(g.degrees) - g.adjacency.toarray() for g in graphs]
    fit = np.linalg.norm(X - G @ S @ F.T) ** 2
    return (
        fit
        + weight * np.trace(G.T @ laplacians[0] @ G)
        + 2 * weight * np.trace(F.T @ laplacians[1] @ F)
    )


@pytest.mark.parametrize("weight", [0.0, 1.0, 30.0, 1000.0])
def test_objective_never_rises_and_constraints_hold(seed, weight):
    X, graphs, run = _run(seed, weight)
    G, S, F = run.memberships, run.fitted["core_"], run.fitted["feature_clusters_"]
    costs = np.array([step.cost for step in run.history])
    assert np.all(np.diff(costs) <= 1e-12 * costs[0])
    assert costs[-1] < 0.9 * costs[0]
    assert (G >= 0).all()
    assert (F >= 0).all()
    np.testing.assert_allclose(np.linalg.norm(G, axis=0), 1.0)
    np.testing.assert_allclose(np.linalg.norm(F, axis=0), 1.0)
    np.testing.assert_allclose(run.cost, _objective(X, graphs, weight, G, S, F), rtol=1e-10)


def test_steps_that_raise_the_objective_are_halved():
    # A heavy penalty on a graph with one hub makes the full step overshoot.
    raised = 0
    for seed in range(4):
        X, G, F = _problem(seed, n=12, d=6)
        left, right = Side(G, neighbor_graph(X, 1), 1e4), Side(F, neighbor_graph(X.T, 1), 1e4)
        run = cocluster(X, left, right, max_iter=50, tol=0.0)
        costs = np.array([step.cost for step in run.history])
        raised += int(np.sum(np.diff(costs) > 1e-12 * costs[0]))
    assert raised == 0


def test_step_is_that_of_the_authors(seed):
    """Written out with dense matrices, before the columns are divided by their norms."""
    X, G, F = _problem(seed, n=12, d=6)
    graph, penalty = neighbor_graph(X, 3), 3.0
    S = np.random.default_rng(seed).standard_normal((3, 4))
    W, D = graph.adjacency.toarray(), np.diag(graph.degrees)
    side = Side(G, graph, penalty)
    G = G / np.linalg.norm(G, axis=0)
    A, B = X @ F @ S.T, S @ F.T @ F @ S.T
    A_plus, A_minus, B_plus, B_minus = (np.maximum(M, 0) for M in (A, -A, B, -B))
    up = penalty * W @ G + A_plus + G @ B_minus
    expected = G * np.sqrt(up / (penalty * D @ G + A_minus + G @ B_plus))
    norms = side.improve(A, B)
    np.testing.assert_allclose(side.Z * norms, expected, rtol=1e-12)


def test_core_is_the_least_squares_solution(seed):
    X, _, run = _run(seed, 1.0)
    G, S, F = run.memberships, run.fitted["core_"], run.fitted["feature_clusters_"]
    np.testing.assert_allclose(S, np.linalg.pinv(G) @ X @ np.linalg.pinv(F).T, atol=1e-8)


def test_penalty_makes_the_clusters_smooth():
    _, graphs, loose = _run(1, 0.0)
    _, _, tight = _run(1, 1000.0)
    smooth = graphs[0].smoothness
    assert np.sum(smooth(tight.memberships)) < 0.2 * np.sum(smooth(loose.memberships))


def test_graph_agrees_with_scikit_learn(seed):
    X = np.random.default_rng(seed).standard_normal((40, 5))
    theirs = kneighbors_graph(X, 5).toarray()
    graph = neighbor_graph(X, 5)
    np.testing.assert_array_equal(graph.adjacency.toarray(), np.maximum(theirs, theirs.T))
    np.testing.assert_array_equal(graph.degrees, graph.adjacency.toarray().sum(axis=1))


def test_graph_of_a_single_point_is_empty():
    assert neighbor_graph(np.ones((1, 3)), 5).adjacency.nnz == 0
