"""Threads: the limit holds whatever overlaps or fails, and any number of them gives the same."""

import subprocess
import sys
import threading
from contextlib import suppress

import joblib
import numpy as np
import pytest
from joblib.parallel import ThreadingBackend
from tests.cases import each
from threadpoolctl import threadpool_info, threadpool_limits

from tuckermix import TuckerClustering, _threads
from tuckermix._array_api import to_numpy
from tuckermix._threads import count_threads, gather_rows, in_threads, one_blas_thread
from tuckermix.datasets import make_tensor_clusters
from tuckermix.features import Scattering
from tuckermix.numerics.points import kmeans, nearest_neighbors
from tuckermix.sources import SpanSettings

PATIENCE = 60  # seconds after which a test that hangs fails
SAMPLES = make_tensor_clusters(60, (4, 5), 3, random_state=0).X


def blas_threads():
    return {entry["num_threads"] for entry in threadpool_info() if entry["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        yield
        assert blas_threads() == {2}


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


@each("error", [None, RuntimeError(), KeyboardInterrupt()])
@each("first_out", [0, 1])
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


@each("n_jobs", [1, 2, 4])
@each("n_items", [0, 1, 2, 50])
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
        return threading.get_ident(), _threads._allowed.get(), blas_threads()

    @one_blas_thread
    def outer(_):
        found = [(threading.get_ident(), 1, {1})]
        one_blas_thread(in_threads, n_jobs=4)(inner, range(3), HOST, found.append)
        assert found[1:] == found[:1] * 3

    with joblib.parallel_config(n_jobs=4):
        in_threads(outer, range(8), HOST)


def test_an_outer_number_limits_inner_ones():
    def number(*_):
        return _threads._allowed.get()

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
from tuckermix._threads import in_threads

def total(n_jobs=3):
    found = []
    with joblib.parallel_config(n_jobs=n_jobs):
        in_threads(lambda number: number + 1, range(20), numpy.zeros(1), found.append)
    return sum(found)

def pool():
    return [thread for thread in threading.enumerate() if thread.name.startswith("tuckermix")]

print(total(), len(pool()) <= 3, total(5), len(pool()) <= 8)
if hasattr(os, "fork"):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if not pool() and total() == 210 and pool() else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), total())
else:
    print(0, total())
atexit.register(lambda: print(total()))
"""


def test_the_pool_lives_through_growth_fork_and_exit():
    # A child has none of the threads; once the interpreter ends, none can be started.
    command = [sys.executable, "-W", "error", "-c", POOL]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE)
    assert done.stderr == ""
    assert done.stdout.split() == ["210", "True", "210", "True", "0", "210", "210"]


def test_settings_reach_the_threads():
    found = []
    with joblib.parallel_config(n_jobs=2), SpanSettings(width=7).use():
        in_threads(lambda _: SpanSettings.current().width, range(4), HOST, found.append)
    assert found == [7] * 4
    assert SpanSettings.current() == SpanSettings()
