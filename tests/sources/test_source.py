"""Blocks of samples in memory, and the reductions over them, against einsum on the whole."""

import operator
import tracemalloc

import numpy as np
import pytest
from tests.cases import each

from tuckermix._array_api import to_numpy
from tuckermix.sources import MemoryBlocks, add_parts, as_blocks, as_source


@pytest.fixture(params=["one block", "many blocks"])
def block_size(request, limits):
    if request.param == "many blocks":
        limits(block_bytes=500, device_block_bytes=500)


def problem(seed, shape=(23, 4, 5, 3)):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape)
    factors = [np.linalg.qr(rng.standard_normal((size, 2)))[0] for size in shape[1:]]
    return X, factors, rng.standard_normal((shape[0], 6))


@pytest.mark.usefixtures("block_size")
def test_reductions_agree_with_einsum(xp, seed):
    X, factors, Q = problem(seed)
    data = as_source(xp.asarray(X))
    moved = [xp.asarray(factor) for factor in factors]
    expected = np.einsum("mijk,ia,jb,kc->mabc", X, *factors).reshape(23, -1)
    np.testing.assert_allclose(to_numpy(data.project(moved)), expected, atol=1e-12)
    for width in (1, 7):  # narrow bases are lifted to sample space, wide ones come last
        basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((8, width)))[0]
        np.testing.assert_allclose(
            to_numpy(data.project(moved, xp.asarray(basis))), expected @ basis, atol=1e-12
        )
    np.testing.assert_allclose(
        to_numpy(data.contract(xp.asarray(Q))), np.einsum("mijk,mq->qijk", X, Q), atol=1e-11
    )
    for mode, gram in enumerate(data.mode_grams()):
        unfolded = np.moveaxis(X, mode + 1, 0).reshape(X.shape[mode + 1], -1)
        np.testing.assert_allclose(to_numpy(gram), unfolded @ unfolded.T, atol=1e-11)
    partly = np.einsum("mijk,jb,kc->mibc", X, *factors[1:])
    unfolded = np.moveaxis(partly, 1, 0).reshape(4, -1)
    np.testing.assert_allclose(
        to_numpy(data.projected_gram(moved, 0)), unfolded @ unfolded.T, atol=1e-11
    )
    assert data.squared_norm == pytest.approx(np.sum(X**2), rel=1e-12)


@pytest.mark.usefixtures("block_size")
def test_centred_rows_are_projections_less_their_mean(xp, seed):
    X, factors, _ = problem(seed)
    X += 100.0
    rows = np.einsum("mijk,ia,jb,kc->mabc", X, *factors).reshape(23, -1)
    B, mean = as_source(xp.asarray(X)).centred([xp.asarray(factor) for factor in factors])
    np.testing.assert_allclose(to_numpy(mean), rows.mean(axis=0), rtol=1e-13, atol=1e-11)
    np.testing.assert_allclose(to_numpy(B), rows - rows.mean(axis=0), atol=1e-11)


def test_sums_of_many_samples_in_float32_lose_few_digits(rng):
    X = rng.random((30_000, 5, 7), dtype=np.float32)
    data = as_source(X)
    np.testing.assert_allclose(data.mean, X.mean(axis=0, dtype=float), rtol=2e-7)
    assert data.squared_norm == pytest.approx(np.sum(X.astype(float) ** 2), rel=1e-7)


@pytest.mark.parametrize("waiting", [0, 700, 2**20])
def test_results_that_wait_add_up_to_the_same(waiting, limits, rng):
    X = rng.standard_normal((40, 3, 4)).astype(np.float32)
    limits(block_bytes=200, largest_block_bytes=200, waiting_bytes=0)
    expected = as_source(X).mode_grams()
    limits(waiting_bytes=waiting)
    for got, gram in zip(as_source(X).mode_grams(), expected, strict=True):
        np.testing.assert_array_equal(got, gram)  # in the same order, to the last bit


def test_take_picks_samples(xp):
    X, _, Q = problem(0)
    part = as_source(xp.asarray(X)).take(np.array([2, 5, 11]))
    np.testing.assert_allclose(
        to_numpy(part.contract(xp.asarray(Q[:3]))),
        np.einsum("mijk,mq->qijk", X[[2, 5, 11]], Q[:3]),
        atol=1e-12,
    )


@pytest.mark.parametrize(("dtype", "size"), [(np.float64, 1e150), (np.float64, 1e-150)])
def test_scale_is_a_power_of_two_that_keeps_squares_finite(dtype, size):
    X = (np.random.default_rng(0).standard_normal((9, 4)) * size).astype(dtype)
    data = as_source(X)
    assert np.log2(data.scale) == round(np.log2(data.scale))
    assert 1e-3 < data.squared_norm < 1e3
    np.testing.assert_allclose(data.project([np.eye(4)]) / data.scale, X, rtol=1e-15)


