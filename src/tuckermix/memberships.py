r"""Mixing weights: choose one of the simplices that all have the same, optimal cost.

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
from operator import itemgetter
from typing import Any

import numpy as np
import scipy.linalg
from scipy.optimize import nnls
from scipy.special import expit

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
from tuckermix.numerics.simplex import regular_simplex, simplex_least_squares
from tuckermix.numerics.tensor import squared_norm
from tuckermix.sources import Blocks, add_parts, as_blocks

__all__ = ["SIMPLICES", "Simplex", "anchored_simplex", "find_archetypes", "smallest_simplex"]

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
    weights = rows.map(partial(_weights, inverse=to_weights(vertices)))
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
    found = []
    for _ in range(use.starts):
        start = candidates[spread_samples(candidates, rng)]
        vertices, error = _improve(sample, candidates, start.copy())
        flat = is_flat(vertices, use.worst_condition)
        found.append((start, np.inf) if flat else (vertices, error))
    best, _ = min(found, key=itemgetter(1))
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


VOLUME_SAMPLES = 4096
"""Samples with which the search begins; of the others only those left outside join it."""


@dataclass(frozen=True)
class VolumeSettings(Settings):
    """How the smallest simplex is sought.

    Attributes
    ----------
    per_facet : int
        Samples outside that join the search for each facet and round: the farthest ones.
    extremes : int
        Random directions for each component along which extreme samples are looked for.
    max_rounds : int
        Most rounds in which samples join. What is still outside then is enclosed by growing.
    worst_condition : float
        Beyond this condition number the samples chosen as a start lie nearly in a hyperplane.
    start_growth : float
        Growth of the start beyond the least that holds all samples: the barrier needs room.
    tau_factor : float
        By how much the barrier is relaxed at a time: a Newton step or two for each value suffice.
    log_volume : float
        Accuracy of the logarithm of the volume. It bounds the barrier's part in the optimality
        conditions, which is the barrier's weight times the number of constraints.
    centring : float
        A barrier value is left when Newton's decrement is below this share of the barrier's weight.
    max_steps : int
        Most Newton steps for one value of the barrier; a handful is usual.
    first_width, last_width : float
        Weights over which the hinge is smoothed, at first and at last.
    hinge_decrement : float
        Decrement at which a width is left; the logarithm of the volume is of the order of one.
    to_boundary : float
        Share of the way to the nearest facet that one step may go.
    armijo, shortest : float
        Sufficient decrease, and the step at which rounding has the last word.
    first_shares, tries : tuple
        Shares left outside at first by the robust form, and starts for each. Gross outliers pull
        every simplex that must hold them; beginning with the middle of the samples leaves them out,
        and the smallest of the results is kept.
    gross : float
        A sample with a weight below minus a tenth lies farther outside than noise explains.
    trim_steps : int
        Steps from the first share to the one asked for.
    max_trims : int
        Most rounds of leaving out the farthest samples; the set settles after about five.
    """

    per_facet: int = 8
    extremes: int = 10
    max_rounds: int = 20
    worst_condition: float = 100000000.0
    start_growth: float = 1.05
    tau_factor: float = 0.2
    log_volume: float = 1e-06
    centring: float = 0.001
    max_steps: int = 50
    first_width: float = 0.1
    last_width: float = 1e-06
    hinge_decrement: float = 0.0001
    to_boundary: float = 0.95
    armijo: float = 0.0001
    shortest: float = 1e-10
    first_shares: tuple[float, ...] = (0.3, 0.5)
    tries: int = 2
    gross: float = 0.1
    trim_steps: int = 6
    max_trims: int = 20


def smallest_simplex(
    coordinates: Array, rng: np.random.Generator, *, outside: float = 0.0
) -> np.ndarray:
    r"""Find the simplex of least volume that holds the samples, or all but a share of them.

    With :math:`A = [1 \mid Z]` and the barycentric coordinates :math:`W = A Q`,
    :math:`Q = [1 \mid V]^{-1}`, the simplex of least volume solves

    .. math:: \min_Q\ -\log |\det Q| \quad\text{with}\quad A Q \ge 0,\ Q 1 = e_1 .

    Steps are taken relative to the present simplex, :math:`Q (I + D)` with :math:`D 1 = 0`, which
    makes the iteration independent of the coordinates:

    .. math:: \phi(D) = -\log\det(I + D) - \tau \sum_{mk} \log (W (I + D))_{mk} .

    The Hessian of the barrier has one block of size L × L for each facet. The determinant's is
    indefinite and bounded by the identity, which stands in for it. The barrier starts strong, when
    all samples push, and is relaxed until the volume is known to `log_volume` in its logarithm.

    Of the known roads (MVES: cyclic linear programs; MVSA: sequential quadratic programs; SISAL: a
    hinge in place of the constraints) none keeps all constraints and is fast.

    The problem is not convex: the result is a local optimum, reached from well-spread samples.

    Parameters
    ----------
    coordinates : array of shape (n_samples, d)
        Centred coordinates of the samples with orthonormal columns.
    rng : numpy.random.Generator
        The source of randomness.
    outside : float, default=0.0
        The largest share of samples that may lie outside.

    Returns
    -------
    vertices : numpy.ndarray of shape (d + 1, d)
        The vertices; all samples but the share have nonnegative barycentric coordinates.
    """
    rows = as_blocks(coordinates)
    n_samples, n_directions = rows.n_samples, rows.sample_shape[0]
    if n_directions == 0:
        return np.zeros((1, 0))
    # In these units each coordinate has variance one.
    unit = n_samples**-0.5
    points = _first_points(rows, rng) / unit
    n_outside = int(outside * n_samples)
    if n_outside:
        Q = _robust(points, n_outside / n_samples, rng)
    else:
        Q = shrink(points, _spread_vertices(points, rng))
        if n_samples > VOLUME_SAMPLES:
            Q = _with_those_outside(rows, points, Q, unit)
    return in_order(_grown(rows, _vertices_of(Q) * unit, n_outside))


def in_order(vertices: np.ndarray) -> np.ndarray:
    """Order vertices along the first coordinate: which came first in a search means nothing."""
    return vertices[np.argsort(-vertices[:, 0], kind="stable")]


def shrink(points: np.ndarray, vertices: np.ndarray) -> np.ndarray:
    """Shrink a simplex around points until its volume is least.

    Parameters
    ----------
    points : numpy.ndarray of shape (n, d)
        The points to hold.
    vertices : numpy.ndarray of shape (d + 1, d)
        Affinely independent vertices to start from; grown first to hold all points.

    Returns
    -------
    Q : numpy.ndarray of shape (d + 1, d + 1)
        The inverse of [1 | vertices]: barycentric coordinates are [1 | points] Q.
    """
    use = VolumeSettings.current()
    n_points, n_vertices = points.shape[0], vertices.shape[0]
    ones = np.column_stack([np.ones(n_points), points])
    Q = to_weights(vertices)
    lowest = float(np.min(ones @ Q))
    Q = to_weights(grown(vertices, use.start_growth * max(1.0, 1.0 - n_vertices * lowest)))
    tau = n_vertices / n_points
    last = use.log_volume / (n_points * n_vertices)
    while tau > last:
        Q = _descend(ones, Q, partial(_barrier, tau), use.centring * tau * n_points)
        tau *= use.tau_factor
    return Q


Term = tuple[np.ndarray, np.ndarray, Callable[[np.ndarray], tuple[float, Callable[[float], float]]]]
"""A sum of functions of the weights: their slopes, their curvatures, and what tells of a direction
how long a step may be, and by how much a step changes the sum."""


def _barrier(tau: float, W: np.ndarray) -> Term:
    """Return the sum of -τ log w over all weights."""
    reciprocal = 1.0 / W

    def along(direction: np.ndarray) -> tuple[float, Callable[[float], float]]:
        change = direction * reciprocal
        nearest = max(-float(change.min()), np.finfo(float).tiny)
        longest = min(1.0, VolumeSettings.current().to_boundary / nearest)
        return longest, lambda step: -tau * float(np.sum(np.log1p(step * change)))

    return -tau * reciprocal, tau * reciprocal**2, along


def shrink_softly(points: np.ndarray, vertices: np.ndarray, n_outside: int) -> np.ndarray:
    r"""Shrink a simplex around points, letting some of them fall outside at a price.

    The barrier gives way to a hinge, :math:`\lambda \sum_{mk} \max(0, -W_{mk})`, smoothed ever
    less. At its optimum each facet has at most :math:`(L - 1) / \lambda` points beyond it (add up
    the optimality conditions over a column, and along the diagonal), which fixes the price.

    Parameters
    ----------
    points : numpy.ndarray of shape (n, d)
        The points.
    vertices : numpy.ndarray of shape (d + 1, d)
        Affinely independent vertices to start from.
    n_outside : int
        The largest number of points that may lie outside.

    Returns
    -------
    Q : numpy.ndarray of shape (d + 1, d + 1)
        As for `shrink`.
    """
    use = VolumeSettings.current()
    n_vertices = vertices.shape[0]
    ones = np.column_stack([np.ones(points.shape[0]), points])
    price = n_vertices * (n_vertices - 1) / n_outside
    Q = to_weights(vertices)
    width = use.first_width
    while width > use.last_width:
        Q = _descend(ones, Q, partial(_hinge, price, width), use.hinge_decrement)
        width *= use.tau_factor
    return Q


def _hinge(price: float, width: float, W: np.ndarray) -> Term:
    """Return the sum of λ max(0, -w) over all weights, smoothed."""
    beyond = expit(-W / width)

    def along(direction: np.ndarray) -> tuple[float, Callable[[float], float]]:
        def change(step: float) -> float:
            after, before = (np.logaddexp(0.0, -w / width) for w in (W + step * direction, W))
            return price * width * float(np.sum(after - before))

        return 1.0, change

    return -price * beyond, price / width * beyond * (1.0 - beyond), along


def _descend(
    ones: np.ndarray, Q: np.ndarray, term: Callable[[np.ndarray], Term], enough: float
) -> np.ndarray:
    """Take Newton steps on the logarithm of the volume and a term in the weights."""
    use = VolumeSettings.current()
    for _ in range(use.max_steps):
        W = ones @ Q
        slopes, curvatures, along = term(W)
        D, decrement = _newton(W, slopes, curvatures)
        step = _step_length(D, decrement, *along(W @ D))
        Q = Q + step * (Q @ D)
        if step == 0.0 or decrement < enough:
            break
    return Q


def _newton(W: np.ndarray, slopes: np.ndarray, curvatures: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the step D with D 1 = 0 of the convex model, and its decrement.

    The objective is the logarithm of the volume plus a sum of functions of the weights, given by
    their first and second derivatives.
    """
    n_vertices = W.shape[1]
    gradient = W.T @ slopes - np.eye(n_vertices)
    hessians = np.stack([(W * curvatures[:, [k]]).T @ W for k in range(n_vertices)])
    inverses = np.linalg.inv(hessians + np.eye(n_vertices))
    pulled = np.matmul(inverses, gradient.T[:, :, None])[:, :, 0]
    # The multiplier of D 1 = 0 couples the facets.
    multiplier = -np.linalg.solve(inverses.sum(axis=0), pulled.sum(axis=0))
    D = -(pulled + np.matmul(inverses, multiplier)).T
    D -= D.mean(axis=1, keepdims=True)  # rounding, or the weights drift from a sum of one
    return D, -float(np.sum(gradient * D))


