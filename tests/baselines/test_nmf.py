"""What the four nonnegative matrix factorisations have in common."""

import itertools
import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import (
    check_clustering,
    check_dataframe_column_names_consistency,
    check_inplace_ensure_writeable,
    check_set_output_transform,
    check_transformer_get_feature_names_out,
)
from tests.cases import each

from tuckermix._records import StopReason
from tuckermix.baselines import (
    AlternatingNMF,
    BayesianNMF,
    MultiplicativeNMF,
    ProjectedGradientNMF,
)
from tuckermix.baselines.nonnegative import normalize_components

ESTIMATORS = {
    "multiplicative": (MultiplicativeNMF, {}),
    "anls": (AlternatingNMF, {}),
    "truncated": (AlternatingNMF, {"variant": "truncated"}),
    "obs": (AlternatingNMF, {"variant": "obs"}),
    "gibbs": (BayesianNMF, {"max_iter": 200}),
    "icm": (BayesianNMF, {"method": "icm"}),
    "projected-gradient": (ProjectedGradientNMF, {}),
}

# Runs that stop at max_iter say so; that is tested once, below.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(params=ESTIMATORS, ids=str)
def make(request):
    """Build an estimator of each kind."""
    cls, settings = ESTIMATORS[request.param]
    return lambda **extra: cls(**{**settings, **extra})


def planted(seed, n_clusters=4, per_cluster=15, shape=(6, 5), noise=0.05):
    """Nonnegative samples around well separated nonnegative images, of varying brightness."""
    rng = np.random.default_rng(seed)
    images = rng.random((n_clusters, *shape)) * (rng.random((n_clusters, *shape)) < 0.4)
    labels = np.repeat(np.arange(n_clusters), per_cluster)
    brightness = rng.uniform(0.8, 1.2, size=(len(labels), *(1 for _ in shape)))
    X = brightness * images[labels] + noise * rng.random((len(labels), *shape))
    order = rng.permutation(len(labels))
    return X[order], labels[order]


CLASSES = (MultiplicativeNMF, AlternatingNMF, BayesianNMF, ProjectedGradientNMF)


def test_scikit_learn_clustering_check_on_shifted_data(make):
    class Shifted(type(make())):
        def fit(self, X, y=None):
            X = np.asarray(X)
            return super().fit(X - X.min())

    settings = make(max_iter=100).get_params()
    check_clustering("Shifted", Shifted(**settings), readonly_memmap=True)


def test_blobs_do_not_depend_on_a_lucky_seed(make, seed):
    X, labels = make_blobs(50, random_state=1)
    model = make(n_clusters=3, max_iter=50, random_state=seed).fit(X - X.min())
    assert adjusted_rand_score(labels, model.labels_) > 0.4  # what scikit-learn asks for


def test_further_scikit_learn_checks(make):
    for check in (
        check_transformer_get_feature_names_out,
        check_set_output_transform,
        check_dataframe_column_names_consistency,
        check_inplace_ensure_writeable,
    ):
        estimator = make(max_iter=10, n_clusters=2)
        check(type(estimator).__name__, estimator)


def test_planted_clusters_are_recovered(make, seed):
    X, labels = planted(seed)
    model = make(n_clusters=4, n_init=2, max_iter=60, random_state=seed).fit(X)
    assert adjusted_rand_score(labels, model.labels_) == 1.0


def test_argmax_recovers_planted_clusters(make, seed):
    X, labels = planted(seed)
    model = make(n_clusters=4, n_init=3, max_iter=200, assign_labels="argmax", random_state=seed)
    assert adjusted_rand_score(labels, model.fit_predict(X)) > 0.9
    np.testing.assert_array_equal(model.predict(X), np.argmax(model.memberships_, axis=1))


def test_order_of_the_tensor_does_not_matter(make, seed):
    X, _ = planted(seed)
    flat = make(n_clusters=4, max_iter=30, random_state=seed).fit(X.reshape(60, -1))
    deep = make(n_clusters=4, max_iter=30, random_state=seed).fit(X.reshape(60, 3, 2, 5))
    np.testing.assert_array_equal(flat.labels_, deep.labels_)
    np.testing.assert_allclose(deep.components_.reshape(4, -1), flat.components_)
    assert deep.components_.shape == deep.centroids_.shape == (4, 3, 2, 5)
    assert deep.sample_shape_ == (3, 2, 5)


