"""Samples as stacks of colour pictures of one size, in NumPy or PyTorch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuckermix._array_api import Array, asarray_like, get_namespace
from tuckermix.features._input import space_axes

GREY, COLOUR, ALPHA = 1, 3, 4
"""Sizes of an axis of channels."""

MOST_SIDE = 4096
"""Largest side of a picture for a network, which holds some 60 values for each pixel."""


@dataclass(frozen=True)
class Layout:
    """Which axis of an array of samples is what.

    Attributes
    ----------
    space : tuple of two int
        The axes of height and width.
    channel : int or None
        The axis of colour.
    others : tuple of int
        All further axes: frames of videos, slices of volumes.
    """

    space: tuple[int, int]
    channel: int | None
    others: tuple[int, ...]

    @classmethod
    def of(cls, shape: tuple[int, ...], space: Any, owner: str) -> Layout:
        """Find the layout of an array of samples.

        Parameters
        ----------
        shape : tuple of int
            The shape of the array, samples first.
        space : None or tuple of two int
            The axes of height and width; None means axes 1 and 2.
        owner : str
            Who asks, for messages.

        Returns
        -------
        layout : Layout
            The last axis is colour where it has 1, 3 or 4 entries.
        """
        ndim = len(shape)
        if ndim < 3:
            raise ValueError(
                f"{owner} takes images, (n_samples, height, width[, channels]). Got an array of "
                f"shape {shape}: reshape rows to images first."
            )
        height, width = space_axes((1, 2) if space is None else space, ndim, (2,), owner)
        others = [axis for axis in range(1, ndim) if axis not in (height, width)]
        coloured = others[-1:] == [ndim - 1] and shape[-1] in (GREY, COLOUR, ALPHA)
        channel = others.pop() if coloured else None
        return cls((height, width), channel, tuple(others))

    def thinned(self, X: Array, most: int | None) -> Array:
        """Return samples with at most `most` frames, evenly spaced, of their last axis."""
        if not self.others or most is None or int(X.shape[self.others[-1]]) <= most:
            return X
        size, xp = int(X.shape[self.others[-1]]), get_namespace(X)
        kept = (np.arange(most) * size + size // 2) // most
        return xp.take(X, asarray_like(kept, X, dtype=xp.int64), axis=self.others[-1])

    def pictures(self, X: Array) -> Array:
        """Return every frame of every sample as (n_frames, channels, height, width)."""
        xp = get_namespace(X)
        channel = () if self.channel is None else (self.channel,)
        moved = xp.permute_dims(X, (0, *self.others, *channel, *self.space))
        n_channels = 1 if self.channel is None else int(X.shape[self.channel])
        moved = xp.reshape(moved, (-1, n_channels, *moved.shape[-2:]))
        return moved[:, : min(n_channels, COLOUR), ...]  # transparency is left out

    def samples(self, maps: Array, shape: tuple[int, ...]) -> Array:
        """Return maps of frames, (n_frames, ...), by sample, with the further axes last."""
        xp = get_namespace(maps)
        sizes = [int(shape[axis]) for axis in self.others]
        maps = xp.reshape(maps, (-1, *sizes, *maps.shape[1:]))
        k = len(sizes)
        return xp.permute_dims(maps, (0, *range(k + 1, maps.ndim), *range(1, k + 1)))


def resizing_matrix(size: int, target: int) -> np.ndarray:
    """Return the matrix that resizes one axis by linear interpolation.

    Parameters
    ----------
    size : int
        The number of pixels.
    target : int
        The wanted number. A smaller one averages over as many pixels as become one.

    Returns
    -------
    matrix : ndarray of shape (target, size)
        Rows that sum to one.
    """
    scale = size / target
    centres = (np.arange(target) + 0.5) * scale
    pixels = np.arange(size) + 0.5
    weights = np.maximum(0.0, 1.0 - np.abs(pixels - centres[:, None]) / max(scale, 1.0))
    return weights / weights.sum(axis=1, keepdims=True)


def resized(pictures: Array, size: tuple[int, int]) -> Array:
    """Resize pictures of shape (..., height, width)."""
    xp = get_namespace(pictures)
    height, width = int(pictures.shape[-2]), int(pictures.shape[-1])
    if width != size[1]:
        pictures = pictures @ asarray_like(resizing_matrix(width, size[1]).T, pictures)
    if height != size[0]:
        pictures = xp.matmul(asarray_like(resizing_matrix(height, size[0]), pictures), pictures)
    return pictures


def in_channels(pictures: Array, n_channels: int) -> Array:
    """Return grey pictures in colour, or colour pictures in grey, as a network asks."""
    xp = get_namespace(pictures)
    if int(pictures.shape[1]) == n_channels:
        return pictures
    grey = xp.mean(pictures, axis=1, keepdims=True)
    return xp.concat([grey] * n_channels, axis=1)


def fitting_size(
    size: Any, shape: tuple[int, int], sides: tuple[int, int, int], owner: str
) -> tuple[int, int]:
    """Return height and width that pictures are resized to.

    Parameters
    ----------
    size : None, int or tuple of two int
        The wanted height and width; an int is the shorter side; None keeps pictures as they are
        within the limits.
    shape : tuple of two int
        Height and width of the pictures.
    sides : tuple of three int
        The least and the largest shorter side, and the largest longer side.
    owner : str
        Who asks, for messages.

    Returns
    -------
    size : tuple of two int
        In proportion to `shape`, unless a tuple says otherwise or the picture is very long.
    """
    least, most, longest = sides
    short = min(shape)
    wanted: Any = tuple(size) if isinstance(size, tuple | list) else ()
    side = min(max(short, least), most) if size is None else size
    if type(side) is int and 0 < side <= MOST_SIDE:
        limit = max(side, longest)
        wanted = tuple(min(max(1, math.floor(n * side / short + 0.5)), limit) for n in shape)
    if len(wanted) != 2 or not all(type(n) is int and 0 < n <= MOST_SIDE for n in wanted):
        raise ValueError(
            f"The 'size' parameter of {owner} must be None, an int from 1 to {MOST_SIDE} or "
            f"(height, width). Got {size!r} instead."
        )
    return wanted
