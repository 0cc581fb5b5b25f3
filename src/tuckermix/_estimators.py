"""Estimators: parameters and settings as dataclasses, callbacks, fits that fail as a whole."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, wraps
from typing import Any, Self, TypeVar, dataclass_transform

from tuckermix._array_api import device, is_array, is_dask, is_numpy

Class = TypeVar("Class", bound=type)


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def declare(estimator: Class) -> Class:
    """Make an estimator of a class whose annotated attributes are its parameters.

    The constructor takes the parameters of the class and of its bases and stores them, which is
    what scikit-learn asks for.

    Parameters
    ----------
    estimator : type
        The class, with annotations and defaults of its own parameters only.

    Returns
    -------
    estimator : type
        The same class.
    """
    make: Any = dataclass(eq=False, repr=False, match_args=False, kw_only=True)
    return make(estimator)


Function = TypeVar("Function")

SHORTAGE = "OutOfMemoryError"
"""How PyTorch and CuPy name the error. It is told by name, so that no library has to be imported
for its error."""

SIGNS = ("RESOURCE_EXHAUSTED", "DefaultCPUAllocator", "Unable to allocate")
"""Parts of the messages of JAX, of PyTorch on the host and of NumPy; the classes of their errors
serve for other things too."""


def explain_shortage(method: Function) -> Function:
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

    @wraps(method)  # type: ignore[arg-type]
    def explained(*args: Any, **options: Any) -> Any:
        try:
            return method(*args, **options)  # type: ignore[operator]
        except Exception as error:
            _explain(error, (*args, *options.values()))
            raise

    return explained  # type: ignore[return-value]


def all_or_nothing(method: Function) -> Function:
    """Decorate a fit so that it leaves the estimator as it was where it fails.

    Half of a new model must not stand beside half of an old one. Remedies are named when memory
    runs out, see `explain_shortage`.

    Parameters
    ----------
    method : callable
        A method of an estimator that learns from samples, its first argument.

    Returns
    -------
    method : callable
        The same.
    """

    @wraps(method)  # type: ignore[arg-type]
    def whole(self: Any, *args: Any, **options: Any) -> Any:
        before = dict(vars(self))
        try:
            return method(self, *args, **options)  # type: ignore[operator]
        except BaseException as error:
            # What scikit-learn notes of callbacks it clears away itself, after closing them.
            noted = {key: value for key, value in vars(self).items() if "callback" in key}
            self.__dict__ = before | noted  # in one step: another Ctrl-C finds no half of it
            _explain(error, (*args, *options.values()))
            raise

    return whole  # type: ignore[return-value]


def _explain(error: BaseException, values: tuple[Any, ...]) -> None:
    """Raise an error with remedies where this one says that memory ran out."""
    bare = type(error) is MemoryError and not error.args
    if type(error).__name__ == SHORTAGE or bare or any(sign in str(error) for sign in SIGNS):
        samples = [value for value in values if hasattr(value, "shape")]
        raise MemoryError(_advice(samples[0] if samples else None, error)) from error


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
        size = math.prod(int(length) for length in X.shape) * itemsize / 2**30
        text += f" with X of shape {tuple(X.shape)}, {size:.2g} GiB in {X.dtype}, on {device(X)}"
    last = "(3) pass a memory map or a Dask array, which is read piece by piece"
    if is_array(X) and not is_numpy(X):
        last = (
            "(3) free other arrays on the device, or (4) leave the samples on the host in a Dask "
            "array, which is read piece by piece"
        )
    return f"{text}. Either (1) pass X in float32, or (2) lower ranks or n_components, or {last}."


_chosen: ContextVar[dict[type, Settings]] = ContextVar("_chosen", default={})  # noqa: B039


@cache
def _defaults(kind: type[Settings]) -> Settings:
    return kind()


class Settings:
    """The tuning of one algorithm: a frozen dataclass with a default for each field."""

    @classmethod
    def current(cls) -> Self:
        """Return the settings in use: those of the innermost `use`, or the defaults."""
        return _chosen.get().get(cls) or _defaults(cls)  # type: ignore[return-value, arg-type]

    @contextmanager
    def use(self) -> Iterator[Self]:
        """Take these settings within a ``with`` block, in this thread and those that it starts."""
        token = _chosen.set({**_chosen.get(), type(self): self})
        try:
            yield self
        finally:
            _chosen.reset(token)


try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class _Silence:
        """Stand in for scikit-learn's context of a task: nobody listens, nobody asks to stop."""

        def subcontext(self, **options: Any) -> _Silence:
            return self

        def call_on_fit_task_begin(self, **options: Any) -> None:
            pass

        def call_on_fit_task_end(self, **options: Any) -> bool:
            return False

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand in for scikit-learn's class of the same name."""

        def _init_callback_context(self, **options: Any) -> _Silence:
            return _Silence()

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method
