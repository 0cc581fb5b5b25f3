"""The estimator: consistency of what it says, on arrays of every order."""

import pickle
import sys
import tracemalloc
import warnings
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from tests.cases import each

import tuckermix
from tuckermix import AutoClustering, TuckerClustering, clustering, decompose
from tuckermix._array_api import to_numpy
from tuckermix.datasets import make_tensor_clusters
from tuckermix.labels import LABELLINGS, GraphLabels
from tuckermix.sources import SpanSettings

SHAPES = {"2-D": (12,), "3-D": (6, 7), "4-D": (4, 5, 3)}


def planted(seed, shape=(6, 7), **options):
    return make_tensor_clusters(
        n_samples=120, shape=shape, n_clusters=4, random_state=seed, **options
    )


@pytest.fixture(params=SHAPES.values(), ids=SHAPES.keys())
def shape(request):
    return request.param


def test_planted_clusters_are_found(shape):
    for random_state in range(10):
        data = planted(random_state, shape)
        model = TuckerClustering(4, random_state=random_state).fit(data.X)
        assert adjusted_rand_score(data.labels, model.labels_) > 0.95


def test_mixing_weights_are_feasible_optimal_and_repeated_by_transform(shape, seed):
    X = planted(seed, shape).X
    model = TuckerClustering(4, random_state=seed).fit(X)
    U = model.memberships_
    assert np.all(U > 0)
    np.testing.assert_allclose(U.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(model.transform(X), U, atol=1e-8)
    np.testing.assert_allclose(clone(model).fit_transform(X), U, atol=1e-8)
    assert 0.0 <= model.gap_ < 1e-12
    rebuilt = model.inverse_transform(U)
    assert 0.5 * np.sum((X - rebuilt) ** 2) == pytest.approx(
        model.cost_, abs=1e-8 * 0.5 * np.sum(X**2)
    )
    assert model.score(X) == pytest.approx(-2 * model.cost_ / X.size, rel=1e-6)
    np.testing.assert_allclose(np.tensordot(U, model.components_, 1), rebuilt, atol=1e-10)


def test_fitted_attributes_have_their_shapes(shape):
    X = planted(0, shape).X
    model = TuckerClustering(4, ranks=2, random_state=0).fit(X)
    assert model.n_components_ <= 9
    assert model.ranks_ == (2,) * len(shape)
    assert model.core_.shape == (model.n_components_, *model.ranks_)
    assert model.components_.shape == (model.n_components_, *shape)
    assert model.centroids_.shape == (4, *shape)
    assert [factor.shape for factor in model.factors_] == [(size, 2) for size in shape]
    assert model.sample_shape_ == shape
    assert model.n_features_in_ == shape[0]
    assert model.n_iter_ == len(model.history_) - 1
    assert model.stop_reason_.converged


def test_centroids_are_cluster_means_in_the_subspace(seed):
    data = planted(seed, noise=0.05)
    model = TuckerClustering(4, ranks=(6, 7), random_state=seed).fit(data.X)
    rebuilt = model.inverse_transform(model.memberships_)
    for k in range(4):
        np.testing.assert_allclose(
            model.centroids_[k], rebuilt[model.labels_ == k].mean(axis=0), atol=1e-8
        )


def test_order_two_equals_a_trailing_mode_of_size_one(seed):
    X = planted(seed, (12,)).X
    flat = TuckerClustering(4, random_state=0).fit(X)
    deep = TuckerClustering(4, random_state=0).fit(X[:, :, None])
    assert deep.cost_ == pytest.approx(flat.cost_, rel=1e-10)
    np.testing.assert_array_equal(flat.labels_, deep.labels_)


def test_permuting_samples_or_transposing_modes_only_renames_clusters(seed):
    X = planted(seed).X
    order = np.random.default_rng(seed).permutation(len(X))
    model = TuckerClustering(4, random_state=0).fit(X)
    permuted = TuckerClustering(4, random_state=0).fit(X[order])
    transposed = TuckerClustering(4, random_state=0).fit(X.transpose(0, 2, 1))
    assert adjusted_rand_score(model.labels_[order], permuted.labels_) == 1.0
    assert adjusted_rand_score(model.labels_, transposed.labels_) == 1.0


@pytest.mark.parametrize("scale", [1e-150, 1e-6, 1e6, 1e150])
def test_scale_changes_nothing_but_the_cost(scale, seed):
    X = planted(seed).X
    model = TuckerClustering(4, random_state=0).fit(X)
    scaled = TuckerClustering(4, random_state=0).fit(X * scale)
    np.testing.assert_array_equal(scaled.labels_, model.labels_)
    np.testing.assert_array_equal(scaled.predict(X * scale), model.labels_)
    assert scaled.cost_ / scale / scale == pytest.approx(model.cost_, rel=1e-6)
    np.testing.assert_allclose(scaled.transform(X * scale), model.memberships_, atol=1e-6)


@pytest.mark.parametrize(("scale", "cost"), [(1e-300, 0.0), (1e300, np.inf)])
def test_a_cost_outside_the_range_of_floats_stops_nothing(scale, cost, seed):
    X = planted(seed).X
    model = TuckerClustering(4, random_state=0).fit(X)
    expected = pytest.warns(RuntimeWarning, match="The cost of numbers") if cost else nullcontext()
    with expected:
        scaled = TuckerClustering(4, random_state=0).fit(X * scale)
    np.testing.assert_array_equal(scaled.labels_, model.labels_)
    np.testing.assert_array_equal(scaled.predict(X * scale), model.labels_)
    assert scaled.cost_ == cost


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_everything_follows_the_library_and_type_of_x(xp, dtype, seed):
    data = planted(seed)
    reference = TuckerClustering(4, random_state=0).fit(data.X)
    X = xp.asarray(data.X.astype(dtype))
    model = TuckerClustering(4, random_state=0).fit(X)
    for name in ("memberships_", "core_", "components_", "centroids_"):
        assert getattr(model, name).dtype == X.dtype
        assert type(getattr(model, name)) is type(X)
    assert type(model.labels_) is type(X)
    assert adjusted_rand_score(to_numpy(model.labels_), reference.labels_) == 1.0
    # In float32 the cost is a difference of two sums of squares, each good to about 1e-7.
    near = 1e-8 * reference.cost_ if dtype == np.float64 else 5e-7 * np.sum(data.X**2)
    assert model.cost_ == pytest.approx(reference.cost_, abs=near)
    assert model.transform(X).dtype == X.dtype
    assert model.predict_proba(X).dtype == X.dtype
    np.testing.assert_array_equal(to_numpy(model.predict(X)), to_numpy(model.labels_))


def test_samples_of_three_modes_in_every_library(xp, seed):
    data = make_tensor_clusters(120, (3, 4, 5), 3, random_state=seed)
    reference = TuckerClustering(3, random_state=0).fit(data.X)
    model = TuckerClustering(3, random_state=0).fit(xp.asarray(data.X))
    assert model.cost_ == pytest.approx(reference.cost_, rel=1e-8)
    np.testing.assert_array_equal(to_numpy(model.labels_), reference.labels_)


@pytest.mark.parametrize("n_clusters", [1, 2, 15])
def test_one_cluster_up_to_as_many_as_samples(n_clusters):
    X = np.random.default_rng(0).standard_normal((15, 3, 4))
    model = TuckerClustering(n_clusters, random_state=0).fit(X)
    assert set(model.labels_) == set(range(n_clusters))
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize(
    "X",
    [
        np.repeat(np.eye(3)[:, :, None], 4, axis=0),
        np.arange(12.0).reshape(12, 1),
    ],
    ids=["duplicates", "one feature"],
)
def test_degenerate_samples_are_clustered(X):
    model = TuckerClustering(3, random_state=0).fit(X)
    assert set(model.labels_) == {0, 1, 2}
    assert np.all(np.isfinite(model.memberships_))
    assert np.all(np.isfinite(model.centroids_))
    assert np.isfinite(model.cost_)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_equal_samples_cannot_be_told_apart(value):
    X = np.full((12, 4, 3), value)
    with pytest.warns(ConvergenceWarning, match="Only 1 of n_clusters=3 clusters have samples"):
        model = TuckerClustering(3, random_state=0).fit(X)
    assert set(model.labels_) == {0}
    np.testing.assert_allclose(model.centroids_, value, atol=1e-12)
    assert np.all(np.isfinite(model.memberships_))
    assert np.all(np.isfinite(model.centroids_))
    assert np.isfinite(model.cost_)


def test_all_zero_samples_among_others_and_duplicates_stay_together(seed):
    data = planted(seed)
    X = np.concatenate([data.X, data.X, np.zeros((10, *data.X.shape[1:]))])
    model = TuckerClustering(5, random_state=0).fit(X)
    np.testing.assert_array_equal(model.labels_[:120], model.labels_[120:240])
    assert len(set(model.labels_[240:])) == 1


def test_ring_around_a_blob():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 200)
    ring = 6 * np.column_stack([np.cos(angle), np.sin(angle)])
    X = np.concatenate([ring, np.zeros((100, 2))]) + 0.3 * rng.standard_normal((300, 2))
    truth = np.repeat([0, 1], [200, 100])
    model = TuckerClustering(2, random_state=0).fit(X)
    assert adjusted_rand_score(truth, model.labels_) > 0.95


