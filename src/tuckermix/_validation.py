"""Rules for parameters and data, and what to do where memory runs out.

All errors have one sentence shape: subject, rule, what came, remedy.
"""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from tuckermix._array_api import Array, device, get_namespace, is_array, is_dask, is_numpy, to_numpy
from tuckermix._records import StopReason


def _reject(name: str, owner: str, rule: str, value: object) -> ValueError:
    return ValueError(f"The {name!r} parameter of {owner} must be {rule}. Got {value!r} instead.")


def check_integer(value: Any, name: str, owner: str, *, minimum: int = 1) -> int:
    """Return `value` as an int, or raise if it is no integer of at least `minimum`."""
    if (
        not isinstance(value, numbers.Integral)
        or isinstance(value, bool | np.bool_)
        or value < minimum
    ):
        error = _reject(name, owner, f"an integer >= {minimum}", value)
        if isinstance(value, str) and value == "auto":
            raise ValueError(f"{error} AutoClustering chooses the number of clusters.")
        raise error
    return int(value)


def check_real(
    value: Any,
    name: str,
    owner: str,
    *,
    minimum: float = 0.0,
    strict: bool = False,
    below: float = math.inf,
) -> float:
    """Return `value` as a float, or raise unless it is finite, large and small enough."""
    number = math.nan
    if isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_):
        number = float(value)
    if not minimum <= number < below or (strict and number == minimum):
        rule = f"a number {'>' if strict else '>='} {minimum:g}"
        raise _reject(name, owner, rule if below == math.inf else f"{rule} and < {below:g}", value)
    return number


def check_option(value: Any, name: str, owner: str, options: Collection[str]) -> str:
    """Return `value` if it is one of `options`, or raise with the whole list."""
    if not isinstance(value, str) or value not in options:
        allowed = ", ".join(repr(option) for option in options)
        raise _reject(name, owner, f"one of {allowed}", value)
    return value


positive = partial(check_real, strict=True)
share = partial(check_real, below=1.0)
inner_share = partial(check_real, strict=True, below=1.0)


Rules = dict[str, Callable[[Any, str, str], Any]]
"""Checks of parameters by name, called with the value, the name and the class of the estimator."""


def check_rules(estimator: Any) -> None:
    """Check all parameters of an estimator that its class and the bases have rules for."""
    for base in reversed(type(estimator).__mro__):
        for name, rule in vars(base).get("_rules", {}).items():
            rule(getattr(estimator, name), name, type(estimator).__name__)


def check_text(value: Any, name: str, owner: str) -> str:
    """Return `value` if it is a text, or raise."""
    if not isinstance(value, str):
        raise _reject(name, owner, "None or a name", value)
    return value


def check_switch(value: Any, name: str, owner: str) -> bool:
    """Return `value` as a bool, or raise if it is neither true nor false."""
    if not isinstance(value, bool | np.bool_):
        raise _reject(name, owner, "True or False", value)
    return bool(value)


def one_of(options: Collection[str]) -> Callable[[Any, str, str], str]:
    """Return the rule that a value is one of `options`."""
    return partial(check_option, options=options)


def none_or(rule: Callable[[Any, str, str], Any]) -> Callable[[Any, str, str], Any]:
    """Return the rule that a value is None, or obeys `rule`."""
    return lambda value, name, owner: None if value is None else rule(value, name, owner)


def check_pairs(value: Any, name: str, owner: str) -> list[tuple[str, Any]]:
    """Return named estimators as a list, or raise if `value` is no list of such pairs."""
    pairs = list(value) if isinstance(value, Iterable) else []
    if not pairs or not all(
        isinstance(pair, tuple | list) and len(pair) == 2 and isinstance(pair[0], str)
        for pair in pairs
    ):
        rule = "None or a list of (name, estimator), at least one: views, not numbers of clusters"
        raise _reject(name, owner, rule, value)
    return [(label, estimator) for label, estimator in pairs]


