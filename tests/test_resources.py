"""Threads and memory: limits that hold whatever overlaps, fails or forks; advice that helps."""

import subprocess
import sys
import threading
from contextlib import suppress

import joblib
import numpy as np
import pytest
from joblib.parallel import ThreadingBackend
from stress.places import Interrupts
from threadpoolctl import threadpool_info, threadpool_limits

from tuckermix import TuckerClustering, _resources, decompose
from tuckermix._array_api import to_numpy
from tuckermix._resources import count_threads, gather_rows, in_threads, one_blas_thread
from tuckermix.datasets import make_tensor_clusters
from tuckermix.features import Scattering
from tuckermix.labels import fit_labels
from tuckermix.numerics.points import kmeans, nearest_neighbors
from tuckermix.sources import source

PATIENCE = 60  # seconds after which a test that hangs fails


def blas_threads():
    return {entry["num_threads"] for entry in threadpool_info() if entry["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        yield
        assert blas_threads() == {2}
    assert not _resources._holds
    assert not _resources._before


class Paused:
    """A limited function in a thread of its own, which runs until it is told to end."""

    def __init__(self, error=None):
        self.seen, self.error = None, error
        self.started, self.may_end = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        with suppress(RuntimeError, KeyboardInterrupt):  # those that the test itself raises
            self.work()

    @one_blas_thread
    def work(self):
        self.started.set()
        assert self.may_end.wait(PATIENCE)
        self.seen = blas_threads()
        if self.error is not None:
            raise self.error

    def start(self):
        self.thread.start()
        assert self.started.wait(PATIENCE)

    def end(self):
        self.may_end.set()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


def test_threads_are_limited_inside_and_given_back():
    before = blas_threads()
    assert one_blas_thread(blas_threads)() == {1}
    assert blas_threads() == before

    @one_blas_thread
    def fails():
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        fails()
    assert blas_threads() == before


def test_nested_limits_are_lifted_by_the_outermost():
    @one_blas_thread
    def outer():
        return one_blas_thread(blas_threads)(), blas_threads()

    assert outer() == ({1}, {1})
    assert blas_threads() == {2}


@pytest.mark.parametrize("error", [None, RuntimeError(), KeyboardInterrupt()])
@pytest.mark.parametrize("first_out", [0, 1])
def test_overlapping_functions_lift_the_limit_with_the_last(error, first_out):
    pair = [Paused(error), Paused()]
    for paused in pair:
        paused.start()
    pair[first_out].end()
    assert blas_threads() == {1}, "lifted early"
    pair[1 - first_out].end()
    assert blas_threads() == {2}, "left behind"
    assert [paused.seen for paused in pair] == [{1}, {1}]


def test_a_fit_leaves_the_threads_as_they_were(rng):
    X = rng.standard_normal((40, 5, 4))
    model = TuckerClustering(3, random_state=0).fit(X)
    model.predict(X)
    assert blas_threads() == {2}


@pytest.fixture
def small_blocks(limits):
    """Cut small data into many blocks."""
    limits(
        block_bytes=2**11,
        block_samples=1,
        neighbor_block_bytes=2**14,
        kmeans_block_bytes=2**14,
        gram_block_bytes=2**11,
    )


@pytest.mark.parametrize("n_jobs", [1, 2, None])
def test_eight_fits_in_eight_threads_leave_the_threads_as_they_were(rng, n_jobs, small_blocks):
    X = rng.standard_normal((60, 6, 5))
    alone = TuckerClustering(3, random_state=0).fit(X).labels_
    start, found = threading.Barrier(8), []

    def fit(fails):
        start.wait(PATIENCE)
        for _ in range(3):
            if fails:
                with pytest.raises(ValueError, match="n_samples"):
                    TuckerClustering(100, n_jobs=n_jobs).fit(X)
            else:
                model = TuckerClustering(3, random_state=0, n_jobs=n_jobs)
                found.append(model.fit(X).labels_)

    threads = [threading.Thread(target=fit, args=(number % 4 == 3,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(found) == 18
    assert all(np.array_equal(labels, alone) for labels in found)
    assert blas_threads() == {2}


def test_what_is_called_on_its_own_is_limited_too(rng, monkeypatch):
    taken = []
    turn = _resources._Hold.turn
    monkeypatch.setattr(
        _resources._Hold, "turn", lambda hold, on: (taken.append(hold), turn(hold, on))
    )
    X = rng.standard_normal((30, 4))
    for call in (
        lambda: fit_labels("subspace", X, 2, rng=rng),
        lambda: kmeans(X, 2, rng=rng),
        lambda: decompose(X, 2),
    ):
        taken.clear()
        call()
        assert taken
        assert blas_threads() == {2}


def test_lazy_results_are_limited_where_they_are_computed(rng):
    da = pytest.importorskip("dask.array")
    from tuckermix.sources import as_blocks

    lazy = as_blocks(da.from_array(rng.standard_normal((8, 3)), chunks=(4, 3))).map(_count_threads)
    assert blas_threads() == {2}
    assert np.array_equal(lazy.compute(scheduler="threads"), np.ones((8, 1)))


def _count_threads(block):
    return np.full((block.shape[0], 1), max(blas_threads()), dtype=block.dtype)


def test_a_number_that_someone_else_sets_stays():
    @one_blas_thread
    def change():
        threadpool_limits(3, user_api="blas")
        one_blas_thread(lambda: None)()

    change()
    assert blas_threads() == {3}
    threadpool_limits(2, user_api="blas")


class FakeLibrary:
    """A library whose calls can be counted and interrupted."""

    internal_api, threading_layer = "openblas", "pthreads"

    def __init__(self, number):
        self.number, self.interrupt_at, self.calls = number, None, 0

    def _call(self):
        self.calls += 1
        if self.calls == self.interrupt_at:
            raise KeyboardInterrupt

    def get_num_threads(self):
        self._call()
        return self.number

    def set_num_threads(self, number):
        self._call()
        self.number = number
        self._call()


@pytest.mark.parametrize("layer", ["pthreads", "openmp"])
@pytest.mark.parametrize("interrupted", [0, 1])
def test_an_interrupt_at_any_place_leaves_the_threads_as_they_were(monkeypatch, layer, interrupted):
    places = 0
    for place in range(1, 100):
        libraries = [FakeLibrary(4), FakeLibrary(3)]
        monkeypatch.setattr(_resources, "_libraries", lambda found=libraries: found)
        for library in libraries:
            library.threading_layer = layer
        libraries[interrupted].interrupt_at = place
        try:
            one_blas_thread(lambda: None)()
        except KeyboardInterrupt:
            places += 1
        else:
            break
        assert [library.number for library in libraries] == [4, 3]
        assert not _resources._holds
        assert not _resources._before
    assert places >= 6  # read, set (before and after), read, set (before and after)


def is_free(lock):
    found = []

    def look():
        if lock.acquire(blocking=False):
            found.append(True)
            lock.release()

    thread = threading.Thread(target=look)
    thread.start()
    thread.join(PATIENCE)
    return bool(found)


@pytest.mark.parametrize("layer", ["pthreads", "openmp"])
def test_ctrl_c_wherever_python_handles_it_leaves_nothing_behind(monkeypatch, layer):
    places = 0
    for place in range(1, 1000):
        libraries = [FakeLibrary(4), FakeLibrary(3)]
        monkeypatch.setattr(_resources, "_libraries", lambda found=libraries: found)
        for library in libraries:
            library.threading_layer = layer
        nested = one_blas_thread(one_blas_thread(lambda: None))
        strikes = Interrupts(_resources.__file__, place)
        cut = strikes.run(nested)
        state = f"at place {place} of {places}"
        assert [library.number for library in libraries] == [4, 3], state
        assert is_free(_resources._lock), state
        assert not _resources._holds, state
        assert not _resources._before, state
        if strikes.seen < place:
            break
        assert cut, state
        places += 1
    assert places > 50


def test_ctrl_c_again_and_again_waits_until_threads_are_given_back(monkeypatch):
    libraries = [FakeLibrary(4), FakeLibrary(3)]
    monkeypatch.setattr(_resources, "_libraries", lambda: libraries)
    strikes = iter(range(5))

    def impatient(number):
        for strike in strikes:
            raise KeyboardInterrupt(strike)
        libraries[0].number = number

    @one_blas_thread
    def work():
        libraries[0].set_num_threads = impatient

    with pytest.raises(KeyboardInterrupt, match="4"):  # the last, when all is done
        work()
    assert [library.number for library in libraries] == [4, 3]
    assert is_free(_resources._lock)


def test_interrupts_are_found_where_a_block_would_leave_the_lock(monkeypatch):
    # The instrument itself: a step that lets go of nothing when it is cut is noticed.
    def careless():
        _resources._lock.acquire()
        _resources._Hold()
        _resources._lock.release()

    places = [place for place in range(1, 9) if _cut_short(careless, place)]
    assert places


def _cut_short(careless, place):
    Interrupts(__file__, place).run(careless)
    free = is_free(_resources._lock)
    with suppress(RuntimeError):
        _resources._lock.release()
    return not free


def test_a_library_that_counts_for_each_thread_is_limited_in_each(monkeypatch):
    class OwnNumbers(FakeLibrary):
        threading_layer = "openmp"
        numbers = threading.local()

        @property
        def number(self):
            return getattr(self.numbers, "value", 5)

        @number.setter
        def number(self, value):
            self.numbers.value = value

    library = OwnNumbers(5)
    monkeypatch.setattr(_resources, "_libraries", lambda: [library])
    seen = []

    @one_blas_thread
    def inner():
        seen.append(library.number)

    def worker():
        inner()
        seen.append(library.number)

    @one_blas_thread
    def outer():
        thread = threading.Thread(target=worker)
        thread.start()
        thread.join(PATIENCE)
        inner()
        return library.number

    assert outer() == 1
    assert seen == [1, 5, 1]
    assert library.number == 5


FORK = """
import os, sys, threading
from threadpoolctl import threadpool_info, threadpool_limits
import numpy, scipy.linalg
from tuckermix._resources import one_blas_thread

threadpool_limits(2, user_api="blas")
started, may_end = threading.Event(), threading.Event()

def numbers():
    return {entry["num_threads"] for entry in threadpool_info() if entry["user_api"] == "blas"}

@one_blas_thread
def other():
    started.set()
    may_end.wait(60)

def child_says():
    pid = os.fork()
    if pid == 0:
        inside = one_blas_thread(numbers)()
        after = numbers()
        numpy.ones((200, 200)) @ numpy.ones((200, 200))
        os._exit(10 * max(inside) + max(after))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

thread = threading.Thread(target=other)
thread.start()
started.wait(60)
print(child_says(), one_blas_thread(child_says)(), max(numbers()))
may_end.set()
thread.join()
print(max(numbers()))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork on Windows")
def test_a_forked_child_keeps_its_own_limits_only():
    # While another thread of the parent works: a child forked beside it is not limited, one forked
    # from within a limited function is, and the parent still is.
    command = [sys.executable, "-W", "ignore", "-c", FORK]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE)
    assert done.stderr == ""
    assert done.stdout.split() == ["12", "11", "1", "2"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("options", [{}, {"assign_labels": "subspace"}])
def test_any_number_of_threads_gives_the_same_to_the_last_bit(seed, dtype, options, small_blocks):
    X = make_tensor_clusters(150, (7, 6), 4, noise=0.3, random_state=seed).X.astype(dtype)

    def fitted(n_jobs):
        model = TuckerClustering(4, random_state=seed, n_jobs=n_jobs, **options).fit(X)
        found = [model.labels_, model.memberships_, model.centroids_, model.predict_proba(X)]
        return [model.cost_, model.gap_, model.score(X), *(part.tobytes() for part in found)]

    alone = fitted(1)
    for n_jobs in (2, 4):
        assert fitted(n_jobs) == alone


def test_features_neighbours_and_means_are_the_same_for_any_number(rng, small_blocks):
    images, rows = rng.random((90, 16, 16)), rng.standard_normal((300, 5))

    @one_blas_thread
    def all_of_them():
        means = kmeans(rows, 4, rng=np.random.default_rng(0))
        coefficients = Scattering(J=2).fit_transform(images)
        return [coefficients, *nearest_neighbors(rows, rows, 5), means.centers, means.labels]

    with joblib.parallel_config(n_jobs=1):
        alone = all_of_them()
    for n_jobs in (2, 4):
        with joblib.parallel_config(n_jobs=n_jobs):
            for one, other in zip(all_of_them(), alone, strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("step", [1, 3, 10, 50])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_gathered_rows_are_the_rows(xp, rng, step, n_jobs):
    values = rng.normal(size=(10, 2, 3))
    X = xp.asarray(values)
    parts = [slice(i, min(i + step, 10)) for i in range(0, 10, step)]
    with joblib.parallel_config(n_jobs=n_jobs):
        rows = gather_rows(lambda part: X[part, ...], parts, 10, X)
    np.testing.assert_array_equal(to_numpy(rows), values)


HOST = np.zeros(1)


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
@pytest.mark.parametrize("n_items", [0, 1, 2, 50])
def test_results_come_in_order(n_jobs, n_items):
    found, threads, running = [], set(), []

    def square(number):
        running.append(number)
        assert len(running) <= n_jobs
        threads.add(threading.current_thread())
        running.remove(number)
        return number**2

    def consume(result):
        assert len(found) == len(set(found))
        found.append(result)

    with joblib.parallel_config(n_jobs=n_jobs):
        in_threads(square, range(n_items), HOST, consume)
    assert found == [number**2 for number in range(n_items)]
    assert len(threads) <= max(1, n_jobs)


def test_several_items_are_in_work_at_once():
    meeting = threading.Barrier(3)
    with joblib.parallel_config(n_jobs=3):
        in_threads(lambda _: meeting.wait(PATIENCE), range(9), HOST)


def test_a_slow_item_holds_up_few_others():
    """Results wait for their turn in memory: no more of them than a few for each thread."""
    begun, may_end = [], threading.Event()

    def work(place):
        begun.append(place)
        if place == 0:
            assert may_end.wait(PATIENCE)
        elif len(begun) == 2 * _resources.AHEAD:  # with two threads, as many as there may be
            may_end.set()
        return place

    found = []
    with joblib.parallel_config(n_jobs=2):
        in_threads(work, range(40), HOST, found.append)
    assert found == list(range(40))


def test_arrays_with_threads_of_their_own_are_worked_on_one_by_one():
    strict = pytest.importorskip("array_api_strict")
    seen = []
    with joblib.parallel_config(n_jobs=4):
        in_threads(
            lambda _: seen.append(threading.current_thread()), range(5), strict.asarray([0.0])
        )
    assert set(seen) == {threading.current_thread()}


def test_what_is_nested_runs_in_its_own_thread():
    def inner(_):
        return threading.get_ident(), _resources._allowed.get(), blas_threads()

    @one_blas_thread
    def outer(_):
        found = [(threading.get_ident(), 1, {1})]
        one_blas_thread(in_threads, n_jobs=4)(inner, range(3), HOST, found.append)
        assert found[1:] == found[:1] * 3

    with joblib.parallel_config(n_jobs=4):
        in_threads(outer, range(8), HOST)


def test_an_outer_number_limits_inner_ones():
    def number(*_):
        return _resources._allowed.get()

    inner = one_blas_thread(number, n_jobs=4)
    assert inner() == 4
    assert one_blas_thread(lambda: (inner(), number()), n_jobs=3)() == (3, 3)
    assert number() is None
    model = TuckerClustering(n_jobs=2)
    assert one_blas_thread(number)(model) == 2
    # A column of a data frame by that name is no number of threads.
    pandas = pytest.importorskip("pandas")
    with joblib.parallel_config(n_jobs=5):
        assert one_blas_thread(number)(pandas.DataFrame({"n_jobs": [1, 2]})) == 5


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("where", ["work", "consume"])
def test_after_an_error_nothing_is_left_in_work(error, where):
    running, begun = [], []

    def work(place):
        begun.append(place)
        running.append(place)
        try:
            if where == "work" and place == 5:
                raise error("no")
            return place
        finally:
            running.remove(place)

    def consume(place):
        if where == "consume" and place == 5:
            raise error("no")

    with joblib.parallel_config(n_jobs=3), pytest.raises(error, match="no"):
        in_threads(work, range(1000), HOST, consume)
    assert not running
    assert len(begun) < 1000
    with joblib.parallel_config(n_jobs=3):  # and the threads serve the next
        in_threads(begun.append, range(5), HOST)


def test_the_handling_of_numerical_errors_is_that_of_the_caller():
    def divide():
        with joblib.parallel_config(n_jobs=2):
            in_threads(lambda zero: 1 / np.float64(zero), [0.0, 0.0], HOST)

    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        divide()
    with np.errstate(divide="ignore"):
        divide()


def test_the_number_of_threads_follows_the_conventions(monkeypatch):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 6)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert [count_threads(n) for n in (None, 1, 9, -1, -2, -9)] == [6, 1, 9, 6, 5, 1]
    for text, number in {"3": 3, "4,2": 4, "20": 6, "0": 6, "many": 6, "": 6}.items():
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        assert count_threads() == number
        assert count_threads(2) == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    with joblib.parallel_config(n_jobs=2):
        assert count_threads() == 2
    with joblib.parallel_config(n_jobs=-1):
        assert count_threads() == 6


def test_workers_of_joblib_take_what_is_theirs(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setattr(joblib, "cpu_count", lambda: 6)
    numbers = joblib.Parallel(n_jobs=2, backend="threading")(
        joblib.delayed(count_threads)() for _ in range(4)
    )
    assert numbers == [1] * 4
    # A process of joblib works in its main thread, and is told its share.
    with joblib.parallel_config(backend=ThreadingBackend(nesting_level=1)):
        assert count_threads() == 3
        monkeypatch.delenv("OMP_NUM_THREADS")
        assert count_threads() == 1


@pytest.mark.parametrize("n_jobs", [0, 1.5, "all", True])
def test_other_numbers_of_threads_are_refused(n_jobs):
    with pytest.raises(ValueError, match=r"n_jobs must be None or an integer other than 0\. Got"):
        TuckerClustering(3, n_jobs=n_jobs).fit(SAMPLES)


POOL = """
import atexit, os, sys, threading
import joblib, numpy
from tuckermix._resources import in_threads

def total(n_jobs=3):
    found = []
    with joblib.parallel_config(n_jobs=n_jobs):
        in_threads(lambda number: number + 1, range(20), numpy.zeros(1), found.append)
    return sum(found)

def pool():
    return [thread for thread in threading.enumerate() if thread.name.startswith("tuckermix")]

print(total(), len(pool()) <= 2, total(5), len(pool()) <= 4)
if hasattr(os, "fork"):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if not pool() and total() == 210 and pool() else 1)
    print(len(pool()), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), total())
else:
    print(0, 0, total())
atexit.register(lambda: print(total()))
"""


def test_the_pool_lives_through_growth_fork_and_exit():
    # Forking ends idle threads first; once the interpreter ends, no thread can be started.
    command = [sys.executable, "-W", "error", "-c", POOL]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE)
    assert done.stderr == ""
    assert done.stdout.split() == ["210", "True", "210", "True", "0", "0", "210", "210"]


SAMPLES = make_tensor_clusters(60, (4, 5), 3, random_state=0).X


class OutOfMemoryError(RuntimeError):
    """Named as PyTorch names it."""


SHORTAGES = [
    OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nMore lines."),
    MemoryError(),
    np._core._exceptions._ArrayMemoryError((10**6, 10**6), np.dtype(float)),
    RuntimeError("[enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: can't allocate memory"),
    RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes."),
]


def failing(error):
    def fail(*args, **options):
        raise error

    return fail


@pytest.mark.parametrize("error", SHORTAGES, ids=lambda error: type(error).__name__)
def test_every_library_is_understood(error, monkeypatch):
    monkeypatch.setattr(source, "_sketch", failing(error))
    for call in (TuckerClustering(3).fit, lambda X: decompose(X, 3)):
        with pytest.raises(
            MemoryError, match=r"Memory ran out.*X of shape \(60, 4, 5\).*\(1\) pass X in float32"
        ) as caught:
            call(SAMPLES)
        assert caught.value.__cause__ is error


@pytest.mark.torch
def test_the_error_of_pytorch_itself(monkeypatch):
    torch = pytest.importorskip("torch")
    error = torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
    monkeypatch.setattr(source, "_sketch", failing(error))
    with pytest.raises(
        MemoryError, match=r"allocate 2.00 GiB\) with X .* GiB in torch.float32, on"
    ):
        decompose(torch.asarray(SAMPLES, dtype=torch.float32), 3)


def test_a_failed_fit_leaves_the_old_model(monkeypatch):
    model = TuckerClustering(3, random_state=0).fit(SAMPLES)
    labels = model.labels_
    monkeypatch.setattr(source, "_sketch", failing(SHORTAGES[0]))
    with pytest.raises(MemoryError, match="CUDA out of memory"):
        model.fit(SAMPLES[:, :2])
    np.testing.assert_array_equal(model.predict(SAMPLES), labels)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "transform", "score"])
def test_methods_after_fit(method, monkeypatch):
    model = TuckerClustering(3, random_state=0).fit(SAMPLES)
    monkeypatch.setattr("tuckermix.model.multi_mode_dot", failing(SHORTAGES[0]))
    with pytest.raises(MemoryError, match="a memory map or a Dask array"):
        getattr(model, method)(SAMPLES)
    with pytest.raises(MemoryError, match="a memory map or a Dask array"):
        model.inverse_transform(model.memberships_)


def test_arrays_on_a_device_may_stay_on_the_host(monkeypatch):
    strict = pytest.importorskip("array_api_strict")
    monkeypatch.setattr(source, "_sketch", failing(SHORTAGES[0]))
    with pytest.raises(MemoryError, match=r"on .*CPU_DEVICE.*leave the samples on the host in a"):
        decompose(strict.asarray(SAMPLES), 3)


def test_chunks_can_be_smaller(monkeypatch):
    da = pytest.importorskip("dask.array")
    monkeypatch.setattr(source, "_sketch", failing(SHORTAGES[0]))
    with pytest.raises(MemoryError, match=r"while a chunk was worked on.*smaller chunks"):
        TuckerClustering(3).fit(da.from_array(SAMPLES, chunks=(20, 4, 5)))


def test_other_errors_pass_through():
    for error in (RuntimeError("something else"), MemoryError("explained already")):
        with pytest.raises(type(error), match=str(error)) as caught:
            _resources.explain_shortage(failing(error))(SAMPLES)
        assert caught.value is error


def test_without_an_array_the_advice_is_general():
    assert "Memory ran out. Either (1)" in _resources._advice(None, MemoryError())
