"""Features that views share."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import Pipeline, make_pipeline

import tuckermix
from tuckermix import AutoClustering
from tuckermix.features import Scale, Scattering
from tuckermix.selection import shared
from tuckermix.selection.shared import Features


@pytest.fixture
def images():
    return np.random.default_rng(0).random((6, 16, 16)).astype(np.float32)


@pytest.fixture
def transforms(monkeypatch):
    """Note which transforms are computed."""
    calls, known = [], Scattering.transform

    def transform(self, X):
        calls.append(self.log)
        return known(self, X)

    monkeypatch.setattr(Scattering, "transform", transform)
    return calls


def pipelines():
    yield make_pipeline(Scattering(J=2))
    yield make_pipeline(Scattering(J=2, log=True))
    yield make_pipeline(Scattering(J=2, relative=True))
    yield make_pipeline(Scattering(J=1))
    yield make_pipeline(Scale(), Scattering(J=2, log=True))


@pytest.mark.parametrize("most", [2**29, 10])
def test_features_are_those_of_the_transformers(images, monkeypatch, most):
    monkeypatch.setattr(shared, "SHARED_BYTES", most)
    features = Features(images)
    assert features.fit_transform(None) is images
    for given, alone in zip(pipelines(), pipelines(), strict=True):
        np.testing.assert_array_equal(features.fit_transform(given), alone.fit_transform(images))
        # The transformers are fitted, and serve new samples.
        np.testing.assert_array_equal(given.transform(images[:2]), alone.transform(images[:2]))


def test_a_transform_and_its_logarithm_are_computed_once(images, transforms):
    features = Features(images)
    for _ in range(2):
        features.fit_transform(make_pipeline(Scattering(J=2, log=True)))
        features.fit_transform(make_pipeline(Scattering(J=2, relative=True)))
        features.fit_transform(Pipeline([("another name", Scattering(J=2))]))
    assert transforms == [False]


def test_of_many_samples_nothing_is_kept(images, transforms, monkeypatch):
    monkeypatch.setattr(shared, "SHARED_BYTES", 16 * images.size - 1)
    features = Features(images)
    for log in (True, False, True):
        features.fit_transform(make_pipeline(Scattering(J=2, log=log)))
    assert transforms == [True, False, True]


@pytest.fixture
def embedded():
    """Noise in place of images, and vectors of three kinds that belong to them."""
    rng = np.random.default_rng(0)
    classes = rng.permutation(np.repeat(np.arange(3), 25))
    E = 4 * np.eye(3, 8)[classes] + rng.standard_normal((75, 8))
    return rng.random((75, 16, 16)), E, classes


@pytest.mark.parametrize("max_samples", [1500, 40])
def test_embeddings_are_a_view(embedded, tmp_path, max_samples):
    X, E, classes = embedded
    model = AutoClustering(3, features="pixels", max_samples=max_samples, random_state=0)
    model.fit(X, embeddings=E)
    assert model.selection_.view == "embeddings"
    assert adjusted_rand_score(classes, model.labels_) > 0.9
    assert model.centroids_.shape == (3, 16, 16)
    np.testing.assert_array_equal(model.predict(X, embeddings=E), model.labels_)
    assert model.predict_proba(X[:5], embeddings=E[:5]).shape == (5, 3)
    assert model.transform(X[:5], embeddings=E[:5]).shape[0] == 5
    assert model.outlier_scores(X[:5], embeddings=E[:5]).shape == (5,)
    tuckermix.save(model, tmp_path / "model")
    again = tuckermix.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X, embeddings=E), model.labels_)
    np.testing.assert_array_equal(again.centroids_, model.centroids_)
    with pytest.raises(ValueError, match=r"AutoClustering\.predict\(\) needs embeddings"):
        again.predict(X)


def test_embeddings_that_are_not_chosen_are_not_needed(embedded):
    X, E, classes = embedded
    X = X + 2 * np.eye(3, 16)[classes][:, :, None]
    noise = np.random.default_rng(1).standard_normal(E.shape)
    model = AutoClustering(3, features="pixels", random_state=0).fit(X, embeddings=noise)
    assert "embeddings" in model.selection_.views
    assert model.selection_.view != "embeddings"
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.predict(X, embeddings=noise), model.labels_)


def test_embeddings_may_be_maps_and_lists(embedded):
    X, E, _ = embedded
    model = AutoClustering(3, features="pixels", random_state=0)
    labels = model.fit_predict(X, embeddings=E.tolist())
    np.testing.assert_array_equal(model.fit(X, embeddings=E.reshape(75, 2, 2, 2)).labels_, labels)


@pytest.mark.parametrize("rows", [(74, 8), (75,)])
def test_embeddings_have_a_row_for_each_sample(embedded, rows):
    X = embedded[0]
    with pytest.raises(ValueError, match="a row for each of the 75 samples"):
        AutoClustering(3).fit(X, embeddings=np.zeros(rows))