@pytest.mark.parametrize("n_features", [1, 2])
def test_blobs_in_few_dimensions(n_features, seed):
    rng = np.random.default_rng(seed)
    centres = np.array([[-10.0, -10.0], [0.0, 10.0], [12.0, 0.0]])[:, :n_features]
    truth = np.repeat([0, 1, 2], [80, 40, 20])
    X = centres[truth] + rng.standard_normal((140, n_features))
    model = TuckerClustering(3, random_state=seed).fit(X)
    assert adjusted_rand_score(truth, model.labels_) > 0.95


@pytest.mark.parametrize("n_clusters", [5, 20, 50])
def test_groups_without_a_common_edge_are_found_exactly(n_clusters):
    rng = np.random.default_rng(n_clusters)
    truth = np.repeat(np.arange(n_clusters), 22)
    X = np.eye(n_clusters)[truth] + 0.01 * rng.standard_normal((len(truth), n_clusters))
    model = TuckerClustering(n_clusters, ranks=n_clusters, random_state=0).fit(X)
    assert adjusted_rand_score(truth, model.labels_) == 1.0


BAD_INPUT = {
    "NaN": (lambda X: np.where(X > 0, np.nan, X), "NaN"),
    "infinity": (lambda X: np.where(X > 0, np.inf, X), "infinity"),
    "complex": (lambda X: X + 1j, "Complex data not supported by .* complex128. Pass abs"),
    "object": (lambda X: np.array([["a", "b"]] * 9, dtype=object), "could not convert"),
    "empty": (lambda X: X[:0], "0 sample"),
    "no features": (lambda X: X[:, :0], "0 feature"),
    "1-D": (lambda X: X[:, 0, 0], r"Reshape your data: X\[None\] if it is one sample"),
    "a path": (lambda X: "photos", "X is the path 'photos': pass tuckermix.datasets.read"),
    "samples last": (lambda X: X[:3], r"clusters=4. X has shape .* np.moveaxis\(X, -1, 0\)"),
}


