"""Computes cells in parallel processes and stores each as soon as it is done.

From the bottom up: the processes (:class:`Worker`), where a run stands (:class:`Progress`), the run
over a list of cells (:func:`run_cells`), and the whole of the paper in one call
(:func:`reproduce`).
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import signal
import threading
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
from joblib import cpu_count
from sklearn.metrics import adjusted_rand_score

from tuckermix._reading import stated
from tuckermix._records import Record
from tuckermix._resources import one_blas_thread
from tuckermix._validation import check_integer, check_option, check_real
from tuckermix.experiments.draws import DATASETS, DatasetEntry, draw
from tuckermix.experiments.methods import METHODS, Method, build, code_fingerprint
from tuckermix.experiments.store import (
    ARI,
    FAILED,
    MISSING,
    OK,
    TIMEOUT,
    RunRecord,
    Store,
    read_records,
)
from tuckermix.experiments.tables import PAPER, QUICK, Cell, Experiment, cells_of, resolve_targets
from tuckermix.summary import NUMERICAL, SECONDS_DIGITS, machine, scores, versions

__all__ = [
    "DEFAULT_DB",
    "Cost",
    "Progress",
    "RunReport",
    "TimeEstimate",
    "Worker",
    "log_progress",
    "plan",
    "reproduce",
    "run_cells",
]

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.5
"""How often time limits are looked at and the display is refreshed while nothing finishes."""
DEFAULT_DB = "tuckermix-results.sqlite"
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
"""Read by the numerical libraries when they are loaded, hence set before a process starts."""
GUESSES = (0.5, 5.0, 60.0)
"""Seconds of a cell by its method's cost, while no cell of the method was computed."""
STOP_SECONDS = 5.0
"""How long a process may take to end after it was told to."""
KEPT_HISTORY = ("iteration", "cost", "relative_error", "gap", "time")
"""What a record keeps of each iteration, where a figure shows its course."""


def _status_value(field: str) -> int | None:
    """Read a field of this process's memory status in bytes, where the system offers it."""
    said = stated("/proc/self/status", field)  # such as "1234 kB"
    return int(said.split()[0]) * 1024 if said else None