def check_stored(
    value: Any, name: str, shape: tuple[int | None, ...], *, kind: str = "f", finite: bool = True
) -> np.ndarray:
    """Return an array of a stored model, or raise if it cannot be what it is said to be.

    Parameters
    ----------
    value : object
        What the file has.
    name : str
        What it is called, for messages.
    shape : tuple of int or None
        The shape that the other arrays ask for; None where any size will do.
    kind : str, default="f"
        NumPy's letters for the kinds of numbers that are allowed.
    finite : bool, default=True
        Whether all numbers must be finite.

    Returns
    -------
    value : ndarray
        The same.
    """
    found = value.shape if isinstance(value, np.ndarray) else ()
    fits = isinstance(value, np.ndarray) and len(found) == len(shape)
    if not fits or any(size not in (None, have) for have, size in zip(found, shape, strict=True)):
        wanted = str(tuple(shape)).replace("None", "any")
        what = f"has shape {found}" if isinstance(value, np.ndarray) else f"is {value!r:.20}"
        raise ValueError(f"{name} {what}, and {wanted} fits the other arrays")
    if value.dtype.kind not in kind:
        raise ValueError(f"{name} holds {value.dtype}, which its numbers cannot be")
    if finite and not np.isfinite(value).all():
        raise ValueError(f"{name} holds numbers that are not finite")
    return value


def check_ranks(
    ranks: Any, sample_shape: tuple[int, ...], owner: str
) -> tuple[int, ...] | float | None:
    """Turn the `ranks` parameter into one rank per mode, or into the share of energy to keep.

    Parameters
    ----------
    ranks : None, int, float or sequence of int
        The parameter as the user gave it.
    sample_shape : tuple of int
        The sizes of the feature modes.
    owner : str
        The name of the class or function that has the parameter, for messages.

    Returns
    -------
    ranks : tuple of int, float or None
        One rank for each feature mode, or a share of energy in (0, 1); None where the data choose.
    """
    rule = (
        f"The 'ranks' parameter of {owner} must be None, an int, a share of energy in (0, 1), or "
        f"one int per feature mode (here {len(sample_shape)}). Got {ranks!r} instead."
    )
    if ranks is None:
        return None
    if isinstance(ranks, numbers.Real) and 0.0 < float(ranks) < 1.0:
        return float(ranks)
    one = isinstance(ranks, numbers.Integral)
    several = isinstance(ranks, Iterable) and not isinstance(ranks, str | dict)
    values = [ranks] if one else list(ranks) if several else []
    if not all(
        isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 1
        for value in values
    ):
        raise ValueError(rule)
    if one:
        return tuple(min(int(ranks), size) for size in sample_shape)
    if len(values) == len(sample_shape) - 1 and sample_shape[-1] == 1:
        values.append(1)  # a trailing mode of size 1 is no mode of its own
    if len(values) != len(sample_shape):
        raise ValueError(rule)
    for mode, (rank, size) in enumerate(zip(values, sample_shape, strict=True)):
        if rank > size:
            raise ValueError(
                f"ranks={tuple(int(v) for v in values)} must not exceed the sample shape "
                f"{sample_shape}: rank {int(rank)} of feature mode {mode} is larger than {size}."
            )
    return tuple(int(value) for value in values)


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
    ours = f"{_library_of(like)} arrays on {device(like)}"
    if is_dask(array):
        same, came = is_numpy(like), "a Dask array"
        remedy = "Pass X chunk by chunk, moved there, or fit again on a NumPy or Dask array."
    else:
        theirs = device(array)
        same = get_namespace(like) is get_namespace(array) and device(like) == theirs
        came, remedy = f"a {_library_of(array)} array on {theirs}", "Move X there, or fit again."
    if not same:
        raise ValueError(
            f"Inputs passed to {name} must use the same namespace and device as those passed to "
            f"fit: it was fitted on {ours}, but X is {came}. {remedy}"
        )


