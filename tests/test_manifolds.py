"""The multinomial manifold: Manopt's values, the identities of the geometry, the boundary."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuckermix import manifolds as rows
from tuckermix._array_api import to_numpy
from tuckermix.manifolds import FisherMetric, Multinomial


def test_inner_product_is_the_sum_over_entries(rng):
    metric, U = FisherMetric(), rng.dirichlet(np.ones(3), size=5)
    xi, zeta = rng.standard_normal((2, 5, 3))
    assert metric.inner(U, xi, zeta) == pytest.approx(np.sum(xi * zeta / U), rel=1e-12)
    assert metric.norm(U, xi) == pytest.approx(np.sum(xi**2 / U) ** 0.5, rel=1e-12)


def test_gradient_stands_for_the_derivative(rng):
    """The metric with the gradient is the derivative of a function along a tangent vector."""
    metric, U, G = FisherMetric(), rng.dirichlet(np.ones(3), size=5), rng.standard_normal((5, 3))
    xi = metric.projection(U, rng.standard_normal((5, 3)))
    assert metric.inner(U, metric.rgrad(U, G), xi) == pytest.approx(np.sum(G * xi), rel=1e-10)


def test_hessian_equals_the_form_with_division(rng):
    """The formula of the paper, term by term, on a point where its division is harmless."""
    metric, U = FisherMetric(), rng.dirichlet(np.ones(4), size=9)
    G, H = rng.standard_normal(U.shape), rng.standard_normal(U.shape)
    xi = metric.projection(U, rng.standard_normal(U.shape))
    alpha = (G * U).sum(axis=1, keepdims=True)
    d_alpha = (H * U + G * xi).sum(axis=1, keepdims=True)
    gradient = G * U - alpha * U
    d_gradient = H * U + G * xi - alpha * xi - d_alpha * U
    paper = metric.projection(U, d_gradient - 0.5 * xi * gradient / U)
    np.testing.assert_allclose(metric.rhess(U, G, H, xi), paper, atol=1e-14)


EPS = float(np.finfo(float).eps)


def test_row_sums_are_columns(xp, rng):
    Z = rng.standard_normal((7, 4))
    got = to_numpy(rows.row_sums(xp.asarray(Z)))
    np.testing.assert_allclose(got, Z.sum(axis=1, keepdims=True), atol=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quotients_never_overflow(xp, dtype):
    kind = getattr(xp, dtype)
    largest = float(np.finfo(dtype).max)
    xi = xp.asarray([[largest, -largest, 0.0, 1.0]], dtype=kind)
    U = xp.asarray([[float(np.finfo(dtype).eps)] * 3 + [0.5]], dtype=kind)
    ratio = to_numpy(rows.safe_ratio(xi, U))
    assert np.isfinite(ratio).all()
    assert ratio[0, 0] > 1e20
    np.testing.assert_array_equal(ratio[0, 2:], [0.0, 2.0])


def test_angles_from_chords(xp):
    angles = np.array([0.0, 1e-12, 0.3, np.pi / 2])
    squares = (2 * np.sin(angles / 2)) ** 2
    got = to_numpy(rows.angle_from_chord(xp.asarray(squares)))
    np.testing.assert_allclose(got, angles, rtol=1e-12)
    assert np.isfinite(to_numpy(rows.angle_from_chord(xp.asarray([4.0 + 1e-9])))).all()


def test_floor(xp):
    values = xp.asarray([[0.0, EPS / 2, 0.5]], dtype=xp.float64)
    Y = to_numpy(rows.raise_to_floor(values))
    np.testing.assert_array_equal(Y, [[EPS, EPS, 0.5]])


def test_checks_name_what_is_wrong():
    with pytest.raises(ValueError, match=r"The point has shape \(2, 2\), but the manifold has"):
        rows.check_matrix(np.ones((2, 2)), (2, 3), "The point", None)
    with pytest.raises(ValueError, match="The point has entries that are not finite"):
        rows.check_matrix(np.full((2, 2), np.inf), (2, 2), "The point", None)
    with pytest.raises(ValueError, match="Row 1 of the point has an entry 0, not > 0"):
        rows.check_positive(np.array([[0.5, 0.5], [1.0, 0.0]]), "the point")
    with pytest.raises(ValueError, match=r"Row 1 of the point sums to 0.9, not 1 \(tolerance"):
        rows.check_row_sums(np.array([[0.5, 0.5], [0.4, 0.5]]), 1.0, "the point", 1e-9)
    assert rows.check_matrix(np.ones((2, 3)), (2, 3), "The point", 0.5) == 0.5
    assert rows.check_matrix(np.ones((2, 3)), (2, 3), "The point", None) == 3e3 * EPS


GOLDEN = Path(__file__).resolve().parent / "golden"

OPERATIONS = {
    "projection_of_Z": lambda m, d: m.projection(d["point_U"], d["ambient_Z"]),
    "rgrad_of_G": lambda m, d: m.rgrad(d["point_U"], d["egrad_G"]),
    "rhess_of_G_H_along_xi": lambda m, d: m.rhess(
        d["point_U"], d["egrad_G"], d["ehess_H"], d["tangent_xi"]
    ),
    "retraction_of_xi": lambda m, d: m.retraction(d["point_U"], d["tangent_xi"]),
    "exp_of_xi": lambda m, d: m.exp(d["point_U"], d["tangent_xi"]),
    "log_U_Y": lambda m, d: m.log(d["point_U"], d["point_Y"]),
    "dist_U_Y": lambda m, d: m.dist(d["point_U"], d["point_Y"]),
    "inner_xi_xi": lambda m, d: m.inner(d["point_U"], d["tangent_xi"], d["tangent_xi"]),
    "typicaldist": lambda m, d: m.typical_dist,
}


def test_operations_agree_with_manopt(xp):
    for name in OPERATIONS:
        golden = np.load(GOLDEN / "manopt_multinomial.npz")
        data = {key: xp.asarray(golden[key]) for key in golden if golden[key].ndim == 2}
        manifold = Multinomial(*golden["point_U"].shape)
        got = OPERATIONS[name](manifold, data)
        got = to_numpy(got) if hasattr(got, "shape") else got
        np.testing.assert_allclose(got, golden[name], rtol=1e-12, atol=1e-12)


@st.composite
def points(draw):
    """Draw a manifold and a point, in the middle or with entries down to machine epsilon."""
    manifold = Multinomial(draw(st.integers(1, 7)), draw(st.integers(2, 6)))
    spread = draw(st.sampled_from([0.0, 1.0, 8.0, 36.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    U = np.exp(-spread * rng.random(manifold.shape))
    U /= U.sum(axis=1, keepdims=True)
    return manifold, np.maximum(U, EPS), rng


def _tangent(manifold, U, rng):
    """Draw a tangent vector with entries in proportion to the point, as the metric has them."""
    return manifold.projection(U, U * rng.standard_normal(U.shape))


@given(points(), st.floats(-6, 6))
def test_projection_is_orthogonal_in_the_metric(case, exponent):
    manifold, U, rng = case
    Z = 10.0**exponent * U * rng.standard_normal(U.shape)
    xi = manifold.projection(U, Z)
    manifold.check_tangent(U, xi, tol=1e-13 * max(1.0, np.abs(Z).max()))
    zeta = _tangent(manifold, U, rng)
    # Near a corner of the simplex all but a trace of Z and ζ is projected away: rounding is
    # that of what they were before.
    scale = manifold.norm(U, Z) * max(1.0, manifold.norm(U, zeta))
    assert abs(manifold.inner(U, Z - xi, zeta)) <= 1e-12 * scale
    np.testing.assert_allclose(
        manifold.projection(U, xi), xi, rtol=1e-12, atol=1e-14 * np.abs(Z).max()
    )


@given(points(), st.floats(-6, 6))
def test_gradient_identity(case, exponent):
    manifold, U, rng = case
    G = 10.0**exponent * rng.standard_normal(U.shape)
    gradient = manifold.rgrad(U, G)
    manifold.check_tangent(U, gradient)
    xi = _tangent(manifold, U, rng)
    difference = manifold.inner(U, gradient, xi) - np.sum(G * xi)
    # The identity sums |G ξ|: near the boundary ξ/U is rounded, so ξ counts by its size / U.
    assert abs(difference) <= 1e-10 * np.abs(G).max() * max(1.0, manifold.norm(U, xi))


@given(points())
def test_hessian_is_tangent_and_self_adjoint(case):
    manifold, U, rng = case
    G, A = rng.standard_normal(U.shape), rng.standard_normal((U.size, U.size))
    A = A + A.T
    xi, zeta = _tangent(manifold, U, rng), _tangent(manifold, U, rng)

    def hessian(vector):
        return manifold.rhess(U, G, (A @ vector.ravel()).reshape(U.shape), vector)

    manifold.check_tangent(U, hessian(xi))
    one, other = manifold.inner(U, hessian(xi), zeta), manifold.inner(U, xi, hessian(zeta))
    assert one == pytest.approx(other, rel=1e-9, abs=1e-9 * manifold.n_samples)


@given(points(), st.floats(-3, -0.5))
def test_exp_log_and_dist_are_consistent(case, exponent):
    manifold, U, rng = case
    U = np.maximum(U, 1e-6)  # geodesics that leave the orthant are reflected, not inverted
    U /= U.sum(axis=1, keepdims=True)
    xi = U * rng.standard_normal(U.shape)
    xi = manifold.projection(U, xi) * 10.0**exponent
    largest = np.abs(xi / U).max()
    xi = xi / max(1.0, 2.0 * largest)
    Y = manifold.exp(U, xi)
    manifold.check_point(Y)
    assert manifold.dist(U, Y) == pytest.approx(manifold.norm(U, xi), rel=1e-8)
    back = manifold.log(U, Y)
    manifold.check_tangent(U, back)
    assert manifold.norm(U, back - xi) <= 1e-8 * manifold.norm(U, xi)
    assert manifold.dist(U, Y) == pytest.approx(manifold.dist(Y, U), rel=1e-12)


@given(points())
def test_distance_is_a_metric(case):
    manifold, U, rng = case
    Y, V = manifold.random_point(rng), manifold.random_point(rng)
    assert manifold.dist(U, U) == 0.0
    assert manifold.dist(U, Y) <= manifold.dist(U, V) + manifold.dist(V, Y) + 1e-12
    assert manifold.dist(U, Y) <= manifold.diameter
    assert manifold.norm(U, manifold.log(U, Y)) == pytest.approx(manifold.dist(U, Y), rel=1e-7)


def test_log_is_accurate_for_neighbours():
    """The arc cosine would see no difference between these two points."""
    manifold = Multinomial(1, 2)
    U = np.array([[0.5, 0.5]])
    for step in (1e-6, 1e-9, 1e-12):
        xi = np.array([[step, -step]])
        Y = U + xi
        assert manifold.dist(U, Y) == pytest.approx(manifold.norm(U, Y - U), rel=1e-6)
        np.testing.assert_allclose(manifold.log(U, Y), Y - U, rtol=1e-6)
    assert np.all(manifold.log(U, U) == 0)


@pytest.mark.parametrize(("name", "order"), [("retraction", 2), ("retraction2", 3), ("exp", 3)])
def test_order_of_retractions(name, order, rng):
    """Distances to the geodesic fall with the square of the step, or with its cube."""
    manifold = Multinomial(6, 4)
    U = manifold.random_point(rng)
    xi = manifold.random_tangent(U, rng)
    move = getattr(manifold, name)
    steps = np.logspace(-3, -1, 5)
    errors = [manifold.dist(move(U, t * xi), manifold.exp(U, t * xi)) for t in steps]
    if name == "exp":
        assert max(errors) == 0.0
        return
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert slope == pytest.approx(order, abs=0.1)


@pytest.mark.parametrize("name", ["retraction", "retraction2", "exp"])
@given(points(), st.sampled_from([0.0, 1e-300, 1e-12, 1.0, 1e6, 1e100, 1e300]))
def test_steps_of_any_length_stay_on_the_manifold(name, case, length):
    manifold, U, rng = case
    xi = length * _tangent(manifold, U, rng)
    Y = getattr(manifold, name)(U, xi)
    manifold.check_point(Y)
    assert Y.min() >= EPS
    if length <= 1e-300:
        np.testing.assert_allclose(Y, U, rtol=1e-12)
    xi = manifold.projection(U, np.where(rng.random(U.shape) < 0.5, -1.0, 1.0) * length)
    manifold.check_point(getattr(manifold, name)(U, xi))


def test_boundary_points_give_no_nan(xp):
    manifold = Multinomial(3, 3)
    values = np.array([[1.0, EPS, EPS], [EPS, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]])
    U = xp.asarray(values)
    Y = xp.asarray(values[::-1].copy())
    xi = manifold.random_tangent(U, 0)
    results = [
        manifold.projection(U, xi),
        manifold.rgrad(U, xi),
        manifold.rhess(U, xi, xi, xi),
        manifold.retraction(U, 1e8 * xi),
        manifold.retraction2(U, 1e8 * xi),
        manifold.exp(U, 1e8 * xi),
        manifold.log(U, Y),
        manifold.transport(U, Y, xi),
    ]
    assert all(np.isfinite(to_numpy(result)).all() for result in results)
    assert math.isfinite(manifold.dist(U, Y))
    assert math.isfinite(manifold.norm(U, xi))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_keep_library_and_type(xp, dtype):
    manifold = Multinomial(5, 3)
    like = xp.zeros((1,), dtype=getattr(xp, dtype))
    U = manifold.random_point(3, like=like)
    Y = manifold.random_point(4, like=like)
    xi = manifold.random_tangent(U, 3)
    for result in (
        U,
        xi,
        manifold.zero(U),
        manifold.retraction(U, xi),
        manifold.retraction2(U, xi),
        manifold.exp(U, xi),
        manifold.log(U, Y),
        manifold.transport(U, Y, xi),
        manifold.rhess(U, xi, xi, xi),
    ):
        assert result.dtype == like.dtype
        assert type(result) is type(like)
    manifold.check_point(U)
    manifold.check_tangent(U, xi)
    assert manifold.norm(U, xi) == pytest.approx(1.0, rel=1e-5)


def test_random_elements_follow_their_seed(seed):
    manifold = Multinomial(4, 3)
    U = manifold.random_point(seed)
    assert np.array_equal(U, manifold.random_point(np.random.default_rng(seed)))
    assert not np.array_equal(U, manifold.random_point(seed + 1))
    xi = manifold.random_tangent(U, seed)
    assert np.array_equal(xi, manifold.random_tangent(U, seed))


def test_inputs_are_left_alone(rng):
    manifold = Multinomial(5, 3)
    U, Y = manifold.random_point(rng), manifold.random_point(rng)
    G, H, xi = rng.standard_normal(U.shape), rng.standard_normal(U.shape), Y - U
    kept = [array.copy() for array in (U, Y, G, H, xi)]
    manifold.rgrad(U, G)
    manifold.rhess(U, G, H, xi)
    for name in ("retraction", "retraction2", "exp", "projection"):
        getattr(manifold, name)(U, xi)
    manifold.log(U, Y)
    manifold.dist(U, Y)
    assert all(np.array_equal(a, b) for a, b in zip(kept, (U, Y, G, H, xi), strict=True))


def test_single_component():
    """A simplex with one vertex is a point: everything is zero and nothing divides by it."""
    manifold = Multinomial(3, 1)
    U = manifold.random_point(0)
    xi = manifold.random_tangent(U, 0)
    assert manifold.dim == 0
    assert np.all(U == 1)
    assert np.all(np.abs(xi) <= EPS)
    assert np.all(manifold.exp(U, xi) == 1)
    assert manifold.dist(U, U) == 0.0


def test_scales():
    manifold = Multinomial(100, 5)
    assert manifold.dim == 400
    assert manifold.typical_dist == pytest.approx(50 * math.pi)
    assert manifold.diameter == pytest.approx(10 * math.pi)
    assert repr(manifold) == "Multinomial(n_samples=100, n_components=5)"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda U: U[:, :2],
            r"The point has shape \(20, 2\), but the manifold has points of shape \(20, 3\)",
        ),
        (lambda U: np.where(U.max() == U, np.nan, U), "The point has entries that are not finite"),
        (
            lambda U: U - (np.arange(20) == 17)[:, None] * (U + 0.1),
            "Row 17 of the point has an entry -0.1, not > 0: points lie inside the simplex",
        ),
        (
            lambda U: U * np.where(np.arange(20) == 17, 0.93, 1.0)[:, None],
            r"Row 17 of the point sums to 0.93, not 1 \(tolerance .*\)",
        ),
    ],
)
def test_check_point_says_what_failed(change, message):
    manifold = Multinomial(20, 3)
    with pytest.raises(ValueError, match=message):
        manifold.check_point(change(manifold.random_point(0)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda xi: xi[:3], "The tangent vector has shape"),
        (lambda xi: xi * np.inf, "The tangent vector has entries that are not finite"),
        (
            lambda xi: xi + (np.arange(20) == 4)[:, None] * 0.5,
            r"Row 4 of the tangent vector sums to 1.5, not 0 \(tolerance .*\)",
        ),
    ],
)
def test_check_tangent_says_what_failed(change, message):
    manifold = Multinomial(20, 3)
    U = manifold.random_point(0)
    with pytest.raises(ValueError, match=message):
        manifold.check_tangent(U, change(manifold.random_tangent(U, 0)))


def test_bad_sizes_are_refused():
    with pytest.raises(ValueError, match="'n_components' parameter of Multinomial"):
        Multinomial(3, 0)
    with pytest.raises(ValueError, match="'n_samples' parameter of Multinomial"):
        Multinomial(2.5, 3)
