"""Methods that write each sample as a combination of the others."""

import functools

import numpy as np
import pytest
from scipy.linalg import eigh, lstsq
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import PCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import ElasticNet, Ridge, orthogonal_mp
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from tests.cases import each

from tuckermix._array_api import get_namespace, to_numpy
from tuckermix._records import StopReason
from tuckermix.baselines import ADSSC, LSR, SSCOMP, TAGCSC, AutoSC, EnSC
from tuckermix.baselines.self_expression import (
    NET,
    doubly_stochastic,
    elastic_net,
    graph_convolution,
    keep_largest_in_columns,
    matching_pursuit,
    normalized_eigenvectors,
    relative_eigengap,
    ridge_coefficients,
    solve_ridge,
    symmetrized,
)
from tuckermix.metrics import clustering_accuracy

CLASSES = (LSR, AutoSC, ADSSC, EnSC, SSCOMP, TAGCSC)


def subspaces(seed, n_clusters=4, per_cluster=20, dimension=3, shape=(6, 5), noise=0.01):
    """Samples near linear subspaces through the origin, of any length."""
    rng = np.random.default_rng(seed)
    bases = rng.standard_normal((n_clusters, dimension, *shape))
    labels = rng.permutation(np.repeat(np.arange(n_clusters), per_cluster))
    weights = rng.standard_normal((len(labels), dimension))
    X = np.einsum("nd,ndij->nij", weights, bases[labels])
    return X + noise * rng.standard_normal(X.shape), labels


@pytest.fixture(params=CLASSES, ids=lambda cls: cls.__name__)
def make(request):
    """Give a class; for EnSC the affinity without neighbours, of which equal ones are many."""
    if request.param is EnSC:
        return functools.partial(EnSC, affinity="symmetrized")
    return request.param


def test_samples_on_subspaces_are_grouped_by_subspace(make, seed):
    """K-means cannot do that: the subspaces all pass through the origin."""
    X, labels = subspaces(seed)
    model = make(4, random_state=seed)
    if make is LSR:
        model.set_params(penalty=0.1)
    assert clustering_accuracy(labels, model.fit_predict(X)) > 0.95
    assert clustering_accuracy(labels, model.predict(X)) > 0.95


def test_new_samples_join_the_subspace_they_lie_on(make, seed):
    X, labels = subspaces(seed, per_cluster=30)
    model = make(4, random_state=seed).fit(X[:80])
    assert clustering_accuracy(labels[80:], model.predict(X[80:])) > 0.9
    scaled = model.predict(1e3 * X[80:])
    np.testing.assert_array_equal(scaled, model.predict(X[80:]))


def test_affinity_and_memberships(make, seed):
    X, _ = subspaces(seed)
    model = make(4, random_state=seed).fit(X)
    W = model.affinity_matrix_
    np.testing.assert_array_equal(W, W.T)
    assert W.min() >= 0
    shares = np.stack([W[:, model.labels_ == k].sum(axis=1) for k in range(4)], axis=1)
    np.testing.assert_allclose(model.memberships_, shares / W.sum(axis=1, keepdims=True))
    assert model.stop_reason_ is StopReason.TOLERANCE
    assert len(model.history_) == 1
    assert model.history_[0].cost == model.cost_


def test_length_and_order_of_samples_do_not_matter(make):
    X, _ = subspaces(0)
    rng = np.random.default_rng(1)
    base = make(4, random_state=0).fit(X)
    if make is not LSR:  # its principal directions depend on lengths
        lengths = rng.uniform(0.5, 2.0, len(X))[:, None, None]
        assert (
            clustering_accuracy(base.labels_, make(4, random_state=0).fit_predict(lengths * X)) == 1
        )
    order = rng.permutation(len(X))
    moved = make(4, random_state=0).fit(X[order])
    if make is TAGCSC:  # not convex: rounding decides which of several solutions the rounds reach
        assert clustering_accuracy(base.labels_[order], moved.labels_) > 0.95
        return
    np.testing.assert_allclose(
        moved.affinity_matrix_, base.affinity_matrix_[np.ix_(order, order)], atol=1e-7
    )


