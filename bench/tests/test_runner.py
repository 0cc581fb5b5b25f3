import logging
import math
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from tuckermix_bench import (
    DATASETS,
    METHODS,
    Method,
    Row,
    Store,
    register_method,
    reproduce,
)
from tuckermix_bench.runner import (
    THREAD_VARIABLES,
    Progress,
    TimeEstimate,
    Worker,
    _one_thread,
    execute,
    log_progress,
    plan,
)
from tuckermix_bench.store import RunRecord, records_csv
from tuckermix_bench.tables import cells_of

N_KILLS = 10
# A run is killed after up to so many further records, and at a random moment within the next one.
MOST_RECORDS, ONE_RECORD = 7, 0.05
GIVE_UP = 60.0


def records_of(db):
    with sqlite3.connect(db) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    with Store(db, read_only=True) as store:
        return store.records()


def unchanged(records):
    """Return the parts of records that must not depend on load or on the number of jobs."""
    varying = {"seconds", "cpu_seconds", "peak_memory", "finished", "machine"}
    return [
        {name: value for name, value in record.to_dict().items() if name not in varying}
        for record in records
    ]


def test_every_cell_gets_a_record_with_what_determines_it(fakes, tmp_path):
    report = reproduce(fakes.table("random"), jobs=0, db=tmp_path / "r.sqlite")
    assert (report.computed, report.skipped, report.failed, report.missing) == (6, 0, 0, 0)
    for found in records_of(tmp_path / "r.sqlite"):
        assert found.status == "ok"
        assert 0 <= found.ac <= 1
        assert 0 <= found.nmi <= 1
        assert found.seconds >= 0
        assert found.iterations == 1
        assert found.n_samples == 6 * len(found.classes)
        assert {"numpy", "python", "scikit-learn", "tuckermix"} <= set(found.versions)
        assert found.fingerprint
        assert found.parameters["seed"] == found.seed


def test_a_second_run_computes_nothing(fakes, tmp_path):
    table = fakes.table("random")
    reproduce(table, jobs=0, db=tmp_path / "r.sqlite")
    before = records_of(tmp_path / "r.sqlite")
    report = reproduce(table, jobs=0, db=tmp_path / "r.sqlite")
    assert (report.computed, report.skipped) == (0, 6)
    assert records_of(tmp_path / "r.sqlite") == before


def test_more_runs_add_to_those_there_are(fakes, tmp_path):
    table = fakes.table("random")
    reproduce(table, jobs=0, db=tmp_path / "r.sqlite", runs=1)
    before = unchanged(records_of(tmp_path / "r.sqlite"))
    report = reproduce(table, jobs=0, db=tmp_path / "r.sqlite")
    assert (report.computed, report.skipped) == (4, 2)
    after = unchanged(records_of(tmp_path / "r.sqlite"))
    assert all(record in after for record in before)


def test_the_number_of_jobs_changes_no_record(fakes, tmp_path):
    table = fakes.table("random", "slow", runs=4)
    stores = []
    for jobs in (0, 1, 2):
        reproduce(table, jobs=jobs, db=tmp_path / f"{jobs}.sqlite")
        stores.append(unchanged(records_of(tmp_path / f"{jobs}.sqlite")))
    assert stores[0] == stores[1] == stores[2]
    assert len(stores[0]) == 16


def test_all_methods_see_the_same_samples(fakes, tmp_path):
    reproduce(fakes.table("random", "slow"), jobs=0, db=tmp_path / "r.sqlite")
    drawn = {}
    for found in records_of(tmp_path / "r.sqlite"):
        drawn.setdefault((found.row, found.run), set()).add(tuple(found.classes))
    assert all(len(classes) == 1 for classes in drawn.values())


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("failing", "ArithmeticError: The matrix is singular."),
        ("collapsing", "All samples fell into one cluster."),
        ("giving-up", "The method reports a meaningless result."),
    ],
)
def test_a_failing_method_costs_its_own_cells_only(fakes, tmp_path, method, message):
    report = reproduce(fakes.table(method, "random"), jobs=0, db=tmp_path / "r.sqlite")
    assert (report.computed, report.failed) == (12, 6)
    for found in records_of(tmp_path / "r.sqlite"):
        if found.method == method:
            assert (found.status, found.error, found.ac) == ("failed", message, None)
        else:
            assert found.status == "ok"


