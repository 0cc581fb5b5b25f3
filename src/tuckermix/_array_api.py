"""The one place that asks an array which library it belongs to.

Every computation follows its input: the namespace, the device and the floating type of the
results are those of `X`. There is no global backend. Random numbers are drawn with NumPy and
moved to the device, so that every library starts from the same point.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import array_api_compat
import array_api_compat.numpy as numpy_namespace
import numpy as np

Array = Any
"""An array of any library that follows the array API standard."""

Namespace = Any
"""A module with the functions of the array API standard."""

BLOCK_BYTES = 32 * 2**20
"""Work on blocks of about this size: large enough for fast matrix products and few Python
calls, small enough that the temporary arrays of a block stay below the size of most data."""


def is_array(value: object) -> bool:
    """Tell whether `value` is an array of a supported library (lists and frames are not)."""
    return bool(array_api_compat.is_array_api_obj(value)) and not is_dask(value)


def is_numpy(value: object) -> bool:
    """Tell whether `value` is a NumPy array."""
    return bool(array_api_compat.is_numpy_array(value))


def is_dask(value: object) -> bool:
    """Tell whether `value` is a Dask array, without importing Dask."""
    return type(value).__module__.split(".", 1)[0] == "dask"


def get_namespace(*arrays: Array) -> Namespace:
    """Return the array-API namespace that all `arrays` share; `None` entries are ignored."""
    present = [array for array in arrays if array is not None]
    if present and all(type(array) is np.ndarray for array in present):
        return numpy_namespace  # the common case, on the path of every small operation
    try:
        return array_api_compat.array_namespace(*present)
    except TypeError as error:
        kinds = sorted({f"{type(a).__module__.split('.')[0]}.{type(a).__name__}" for a in present})
        raise TypeError(
            f"All arrays must belong to one array library. Got {', '.join(kinds)}: "
            "convert them to the library of X first."
        ) from error


def device(array: Array) -> Any:
    """Return the device on which `array` lives."""
    return array_api_compat.device(array)


def asarray_like(values: Any, like: Array, dtype: Any = None) -> Array:
    """Move `values` (anything NumPy understands) to the library, device and type of `like`."""
    dtype = like.dtype if dtype is None else dtype
    if type(values) is np.ndarray and type(like) is np.ndarray and values.dtype == dtype:
        return values
    xp = get_namespace(like)
    if is_array(values) and not is_numpy(values):
        return xp.astype(array_api_compat.to_device(values, device(like)), dtype, copy=False)
    host = np.ascontiguousarray(values)
    if any(stride < 0 for stride in host.strides):  # a flipped axis of length 1: torch refuses it
        host = host.copy()
    return xp.asarray(host, dtype=dtype, device=device(like))


def to_numpy(array: Array) -> np.ndarray:
    """Copy `array` to the host as a NumPy array. Only for small arrays and for saving."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "detach"):  # torch refuses `np.asarray` on tensors that need a gradient
        array = array.detach()
    if type(array).__module__.startswith("array_api_strict"):  # knows no device named "cpu"
        return np.asarray(array.to_device(get_namespace(array).Device("CPU_DEVICE")))
    try:
        return np.asarray(array_api_compat.to_device(array, "cpu"))
    except (TypeError, ValueError, AttributeError):
        return np.asarray(array.get() if hasattr(array, "get") else array)


def take_rows(array: Array, indices: Any) -> Array:
    """Return the rows of `array` with these indices, an array of NumPy or of its library."""
    xp = get_namespace(array)
    return xp.take(array, asarray_like(indices, array, dtype=xp.int64), axis=0)


def divisor(array: Array) -> Array:
    """Return `array` with 1 in place of what is not above 0, to divide by."""
    xp = get_namespace(array)
    return xp.where(array > 0, array, xp.ones_like(array))


def double(array: Array) -> Array:
    """Return `array` in float64, for sums that float32 would round away; no copy if it is."""
    xp = get_namespace(array)
    return xp.astype(array, xp.float64, copy=False)


def is_double(array: Array) -> bool:
    """Tell whether `array` holds float64."""
    return bool(array.dtype == get_namespace(array).float64)


def epsilon(array: Array) -> float:
    """Return the machine epsilon of the floating type of `array`."""
    return float(get_namespace(array).finfo(array.dtype).eps)


def blocks(n_samples: int, bytes_per_sample: int, budget: int = BLOCK_BYTES) -> Iterator[slice]:
    """Cut `n_samples` into slices whose data take about `budget` bytes each."""
    step = max(1, min(n_samples, budget // max(1, bytes_per_sample)))
    for start in range(0, n_samples, step):
        yield slice(start, min(start + step, n_samples))
