"""The lowest and highest intensity of samples and of datasets, with outliers left out if wanted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuckermix._array_api import Array, asarray_like, get_namespace, is_dask, to_numpy
from tuckermix.features._input import as_float
from tuckermix.sources import as_blocks


@dataclass(frozen=True)
class PercentileSettings:
    """How a percentile of a dataset is found without sorting all values.

    Attributes
    ----------
    n_edges : int
        Values below each of these edges are counted.
    n_rounds : int
        Then again between the two edges around the percentile: after three rounds it is known to
        1e-9 of the range.
    """

    n_edges: int = 1025
    n_rounds: int = 3


SETTINGS = PercentileSettings()


def sample_ranges(X: Array, percentiles: tuple[float, float] | None) -> tuple[Array, Array]:
    """Return the lowest and highest value of each sample, or its values at two percentiles.

    Parameters
    ----------
    X : array of shape (n_samples, d_1, ...)
        Samples in float32 or float64.
    percentiles : tuple of two float or None
        The percentiles; the value at p is the smallest with p % of the values at or below it.

    Returns
    -------
    low, high : arrays of shape (n_samples,)
        The range of each sample.
    """
    xp = get_namespace(X)
    values = xp.reshape(X, (X.shape[0], -1))
    if percentiles is None:
        return xp.min(values, axis=1), xp.max(values, axis=1)
    ordered = xp.sort(values, axis=1)
    low, high = (_rank(share, ordered.shape[1]) for share in percentiles)
    return ordered[:, low], ordered[:, high]


def dataset_range(X: Array, percentiles: tuple[float, float] | None) -> tuple[float, float]:
    """Return the lowest and highest value of a dataset, or its values at two percentiles.

    Parameters
    ----------
    X : array of shape (n_samples, d_1, ...)
        Samples of any real type; one pass for the range, three more for percentiles.
    percentiles : tuple of two float or None
        The percentiles, as in `sample_ranges`.

    Returns
    -------
    low, high : float
        The range of the dataset.
    """
    if is_dask(X) and X.dtype == np.float16:
        X = X.astype(np.float32)
    samples = as_blocks(X)
    low, high = samples.reduce(_extremes, _wider)
    if percentiles is None or low == high:
        return low, high
    n_values = math.prod(int(size) for size in X.shape)
    ranks = [_rank(share, n_values) for share in percentiles]
    brackets = [(low, high), (low, high)]
    for _ in range(SETTINGS.n_rounds):
        edges = np.concatenate([np.linspace(*bracket, SETTINGS.n_edges) for bracket in brackets])
        below = samples.reduce(_Counter(edges), np.add).reshape(2, SETTINGS.n_edges)
        edges = edges.reshape(2, SETTINGS.n_edges)
        for index, rank in enumerate(ranks):
            # The last edge with no more than `rank` values below it: the value lies behind it.
            place = min(
                int(np.searchsorted(below[index], rank, side="right")) - 1, SETTINGS.n_edges - 2
            )
            brackets[index] = (edges[index, place], edges[index, place + 1])
    return float(brackets[0][0]), float(brackets[1][1])


class _Counter:
    """Count the values of a block below each edge.

    Parameters
    ----------
    edges : ndarray of shape (n_edges,)
        The edges, in any order.
    """

    def __init__(self, edges: np.ndarray) -> None:
        self.edges = edges

    def __call__(self, block: Array) -> np.ndarray:
        xp = get_namespace(block)
        # In float64 an edge between two values stays between them.
        ordered = xp.sort(xp.reshape(xp.astype(block, xp.float64), (-1,)))
        return to_numpy(xp.searchsorted(ordered, asarray_like(self.edges, ordered)))


def _extremes(block: Array) -> tuple[float, float]:
    xp = get_namespace(block)
    block = as_float(block)
    return float(xp.min(block)), float(xp.max(block))


def _wider(one: Any, other: Any) -> tuple[float, float]:
    return min(one[0], other[0]), max(one[1], other[1])


def _rank(share: float, n_values: int) -> int:
    """Return the place, from 0 on, of a percentile among sorted values."""
    # Rounded first: 0.07 * 100 is a little more than 7.
    return max(0, min(n_values, math.ceil(round(share / 100 * n_values, 9))) - 1)
