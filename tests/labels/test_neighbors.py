"""Nearest neighbours against scikit-learn, over libraries, in blocks, with ties."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from tuckermix._array_api import to_numpy
from tuckermix.labels import neighbors
from tuckermix.labels.neighbors import nearest_neighbors, smallest


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
def test_grouped_selection_is_exact_in_blocks(monkeypatch, rng, n_points):
    monkeypatch.setattr(neighbors, "HOST_BLOCK", 2**20)
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
