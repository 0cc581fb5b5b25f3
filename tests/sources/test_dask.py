"""Dask arrays: the same answer as in memory, lazily, in few passes."""

import collections
import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from tuckermix import TuckerClustering, datasets, decompose
from tuckermix._validation import check_dask
from tuckermix.datasets import make_tensor_clusters
from tuckermix.decomposition.exact import solve_exact
from tuckermix.decomposition.fit import start_factors
from tuckermix.decomposition.result import Start
from tuckermix.sources import Source, as_source

da = pytest.importorskip("dask.array")
import dask  # noqa: E402  (needs Dask)
from dask.callbacks import Callback  # noqa: E402
from tests.cases import each  # noqa: E402

from tuckermix.sources.dask import DaskBlocks  # noqa: E402  (needs Dask)

CHUNKINGS = {
    "even": (50, -1),
    "uneven": ((7, 90, 1, 22), -1),
    "one chunk": (-1, -1),
    "one sample each": (1, -1),
    "cut features": (50, 2),
}


def planted(shape=(5, 6)):
    return make_tensor_clusters(n_samples=120, shape=shape, n_clusters=3, random_state=0)


def lazy(X, chunking):
    samples, features = CHUNKINGS[chunking]
    return da.from_array(X, chunks=(samples, *(features for _ in X.shape[1:])))


@each("chunking", CHUNKINGS)
@each("shape", [(5, 6), (3, 4, 5)])
def test_cost_and_labels_are_those_in_memory(chunking, shape):
    X = planted(shape).X
    D = lazy(X, chunking)
    fit, lazy_fit = decompose(X, 4, 3), decompose(D, 4, 3)
    assert lazy_fit.cost == pytest.approx(fit.cost, rel=1e-8)
    np.testing.assert_allclose(lazy_fit.Q.compute(), fit.Q, atol=1e-8)
    model = TuckerClustering(3, random_state=0).fit(X)
    lazy_model = TuckerClustering(3, random_state=0).fit(D)
    np.testing.assert_array_equal(lazy_model.labels_.compute(), model.labels_)
    np.testing.assert_allclose(lazy_model.memberships_.compute(), model.memberships_, atol=1e-8)
    np.testing.assert_allclose(lazy_model.centroids_, model.centroids_, atol=1e-8)
    assert lazy_model.gap_ < 1e-10


def test_many_samples_start_from_the_same_part_as_in_memory(limits):
    limits(landmarks=300)
    X = make_tensor_clusters(17_000, (3, 4), 3, noise=0.3, random_state=0).X
    model = TuckerClustering(3, random_state=0).fit(X)
    lazy_model = TuckerClustering(3, random_state=0).fit(da.from_array(X, chunks=(4000, 3, 4)))
    assert lazy_model.cost_ == pytest.approx(model.cost_, rel=1e-8)
    assert lazy_model.n_iter_ == model.n_iter_
    np.testing.assert_array_equal(lazy_model.labels_.compute(), model.labels_)


def test_big_arrays_stay_lazy_with_the_chunks_of_x():
    X = planted().X
    D = lazy(X, "uneven")
    model = TuckerClustering(3, random_state=0).fit(D)
    outputs = {
        "labels": model.labels_,
        "memberships": model.memberships_,
        "predict": model.predict(D),
        "soft": model.predict_proba(D),
        "transform": model.transform(D),
        "rebuilt": model.inverse_transform(model.memberships_),
    }
    for name, value in outputs.items():
        assert isinstance(value, da.Array), name
        assert value.chunks[0] == D.chunks[0], name
    np.testing.assert_array_equal(model.predict(D).compute(), model.predict(X))
    assert model.score(D) == pytest.approx(model.score(X), rel=1e-9)
    for small in (model.core_, model.components_, model.centroids_):
        assert isinstance(small, np.ndarray)


