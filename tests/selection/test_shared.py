"""Features that views share."""

import numpy as np
import pytest
from sklearn.pipeline import Pipeline, make_pipeline

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