def test_awkward_data_give_finite_results(make, edges):
    for X, n_clusters in edges:
        model = make(n_clusters, random_state=0).fit(X)
        for value in (model.memberships_, model.affinity_matrix_, model.cost_):
            assert np.all(np.isfinite(value))
        np.testing.assert_allclose(model.memberships_.sum(axis=1), 1.0, rtol=1e-5)
        np.testing.assert_array_equal(np.unique(model.labels_), np.arange(n_clusters))
        assert set(model.predict(X)) <= set(range(n_clusters))


def test_results_follow_the_library_of_the_data(make, xp):
    X, _ = subspaces(0, n_clusters=3, per_cluster=12)
    expected = make(3, random_state=0).fit(X)
    data = xp.asarray(X)
    model = make(3, random_state=0).fit(data)
    assert type(model.affinity_matrix_) is type(model.training_rows_) is type(data)
    np.testing.assert_array_equal(np.asarray(model.labels_), expected.labels_)
    np.testing.assert_array_equal(np.asarray(model.predict(data)), expected.predict(X))


def test_symmetrized():
    C = np.array([[0.0, -2.0], [1.0, 0.0]])
    np.testing.assert_array_equal(symmetrized(C), [[0.0, 1.5], [1.5, 0.0]])


def test_eigenvectors_are_those_of_the_normalised_affinity(seed):
    rng = np.random.default_rng(seed)
    W = symmetrized(rng.random((30, 30)))
    values, vectors, roots = normalized_eigenvectors(W, 4)
    np.testing.assert_allclose(roots, W.sum(axis=0) ** -0.5)
    matrix = np.diag(roots) @ W @ np.diag(roots)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-12)
    np.testing.assert_allclose(values, eigh(matrix, eigvals_only=True)[:-5:-1], atol=1e-12)
    assert values[0] == pytest.approx(1.0)


def test_a_sample_without_affinity_takes_no_leading_eigenvector():
    W = np.zeros((5, 5))
    W[:2, :2] = W[2:4, 2:4] = 1.0
    values, vectors, _ = normalized_eigenvectors(W, 2)
    np.testing.assert_allclose(values, [1, 1], atol=1e-12)
    np.testing.assert_allclose(vectors[4], 0.0, atol=1e-12)


def test_a_blank_sample_costs_no_cluster(make, seed):
    """It has no direction and belongs nowhere; the others are grouped as if it were not there."""
    X, labels = subspaces(seed)
    X[7] = 0.0
    model = make(4, random_state=seed).fit(X)
    rest = np.arange(len(X)) != 7
    assert clustering_accuracy(labels[rest], model.labels_[rest]) > 0.9


def unit(seed, size=25, width=10):
    Z = np.random.default_rng(seed).standard_normal((size, width))
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


@pytest.mark.parametrize("penalty", [0.004, 0.4])
def test_coefficients_are_those_of_a_regression_on_the_others(seed, penalty):
    Z = unit(seed)
    C = ridge_coefficients(Z @ Z.T, penalty, zero_diagonal=True)
    for j in range(len(Z)):
        others = np.delete(np.arange(len(Z)), j)
        ridge = Ridge(alpha=penalty, fit_intercept=False, solver="svd").fit(Z[others].T, Z[j])
        np.testing.assert_allclose(C[others, j], ridge.coef_, atol=1e-10)
        assert C[j, j] == 0


def test_coefficients_without_constraint_solve_the_normal_equations(seed):
    Z, penalty = unit(seed), 0.1
    C = ridge_coefficients(Z @ Z.T, penalty, zero_diagonal=False)
    stacked = np.vstack([Z.T, np.sqrt(penalty) * np.eye(len(Z))])
    wanted = np.vstack([Z.T, np.zeros((len(Z), len(Z)))])
    np.testing.assert_allclose(C, lstsq(stacked, wanted)[0], atol=1e-10)
    np.testing.assert_allclose(solve_ridge(Z @ Z.T, penalty, Z @ Z.T), C.T, atol=1e-10)


def test_principal_directions(seed):
    X = np.random.default_rng(seed).standard_normal((40, 6, 5)) + 3.0
    model = LSR(2, directions_per_cluster=4, random_state=0).fit(X)
    pca = PCA(8, svd_solver="full").fit(X.reshape(40, -1))
    rows = X.reshape(40, -1) @ pca.components_.T
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(
        model.training_rows_ @ model.training_rows_.T, rows @ rows.T, atol=1e-10
    )
    assert model.directions_.shape == (30, 8)
    assert LSR(2, directions_per_cluster=None, random_state=0).fit(X).directions_ is None