def _reset_peak() -> int | None:
    """Start a new measurement of the peak of resident memory and return the present value."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    return _status_value("VmRSS")


def _peak_since(start: int | None) -> int | None:
    peak = _status_value("VmHWM")
    return None if start is None or peak is None else max(0, peak - start)


def _finite(value: Any) -> float | None:
    """Return a number as a float that JSON can hold."""
    number = float(value)
    return number if np.isfinite(number) else None


def _extras(estimator: Any, keep: Iterable[str]) -> dict[str, Any]:
    """Return the course and the centroids of a fit, as lists, where the row asks for them."""
    extras: dict[str, Any] = {}
    if "history" in keep and hasattr(estimator, "history_"):
        extras["history"] = [
            {name: _finite(entry[name]) for name in KEPT_HISTORY if name in entry}
            for entry in estimator.history_
        ]
    if "components" in keep:
        for name in ("components_", "centroids_"):
            values = getattr(estimator, name, None)
            if values is not None:
                extras[name.rstrip("_")] = np.asarray(values, dtype=float).round(6).tolist()
    return extras


def _explain(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


@one_blas_thread  # in any process: Ctrl-C inside scikit-learn's own limit would leave it behind
def execute(
    cell: Cell,
    *,
    data_home: str | None = None,
    methods: Mapping[str, Method] = METHODS,
    datasets: Mapping[str, DatasetEntry] = DATASETS,
) -> dict[str, Any]:
    """Compute a cell. Errors become part of the outcome; nothing is raised.

    Parameters
    ----------
    cell : Cell
        What to compute.
    data_home : str or None, default=None
        The folder of the datasets.
    methods, datasets : mapping
        The registries.

    Returns
    -------
    outcome : dict
        The fields of a record that the computation determines.
    """
    method = methods[cell.method]
    outcome: dict[str, Any] = {"fingerprint": code_fingerprint(method.factory, method.view)}
    try:
        entry = datasets[cell.row.dataset]
        drawn = draw(cell.row, cell.experiment, cell.run, entry=entry, data_home=data_home)
    except FileNotFoundError as error:
        return outcome | {"status": MISSING, "error": str(error)}
    except Exception as error:
        return outcome | {"status": FAILED, "error": _explain(error)}
    outcome |= {
        "n_samples": int(drawn.labels.size),
        "classes": [int(label) for label in np.unique(drawn.labels)],
        "extras": {} if drawn.seen is None else {"seen": drawn.seen},
    }
    n_clusters = len(outcome["classes"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            estimator = build(method, n_clusters, cell.row.ranks, cell.seed, cell.settings)
            start = _reset_peak()
            wall, cpu = time.perf_counter(), time.process_time()
            estimator.fit(drawn.X, *([drawn.labels] if method.uses_truth else []))
            outcome["seconds"] = round(time.perf_counter() - wall, SECONDS_DIGITS)
            outcome["cpu_seconds"] = round(time.process_time() - cpu, SECONDS_DIGITS)
            outcome["peak_memory"] = _peak_since(start)
            labels = np.asarray(estimator.labels_)
            reason = getattr(estimator, "stop_reason_", None)
            n_iter = getattr(estimator, "n_iter_", None)
            outcome["iterations"] = None if n_iter is None else int(n_iter)
            outcome["stop_reason"] = None if reason is None else str(reason)
            if str(reason) == "failed" or np.unique(labels).size < min(2, n_clusters):
                outcome["status"] = FAILED
                outcome["error"] = (
                    getattr(estimator, "failure_", "") or "The method reports a meaningless result."
                    if str(reason) == "failed"
                    else "All samples fell into one cluster."
                )
            else:
                outcome["status"] = OK
                outcome |= scores(drawn.labels, labels)
                outcome["extras"][ARI] = float(adjusted_rand_score(drawn.labels, labels))
                outcome["extras"] |= _extras(estimator, cell.row.keep)
        except Exception as error:
            outcome |= {"status": FAILED, "error": _explain(error)}
    texts = dict.fromkeys(f"{item.category.__name__}: {item.message}" for item in caught)
    outcome["warnings"] = list(texts)
    return outcome


@contextmanager
def _one_thread() -> Iterator[None]:
    """Have processes that start now use one thread each, so that jobs do not fight over cores."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _end_with_parent() -> None:
    """End this process as soon as the runner is gone, even if that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _serve(connection: Connection, options: dict[str, Any]) -> None:
    """Compute cells as they arrive, until None arrives."""
    # Ctrl-C reaches every process of the terminal; only the runner acts on it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        while (cell := connection.recv()) is not None:
            connection.send(None)  # the clock of the time limit starts here, not with the imports
            connection.send(execute(cell, **options))


class Worker:
    """A spawned process that computes one cell at a time.

    Parameters
    ----------
    **options
        What :func:`execute` takes beside a cell, handed over once.
    """

    def __init__(self, **options: Any) -> None:
        self.started: float | None = None
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, options), daemon=True)
        with _one_thread():
            self.process.start()
        theirs.close()

    def submit(self, cell: Cell) -> None:
        """Hand over a cell."""
        self.started = None
        self.connection.send(cell)

    @property
    def elapsed(self) -> float:
        """Seconds since the process began to compute the present cell."""
        return 0.0 if self.started is None else time.monotonic() - self.started

    def collect(self) -> dict[str, Any] | None:
        """Take what the process says: None when it begins, then the outcome of the cell.

        A process that died is an outcome, too.
        """
        try:
            outcome = self.connection.recv()
            if outcome is None:
                self.started = time.monotonic()
        except (EOFError, OSError):
            self.process.join(STOP_SECONDS)
            outcome = {
                "status": "failed",
                "error": (
                    f"The process ended without a result (exit code {self.process.exitcode}): it "
                    "was killed, or ran out of memory."
                ),
            }
        return outcome

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self.process.kill()
        self.process.join(STOP_SECONDS)
        self.connection.close()


@dataclass(frozen=True)
class Progress(Record):
    """Where a run stands.

    Attributes
    ----------
    done, total : int
        Cells computed in this run, and cells that it has to compute.
    skipped : int
        Cells that were stored before.
    failed : int
        How many of `done` ended without a score.
    running : tuple of str
        The cells in flight.
    elapsed, left : float
        Seconds since the start, and the estimate of those to come (nan while nothing is known).
    last : RunRecord or None
        The record just stored; None when the display is merely refreshed.
    """

    done: int
    total: int
    skipped: int
    failed: int
    running: tuple[str, ...]
    elapsed: float
    left: float
    last: RunRecord | None = None


@dataclass(frozen=True)
class RunReport(Record):
    """What a run did, and how long it took.

    Attributes
    ----------
    db : Path
        The file that has the records.
    computed, skipped, failed, missing : int
        Cells computed now, cells stored before, and how many of the former failed or lack data.
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
    seconds: float
    interrupted: bool = False


