"""A random subset of the samples on which labels are found when there are many."""

from __future__ import annotations

import numpy as np

MAX_LANDMARKS = 10_000
"""Beyond this many samples the graph is built on a subset of them: its cost grows with the square,
while accuracy no longer does."""


def choose_landmarks(n_samples: int, rng: np.random.Generator) -> np.ndarray | None:
    """Draw the samples that stand for all others.

    Parameters
    ----------
    n_samples : int
        The number of samples.
    rng : numpy.random.Generator
        The source of random numbers; not touched where all samples are kept.

    Returns
    -------
    indices : ndarray of shape (MAX_LANDMARKS,) or None
        Ascending places of distinct samples, or None where ``n_samples <= MAX_LANDMARKS``.
    """
    if n_samples <= MAX_LANDMARKS:
        return None
    return np.sort(rng.choice(n_samples, MAX_LANDMARKS, replace=False, shuffle=False))
