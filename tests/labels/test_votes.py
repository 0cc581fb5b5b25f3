"""Votes of landmarks: shares, smoothing, and clusters that would be outvoted."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from tuckermix._array_api import to_numpy
from tuckermix.labels.graph import host_neighbors, rank_weights
from tuckermix.labels.votes import GraphLabels, elect


def test_shares_are_rank_weighted_votes(xp, rng):
    landmarks, labels = rng.normal(size=(80, 3)), rng.integers(4, size=80)
    queries = rng.normal(size=(25, 3))
    labeller = GraphLabels(xp.asarray(landmarks), xp.asarray(labels), 4, 7)
    P = to_numpy(labeller.predict_proba(xp.asarray(queries)))
    _, near = NearestNeighbors(n_neighbors=7).fit(landmarks).kneighbors(queries)
    expected = np.zeros((25, 4))
    for i in range(25):
        np.add.at(expected[i], labels[near[i]], np.exp(-6 * np.arange(7) / 7))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(P, expected, rtol=1e-12, atol=1e-15)


def test_weights_fall_with_rank_to_less_than_a_hundredth():
    weights = rank_weights(20)
    assert weights[0] == 1
    assert (np.diff(weights) < 0).all()
    assert weights[-1] < 0.01
    assert rank_weights(0).shape == (0,)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_soft_labels_keep_library_and_type(xp, rng, dtype):
    Z = xp.asarray(rng.normal(size=(30, 3)), dtype=getattr(xp, dtype))
    labels = rng.integers(3, size=30)
    labeller, _ = elect(Z, labels, host_neighbors(Z, 5)[0], 3)
    P = labeller.predict_proba(Z)
    assert P.dtype == Z.dtype
    assert type(P) is type(Z)
    np.testing.assert_allclose(to_numpy(xp.sum(P, axis=1)), 1, rtol=1e-6)


def test_what_is_elected_is_what_is_predicted(xp, seed):
    rng = np.random.default_rng(seed)
    Z, labels = rng.normal(size=(120, 3)), rng.integers(3, size=120)
    labeller, won = elect(xp.asarray(Z), labels, host_neighbors(Z, 20)[0], 3)
    predicted = to_numpy(xp.argmax(labeller.predict_proba(xp.asarray(Z)), axis=1))
    np.testing.assert_array_equal(predicted, won)


def test_a_cluster_that_would_be_outvoted_keeps_a_sample(seed):
    rng = np.random.default_rng(seed)
    Z, labels = rng.normal(size=(100, 2)), np.zeros(100, dtype=int)
    labels[[3, 50]] = 1, 2
    indices = host_neighbors(Z, 20)[0]
    labeller, won = elect(Z, labels, indices, 3)
    assert set(won) == {0, 1, 2}
    assert labeller.n_neighbors < 20
    plain, won = elect(Z, np.repeat([0, 1], 50)[np.argsort(np.argsort(Z[:, 0]))], indices, 3)
    assert plain.n_neighbors == 20
    assert set(won) == {0, 1}


def test_the_round_trip_through_arrays(rng):
    labeller = GraphLabels(rng.normal(size=(9, 2)), rng.integers(2, size=9), 2, 4)
    again = GraphLabels.from_arrays(labeller.to_arrays())
    Z = rng.normal(size=(20, 2))
    np.testing.assert_array_equal(again.predict_proba(Z), labeller.predict_proba(Z))
