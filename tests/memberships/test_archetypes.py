"""Archetypes: within the hull of the samples, and no single one can be placed better."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from tuckermix.memberships import ArchetypeSettings, find_archetypes, project_rows
from tuckermix.numerics import simplex_least_squares


def cloud(seed, n_samples=120, n_directions=3):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n_samples, n_directions)) * np.linspace(3, 1, n_directions)
    return A - A.mean(axis=0)


def error_of(points, vertices):
    return np.sum((points - simplex_least_squares(points, vertices) @ vertices) ** 2)


def in_hull(point, points):
    equations = np.vstack([points.T, np.ones(len(points))])
    found = linprog(
        np.zeros(len(points)), A_eq=equations, b_eq=np.append(point, 1.0), bounds=(0, None)
    )
    return found.status == 0


def test_archetypes_are_mixtures_of_samples(xp, seed):
    for n_directions in [0, 1, 2, 4]:
        Y = cloud(seed, n_directions=n_directions)
        vertices = find_archetypes(xp.asarray(Y), np.random.default_rng(seed))
        assert vertices.shape == (n_directions + 1, n_directions)
        centre = Y.mean(axis=0)
        for vertex in vertices:  # a little inside, for the tolerance of the linear program
            assert not n_directions or in_hull(centre + (1 - 1e-6) * (vertex - centre), Y)


def test_no_archetype_can_be_placed_better(seed):
    """Descend in the mixtures of one archetype, the others fixed, with a general solver."""
    Y = cloud(seed, n_samples=20, n_directions=2)
    vertices = find_archetypes(Y, np.random.default_rng(seed))
    reached = error_of(Y, vertices)

    for k in range(3):

        def error_with(logits, k=k):
            mixture = np.exp(logits - logits.max())
            trial = vertices.copy()
            trial[k] = mixture / mixture.sum() @ Y
            return error_of(Y, trial)

        nearest = np.argmin(np.sum((Y - vertices[k]) ** 2, axis=1))
        start = np.where(np.arange(20) == nearest, 6.0, 0.0)
        found = minimize(error_with, start, method="Powell", options={"maxiter": 3})
        assert reached <= found.fun * 1.001


def test_pure_samples_are_found(seed, planted):
    X, truth, vertices = planted.simplex(4, seed, highest=0.5)
    X[:4], truth[:4] = vertices, np.eye(4)
    offset = X - X.mean(axis=0)
    Y = offset @ np.linalg.svd(offset, full_matrices=False)[2][:3].T
    found = find_archetypes(Y, np.random.default_rng(seed))
    assert planted.rmse(simplex_least_squares(Y, found), truth) < 0.01


def test_the_result_does_not_depend_on_the_start(seed, planted):
    X, _, _ = planted.simplex(5, seed, snr=40)
    Y = planted.coordinates(X, 5) * np.linspace(2, 1, 4)
    errors = [error_of(Y, find_archetypes(Y, np.random.default_rng(start))) for start in range(4)]
    assert max(errors) <= 1.05 * min(errors)


def test_many_samples_are_measured_on_a_part(limits, seed, planted):
    X, _, _ = planted.simplex(4, seed, n_samples=4000, snr=40)
    Y = planted.coordinates(X, 4)
    whole = error_of(Y, find_archetypes(Y, np.random.default_rng(seed)))
    limits(archetype_samples=400)
    part = error_of(Y, find_archetypes(Y, np.random.default_rng(seed)))
    assert part <= 1.2 * whole


def test_dependent_archetypes_give_way_to_samples(settings):
    settings(ArchetypeSettings(worst_condition=0.5))
    Y = cloud(0)
    for vertex in find_archetypes(Y, np.random.default_rng(0)):
        assert np.min(np.sum((Y - vertex) ** 2, axis=1)) < 1e-20


@pytest.mark.parametrize("unit", [1e-120, 1e120])
def test_the_unit_of_length_does_not_matter(unit):
    Y = cloud(3)
    expected = find_archetypes(Y, np.random.default_rng(0))
    np.testing.assert_allclose(
        find_archetypes(Y * unit, np.random.default_rng(0)) / unit, expected, rtol=1e-6
    )


def test_projected_rows_are_the_nearest_of_the_simplex(rng):
    rows = 2 * rng.standard_normal((50, 6))
    found = project_rows(rows)
    np.testing.assert_allclose(found, simplex_least_squares_on_unit(rows), atol=1e-10)


def simplex_least_squares_on_unit(rows):
    """Project by another road: least squares with the corners of the unit simplex."""
    corners = np.eye(rows.shape[1])
    basis = np.linalg.svd(corners - corners.mean(axis=0))[2][:-1]
    return simplex_least_squares(rows @ basis.T, corners @ basis.T)
