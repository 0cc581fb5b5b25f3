"""The smallest simplex: encloses, is no larger than others, and recovers planted ones."""

import numpy as np
import pytest
import scipy.optimize
from tests.cases import each

from tuckermix import memberships as module
from tuckermix.memberships import (
    extreme_samples,
    shrink,
    shrink_softly,
    smallest_simplex,
    spread_samples,
)
from tuckermix.sources import as_blocks

ROUNDING = 1e-9


def log_volume(vertices):
    return np.linalg.slogdet(np.column_stack([np.ones(len(vertices)), vertices]))[1]


def cloud(seed, n_samples=80, n_directions=3):
    A = np.random.default_rng(seed).standard_normal((n_samples, n_directions))
    return np.linalg.qr(A - A.mean(axis=0))[0]


def test_it_encloses_all_samples(xp, seed, planted):
    for n_directions in [0, 1, 2, 5, 12]:
        Z = cloud(seed, n_directions=n_directions)
        vertices = smallest_simplex(xp.asarray(Z), np.random.default_rng(seed))
        assert vertices.shape == (n_directions + 1, n_directions)
        weights = planted.barycentric(Z, vertices)
        assert weights.min() > -ROUNDING
        if n_directions:  # every facet is touched, else it could move inwards
            np.testing.assert_allclose(weights.min(axis=0), 0.0, atol=1e-4)


@each("snr, most", [(None, 0.01), (40, 0.03)])
@each("n_components", [3, 6, 10, 12])
def test_planted_simplices_are_recovered(n_components, snr, most, seed, planted):
    X, truth, _ = planted.simplex(n_components, seed, snr=snr)
    Z = planted.coordinates(X, n_components)
    vertices = smallest_simplex(Z, np.random.default_rng(seed))
    assert planted.rmse(planted.barycentric(Z, vertices), truth) <= most


def test_one_direction_gives_the_two_ends(rng):
    Z = cloud(0, n_directions=1)
    np.testing.assert_allclose(
        np.sort(smallest_simplex(Z, rng)[:, 0]), [Z.min(), Z.max()], rtol=1e-5
    )


def test_no_facet_can_be_moved_to_a_smaller_simplex(seed):
    """For one facet, the others fixed, the smallest simplex solves a linear program: compare."""
    Z = cloud(seed, n_directions=3) * 80**0.5
    Q = shrink(Z, Z[spread_samples(Z, np.random.default_rng(seed))])
    lifted = np.column_stack([np.ones(len(Z)), Z])
    cofactors = np.linalg.inv(Q).T  # det Q is linear in each column, with these coefficients
    for k in range(3):
        other = 3  # gives up what column k takes, so that columns add up to e_1
        gain = cofactors[:, k] - cofactors[:, other]
        found = scipy.optimize.linprog(
            -gain,
            A_ub=np.vstack([-lifted, lifted]),
            b_ub=np.concatenate([lifted @ Q[:, k], lifted @ Q[:, other]]),
            bounds=(None, None),
        )
        assert -found.fun < 1e-4  # relative growth of the determinant to first order


@each("n_components, snr", [(3, 40), (6, None), (10, 40)])
def test_gross_outliers_stay_outside(n_components, snr, seed, planted):
    X, truth, _ = planted.simplex(n_components, seed, snr=snr)
    rng = np.random.default_rng(seed)
    Z = planted.coordinates(X, n_components)
    outliers = rng.choice(len(Z), size=len(Z) // 20, replace=False)
    far = rng.standard_normal((len(outliers), n_components - 1))
    Z[outliers] = 4 * np.abs(Z).max() * far / np.linalg.norm(far, axis=1, keepdims=True)
    Z = np.linalg.svd(Z - Z.mean(axis=0), full_matrices=False)[0]
    weights = planted.barycentric(Z, smallest_simplex(Z, rng, outside=0.05))
    assert np.mean(weights.min(axis=1) < -ROUNDING) <= 0.05
    kept = np.setdiff1d(np.arange(len(Z)), outliers)
    assert planted.rmse(weights[kept], truth[kept]) <= 0.03
    # What must hold the outliers too is far off.
    strict = planted.barycentric(Z, smallest_simplex(Z, rng))
    assert planted.rmse(strict[kept], truth[kept]) > 0.03


@pytest.mark.parametrize("n_outside", [60, 150])
def test_the_price_bounds_how_many_fall_outside(n_outside, seed, planted):
    X, truth, _ = planted.simplex(5, seed, snr=30)
    Z = planted.coordinates(X, 5) * len(X) ** 0.5
    start = Z[spread_samples(Z, np.random.default_rng(seed))]
    weights = planted.barycentric(Z, np.linalg.inv(shrink_softly(Z, start, n_outside))[:, 1:])
    found = np.sum(weights.min(axis=1) < -1e-4)
    assert 0.5 * n_outside <= found <= n_outside  # some lie on the facets, which is allowed
    exact = planted.barycentric(Z, np.linalg.inv(shrink(Z, start))[:, 1:])
    assert planted.rmse(weights, truth) < planted.rmse(exact, truth)


def test_many_samples_are_searched_by_their_extremes(limits, seed, planted):
    X, _, _ = planted.simplex(4, seed, n_samples=3000)
    Z = planted.coordinates(X, 4)
    whole = smallest_simplex(Z, np.random.default_rng(seed))
    limits(simplex_samples=200)
    part = smallest_simplex(Z, np.random.default_rng(seed))
    assert planted.barycentric(Z, part).min() > -ROUNDING
    assert log_volume(part) == pytest.approx(log_volume(whole), abs=1e-3)
    robust = smallest_simplex(Z, np.random.default_rng(seed), outside=0.02)
    assert np.sum(planted.barycentric(Z, robust).min(axis=1) < -ROUNDING) <= 60


def test_a_sample_alone_in_its_direction_is_found(limits, planted):
    limits(simplex_samples=50)
    A = np.random.default_rng(0).standard_normal((400, 3))
    A[:, 2] = 0.0
    A[123, 2] = 5.0
    Z = np.linalg.qr(A - A.mean(axis=0))[0]
    assert planted.barycentric(Z, smallest_simplex(Z, np.random.default_rng(0))).min() > -ROUNDING


def test_as_many_samples_as_vertices_and_duplicates(planted):
    Z = cloud(0, n_samples=5, n_directions=4)
    weights = planted.barycentric(Z, smallest_simplex(Z, np.random.default_rng(0)))
    np.testing.assert_allclose(np.sort(weights, axis=1)[:, -1], 1.0, atol=1e-4)
    Z = np.repeat(cloud(1, 6, 2), 5, axis=0) / 5**0.5
    assert planted.barycentric(Z, smallest_simplex(Z, np.random.default_rng(0))).min() > -ROUNDING


def test_dependent_samples_give_way_to_a_regular_start(settings, planted):
    settings(module.VolumeSettings(worst_condition=0.5))
    Z = cloud(0)
    assert planted.barycentric(Z, smallest_simplex(Z, np.random.default_rng(0))).min() > -ROUNDING


def test_extreme_samples_are_vertices_of_the_hull(seed):
    Z = cloud(seed, n_samples=300, n_directions=2)
    hull = set(scipy.spatial.ConvexHull(Z).vertices.tolist())
    found = extreme_samples(as_blocks(Z), np.random.default_rng(seed))
    index = {int(np.argmin(np.sum((Z - point) ** 2, axis=1))) for point in found}
    assert index <= hull
    assert len(index) > 0.5 * len(hull)
