"""One partition from several views."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from tests.cases import each

import tuckermix
from tuckermix import MultiViewClustering, TuckerClustering
from tuckermix.datasets import make_tensor_clusters
from tuckermix.features import Scattering
from tuckermix.selection.multiview import cluster_means


def two_views():
    strokes = make_pipeline(Scattering(J=2, L=4), TuckerClustering())
    return [("pixels", TuckerClustering()), ("strokes", strokes)]


def test_labels_are_predictions_and_votes_are_added(planted):
    X, y = planted
    model = MultiViewClustering(two_views(), n_clusters=4, random_state=0).fit(X)
    assert adjusted_rand_score(model.labels_, y) > 0.95
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-6)
    np.testing.assert_array_equal(shares.argmax(axis=1), model.labels_)
    sizes = np.bincount(model.labels_)
    assert (sizes[1:] <= sizes[:-1]).all()


def test_soft_labels_are_the_mean_of_the_votes_in_each_view(planted):
    X, _ = planted
    model = MultiViewClustering(two_views(), n_clusters=4, random_state=0).fit(X)
    (_, pixels), (_, strokes) = model.estimators_
    places = (pixels.place(X), strokes[-1].place(strokes[:-1].transform(X)))
    votes = [voter.predict_proba(Z) for voter, Z in zip(model._voters_, places, strict=True)]
    np.testing.assert_allclose(model.predict_proba(X), (votes[0] + votes[1]) / 2)


def test_one_view_labels_as_that_view_does(planted):
    X, _ = planted
    alone = TuckerClustering(4, random_state=0).fit(X)
    model = MultiViewClustering(n_clusters=4, random_state=0).fit(X)
    assert adjusted_rand_score(alone.labels_, model.labels_) > 0.99


def test_views_share_landmarks(planted, limits):
    X, y = planted
    limits(landmarks=60)
    model = MultiViewClustering(two_views(), n_clusters=4, random_state=0).fit(X)
    pixels, strokes = model._voters_
    np.testing.assert_array_equal(pixels.landmark_labels, strokes.landmark_labels)
    assert len(pixels.landmarks) == 60
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert adjusted_rand_score(model.labels_, y) > 0.95


def test_save_and_load(planted, tmp_path):
    X, _ = planted
    model = MultiViewClustering(two_views(), n_clusters=4, random_state=0).fit(X)
    tuckermix.save(model, tmp_path / "model")
    again = tuckermix.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.labels_, model.labels_)
    assert [name for name, _ in again.views] == ["pixels", "strokes"]
    assert clone(again).get_params()["n_clusters"] == 4


@each(
    "changes, message",
    [
        ({"estimators_": []}, "its views are none"),
        ({"_voters_": [None, None]}, "views and voters do not fit"),
        ({"n_features_in_": 3}, "sample_shape_ is"),
        ({"sample_shape_": (16, 12)}, "another shape"),
        ({"labels_": np.array([0, 4])}, "labels_ must lie between"),
        ({"centroids_": np.zeros((2, 16, 16))}, "centroids_"),
        ({"_threshold_": float("inf")}, "its threshold is inf"),
    ],
)
def test_stored_models_check_themselves(planted, changes, message):
    model = MultiViewClustering(two_views(), n_clusters=4, random_state=0).fit(planted[0])
    model._check_state()
    vars(model).update(changes)
    with pytest.raises(ValueError, match=message):
        model._check_state()


def test_copies_share_a_label(planted):
    X, _ = planted
    model = MultiViewClustering(two_views(), n_clusters=4, random_state=0)
    labels = model.fit_predict(np.concatenate([X, X[:50], X[:50]]))
    np.testing.assert_array_equal(labels[:50], labels[120:170])
    np.testing.assert_array_equal(labels[:50], labels[170:])


def test_torch_and_dask_agree_with_numpy(planted):
    torch = pytest.importorskip("torch")
    dask = pytest.importorskip("dask.array")
    X, _ = planted
    model = MultiViewClustering(two_views(), n_clusters=4, random_state=0)
    truth = clone(model).fit(X)
    moved = clone(model).fit(torch.asarray(X))
    assert adjusted_rand_score(moved.labels_.numpy(), truth.labels_) > 0.99
    assert isinstance(moved.centroids_, torch.Tensor)
    lazy = clone(model).fit(dask.from_array(X, chunks=(50, 16, 16)))
    assert adjusted_rand_score(np.asarray(lazy.labels_), truth.labels_) > 0.99
    np.testing.assert_allclose(lazy.centroids_, truth.centroids_, rtol=1e-6)


def test_means_of_clusters():
    X = np.arange(24.0).reshape(6, 2, 2)
    means = cluster_means(X, np.array([0, 0, 1, 1, 1, 0]), 3)
    np.testing.assert_allclose(means[0], X[[0, 1, 5]].mean(axis=0))
    np.testing.assert_allclose(means[1], X[2:5].mean(axis=0))
    np.testing.assert_allclose(means[2], X.mean(axis=0))  # nobody is there


@pytest.mark.parametrize("views", [[], 3, [("a",)], [(1, TuckerClustering())]])
def test_views_must_be_named(views):
    with pytest.raises(ValueError, match="must be None or a list of \\(name, estimator\\)"):
        MultiViewClustering(views).fit(np.eye(10))


def test_views_must_place_samples():
    with pytest.raises(ValueError, match="The view 'a' of MultiViewClustering must be"):
        MultiViewClustering([("a", KMeans())]).fit(np.eye(10))


def test_a_failed_fit_leaves_the_old_one(planted):
    X, _ = planted
    model = MultiViewClustering(n_clusters=4, random_state=0).fit(X)
    before = model.labels_
    with pytest.raises(ValueError, match="n_samples=2 must be >= n_clusters=4"):
        model.fit(X[:2])
    assert model.labels_ is before


def test_outliers_of_all_views(planted, tmp_path):
    """Scores are the mean of those of the views; labels, predictions and stored models follow."""
    X, _ = planted
    X = X.copy()
    X[:6] = np.random.default_rng(0).uniform(X.min(), X.max(), (6, 16, 16))
    model = MultiViewClustering(two_views(), n_clusters=4, outliers="label", random_state=0)
    model.fit(X)
    assert (model.labels_[:6] == -1).all()
    assert np.mean(model.labels_[6:] == -1) < 0.1
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    (_, pixels), (_, strokes) = model.estimators_
    parts = pixels.outlier_scores(X), strokes[-1].outlier_scores(strokes[:-1].transform(X))
    np.testing.assert_allclose(model.outlier_scores(X), (parts[0] + parts[1]) / 2)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert shares[:6].max() < 0.9
    tuckermix.save(model, tmp_path / "model")
    again = tuckermix.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    dask = pytest.importorskip("dask.array")
    lazy = dask.from_array(X, chunks=(50, 16, 16))
    np.testing.assert_array_equal(np.asarray(model.predict(lazy)), model.labels_)
    np.testing.assert_allclose(np.asarray(model.predict_proba(lazy)), shares, atol=1e-9)
    model.set_params(outliers="keep").fit(X)
    assert model.labels_.min() == 0
    with pytest.raises(ValueError, match="The 'false_alarms' parameter of MultiViewClustering"):
        MultiViewClustering(outliers="label", false_alarms=2.0).fit(X)


def test_probabilities_of_all_views(seed, tmp_path):
    """Rows sum to one, labels stay, nothing is certain; stored, and the same on Dask arrays."""
    X = make_tensor_clusters(
        120, shape=(16, 16), n_clusters=4, noise=3.0, random_state=seed, return_X_y=True
    )[0]
    plain = MultiViewClustering(two_views(), n_clusters=4, random_state=seed).fit(X)
    model = clone(plain).set_params(calibrate=True).fit(X)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    P = model.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_array_equal(P.argmax(axis=1), model.labels_)
    assert P.min() > 0
    assert P.max() < 1
    assert not np.allclose(P, plain.predict_proba(X), atol=0.01)
    tuckermix.save(model, tmp_path / "model")
    np.testing.assert_array_equal(tuckermix.load(tmp_path / "model").predict_proba(X), P)
    dask = pytest.importorskip("dask.array")
    lazy = dask.from_array(X, chunks=(50, 16, 16))
    np.testing.assert_allclose(np.asarray(model.predict_proba(lazy)), P, atol=1e-9)
    model._knots_ = np.array([[0.0, 1.0], [0.9, 0.5]])
    with pytest.raises(ValueError, match="knots must be rising"):
        model._check_state()
