"""Rules for fitted attributes that come from a file, which may say anything."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tuckermix._records import StopReason


def _sizes(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and all(map(_positive_int, value))


def _positive_int(value: Any) -> bool:
    return type(value) is int and value > 0


def is_positive(value: Any) -> bool:
    """Tell whether a stored value is a finite float above zero."""
    return type(value) is float and 0 < value < math.inf


def is_text(value: Any) -> bool:
    """Tell whether a stored value is a string."""
    return isinstance(value, str)


def pair_of(kind: type) -> Callable[[Any], bool]:
    """Return the rule that a stored value is a tuple of two finite numbers of a type."""
    return lambda value: (
        isinstance(value, tuple)
        and [type(each) for each in value] == [kind, kind]
        and all(map(math.isfinite, value))
    )


Fields = dict[str, Callable[[Any], bool]]

EVERY_ESTIMATOR: Fields = {
    "sample_shape_": _sizes,
    "n_features_in_": _positive_int,
}
"""Fitted attributes of every estimator and transformer, with the rule of each."""

EVERY_TRANSFORMER: Fields = {
    **EVERY_ESTIMATOR,
    "_like_": lambda value: isinstance(value, np.ndarray),
}
"""Fitted attributes of every transformer."""

EVERY_MODEL: Fields = {
    **EVERY_ESTIMATOR,
    "n_clusters": _positive_int,
    "labels_": lambda value: isinstance(value, np.ndarray) and value.ndim == 1,
    "memberships_": lambda value: isinstance(value, np.ndarray),
    "n_iter_": lambda value: type(value) is int and value >= 0,
    "stop_reason_": lambda value: isinstance(value, StopReason),
    "history_": lambda value: isinstance(value, list),
    "cost_": lambda value: type(value) in (int, float),
}
"""Fitted attributes of every estimator of one model."""


def check_fields(fitted: Any, fields: Fields) -> None:
    """Raise if attributes that a file gave are missing, or are not what `fit` sets.

    Parameters
    ----------
    fitted : estimator
        The estimator or transformer.
    fields : dict of str to callable
        The rule of each attribute.
    """
    for name, rule in fields.items():
        if not hasattr(fitted, name):
            raise ValueError(f"it has no {name}")
        value = getattr(fitted, name)
        if not rule(value):
            array = isinstance(value, np.ndarray)
            what = f"has shape {value.shape}" if array else f"is {value!r:.80}"
            raise ValueError(f"{name} {what}, which fits no {type(fitted).__name__}")
    shape = fitted.sample_shape_
    if fitted.n_features_in_ != shape[0]:
        raise ValueError(f"n_features_in_ is {fitted.n_features_in_} for samples of shape {shape}")
    if "labels_" not in fields:
        return
    labels, least = fitted.labels_, -1 if getattr(fitted, "outliers", "keep") == "label" else 0
    fits = labels.dtype.kind == "i" and len(labels) >= fitted.n_clusters
    if not fits or labels.min() < least or labels.max() >= fitted.n_clusters:
        raise ValueError(f"labels_ must lie between {least} and {fitted.n_clusters - 1}")