@each("case", BAD_INPUT)
def test_bad_input_gets_an_error_and_leaves_the_model_as_it_was(case):
    X = planted(0).X
    spoil, message = BAD_INPUT[case]
    model = TuckerClustering(4, random_state=0).fit(X)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.fit(spoil(X))
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)


def test_sparse_input_is_refused():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        TuckerClustering(2).fit(scipy_sparse.eye_array(5).tocsr())


@each(
    "options, message",
    [
        ({"n_clusters": 0}, "'n_clusters' parameter of TuckerClustering must be an integer >= 1"),
        ({"n_clusters": "auto"}, "AutoClustering chooses the number of clusters"),
        ({"n_clusters": 500}, "n_samples=120 must be >= n_clusters=500."),
        ({"n_components": 0}, "'n_components' parameter"),
        ({"ranks": (2, 2, 2)}, "'ranks' parameter"),
        ({"ranks": (2, 99)}, "rank 99 of feature mode 1 is larger than 7"),
        ({"solver": "sgd"}, "'solver' parameter of TuckerClustering must be one of 'exact'"),
        ({"init": "zeros"}, "'init' parameter"),
        ({"memberships": "loose"}, "'memberships' parameter"),
        ({"assign_labels": "votes"}, "'assign_labels' parameter"),
        ({"assign_labels": GraphLabels(n_neighbors=0)}, "'n_neighbors' parameter"),
        ({"n_init": 0}, "'n_init' parameter"),
        ({"max_iter": 0}, "'max_iter' parameter"),
        ({"tol": -1}, "'tol' parameter"),
        ({"random_state": -1}, "random_state must be >= 0"),
    ],
)
def test_bad_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        TuckerClustering(**options).fit(planted(0).X)