def test_affinity_has_columns_scaled_to_one_or_as_they_are(seed):
    Z = unit(seed)
    model = LSR(3, directions_per_cluster=None, random_state=0)
    C = np.abs(ridge_coefficients(Z @ Z.T, 0.004, zero_diagonal=True))
    plain = model.set_params(scale_columns=False).fit(Z).affinity_matrix_
    np.testing.assert_allclose(plain, 0.5 * (C + C.T), atol=1e-10)
    C /= C.max(axis=0)
    scaled = model.set_params(scale_columns=True).fit(Z).affinity_matrix_
    np.testing.assert_allclose(scaled, 0.5 * (C + C.T), atol=1e-10)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"penalty": 0.0}, "'penalty' parameter of LSR must be a number > 0. Got 0.0"),
        ({"directions_per_cluster": 0}, "'directions_per_cluster' parameter of LSR must be an int"),
    ],
)
def test_parameters_are_checked(settings, text):
    with pytest.raises(ValueError, match=text):
        LSR(2, **settings).fit(unit(0))


@pytest.mark.data
def test_ten_persons_as_published(data_home):
    """The authors report 0.74 for the first ten persons of the Extended Yale B faces."""
    from tuckermix.datasets import load

    data = load("yaleb", data_home=data_home)
    first = np.isin(data.labels, np.unique(data.labels)[:10])
    model = LSR(10, random_state=0).fit(data.X[first])
    assert clustering_accuracy(data.labels[first], model.labels_) > 0.7


def blobs(seed, size=36, width=7):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((3, width))[np.arange(size) % 3] + rng.standard_normal((size, width))


def candidates(Z, n_clusters):
    """The authors' grid, by scikit-learn's kernel ridge regression and NumPy's eigenvalues."""
    width = euclidean_distances(Z).mean()
    kernels = {"linear": Z @ Z.T, "gaussian": rbf_kernel(Z, gamma=1 / (2 * width**2))}
    for name, K in kernels.items():
        for penalty in (0.01, 0.1, 1.0):
            ridge = KernelRidge(alpha=penalty, kernel="precomputed").fit(K, K)
            S = np.abs(ridge.dual_coef_)
            S -= np.diag(np.diag(S))
            for count in range(5, 16):
                A = np.zeros_like(S)
                for j in range(len(S)):
                    best = np.argsort(-S[:, j])[:count]
                    A[best, j] = S[best, j] / S[best, j].sum()
                A = (A + A.T) / 2
                walk = np.linalg.eigvals(A / A.sum(axis=1, keepdims=True)).real
                e = 1 - np.sort(walk)[::-1]
                mean = e[:n_clusters].mean()
                yield (e[n_clusters] - mean) / (mean + 1e-6), name, penalty, count, A


def test_the_affinity_of_the_largest_gap_is_chosen(seed):
    X = blobs(seed)
    Z = X / np.linalg.norm(X, axis=1, keepdims=True)
    gap, kernel, penalty, count, A = max(candidates(Z, 3), key=lambda found: found[0])
    model = AutoSC(3, random_state=0).fit(X)
    assert model.gap_ == pytest.approx(gap, rel=1e-8)
    assert (model.kernel_, model.penalty_, model.n_kept_) == (kernel, penalty, count)
    np.testing.assert_allclose(model.affinity_matrix_, A, atol=1e-8)
    assert model.width_ == pytest.approx(euclidean_distances(Z).mean())


def test_gap():
    assert relative_eigengap(np.array([0.0, 0.2, 0.4]), 2) == pytest.approx(0.3 / (0.1 + 1e-6))
    assert relative_eigengap(np.array([0.0, 0.2]), 2) == 0.0


def test_columns_keep_their_largest_entries():
    S = np.array([[0.0, 3.0, 1.0], [1.0, 0.0, 4.0], [3.0, 1.0, 0.0]])
    expected = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(keep_largest_in_columns(S, 1), 0.5 * (expected + expected.T))
    whole = S / S.sum(axis=0)
    np.testing.assert_allclose(keep_largest_in_columns(S, 10), 0.5 * (whole + whole.T))
    assert keep_largest_in_columns(np.zeros((3, 3)), 2).sum() == 0


def unit_sscomp(seed, size=40, width=15):
    Z = np.random.default_rng(seed).standard_normal((size, width))
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


