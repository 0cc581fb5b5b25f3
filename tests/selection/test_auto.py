"""The estimator that chooses."""

import logging

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from tests.cases import each

import tuckermix
from tuckermix import AutoClustering, TuckerClustering
from tuckermix.datasets import make_tensor_clusters
from tuckermix.metrics import clustering_accuracy
from tuckermix.selection.auto import fit_with
from tuckermix.selection.candidates import (
    built_in_candidates,
    has_norms,
    is_image,
    is_narrow,
    is_noisy,
)
from tuckermix.selection.resampling import set_clusters
from tuckermix.selection.shared import Features

NORM_ONE = "pixels of norm 1"


@pytest.mark.parametrize("n_clusters", [3, 7])
def test_planted_numbers_are_found(n_clusters):
    X, y = make_tensor_clusters(
        40 * n_clusters, n_clusters=n_clusters, noise=1.5, random_state=7, return_X_y=True
    )
    model = AutoClustering(random_state=0).fit(X)
    assert model.n_clusters_ == n_clusters
    assert adjusted_rand_score(model.labels_, y) > 0.9
    assert model.selection_.n_clusters == n_clusters
    assert 0.0 <= model.selection_.behind < 1.0


@pytest.mark.parametrize("features", ["pixels", "scattering", "auto"])
def test_known_features_change_nothing(planted, features):
    X, _ = planted
    model = AutoClustering(4, features=features, random_state=0).fit(X)
    alone = clone(model.best_estimator_).fit(X)
    np.testing.assert_array_equal(alone.predict_proba(X), model.predict_proba(X))
    final = alone[-1] if isinstance(alone, Pipeline) else alone
    np.testing.assert_array_equal(final.labels_, model.labels_)


@pytest.mark.parametrize("name", [name for name, _ in built_in_candidates((16, 16), "auto")])
def test_every_candidate_is_fitted_with_known_features(planted, name):
    X = planted[0][::2]
    candidate = set_clusters(clone(dict(built_in_candidates((16, 16), "auto"))[name]), 4, 0)
    one, other = fit_with(clone(candidate), X, Features(X)), clone(candidate).fit(X)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


def test_it_acts_as_the_chosen_one(planted):
    X, y = planted
    model = AutoClustering(4, random_state=0).fit(X)
    assert adjusted_rand_score(model.labels_, y) > 0.95
    np.testing.assert_array_equal(model.best_estimator_.predict(X), model.labels_)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    shares = model.predict_proba(X)
    np.testing.assert_array_equal(shares, model.best_estimator_.predict_proba(X))
    assert model.centroids_.shape == (4, 16, 16)
    assert {trial.n_clusters for trial in model.selection_.trials} == {4}
    assert len(model.selection_.views) == len(built_in_candidates((16, 16), "auto"))


@pytest.mark.parametrize("name", [name for name, _ in built_in_candidates((16, 16), "auto")])
def test_every_candidate_is_saved_and_loaded(planted, tmp_path, name):
    X = planted[0][::2]
    candidate = dict(built_in_candidates((16, 16), "auto"))[name]
    model = AutoClustering(4, candidates=[(name, candidate)], random_state=0).fit(X)
    tuckermix.save(model, tmp_path / "model")
    again = tuckermix.load(tmp_path / "model")
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.centroids_, model.centroids_)
    assert again.selection_ == model.selection_
    assert again.n_clusters_ == 4
    assert hasattr(again, "transform") == hasattr(model, "transform")
    tuckermix.save(model.best_estimator_, tmp_path / "best")
    np.testing.assert_array_equal(tuckermix.load(tmp_path / "best").predict(X), model.labels_)


def test_centroids_of_features_are_images(planted):
    X, _ = planted
    candidates = [("scattering", dict(built_in_candidates((16, 16), "auto"))["scattering"])]
    model = AutoClustering(4, candidates=candidates, random_state=0).fit(X)
    for cluster in range(4):
        mean = X[model.labels_ == cluster].mean(axis=0)
        np.testing.assert_allclose(model.centroids_[cluster], mean, rtol=1e-6)
    assert model.transform(X).shape == model.memberships_.shape


