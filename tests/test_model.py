"""The fitted model: it places, weighs, labels and rebuilds samples, and looks beyond itself."""

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tuckermix import decompose
from tuckermix._array_api import to_numpy
from tuckermix.datasets import make_tensor_clusters
from tuckermix.labels import LABELLINGS, fit_labels
from tuckermix.labels.outliers import fade, learn_reference
from tuckermix.model import MOST_MORE, NEGLIGIBLE, Model, _missed_share
from tuckermix.numerics.linalg import DENSE_SIDE
from tuckermix.sources import add_parts, as_blocks


@pytest.fixture(scope="module")
def fitted():
    X = make_tensor_clusters(n_samples=80, shape=(5, 6), n_clusters=3, random_state=1).X
    fit = decompose(X, 5, (3, 4))
    model, memberships, gap, _ = Model.from_decomposition(fit, "anchored", np.random.default_rng(0))
    return X, fit, model, memberships, gap


def test_core_and_memberships_rebuild_the_fit(fitted):
    X, fit, model, memberships, gap = fitted
    rebuilt = model.rebuild(memberships)
    assert 0.5 * np.sum((X - rebuilt) ** 2) == pytest.approx(fit.cost, rel=1e-10)
    assert gap < 1e-12
    assert model.squared_error(X)[0] == pytest.approx(2 * fit.cost)


def test_points_are_the_rows_of_q_on_a_sphere(fitted):
    X, fit, model, _, _ = fitted
    rows = fit.Q * [np.hypot(1, 10 / 4), 1, 1, 1, 1]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(model.place(X), rows, atol=1e-9)


def test_a_wider_view_keeps_the_model_and_its_directions(fitted):
    X, _, model, memberships, _ = fitted
    wider = model.with_wide_view(model.project(X), 8)
    assert model.view.shape == (12, 4)
    assert 4 < wider.view.shape[1] <= 12
    assert wider.core is model.core
    np.testing.assert_allclose(wider.weigh(X), memberships, atol=1e-8)
    inside = wider.view @ np.linalg.pinv(wider.view) @ model.view
    np.testing.assert_allclose(inside, model.view, atol=1e-9 * np.abs(model.view).max())


def test_a_view_from_known_directions_is_the_same(fitted):
    X, fit, model, _, _ = fitted
    wider = model.with_wide_view(model.project(X), 8)
    known = model.with_wide_view(model.project(X), 8, axes=fit.axes)
    np.testing.assert_allclose(np.abs(known.place(X)), np.abs(wider.place(X)), atol=1e-9)


def test_the_view_does_not_depend_on_units(fitted):
    X, *_ = fitted
    views = []
    for factor in (1.0, 1e-160, 1e150):
        fit = decompose(X * factor, 5, (3, 4))
        model, _, _, _ = Model.from_decomposition(fit, "anchored", np.random.default_rng(0))
        wider = model.with_wide_view(model.project(X * factor), 8)
        views.append(np.abs(wider.place(X * factor)))
    np.testing.assert_allclose(views[1], views[0], atol=1e-6)
    np.testing.assert_allclose(views[2], views[0], atol=1e-6)


def test_gap_sees_memberships_that_are_not_optimal(fitted):
    _, fit, _, _, _ = fitted
    U = np.random.default_rng(0).dirichlet(np.ones(5), size=80)
    basis = np.linalg.qr(U)[0]
    core = fit.core.reshape(5, -1)
    centred = fit.Q[:, 1:] @ core[1:]
    missed = 1 - np.sum((basis.T @ centred) ** 2) / np.sum(centred**2)
    assert _missed_share(U, fit.Q, core) == pytest.approx(missed, rel=1e-9)


