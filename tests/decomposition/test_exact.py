"""The exact solver: optimal for its factors, monotone, stationary, the same on every road."""

import itertools

import numpy as np
import pytest
import scipy.optimize
import scipy.special
from tests.cases import each

from tuckermix import decompose
from tuckermix._array_api import to_numpy
from tuckermix._records import StopReason
from tuckermix.datasets import make_tensor_clusters
from tuckermix.decomposition import exact
from tuckermix.decomposition.exact import (
    closed_form,
    extrapolate_factors,
    improve_within,
    solve_exact,
    update_factors,
    widened,
)
from tuckermix.decomposition.fit import start_factors
from tuckermix.decomposition.result import Start
from tuckermix.numerics.tensor import multi_mode_dot, tucker_to_tensor
from tuckermix.sources import MemoryBlocks, Source, as_source


def noisy(seed, shape=(60, 7, 8)):
    rng = np.random.default_rng(seed)
    low = rng.standard_normal((shape[0], 5)) @ rng.standard_normal((5, np.prod(shape[1:])))
    return low.reshape(shape) + 0.5 * rng.standard_normal(shape) + 1.0


def plain_alternation(X, n_components, ranks, n_sweeps):
    """The textbook scheme: closed form, factors, closed form, ..."""
    source = as_source(X)
    factors = start_factors(source, ranks, "hosvd", np.random.default_rng(0))
    for _ in range(n_sweeps):
        found = closed_form(source.project(factors), n_components - 1)
        factors = update_factors(source.contract(found.Q), factors)
    found = closed_form(source.project(factors), n_components - 1)
    return 0.5 * (source.squared_norm - found.explained)


@pytest.mark.parametrize("shape", [(60, 7, 8), (40, 4, 5, 6), (50, 9)])
def test_cost_is_the_error_of_the_rebuilt_tensor(seed, shape):
    X = noisy(seed, shape)
    fit = decompose(X, 4, 3)
    rebuilt = tucker_to_tensor(fit.core, fit.factors, fit.Q)
    assert fit.cost == pytest.approx(0.5 * np.sum((X - rebuilt) ** 2), rel=1e-10)
    np.testing.assert_allclose(fit.Q.T @ fit.Q, np.eye(4), atol=1e-12)


def test_it_ends_where_plain_alternation_ends(seed):
    X = noisy(seed)
    fit = decompose(X, 4, (3, 3), tol=1e-12)
    assert fit.cost <= plain_alternation(X, 4, (3, 3), 300) * (1 + 1e-9)


def test_error_never_rises(seed):
    fit = decompose(noisy(seed), 5, (2, 3), tol=0.0, max_iter=30)
    errors = [record.relative_error for record in fit.history]
    assert all(later <= earlier + 1e-14 for earlier, later in itertools.pairwise(errors))


def test_the_last_subspace_is_optimal_for_the_last_factors(seed):
    X = noisy(seed)
    fit = decompose(X, 4, (3, 3), max_iter=1)
    B = np.einsum("mij,ia,jb->mab", X, *fit.factors).reshape(len(X), -1)
    mean = B.mean(axis=0)
    sigma = np.linalg.svd(B - mean, compute_uv=False)
    best = 0.5 * (len(X) * mean @ mean + np.sum(sigma[:3] ** 2))
    assert 0.5 * np.sum(X**2) - fit.cost == pytest.approx(best, rel=1e-12)


def test_permuting_samples_and_transposing_modes_change_nothing(seed):
    X = noisy(seed)
    order = np.random.default_rng(seed).permutation(len(X))
    fit = decompose(X, 4, (3, 2), tol=1e-13)
    permuted = decompose(X[order], 4, (3, 2), tol=1e-13)
    transposed = decompose(X.transpose(0, 2, 1), 4, (2, 3), tol=1e-13)
    for other, Q in ((permuted, fit.Q[order]), (transposed, fit.Q)):
        assert other.cost == pytest.approx(fit.cost, rel=1e-9)
        cosines = np.linalg.svd(other.Q.T @ Q, compute_uv=False)
        np.testing.assert_allclose(cosines, 1.0, atol=1e-6)


