"""The certificate: it has to open where a solution is not optimal, by the right amount."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from tuckermix import TuckerClustering, decompose
from tuckermix.decomposition import exact
from tuckermix.decomposition import fit as fit_module
from tuckermix.decomposition.fit import certify
from tuckermix.numerics.linalg import with_constant
from tuckermix.sources import as_source


def rows_of(X, factors):
    for factor in factors:
        X = np.tensordot(X, factor, axes=(1, 0))
    rows = X.reshape(len(X), -1)
    return rows - rows.mean(axis=0)


@pytest.fixture
def data(rng):
    return rng.standard_normal((60, 9, 8)) * np.linspace(1.0, 3.0, 8) + 5.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_exact_solver_has_no_gap(data, dtype):
    fit = decompose(data.astype(dtype), 5, (4, 3))
    assert 0.0 <= fit.gap <= (1e-12 if dtype == np.float64 else 1e-6)


@pytest.mark.parametrize("shape", [(60, 9, 8), (20, 9, 8)])  # either side the smaller one
def test_a_worse_subspace_opens_the_gap_by_what_it_misses(rng, shape, monkeypatch):
    X = rng.standard_normal(shape) * np.linspace(1.0, 3.0, 8)
    honest = exact.linalg.leading_directions

    def trailing(B, width, **options):
        every = honest(B, min(B.shape[0] - 1, B.shape[1]), **options)
        return every[:, ::-1][:, :width]

    monkeypatch.setattr(exact.linalg, "leading_directions", trailing)
    fit = decompose(X, 4, (5, 5), max_iter=1)
    energies = np.linalg.svd(rows_of(X, fit.factors), compute_uv=False) ** 2
    reached = np.sum((fit.Q[:, 1:].T @ rows_of(X, fit.factors)) ** 2)
    assert fit.gap == pytest.approx((energies[:3].sum() - reached) / energies[:3].sum(), rel=1e-9)
    assert fit.gap > 0.1
    model = TuckerClustering(2, n_components=4, ranks=(5, 5), max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning):
        model.fit(X)
    assert model.gap_ > 0.1


def test_a_basis_that_is_not_orthonormal_gains_nothing(data):
    source = as_source(data)
    fit = decompose(data, 4, (4, 4))
    mixed = fit.Q.copy()
    mixed[:, 1:] = mixed[:, 1:] @ np.array([[3.0, 1.0, 0.0], [0.0, 2.0, 1.0], [0.0, 0.0, 5.0]])
    assert certify(source, replace(fit, Q=mixed), 3).gap <= 1e-12


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_reading_with_which_a_solver_ends_is_what_a_new_one_says(limits, rng, dtype):
    X = rng.standard_normal((900, 7, 8)).astype(dtype) + 1
    limits(samples_without_part=300, samples_of_part=200)
    ended = []
    fits = [decompose(X, 4, 3, random_state=0)]
    with mock.patch.object(fit_module, "certify", lambda *a: ended.append(a[1]) or certify(*a)):
        fits.append(decompose(X, 4, 3, random_state=0))
    assert ended[0].measured is not None
    assert fits[0].measured is fits[1].measured is None
    fits.append(certify(as_source(X), replace(ended[0], measured=None), 3))
    for fit in fits[1:]:
        assert fit.gap == pytest.approx(fits[0].gap, abs=1e-12)
        assert fit.stationarity == pytest.approx(fits[0].stationarity, rel=1e-6)


def test_the_gap_does_not_see_a_constant(data, rng):
    fit = decompose(data, 4, (4, 4))
    Q = np.linalg.qr(rng.standard_normal((60, 3)) - 0.0)[0]
    Q = with_constant(np.linalg.qr(Q - Q.mean(axis=0))[0])
    gaps = []
    for shift in (0.0, 1e4):
        source = as_source(data + shift)
        gaps.append(certify(source, replace(fit, Q=Q), 3).gap)
    assert gaps[0] > 0.3
    assert gaps[1] == pytest.approx(gaps[0], abs=1e-6)


def test_fewer_directions_than_allowed_open_the_gap(data):
    fit = decompose(data, 4, (4, 4))
    less = certify(as_source(data), replace(fit, Q=fit.Q[:, :3]), 3)
    share = fit.singular_values[2] ** 2 / np.sum(fit.singular_values**2)
    assert less.gap == pytest.approx(share, rel=1e-8)


def test_the_bound_for_large_problems_finds_a_missed_direction(rng, limits):
    limits(dense_side=10)
    X = rng.standard_normal((80, 9, 8))
    X += 6.0 * rng.standard_normal((80, 1, 1)) * rng.standard_normal((9, 8))
    fit = decompose(X, 4, (9, 8))
    assert fit.gap <= 1e-9
    missing = certify(as_source(X), replace(fit, Q=np.delete(fit.Q, 1, axis=1)), 3)
    share = fit.singular_values[0] ** 2 / np.sum(fit.singular_values**2)
    # A lower bound: the probe finds the large direction, not all of the small one after it.
    assert 0.8 * share <= missing.gap <= share * (1 + 1e-9)


def test_stationarity_is_the_norm_of_the_gradient(data):
    """Central differences of the explained energy along geodesics of one factor."""
    fit = decompose(data, 4, (4, 3), max_iter=1, init="random", random_state=0)
    T = np.tensordot(fit.Q.T, data, axes=(1, 0))
    norms = []
    for mode in (0, 1):
        U = fit.factors[mode]
        complement = np.linalg.svd(np.eye(len(U)) - U @ U.T)[0][:, : len(U) - U.shape[1]]
        slopes = []
        for i in range(complement.shape[1]):
            for j in range(U.shape[1]):

                def value(t, i=i, j=j, U=U, mode=mode, complement=complement):
                    moved = U.copy()
                    moved[:, j] = np.cos(t) * U[:, j] + np.sin(t) * complement[:, i]
                    factors = [moved if n == mode else f for n, f in enumerate(fit.factors)]
                    return 0.5 * np.sum(np.einsum("kab,ap,bq->kpq", T, *factors) ** 2)

                slopes.append((value(1e-5) - value(-1e-5)) / 2e-5)
        norms.append(np.linalg.norm(slopes))
    possible = np.sum(np.linalg.svd(rows_of(data, fit.factors), compute_uv=False)[:3] ** 2)
    assert fit.stationarity == pytest.approx(max(norms) / possible, rel=1e-5)


def test_sweeps_bring_the_factors_to_a_stationary_point(data):
    early = decompose(data, 4, (4, 3), max_iter=1, init="random", random_state=0)
    late = decompose(data, 4, (4, 3), tol=1e-13, max_iter=500, init="random", random_state=0)
    assert late.stationarity < 1e-5 < early.stationarity


def test_constant_samples_have_nothing_to_miss():
    fit = decompose(np.ones((6, 3, 3)), 2)
    assert (fit.gap, fit.stationarity) == (0.0, 0.0)


@pytest.mark.parametrize("solver", ["trust-region", "joint"])
def test_the_other_solvers_are_measured_the_same_way(data, solver):
    if solver == "joint":
        pytest.importorskip("pymanopt")
    fit = decompose(data, 3, (3, 3), solver=solver, random_state=0)
    energies = np.linalg.svd(rows_of(data, fit.factors), compute_uv=False) ** 2
    reached = np.sum((fit.Q[:, 1:].T @ rows_of(data, fit.factors)) ** 2)
    missed = (energies[:2].sum() - reached) / energies[:2].sum()
    assert fit.gap == pytest.approx(missed, abs=1e-12)
    assert 0.0 < fit.gap < 1e-4 or solver == "joint"


@pytest.mark.data
@pytest.mark.parametrize("name", ["pie", "orl", "mnist"])
def test_real_data(data_home, name):
    from tuckermix.datasets import load

    X = load(name, data_home=data_home).X[:1500].astype(np.float64)
    model = TuckerClustering(10, random_state=0).fit(X)
    assert model.gap_ <= 1e-10


@pytest.mark.data
def test_many_samples_in_float32_have_the_error_of_float64(data_home, seed):
    from tuckermix.datasets import load

    X = np.asarray(load("mnist", data_home=data_home).X[:20_000], dtype=np.float32) / 255
    single, exact = (decompose(Y, 10, 14, random_state=seed) for Y in (X, X.astype(np.float64)))
    assert single.relative_error == pytest.approx(exact.relative_error, abs=1e-7)
    assert single.cost == pytest.approx(exact.cost, rel=3e-7)


@pytest.mark.slow
def test_noise_of_full_rank(rng):
    assert decompose(rng.standard_normal((1700, 42, 42)), 20, (42, 42)).gap <= 1e-10
