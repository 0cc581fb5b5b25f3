"""What a fit takes of the machine: threads that work on blocks, and memory.

A fit on the host is a long series of products and eigenproblems. Handing each of them to several
threads of a numerical library takes longer than doing it, several times longer where other programs
want the processor too; scikit-learn's k-means keeps those libraries to one thread as well. What is
large is cut into blocks of samples, and a pool of threads works on them, each with libraries of one
thread. Where blocks begin does not depend on the number of threads, and results are combined in the
order of the blocks: labels and costs are the same for any number, to the last bit.

Most libraries have one number of threads for the whole process, so the limit is counted across the
process: the first function that wants it sets it, the last one to end lifts it. Functions may
overlap in several threads, call each other, raise, be interrupted or fork. The pool, too, is one
for the process: fits in several threads share it, and do not add up.
"""

from __future__ import annotations

import math
import operator
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import cache, partial, wraps
from queue import SimpleQueue
from typing import Any, TypeVar

import array_api_compat
import joblib
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from tuckermix._array_api import Array, device, get_namespace, is_array, is_dask, is_numpy

Function = TypeVar("Function")

AHEAD = 4
"""Blocks for each thread that may be done before an earlier one is: enough for threads hardly ever
to wait for a slower one, few enough for results to take little memory."""

PAUSE = 1e-4
"""Seconds between two looks of a thread that is too far ahead, which is rare."""

COUNTS_EACH = "openblas", "openmp"
"""OpenBLAS on top of OpenMP has a number of threads for each calling thread."""

POOL = "tuckermix"
"""What the names of the threads begin with."""

SHORTAGE = "OutOfMemoryError"
"""How PyTorch and CuPy name the error. It is told by name, so that no library has to be imported
for its error."""

SIGNS = ("RESOURCE_EXHAUSTED", "DefaultCPUAllocator", "Unable to allocate")
"""What messages of JAX, of PyTorch on the host and of NumPy contain; the classes of their errors
serve for other things too."""

GIBIBYTE = 2**30


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
        one ends, however it ends, the libraries have as many threads as before. A number that
        someone else sets in the meantime is left alone.
    """

    @wraps(function)  # type: ignore[arg-type]
    def limited(*args: Any, **options: Any) -> Any:
        # Not by `getattr`: a column of a data frame may have that name.
        own = getattr(args[0], "__dict__", {}).get("n_jobs") if args else None
        hold = _Hold(own if n_jobs is None else n_jobs)
        try:
            try:
                hold.turn(True)
                return function(*args, **options)  # type: ignore[operator]
            finally:
                hold.turn(False)
        finally:
            # Once more, because Ctrl-C may strike on the way into the first.
            hold.turn(False)

    return limited  # type: ignore[return-value]


@dataclass(eq=False)
class _Hold:
    """One wish for a single thread, which is turned on and off.

    Both may be cut short at any place; turning it off then completes or undoes what was begun.

    Attributes
    ----------
    n_jobs : int or None
        How many threads may work on blocks meanwhile.
    outer : int or None
        How many might before.
    thread : int
        The thread that wishes.
    own : dict
        What libraries that count for each thread had.
    """

    n_jobs: int | None = None
    outer: int | None = field(default_factory=lambda: _allowed.get())
    thread: int = field(default_factory=threading.get_ident)
    own: dict[Any, int] = field(default_factory=dict)

    def turn(self, on: bool) -> None:
        """Limit all libraries and note what they had, or give it back.

        It is given back to libraries of this thread alone now, to the others at the last. However
        often Ctrl-C strikes: it has to wait until that is done.
        """
        if not on:
            _allowed.set(self.outer)
        elif self.outer is None or self.n_jobs is not None:
            # Inside a thread of the pool the outer number is 1: what is nested there is serial.
            wanted = count_threads(self.n_jobs)
            _allowed.set(wanted if self.outer is None else min(wanted, self.outer))
        libraries = _libraries()  # before the lock: an import may wait for another thread
        interrupt = None
        while True:
            # ``with _lock`` would not do: newer versions of Python may handle a signal when the
            # lock has been taken and the block has not begun. Signals are handled after a call,
            # and so none comes between the work and the release at its end.
            try:
                try:
                    _lock.acquire()
                    if on:
                        _holds.add(self)
                        for library in libraries:
                            before = library.get_num_threads()
                            if before != 1:
                                # Noted first: a note without a limit does no harm, the reverse
                                # would.
                                layer = getattr(library, "threading_layer", None)
                                each = (library.internal_api, layer) == COUNTS_EACH
                                noted = self.own if each else _before
                                noted[library] = before
                                _set_threads(library, 1)
                    else:
                        _holds.discard(self)
                        for noted in (self.own,) if _holds else (self.own, _before):
                            for library, number in list(noted.items()):
                                if library.get_num_threads() == 1:  # else someone has set it since
                                    _set_threads(library, number)
                                noted.pop(library, None)
                finally:
                    try:  # noqa: SIM105  (no call may come first)
                        _lock.release()
                    except RuntimeError:  # it was not taken: Ctrl-C came while others had it
                        pass
                break
            except KeyboardInterrupt as error:
                if on:
                    raise
                interrupt = error
        if interrupt is not None:
            raise interrupt


# Re-entrant: a signal handler or a finaliser may start a fit while this thread holds it.
_lock = threading.RLock()
_holds: set[_Hold] = set()
_before: dict[Any, int] = {}
_allowed: ContextVar[int | None] = ContextVar("_allowed", default=None)


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

    The caller works too. What `function` itself calls in this way is done in its own thread. If it
    raises, or the caller is interrupted, no item is begun any more, and those in work are waited
    for.

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
        Called with each result, one at a time and in the order of the items, in any thread.
    """
    n_threads = 1
    if len(items) > 1 and is_numpy(like):
        n_threads = min(_allowed.get() or count_threads(), len(items))
    if n_threads == 1:
        for item in items:
            result = function(item)
            if consume is not None:
                consume(result)
        return
    _Share(function, items, consume, n_threads).run()