@pytest.mark.parametrize("factor", [1e-150, 1e-3, 1e3, 1e150])
def test_scaling_the_samples_scales_the_cost_by_the_square(factor):
    X = noisy(0)
    fit, scaled = decompose(X, 4, 3), decompose(X * factor, 4, 3)
    assert scaled.cost / factor / factor == pytest.approx(fit.cost, rel=1e-9)
    np.testing.assert_allclose(scaled.core / factor, fit.core, rtol=1e-6, atol=1e-8)


def test_same_answer_in_every_library(xp, seed):
    X = noisy(seed)
    fit = decompose(X, 4, 3, tol=1e-10)
    other = decompose(xp.asarray(X), 4, 3, tol=1e-10)
    assert other.cost == pytest.approx(fit.cost, rel=1e-9)
    np.testing.assert_allclose(np.abs(to_numpy(other.Q)), np.abs(fit.Q), atol=1e-6)


def test_float32_stays_float32_and_close(seed):
    X = noisy(seed)
    fit, single = decompose(X, 4, 3), decompose(X.astype(np.float32), 4, 3)
    assert single.Q.dtype == np.float32
    assert single.cost == pytest.approx(fit.cost, rel=1e-5)


def test_float32_converges_where_rounding_exceeds_the_tolerance(seed):
    rng = np.random.default_rng(seed)
    faces = rng.standard_normal((300, 12)) @ rng.standard_normal((12, 400)) * 0.05
    X = (faces.reshape(300, 20, 20) + 1.0 + 0.02 * rng.standard_normal((300, 20, 20))).astype("f4")
    fit = decompose(X, 10, 8, tol=1e-9)
    assert fit.stop_reason is StopReason.TOLERANCE
    assert fit.n_iter < 20


@each(
    "X",
    [
        np.zeros((6, 3, 2)),
        np.ones((6, 3, 2)),
        np.repeat(np.arange(6.0).reshape(1, 3, 2), 5, axis=0),
        np.arange(6.0).reshape(6, 1),
        np.arange(6.0).reshape(1, 6),
        np.eye(5),
    ],
)
def test_degenerate_samples(X):
    for n_components in (1, 2, 50):
        fit = decompose(X, n_components)
        assert np.isfinite(fit.cost)
        assert fit.n_components <= min(n_components, len(X))
        np.testing.assert_allclose(fit.Q.T @ fit.Q, np.eye(fit.n_components), atol=1e-12)


def test_components_beyond_the_rank_are_not_fitted():
    data = make_tensor_clusters(n_samples=50, n_clusters=3, noise=0.0, random_state=0)
    fit = decompose(data.X, 10, ranks=0.999)
    few = decompose(data.X, fit.n_components, ranks=fit.ranks)
    assert fit.n_components <= 10
    assert few.cost == pytest.approx(fit.cost, abs=1e-10 * np.sum(data.X**2))


def test_order_two_equals_order_three_with_a_mode_of_size_one():
    X = noisy(0, (40, 9))
    flat, deep = decompose(X, 3, 4), decompose(X[:, :, None], 3, (4, 1))
    assert flat.cost == pytest.approx(deep.cost, rel=1e-12)
    np.testing.assert_allclose(flat.Q, deep.Q, atol=1e-8)


def test_order_two_is_principal_components():
    X = noisy(0, (40, 9))
    fit = decompose(X, 4, 9)
    sigma = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    assert fit.cost == pytest.approx(0.5 * np.sum(sigma[3:] ** 2), rel=1e-10)


def test_stop_reasons():
    X = noisy(0)
    assert decompose(X, 4, 3, tol=1e-6).stop_reason is StopReason.TOLERANCE
    assert decompose(X, 4, 3, tol=0.0, max_iter=1).stop_reason is StopReason.MAX_ITER
    seen = []

    def stop_at_second(record):
        seen.append(record.iteration)
        return record.iteration == 1

    fit = decompose(X, 4, (2, 2), tol=0.0, callback=stop_at_second)
    assert fit.stop_reason is StopReason.CALLBACK
    assert seen == [0, 1]


