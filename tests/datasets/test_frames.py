import numpy as np
import pytest

from tuckermix import TuckerClustering
from tuckermix.datasets import labels_like, make_tensor_clusters


@pytest.fixture(scope="module")
def data():
    return make_tensor_clusters(40, (6, 5), 3, noise=0.05, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return TuckerClustering(3, random_state=0).fit(data.X)


def test_data_frames_in_and_their_index_out(data):
    pandas = pytest.importorskip("pandas")
    flat = data.X.reshape(40, -1)
    frame = pandas.DataFrame(flat, index=[f"scan {index}" for index in range(40)])
    fitted = TuckerClustering(3, random_state=0).fit(frame)
    plain = TuckerClustering(3, random_state=0).fit(flat)
    assert isinstance(fitted.labels_, np.ndarray)
    assert np.array_equal(fitted.labels_, plain.labels_)
    labels = labels_like(fitted.labels_, frame)
    assert labels.name == "label"
    assert labels["scan 7"] == plain.labels_[7]
    soft = labels_like(fitted.predict_proba(frame), frame)
    assert soft.index.equals(frame.index)
    np.testing.assert_allclose(soft.to_numpy(), plain.predict_proba(flat))
    # Frames align by index: a part in another order finds its own labels.
    part = frame.iloc[[9, 3]]
    assert labels_like(fitted.predict(part), part).equals(labels[part.index])


def test_data_arrays_in_and_their_coordinates_out(data, model):
    xarray = pytest.importorskip("xarray")
    X = xarray.DataArray(
        data.X,
        dims=("scan", "y", "x"),
        coords={
            "scan": [f"s{index}" for index in range(40)],
            "dose": ("scan", np.arange(40.0)),
            "x": np.arange(5),
        },
    )
    fitted = TuckerClustering(3, random_state=0).fit(X)
    assert np.array_equal(fitted.labels_, model.labels_)
    labels = labels_like(fitted.labels_, X)
    assert labels.dims == ("scan",)
    assert set(labels.coords) == {"scan", "dose"}
    assert labels.sel(scan="s7") == model.labels_[7]
    soft = labels_like(fitted.predict_proba(X), X)
    assert soft.dims == ("scan", "cluster")
    np.testing.assert_allclose(soft.sum("cluster"), 1)
    # An axis that is called so has the samples, wherever it is.
    last = X.rename(scan="sample").transpose("y", "x", "sample")
    again = TuckerClustering(3, random_state=0).fit(last)
    assert np.array_equal(again.labels_, model.labels_)
    assert labels_like(again.labels_, last).dims == ("sample",)
    # What was computed from the samples goes by label.
    assert X.groupby(labels).mean().sizes["label"] == 3


def test_arrays_stay_arrays(data, model):
    assert labels_like(model.labels_, data.X) is model.labels_


@pytest.mark.parametrize("shape", [(39,), (40, 3, 2), ()])
def test_labels_of_other_samples_are_refused(data, shape):
    with pytest.raises(ValueError, match=r"labels has shape .* but X has 40 samples"):
        labels_like(np.zeros(shape), data.X)