class _Share:
    """Items that several threads work on, the caller and helpers, and what came of them.

    A helper that is woken calls two more, so that none waits for all others to be woken, and work
    that is soon done wakes few.

    Parameters
    ----------
    function, items, consume
        See `in_threads`.
    n_threads : int
        How many threads may work, the caller among them.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        items: Sequence[Any],
        consume: Callable[[Any], Any] | None,
        n_threads: int,
    ):
        self.function, self.items, self.consume = function, items, consume
        self.n_threads = n_threads
        self.lock = threading.Lock()
        self.called = self.begun = self.handed = self.inside = 0
        self.closed = False
        self.empty = threading.Lock()  # free once the last helper has left
        self.empty.acquire()
        self.results: dict[int, Any] = {}
        self.errors: list[BaseException] = []

    @partial(one_blas_thread, n_jobs=1)
    def run(self) -> None:
        """Work until all is done, and raise what was raised; the limit holds for all threads."""
        # NumPy's handling of errors is part of the context, and that what is nested has one thread.
        self.context = copy_context()
        while True:
            try:
                self.work()
                with self.lock:
                    self.closed = True
                while self.inside:
                    self.empty.acquire()
                break
            except KeyboardInterrupt as error:  # stops the others, at the end of a block at most
                self.errors.append(error)
        if self.errors:
            raise self.errors[0]

    def help(self) -> None:
        """Work in a thread of the pool, unless it comes too late."""
        with self.lock:
            if self.closed:
                return
            self.inside += 1
        try:
            self.context.copy().run(self.work)
        except MemoryError as error:  # for the copy: the caller must not wait for ever
            self.errors.append(error)
        with self.lock:
            self.inside -= 1
            if self.closed and not self.inside:
                self.empty.release()

    def work(self) -> None:
        """Work on one item after the other, as long as there are any and none failed."""
        try:
            for _ in range(2):
                with self.lock:
                    left = self.begun < len(self.items) and not self.errors
                    if not left or self.called + 1 == self.n_threads:
                        break
                    self.called += 1
                _call(self.help, self.n_threads - 1)
            while True:
                with self.lock:
                    place = self.begun
                    if place == len(self.items) or self.errors:
                        return
                    self.begun += 1
                # Never for long: whoever has the first place is at work.
                while place >= self.handed + AHEAD * self.n_threads:
                    if self.errors:
                        return
                    time.sleep(PAUSE)
                result = self.function(self.items[place])
                with self.lock:
                    self.results[place] = result
                    while self.handed in self.results:
                        result = self.results.pop(self.handed)
                        if self.consume is not None:
                            self.consume(result)
                        self.handed += 1
        except BaseException as error:
            self.errors.append(error)


_calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
_helpers: list[threading.Thread] = []
_helpers_lock = threading.Lock()


def _call(help: Callable[[], None], most: int) -> None:
    """Wake a helper; one more is made as long as there are fewer than `most`."""
    if len(_helpers) < most:
        with _helpers_lock:
            if len(_helpers) < most:
                # A daemon: it sleeps when the interpreter ends.
                name = f"{POOL}-{len(_helpers)}"
                thread = threading.Thread(target=_serve, args=(_calls,), name=name, daemon=True)
                try:
                    thread.start()
                    _helpers.append(thread)
                except RuntimeError:
                    return  # there are none left, or the interpreter ends: others go on alone
    _calls.put(help)


def _serve(calls: SimpleQueue[Callable[[], None] | None]) -> None:
    """Help whoever calls, until told to end."""
    # The limit of a caller is one for the process, but for libraries that count otherwise.
    for library in _libraries():
        if (library.internal_api, getattr(library, "threading_layer", None)) == COUNTS_EACH:
            _set_threads(library, 1)
    while (help := calls.get()) is not None:
        help()
        del help  # nor what belongs to it


def _end_helpers() -> None:
    """Let all helpers end, after what they are at: a block for each at most."""
    for _ in _helpers:
        _calls.put(None)
    while _helpers:
        _helpers.pop().join()


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


def _before_fork() -> None:
    """End the idle threads of the pool: a process of several threads is a danger to its child."""
    if not threading.current_thread().name.startswith(POOL):
        with _helpers_lock:
            _end_helpers()
    _lock.acquire()


def _after_fork_in_child() -> None:
    """Drop the wishes and the threads that the child does not have."""
    global _calls, _helpers, _helpers_lock
    _calls, _helpers, _helpers_lock = SimpleQueue(), [], threading.Lock()
    _holds.intersection_update({hold for hold in _holds if hold.thread == threading.get_ident()})
    _Hold().turn(False)  # gives the threads back where no wish is left
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_lock.release, after_in_child=_after_fork_in_child
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
        size = math.prod(int(length) for length in X.shape) * itemsize / GIBIBYTE
        text += f" with X of shape {tuple(X.shape)}, {size:.2g} GiB in {X.dtype}, on {device(X)}"
    last = "(3) pass a memory map or a Dask array, which is read piece by piece"
    if is_array(X) and not is_numpy(X):
        last = (
            "(3) free other arrays on the device, or (4) leave the samples on the host in a Dask "
            "array, which is read piece by piece"
        )
    return f"{text}. Either (1) pass X in float32, or (2) lower ranks or n_components, or {last}."
