"""Which numbers of clusters are tried."""

from __future__ import annotations

__all__ = ["coarse_grid", "values_between"]

FIRST = (2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 22)
"""Small numbers one by one, then in steps of about a fifth."""

STEP = 1.2
"""The ratio of further values: half a step is at most a tenth, and refined afterwards."""

MOST = 100
"""The largest number that is tried: beyond it a person gives the number."""

PER_CLUSTER = 5
"""The least samples for each cluster: fewer say nothing of what is common to them."""

NEW_VALUES = 4
"""How many values are tried between two neighbours of the grid at a time."""


def coarse_grid(n_samples: int) -> list[int]:
    """Return the numbers of clusters of the first pass: 2 to min(n_samples / 5, 100).

    Parameters
    ----------
    n_samples : int
        The number of distinct samples.

    Returns
    -------
    grid : list of int
        Rising; of few samples, the least that makes sense.
    """
    most = min(n_samples // PER_CLUSTER, MOST)
    if most < FIRST[0]:
        return [min(FIRST[0], n_samples)]
    grid = [value for value in FIRST if value <= most]
    while grid[-1] >= FIRST[-1] and grid[-1] < most:
        grid.append(min(round(grid[-1] * STEP), most))
    return grid


def values_between(tried: list[int], best: int) -> list[int]:
    """Return numbers between the best one and its neighbours that have not been tried.

    Parameters
    ----------
    tried : list of int
        The numbers so far.
    best : int
        The best of them.

    Returns
    -------
    values : list of int
        On each side all that lie between, or four of them, evenly spread.
    """
    below = max((value for value in tried if value < best), default=best)
    above = min((value for value in tried if value > best), default=best)
    found: list[int] = []
    for low, high in ((below, best), (best, above)):
        inside = list(range(low + 1, high))
        if len(inside) > NEW_VALUES:
            step = (high - low) / (NEW_VALUES + 1)
            inside = sorted({round(low + step * (place + 1)) for place in range(NEW_VALUES)})
        found += inside
    return found