def test_candidates_go_by_the_shape():
    def names(shape, features="auto"):
        return [name for name, _ in built_in_candidates(shape, features)]

    assert len(names((28, 28))) == len(names((28, 28, 3))) == 9
    near = f"{NORM_ONE}, few neighbours"
    assert names((28, 28), "pixels") == ["pixels", "pixels, soft edge", near]
    assert all("scattering" in name for name in names((28, 28), "scattering"))
    for shape in ((40,), (8, 8), (28, 10), (32, 32, 32), (20, 20, 20, 3)):
        assert not is_image(shape)
        assert all(name.startswith("pixels") for name in names(shape, "pixels"))
    noisy = [name for name, _ in built_in_candidates((8, 8), "auto", noisy=True)]
    assert noisy == ["pixels", "pixels, soft edge", "pixels, sharp edge"]
    assert len(built_in_candidates((8, 8, 8), "auto", noisy=True)) == 2
    for shape in ((40,), (32, 32, 32), (20, 20, 20, 3)):
        of_amounts = [name for name, _ in built_in_candidates(shape, "pixels", norms=True)]
        assert of_amounts == ["pixels", "pixels, soft edge", NORM_ONE, f"{NORM_ONE}, soft edge"]
    assert len(built_in_candidates((40,), "pixels", noisy=True, norms=True)) == 5
    narrow = [name for name, _ in built_in_candidates((40,), "pixels", norms=True, narrow=True)]
    every = "all directions"
    assert narrow == ["pixels", f"pixels, {every}", NORM_ONE, f"{NORM_ONE}, {every}"]


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_told_from_signal(seed):
    loud = make_tensor_clusters(120, n_clusters=4, noise=2.0, random_state=seed).X
    quiet = make_tensor_clusters(120, n_clusters=4, noise=0.2, random_state=seed).X
    assert is_noisy(loud)
    assert not is_noisy(quiet)


def test_other_clusterers_may_be_candidates(planted):
    X, y = planted
    tree = AgglomerativeClustering(linkage="ward")
    candidates = [("k-means", KMeans(n_init=3)), ("tree", tree)]
    model = AutoClustering(candidates=candidates, random_state=0).fit(X)
    assert model.n_clusters_ == 4
    assert adjusted_rand_score(model.labels_, y) > 0.95
    assert model.centroids_.shape == (4, 16, 16)
    assert not hasattr(model, "predict_proba")
    assert tree.n_clusters == 2  # candidates are cloned
    only = AutoClustering(4, candidates=candidates[1:], random_state=0).fit(X)
    assert not hasattr(only, "predict")
    assert not hasattr(only, "outlier_scores")
    chosen = AutoClustering(4, candidates=candidates[:1], random_state=0).fit(X)
    np.testing.assert_array_equal(chosen.best_estimator_.predict(X), chosen.labels_)


def test_a_bad_view_is_not_chosen():
    X, y = make_tensor_clusters(120, n_clusters=3, noise=1.0, random_state=2, return_X_y=True)
    noise = np.random.default_rng(0).standard_normal((120, 6))
    table = np.concatenate([X.reshape(120, -1), noise], axis=1)
    bad = make_pipeline(FunctionTransformer(lambda X: X[:, -6:]), TuckerClustering())
    good = make_pipeline(FunctionTransformer(lambda X: X[:, :-6]), TuckerClustering())
    model = AutoClustering(3, candidates=[("bad", bad), ("good", good)], random_state=0).fit(table)
    assert model.selection_.view == "good"
    assert adjusted_rand_score(model.labels_, y) > 0.9


def test_seeds_repeat_and_parts_suffice():
    X, _ = make_tensor_clusters(400, n_clusters=4, noise=1.0, random_state=3, return_X_y=True)
    one = AutoClustering(max_samples=150, random_state=5).fit(X)
    two = AutoClustering(max_samples=150, random_state=5).fit(X)
    assert one.n_clusters_ == 4
    assert one.selection_.n_samples == 150
    assert one.selection_ == two.selection_
    np.testing.assert_array_equal(one.labels_, two.labels_)
    assert len(one.labels_) == 400


