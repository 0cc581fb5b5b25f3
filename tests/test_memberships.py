"""The anchored simplex: feasible, optimal, as small as its anchors allow."""

import numpy as np
import pytest
from tests.cases import each

from tuckermix import memberships as module
from tuckermix._array_api import to_numpy
from tuckermix.memberships import (
    MARGIN,
    SIMPLICES,
    anchored_simplex,
    archetype_simplex,
    smallest_enclosing,
)
from tuckermix.numerics import kmeans, simplex_least_squares


def coordinates(seed, n_samples=60, n_directions=4):
    A = np.random.default_rng(seed).standard_normal((n_samples, n_directions))
    return np.linalg.qr(A - A.mean(axis=0))[0]


def check(Z, simplex):
    U, V = to_numpy(simplex.weights), to_numpy(simplex.vertices)
    assert np.all(U > 0)
    np.testing.assert_allclose(U.sum(axis=1), 1.0, atol=1e-13)
    np.testing.assert_allclose(U @ V, Z, atol=1e-12)


def test_weights_are_barycentric_coordinates_inside(xp, seed):
    for n_directions in [0, 1, 2, 7, 30]:
        Z = coordinates(seed, n_directions=n_directions)
        check(Z, anchored_simplex(xp.asarray(Z), np.random.default_rng(seed)))


def test_the_simplex_is_no_larger_than_its_anchors_ask(seed):
    simplex = anchored_simplex(coordinates(seed), np.random.default_rng(seed))
    smallest = simplex.weights.min() * simplex.weights.shape[1]
    assert smallest == pytest.approx(1 - 1 / MARGIN, rel=1e-9)


def test_as_many_components_as_samples_and_duplicates():
    Z = coordinates(0, n_samples=5, n_directions=4)
    check(Z, anchored_simplex(Z, np.random.default_rng(0)))
    Z = np.repeat(coordinates(1, 6, 2), 5, axis=0) / 5**0.5
    check(Z, anchored_simplex(Z, np.random.default_rng(0)))


def test_dependent_anchors_give_way_to_a_regular_simplex(settings):
    settings(module.AnchorSettings(worst_condition=0.5))
    Z = coordinates(0)
    simplex = anchored_simplex(Z, np.random.default_rng(0))
    check(Z, simplex)
    sides = np.linalg.norm(simplex.vertices[:, None] - simplex.vertices[None], axis=2)
    np.testing.assert_allclose(sides[~np.eye(5, dtype=bool)], sides[0, 1], rtol=1e-10)


def test_many_samples_are_anchored_on_a_part():
    Z = coordinates(2, n_samples=2 * module.ANCHOR_SAMPLES)
    check(Z, anchored_simplex(Z, np.random.default_rng(0)))


def test_the_table_names_the_default():
    assert SIMPLICES["anchored"] is anchored_simplex


@each("n_directions", [0, 1, 4])
def test_the_smallest_simplex_holds_all_samples_with_a_little_room(xp, n_directions, seed):
    Z = coordinates(seed, n_directions=n_directions)
    scales = xp.asarray(np.linspace(3.0, 1.0, n_directions))
    simplex = smallest_enclosing(xp.asarray(Z), np.random.default_rng(seed), scales=scales)
    check(Z, simplex)
    assert simplex.squared_error == 0.0
    anchored = anchored_simplex(xp.asarray(Z), np.random.default_rng(seed))
    assert volume(simplex) <= volume(anchored)


def volume(simplex):
    V = to_numpy(simplex.vertices)
    return abs(np.linalg.det(np.column_stack([np.ones(len(V)), V])))


@pytest.mark.parametrize("way", ["outside", "archetypes"])
def test_what_lies_outside_is_projected_in_units_of_the_samples(xp, way, seed):
    Z = coordinates(seed, n_samples=200)
    scales = np.array([4.0, 3.0, 2.0, 1.0])
    rng = np.random.default_rng(seed)
    if way == "outside":
        given = {"scales": xp.asarray(scales), "outside": 0.1}
        simplex = smallest_enclosing(xp.asarray(Z), rng, **given)
    else:
        simplex = archetype_simplex(xp.asarray(Z), rng, scales=xp.asarray(scales))
    V, U = to_numpy(simplex.vertices) * scales, to_numpy(simplex.weights)
    np.testing.assert_allclose(U, simplex_least_squares(Z * scales, V), atol=1e-8)
    assert simplex.squared_error == pytest.approx(np.sum((Z * scales - U @ V) ** 2), rel=1e-9)
    assert simplex.squared_error > 0


def test_anchors_are_samples_and_wider_than_means_of_groups(seed):
    rng = np.random.default_rng(seed)
    Z = np.linalg.qr(rng.standard_normal((12, 8))[rng.integers(12, size=400)])[0]
    Z = coordinates(seed, 400, 8) + 2 * (Z - Z.mean(axis=0))
    Z = np.linalg.qr(Z)[0]
    simplex = anchored_simplex(Z, np.random.default_rng(seed))
    centre = simplex.vertices.mean(axis=0)
    # Seen from the barycentre, each vertex lies behind a sample, all as many times as far.
    behind = (simplex.vertices - centre)[:, None] / (Z - centre)[None]
    spread = behind.std(axis=2) / np.abs(behind.mean(axis=2))
    growth = behind.mean(axis=2)[np.arange(9), spread.argmin(axis=1)]
    assert spread.min(axis=1).max() < 1e-9
    np.testing.assert_allclose(growth, growth[0], rtol=1e-9)
    groups = kmeans(Z, 9, n_init=1, rng=rng).centers
    inverse = np.linalg.inv(np.column_stack([np.ones(9), groups]))
    lowest = (np.column_stack([np.ones(400), Z]) @ inverse).min()
    assert growth[0] < MARGIN * (1 - 9 * lowest)