def test_cluster_means_lift_to_means_of_rebuilt_samples(fitted):
    X, _, model, memberships, _ = fitted
    found = np.arange(80) % 3
    function = partial(model.cluster_sums, n_clusters=4)
    sums, counts = as_blocks(X).reduce(function, add_parts, found)
    np.testing.assert_array_equal(counts, [27, 27, 26, 0])
    means = model.lift(sums / np.maximum(counts, 1)[:, None])
    rebuilt = model.rebuild(memberships)
    for k in range(3):
        np.testing.assert_allclose(means[k], rebuilt[found == k].mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(means[3], rebuilt.mean(axis=0), atol=1e-9)


@pytest.mark.parametrize("way", LABELLINGS)
def test_labels_come_from_what_the_labeller_looks_at(fitted, way):
    X, _, model, memberships, _ = fitted
    np.testing.assert_allclose(model.weigh(X), memberships, atol=1e-8)
    rows = model.place(X) if LABELLINGS[way].uses == "points" else memberships
    labeller = fit_labels(way, rows, 5, rng=np.random.default_rng(0))
    whole = Model(**{**model.to_dict(), "labeller": labeller})
    np.testing.assert_allclose(whole.soft_labels(X), labeller.predict_proba(rows), atol=1e-6)
    np.testing.assert_array_equal(whole.label(X), whole.soft_labels(X).argmax(axis=1))


def test_outliers_are_judged_with_one_projection(fitted, monkeypatch):
    X, _, model, _, _ = fitted
    model = model.with_wide_view(model.project(X), 6)
    labeller = fit_labels("graph", model.place(X), 3, rng=np.random.default_rng(0))
    traits = model.traits(X)
    low, high = np.quantile(model.outside(traits[:, :-2], traits[:, -2:]), (0.5, 0.75))
    model = replace(model, labeller=labeller, leftover=(float(low), float(high)))
    plain, scores = model.soft_labels(X), model.outlier_scores(X)
    limit = float(np.quantile(scores, 0.8))
    model = replace(model, threshold=limit)
    np.testing.assert_array_equal(model.soft_labels(X), fade(plain, scores, limit))
    expected = np.where(scores > limit, -1, plain.argmax(axis=1))
    learned, calls = [], []
    learn, project = learn_reference, Model.project
    monkeypatch.setattr(
        "tuckermix.model.learn_reference", lambda *args: learned.append(0) or learn(*args)
    )
    monkeypatch.setattr(Model, "project", lambda self, X: calls.append(0) or project(self, X))
    model = replace(model)
    np.testing.assert_array_equal(model.label(X), expected)
    assert len(calls) == 1
    # Other numbers leave what is usual as it is.
    order = np.array([2, 0, 1])
    other = model.renumbered(order)
    names = np.append(np.argsort(order), -1)
    np.testing.assert_array_equal(other.label(X), names[expected])
    assert len(learned) == 1
    fresh = replace(other)
    np.testing.assert_allclose(fresh.outlier_scores(X), scores, rtol=1e-12)


def test_memberships_of_another_solver_are_kept(fitted):
    _, fit, _, memberships, _ = fitted
    other = type(fit)(**{**fit.to_dict(), "memberships": memberships, "gap": 0.25})
    model, kept, gap, _ = Model.from_decomposition(other, "anchored", np.random.default_rng(0))
    assert kept is memberships
    assert gap == 0.25
    np.testing.assert_allclose(
        model.rebuild(memberships),
        np.einsum("qab,mq,ia,jb->mij", fit.core, fit.Q, *fit.factors),
        atol=1e-9,
    )


def view_of(rows, n_directions, edge=None, power=1.0):
    """Look beyond a model with that many directions of plain rows; None where it sees no more."""
    from array_api_compat import array_namespace

    xp = array_namespace(rows)
    size = rows.shape[1]
    nothing = xp.zeros((size, n_directions), dtype=rows.dtype)
    core = xp.zeros((n_directions + 1, size), dtype=rows.dtype)
    identity = xp.eye(size, dtype=rows.dtype)
    model = Model([identity], core, rows[0, :], nothing, nothing, 1.0, nothing)
    wider = model.with_wide_view(rows, n_directions if edge is None else edge, power)
    return None if wider is model else wider.view


@pytest.fixture
def rows(rng):
    spectrum = 0.8 ** np.arange(30)
    return rng.normal(size=(200, 30)) * spectrum @ np.linalg.qr(rng.normal(size=(30, 30)))[0] + 2.0


def leading(rows, count):
    centred = rows - rows.mean(axis=0)
    _, values, right = np.linalg.svd(centred, full_matrices=False)
    return values[:count], right[:count].T


def test_weights_are_those_of_ridge_regression(xp, rows):
    for power, edge in itertools.product([0.0, 0.5, 1.0], [1, 3, 7, 100]):
        values, right = leading(rows, 30)
        view = view_of(xp.asarray(rows.copy()), 2, edge, power)
        weights = (values**2 / (values**2 + values[min(edge, 29)] ** 2)) ** power
        found = to_numpy(view)
        kept = found.shape[1]
        assert kept > 2
        assert np.sum(weights[kept:] ** 2) <= NEGLIGIBLE * np.sum(weights**2)
        weights, values, right = weights[:kept], values[:kept], right[:, :kept]
        weights /= np.sqrt(np.mean(weights**2))
        expected = right * weights * np.sqrt(len(rows)) / values
        size = np.abs(expected @ expected.T).max()
        np.testing.assert_allclose(
            found @ found.T, expected @ expected.T, rtol=1e-8, atol=1e-9 * size
        )
        spread = (rows - rows.mean(axis=0)) @ found
        np.testing.assert_allclose(np.mean(spread**2, axis=0), weights**2, rtol=1e-8)


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_points_are_rows_of_the_hat_matrix_of_ridge_regression(rows, power):
    """Before they are set on the sphere, and up to scale; with ½ it holds their products."""
    centred = rows - rows.mean(axis=0)
    ridge = leading(rows, 6)[0][5] ** 2
    hat = centred @ np.linalg.solve(centred.T @ centred + ridge * np.eye(30), centred.T)
    points = centred @ view_of(rows.copy(), 2, 5, power)
    found, expected = points @ points.T, hat @ hat.T if power == 1.0 else hat
    scale = np.sum(found * expected) / np.sum(expected**2)
    # Directions with less than a hundredth of the squares are left out of the points.
    assert np.linalg.norm(found - scale * expected) <= 0.02 * np.linalg.norm(found)


def test_a_model_with_all_directions_sees_nothing_beyond(rng):
    rows = rng.normal(size=(50, 4))
    assert view_of(rows.copy(), 4) is None
    assert view_of(rows[:5].copy(), 4) is None
    assert view_of(np.ones((6, 3)), 0) is None
    assert view_of(np.ones((6, 3)), 1) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_rounding_is_not_looked_at(dtype, offset, rng):
    """Samples of rank three far from the origin: what lies beyond is the rounding of the mean."""
    rows = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 20)) + offset
    assert view_of(rows.astype(dtype), 3) is None
    assert view_of(rows.astype(dtype), 2) is not None


def test_the_number_of_further_directions_has_a_limit():
    """More directions than are worth their time: a model of many, in a space of many more."""
    side = DENSE_SIDE + 10
    rows = np.random.default_rng(0).normal(size=(side + 1, side)).astype(np.float32)
    assert view_of(rows, 3, 5).shape[1] <= 5 + MOST_MORE
    assert view_of(rows[:400].copy(), 3, 5).shape[1] > 5 + MOST_MORE // 2


def test_scales_do_not_matter(rows):
    once = view_of(rows.copy(), 5)
    many = view_of(1e6 * rows, 5)
    np.testing.assert_allclose(many * 1e6, once, rtol=1e-6, atol=1e-9)


def test_float32_gives_the_same_view(rows):
    single = view_of(rows.astype(np.float32), 5)
    double = view_of(rows.copy(), 5)
    assert single.dtype == np.float32
    largest = np.abs(double).max() ** 2
    np.testing.assert_allclose(single @ single.T, double @ double.T, atol=1e-3 * largest)
