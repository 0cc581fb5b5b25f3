"""The exact solver: optimal for its factors, monotone, stationary, the same on every road."""

import itertools

import numpy as np
import pytest

from tuckermix import decompose
from tuckermix._array_api import to_numpy
from tuckermix._records import StopReason
from tuckermix.datasets import make_tensor_clusters
from tuckermix.decomposition import exact
from tuckermix.decomposition import fit as fit_module
from tuckermix.decomposition.exact import solve_exact, widened
from tuckermix.decomposition.factors import update_factors
from tuckermix.decomposition.start import start_factors
from tuckermix.decomposition.subspace import closed_form
from tuckermix.sources import MemoryBlocks, Source, as_source
from tuckermix.tensor import tucker_to_tensor


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
        Q = np.column_stack([np.full(len(X), len(X) ** -0.5), found.coordinates])
        factors = update_factors(source.contract(Q), factors)
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


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((6, 3, 2)),
        np.ones((6, 3, 2)),
        np.repeat(np.arange(6.0).reshape(1, 3, 2), 5, axis=0),
        np.arange(6.0).reshape(6, 1),
        np.arange(6.0).reshape(1, 6),
        np.eye(5),
    ],
    ids=["zero", "constant", "duplicates", "one feature", "one sample", "identity"],
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


def test_many_samples_start_from_a_part_of_them(monkeypatch, seed):
    X = noisy(seed, (400, 7, 8))
    direct = decompose(X, 4, 3, tol=1e-12)
    monkeypatch.setattr(fit_module, "MANY_SAMPLES", 300)
    monkeypatch.setattr(fit_module, "PART", 100)
    assert decompose(X, 4, 3, tol=1e-12, random_state=0).cost == pytest.approx(
        direct.cost, rel=1e-8
    )
    by_energy = decompose(X, 4, random_state=0)  # here the ranks come from the part too
    assert by_energy.relative_error == pytest.approx(decompose(X, 4, 7).relative_error, rel=0.1)


def test_a_sweep_reads_the_samples_once():
    class Counted(Source):
        reads = 0

        def project(self, *args):
            type(self).reads += 1
            return super().project(*args)

        def sketch(self, *args, **options):
            type(self).reads += 1
            return super().sketch(*args, **options)

    source = Counted(MemoryBlocks(noisy(0)))
    factors = start_factors(source, (3, 3), "hosvd", np.random.default_rng(0))
    fit = solve_exact(source, factors, 4, max_iter=50, tol=1e-10)
    assert Counted.reads == fit.n_iter + 2  # one before the sweeps, one after them


def test_spare_directions_stay_within_limits():
    assert widened(0) == exact.MIN_OVERSAMPLING
    assert widened(1000) == 1000 + exact.MAX_OVERSAMPLING
