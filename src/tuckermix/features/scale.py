"""Bring intensities to one range, as a transformer of N-way arrays."""

from __future__ import annotations

import numbers
from dataclasses import field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from tuckermix._array_api import Array, asarray_like, divisor, get_namespace
from tuckermix._estimators import declare
from tuckermix._names import SCALES
from tuckermix._validation import EVERY_TRANSFORMER, check_fields, one_of, tuple_of
from tuckermix.features._input import ArrayTransformer, dataset_range, map_rows, sample_ranges


@declare
class Scale(ArrayTransformer):
    r"""Bring the intensities of samples to one range.

    A sample :math:`x` becomes :math:`(x - a) / (b - a)`, where :math:`[a, b]` is its own range or
    that of the fitted dataset, or :math:`x / \|x\|`. Images of different bit depth or exposure
    then differ by what they show.

    Parameters
    ----------
    mode : {"sample", "dataset", "unit"}, default="sample"
        ``"sample"``: every sample from 0 to 1. ``"dataset"``: one range for all, from the fitted
        samples, so that bright and dark samples stay apart. ``"unit"``: every sample to norm 1,
        which keeps zero where it is.
    percentiles : tuple of two float or None, default=None
        Take the range between these percentiles, such as ``(1, 99)``, and clip what lies beyond;
        for ``"unit"``, clip before the norm is taken. None takes the whole range and clips nothing.

    Attributes
    ----------
    sample_shape_ : tuple of int
        The shape of a sample.
    n_features_in_ : int
        ``X.shape[1]``, as scikit-learn sets it.
    range_ : tuple of two float or None
        The range of the fitted samples, for ``mode="dataset"``.

    See Also
    --------
    Scattering : Features that are stable to small shifts.

    Notes
    -----
    A sample of one intensity becomes zero, a dataset of one intensity too. Integers of up to 16
    bits and half floats give float32, wider integers float64. The result of a Dask array is lazy;
    only ``mode="dataset"`` reads it when fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from tuckermix.features import Scale
    >>> image = np.arange(16, dtype=np.uint8).reshape(1, 4, 4)
    >>> both = np.concatenate([image.astype(np.uint16), image.astype(np.uint16) * 257])
    >>> scaled = Scale("sample").fit_transform(both)
    >>> bool(np.allclose(scaled[0], scaled[1]))
    True
    """

    mode: str = field(default="sample", kw_only=False)
    percentiles: Any = None

    _rules: ClassVar = {"mode": one_of(SCALES)}

    def _learn(self, X: Array) -> None:
        dataset = self.mode == "dataset"
        self.range_ = dataset_range(X, self._percentiles()) if dataset else None

    def _transformed(self, X: Array) -> Array:
        percentiles = self._percentiles()
        if self.mode == "unit":
            return map_rows(X, partial(_unit, percentiles=percentiles))
        return map_rows(X, partial(_ranged, percentiles=percentiles, fixed=self.range_))

    def _check_params(self) -> None:
        super()._check_params()
        self._percentiles()

    def _check_state(self) -> None:
        super()._check_state()
        rule = tuple_of(float) if self.mode == "dataset" else (lambda value: value is None)
        check_fields(self, {**EVERY_TRANSFORMER, "range_": rule})

    def _percentiles(self) -> tuple[float, float] | None:
        given = self.percentiles
        if given is None:
            return None
        valid = isinstance(given, tuple | list) and len(given) == 2
        valid = valid and all(
            isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
            for value in given
        )
        if not valid or not 0 <= given[0] < given[1] <= 100:
            raise ValueError(
                f"The 'percentiles' parameter of {type(self).__name__} must be None or two numbers "
                f"in increasing order from 0 to 100. Got {given!r} instead."
            )
        return float(given[0]), float(given[1])


def _ranged(
    block: Array, *, percentiles: tuple[float, float] | None, fixed: tuple[float, float] | None
) -> Array:
    """Map a range to [0, 1]: the one given, or that of each sample."""
    xp = get_namespace(block)
    if fixed is None:
        low, high = sample_ranges(block, percentiles)
    else:
        low, high = (asarray_like([value] * block.shape[0], block) for value in fixed)
    low, high = (_beside(each, block) for each in (low, high))
    # Halves: the difference of two numbers of a type need not be one of that type.
    width = high / 2 - low / 2
    width = xp.where(width > 0, width, xp.full_like(width, xp.inf))
    scaled = (block / 2 - low / 2) / width
    return scaled if percentiles is None else xp.clip(scaled, 0.0, 1.0)


def _unit(block: Array, *, percentiles: tuple[float, float] | None) -> Array:
    """Divide each sample by its norm."""
    xp = get_namespace(block)
    if percentiles is not None:
        low, high = (_beside(each, block) for each in sample_ranges(block, percentiles))
        block = xp.clip(block, low, high)
    axes = tuple(range(1, block.ndim))
    # Divided by the peak first: squares of very large and very small numbers leave their range.
    block = block / divisor(xp.max(xp.abs(block), axis=axes, keepdims=True))
    return block / divisor(xp.sqrt(xp.sum(block * block, axis=axes, keepdims=True)))


def _beside(values: Array, block: Array) -> Array:
    """Give one value for each sample the axes of the samples."""
    return get_namespace(values).reshape(values, (-1, *(1,) * (block.ndim - 1)))