@pytest.mark.parametrize("n_nonzero", [1, 3, 7])
def test_each_sample_is_expressed_as_scikit_learn_does(seed, n_nonzero):
    Z = unit_sscomp(seed)
    G = Z @ Z.T
    C = matching_pursuit(G, G, np.diag(G), n_nonzero=n_nonzero, tol=0.0, exclude_self=True)
    for i in range(len(Z)):
        others = np.delete(np.arange(len(Z)), i)
        theirs = orthogonal_mp(Z[others].T, Z[i], n_nonzero_coefs=n_nonzero)
        np.testing.assert_allclose(C[i, others], theirs, atol=1e-8)
        assert C[i, i] == 0


def test_pursuit_stops_at_the_residual_wanted(seed):
    Z, tol = unit_sscomp(seed), 0.2
    G = Z @ Z.T
    C = matching_pursuit(G, G, np.diag(G), n_nonzero=15, tol=tol, exclude_self=True)
    residual = np.sum((Z - C @ Z) ** 2, axis=1)
    assert np.all(residual < tol)
    for i in range(len(Z)):
        others = np.delete(np.arange(len(Z)), i)
        theirs = orthogonal_mp(Z[others].T, Z[i], tol=tol)
        np.testing.assert_allclose(C[i, others], theirs, atol=1e-8)


def test_new_samples_and_equal_atoms(seed):
    Z, new = unit_sscomp(seed, 20), unit_sscomp(seed + 100, 5)
    atoms = np.vstack([Z, Z])
    C = matching_pursuit(atoms @ atoms.T, new @ atoms.T, np.ones(5), n_nonzero=4, tol=0.0)
    theirs = orthogonal_mp(Z.T, new.T, n_nonzero_coefs=4)
    np.testing.assert_allclose(C[:, :20] + C[:, 20:], theirs.T, atol=1e-8)


def test_a_sample_that_nothing_resembles_has_no_coefficients():
    Z = np.eye(4)
    C = matching_pursuit(Z, Z, np.ones(4), n_nonzero=3, tol=1e-6, exclude_self=True)
    np.testing.assert_array_equal(C, np.zeros((4, 4)))


def test_affinity_of_unit_coefficients(seed):
    Z = unit_sscomp(seed)
    G = Z @ Z.T
    model = SSCOMP(3, n_nonzero=4, random_state=0).fit(Z)
    C = matching_pursuit(G, G, np.diag(G), n_nonzero=4, tol=1e-6, exclude_self=True)
    C = np.abs(C) / np.linalg.norm(C, axis=1, keepdims=True)
    np.testing.assert_allclose(model.affinity_matrix_, 0.5 * (C + C.T), atol=1e-10)
    np.testing.assert_array_equal(model.predict(Z), model.labels_)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"n_nonzero": 0}, "'n_nonzero' parameter of SSCOMP must be an integer >= 1. Got 0"),
        ({"tol": -1.0}, "'tol' parameter of SSCOMP must be a number >= 0. Got -1.0"),
    ],
)
def test_parameters_are_checked_by_sscomp(settings, text):
    with pytest.raises(ValueError, match=text):
        SSCOMP(2, **settings).fit(unit_sscomp(0))


@each("eta", [0.01, 0.1, 1.0])
@each("size", [2, 15, 60])
def test_optimality_conditions(seed, eta, size):
    """Feasible, and K - eta A = -(alpha_i + beta_j) on the support, less off it."""
    K = np.random.default_rng(seed).random((size, size)) ** 4
    A = doubly_stochastic(K, eta)
    assert A.min() >= 0
    np.testing.assert_allclose(A.sum(axis=0), 1.0, atol=2e-10)
    np.testing.assert_allclose(A.sum(axis=1), 1.0, atol=2e-10)
    # The linear problem whose costs are the gradient at A has A as a solution: no permutation,
    # and hence no doubly stochastic matrix, has a lower value.
    gradient = eta * A - K
    rows, columns = linear_sum_assignment(gradient)
    assert np.vdot(gradient, A) <= gradient[rows, columns].sum() + 1e-9


