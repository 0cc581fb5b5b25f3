"""Tests of elastic net subspace clustering."""

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet
from sklearn.metrics.pairwise import euclidean_distances

from tuckermix.baselines import EnSC
from tuckermix.baselines.ensc import NET, elastic_net


def unit(seed, size=40, width=15):
    Z = np.random.default_rng(seed).standard_normal((size, width)) + 0.3
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


def weight(cross, gamma, tau):
    return gamma * tau / np.abs(cross).max()


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.9])
def test_coefficients_are_those_of_scikit_learn(seed, tau):
    Z, new = unit(seed), unit(seed + 50, 3)
    for x in new:
        gamma = weight(Z @ x, 20.0, tau)
        ours = elastic_net(Z, Z @ Z.T, x, gamma=gamma, tau=tau)
        settings = {"fit_intercept": False, "tol": 1e-14, "max_iter": 1_000_000}
        alpha = 1.0 / (gamma * Z.shape[1])
        net = ElasticNet(alpha, l1_ratio=tau, **settings)
        np.testing.assert_allclose(ours, net.fit(Z.T, x).coef_, atol=1e-8)


@pytest.mark.parametrize("gamma", [5.0, 50.0, 200.0])
def test_optimality_conditions_hold_beyond_the_working_set(seed, gamma):
    """With more atoms than the working set: subgradients within their bounds, to 1e-8."""
    Z = unit(seed, size=3 * NET.working_set, width=60)
    G, tau = Z @ Z.T, 0.9
    for i in range(0, len(Z), 40):
        cross = G[i].copy()
        cross[i] = 0.0
        scale = weight(cross, gamma, tau)
        c = elastic_net(Z, G, Z[i], gamma=scale, tau=tau, exclude=i)
        pull = scale * (cross - G @ c) - (1.0 - tau) * c
        used, others = np.flatnonzero(c), np.setdiff1d(np.flatnonzero(c == 0), [i])
        np.testing.assert_allclose(pull[used], tau * np.sign(c[used]), atol=1e-8)
        assert np.abs(pull[others]).max() <= tau * (1 + 1e-8)
        assert c[i] == 0


def test_below_one_all_coefficients_are_zero():
    Z = unit(0)
    cross = Z @ Z[0]
    cross[0] = 0.0
    for gamma, expected in ((0.999, False), (1.001, True)):
        scale = weight(cross, gamma, 0.9)
        c = elastic_net(Z, Z @ Z.T, Z[0], gamma=scale, tau=0.9, exclude=0)
        assert c.any() == expected


def test_equal_atoms_share_their_coefficient():
    Z = np.repeat(unit(0, 6, 5), 2, axis=0)
    x = unit(9, 1, 5)[0]
    c = elastic_net(Z, Z @ Z.T, x, gamma=weight(Z @ x, 50.0, 0.9), tau=0.9)
    np.testing.assert_allclose(c[::2], c[1::2], atol=1e-10)


@pytest.mark.parametrize("affinity", ["symmetrized", "nearest_neighbors"])
def test_affinities(seed, affinity):
    Z = unit(seed)
    model = EnSC(3, gamma=50.0, affinity=affinity, random_state=0).fit(Z)
    G = Z @ Z.T
    sizes = np.abs(G - np.diag(np.diag(G)))
    C = np.zeros_like(G)
    for i in range(len(Z)):
        C[i] = elastic_net(Z, G, Z[i], gamma=50 * 0.9 / sizes[i].max(), tau=0.9, exclude=i)
    C /= np.linalg.norm(C, axis=1, keepdims=True)
    expected = np.abs(C)
    if affinity == "nearest_neighbors":
        nearest = np.argsort(euclidean_distances(C) + 9 * np.eye(len(C)), axis=1)[:, :3]
        expected = np.zeros_like(G)
        np.put_along_axis(expected, nearest, 1.0, axis=1)
    np.testing.assert_allclose(model.affinity_matrix_, 0.5 * (expected + expected.T), atol=1e-8)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"gamma": 0.0}, "'gamma' parameter of EnSC must be a number > 0. Got 0.0"),
        ({"tau": 0.0}, "'tau' parameter of EnSC must be a number > 0. Got 0.0"),
        ({"tau": 1.0}, "'tau' parameter of EnSC must be a share, below 1. Got 1.0"),
        ({"affinity": "rbf"}, "must be one of 'nearest_neighbors', 'symmetrized'. Got 'rbf'"),
    ],
)
def test_parameters_are_checked(settings, text):
    with pytest.raises(ValueError, match=text):
        EnSC(2, **settings).fit(unit(0))
