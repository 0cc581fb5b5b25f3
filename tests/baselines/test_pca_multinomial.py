"""The paper's recipe: what it does, what it records, what it takes."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from tuckermix import decompose
from tuckermix._records import StopReason
from tuckermix.baselines import PCAMultinomial
from tuckermix.datasets import make_tensor_clusters
from tuckermix.decomposition import alternating
from tuckermix.metrics import clustering_accuracy
from tuckermix.numerics.tensor import tucker_to_tensor


def _noise(seed, shape=(7, 6), n_samples=40):
    return np.random.default_rng(seed).standard_normal((n_samples, *shape))


def test_the_calls_are_those_of_the_paper():
    with (
        mock.patch.object(alternating, "trust_region", wraps=alternating.trust_region) as call,
        mock.patch.object(
            alternating, "update_factors", wraps=alternating.update_factors
        ) as factors,
        pytest.warns(ConvergenceWarning),
    ):
        PCAMultinomial(3, ranks=2, max_iter=4, tol=1e-12, random_state=0).fit(_noise(0))
    options = [entry.kwargs for entry in call.call_args_list]
    assert [entry["max_iter"] for entry in options] == [1000, 5, 5, 5]
    for entry in options:
        assert entry["max_inner"] == 30
        assert entry["tol"] == 1e-6
        assert (entry["max_radius"], entry["initial_radius"]) == (None, None)
        assert entry["preconditioner"] is None
    assert [entry.kwargs["n_loops"] for entry in factors.call_args_list] == [2] * 4


@pytest.mark.parametrize("init", ["hosvd", "hosvd-samples", "random"])
def test_the_model_fits_together(init, seed):
    X = _noise(seed)
    model = PCAMultinomial(4, ranks=(3, 2), init=init, tol=1e-4, random_state=seed).fit(X)
    U = model.memberships_
    assert (U > 0).all()
    np.testing.assert_allclose(U.sum(axis=1), 1.0, rtol=1e-12)
    rebuilt = tucker_to_tensor(model.core_, model.factors_, U)
    assert model.cost_ == pytest.approx(0.5 * np.sum((X - rebuilt) ** 2), rel=1e-9)
    np.testing.assert_allclose(model.inverse_transform(U), rebuilt, atol=1e-10)
    last = model.history_[-1]
    assert last.relative_error == pytest.approx(
        np.linalg.norm(X - rebuilt) / np.linalg.norm(X), rel=1e-9
    )
    assert (last.gap, len(model.history_)) == (model.gap_, model.n_iter_ + 1)
    assert model.ranks_ == (3, 2)


def test_weights_of_samples_are_the_memberships_at_the_optimum(seed):
    X = _noise(seed)
    model = PCAMultinomial(4, ranks=(3, 2), tol=1e-9, random_state=seed).fit(X)
    assert model.gap_ < 1e-7
    weights = model.transform(X)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(weights, model.memberships_, atol=2e-2)
    # No convex combination of the components comes closer to a sample than these.
    errors = np.sum((X - model.inverse_transform(weights)) ** 2, axis=(1, 2))
    fitted = np.sum((X - model.inverse_transform(model.memberships_)) ** 2, axis=(1, 2))
    assert np.all(errors <= fitted * (1 + 1e-6))


def test_the_curve_starts_with_the_decomposition(seed):
    """The error of an orthonormal sample factor cannot be reached for the same factors."""
    model = PCAMultinomial(4, ranks=(7, 6), random_state=seed).fit(_noise(seed))
    start, first = model.history_[0].relative_error, model.history_[1].relative_error
    assert start < first
    random = PCAMultinomial(4, ranks=(7, 6), init="random", random_state=seed).fit(_noise(seed))
    assert random.history_[0].relative_error > random.history_[1].relative_error


def test_it_comes_close_to_the_exact_solver(seed):
    X = _noise(seed)
    model = PCAMultinomial(4, ranks=(3, 2), tol=1e-8, random_state=seed).fit(X)
    assert model.cost_ <= decompose(X, 4, (3, 2), tol=1e-9).cost * 1.02


@pytest.mark.parametrize("shape", [(8, 7), (5, 4, 3)])
def test_planted_clusters_are_found(shape):
    found = []
    for seed in range(4):
        data = make_tensor_clusters(50, shape, 3, spread=0.2, random_state=seed)
        model = PCAMultinomial(3, ranks=3, random_state=seed).fit(data.X)
        found.append(clustering_accuracy(data.labels, model.labels_))
        assert np.mean(model.predict(data.X) == model.labels_) > 0.9
    assert np.mean(found) > 0.9


def test_awkward_data_give_finite_results(edge):
    X, n_clusters = edge
    model = PCAMultinomial(n_clusters, max_iter=4, tol=1e-3, random_state=0).fit(X)
    arrays = (model.memberships_, model.core_, model.components_, model.cost_, *model.factors_)
    assert all(np.all(np.isfinite(value)) for value in arrays)
    assert np.all(np.isfinite(model.transform(X)))
    np.testing.assert_array_equal(np.unique(model.labels_), np.arange(n_clusters))


def test_stop_reasons_and_seeds(seed):
    X = _noise(seed)
    model = PCAMultinomial(3, ranks=2, random_state=seed).fit(X)
    assert model.stop_reason_ is StopReason.TOLERANCE
    again = PCAMultinomial(3, ranks=2, random_state=seed).fit(X)
    np.testing.assert_array_equal(model.memberships_, again.memberships_)
    with pytest.warns(ConvergenceWarning, match="PCAMultinomial stopped after max_iter=1"):
        PCAMultinomial(3, ranks=2, max_iter=1, tol=1e-9, init="random", random_state=0).fit(X)


def test_random_starts_keep_the_best():
    X = _noise(0)
    one = PCAMultinomial(3, ranks=2, init="random", tol=1e-3, random_state=1).fit(X)
    many = PCAMultinomial(3, ranks=2, init="random", tol=1e-3, n_init=4, random_state=1).fit(X)
    assert many.cost_ <= one.cost_


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match="'init' parameter of PCAMultinomial must be one of"):
        PCAMultinomial(2, init="zeros").fit(_noise(0))
    with pytest.raises(ValueError, match="The 'ranks' parameter of PCAMultinomial must be"):
        PCAMultinomial(2, ranks=(2, 2, 2)).fit(_noise(0))


def test_factors_first_with_memberships_of_kmeans(seed):
    """The paper's Remark 3: the first record is that of k-means and the best factors for it."""
    X = make_tensor_clusters(60, (7, 6), 3, spread=0.2, random_state=seed).X
    model = PCAMultinomial(3, ranks=(3, 2), init="kmeans", random_state=seed).fit(X)
    usual = PCAMultinomial(3, ranks=(3, 2), random_state=seed).fit(X)
    assert model.cost_ == pytest.approx(usual.cost_, rel=1e-3)
    errors = [record.relative_error for record in model.history_]
    assert np.all(np.diff(errors) <= 1e-12)
    means = np.stack([X[model.labels_ == k].mean(axis=0) for k in range(3)])
    assert errors[0] <= np.linalg.norm(X) ** -1 * np.linalg.norm(X - means[model.labels_]) + 0.1
    assert errors[0] >= errors[-1]
