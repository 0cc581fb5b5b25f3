r"""The smallest simplex around the samples.

With :math:`A = [1 \mid Z]` and the barycentric coordinates :math:`W = A Q`,
:math:`Q = [1 \mid V]^{-1}`, the simplex of least volume solves

.. math:: \min_Q\ -\log |\det Q| \quad\text{with}\quad A Q \ge 0,\ Q 1 = e_1 .

Steps are taken relative to the present simplex, :math:`Q (I + D)` with :math:`D 1 = 0`, which
makes the iteration independent of the coordinates:

.. math:: \phi(D) = -\log\det(I + D) - \tau \sum_{mk} \log (W (I + D))_{mk} .

The Hessian of the barrier has one block of size L × L for each facet. The determinant's is
indefinite and bounded by the identity, which stands in for it. The barrier starts strong, when all
samples push, and is relaxed until the volume is known to `log_volume` in its logarithm.

Of the known roads (MVES: cyclic linear programs; MVSA: sequential quadratic programs; SISAL: a
hinge in place of the constraints) none keeps all constraints and is fast; the command
``python -m benchmarks.unmixing`` compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import expit

from tuckermix._array_api import Array, asarray_like, get_namespace, to_numpy
from tuckermix._estimators import Settings
from tuckermix.numerics.simplex import regular_simplex
from tuckermix.sources import Blocks, as_blocks

SAMPLES = 4096
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
    """Find the simplex of least volume that holds the samples, or all but a share of them.

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
        if n_samples > SAMPLES:
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
    W = ones @ Q
    tau = n_vertices / n_points
    last = use.log_volume / (n_points * n_vertices)
    while tau > last:
        for _ in range(use.max_steps):
            reciprocal = 1.0 / W
            D, decrement = _newton(W, -tau * reciprocal, tau * reciprocal**2)
            change = (W @ D) * reciprocal
            longest = min(1.0, use.to_boundary / max(-float(change.min()), np.finfo(float).tiny))
            step = _step_length(D, decrement, longest, partial(_barrier_change, change, tau))
            if step == 0.0:
                break
            Q = Q + step * (Q @ D)
            W = ones @ Q
            if decrement < use.centring * tau * n_points:
                break
        tau *= use.tau_factor
    return Q


def _barrier_change(change: np.ndarray, tau: float, step: float) -> float:
    return -tau * float(np.sum(np.log1p(step * change)))


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
        for _ in range(use.max_steps):
            W = ones @ Q
            beyond = expit(-W / width)
            slopes, curvatures = -price * beyond, price / width * beyond * (1.0 - beyond)
            D, decrement = _newton(W, slopes, curvatures)
            change = partial(_hinge_change, W, W @ D, width, price)
            step = _step_length(D, decrement, 1.0, change)
            Q = Q + step * (Q @ D)
            if step == 0.0 or decrement < use.hinge_decrement:
                break
        width *= use.tau_factor
    return Q


def _hinge_change(
    W: np.ndarray, direction: np.ndarray, width: float, price: float, step: float
) -> float:
    after, before = (np.logaddexp(0.0, -now / width) for now in (W + step * direction, W))
    return price * width * float(np.sum(after - before))


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
        joining = rows.reduce(
            partial(_farthest, inverse=_scaled(Q, unit)), lambda *parts: np.vstack(parts)
        )
        if joining.shape[0] == 0:
            break
        points = np.vstack([points, joining / unit])
        Q = shrink(points, _vertices_of(Q))
    return Q


def _farthest(block: Array, inverse: np.ndarray) -> np.ndarray:
    """Return the samples of a block that lie farthest outside each facet."""
    use = VolumeSettings.current()
    weights = to_numpy(_weights(block, inverse))
    outside = np.argsort(weights, axis=0)[: use.per_facet]
    columns = np.arange(weights.shape[1])
    chosen = np.unique(outside[weights[outside, columns] < -use.log_volume])
    xp = get_namespace(block)
    taken = xp.take(block, asarray_like(chosen, block, dtype=xp.int64), axis=0)
    return to_numpy(taken).astype(np.float64)


def _first_points(rows: Blocks, rng: np.random.Generator) -> np.ndarray:
    """Return all samples, or a random part of many and the extreme ones of all."""
    if rows.n_samples <= SAMPLES:
        return to_numpy(rows.take(np.arange(rows.n_samples))).astype(np.float64)
    index = np.sort(rng.choice(rows.n_samples, size=SAMPLES, replace=False))
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
    lifted = np.column_stack([np.ones(vertices.shape[0]), vertices])
    if np.linalg.cond(lifted) > use.worst_condition:
        return regular_simplex(points.shape[1])
    return vertices


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
    best, least = None, np.inf
    for first in use.first_shares:
        for _ in range(use.tries):
            Q = _trimmed_once(points, share, max(first, share), rng)
            volume = -np.linalg.slogdet(Q)[1]
            if volume < least:
                best, least = Q, volume
    assert best is not None
    return best


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
    growth = max(1.0, 1.0 - vertices.shape[0] * decisive)
    return grown(vertices, growth)


def _lowest_weight(block: Array, inverse: np.ndarray) -> Array:
    return get_namespace(block).min(_weights(block, inverse), axis=1)


def _weights(block: Array, inverse: np.ndarray) -> Array:
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


def _scaled(Q: np.ndarray, unit: float) -> np.ndarray:
    """Return Q for points in other units."""
    return np.vstack([Q[:1], Q[1:] / unit])