def test_many_samples_start_from_a_part_of_them(limits, seed):
    X = noisy(seed, (400, 7, 8))
    direct = decompose(X, 4, 3, tol=1e-12)
    limits(samples_without_part=300, samples_of_part=100)
    assert decompose(X, 4, 3, tol=1e-12, random_state=0).cost == pytest.approx(
        direct.cost, rel=1e-8
    )
    by_energy = decompose(X, 4, random_state=0)  # here the ranks come from the part too
    assert by_energy.relative_error == pytest.approx(decompose(X, 4, 7).relative_error, rel=0.1)


def test_a_sweep_reads_the_samples_once():
    class Counted(Source):
        reads = 0

        def centred(self, *args):
            type(self).reads += 1
            return super().centred(*args)

        def sketch(self, *args, **options):
            type(self).reads += 1
            return super().sketch(*args, **options)

    source = Counted(MemoryBlocks(noisy(0)))
    factors = start_factors(source, (3, 3), "hosvd", np.random.default_rng(0))
    start = Start(factors, np.random.default_rng(0), max_iter=50, tol=1e-10)
    fit = solve_exact(source, start, 4)
    assert Counted.reads == fit.n_iter + 2  # one before the sweeps, one after them


def test_what_a_part_found_takes_one_wide_sweep(limits, monkeypatch, seed):
    X = noisy(seed, (900, 7, 8)).astype(np.float32)
    direct = decompose(X, 4, 3, random_state=0)
    limits(samples_without_part=300, samples_of_part=200)
    widths, narrow = [], []
    sketch, measure = Source.sketch, Source.measure

    def note_width(source, factors, basis, **options):
        widths.extend([basis.shape[1]] * (source.n_samples == 900))
        return sketch(source, factors, basis, **options)

    def note_measure(source, factors, Q):
        narrow.append(Q.shape[1])
        return measure(source, factors, Q)

    monkeypatch.setattr(Source, "sketch", note_width)
    monkeypatch.setattr(Source, "measure", note_measure)
    fit = decompose(X, 4, 3, random_state=0)
    assert len(widths) == 1
    assert len(narrow) == fit.n_iter  # the certificate takes the last of them
    assert fit.stop_reason is StopReason.TOLERANCE
    assert fit.relative_error <= direct.relative_error + 1e-5
    errors = [record.relative_error for record in fit.history]
    assert all(later <= earlier + 1e-6 for earlier, later in itertools.pairwise(errors))


def test_a_start_from_a_part_keeps_to_its_limits(limits):
    X = noisy(0, (400, 7, 8))
    limits(samples_without_part=300, samples_of_part=100)
    for most in (1, 3):
        fit = decompose(X, 4, 3, tol=0.0, max_iter=most, random_state=0)
        assert fit.stop_reason is StopReason.MAX_ITER
        assert fit.n_iter == most
    for place in (0, 1, 2):
        seen = []

        def stop(record, place=place, seen=seen):
            seen.append(record.iteration)
            return record.iteration == place

        fit = decompose(X, 4, 3, tol=0.0, callback=stop, random_state=0)
        assert fit.stop_reason is StopReason.CALLBACK
        assert seen == list(range(place + 1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_principal_directions_come_along(dtype, seed):
    X = noisy(seed).astype(dtype)
    fit = decompose(X, 4, (3, 4))
    rows = multi_mode_dot(X.astype(float), fit.factors, transpose=True).reshape(len(X), 12)
    energies = np.sum(((rows - rows.mean(axis=0)) @ fit.axes) ** 2, axis=0)
    expected = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False) ** 2
    np.testing.assert_allclose(energies, expected, rtol=1e-4)
    np.testing.assert_allclose(fit.axes.T @ fit.axes, np.eye(12), atol=1e-12)
    assert decompose(X, 4, (3, 4), solver="trust-region", max_iter=1).axes is None


def test_spare_directions_stay_within_limits():
    assert widened(0) == exact.MIN_OVERSAMPLING
    assert widened(1000) == 1000 + exact.MAX_OVERSAMPLING
    assert widened(9) == 24  # 18, and as many more as make whole columns of a product
    assert widened(9, lazy=True) == 40


def optimum(B, n_components):
    """Compute twice the theorem's value with NumPy's own routine."""
    mean = B.mean(axis=0)
    sigma = np.linalg.svd(B - mean, compute_uv=False)
    return len(B) * mean @ mean + np.sum(sigma[: n_components - 1] ** 2)


def explained_by(B, U):
    """Compute tr(BᵀP_U B) for any memberships."""
    Q = np.linalg.qr(U)[0]
    return np.sum((Q.T @ B) ** 2)


@each("shape", [(30, 5), (12, 40), (25, 25), (9, 1)])
def test_closed_form_reaches_the_theorem(xp, seed, shape):
    B = np.random.default_rng(seed).standard_normal(shape) + 2.0
    for n_components in (1, 2, 4):
        found = closed_form(xp.asarray(B.copy()), n_components - 1)
        expected = optimum(B, n_components)
        assert found.explained == pytest.approx(expected, rel=1e-12)
        Q = to_numpy(found.Q)
        u = Q[:, 1:]
        np.testing.assert_allclose(Q[:, 0], len(B) ** -0.5)
        np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-13)
        assert np.sum((Q.T @ B) ** 2) == pytest.approx(expected, rel=1e-12)
        rebuilt = (B - B.mean(axis=0)) @ to_numpy(found.directions)
        np.testing.assert_allclose(rebuilt, u * to_numpy(found.singular_values), atol=1e-10)


