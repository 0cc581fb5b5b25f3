"""The estimator under each kind of mixing weights: consistent, saved, on every kind of array."""

import numpy as np
import pytest

from tuckermix import TuckerClustering, load, save
from tuckermix._array_api import to_numpy
from tuckermix.datasets import make_tensor_clusters

KINDS = {
    "anchored": {},
    "min-volume": {"memberships": "min-volume"},
    "robust": {"memberships": "min-volume", "outside": 0.1},
    "archetypes": {"memberships": "archetypes"},
}
HOLDS_ALL = ("anchored", "min-volume")


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def samples(seed):
    return make_tensor_clusters(n_samples=120, shape=(6, 7), n_clusters=4, random_state=seed).X


def fitted(kind, X, seed=0, **options):
    options = {"n_components": 5, "ranks": 4, **KINDS[kind], **options}
    return TuckerClustering(4, random_state=seed, **options).fit(X)


def projected_gap(model, X):
    """Compute how much of the explained energy the columns of the memberships miss."""
    B = X
    for mode, factor in enumerate(model.factors_, start=1):
        B = np.moveaxis(np.tensordot(B, factor, (mode, 0)), -1, mode)
    B = B.reshape(len(X), -1)
    centred = np.linalg.svd(B - B.mean(axis=0), compute_uv=False)
    best = len(X) * np.sum(B.mean(axis=0) ** 2) + np.sum(centred[: model.n_components_ - 1] ** 2)
    basis = np.linalg.qr(model.memberships_)[0]
    return (best - np.sum((basis.T @ B) ** 2)) / best


def test_weights_components_and_cost_belong_together(kind, seed):
    X = samples(seed)
    model = fitted(kind, X, seed)
    U = model.memberships_
    assert np.all(U >= 0)
    np.testing.assert_allclose(U.sum(axis=1), 1.0, atol=1e-10)
    np.testing.assert_allclose(model.transform(X), U, atol=1e-7)
    rebuilt = model.inverse_transform(U)
    np.testing.assert_allclose(np.tensordot(U, model.components_, 1), rebuilt, atol=1e-9)
    assert 0.5 * np.sum((X - rebuilt) ** 2) == pytest.approx(model.cost_, rel=1e-8)
    least = fitted("anchored", X, seed).cost_
    if kind in HOLDS_ALL:
        assert model.cost_ == pytest.approx(least, rel=1e-8)
        assert model.gap_ < 1e-12
    else:
        assert model.cost_ > least
        assert model.gap_ > 1e-10
        assert projected_gap(model, X) > 1e-10  # the columns miss something


def test_labels_do_not_depend_on_the_kind_of_weights(kind, seed):
    X = samples(seed)
    np.testing.assert_array_equal(fitted(kind, X).labels_, fitted("anchored", X).labels_)


@pytest.mark.parametrize("n_components", [3, 6, 10, 12])
def test_the_estimator_recovers_planted_mixtures(n_components, planted, seed):
    X, truth, vertices = planted.simplex(n_components, seed)
    model = TuckerClustering(
        2, n_components=n_components, ranks=40, memberships="min-volume", random_state=seed
    ).fit(X)
    assert planted.rmse(model.memberships_, truth) <= 0.01
    assert model.cost_ <= 1e-8 * 0.5 * np.sum(X**2)
    assert model.gap_ <= 1e-8
    nearest = np.linalg.norm(model.components_[:, None] - vertices[None], axis=2).min(axis=1)
    assert nearest.max() < 0.02 * np.linalg.norm(vertices[0])


def test_components_of_archetypes_lie_among_the_samples(seed):
    X = samples(seed)
    anchored, archetypes = fitted("anchored", X), fitted("archetypes", X)
    assert np.abs(archetypes.components_).max() <= np.abs(X).max()
    assert np.abs(anchored.components_).max() > np.abs(X).max()


def test_outliers_stay_outside(planted):
    X, truth, _ = planted.simplex(4, 0, snr=40)
    rng = np.random.default_rng(0)
    far = rng.choice(len(X), size=len(X) // 20, replace=False)
    # Outliers within the plane of the mixtures: weights of any sign.
    weights = truth.copy()
    weights[far] += 3 * (rng.dirichlet(np.ones(4), len(far)) - 0.25)
    X[far] += (weights[far] - truth[far]) @ np.linalg.lstsq(truth, X, rcond=None)[0]
    model = TuckerClustering(
        2, n_components=4, ranks=40, memberships="min-volume", outside=0.06, random_state=0
    ).fit(X)
    kept = np.setdiff1d(np.arange(len(X)), far)
    assert planted.rmse(model.memberships_[kept], truth[kept]) <= 0.03


def test_saved_models_weigh_the_same(kind, tmp_path):
    X = samples(0)
    model = fitted(kind, X)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.transform(X), model.transform(X))


def test_other_libraries_and_types_agree_with_numpy(kind, xp):
    for dtype in ["float32", "float64"]:
        X = samples(1)
        expected = fitted(kind, X)
        found = fitted(kind, xp.asarray(X, dtype=getattr(xp, dtype)))
        assert type(found.memberships_) is type(xp.asarray(X))
        close = {"rtol": 0.0, "atol": 1e-6 if dtype == "float64" else 0.02}
        np.testing.assert_allclose(to_numpy(found.memberships_), expected.memberships_, **close)
        assert to_numpy(found.memberships_).min() >= 0


def test_dask_arrays_agree_with_numpy(kind):
    da = pytest.importorskip("dask.array")
    X = samples(2)
    expected = fitted(kind, X)
    found = fitted(kind, da.from_array(X, chunks=(50, 6, 7)))
    np.testing.assert_allclose(found.memberships_.compute(), expected.memberships_, atol=1e-6)
    assert found.cost_ == pytest.approx(expected.cost_, rel=1e-8)


def test_a_solver_that_determines_the_weights_is_refused():
    model = TuckerClustering(4, solver="trust-region", memberships="archetypes")
    with pytest.raises(ValueError, match="needs a solver that leaves the choice open"):
        model.fit(samples(0))


@pytest.mark.parametrize("options", [{"outside": 0.1}, {"memberships": "min-volume", "outside": 1}])
def test_a_share_outside_that_makes_no_sense_is_refused(options):
    with pytest.raises(ValueError, match=r"outside. parameter .* < 1|outside must be 0 unless"):
        TuckerClustering(4, **options).fit(samples(0))


def test_one_component_takes_all(kind):
    model = TuckerClustering(1, n_components=1, random_state=0, **KINDS[kind]).fit(samples(0))
    np.testing.assert_array_equal(model.memberships_, np.ones((120, 1)))
