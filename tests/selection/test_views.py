"""What a candidate looks at."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline

from tuckermix import MultiViewClustering, TuckerClustering
from tuckermix.features import Scale
from tuckermix.labels import GraphLabels
from tuckermix.selection.views import looks_of, ridge_points, rotated, spectrum_of


@pytest.mark.parametrize(("edge", "power"), [(4.0, 1.0), (3.0, 0.5), (1.0, 2.0)])
def test_points_are_those_of_the_estimator(planted, edge, power):
    # With full ranks both see the same subspace, and places may differ by a rotation only.
    X, _ = planted
    graph = GraphLabels(ridge_edge=edge, ridge_power=power)
    model = TuckerClustering(4, ranks=16, assign_labels=graph, random_state=0).fit(X)
    Z = model.place(X)
    ours = ridge_points(spectrum_of(X, 16), round(4 * edge), power)
    np.testing.assert_allclose(ours @ ours.T, Z @ Z.T, atol=1e-6)


def test_the_spectrum_is_that_of_the_centred_samples(planted):
    X, _ = planted
    rows = X.reshape(len(X), -1)
    for part in (rows, rows[:, :40]):  # wide and tall
        found = spectrum_of(part, part.shape[1])
        truth = np.linalg.svd(part - part.mean(axis=0), compute_uv=False)
        np.testing.assert_allclose(found.values, truth[: len(found.values)], rtol=1e-6)
        gram = found.vectors.T @ found.vectors
        np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-6)


def test_equal_samples_have_one_place():
    Z = ridge_points(spectrum_of(np.ones((5, 4, 4)), None), 8, 1.0)
    np.testing.assert_allclose(Z, Z[:1].repeat(5, axis=0))


def test_looks_of_candidates():
    plain = TuckerClustering(assign_labels=GraphLabels(ridge_edge=2.0, ridge_power=0.5))
    scaled = make_pipeline(Scale("unit"), TuckerClustering())
    assert looks_of(plain)[0].weighting == (2.0, 0.5)
    assert looks_of(plain)[0].transformers is None
    assert looks_of(scaled)[0].features != looks_of(plain)[0].features
    both = looks_of(MultiViewClustering([("a", plain), ("b", scaled)]))
    assert [look.features for look in both] == [
        looks_of(plain)[0].features,
        looks_of(scaled)[0].features,
    ]


@pytest.mark.parametrize(
    "estimator",
    [
        KMeans(),
        TuckerClustering(assign_labels="subspace"),
        make_pipeline(Scale(), KMeans()),
        MultiViewClustering([("a", TuckerClustering()), ("b", KMeans())]),
    ],
)
def test_others_have_a_label_step_of_their_own(estimator):
    assert looks_of(estimator) is None


@pytest.mark.parametrize("widths", [[5], [5, 8], [30, 39]])
def test_rotations_keep_what_spectra_have_in_common(widths):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 45))
    spectra = [spectrum_of(X[:, :width], width) for width in widths]
    turned = rotated(spectra, rng)
    for before, after in zip(spectra, turned, strict=True):
        np.testing.assert_array_equal(after.values, before.values)
        np.testing.assert_allclose(after.vectors.mean(axis=0), 0.0, atol=1e-10)
        assert np.abs(after.vectors - before.vectors).max() > 0.1
        for one, other in zip(spectra, turned, strict=True):
            gram = one.vectors.T @ before.vectors
            np.testing.assert_allclose(other.vectors.T @ after.vectors, gram, atol=1e-10)
