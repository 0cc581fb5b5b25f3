r"""Archetypes: components that are convex mixtures of samples.

.. math:: \min_{V, W} \| Y - W V \|^2 \quad\text{with}\quad V = C Y,

rows of `W` and of `C` nonnegative with sums of one (Cutler and Breiman 1994). Weights and
archetypes are improved in turn. For given weights the best place of one archetype, the others
fixed, is known in closed form, and the error grows with the squared distance from it; so its
nearest point in the convex hull of the samples is the exact minimiser. That point is a
nonnegative least-squares problem on a few candidates, which grow by the sample that lies farthest
in the direction wanted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from tuckermix._array_api import Array, to_numpy
from tuckermix._settings import Settings
from tuckermix.memberships.min_volume import extreme_samples, in_order, spread_samples
from tuckermix.numerics.simplex import simplex_least_squares
from tuckermix.sources import as_blocks

SAMPLES = 2048
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
    """Find as many archetypes as fit in general position, one more than coordinates.

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
    if n_samples > SAMPLES:
        index = np.sort(rng.choice(n_samples, size=SAMPLES, replace=False))
    sample = to_numpy(rows.take(index)).astype(np.float64)
    candidates = extreme_samples(rows, rng)
    unit = float(np.max(np.abs(candidates)))
    sample, candidates = sample / unit, candidates / unit
    best, least = None, np.inf
    for _ in range(use.starts):
        start = candidates[spread_samples(candidates, rng)]
        vertices, error = _improve(sample, candidates, start.copy())
        if (
            np.linalg.cond(np.column_stack([np.ones(n_directions + 1), vertices]))
            > use.worst_condition
        ):
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