def test_a_process_that_dies_costs_its_own_cell_only(fakes, tmp_path):
    report = reproduce(fakes.table("dying", "random", runs=1), jobs=1, db=tmp_path / "r.sqlite")
    assert (report.computed, report.failed) == (4, 2)
    errors = {found.error for found in records_of(tmp_path / "r.sqlite") if found.error}
    assert all("ended without a result (exit code 7)" in error for error in errors)


def test_a_cell_is_stopped_at_its_time_limit(fakes, tmp_path):
    table = fakes.table("endless", "random", runs=1)
    reproduce(table, jobs=2, db=tmp_path / "r.sqlite", time_limit=3.0)
    found = {(r.method, r.status) for r in records_of(tmp_path / "r.sqlite")}
    assert found == {("endless", "timeout"), ("random", "ok")}


def test_a_method_that_cannot_be_imported_is_explained(fakes, tmp_path):
    register_method(Method("absent", "tuckermix.baselines:Absent"))
    try:
        reproduce(fakes.table("absent", runs=1), jobs=0, db=tmp_path / "r.sqlite")
    finally:
        METHODS.pop("absent")
    assert all("no attribute 'Absent'" in r.error for r in records_of(tmp_path / "r.sqlite"))


def test_failed_cells_are_tried_again_on_request_only(fakes, tmp_path):
    table = fakes.table("failing", runs=1)
    reproduce(table, jobs=0, db=tmp_path / "r.sqlite")
    assert reproduce(table, jobs=0, db=tmp_path / "r.sqlite").computed == 0
    assert reproduce(table, jobs=0, db=tmp_path / "r.sqlite", retry_failed=True).computed == 2


def test_missing_data_are_explained_and_tried_again(fakes, tmp_path):
    table = fakes.table("random", dataset="nowhere", runs=1)
    for _ in range(2):
        report = reproduce(table, jobs=0, db=tmp_path / "r.sqlite")
        assert (report.computed, report.missing, report.failed) == (2, 2, 0)
    for found in records_of(tmp_path / "r.sqlite"):
        assert found.status == "missing"
        assert "put it into the data folder" in found.error


def test_other_settings_or_another_version_compute_a_cell_anew(fakes, tmp_path):
    reproduce(fakes.table("random", runs=1), jobs=0, db=tmp_path / "r.sqlite")
    register_method(Method("random", fakes.Random, version="2"), replace=True)
    report = reproduce(fakes.table("random", runs=1), jobs=0, db=tmp_path / "r.sqlite")
    assert report.computed == 2


def test_refresh_computes_records_of_older_code_anew(fakes, tmp_path):
    table = fakes.table("random", "slow", runs=1)
    reproduce(table, jobs=0, db=tmp_path / "r.sqlite")
    register_method(Method("random", fakes.Slow), replace=True)
    assert reproduce(table, jobs=0, db=tmp_path / "r.sqlite").computed == 0
    assert reproduce(table, jobs=0, db=tmp_path / "r.sqlite", refresh=True).computed == 2


def test_progress_counts_up_and_estimates_the_rest(fakes, tmp_path):
    steps = []
    reproduce(fakes.table("random"), jobs=0, db=tmp_path / "r.sqlite", progress=steps.append)
    finished = [step for step in steps if step.last is not None]
    assert [step.done for step in finished] == [1, 2, 3, 4, 5, 6]
    assert {step.total for step in steps} == {6}
    assert steps[0].running == ("fake · K=2 · random · run 0",)
    assert finished[-1].left == 0.0
    assert finished[0].left >= 0.0


def test_log_progress_writes_a_line_a_cell(fakes, tmp_path, caplog):
    with caplog.at_level("INFO", logger="tuckermix"):
        reproduce(fakes.table("random", "failing", runs=1), jobs=0, db=tmp_path / "r.sqlite")
    lines = [entry.getMessage() for entry in caplog.records]
    assert len(lines) == 4
    assert any(line.startswith("4/4") for line in lines)
    assert any("failed" in line for line in lines)