def test_too_few_sweeps_warn_with_the_numbers():
    X = np.random.default_rng(0).standard_normal((40, 8, 9))
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1 sweeps.*> tol=0"):
        TuckerClustering(3, ranks=2, max_iter=1, tol=0.0).fit(X)


def test_scikit_learn_tools_take_it():
    data = planted(0)
    pipeline = make_pipeline(FunctionTransformer(np.sqrt), TuckerClustering(4, random_state=0))
    labels = pipeline.fit_predict(np.abs(data.X))
    assert adjusted_rand_score(labels, pipeline.predict(np.abs(data.X))) == 1.0
    search = GridSearchCV(TuckerClustering(4, random_state=0), {"n_components": [2, 9]}, cv=2)
    search.fit(data.X)
    assert search.best_params_ == {"n_components": 9}
    model = TuckerClustering(4, random_state=0).set_output(transform="pandas").fit(data.X)
    frame = model.transform(data.X)
    assert list(frame.columns) == list(model.get_feature_names_out())
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(data.X), model.labels_)


@pytest.mark.parametrize("init", ["hosvd-samples", "random"])
def test_other_starts(init):
    data = planted(1)
    model = TuckerClustering(4, init=init, n_init=3, random_state=0).fit(data.X)
    assert adjusted_rand_score(data.labels, model.labels_) > 0.95


def test_same_cost_as_decompose():
    X = planted(0).X
    model = TuckerClustering(4, n_components=5, ranks=3, random_state=0).fit(X)
    assert model.cost_ == pytest.approx(decompose(X, 5, 3).cost, rel=1e-12)


def test_float_input_is_not_touched():
    X = planted(0).X
    copy = X.copy()
    X.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TuckerClustering(4, random_state=0).fit(X).predict(X)
    np.testing.assert_array_equal(X, copy)


@each("assign_labels", LABELLINGS)
def test_labels_predictions_and_soft_labels_agree(shape, assign_labels, seed):
    X = planted(seed, shape).X
    model = TuckerClustering(4, assign_labels=assign_labels, random_state=seed).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    soft = model.predict_proba(X)
    np.testing.assert_array_equal(soft.argmax(axis=1), model.labels_)
    np.testing.assert_allclose(soft.sum(axis=1), 1.0, atol=1e-12)
    assert set(model.labels_) == set(range(4))
    np.testing.assert_array_equal(clone(model).fit_predict(X), model.labels_)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("block_bytes", [2**9, 2**21])
def test_labels_of_tied_neighbours_are_predictions_in_any_blocks(dtype, block_bytes, seed, limits):
    """Points of a lattice have many neighbours at the same distance, and some voters are ties."""
    limits(block_bytes=block_bytes, block_samples=1)
    side = np.arange(9.0)
    X = np.stack(np.meshgrid(side, side, side[:3]), axis=-1).reshape(-1, 3).astype(dtype)
    X = X[np.random.default_rng(seed).permutation(len(X))]
    model = TuckerClustering(5, assign_labels=GraphLabels(n_neighbors=10), random_state=seed).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_landmarks_are_labelled_by_those_that_the_graph_knows(monkeypatch):
    X = planted(0).X
    expected = TuckerClustering(4, random_state=0).fit(X).labels_

    def asked(model, samples):
        raise AssertionError("neighbours are sought a second time")

    monkeypatch.setattr(clustering.Model, "assign", asked)
    model = TuckerClustering(4, random_state=0).fit(X)
    np.testing.assert_array_equal(model.labels_, expected)
    assert "voters" not in vars(model._model_.labeller)  # the model does not keep them
    for needs_more in (np.concatenate([X, X[:9]]), X):  # copies are no landmarks
        outliers = "keep" if len(needs_more) > len(X) else "label"
        with pytest.raises(AssertionError, match="a second time"):
            TuckerClustering(4, outliers=outliers, random_state=0).fit(needs_more)


