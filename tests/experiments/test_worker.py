"""The processes that compute cells: what they answer, and how they end."""

import os

import pytest

from tuckermix.experiments import DATASETS, METHODS
from tuckermix.experiments._worker import THREAD_VARIABLES, Worker, _one_thread
from tuckermix.experiments.cells import cells_of


@pytest.fixture
def worker(fakes):
    worker = Worker(None, METHODS, DATASETS)
    yield worker
    worker.stop()


def cell_of(fakes, method):
    return cells_of([fakes.table(method)], [], {}, runs=None, methods=None, profile="paper")[0]


def test_a_process_says_when_it_begins_and_what_came_out(fakes, worker):
    for _ in range(2):  # one process serves many cells
        worker.submit(cell_of(fakes, "random"))
        assert worker.elapsed == 0.0
        assert worker.collect() is None
        assert worker.elapsed > 0.0
        outcome = worker.collect()
        assert outcome["status"] == "ok"
        assert 0.0 <= outcome["ac"] <= 1.0
        assert worker.alive


def test_a_process_that_dies_is_an_outcome(fakes, worker):
    worker.submit(cell_of(fakes, "dying"))
    assert worker.collect() is None
    outcome = worker.collect()
    assert outcome["status"] == "failed"
    assert "exit code 7" in outcome["error"]
    assert not worker.alive


def test_a_busy_process_can_be_stopped(fakes, worker):
    worker.submit(cell_of(fakes, "endless"))
    assert worker.collect() is None
    worker.stop()
    assert not worker.alive


def test_new_processes_get_one_thread_and_this_one_keeps_its_own(monkeypatch):
    first, second, *_ = THREAD_VARIABLES
    monkeypatch.setenv(first, "5")
    monkeypatch.delenv(second, raising=False)
    with _one_thread():
        assert {os.environ[name] for name in THREAD_VARIABLES} == {"1"}
    assert os.environ[first] == "5"
    assert second not in os.environ
