"""Dask arrays: the same answer as in memory, lazily, in few passes."""

import numpy as np
import pytest

from tuckermix import TuckerClustering, decompose
from tuckermix.datasets import make_tensor_clusters
from tuckermix.decomposition import exact
from tuckermix.decomposition.exact import solve_exact
from tuckermix.decomposition.start import start_factors
from tuckermix.sources import Source, as_source

da = pytest.importorskip("dask.array")
from tuckermix.sources.dask import DaskBlocks, check_dask  # noqa: E402  (needs Dask)

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


@pytest.mark.parametrize("chunking", CHUNKINGS)
@pytest.mark.parametrize("shape", [(5, 6), (3, 4, 5)], ids=["3-way", "4-way"])
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
    samples = DaskBlocks(lazy(X, "even"))
    source = Source(samples)
    factors = start_factors(source, (3, 3), "hosvd", np.random.default_rng(0))
    before = samples.n_passes
    assert before == 2  # the norm and mean; the Gram matrices for the start
    fit = solve_exact(source, factors, 4, max_iter=20, tol=1e-10)
    assert samples.n_passes - before == fit.n_iter + 2  # one before the sweeps, one after
    assert computes == []  # every pass was a single compute of a small result


def test_many_directions_are_found_by_narrow_passes(monkeypatch):
    X = np.random.default_rng(0).standard_normal((60, 12)) * np.logspace(1, -1, 12)
    monkeypatch.setattr(exact, "DENSE_SIDE", 5)
    assert decompose(da.from_array(X, chunks=(25, 12)), 3, 12).cost == pytest.approx(
        decompose(X, 3, 12).cost, rel=1e-8
    )


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

    class Lost:
        def compute(self):
            raise type(name, (Exception,), {})("gone")

    with pytest.raises(error, match=message):
        _run(Lost())
