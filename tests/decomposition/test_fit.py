"""The public function: parameters, starts, input."""

import numpy as np
import pytest
from tests.cases import each

from tuckermix import decompose
from tuckermix._array_api import to_numpy
from tuckermix.decomposition import SOLVERS
from tuckermix.decomposition.fit import INITS, noise_floor, ranks_from_energy, start_factors
from tuckermix.numerics.tensor import multi_mode_dot
from tuckermix.sources import SpanSettings, as_source


@pytest.fixture
def X():
    return np.random.default_rng(0).standard_normal((30, 5, 6))


@pytest.mark.parametrize("init", ["hosvd", "hosvd-samples", "random"])
def test_every_start_leads_to_a_good_fit(X, init):
    best = decompose(X, 3, 2).cost
    fit = decompose(X, 3, 2, init=init, n_init=5, random_state=0, tol=1e-9)
    assert fit.cost <= 1.02 * best


def test_random_starts_keep_the_best(X):
    one = decompose(X, 3, 2, init="random", n_init=1, random_state=3)
    many = decompose(X, 3, 2, init="random", n_init=8, random_state=3)
    assert many.cost <= one.cost


@each(
    "bad, message",
    [
        ({"n_components": 0}, "'n_components' parameter of decompose must be an integer >= 1"),
        ({"n_components": 2.5}, "'n_components' parameter of decompose must be an integer >= 1"),
        ({"solver": "newton"}, "'solver' parameter of decompose must be one of 'exact'"),
        ({"init": "zeros"}, "'init' parameter of decompose must be one of 'hosvd'"),
        ({"tol": -1.0}, "'tol' parameter of decompose must be a number >= 0"),
        ({"max_iter": 0}, "'max_iter' parameter of decompose must be an integer >= 1"),
        ({"n_init": 0}, "'n_init' parameter of decompose must be an integer >= 1"),
        ({"random_state": "x"}, "random_state must be None, an int"),
    ],
)
def test_bad_parameters_are_named(X, bad, message):
    with pytest.raises(ValueError, match=message):
        decompose(**{"X": X, "n_components": 3, **bad})


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.ones(5), "at least 2 axes"),
        (np.ones((0, 3)), "at least one sample"),
        (np.ones((3, 2), dtype=complex), "takes real numbers"),
        (np.array([["a", "b"]]), "takes real numbers"),
        (np.full((3, 2), np.nan), "NaN or infinity"),
    ],
)
def test_bad_samples_are_named(bad, message):
    with pytest.raises(ValueError, match=message):
        decompose(bad, 1)


def test_integers_and_lists_are_taken_as_float64():
    fit = decompose([[0, 1], [1, 0], [2, 5]], 2)
    assert fit.Q.dtype == np.float64
    assert decompose(np.array([[True, False], [False, True]]), 2).Q.dtype == np.float64


@each("init", INITS)
def test_starts_are_orthonormal_and_repeat(xp, init):
    X = np.random.default_rng(0).standard_normal((20, 6, 5))
    source = as_source(xp.asarray(X))
    first = start_factors(source, (3, 2), init, np.random.default_rng(1))
    again = start_factors(source, (3, 2), init, np.random.default_rng(1))
    for factor, other in zip(first, again, strict=True):
        factor = to_numpy(factor)
        np.testing.assert_allclose(factor.T @ factor, np.eye(factor.shape[1]), atol=1e-12)
        np.testing.assert_array_equal(factor, to_numpy(other))


def test_hosvd_is_that_of_the_unfoldings(seed):
    X = np.random.default_rng(seed).standard_normal((20, 6, 5))
    factors = start_factors(as_source(X), (3, 2), "hosvd", np.random.default_rng(0))
    for mode, factor in enumerate(factors):
        unfolded = np.moveaxis(X, mode + 1, 0).reshape(X.shape[mode + 1], -1)
        left = np.linalg.svd(unfolded, full_matrices=False)[0][:, : factor.shape[1]]
        np.testing.assert_allclose(factor @ factor.T, left @ left.T, atol=1e-10)


def test_the_second_start_explains_single_samples_better_than_the_first(seed):
    X = np.random.default_rng(seed).standard_normal((20, 6, 5)) ** 3
    source, rng = as_source(X), np.random.default_rng(0)
    energy = {
        init: np.sum(
            multi_mode_dot(X, start_factors(source, (2, 2), init, rng), transpose=True) ** 2
        )
        for init in INITS
    }
    assert energy["hosvd-samples"] >= energy["hosvd"] * (1 - 1e-12)
    assert energy["hosvd"] > energy["random"]


