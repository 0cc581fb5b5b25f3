r"""Choose one of the simplices that all have the same, optimal cost.

The theorem fixes the column space of the memberships, not the memberships: with the centred
coordinates :math:`z_m` of the samples in that space, the barycentric coordinates with respect to
any simplex that holds all :math:`z_m` in its interior are optimal. The anchored simplex passes
through the means of as many groups as there are components and is then grown about its barycentre
just far enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from tuckermix._array_api import Array, asarray_like, double, get_namespace, is_dask, to_numpy
from tuckermix._records import Record
from tuckermix.numerics.points import kmeans
from tuckermix.numerics.simplex import regular_simplex
from tuckermix.sources import as_blocks

__all__ = ["SIMPLICES", "Simplex", "anchored_simplex"]

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


def anchored_simplex(coordinates: Array, rng: np.random.Generator) -> Simplex:
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
    if n_samples > ANCHOR_SAMPLES:
        index = np.sort(rng.choice(n_samples, size=ANCHOR_SAMPLES, replace=False))
        coordinates = rows.take(index)
    elif is_dask(coordinates):
        coordinates = coordinates.compute()
    anchors = to_numpy(kmeans(coordinates, n_components, n_init=1, rng=rng).centers)
    spread = np.column_stack([np.ones(n_components), anchors * n_samples**0.5])
    # Groups may be degenerate: nearly in a hyperplane, or too few for want of distinct samples.
    if not np.all(np.isfinite(spread)) or np.linalg.cond(spread) > WORST_CONDITION:
        anchors = regular_simplex(n_directions) * n_samples**-0.5
    inverse = np.linalg.inv(np.column_stack([np.ones(n_components), anchors]))
    lowest = rows.reduce(partial(_least_weight, inverse=inverse), min)
    growth = MARGIN * max(1.0, 1.0 - n_components * lowest)
    # Weights in the grown simplex are the same affine function of the coordinates, shrunk.
    inverse = inverse / growth
    inverse[0, :] += (1.0 - 1.0 / growth) / n_components
    centre = anchors.mean(axis=0)
    vertices = centre + growth * (anchors - centre)
    weights = rows.map(partial(_weights, inverse=inverse))
    return Simplex(asarray_like(vertices, double(rows.like)), weights)


SIMPLICES: dict[str, Callable[[Array, np.random.Generator], Simplex]] = {
    "anchored": anchored_simplex,
}
"""The ways to choose a simplex by name. Another one is another entry."""


def _weights(block: Array, inverse: np.ndarray) -> Array:
    """Multiply [1 | z] by the inverse of [1 | vertices], without building the first matrix."""
    xp = get_namespace(block)
    weights = xp.matmul(block, asarray_like(inverse[1:, :], block))
    weights = weights + asarray_like(inverse[0, :], block)
    return weights / xp.sum(weights, axis=1, keepdims=True)


def _least_weight(block: Array, inverse: np.ndarray) -> float:
    return float(get_namespace(block).min(_weights(block, inverse)))