def test_wrong_sample_shape_and_no_fit():
    X = planted(0).X
    model = TuckerClustering(4, random_state=0)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.fit(X)
    for method in (model.predict, model.transform, model.predict_proba, model.score):
        with pytest.raises(ValueError, match=r"per-sample shape \(6, 5\), but this Tucker"):
            method(X[:, :, :5])
        with pytest.raises(ValueError, match=r"X is one sample: pass X\[None\]"):
            method(X[0])
        with pytest.raises(ValueError, match=r"pass np\.moveaxis\(X, -1, 0\)"):
            method(np.moveaxis(X, 0, -1))
    with pytest.raises(ValueError, match=r"one column for each component .* Got \(3, 2\)"):
        model.inverse_transform(np.ones((3, 2)))


def test_output_can_be_a_data_frame():
    pd = pytest.importorskip("pandas")
    X = planted(0).X
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


def test_the_largest_cluster_comes_first_for_any_number_of_samples(seed, limits):
    """Clusters of nearly equal size, learned from few landmarks: these may order them otherwise."""
    limits(landmarks=60)
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.repeat([0, 1, 2], [410, 400, 390]))
    X = 20.0 * np.eye(3)[truth] + rng.standard_normal((1200, 3))
    orders = set()
    for random_state in range(6):
        model = TuckerClustering(3, random_state=random_state).fit(X)
        assert adjusted_rand_score(truth, model.labels_) > 0.99
        assert (np.diff(np.bincount(model.labels_)) <= 0).all()
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        means = [X[model.labels_ == label].mean(axis=0) for label in range(3)]
        np.testing.assert_allclose(model.centroids_, means, atol=1e-6)
        held = model._model_.labeller.landmark_labels
        orders.add(tuple(np.argsort(-np.bincount(held), kind="stable")))
    assert len(orders) > 1  # the landmarks alone would have numbered them otherwise


@pytest.mark.torch
def test_a_device_learns_from_more_landmarks(monkeypatch, limits):
    torch = pytest.importorskip("torch")
    limits(landmarks=60, landmarks_on_devices=90)
    X = planted(0, (6, 5)).X
    for devices, expected in (((), 60), (("cpu",), 90)):
        monkeypatch.setattr("tuckermix.labels.graph.DEVICES", devices)
        model = TuckerClustering(4, random_state=0).fit(torch.asarray(X))
        assert model._model_.labeller.landmarks.shape[0] == expected


def test_placed_samples_lie_on_a_sphere_near_their_own_kind(shape, seed):
    data = planted(seed, shape)
    Z = TuckerClustering(4, random_state=seed).fit(data.X).place(data.X)
    np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1.0, rtol=1e-12)
    cosines = Z @ Z.T
    same = data.labels[:, None] == data.labels[None, :]
    assert cosines[same].mean() > cosines[~same].mean() + 0.1


def test_parameters_can_be_checked_before_any_data_are_read():
    TuckerClustering(3).check_params()
    with pytest.raises(ValueError, match="'solver' parameter of TuckerClustering must be one of"):
        TuckerClustering(3, solver="newton").check_params()


