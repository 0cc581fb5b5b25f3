"""Draws from normal distributions that are cut off below zero."""

from __future__ import annotations

import numpy as np
from scipy.special import erfc, erfcinv

__all__ = ["draw_truncated_normal"]

TAIL = 4.0
"""Standard deviations beyond which a draw comes from Marsaglia's tail method instead of the
inverse distribution function: where its acceptance is at least 95 % and rounding in the inverse
function begins to matter."""


def draw_truncated_normal(
    mean: np.ndarray, deviation: np.ndarray | float, rng: np.random.Generator
) -> np.ndarray:
    r"""Draw from normal distributions cut off below zero, exactly in all regimes.

    .. math:: p(a) \propto \exp\bigl(-(a - \mu)^2 / 2 s^2\bigr), \quad a \ge 0

    With :math:`z = -\mu / \sqrt2 s`, the draw is
    :math:`\mu + \sqrt2 s \operatorname{erfc}^{-1}(u \operatorname{erfc} z)` with uniform `u`. When
    the cut lies more than four deviations above the mean, :math:`x = \sqrt{c^2 - 2 \log u}`
    with :math:`c = -\mu / s` is proposed and accepted with probability :math:`c / x`
    (Marsaglia 1964), which has no approximation at any distance.

    Parameters
    ----------
    mean : ndarray of shape (n,)
        The mean of each normal distribution before the cut.
    deviation : float or ndarray of shape (n,)
        The standard deviation, positive.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    draws : ndarray of shape (n,)
        Nonnegative values.
    """
    mean = np.asarray(mean, dtype=np.float64)
    cut = -mean / deviation
    tail = cut > TAIL
    z = np.minimum(cut, TAIL) * np.sqrt(0.5)
    # 1 - u lies in (0, 1]: the inverse function is finite there.
    standard = np.sqrt(2.0) * erfcinv((1.0 - rng.random(mean.shape)) * erfc(z))
    draws = np.maximum(mean + deviation * standard, 0.0)
    if tail.any():
        width = np.broadcast_to(deviation, mean.shape)[tail]
        draws[tail] = width * _draw_beyond(cut[tail], rng)
    return draws


def _draw_beyond(cut: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw x - cut for standard normal x beyond `cut` (large), by Marsaglia's method."""
    excess = np.empty_like(cut)
    open_ = np.arange(len(cut))
    while len(open_):
        c = cut[open_]
        twice = 2.0 * rng.standard_exponential(len(open_))
        x = np.hypot(c, np.sqrt(twice))
        accepted = rng.random(len(open_)) * x <= c
        excess[open_[accepted]] = (twice / (x + c))[accepted]  # x - c without cancellation
        open_ = open_[~accepted]
    return excess
