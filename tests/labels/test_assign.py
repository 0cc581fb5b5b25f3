"""Four ways to labels: guarantees, numbering, people's clusters, corners."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from tuckermix._array_api import to_numpy
from tuckermix.labels import (
    ArgmaxLabels,
    CenterLabels,
    GraphLabels,
    fit_labels,
    labeller_from_arrays,
    normalize_rows,
)

METHODS = ["graph", "subspace", "memberships", "argmax"]


def subspace(X, n_clusters):
    """Return Z of a matrix X as the model would: constant column and whitened directions."""
    X = np.asarray(X, dtype=float)
    u, s, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    rank = int((s > 1e-10 * s[0]).sum()) if s[0] > 0 else 0
    constant = np.full((len(X), 1), len(X) ** -0.5)
    return normalize_rows(np.concatenate([constant, u[:, : min(rank, 2 * n_clusters)]], axis=1))


def labels_of(labeller, Z, U=None):
    P = labeller.predict_proba(Z, U)
    return to_numpy(P).argmax(axis=1)


def cluster(X, n_clusters, seed=0, **options):
    Z = subspace(X, n_clusters)
    rng = np.random.default_rng(seed)
    return labels_of(fit_labels("graph", Z, None, n_clusters, rng=rng, **options), Z)


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


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_clusters", [1, 4, 9])
def test_soft_labels_use_every_label_and_are_numbered_by_size(xp, seed, method, n_clusters):
    rng = np.random.default_rng(seed)
    Z = subspace(rng.normal(size=(70, 6)), n_clusters)
    U = rng.dirichlet(np.full(n_clusters, 0.3), size=70) + 1e-3
    U /= U.sum(axis=1, keepdims=True)
    Z, U = xp.asarray(Z), xp.asarray(U)
    labeller = fit_labels(method, Z, U, n_clusters, rng=rng)
    P = labeller.predict_proba(Z, U)
    assert type(P) is type(Z)
    assert P.dtype == Z.dtype
    np.testing.assert_allclose(to_numpy(P).sum(axis=1), 1, rtol=1e-12)
    labels = to_numpy(P).argmax(axis=1)
    sizes = np.bincount(labels, minlength=n_clusters)
    assert (sizes > 0).all()
    assert (np.diff(sizes) <= 0).all()
    first = [int(np.argmax(labels == name)) for name in range(n_clusters)]
    for name in np.flatnonzero(np.diff(sizes) == 0):
        assert first[name] < first[name + 1]


@pytest.mark.parametrize("method", METHODS)
def test_planted_groups_are_found_and_libraries_agree(xp, seed, method):
    Z, U, names = mixtures(np.random.default_rng(seed))
    expected = fit_labels(method, Z, U, 4, rng=np.random.default_rng(seed))
    labeller = fit_labels(method, xp.asarray(Z), xp.asarray(U), 4, rng=np.random.default_rng(seed))
    labels = labels_of(labeller, xp.asarray(Z), xp.asarray(U))
    assert adjusted_rand_score(names, labels) == 1.0
    np.testing.assert_array_equal(labels, labels_of(expected, Z, U))


@pytest.mark.parametrize("method", METHODS)
def test_the_seed_decides_and_copies_of_the_labeller_agree(method):
    Z, U, _ = mixtures(np.random.default_rng(0))
    one, same = (fit_labels(method, Z, U, 4, rng=np.random.default_rng(3)) for _ in range(2))
    again = labeller_from_arrays(one.kind, one.to_arrays())
    for value in one.to_arrays().values():
        assert np.asarray(value).dtype.kind in "iuf"
    np.testing.assert_array_equal(one.predict_proba(Z, U), same.predict_proba(Z, U))
    np.testing.assert_array_equal(one.predict_proba(Z, U), again.predict_proba(Z, U))
    assert again.uses == one.uses


@pytest.mark.parametrize(
    ("method", "kind", "uses"),
    [
        ("graph", GraphLabels, "subspace"),
        ("subspace", CenterLabels, "subspace"),
        ("memberships", CenterLabels, "memberships"),
        ("argmax", ArgmaxLabels, "memberships"),
    ],
)
def test_each_way_needs_one_of_the_two(method, kind, uses):
    Z, U, _ = mixtures(np.random.default_rng(0))
    Z, U = (Z, None) if uses == "subspace" else (None, U)
    labeller = fit_labels(method, Z, U, 4, rng=np.random.default_rng(0))
    assert isinstance(labeller, kind)
    assert labeller.uses == uses
    assert labeller.predict_proba(Z, U).shape == (120, 4)
    missing = "Z" if uses == "subspace" else "U"
    with pytest.raises(ValueError, match=rf"fit_labels\(method='{method}'\) needs {missing}\."):
        fit_labels(method, None, None, 4, rng=np.random.default_rng(0))


@pytest.mark.parametrize("method", ["graph", "subspace", "memberships"])
@pytest.mark.parametrize("n_samples", [1, 2, 15, 25])
def test_as_many_clusters_as_samples(method, n_samples, rng):
    X = np.eye(n_samples)
    Z = subspace(X, n_samples) if n_samples > 1 else np.ones((1, 1))
    U = 0.5 * X + 0.5 / n_samples
    labeller = fit_labels(method, Z, U, n_samples, rng=rng)
    np.testing.assert_array_equal(labels_of(labeller, Z, U), np.arange(n_samples))


@pytest.mark.parametrize("method", ["graph", "subspace", "memberships"])
def test_fewer_distinct_samples_than_clusters_warn(xp, method, rng):
    Z = xp.asarray(np.repeat(normalize_rows(rng.normal(size=(3, 4))), 10, axis=0))
    with pytest.warns(ConvergenceWarning, match="Only 3 of n_clusters=5 clusters have samples"):
        labeller = fit_labels(method, Z, Z, 5, rng=rng)
    P = to_numpy(labeller.predict_proba(Z, Z))
    assert P.shape == (30, 5)
    assert np.isfinite(P).all()
    np.testing.assert_array_equal(P.argmax(axis=1), np.repeat(P[::10].argmax(axis=1), 10))
    assert set(P.argmax(axis=1)) == {0, 1, 2}


def test_all_samples_equal_and_one_cluster(rng):
    Z = normalize_rows(np.full((8, 1), 8**-0.5))
    labeller = fit_labels("graph", Z, None, 1, rng=rng)
    np.testing.assert_array_equal(labeller.predict_proba(Z), np.ones((8, 1)))


def test_centre_labels_are_nearest_centres_and_sharp_without_spread(rng):
    Z = rng.normal(size=(60, 3))
    labeller = fit_labels("subspace", Z, None, 5, rng=rng)
    distances = ((Z[:, None] - labeller.centers[None]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(labels_of(labeller, Z), distances.argmin(axis=1))
    expected = np.exp(-distances / (2 * labeller.scale))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(labeller.predict_proba(Z), expected, rtol=1e-9)
    sharp = CenterLabels(labeller.centers, 0.0, "subspace").predict_proba(Z)
    assert set(np.unique(sharp)) == {0.0, 1.0}


def test_argmax_raises_components_that_are_nobodys_largest(xp, seed):
    rng = np.random.default_rng(seed)
    U = rng.dirichlet(np.ones(5), size=50)
    U[:, 3:] *= 1e-3
    U = (U + 1e-6) / (U + 1e-6).sum(axis=1, keepdims=True)
    assert len(np.unique(U.argmax(axis=1))) == 3
    labeller = fit_labels("argmax", None, xp.asarray(U), 5, rng=rng)
    labels = labels_of(labeller, None, xp.asarray(U))
    assert set(labels) == set(range(5))
    kept = np.isin(to_numpy(labeller.order)[labels], [0, 1, 2])
    np.testing.assert_array_equal(to_numpy(labeller.order)[labels][kept], U.argmax(axis=1)[kept])


def test_argmax_with_fewer_components_than_clusters(rng):
    U = rng.dirichlet(np.ones(3), size=40)
    with pytest.warns(ConvergenceWarning, match="Only 3 of n_clusters=4"):
        labeller = fit_labels("argmax", None, U, 4, rng=rng)
    P = labeller.predict_proba(None, U)
    assert P.shape == (40, 4)
    assert (P[:, 3] == 0).all()


def test_argmax_with_more_components_than_clusters_is_an_error(rng):
    U = rng.dirichlet(np.ones(5), size=40)
    with pytest.raises(ValueError, match="needs n_components=5 <= n_clusters=4"):
        fit_labels("argmax", None, U, 4, rng=rng)


def test_bad_arguments(rng):
    with pytest.raises(ValueError, match="'method' parameter of fit_labels must be one of 'graph'"):
        fit_labels("votes", np.eye(3), None, 2, rng=rng)
    with pytest.raises(ValueError, match=r"n_samples=3 must be >= n_clusters=4\."):
        fit_labels("graph", np.eye(3), None, 4, rng=rng)
    with pytest.raises(ValueError, match="'kind' parameter of labeller_from_arrays must be one of"):
        labeller_from_arrays("pickle", {})


def test_rows_have_unit_length_and_zero_rows_stay(xp, rng):
    Q = rng.normal(size=(20, 6))
    Q[3] = 0
    norms = np.linalg.norm(to_numpy(normalize_rows(xp.asarray(Q))), axis=1)
    np.testing.assert_allclose(np.delete(norms, 3), 1, rtol=1e-14)
    assert norms[3] == 0


def test_many_directions_give_the_direction_of_a_row_and_few_the_distance(rng):
    Q = np.concatenate([np.full((50, 1), 50**-0.5), rng.normal(size=(50, 400)) / 7], axis=1)
    plain = Q / np.linalg.norm(Q, axis=1, keepdims=True)
    np.testing.assert_allclose(normalize_rows(Q), plain, atol=1e-4)
    few = Q[:, :2]
    Z = normalize_rows(few)
    gaps = abs(few[:, None, 1] - few[None, :, 1]) * 50**0.5 / np.hypot(1, 10)
    np.testing.assert_allclose(
        np.linalg.norm(Z[:, None] - Z[None], axis=2), gaps, atol=0.05 * gaps.max()
    )
