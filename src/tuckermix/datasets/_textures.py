"""Videos from linear dynamical systems: an open stand-in for DynTex++."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

from tuckermix._validation import check_integer, check_random_state, check_real
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._options import check_pair

PERIODS = (4.0, 40.0)
"""Frames in which a pair of states turns once: from flicker to slow waves."""

DAMPINGS = (0.90, 0.99)
"""Factor by which a pair of states decays in a frame: memory of some ten to a hundred frames."""

SCALES = (0.04, 0.2)
"""Width of the blobs of a texture, relative to the side of a frame: from grain to clouds."""

CONTRAST = 0.12
"""Standard deviation of the moving part, in units of the range of grey values: four of them on
either side of the middle stay within the range."""

STILL_CONTRAST = 0.06
"""The same for the still part, half as strong: classes are told by motion as much as by looks."""


def make_dynamic_textures(
    n_samples: int = 80,
    n_classes: int = 4,
    shape: int | tuple[int, int] = (16, 16),
    n_frames: int = 16,
    *,
    n_states: int = 8,
    noise: float = 0.02,
    shift: int = 2,
    random_state: Any = None,
    return_X_y: bool = False,
) -> Any:
    r"""Draw videos from linear dynamical systems, one system per class.

    .. math:: x_{t+1} = A_k x_t + v_t, \qquad y_t = C_k x_t + m_k + w_t

    The states turn and decay in pairs (:math:`A_k` has rotations times a damping on its diagonal)
    and start in their stationary distribution; the columns of :math:`C_k` and the mean frame
    :math:`m_k` are smooth random fields as coarse as the class has it. Each video looks at its
    class through a window that is shifted at random, as if cut from a larger scene, and has its
    own noise. This is an open stand-in for the DynTex++ dataset, which cannot be passed on; it is
    not DynTex++, and its name says so.

    Parameters
    ----------
    n_samples : int, default=80
        The number of videos; classes differ in size by one at most.
    n_classes : int, default=4
        The number of classes.
    shape : int or (height, width), default=(16, 16)
        The size of a frame.
    n_frames : int, default=16
        The number of frames.
    n_states : int, default=8
        The length of :math:`x_t`, even.
    noise : float, default=0.02
        Standard deviation of :math:`w_t`, in units of the range of grey values.
    shift : int, default=2
        The window is shifted by up to this many pixels.
    random_state : None, int, Generator or RandomState, default=None
        Source of randomness; an int repeats the draw.
    return_X_y : bool, default=False
        Whether to return the arrays alone.

    Returns
    -------
    dataset : Dataset
        `X` of shape (n_samples, n_frames, height, width), float32 from 0 to 1, and `labels` of
        shape (n_samples,), int64. With `return_X_y`, the tuple (X, labels).

    Examples
    --------
    >>> from tuckermix.datasets import make_dynamic_textures
    >>> make_dynamic_textures(random_state=0)
    Dataset(dynamic-texture stand-in: X (80, 16, 16, 16) float32, 4 classes)
    """
    owner = "make_dynamic_textures"
    check_integer(n_samples, "n_samples", owner)
    check_integer(n_classes, "n_classes", owner)
    check_integer(n_frames, "n_frames", owner)
    check_integer(n_states, "n_states", owner)
    check_integer(shift, "shift", owner, minimum=0)
    check_real(noise, "noise", owner)
    height, width = check_pair(shape, "shape", owner)
    if n_states % 2:
        raise ValueError(
            f"The 'n_states' parameter of {owner} must be even. Got {n_states!r} instead."
        )
    if n_samples < n_classes:
        raise ValueError(f"n_samples={n_samples} must be >= n_classes={n_classes}.")
    rng = check_random_state(random_state)
    canvas = (height + 2 * shift, width + 2 * shift)
    systems = [_System(rng, canvas, n_states) for _ in range(n_classes)]
    labels = rng.permutation(np.arange(n_samples) % n_classes)
    X = np.empty((n_samples, n_frames, height, width), dtype=np.float32)
    for index, label in enumerate(labels):
        top, left = rng.integers(0, 2 * shift + 1, size=2)
        window = (slice(top, top + height), slice(left, left + width))
        video = systems[label].film(rng, n_frames, window)
        video += noise * rng.standard_normal(video.shape)
        np.clip(video, 0.0, 1.0, out=X[index], casting="same_kind")
    if return_X_y:
        return X, labels
    return Dataset(
        X=X,
        labels=labels,
        name="dynamic-texture stand-in",
        description=(
            f"Videos from {n_classes} linear dynamical systems: an open stand-in for DynTex++, "
            "not DynTex++ itself."
        ),
    )


class _System:
    """One class: how its states move and what they look like."""

    def __init__(self, rng: np.random.Generator, canvas: tuple[int, int], n_states: int) -> None:
        n_pairs = n_states // 2
        self.angles = 2 * math.pi / _between(rng, PERIODS, n_pairs)
        self.angles *= rng.choice([-1.0, 1.0], size=n_pairs)
        self.dampings = rng.uniform(*DAMPINGS, size=n_pairs)
        width = _between(rng, SCALES, 1)[0] * min(canvas)
        self.fields = CONTRAST / math.sqrt(n_states) * _fields(rng, (n_states, *canvas), width)
        self.mean = 0.5 + STILL_CONTRAST * _fields(rng, (1, *canvas), width)[0]

    def film(
        self, rng: np.random.Generator, n_frames: int, window: tuple[slice, slice]
    ) -> np.ndarray:
        """Run the system and look at it through a window."""
        # A pair of states is one complex number. Innovations of this variance keep its parts at
        # variance one.
        innovation = np.sqrt(1.0 - self.dampings**2)
        turn = self.dampings * np.exp(1j * self.angles)
        drawn = rng.standard_normal((n_frames, 2, self.dampings.size))
        noise = drawn[:, 0] + 1j * drawn[:, 1]
        states = np.empty((n_frames, self.dampings.size), dtype=np.complex128)
        states[0] = noise[0]
        for t in range(1, n_frames):
            states[t] = turn * states[t - 1] + innovation * noise[t]
        real = np.concatenate([states.real, states.imag], axis=1)
        moving = np.tensordot(real, self.fields[:, window[0], window[1]], axes=1)
        return moving + self.mean[window]


def _fields(rng: np.random.Generator, shape: tuple[int, ...], width: float) -> np.ndarray:
    """Draw smooth random fields with variance one over the canvas."""
    fields = gaussian_filter(rng.standard_normal(shape), sigma=(0, width, width), mode="wrap")
    spread = np.sqrt(np.mean(fields**2, axis=(1, 2), keepdims=True))
    return fields / np.where(spread > 0, spread, 1.0)


def _between(rng: np.random.Generator, bounds: tuple[float, float], count: int) -> np.ndarray:
    """Draw numbers whose logarithms are uniform between those of the bounds."""
    low, high = bounds
    return np.exp(rng.uniform(math.log(low), math.log(high), size=count))