@pytest.mark.slow  # JAX compiles every operation for every shape
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_jax_gives_what_numpy_gives(dtype):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)  # without it, JAX has no float64 for our sums
    try:
        X = planted(0).X.astype(dtype)
        J = jax.numpy.asarray(X)
        tolerance = 1e-3 if dtype == "float32" else 1e-7
        model = TuckerClustering(4, random_state=0).fit(X)
        other = TuckerClustering(4, random_state=0).fit(J)
        assert isinstance(other.labels_, jax.Array)
        assert other.core_.dtype == dtype
        np.testing.assert_array_equal(other.labels_, model.labels_)
        np.testing.assert_array_equal(other.predict(J), model.labels_)
        assert other.cost_ == pytest.approx(model.cost_, rel=tolerance)
        for method in ("predict_proba", "transform"):
            np.testing.assert_allclose(
                getattr(other, method)(J), getattr(model, method)(X), atol=tolerance
            )
        assert other.score(J) == pytest.approx(model.score(X), rel=tolerance)
    finally:
        jax.config.update("jax_enable_x64", before)


@pytest.mark.parametrize("shape", [(30, 1), (30, 2, 1)])
def test_the_largest_weight_loses_no_label(rng, shape):
    X = rng.standard_normal(shape)
    model = TuckerClustering(3, assign_labels="argmax", random_state=0).fit(X)
    assert set(model.labels_) == {0, 1, 2}
    assert np.array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("solver", ["exact", "trust-region"])
@pytest.mark.parametrize("exponent", [-230, -150, 60, 75, 90, 150])
def test_the_size_of_numbers_changes_no_label(rng, solver, exponent):
    X = rng.standard_normal((30, 4, 5)) + 5 * (np.arange(30) % 3)[:, None, None]
    options = {"ranks": 3, "solver": solver, "random_state": 0}
    usual = TuckerClustering(3, **options).fit(X).labels_
    assert np.array_equal(
        TuckerClustering(3, **options).fit(2.0 ** round(3.3 * exponent) * X).labels_, usual
    )


@each("assign_labels", ["graph", "subspace", "memberships", "argmax"])
@each("size", [2, 3, 6])
def test_two_samples_that_differ_get_two_labels(assign_labels, size):
    model = TuckerClustering(2, assign_labels=assign_labels, random_state=0)
    for places in [(0, 1), (1, 0), (0, size - 1)]:
        X = np.eye(size)[list(places)]
        assert sorted(model.fit(X).labels_) == [0, 1]
        assert sorted(model.fit(X.reshape(2, -1, 1)).labels_) == [0, 1]


@pytest.mark.parametrize("shape", [(80, 50_000), (80, 2, 25_000), (30, 100_000, 1)])
def test_wide_samples_take_a_few_times_their_memory(shape, rng):
    X = rng.standard_normal((3, *shape[1:]))[np.arange(shape[0]) % 3] + rng.standard_normal(shape)
    gaps = np.where(rng.random(shape) < 0.2, np.nan, X)
    plain, filling = (
        TuckerClustering(3, missing=missing, random_state=0, n_jobs=1)
        for missing in (None, "impute")
    )
    for call, samples, most in (
        (plain.fit, X, 2.5),
        (plain.partial_fit, X, 4.5),
        (filling.fit, gaps, 4.5),
        (filling.predict, gaps, 2.5),
    ):
        tracemalloc.start()
        call(samples)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < most * X.nbytes, call
    for model in (plain, filling):
        assert adjusted_rand_score(np.arange(shape[0]) % 3, model.labels_) == 1.0


WIDE = [(20, 300), (20, 2, 150), (9, 400, 1), (12, 150, 3, 2)]


@pytest.mark.parametrize("shape", WIDE)
@pytest.mark.parametrize("kind", [TuckerClustering, partial(AutoClustering, features="pixels")])
def test_no_array_has_the_square_of_a_long_mode(shape, kind, rng, settings):
    centers = rng.standard_normal((3, *shape[1:]))
    names = np.arange(shape[0]) % 3
    X = (centers[names] + 0.1 * rng.standard_normal(shape)).astype(np.float32)
    settings(SpanSettings(long_mode=10, dense_side=60, width=30, many_entries=60))
    sizes = []

    def note(frame, event, _):
        if event == "return":
            held = (value for value in frame.f_locals.values() if isinstance(value, np.ndarray))
            sizes.extend(array.size for array in held)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        model = kind(3, random_state=0).fit(X)
    finally:
        sys.setprofile(before)
    assert adjusted_rand_score(names, model.labels_) == 1.0
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert max(sizes) < max(shape[1:]) ** 2


