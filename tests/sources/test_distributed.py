"""On a cluster: the same answer as in memory, also when workers die, and clear errors otherwise."""

import logging
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tuckermix import TuckerClustering
from tuckermix.datasets import make_tensor_clusters
from tuckermix.sources.dask import keep

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
import dask  # noqa: E402  (needs Dask)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    # Workers that die leave sockets and processes to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SETTINGS = {
    "distributed.scheduler.allowed-failures": 1,  # a second death of the same task is final
    "distributed.comm.retry.count": 0,
    "distributed.comm.timeouts.connect": "5s",
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.pause": False,
    "distributed.admin.system-monitor.disk": False,
}

MEMORY = 700 * 2**20
"""Memory of a worker: several times what the interpreter with its libraries takes."""


@pytest.fixture
def client():
    """Start two worker processes, each watched by a nanny, and connect to them."""
    with (
        dask.config.set(SETTINGS),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            memory_limit=MEMORY,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def planted():
    return make_tensor_clusters(n_samples=300, shape=(5, 6), n_clusters=3, random_state=0).X


def lazy(X, accident=None):
    """Cut samples into chunks; `accident` is called in the worker with each chunk it reads."""
    D = da.from_array(X, chunks=(40, 5, 6))
    if accident is None:
        return D

    def read(chunk):
        accident()
        return chunk

    return D.map_blocks(read, dtype=X.dtype, meta=X[:0])


def fit(X):
    return TuckerClustering(3, random_state=0).fit(X)


def assert_same(model, other):
    assert model.cost_ == pytest.approx(other.cost_, rel=1e-10)
    np.testing.assert_array_equal(np.asarray(model.labels_), other.labels_)
    np.testing.assert_allclose(np.asarray(model.memberships_), other.memberships_, atol=1e-8)
    np.testing.assert_allclose(model.centroids_, other.centroids_, atol=1e-8)


class AfterFirstSweep(logging.Handler):
    """Put a file where the workers find it as soon as the first sweep is reported."""

    def __init__(self, path):
        super().__init__()
        self.path = path
        self.armed = False

    def emit(self, record):
        if not self.armed and record.getMessage().startswith("sweep"):
            self.armed = True
            self.path.touch()

    def __enter__(self):
        logger = logging.getLogger("tuckermix")
        self.level_before = logger.level
        logger.addHandler(self)
        logger.setLevel(logging.INFO)
        return self

    def __exit__(self, *exception):
        logger = logging.getLogger("tuckermix")
        logger.removeHandler(self)
        logger.setLevel(self.level_before)


def once(path, accident):
    """Return a function that has an accident if it is the first to take the file away."""
    name = str(path)

    def maybe():
        try:
            os.remove(name)
        except FileNotFoundError:
            return
        accident()

    return maybe


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def fill_memory():
    """Take memory until the nanny ends the process, as it does near the limit."""
    hoard = []
    for _ in range(600):
        if len(hoard) < 12:
            hoard.append(np.ones(64 * 2**17))  # 64 MiB, touched
        time.sleep(0.05)


def test_results_on_a_cluster_are_those_in_memory(client):
    X = planted()
    model = fit(lazy(X))
    assert_same(model, fit(X))
    assert model.score(lazy(X)) == pytest.approx(fit(X).score(X), rel=1e-9)


def test_rows_are_kept_only_where_they_fit_beside_the_work_of_workers(client):
    small, large = (da.zeros((n, 2**20), chunks=(1, -1)) for n in (4, 100))
    assert isinstance(next(iter(keep(small).dask.values())), distributed.Future)
    assert keep(large) is large


@pytest.mark.parametrize("accident", [die, fill_memory], ids=["killed", "out of memory"])
def test_a_worker_that_dies_in_the_middle_changes_nothing(client, tmp_path, accident):
    # Functions of test modules exist in this process only: send them by value.
    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    X = planted()
    before = set(client.scheduler_info(n_workers=-1)["workers"])
    with AfterFirstSweep(tmp_path / "accident") as watch:
        model = fit(lazy(X, once(watch.path, accident)))
    assert watch.armed
    assert not watch.path.exists()  # it did happen
    assert set(client.scheduler_info(n_workers=-1)["workers"]) != before
    assert_same(model, fit(X))


def test_a_chunk_that_never_fits_gives_advice(client):
    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with pytest.raises(MemoryError, match=r"smaller chunks along the samples"):
        fit(lazy(planted(), fill_memory))


CLUSTER = """
import asyncio, sys
from distributed import Scheduler, Worker

async def serve():
    async with Scheduler(port=0, dashboard_address=None) as scheduler:
        async with Worker(scheduler.address, nthreads=1):
            print(scheduler.address, flush=True)
            await asyncio.sleep(100)

asyncio.run(serve())
"""


def test_a_scheduler_that_disappears_is_named(tmp_path):
    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    server = subprocess.Popen([sys.executable, "-c", CLUSTER], stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().strip()
        with (
            dask.config.set(SETTINGS),
            distributed.Client(address, timeout=5),
            AfterFirstSweep(tmp_path / "accident") as watch,
        ):
            model = TuckerClustering(3, random_state=0)
            # Scheduler and worker share the process that kills itself.
            with pytest.raises(RuntimeError, match=r"scheduler went away.*connect a new Client"):
                model.fit(lazy(planted(), once(watch.path, die)))
            assert not hasattr(model, "labels_")
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
