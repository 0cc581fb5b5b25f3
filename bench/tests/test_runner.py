import os
import random
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.cases import each

from tuckermix_bench import DATASETS, METHODS, Method, Row, Store, register_method, reproduce
from tuckermix_bench.runner import Progress, TimeEstimate, execute, log_progress, plan
from tuckermix_bench.store import RunRecord, read_store
from tuckermix_bench.tables import cells_of

N_KILLS = 10
# A run is killed after up to so many further records, and at a random moment within the next one.
MOST_RECORDS, ONE_RECORD = 7, 0.05
GIVE_UP = 60.0


@pytest.fixture
def db(tmp_path):
    return tmp_path / "r.jsonl"


records_of = read_store


def unchanged(records):
    """Return the parts of records that must not depend on load or on the number of jobs."""
    varying = {"seconds", "cpu_seconds", "peak_memory", "finished", "machine"}
    return [
        {name: value for name, value in record.to_dict().items() if name not in varying}
        for record in records
    ]


def outcome_of(cell):
    return execute(cell, METHODS[cell.method], DATASETS[cell.row.dataset], None)


def test_every_cell_gets_a_record_with_what_determines_it(fakes, db):
    report = reproduce(fakes.table("random"), jobs=0, db=db)
    assert (report.computed, report.skipped, report.failed, report.missing) == (6, 0, 0, 0)
    for found in records_of(db):
        assert (found.status, found.iterations, found.method_version) == ("ok", 1, "1")
        assert 0 <= found.ac <= 1
        assert 0 <= found.nmi <= 1
        assert found.seconds >= 0
        assert found.n_samples == 6 * len(found.classes)
        assert {"numpy", "python", "scikit-learn", "tuckermix"} <= set(found.versions)
        assert found.package_version == found.versions["tuckermix"]
        assert found.parameters["seed"] == found.seed


def test_a_second_run_computes_what_is_new(fakes, db):
    table = fakes.table("random")
    assert reproduce(table, jobs=0, db=db, runs=1).computed == 2
    before = records_of(db)
    report = reproduce(table, jobs=0, db=db)
    assert (report.computed, report.skipped) == (4, 2)
    after = records_of(db)
    assert all(record in after for record in before)
    assert reproduce(table, jobs=0, db=db).computed == 0
    assert reproduce(table, jobs=0, db=db, refresh=True).computed == 6


def test_another_version_of_a_method_is_computed_again(fakes, db):
    reproduce(fakes.table("random", "slow", runs=1), jobs=0, db=db)
    register_method(Method("random", fakes.Random, version="2"), replace=True)
    assert reproduce(fakes.table("random", "slow", runs=1), jobs=0, db=db).computed == 2
    assert {found.method_version for found in records_of(db)} == {"1", "2"}


def test_the_number_of_jobs_changes_no_record(fakes, tmp_path):
    table = fakes.table("random", "slow", runs=2)
    stores = []
    for jobs in (0, 2):
        reproduce(table, jobs=jobs, db=tmp_path / str(jobs))
        stores.append(unchanged(records_of(tmp_path / str(jobs))))
    assert stores[0] == stores[1]
    assert len(stores[0]) == 8
    drawn = {}
    for found in records_of(tmp_path / "0"):
        drawn.setdefault((found.row, found.run), set()).add(tuple(found.classes))
    assert all(len(classes) == 1 for classes in drawn.values())  # all methods see the same samples


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("failing", "ArithmeticError: The matrix is singular."),
        ("collapsing", "All samples fell into one cluster."),
        ("giving-up", "The method reports a meaningless result."),
    ],
)
def test_a_failing_method_costs_its_own_cells_only(fakes, db, method, message):
    report = reproduce(fakes.table(method, "random"), jobs=0, db=db)
    assert (report.computed, report.failed) == (12, 6)
    for found in records_of(db):
        if found.method == method:
            assert (found.status, found.error, found.ac) == ("failed", message, None)
        else:
            assert found.status == "ok"
    assert reproduce(fakes.table(method, runs=1), jobs=0, db=db).computed == 0
    assert reproduce(fakes.table(method, runs=1), jobs=0, db=db, retry_failed=True).computed == 2


def test_a_process_that_dies_costs_its_own_cell_only(fakes, db):
    table = fakes.table("dying", "random", runs=1)
    report = reproduce(table, jobs=1, db=db, rows=["K=2"])
    assert (report.computed, report.failed) == (2, 1)
    for found in records_of(db):
        assert (found.status == "failed") == (found.method == "dying")
        assert "ended without a result" in (found.error or "") or found.status == "ok"


