"""What the methods share that write each sample as a combination of the others."""

import functools

import numpy as np
import pytest
from scipy.linalg import eigh

from tuckermix._records import StopReason
from tuckermix.baselines import ADSSC, LSR, SSCOMP, AutoSC, EnSC
from tuckermix.baselines.self_expression import normalized_eigenvectors, symmetrized
from tuckermix.metrics import clustering_accuracy

CLASSES = (LSR, AutoSC, ADSSC, EnSC, SSCOMP)


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


@pytest.mark.parametrize("trial", range(5))
def test_samples_on_subspaces_are_grouped_by_subspace(make, trial):
    """K-means cannot do that: the subspaces all pass through the origin."""
    X, labels = subspaces(trial)
    model = make(4, random_state=trial)
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
    np.testing.assert_allclose(
        moved.affinity_matrix_, base.affinity_matrix_[np.ix_(order, order)], atol=1e-7
    )


def test_awkward_data_give_finite_results(make, edge):
    X, n_clusters = edge
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
