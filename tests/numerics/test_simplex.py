"""The regular simplex; least squares against optimality conditions and a general solver."""

import itertools

import numpy as np
import pytest
import scipy.optimize
from tests.cases import each

from tuckermix._array_api import to_numpy
from tuckermix.numerics.simplex import regular_simplex, simplex_least_squares


def check_optimal(targets, vertices, weights):
    """The gradient is smallest, and equal, on the vertices in use: that is optimality here."""
    assert weights.min() >= 0
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-12)
    slope = (weights @ vertices - targets) @ vertices.T
    least = slope.min(axis=1, keepdims=True)
    assert np.max(weights * (slope - least)) < 1e-8 * max(1.0, np.abs(slope).max())


def test_solution_is_optimal_inside_and_outside(xp, seed):
    for n_directions, spread in itertools.product([1, 2, 5, 12], [0.1, 1.0, 20.0]):
        rng = np.random.default_rng(seed)
        vertices = rng.standard_normal((n_directions + 1, n_directions))
        targets = spread * rng.standard_normal((50, n_directions))
        weights = simplex_least_squares(xp.asarray(targets), xp.asarray(vertices))
        check_optimal(targets, vertices, to_numpy(weights))


def test_agrees_with_a_general_solver(seed):
    rng = np.random.default_rng(seed)
    vertices, targets = rng.standard_normal((4, 3)), 3 * rng.standard_normal((6, 3))
    ours = simplex_least_squares(targets, vertices)
    for target, weights in zip(targets, ours, strict=True):
        found = scipy.optimize.minimize(
            lambda w, t=target: np.sum((w @ vertices - t) ** 2),
            np.full(4, 0.25),
            method="SLSQP",
            bounds=[(0, 1)] * 4,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
            options={"ftol": 1e-14},
        )
        assert np.sum((weights @ vertices - target) ** 2) <= found.fun + 1e-9


def test_points_inside_get_their_barycentric_coordinates():
    vertices = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 4.0]])
    inside = np.array([[0.2, 0.3, 0.5], [0.0, 1.0, 0.0]])
    np.testing.assert_allclose(
        simplex_least_squares(inside @ vertices, vertices), inside, atol=1e-14
    )


@pytest.mark.parametrize("unit", [1e-150, 1e150])
def test_the_unit_of_length_does_not_matter(unit):
    rng = np.random.default_rng(0)
    vertices, targets = rng.standard_normal((5, 4)), rng.standard_normal((20, 4))
    np.testing.assert_allclose(
        simplex_least_squares(targets * unit, vertices * unit),
        simplex_least_squares(targets, vertices),
        atol=1e-12,
    )


def test_each_row_is_solved_on_its_own():
    rng = np.random.default_rng(1)
    vertices, targets = rng.standard_normal((6, 5)), 4 * rng.standard_normal((40, 5))
    together = simplex_least_squares(targets, vertices)
    alone = np.vstack([simplex_least_squares(row[None], vertices) for row in targets])
    np.testing.assert_allclose(together, alone, atol=1e-12)


def test_one_vertex_takes_all():
    weights = simplex_least_squares(np.zeros((3, 0), dtype=np.float32), np.zeros((1, 0)))
    np.testing.assert_array_equal(weights, np.ones((3, 1)))
    assert weights.dtype == np.float32


@pytest.mark.parametrize("n_directions", [1, 2, 3, 10])
def test_a_regular_simplex_has_equal_sides_and_unit_radius(n_directions):
    vertices = regular_simplex(n_directions)
    assert vertices.shape == (n_directions + 1, n_directions)
    np.testing.assert_allclose(np.linalg.norm(vertices, axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(vertices.sum(axis=0), 0.0, atol=1e-12)
    sides = np.linalg.norm(vertices[:, None] - vertices[None], axis=2)
    np.testing.assert_allclose(sides[~np.eye(n_directions + 1, dtype=bool)], sides[0, 1], rtol=1e-9)


def test_a_simplex_of_no_directions_is_a_point():
    assert regular_simplex(0).shape == (1, 0)


@each("seed", range(3))
@each("unit", [1e-290, 1.0, 1e100])
def test_points_from_very_far_go_to_the_vertex_in_their_direction(seed, unit):
    rng = np.random.default_rng(seed)
    vertices = rng.standard_normal((4, 3))
    directions = rng.standard_normal((50, 3))
    nearest = np.argmax(directions @ vertices.T, axis=1)
    for length in (1e12, 1e18, 1e200, 1e303):
        with np.errstate(over="ignore"):
            targets = np.clip(directions * length * unit, -1e307, 1e307)
        if np.abs(targets).max() == 1e307:
            continue  # clipped into another direction
        weights = simplex_least_squares(targets, vertices * unit)
        assert np.array_equal(np.argmax(weights, axis=1), nearest)
        assert np.allclose(weights.sum(axis=1), 1)
        assert weights.max(axis=1).min() > 0.999
