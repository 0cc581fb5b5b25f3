"""Threads that work on blocks of samples, while the numerical libraries keep to one thread each.

A fit on the host is a long series of products and eigenproblems. Handing each of them to several
threads of a numerical library takes longer than doing it, and scikit-learn's k-means keeps those
libraries to one thread as well. What is large is cut into blocks of samples, and a pool of threads
works on them. Where blocks begin does not depend on the number of threads, and results are combined
in the order of the blocks: labels and costs are the same for any number, to the last bit.

The libraries have one number of threads for the whole process, so the limit is counted: the first
function that wants it sets it, the last one to end lifts it.
"""

from __future__ import annotations

import operator
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache, wraps
from typing import Any

import array_api_compat
import joblib
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from tuckermix._array_api import Array, device, get_namespace, is_numpy
from tuckermix._estimators import Function, explain_shortage

AHEAD = 4
"""Blocks for each thread that are handed out before the first of them is done: enough for threads
hardly ever to wait for a slower one, few enough for results to take little memory."""

_allowed: ContextVar[int | None] = ContextVar("_allowed", default=None)


def one_blas_thread(function: Function, n_jobs: int | None = None) -> Function:
    """Run a function with one BLAS thread, and give the others back afterwards.

    Parameters
    ----------
    function : callable
        Any function or method.
    n_jobs : int or None, default=None
        The most threads that work on blocks inside, see `count_threads`. None takes the attribute
        `n_jobs` of the object whose method it is, where there is one.

    Returns
    -------
    limited : callable
        The same. As long as any such function runs, in any thread, the limit holds; when the last
        one ends, the libraries have as many threads as before.
    """

    @wraps(function)  # type: ignore[arg-type]
    def limited(*args: Any, **options: Any) -> Any:
        # Not by `getattr`: a column of a data frame may have that name.
        own = getattr(args[0], "__dict__", {}).get("n_jobs") if args else None
        wanted, outer = own if n_jobs is None else n_jobs, _allowed.get()
        if outer is None or wanted is not None:
            number = count_threads(wanted)
            # What is nested in a thread of the pool is serial: there the outer number is 1.
            outer = number if outer is None else min(number, outer)
        before = _allowed.set(outer)
        try:
            with _limit.held():
                return function(*args, **options)  # type: ignore[operator]
        finally:
            _allowed.reset(before)

    return limited  # type: ignore[return-value]


def on_samples(method: Function) -> Function:
    """Decorate a function of samples: `one_blas_thread`, and `explain_shortage` of memory."""
    return explain_shortage(one_blas_thread(method))