def test_copies_do_not_count_twice():
    X, _ = make_tensor_clusters(80, n_clusters=4, noise=0.5, random_state=0, return_X_y=True)
    model = AutoClustering(random_state=0).fit(np.concatenate([X] * 5))
    assert model.selection_.n_samples == 80
    assert model.n_clusters_ == 4


def test_torch_and_dask(planted):
    torch = pytest.importorskip("torch")
    dask = pytest.importorskip("dask.array")
    X, y = planted
    truth = AutoClustering(4, features="pixels", random_state=0).fit(X)
    moved = clone(truth).fit(torch.asarray(X))
    assert isinstance(moved.labels_, torch.Tensor)
    assert adjusted_rand_score(moved.labels_.numpy(), truth.labels_) > 0.99
    lazy = clone(truth).set_params(features="scattering")
    lazy.fit(dask.from_array(X, chunks=(50, 16, 16)))
    assert adjusted_rand_score(np.asarray(lazy.labels_), y) > 0.95
    assert lazy.centroids_.shape == (4, 16, 16)


def test_progress_is_logged_from_the_start(planted, caplog):
    X, _ = planted
    with caplog.at_level(logging.INFO, logger="tuckermix"):
        AutoClustering(features="pixels", random_state=0).fit(X)
    shares = [record.share for record in caplog.records if hasattr(record, "share")]
    assert shares[0] == 0.0
    assert shares == sorted(shares)
    assert any("4 clusters" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("n_clusters", ["some", 0, 2.5, None, True])
def test_the_number_must_be_one(n_clusters):
    with pytest.raises(ValueError, match="must be 'auto' or an integer >= 1"):
        AutoClustering(n_clusters).fit(np.eye(10))


@pytest.mark.parametrize("candidates", [[], 5, [("a",)], [(2, KMeans())]])
def test_candidates_must_be_named(candidates):
    with pytest.raises(ValueError, match="must be None or a list of \\(name, estimator\\)"):
        AutoClustering(candidates=candidates).fit(np.eye(10))


def test_candidates_must_be_clusterers_of_different_names():
    with pytest.raises(ValueError, match="The candidate 'a' of AutoClustering must have"):
        AutoClustering(candidates=[("a", PCA())]).fit(np.eye(10))
    with pytest.raises(ValueError, match="names of candidates must differ"):
        AutoClustering(candidates=[("a", KMeans()), ("a", KMeans())]).fit(np.eye(10))


def test_other_errors(planted):
    X, _ = planted
    with pytest.raises(ValueError, match="'features' parameter of AutoClustering"):
        AutoClustering(features="none").fit(X)
    with pytest.raises(AttributeError, match="has this attribute after fit"):
        _ = AutoClustering().centroids_
    model = AutoClustering(4, features="pixels", random_state=0).fit(X)
    before = model.labels_
    with pytest.raises(ValueError, match="n_samples=2 must be >= n_clusters=4"):
        model.fit(X[:2])
    assert model.labels_ is before
    with pytest.raises(ValueError, match="shape"):
        model.predict(X[:, :8])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"selection_": None}, "selection_ is none"),
        ({"n_clusters_": 5}, "n_clusters_ is not that"),
        ({"labels_": np.zeros(120, dtype=int)}, "labels_ are not those"),
        ({"_means_": np.zeros((2, 16, 16))}, "_means_"),
        ({"sample_shape_": None}, "sample_shape_ is None"),
    ],
)
def test_stored_models_check_themselves(planted, changes, message):
    model = AutoClustering(4, features="pixels", random_state=0).fit(planted[0])
    model._check_state()
    vars(model).update(changes)
    with pytest.raises(ValueError, match=message):
        model._check_state()


@pytest.mark.parametrize("n_samples", [1, 2, 4, 9])
def test_few_samples(n_samples):
    X = np.random.default_rng(0).standard_normal((n_samples, 5, 4))
    model = AutoClustering(random_state=0).fit(X)
    assert model.n_clusters_ == 1  # too few to tell, or nothing but noise
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("seed", [0, 3])
def test_loud_clusters_are_more_than_noise(seed):
    X = make_tensor_clusters(120, n_clusters=3, noise=2.15, random_state=seed).X
    assert AutoClustering(random_state=seed).fit(X).n_clusters_ == 3


