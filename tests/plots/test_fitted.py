import numpy as np
import pytest

from tuckermix import TuckerClustering, plots
from tuckermix.plots.fitted import (
    as_fitted,
    distances_to,
    even_subsample,
    labels_of,
    subspace_of,
)


@pytest.fixture(scope="module")
def real(digits):
    return TuckerClustering(3, random_state=0).fit(digits[0])


def test_distances_are_euclidean(digits, model):
    X, _ = digits
    expected = np.linalg.norm((X - model.centroids_[model.labels_]).reshape(len(X), -1), axis=1)
    np.testing.assert_allclose(distances_to(X, model.centroids_, model.labels_), expected)


def test_new_samples_are_labelled_first(digits, model):
    X, _ = digits
    np.testing.assert_array_equal(labels_of(model, X[:7], "it"), model.predict(X[:7]))


def test_estimator_that_cannot_predict_needs_its_own_samples():
    from sklearn.cluster import AgglomerativeClustering

    fitted = AgglomerativeClustering(2).fit(np.eye(5))
    with pytest.raises(ValueError, match="needs the samples that the Agglomerative"):
        labels_of(fitted, np.eye(4), "MapDisplay")


def test_subspace_of_the_estimator_is_preferred(digits, model):
    class WithSubspace(type(model)):
        def place(self, X):
            return np.full((len(X), 5), 7.0)

    other = WithSubspace(3).fit(*digits)
    assert (subspace_of(other, digits[0]) == 7).all()
    assert subspace_of(model, digits[0]).shape == (len(digits[0]), 3)


@pytest.mark.parametrize(("n", "limit"), [(5, 10), (10, 10), (11, 10), (1000, 7)])
def test_subsample_is_even_and_never_too_large(n, limit):
    chosen = even_subsample(n, limit)
    assert len(chosen) == min(n, limit)
    assert chosen[0] == 0
    assert chosen[-1] == n - 1
    assert np.ptp(np.diff(chosen)) <= 1


# Maps of a scene and the choice of K belong to other models; they have tests of their own.
DRAWN = [name for name in plots.__all__ if name not in ("AbundanceDisplay", "SelectionDisplay")]


def draw_all(model, X, y):
    """Draw every display of a fitted model."""
    for name in DRAWN:
        make = getattr(plots, name).from_estimator
        yield make(model, X, y) if name == "ConfusionDisplay" else make(model, X)


def test_every_display_draws_the_real_estimator(real, digits):
    for display in draw_all(real, *digits):
        assert display.figure_ is display.ax_.figure
        assert display.ax_.get_title()


@pytest.mark.torch
def test_models_of_other_libraries_are_drawn_with_samples_of_either(digits):
    torch = pytest.importorskip("torch")
    X = torch.as_tensor(digits[0])
    model = TuckerClustering(3, random_state=0).fit(X)
    assert isinstance(as_fitted(model, digits[0]), torch.Tensor)
    for samples in (X, digits[0]):
        assert len(list(draw_all(model, samples, digits[1]))) == len(DRAWN)
