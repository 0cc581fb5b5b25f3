"""Streams: a summary of batches stands for all samples, and forgets where it is told to."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from tests.cases import each

from tuckermix import TuckerClustering, load, save
from tuckermix._array_api import to_numpy
from tuckermix.datasets import make_tensor_clusters
from tuckermix.decomposition import decompose
from tuckermix.decomposition.stream import StreamSettings, Summary, decompose_summary
from tuckermix.sources import SpanSettings

SOLVING = {"solver": "exact", "init": "hosvd", "n_init": 1, "max_iter": 100, "tol": 1e-6}


def samples(seed, n_samples=600, **options):
    return make_tensor_clusters(
        n_samples=n_samples, shape=(8, 7), n_clusters=4, random_state=seed, **options
    )


def batches(X, size):
    n_samples = X.shape[0]
    starts = range(0, n_samples, size)
    return (X[first : min(first + size, n_samples), ...] for first in starts)


def summarised(X, size, n_directions=4, memory=None, seed=0):
    summary = Summary.start(X)
    rng = np.random.default_rng(seed)
    for batch in batches(X, size):
        summary = summary.updated(batch, n_directions, memory, rng)
    return summary


@each("size", [1, 17, 600])
def test_the_summary_holds_mean_norm_and_gram_matrices(xp, size, seed):
    X = samples(seed).X + 2.0
    summary = summarised(xp.asarray(X), size)
    assert summary.n_seen == summary.weight == len(X)
    np.testing.assert_allclose(to_numpy(summary.mean), X.mean(axis=0), atol=1e-10)
    assert summary.squared_norm == pytest.approx(np.sum(X**2), rel=1e-12)
    for mode, gram in enumerate(summary.grams, start=1):
        unfolded = np.moveaxis(X, mode, 0).reshape(X.shape[mode], -1)
        np.testing.assert_allclose(to_numpy(gram), unfolded @ unfolded.T, rtol=1e-10)


@pytest.mark.parametrize("size", [10, 64])
def test_rows_that_hold_all_directions_are_exact(size, seed):
    X = samples(seed).X
    summary = summarised(X, size, n_directions=60)
    rows, centred = (A.reshape(len(A), -1) for A in (summary.rows, X - X.mean(axis=0)))
    np.testing.assert_allclose(rows.T @ rows, centred.T @ centred, atol=1e-8 * np.sum(centred**2))


def test_memory_weighs_samples_by_their_age(seed):
    X = samples(seed, n_samples=200).X
    summary = summarised(X, 1, memory=50.0)
    weights = np.exp(-np.arange(199, -1, -1) / 50.0)
    expected = np.tensordot(weights, X, 1) / weights.sum()
    np.testing.assert_allclose(summary.mean, expected, atol=1e-10)
    assert summary.weight == pytest.approx(weights.sum(), rel=1e-10)


def test_landmarks_favour_what_is_remembered(settings, seed):
    settings(StreamSettings(landmarks=200))
    X = np.arange(2000.0)[:, None] * np.ones((1, 3))
    kept = summarised(X, 100, memory=200.0, seed=seed).landmarks[:, 0]
    assert len(kept) == 200
    assert np.mean(kept) > 1600
    even = summarised(X, 100, seed=seed).landmarks[:, 0]
    assert abs(np.mean(even) - 1000) < 150


@pytest.mark.parametrize("size", [20, 150])
def test_many_batches_reach_the_cost_of_one_fit(size, seed):
    X = samples(seed).X
    whole = decompose(X, 5, 4)
    rng = np.random.default_rng(seed)
    found = decompose_summary(summarised(X, size), 5, (4, 4), rng=rng, **SOLVING)
    assert whole.cost <= found.cost * (1 + 1e-9)
    assert found.cost <= 1.01 * whole.cost


@pytest.mark.parametrize("ranks", [None, 4])
def test_the_estimator_agrees_with_one_fit(ranks, seed):
    data = samples(seed)
    whole = TuckerClustering(4, ranks=ranks, random_state=0).fit(data.X)
    model = TuckerClustering(4, ranks=ranks, random_state=0)
    for batch in batches(data.X, 50):
        model.partial_fit(batch)
    assert model.cost_ == pytest.approx(whole.cost_, rel=0.01)
    assert adjusted_rand_score(model.predict(data.X), whole.labels_) >= 0.95
    np.testing.assert_array_equal(model.labels_, model.predict(data.X[-50:]))
    np.testing.assert_allclose(model.memberships_, model.transform(data.X[-50:]), atol=1e-8)


def test_clusters_keep_their_numbers(seed):
    data = samples(seed)
    model = TuckerClustering(4, random_state=0).partial_fit(data.X[:300])
    before = model.predict(data.X)
    model.partial_fit(data.X[300:])
    assert np.mean(before == model.predict(data.X)) > 0.95


def test_drift_is_followed_with_a_memory_only(seed):
    rng = np.random.default_rng(seed)
    old, new = (np.linalg.qr(rng.standard_normal((30, 3)))[0] for _ in range(2))
    coefficients = rng.standard_normal((1600, 3)) * [5, 4, 3]
    X = np.concatenate([coefficients[:800] @ old.T, coefficients[800:] @ new.T])
    X += 0.05 * rng.standard_normal(X.shape)
    errors = {}
    for memory in (None, 100.0):
        model = TuckerClustering(2, n_components=4, memory=memory, random_state=0)
        for batch in batches(X, 100):
            model.partial_fit(batch)
        errors[memory] = -model.score(X[-200:])
    assert errors[100.0] < 0.1 * errors[None]


def test_streams_go_on_after_saving(tmp_path):
    X = samples(0).X
    model = TuckerClustering(4, random_state=0).partial_fit(X[:300])
    save(model, tmp_path / "model")
    again = load(tmp_path / "model").partial_fit(X[300:])
    np.testing.assert_array_equal(again.labels_, model.partial_fit(X[300:]).labels_)


def test_other_libraries_agree_with_numpy(xp):
    X = samples(1).X
    expected = TuckerClustering(4, random_state=0)
    found = TuckerClustering(4, random_state=0)
    for batch in batches(X, 200):
        expected.partial_fit(batch)
        found.partial_fit(xp.asarray(batch))
    assert found.cost_ == pytest.approx(expected.cost_, rel=1e-6)
    assert adjusted_rand_score(to_numpy(found.labels_), expected.labels_) > 0.95


def test_a_whole_fit_ends_the_stream():
    X = samples(2).X
    model = TuckerClustering(4, random_state=0).partial_fit(X[:300]).fit(X)
    fresh = TuckerClustering(4, random_state=0).fit(X)
    np.testing.assert_array_equal(model.labels_, fresh.labels_)
    assert model.partial_fit(X[:100]).labels_.shape == (100,)


def test_what_streams_cannot_take_is_refused():
    da = pytest.importorskip("dask.array")
    X = samples(0).X
    for model, given in (
        (TuckerClustering(4, solver="trust-region"), X),
        (TuckerClustering(4, missing="impute"), X),
        (TuckerClustering(4), da.from_array(X)),
    ):
        with pytest.raises(ValueError, match="partial_fit takes batches in memory"):
            model.partial_fit(given)
    with pytest.raises(ValueError, match=r"n_clusters=4 in the first batch"):
        TuckerClustering(4).partial_fit(X[:3])
    with pytest.raises(ValueError, match="memory"):
        TuckerClustering(4, memory=0).partial_fit(X)


def test_a_failed_batch_changes_nothing():
    X = samples(0).X
    model = TuckerClustering(4, random_state=0).partial_fit(X[:200])
    before = model.predict(X)
    with pytest.raises(ValueError, match="contains NaN"):
        model.partial_fit(np.full((10, 8, 7), np.nan))
    np.testing.assert_array_equal(model.predict(X), before)


def test_equal_samples_have_a_model_too():
    with pytest.warns(UserWarning, match="distinct"):
        model = TuckerClustering(2, random_state=0).partial_fit(np.ones((10, 4, 3)))
    assert model.cost_ == pytest.approx(0.0, abs=1e-9)


def test_a_stream_of_long_samples_keeps_no_matrix_of_their_size(settings, seed):
    X = np.random.default_rng(seed).standard_normal((90, 2, 300))
    X[:30, :, :100] += 2.0
    settings(SpanSettings(long_mode=50, dense_side=100))
    model = TuckerClustering(2, random_state=0)
    for batch in batches(X, 30):
        model.partial_fit(batch)
    summary = model._summary_
    assert sum(gram.size for gram in summary.grams) == 4
    assert model.ranks_[0] == 2
    labels = model.predict(X)
    assert adjusted_rand_score(np.arange(90) < 30, labels) > 0.9
