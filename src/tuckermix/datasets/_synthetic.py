"""Data with known clusters, drawn from the model itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tuckermix._validation import check_integer, check_random_state, check_real
from tuckermix.datasets._dataset import Dataset
from tuckermix.numerics.linalg import random_basis
from tuckermix.numerics.tensor import multi_mode_dot

CANDIDATES_PER_CENTRE = 20
"""Random candidates among which each centre is chosen, where the space is too small for orthogonal
ones: enough that no two centres fall together, few enough to cost nothing."""


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
    # Not on the unit sphere, which in one dimension has two points only.
    candidates = rng.standard_normal((CANDIDATES_PER_CENTRE * n_clusters, size))
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
