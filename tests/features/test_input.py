import numpy as np
import pytest
from sklearn.base import BaseEstimator
from tests.cases import each

from tuckermix.features._input import (
    as_float,
    check_samples,
    dataset_range,
    map_rows,
    over_chunks,
    sample_ranges,
)


class Asker(BaseEstimator):
    """An estimator that does nothing."""

    def fit(self, X, y=None):
        return self


@each(
    "kind, wanted",
    [
        *((kind, "float32") for kind in ("bool", "uint8", "int16", "uint16", "float16", "float32")),
        *((kind, "float64") for kind in ("int32", "uint32", "int64", "float64")),
    ],
)
def test_values_are_kept_exactly(kind, wanted):
    info = np.iinfo(kind) if kind[0] in "iu" else None
    values = np.array([0, 1] if info is None else [info.min, info.max, 1], dtype=kind)
    found = as_float(values)
    assert found.dtype == wanted
    if kind != "int64":
        assert found.tolist() == values.tolist()
    assert as_float(found) is found or np.shares_memory(as_float(found), found)


def test_types_stay_until_a_block_is_worked_on(rng):
    X = rng.integers(0, 255, (7, 4, 4), dtype=np.uint8)
    checked = check_samples(Asker(), X, reset=True)
    assert checked.dtype == np.uint8
    seen = []

    def double(block):
        seen.append((block.shape, block.dtype))
        return 2 * block[:, 0]

    found = map_rows(checked, double, 3)
    assert seen == [((3, 4, 4), np.float32), ((3, 4, 4), np.float32), ((1, 4, 4), np.float32)]
    assert np.array_equal(found, 2.0 * X[:, 0])


def test_chunks_of_a_dask_array_are_mapped_lazily(rng):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    X = rng.random((10, 4, 6))
    calls = []

    def total(block):
        calls.append(len(block))
        return block.sum(axis=2)

    checked = check_samples(Asker(), da.from_array(X, chunks=(4, 2, 6)), reset=True)
    assert checked.chunks[1:] == ((4,), (6,))
    rows = over_chunks(checked, total)
    assert calls == [1]  # one sample of zeros, for the shape
    assert np.array_equal(rows.compute(), X.sum(axis=2))
    assert rows.shape == (10, 4)


def test_a_list_will_do():
    asker = Asker()
    assert check_samples(asker, [[1, 2], [3, 4]], reset=True).tolist() == [[1, 2], [3, 4]]
    assert asker.sample_shape_ == (2,)


@pytest.mark.parametrize(
    ("X", "text"),
    [
        (np.zeros((3, 4), dtype=complex), "Complex data not supported"),
        (np.array([["a", "b"]]), "could not convert string|dtype='numeric' is not compatible"),
        (np.full((2, 2), np.datetime64("2020-01-01")), "takes real numbers, but X has dtype"),
        (np.zeros((3, 4, 0)), "Found array with 0 feature"),
        (np.full((3, 4), np.nan), "Input X contains NaN"),
    ],
)
def test_what_is_refused(X, text):
    with pytest.raises((ValueError, TypeError), match=text):
        check_samples(Asker(), X, reset=True)


def test_what_is_refused_of_other_libraries():
    xs = pytest.importorskip("array_api_strict")
    with pytest.raises(ValueError, match="at least 2 axes, samples first"):
        check_samples(Asker(), xs.zeros(3), reset=True)
    with pytest.raises(ValueError, match="Found array with 0 feature"):
        check_samples(Asker(), xs.zeros((3, 0)), reset=True)
    with pytest.raises(ValueError, match="Complex data not supported by Asker"):
        check_samples(Asker(), xs.zeros((3, 2), dtype=xs.complex64), reset=True)
    with pytest.raises(ValueError, match="contains infinity, which Asker does not"):
        check_samples(Asker(), xs.asarray([[1.0, float("inf")]]), reset=True)


def test_a_dask_array_of_unknown_length_is_refused():
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    X = da.ones((6, 3), chunks=3)
    with pytest.raises(ValueError, match="unknown chunk sizes"):
        check_samples(Asker(), X[X[:, 0] > 0], reset=True)


def test_later_samples_are_of_the_same_kind(rng):
    xs = pytest.importorskip("array_api_strict")
    asker = Asker()
    check_samples(asker, rng.random((3, 4, 5)), reset=True)
    with pytest.raises(ValueError, match=r"per-sample shape \(5, 4\), but this Asker was fitted"):
        check_samples(asker, rng.random((3, 5, 4)), reset=False)
    with pytest.raises(ValueError, match=r"Inputs passed to Asker.transform\(\) must use the same"):
        check_samples(asker, xs.zeros((3, 4, 5)), reset=False)


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