def test_float32_far_from_one_is_scaled_too():
    X = (np.random.default_rng(0).standard_normal((9, 4)) * 1e-30).astype(np.float32)
    assert as_source(X).squared_norm > 1e-3
    assert as_source(np.ones((3, 2), dtype=np.float32)).scale == 1.0


def test_all_zero_samples_keep_their_scale():
    data = as_source(np.zeros((3, 2)))
    assert data.scale == 1.0
    assert data.squared_norm == 0.0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(bad):
    X = np.ones((3, 2))
    X[1, 1] = bad
    with pytest.raises(ValueError, match="NaN or infinity"):
        as_source(X)


def test_extra_memory_stays_below_the_size_of_the_samples():
    X = np.random.default_rng(0).standard_normal((20000, 16, 16))
    factors = [np.eye(16)[:, :4], np.eye(16)[:, :4]]
    Q = np.random.default_rng(1).standard_normal((20000, 5))
    strided = X.transpose(0, 2, 1)  # not contiguous: a careless reshape would copy all of it
    tracemalloc.start()
    data = as_source(strided)
    data.mode_grams()
    data.contract(Q)
    data.project(factors)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * X.nbytes


@pytest.fixture
def small_blocks(limits):
    limits(block_bytes=200, largest_block_bytes=1000, block_samples=3, device_block_bytes=200)


@pytest.mark.usefixtures("small_blocks")
def test_map_gives_a_row_for_each_sample(xp):
    X = xp.asarray(np.random.default_rng(0).standard_normal((23, 3, 2)))
    rows = as_blocks(X).map(lambda block: xp.sum(block, axis=2))
    np.testing.assert_allclose(to_numpy(rows), to_numpy(X).sum(axis=2), atol=1e-14)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("scale", [1.0, 1e-200], ids=["as they are", "scaled"])
def test_map_cuts_further_rows_as_the_samples(scale):
    X = scale * np.random.default_rng(0).standard_normal((23, 3, 2))
    samples = as_source(X)._samples
    rows = samples.map(lambda block, names: block[:, 0, 0] * names, np.arange(23.0))
    assert (as_source(X).scale == 1.0) == (scale == 1.0)
    np.testing.assert_allclose(rows / as_source(X).scale, X[:, 0, 0] * np.arange(23), rtol=1e-14)


@each("n_samples", [1, 5, 257, 400, 1000, 1025])
def test_blocks_are_of_about_the_same_size(n_samples):
    parts = MemoryBlocks(np.zeros((n_samples, 32, 32))).parts
    sizes = [part.stop - part.start for part in parts]
    assert sum(sizes) == n_samples
    assert max(sizes) * 32 * 32 * 8 <= 2 * 2**20
    assert max(sizes) - min(sizes) < len(sizes)
    assert len(sizes) == -(-n_samples // 256)


@pytest.mark.usefixtures("small_blocks")
def test_reduce_sees_every_sample_once_with_its_rows(xp):
    X = xp.asarray(np.random.default_rng(0).standard_normal((23, 3, 2)))
    weights = xp.asarray(np.arange(23.0))
    seen = []

    def weigh(block, part):
        seen.append(block.shape[0])
        return float(xp.sum(block * part[:, None, None]))

    total = as_blocks(X).reduce(weigh, operator.add, weights)
    expected = np.einsum("mij,m->", to_numpy(X), to_numpy(weights))
    assert total == pytest.approx(expected, rel=1e-12)
    assert sum(seen) == 23
    assert len(seen) > 1


def test_take_and_attributes():
    X = np.arange(24.0).reshape(6, 2, 2)
    samples = MemoryBlocks(X)
    np.testing.assert_array_equal(samples.take(np.array([1, 4])), X[[1, 4]])
    assert samples.sample_shape == (2, 2)
    assert not samples.lazy


def test_add_parts_keeps_none_and_the_kind_of_container():
    assert add_parts((1, None), (2, None)) == (3, None)
    assert add_parts([1, 2], [3, 4]) == [4, 6]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("size", "expected"), [(5, 5), (20, 3), (50, 2), (200, 1)])
def test_blocks_of_large_samples_hold_several_of_them(size, expected):
    # Within 200 bytes; then 3 samples, as long as these take no more than 1000 bytes.
    seen = []
    as_blocks(np.ones((30, size))).map(lambda block: seen.append(len(block)) or block)
    assert seen[0] == expected
