"""Nearest neighbours by brute force, in blocks, on the device that holds the data."""

from __future__ import annotations

import array_api_compat

from tuckermix._array_api import Array, blocks, device, double, get_namespace, is_numpy

GROUP = 16
"""Points are first compared in groups of this size: the k nearest points lie in the k groups whose
nearest members are nearest, so that the slow selection sees ``n / 16 + 16 k`` values and not n."""

HOST_BLOCK = 8 * 2**20
"""Bytes of a block of distances on a CPU: about what stays in its caches (measured)."""

DEVICE_BLOCK = 96 * 2**20
"""Bytes of a block of distances elsewhere: enough work for each of the few calls of a block, and
little beside the samples that fill such a device."""

_COPIES = 3  # arrays of the size of a block of distances that exist at once


def nearest_neighbors(
    queries: Array, points: Array, n_neighbors: int, *, exclude_self: bool = False
) -> tuple[Array, Array]:
    """Find the points nearest to each query, in order.

    Candidates are selected by ``|y|² - 2⟨x, y⟩`` in the precision of the data; their distances
    ``|x - y|²`` are then taken from the differences, in float64, so that a copy of a query has
    distance exactly 0 and the order does not suffer from cancellation. Equal distances are ordered
    by index.

    Parameters
    ----------
    queries : array of shape (n_queries, n_features)
        The samples whose neighbours are wanted.
    points : array of shape (n_points, n_features)
        The samples among which to look.
    n_neighbors : int
        How many to find; at most `n_points`, or one fewer with `exclude_self`.
    exclude_self : bool, default=False
        Whether `queries` are the `points` and a sample is not to count as its own neighbour.

    Returns
    -------
    indices : array of shape (n_queries, n_neighbors)
        The places of the neighbours in `points`, nearest first, int64.
    distances : array of shape (n_queries, n_neighbors)
        Their squared distances, float64.
    """
    xp = get_namespace(queries, points)
    n_points = int(points.shape[0])
    n_found = n_neighbors + exclude_self
    if n_found > n_points:
        raise ValueError(
            f"n_neighbors={n_neighbors} must be <= {n_points - exclude_self}, the number of "
            "points to choose from."
        )
    center = xp.mean(points, axis=0)
    points = points - center
    n_groups = -(-n_points // GROUP)
    grouped = n_points > 4 * GROUP and n_groups > 2 * n_found  # else nothing is saved
    lines = _score_matrix(points, n_groups * GROUP - n_points if grouped else 0)
    itemsize = 8 if queries.dtype == xp.float64 else 4
    per_query = _COPIES * itemsize * int(lines.shape[1]) + 16 * n_found * int(points.shape[1])
    found, squares = [], []
    budget = HOST_BLOCK if "cpu" in str(device(queries)).lower() else DEVICE_BLOCK
    for cut in blocks(int(queries.shape[0]), per_query, budget):
        block = queries[cut, :] - center
        ones = xp.ones((block.shape[0], 1), dtype=block.dtype, device=device(block))
        scores = xp.matmul(xp.concat([block, ones], axis=1), lines)
        if grouped:
            indices = _smallest_grouped(scores, n_found, n_groups)
        else:
            indices = smallest(scores, n_found)
        own = xp.arange(cut.start, cut.stop, device=device(queries)) if exclude_self else None
        indices, distances = _in_order(block, points, indices, own)
        found.append(indices[:, :n_neighbors])
        squares.append(distances[:, :n_neighbors])
    return xp.concat(found, axis=0), xp.concat(squares, axis=0)


def smallest(values: Array, count: int) -> Array:
    """Return the places of the `count` smallest values of each row, in no particular order.

    The standard has no partial sort, so that each library is asked in its own way; others sort.
    """
    if count >= values.shape[1]:
        xp = get_namespace(values)
        places = xp.arange(values.shape[1], dtype=xp.int64, device=device(values))
        return xp.broadcast_to(places, values.shape)
    if is_numpy(values) or array_api_compat.is_cupy_array(values):
        xp = get_namespace(values)
        return xp.argpartition(values, count - 1, axis=1)[:, :count]
    if array_api_compat.is_torch_array(values):
        return values.topk(count, dim=1, largest=False, sorted=False).indices
    if array_api_compat.is_jax_array(values):
        from jax.lax import top_k  # type: ignore[import-not-found,unused-ignore]

        return top_k(-values, count)[1]
    return get_namespace(values).argsort(values, axis=1)[:, :count]


def _score_matrix(points: Array, n_padding: int) -> Array:
    """Return ``[-2y, |y|²]`` as columns, with columns at the end that no query comes near."""
    xp = get_namespace(points)
    squares = xp.sum(double(points) * double(points), axis=1)
    lines = xp.concat([-2.0 * points.T, xp.astype(squares, points.dtype)[None, :]], axis=0)
    if not n_padding:
        return lines
    far = float(xp.finfo(points.dtype).max) / 4
    shape = (int(points.shape[1]), n_padding)
    padding = xp.concat(
        [
            xp.zeros(shape, dtype=points.dtype, device=device(points)),
            xp.full((1, n_padding), far, dtype=points.dtype, device=device(points)),
        ],
        axis=0,
    )
    return xp.concat([lines, padding], axis=1)


def _smallest_grouped(scores: Array, count: int, n_groups: int) -> Array:
    """Select in two levels: groups by their smallest member, then members of those groups.

    Group q holds the places q, q + n_groups, q + 2·n_groups, …, so that the smallest members come
    from comparing long contiguous rows.
    """
    xp = get_namespace(scores)
    n_rows = int(scores.shape[0])
    heads = xp.min(xp.reshape(scores, (n_rows, GROUP, n_groups)), axis=1)
    groups = xp.astype(smallest(heads, count), xp.int64, copy=False)
    steps = n_groups * xp.arange(GROUP, dtype=xp.int64, device=device(scores))
    members = xp.reshape(steps[None, :, None] + groups[:, None, :], (n_rows, GROUP * count))
    picks = smallest(xp.take_along_axis(scores, members, axis=1), count)
    return xp.take_along_axis(members, picks, axis=1)


def _in_order(
    block: Array, points: Array, indices: Array, own: Array | None
) -> tuple[Array, Array]:
    """Sort candidates by exact distance, then by index; the sample `own` goes last."""
    xp = get_namespace(block)
    indices = xp.sort(xp.astype(indices, xp.int64, copy=False), axis=1)
    n_rows, count = indices.shape
    near = xp.reshape(xp.take(points, xp.reshape(indices, (-1,)), axis=0), (n_rows, count, -1))
    near -= block[:, None, :]
    gaps = double(near)
    distances = xp.vecdot(gaps, gaps)
    if own is not None:
        distances = xp.where(indices == own[:, None], xp.inf, distances)
    order = xp.argsort(distances, axis=1, stable=True)
    return xp.take_along_axis(indices, order, axis=1), xp.take_along_axis(distances, order, axis=1)
