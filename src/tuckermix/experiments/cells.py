"""One cell and run of a table: what it is, and how it is computed."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from tuckermix._records import Record
from tuckermix._resources import one_blas_thread
from tuckermix.experiments.draws import DATASETS, DatasetEntry, draw, seed_of
from tuckermix.experiments.methods import METHODS, Method, build, code_fingerprint, select_methods
from tuckermix.experiments.store import ARI
from tuckermix.experiments.tables import Experiment, Figure, Row
from tuckermix.summary import scores

__all__ = ["PAPER", "QUICK", "Cell", "cells_of", "execute", "source_of"]

PAPER, QUICK = "paper", "quick"
"""The two profiles: the paper's settings, and miniature ones for checks."""

OK, FAILED, MISSING, TIMEOUT = "ok", "failed", "missing", "timeout"
"""How a cell ended: with scores, with an error, without its data, or at its time limit."""

KEPT_HISTORY = ("iteration", "cost", "relative_error", "gap", "time")


@dataclass(frozen=True)
class Cell(Record):
    """A row, a method and the number of a run.

    Attributes
    ----------
    profile : {"paper", "quick"}
        The settings.
    experiment : str
        The table's name.
    row : Row
        The row.
    method : str
        The column.
    run : int
        The number of the run, from 0.
    settings : mapping
        The method's parameters beyond its defaults.
    version : str
        The method's version.
    order : tuple
        Where the cell stands in the queue: cheap methods first, then run by run over all tables, so
        that every table fills evenly.
    """

    profile: str
    experiment: str
    row: Row
    method: str
    run: int
    settings: Mapping[str, Any]
    version: str
    order: tuple[int, ...]

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What identifies the cell's record in a store."""
        return (self.profile, self.experiment, self.row.name, self.method, self.run)

    @property
    def seed(self) -> int:
        """The random state handed to the method."""
        return seed_of(self.experiment, self.row.name, self.method, self.run)

    def parameters(self) -> dict[str, Any]:
        """Return everything that determines the cell's numbers, but for the code."""
        return {
            **self.row.parameters(),
            "settings": dict(self.settings),
            "seed": self.seed,
            "version": self.version,
        }

    @property
    def digest(self) -> str:
        """A digest of the parameters: a record with another one belongs to other settings."""
        text = json.dumps([*self.key, self.parameters()], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return f"{self.experiment} · {self.row.name} · {self.method} · run {self.run}"


def _cell(table: Experiment, row: Row, method: Method, run: int, profile: str) -> Cell:
    settings = dict(method.settings)
    if profile == QUICK:
        settings |= method.quick_settings
    if method.takes_start:
        settings |= row.settings
    order = (method.cost, run, table.order, table.rows.index(row))
    return Cell(profile, table.name, row, method.name, run, settings, method.version, order)


def source_of(
    table: Experiment, row: Row, library: Mapping[str, Experiment]
) -> tuple[Experiment, Row]:
    """Return the table and row whose records a row shows: its own, or those that it names."""
    if row.of is None:
        return table, row
    name, place = row.of
    return library[name], library[name].row(place)


def cells_of(
    tables: Iterable[Experiment],
    figures: Iterable[Figure],
    library: Mapping[str, Experiment],
    *,
    runs: int | None = None,
    methods: Iterable[str] | None = None,
    profile: str = PAPER,
) -> list[Cell]:
    """List the cells of tables and figures in the order in which they are to be computed.

    Parameters
    ----------
    tables : iterable of Experiment
        The tables.
    figures : iterable of Figure
        The figures; each adds the runs of a table that it shows.
    library : mapping of str to Experiment
        Where the tables behind the figures are found, and those of which others show rows.
    runs : int or None, default=None
        The number of runs in place of each row's own.
    methods : iterable of str or None, default=None
        The columns in place of each table's own.
    profile : {"paper", "quick"}, default="paper"
        The settings.

    Returns
    -------
    cells : list of Cell
        Each once, cheap methods first.
    """
    chosen = None if methods is None else list(methods)
    cells: dict[tuple[str, str, str, str, int], Cell] = {}
    for shown in tables:
        for place in shown.rows:
            columns = [name for name in chosen or shown.methods if name not in place.without]
            table, row = source_of(shown, place, library)
            for method in select_methods(columns, ()):
                # A row of a single run has nothing that changes from run to run.
                count = table.runs_of(row, method.name) if runs is None or row.runs == 1 else runs
                for run in range(count):
                    cell = _cell(table, row, method, run, profile)
                    cells[cell.key] = cell
    for figure in figures:
        table = library[figure.experiment]
        for name in figure.rows:
            for method in select_methods(None, figure.methods):
                if chosen is None or method.name in chosen:
                    cell = _cell(table, table.row(name), method, 0, profile)
                    cells.setdefault(cell.key, cell)
    return sorted(cells.values(), key=lambda cell: cell.order)


def _status_value(field: str) -> int | None:
    """Read a field of this process's memory status in bytes, where the system offers it."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return None


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
            outcome["seconds"] = time.perf_counter() - wall
            outcome["cpu_seconds"] = time.process_time() - cpu
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