def dykstra(K, eta):
    """Project K / eta by turns on the matrices with sums of one and on those without negatives.

    Dykstra's corrections make the limit the nearest matrix that is both; the affine set needs none.
    """
    n = len(K)
    A, correction = K / eta, np.zeros_like(K)
    for _ in range(20_000):
        rows, columns = A.sum(axis=1, keepdims=True) - 1, A.sum(axis=0) - 1
        moved = A - rows / n - columns / n + columns.sum() / n**2 + correction
        before, A = A, np.maximum(moved, 0.0)
        correction = moved - A
        if np.abs(A - before).max() < 1e-14:
            break
    return A


@each("eta", [0.05, 0.3, 1.0])
@each("size", [4, 15])
def test_agrees_with_alternating_projections(seed, eta, size):
    K = np.random.default_rng(seed).random((size, size)) ** 4
    np.testing.assert_allclose(doubly_stochastic(K, eta), dykstra(K, eta), atol=1e-9)


def test_closed_forms():
    # With a large weight of the squares all entries are equal, up to what K adds.
    K = np.random.default_rng(0).random((6, 6))
    centred = K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean()
    np.testing.assert_allclose(doubly_stochastic(K, 100.0), 1 / 6 + centred / 100, atol=1e-10)
    # With a small one it is the best permutation.
    rows, columns = linear_sum_assignment(-K)
    permutation = np.zeros((6, 6))
    permutation[rows, columns] = 1.0
    np.testing.assert_allclose(doubly_stochastic(K, 1e-3), permutation, atol=1e-9)


def test_affinity_is_doubly_stochastic(seed):
    Z = np.random.default_rng(seed).standard_normal((30, 8))
    model = ADSSC(3, random_state=0).fit(Z)
    W = model.affinity_matrix_
    np.testing.assert_allclose(W.sum(axis=0), 1.0, atol=1e-9)
    Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    A = doubly_stochastic(np.abs(ridge_coefficients(Z @ Z.T, 1.0, zero_diagonal=True)), 0.1)
    np.testing.assert_allclose(W, 0.5 * (A + A.T), atol=1e-9)


@pytest.mark.parametrize("name", ["penalty", "smoothing"])
def test_parameters_of_adssc_are_checked(name):
    with pytest.raises(ValueError, match=f"'{name}' parameter of ADSSC must be a number > 0"):
        ADSSC(2, **{name: 0.0}).fit(np.eye(5))


def net_unit(seed, size=40, width=15):
    Z = np.random.default_rng(seed).standard_normal((size, width)) + 0.3
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


def weight(cross, gamma, tau):
    return gamma * tau / np.abs(cross).max()


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.9])
def test_coefficients_are_those_of_scikit_learn(seed, tau):
    Z, new = net_unit(seed), net_unit(seed + 50, 3)
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
    Z = net_unit(seed, size=3 * NET.working_set, width=60)
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
    Z = net_unit(0)
    cross = Z @ Z[0]
    cross[0] = 0.0
    for gamma, expected in ((0.999, False), (1.001, True)):
        scale = weight(cross, gamma, 0.9)
        c = elastic_net(Z, Z @ Z.T, Z[0], gamma=scale, tau=0.9, exclude=0)
        assert c.any() == expected


def test_equal_atoms_share_their_coefficient():
    Z = np.repeat(net_unit(0, 6, 5), 2, axis=0)
    x = net_unit(9, 1, 5)[0]
    c = elastic_net(Z, Z @ Z.T, x, gamma=weight(Z @ x, 50.0, 0.9), tau=0.9)
    np.testing.assert_allclose(c[::2], c[1::2], atol=1e-10)


@pytest.mark.parametrize("affinity", ["symmetrized", "nearest_neighbors"])
def test_affinities(seed, affinity):
    Z = net_unit(seed)
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
        ({"tau": 0.0}, "'tau' parameter of EnSC must be a number > 0 and < 1. Got 0.0"),
        ({"tau": 1.0}, "'tau' parameter of EnSC must be a number > 0 and < 1. Got 1.0"),
        ({"affinity": "rbf"}, "must be one of 'nearest_neighbors', 'symmetrized'. Got 'rbf'"),
    ],
)
def test_parameters_of_ensc_are_checked(settings, text):
    with pytest.raises(ValueError, match=text):
        EnSC(2, **settings).fit(net_unit(0))


def least_squares(*equations):
    """Solve equations (matrix, right-hand side) together, each weighted by its own factor."""
    return np.linalg.lstsq(*(np.vstack(parts) for parts in zip(*equations, strict=True)))[0]


