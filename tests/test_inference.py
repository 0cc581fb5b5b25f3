"""Pure functions of a fitted model."""

import numpy as np
import pytest

from tuckermix import decompose, inference
from tuckermix.datasets import make_tensor_clusters
from tuckermix.labels import normalize_rows


@pytest.fixture(scope="module")
def fitted():
    X = make_tensor_clusters(n_samples=80, shape=(5, 6), n_clusters=3, random_state=1).X
    fit = decompose(X, 5, (3, 4))
    model, memberships, gap = inference.model_from(fit, np.random.default_rng(0))
    return X, fit, model, memberships, gap


def test_core_and_memberships_rebuild_the_fit(fitted):
    X, fit, model, memberships, gap = fitted
    rebuilt = inference.rebuild(model, memberships)
    assert 0.5 * np.sum((X - rebuilt) ** 2) == pytest.approx(fit.cost, rel=1e-10)
    assert gap < 1e-12
    assert inference.mean_squared_error(model, X) == pytest.approx(2 * fit.cost / X.size)


def test_subspace_rows_are_the_normalised_rows_of_q(fitted):
    X, fit, model, _, _ = fitted
    np.testing.assert_allclose(inference.subspace_rows(model, X), normalize_rows(fit.Q), atol=1e-9)


def test_a_wider_view_keeps_the_model_and_its_directions(fitted):
    X, _, model, memberships, _ = fitted
    wider = inference.with_wider_view(model, X)
    assert model.view.shape == (12, 4)
    assert 4 < wider.view.shape[1] <= 12
    assert wider.core is model.core
    np.testing.assert_allclose(inference.mixing_weights(wider, X), memberships, atol=1e-8)
    inside = wider.view @ np.linalg.pinv(wider.view) @ model.view
    np.testing.assert_allclose(inside, model.view, atol=1e-9 * np.abs(model.view).max())


def test_the_view_does_not_depend_on_units(fitted):
    X, *_ = fitted
    views = []
    for factor in (1.0, 1e-160, 1e150):
        fit = decompose(X * factor, 5, (3, 4))
        model, _, _ = inference.model_from(fit, np.random.default_rng(0))
        wider = inference.with_wider_view(model, X * factor)
        views.append(np.abs(inference.subspace_rows(wider, X * factor)))
    np.testing.assert_allclose(views[1], views[0], atol=1e-6)
    np.testing.assert_allclose(views[2], views[0], atol=1e-6)


def test_gap_sees_memberships_that_are_not_optimal(fitted):
    _, fit, _, _, _ = fitted
    U = np.random.default_rng(0).dirichlet(np.ones(5), size=80)
    basis = np.linalg.qr(U)[0]
    core = fit.core.reshape(5, -1)
    missed = 1 - np.sum((basis.T @ fit.Q @ core) ** 2) / np.sum(core**2)
    assert inference._gap_of(U, fit.Q, core) == pytest.approx(missed, rel=1e-9)


def test_cluster_means_lift_to_means_of_rebuilt_samples(fitted):
    X, _, model, memberships, _ = fitted
    found = np.arange(80) % 3
    means = inference.lift(model, inference.cluster_means(model, 4, X, found))
    rebuilt = inference.rebuild(model, memberships)
    for k in range(3):
        np.testing.assert_allclose(means[k], rebuilt[found == k].mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(means[3], rebuilt.mean(axis=0), atol=1e-9)


@pytest.mark.parametrize("way", ["graph", "subspace", "memberships", "argmax"])
def test_views_are_subspace_rows_or_mixing_weights(fitted, way):
    X, _, model, memberships, _ = fitted
    Z, U = inference.views(model, X, way)
    assert (Z is None) != (U is None)
    if U is not None:
        np.testing.assert_allclose(U, memberships, atol=1e-8)


def test_memberships_of_another_solver_are_kept(fitted):
    _, fit, _, memberships, _ = fitted
    other = type(fit)(**{**fit.to_dict(), "memberships": memberships, "gap": 0.25})
    model, kept, gap = inference.model_from(other, np.random.default_rng(0))
    assert kept is memberships
    assert gap == 0.25
    np.testing.assert_allclose(
        inference.rebuild(model, memberships),
        np.einsum("qab,mq,ia,jb->mij", fit.core, fit.Q, *fit.factors),
        atol=1e-9,
    )