def test_a_sweep_is_one_pass_and_a_pass_is_one_compute(monkeypatch):
    X = planted().X
    computes = []
    original = da.Array.compute

    def counted(self, *args, **options):
        computes.append(self.name)
        return original(self, *args, **options)

    monkeypatch.setattr(da.Array, "compute", counted)
    source = Source(lazy(X, "even"))
    samples = source._samples
    factors = start_factors(source, (3, 3), "hosvd", np.random.default_rng(0))
    before = samples.n_passes
    assert before == 2  # the norm and mean; the Gram matrices for the start
    start = Start(factors, np.random.default_rng(0), max_iter=20, tol=1e-10)
    fit = solve_exact(source, start, 4)
    assert samples.n_passes - before == fit.n_iter + 2  # one before the sweeps, one after
    assert computes == []  # every pass was a single compute of a small result


class CountedReads:
    """An array on some storage that counts how often each part of it is read."""

    def __init__(self, X):
        self.X, self.shape, self.dtype, self.ndim = X, X.shape, X.dtype, X.ndim
        self.reads = collections.Counter()

    def __getitem__(self, index):
        self.reads[index[0].start] += 1
        return self.X[index]

    def chunked(self, size):
        meta = np.empty((0,) * self.ndim, dtype=self.dtype)
        chunks = (size, *(-1 for _ in self.shape[1:]))
        return da.from_array(self, chunks=chunks, asarray=False, meta=meta)


class CountedComputes(Callback):
    """Count the rounds with the scheduler and the names of the tasks in them."""

    def __init__(self):
        super().__init__(start=self._count)
        self.n_rounds = 0
        self.names = set()

    def _count(self, graph):
        self.n_rounds += 1
        self.names |= {dask.utils.key_split(key) for key in graph}


PASSES_BESIDE_SWEEPS = 10
"""Norm and mean, Gram matrices, first directions, last directions, certificate; anchors of the
simplex, its size, its column space; landmarks; cluster means."""


@pytest.mark.parametrize("tol", [1e-2, 1e-6, 1e-12])
def test_a_whole_fit_reads_each_chunk_once_a_pass(tol):
    storage = CountedReads(make_tensor_clusters(240, (9, 8), 3, noise=0.5, random_state=0).X)
    D = storage.chunked(50)
    with CountedComputes() as computes:
        model = TuckerClustering(3, ranks=2, tol=tol, random_state=0).fit(D)
    n_passes = model.n_iter_ + PASSES_BESIDE_SWEEPS
    assert computes.n_rounds == n_passes
    assert dict(storage.reads) == dict.fromkeys((0, 50, 100, 150, 200), n_passes)
    # What Dask's dashboard shows tells what is being done.
    assert {"tuckermix-moments", "tuckermix-sketch", "tuckermix-cluster-sums"} <= computes.names


def test_outputs_that_are_computed_together_read_each_chunk_once():
    storage = CountedReads(planted().X)
    D = storage.chunked(50)
    model = TuckerClustering(3, random_state=0).fit(D)
    storage.reads.clear()
    dask.compute(model.labels_, model.memberships_, model.predict_proba(D))
    assert set(storage.reads.values()) == {1}