def log_progress(progress: Progress) -> None:
    """Report each finished cell through logging: the display where there is no terminal.

    Parameters
    ----------
    progress : Progress
        Where the run stands.
    """
    record = progress.last
    if record is None:
        return
    score = f"AC {record.ac:.4f} NMI {record.nmi:.4f}" if record.ac is not None else record.status
    left = "" if progress.left != progress.left else f", {progress.left / 60:.1f} min left"
    done = f"{progress.done}/{progress.total}{left}"
    place = f"{record.experiment} · {record.row} · {record.method} · run {record.run}"
    logger.info("%s · %s · %s · %.1f s", done, place, score, record.seconds or 0.0)


class TimeEstimate:
    """Time left, from the mean times of cells like those still to come.

    Like a cell are those of its row and method, then of its table and method, then of its dataset
    and method, then of its method, then all; processor time counts, which other programs do not
    lengthen.
    """

    def __init__(self, known: Iterable[RunRecord]) -> None:
        self._times: dict[tuple[str, ...], list[float]] = defaultdict(list)
        for record in known:
            self.add(record)

    @staticmethod
    def _keys(table: str, row: str, dataset: str, method: str) -> list[tuple[str, ...]]:
        return [(table, row, method), (table, "", method), ("", dataset, method), (method,), ()]

    def add(self, record: RunRecord) -> None:
        """Take note of a cell's time."""
        seconds = record.seconds if record.cpu_seconds is None else record.cpu_seconds
        if seconds is not None:
            names = (record.experiment, record.row, record.dataset, record.method)
            for key in self._keys(*names):
                self._times[key].append(seconds)

    def of(self, cell: Cell) -> float:
        """Return the seconds that a cell will take; nan while nothing is known."""
        for key in self._keys(cell.experiment, cell.row.name, cell.row.dataset, cell.method):
            if self._times[key]:
                return sum(self._times[key]) / len(self._times[key])
        return float("nan")

    def longest_first(self, cells: Iterable[Cell]) -> list[Cell]:
        """Order cells by their time, the longest first; unknown ones by what methods say."""
        return sorted(cells, key=lambda cell: (-self.guess(cell), *cell.order))

    def guess(self, cell: Cell) -> float:
        """Return the seconds that a cell will take; by its method's cost while none is known."""
        return self.of(cell) if self._times[(cell.method,)] else GUESSES[cell.order[0]]

    def left(self, cells: Iterable[Cell], jobs: int) -> float:
        """Return the seconds that cells will take in so many processes."""
        return sum(self.of(cell) for cell in cells) / max(1, jobs)


def _record(cell: Cell, outcome: Mapping[str, Any], where: str) -> RunRecord:
    """Turn the outcome of a cell into its record."""
    return RunRecord(
        *cell.key,
        digest=cell.digest,
        dataset=cell.row.dataset,
        seed=cell.seed,
        parameters=cell.parameters(),
        versions=versions(NUMERICAL),
        machine=where,
        finished=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        **outcome,
    )


def _pending(cells: Iterable[Cell], store: Store, retry_failed: bool) -> list[Cell]:
    """Return the cells without a record at their present settings.

    A cell whose data were missing is tried again each time: the data may be there now.
    """
    again = {MISSING} | ({FAILED, TIMEOUT} if retry_failed else set())
    known = store.digests()
    return [
        cell
        for cell in cells
        if cell.key not in known or known[cell.key][0] != cell.digest or known[cell.key][1] in again
    ]


