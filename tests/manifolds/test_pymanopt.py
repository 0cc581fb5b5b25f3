"""The exported manifold: Pymanopt's optimizers run on it and find the optimum."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tuckermix.manifolds import FromPymanopt, Multinomial, to_pymanopt
from tuckermix.objectives import MembershipObjective
from tuckermix.solvers import trust_region

pymanopt = pytest.importorskip("pymanopt")


def _problem(objective, manifold):
    on_arrays = pymanopt.function.numpy(manifold)
    return pymanopt.Problem(
        manifold,
        on_arrays(objective.cost),
        euclidean_gradient=on_arrays(objective.egrad),
        euclidean_hessian=on_arrays(objective.ehess),
    )


def _setting(seed):
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((3, 6)) * 3.0
    B = centres[rng.integers(3, size=25)] + 0.1 * rng.standard_normal((25, 6))
    manifold = Multinomial(25, 3)
    return MembershipObjective(B), manifold, manifold.random_point(rng)


@pytest.mark.parametrize("name", ["TrustRegions", "ConjugateGradient", "SteepestDescent"])
def test_optimizers_find_the_optimum(name, seed):
    objective, manifold, U = _setting(seed)
    optimizer = getattr(pymanopt.optimizers, name)(
        verbosity=0, max_iterations=2000, min_step_size=1e-14
    )
    result = optimizer.run(_problem(objective, to_pymanopt(manifold)), initial_point=U)
    rel = 1e-9 if name == "TrustRegions" else 1e-6
    assert result.cost == pytest.approx(objective.optimum(3), rel=rel)
    manifold.check_point(result.point, tol=1e-9)


def test_trust_regions_agree_with_ours():
    """Pymanopt looks at the residual one inner step later; with one step that is no matter."""
    objective, manifold, U = _setting(0)
    optimizer = pymanopt.optimizers.TrustRegions(verbosity=0, max_iterations=15)
    theirs = optimizer.run(_problem(objective, to_pymanopt(manifold)), initial_point=U, maxinner=1)
    ours = trust_region(objective, manifold, U, max_inner=1, max_iter=15)
    assert theirs.cost == pytest.approx(ours.cost, rel=1e-10)


def test_it_is_a_pymanopt_manifold():
    manifold = Multinomial(6, 4)
    exported = to_pymanopt(manifold, random_state=3)
    assert isinstance(exported, pymanopt.manifolds.manifold.Manifold)
    assert exported.dim == manifold.dim
    assert exported.typical_dist == manifold.typical_dist
    assert str(exported) == repr(manifold)
    U = exported.random_point()
    assert np.array_equal(U, manifold.random_point(3))
    manifold.check_point(U)
    xi = 0.1 * exported.random_tangent_vector(U)
    Y = exported.exp(U, xi)
    assert exported.dist(U, Y) == pytest.approx(exported.norm(U, xi), rel=1e-10)
    np.testing.assert_allclose(exported.log(U, Y), xi, atol=1e-10)
    middle = exported.pair_mean(U, Y)
    assert exported.dist(U, middle) == pytest.approx(exported.dist(middle, Y), rel=1e-9)
    np.testing.assert_array_equal(exported.to_tangent_space(U, Y), manifold.projection(U, Y))
    np.testing.assert_array_equal(exported.transport(U, Y, xi), manifold.projection(Y, xi))
    assert np.all(exported.zero_vector(U) == 0)
    assert exported.inner_product(U, xi, xi) == pytest.approx(exported.norm(U, xi) ** 2)


def test_it_may_be_a_factor_of_a_product():
    product = pymanopt.manifolds.Product(
        [to_pymanopt(Multinomial(6, 4), random_state=0), pymanopt.manifolds.Euclidean(3)]
    )
    point = product.random_point()
    assert product.dim == 6 * 3 + 3
    moved = product.retraction(point, product.zero_vector(point))
    np.testing.assert_allclose(moved[0], point[0], rtol=1e-12)


def test_what_is_missing_is_named(monkeypatch):
    with pytest.raises(TypeError, match=r"int lacks inner, norm, .*, which to_pymanopt needs"):
        to_pymanopt(3)
    monkeypatch.setitem(sys.modules, "pymanopt.manifolds.manifold", None)
    with pytest.raises(ImportError, match=r"to_pymanopt needs pymanopt: install"):
        to_pymanopt(Multinomial(3, 2))


def test_a_manifold_of_pymanopt_serves_our_solver(seed):
    """The leading subspace of a symmetric matrix, on Pymanopt's Grassmann manifold."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((8, 8))
    A = A + A.T

    class Trace:
        def cost(self, Y):
            return -0.5 * np.sum(Y * (A @ Y))

        def egrad(self, Y):
            return -A @ Y

        def ehess(self, Y, V):
            return -A @ V

    manifold = FromPymanopt(pymanopt.manifolds.Grassmann(8, 2))
    assert (manifold.dim, manifold.typical_dist) == (12, pytest.approx(2**0.5))
    assert repr(manifold) == "FromPymanopt(Grassmann manifold Gr(8,2))"
    start = np.linalg.qr(rng.standard_normal((8, 2)))[0]
    result = trust_region(Trace(), manifold, start)
    assert result.cost == pytest.approx(-0.5 * np.sum(np.linalg.eigvalsh(A)[-2:]), rel=1e-9)
