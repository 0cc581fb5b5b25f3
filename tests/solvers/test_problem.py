"""An objective on a manifold: Riemannian derivatives, differences, what must be there."""

from __future__ import annotations

import numpy as np
import pytest

from tuckermix.manifolds import Multinomial
from tuckermix.objectives import MembershipObjective
from tuckermix.solvers import trust_region
from tuckermix.solvers._problem import Problem


class Bare:
    """A manifold without the shortcut for repeated Hessians."""

    def __init__(self, manifold):
        for name in ("inner", "projection", "rgrad", "rhess", "retraction", "transport"):
            setattr(self, name, getattr(manifold, name))


class WithoutHessian:
    def __init__(self, objective):
        self.cost, self.egrad = objective.cost, objective.egrad


def _setting(rng):
    objective = MembershipObjective(rng.standard_normal((15, 6)))
    manifold = Multinomial(15, 4)
    U = manifold.random_point(rng)
    return objective, manifold, U, manifold.random_tangent(U, rng)


def test_derivatives_are_the_manifold_s(rng):
    objective, manifold, U, xi = _setting(rng)
    egrad, ehess = objective.egrad(U), objective.ehess(U, xi)
    for chosen in (manifold, Bare(manifold)):
        problem = Problem(objective, chosen)
        assert problem.cost(U) == objective.cost(U)
        np.testing.assert_allclose(problem.move(U), manifold.rgrad(U, egrad), rtol=1e-14)
        np.testing.assert_allclose(
            problem.hessian(xi), manifold.rhess(U, egrad, ehess, xi), rtol=1e-12, atol=1e-14
        )
        assert problem.n_hessians == 1


def test_differences_approach_the_hessian_at_a_solution(rng):
    """Elsewhere they miss a multiple of the gradient: the transport is a mere projection."""
    objective, manifold, U, xi = _setting(rng)
    U = trust_region(objective, manifold, U, tol=1e-9).point
    exact, differences = Problem(objective, manifold), Problem(WithoutHessian(objective), manifold)
    exact.move(U)
    differences.move(U)
    H = exact.hessian(xi)
    error = manifold.norm(U, differences.hessian(xi) - H)
    assert error <= 0.01 * max(1.0, manifold.norm(U, H))
    assert np.all(differences.hessian(0.0 * xi) == 0)


def test_preconditioner_gets_the_point(rng):
    objective, manifold, U, xi = _setting(rng)
    problem = Problem(objective, manifold, lambda point, vector: (point, vector))
    problem.move(U)
    point, vector = problem.precondition(xi)
    assert point is U
    assert vector is xi


def test_what_is_missing_is_named():
    with pytest.raises(TypeError, match="Bare lacks cost, egrad, which trust_region needs"):
        Problem(Bare(Multinomial(3, 2)), Multinomial(3, 2))
    with pytest.raises(TypeError, match="int lacks inner, projection, rgrad, rhess, retraction"):
        Problem(MembershipObjective(np.ones((3, 2))), 3)
