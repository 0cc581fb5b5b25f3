"""Samples of any real type and library: checked, worked on block by block, and their range."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from tuckermix._array_api import Array, asarray_like, blocks, get_namespace, is_dask, to_numpy
from tuckermix._threads import gather_rows, one_blas_thread
from tuckermix._validation import (
    EVERY_TRANSFORMER,
    Fields,
    Rules,
    TakesArrays,
    check_fields,
    check_rules,
    check_same_library,
    check_tensor,
)
from tuckermix.sources import as_blocks

EXACT_IN_SINGLE = ("bool", "int8", "uint8", "int16", "uint16", "float16", "bfloat16", "float32")
"""Types whose values float32 holds exactly: they become float32, all others float64."""

BLOCK_BYTES = 8 * 2**20
"""Work on samples by pieces of about this size, so that no second copy of them is made."""


class ArrayTransformer(TakesArrays, TransformerMixin, BaseEstimator):
    """Base of the transformers of N-way arrays, which work on samples in memory of any library.

    A transformer implements `_transformed`, and `_learn` where something depends on the samples.

    Attributes
    ----------
    sample_shape_ : tuple of int
        The shape of a sample.
    n_features_in_ : int
        ``X.shape[1]``, as scikit-learn sets it.
    """

    _rules: ClassVar[Rules] = {}
    """The rules of parameters, called with the value, the name and the class."""

    _fields: ClassVar[Fields] = {}
    """The rules of fitted attributes that files may hold, beside those of every transformer."""

    _takes_rows = True
    """Whether samples may be rows."""

    @one_blas_thread
    def fit(self, X: Any, y: None = None) -> Self:
        """Note the shape of a sample, and what else depends on the samples.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            The samples.
        y : Ignored
            Present for scikit-learn's sake.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        self._check_params()
        self._learn(check_samples(self, X, reset=True))
        return self

    @one_blas_thread
    def transform(self, X: Any) -> Array:
        """Return the features of samples.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            Samples of the shape on which the transformer was fitted.

        Returns
        -------
        features : array of shape (n_samples, ...)
            What the class describes; lazy for a Dask array.
        """
        X = check_samples(self, X, reset=False)
        return over_chunks(X, copy(self)._transformed)  # a lazy result outlives later changes

    @abstractmethod
    def _transformed(self, X: Array) -> Array:
        """Return the features of checked samples in memory."""

    def _learn(self, X: Array) -> None:
        """Set what depends on checked samples, which may be lazy."""

    def _check_params(self) -> None:
        """Raise where parameters break a rule."""
        check_rules(self)

    def _check_state(self) -> None:
        """Raise if what a file gave cannot be what `fit` sets."""
        self._check_params()
        check_fields(self, {**EVERY_TRANSFORMER, **self._fields})


def space_axes(space: Any, ndim: int, counts: tuple[int, ...], owner: str) -> tuple[int, ...]:
    """Return the axes of space, counted from the front, or raise if they are not valid.

    Parameters
    ----------
    space : int or tuple of int
        The axes as the user gave them.
    ndim : int
        The number of axes of the samples.
    counts : tuple of int
        How many axes there may be.
    owner : str
        Who asks, for messages.

    Returns
    -------
    axes : tuple of int
        Different axes from 1 on.
    """
    axes = tuple(space) if isinstance(space, tuple | list) else (space,)
    wrong = f"The 'space' parameter of {owner} must {{}}. Got {space!r} instead."
    if any(isinstance(axis, bool) or not isinstance(axis, int | np.integer) for axis in axes):
        raise ValueError(wrong.format("be None, an axis or a tuple of axes"))
    places = tuple(int(axis) % ndim if -ndim <= axis < ndim else 0 for axis in axes)
    if 0 in places or len(set(places)) != len(places):
        rule = f"name different axes of X from 1 to {ndim - 1}: axis 0 holds the samples"
        raise ValueError(wrong.format(rule))
    if len(places) not in counts:
        counted = " or ".join(map(str, counts))
        raise ValueError(wrong.format(f"name {counted} axes; volumes go slice by slice"))
    return places