def test_fit_agrees_with_transform_and_predict(make, seed):
    X, _ = planted(seed)
    model = make(n_clusters=4, max_iter=50, random_state=seed)
    memberships = model.fit_transform(X)
    np.testing.assert_allclose(model.transform(X), memberships, atol=1e-10)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    rebuilt = model.inverse_transform(memberships)
    assert rebuilt.shape == X.shape
    assert model.score(X) == pytest.approx(-np.mean((X - rebuilt) ** 2))
    centres = np.stack([rebuilt[model.labels_ == k].mean(axis=0) for k in range(4)])
    np.testing.assert_allclose(model.centroids_, centres, atol=1e-10)


def test_components_have_unit_norm_and_all_is_nonnegative(make, seed):
    X, _ = planted(seed)
    model = make(n_clusters=4, max_iter=30, random_state=seed).fit(X)
    assert model.components_.min() >= 0
    assert model.memberships_.min() >= 0
    norms = np.linalg.norm(model.components_.reshape(4, -1), axis=1)
    if not isinstance(model, BayesianNMF):  # a mean of unit vectors is shorter
        np.testing.assert_allclose(norms, 1.0)


def test_history_starts_with_the_start(make):
    X, _ = planted(0)
    model = make(n_clusters=4, max_iter=20, tol=0, random_state=0).fit(X)
    steps = model.history_
    assert [step.iteration for step in steps] == list(range(len(steps)))
    assert len(steps) >= model.n_iter_ + 1 == 21
    assert steps[-1].cost == model.cost_ < steps[0].cost
    assert all(later.time >= earlier.time for earlier, later in pairwise(steps))
    for step in steps:
        assert step.relative_error == pytest.approx(np.sqrt(2 * step.cost) / np.linalg.norm(X))
        assert np.isnan(step["gap"])


def test_cost_is_that_of_the_model_or_above(make):
    """The final memberships are exact, so that the model can only fit better than the last pair."""
    X, _ = planted(1)
    model = make(n_clusters=4, max_iter=30, random_state=0).fit(X)
    rebuilt = model.inverse_transform(model.memberships_)
    assert 0.5 * np.sum((X - rebuilt) ** 2) <= model.cost_ * (1 + 1e-10)


@each("scale", [1e-150, 1e150])
def test_scale_of_the_data_does_not_matter(make, scale):
    X, _ = planted(0)
    base = make(n_clusters=4, max_iter=40, random_state=0).fit(X)
    model = make(n_clusters=4, max_iter=40, random_state=0).fit(scale * X)
    np.testing.assert_array_equal(model.labels_, base.labels_)
    np.testing.assert_allclose(model.components_, base.components_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.memberships_ / scale, base.memberships_, rtol=1e-4, atol=1e-4)


DEGENERATE = {
    "zeros": np.zeros((12, 4, 3)),
    "constant": np.ones((12, 4, 3)),
    "zero rows and columns": np.pad(planted(0, 3, 4, (2, 2))[0], ((0, 4), (0, 2), (0, 1))),
    "rank one": np.outer(np.arange(1.0, 13.0), np.arange(6.0)),
    "one feature": np.arange(12.0)[:, None],
    "two distinct": np.repeat(np.eye(2), 6, axis=0),
    "tiny": 1e-300 * planted(0, 3, 4)[0],
}


def test_degenerate_data_give_finite_results(make):
    for data, n_clusters in itertools.product(DEGENERATE.values(), (1, 3, 10)):
        with np.errstate(all="raise", under="ignore"):
            model = make(n_clusters=n_clusters, max_iter=20, random_state=0).fit(data)
        for name in ("memberships_", "components_", "centroids_", "membership_centers_"):
            assert np.all(np.isfinite(getattr(model, name))), name
        assert np.isfinite(model.cost_)
        np.testing.assert_array_equal(np.unique(model.labels_), np.arange(n_clusters))
        assert set(model.predict(data)) <= set(range(n_clusters))


