"""Where methods of one's own stand among the published columns, on the same draws.

Every row of the tables has one set of draws, which follow from the names of table and row and the
number of the run. A new method is run on them and compared draw by draw with the records that the
package publishes: nothing of the other columns has to be computed again.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median, variance
from typing import Any

from tuckermix._files import csv_text
from tuckermix._records import Record
from tuckermix._validation import check_integer
from tuckermix.experiments.cells import OK, PAPER, QUICK, cells_of, source_of
from tuckermix.experiments.methods import METHODS, Method, register_method
from tuckermix.experiments.runner import Progress, RunReport, default_jobs, log_progress, run_cells
from tuckermix.experiments.store import RunRecord, Store, read_records
from tuckermix.experiments.summaries import (
    BEHIND,
    FIRST,
    ROUNDING,
    SHOWN,
    SINGLE,
    TIED,
    Difference,
    _scores,
    paired_difference,
    verdict_of,
)
from tuckermix.experiments.tables import EXPERIMENTS, QUICK_EXPERIMENTS, Experiment, Row

__all__ = [
    "PLACES_DB",
    "PLACES_VERSION",
    "Benchmark",
    "Place",
    "benchmark",
    "places_csv",
    "published_records",
]

PLACES_DB = "tuckermix-bench.sqlite"
"""A file of its own: methods of one's own do not become columns of the paper's tables."""

PLACES_VERSION = 1
"""Grows when a column of the CSV of places changes its meaning or goes."""

RECORDS = "records.csv"
"""The name of the published records, in a wheel beside this file."""

ON_REQUEST = ("table1", "sizes", "cores", "curves")
"""Tables that vary one setting on one dataset: run when they are named."""

BESIDE_QUICK = ("k-means", "spectral", "TuckerClustering")
"""Nothing is published of the quick setting, so these are computed there too; they take seconds."""

ALONE = "alone"
"""How a method stands in a row of which no other column has a record."""
VERDICTS = (FIRST, TIED, BEHIND, SINGLE, ALONE)


@dataclass(frozen=True)
class Place(Record):
    """Where a method stands in one row, by one measure.

    Attributes
    ----------
    method : str
        Its name.
    table, row, dataset : str
        Where.
    n_samples, n_clusters : int
        The size of a draw.
    metric : str
        "AC", "NMI", …
    draws : int
        Runs with a score.
    mean : float
        The mean over them.
    error : float or None
        Its standard error; None for a single draw.
    rank, columns : int
        One more than the number of columns that are better on average over the common draws, and
        how many columns there are, this one included.
    verdict : {"first", "tied first", "behind", "single run", "alone"}
        "first" if more than two standard errors ahead of every column, "behind" if one of them is
        so far ahead, "tied first" otherwise; one run decides nothing.
    rival : str
        The column that it leads least, or that leads it most; empty if there is none.
    rival_mean : float or None
        The mean of that column over all its draws.
    lead : Difference or None
        This method minus that column, over the draws that both have.
    winners, ties : tuple of str
        The columns that are more than two standard errors ahead, and those that the draws cannot
        tell apart from it.
    seconds, cpu_seconds : float or None
        The mean time of a fit, by the clock and by the processor.
    """

    method: str
    table: str
    row: str
    dataset: str
    n_samples: int
    n_clusters: int
    metric: str
    draws: int
    mean: float
    error: float | None
    rank: int
    columns: int
    verdict: str
    rival: str
    rival_mean: float | None
    lead: Difference | None
    winners: tuple[str, ...]
    ties: tuple[str, ...]
    seconds: float | None
    cpu_seconds: float | None

    def line(self) -> dict[str, Any]:
        """Return the fields as the CSV and the JSON have them."""
        lead = self.lead
        values = self.to_dict() | {
            "lead": None if lead is None else lead.mean,
            "lead_error": None if lead is None else lead.error,
            "common_draws": 0 if lead is None else lead.pairs,
            "winners": list(self.winners),
            "ties": list(self.ties),
        }
        return {name: values[name] for name in PLACE_FIELDS}


PLACE_FIELDS = (
    *("method", "table", "row", "dataset", "n_samples", "n_clusters", "metric", "draws"),
    *("mean", "error", "rank", "columns", "verdict", "rival", "rival_mean"),
    *("lead", "lead_error", "common_draws", "winners", "ties", "seconds", "cpu_seconds"),
)
"""The columns of the CSV of places, after the number of its version."""


@dataclass(frozen=True)
class Benchmark(Record):
    """What came of running methods beside the published columns.

    Attributes
    ----------
    places : tuple of Place
        One for each method, row and measure.
    failures : tuple of RunRecord
        The runs of these methods without a score, each with its ``error``.
    missing : tuple of str
        The datasets that are not on this machine; their rows were left out.
    older : int
        How many published records belong to other draws or settings than today's and do not count.
    report : RunReport
        What was computed.
    """

    places: tuple[Place, ...]
    failures: tuple[RunRecord, ...]
    missing: tuple[str, ...]
    older: int
    report: RunReport

    def tally(self, method: str, metric: str) -> dict[str, Any]:
        """Count how a method stands over all rows.

        Parameters
        ----------
        method, metric : str
            Whose, and by which measure.

        Returns
        -------
        tally : dict
            ``rows``, how many there are; how many of them are "first", "tied first", "behind",
            "single run" and "alone"; ``median_rank``, over those with other columns; and
            ``behind_whom``, the columns that are ahead, with the number of rows, most often first.
        """
        mine = [one for one in self.places if (one.method, one.metric) == (method, metric)]
        verdicts = Counter(one.verdict for one in mine)
        ranks = [one.rank for one in mine if one.verdict != ALONE]
        ahead = Counter(name for one in mine for name in one.winners)
        return {
            "rows": len(mine),
            **{verdict: verdicts[verdict] for verdict in VERDICTS},
            "median_rank": median(ranks) if ranks else None,
            "behind_whom": dict(ahead.most_common()),
        }


def published_records() -> Path:
    """Return the file of records that comes with the package.

    Returns
    -------
    path : Path
        ``records.csv`` in the installed package, or that of the checkout.
    """
    here = Path(__file__)
    for path in (here.with_name(RECORDS), here.parents[3] / "docs" / "results" / RECORDS):
        if path.is_file():
            return path
    raise FileNotFoundError(
        "This copy of tuckermix has no published records: name a records.csv with --records."
    )


def _absent(data: str | None) -> set[str]:
    """Return the datasets that are known by name and not on this machine."""
    from tuckermix.datasets import list_datasets

    return {info.name for info in list_datasets(data) if info.state == "missing"}


def choose_rows(
    wanted: Iterable[str] | None, library: Mapping[str, Experiment]
) -> list[Experiment]:
    """Return tables with the rows that are asked for.

    Parameters
    ----------
    wanted : iterable of str or None
        Names of tables ("table5"), of rows ("table5:ORL") and of datasets ("mnist"); None means
        all tables but those in `ON_REQUEST`.
    library : mapping of str to Experiment
        The tables.

    Returns
    -------
    tables : list of Experiment
        Each with the chosen rows only, those without any left out. A row that shows the records of
        another table stands for that one.
    """
    if wanted is None:
        wanted = [name for name in library if name not in ON_REQUEST]
    chosen: dict[str, set[str]] = defaultdict(set)

    def choose(table: Experiment, row: Row) -> None:
        source, place = source_of(table, row, library)
        chosen[source.name].add(place.name)

    for words in wanted:
        table, _, name = words.partition(":")
        if table in library and name:
            choose(library[table], _row(library[table], name))
        elif table in library:
            for row in library[table].rows:
                choose(library[table], row)
        else:
            found = [
                (one, row)
                for one in library.values()
                for row in one.rows
                if row.dataset == words and one.name not in ON_REQUEST
            ]
            if not found:
                datasets = dict.fromkeys(
                    row.dataset for one in library.values() for row in one.rows
                )
                raise ValueError(
                    f"There are no rows {words!r}: name a table ({', '.join(library)}), a row as "
                    f"table:row, or a dataset ({', '.join(datasets)})."
                )
            for one, row in found:
                choose(one, row)
    return [
        replace(table, rows=tuple(row for row in table.rows if row.name in chosen[name]))
        for name, table in library.items()
        if chosen[name]
    ]


def _row(table: Experiment, name: str) -> Row:
    try:
        return table.row(name)
    except KeyError as error:
        raise ValueError(error.args[0]) from None


@contextmanager
def _registered(methods: Iterable[Method]) -> Iterator[None]:
    """Have columns known by their names for a while.

    Yields
    ------
    None
        The names are known within the block.
    """
    added = []
    try:
        for method in methods:
            register_method(method)
            added.append(method.name)
        yield
    finally:
        for name in added:
            METHODS.pop(name)


def place(
    mine: Collection[RunRecord], others: Mapping[str, Collection[RunRecord]], metric: str
) -> Place | None:
    """Compare the runs of a method in a row with those of other columns.

    Parameters
    ----------
    mine : collection of RunRecord
        The runs of the method in one row.
    others : mapping of str to collection of RunRecord
        Those of the other columns in the same row, by name.
    metric : str
        The measure.

    Returns
    -------
    place : Place or None
        None if no run has a score.
    """
    scores = _scores(list(mine), metric)
    if not scores:
        return None
    good = [record for record in mine if record.status == OK]
    theirs = {name: _scores(list(records), metric) for name, records in others.items()}
    leads = {
        name: difference
        for name, found in theirs.items()
        if (difference := paired_difference(scores, found)) is not None
    }
    rival = min(leads, key=lambda name: leads[name].mean, default="")
    values = list(scores.values())
    walls = [record.seconds for record in good if record.seconds is not None]
    cpus = [record.cpu_seconds for record in good if record.cpu_seconds is not None]
    return Place(
        method=good[0].method,
        table=good[0].experiment,
        row=good[0].row,
        dataset=good[0].dataset,
        n_samples=good[0].n_samples or 0,
        n_clusters=len(good[0].classes),
        metric=metric,
        draws=len(values),
        mean=fmean(values),
        error=(variance(values) / len(values)) ** 0.5 if len(values) > 1 else None,
        rank=1 + sum(lead.mean < -ROUNDING for lead in leads.values()),
        columns=1 + len(leads),
        verdict=verdict_of(leads.values()) if leads else ALONE,
        rival=rival,
        rival_mean=fmean(theirs[rival].values()) if rival else None,
        lead=leads.get(rival),
        winners=tuple(name for name, lead in leads.items() if lead.behind),
        ties=tuple(name for name, lead in leads.items() if lead.tied),
        seconds=fmean(walls) if walls else None,
        cpu_seconds=fmean(cpus) if cpus else None,
    )


def _columns(
    records: Iterable[RunRecord], tables: Iterable[Experiment], profile: str
) -> tuple[list[RunRecord], int]:
    """Keep the records of today's draws and settings, and count the others of the same rows.

    Variants of a column and bounds that know the truth are no rivals.
    """
    rows = {(table.name, row.name) for table in tables for row in table.rows}
    mine = [
        record
        for record in records
        if record.profile == profile and (record.experiment, record.row) in rows
    ]
    rivals = {name for name, one in METHODS.items() if not (one.variant_of or one.uses_truth)}
    mine = [record for record in mine if record.method in rivals]
    cells = cells_of(tables, [], {}, methods=sorted({r.method for r in mine}), profile=profile)
    today = {cell.key: cell.digest for cell in cells}
    kept = [record for record in mine if today.get(record.key, record.digest) == record.digest]
    return kept, len(mine) - len(kept)


def benchmark(
    methods: Method | Iterable[Method],
    *,
    rows: Iterable[str] | None = None,
    data: str | os.PathLike[str] | None = None,
    runs: int | None = None,
    beside: Iterable[str] | None = None,
    quick: bool = False,
    jobs: int | None = None,
    db: str | os.PathLike[str] = PLACES_DB,
    records: str | os.PathLike[str] | None = None,
    time_limit: float | None = None,
    retry_failed: bool = False,
    refresh: bool = False,
    progress: Callable[[Progress], None] | None = log_progress,
) -> Benchmark:
    """Run methods on the draws of the tables and compare them with the published columns.

    Parameters
    ----------
    methods : Method or iterable of Method
        From :func:`own_method`, or any other column that is not registered.
    rows : iterable of str or None, default=None
        Names of tables ("table5"), rows ("table5:ORL") and datasets ("mnist"); None means all but
        the tables that vary one setting. Rows whose dataset is not there are left out.
    data : path or None, default=None
        The folder of the datasets; None means what ``TUCKERMIX_DATA`` names.
    runs : int or None, default=None
        The number of draws of each row, in place of as many as the tables have.
    beside : iterable of str or None, default=None
        Published columns to compute here as well, in place of their records; for times that can be
        compared. None means none, or three cheap ones with `quick`.
    quick : bool, default=False
        Whether to use the tables in miniature, on data that everybody has.
    jobs : int or None, default=None
        The number of processes; None means one for each processor, 0 computes in this process.
    db : path, default="tuckermix-bench.sqlite"
        The file for the records; a run that was stopped continues.
    records : path or None, default=None
        The published records; None means those that come with the package.
    time_limit : float or None, default=None
        Seconds after which a run is given up.
    retry_failed : bool, default=False
        Whether runs that failed before are tried again.
    refresh : bool, default=False
        Whether everything is computed anew, as if nothing were stored.
    progress : callable or None, default=log_progress
        Called with a :class:`Progress` as the run proceeds.

    Returns
    -------
    result : Benchmark
        Places, failures, and what was left out.
    """
    if runs is not None:
        check_integer(runs, "runs", "benchmark")
    own = [methods] if isinstance(methods, Method) else list(methods)
    home = None if data is None else os.fspath(data)
    profile = QUICK if quick else PAPER
    tables = choose_rows(rows, QUICK_EXPERIMENTS if quick else EXPERIMENTS)
    absent = _absent(home)
    missing = dict.fromkeys(
        row.dataset for table in tables for row in table.rows if row.dataset in absent
    )
    tables = [
        replace(table, rows=kept)
        for table in tables
        if (kept := tuple(row for row in table.rows if row.dataset not in absent))
    ]
    if not tables:
        raise FileNotFoundError(
            f"The rows need {', '.join(missing)}, which are not on this machine: see "
            "`tuckermix datasets`, or choose other rows."
        )
    together = list(beside) if beside is not None else list(BESIDE_QUICK if quick else ())
    published = [] if quick else read_records(published_records() if records is None else records)
    with _registered(own):
        names = [method.name for method in own]
        cells = cells_of(tables, [], {}, runs=runs, methods=[*names, *together], profile=profile)
        with Store(db) as store, store.writing():
            if refresh:
                for method in (*names, *together):
                    store.delete(method=method, profile=profile)
            report = run_cells(
                cells,
                store,
                data_home=home,
                jobs=default_jobs() if jobs is None else jobs,
                time_limit=time_limit,
                retry_failed=retry_failed,
                progress=progress,
            )
            keys = {cell.key: cell.digest for cell in cells}
            here = [one for one in store.records() if keys.get(one.key) == one.digest]
    columns, older = _columns(published, tables, profile)
    by_row: dict[tuple[str, str], dict[str, list[RunRecord]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for record in (*(one for one in columns if one.method not in together), *here):
        by_row[record.experiment, record.row][record.method].append(record)
    places = []
    for table in tables:
        for row in table.rows:
            found = by_row[table.name, row.name]
            rivals = {name: runs_of for name, runs_of in found.items() if name not in names}
            for name in names:
                for metric in SHOWN:
                    one = place(found.get(name, []), rivals, metric)
                    if one is not None:
                        places.append(one)
    failures = [one for one in here if one.method in names and one.status != OK]
    return Benchmark(tuple(places), tuple(failures), tuple(missing), older, report)


def places_csv(places: Iterable[Place]) -> str:
    """Render places as CSV, one line each; lists have a bar between their names.

    Parameters
    ----------
    places : iterable of Place
        The places.

    Returns
    -------
    text : str
        With a heading. The first column is the version of the schema.
    """
    rows: list[Iterable[Any]] = [["schema_version", *PLACE_FIELDS]]
    for one in places:
        line = one.line()
        for name in ("winners", "ties"):
            line[name] = "|".join(line[name])
        rows.append([PLACES_VERSION, *line.values()])
    return csv_text(rows)