def test_a_cell_is_stopped_at_its_time_limit(fakes, db):
    table = fakes.table("endless", "random", runs=1)
    reproduce(table, jobs=1, db=db, time_limit=2.0, rows=["K=2"])
    found = {(r.method, r.status) for r in records_of(db)}
    assert found == {("endless", "timeout"), ("random", "ok")}


def test_a_method_that_cannot_be_imported_is_explained(fakes, db):
    register_method(Method("absent", "tuckermix.baselines:Absent"))
    try:
        reproduce(fakes.table("absent", runs=1), jobs=0, db=db)
    finally:
        METHODS.pop("absent")
    assert all("no attribute 'Absent'" in r.error for r in records_of(db))


@pytest.mark.parametrize("jobs", [0])
def test_missing_data_stop_their_own_cells_and_are_asked_for_each_time(fakes, db, jobs):
    table = fakes.table("random", dataset="nowhere", runs=3)
    for _ in range(2):
        report = reproduce(table, jobs=jobs, db=db)
        assert (report.computed, report.missing, report.failed) == (0, 6, 0)
        assert "put it into the data folder" in report.absent["nowhere"]
    assert reproduce([table, fakes.table("random", name="b")], jobs=jobs, db=db).computed == 6


def test_known_data_are_looked_for_first(tmp_path, db):
    said = []
    report = reproduce(
        "table3", methods=["k-means"], runs=1, jobs=0, db=db, data=tmp_path, warn=said.append
    )
    assert (report.computed, report.missing) == (0, 8)
    assert [set(absent) for absent in said] == [{"mnist"}]
    assert str(tmp_path) in said[0]["mnist"]


def test_progress_counts_up_and_estimates_the_rest(fakes, db):
    steps = []
    reproduce(fakes.table("random"), jobs=0, db=db, progress=steps.append)
    assert [step.done for step in steps] == [1, 2, 3, 4, 5, 6]
    assert {step.total for step in steps} == {6}
    assert steps[-1].left == 0.0


@pytest.mark.parametrize("jobs", [1])
def test_ctrl_c_keeps_what_is_done(fakes, db, jobs):
    def stop(progress):
        if progress.done == 2:
            raise KeyboardInterrupt

    report = reproduce(fakes.table("random"), jobs=jobs, db=db, progress=stop)
    assert report.interrupted
    assert report.computed == len(records_of(db)) == 2
    assert reproduce(fakes.table("random"), jobs=0, db=db).computed == 4


def test_functions_of_a_session_reach_other_processes(fakes, db):
    register_method(
        Method("random", lambda n, ranks, seed: fakes.Random(n, ranks, seed)), replace=True
    )
    assert reproduce(fakes.table("random", runs=1), jobs=1, db=db).failed == 0


@each(
    "options, message",
    [
        ({"jobs": -1}, "'jobs' parameter of reproduce must be an integer >= 0"),
        ({"time_limit": 0.0}, "'time_limit' parameter of reproduce must be a number > 0"),
        ({"stop_after": 0.0}, "'stop_after' parameter of reproduce must be a number > 0"),
        ({"runs": 0}, "'runs' parameter of reproduce must be an integer >= 1"),
        ({"methods": ["unknown"]}, "'methods' parameter of reproduce must be one of 'MM'"),
        ({"rows": ["K=9"]}, "'rows' parameter of reproduce must be one of 'K=2'"),
    ],
)
def test_a_wrong_option_is_refused(fakes, db, options, message):
    with pytest.raises(ValueError, match=message):
        reproduce(fakes.table("random"), db=db, **{"jobs": 0} | options)


def test_an_unknown_dataset_is_refused_before_anything_runs(fakes, db):
    with pytest.raises(ValueError, match="no-such-data"):
        reproduce(fakes.table("random", dataset="no-such-data"), db=db)
    assert not db.exists()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kill -9")
def test_kill_9_at_random_moments_loses_no_record_and_corrupts_nothing(fakes, tmp_path, db):
    log = tmp_path / "log"
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
    reproduce(table, jobs=0, db=tmp_path / "undisturbed")
    assert unchanged(records_of(db)) == unchanged(records_of(tmp_path / "undisturbed"))


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kill -9")
def test_processes_end_with_a_killed_runner(fakes, tmp_path, db):
    log = tmp_path / "log"
    command = [sys.executable, str(Path(fakes.__file__)), str(db), str(log)]
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


@pytest.mark.parametrize("jobs", [0])
def test_a_run_ends_when_its_time_is_over_and_goes_on_later(fakes, db, jobs):
    table = fakes.table("slow", runs=9)
    report = reproduce(table, jobs=jobs, db=db, stop_after=0.1)
    assert report.computed < 18
    assert not report.interrupted
    assert reproduce(table, jobs=jobs, db=db).computed == 18 - report.computed


