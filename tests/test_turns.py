"""Fits in several threads: few at a time, none waits for ever, nothing is left behind."""

import threading
import time

import numpy as np
import pytest

from tuckermix import TuckerClustering, _turns
from tuckermix._resources import in_threads
from tuckermix._turns import in_turn
from tuckermix.datasets import make_tensor_clusters


class Waiting:
    """An estimator whose fits say when they begin, and end when they are told to."""

    def __init__(self):
        self.begun, self.may_end = threading.Semaphore(0), threading.Event()

    @in_turn
    def fit(self, X):
        self.begun.release()
        assert self.may_end.wait(60)
        return self

    def start(self, X=np.ones(1), count=1):  # noqa: B008  (nobody writes to it)
        threads = [threading.Thread(target=self.fit, args=(X,)) for _ in range(count)]
        for thread in threads:
            thread.start()
        return threads

    def end(self, threads):
        self.may_end.set()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        assert not _turns._fits
        assert not _turns._waiting


@pytest.mark.parametrize(("n_processors", "expected"), [(1, 1), (2, 2), (64, 4)])
def test_as_many_fits_run_at_the_same_time_as_there_are_processors(
    n_processors, expected, monkeypatch
):
    monkeypatch.setattr(_turns.joblib, "cpu_count", lambda: n_processors)
    fits, threads = Waiting(), []
    for _ in range(expected):  # one after the other: two that come at once may both begin
        threads += fits.start()
        assert fits.begun.acquire(timeout=60)
    threads += fits.start(count=3)
    assert not fits.begun.acquire(timeout=0.1), "too many"
    fits.end(threads)


def test_fits_that_would_wait_for_ever_begin_after_a_while(monkeypatch):
    monkeypatch.setattr(_turns, "TURN_PATIENCE", 0.02)
    monkeypatch.setattr(_turns.joblib, "cpu_count", lambda: 1)
    monkeypatch.setattr(_turns, "TURN_PAUSE", 0.02)
    fits, threads = Waiting(), []
    for _ in range(2):
        threads += fits.start()
        assert fits.begun.acquire(timeout=60)
    fits.end(threads)


def test_a_fit_that_waits_begins_when_another_ends(monkeypatch):
    monkeypatch.setattr(_turns, "TURN_PAUSE", 60.0)
    monkeypatch.setattr(_turns.joblib, "cpu_count", lambda: 1)
    first, second = Waiting(), Waiting()
    threads = first.start()
    assert first.begun.acquire(timeout=60)
    threads += second.start()
    assert not second.begun.acquire(timeout=0.05)
    first.may_end.set()
    assert second.begun.acquire(timeout=30), "waits in spite of that"
    second.end(threads)


def test_nested_fits_called_back_ones_and_others_than_numpy_do_not_wait(monkeypatch):
    monkeypatch.setattr(_turns.joblib, "cpu_count", lambda: 1)
    first = Waiting()
    threads = first.start()
    assert first.begun.acquire(timeout=60)
    watched, other = Waiting(), Waiting()
    watched._skl_callbacks = []
    threads += watched.start() + other.start([1.0])
    for fits in (watched, other):
        assert fits.begun.acquire(timeout=60)
        fits.may_end.set()
    first.end(threads)

    nested = []

    class Outer:
        @in_turn
        def fit(self, X):
            in_threads(lambda seed: nested.append(Outer.inner(self, X)), [0, 1], X)

        @in_turn
        def inner(self, X):
            return len(_turns._fits)

    Outer().fit(np.ones(1))
    assert nested == [1, 1]
    assert not _turns._fits


def test_a_turn_that_was_left_behind_is_taken_back(monkeypatch):
    monkeypatch.setattr(_turns.joblib, "cpu_count", lambda: 1)
    dead = threading.Thread(target=int)
    dead.start()
    dead.join()
    monkeypatch.setitem(_turns._fits, "of a dead thread", dead)
    monkeypatch.setitem(_turns._fits, "of this thread", threading.current_thread())
    began = time.monotonic()
    TuckerClustering(2, random_state=0).fit(make_tensor_clusters(n_samples=60, random_state=0).X)
    assert time.monotonic() - began < _turns.TURN_PATIENCE / 2
    assert not _turns._fits
