"""Compute cells in parallel processes and store each as soon as it is done."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import subprocess
import threading
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
from joblib import cpu_count, parallel_config
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

import tuckermix
from tuckermix._machine import stated
from tuckermix._records import Record
from tuckermix._validation import check_integer, check_option, check_real
from tuckermix.datasets import list_datasets
from tuckermix.summary import NUMERICAL, SECONDS_DIGITS, machine, scores, versions
from tuckermix_bench import tables
from tuckermix_bench.draws import DATASETS, DatasetEntry, draw
from tuckermix_bench.methods import METHODS, Method, MethodError, build
from tuckermix_bench.store import Key, RunRecord, Store, read_records, read_store
from tuckermix_bench.tables import Cell, Experiment

logger = logging.getLogger("tuckermix.bench")

DEFAULT_DB = "tuckermix-results.jsonl"
ABSENT = "absent"
"""The outcome of a cell whose data are not there: it is not stored."""
KEPT_HISTORY = ("iteration", "cost", "relative_error", "gap", "time")
"""What a record keeps of each iteration, where a figure shows its course."""


@dataclass(frozen=True)
class RunnerSettings:
    """The tuning of the runner.

    Attributes
    ----------
    poll_seconds : float
        How often time limits are looked at and the display is refreshed.
    guesses : mapping of str to tuple of float
        Seconds of a cell in each profile, by its method's cost, where no record tells. Those of the
        quick profile are means of its records.
    """

    poll_seconds: float = 0.2
    guesses: tuple[tuple[str, tuple[float, float, float]], ...] = (
        (tables.PAPER, (0.5, 5.0, 60.0)),
        (tables.QUICK, (0.01, 0.02, 0.04)),
    )


SETTINGS = RunnerSettings()


def published_records() -> Path:
    """Return the file of records that comes with the package.

    Returns
    -------
    path : Path
        ``records.csv`` in the installed package, or that of the checkout.
    """
    here = Path(__file__).parent  # a wheel has them beside this file
    for path in (here / "records.csv", here.parents[2] / "docs" / "results" / "records.csv"):
        if path.is_file():
            return path
    raise FileNotFoundError(
        "This copy of tuckermix-bench has no published records: name a records.csv with --records."
    )


@cache
def _published() -> list[RunRecord]:
    """Return the published records, which take half a second to read."""
    return read_records(published_records())


def _memory(field: str) -> int | None:
    """Read a field of this process's memory status in bytes, where the system offers it."""
    said = stated(Path("/proc/self/status"), field)  # such as "1234 kB"
    return int(said.split()[0]) * 1024 if said else None


