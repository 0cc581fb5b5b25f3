"""The methods of a fitted estimator."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tuckermix import TuckerClustering
from tuckermix.datasets import make_tensor_clusters
from tuckermix.labels import METHODS


def planted(seed, shape=(6, 7)):
    return make_tensor_clusters(n_samples=120, shape=shape, n_clusters=4, random_state=seed).X


@pytest.mark.parametrize("shape", [(12,), (6, 7), (4, 5, 3)], ids=str)
@pytest.mark.parametrize("assign_labels", METHODS)
def test_labels_predictions_and_soft_labels_agree(shape, assign_labels, seed):
    X = planted(seed, shape)
    model = TuckerClustering(4, assign_labels=assign_labels, random_state=seed).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    soft = model.predict_proba(X)
    np.testing.assert_array_equal(soft.argmax(axis=1), model.labels_)
    np.testing.assert_allclose(soft.sum(axis=1), 1.0, atol=1e-12)
    assert set(model.labels_) == set(range(4))
    np.testing.assert_array_equal(clone(model).fit_predict(X), model.labels_)


def test_wrong_sample_shape_and_no_fit():
    X = planted(0)
    model = TuckerClustering(4, random_state=0)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.fit(X)
    for method in (model.predict, model.transform, model.predict_proba, model.score):
        with pytest.raises(ValueError, match=r"per-sample shape \(6, 5\), but this Tucker"):
            method(X[:, :, :5])
    with pytest.raises(ValueError, match=r"one column for each component .* Got \(3, 2\)"):
        model.inverse_transform(np.ones((3, 2)))


def test_output_can_be_a_data_frame():
    pd = pytest.importorskip("pandas")
    X = planted(0)
    model = TuckerClustering(4, random_state=0).set_output(transform="pandas")
    for frame in (model.fit_transform(X), model.transform(X)):
        assert isinstance(frame, pd.DataFrame)
        assert list(frame.columns) == list(model.get_feature_names_out())


@pytest.mark.parametrize("method", ["predict", "transform", "inverse_transform", "score"])
def test_libraries_and_devices_are_not_mixed(method):
    strict = pytest.importorskip("array_api_strict")
    X = make_tensor_clusters(60, (4, 5), 3, random_state=0).X
    model = TuckerClustering(3, random_state=0).fit(strict.asarray(X))
    given = model.memberships_ if method == "inverse_transform" else strict.asarray(X)
    elsewhere = given.to_device(strict.Device("device1"))
    for other in (np.asarray(given), elsewhere):
        with pytest.raises(ValueError, match=r"same namespace and device.*Move X there, or fit"):
            getattr(model, method)(other)
