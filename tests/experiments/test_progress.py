"""Where a run stands: the estimate of the time left, and the line in the log."""

import logging
import math
from dataclasses import replace

import pytest

from tuckermix.experiments.cells import cells_of
from tuckermix.experiments.progress import Progress, TimeEstimate, log_progress
from tuckermix.experiments.store import RunRecord


@pytest.fixture
def cells(fakes):
    table = fakes.table("random", "slow", runs=2)
    return cells_of([table], [], {}, runs=None, methods=None, profile="paper")


def record_of(cell, seconds=None, **fields):
    profile, experiment, row, method, run = cell.key
    return RunRecord(profile, experiment, row, method, run, "", "ok", seconds=seconds, **fields)


def test_nothing_is_estimated_before_anything_is_known(cells):
    assert math.isnan(TimeEstimate([]).of(cells[0]))
    assert math.isnan(TimeEstimate([record_of(cells[0])]).left(cells, 1))
    assert TimeEstimate([]).left([], 2) == 0.0


def test_the_likest_cells_count(cells):
    first = cells[0]
    same_cell = next(c for c in cells if c.key[:4] == first.key[:4] and c.run != first.run)
    same_method = next(c for c in cells if c.method == first.method and c.row != first.row)
    other = next(c for c in cells if c.method != first.method)
    estimate = TimeEstimate([record_of(first, 1.0)])
    assert estimate.of(same_cell) == estimate.of(same_method) == estimate.of(other) == 1.0
    estimate.add(record_of(same_method, 3.0))
    assert estimate.of(same_cell) == 1.0
    assert estimate.of(same_method) == 3.0
    assert estimate.of(other) == 2.0


@pytest.mark.parametrize("jobs", [0, 1, 4])
def test_processes_share_the_time_left(cells, jobs):
    estimate = TimeEstimate([record_of(cells[0], 2.0)])
    assert estimate.left(cells, jobs) == pytest.approx(2.0 * len(cells) / max(1, jobs))


def test_a_finished_cell_gives_one_line(cells, caplog):
    caplog.set_level(logging.INFO, logger="tuckermix")
    progress = Progress(3, 8, 0, 0, (), 6.0, 90.0, record_of(cells[0], 2.0, ac=0.5, nmi=0.25))
    log_progress(progress)
    log_progress(replace(progress, last=None))
    assert len(caplog.messages) == 1
    for part in ("3/8", "1.5 min left", cells[0].method, "AC 0.5000 NMI 0.2500", "2.0 s"):
        assert part in caplog.messages[0]


def test_a_failed_cell_says_so_and_an_unknown_rest_is_left_out(cells, caplog):
    caplog.set_level(logging.INFO, logger="tuckermix")
    record = replace(record_of(cells[0]), status="failed")
    log_progress(Progress(1, 8, 0, 1, (), 1.0, math.nan, record))
    assert "failed" in caplog.messages[0]
    assert "left" not in caplog.messages[0]