def _reset_peak() -> int | None:
    """Start a new measurement of the peak of resident memory and return the present value."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
        return _memory("VmRSS")
    return None


def _finite(value: Any) -> float | None:
    """Return a number that JSON has: not NaN."""
    return float(value) if np.isfinite(value) else None


def _extras(model: Any, keep: Iterable[str]) -> dict[str, Any]:
    """Return the course and the centroids of a fit, as lists, where the row asks for them."""
    extras: dict[str, Any] = {}
    if "history" in keep and hasattr(model, "history_"):
        extras["history"] = [
            {name: _finite(entry[name]) for name in KEPT_HISTORY if name in entry}
            for entry in model.history_
        ]
    for name in ("components_", "centroids_") if "components" in keep else ():
        values = getattr(model, name, None)
        if values is not None:
            extras[name.rstrip("_")] = np.asarray(values, dtype=float).round(6).tolist()
    return extras


def execute(cell: Cell, method: Method, entry: DatasetEntry, data: str | None) -> dict[str, Any]:
    """Compute a cell. Errors become part of the outcome; nothing is raised.

    Parameters
    ----------
    cell : Cell
        What to compute.
    method : Method
        Its column.
    entry : DatasetEntry
        Its dataset.
    data : str or None
        The folder of the datasets.

    Returns
    -------
    outcome : dict
        The fields of a record that the computation determines.
    """
    outcome: dict[str, Any] = {"status": "failed"}
    one_thread = (threadpool_limits(limits=1), parallel_config(n_jobs=1))
    with warnings.catch_warnings(record=True) as caught, one_thread[0], one_thread[1]:
        warnings.simplefilter("always")
        try:
            drawn = draw(cell.row, cell.experiment, cell.run, entry=entry, data_home=data)
            outcome |= {
                "n_samples": int(drawn.labels.size),
                "classes": [int(label) for label in np.unique(drawn.labels)],
                "extras": {} if drawn.seen is None else {"seen": drawn.seen},
            }
            _fit(cell, method, drawn, outcome)
        except FileNotFoundError as error:
            return {"status": ABSENT, "error": str(error)}
        except MethodError as error:
            outcome["error"] = str(error)
        except Exception as error:
            outcome["error"] = f"{type(error).__name__}: {error}"
    outcome["warnings"] = list(
        dict.fromkeys(f"{item.category.__name__}: {item.message}" for item in caught)
    )
    return outcome


def _fit(cell: Cell, method: Method, drawn: Any, outcome: dict[str, Any]) -> None:
    """Fit a method to a draw and put what comes out into the outcome."""
    n_clusters = len(outcome["classes"])
    estimator = build(method, n_clusters, cell.row.ranks, cell.seed, cell.settings)
    before = _reset_peak()
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        found = estimator.fit(drawn.X, *([drawn.labels] if method.uses_truth else []))
    except FileNotFoundError as error:  # of the method, not of the data
        raise RuntimeError(str(error)) from error
    outcome["seconds"] = round(time.perf_counter() - wall, SECONDS_DIGITS)
    outcome["cpu_seconds"] = round(time.process_time() - cpu, SECONDS_DIGITS)
    after = _memory("VmHWM")
    if before is not None and after is not None:
        outcome["peak_memory"] = max(0, after - before)
    model = found if hasattr(found, "labels_") else estimator
    labels = np.asarray(model.labels_)
    n_iter, reason = getattr(model, "n_iter_", None), getattr(model, "stop_reason_", None)
    outcome["iterations"] = None if n_iter is None else int(n_iter)
    outcome["stop_reason"] = None if reason is None else str(reason)
    if str(reason) == "failed":
        said = getattr(model, "failure_", "")
        outcome["error"] = said or "The method reports a meaningless result."
    elif np.unique(labels).size < min(2, n_clusters):
        outcome["error"] = "All samples fell into one cluster."
    else:
        outcome |= {"status": "ok", **scores(drawn.labels, labels)}
        outcome["extras"]["ari"] = float(adjusted_rand_score(drawn.labels, labels))
        if method.finds_number:
            outcome["extras"]["found"] = int(np.unique(labels).size)
        outcome["extras"] |= _extras(model, cell.row.keep)


@dataclass(frozen=True)
class Progress(Record):
    """The state of a run.

    Attributes
    ----------
    done, total : int
        Cells computed in this run, and cells that it has to compute.
    left : float
        The estimate of the seconds to come.
    last : RunRecord
        The record just stored.
    """

    done: int
    total: int
    left: float
    last: RunRecord


@dataclass(frozen=True)
class RunReport(Record):
    """What a run did, and how long it took.

    Attributes
    ----------
    db : Path
        The file that has the records.
    computed, skipped, failed : int
        Cells computed now, cells stored before, and how many of the former failed.
    missing, left : int
        Cells without their data, and cells that a later run computes.
    absent : dict of str to str
        For each dataset that is not there, where to get it.
    seconds : float
        The time that it took.
    interrupted : bool
        Whether the user stopped it.
    """

    db: Path
    computed: int
    skipped: int
    failed: int
    missing: int
    left: int
    absent: dict[str, str]
    seconds: float
    interrupted: bool


def progress_line(progress: Progress) -> str:
    """Say which cell was finished, with what score, and how much is left."""
    record = progress.last
    score = f"AC {record.ac:.4f} NMI {record.nmi:.4f}" if record.ac is not None else record.status
    done = f"{progress.done}/{progress.total}, {progress.left / 60:.1f} min left"
    place = f"{record.experiment} · {record.row} · {record.method} · run {record.run}"
    return f"{done} · {place} · {score} · {record.seconds or 0.0:.1f} s"


def log_progress(progress: Progress) -> None:
    """Report each finished cell through logging.

    Parameters
    ----------
    progress : Progress
        The state of the run.
    """
    logger.info("%s", progress_line(progress))


class TimeEstimate:
    """Times of cells, foretold by the mean of those like them.

    Like a cell are those of its row and method, then of its table and method, then of its dataset
    and method, then of its method. Processor time counts, which other programs do not lengthen.

    Parameters
    ----------
    known : iterable of RunRecord
        Records whose times are known.
    """

    def __init__(self, known: Iterable[RunRecord]) -> None:
        # The sum and the number of the times of each kind.
        self._sums: dict[tuple[str, ...], tuple[float, int]] = {}
        for record in known:
            self.add(record)

    @staticmethod
    def _keys(key: Key, data: str) -> list[tuple[str, ...]]:
        profile, table, row, method, _ = key
        places = [(table, row), (table, ""), ("", data), ("", "")]
        return [(profile, method, *place) for place in places]

    def add(self, record: RunRecord) -> None:
        """Take note of a cell's time."""
        seconds = record.seconds if record.cpu_seconds is None else record.cpu_seconds
        if seconds is not None:
            for key in self._keys(record.key, record.dataset):
                total, count = self._sums.get(key, (0.0, 0))
                self._sums[key] = total + seconds, count + 1

    def of(self, cell: Cell) -> float:
        """Return the seconds that a cell will take."""
        for key in self._keys(cell.key, cell.row.dataset):
            if key in self._sums:
                total, count = self._sums[key]
                return total / count
        return dict(SETTINGS.guesses)[cell.profile][cell.order[0]]


