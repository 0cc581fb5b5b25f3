"""Matrices by rows: sums, quotients and checks that stay safe near the boundary of the simplex."""

from __future__ import annotations

import math

from tuckermix._array_api import Array, epsilon, get_namespace

POINT_TOLERANCE = 1e3
"""Row sums may miss 1 (or 0, for a tangent vector) by this many rounding errors a column: a
chain of some hundred retractions, each off by a few, still passes."""


def row_sums(Z: Array) -> Array:
    """Return Z·1 as a column; a matrix product is several times faster than a sum by rows."""
    xp = get_namespace(Z)
    return xp.matmul(Z, xp.ones_like(Z[:1, :]).T)


def safe_ratio(xi: Array, U: Array) -> Array:
    """Divide without overflow, whatever the length of the step: huge entries are cut short."""
    xp = get_namespace(xi, U)
    limit = math.sqrt(float(xp.finfo(U.dtype).max)) / 4.0
    return xp.clip(xi, -limit, limit) / xp.clip(U, 1.0 / limit, None)


def angle_from_chord(square: Array) -> Array:
    """Return the angle of unit vectors from the square of their chord; at most π/2 here."""
    xp = get_namespace(square)
    return 2.0 * xp.asin(xp.clip(0.5 * xp.sqrt(square), 0.0, 1.0))


def raise_to_floor(Y: Array) -> Array:
    """Raise entries to at least the machine epsilon, as Manopt does, without rescaling."""
    return get_namespace(Y).clip(Y, epsilon(Y), None)


def check_matrix(matrix: Array, shape: tuple[int, int], name: str, tol: float | None) -> float:
    """Raise where shape or finiteness is wrong; return the tolerance for row sums.

    Parameters
    ----------
    matrix : array
        The candidate.
    shape : tuple of int
        The shape it must have.
    name : str
        What to call it at the beginning of a sentence.
    tol : float or None
        A tolerance to be kept, or None for the default one.

    Returns
    -------
    tol : float
        The tolerance.
    """
    if tuple(matrix.shape) != shape:
        raise ValueError(
            f"{name} has shape {tuple(matrix.shape)}, but the manifold has points of shape {shape}."
        )
    xp = get_namespace(matrix)
    if not bool(xp.all(xp.isfinite(matrix))):
        raise ValueError(f"{name} has entries that are not finite: NaN or infinity.")
    return POINT_TOLERANCE * shape[1] * epsilon(matrix) if tol is None else tol


def check_positive(matrix: Array, name: str) -> None:
    """Raise where an entry is not positive, and say in which row."""
    xp = get_namespace(matrix)
    smallest = xp.min(matrix, axis=1)
    row = int(xp.argmin(smallest))
    if not float(smallest[row]) > 0:
        raise ValueError(
            f"Row {row} of {name} has an entry {float(smallest[row]):.6g}, not > 0: "
            "points lie inside the simplex, raise small entries to the machine epsilon."
        )


def check_row_sums(matrix: Array, target: float, name: str, tol: float) -> None:
    """Raise where a row sum misses its target, and say which one is worst."""
    xp = get_namespace(matrix)
    sums = xp.sum(matrix, axis=1)
    row = int(xp.argmax(xp.abs(sums - target)))
    if not abs(float(sums[row]) - target) <= tol:
        raise ValueError(
            f"Row {row} of {name} sums to {float(sums[row]):.6g}, not {target:g} "
            f"(tolerance {tol:.1e})."
        )
