r"""Choose one of the simplices that all have the same, optimal cost.

The theorem fixes the column space of the memberships, not the memberships: with the centred
coordinates :math:`z_m` of the samples in that space, the barycentric coordinates with respect to
any simplex that holds all :math:`z_m` in its interior are optimal. The anchored simplex passes
through the means of as many groups as there are components and is then grown about its barycentre
just far enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from tuckermix._array_api import Array, asarray_like, double, get_namespace, to_numpy
from tuckermix._records import Record
from tuckermix.labels.kmeans import kmeans
from tuckermix.sources import Blocks, as_blocks

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
    rows = as_blocks(coordinates)
    n_samples, n_directions = coordinates.shape
    n_components = n_directions + 1
    anchors = _anchors(rows, rng)
    if anchors is None:
        anchors = _regular_simplex(n_directions) * n_samples**-0.5
    inverse = np.linalg.inv(np.column_stack([np.ones(n_components), anchors]))
    lowest = rows.reduce(partial(_least_weight, inverse=inverse), min)
    growth = MARGIN * max(1.0, 1.0 - n_components * lowest)
    weights = rows.map(partial(_grown_weights, inverse=inverse, growth=growth))
    centre = anchors.mean(axis=0)
    vertices = centre + growth * (anchors - centre)
    return Simplex(asarray_like(vertices, double(rows.like)), weights)


def _barycentric(block: Array, inverse: np.ndarray) -> Array:
    """Multiply [1 | z] by the inverse of [1 | anchors], without building the first matrix."""
    xp = get_namespace(block)
    return xp.matmul(block, asarray_like(inverse[1:, :], block)) + asarray_like(
        inverse[0, :], block
    )


def _least_weight(block: Array, inverse: np.ndarray) -> float:
    return float(get_namespace(block).min(_barycentric(block, inverse)))


def _grown_weights(block: Array, inverse: np.ndarray, growth: float) -> Array:
    xp = get_namespace(block)
    mean = 1.0 / inverse.shape[1]
    weights = (_barycentric(block, inverse) - mean) / growth + mean
    return weights / xp.sum(weights, axis=1, keepdims=True)


def _anchors(rows: Blocks, rng: np.random.Generator) -> np.ndarray | None:
    """Return the means of as many groups as components, or None where they are degenerate."""
    n_samples, n_directions = rows.n_samples, rows.sample_shape[0]
    if n_directions == 0:
        return np.zeros((1, 0))
    index = np.arange(n_samples)
    if n_samples > ANCHOR_SAMPLES:
        index = np.sort(rng.choice(n_samples, size=ANCHOR_SAMPLES, replace=False))
    found = kmeans(rows.take(index), n_directions + 1, n_init=1, rng=rng)
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
