"""The membership objective: derivatives, shared work, the theorem's optimum."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuckermix import objectives as module
from tuckermix._array_api import to_numpy
from tuckermix.manifolds import Multinomial
from tuckermix.numerics.tensor import multi_mode_dot
from tuckermix.objectives import MembershipObjective, RowPreconditioner, TuckerObjective
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


def test_every_library_preconditions_the_same(xp, rng):
    objective, manifold = _faces_like(rng, M=30, P=10, L=5)
    U = manifold.random_point(rng)
    xi = manifold.random_tangent(U, rng)
    other = MembershipObjective(xp.asarray(objective.B))
    got = other.preconditioner(xp.asarray(U), xp.asarray(xi))
    np.testing.assert_allclose(to_numpy(got), objective.preconditioner(U, xi), atol=1e-10)


def _problem(rng, n_samples=20, n_features=7, n_components=4):
    B = rng.standard_normal((n_samples, n_features)) + rng.standard_normal(n_features)
    return MembershipObjective(B), Multinomial(n_samples, n_components).random_point(rng)


def _plain_cost(B, U):
    return -0.5 * np.trace(B.T @ U @ np.linalg.inv(U.T @ U) @ U.T @ B)


def test_cost_is_the_projection(rng):
    objective, U = _problem(rng)
    B = objective.B
    assert objective.cost(U) == pytest.approx(_plain_cost(B, U), rel=1e-12)
    Q = np.linalg.qr(U)[0]
    assert objective.cost(U) == pytest.approx(-0.5 * np.linalg.norm(Q.T @ B) ** 2, rel=1e-12)


def test_gradient_and_hessian_equal_the_formulas_of_the_paper(rng):
    objective, U = _problem(rng)
    xi = rng.standard_normal(U.shape)
    BB, inverse = objective.B @ objective.B.T, np.linalg.inv(U.T @ U)
    BBU = BB @ U

    def sym(A):
        return (A + A.T) / 2

    gradient = -BBU @ inverse + U @ inverse @ U.T @ BBU @ inverse
    np.testing.assert_allclose(objective.egrad(U), gradient, rtol=1e-10, atol=1e-10)
    C = U.T @ BBU
    hessian = (
        -BB @ xi @ inverse
        + xi @ inverse @ C @ inverse
        + 2 * BBU @ inverse @ sym(xi.T @ U) @ inverse
        + 2 * U @ inverse @ sym(xi.T @ BBU) @ inverse
        - 2 * U @ inverse @ sym(U.T @ xi) @ inverse @ C @ inverse
        - 2 * U @ inverse @ C @ inverse @ sym(U.T @ xi) @ inverse
    )
    np.testing.assert_allclose(objective.ehess(U, xi), hessian, rtol=1e-9, atol=1e-9)


def test_derivatives_agree_with_differences(rng):
    objective, U = _problem(rng)
    xi = rng.standard_normal(U.shape)
    step = 1e-5
    ahead, behind = U + step * xi, U - step * xi
    slope = (objective.cost(ahead) - objective.cost(behind)) / (2 * step)
    assert np.sum(objective.egrad(U) * xi) == pytest.approx(slope, rel=1e-6)
    curve = (objective.egrad(ahead) - objective.egrad(behind)) / (2 * step)
    np.testing.assert_allclose(objective.ehess(U, xi), curve, rtol=1e-4, atol=1e-4)


@given(st.integers(2, 12), st.integers(1, 15), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_no_memberships_undercut_the_optimum_and_some_attain_it(M, P, L, seed):
    rng = np.random.default_rng(seed)
    L = min(L, M)
    B = rng.standard_normal((M, P)) + 3.0 * rng.standard_normal(P)
    objective = MembershipObjective(B)
    optimum = objective.optimum(L)
    for _ in range(3):
        U = Multinomial(M, L).random_point(rng)
        assert objective.cost(U) >= optimum - 1e-10 * abs(optimum)
    # A simplex around the leading directions: the construction of the proof.
    left = np.linalg.svd(B - B.mean(axis=0))[0][:, : L - 1]
    left -= left.mean(axis=0)
    vertices = 4.0 * L * np.vstack([np.eye(L - 1), -np.ones(L - 1)]) if L > 1 else np.zeros((1, 0))
    weights = np.linalg.solve(
        np.hstack([np.ones((L, 1)), vertices]).T, np.hstack([np.ones((M, 1)), left]).T
    ).T
    assert weights.min() > 0
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-9)
    if np.linalg.matrix_rank(B - B.mean(axis=0)) >= L - 1:
        assert objective.cost(weights) == pytest.approx(optimum, rel=1e-8, abs=1e-10)


def test_wide_data_are_replaced_by_their_smaller_side(rng):
    B = rng.standard_normal((10, 500))
    objective = MembershipObjective(B)
    U = Multinomial(10, 3).random_point(rng)
    xi = rng.standard_normal(U.shape)
    assert objective.B.shape == (10, 10)
    assert objective.cost(U) == pytest.approx(_plain_cost(B, U), rel=1e-12)
    spectrum = np.linalg.svd(B - B.mean(axis=0), compute_uv=False)
    bound = 0.5 * (10 * np.sum(B.mean(axis=0) ** 2) + np.sum(spectrum[:2] ** 2))
    assert objective.optimum(3) == pytest.approx(-bound, rel=1e-12)
    inverse = np.linalg.inv(U.T @ U)
    W = inverse @ U.T @ B
    np.testing.assert_allclose(objective.egrad(U), -(B - U @ W) @ W.T, rtol=1e-9, atol=1e-9)
    assert objective.ehess(U, xi).shape == U.shape


def test_tensors_are_unfolded(rng):
    B = rng.standard_normal((12, 2, 3))
    U = Multinomial(12, 3).random_point(rng)
    flat = MembershipObjective(B.reshape(12, 6))
    assert MembershipObjective(B).cost(U) == flat.cost(U)


def test_work_is_shared_between_calls_at_one_point(rng):
    objective, U = _problem(rng)
    with mock.patch.object(module, "_State", wraps=module._State) as state:
        objective.cost(U)
        objective.egrad(U)
        objective.ehess(U, U)
        objective.ehess(U.copy(), U)
        assert state.call_count == 1
        trial = Multinomial(*U.shape).random_point(rng)
        objective.cost(trial)
        objective.egrad(U)  # the point before the trial is still there
        assert state.call_count == 2


def test_a_point_changed_in_place_is_seen(rng):
    objective, U = _problem(rng)
    before = objective.cost(U)
    U[0] = U[0, ::-1].copy()
    assert objective.cost(U) != before
    assert objective.cost(U) == pytest.approx(_plain_cost(objective.B, U), rel=1e-12)


def test_dependent_columns_count_once(rng):
    """Equal rows or equal columns make UᵀU singular; the projection is still defined."""
    objective, U = _problem(rng)
    twice = np.hstack([U / 2, U / 2])
    assert objective.cost(twice) == pytest.approx(objective.cost(U), rel=1e-9)
    flat = np.full_like(U, 0.25)
    energy = 0.5 * U.shape[0] * np.sum(objective.B.mean(axis=0) ** 2)
    assert objective.cost(flat) == pytest.approx(-energy, rel=1e-9)
    assert np.isfinite(objective.egrad(flat)).all()
    assert np.isfinite(objective.ehess(flat, U)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_library_computes_the_same(xp, dtype, rng):
    objective, U = _problem(rng)
    xi = rng.standard_normal(U.shape)
    kind = getattr(xp, dtype)
    other = MembershipObjective(xp.asarray(objective.B, dtype=kind))
    V, zeta = xp.asarray(U, dtype=kind), xp.asarray(xi, dtype=kind)
    rtol = 1e-10 if dtype == "float64" else 2e-3
    assert other.cost(V) == pytest.approx(objective.cost(U), rel=rtol)
    assert other.optimum(3) == pytest.approx(objective.optimum(3), rel=rtol)
    for got, expected in (
        (other.egrad(V), objective.egrad(U)),
        (other.ehess(V, zeta), objective.ehess(U, xi)),
    ):
        assert got.dtype == kind
        np.testing.assert_allclose(
            to_numpy(got), expected, rtol=rtol, atol=rtol * np.abs(expected).max()
        )


def test_bad_input_is_refused(rng):
    objective, U = _problem(rng)
    with pytest.raises(ValueError, match=r"B must be an array of shape .* Got list of shape \(\)"):
        MembershipObjective([[1.0]])
    with pytest.raises(ValueError, match=r"B must be an array .* Got ndarray of shape \(3,\)"):
        MembershipObjective(np.ones(3))
    with pytest.raises(ValueError, match="B has entries that are not finite"):
        MembershipObjective(np.full((3, 2), np.nan))
    with pytest.raises(ValueError, match=r"U has shape \(5, 4\), but B has 20 samples"):
        objective.cost(U[:5])
    with pytest.raises(ValueError, match="'n_components' parameter of optimum"):
        objective.optimum(0)


@pytest.mark.parametrize("shape", [(40, 12), (12, 40)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gap_is_what_is_missed_of_the_centred_energy(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    B = (rng.standard_normal(shape) + 2.0).astype(dtype)
    U = Multinomial(shape[0], 4).random_point(rng)
    centred = B.astype(np.float64) - B.mean(axis=0, dtype=np.float64)
    basis = np.linalg.qr(U)[0]
    possible = np.sum(np.linalg.svd(centred, compute_uv=False)[:3] ** 2)
    missed = 1 - np.sum((basis.T @ centred) ** 2) / possible
    tolerance = 1e-9 if dtype == np.float64 else 1e-4
    assert MembershipObjective(B).gap(U) == pytest.approx(missed, rel=tolerance)


@pytest.mark.parametrize("shift", [10.0, 1e4, 1e6])
def test_the_gap_does_not_see_a_constant(shift, seed):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((60, 8))
    U = Multinomial(60, 5).random_point(rng)
    assert MembershipObjective(B + shift).gap(U) == pytest.approx(
        MembershipObjective(B).gap(U), abs=1e-6
    )


def test_the_gap_closes_at_the_optimum(seed):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((30, 6))
    left = np.linalg.svd(B - B.mean(axis=0), full_matrices=False)[0][:, :3]
    corners = np.eye(4) - 0.25
    U = 0.25 + 0.1 * left @ np.linalg.svd(corners)[2][:3]
    assert np.all(U > 0)
    assert MembershipObjective(B).gap(U) <= 1e-14


def test_the_gap_of_equal_samples_is_zero():
    assert MembershipObjective(np.ones((4, 2))).gap(np.full((4, 2), 0.5)) == 0.0


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
def test_derivatives_of_the_whole_agree_with_differences(rng, shape, ranks):
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


def test_every_library_computes_the_same_of_the_whole(xp, rng):
    X, point, vector = _setting(rng)
    plain, other = TuckerObjective(X), TuckerObjective(xp.asarray(X))
    there = [xp.asarray(block) for block in point]
    assert other.cost(there) == pytest.approx(plain.cost(point), rel=1e-12)
    got = other.ehess(there, [xp.asarray(block) for block in vector])
    for block, expected in zip(got, plain.ehess(point, vector), strict=True):
        np.testing.assert_allclose(to_numpy(block), expected, atol=1e-9)