def test_no_feasible_memberships_do_better(seed):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((12, 4)) + 1.0
    best = closed_form(B.copy(), 2).explained
    for _ in range(300):
        U = rng.dirichlet(np.full(3, 10 ** rng.uniform(-1, 1)), size=12)
        assert explained_by(B, U) <= best * (1 + 1e-12)

    def loss(flat):
        U = scipy.special.softmax(flat.reshape(12, 3), axis=1)
        # The gradient of |P_U B|²: 2 (1 - P_U) B B' U (U'U)^-1, then through the softmax.
        inverse = np.linalg.pinv(U)
        G = B @ (B.T @ inverse.T)
        G = 2 * (G - U @ (inverse @ G))
        rows = U * (G - np.sum(U * G, axis=1, keepdims=True))
        return -explained_by(B, U), -rows.ravel()

    starts = rng.standard_normal((3, 36))  # a search may end early in a corner
    options = {"maxiter": 5000, "ftol": 1e-12, "gtol": 1e-8}
    found = [
        scipy.optimize.minimize(loss, x, jac=True, method="L-BFGS-B", options=options).fun
        for x in starts
    ]
    assert -min(found) <= best * (1 + 1e-12)
    assert -min(found) >= best * (1 - 1e-3)  # and the search gets near, so the bound is sharp


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_rank_of_the_centred_rows_limits_the_directions(rank, seed):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((40, rank)) @ rng.standard_normal((rank, 9)) + rng.standard_normal(9)
    found = closed_form(B.copy(), 6)
    assert found.singular_values.shape == (rank,)
    assert found.explained == pytest.approx(np.sum(B**2), rel=1e-12)


def test_repeated_singular_values_are_no_trouble():
    corners = np.repeat(np.eye(6), 5, axis=0)
    found = closed_form(corners.copy(), 3)
    assert found.explained == pytest.approx(optimum(corners, 4), rel=1e-12)


def test_large_matrices_take_the_iteration(limits, seed):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((150, 12)) @ rng.standard_normal((12, 200)) * 3
    B += rng.standard_normal((150, 200))
    expected = optimum(B, 6)
    limits(dense_side=10)
    found = closed_form(B.copy(), 5)
    assert found.explained == pytest.approx(expected, rel=1e-11)
    warm = closed_form(B.copy(), 5, start=found.directions)
    assert warm.explained == pytest.approx(expected, rel=1e-11)


