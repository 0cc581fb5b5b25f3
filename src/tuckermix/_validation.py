"""Rules for parameters and data, with one sentence shape for all errors."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from tuckermix._array_api import Array, device, get_namespace, is_array, is_dask, is_numpy

__all__ = [
    "as_tensor",
    "check_integer",
    "check_option",
    "check_random_state",
    "check_real",
    "check_sample_shape",
    "check_same_library",
    "check_tensor",
]


def _reject(name: str, owner: str, rule: str, value: object) -> ValueError:
    return ValueError(f"The {name!r} parameter of {owner} must be {rule}. Got {value!r} instead.")


def check_integer(value: Any, name: str, owner: str, *, minimum: int = 1) -> int:
    """Return `value` as an int, or raise if it is no integer of at least `minimum`."""
    if (
        not isinstance(value, numbers.Integral)
        or isinstance(value, bool | np.bool_)
        or value < minimum
    ):
        raise _reject(name, owner, f"an integer >= {minimum}", value)
    return int(value)


def check_real(
    value: Any, name: str, owner: str, *, minimum: float = 0.0, strict: bool = False
) -> float:
    """Return `value` as a float, or raise if it is no finite number of at least `minimum`."""
    sign = ">" if strict else ">="
    if not isinstance(value, numbers.Real) or isinstance(value, bool | np.bool_):
        raise _reject(name, owner, f"a number {sign} {minimum:g}", value)
    number = float(value)
    if not math.isfinite(number) or number < minimum or (strict and number == minimum):
        raise _reject(name, owner, f"a number {sign} {minimum:g}", value)
    return number


def check_option(value: Any, name: str, owner: str, options: Collection[str]) -> str:
    """Return `value` if it is one of `options`, or raise with the whole list."""
    if not isinstance(value, str) or value not in options:
        allowed = ", ".join(repr(option) for option in options)
        raise _reject(name, owner, f"one of {allowed}", value)
    return value


def check_random_state(seed: Any) -> np.random.Generator:
    """Turn `random_state` (None, int, Generator, RandomState or SeedSequence) into a Generator."""
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, np.random.RandomState):
        return np.random.default_rng(seed.randint(2**31, size=4))
    if seed is None or isinstance(seed, numbers.Integral | np.random.SeedSequence):
        if isinstance(seed, numbers.Integral) and seed < 0:
            raise ValueError(f"random_state must be >= 0. Got {seed!r} instead.")
        return np.random.default_rng(int(seed) if isinstance(seed, numbers.Integral) else seed)
    raise ValueError(
        "random_state must be None, an int, a numpy Generator or RandomState. "
        f"Got {seed!r} instead."
    )


def check_same_library(array: Array, like: Array, name: str) -> None:
    """Raise if `array` and the fitted array `like` differ in library or device.

    The chunks of a Dask array are NumPy arrays, so it goes with a model in NumPy.
    """
    if is_dask(array):
        if is_numpy(like):
            return
        raise ValueError(
            f"Inputs passed to {name} must use the same namespace and device as those passed to "
            f"fit: it was fitted on {get_namespace(like).__name__.rsplit('.', 1)[-1]} arrays on "
            f"{device(like)}, but X is a Dask array. Pass X chunk by chunk, moved there, or fit "
            "again on a NumPy or Dask array."
        )
    ours, theirs = get_namespace(like), get_namespace(array)
    if ours is not theirs or device(like) != device(array):
        raise ValueError(
            f"Inputs passed to {name} must use the same namespace and device as those passed to "
            f"fit: it was fitted on {ours.__name__.rsplit('.', 1)[-1]} arrays on {device(like)}, "
            f"but X is a {theirs.__name__.rsplit('.', 1)[-1]} array on {device(array)}. "
            "Move X there, or fit again."
        )


def check_tensor(
    estimator: Any, X: Any, *, reset: bool, positive: bool = False, min_samples: int = 1
) -> Array:
    """Validate the samples handed to an estimator and return them as a float array.

    NumPy arrays, lists and data frames go through scikit-learn's `validate_data`; arrays of other
    libraries keep their library and device. Integers and booleans become float64, float32 stays.
    With `reset`, the shape of a sample is stored as `sample_shape_`; otherwise it is compared.

    Parameters
    ----------
    estimator : object
        The estimator that asks; its class name appears in the messages.
    X : array-like of shape (n_samples, d_1, ...)
        The samples.
    reset : bool
        Whether this is a fit.
    positive : bool, default=False
        Whether negative values are refused.
    min_samples : int, default=1
        The least number of samples.

    Returns
    -------
    X : array of shape (n_samples, d_1, ...)
        The samples, float32 or float64.
    """
    if not reset:
        check_is_fitted(estimator)
    name = type(estimator).__name__
    if is_array(X) and not is_numpy(X):
        X = _check_foreign(X, name, min_samples)
    else:
        if is_dask(X):
            raise TypeError(f"{name} cannot take a Dask array here: call X.compute() first.")
        if is_numpy(X) and not reset:
            check_sample_shape(estimator, X.shape, reset)
        if is_numpy(X):
            _refuse_half(X, name)
        X = validate_data(
            estimator,
            X,
            reset=reset,
            allow_nd=True,
            dtype=[np.float64, np.float32],
            ensure_min_samples=min_samples,
        )
        _check_not_empty(X.shape, name)
    check_sample_shape(estimator, X.shape, reset, named=is_numpy(X))
    if positive:
        xp = get_namespace(X)
        if float(xp.min(X)) < 0:
            raise ValueError(
                f"Negative values in data passed to {name}: "
                "shift or clip X, or use a method that takes any sign, such as TuckerClustering."
            )
    return X


def as_tensor(X: Any, owner: str) -> Array:
    """Return the samples handed to a function as a float array, without looking for NaN.

    Parameters
    ----------
    X : array-like of shape (n_samples, d_1, ...)
        The samples.
    owner : str
        The name of the function, for messages.

    Returns
    -------
    X : array of shape (n_samples, d_1, ...)
        The samples, float32 or float64.
    """
    if not is_array(X) and not is_dask(X):
        X = np.asarray(X)
    if is_numpy(X) and X.dtype.kind not in "fbiu":
        raise ValueError(f"{owner} takes real numbers, but X has dtype {X.dtype}.")
    if X.ndim < 2:
        raise ValueError(
            f"{owner} takes an array of shape (n_samples, ...) with at least 2 axes, "
            f"got {X.ndim}. Reshape your data using X.reshape(-1, 1) if it has a single feature."
        )
    if 0 in X.shape:
        raise ValueError(f"{owner} needs at least one sample and feature. Got shape {X.shape}.")
    if is_dask(X):
        return X
    _refuse_half(X, owner)
    xp = get_namespace(X)
    return X if X.dtype in (xp.float32, xp.float64) else xp.astype(X, xp.float64)


def _check_foreign(X: Array, name: str, min_samples: int) -> Array:
    """Validate an array of a library other than NumPy, where it lies."""
    xp = get_namespace(X)
    if xp.isdtype(X.dtype, "complex floating"):
        raise ValueError(f"Complex data not supported by {name}: pass real and imaginary parts.")
    if X.ndim < 2:
        raise ValueError(
            f"Expected an array of shape (n_samples, ...) with at least 2 axes, got {X.ndim}. "
            "Reshape your data using X.reshape(-1, 1) if it has a single feature."
        )
    _check_not_empty(X.shape, name)
    if X.shape[0] < min_samples:
        raise ValueError(
            f"Found array with {X.shape[0]} sample(s) while a minimum of {min_samples} is "
            f"required by {name}."
        )
    _refuse_half(X, name)
    if X.dtype not in (xp.float32, xp.float64):
        X = xp.astype(X, xp.float64)
    if not bool(xp.isfinite(xp.sum(X))) and not bool(xp.all(xp.isfinite(X))):
        raise ValueError(f"Input X contains NaN or infinity, which {name} does not accept.")
    return X


def _refuse_half(X: Array, name: str) -> None:
    """Raise for floating types of 16 bits: which of the two wider ones is meant is not ours."""
    if str(X.dtype).rsplit(".", 1)[-1] in ("float16", "bfloat16"):
        raise TypeError(
            f"{name} computes in float32 or float64, but X has dtype {X.dtype}: "
            "convert it first, to float32 for speed."
        )


def _check_not_empty(shape: Sequence[int], name: str) -> None:
    if 0 in shape[1:]:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={tuple(shape)}) while a minimum of 1 is "
            f"required by {name}."
        )


def check_sample_shape(
    estimator: Any, shape: Sequence[int], reset: bool, *, named: bool = False
) -> None:
    """Store the whole sample shape at a fit, or compare it; scikit-learn compares one axis only.

    Parameters
    ----------
    estimator : object
        The estimator.
    shape : sequence of int
        The shape of the samples, the number of samples first.
    reset : bool
        Whether this is a fit.
    named : bool, default=False
        Whether the names of the features are those of these samples.
    """
    came = tuple(int(size) for size in shape[1:])
    if reset:
        estimator.sample_shape_ = came
        estimator.n_features_in_ = came[0]
        if not named and hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        return
    fitted = tuple(estimator.sample_shape_)
    if len(shape) < 2 or (len(came) == 1 and len(fitted) == 1 and came == fitted):
        return
    if len(came) == 1 and len(fitted) == 1:
        # The order-2 case: the words are those that users of scikit-learn know.
        raise ValueError(
            f"X has {came[0]} features, but {type(estimator).__name__} is expecting {fitted[0]} "
            "features as input."
        )
    if came != fitted:
        raise ValueError(
            f"X has per-sample shape {came}, but this {type(estimator).__name__} was fitted on "
            f"per-sample shape {fitted}."
        )
