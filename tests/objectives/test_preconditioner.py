"""The preconditioner: its formula, symmetry, and what it saves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuckermix._array_api import to_numpy
from tuckermix.manifolds import Multinomial
from tuckermix.objectives import MembershipObjective
from tuckermix.objectives.preconditioner import RowPreconditioner
from tuckermix.solvers import trust_region


def _faces_like(rng, M=150, P=60, L=20):
    """Draw rows whose singular values fall over orders of magnitude, as those of images do."""
    B = rng.standard_normal((M, P)) * np.logspace(2, -1, P) + 10.0 * rng.random(P)
    return MembershipObjective(B), Multinomial(M, L)


def test_it_inverts_metric_plus_curvature(rng):
    """Row by row: (diag(1/u) + V Vᵀ) restricted to the tangent space, inverted densely."""
    U = Multinomial(6, 5).random_point(rng)
    apply = RowPreconditioner(U, rng.standard_normal((5, 9)) * np.logspace(0, 2, 5)[:, None])
    assert apply.V.shape == (5, 2)
    xi = Multinomial(6, 5).random_tangent(U, rng)
    E = np.linalg.qr(np.hstack([np.ones((5, 1)), rng.standard_normal((5, 4))]))[0][:, 1:]
    for row, u in enumerate(U):
        A = E.T @ (np.diag(1 / u) + apply.V @ apply.V.T) @ E
        expected = E @ np.linalg.solve(A, E.T @ (xi[row] / u))
        np.testing.assert_allclose(apply(xi)[row], expected, rtol=1e-9, atol=1e-12)


@given(st.integers(1, 8), st.integers(1, 7), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_it_is_symmetric_positive_and_tangent(M, L, P, seed):
    rng = np.random.default_rng(seed)
    objective = MembershipObjective(rng.standard_normal((M, P)) * np.logspace(2, -2, P))
    manifold = Multinomial(M, L)
    U = np.maximum(rng.dirichlet(np.full(L, 0.3), size=M), 1e-12)
    U /= U.sum(axis=1, keepdims=True)
    xi = manifold.projection(U, U * rng.standard_normal(U.shape))
    zeta = manifold.projection(U, U * rng.standard_normal(U.shape))
    P_xi, P_zeta = objective.preconditioner(U, xi), objective.preconditioner(U, zeta)
    manifold.check_tangent(U, P_xi)
    scale = manifold.norm(U, xi) * manifold.norm(U, zeta)
    difference = manifold.inner(U, P_xi, zeta) - manifold.inner(U, xi, P_zeta)
    assert abs(difference) <= 1e-9 * scale
    square = manifold.inner(U, xi, xi)
    # Between zero and the identity: the trust region it measures is inside the usual one.
    assert -1e-12 * square <= manifold.inner(U, P_xi, xi) <= (1 + 1e-9) * square


def _products(objective, manifold, U, **options):
    """Count Hessian products to a gap of 1e-6."""
    optimum = objective.optimum(manifold.n_components)
    result = trust_region(
        objective,
        manifold,
        U,
        callback=lambda entry: entry.cost - optimum <= 1e-6 * abs(optimum),
        max_inner=30,
        **options,
    )
    assert result.cost - optimum <= 1e-6 * abs(optimum)
    return result.history[-1].n_hessians


def test_it_saves_hessian_products():
    plain = better = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        objective, manifold = _faces_like(rng)
        U = manifold.random_point(rng)
        plain += _products(objective, manifold, U)
        better += _products(objective, manifold, U, preconditioner=objective.preconditioner)
    assert 3 * better <= plain


@pytest.mark.slow
def test_it_saves_hessian_products_on_faces(data_home):
    path = data_home / "pie_pose27.npz"
    if not path.is_file():
        pytest.skip(f"{path.name} is not among the datasets")
    with np.load(path) as data:
        chosen = np.random.default_rng(0).choice(np.unique(data["labels"]), 24, replace=False)
        X = data["images"][np.isin(data["labels"], chosen)].astype(float) / 255.0
    rows = [np.einsum("mij,mkj->ik", X, X), np.einsum("mji,mjk->ik", X, X)]
    first, second = (np.linalg.eigh(gram)[1][:, -12:] for gram in rows)
    objective = MembershipObjective(np.einsum("mij,ia,jb->mab", X, first, second, optimize=True))
    manifold = Multinomial(X.shape[0], 24)
    U = manifold.random_point(0)
    better = _products(objective, manifold, U, preconditioner=objective.preconditioner)
    assert 3 * better <= _products(objective, manifold, U)


def test_many_components_cost_no_more_than_hessians():
    U = Multinomial(5, 80).random_point(0)
    assert RowPreconditioner(U, np.random.default_rng(0).random((80, 2))).V.shape == (80, 6)


@pytest.mark.parametrize("case", ["two columns", "no data"])
def test_it_is_the_identity_where_there_is_nothing_to_gain(case, rng):
    B = rng.standard_normal((9, 4)) if case == "two columns" else np.zeros((9, 4))
    manifold = Multinomial(9, 2 if case == "two columns" else 5)
    U = manifold.random_point(rng)
    xi = manifold.random_tangent(U, rng)
    np.testing.assert_allclose(MembershipObjective(B).preconditioner(U, xi), xi, atol=1e-9)


def test_every_library_computes_the_same(xp, rng):
    objective, manifold = _faces_like(rng, M=30, P=10, L=5)
    U = manifold.random_point(rng)
    xi = manifold.random_tangent(U, rng)
    other = MembershipObjective(xp.asarray(objective.B))
    got = other.preconditioner(xp.asarray(U), xp.asarray(xi))
    np.testing.assert_allclose(to_numpy(got), objective.preconditioner(U, xi), atol=1e-10)
