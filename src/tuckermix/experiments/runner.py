"""Computes cells in parallel processes and stores each as soon as it is done."""

from __future__ import annotations

import logging
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from multiprocessing.connection import wait
from typing import Any

from tuckermix._validation import check_integer, check_real
from tuckermix.experiments._worker import Worker
from tuckermix.experiments.cells import FAILED, MISSING, TIMEOUT, Cell, execute, machine, versions
from tuckermix.experiments.draws import DATASETS, DatasetEntry
from tuckermix.experiments.methods import METHODS, Method
from tuckermix.experiments.progress import Progress, RunReport, TimeEstimate
from tuckermix.experiments.store import RunRecord, Store

__all__ = ["run_cells"]

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.5
"""How often time limits are looked at and the display is refreshed while nothing finishes."""


def _record(cell: Cell, outcome: Mapping[str, Any], where: str) -> RunRecord:
    """Turn the outcome of a cell into its record."""
    return RunRecord(
        *cell.key,
        digest=cell.digest,
        dataset=cell.row.dataset,
        seed=cell.seed,
        parameters=cell.parameters(),
        versions=versions(),
        machine=where,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
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
    cells: Sequence[Cell], options: Mapping[str, Any], notify: Callable[[list[Cell]], None]
) -> Iterator[tuple[Cell, dict[str, Any]]]:
    for cell in cells:
        notify([cell])
        yield cell, execute(cell, **options)


def _in_processes(
    cells: Sequence[Cell],
    options: Mapping[str, Any],
    notify: Callable[[list[Cell]], None],
    *,
    jobs: int,
    time_limit: float | None,
) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Yield cells with their outcomes as they finish."""
    queue = list(reversed(cells))
    workers: list[Worker] = []
    try:
        while queue or workers:
            while queue and len(workers) < jobs:
                worker = Worker(**options)
                worker.submit(queue.pop())
                workers.append(worker)
            ready = wait([worker.connection for worker in workers], timeout=POLL_SECONDS)
            if not ready:
                notify([worker.cell for worker in workers if worker.cell is not None])
            for worker in list(workers):
                cell = worker.cell
                assert cell is not None  # a worker without a cell is not in the list
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
                if queue and worker.alive:
                    worker.submit(queue.pop())
                else:
                    workers.remove(worker)
                    worker.stop()
                yield cell, outcome
    finally:
        for worker in workers:
            worker.stop()


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    *,
    data_home: str | None = None,
    jobs: int = 1,
    time_limit: float | None = None,
    retry_failed: bool = False,
    progress: Callable[[Progress], None] | None = None,
    methods: Mapping[str, Method] | None = None,
    datasets: Mapping[str, DatasetEntry] | None = None,
) -> RunReport:
    """Compute the cells that have no record yet and store each as soon as it is done.

    Parameters
    ----------
    cells : sequence of Cell
        What to compute, in this order.
    store : Store
        Where the records go. This process is the only one that writes to it.
    data_home : str or None, default=None
        The folder of the datasets.
    jobs : int, default=1
        The number of processes, each with one numerical thread; 0 computes in this process, where
        functions of an interactive session can be reached and `time_limit` cannot be kept.
    time_limit : float or None, default=None
        Seconds after which a cell is given up.
    retry_failed : bool, default=False
        Whether cells that failed before are tried again.
    progress : callable or None, default=None
        Called with a :class:`Progress` after each record and now and then in between.
    methods, datasets : mapping or None, default=None
        The registries; None means those of this package.

    Returns
    -------
    report : RunReport
        What was done. Ctrl-C ends the run early, with all finished cells stored.
    """
    check_integer(jobs, "jobs", "run_cells", minimum=0)
    if time_limit is not None:
        check_real(time_limit, "time_limit", "run_cells", strict=True)
    columns, sources = methods or METHODS, datasets or DATASETS
    options: dict[str, Any] = {
        "data_home": data_home,
        "methods": {name: columns[name] for name in {cell.method for cell in cells}},
        "datasets": {name: sources[name] for name in {cell.row.dataset for cell in cells}},
    }
    if jobs:
        _check_picklable({**options["methods"], **options["datasets"]})
    begin, where = time.monotonic(), machine()
    todo = _pending(cells, store, retry_failed)
    skipped, waiting = len(cells) - len(todo), {cell.key: cell for cell in todo}
    estimate = TimeEstimate(store.records())
    counts = {"done": 0, "failed": 0, "missing": 0}

    def notify(running: list[Cell], last: RunRecord | None = None) -> None:
        if progress is not None:
            progress(
                Progress(
                    counts["done"],
                    len(todo),
                    skipped,
                    counts["failed"] + counts["missing"],
                    tuple(str(cell) for cell in running),
                    time.monotonic() - begin,
                    estimate.left(waiting.values(), jobs),
                    last,
                )
            )

    if jobs:
        outcomes = _in_processes(todo, options, notify, jobs=jobs, time_limit=time_limit)
    else:
        outcomes = _in_this_process(todo, options, notify)
    interrupted = False
    try:
        for cell, outcome in outcomes:
            record = _record(cell, outcome, where)
            store.add(record)
            estimate.add(record)
            waiting.pop(cell.key)
            counts["done"] += 1
            counts["failed"] += record.status in (FAILED, TIMEOUT)
            counts["missing"] += record.status == MISSING
            notify([], record)
    except KeyboardInterrupt:
        interrupted = True
        logger.warning(
            "Stopped after %d of %d cells; the rest can follow.", counts["done"], len(todo)
        )
    finally:
        outcomes.close()  # type: ignore[attr-defined]
    return RunReport(
        db=store.path,
        computed=counts["done"],
        skipped=skipped,
        failed=counts["failed"],
        missing=counts["missing"],
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