def _step_length(
    D: np.ndarray, decrement: float, longest: float, change: Callable[[float], float]
) -> float:
    """Return a step that lowers the objective enough, 0 if none does.

    `change` tells by how much a step changes the sum of functions of the weights.
    """
    use = VolumeSettings.current()
    if decrement <= 0.0:
        return 0.0
    step, identity = longest, np.eye(D.shape[0])
    while step > use.shortest:
        sign, logarithm = np.linalg.slogdet(identity + step * D)
        if sign > 0 and change(step) - logarithm <= -use.armijo * step * decrement:
            return step
        step *= 0.5
    return 0.0


def _with_those_outside(rows: Blocks, points: np.ndarray, Q: np.ndarray, unit: float) -> np.ndarray:
    """Let samples outside join the search until none is left; each round reads all samples."""
    use = VolumeSettings.current()
    for _ in range(use.max_rounds):
        farthest = partial(_farthest, inverse=np.vstack([Q[:1], Q[1:] / unit]))
        joining = rows.reduce(farthest, lambda *parts: np.vstack(parts))
        if joining.shape[0] == 0:
            break
        points = np.vstack([points, joining / unit])
        Q = shrink(points, _vertices_of(Q))
    return Q


def _farthest(block: Array, inverse: np.ndarray) -> np.ndarray:
    """Return the samples of a block that lie farthest outside each facet."""
    use = VolumeSettings.current()
    weights = to_numpy(_weights_with(block, inverse))
    outside = np.argsort(weights, axis=0)[: use.per_facet]
    columns = np.arange(weights.shape[1])
    chosen = np.unique(outside[weights[outside, columns] < -use.log_volume])
    xp = get_namespace(block)
    taken = xp.take(block, asarray_like(chosen, block, dtype=xp.int64), axis=0)
    return to_numpy(taken).astype(np.float64)


