r"""Choose one of the simplices that all have the same, optimal cost.

The theorem fixes the column space of the memberships, not the memberships: with the centred
coordinates :math:`z_m` of the samples in that space, the barycentric coordinates with respect to
any simplex that holds all :math:`z_m` in its interior are optimal. The anchored simplex passes
through the means of as many groups as there are components and is then grown about its barycentre
just far enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tuckermix._array_api import Array, asarray_like, double, get_namespace, to_numpy
from tuckermix._records import Record
from tuckermix.labels.kmeans import kmeans

__all__ = ["SIMPLICES", "Simplex", "choose_simplex"]

SIMPLICES = ("anchored",)

MARGIN = 1.05
"""Growth beyond the least factor that holds all samples: it keeps the smallest weight at about a
twentieth of the mean weight 1/L, away from zero, where logarithms and divisions are safe."""

ANCHOR_SAMPLES = 4096
"""Samples among which the groups are sought: their means need no more."""

WORST_CONDITION = 1e5
"""Beyond this condition number the means lie nearly in a hyperplane, and weights with respect to
them would be noise: a regular simplex serves instead."""


@dataclass(frozen=True)
class Simplex(Record):
    """A simplex around the samples.

    Attributes
    ----------
    vertices : array of shape (n_components, n_components - 1)
        The vertices in centred coordinates, in float64.
    weights : array of shape (n_samples, n_components)
        The barycentric coordinates of the samples: positive rows that sum to one.
    """

    vertices: Array
    weights: Array


def choose_simplex(coordinates: Array, rng: np.random.Generator) -> Simplex:
    r"""Choose the anchored simplex and compute the weights of all samples.

    With barycentric coordinates `w` for the simplex through the anchors and growth `t`,

    .. math:: u = \tfrac1L + \tfrac1t \bigl(w - \tfrac1L\bigr), \qquad
              t = \text{margin} \cdot \max(1, 1 - L \min w) .

    Parameters
    ----------
    coordinates : array of shape (n_samples, n_components - 1)
        Orthonormal centred coordinates of the samples.
    rng : numpy.random.Generator
        The source of randomness.

    Returns
    -------
    simplex : Simplex
        Vertices and weights.
    """
    xp = get_namespace(coordinates)
    n_samples, n_directions = coordinates.shape
    n_components = n_directions + 1
    anchors = _anchors(coordinates, rng)
    if anchors is None:
        anchors = _regular_simplex(n_directions) * n_samples**-0.5
    inverse = np.linalg.inv(np.column_stack([np.ones(n_components), anchors]))
    # [1 | z] times the inverse, without building the matrix [1 | z].
    linear = asarray_like(inverse[1:, :], coordinates)
    weights = xp.matmul(coordinates, linear) + asarray_like(inverse[0, :], coordinates)
    growth = MARGIN * max(1.0, 1.0 - n_components * float(xp.min(weights)))
    weights = (weights - 1.0 / n_components) / growth + 1.0 / n_components
    weights = weights / xp.sum(weights, axis=1, keepdims=True)
    centre = anchors.mean(axis=0)
    vertices = centre + growth * (anchors - centre)
    return Simplex(asarray_like(vertices, double(coordinates[:1, :])), weights)


def _anchors(coordinates: Array, rng: np.random.Generator) -> np.ndarray | None:
    """Return the means of as many groups as components, or None where they are degenerate."""
    xp = get_namespace(coordinates)
    n_samples, n_directions = coordinates.shape
    chosen = coordinates
    if n_samples > ANCHOR_SAMPLES:
        index = np.sort(rng.choice(n_samples, size=ANCHOR_SAMPLES, replace=False))
        chosen = xp.take(coordinates, asarray_like(index, coordinates, dtype=xp.int64), axis=0)
    if n_directions == 0:
        return np.zeros((1, 0))
    found = kmeans(chosen, n_directions + 1, n_init=1, rng=rng)
    anchors = to_numpy(found.centers).astype(np.float64)
    spread = np.column_stack([np.ones(n_directions + 1), anchors * n_samples**0.5])
    if not np.all(np.isfinite(spread)) or np.linalg.cond(spread) > WORST_CONDITION:
        return None
    return anchors


def _regular_simplex(n_directions: int) -> np.ndarray:
    """Return the vertices of a regular simplex of unit radius about the origin."""
    n_vertices = n_directions + 1
    corners = np.eye(n_vertices) - 1.0 / n_vertices
    # The corners span the space orthogonal to the vector of ones: take coordinates in it.
    basis = np.linalg.svd(corners)[0][:, :n_directions]
    vertices = corners @ basis
    return vertices / max(np.linalg.norm(vertices[0]), np.finfo(float).tiny)