def _in_this_process(
    cells: Sequence[Cell],
    options: Mapping[str, Any],
    notify: Callable[[list[Cell]], None],
    stop_after: float | None,
) -> Iterator[tuple[Cell, dict[str, Any]]]:
    begin = time.monotonic()
    for cell in cells:
        if stop_after is not None and time.monotonic() - begin > stop_after:
            return
        notify([cell])
        yield cell, execute(cell, **options)


def _in_processes(
    cells: Sequence[Cell],
    options: Mapping[str, Any],
    notify: Callable[[list[Cell]], None],
    *,
    jobs: int,
    time_limit: float | None,
    stop_after: float | None,
) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Yield cells with their outcomes as they finish."""
    queue = list(reversed(cells))
    workers: dict[Worker, Cell] = {}
    begin = time.monotonic()
    try:
        while queue or workers:
            if stop_after is not None and time.monotonic() - begin > stop_after:
                return
            while queue and len(workers) < jobs:
                worker = Worker(**options)
                workers[worker] = queue.pop()
                worker.submit(workers[worker])
            ready = wait([worker.connection for worker in workers], timeout=POLL_SECONDS)
            if not ready:
                notify(list(workers.values()))
            for worker, cell in list(workers.items()):
                outcome = worker.collect() if worker.connection in ready else None
                if outcome is None and time_limit is not None and worker.elapsed > time_limit:
                    worker.stop()
                    outcome = {
                        "status": TIMEOUT,
                        "seconds": worker.elapsed,
                        "error": f"Stopped at the time limit of {time_limit:g} s.",
                    }
                if outcome is None:
                    continue
                # The next cell starts before this one is written: nobody waits for the disk.
                if queue and worker.process.is_alive():
                    workers[worker] = queue.pop()
                    worker.submit(workers[worker])
                else:
                    del workers[worker]
                    worker.stop()
                yield cell, outcome
    finally:
        for worker in workers:
            worker.stop()


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    *,
    data: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    time_limit: float | None = None,
    stop_after: float | None = None,
    longest_first: bool = False,
    times: Iterable[RunRecord] = (),
    retry_failed: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> RunReport:
    """Compute the cells that have no record yet and store each as soon as it is done.

    Parameters
    ----------
    cells : sequence of Cell
        What to compute, in this order.
    store : Store
        Where the records go. This process is the only one that writes to it.
    data : path or None, default=None
        The folder of the datasets.
    jobs : int or None, default=None
        The number of processes, each with one numerical thread; None means one for each processor,
        0 computes in this process, where functions of an interactive session can be reached and
        `time_limit` cannot be kept.
    time_limit : float or None, default=None
        Seconds after which a cell is given up.
    stop_after : float or None, default=None
        Seconds after which the run ends. What was begun then is computed next time.
    longest_first : bool, default=False
        Whether cells that take long come first, so that no processor waits for the last of them,
        in place of the order in which they are given.
    times : iterable of RunRecord, default=()
        Records that only tell how long cells take, beside those of the store.
    retry_failed : bool, default=False
        Whether cells that failed before are tried again.
    progress : callable or None, default=None
        Called with a :class:`Progress` after each record and now and then in between.

    Returns
    -------
    report : RunReport
        What was done. Ctrl-C ends the run early, with all finished cells stored.
    """
    jobs = cpu_count() if jobs is None else check_integer(jobs, "jobs", "run_cells", minimum=0)
    for name, value in (("time_limit", time_limit), ("stop_after", stop_after)):
        if value is not None:
            check_real(value, name, "run_cells", strict=True)
    options: dict[str, Any] = {
        "data_home": None if data is None else os.fspath(data),
        "methods": {cell.method: METHODS[cell.method] for cell in cells},
        "datasets": {cell.row.dataset: DATASETS[cell.row.dataset] for cell in cells},
    }
    if jobs:
        _check_picklable({**options["methods"], **options["datasets"]})
    begin, where = time.monotonic(), machine()
    todo = _pending(cells, store, retry_failed)
    skipped, waiting = len(cells) - len(todo), {cell.key: cell for cell in todo}
    estimate = TimeEstimate([*store.records(), *times])
    if longest_first:
        todo = estimate.longest_first(todo)
    ended: Counter[str] = Counter()

    def notify(running: list[Cell], last: RunRecord | None = None) -> None:
        if progress is not None:
            progress(
                Progress(
                    ended.total(),
                    len(todo),
                    skipped,
                    ended.total() - ended[OK],
                    tuple(str(cell) for cell in running),
                    time.monotonic() - begin,
                    estimate.left(waiting.values(), jobs),
                    last,
                )
            )

    if jobs:
        outcomes = _in_processes(
            todo, options, notify, jobs=jobs, time_limit=time_limit, stop_after=stop_after
        )
    else:
        outcomes = _in_this_process(todo, options, notify, stop_after)
    interrupted = False
    try:
        for cell, outcome in outcomes:
            record = _record(cell, outcome, where)
            store.add(record)
            estimate.add(record)
            waiting.pop(cell.key)
            ended[record.status] += 1
            notify([], record)
    except KeyboardInterrupt:
        interrupted = True
        logger.warning(
            "Stopped after %d of %d cells; the rest can follow.", ended.total(), len(todo)
        )
    finally:
        outcomes.close()  # type: ignore[attr-defined]
    return RunReport(
        db=store.path,
        computed=ended.total(),
        skipped=skipped,
        failed=ended[FAILED] + ended[TIMEOUT],
        missing=ended[MISSING],
        seconds=time.monotonic() - begin,
        interrupted=interrupted,
    )


def _check_picklable(entries: Mapping[str, Any]) -> None:
    """Raise, before anything starts, if a registered function cannot reach another process."""
    for name, entry in entries.items():
        try:
            pickle.dumps(entry)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ValueError(
                f"{name!r} cannot be sent to another process ({error}): define its function at the "
                "top level of a module, or pass jobs=0."
            ) from error


@dataclass(frozen=True)
class Cost(Record):
    """What a column of a table still costs.

    Attributes
    ----------
    table, method : str
        Which column of which table.
    cells : int
        How many cells are to be computed.
    seconds : float
        The processor time that they will take, by records of cells like them; for methods of which
        there is none by what they say of themselves.
    longest : float
        The time of the longest cell.
    """

    table: str
    method: str
    cells: int
    seconds: float
    longest: float


def _cells(
    targets: str | Experiment | Iterable[str | Experiment],
    runs: int | None,
    methods: Iterable[str] | None,
    quick: bool,
    rows: Iterable[str] | None,
) -> list[Cell]:
    """List the cells of targets, all of whose datasets must be known."""
    tables, figures = resolve_targets(targets, quick=quick)
    if rows is not None:
        known = [row.name for table in tables for row in table.rows]
        chosen = list(rows)
        for name in chosen:
            check_option(name, "rows", "reproduce", known)
        tables = [
            replace(table, rows=tuple(row for row in table.rows if row.name in chosen))
            for table in tables
        ]
        figures = []
    for table in tables:
        for row in table.rows:
            check_option(row.dataset, "dataset", "Row", DATASETS)
    profile = QUICK if quick else PAPER
    return cells_of(tables, figures, runs=runs, methods=methods, profile=profile)


def _fingerprints() -> dict[str, str]:
    """Return today's fingerprints of the code, by method."""
    return {name: code_fingerprint(method.factory, method.view) for name, method in METHODS.items()}