def rounds_by_least_squares(X, alpha, beta, mu=1e-6):
    """The rounds of TAGCSC from its objective, where the method solves normal equations."""
    n = len(X)
    eye, ones, F = np.eye(n), np.ones((n, 1)), X
    Z, Y, y = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, 1))
    for _ in range(1000):
        a, b, m = np.sqrt([alpha, beta, mu / 2])
        C = least_squares(
            (X.T, (2 * F - X).T),
            (a * F.T, a * X.T),
            (b * (eye - Z).T, np.zeros((n, n))),
            (m * eye, m * (Z - Y / mu).T),
            (m * ones.T, m * (ones - y / mu).T),
        ).T
        F = least_squares((2 * eye, X + C @ X), (a * C, a * X))
        Z = least_squares((b * C, b * C), (m * eye, m * (C + Y / mu)))
        Z = np.maximum((Z + Z.T) / 2 * (1 - eye), 0)
        missed, sums = C - Z, C @ ones - ones
        if max(abs(missed).max(), abs(sums).max()) < 1e-7:
            return C, F
        Y, y, mu = Y + mu * missed, y + mu * sums, 1.1 * mu
    raise AssertionError("did not converge")


@pytest.mark.parametrize(("alpha", "beta"), [(0.1, 0.5), (0.5, 0.1)])
def test_rounds_solve_the_least_squares_problems_of_the_objective(seed, alpha, beta):
    X = unit(seed, size=20, width=25)
    C, F, n_rounds = graph_convolution(X, alpha, beta)
    expected, aggregated = rounds_by_least_squares(X, alpha, beta)
    np.testing.assert_allclose(C, expected, atol=1e-5)
    np.testing.assert_allclose(F, aggregated, atol=1e-5)
    assert 150 < n_rounds < 400


def test_rounds_follow_the_library_of_the_samples(xp, seed):
    X = unit(seed, size=20, width=25)
    expected = graph_convolution(X, 0.1, 0.5)
    C, F, n_rounds = graph_convolution(xp.asarray(X), 0.1, 0.5)
    assert get_namespace(C, F) is xp
    np.testing.assert_allclose(to_numpy(C), expected[0], atol=1e-9)
    np.testing.assert_allclose(to_numpy(F), expected[1], atol=1e-9)
    assert n_rounds == expected[2]


def test_coefficients_are_symmetric_shares_without_a_diagonal(seed):
    C = graph_convolution(unit(seed), 0.01, 0.01)[0]
    np.testing.assert_array_equal(C, C.T)
    np.testing.assert_array_equal(np.diag(C), 0.0)
    assert C.min() >= 0
    np.testing.assert_allclose(C.sum(axis=1), 1.0, atol=1e-5)


def test_the_largest_coefficients_of_each_sample_are_kept(seed):
    X, _ = subspaces(seed)
    rows = X.reshape(len(X), -1) / np.abs(X).max()
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    C, F, n_rounds = graph_convolution(rows, 0.05, 0.02)
    model = TAGCSC(4, alpha=0.05, beta=0.02, n_kept=5, random_state=0).fit(X)
    kept = np.zeros_like(C)
    for row, out in zip(C, kept, strict=True):
        best = np.argsort(-row)[:5]
        out[best] = row[best]
    np.testing.assert_allclose(model.affinity_matrix_, (kept + kept.T) / 2)
    np.testing.assert_allclose(model.training_rows_, F)
    assert model.n_iter_ == n_rounds
    new = np.random.default_rng(seed).standard_normal((3, *X.shape[1:]))
    unit_new = new.reshape(3, -1) / np.linalg.norm(new.reshape(3, -1), axis=1, keepdims=True)
    sizes = np.abs(Ridge(alpha=0.4, fit_intercept=False).fit(F.T, unit_new.T).coef_)
    sizes[sizes < np.sort(sizes, axis=1)[:, [-5]]] = 0
    expected = np.argmax([sizes[:, model.labels_ == k].sum(axis=1) for k in range(4)], axis=0)
    np.testing.assert_array_equal(model.predict(new), expected)


@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_parameters_of_tagcsc_are_checked(name):
    with pytest.raises(ValueError, match=f"'{name}' parameter of TAGCSC must be a number > 0"):
        TAGCSC(2, **{name: 0.0}).fit(np.eye(5))
