"""The whole of the paper in one call."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from tuckermix._validation import check_integer
from tuckermix.experiments.cells import PAPER, QUICK, Cell, cells_of
from tuckermix.experiments.draws import find_dataset
from tuckermix.experiments.fingerprint import code_fingerprint
from tuckermix.experiments.methods import METHODS
from tuckermix.experiments.progress import Progress, RunReport, log_progress
from tuckermix.experiments.runner import run_cells
from tuckermix.experiments.specs import Experiment
from tuckermix.experiments.store import Store
from tuckermix.experiments.tables import EXPERIMENTS, QUICK_EXPERIMENTS, resolve_targets

__all__ = ["DEFAULT_DB", "default_jobs", "reproduce"]

DEFAULT_DB = "tuckermix-results.sqlite"


def default_jobs() -> int:
    """Return the number of processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def reproduce(
    targets: str | Experiment | Iterable[str | Experiment] = "all",
    *,
    data: str | os.PathLike[str] | None = None,
    runs: int | None = None,
    methods: Iterable[str] | None = None,
    quick: bool = False,
    jobs: int | None = None,
    db: str | os.PathLike[str] = DEFAULT_DB,
    time_limit: float | None = None,
    retry_failed: bool = False,
    refresh: bool = False,
    progress: Callable[[Progress], None] | None = log_progress,
) -> RunReport:
    """Compute the paper's tables and figures, continuing where an earlier run stopped.

    Parameters
    ----------
    targets : str, Experiment, or iterable of them, default="all"
        "table1" … "table6", "figure3", "figure4", "all", or experiments of one's own.
    data : path or None, default=None
        The folder of the datasets; None means what ``TUCKERMIX_DATA`` names.
    runs : int or None, default=None
        The number of runs in place of the paper's.
    methods : iterable of str or None, default=None
        Only these columns.
    quick : bool, default=False
        Whether to compute miniature tables on data that everybody has.
    jobs : int or None, default=None
        The number of processes; None means one for each processor, 0 computes in this process.
    db : path, default="tuckermix-results.sqlite"
        The file for the records.
    time_limit : float or None, default=None
        Seconds after which a cell is given up.
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
    tables, figures = resolve_targets(targets, quick=quick)
    for table in tables:
        for row in table.rows:
            find_dataset(row.dataset)
    cells = cells_of(
        tables,
        figures,
        QUICK_EXPERIMENTS if quick else EXPERIMENTS,
        runs=runs,
        methods=methods,
        profile=QUICK if quick else PAPER,
    )
    with Store(db) as store, store.writing():
        if refresh:
            _delete_stale(store, cells)
        return run_cells(
            cells,
            store,
            data_home=None if data is None else os.fspath(data),
            jobs=default_jobs() if jobs is None else jobs,
            time_limit=time_limit,
            retry_failed=retry_failed,
            progress=progress,
        )


def _delete_stale(store: Store, cells: Iterable[Cell]) -> None:
    """Delete the records of these cells that older code computed."""
    keys = {cell.key for cell in cells}
    today = {name: code_fingerprint(method.factory) for name, method in METHODS.items()}
    for record in store.stale(today):
        if record.key in keys:
            store.delete(
                profile=record.profile,
                experiment=record.experiment,
                row=record.row,
                method=record.method,
                run=record.run,
            )