def test_select_chooses_without_fitting(planted):
    X = planted[0][::2]
    chooser = AutoClustering(features="pixels", random_state=0)
    estimator, selection = chooser.select(X)
    assert estimator.n_clusters == selection.n_clusters == 4
    assert not hasattr(estimator, "labels_")
    assert not hasattr(chooser, "selection_")
    fitted = clone(chooser).fit(X)
    assert fitted.selection_ == selection
    np.testing.assert_array_equal(estimator.fit(X).labels_, fitted.labels_)


@pytest.mark.parametrize("name", ["pixels", "scattering", "pixels + log-scattering"])
def test_outliers_of_the_chosen_one(planted, tmp_path, name):
    X, _ = planted
    X = X.copy()
    X[:6] = np.random.default_rng(0).uniform(X.min(), X.max(), (6, 16, 16))
    candidate = dict(built_in_candidates((16, 16), "auto"))[name]
    model = AutoClustering(4, candidates=[(name, candidate)], outliers="label", random_state=0)
    model.fit(X)
    assert (model.labels_[:6] == -1).all()
    assert np.mean(model.labels_[6:] == -1) < 0.1
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    scores = model.outlier_scores(X)
    assert scores[:6].min() > np.quantile(scores[6:], 0.95)
    tuckermix.save(model, tmp_path / "model")
    again = tuckermix.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    np.testing.assert_allclose(again.outlier_scores(X), scores, rtol=1e-6)


def test_outliers_need_candidates_that_know_them():
    with pytest.raises(ValueError, match="needs candidates that have the parameter outliers"):
        AutoClustering(candidates=[("k-means", KMeans())], outliers="label").fit(np.eye(10))
    with pytest.raises(ValueError, match="The 'outliers' parameter of AutoClustering"):
        AutoClustering(outliers="drop").fit(np.eye(10))


@pytest.mark.parametrize("name", ["pixels", "scattering", "relative scattering + log-scattering"])
def test_probabilities_of_the_chosen_one(planted, name):
    X, _ = planted
    X = X + 2.5 * np.random.default_rng(0).standard_normal(X.shape)
    candidate = dict(built_in_candidates((16, 16), "auto"))[name]
    options = {"candidates": [(name, candidate)], "random_state": 0}
    votes = AutoClustering(4, **options).fit(X)
    model = AutoClustering(4, calibrate=True, **options).fit(X)
    np.testing.assert_array_equal(model.labels_, votes.labels_)
    P = model.predict_proba(X)
    np.testing.assert_array_equal(P, model.best_estimator_.predict_proba(X))
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert 0 < P.min() < P.max() < 1
    assert not np.allclose(P, votes.predict_proba(X), atol=0.01)
    with pytest.raises(ValueError, match="candidates that have the parameter calibrate"):
        AutoClustering(candidates=[("k-means", KMeans())], calibrate=True).fit(X)


def amounts(shape, seed=0):
    """Draw four clusters of samples whose brightness differs, the first of them all dark."""
    X, y = make_tensor_clusters(
        120, shape, 4, noise=0.5, positive=True, random_state=seed, return_X_y=True
    )
    gains = np.exp(0.7 * np.random.default_rng(seed).standard_normal(120))
    X = X * gains.reshape(-1, *(1,) * len(shape))
    X[0] = 0.0
    return X, y


def spectra(seed, n_samples=300):
    """Mix three smooth spectra, unlike in brightness; the class is the main part."""
    rng = np.random.default_rng(seed)
    bands, places = np.linspace(0, 1, 60), np.array([[0.2], [0.5], [0.8]])
    pure = np.exp(-0.5 * ((bands - places) / 0.3) ** 2) * [[1.0], [0.6], [0.2]]
    shares = rng.dirichlet([0.3] * 3, n_samples)
    X = shares @ pure * np.exp(0.3 * rng.standard_normal((n_samples, 1)))
    return X + 0.002 * rng.uniform(size=X.shape), shares.argmax(axis=1)