def plan(
    targets: str | Experiment | Iterable[str | Experiment] = "all",
    *,
    runs: int | None = None,
    methods: Iterable[str] | None = None,
    rows: Iterable[str] | None = None,
    quick: bool = False,
    db: str | os.PathLike[str] = DEFAULT_DB,
    times: str | os.PathLike[str] | None = None,
    refresh: bool = False,
) -> list[Cost]:
    """Say what :func:`reproduce` would still compute, and how long that takes.

    Parameters
    ----------
    targets : str, Experiment, or iterable of them, default="all"
        What would be computed.
    runs : int or None, default=None
        The number of runs in place of the paper's.
    methods : iterable of str or None, default=None
        Only these columns.
    rows : iterable of str or None, default=None
        Only these rows.
    quick : bool, default=False
        Whether miniature tables are meant.
    db : path, default="tuckermix-results.sqlite"
        The file with the records; one that does not exist means that nothing is stored.
    times : path or None, default=None
        Published records, from which times are foretold too.
    refresh : bool, default=False
        Whether records of older code count as not there.

    Returns
    -------
    costs : list of Cost
        One for each table and method with something to compute.
    """
    cells = _cells(targets, runs, methods, quick, rows)
    known = [] if times is None else read_records(times)
    if Path(db).is_file():
        with Store(db, read_only=True) as store:
            left = {cell.key for cell in _pending(cells, store, False)}
            if refresh:
                left |= store.of_older_code({cell.key for cell in cells}, _fingerprints())
            cells, known = [c for c in cells if c.key in left], [*store.records(), *known]
    estimate = TimeEstimate(known)
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for cell in cells:
        found[cell.experiment, cell.method].append(estimate.guess(cell))
    return [Cost(*key, len(costs), sum(costs), max(costs)) for key, costs in found.items()]


