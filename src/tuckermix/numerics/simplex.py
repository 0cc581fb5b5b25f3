r"""Simplices: least squares with weights that sum to one, and the regular simplex.

.. math:: \min_w \tfrac12 \| z - V^\top w \|^2 \quad\text{with}\quad w \ge 0,\ 1^\top w = 1

For a sample inside the simplex of the vertices `V` the solution is its barycentric coordinates.
For the others a primal active-set method finds it in finitely many steps, all samples at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tuckermix._array_api import Array, blocks, device, divisor, double, get_namespace
from tuckermix._estimators import Settings
from tuckermix._threads import gather_rows


@dataclass(frozen=True)
class SimplexSettings(Settings):
    """How mixtures are found.

    Attributes
    ----------
    steps_per_component : int
        Most steps of the active-set method for each component; it needs about one.
    zero : float
        Weights and multipliers of this size are rounding.
    far : float
        Distance, in sizes of the simplex, from which points are drawn nearer. The weights then have
        half of the digits of double precision; much further, none is left and a face can lose its
        vertices.
    """

    steps_per_component: int = 10
    zero: float = 1e-12
    far: float = 2.0**26


def simplex_least_squares(targets: Array, vertices: Array) -> Array:
    """Find the convex combinations of the vertices that come nearest to the targets.

    Parameters
    ----------
    targets : array of shape (n_samples, d)
        The points to approximate.
    vertices : array of shape (d + 1, d)
        Affinely independent points.

    Returns
    -------
    weights : array of shape (n_samples, d + 1)
        Nonnegative rows that sum to one, in the floating type of `targets`.
    """
    xp = get_namespace(targets, vertices)
    vertices = double(vertices)
    n_vertices, n_directions = vertices.shape
    if n_directions == 0:
        return xp.ones((targets.shape[0], 1), dtype=targets.dtype, device=device(targets))
    # Squares of distances enter below, so the unit of length must be an ordinary number.
    unit = float(xp.max(xp.abs(vertices)))
    unit = unit if unit > 0 else 1.0
    vertices = vertices / unit
    far = min(SimplexSettings.current().far * unit, float(xp.finfo(xp.float64).max))
    far = xp.asarray(far, dtype=xp.float64, device=device(vertices))
    ones = xp.ones((n_vertices, 1), dtype=vertices.dtype, device=device(vertices))
    inverse = xp.linalg.inv(xp.concat([ones, vertices], axis=1))

    def solve(part: slice) -> Array:
        points = double(targets[part, :])
        # From far away only the direction counts, and larger numbers would overflow.
        length = xp.max(xp.abs(points), axis=1, keepdims=True)
        points = points * (far / xp.where(length > far, length, far)) / unit
        weights = xp.matmul(points, inverse[1:, :]) + inverse[:1, :]
        outside = xp.nonzero(xp.any(weights < 0, axis=1))[0]
        if outside.shape[0] > 0:
            repaired = _active_set(xp.take(points, outside, axis=0), vertices)
            weights = _replace_rows(weights, outside, repaired)
        return xp.astype(weights, targets.dtype, copy=False)

    parts = list(blocks(targets.shape[0], 8 * (n_vertices + 2) ** 2))
    return gather_rows(solve, parts, targets.shape[0], targets)


def _active_set(points: Array, vertices: Array) -> Array:
    """Solve for points outside the simplex; see the module's text."""
    use = SimplexSettings.current()
    xp = get_namespace(points)
    n_points, n_vertices = points.shape[0], vertices.shape[0]
    gram = xp.matmul(vertices, vertices.T)
    pull = xp.matmul(points, vertices.T)
    # Start at the nearest vertex, which is feasible, and let the others in one by one.
    nearest = xp.argmin(xp.linalg.diagonal(gram)[None, :] - 2.0 * pull, axis=1)
    columns = xp.arange(n_vertices, device=device(points))
    free = columns[None, :] == nearest[:, None]
    weights = xp.astype(free, xp.float64)
    pending = xp.arange(n_points, device=device(points))
    for _ in range(use.steps_per_component * n_vertices):
        now_weights = xp.take(weights, pending, axis=0)
        now_free = xp.take(free, pending, axis=0)
        now_pull = xp.take(pull, pending, axis=0)
        best, multiplier = _equality_solution(gram, now_pull, now_free)
        negative = now_free & (best <= use.zero)
        blocked = xp.any(negative, axis=1)
        # Step towards the best point on the free face, as far as all weights stay nonnegative.
        drop = now_weights - best
        ratio = xp.where(negative & (drop > 0), now_weights / divisor(drop), xp.ones_like(drop))
        step = xp.where(blocked, xp.min(ratio, axis=1), xp.ones_like(ratio[:, 0]))
        moved = now_weights + step[:, None] * (best - now_weights)
        tight = blocked[:, None] & negative & (ratio <= step[:, None])
        moved = xp.where(tight | ~now_free, xp.zeros_like(moved), moved)
        next_free = now_free & ~tight
        # Where the face is solved, let in the vertex that promises most, if any does.
        slope = xp.matmul(moved, gram) - now_pull + multiplier[:, None]
        slope = xp.where(next_free, xp.zeros_like(slope), slope)
        entering = xp.argmin(slope, axis=1)
        improves = ~blocked & (xp.min(slope, axis=1) < -use.zero)
        next_free = next_free | (improves[:, None] & (columns[None, :] == entering[:, None]))
        weights = _replace_rows(weights, pending, moved)
        free = _replace_rows(free, pending, next_free)
        again = xp.nonzero(blocked | improves)[0]
        if again.shape[0] == 0:
            break
        pending = xp.take(pending, again, axis=0)
    weights = xp.clip(weights, 0.0, None)
    return weights / xp.sum(weights, axis=1, keepdims=True)