def test_a_mean_far_from_zero_costs_no_accuracy():
    B = np.random.default_rng(0).standard_normal((50, 6)) + 1e7
    mean = B.mean(axis=0)
    sigma = np.linalg.svd(B - mean, compute_uv=False)
    found = closed_form(B.copy(), 3)
    np.testing.assert_allclose(found.singular_values, sigma[:3], rtol=1e-7)


def test_float32_keeps_orthonormal_coordinates():
    rng = np.random.default_rng(3)
    B = (rng.standard_normal((500, 20)) * np.logspace(0, -3, 20) + 5).astype(np.float32)
    found = closed_form(B.copy(), 19)
    u = found.Q[:, 1:]
    assert u.dtype == np.float32
    assert np.abs(u.T.astype(float) @ u - np.eye(u.shape[1])).max() < 1e-5
    assert found.explained == pytest.approx(optimum(B.astype(float), 20), rel=1e-6)


def problem(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((50, 6, 7)) + 3.0
    factors = [np.linalg.qr(rng.standard_normal((size, 3)))[0] for size in (6, 7)]
    basis = np.linalg.qr(rng.standard_normal((9, 5)))[0]
    return X, factors, basis


def contracted(xp, X, factors, basis):
    """Contract the samples of a problem; return what `improve_within` takes, and the energies."""
    source = as_source(xp.asarray(X))
    moved = [xp.asarray(factor) for factor in factors]
    T, energies = source.contracted(moved, xp.asarray(basis))
    return T, moved, 2, source.squared_norm, energies


def test_one_pass_gives_what_coordinates_would(xp, seed):
    X, factors, basis = problem(seed)
    T, *_, energies = contracted(xp, X, factors, basis)
    Y = np.einsum("mij,ia,jb->mab", X - X.mean(axis=0), *factors).reshape(50, -1) @ basis
    u, sigma, _ = np.linalg.svd(Y, full_matrices=False)
    np.testing.assert_allclose(energies, sigma**2, rtol=1e-10)
    expected = np.einsum("mk,mij->kij", u, X)
    np.testing.assert_allclose(np.abs(to_numpy(T)[1:]), np.abs(expected), atol=1e-9)
    np.testing.assert_allclose(to_numpy(T)[0], 50**0.5 * X.mean(axis=0), atol=1e-10)


@pytest.mark.parametrize("limit", [0, 10**6], ids=["on the device", "on the host"])
def test_settling_gains_and_spans_the_projected_rows(xp, seed, limit, limits):
    limits(values_on_host=limit)
    X, factors, basis = problem(seed)
    T, *given, energies = contracted(xp, X, factors, basis)
    mean = multi_mode_dot(X.mean(axis=0)[None], factors, transpose=True)
    start = (1 - (50 * np.sum(mean**2) + energies[:2].sum()) / np.sum(X**2)) ** 0.5
    found, space, error = improve_within(T, *given, 1e-12)
    assert error <= start + 1e-12
    projected = np.einsum("kij,ia,jb->kab", to_numpy(T)[1:], *map(to_numpy, found)).reshape(-1, 9)
    space = to_numpy(space)
    np.testing.assert_allclose(projected @ space @ space.T, projected, atol=1e-9)
    np.testing.assert_allclose(space.T @ space, np.eye(space.shape[1]), atol=1e-9)


@pytest.mark.parametrize("limit", [0, 10**6], ids=["on the device", "on the host"])
def test_without_a_tolerance_settling_only_looks(xp, seed, limit, limits):
    limits(values_on_host=limit)
    X, factors, basis = problem(seed)
    T, *given, _ = contracted(xp, X, factors, basis)
    found, _, error = improve_within(T, *given, np.inf)
    for factor, before in zip(found, factors, strict=True):
        np.testing.assert_array_equal(to_numpy(factor), before)
    projected = np.einsum("kij,ia,jb->kab", to_numpy(T), *factors).reshape(-1, 9)
    sigma = np.linalg.svd(projected[1:], compute_uv=False)
    explained = np.sum(projected[0] ** 2) + np.sum(sigma[:2] ** 2)
    assert error == pytest.approx((1 - explained / np.sum(X**2)) ** 0.5, rel=1e-12)


def test_an_overstep_goes_as_far_as_shrinking_steps_would(xp, seed):
    rng = np.random.default_rng(seed)
    old = np.linalg.qr(rng.standard_normal((9, 3)))[0]
    new = np.linalg.qr(old + 0.01 * rng.standard_normal((9, 3)))[0]
    turned = new @ np.linalg.qr(rng.standard_normal((3, 3)))[0]  # the span is what counts
    square = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    before, after = (
        [xp.asarray(a), xp.asarray(b)] for a, b in ((old, np.eye(4)), (turned, square))
    )
    none, step = extrapolate_factors(before, after, np.inf)
    assert none is None
    further, longer = extrapolate_factors(before, after, 4 * step)  # ρ = ¼, and ρ / (1 - ρ) = ⅓
    assert longer == pytest.approx(4 / 3 * step)
    further = [to_numpy(factor) for factor in further]
    np.testing.assert_allclose(further[0].T @ further[0], np.eye(3), atol=1e-14)
    np.testing.assert_allclose(np.abs(np.linalg.det(further[1])), 1.0)
    gap, ahead = (np.arcsin(np.linalg.norm(F - old @ (old.T @ F), 2)) for F in (new, further[0]))
    assert ahead == pytest.approx(4 / 3 * gap, rel=0.01)
    assert extrapolate_factors(before, after, 100 * step)[0] is None  # it converges fast as it is
    assert extrapolate_factors(before, before, 0.0)[0] is None
    assert extrapolate_factors(before, after, step / 9)[1] == pytest.approx(
        2 * step
    )  # never further


def test_oversteps_never_raise_the_error_nor_take_more_sweeps(monkeypatch):
    data = [noisy(s, (80, 9, 10)) for s in range(12)]
    # Directions of nearly the same energy: the alternation is slow.
    data += [make_tensor_clusters(60, (9, 8), 6, noise=3.0, random_state=s).X for s in range(12)]
    fits = {}
    for most in (0.0, exact.MOST_OVERSTEP):
        monkeypatch.setattr(exact, "MOST_OVERSTEP", most)
        fits[most] = [decompose(X, 5, 3, tol=1e-10, max_iter=300) for X in data]
        for fit in fits[most]:
            errors = [record.relative_error for record in fit.history]
            assert all(b <= a + 1e-12 for a, b in itertools.pairwise(errors))
            assert fit.stop_reason is StopReason.TOLERANCE
    plain, ahead = ([fit.n_iter for fit in found] for found in fits.values())
    assert sum(ahead) < 0.9 * sum(plain)


def test_equal_samples_leave_the_mean_alone():
    source = as_source(np.ones((5, 3, 2)))
    T, energies = source.contracted([np.eye(3), np.eye(2)], np.zeros((6, 0)))
    assert T.shape == (1, 3, 2)
    assert energies.size == 0


def test_an_update_never_loses_energy_and_beats_other_factors(seed):
    rng = np.random.default_rng(seed)
    T = rng.standard_normal((4, 6, 7, 5))
    old = [np.linalg.qr(rng.standard_normal((size, 2)))[0] for size in (6, 7, 5)]
    energy = np.sum(multi_mode_dot(T, old, transpose=True) ** 2)
    for _ in range(5):
        new = update_factors(T, old)
        gained = np.sum(multi_mode_dot(T, new, transpose=True) ** 2)
        assert gained >= energy * (1 - 1e-12)
        old, energy = new, gained
        for factor in new:
            np.testing.assert_allclose(factor.T @ factor, np.eye(2), atol=1e-12)
    # The last factor is optimal for the others: no other orthonormal one explains more.
    for _ in range(50):
        other = np.linalg.qr(rng.standard_normal((5, 2)))[0]
        assert np.sum(multi_mode_dot(T, [*old[:2], other], transpose=True) ** 2) <= energy


def test_square_factors_are_left_alone():
    T = np.random.default_rng(0).standard_normal((3, 4, 5))
    square = np.eye(4)
    new = update_factors(T, [square, np.eye(5)[:, :2]], n_loops=2)
    assert new[0] is square
