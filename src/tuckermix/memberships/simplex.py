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
from scipy.optimize import nnls

from tuckermix._array_api import (
    Array,
    asarray_like,
    double,
    epsilon,
    get_namespace,
    is_dask,
    to_numpy,
)
from tuckermix._estimators import Settings
from tuckermix._names import ANCHORED, ARCHETYPES, MIN_VOLUME
from tuckermix._records import Record
from tuckermix.memberships.min_volume import (
    extreme_samples,
    grown,
    in_order,
    smallest_simplex,
    spread_samples,
    to_weights,
)
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
    vertices = grown(vertices, growth)
    inverse = to_weights(vertices)
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


ARCHETYPE_SAMPLES = 2048
"""Samples on which the error is measured. The extreme ones of all samples join them."""


@dataclass(frozen=True)
class ArchetypeSettings(Settings):
    """How archetypes are sought.

    Attributes
    ----------
    starts : int
        Sets of well-spread samples to start from. The problem is not convex; on samples that fill a
        simplex all starts agree, on clouds the best of a few is some tenths better than the worst.
    max_rounds : int
        Most rounds over weights and archetypes.
    tol : float
        Stop when a round lowers the error by less than this share of it.
    inner : int
        Rounds over all archetypes for the same weights.
    weight_steps : int
        Steps of the accelerated gradient for the weights in a round, from the last ones.
    together : float
        Weight of the equation that mixtures sum to one, relative to the size of the points: errors
        in the sum are below the square of its inverse, and are divided out.
    worst_condition : float
        Beyond this condition number archetypes lie nearly in a hyperplane, and weights with respect
        to them would be noise: well-spread samples take their place.
    """

    starts: int = 3
    max_rounds: int = 200
    tol: float = 1e-05
    inner: int = 5
    weight_steps: int = 10
    together: float = 1000.0
    worst_condition: float = 100000000.0


def find_archetypes(points: Array, rng: np.random.Generator) -> np.ndarray:
    r"""Find as many archetypes as fit in general position, one more than coordinates.

    Archetypes are components that are convex mixtures of samples:

    .. math:: \min_{V, W} \| Y - W V \|^2 \quad\text{with}\quad V = C Y,

    rows of `W` and of `C` nonnegative with sums of one (Cutler and Breiman 1994). Weights and
    archetypes are improved in turn. For given weights the best place of one archetype, the others
    fixed, is known in closed form, and the error grows with the squared distance from it; so its
    nearest point in the convex hull of the samples is the exact minimiser. That point is a
    nonnegative least-squares problem on a few candidates, which grow by the sample that lies
    farthest in the direction wanted.

    Parameters
    ----------
    points : array of shape (n_samples, d)
        Centred samples, in coordinates whose distances are those of the model.
    rng : numpy.random.Generator
        The source of randomness.

    Returns
    -------
    vertices : numpy.ndarray of shape (d + 1, d)
        Affinely independent convex mixtures of the samples.
    """
    use = ArchetypeSettings.current()
    rows = as_blocks(points)
    n_samples, n_directions = rows.n_samples, rows.sample_shape[0]
    if n_directions == 0:
        return np.zeros((1, 0))
    index = np.arange(n_samples)
    if n_samples > ARCHETYPE_SAMPLES:
        index = np.sort(rng.choice(n_samples, size=ARCHETYPE_SAMPLES, replace=False))
    sample = to_numpy(rows.take(index)).astype(np.float64)
    candidates = extreme_samples(rows, rng)
    unit = float(np.max(np.abs(candidates)))
    sample, candidates = sample / unit, candidates / unit
    best, least = None, np.inf
    for _ in range(use.starts):
        start = candidates[spread_samples(candidates, rng)]
        vertices, error = _improve(sample, candidates, start.copy())
        lifted = np.column_stack([np.ones(n_directions + 1), vertices])
        if np.linalg.cond(lifted) > use.worst_condition:
            vertices, error = start, np.inf
        if best is None or error < least:
            best, least = vertices, error
    assert best is not None
    return in_order(best * unit)


def _improve(
    sample: np.ndarray, candidates: np.ndarray, vertices: np.ndarray
) -> tuple[np.ndarray, float]:
    """Improve weights and archetypes in turn until the error settles."""
    use = ArchetypeSettings.current()
    pool = np.vstack([candidates, sample])
    chosen = np.arange(candidates.shape[0])
    weights = simplex_least_squares(sample, vertices)
    error = np.sum((sample - weights @ vertices) ** 2)
    floor = use.tol**2 * np.sum(sample**2)
    for _ in range(use.max_rounds):
        before = error
        gram, pull = weights.T @ weights, weights.T @ sample
        for _ in range(use.inner):
            for k in np.flatnonzero(np.diagonal(gram) > 0):
                wanted = vertices[k] + (pull[k] - gram[k] @ vertices) / gram[k, k]
                vertices[k], chosen = _nearest_mixture(wanted, pool, chosen)
        weights = _better_weights(sample, vertices, weights)
        error = np.sum((sample - weights @ vertices) ** 2)
        if before - error <= use.tol * error + floor:
            break
    return vertices, float(error)


def _nearest_mixture(
    wanted: np.ndarray, pool: np.ndarray, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the point of the hull of the pool next to one wanted, and the candidates then."""
    use = ArchetypeSettings.current()
    scale = use.together * float(np.max(np.abs(pool)))
    right = np.append(wanted, scale)
    while True:
        part = pool[chosen]
        mixture = nnls(np.vstack([part.T, np.full(chosen.shape[0], scale)]), right)[0]
        found = (mixture / mixture.sum()) @ part
        direction = wanted - found
        farthest = int(np.argmax(pool @ direction))
        gain = float((pool[farthest] - found) @ direction)
        # Gain is the duality gap of the distance: what is left to win by any sample.
        if gain <= use.tol * float(direction @ direction) or farthest in chosen:
            return found, chosen
        chosen = np.append(chosen, farthest)


def _better_weights(sample: np.ndarray, vertices: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Take a few accelerated projected gradient steps towards the best weights."""
    use = ArchetypeSettings.current()
    gram, pull = vertices @ vertices.T, sample @ vertices.T
    # Constants drop out of the rows of the gradient, so the centred matrix bounds the curvature.
    centred = vertices - vertices.mean(axis=0)
    curvature = max(float(np.linalg.norm(centred, ord=2)) ** 2, np.finfo(float).tiny)
    trial, momentum = weights, 1.0
    for _ in range(use.weight_steps):
        new = project_rows(trial - (trial @ gram - pull) / curvature)
        following = 0.5 * (1.0 + (1.0 + 4.0 * momentum**2) ** 0.5)
        trial = new + (momentum - 1.0) / following * (new - weights)
        weights, momentum = new, following
    return weights


def project_rows(rows: np.ndarray) -> np.ndarray:
    """Return the nearest rows that are nonnegative and sum to one.

    Parameters
    ----------
    rows : numpy.ndarray of shape (n, k)
        Any rows.

    Returns
    -------
    projected : numpy.ndarray of shape (n, k)
        Points of the simplex.
    """
    falling = -np.sort(-rows, axis=1)
    excess = np.cumsum(falling, axis=1) - 1.0
    count = np.arange(1, rows.shape[1] + 1)
    last = np.sum(falling * count > excess, axis=1)
    shift = excess[np.arange(rows.shape[0]), last - 1] / last
    return np.maximum(rows - shift[:, None], 0.0)
