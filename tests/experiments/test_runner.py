import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tuckermix.experiments.runner as runner
from tuckermix.experiments import METHODS, Method, Store, register_method, reproduce
from tuckermix.experiments.store import unchanged

N_KILLS = 10
# A run is killed after up to so many further records, and at a random moment within the next one.
MOST_RECORDS, ONE_RECORD = 7, 0.05
GIVE_UP = 60.0


def records_of(db):
    with Store(db, read_only=True) as store:
        store.check()
        return store.records()


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
        ({"runs": 0}, "'runs' parameter of reproduce must be an integer >= 1"),
        ({"methods": ["unknown"]}, "'methods' parameter of reproduce must be one of 'MM'"),
    ],
)
def test_a_wrong_option_is_refused(fakes, tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        reproduce(fakes.table("random"), db=tmp_path / "r.sqlite", **{"jobs": 0} | options)


def test_workers_compute_with_one_thread(fakes, tmp_path):
    before = dict(os.environ)
    with runner.Worker.__init__.__globals__["_one_thread"]():
        assert os.environ["OMP_NUM_THREADS"] == os.environ["OPENBLAS_NUM_THREADS"] == "1"
    assert dict(os.environ) == before


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