def check_samples(estimator: Any, X: Any, *, reset: bool) -> Array:
    """Validate samples and return them in their own type.

    Parameters
    ----------
    estimator : object
        The transformer that asks.
    X : array-like of shape (n_samples, d_1, ...)
        The samples; NumPy and other array libraries, Dask, lists and data frames.
    reset : bool
        Whether this is a fit, which stores the shape of a sample and the library; a transform
        compares them.

    Returns
    -------
    X : array of shape (n_samples, d_1, ...)
        The samples: whole along the feature axes for a Dask array.
    """
    X = check_tensor(estimator, X, reset=reset, lazy=True, own_type=True)
    if reset:
        # An empty array remembers the library and the device; chunks of Dask arrays are NumPy's.
        empty = np.zeros(0, dtype=np.float32)
        lazy = is_dask(X)
        estimator._like_ = empty if lazy else asarray_like(empty, X, get_namespace(X).float32)
    else:
        check_same_library(X, estimator._like_, f"{type(estimator).__name__}.transform()")
    return X


def as_float(X: Array) -> Array:
    """Return values in float32 where that holds them exactly, else in float64; no needless copy."""
    xp = get_namespace(X)
    exact = str(X.dtype).rsplit(".", 1)[-1] in EXACT_IN_SINGLE
    return xp.astype(X, xp.float32 if exact else xp.float64, copy=False)


def over_chunks(X: Array, function: Callable[[Array], Array]) -> Array:
    """Apply a function of samples: at once in memory, chunk by chunk and lazily for a Dask array.

    Parameters
    ----------
    X : array of shape (n_samples, d_1, ...)
        The samples.
    function : callable
        Takes samples of shape (n, d_1, ...), returns an array of shape (n, ...).

    Returns
    -------
    rows : array of shape (n_samples, ...)
        The results for all samples.
    """
    if not is_dask(X):
        return function(X)
    sample = function(np.zeros((1, *X.shape[1:]), dtype=X.dtype))
    return X.map_blocks(
        _on_chunk,
        function=function,
        chunks=(X.chunks[0], *((size,) for size in sample.shape[1:])),
        drop_axis=list(range(1, X.ndim)),
        new_axis=list(range(1, sample.ndim)),
        dtype=sample.dtype,
        meta=sample[:0],
    )


# Dask shares out the processors among chunks: within a chunk there is one thread.
@partial(one_blas_thread, n_jobs=1)
def _on_chunk(chunk: Array, function: Callable[[Array], Array]) -> Array:
    return function(chunk)


def map_rows(X: Array, function: Callable[[Array], Array], block_size: int | None = None) -> Array:
    """Apply a function of samples in memory, block by block.

    Parameters
    ----------
    X : array of shape (n_samples, d_1, ...)
        The samples.
    function : callable
        Takes a block of shape (n, d_1, ...) in float32 or float64, returns one of shape (n, ...).
    block_size : int or None, default=None
        How many samples a block has; None chooses by their size.

    Returns
    -------
    rows : array of shape (n_samples, ...)
        The results of all blocks.
    """
    n_samples = int(X.shape[0])
    if block_size is None:
        block_size = BLOCK_BYTES // (math.prod(int(size) for size in X.shape[1:]) * 8)
    parts = list(blocks(n_samples, 1, max(1, block_size)))
    return gather_rows(lambda part: function(as_float(X[part, ...])), parts, n_samples, X)


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


PERCENTILES = PercentileSettings()


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
    for _ in range(PERCENTILES.n_rounds):
        edges = np.concatenate([np.linspace(*bracket, PERCENTILES.n_edges) for bracket in brackets])
        below = samples.reduce(partial(_count_below, edges), np.add)
        below = below.reshape(2, PERCENTILES.n_edges)
        edges = edges.reshape(2, PERCENTILES.n_edges)
        for index, rank in enumerate(ranks):
            # The last edge with no more than `rank` values below it: the value lies behind it.
            place = min(
                int(np.searchsorted(below[index], rank, side="right")) - 1, PERCENTILES.n_edges - 2
            )
            brackets[index] = (edges[index, place], edges[index, place + 1])
    return float(brackets[0][0]), float(brackets[1][1])


def _count_below(edges: np.ndarray, block: Array) -> np.ndarray:
    """Count the values of a block below each edge."""
    xp = get_namespace(block)
    # In float64 an edge between two values stays between them.
    ordered = xp.sort(xp.reshape(xp.astype(block, xp.float64), (-1,)))
    return to_numpy(xp.searchsorted(ordered, asarray_like(edges, ordered)))


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
