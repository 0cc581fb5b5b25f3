"""Samples of any shape as small pictures, for displays and the report.

Everything here is NumPy; grey pictures have shape (h, w), colour pictures (h, w, 3), both with
values in [0, 1].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tuckermix._names import KINDS
from tuckermix._validation import check_option

Limits = tuple[float, float]
"""The values shown as black and as white."""

COLOUR_CHANNELS = frozenset({3, 4})
"""A last axis of this length, after two longer ones, is taken for red, green, blue (and alpha)."""


def squeezed_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Drop the axes of length one at the end, which hold no picture."""
    while len(shape) > 1 and shape[-1] == 1:
        shape = shape[:-1]
    return shape


def picture_kind(shape: tuple[int, ...], kind: str = "auto") -> str:
    """Tell how a sample of this shape is shown.

    Parameters
    ----------
    shape : tuple of int
        The shape of one sample.
    kind : {"auto", "signal", "image", "colour", "channels", "volume", "video"}, default="auto"
        What the caller asks for; "channels" are those of the last axis, each drawn by itself. A
        three-way sample without a colour axis is taken for a volume,
        because nothing tells a grey video from one: ask for "video".

    Returns
    -------
    kind : str
        One of the kinds other than "auto".
    """
    check_option(kind, "kind", "a display", KINDS)
    shape = squeezed_shape(tuple(shape))
    if kind != "auto":
        needed = {"signal": 1, "image": 2}.get(kind, 3)
        if len(shape) < needed or (kind == "colour" and shape[-1] not in COLOUR_CHANNELS):
            raise ValueError(
                f"kind={kind!r} does not fit samples of shape {shape}: use kind='auto'."
            )
        return kind
    if len(shape) < 3:
        return "signal" if len(shape) == 1 else "image"
    if shape[-1] not in COLOUR_CHANNELS or min(shape[-3:-1]) <= 4:
        return "volume"
    return "colour" if len(shape) == 3 else "video"