@cache
def _commit() -> str:
    """Return the commit of the checkout that tuckermix is imported from; empty for a wheel."""
    words = ["git", "-C", str(Path(tuckermix.__file__).parent), "describe", "--always", "--dirty"]
    with suppress(OSError, subprocess.SubprocessError):  # no git, or no checkout
        silent: dict[str, Any] = {"stderr": subprocess.DEVNULL, "text": True, "timeout": 10}
        return subprocess.check_output([*words, "--exclude=*"], **silent).strip()
    return ""


def _record(cell: Cell, outcome: Mapping[str, Any]) -> RunRecord:
    """Turn the outcome of a cell into its record."""
    return RunRecord(
        *cell.key,
        digest=cell.digest,
        dataset=cell.row.dataset,
        seed=cell.seed,
        parameters=cell.parameters(),
        versions=versions(NUMERICAL),
        method_version=cell.version,
        package_version=tuckermix.__version__,
        commit=_commit(),
        machine=machine(),
        finished=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        **outcome,
    )


def pending(
    cells: Iterable[Cell], records: Iterable[RunRecord], retry_failed: bool = False
) -> list[Cell]:
    """Return the cells without a record at their present settings.

    Parameters
    ----------
    cells : iterable of Cell
        What is asked for.
    records : iterable of RunRecord
        What is there.
    retry_failed : bool, default=False
        Whether a record without a score counts as none.

    Returns
    -------
    cells : list of Cell
        What is left to compute.
    """
    known = {
        record.key: record.digest for record in records if record.status == "ok" or not retry_failed
    }
    return [cell for cell in cells if known.get(cell.key) != cell.digest]