def _first_points(rows: Blocks, rng: np.random.Generator) -> np.ndarray:
    """Return all samples, or a random part of many and the extreme ones of all."""
    if rows.n_samples <= VOLUME_SAMPLES:
        return to_numpy(rows.take(np.arange(rows.n_samples))).astype(np.float64)
    index = np.sort(rng.choice(rows.n_samples, size=VOLUME_SAMPLES, replace=False))
    chosen = to_numpy(rows.take(index)).astype(np.float64)
    return np.vstack([chosen, extreme_samples(rows, rng)])


def extreme_samples(rows: Blocks, rng: np.random.Generator) -> np.ndarray:
    """Return the samples that lie farthest along each coordinate and along random directions.

    Parameters
    ----------
    rows : Blocks
        Samples with d coordinates each.
    rng : numpy.random.Generator
        The source of the directions.

    Returns
    -------
    points : numpy.ndarray of shape (n, d)
        Different samples on the boundary of the convex hull.
    """
    use = VolumeSettings.current()
    n_directions = rows.sample_shape[0]
    random = rng.standard_normal((n_directions, use.extremes * (n_directions + 1)))
    directions = np.column_stack([np.eye(n_directions), random])
    _, points = rows.reduce(partial(_extremes, directions=directions), _more_extreme)
    return np.unique(points, axis=0)


