"""Say what to do when memory runs out, on the host or on a device."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar

from tuckermix._array_api import device, is_array, is_dask, is_numpy

__all__ = ["explain_shortage"]

Method = TypeVar("Method", bound=Callable[..., Any])

SHORTAGE = "OutOfMemoryError"
"""How PyTorch and CuPy name the error. It is told by name, so that no library has to be imported
for its error."""

SIGNS = ("RESOURCE_EXHAUSTED", "DefaultCPUAllocator", "Unable to allocate")
"""What messages of JAX, of PyTorch on the host and of NumPy contain; the classes of their errors
serve for other things too."""

GIBIBYTE = 2**30


def explain_shortage(method: Method) -> Method:
    """Decorate a function of samples so that it names remedies when memory runs out.

    Parameters
    ----------
    method : callable
        A function whose first argument, apart from `self`, are samples.

    Returns
    -------
    method : callable
        The same, with a `MemoryError` in place of the errors of the array libraries.
    """

    @functools.wraps(method)
    def explained(*args: Any, **options: Any) -> Any:
        try:
            return method(*args, **options)
        except Exception as error:
            if not _is_shortage(error):
                raise
            values = [value for value in (*args, *options.values()) if hasattr(value, "shape")]
            raise MemoryError(_advice(values[0] if values else None, error)) from error

    return explained  # type: ignore[return-value]


def _is_shortage(error: BaseException) -> bool:
    if type(error).__name__ == SHORTAGE or (type(error) is MemoryError and not error.args):
        return True
    return any(sign in str(error) for sign in SIGNS)


def _advice(X: Any, error: BaseException) -> str:
    reason = (str(error).splitlines() or [""])[0].strip().rstrip(".")
    text = "Memory ran out" + (f" ({reason})" if reason else "")
    if is_dask(X):
        return (
            f"{text} while a chunk was worked on. Either (1) use smaller chunks along the samples, "
            "such as X.rechunk({0: 'auto'}), or (2) let fewer threads work at once, such as "
            "dask.config.set(num_workers=2), or (3) lower ranks or n_components."
        )
    if is_array(X):
        itemsize = getattr(X.dtype, "itemsize", None) or 8
        size = math.prod(int(length) for length in X.shape) * itemsize / GIBIBYTE
        text += f" with X of shape {tuple(X.shape)}, {size:.2g} GiB in {X.dtype}, on {device(X)}"
    last = "(3) pass a memory map or a Dask array, which is read piece by piece"
    if is_array(X) and not is_numpy(X):
        last = (
            "(3) free other arrays on the device, or (4) leave the samples on the host in a Dask "
            "array, which is read piece by piece"
        )
    return f"{text}. Either (1) pass X in float32, or (2) lower ranks or n_components, or {last}."
