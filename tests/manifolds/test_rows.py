"""Matrices by rows: safe near the boundary, and errors that name the row."""

from __future__ import annotations

import numpy as np
import pytest

from tuckermix._array_api import to_numpy
from tuckermix.manifolds import rows

EPS = float(np.finfo(float).eps)


def test_row_sums_are_columns(xp, rng):
    Z = rng.standard_normal((7, 4))
    got = to_numpy(rows.row_sums(xp.asarray(Z)))
    np.testing.assert_allclose(got, Z.sum(axis=1, keepdims=True), atol=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quotients_never_overflow(xp, dtype):
    kind = getattr(xp, dtype)
    largest = float(np.finfo(dtype).max)
    xi = xp.asarray([[largest, -largest, 0.0, 1.0]], dtype=kind)
    U = xp.asarray([[float(np.finfo(dtype).eps)] * 3 + [0.5]], dtype=kind)
    ratio = to_numpy(rows.safe_ratio(xi, U))
    assert np.isfinite(ratio).all()
    assert ratio[0, 0] > 1e20
    np.testing.assert_array_equal(ratio[0, 2:], [0.0, 2.0])


def test_angles_from_chords(xp):
    angles = np.array([0.0, 1e-12, 0.3, np.pi / 2])
    squares = (2 * np.sin(angles / 2)) ** 2
    got = to_numpy(rows.angle_from_chord(xp.asarray(squares)))
    np.testing.assert_allclose(got, angles, rtol=1e-12)
    assert np.isfinite(to_numpy(rows.angle_from_chord(xp.asarray([4.0 + 1e-9])))).all()


def test_floor(xp):
    values = xp.asarray([[0.0, EPS / 2, 0.5]], dtype=xp.float64)
    Y = to_numpy(rows.raise_to_floor(values))
    np.testing.assert_array_equal(Y, [[EPS, EPS, 0.5]])


def test_checks_name_what_is_wrong():
    with pytest.raises(ValueError, match=r"The point has shape \(2, 2\), but the manifold has"):
        rows.check_matrix(np.ones((2, 2)), (2, 3), "The point", None)
    with pytest.raises(ValueError, match="The point has entries that are not finite"):
        rows.check_matrix(np.full((2, 2), np.inf), (2, 2), "The point", None)
    with pytest.raises(ValueError, match="Row 1 of the point has an entry 0, not > 0"):
        rows.check_positive(np.array([[0.5, 0.5], [1.0, 0.0]]), "the point")
    with pytest.raises(ValueError, match=r"Row 1 of the point sums to 0.9, not 1 \(tolerance"):
        rows.check_row_sums(np.array([[0.5, 0.5], [0.4, 0.5]]), 1.0, "the point", 1e-9)
    assert rows.check_matrix(np.ones((2, 3)), (2, 3), "The point", 0.5) == 0.5
    assert rows.check_matrix(np.ones((2, 3)), (2, 3), "The point", None) == 3e3 * EPS
