"""The three reductions over samples in memory, against einsum on the whole array."""

import tracemalloc

import numpy as np
import pytest

from tuckermix._array_api import to_numpy
from tuckermix.sources import as_source, blocks


@pytest.fixture(params=["one block", "many blocks"])
def block_size(request, monkeypatch):
    if request.param == "many blocks":
        monkeypatch.setattr(blocks, "HOST_BLOCK_BYTES", 500)
        monkeypatch.setattr(blocks, "DEVICE_BLOCK_BYTES", 500)


def problem(seed, shape=(23, 4, 5, 3)):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape)
    factors = [np.linalg.qr(rng.standard_normal((size, 2)))[0] for size in shape[1:]]
    return X, factors, rng.standard_normal((shape[0], 6))


@pytest.mark.usefixtures("block_size")
def test_reductions_agree_with_einsum(xp, seed):
    X, factors, Q = problem(seed)
    source = as_source(xp.asarray(X))
    moved = [xp.asarray(factor) for factor in factors]
    expected = np.einsum("mijk,ia,jb,kc->mabc", X, *factors).reshape(23, -1)
    np.testing.assert_allclose(to_numpy(source.project(moved)), expected, atol=1e-12)
    for width in (1, 7):  # narrow bases are lifted to sample space, wide ones come last
        basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((8, width)))[0]
        np.testing.assert_allclose(
            to_numpy(source.project(moved, xp.asarray(basis))), expected @ basis, atol=1e-12
        )
    np.testing.assert_allclose(
        to_numpy(source.contract(xp.asarray(Q))), np.einsum("mijk,mq->qijk", X, Q), atol=1e-11
    )
    for mode, gram in enumerate(source.mode_grams()):
        unfolded = np.moveaxis(X, mode + 1, 0).reshape(X.shape[mode + 1], -1)
        np.testing.assert_allclose(to_numpy(gram), unfolded @ unfolded.T, atol=1e-11)
    partly = np.einsum("mijk,jb,kc->mibc", X, *factors[1:])
    unfolded = np.moveaxis(partly, 1, 0).reshape(4, -1)
    np.testing.assert_allclose(
        to_numpy(source.projected_gram(moved, 0)), unfolded @ unfolded.T, atol=1e-11
    )
    assert source.squared_norm == pytest.approx(np.sum(X**2), rel=1e-12)


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
    source = as_source(X)
    assert np.log2(source.scale) == round(np.log2(source.scale))
    assert 1e-3 < source.squared_norm < 1e3
    np.testing.assert_allclose(source.project([np.eye(4)]) / source.scale, X, rtol=1e-15)


def test_float32_far_from_one_is_scaled_too():
    X = (np.random.default_rng(0).standard_normal((9, 4)) * 1e-30).astype(np.float32)
    assert as_source(X).squared_norm > 1e-3
    assert as_source(np.ones((3, 2), dtype=np.float32)).scale == 1.0


def test_all_zero_samples_keep_their_scale():
    source = as_source(np.zeros((3, 2)))
    assert source.scale == 1.0
    assert source.squared_norm == 0.0


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
    source = as_source(strided)
    source.mode_grams()
    source.contract(Q)
    source.project(factors)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * X.nbytes