def reproduce(
    targets: str | Experiment | Iterable[str | Experiment] = "all",
    *,
    data: str | os.PathLike[str] | None = None,
    runs: int | None = None,
    methods: Iterable[str] | None = None,
    rows: Iterable[str] | None = None,
    quick: bool = False,
    jobs: int | None = None,
    db: str | os.PathLike[str] = DEFAULT_DB,
    time_limit: float | None = None,
    stop_after: float | None = None,
    longest_first: bool = False,
    times: str | os.PathLike[str] | None = None,
    retry_failed: bool = False,
    refresh: bool = False,
    progress: Callable[[Progress], None] | None = log_progress,
) -> RunReport:
    """Compute the paper's tables and figures, continuing where an earlier run stopped.

    Parameters
    ----------
    targets : str, Experiment, or iterable of them, default="all"
        "table1" … "table6", "figure3", "figure4", "beyond", "curves", "sizes", "cores", "all", or
        experiments of one's own.
    data : path or None, default=None
        The folder of the datasets; None means what ``TUCKERMIX_DATA`` names.
    runs : int or None, default=None
        The number of runs in place of the paper's.
    methods : iterable of str or None, default=None
        Only these columns.
    rows : iterable of str or None, default=None
        Only these rows of the targets.
    quick : bool, default=False
        Whether to compute miniature tables on data that everybody has.
    jobs : int or None, default=None
        The number of processes; None means one for each processor, 0 computes in this process.
    db : path, default="tuckermix-results.sqlite"
        The file for the records.
    time_limit : float or None, default=None
        Seconds after which a cell is given up.
    stop_after : float or None, default=None
        Seconds after which the run ends. What was begun then is computed next time.
    longest_first : bool, default=False
        Whether cells that take long come first, so that no processor waits for the last of them;
        otherwise cheap ones do, and every table has something to show early.
    times : path or None, default=None
        A `records.csv` that tells how long cells take, beside the records of the store.
    retry_failed : bool, default=False
        Whether cells that failed before are tried again.
    refresh : bool, default=False
        Whether records of older code are deleted first, so that their cells are computed anew.
    progress : callable or None, default=log_progress
        Called with a :class:`Progress` as the run proceeds.

    Returns
    -------
    report : RunReport
        What was done.
    """
    if runs is not None:
        check_integer(runs, "runs", "reproduce")
    cells = _cells(targets, runs, methods, quick, rows)
    with Store(db) as store, store.writing():
        if refresh:
            store.delete_stale({cell.key for cell in cells}, _fingerprints())
        return run_cells(
            cells,
            store,
            data=data,
            jobs=jobs,
            time_limit=time_limit,
            stop_after=stop_after,
            longest_first=longest_first,
            times=() if times is None else read_records(times),
            retry_failed=retry_failed,
            progress=progress,
        )