@pytest.mark.filterwarnings("ignore:Only .* of n_clusters", "ignore:The cost of numbers")
@pytest.mark.parametrize("scale", [0.0, 1e-310, 1e-200, 1.0, 1e200])
@pytest.mark.parametrize("options", [{}, {"memberships": "min-volume"}, {"missing": "impute"}])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_of_any_size_are_clustered_in_silence(scale, options, dtype, rng):
    if dtype is np.float32:
        scale = {1e-310: 1e-44, 1e-200: 1e-30, 1e200: 1e30}.get(scale, scale)
    constant = np.ones((12, 4, 3))
    two = np.where(np.arange(12)[:, None, None] < 6, 0.5, constant)
    for X in (constant, two, rng.standard_normal((12, 4, 3))):
        X = (X * scale).astype(dtype)
        if options.get("missing"):
            X[3, 1, 2] = np.nan
        else:
            stream = TuckerClustering(2, random_state=0).partial_fit(X[:6]).partial_fit(X[6:])
            assert np.isfinite(stream.predict_proba(X)).all()
        model = TuckerClustering(2, random_state=0, **options).fit(X)
        assert np.isfinite(model.predict_proba(X)).all()
        assert np.isfinite(model.transform(X)).all()
        assert np.isfinite(model.outlier_scores(X)).all()


def test_a_norm_beyond_the_range_is_refused():
    with pytest.raises(ValueError, match=r"norm of X must be within the range of float32"):
        TuckerClustering(2).fit(np.full((30, 6, 5), 3e38, dtype=np.float32))


# Options of the graph, and their old spellings.


def test_old_names_of_graph_options_warn_and_mean_the_same():
    graph = GraphLabels(n_neighbors=8, ridge_edge=2.0, ridge_power=0.5)
    new = TuckerClustering(4, assign_labels=graph, random_state=0)
    with pytest.warns(FutureWarning, match=r"assign_labels=GraphLabels\(n_neighbors=8, ridge_edge"):
        old = TuckerClustering(4, n_neighbors=8, ridge_edge=2.0, ridge_power=0.5, random_state=0)
    with pytest.warns(FutureWarning, match="n_neighbors moved"):
        later = TuckerClustering(4, random_state=0).set_params(n_neighbors=8)
    later.set_params(assign_labels__ridge_edge=2.0, assign_labels__ridge_power=0.5)
    assert repr(new) == repr(old) == repr(later) == repr(clone(old))
    X = planted(0).X
    np.testing.assert_array_equal(new.fit(X).labels_, old.fit(X).labels_)


def test_old_names_do_nothing_where_there_is_no_graph():
    with pytest.warns(FutureWarning, match="ridge_edge moved"):
        model = TuckerClustering(4, assign_labels="subspace", ridge_edge=2.0)
    assert model.assign_labels == "subspace"


def test_graph_options_are_parameters_of_their_own():
    model = TuckerClustering()
    assert "n_neighbors" not in model.get_params()
    copy = clone(model).set_params(assign_labels__n_neighbors=8)
    assert model.assign_labels == "graph"
    assert copy.get_params()["assign_labels__n_neighbors"] == 8
    assert clone(copy).assign_labels is not copy.assign_labels
    assert clone(copy).assign_labels.n_neighbors == 8
    with pytest.raises(ValueError, match="one of 'graph'"):
        TuckerClustering(assign_labels=LABELLINGS).check_params()


def test_graph_options_are_saved(tmp_path):
    X = planted(0).X
    model = TuckerClustering(4, assign_labels=GraphLabels(n_neighbors=8), random_state=0).fit(X)
    tuckermix.save(model, tmp_path / "model")
    again = tuckermix.load(tmp_path / "model")
    assert repr(again) == repr(model)
    np.testing.assert_array_equal(again.predict(X), model.labels_)