@pytest.mark.slow
def test_memory_does_not_grow_with_the_samples(limits):
    limits(landmarks=500)
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((3, 12, 12)).astype(np.float32)
    noise = 0.5 * rng.standard_normal((2000, 12, 12)).astype(np.float32)

    def generated(block_info=None):
        (start, stop), *_ = block_info[None]["array-location"]
        labels = np.arange(start, stop) % 3
        return centres[labels] + np.roll(noise, start // 7, axis=0)[: stop - start]

    peaks = []
    for n_chunks in (10, 10, 60):  # once more than needed: the first run imports
        D = da.map_blocks(
            generated,
            chunks=((2000,) * n_chunks, (12,), (12,)),
            dtype=np.float32,
            meta=np.empty((0, 0, 0), np.float32),
        )
        with dask.config.set(scheduler="synchronous"):
            tracemalloc.start()
            model = TuckerClustering(3, ranks=4, random_state=0).fit(D)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    # What is kept of a chunk is its tasks; five sixths of the samples have come on top.
    assert peaks[2] - peaks[1] < 0.04 * D.nbytes
    assert peaks[-1] < D.nbytes / 4
    assert sorted(np.bincount(model.labels_.compute())) == [40000, 40000, 40000]


def opened(kind, X, folder):
    """Store samples in a file of some kind and open it without reading it."""
    path = folder / "samples"
    if kind == "zarr":
        pytest.importorskip("zarr")
        da.from_array(X, chunks=(50, 5, 6)).to_zarr(str(path))
        return da.from_zarr(str(path))
    if kind == "hdf5":
        h5py = pytest.importorskip("h5py")
        file = h5py.File(path, "w")
        return da.from_array(file.create_dataset("X", data=X, chunks=(30, 5, 6)))
    np.save(path.with_suffix(".npy"), X)
    if kind == "read":
        return datasets.read(path.with_suffix(".npy"), chunks=35).X
    return np.load(path.with_suffix(".npy"), mmap_mode="r")


@pytest.mark.parametrize("kind", ["zarr", "hdf5", "read", "memmap"])
def test_samples_on_disk(kind, tmp_path):
    X = planted().X
    stored = opened(kind, X, tmp_path)
    model, expected = (TuckerClustering(3, random_state=0).fit(data) for data in (stored, X))
    np.testing.assert_array_equal(np.asarray(model.labels_), expected.labels_)
    assert model.cost_ == pytest.approx(expected.cost_, rel=1e-9)
    np.testing.assert_array_equal(np.asarray(model.predict(stored)), expected.labels_)


def test_a_memory_map_is_never_copied(tmp_path, limits):
    limits(landmarks=500)
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((2, 20, 20))
    X = (centres[np.arange(20000) % 2] + rng.standard_normal((20000, 20, 20))).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = TuckerClustering(2, ranks=3, random_state=0)
    model.fit(mapped)  # the first run imports
    tracemalloc.start()
    model.fit(mapped)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Mapped pages are not traced. What is left are rows of small size and a few thousand samples.
    assert peak < 0.5 * X.nbytes
    assert sorted(np.bincount(model.labels_)) == [10000, 10000]


def test_many_directions_are_found_by_narrow_passes(limits):
    X = np.random.default_rng(0).standard_normal((60, 12)) * np.logspace(1, -1, 12)
    limits(dense_side=5)
    assert decompose(da.from_array(X, chunks=(25, 12)), 3, 12).cost == pytest.approx(
        decompose(X, 3, 12).cost, rel=1e-8
    )


def test_map_cuts_further_rows_as_the_samples(seed):
    X = np.random.default_rng(seed).standard_normal((20, 3, 4))
    samples = DaskBlocks(da.from_array(X, chunks=(7, 2, 4)))
    weights = np.arange(40.0).reshape(20, 2)
    for rows in (weights, da.from_array(weights, chunks=(3, 1))):
        found = samples.map(lambda block, part: block[:, 0, :2] * part, rows)
        assert found.chunks[0] == samples._X.chunks[0]
        np.testing.assert_allclose(found.compute(), X[:, 0, :2] * weights)


def test_contract_and_take(seed):
    X = np.random.default_rng(seed).standard_normal((40, 3, 4))
    Q = np.random.default_rng(seed + 1).standard_normal((40, 2))
    source = as_source(da.from_array(X, chunks=(15, 3, 4)))
    expected = np.einsum("mij,mq->qij", X, Q)
    np.testing.assert_allclose(source.contract(Q), expected, atol=1e-12)
    lazy_Q = da.from_array(Q, chunks=(7, 2))
    np.testing.assert_allclose(source.contract(lazy_Q), expected, atol=1e-12)
    assert source.take(np.array([3, 20])).n_samples == 2


def test_integers_become_float64_and_float32_stays():
    X = (planted().X * 10).astype(np.int32)
    model = TuckerClustering(3, random_state=0).fit(da.from_array(X, chunks=(30, 5, 6)))
    assert model.core_.dtype == np.float64
    single = da.from_array(planted().X.astype(np.float32), chunks=(30, 5, 6))
    assert TuckerClustering(3, random_state=0).fit(single).memberships_.dtype == np.float32


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: da.ones(5), ValueError, "at least 2 axes"),
        (lambda: da.ones((5, 2), dtype=complex), ValueError, "Complex data not supported"),
        (lambda: da.ones((5, 2), dtype="float16"), TypeError, r"astype\('float32'\)"),
        (lambda: da.ones((5, 2))[da.ones(5) > 0], ValueError, r"compute_chunk_sizes\(\)"),
        (lambda: da.from_array(np.array([["a"]])), ValueError, "must hold real numbers"),
    ],
)
def test_unsuitable_arrays_come_with_a_remedy(make, error, message):
    with pytest.raises(error, match=message):
        check_dask(make())