def import_records(path: str | os.PathLike[str], db: str | os.PathLike[str]) -> int:
    """Add records to a store.

    What the store has stays, but for records without a score, or of other settings than the tables
    ask for now, where a better one comes.

    Parameters
    ----------
    path : path
        A `records.csv` that ``reproduce show --out`` wrote, or the file of another store.
    db : path
        The file of the store; made where it is missing.

    Returns
    -------
    count : int
        How many records were added.
    """
    found = read_records(path)
    today = {
        cell.key: cell.digest
        for profile, library in tables.LIBRARIES.items()
        for cell in tables.cells_of(library.values(), tables.FIGURES.values(), profile=profile)
    }

    def worth(record: RunRecord) -> tuple[bool, bool]:
        return today.get(record.key, record.digest) == record.digest, record.status == "ok"

    with Store(db) as store:
        known = {record.key: worth(record) for record in store.records()}
        new = [one for one in found if one.key not in known or worth(one) > known[one.key]]
        store.add(*new)
    return len(new)


def _serve(pipe: Connection, parent: int) -> None:
    """Compute cells in a process of its own until the runner is gone; Ctrl-C is for the runner."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    if os.name == "posix":
        threading.Thread(target=watch, daemon=True).start()
    pipe.send("ready")
    while True:
        try:
            words = pickle.loads(pipe.recv_bytes())
        except EOFError:
            return
        except Exception as error:  # the method cannot be imported here
            pipe.send({"status": "failed", "error": f"{type(error).__name__}: {error}"})
        else:
            pipe.send(execute(*words))


class Worker:
    """A process that computes one cell at a time. It is replaced when it dies or is too slow.

    Parameters
    ----------
    time_limit : float or None
        Seconds after which a cell is given up.
    """

    cell: Cell | None = None

    def __init__(self, time_limit: float | None) -> None:
        self.time_limit = time_limit
        self._start()

    def _start(self) -> None:
        context = get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other, os.getpid()))
        self.process.start()
        other.close()
        self.ready = False

    def begin(self, cell: Cell, words: tuple[Any, ...]) -> None:
        """Send a cell to the process. Its time starts after the imports."""
        if not self.ready:
            self.ready = self.pipe.recv() == "ready"
        self.cell, self.begun = cell, time.monotonic()
        self.pipe.send_bytes(cloudpickle.dumps(words))

    def outcome(self, answered: bool) -> dict[str, Any] | None:
        """Return the outcome of the cell, None while it is computed."""
        try:
            if answered:
                return self.pipe.recv()
            if self.time_limit is None or time.monotonic() - self.begun <= self.time_limit:
                return None
            text = f"Stopped at the time limit of {self.time_limit:g} s."
            outcome = {"status": "timeout", "seconds": self.time_limit, "error": text}
        except (EOFError, ConnectionResetError):
            text = "The process ended without a result: it was killed, or ran out of memory."
            outcome = {"status": "failed", "error": text}
        self.stop()
        self._start()
        return outcome

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _computed(
    cells: Iterable[Cell],
    words: Callable[[Cell], tuple[Any, ...]],
    jobs: int,
    time_limit: float | None,
) -> Generator[tuple[Cell | None, dict[str, Any]]]:
    """Yield each cell that ends and its outcome, and now and then None and nothing."""
    if not jobs:
        yield from ((cell, execute(*words(cell))) for cell in cells)
        return
    queue, workers = iter(cells), [Worker(time_limit) for _ in range(jobs)]
    try:
        while True:
            for worker in workers:
                if worker.cell is None and (cell := next(queue, None)) is not None:
                    worker.begin(cell, words(cell))
            busy = {worker.pipe: worker for worker in workers if worker.cell is not None}
            if not busy:
                return
            answered = wait(list(busy), SETTINGS.poll_seconds)
            yield None, {}
            for pipe, worker in busy.items():
                outcome = worker.outcome(pipe in answered)
                if outcome is not None:
                    cell, worker.cell = worker.cell, None
                    yield cell, outcome
    finally:
        for worker in workers:
            worker.stop()


def absent_data(cells: Iterable[Cell], data: str | None) -> dict[str, str]:
    """Return the datasets of cells that are not on this machine, and where to get each.

    Parameters
    ----------
    cells : iterable of Cell
        What is to be computed.
    data : str or None
        The folder of the datasets.

    Returns
    -------
    absent : dict of str to str
        Directions by dataset.
    """
    missing = {info.name for info in list_datasets(data) if info.state == "missing"}
    found = {}
    for name in missing & {cell.row.dataset for cell in cells}:
        try:
            DATASETS[name].load(data)
        except FileNotFoundError as error:
            found[name] = str(error)
    return dict(sorted(found.items()))


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    *,
    data: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    time_limit: float | None = None,
    stop_after: float | None = None,
    longest_first: bool = False,
    retry_failed: bool = False,
    refresh: bool = False,
    progress: Callable[[Progress], None] | None = log_progress,
    warn: Callable[[dict[str, str]], None] | None = None,
) -> RunReport:
    """Compute the cells that have no record yet and store each as soon as it is done.

    Parameters
    ----------
    cells : sequence of Cell
        What to compute, in this order.
    store : Store
        Where the records go. This process is the only one that writes to it.
    data, jobs, time_limit, stop_after, longest_first, retry_failed, refresh, progress, warn
        See :func:`reproduce`.

    Returns
    -------
    report : RunReport
        What was done. Ctrl-C ends the run early, with all finished cells stored.
    """
    jobs = cpu_count() if jobs is None else check_integer(jobs, "jobs", "reproduce", minimum=0)
    for name, value in (("time_limit", time_limit), ("stop_after", stop_after)):
        if value is not None:
            check_real(value, name, "reproduce", strict=True)
    home = None if data is None else os.fspath(data)
    todo = list(cells) if refresh else pending(cells, store.records(), retry_failed)
    skipped, absent = len(cells) - len(todo), absent_data(todo, home)
    estimate = TimeEstimate([*_published(), *store.records()])
    if absent and warn is not None:
        warn(absent)
    if longest_first:
        todo.sort(key=lambda cell: (-estimate.of(cell), *cell.order))
    left = {cell.key: cell for cell in todo if cell.row.dataset not in absent}
    ended = Counter({ABSENT: len(todo) - len(left)})
    begin, interrupted = time.monotonic(), False

    def over(seconds: float = 0.0) -> bool:
        return stop_after is not None and time.monotonic() - begin + seconds > stop_after

    def words(cell: Cell) -> tuple[Any, ...]:
        return cell, METHODS[cell.method], DATASETS[cell.row.dataset], home

    startable = (cell for cell in list(left.values()) if not over(estimate.of(cell)))
    outcomes = _computed(startable, words, jobs, time_limit)
    try:
        for cell, outcome in outcomes:
            if cell is None:
                if over():
                    break
                continue
            left.pop(cell.key)
            ended[outcome["status"]] += 1
            if outcome["status"] == ABSENT:
                absent[cell.row.dataset] = outcome["error"]
                continue
            record = _record(cell, outcome)
            store.add(record)
            estimate.add(record)
            if progress is not None:
                done = ended.total() - ended[ABSENT]
                seconds = sum(map(estimate.of, left.values())) / max(1, jobs)
                progress(Progress(done, done + len(left), seconds, record))
    except KeyboardInterrupt:
        interrupted = True
    finally:
        outcomes.close()
    return RunReport(
        db=store.path,
        computed=ended.total() - ended[ABSENT],
        skipped=skipped,
        failed=ended["failed"] + ended["timeout"],
        missing=ended[ABSENT],
        left=len(left),
        absent=absent,
        seconds=time.monotonic() - begin,
        interrupted=interrupted,
    )


@dataclass(frozen=True)
class Cost(Record):
    """What a table still costs.

    Attributes
    ----------
    table : str
        Which.
    cells : int
        How many cells are to be computed.
    seconds : float
        The processor time that they will take, by records of cells like them; for methods of which
        there is none by a guess.
    longest : float
        The time of the longest cell.
    """

    table: str
    cells: int
    seconds: float
    longest: float


Targets = str | Experiment | Iterable[str | Experiment]


def _cells(
    targets: Targets,
    *,
    runs: int | None = None,
    methods: Iterable[str] | None = None,
    rows: Iterable[str] | None = None,
    quick: bool = False,
) -> list[Cell]:
    """List the cells of targets, all of whose datasets must be known."""
    if runs is not None:
        check_integer(runs, "runs", "reproduce")
    found, figures = tables.resolve_targets(targets, quick=quick)
    if rows is not None:
        known = [row.name for table in found for row in table.rows]
        chosen = [check_option(name, "rows", "reproduce", known) for name in rows]
        found = [
            replace(table, rows=tuple(row for row in table.rows if row.name in chosen))
            for table in found
        ]
        figures = []
    for row in (row for table in found for row in table.rows):
        check_option(row.dataset, "dataset", "Row", DATASETS)
    profile = tables.QUICK if quick else tables.PAPER
    return tables.cells_of(found, figures, runs=runs, methods=methods, profile=profile)


def plan(
    targets: Targets = "all",
    *,
    db: str | os.PathLike[str] = DEFAULT_DB,
    refresh: bool = False,
    **narrowed: Any,
) -> list[Cost]:
    """Say what :func:`reproduce` would still compute, and how long that takes.

    Parameters
    ----------
    targets, refresh : object
        See :func:`reproduce`.
    db : path, default="tuckermix-results.jsonl"
        The file with the records; one that does not exist means that nothing is stored.
    **narrowed
        `runs`, `methods`, `rows` and `quick`, see :func:`reproduce`.

    Returns
    -------
    costs : list of Cost
        One for each table with something to compute.
    """
    cells = _cells(targets, **narrowed)
    stored = read_store(db) if Path(db).exists() else []
    cells = cells if refresh else pending(cells, stored)
    estimate = TimeEstimate([*_published(), *stored])
    found: dict[str, list[float]] = defaultdict(list)
    for cell in cells:
        found[cell.experiment].append(estimate.of(cell))
    return [Cost(name, len(costs), sum(costs), max(costs)) for name, costs in found.items()]


def reproduce(
    targets: Targets = "all",
    *,
    runs: int | None = None,
    methods: Iterable[str] | None = None,
    rows: Iterable[str] | None = None,
    quick: bool = False,
    db: str | os.PathLike[str] = DEFAULT_DB,
    **running: Any,
) -> RunReport:
    """Compute the paper's tables and figures, continuing where an earlier run stopped.

    Parameters
    ----------
    targets : str, Experiment, or iterable of them, default="all"
        "table1" … "table6", "beyond", "photographs", "network", "open", "figure3", "figure4",
        "curves", "sizes", "cores", "all", or experiments of one's own.
    runs : int or None, default=None
        The number of runs in place of the paper's.
    methods : iterable of str or None, default=None
        Only these columns.
    rows : iterable of str or None, default=None
        Only these rows of the targets.
    quick : bool, default=False
        Whether to compute miniature tables on data that everybody has.
    db : path, default="tuckermix-results.jsonl"
        The file for the records.
    **running
        `data`: the folder of the datasets; None means what ``TUCKERMIX_DATA`` names.
        `jobs`: the number of processes, each with one numerical thread; None means one for each
        processor, 0 computes in this process, where `time_limit` cannot be kept.
        `time_limit`: seconds after which a cell is given up.
        `stop_after`: seconds after which the run ends. Cells that would take longer than what is
        left are not begun; what was begun all the same is computed next time.
        `longest_first`: whether cells that take long come first, so that no processor waits for the
        last of them; otherwise cheap ones do, and every table has something to show early.
        `retry_failed`, `refresh`: whether cells that failed before, or all, are computed again.
        `progress`: called with a :class:`Progress` after each record.
        `warn`: called before the first cell with the datasets that are not there, and where to get
        each.

    Returns
    -------
    report : RunReport
        What was done.
    """
    cells = _cells(targets, runs=runs, methods=methods, rows=rows, quick=quick)
    with Store(db) as store:
        return run_cells(cells, store, **running)
