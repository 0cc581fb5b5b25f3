import numpy as np
import pytest
from sklearn.base import clone

from tuckermix.features import Scale


@pytest.mark.parametrize(
    "kind", ["uint8", "int16", "uint16", "int64", "float16", "float32", "float64"]
)
@pytest.mark.parametrize("shape", [(5, 20), (5, 6, 7), (5, 3, 4, 2)])
def test_each_sample_from_zero_to_one(rng, kind, shape):
    X = rng.integers(0, 100, shape).astype(kind)
    found = Scale("sample").fit_transform(X)
    flat = found.reshape(5, -1)
    assert np.array_equal(flat.min(axis=1), np.zeros(5))
    assert np.allclose(flat.max(axis=1), 1)
    assert found.dtype == (np.float64 if kind in ("int64", "float64") else np.float32)
    # Affine and increasing: as the original up to two numbers a sample.
    for before, after in zip(X.reshape(5, -1).astype(float), flat, strict=True):
        assert np.corrcoef(before, after)[0, 1] == pytest.approx(1, abs=1e-6)


def test_bit_depth_does_not_matter(rng):
    image = rng.integers(0, 256, (4, 8, 8))
    both = np.concatenate([image, 257 * image]).astype(np.uint16)
    for mode in ("sample", "unit"):
        found = Scale(mode).fit_transform(both)
        assert np.allclose(found[:4], found[4:], atol=1e-6)


def test_one_range_for_the_dataset_keeps_bright_and_dark_apart(rng):
    X = rng.random((20, 5, 5)) * np.linspace(1, 10, 20)[:, None, None]
    scale = Scale("dataset").fit(X)
    assert scale.range_ == (X.min(), X.max())
    assert np.allclose(scale.transform(X), (X - X.min()) / (X.max() - X.min()))
    assert scale.transform(2 * X).max() > 1.5  # nothing is clipped unless asked for


@pytest.mark.parametrize("mode", ["sample", "dataset"])
def test_percentiles_clip(rng, mode):
    X = rng.normal(size=(10, 20, 20))
    X[:, 0, 0], X[:, 0, 1] = 1000, -1000
    found = Scale(mode, percentiles=(2, 98)).fit_transform(X)
    assert found.min() == 0
    assert found.max() == 1
    assert 0.4 < np.median(found) < 0.6
    expected = np.percentile(X if mode == "dataset" else X[3], (2, 98), method="inverted_cdf")
    expected = np.clip((X[3] - expected[0]) / (expected[1] - expected[0]), 0, 1)
    assert np.allclose(found[3], expected, atol=1e-6)


def test_unit_norm(rng):
    X = rng.normal(size=(6, 4, 5))
    found = Scale("unit").fit_transform(X)
    norms = np.linalg.norm(X.reshape(6, -1), axis=1)
    assert np.allclose(found, X / norms[:, None, None])
    clipped = Scale("unit", percentiles=(10, 90)).fit_transform(X)
    assert np.allclose(np.linalg.norm(clipped.reshape(6, -1), axis=1), 1)
    assert np.abs(clipped).max() < np.abs(found).max()


@pytest.mark.parametrize("mode", ["sample", "dataset", "unit"])
@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_numbers_of_any_size(rng, mode, size):
    X = rng.normal(size=(6, 4, 5))
    found = Scale(mode).fit_transform(X * size)
    assert np.allclose(found, Scale(mode).fit_transform(X), rtol=1e-9)


@pytest.mark.parametrize("mode", ["sample", "dataset", "unit"])
def test_nothing_to_scale(mode):
    assert np.array_equal(Scale(mode).fit_transform(np.zeros((3, 2, 2))), np.zeros((3, 2, 2)))
    if mode != "unit":
        assert np.array_equal(Scale(mode).fit_transform(np.full((3, 2, 2), 9)), np.zeros((3, 2, 2)))


@pytest.mark.parametrize("mode", ["sample", "dataset", "unit"])
@pytest.mark.parametrize("percentiles", [None, (5, 95)])
def test_libraries_agree(rng, xp, mode, percentiles):
    X = rng.normal(size=(12, 6, 5))
    expected = Scale(mode, percentiles=percentiles).fit_transform(X)
    found = Scale(mode, percentiles=percentiles).fit_transform(xp.asarray(X))
    assert type(found) is type(xp.asarray(X))
    assert np.allclose(np.asarray(found), expected, rtol=1e-12)


@pytest.mark.parametrize("mode", ["sample", "dataset", "unit"])
def test_a_dask_array_stays_lazy(rng, mode):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    X = rng.integers(0, 256, (12, 6, 5)).astype(np.uint8)
    found = Scale(mode).fit_transform(da.from_array(X, chunks=(5, 3, 5)))
    assert found.chunks[0] == (5, 5, 2)
    assert found.dtype == np.float32
    assert np.allclose(found.compute(), Scale(mode).fit_transform(X), rtol=1e-6)


def test_clones(rng):
    scale = clone(Scale("dataset", percentiles=(1, 99)))
    assert scale.get_params() == {"mode": "dataset", "percentiles": (1, 99)}


def test_what_is_refused(rng):
    X = rng.random((3, 4))
    with pytest.raises(ValueError, match="'mode' parameter of Scale must be one of 'sample'"):
        Scale("none").fit(X)
    for wrong in (5, (1,), (99, 1), (-1, 50), (0, 101), ("a", "b"), (False, True)):
        with pytest.raises(ValueError, match="'percentiles' parameter of Scale must be None or"):
            Scale(percentiles=wrong).fit(X)