def test_ctrl_c_keeps_what_is_done(fakes, tmp_path, caplog):
    def stop(progress):
        if progress.done == 2:
            raise KeyboardInterrupt

    report = reproduce(fakes.table("random"), jobs=1, db=tmp_path / "r.sqlite", progress=stop)
    assert report.interrupted
    assert report.computed == len(records_of(tmp_path / "r.sqlite")) == 2
    assert "the rest can follow" in caplog.text
    assert reproduce(fakes.table("random"), jobs=0, db=tmp_path / "r.sqlite").computed == 4


def test_a_function_out_of_reach_is_refused_before_anything_starts(fakes, tmp_path):
    register_method(Method("random", lambda n, ranks, seed: None), replace=True)
    with pytest.raises(ValueError, match=r"'random' cannot be sent to another process.*jobs=0"):
        reproduce(fakes.table("random"), jobs=1, db=tmp_path / "r.sqlite")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jobs": -1}, "'jobs' parameter of run_cells must be an integer >= 0"),
        ({"time_limit": 0.0}, "'time_limit' parameter of run_cells must be a number > 0"),
        ({"stop_after": 0.0}, "'stop_after' parameter of run_cells must be a number > 0"),
        ({"runs": 0}, "'runs' parameter of reproduce must be an integer >= 1"),
        ({"methods": ["unknown"]}, "'methods' parameter of reproduce must be one of 'MM'"),
    ],
)
def test_a_wrong_option_is_refused(fakes, tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        reproduce(fakes.table("random"), db=tmp_path / "r.sqlite", **{"jobs": 0} | options)


@pytest.mark.slow
def test_kill_9_at_random_moments_loses_no_record_and_corrupts_nothing(fakes, tmp_path):
    db, log = tmp_path / "r.sqlite", tmp_path / "log"
    log.touch()
    table = fakes.table("slow", runs=40)
    moments = random.Random(5)
    seen = []
    command = [sys.executable, str(Path(fakes.__file__)), str(db), str(log)]
    for _ in range(N_KILLS):
        enough = len(log.read_text().splitlines()) + moments.randint(0, MOST_RECORDS)
        process = subprocess.Popen(command, start_new_session=True)
        give_up = time.monotonic() + GIVE_UP
        while len(log.read_text().splitlines()) < enough and time.monotonic() < give_up:
            time.sleep(0.001)
        time.sleep(moments.uniform(0.0, ONE_RECORD))
        # Only the runner is killed; its processes have to notice by themselves.
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        if not db.exists():
            continue
        found = records_of(db)
        # A line cut short by the kill is no finished record.
        noted = [line.split() for line in log.read_text().splitlines(keepends=True) if "\n" in line]
        keys = {(record.row, record.run) for record in found}
        assert {(row, int(run)) for row, run in noted} <= keys
        assert all(record in found for record in seen)
        seen = found
    assert 0 < len(seen) < 80
    reproduce(table, jobs=1, db=db)
    reproduce(table, jobs=0, db=tmp_path / "undisturbed.sqlite")
    assert unchanged(records_of(db)) == unchanged(records_of(tmp_path / "undisturbed.sqlite"))


@pytest.mark.slow
def test_processes_end_with_a_killed_runner(fakes, tmp_path):
    log = tmp_path / "log"
    command = [sys.executable, str(Path(fakes.__file__)), str(tmp_path / "r.sqlite"), str(log)]
    process = subprocess.Popen(command, start_new_session=True)
    give_up = time.monotonic() + GIVE_UP
    while not log.exists() and time.monotonic() < give_up:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    while time.monotonic() < give_up:
        try:
            os.killpg(process.pid, 0)  # asks whether anybody is left
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("processes outlived the runner")


def test_methods_and_runs_narrow_a_table(fakes, tmp_path):
    db = tmp_path / "records.sqlite"
    table = fakes.table("random", "collapsing", runs=5)
    report = reproduce(table, methods=["random"], runs=2, jobs=0, db=db, progress=None)
    assert report.computed == 4  # two rows, two runs
    assert report.db == db
    with Store(db) as store:
        assert {record.method for record in store.records()} == {"random"}


@pytest.mark.parametrize("runs", [0, -1, 1.5])
def test_no_number_of_runs(fakes, tmp_path, runs):
    with pytest.raises(ValueError, match="'runs' parameter of reproduce must be an integer >= 1"):
        reproduce(fakes.table("random"), runs=runs, db=tmp_path / "db.sqlite")
    assert not (tmp_path / "db.sqlite").exists()


def test_an_unknown_dataset_is_refused_before_anything_runs(fakes, tmp_path):
    with pytest.raises(ValueError, match="no-such-data"):
        reproduce(fakes.table("random", dataset="no-such-data"), db=tmp_path / "db.sqlite")
    assert not (tmp_path / "db.sqlite").exists()


@pytest.fixture
def cells(fakes):
    table = fakes.table("random", "slow", runs=2)
    return cells_of([table], runs=None, methods=None, profile="paper")


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


def test_long_cells_can_come_first(cells):
    first = cells[0]
    estimate = TimeEstimate([record_of(first, 100.0)])
    ordered = estimate.longest_first(cells)
    assert sorted(cell.key for cell in ordered) == sorted(cell.key for cell in cells)
    assert {cell.method for cell in ordered[:4]} == {first.method}
    times = [estimate.guess(cell) for cell in ordered]
    assert times == sorted(times, reverse=True)


def test_methods_that_nobody_measured_go_by_what_they_say(cells):
    cell = cells[0]
    times = [TimeEstimate([]).guess(replace(cell, order=(cost, 0, 0, 0))) for cost in (0, 1, 2)]
    assert times == sorted(times)
    assert times[0] < times[2]


@pytest.mark.parametrize("jobs", [0, 1])
def test_a_run_ends_when_its_time_is_over_and_goes_on_later(fakes, tmp_path, jobs):
    # 18 cells of 0.03 s each take longer than this.
    db, table = tmp_path / "r.sqlite", fakes.table("slow", runs=9)
    report = reproduce(table, jobs=jobs, db=db, stop_after=0.1)
    assert report.computed < 18
    assert not report.interrupted
    assert reproduce(table, jobs=jobs, db=db).computed == 18 - report.computed


def test_rows_can_be_named(fakes, tmp_path):
    db, table = tmp_path / "r.sqlite", fakes.table("random", runs=2)
    assert reproduce(table, jobs=0, db=db, rows=["K=3"]).computed == 2
    assert {found.row for found in records_of(db)} == {"K=3"}
    assert [cost.cells for cost in plan(table, db=db, rows=["K=2"])] == [2]
    with pytest.raises(ValueError, match="'rows' parameter of reproduce must be one of 'K=2'"):
        reproduce(table, jobs=0, db=db, rows=["K=9"])


def test_a_plan_counts_what_is_left(fakes, tmp_path):
    db, table = tmp_path / "r.sqlite", fakes.table("random", "slow", runs=2)
    assert {(cost.method, cost.cells) for cost in plan(table, db=db)} == {
        ("random", 4),
        ("slow", 4),
    }
    assert not db.exists()
    reproduce(table, jobs=0, db=db, methods=["random"])
    (left,) = plan(table, db=db)
    assert (left.method, left.cells) == ("slow", 4)
    assert left.seconds == pytest.approx(4 * left.longest)


def test_a_plan_counts_records_of_older_code_where_they_are_to_be_refreshed(fakes, tmp_path):
    db, table = tmp_path / "r.sqlite", fakes.table("random", "slow", runs=2)
    reproduce(table, jobs=0, db=db)
    assert plan(table, db=db, refresh=True) == []
    with Store(db) as store:
        for found in records_of(db)[:3]:
            store.add(replace(found, fingerprint="of older code"))
    assert plan(table, db=db) == []
    assert sum(cost.cells for cost in plan(table, db=db, refresh=True)) == 3
    assert len(records_of(db)) == 8
    assert reproduce(table, jobs=0, db=db, refresh=True).computed == 3


def test_times_of_published_records_order_a_run(fakes, tmp_path):
    table = fakes.table("random", "slow", runs=1)
    reproduce(table, jobs=0, db=tmp_path / "a.sqlite")
    records = [
        replace(found, cpu_seconds=9.0 if (found.method, found.row) == ("slow", "K=3") else 0.1)
        for found in records_of(tmp_path / "a.sqlite")
    ]
    (tmp_path / "records.csv").write_text(records_csv(records), encoding="utf-8")
    seen = []
    reproduce(
        table,
        jobs=0,
        db=tmp_path / "b.sqlite",
        longest_first=True,
        times=tmp_path / "records.csv",
        progress=lambda progress: progress.last and seen.append(progress.last),
    )
    assert len(seen) == 4
    assert (seen[0].method, seen[0].row) == ("slow", "K=3")


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


@pytest.fixture
def worker(fakes):
    worker = Worker(methods=METHODS, datasets=DATASETS)
    yield worker
    worker.stop()


def cell_of(fakes, method):
    return cells_of([fakes.table(method)], runs=None, methods=None, profile="paper")[0]


def test_a_process_says_when_it_begins_and_what_came_out(fakes, worker):
    for _ in range(2):  # one process serves many cells
        worker.submit(cell_of(fakes, "random"))
        assert worker.elapsed == 0.0
        assert worker.collect() is None
        assert worker.elapsed > 0.0
        outcome = worker.collect()
        assert outcome["status"] == "ok"
        assert 0.0 <= outcome["ac"] <= 1.0
        assert worker.process.is_alive()


def test_a_process_that_dies_is_an_outcome(fakes, worker):
    worker.submit(cell_of(fakes, "dying"))
    assert worker.collect() is None
    outcome = worker.collect()
    assert outcome["status"] == "failed"
    assert "exit code 7" in outcome["error"]
    assert not worker.process.is_alive()


def test_a_busy_process_can_be_stopped(fakes, worker):
    worker.submit(cell_of(fakes, "endless"))
    assert worker.collect() is None
    worker.stop()
    assert not worker.process.is_alive()


def test_new_processes_get_one_thread_and_this_one_keeps_its_own(monkeypatch):
    first, second, *_ = THREAD_VARIABLES
    monkeypatch.setenv(first, "5")
    monkeypatch.delenv(second, raising=False)
    with _one_thread():
        assert {os.environ[name] for name in THREAD_VARIABLES} == {"1"}
    assert os.environ[first] == "5"
    assert second not in os.environ


def test_rows_ask_for_what_figures_need(fakes):
    class Fitted(fakes.Random):
        def fit(self, X):
            super().fit(X)
            self.history_ = [{"iteration": 0, "cost": 1.0, "gap": float("nan"), "point": X}]
            self.components_ = X[:2]
            return self

    register_method(Method("random", Fitted), replace=True)
    table = fakes.table("random")
    row = Row("a", "blobs", (2, 2), keep=("history", "components"))
    cell = cells_of([type(table)("t", "", (row,), ("random",))])[0]
    extras = execute(cell)["extras"]
    assert extras["history"] == [{"iteration": 0.0, "cost": 1.0, "gap": None}]
    assert np.shape(extras["components"]) == (2, 3, 4)
    assert "centroids" not in extras


def test_warnings_become_part_of_the_outcome(fakes):
    class Warning_(fakes.Random):
        def fit(self, X):
            import warnings

            warnings.warn("Not converged.", RuntimeWarning, stacklevel=2)
            return super().fit(X)

    register_method(Method("random", Warning_), replace=True)
    cell = cells_of([fakes.table("random")])[0]
    assert execute(cell)["warnings"] == ["RuntimeWarning: Not converged."]


def test_an_impossible_draw_is_a_failed_cell(fakes):
    table = fakes.table("random")
    row = Row("a", "blobs", (2, 2), per_class=13)
    cell = cells_of([type(table)("t", "", (row,), ("random",))])[0]
    outcome = execute(cell)
    assert outcome["status"] == "failed"
    assert "lower per_class" in outcome["error"]


def test_ctrl_c_inside_a_foreign_limit_leaves_the_threads_as_they_were(fakes):
    class Cut(fakes.Random):
        def fit(self, X):
            # As scikit-learn's k-means does, cut before the numbers are given back.
            threadpool_limits(1, user_api="blas")
            raise KeyboardInterrupt

    def numbers():
        return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

    register_method(Method("random", Cut), replace=True)
    cell = cells_of([fakes.table("random")])[0]
    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(KeyboardInterrupt):
            execute(cell)
        assert numbers() == {2}
