"""Long, seeded assaults on fits, files and processes; short versions of them are in the tests."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any


def share_out(strike: Callable[[int, int, int], Any], first: int, count: int, jobs: int) -> list:
    """Return what ``strike(first, count, step)`` returns in each of several processes.

    Parameters
    ----------
    strike : callable
        A function that can be pickled.
    first : int
        The first seed.
    count : int
        How many strikes there are in all.
    jobs : int
        The number of processes; 1 stays in this one.

    Returns
    -------
    found : list
        One result per process, in the order of their first seeds.
    """
    parts = [(first + job, len(range(job, count, jobs)), jobs) for job in range(jobs)]
    if jobs == 1:
        return [strike(*parts[0])]
    # No forks: libraries have threads.
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        return pool.starmap(strike, parts, chunksize=1)