def test_tables_near_few_directions_are_narrow(xp, seed):
    X, _ = spectra(seed)
    rng = np.random.default_rng(seed)
    assert is_narrow(xp.asarray(X))
    assert is_narrow(xp.asarray(np.round(255 * X).astype(np.int64)))
    assert not is_narrow(xp.asarray(X[:, :10]))  # as many columns as directions
    assert not is_narrow(xp.asarray(X.reshape(-1, 6, 10)))
    assert not is_narrow(xp.asarray(X + rng.standard_normal(X.shape)))


def test_weak_directions_tell_spectra_apart(seed):
    X, y = spectra(seed)
    found = AutoClustering(3, random_state=0).fit(X)
    fixed = TuckerClustering(3, random_state=0).fit(X)  # sees two or three directions
    now, before = (clustering_accuracy(y, model.labels_) for model in (found, fixed))
    assert now > max(0.8, before + 0.05)
    np.testing.assert_array_equal(found.predict(X), found.labels_)


def test_amounts_have_norms():
    X = np.random.default_rng(0).uniform(size=(20, 6))
    assert has_norms(X)
    assert has_norms((X > 0.5).astype(np.uint8).reshape(5, 2, 3, 4))
    assert not has_norms(X - 0.5)
    assert not has_norms(X.reshape(20, 2, 3))


@each("shape", [(40,), (6, 5, 4)])
@each("seed", range(3))
def test_brightness_is_seen_through(shape, seed):
    X, y = amounts(shape, seed)
    model = AutoClustering(4, random_state=0).fit(X)
    assert model.selection_.view.startswith(NORM_ONE)
    fixed = TuckerClustering(4, random_state=0).fit(X)
    found, before = (adjusted_rand_score(one.labels_[1:], y[1:]) for one in (model, fixed))
    assert found > 0.95
    assert found >= before
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.centroids_.shape == (4, *shape)
    one = np.asarray(X[model.labels_ == 0]).mean(axis=0)
    np.testing.assert_allclose(model.centroids_[0], one, rtol=1e-6)


@pytest.mark.parametrize("shape", [(40,), (6, 5, 4)])
def test_samples_of_norm_1_are_saved_labelled_and_weighed(tmp_path, shape):
    X, _ = amounts(shape)
    X[1:5] = np.random.default_rng(1).uniform(0, X.max(), (4, *shape)) ** 4
    model = AutoClustering(4, outliers="label", calibrate=True, random_state=0).fit(X)
    assert model.selection_.view.startswith(NORM_ONE)
    assert (model.labels_[1:5] == -1).all()
    assert np.mean(model.labels_[5:] == -1) < 0.1
    P = model.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    tuckermix.save(model, tmp_path / "model")
    again = tuckermix.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    np.testing.assert_array_equal(again.predict_proba(X), P)
    np.testing.assert_array_equal(again.centroids_, model.centroids_)
    np.testing.assert_allclose(again.outlier_scores(X), model.outlier_scores(X), rtol=1e-6)
    assert again.selection_ == model.selection_
    # What differs in brightness only is the same to it.
    np.testing.assert_array_equal(model.predict(3.0 * X), model.labels_)


def test_samples_of_norm_1_in_torch():
    torch = pytest.importorskip("torch")
    X, _ = amounts((6, 5, 4))
    truth = AutoClustering(4, random_state=0).fit(X)
    moved = clone(truth).fit(torch.asarray(X))
    assert moved.selection_.view.startswith(NORM_ONE)
    assert isinstance(moved.labels_, torch.Tensor)
    assert adjusted_rand_score(moved.labels_.numpy(), truth.labels_) > 0.99


def test_samples_of_norm_1_in_dask(limits):
    dask = pytest.importorskip("dask.array")
    X, y = amounts((6, 5, 4))
    limits(landmarks=60)
    model = AutoClustering(4, max_samples=100, random_state=0)
    model.fit(dask.from_array(X, chunks=(30, 6, 5, 4)))
    assert model.selection_.view.startswith(NORM_ONE)
    assert adjusted_rand_score(np.asarray(model.labels_)[1:], y[1:]) > 0.9
    np.testing.assert_array_equal(np.asarray(model.predict(X)), np.asarray(model.labels_))