def test_unknown_sizes_are_refused_by_every_entry():
    D = da.ones((9, 4, 3))[:, da.ones(4) > 0]
    for call in (TuckerClustering(3).fit, lambda X: decompose(X, 3)):
        with pytest.raises(ValueError, match="unknown chunk sizes"):
            call(D)


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "trust-region"},
        {"solver": "joint", "max_iter": 30},
        {"init": "random", "n_init": 2},
        {"init": "hosvd-samples"},
        {"assign_labels": "subspace"},
        {"assign_labels": "memberships"},
        {"assign_labels": "argmax"},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_option_of_the_estimator(options):
    if options.get("solver") == "joint":
        pytest.importorskip("pymanopt")
    X = planted().X
    model = TuckerClustering(3, random_state=0, **options).fit(X)
    lazy_model = TuckerClustering(3, random_state=0, **options).fit(lazy(X, "uneven"))
    assert lazy_model.cost_ == pytest.approx(model.cost_, rel=1e-8)
    np.testing.assert_array_equal(lazy_model.labels_.compute(), model.labels_)


def test_values_that_are_not_finite_are_found_when_read():
    X = planted().X.copy()
    X[60, 1, 1] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity"):
        TuckerClustering(3).fit(lazy(X, "even"))


def test_wrong_sample_shape_at_predict():
    model = TuckerClustering(3, random_state=0).fit(lazy(planted().X, "even"))
    with pytest.raises(ValueError, match=r"per-sample shape \(4, 6\)"):
        model.predict(da.ones((5, 4, 6)))


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("CommClosedError", RuntimeError, "scheduler went away"),
        ("KilledWorker", MemoryError, "smaller chunks"),
    ],
)
def test_a_lost_cluster_is_named(name, error, message):
    from tuckermix.sources.dask import _run

    @dask.delayed
    def lost():
        raise type(name, (Exception,), {})("gone")

    with pytest.raises(error, match=message):
        _run([lost()])


TEN_TIMES = """
import resource, sys
import dask, dask.array as da, numpy as np
from tuckermix import TuckerClustering
from tuckermix.metrics import clustering_accuracy

path, room = sys.argv[1], int(sys.argv[2])
X = da.from_zarr(path)
assert X.nbytes >= 10 * room
subset = np.asarray(X[:6000])

def fit(data):
    return TuckerClustering(3, ranks=4, assign_labels="subspace", random_state=0).fit(data)

with dask.config.set(scheduler="synchronous"):
    expected = fit(subset).labels_
    fit(X[:20000]).labels_[:6000].compute()  # libraries take what they need
    with open("/proc/self/status") as status:
        taken = next(int(line.split()[1]) for line in status if line.startswith("VmData")) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (taken + room, taken + room))
    try:
        np.ones(2 * room, dtype=np.uint8)
    except MemoryError:
        pass
    else:
        sys.exit("the limit does not hold")
    found = fit(X).labels_[:6000].compute()
print(clustering_accuracy(expected, found))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of memory are Linux's")
def test_data_ten_times_the_memory_that_is_left(tmp_path):
    zarr = pytest.importorskip("zarr")
    room, chunk = 24 * 2**20, 2**13
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((3, 8, 8)).astype(np.float32)
    noise = 0.3 * rng.standard_normal((chunk, 8, 8), dtype=np.float32)
    n_chunks = -(-10 * room // noise.nbytes)
    shape = (n_chunks * chunk, 8, 8)
    path = str(tmp_path / "large.zarr")
    store = zarr.create_array(
        path, shape=shape, chunks=(chunk, 8, 8), dtype="float32", compressors=None
    )
    for start in range(0, shape[0], chunk):
        labels = rng.integers(3, size=chunk)
        store[start : start + chunk] = centres[labels] + np.roll(noise, start // 7, axis=0)
    done = subprocess.run(
        [sys.executable, "-c", TEN_TIMES, path, str(room)],
        capture_output=True,
        text=True,
        env={**os.environ, "MALLOC_ARENA_MAX": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert float(done.stdout) == 1.0
