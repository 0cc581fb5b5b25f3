"""Four ways to labels: guarantees, numbering, people's clusters, corners."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import NearestNeighbors
from tests.cases import each

from tuckermix import TuckerClustering
from tuckermix._array_api import to_numpy
from tuckermix.labels import (
    LABELLINGS,
    ArgmaxLabels,
    CenterLabels,
    VoteLabels,
    fit_labels,
    labeller_from_arrays,
)
from tuckermix.labels.graph import rank_weights
from tuckermix.labels.labellers import voting_labeller


def on_sphere(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def neighbors(Z, count):
    """Return the nearest other rows, by scikit-learn."""
    return NearestNeighbors(n_neighbors=count).fit(Z).kneighbors(return_distance=False)


def subspace(X, n_clusters):
    """Return points of a matrix X as the model would: a constant and whitened directions."""
    X = np.asarray(X, dtype=float)
    u, s, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    rank = int((s > 1e-10 * s[0]).sum()) if s[0] > 0 else 0
    u = u[:, : min(rank, 2 * n_clusters)]
    constant = np.hypot(1, 10 / max(1, u.shape[1])) * len(X) ** -0.5
    return on_sphere(np.concatenate([np.full((len(X), 1), constant), u], axis=1))


def labels_of(labeller, rows):
    return to_numpy(labeller.predict_proba(rows)).argmax(axis=1)


def needed(method, Z, U):
    """Return which of the two a way of labelling looks at."""
    return Z if LABELLINGS[method].uses == "points" else U


def cluster(X, n_clusters, seed=0, **options):
    Z = subspace(X, n_clusters)
    rng = np.random.default_rng(seed)
    return labels_of(fit_labels("graph", Z, n_clusters, rng=rng, **options), Z)


def blobs(rng, sizes, centers, width=1.0):
    centers = np.asarray(centers, dtype=float)
    names = np.repeat(np.arange(len(sizes)), sizes)
    return centers[names] + width * rng.normal(size=(len(names), centers.shape[1])), names


def ring(rng, n_samples, radius, width):
    angle = rng.uniform(0, 2 * np.pi, n_samples)
    circle = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return circle + width * rng.normal(size=(n_samples, 2))


def mixtures(rng, n_samples=120, n_components=4):
    """Return Z and U of planted groups."""
    X, names = blobs(rng, [n_samples // n_components] * n_components, 8 * np.eye(n_components))
    U = np.exp(X)
    return subspace(X, n_components), U / U.sum(axis=1, keepdims=True), names


@pytest.mark.parametrize(
    ("sizes", "centers"),
    [
        ([100, 100], [[0], [7]]),
        ([100, 60, 80], [[0], [8], [20]]),
        ([200, 40], [[0], [7]]),
        ([1200, 900, 900], [[0], [7], [14]]),
        ([100, 100, 100], [[0], [10], [1000]]),
        ([10, 10], [[0], [9]]),
        ([40] * 10, [[9 * i] for i in range(10)]),
        ([100, 100, 100], [[0, 0], [8, 0], [0, 8]]),
        ([500, 50], [[0, 0], [8, 0]]),
        ([500, 100, 30], [[0, 0], [9, 0], [0, 9]]),
        ([800, 15], [[0, 0], [9, 0]]),
        ([500, 20], [[0] * 6, [12] + [0] * 5]),
        ([30] * 30, [[9 * (i % 6), 9 * (i // 6)] for i in range(30)]),
    ],
    ids=lambda value: (
        "x".join(map(str, value)) if isinstance(value[0], int) else f"{len(value[0])}-D"
    ),
)
def test_blobs_are_found_whatever_their_sizes(seed, sizes, centers):
    X, names = blobs(np.random.default_rng(seed), sizes, centers)
    assert adjusted_rand_score(names, cluster(X, len(sizes), seed)) > 0.98


@pytest.mark.parametrize(("outer", "inner"), [(200, 100), (100, 100), (60, 30), (400, 50)])
def test_a_ring_around_a_blob(seed, outer, inner):
    rng = np.random.default_rng(seed)
    X = np.concatenate([ring(rng, outer, 5, 0.25), 0.6 * rng.normal(size=(inner, 2))])
    names = np.repeat([0, 1], [outer, inner])
    assert adjusted_rand_score(names, cluster(X, 2, seed)) > 0.98


def test_three_rings(seed):
    rng = np.random.default_rng(seed)
    X = np.concatenate([ring(rng, 300, radius, 0.1) for radius in (2, 5, 8)])
    assert adjusted_rand_score(np.repeat(np.arange(3), 300), cluster(X, 3, seed)) > 0.98


@pytest.mark.parametrize("many", [3, 30, 500])
def test_repeated_samples_change_nothing(seed, many):
    rng = np.random.default_rng(seed)
    X, names = blobs(rng, [60, 60], [[0, 0], [8, 0]])
    counts = np.where(rng.random(120) < 0.1, many, 1)
    labels = cluster(np.repeat(X, counts, axis=0), 2, seed)
    assert adjusted_rand_score(np.repeat(names, counts), labels) > 0.95
    starts = np.cumsum(counts) - counts
    for start, count in zip(starts, counts, strict=True):
        assert len(set(labels[start : start + count])) == 1


def test_few_distinct_values():
    values, counts = np.array([0.0, 0.1, 5.0, 5.2, 9.0]), [30, 20, 40, 10, 50]
    labels = cluster(np.repeat(values, counts)[:, None], 3)
    assert adjusted_rand_score(np.repeat([0, 0, 1, 1, 2], counts), labels) == 1.0


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_zero_samples_among_others(scale, rng):
    X, names = blobs(rng, [50, 50], [[0] * 3, [9] * 3])
    X[:20] = 0
    assert adjusted_rand_score(names, cluster(scale * X, 2)) == 1.0


@each("method", LABELLINGS)
def test_soft_labels_use_every_label_and_are_numbered_by_size(xp, seed, method):
    for n_clusters in [1, 4, 9]:
        rng = np.random.default_rng(seed)
        Z = subspace(rng.normal(size=(70, 6)), n_clusters)
        U = rng.dirichlet(np.full(n_clusters, 0.3), size=70) + 1e-3
        U /= U.sum(axis=1, keepdims=True)
        rows = xp.asarray(needed(method, Z, U))
        P = fit_labels(method, rows, n_clusters, rng=rng).predict_proba(rows)
        assert type(P) is type(rows)
        assert P.dtype == rows.dtype
        np.testing.assert_allclose(to_numpy(P).sum(axis=1), 1, rtol=1e-12)
        labels = to_numpy(P).argmax(axis=1)
        sizes = np.bincount(labels, minlength=n_clusters)
        assert (sizes > 0).all()
        assert (np.diff(sizes) <= 0).all()
        first = [int(np.argmax(labels == name)) for name in range(n_clusters)]
        for name in np.flatnonzero(np.diff(sizes) == 0):
            assert first[name] < first[name + 1]


@each("method", LABELLINGS)
def test_planted_groups_are_found_and_libraries_agree(xp, seed, method):
    Z, U, names = mixtures(np.random.default_rng(seed))
    rows = needed(method, Z, U)
    expected = fit_labels(method, rows, 4, rng=np.random.default_rng(seed))
    labeller = fit_labels(method, xp.asarray(rows), 4, rng=np.random.default_rng(seed))
    labels = labels_of(labeller, xp.asarray(rows))
    assert adjusted_rand_score(names, labels) == 1.0
    np.testing.assert_array_equal(labels, labels_of(expected, rows))


@pytest.mark.parametrize("method", LABELLINGS)
def test_the_seed_decides_and_copies_of_the_labeller_agree(method):
    Z, U, _ = mixtures(np.random.default_rng(0))
    rows = needed(method, Z, U)
    one, same = (fit_labels(method, rows, 4, rng=np.random.default_rng(3)) for _ in range(2))
    again = labeller_from_arrays(one.kind, one.to_arrays())
    for name, value in one.to_arrays().items():
        # Only a calibrated labeller has knots.
        assert (name, value) == ("knots", None) or np.asarray(value).dtype.kind in "iufU"
    np.testing.assert_array_equal(one.predict_proba(rows), same.predict_proba(rows))
    np.testing.assert_array_equal(one.predict_proba(rows), again.predict_proba(rows))
    assert again.uses == one.uses


@each("method", LABELLINGS)
def test_renumbering_moves_the_columns_of_soft_labels(xp, method):
    Z, U, _ = mixtures(np.random.default_rng(0))
    rows = xp.asarray(needed(method, Z, U))
    labeller = fit_labels(method, rows, 4, rng=np.random.default_rng(3))
    order = np.array([2, 0, 3, 1])
    moved = to_numpy(labeller.renumbered(order).predict_proba(rows))
    np.testing.assert_allclose(
        moved, to_numpy(labeller.predict_proba(rows))[:, order], rtol=1e-12, atol=1e-300
    )


@pytest.mark.parametrize(
    ("method", "kind", "uses"),
    [
        ("graph", VoteLabels, "points"),
        ("subspace", CenterLabels, "points"),
        ("memberships", CenterLabels, "weights"),
        ("argmax", ArgmaxLabels, "weights"),
    ],
)
def test_labellers_look_at_what_the_table_says(method, kind, uses):
    Z, U, _ = mixtures(np.random.default_rng(0))
    labeller = fit_labels(method, needed(method, Z, U), 4, rng=np.random.default_rng(0))
    assert isinstance(labeller, kind)
    assert labeller.uses == LABELLINGS[method].uses == uses


@pytest.mark.parametrize(("number", "uses"), [(1, "points"), (2, "weights")])
def test_centres_of_version_0_1_0_said_by_a_number_what_they_look_at(number, uses):
    arrays = {"centers": np.eye(2), "scale": 1.0, "on": number}
    assert labeller_from_arrays("center", arrays).uses == uses


@pytest.mark.parametrize("method", ["graph", "subspace", "memberships"])
@pytest.mark.parametrize("n_samples", [1, 2, 15, 25])
def test_as_many_clusters_as_samples(method, n_samples, rng):
    X = np.eye(n_samples)
    Z = subspace(X, n_samples) if n_samples > 1 else np.ones((1, 1))
    rows = needed(method, Z, 0.5 * X + 0.5 / n_samples)
    labeller = fit_labels(method, rows, n_samples, rng=rng)
    np.testing.assert_array_equal(labels_of(labeller, rows), np.arange(n_samples))


@pytest.mark.parametrize("method", ["graph", "subspace", "memberships"])
def test_fewer_distinct_samples_than_clusters_warn(xp, method, rng):
    Z = xp.asarray(np.repeat(on_sphere(rng.normal(size=(3, 4))), 10, axis=0))
    with pytest.warns(ConvergenceWarning, match="Only 3 of n_clusters=5 clusters have samples"):
        labeller = fit_labels(method, Z, 5, rng=rng)
    P = to_numpy(labeller.predict_proba(Z))
    assert P.shape == (30, 5)
    assert np.isfinite(P).all()
    np.testing.assert_array_equal(P.argmax(axis=1), np.repeat(P[::10].argmax(axis=1), 10))
    assert set(P.argmax(axis=1)) == {0, 1, 2}


def test_all_samples_equal_and_one_cluster(rng):
    Z = np.ones((8, 1))
    labeller = fit_labels("graph", Z, 1, rng=rng)
    np.testing.assert_array_equal(labeller.predict_proba(Z), np.ones((8, 1)))


def test_centre_labels_are_nearest_centres_and_sharp_without_spread(rng):
    Z = rng.normal(size=(60, 3))
    labeller = fit_labels("subspace", Z, 5, rng=rng)
    distances = ((Z[:, None] - labeller.centers[None]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(labels_of(labeller, Z), distances.argmin(axis=1))
    expected = np.exp(-distances / (2 * labeller.scale))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(labeller.predict_proba(Z), expected, rtol=1e-9)
    sharp = CenterLabels(labeller.centers, 0.0, "points").predict_proba(Z)
    assert set(np.unique(sharp)) == {0.0, 1.0}


def test_argmax_raises_components_that_are_nobodys_largest(xp, seed):
    rng = np.random.default_rng(seed)
    U = rng.dirichlet(np.ones(5), size=50)
    U[:, 3:] *= 1e-3
    U = (U + 1e-6) / (U + 1e-6).sum(axis=1, keepdims=True)
    assert len(np.unique(U.argmax(axis=1))) == 3
    labeller = fit_labels("argmax", xp.asarray(U), 5, rng=rng)
    labels = labels_of(labeller, xp.asarray(U))
    assert set(labels) == set(range(5))
    kept = np.isin(to_numpy(labeller.order)[labels], [0, 1, 2])
    np.testing.assert_array_equal(to_numpy(labeller.order)[labels][kept], U.argmax(axis=1)[kept])


@pytest.mark.parametrize("method", ["subspace", "memberships"])
def test_centres_that_rounding_cannot_tell_apart_are_one(xp, rng, method):
    # Which of them is nearer would hang on the numbers of the labels, and with it their sizes.
    places = np.array([[0.6, 0.8, 0.0], [0.6, 0.0, 0.8], [0.6, 1e-9, 0.8]])
    rows = np.repeat(places, [13, 10, 10], axis=0)
    given = xp.asarray(rows[rng.permutation(33)])
    with pytest.warns(ConvergenceWarning, match="Only 2 of n_clusters=3 clusters have samples"):
        labeller = fit_labels(method, given, 3, rng=rng)
    for order in ([0, 1, 2], [1, 0, 2]):
        labels = labels_of(labeller.renumbered(np.array(order)), given)
        assert np.bincount(labels, minlength=3)[np.argsort(order)].tolist() == [20, 13, 0]


def test_argmax_raises_components_clearly_in_float32_too(xp, seed):
    # A raise by less than their rounding would leave a tie in the soft labels.
    rng = np.random.default_rng(seed)
    for _ in range(20):
        U = rng.dirichlet([3.0, 3.0, 0.3, 0.3, 0.1], size=30).astype(np.float32)
        P = fit_labels("argmax", xp.asarray(U), 5, rng=rng).predict_proba(xp.asarray(U))
        assert P.dtype == xp.float32
        assert set(to_numpy(P).argmax(axis=1)) == set(range(5))


def test_argmax_with_two_components_of_one_sample_loses_no_label(rng):
    share = rng.random(12)
    U = np.stack([share, 1 - share, 0 * share, 0 * share], axis=1)
    U[5] = [0.1, 0.1, 0.4, 0.4]
    P = fit_labels("argmax", U, 4, rng=rng).predict_proba(U)
    assert set(P.argmax(axis=1)) == {0, 1, 2, 3}


def test_argmax_with_fewer_components_than_clusters_loses_no_label(rng):
    U = rng.dirichlet(np.ones(3), size=40)
    P = fit_labels("argmax", U, 4, rng=rng).predict_proba(U)
    assert P.shape == (40, 4)
    assert set(P.argmax(axis=1)) == {0, 1, 2, 3}


def test_argmax_with_a_component_that_nobody_has_loses_no_label(rng):
    U = np.concatenate([rng.dirichlet(np.ones(2), size=40), np.zeros((40, 1))], axis=1)
    assert set(fit_labels("argmax", U, 3, rng=rng).predict_proba(U).argmax(axis=1)) == {0, 1, 2}


def test_argmax_raises_a_component_that_most_samples_have_not(rng):
    # Weights of zero among those of the component must not be divided by.
    U = np.concatenate([rng.dirichlet(np.ones(2), size=40), np.zeros((40, 1))], axis=1)
    U[7] = [0.6, 0.3, 0.1]
    P = fit_labels("argmax", U, 3, rng=rng).predict_proba(U)
    assert np.flatnonzero(P.argmax(axis=1) == 2).tolist() == [7]


def test_argmax_with_more_components_than_clusters_is_an_error(rng):
    U = rng.dirichlet(np.ones(5), size=40)
    with pytest.raises(ValueError, match="needs n_components=5 <= n_clusters=4"):
        fit_labels("argmax", U, 4, rng=rng)


def test_bad_arguments(rng):
    with pytest.raises(ValueError, match="'method' parameter of fit_labels must be one of 'graph'"):
        fit_labels("votes", np.eye(3), 2, rng=rng)
    with pytest.raises(ValueError, match=r"n_samples=3 must be >= n_clusters=4\."):
        fit_labels("graph", np.eye(3), 4, rng=rng)
    with pytest.raises(ValueError, match="'kind' parameter of labeller_from_arrays must be one of"):
        labeller_from_arrays("pickle", {})


def test_shares_are_rank_weighted_votes(xp, rng):
    landmarks, labels = rng.normal(size=(80, 3)), rng.integers(4, size=80)
    queries = rng.normal(size=(25, 3))
    labeller = VoteLabels(xp.asarray(landmarks), xp.asarray(labels), 4, 7)
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
    labeller, *_ = voting_labeller(Z, labels, neighbors(to_numpy(Z), 5), 3)
    P = labeller.predict_proba(Z)
    assert P.dtype == Z.dtype
    assert type(P) is type(Z)
    np.testing.assert_allclose(to_numpy(xp.sum(P, axis=1)), 1, rtol=1e-6)


def test_what_is_elected_is_what_is_predicted(xp, seed):
    rng = np.random.default_rng(seed)
    Z, labels = rng.normal(size=(120, 3)), rng.integers(3, size=120)
    labeller, won, _ = voting_labeller(xp.asarray(Z), labels, neighbors(Z, 20), 3)
    predicted = to_numpy(xp.argmax(labeller.predict_proba(xp.asarray(Z)), axis=1))
    np.testing.assert_array_equal(predicted, won)


def test_a_cluster_that_would_be_outvoted_keeps_a_sample(seed):
    rng = np.random.default_rng(seed)
    Z, labels = rng.normal(size=(100, 2)), np.zeros(100, dtype=int)
    labels[[3, 50]] = 1, 2
    indices = neighbors(Z, 20)
    labeller, won, _ = voting_labeller(Z, labels, indices, 3)
    assert set(won) == {0, 1, 2}
    assert labeller.n_neighbors < 20
    plain, won, _ = voting_labeller(
        Z, np.repeat([0, 1], 50)[np.argsort(np.argsort(Z[:, 0]))], indices, 3
    )
    assert plain.n_neighbors == 20
    assert set(won) == {0, 1}


def test_the_round_trip_through_arrays(rng):
    labeller = VoteLabels(rng.normal(size=(9, 2)), rng.integers(2, size=9), 2, 4)
    again = VoteLabels.from_arrays(labeller.to_arrays())
    Z = rng.normal(size=(20, 2))
    np.testing.assert_array_equal(again.predict_proba(Z), labeller.predict_proba(Z))


@pytest.mark.parametrize(("way", "expected"), [("graph", 9), ("subspace", 4), ("argmax", 4)])
def test_components_where_none_are_given(way, expected):
    X = np.random.default_rng(0).standard_normal((40, 4, 5))
    model = TuckerClustering(4, assign_labels=way, random_state=0)
    assert model.fit(X).n_components_ == expected
    assert model.partial_fit(X).n_components_ == expected
