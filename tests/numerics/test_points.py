"""k-means and nearest neighbours against scikit-learn, over libraries, and in the corners."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors

from tuckermix._array_api import to_numpy
from tuckermix.numerics import points as module
from tuckermix.numerics.points import kmeans, nearest_neighbors, smallest


def clouds(rng, n_samples=300, n_features=5, n_clusters=6, spread=0.7):
    centers = rng.normal(size=(n_clusters, n_features))
    names = rng.integers(n_clusters, size=n_samples)
    return centers[names] + spread * rng.normal(size=(n_samples, n_features))


@pytest.mark.parametrize("n_clusters", [2, 6, 25])
def test_agrees_with_scikit_learn_from_the_same_start(xp, rng, n_clusters):
    X = clouds(rng) + 100.0
    init = X[rng.choice(len(X), n_clusters, replace=False)]
    ours = kmeans(xp.asarray(X), n_clusters, init=xp.asarray(init))
    theirs = KMeans(n_clusters, init=init, n_init=1, tol=0, max_iter=300).fit(X)
    np.testing.assert_array_equal(to_numpy(ours.labels), theirs.labels_)
    np.testing.assert_allclose(to_numpy(ours.centers), theirs.cluster_centers_, atol=1e-10)
    assert ours.inertia == pytest.approx(theirs.inertia_, rel=1e-10)


def test_empty_clusters_are_moved_as_in_scikit_learn(rng):
    X = clouds(rng, n_clusters=3, spread=0.1)
    init = np.concatenate([X[:2], 50 + rng.normal(size=(2, X.shape[1]))])
    ours = kmeans(X, 4, init=init)
    theirs = KMeans(4, init=init, n_init=1, tol=0, max_iter=300).fit(X)
    assert len(np.unique(ours.labels)) == 4
    assert ours.inertia == pytest.approx(theirs.inertia_, rel=1e-10)


def test_several_starts_reach_the_inertia_of_scikit_learn(rng):
    X = clouds(rng, n_clusters=8, spread=0.2)
    ours = kmeans(X, 8, n_init=10, rng=rng)
    theirs = KMeans(8, n_init=10, random_state=0, tol=0).fit(X)
    assert ours.inertia <= theirs.inertia_ * 1.01


def test_the_result_is_a_fixed_point_with_the_inertia_it_reports(xp, rng):
    X = clouds(rng)
    result = kmeans(xp.asarray(X), 6, rng=rng)
    labels, centers = to_numpy(result.labels), to_numpy(result.centers)
    distances = ((X[:, None, :] - centers[None]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(labels, distances.argmin(axis=1))
    for name in range(6):
        np.testing.assert_allclose(centers[name], X[labels == name].mean(axis=0), atol=1e-12)
    assert result.inertia == pytest.approx(distances.min(axis=1).sum(), rel=1e-12)


def test_libraries_agree_and_results_stay_where_the_data_are(xp, seed):
    X = clouds(np.random.default_rng(seed))
    expected = kmeans(X, 6, rng=np.random.default_rng(seed))
    result = kmeans(xp.asarray(X), 6, rng=np.random.default_rng(seed))
    assert type(result.labels) is type(xp.asarray(X))
    np.testing.assert_array_equal(to_numpy(result.labels), expected.labels)


def test_blocks_change_nothing(monkeypatch, rng, seed):
    X = clouds(rng)
    whole = kmeans(X, 6, rng=np.random.default_rng(seed))
    blocks = module.blocks
    monkeypatch.setattr(module, "blocks", lambda n, size, _=None: blocks(n, size, 37 * size))
    cut = kmeans(X, 6, rng=np.random.default_rng(seed))
    np.testing.assert_array_equal(cut.labels, whole.labels)
    assert cut.inertia == pytest.approx(whole.inertia, rel=1e-12)


def test_float32_far_from_the_origin_is_summed_in_float64(rng):
    X = (clouds(rng, spread=0.05) + 1000.0).astype(np.float32)
    init = X[:6]
    single = kmeans(X, 6, init=init)
    double = kmeans(X.astype(np.float64), 6, init=init.astype(np.float64))
    np.testing.assert_array_equal(single.labels, double.labels)
    assert single.inertia == pytest.approx(double.inertia, rel=1e-10)
    assert single.centers.dtype == np.float64


def test_one_cluster_is_the_mean(xp, rng):
    X = clouds(rng)
    result = kmeans(xp.asarray(X), 1, rng=rng)
    np.testing.assert_allclose(to_numpy(result.centers)[0], X.mean(axis=0), atol=1e-12)
    assert result.inertia == pytest.approx(len(X) * X.var(axis=0).sum())


def test_as_many_clusters_as_samples(xp, rng):
    X = clouds(rng, n_samples=30)
    result = kmeans(xp.asarray(X), 30, rng=rng)
    assert sorted(to_numpy(result.labels)) == list(range(30))
    assert result.inertia == pytest.approx(0, abs=1e-20)


@pytest.mark.parametrize("n_distinct", [1, 2, 4])
def test_every_label_occurs_with_fewer_distinct_samples_than_clusters(xp, rng, n_distinct):
    X = np.repeat(rng.normal(size=(n_distinct, 3)), 5, axis=0)
    result = kmeans(xp.asarray(X), 5, rng=rng)
    assert set(to_numpy(result.labels)) == set(range(5))
    assert result.inertia == pytest.approx(0, abs=1e-20)
    assert np.isfinite(to_numpy(result.centers)).all()


def test_starts_are_samples_and_spread_out(rng):
    X = clouds(rng, n_clusters=6, spread=1e-3)
    starts = module._plus_plus(X, 6, 20, rng)
    assert starts.shape == (20, 6, 5)
    for start in starts:
        matches = (start[:, None, :] == X[None]).all(axis=2).any(axis=1)
        assert matches.all()
        gaps = ((start[:, None] - start[None]) ** 2).sum(axis=2)[np.triu_indices(6, 1)]
        assert gaps.min() > 1e-3  # one in each cloud


def test_a_limit_on_iterations_still_gives_a_result(rng):
    result = kmeans(clouds(rng), 6, rng=rng, max_iter=1)
    assert result.n_iter == 1
    assert set(result.labels) == set(range(6))


def test_fewer_samples_than_clusters_is_an_error():
    with pytest.raises(ValueError, match=r"n_samples=3 must be >= n_clusters=4\."):
        kmeans(np.eye(3), 4, rng=np.random.default_rng(0))


def test_starts_need_random_numbers():
    with pytest.raises(ValueError, match="kmeans needs rng, or init"):
        kmeans(np.eye(3), 2)


@pytest.mark.parametrize(("n_points", "n_neighbors"), [(30, 30), (200, 20), (1100, 7)])
def test_agrees_with_scikit_learn(xp, rng, n_points, n_neighbors):
    points = rng.normal(size=(n_points, 6)) + 10.0
    queries = rng.normal(size=(57, 6)) + 10.0
    found, squares = nearest_neighbors(xp.asarray(queries), xp.asarray(points), n_neighbors)
    search = NearestNeighbors(n_neighbors=n_neighbors, algorithm="kd_tree").fit(points)
    distances, indices = search.kneighbors(queries)
    np.testing.assert_array_equal(to_numpy(found), indices)
    np.testing.assert_allclose(to_numpy(squares), distances**2, rtol=1e-12)


@pytest.mark.parametrize("n_points", [25, 700])
def test_a_sample_is_not_its_own_neighbour(xp, rng, n_points):
    points = rng.normal(size=(n_points, 4))
    found, _ = nearest_neighbors(xp.asarray(points), xp.asarray(points), 12, exclude_self=True)
    _, expected = NearestNeighbors(n_neighbors=13).fit(points).kneighbors(points)
    np.testing.assert_array_equal(to_numpy(found), expected[:, 1:])


@pytest.mark.parametrize("n_points", [300, 5000])
def test_grouped_selection_is_exact_in_blocks(limits, rng, n_points):
    limits(neighbor_block_bytes=2**20)
    points, queries = rng.normal(size=(n_points, 3)), rng.normal(size=(100, 3))
    found, _ = nearest_neighbors(queries, points, 5)
    squares = ((queries[:, None] - points[None]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(found, np.argsort(squares, axis=1)[:, :5])


def test_copies_have_distance_zero_and_come_in_order(xp, rng):
    points = np.repeat(rng.normal(size=(40, 5)) * 1e3, 3, axis=0)
    found, squares = nearest_neighbors(xp.asarray(points), xp.asarray(points), 3)
    expected = np.repeat(np.arange(120).reshape(40, 3), 3, axis=0)
    np.testing.assert_array_equal(to_numpy(found), expected)
    assert (to_numpy(squares) == 0).all()


def test_float32_order_comes_from_exact_distances(rng):
    points = (1e3 + rng.normal(size=(400, 8))).astype(np.float32)
    _, squares = nearest_neighbors(points, points, 10, exclude_self=True)
    wide = points.astype(np.float64)
    exact = ((wide[:, None] - wide[None]) ** 2).sum(axis=2)
    np.fill_diagonal(exact, np.inf)
    nearest = np.sort(exact, axis=1)[:, :10]
    np.testing.assert_allclose(squares, nearest, rtol=1e-5)
    assert squares.dtype == np.float64


@pytest.mark.parametrize(("dtype", "spacing"), [("float64", 1e-10), ("float32", 1e-4)])
def test_neighbours_far_from_the_mean_are_told_apart(xp, rng, dtype, spacing):
    for exclude_self, n_points in itertools.product([True, False], [40, 900]):
        # Whole steps of the spacing, so that a difference of two points is exact. One of them is
        # far away and takes the mean with it: |y|² - 2⟨x, y⟩ has no digit left for the others.
        steps = rng.permutation(4 * n_points)[:n_points].astype(dtype)
        places = np.stack([steps, np.zeros_like(steps)], axis=1)
        points = places * np.asarray(2.0 ** np.round(np.log2(spacing)), dtype=dtype)
        points[0, 1] = n_points
        given = xp.asarray(points)
        found, squares = nearest_neighbors(given, given, 3, exclude_self=exclude_self)
        gaps = np.abs(steps[:, None] - steps[None, :])
        gaps[0, :] = gaps[:, 0] = 1e9
        np.fill_diagonal(gaps, np.inf if exclude_self else -1.0)
        kept = np.arange(1, n_points)
        chosen = np.take_along_axis(gaps, to_numpy(found), axis=1)[kept]
        np.testing.assert_array_equal(chosen, np.sort(gaps, axis=1)[kept, :3])
        assert np.isfinite(to_numpy(squares)).all()


def test_all_points_may_be_asked_for(xp, rng):
    points = rng.normal(size=(6, 2))
    found, _ = nearest_neighbors(xp.asarray(points), xp.asarray(points), 5, exclude_self=True)
    assert [sorted(row) for row in to_numpy(found)] == [
        [j for j in range(6) if j != i] for i in range(6)
    ]


@pytest.mark.parametrize("count", [1, 4, 9])
def test_smallest_finds_the_smallest(xp, rng, count):
    values = rng.normal(size=(20, 9))
    places = to_numpy(smallest(xp.asarray(values), count))
    picked = np.sort(np.take_along_axis(values, places, axis=1), axis=1)
    np.testing.assert_array_equal(picked, np.sort(values, axis=1)[:, :count])


def test_too_many_neighbours_is_an_error():
    points = np.eye(4)
    with pytest.raises(ValueError, match=r"n_neighbors=4 must be <= 3, the number of points"):
        nearest_neighbors(points, points, 4, exclude_self=True)