def value_range(samples: np.ndarray) -> Limits:
    """Return the values shown as black and as white, robust to a few outliers.

    Parameters
    ----------
    samples : array
        The samples.

    Returns
    -------
    limits : tuple of float
        The values of black and white: half a percent of the values at each end may saturate.
        Percentiles are taken over about 200,000 values, since the third digit does not show.
    """
    flat = np.asarray(samples).reshape(-1)
    flat = flat[:: max(1, flat.size // 200_000)]
    low, high = np.percentile(flat, [0.5, 99.5])
    if not high > low:
        low, high = float(flat.min()), float(flat.max())
    return float(low), float(high) if high > low else float(low) + 1.0


def scaled(samples: np.ndarray, limits: Limits) -> np.ndarray:
    """Map `limits` to [0, 1] and clip, in float32: pictures need no more."""
    low, high = limits
    shares = (np.asarray(samples, dtype=np.float64) - low) / (high - low)
    return np.clip(shares, 0, 1).astype(np.float32)


def views(
    samples: Any, kind: str = "auto", *, limits: Limits | None = None, n_frames: int = 6
) -> np.ndarray:
    """Show each sample as one or several pictures.

    A signal becomes a curve, black on white; an image itself; a volume its three middle slices; a
    video `n_frames` frames, evenly spaced; at most `n_frames` channels are shown, each by itself.
    Leading axes beyond that are cut at their middle.

    Parameters
    ----------
    samples : array of shape (n, d_1, ...)
        The samples.
    kind : str, default="auto"
        See `picture_kind`.
    limits : tuple of float, default=None
        The values shown as black and white; None takes them from `samples`.
    n_frames : int, default=6
        The number of frames of a video.

    Returns
    -------
    pictures : array of shape (n, n_views, h, w) or (n, n_views, h, w, 3)
        Values in [0, 1].
    """
    samples = np.asarray(samples)
    shape = squeezed_shape(samples.shape[1:])
    samples = samples.reshape((samples.shape[0], *shape))
    kind = picture_kind(shape, kind)
    limits = value_range(samples) if limits is None else limits
    coloured = kind in ("colour", "video") and shape[-1] in COLOUR_CHANNELS and len(shape) > 2
    wanted = {"signal": 1, "image": 2, "video": 4 if coloured else 3}
    while samples.ndim - 1 > wanted.get(kind, 3):
        samples = samples[:, samples.shape[1] // 2]
    if kind == "signal":
        return 1 - curves(samples, limits)[:, None]
    if coloured:
        samples = samples[..., :3]
    if kind in ("image", "colour"):
        return scaled(samples, limits)[:, None]
    if kind == "channels":
        samples = np.moveaxis(samples, -1, 1)
    if kind in ("video", "channels"):
        frames = np.unique(np.linspace(0, samples.shape[1] - 1, n_frames).round().astype(int))
        return scaled(samples[:, frames], limits)
    return _middle_slices(scaled(samples, limits))


def picture(samples: Any, kind: str = "auto", limits: Limits | None = None) -> Any:
    """Show each sample as a single picture: the first slice, or the middle frame.

    Returns
    -------
    pictures : array of shape (n, h, w) or (n, h, w, 3)
        Values in [0, 1].
    """
    several = views(samples, kind, limits=limits)
    shape = squeezed_shape(np.shape(samples)[1:])
    middle = several.shape[1] // 2 if picture_kind(shape, kind) == "video" else 0
    return several[:, middle]


def _middle_slices(volumes: np.ndarray) -> np.ndarray:
    """Cut volumes of shape (n, a, b, c) at the middle of each axis, on black of one size."""
    slices = [np.take(volumes, volumes.shape[axis] // 2, axis=axis) for axis in (1, 2, 3)]
    size = np.max([one.shape[1:] for one in slices], axis=0)
    result = np.zeros((len(volumes), 3, *size), dtype=volumes.dtype)
    for place, one in enumerate(slices):
        top, left = (size - one.shape[1:]) // 2
        result[:, place, top : top + one.shape[1], left : left + one.shape[2]] = one
    return result


def curves(signals: np.ndarray, limits: Limits) -> np.ndarray:
    """Draw signals of shape (n, d) as white curves on black, of shape (n, 96, 192).

    Lines are 2 pixels thick, with soft edges. A tenth of the height stays free beyond each limit.
    """
    height, width = 96, 192
    length = signals.shape[1]
    position = np.linspace(0, length - 1, width)
    values = np.stack([np.interp(position, np.arange(length), signal) for signal in signals])
    low, high = limits
    margin = (high - low) / 8
    level = (1 - scaled(values, (low - margin, high + margin))) * (height - 1)
    # A column is filled as far as half way to its neighbours, so that steep parts connect.
    ends = np.pad(level, ((0, 0), (1, 1)), mode="edge")
    near = np.stack([(ends[:, :-2] + level) / 2, level, (level + ends[:, 2:]) / 2])
    top, bottom = near.min(axis=0)[:, None], near.max(axis=0)[:, None]
    rows = np.arange(height, dtype=np.float32)[:, None]
    return np.clip(1.5 - np.maximum(top - rows, rows - bottom), 0, 1)


def montage(tiles: np.ndarray, columns: int, *, gap: int = 1, ground: float = 1.0) -> np.ndarray:
    """Lay pictures out in rows on one large picture.

    Parameters
    ----------
    tiles : array of shape (n, h, w) or (n, h, w, 3)
        The pictures, row by row.
    columns : int
        The number of pictures in a row.
    gap : int, default=1
        Pixels between pictures.
    ground : float, default=1.0
        The value between pictures.

    Returns
    -------
    sheet : array of shape (rows * (h + gap) - gap, columns * (w + gap) - gap[, 3])
        The large picture.
    """
    n, height, width = tiles.shape[:3]
    rows = math.ceil(n / columns)
    step_y, step_x = height + gap, width + gap
    sheet = np.full((rows * step_y, columns * step_x, *tiles.shape[3:]), ground, dtype=tiles.dtype)
    for index in range(n):
        top, left = index // columns * step_y, index % columns * step_x
        sheet[top : top + height, left : left + width] = tiles[index]
    return sheet[: rows * step_y - gap, : columns * step_x - gap]
