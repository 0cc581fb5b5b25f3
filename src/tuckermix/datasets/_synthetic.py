"""Data with known clusters: planted in a Tucker subspace, or videos of dynamical systems."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

from tuckermix._validation import check_integer, check_random_state, check_real
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._options import check_pair
from tuckermix.numerics.linalg import random_basis
from tuckermix.numerics.tensor import multi_mode_dot


def make_tensor_clusters(
    n_samples: int = 300,
    shape: int | tuple[int, ...] = (8, 8),
    n_clusters: int = 3,
    *,
    ranks: int | tuple[int, ...] | None = None,
    n_directions: int = 1,
    spread: float = 0.5,
    noise: float = 0.1,
    imbalance: float = 1.0,
    positive: bool = False,
    shuffle: bool = True,
    random_state: Any = None,
    return_X_y: bool = False,
) -> Any:
    r"""Draw clusters of tensors that share a small Tucker subspace.

    .. math:: X_i = (C_k + \textstyle\sum_d t_{id} D_{kd}) \times_1 U_1 \cdots \times_N U_N
        + \varepsilon\, s\, E_i, \qquad k = k(i),\; t_{id} \sim N(0, \sigma^2)

    Each cluster :math:`k` has a centre :math:`C_k` and a few directions :math:`D_{kd}` of its own
    along which its samples vary, all of them cores of shape `ranks`; the factors :math:`U_n` have
    orthonormal columns and are shared. :math:`E_i` is standard normal noise in the whole space
    and :math:`s` the root mean square of an entry without noise. All :math:`C_k, D_{kd}` are
    orthogonal and of equal norm where the core is large enough to hold them; the clusters are then
    affinely independent and can be told apart exactly as long as the noise is small. In a smaller
    core the directions are random and the centres are as far apart as random draws make them.

    Parameters
    ----------
    n_samples : int, default=300
        The number of samples.
    shape : int or tuple of int, default=(8, 8)
        The shape of a sample; any number of modes.
    n_clusters : int, default=3
        The number of clusters.
    ranks : int or tuple of int, default=None
        The rank of each mode; an int holds for all. None means the smallest nearly equal ranks
        whose core holds all centres and directions, as far as `shape` allows.
    n_directions : int, default=1
        The number of directions along which each cluster varies; 0 puts all samples of a cluster
        on its centre, up to noise.
    spread : float, default=0.5
        Standard deviation along a direction, relative to the norm of a centre.
    noise : float, default=0.1
        Standard deviation of the noise in an entry, relative to the root mean square of the
        entries without noise.
    imbalance : float, default=1.0
        Size of the largest cluster over that of the smallest; the sizes between fall
        geometrically. Every cluster has at least one sample.
    positive : bool, default=False
        Whether to shift all entries by one number that makes the smallest zero, for methods that
        want non-negative data. The mean gains a constant tensor by that, and the ranks grow by 1.
    shuffle : bool, default=True
        Whether to mix the samples; otherwise they come cluster by cluster.
    random_state : None, int, Generator or RandomState, default=None
        Source of randomness; an int repeats the draw.
    return_X_y : bool, default=False
        Whether to return the arrays alone.

    Returns
    -------
    dataset : Dataset
        `X` of shape (n_samples, \*shape), float64, and `labels` of shape (n_samples,) from 0 to
        n_clusters - 1, int64; `extra` has the `factors`, a list of (d_n, J_n) arrays, and the
        `centres` of shape (n_clusters, \*shape). With `return_X_y`, the tuple (X, labels).

    Examples
    --------
    >>> from tuckermix.datasets import make_tensor_clusters
    >>> make_tensor_clusters(60, (6, 5, 4), 3, random_state=0)
    Dataset(tensor clusters: X (60, 6, 5, 4) float64, 3 classes)
    """
    owner = "make_tensor_clusters"
    check_integer(n_samples, "n_samples", owner)
    check_integer(n_clusters, "n_clusters", owner)
    check_integer(n_directions, "n_directions", owner, minimum=0)
    check_real(spread, "spread", owner)
    check_real(noise, "noise", owner)
    check_real(imbalance, "imbalance", owner, minimum=1.0)
    if n_samples < n_clusters:
        raise ValueError(f"n_samples={n_samples} must be >= n_clusters={n_clusters}.")
    sizes = _check_sizes(shape, "shape", owner)
    n_vectors = n_clusters * (1 + n_directions)
    ranks = _check_ranks(ranks, sizes, n_vectors, owner)
    rng = check_random_state(random_state)

    factors = [
        random_basis(size, rank, rng, np.empty(0)) for size, rank in zip(sizes, ranks, strict=True)
    ]
    cores = _cores(rng, n_clusters, n_directions, math.prod(ranks))
    labels = np.repeat(np.arange(n_clusters), _cluster_sizes(n_samples, n_clusters, imbalance))
    if shuffle:
        rng.shuffle(labels)
    weights = spread * rng.standard_normal((n_samples, n_directions))
    flat = cores[labels, 0] + np.einsum("id,idp->ip", weights, cores[labels, 1:])
    X = multi_mode_dot(flat.reshape(n_samples, *ranks), factors)
    scale = math.sqrt(float(np.mean(X**2)))
    X += noise * scale * rng.standard_normal(X.shape)
    centres = multi_mode_dot(cores[:, 0].reshape(n_clusters, *ranks), factors)
    if positive:
        lowest = X.min()
        X -= lowest
        centres -= lowest
    if return_X_y:
        return X, labels
    return Dataset(
        X=X,
        labels=labels,
        name="tensor clusters",
        description=f"{n_clusters} planted clusters in a Tucker subspace of ranks {ranks}.",
        extra={"factors": factors, "centres": centres},
    )


def _check_sizes(sizes: Any, name: str, owner: str) -> tuple[int, ...]:
    """Return one positive int or several as a tuple."""
    values = tuple(sizes) if isinstance(sizes, tuple | list | np.ndarray) else (sizes,)
    if not values:
        raise ValueError(
            f"The {name!r} parameter of {owner} must name at least one mode. Got () instead."
        )
    return tuple(check_integer(value, name, owner) for value in values)


def _check_ranks(ranks: Any, sizes: tuple[int, ...], n_vectors: int, owner: str) -> tuple[int, ...]:
    """Check the ranks against the shape, or choose the smallest that hold `n_vectors`."""
    if ranks is None:
        chosen = [1] * len(sizes)
        while math.prod(chosen) < n_vectors:
            growing = [mode for mode, size in enumerate(sizes) if chosen[mode] < size]
            if not growing:
                break
            chosen[min(growing, key=lambda mode: chosen[mode])] += 1
        return tuple(chosen)
    values = _check_sizes(ranks, "ranks", owner)
    if len(values) == 1:
        values = values * len(sizes)
    if len(values) != len(sizes):
        raise ValueError(f"ranks={values} must have one entry for each mode of shape={sizes}.")
    if any(rank > size for rank, size in zip(values, sizes, strict=True)):
        raise ValueError(f"ranks={values} must not exceed shape={sizes} in any mode.")
    return values


def _cores(rng: np.random.Generator, n_clusters: int, n_directions: int, size: int) -> np.ndarray:
    """Draw unit vectors of length `size`: for each cluster the centre, then its directions."""
    n_vectors = n_clusters * (1 + n_directions)
    if n_vectors <= size:
        vectors = random_basis(size, n_vectors, rng, np.empty(0)).T
        return vectors.reshape(n_clusters, 1 + n_directions, size)
    directions = rng.standard_normal((n_clusters, n_directions, size))
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    # Twenty per centre: no two centres fall together. Not on the unit sphere, which in one
    # dimension has two points only.
    candidates = rng.standard_normal((20 * n_clusters, size))
    chosen = [0]
    distance = np.linalg.norm(candidates - candidates[0], axis=1)
    while len(chosen) < n_clusters:
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.linalg.norm(candidates - candidates[chosen[-1]], axis=1))
    centres = candidates[chosen][:, None]
    return np.concatenate([centres, directions], axis=1)


def _cluster_sizes(n_samples: int, n_clusters: int, imbalance: float) -> np.ndarray:
    """Split the samples into sizes that fall geometrically, none of them zero."""
    steps = np.linspace(0.0, 1.0, n_clusters)
    shares = imbalance**-steps
    # One sample each beforehand, the others by largest remainder: the sum is exact.
    ideal = np.maximum(shares / shares.sum() * n_samples - 1.0, 0.0)
    left = n_samples - n_clusters
    if ideal.sum() > 0:
        ideal *= left / ideal.sum()
    counts = np.floor(ideal).astype(np.int64)
    order = np.argsort(-(ideal - counts), kind="stable")
    counts[order[: left - int(counts.sum())]] += 1
    return counts + 1


@dataclass(frozen=True)
class TextureLaws:
    """Ranges from which the systems of videos are drawn."""

    periods: tuple[float, float] = (4.0, 40.0)
    """Frames in which a pair of states turns once: from flicker to slow waves."""
    dampings: tuple[float, float] = (0.90, 0.99)
    """Factor by which a pair of states decays in a frame: memory of ten to a hundred frames."""
    scales: tuple[float, float] = (0.04, 0.2)
    """Width of the blobs of a texture, relative to the side of a frame: from grain to clouds."""
    contrast: float = 0.12
    """Standard deviation of the moving part, in units of the range of grey values: four of them on
    either side of the middle stay within the range."""
    still_contrast: float = 0.06
    """The same for the still part, half as strong: classes differ by motion as much as by looks."""


LAWS = TextureLaws()


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
        self.angles = 2 * math.pi / _between(rng, LAWS.periods, n_pairs)
        self.angles *= rng.choice([-1.0, 1.0], size=n_pairs)
        self.dampings = rng.uniform(*LAWS.dampings, size=n_pairs)
        width = _between(rng, LAWS.scales, 1)[0] * min(canvas)
        self.fields = LAWS.contrast / math.sqrt(n_states) * _fields(rng, (n_states, *canvas), width)
        self.mean = 0.5 + LAWS.still_contrast * _fields(rng, (1, *canvas), width)[0]

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
