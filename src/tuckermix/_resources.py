"""What a fit takes of the machine: one thread of the numerical libraries, and memory.

A fit on the host is a long series of small products and eigenproblems. Handing each of them to
several threads takes longer than doing it, several times longer where other programs want the
processor too. scikit-learn's k-means does the same.

Most libraries have one number of threads for the whole process, so the limit is counted across the
process: the first function that wants it sets it, the last one to end lifts it. Functions may
overlap in several threads, call each other, raise, be interrupted or fork. A pool that works on
blocks decorates what its workers run: nested limits cost microseconds, and those libraries that
count threads for each calling thread are then limited in the workers too.
"""

from __future__ import annotations

import math
import os
import threading
from functools import cache, wraps
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from tuckermix._array_api import device, is_array, is_dask, is_numpy

__all__ = ["explain_shortage", "one_blas_thread"]

Function = TypeVar("Function")

SHORTAGE = "OutOfMemoryError"
"""How PyTorch and CuPy name the error. It is told by name, so that no library has to be imported
for its error."""

SIGNS = ("RESOURCE_EXHAUSTED", "DefaultCPUAllocator", "Unable to allocate")
"""What messages of JAX, of PyTorch on the host and of NumPy contain; the classes of their errors
serve for other things too."""

GIBIBYTE = 2**30


def one_blas_thread(function: Function) -> Function:
    """Run a function with one BLAS thread, and give the others back afterwards.

    Parameters
    ----------
    function : callable
        Any function or method.

    Returns
    -------
    limited : callable
        The same. As long as any such function runs, in any thread, the limit holds; when the last
        one ends, however it ends, the libraries have as many threads as before. A number that
        someone else sets in the meantime is left alone.
    """

    @wraps(function)  # type: ignore[arg-type]
    def limited(*args: Any, **options: Any) -> Any:
        hold = _Hold()
        try:
            try:
                hold.take()
                return function(*args, **options)  # type: ignore[operator]
            finally:
                hold.release()
        finally:
            # Once more, because Ctrl-C may strike on the way into the first.
            hold.release()

    return limited  # type: ignore[return-value]


class _Hold:
    """One wish for a single thread: in force from `take` to `release`.

    Both may be cut short at any place; `release` then completes or undoes what was begun.

    Attributes
    ----------
    thread : int
        The thread that wishes.
    """

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self._own: dict[Any, int] = {}

    # ``with _lock`` would not do: newer versions of Python may handle a signal when the lock has
    # been taken and the block has not begun. Signals are handled after a call, and so none comes
    # between the work and the release at its end.

    def take(self) -> None:
        """Limit all libraries, and note what they had before."""
        libraries = _libraries()  # before the lock: an import may wait for another thread
        try:
            _lock.acquire()
            _holds.add(self)
            for library in libraries:
                before = library.get_num_threads()
                if before != 1:
                    # OpenBLAS on top of OpenMP has a number for each thread that calls it.
                    layer = getattr(library, "threading_layer", None)
                    each_thread = library.internal_api == "openblas" and layer == "openmp"
                    # Noted first: a note without a limit does no harm, the reverse would.
                    noted = self._own if each_thread else _before
                    noted[library] = before
                    _set_threads(library, 1)
        finally:
            try:  # noqa: SIM105  (no call may come first)
                _lock.release()
            except RuntimeError:  # it was not taken: Ctrl-C came while others had it
                pass

    def release(self) -> None:
        """Give threads back: to libraries of this thread alone now, to the others at the last.

        However often Ctrl-C strikes: it has to wait until that is done.
        """
        interrupt = None
        while True:
            try:
                try:
                    _lock.acquire()
                    _holds.discard(self)
                    for noted in (self._own,) if _holds else (self._own, _before):
                        for library, number in list(noted.items()):
                            if library.get_num_threads() == 1:  # else someone else has set it since
                                _set_threads(library, number)
                            noted.pop(library, None)
                finally:
                    try:  # noqa: SIM105  (no call may come first)
                        _lock.release()
                    except RuntimeError:  # it was not taken: Ctrl-C came while others had it
                        pass
                break
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt


# Re-entrant: a signal handler or a finaliser may start a fit while this thread holds it.
_lock = threading.RLock()
_holds: set[_Hold] = set()
_before: dict[Any, int] = {}


@cache
def _libraries() -> list[Any]:
    """Look up the loaded BLAS libraries, once: that takes milliseconds."""
    # SciPy brings a BLAS of its own, which must be loaded to be found.
    import scipy.linalg  # noqa: F401

    return ThreadpoolController().select(user_api="blas").lib_controllers


def _set_threads(library: Any, number: int) -> None:
    # Newer versions of threadpoolctl let one thread at a time change the number of an OpenBLAS
    # and ignore the others. Here several take turns, under a lock of our own.
    clear = getattr(library, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)
    library.set_num_threads(number)
    if clear is not None:
        clear(force=True)


def _after_fork_in_child() -> None:
    """Drop the wishes of threads that the child does not have."""
    _holds.intersection_update({hold for hold in _holds if hold.thread == threading.get_ident()})
    _Hold().release()  # gives the threads back where no wish is left
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_lock.acquire,
        after_in_parent=_lock.release,
        after_in_child=_after_fork_in_child,
    )


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
