"""Grey values and sizes of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from tuckermix._axes import N_COLOURS
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


def resize(image: np.ndarray, size: tuple[int, int] | None) -> np.ndarray:
    """Resize an image to (height, width) by area-weighted linear interpolation, in its type."""
    if size is None or image.shape[:2] == tuple(size):
        return image
    Image = require("PIL.Image", "Resizing images", "io", package="pillow")
    # Channel by channel in floating point: Pillow resizes no colour images beyond 8 bits.
    channels = image[:, :, None] if image.ndim == 2 else image
    planes = np.moveaxis(channels, 2, 0).astype(np.float32)
    pictures = [Image.fromarray(np.ascontiguousarray(plane)) for plane in planes]
    bilinear = Image.Resampling.BILINEAR
    resized = np.stack([one.resize((size[1], size[0]), bilinear) for one in pictures], axis=2)
    if image.dtype.kind in "bui":
        resized = np.rint(resized)
    resized = resized.astype(image.dtype)
    return resized[:, :, 0] if image.ndim == 2 else resized


def fitted(
    sample: np.ndarray, axes: str, colour: bool, grey: bool | None, size: tuple[int, int] | None
) -> tuple[np.ndarray, str]:
    """Give a sample the colours and the size asked for, plane by plane; return it with its axes."""
    if grey is None and size is None:
        return sample, axes
    plane_axes = "YXC" if axes.endswith("YXC") else "YX"
    if not axes.endswith(plane_axes):
        raise Refusal(f"its axes {axes} do not end in height and width", "Leave out size and grey")
    wanted = grey if colour or len(plane_axes) == 2 else None
    planes = sample.reshape(-1, *sample.shape[len(axes) - len(plane_axes) :])
    done = [resize(match(plane, wanted), size) for plane in planes]
    before = len(axes) - len(plane_axes)
    shape = (*sample.shape[:before], *done[0].shape)
    return np.stack(done).reshape(shape), axes[:before] + "YXC"[: done[0].ndim]
