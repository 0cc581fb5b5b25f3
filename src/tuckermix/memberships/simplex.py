r"""Choose one of the simplices that all have the same, optimal cost.

The theorem fixes the column space of the memberships, not the memberships: with the centred
coordinates :math:`z_m` of the samples in that space, the barycentric coordinates with respect to
any simplex that holds all :math:`z_m` in its interior are optimal. The anchored simplex passes
through as many samples as there are components, each the farthest from the span of those before,
and is then grown about its barycentre just far enough. The smallest simplex encloses the samples
too. Archetypes lie among the samples, and so does a smallest simplex that may leave some outside:
what they do not hold is projected, and the cost is no longer optimal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg

from tuckermix._array_api import (
    Array,
    asarray_like,
    double,
    epsilon,
    get_namespace,
    is_dask,
    to_numpy,
)
from tuckermix._names import ANCHORED, ARCHETYPES, MIN_VOLUME
from tuckermix._records import Record
from tuckermix._settings import Settings
from tuckermix.memberships.archetypes import find_archetypes
from tuckermix.memberships.min_volume import smallest_simplex
from tuckermix.numerics.simplex import regular_simplex, simplex_least_squares
from tuckermix.numerics.tensor import squared_norm
from tuckermix.sources import add_parts, as_blocks

MARGIN = 1.05
"""Growth beyond the least factor that holds all samples: it keeps the smallest weight at about a
twentieth of the mean weight 1/L, away from zero, where logarithms and divisions are safe."""


@dataclass(frozen=True)
class AnchorSettings(Settings):
    """How a simplex is grown around samples.

    Attributes
    ----------
    room : float
        Growth of the smallest simplex beyond one, in units of the root of the rounding: the
        smallest weights are about 1e-7 in float64 and 1e-3 in float32, divided by the number of
        components.
    worst_condition : float
        Beyond this condition number the anchors lie nearly in a hyperplane, and weights with
        respect to them would be noise: a regular simplex serves instead.
    """

    room: float = 10.0
    worst_condition: float = 100000.0


ANCHOR_SAMPLES = 4096
"""Samples among which the anchors are sought: the simplex is grown to hold all others."""


@dataclass(frozen=True)
class Simplex(Record):
    """A simplex around the samples.

    Attributes
    ----------
    vertices : array of shape (n_components, n_components - 1)
        The vertices in centred coordinates, in float64.
    weights : array of shape (n_samples, n_components)
        The barycentric coordinates of the samples, or of their projections: rows that sum to one.
    squared_error : float
        The squared distance of the samples from their projections, in units of the samples; 0 for
        a simplex that holds them all.
    """

    vertices: Array
    weights: Array
    squared_error: float = 0.0


def anchored_simplex(coordinates: Array, rng: np.random.Generator, **_: Any) -> Simplex:
    r"""Choose the anchored simplex and compute the weights of all samples.

    The anchors are the samples that a factorisation of the rows :math:`[1 | z]` with pivots takes
    first: the longest row, then time and again the one that is farthest from the span of those
    taken. A simplex through them is wide and well conditioned, and so has to grow less than one
    through the means of groups, and its weights are less alike; see :doc:`/method/index`. With
    barycentric coordinates `w` for the simplex through the anchors and growth `t`,

    .. math:: u = \tfrac1L + \tfrac1t \bigl(w - \tfrac1L\bigr), \qquad
              t = \text{margin} \cdot \max(1, 1 - L \min w) .

    Parameters
    ----------
    coordinates : array of shape (n_samples, n_components - 1)
        Orthonormal centred coordinates of the samples.
    rng : numpy.random.Generator
        The source of randomness.
    **_ : dict
        What other simplices depend on.

    Returns
    -------
    simplex : Simplex
        Vertices and weights.
    """
    use = AnchorSettings.current()
    rows = as_blocks(coordinates)
    n_samples, n_directions = coordinates.shape
    n_components = n_directions + 1
    if n_samples > ANCHOR_SAMPLES:
        index = np.sort(rng.choice(n_samples, size=ANCHOR_SAMPLES, replace=False))
        coordinates = rows.take(index)
    elif is_dask(coordinates):
        coordinates = coordinates.compute()
    found = to_numpy(double(coordinates))
    lifted = np.column_stack([np.full(len(found), len(found) ** -0.5), found])
    _, order = scipy.linalg.qr(lifted.T, mode="r", pivoting=True, check_finite=False)
    anchors = found[order[:n_components]]
    spread = np.column_stack([np.ones(n_components), anchors * n_samples**0.5])
    # They lie nearly in a hyperplane where there are too few distinct samples.
    if not np.all(np.isfinite(spread)) or np.linalg.cond(spread) > use.worst_condition:
        anchors = regular_simplex(n_directions) * n_samples**-0.5
    inverse = np.linalg.inv(np.column_stack([np.ones(n_components), anchors]))
    xp = get_namespace(rows.like)
    lowest = rows.reduce(lambda block: float(xp.min(_weights(block, inverse))), min)
    growth = MARGIN * max(1.0, 1.0 - n_components * lowest)
    # Weights in the grown simplex are the same affine function of the coordinates, shrunk.
    inverse = inverse / growth
    inverse[0, :] += (1.0 - 1.0 / growth) / n_components
    centre = anchors.mean(axis=0)
    vertices = centre + growth * (anchors - centre)
    weights = rows.map(partial(_weights, inverse=inverse))
    return Simplex(asarray_like(vertices, double(rows.like)), weights)


def smallest_enclosing(
    coordinates: Array, rng: np.random.Generator, *, scales: Array, outside: float = 0.0
) -> Simplex:
    """Choose the simplex of least volume around all samples, or around all but a share of them.

    Parameters
    ----------
    coordinates : array of shape (n_samples, n_components - 1)
        Orthonormal centred coordinates of the samples.
    rng : numpy.random.Generator
        The source of randomness.
    scales : array of shape (n_components - 1,)
        What brings the coordinates to the units of the samples.
    outside : float, default=0.0
        The largest share of samples that may lie outside and are projected.

    Returns
    -------
    simplex : Simplex
        Vertices and weights.
    """
    use = AnchorSettings.current()
    rows = as_blocks(coordinates)
    vertices = smallest_simplex(coordinates, rng, outside=outside)
    if outside:
        return _projected(coordinates, vertices, scales)
    # A little room keeps the weights positive where rounding would not.
    growth = 1.0 + use.room * epsilon(rows.like) ** 0.5
    centre = vertices.mean(axis=0)
    vertices = centre + growth * (vertices - centre)
    inverse = np.linalg.inv(np.column_stack([np.ones(vertices.shape[0]), vertices]))
    weights = rows.map(partial(_weights, inverse=inverse))
    return Simplex(asarray_like(vertices, double(rows.like)), weights)


def archetype_simplex(
    coordinates: Array, rng: np.random.Generator, *, scales: Array, **_: Any
) -> Simplex:
    """Choose components that are convex mixtures of samples; the others are projected.

    Parameters
    ----------
    coordinates : array of shape (n_samples, n_components - 1)
        Orthonormal centred coordinates of the samples.
    rng : numpy.random.Generator
        The source of randomness.
    scales : array of shape (n_components - 1,)
        What brings the coordinates to the units of the samples.
    **_ : dict
        What other simplices depend on.

    Returns
    -------
    simplex : Simplex
        Vertices and weights.
    """
    rows = as_blocks(coordinates)
    found = find_archetypes(rows.map(partial(_scaled, scales=scales)), rng)
    return _projected(coordinates, found / to_numpy(scales), scales)


SIMPLICES: dict[str, Callable[..., Simplex]] = {
    ANCHORED: anchored_simplex,
    MIN_VOLUME: smallest_enclosing,
    ARCHETYPES: archetype_simplex,
}
"""The ways to choose a simplex by name. Another one is another entry."""


def _projected(coordinates: Array, vertices: np.ndarray, scales: Array) -> Simplex:
    """Weigh samples by their nearest points in a simplex, distances in units of the samples."""
    rows = as_blocks(coordinates)
    corners = asarray_like(vertices, double(rows.like)) * scales
    weights = rows.map(partial(_nearest_weights, scales=scales, vertices=corners))
    (error,) = as_blocks(weights).reduce(
        partial(_squared_error, scales=scales, vertices=corners), add_parts, coordinates
    )
    return Simplex(asarray_like(vertices, double(rows.like)), weights, error)


def _scaled(block: Array, scales: Array) -> Array:
    return block * asarray_like(scales, block)


def _nearest_weights(block: Array, scales: Array, vertices: Array) -> Array:
    return simplex_least_squares(_scaled(block, scales), vertices)


def _squared_error(weights: Array, block: Array, scales: Array, vertices: Array) -> tuple[float]:
    xp = get_namespace(block)
    rebuilt = xp.matmul(double(weights), vertices)
    return (squared_norm(double(block) * scales - rebuilt),)


def _weights(block: Array, inverse: np.ndarray) -> Array:
    """Multiply [1 | z] by the inverse of [1 | vertices], without building the first matrix."""
    xp = get_namespace(block)
    weights = xp.matmul(block, asarray_like(inverse[1:, :], block))
    weights = weights + asarray_like(inverse[0, :], block)
    return weights / xp.sum(weights, axis=1, keepdims=True)
