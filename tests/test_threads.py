"""One BLAS thread inside, as many as before outside."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from tuckermix import TuckerClustering
from tuckermix._threads import one_blas_thread


def blas_threads():
    return {entry["num_threads"] for entry in threadpool_info() if entry["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        yield


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


def test_a_fit_leaves_the_threads_as_they_were():
    before = blas_threads()
    X = np.random.default_rng(0).standard_normal((40, 5, 4))
    model = TuckerClustering(3, random_state=0).fit(X)
    model.predict(X)
    assert blas_threads() == before