class _Limit:
    """How many functions want a single thread, and what the libraries had before."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0
        self.before: list[tuple[Any, int]] = []

    @contextmanager
    def held(self) -> Iterator[None]:
        """Limit all libraries from the first wish to the end of the last."""
        libraries = _blas_libraries()  # before the lock: an import may wait for another thread
        with self.lock:
            self.count += 1
            if self.count == 1:
                self.before = [(library, library.get_num_threads()) for library in libraries]
                for library in libraries:
                    _set_threads(library, 1)
        try:
            yield
        finally:
            with self.lock:
                self.count -= 1
                if self.count == 0:
                    for library, number in self.before:
                        if library.get_num_threads() == 1:  # else someone has set it since
                            _set_threads(library, number)


_limit = _Limit()


@cache
def _blas_libraries() -> list[Any]:
    """Look up the loaded BLAS libraries, once: that takes milliseconds."""
    # SciPy brings a BLAS of its own, which must be loaded to be found.
    import scipy.linalg  # noqa: F401

    return ThreadpoolController().select(user_api="blas").lib_controllers


def _set_threads(library: Any, number: int) -> None:
    # Newer versions of threadpoolctl let one thread at a time change the number of an OpenBLAS and
    # ignore the others. Here several may, under a lock of our own.
    clear = getattr(library, "clear_controlling_thread", lambda force: None)
    clear(force=True)
    library.set_num_threads(number)
    clear(force=True)


def count_threads(n_jobs: int | None = None) -> int:
    """Return how many threads may work on blocks, by the conventions of scikit-learn.

    Parameters
    ----------
    n_jobs : int or None, default=None
        A number; -1 for all processors that the process may use, -2 for all but one. None takes
        the number of ``joblib.parallel_config(n_jobs=...)``, or else ``OMP_NUM_THREADS``, or else
        all processors. Inside a worker of joblib, None means what joblib leaves to each: its
        processes get a number in ``OMP_NUM_THREADS``, its threads one.

    Returns
    -------
    n_threads : int
        At least 1. Processors count as far as affinity and the limits of a container allow.
    """
    if n_jobs is None:
        backend, n_jobs = get_active_backend()
        nested = getattr(backend, "nesting_level", 0) > 0
        if n_jobs is None:
            first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
            wanted = int(first) if first.isdecimal() and int(first) > 0 else None
            if nested and (
                wanted is None or threading.current_thread() is not threading.main_thread()
            ):
                return 1
            return min(wanted, joblib.cpu_count()) if wanted else joblib.cpu_count()
    try:
        number = operator.index(n_jobs)
    except TypeError:
        number = 0
    if number == 0 or isinstance(n_jobs, bool):
        raise ValueError(
            f"n_jobs must be None or an integer other than 0. Got {n_jobs!r}: pass 1 for a single "
            "thread, -1 for all processors."
        )
    return number if number > 0 else max(1, joblib.cpu_count() + 1 + number)


def in_threads(
    function: Callable[[Any], Any],
    items: Sequence[Any],
    like: Array,
    consume: Callable[[Any], Any] | None = None,
) -> None:
    """Apply a function to each item, in several threads, and hand the results over in order.

    What `function` itself calls in this way is done in its own thread. When the
    caller learns that it raised, or is interrupted, no item is begun any more, and those in work
    are waited for.

    Parameters
    ----------
    function : callable
        Takes an item.
    items : sequence
        What to work on.
    like : array
        An array of the library in question. Those beside NumPy have threads or a device of their
        own, and get one item after the other.
    consume : callable or None, default=None
        Called with each result, in the order of the items, in the thread of the caller.
    """
    consume = consume or (lambda result: None)
    n_threads = 1
    if len(items) > 1 and is_numpy(like):
        n_threads = _allowed.get() or count_threads()
    if n_threads == 1:
        for item in items:
            consume(function(item))
        return
    pool = _pool(n_threads)
    waiting: deque[Future[Any]] = deque()
    before = _allowed.set(1)  # for what is nested, which sees this context
    with _limit.held():
        try:
            for item in items:
                if len(waiting) == AHEAD * n_threads:
                    consume(waiting.popleft().result())
                # NumPy's handling of errors is part of the context, and so are settings.
                try:
                    waiting.append(pool.submit(copy_context().run, function, item))
                except RuntimeError:  # no thread can be started, as when the interpreter ends
                    while waiting:
                        consume(waiting.popleft().result())
                    consume(function(item))
            while waiting:
                consume(waiting.popleft().result())
        finally:
            _allowed.reset(before)
            for future in waiting:
                future.cancel()
            wait(waiting)


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    """Return the pool of this many threads; fits that ask for the same number share it."""
    return ThreadPoolExecutor(n_threads, thread_name_prefix="tuckermix")


def _forget_threads() -> None:
    """Forget, in a child process, the threads that it does not have."""
    global _limit
    _limit = _Limit()
    _pool.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def gather_rows(
    function: Callable[[slice], Array], parts: Sequence[slice], n_rows: int, like: Array
) -> Array:
    """Assemble blocks of rows into one array, without a second copy where the library allows it.

    Parameters
    ----------
    function : callable
        Takes a slice, returns the rows of that slice, an array of shape (n_block, ...).
    parts : sequence of slice
        Consecutive slices of all rows.
    n_rows : int
        The number of rows in all.
    like : array
        An array of the library in question.

    Returns
    -------
    rows : array of shape (n_rows, ...)
        All rows.
    """
    xp = get_namespace(like)
    if len(parts) == 1:
        return function(parts[0])
    if array_api_compat.is_jax_array(like):  # immutable: there is no way around the second copy
        return xp.concat([function(part) for part in parts], axis=0)
    rows: list[Array] = []
    first = threading.Lock()

    def place(part: slice) -> None:
        block = function(part)
        with first:
            if not rows:  # what kind of rows these are shows with the first
                shape = (n_rows, *block.shape[1:])
                rows.append(xp.empty(shape, dtype=block.dtype, device=device(block)))
        rows[0][part, ...] = block

    in_threads(place, parts, like)
    return rows[0]
