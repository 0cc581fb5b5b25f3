"""The objective over memberships and factors: derivatives, blocks, preconditioner."""

from __future__ import annotations

import numpy as np
import pytest

from tuckermix._array_api import to_numpy
from tuckermix.manifolds import Multinomial
from tuckermix.numerics.tensor import multi_mode_dot
from tuckermix.objectives import MembershipObjective, TuckerObjective


def _setting(rng, shape=(5, 4, 3), ranks=(2, 3, 2), M=9, L=3):
    X = rng.standard_normal((M, *shape))
    factors = [
        np.linalg.qr(rng.standard_normal((d, r)))[0] for d, r in zip(shape, ranks, strict=True)
    ]
    point = [Multinomial(M, L).random_point(rng), *factors]
    return X, point, [rng.standard_normal(block.shape) for block in point]


@pytest.mark.parametrize(
    ("shape", "ranks"), [((6,), (3,)), ((5, 4), (2, 4)), ((5, 4, 3), (2, 3, 2))]
)
def test_derivatives_agree_with_differences(rng, shape, ranks):
    X, point, vector = _setting(rng, shape, ranks)
    objective = TuckerObjective(X)
    step = 1e-5
    ahead = [p + step * v for p, v in zip(point, vector, strict=True)]
    behind = [p - step * v for p, v in zip(point, vector, strict=True)]
    slope = (objective.cost(ahead) - objective.cost(behind)) / (2 * step)
    egrad = objective.egrad(point)
    assert sum(np.sum(g * v) for g, v in zip(egrad, vector, strict=True)) == pytest.approx(
        slope, rel=1e-6
    )
    changes = zip(objective.egrad(ahead), objective.egrad(behind), strict=True)
    for got, (plus, minus) in zip(objective.ehess(point, vector), changes, strict=True):
        np.testing.assert_allclose(got, (plus - minus) / (2 * step), rtol=1e-4, atol=1e-4)


def test_hessian_is_symmetric(rng):
    X, point, vector = _setting(rng)
    objective = TuckerObjective(X)
    other = [rng.standard_normal(block.shape) for block in point]
    one = sum(np.sum(a * b) for a, b in zip(objective.ehess(point, vector), other, strict=True))
    two = sum(np.sum(a * b) for a, b in zip(objective.ehess(point, other), vector, strict=True))
    assert one == pytest.approx(two, rel=1e-9)


def test_for_fixed_factors_it_is_the_membership_objective(rng):
    X, point, vector = _setting(rng)
    objective = TuckerObjective(X)
    U, *factors = point
    inner = MembershipObjective(multi_mode_dot(X, factors, transpose=True))
    assert objective.cost(point) == pytest.approx(inner.cost(U), rel=1e-12)
    np.testing.assert_allclose(objective.egrad(point)[0], inner.egrad(U), atol=1e-10)
    vector = [vector[0], *(0.0 * block for block in vector[1:])]
    np.testing.assert_allclose(
        objective.ehess(point, vector)[0], inner.ehess(U, vector[0]), atol=1e-9
    )
    got = objective.preconditioner(point, vector)
    np.testing.assert_allclose(got[0], inner.preconditioner(U, vector[0]), atol=1e-9)


def test_only_the_span_of_a_factor_matters(rng):
    """The reason for Grassmann manifolds: rotations leave cost and horizontal gradient alone."""
    X, point, _ = _setting(rng)
    objective = TuckerObjective(X)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    turned = [point[0], point[1], point[2] @ turn, point[3]]
    assert objective.cost(turned) == pytest.approx(objective.cost(point), rel=1e-12)
    vertical = point[2].T @ objective.egrad(point)[2]
    np.testing.assert_allclose(vertical, vertical.T, atol=1e-9)


def test_preconditioner_is_positive_and_keeps_the_kind_of_vectors(rng):
    class Vector(list):
        pass

    X, point, vector = _setting(rng)
    objective = TuckerObjective(X)
    vector[0] = Multinomial(9, 3).projection(point[0], vector[0])
    got = objective.preconditioner(point, Vector(vector))
    assert type(got) is Vector
    for block, plain in zip(got[1:], vector[1:], strict=True):
        assert 0.0 < np.sum(block * plain) <= np.sum(plain * plain)


def test_every_library_computes_the_same(xp, rng):
    X, point, vector = _setting(rng)
    plain, other = TuckerObjective(X), TuckerObjective(xp.asarray(X))
    there = [xp.asarray(block) for block in point]
    assert other.cost(there) == pytest.approx(plain.cost(point), rel=1e-12)
    got = other.ehess(there, [xp.asarray(block) for block in vector])
    for block, expected in zip(got, plain.ehess(point, vector), strict=True):
        np.testing.assert_allclose(to_numpy(block), expected, atol=1e-9)