def test_energy_finds_planted_ranks(seed):
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.standard_normal((12, 3)))[0]
    V = np.linalg.qr(rng.standard_normal((15, 2)))[0]
    X = np.einsum("mab,ia,jb->mij", rng.standard_normal((60, 3, 2)), U, V) + 7.0
    X += 1e-3 * rng.standard_normal(X.shape)
    source = as_source(X)
    assert ranks_from_energy(source.mode_grams(), source.mean, source.n_samples, 0.95) == (3, 2)


def noisy_images(seed, noise, n_samples=60, size=64, rank=6):
    """Draw images of low rank with white noise of so many of their standard deviations."""
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.standard_normal((size, rank)))[0]
    V = np.linalg.qr(rng.standard_normal((size, rank)))[0]
    X = np.einsum("mab,ia,jb->mij", rng.standard_normal((n_samples, rank, rank)), U, V) + 3.0
    return X + noise * X.std() * rng.standard_normal(X.shape)


@pytest.mark.parametrize("noise", [0.5, 1.0, 2.0])
def test_ranks_do_not_chase_noise(seed, noise):
    source = as_source(noisy_images(seed, noise))
    grams = source.mode_grams()
    plain, above = (
        np.array(ranks_from_energy(grams, source.mean, source.n_samples, share))
        for share in (0.98, None)
    )
    assert (plain > 50).all()
    assert (above >= 6).all()
    assert (above <= 0.8 * plain).all()


def test_without_noise_nothing_is_lost(seed):
    source = as_source(noisy_images(seed, 0.0))
    assert ranks_from_energy(source.mode_grams(), source.mean, source.n_samples, None) == (6, 6)
    falling = np.random.default_rng(seed).standard_normal((400, 40)) * 0.8 ** np.arange(40)
    source = as_source(falling)
    plain, above = (
        ranks_from_energy(source.mode_grams(), source.mean, source.n_samples, s)[0]
        for s in (0.98, None)
    )
    assert plain - 1 <= above <= plain


def test_the_noise_floor_is_that_of_white_noise(seed):
    noise = 0.3 * np.random.default_rng(seed).standard_normal((32, 32 * 400))
    energy = np.linalg.eigvalsh(noise @ noise.T)[::-1]
    assert noise_floor(energy, noise.shape[1]) == pytest.approx(0.09 * noise.shape[1], rel=0.05)
    # A short mode, or an unfolding with few columns, does not tell.
    assert noise_floor(energy[:15], noise.shape[1]) == 0.0
    assert noise_floor(energy, 15 * 32) == 0.0


def test_a_flat_spectrum_is_no_noise():
    """Samples that each lie on an axis of their own: every direction is as good as another."""
    source = as_source(np.tile(np.eye(20), (20, 1)))
    assert ranks_from_energy(source.mode_grams(), source.mean, source.n_samples, None) == (19,)


def test_small_modes_are_kept_whole_and_constant_data_get_rank_one():
    source = as_source(np.random.default_rng(0).standard_normal((9, 3)))
    assert ranks_from_energy(source.mode_grams(), source.mean, source.n_samples, 0.1) == (3,)
    source = as_source(np.ones((9, 8)))
    assert ranks_from_energy(source.mode_grams(), source.mean, source.n_samples, 0.95) == (1,)


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_give_what_they_declare(X, name):
    choice = SOLVERS[name]
    if choice.package:
        pytest.importorskip(choice.package)
    fit = decompose(X, 3, 2, solver=name, max_iter=5, random_state=0)
    assert (fit.memberships is None) == (choice.gives == "subspace")
    assert fit.cost >= decompose(X, 3, 2, tol=1e-12).cost * (1 - 1e-3)


def test_another_entry_is_another_solver(X, monkeypatch):
    """All that a solver is: a function that is named in the table."""
    again = SOLVERS["exact"]
    monkeypatch.setitem(SOLVERS, "again", again)
    assert decompose(X, 3, 2, solver="again").cost == decompose(X, 3, 2).cost
    monkeypatch.setitem(SOLVERS, "missing", type(again)(again.function, package="no_such_package"))
    with pytest.raises(ImportError, match=r'solver="missing" needs no_such_package: install'):
        decompose(X, 3, 2, solver="missing")