def test_rows_and_methods_narrow_a_table(fakes, db):
    table = fakes.table("random", "slow", runs=2)
    assert reproduce(table, jobs=0, db=db, rows=["K=3"], methods=["random"]).computed == 2
    assert {(found.row, found.method) for found in records_of(db)} == {("K=3", "random")}


def test_a_plan_counts_what_is_left(fakes, db):
    table = fakes.table("random", "slow", runs=2)
    costs = plan(table, db=db)
    assert [(one.table, one.cells) for one in costs] == [("fake", 8)]
    assert not db.exists()
    reproduce(table, jobs=0, db=db, methods=["random"])
    (left,) = plan(table, db=db)
    assert left.cells == 4
    assert left.seconds == pytest.approx(4 * left.longest)
    assert [one.cells for one in plan(table, db=db, refresh=True)] == [8]


def test_a_plan_of_the_tables_goes_by_the_published_records(db):
    (slow,) = plan("table3", methods=["AutoClustering"], db=db)
    (quick,) = plan("table3", methods=["AutoClustering"], db=db, quick=True)
    assert slow.seconds / slow.cells > 5 * quick.seconds / quick.cells


def test_long_cells_come_first_on_request(fakes, db):
    table, seen = fakes.table("random", "slow", runs=1), []
    reproduce(table, jobs=0, db=db)
    with Store(db) as store:
        slow = [one for one in store.records() if one.method == "slow"]
        store.add(*(replace(one, cpu_seconds=9.0) for one in slow))
    options = {"refresh": True, "longest_first": True}
    reproduce(table, jobs=0, db=db, progress=lambda step: seen.append(step.last.method), **options)
    assert seen == ["slow", "slow", "random", "random"]


def test_a_cell_takes_as_long_as_those_most_like_it(fakes):
    cells = cells_of([fakes.table("random", "slow", runs=2)])
    first = cells[0]

    def record(cell, seconds):
        return RunRecord(*cell.key, "", "ok", seconds=seconds)

    same_cell = next(c for c in cells if c.key[:4] == first.key[:4] and c.run != first.run)
    same_method = next(c for c in cells if c.method == first.method and c.row != first.row)
    other = next(c for c in cells if c.method != first.method)
    estimate = TimeEstimate([record(first, 1.0)])
    assert estimate.of(same_cell) == estimate.of(same_method) == 1.0
    estimate.add(record(same_method, 3.0))
    assert (estimate.of(same_cell), estimate.of(same_method)) == (1.0, 3.0)
    guesses = [estimate.of(replace(other, order=(cost, 0, 0, 0))) for cost in (0, 1, 2)]
    assert guesses == sorted(guesses)
    assert guesses[0] < guesses[2]


def test_a_finished_cell_gives_one_line(fakes, caplog):
    caplog.set_level("INFO", logger="tuckermix")
    key = ("paper", "t", "r", "m", 0)
    record = RunRecord(*key, "", "ok", seconds=2.0, ac=0.5, nmi=0.25)
    progress = Progress(3, 8, 90.0, record)
    log_progress(progress)
    log_progress(replace(progress, last=replace(record, status="failed", ac=None)))
    assert (
        caplog.messages[0] == "3/8, 1.5 min left · t · r · m · run 0 · AC 0.5000 NMI 0.2500 · 2.0 s"
    )
    assert "failed" in caplog.messages[1]


def test_rows_ask_for_what_figures_need(fakes):
    class Fitted(fakes.Random):
        def fit(self, X):
            super().fit(X)
            warnings.warn("Not converged.", RuntimeWarning, stacklevel=2)
            self.history_ = [{"iteration": 0, "cost": 1.0, "gap": float("nan"), "point": X}]
            self.components_ = X[:2]
            return self

    register_method(Method("random", Fitted), replace=True)
    table = fakes.table("random")
    row = Row("a", "blobs", (2, 2), keep=("history", "components"))
    outcome = outcome_of(cells_of([type(table)("t", "", (row,), ("random",))])[0])
    extras = outcome["extras"]
    assert extras["history"] == [{"iteration": 0.0, "cost": 1.0, "gap": None}]
    assert np.shape(extras["components"]) == (2, 3, 4)
    assert "centroids" not in extras
    assert outcome["warnings"] == ["RuntimeWarning: Not converged."]


def test_an_impossible_draw_is_a_failed_cell(fakes):
    table = fakes.table("random")
    row = Row("a", "blobs", (2, 2), per_class=13)
    outcome = outcome_of(cells_of([type(table)("t", "", (row,), ("random",))])[0])
    assert outcome["status"] == "failed"
    assert "lower per_class" in outcome["error"]