def _library_of(array: Array) -> str:
    return get_namespace(array).__name__.rsplit(".", 1)[-1]


def check_tensor(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    positive: bool = False,
    lazy: bool = False,
    own_type: bool = False,
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
    lazy : bool, default=False
        Whether a Dask array is taken. Its values are looked at when it is read.
    own_type : bool, default=False
        Whether samples keep the type that they have.

    Returns
    -------
    X : array of shape (n_samples, d_1, ...)
        The samples, float32 or float64 unless they keep their type.
    """
    name = type(estimator).__name__
    if not reset:
        check_is_fitted(estimator)
    if not is_numpy(X) or X.ndim < 2 or X.dtype.kind == "c":
        X = check_given(X, name)
    if (is_array(X) or is_dask(X)) and 0 in X.shape[1:]:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={tuple(X.shape)}) while a minimum of 1 is "
            f"required by {name}."
        )
    if is_dask(X):
        if not lazy:
            raise TypeError(f"{name} cannot take a Dask array here: call X.compute() first.")
        X = check_dask(X, own_type=own_type)
        check_sample_shape(estimator, X.shape, reset)
        return X
    if is_array(X) and not is_numpy(X):
        _check_foreign(X, name)
        X = X if own_type else _widened(X)
    else:
        if is_numpy(X) and not reset:
            check_sample_shape(estimator, X.shape, reset)
        if is_numpy(X) and not own_type and X.dtype not in (np.float32, np.float64):
            X = as_floating(X)
        if isinstance(X, np.ma.MaskedArray) and np.any(np.ma.getmaskarray(X)):
            samples = np.any(np.ma.getmaskarray(X).reshape(X.shape[0], -1), axis=1)
            raise ValueError(
                f"Input X has masked entries, which {name} does not accept: sample "
                f"{int(np.argmax(samples))} is the first. Set missing='impute' where the method "
                "has it, or leave such samples out."
            )
        dtype: Any = "numeric" if own_type else [np.float64, np.float32]
        options = {"allow_nd": True, "dtype": dtype, "ensure_all_finite": False}
        X = validate_data(estimator, X, reset=reset, **options)
        if X.dtype.kind not in "fbiu":
            raise ValueError(f"{name} takes real numbers, but X has dtype {X.dtype}.")
    _check_finite(X, estimator)
    check_sample_shape(estimator, X.shape, reset, named=is_numpy(X))
    if positive:
        xp = get_namespace(X)
        if float(xp.min(X)) < 0:
            raise ValueError(
                f"Negative values in data passed to {name}: "
                "shift or clip X, or use a method that takes any sign, such as TuckerClustering."
            )
    return X


class TakesArrays:
    """Tell scikit-learn that samples may be N-way arrays of any library."""

    def __sklearn_tags__(self: Any) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.two_d_array = getattr(self, "_takes_rows", True)
        tags.input_tags.three_d_array = tags.array_api_support = True
        tags.input_tags.allow_nan = getattr(self, "missing", None) is not None
        tags.transformer_tags.preserves_dtype = list(
            getattr(self, "_gives", ("float64", "float32"))
        )
        return tags


def samples_first(X: Any) -> Any:
    """Return a `xarray.DataArray` with its axis "sample" or "samples" first, others as they are."""
    dims: Any = getattr(X, "dims", None)
    named = [dim for dim in dims if dim in ("sample", "samples")] if dims else []
    return X.transpose(named[0], ...) if named and named[0] != dims[0] else X


def check_given(X: Any, name: str) -> Any:
    """Say what to pass instead of what is no array of samples; return others, samples first.

    Parameters
    ----------
    X : object
        What somebody passes as samples.
    name : str
        Who takes them, for messages.

    Returns
    -------
    X : object
        The same, or a transposed `xarray.DataArray`.
    """
    if isinstance(X, str | os.PathLike):
        raise ValueError(
            f"{name} takes an array of samples, but X is the path {os.fspath(X)!r}: pass "
            "tuckermix.datasets.read(path).X."
        )
    dtype = getattr(X, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported by {name}: X has dtype {dtype}. Pass abs(X), or real and "
            "imaginary parts along a further axis."
        )
    if getattr(X, "ndim", None) == 1:
        raise ValueError(
            f"{name} takes arrays of at least 2 axes, samples first, but X has shape "
            f"{tuple(X.shape)}. Reshape your data: X[None] if it is one sample, X[:, None] if each "
            "number is one."
        )
    return samples_first(X)


def too_few(shape: Sequence[int], n_clusters: int) -> ValueError:
    """Return the error for fewer samples than clusters, with a hint where samples may be last."""
    said = f"n_samples={shape[0]} must be >= n_clusters={n_clusters}."
    if len(shape) > 2 and shape[-1] >= n_clusters:
        said += (
            f" X has shape {tuple(shape)}: if samples are on its last axis, pass "
            "np.moveaxis(X, -1, 0)."
        )
    return ValueError(said)


MANY = 20_000_000
"""Entries beyond which small integers become float32."""


def as_floating(X: Any) -> Any:
    """Return samples in single or double precision; others as they are.

    Integers become float64. Where they are many and have at most 16 bits they become float32,
    which holds them exactly in half the memory. Floats of 16 bits become float32.

    Parameters
    ----------
    X : array of shape (n_samples, d_1, ...)
        NumPy or Dask.

    Returns
    -------
    X : array of the same shape
        In a type that the estimators compute in.
    """
    kind, size = X.dtype.kind, X.dtype.itemsize
    if kind in "iub":
        return X.astype(np.float32 if size <= 2 and X.size > MANY else np.float64)
    if kind == "f" and size not in (4, 8):
        return X.astype(np.float32 if size < 4 else np.float64)
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
    check_axes(X)
    if 0 in X.shape:
        raise ValueError(f"{owner} needs at least one sample and feature. Got shape {X.shape}.")
    return check_dask(X) if is_dask(X) else _widened(X)


def _widened(X: Array) -> Array:
    """Return samples of any library in float32, if floats of 16 bits hold them, or float64."""
    xp = get_namespace(X)
    if X.dtype in (xp.float32, xp.float64):
        return X
    half = str(X.dtype).rpartition(".")[2] in ("float16", "bfloat16")
    return xp.astype(X, xp.float32 if half else xp.float64)


def check_axes(X: Array, kind: str = "an array") -> None:
    """Raise for an array without an axis of samples and one of features."""
    if X.ndim < 2:
        raise ValueError(
            f"Expected {kind} of shape (n_samples, ...) with at least 2 axes, got {X.ndim}. "
            "Reshape your data using X.reshape(-1, 1) if it has a single feature."
        )


def _check_foreign(X: Array, name: str) -> None:
    """Raise where an array of a library other than NumPy holds no samples."""
    if get_namespace(X).isdtype(X.dtype, "complex floating"):
        raise ValueError(f"Complex data not supported by {name}: pass real and imaginary parts.")
    check_axes(X)
    if X.shape[0] < 1:
        raise ValueError(
            f"Found array with {X.shape[0]} sample(s) while a minimum of 1 is required by {name}."
        )


def _check_finite(X: Array, estimator: Any) -> None:
    """Raise for entries that are not finite; name the first sample that has one."""
    xp = get_namespace(X)
    if not xp.isdtype(X.dtype, "real floating"):
        return
    with np.errstate(over="ignore", invalid="ignore"):
        if bool(xp.isfinite(xp.sum(X))):
            return
    bad = ~xp.isfinite(X)
    if not bool(xp.any(bad)):
        return
    samples = to_numpy(xp.any(xp.reshape(bad, (X.shape[0], -1)), axis=1))
    kind = "NaN" if bool(xp.any(xp.isnan(X))) else "infinity"
    remedy = "Leave such samples out, or fill their gaps."
    if kind == "NaN" and getattr(estimator, "missing", "impute") is None:
        remedy = "Set missing='impute' to fill gaps by the model, or leave such samples out."
    if kind == "NaN" and type(estimator).__name__ == "AutoClustering":
        remedy = (
            "Use TuckerClustering with missing='impute' to fill gaps by the model, or leave such "
            "samples out."
        )
    raise ValueError(
        f"Input X contains {kind}, which {type(estimator).__name__} does not accept: sample "
        f"{int(np.argmax(samples))} is the first of {int(np.sum(samples))}. {remedy}"
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
    if len(shape) < 2 or came == fitted:
        return
    if len(came) == 1 and len(fitted) == 1:
        # The order-2 case: the words are those that users of scikit-learn know.
        raise ValueError(
            f"X has {came[0]} features, but {type(estimator).__name__} is expecting {fitted[0]} "
            "features as input."
        )
    hint = " X is one sample: pass X[None]." if tuple(shape) == fitted else ""
    if tuple(shape[:-1]) == fitted:
        hint += " Samples are on the first axis: pass np.moveaxis(X, -1, 0)."
    raise ValueError(
        f"X has per-sample shape {came}, but this {type(estimator).__name__} was fitted on "
        f"per-sample shape {fitted}.{hint}"
    )


def check_dask(X: Any, *, own_type: bool = False) -> Any:
    """Return a Dask array that can be worked on chunk by chunk, or say what to change.

    Parameters
    ----------
    X : dask.array.Array of shape (n_samples, d_1, ...)
        The samples.
    own_type : bool, default=False
        Whether samples keep the type that they have.

    Returns
    -------
    X : dask.array.Array of shape (n_samples, d_1, ...)
        The samples in float32 or float64, unless they keep their type, whole along the feature
        modes and without empty chunks.
    """
    check_axes(X, "a Dask array")
    if any(math.isnan(size) for size in X.shape):
        raise ValueError(
            "X is a Dask array with unknown chunk sizes. Either (1) call X.compute_chunk_sizes(), "
            "which reads the data once, or (2) pass lengths=True to DataFrame.to_dask_array, or "
            "(3) build X from arrays of known shape."
        )
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: pass real and imaginary parts.")
    if X.dtype.kind not in "fbiu":
        raise ValueError(f"X must hold real numbers, but it has dtype {X.dtype}.")
    if X.dtype.kind == "f" and X.dtype.itemsize == 2 and not own_type:
        raise TypeError("X has dtype float16: convert it with X.astype('float32') first.")
    if X.dtype not in (np.float32, np.float64) and not own_type:
        X = X.astype(np.float64)
    if any(len(sizes) > 1 for sizes in X.chunks[1:]):
        X = X.rechunk(dict.fromkeys(range(1, X.ndim), -1))
    if 0 in X.chunks[0]:
        X = X.rechunk({0: tuple(size for size in X.chunks[0] if size)})
    return X


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


def tuple_of(kind: type, size: int = 2) -> Callable[[Any], bool]:
    """Return the rule that a stored value is a tuple of finite numbers of a type."""
    return lambda value: (
        isinstance(value, tuple)
        and [type(each) for each in value] == [kind] * size
        and all(map(math.isfinite, value))
    )


Fields = dict[str, Callable[[Any], bool]]

EVERY_ESTIMATOR: Fields = {"sample_shape_": _sizes, "n_features_in_": _positive_int}
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
    labels = fitted.labels_
    fits = labels.dtype.kind == "i" and len(labels) >= fitted.n_clusters
    if not fits or labels.min() < -1 or labels.max() >= fitted.n_clusters:
        raise ValueError(f"labels_ must lie between -1 and {fitted.n_clusters - 1}")