def test_negative_data_are_refused(make):
    X, _ = planted(0)
    X[3, 2, 1] = -0.1
    with pytest.raises(ValueError, match=r"Negative values in data passed to .*NMF"):
        make(n_clusters=2).fit(X)
    model = make(n_clusters=2, max_iter=5).fit(np.abs(X))
    with pytest.raises(ValueError, match=r"Negative values in data passed to .*NMF"):
        model.predict(X)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"n_clusters": 0}, "'n_clusters' parameter of .* must be an integer >= 1. Got 0"),
        ({"n_init": 1.5}, "'n_init' parameter of .* must be an integer >= 1. Got 1.5"),
        ({"max_iter": -1}, "'max_iter' parameter of .* must be an integer >= 1. Got -1"),
        ({"tol": -1.0}, "'tol' parameter of .* must be a number >= 0. Got -1.0"),
        ({"assign_labels": "graph"}, "must be one of 'kmeans', 'argmax'. Got 'graph'"),
        ({"n_clusters": 61}, r"n_samples=60 must be >= n_clusters=61\."),
    ],
)
def test_parameters_are_checked(settings, text):
    with pytest.raises(ValueError, match=text):
        AlternatingNMF(**settings).fit(planted(0)[0])


def test_float32_stays_float32(make):
    X, labels = planted(0)
    model = make(n_clusters=4, n_init=2, max_iter=100, random_state=0).fit(X.astype(np.float32))
    assert model.memberships_.dtype == model.components_.dtype == np.float32
    assert model.transform(X.astype(np.float32)).dtype == np.float32
    assert model.labels_.dtype == np.int64
    assert adjusted_rand_score(labels, model.labels_) > 0.6


def test_results_follow_the_library_of_the_data(make, xp):
    X, _ = planted(0)
    expected = make(n_clusters=4, max_iter=20, random_state=0).fit(X)
    model = make(n_clusters=4, max_iter=20, random_state=0).fit(xp.asarray(X))
    data = xp.asarray(X)
    for result in (model.memberships_, model.components_, model.transform(data)):
        assert type(result) is type(data)
    np.testing.assert_array_equal(np.asarray(model.labels_), expected.labels_)
    np.testing.assert_array_equal(np.asarray(model.predict(data)), expected.predict(X))
    assert type(model.inverse_transform(model.memberships_)) is type(data)


def test_more_starts_never_cost_more(make):
    X, _ = planted(3, noise=0.5)
    one = make(n_clusters=5, max_iter=25, random_state=7).fit(X)
    many = make(n_clusters=5, max_iter=25, random_state=7, n_init=4).fit(X)
    assert many.cost_ <= one.cost_


def test_random_states(make):
    X, _ = planted(0, noise=0.5)
    fits = [
        make(n_clusters=3, max_iter=10, random_state=state).fit(X).memberships_
        for state in (5, 5, np.random.default_rng(5), np.random.RandomState(5))
    ]
    np.testing.assert_array_equal(fits[0], fits[1])
    np.testing.assert_array_equal(fits[0], fits[2])
    assert fits[3].shape == fits[0].shape


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["multiplicative", "anls", "icm", "projected-gradient"])
def test_reaching_max_iter_is_said(name):
    cls, settings = ESTIMATORS[name]
    X, _ = planted(0, noise=0.5)
    text = r"NMF stopped after max_iter=10 with .* > tol=1e-12\. Raise max_iter or loosen tol\."
    with pytest.warns(ConvergenceWarning, match=text):
        model = cls(4, **settings, max_iter=10, tol=1e-12, random_state=0).fit(X)
    assert model.stop_reason_ is StopReason.MAX_ITER
    assert model.n_iter_ == 10
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # tol=0 asks for all iterations: nothing to say
        cls(4, **settings, max_iter=10, tol=0, random_state=0).fit(X)


def test_normalize_components_keeps_the_product():
    rng = np.random.default_rng(0)
    W, H = rng.random((5, 3)), rng.random((3, 4))
    H[1] = 0
    left, right = normalize_components(W, H)
    np.testing.assert_allclose(left @ right, W @ H)
    np.testing.assert_allclose(np.linalg.norm(right, axis=1), [1, 0, 1])