def _extremes(block: Array, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest values along directions, forth and back, and the samples there."""
    xp = get_namespace(block)
    along = xp.matmul(block, asarray_like(directions, block))
    ends = xp.concat([xp.argmax(along, axis=0), xp.argmin(along, axis=0)])
    values = xp.concat([xp.max(along, axis=0), -xp.min(along, axis=0)])
    points = to_numpy(xp.take(block, ends, axis=0)).astype(np.float64)
    return to_numpy(values), points


def _more_extreme(
    left: tuple[np.ndarray, np.ndarray], right: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    further = right[0] > left[0]
    return np.where(further, right[0], left[0]), np.where(further[:, None], right[1], left[1])


def _spread_vertices(points: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return well-spread points, or a regular simplex where they lie nearly in a hyperplane."""
    use = VolumeSettings.current()
    vertices = points[spread_samples(points, rng)]
    flat = is_flat(vertices, use.worst_condition)
    return regular_simplex(points.shape[1]) if flat else vertices


def is_flat(vertices: np.ndarray, worst_condition: float) -> bool:
    """Tell whether points lie nearly in a hyperplane: weights with respect to them are noise."""
    lifted = np.column_stack([np.ones(len(vertices)), vertices])
    return bool(np.linalg.cond(lifted) > worst_condition)


def spread_samples(points: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Choose points one by one, each far from the affine hull of those before it.

    Parameters
    ----------
    points : numpy.ndarray of shape (n, d)
        The points.
    rng : numpy.random.Generator
        The source of the directions in which to look.

    Returns
    -------
    chosen : numpy.ndarray of shape (d + 1,)
        Their positions.
    """
    n_points, n_directions = points.shape
    lifted = np.column_stack([np.ones(n_points), points])
    basis = np.zeros((n_directions + 1, 0))
    chosen = []
    for _ in range(n_directions + 1):
        direction = rng.standard_normal(n_directions + 1)
        direction -= basis @ (basis.T @ direction)
        farthest = int(np.argmax(np.abs(lifted @ direction)))
        chosen.append(farthest)
        new = lifted[farthest] - basis @ (basis.T @ lifted[farthest])
        new -= basis @ (basis.T @ new)
        basis = np.column_stack([basis, new / max(np.linalg.norm(new), np.finfo(float).tiny)])
    return np.asarray(chosen)


def _robust(points: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Leave out gross outliers altogether, and let noise fall outside at a price.

    Few samples far away would outweigh many near a facet in any sum of distances, so they are told
    apart first. Where most of those left out are gross, the others beside them are no noise either.
    """
    use = VolumeSettings.current()
    n_outside = int(share * points.shape[0])
    Q = _trimmed(points, share, rng)
    lowest = np.min(Q[0] + points @ Q[1:], axis=1)
    gross = lowest < -use.gross
    n_left = n_outside - int(np.sum(gross))
    if n_left < max(Q.shape[0], n_outside // 2):  # each facet needs at least one
        return Q
    others = points[~gross]
    return shrink_softly(others, _spread_vertices(others, rng), n_left)


def _trimmed(points: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Find a small simplex that holds all points but a share, from several starts."""
    use = VolumeSettings.current()
    starts = [max(first, share) for first in use.first_shares for _ in range(use.tries)]
    found = (_trimmed_once(points, share, first, rng) for first in starts)
    return max(found, key=lambda Q: np.linalg.slogdet(Q)[1])


def _trimmed_once(
    points: np.ndarray, share: float, first: float, rng: np.random.Generator
) -> np.ndarray:
    """Leave out `first` of the points, then fewer and fewer down to `share`."""
    use = VolumeSettings.current()
    n_points = points.shape[0]
    middle = points[_middle(points, int(first * n_points))]
    Q = shrink(middle, _spread_vertices(middle, rng))
    for present in np.geomspace(first, share, use.trim_steps)[1:]:
        kept = None
        for _ in range(use.max_trims if present == share else 2):
            lowest = np.min(Q[0] + points @ Q[1:], axis=1)
            inside = np.sort(np.argsort(lowest)[int(present * n_points) :])
            if kept is not None and np.array_equal(inside, kept):
                break
            kept = inside
            Q = shrink(points[kept], _vertices_of(Q))
    return Q


def _middle(points: np.ndarray, n_outside: int) -> np.ndarray:
    """Return the points nearest the middle, by the covariance of the nearest half of them.

    The half is found by turns of choosing it and of measuring distances with its covariance, as in
    the minimum covariance determinant.
    """
    use = VolumeSettings.current()
    n_points, n_directions = points.shape
    half = min(n_points, (n_points + n_directions + 2) // 2)
    centred = points - np.median(points, axis=0)
    spread = np.median(np.abs(centred), axis=0)
    distance = np.sum((centred / np.where(spread > 0, spread, 1.0)) ** 2, axis=1)
    nearest = None
    for _ in range(use.max_trims):
        chosen = np.sort(np.argsort(distance)[:half])
        if nearest is not None and np.array_equal(chosen, nearest):
            break
        nearest = chosen
        centred = points - points[nearest].mean(axis=0)
        covariance = np.atleast_2d(np.cov(points[nearest].T))
        distance = np.sum((centred @ np.linalg.pinv(covariance)) * centred, axis=1)
    return np.sort(np.argsort(distance)[: n_points - n_outside])


def _grown(rows: Blocks, vertices: np.ndarray, n_outside: int) -> np.ndarray:
    """Grow the simplex by the least factor that leaves no more samples outside."""
    inverse = to_weights(vertices)
    lowest = to_numpy(rows.map(partial(_lowest_weight, inverse=inverse)))
    decisive = float(np.partition(lowest, n_outside)[n_outside])
    return grown(vertices, max(1.0, 1.0 - vertices.shape[0] * decisive))


def _lowest_weight(block: Array, inverse: np.ndarray) -> Array:
    return get_namespace(block).min(_weights_with(block, inverse), axis=1)


def _weights_with(block: Array, inverse: np.ndarray) -> Array:
    xp = get_namespace(block)
    return xp.matmul(block, asarray_like(inverse[1:], block)) + asarray_like(inverse[0], block)


def grown(vertices: np.ndarray, growth: float) -> np.ndarray:
    """Grow a simplex about its barycentre by a factor."""
    centre = vertices.mean(axis=0)
    return centre + growth * (vertices - centre)


def to_weights(vertices: np.ndarray) -> np.ndarray:
    """Return the matrix that turns points with a 1 in front into their weights."""
    return np.linalg.inv(np.column_stack([np.ones(vertices.shape[0]), vertices]))


def _vertices_of(Q: np.ndarray) -> np.ndarray:
    return np.linalg.inv(Q)[:, 1:]
