"""Grey values and sizes of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from tuckermix._axes import N_COLOURS
from tuckermix._names import CROP, PAD, STRETCH
from tuckermix._optional import require
from tuckermix._reading import Refusal

GREY_WEIGHTS = (0.299, 0.587, 0.114)
"""Weights of red, green and blue in the grey value: ITU-R BT.601, which image programs use."""


def grey_array(X: Any) -> Any:
    """Turn samples whose last axis holds colours into grey ones, in the same type.

    Parameters
    ----------
    X : array of shape (n_samples, ..., 3) or (n_samples, ..., 4)
        Colour samples, NumPy or Dask.

    Returns
    -------
    X : array of shape (n_samples, ...)
        Grey samples.
    """
    if X.ndim < 3 or X.shape[-1] not in N_COLOURS:
        raise Refusal(
            f"grey=True needs a last axis of length 3 or 4, and the samples have shape "
            f"{tuple(X.shape[1:])}",
            "Leave grey out: the samples have no colours",
        )
    grey = sum(weight * X[..., channel] for channel, weight in enumerate(GREY_WEIGHTS))
    return (grey.round() if X.dtype.kind in "ui" else grey).astype(X.dtype)


def as_grey_values(X: np.ndarray) -> np.ndarray:
    """Return numbers that are all whole and from 0 to 255 in one byte each, others as they are."""
    bounds = np.iinfo(np.uint8)
    fits = bounds.min <= X.min() and X.max() <= bounds.max and np.array_equal(X, np.rint(X))
    return X.astype(np.uint8) if fits else X


def match(image: np.ndarray, grey: bool | None) -> np.ndarray:
    """Give an image (height, width) or (height, width, 3) the number of colours asked for."""
    if grey is True and image.ndim == 3:
        return grey_array(image[None])[0]
    if grey is False and image.ndim == 2:
        return np.repeat(image[:, :, None], 3, axis=2)
    return image


def resize(image: np.ndarray, size: tuple[int, int] | None, fit: str = STRETCH) -> np.ndarray:
    """Bring an image to (height, width) by area-weighted linear interpolation, in its type.

    Parameters
    ----------
    image : ndarray of shape (height, width) or (height, width, n)
        Grey values, colours or other channels.
    size : (int, int) or None
        Height and width; None leaves it as it is.
    fit : {"crop", "pad", "stretch"}, default="stretch"
        What happens to other proportions: the middle is kept, the ground is filled with the mean of
        the border, or they change.

    Returns
    -------
    image : ndarray of shape (height, width) or (height, width, n)
        The image.
    """
    if size is None or image.shape[:2] == tuple(size):
        return image
    Image = require("PIL.Image", "Resizing images", "io", package="pillow")
    # Channel by channel in floating point: Pillow resizes no colour images beyond 8 bits.
    channels = image[:, :, None] if image.ndim == 2 else image
    planes = np.moveaxis(channels, 2, 0).astype(np.float32)
    stored, inner = np.array(image.shape[:2]), np.array(size)
    seen = stored.astype(float)
    if fit == CROP:
        seen = np.minimum(stored, inner * (stored / inner).min())
    elif fit == PAD:
        inner = np.maximum(1, np.rint(stored / (stored / inner).max()).astype(int))
    top, left = (stored - seen) / 2
    box = (left, top, left + seen[1], top + seen[0])
    bilinear = Image.Resampling.BILINEAR
    pictures = [Image.fromarray(np.ascontiguousarray(plane)) for plane in planes]
    done = [one.resize((int(inner[1]), int(inner[0])), bilinear, box=box) for one in pictures]
    resized = np.stack(done, axis=2)
    if tuple(inner) != tuple(size):
        edges = (resized[0], resized[-1], resized[:, 0], resized[:, -1])
        padded = np.empty((*size, resized.shape[2]), np.float32)
        padded[:] = np.concatenate(edges).mean(axis=0)
        top, left = (np.array(size) - inner) // 2
        padded[top : top + inner[0], left : left + inner[1]] = resized
        resized = padded
    if image.dtype.kind in "bui":
        resized = np.rint(resized)
    resized = resized.astype(image.dtype)
    return resized[:, :, 0] if image.ndim == 2 else resized


def fitted(
    sample: np.ndarray,
    axes: str,
    colour: bool,
    grey: bool | None,
    size: tuple[int, int] | None,
    fit: str = STRETCH,
) -> tuple[np.ndarray, str]:
    """Give a sample the colours and the size asked for, plane by plane; return it with its axes."""
    if grey is None and size is None:
        return sample, axes
    plane_axes = "YXC" if axes.endswith("YXC") else "YX"
    if not axes.endswith(plane_axes):
        raise Refusal(f"its axes {axes} do not end in height and width", "Leave out size and grey")
    wanted = grey if colour or len(plane_axes) == 2 else None
    planes = sample.reshape(-1, *sample.shape[len(axes) - len(plane_axes) :])
    done = [resize(match(plane, wanted), size, fit) for plane in planes]
    before = len(axes) - len(plane_axes)
    shape = (*sample.shape[:before], *done[0].shape)
    return np.stack(done).reshape(shape), axes[:before] + "YXC"[: done[0].ndim]


def eight_bits(values: np.ndarray) -> np.ndarray:
    """Return grey values or colours of any type as bytes, by their own range."""
    low, high = np.percentile(values[np.isfinite(values)].astype(np.float64), [0.5, 99.5])
    shares = (values.astype(np.float64) - low) / (high - low if high > low else 1.0)
    return np.rint(255 * np.clip(np.nan_to_num(shares), 0, 1)).astype(np.uint8)
