import numpy as np
import pytest

from tuckermix.features._ranges import dataset_range, sample_ranges


@pytest.mark.parametrize("percentiles", [(0, 100), (1, 99), (7.5, 50), (33.3, 66.6)])
@pytest.mark.parametrize("shape", [(5, 100), (4, 9, 7), (3, 2, 2, 2)])
def test_percentiles_of_samples_are_those_of_numpy(rng, xp, percentiles, shape):
    X = rng.normal(size=shape)
    low, high = sample_ranges(xp.asarray(X), percentiles)
    flat = X.reshape(len(X), -1)
    expected = np.percentile(flat, percentiles, axis=1, method="inverted_cdf")
    assert np.array_equal(np.asarray(low), expected[0])
    assert np.array_equal(np.asarray(high), expected[1])


def test_whole_ranges(rng, xp):
    X = rng.normal(size=(6, 5, 4))
    low, high = sample_ranges(xp.asarray(X), None)
    assert np.array_equal(np.asarray(low), X.min(axis=(1, 2)))
    assert np.array_equal(np.asarray(high), X.max(axis=(1, 2)))
    assert dataset_range(xp.asarray(X), None) == (X.min(), X.max())


@pytest.mark.parametrize("percentiles", [(0, 100), (1, 99), (5, 50)])
@pytest.mark.parametrize("kind", ["normal", "skewed", "bytes", "half"])
def test_percentiles_of_a_dataset_are_those_of_numpy(rng, xp, percentiles, kind):
    X = {
        "normal": rng.normal(size=(40, 10, 11)),
        "skewed": rng.lognormal(sigma=3, size=(40, 10, 11)),
        "bytes": rng.integers(0, 256, (40, 10, 11)).astype(np.uint8),
        "half": rng.normal(size=(40, 10, 11)).astype(np.float16),
    }[kind]
    if kind == "half" and xp.__name__.endswith("strict"):
        X = X.astype(np.float32)  # it knows no half floats
    expected = np.percentile(X, percentiles, method="inverted_cdf")
    found = dataset_range(xp.asarray(X), percentiles)
    assert np.allclose(found, expected, rtol=0, atol=1e-8 * float(X.max() - X.min()))


@pytest.mark.parametrize("kind", ["float64", "float16", "uint8"])
def test_of_a_dask_array(rng, kind):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    X = rng.integers(0, 200, (30, 6, 5)).astype(kind)
    lazy = da.from_array(X, chunks=(7, 6, 5))
    assert dataset_range(lazy, None) == (X.min(), X.max())
    expected = np.percentile(X, (10, 90), method="inverted_cdf")
    assert np.allclose(dataset_range(lazy, (10, 90)), expected, atol=1e-6)


def test_a_dataset_of_one_value():
    assert dataset_range(np.full((3, 4), 7), (1, 99)) == (7.0, 7.0)
