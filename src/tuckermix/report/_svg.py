"""Curves of the report as points and ticks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuckermix._records import Record

CHART_WIDTH, CHART_HEIGHT = 420, 240
CHART_LEFT, CHART_RIGHT, CHART_TOP, CHART_BOTTOM = 84, 14, 14, 48
N_TICKS = 5
PLAIN_RANGE = (1e-3, 1e6)
"""Numbers in this range are written out; of others the power of ten stands once, in the title."""

TICK_DIGITS = 6
"""More digits than this nobody compares: the axis then tells the distance to the lowest value."""

NICE_STEPS = (1, 2, 5, 10)
"""Steps between ticks that people count in, times a power of ten."""

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

LOG_FLOOR = 1e-17
"""Where a zero is drawn on a log scale: below rounding error."""


@dataclass(frozen=True)
class Chart(Record):
    """A curve in the units of its drawing, with ticks."""

    title: str  # what it shows
    # What its ticks are in, such as "in 10⁸"; empty where they are the numbers themselves.
    unit: str
    points: list[tuple[float, float]]  # the corners of the curve
    x_ticks: list[tuple[float, str]]  # position and text of each tick
    y_ticks: list[tuple[float, str]]
    table: list[tuple[str, str]]  # the numbers as text, for those who read a table


def chart(title: str, x: Any, y: Any, *, log: bool = False) -> Chart | None:
    """Draw `y` over the iterations `x`; None where nothing of it is finite."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    known = np.isfinite(x) & np.isfinite(y)
    if not known.any():
        return None
    x, y = x[known], y[known]
    level = np.log10(np.maximum(y, LOG_FLOOR)) if log else y
    low, high = float(level.min()), float(level.max())
    if log:
        low, high = math.floor(low), math.ceil(high)
    if not high > low:
        pad = abs(low) * 1e-3 or 1.0
        low, high = low - pad, high + pad
    left, right = float(x.min()), max(float(x.max()), float(x.min()) + 1)

    def across(value: float) -> float:
        width = CHART_WIDTH - CHART_LEFT - CHART_RIGHT
        return round(CHART_LEFT + (value - left) / (right - left) * width, 1)

    def up(value: float) -> float:
        height = CHART_HEIGHT - CHART_TOP - CHART_BOTTOM
        return round(CHART_TOP + (high - value) / (high - low) * height, 1)

    step = max(1, math.ceil(_nice_step(right - left)))
    first = math.ceil(left / step) * step
    x_ticks = [(across(v), f"{v:g}") for v in np.arange(first, right + 0.5, step) if v <= right]
    unit = ""
    if log:
        powers = np.unique(np.linspace(low, high, N_TICKS).round())
        y_ticks = [(up(v), power_of_ten(int(v))) for v in powers]
    else:
        values, texts, unit = linear_ticks(low, high)
        y_ticks = [(up(v), text) for v, text in zip(values, texts, strict=True)]
    points = [(across(a), up(b)) for a, b in zip(x, level, strict=True)]
    table = [(f"{a:g}", f"{b:.6g}") for a, b in zip(x, y, strict=True)]
    return Chart(title, unit, points, x_ticks, y_ticks, table)


def power_of_ten(exponent: int) -> str:
    """Write a power of ten as people do, with its exponent raised."""
    return f"10{str(exponent).translate(SUPERSCRIPTS)}"


def _nice_step(span: float) -> float:
    """Return the smallest step of `NICE_STEPS` that needs no more than `N_TICKS` ticks."""
    rough = span / N_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in NICE_STEPS if step * power >= rough * (1 - 1e-9))


def linear_ticks(low: float, high: float) -> tuple[list[float], list[str], str]:
    """Choose ticks that differ in writing, and what their numbers are in.

    Parameters
    ----------
    low, high : float
        The ends of the axis, `low` below `high`.

    Returns
    -------
    values : list of float
        Where the ticks are: multiples of a step of 1, 2 or 5 times a power of ten.
    texts : list of str
        What they say, each different from the others.
    unit : str
        "" or what the numbers are in: "in 10⁸", or how far they are "above 1.13e+08".
    """
    step = _nice_step(high - low)
    largest = max(abs(low), abs(high))
    if math.log10(largest / step) > TICK_DIGITS:
        values, texts, unit = linear_ticks(0.0, high - low)
        return [low + value for value in values], texts, f"above {low:.6g}" + (unit and f", {unit}")
    first = math.ceil(low / step - 1e-9)
    values = [count * step for count in range(first, math.floor(high / step + 1e-9) + 1)]
    exponent = 0
    if not PLAIN_RANGE[0] <= largest < PLAIN_RANGE[1]:
        exponent = math.floor(math.log10(largest))
    factor = 10.0**exponent
    decimals = max(0, -math.floor(math.log10(step / factor) + 1e-9))
    texts = [f"{value / factor:,.{decimals}f}" for value in values]
    return values, texts, f"in {power_of_ten(exponent)}" if exponent else ""