@pytest.mark.parametrize("factor", [1e155, 1e300])
def test_a_cost_beyond_the_range_is_said_and_all_else_holds(rng, factor):
    X = rng.standard_normal((20, 4, 3))
    with pytest.warns(RuntimeWarning, match=r"The cost of numbers .* Divide X by a constant"):
        large = decompose(factor * X, 3, 2)
    usual = decompose(X, 3, 2)
    assert large.cost == np.inf
    assert large.gap <= 1e-12
    for one, other in zip(large.factors, usual.factors, strict=True):
        np.testing.assert_allclose(np.abs(one.T @ other), np.eye(2), atol=1e-6)


@pytest.mark.parametrize("shape", [(600,), (2, 700), (400, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_mode_longer_than_the_samples_span_is_fitted_as_a_short_one(shape, dtype, rng, settings):
    X = rng.standard_normal((40, *shape)).astype(dtype)
    found = decompose(X, 6)
    settings(SpanSettings(long_mode=10**6))
    expected = decompose(X, 6, found.ranks)
    assert found.ranks == expected.ranks
    assert found.cost == pytest.approx(expected.cost, rel=1e-4)
    tolerance = 1e-5 if dtype is np.float32 else 1e-12
    for factor in found.factors:
        np.testing.assert_allclose(factor.T @ factor, np.eye(factor.shape[1]), atol=tolerance)
    assert found.gap < tolerance


def test_a_rank_beyond_the_span_is_kept(rng):
    X = rng.standard_normal((20, 300))
    assert decompose(X, 3, 50).ranks == (50,)


def test_a_part_of_many_samples_spans_a_very_long_mode(rng, settings):
    centers = rng.standard_normal((3, 200))
    X = centers[np.arange(120) % 3] + 0.01 * rng.standard_normal((120, 200))
    expected = decompose(X, 3)
    settings(SpanSettings(long_mode=100, dense_side=150, width=12))
    found = decompose(X, 3)
    assert found.ranks[0] <= 12
    assert found.cost == pytest.approx(expected.cost, rel=1e-3)
    # What the part does not span shows in the certificate, which looks at all of the mode.
    assert 0 < found.stationarity < 0.01


def low_rank(rng, shape, noise):
    """Samples with four directions of three columns in each mode, and some noise."""
    core = rng.standard_normal((4, *(min(3, size) for size in shape)))
    weights = rng.standard_normal((60, 4)) * [4.0, 3.0, 2.0, 1.0]
    factors = [rng.standard_normal((size, min(3, size))) for size in shape]
    low = multi_mode_dot(np.tensordot(weights, core, 1), factors)
    return low + noise * np.std(low) * rng.standard_normal(low.shape)


@pytest.mark.parametrize("shape", [(3, 90), (90, 4, 2), (150,)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_matrix_of_the_size_of_a_long_mode_is_needed(shape, dtype, rng, settings):
    X = low_rank(rng, shape, 0.1).astype(dtype)
    long = int(np.argmax(shape))
    ranks = tuple(min(3, size) for size in shape)
    expected = decompose(X, 5, ranks)
    settings(SpanSettings(long_mode=10, dense_side=50, width=16))
    found = decompose(X, 5, ranks)
    assert found.cost == pytest.approx(expected.cost, rel=0.01)
    assert np.linalg.svd(found.factors[long].T @ expected.factors[long])[1].min() > 0.99
    wide = tuple(20 if mode == long else rank for mode, rank in enumerate(ranks))
    factor = decompose(X, 5, wide).factors[long]  # more columns than `width`
    np.testing.assert_allclose(factor.T @ factor, np.eye(20), atol=1e-5)


def test_strongest_directions_of_a_long_mode_serve_for_all(rng, settings):
    X = low_rank(rng, (60, 5), 0.3)
    settings(SpanSettings(many_entries=20, further=8, most_directions=10))
    found = decompose(X, 5)
    assert found.ranks[0] == 10
    settings(SpanSettings())
    expected = decompose(X, 5, found.ranks)
    assert found.cost == pytest.approx(expected.cost, rel=0.05)
    assert found.stationarity < 0.05  # of the whole mode