def _equality_solution(gram: Array, pull: Array, free: Array) -> tuple[Array, Array]:
    """Minimise over the free weights with their sum fixed; return weights and multiplier."""
    xp = get_namespace(gram)
    n_points, n_vertices = free.shape
    mask = xp.astype(free, xp.float64)
    both = mask[:, :, None] * mask[:, None, :]
    identity = xp.eye(n_vertices, dtype=xp.float64, device=device(gram))
    matrix = both * gram[None, :, :] + (1.0 - mask)[:, :, None] * identity[None, :, :]
    top = xp.concat([matrix, mask[:, :, None]], axis=2)
    corner = xp.zeros((n_points, 1, 1), dtype=xp.float64, device=device(gram))
    bottom = xp.concat([mask[:, None, :], corner], axis=2)
    ones = xp.ones((n_points, 1), dtype=xp.float64, device=device(gram))
    right = xp.concat([mask * pull, ones], axis=1)
    solution = xp.linalg.solve(xp.concat([top, bottom], axis=1), right[:, :, None])[:, :, 0]
    return solution[:, :n_vertices], solution[:, n_vertices]


def _replace_rows(rows: Array, index: Array, new: Array) -> Array:
    """Return `rows` with those at `index` replaced, without relying on item assignment."""
    xp = get_namespace(rows)
    if index.shape[0] == rows.shape[0]:
        return new  # the index is sorted, so this means all rows
    position = xp.searchsorted(index, xp.arange(rows.shape[0], device=device(rows)))
    position = xp.clip(position, 0, index.shape[0] - 1)
    hit = xp.take(index, position, axis=0) == xp.arange(rows.shape[0], device=device(rows))
    return xp.where(hit[:, None], xp.take(new, position, axis=0), rows)


def regular_simplex(n_directions: int) -> np.ndarray:
    """Return the vertices of a regular simplex of unit radius about the origin.

    Parameters
    ----------
    n_directions : int
        The dimension d.

    Returns
    -------
    vertices : ndarray of shape (d + 1, d)
        Unit vectors from the centre to the vertices; empty ones for d = 0.
    """
    n_vertices = n_directions + 1
    corners = np.eye(n_vertices) - 1.0 / n_vertices
    # The corners span the space orthogonal to the vector of ones: take coordinates in it.
    vertices = corners @ np.linalg.svd(corners)[0][:, :n_directions]
    return vertices / max(np.linalg.norm(vertices[0]), np.finfo(float).tiny)
