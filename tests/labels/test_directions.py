"""The directions in which samples are compared."""

import numpy as np
import pytest

from tuckermix._array_api import to_numpy
from tuckermix.labels import compared_directions, directions
from tuckermix.labels.directions import NEGLIGIBLE, WIDER


@pytest.fixture
def rows(rng):
    spectrum = 0.8 ** np.arange(30)
    return rng.normal(size=(200, 30)) * spectrum @ np.linalg.qr(rng.normal(size=(30, 30)))[0] + 2.0


def leading(rows, count):
    centred = rows - rows.mean(axis=0)
    _, values, right = np.linalg.svd(centred, full_matrices=False)
    return values[:count], right[:count].T


@pytest.mark.parametrize("n_directions", [1, 3, 7])
def test_weights_are_those_of_a_wiener_filter(xp, rows, n_directions):
    values, right = leading(rows, WIDER * n_directions)
    view = compared_directions(xp.asarray(rows.copy()), n_directions)
    weights = values**2 / (values**2 + values[n_directions] ** 2)
    found = to_numpy(view)
    kept = found.shape[1]
    assert n_directions < kept <= WIDER * n_directions
    assert np.sum(weights[kept:] ** 2) <= NEGLIGIBLE * np.sum(weights**2)
    weights, values, right = weights[:kept], values[:kept], right[:, :kept]
    weights /= np.sqrt(np.mean(weights**2))
    expected = right * weights * np.sqrt(len(rows)) / values
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, rtol=1e-8)
    spread = (rows - rows.mean(axis=0)) @ found
    np.testing.assert_allclose(np.mean(spread**2, axis=0), weights**2, rtol=1e-8)


def test_a_model_with_all_directions_sees_nothing_beyond(rng):
    rows = rng.normal(size=(50, 4))
    assert compared_directions(rows.copy(), 4) is None
    assert compared_directions(rows[:5].copy(), 4) is None
    assert compared_directions(np.ones((6, 3)), 0) is None
    assert compared_directions(np.ones((6, 3)), 1) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_rounding_is_not_looked_at(dtype, offset, rng):
    """Samples of rank three far from the origin: what lies beyond is the rounding of the mean."""
    rows = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 20)) + offset
    assert compared_directions(rows.astype(dtype), 3) is None
    assert compared_directions(rows.astype(dtype), 2) is not None


def test_the_number_of_further_directions_has_a_limit(monkeypatch, rows):
    monkeypatch.setattr(directions, "MOST_MORE", 2)
    assert compared_directions(rows.copy(), 5).shape[1] <= 7


def test_scales_do_not_matter(rows):
    once = compared_directions(rows.copy(), 5)
    many = compared_directions(1e6 * rows, 5)
    np.testing.assert_allclose(many * 1e6, once, rtol=1e-6, atol=1e-9)


def test_float32_gives_the_same_view(rows):
    single = compared_directions(rows.astype(np.float32), 5)
    double = compared_directions(rows.copy(), 5)
    assert single.dtype == np.float64
    largest = np.abs(double).max() ** 2
    np.testing.assert_allclose(single @ single.T, double @ double.T, atol=1e-3 * largest)
