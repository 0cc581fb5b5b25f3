"""Tables as a pure function of stored records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, variance

from tuckermix._records import Record
from tuckermix.experiments.cells import FAILED, MISSING, OK, PAPER, TIMEOUT
from tuckermix.experiments.methods import METHODS
from tuckermix.experiments.store import RunRecord
from tuckermix.experiments.tables import (
    OURS,
    PAPERS_OWN,
    Experiment,
    PaperScore,
    Row,
    paper_score,
)

__all__ = [
    "Agreement",
    "CellSummary",
    "MetricSummary",
    "RowSummary",
    "Standing",
    "TableSummary",
    "agreements",
    "standings",
    "summarize",
]

METRICS = ("AC", "NMI")
TIE = 5e-5
"""Means that agree in the four digits printed are both the best of their row."""
STANDARD_ERRORS = 2.0
"""Two means agree if they differ by at most so many standard errors of their difference."""


@dataclass(frozen=True)
class MetricSummary(Record):
    """One metric of one cell.

    Attributes
    ----------
    mean : float
        The mean over the runs.
    variance : float or None
        The sample variance over the runs; None for a single one.
    worst, best : float
        The worst and the best run.
    first : bool
        Whether the mean is the highest of its row.
    paper : PaperScore or None
        What the paper prints.
    difference : float or None
        `mean` minus the paper's, where the data are the paper's.
    """

    mean: float
    variance: float | None
    worst: float
    best: float
    first: bool
    paper: PaperScore | None
    difference: float | None


@dataclass(frozen=True)
class CellSummary(Record):
    """A row and a method.

    Attributes
    ----------
    method : str
        The column.
    done, expected : int
        Runs with scores, and runs that the specification asks for.
    metrics : dict of str to MetricSummary
        By "AC" and "NMI"; empty where there is no score.
    papers : dict of str to PaperScore
        What the paper prints, also where there is no score here.
    seconds : float or None
        Processor time of a fit, the mean over the runs.
    explanation : str
        Why there is no score or not every run has one; empty for a complete cell.
    """

    method: str
    done: int
    expected: int
    metrics: dict[str, MetricSummary]
    papers: dict[str, PaperScore]
    seconds: float | None
    explanation: str


@dataclass(frozen=True)
class RowSummary(Record):
    """A row: its name, the classes drawn where they are the same in all runs, and its cells."""

    name: str
    note: str
    classes: tuple[int, ...]
    cells: dict[str, CellSummary]


@dataclass(frozen=True)
class TableSummary(Record):
    """A table ready for rendering.

    Attributes
    ----------
    name, title, note : str
        From the specification.
    methods : tuple of str
        The columns.
    rows : tuple of RowSummary
        The rows.
    machines, versions : tuple of str
        Where the records come from.
    codes : dict of str to tuple of str
        The fingerprints of the code behind each method's records: more than one means that a column
        mixes versions.
    spread : str
        A row whose best and worst runs are shown as well.
    """

    name: str
    title: str
    note: str
    methods: tuple[str, ...]
    rows: tuple[RowSummary, ...]
    machines: tuple[str, ...]
    versions: tuple[str, ...]
    codes: dict[str, tuple[str, ...]]
    spread: str


def _explanation(records: list[RunRecord], expected: int) -> str:
    """Say in a sentence or two why a cell is not complete."""
    parts = []
    for status, words in (
        (MISSING, "without its data"),
        (FAILED, "failed"),
        (TIMEOUT, "stopped at the time limit"),
    ):
        found = [record for record in records if record.status == status]
        if found:
            errors = "; ".join(dict.fromkeys(record.error or "" for record in found))
            parts.append(f"{len(found)} of {expected} {words}: {errors}")
    absent = expected - len(records)
    if absent > 0:
        parts.append(f"{absent} of {expected} not computed yet.")
    return " ".join(parts)


def _scores(records: list[RunRecord], metric: str) -> list[float]:
    found = [record.ac if metric == "AC" else record.nmi for record in records]
    return [score for score in found if score is not None]


def _cell(
    table: Experiment, row: Row, method: str, records: list[RunRecord], best: dict[str, float]
) -> CellSummary:
    good = [record for record in records if record.status == OK]
    # More runs than the specification asks for are welcome; fewer are explained.
    asked = METHODS[method].runs_in(row.runs) if method in METHODS else row.runs
    expected = max(asked, len(records))
    metrics, papers = {}, {}
    for metric in METRICS:
        paper = paper_score(
            table.name, row.name if row.paper_row is None else row.paper_row, method, metric
        )
        if paper is not None:
            papers[metric] = paper
        scores = _scores(good, metric)
        if scores:
            mean = fmean(scores)
            metrics[metric] = MetricSummary(
                mean=mean,
                variance=variance(scores) if len(scores) > 1 else None,
                worst=min(scores),
                best=max(scores),
                first=mean >= best[metric] - TIE,
                paper=paper,
                difference=mean - paper.mean if paper and row.comparable else None,
            )
    times = [record.cpu_seconds for record in good if record.cpu_seconds is not None]
    return CellSummary(
        method=method,
        done=len(good),
        expected=expected,
        metrics=metrics,
        papers=papers,
        seconds=fmean(times) if times else None,
        explanation=_explanation(records, expected),
    )


def _row(
    table: Experiment, row: Row, methods: Iterable[str], records: list[RunRecord]
) -> RowSummary:
    by_method: dict[str, list[RunRecord]] = defaultdict(list)
    for record in records:
        by_method[record.method].append(record)
    best = {}
    for metric in METRICS:
        means = [
            fmean(scores) for found in by_method.values() if (scores := _scores(found, metric))
        ]
        best[metric] = max(means, default=float("nan"))
    drawn = {tuple(record.classes) for record in records if record.classes}
    return RowSummary(
        name=row.name,
        note=row.note,
        classes=drawn.pop() if len(drawn) == 1 else (),
        cells={method: _cell(table, row, method, by_method[method], best) for method in methods},
    )


def summarize(
    table: Experiment, records: Iterable[RunRecord], *, profile: str = PAPER
) -> TableSummary:
    """Turn the records of a table into what is shown of it.

    Parameters
    ----------
    table : Experiment
        The specification.
    records : iterable of RunRecord
        Records, those of other tables and profiles included; they are passed over.
    profile : {"paper", "quick"}, default="paper"
        The settings.

    Returns
    -------
    summary : TableSummary
        For each row and method mean and variance over the runs, beside the paper's.
    """
    mine = [
        record
        for record in records
        if record.experiment == table.name and record.profile == profile
    ]
    extra = dict.fromkeys(record.method for record in mine)
    methods = tuple(dict.fromkeys((*table.methods, *extra)))
    codes: dict[str, set[str]] = defaultdict(set)
    for record in mine:
        if record.status == OK:
            codes[record.method].add(record.fingerprint)
    return TableSummary(
        name=table.name,
        title=table.title,
        note=table.note,
        methods=methods,
        rows=tuple(
            _row(table, row, methods, [record for record in mine if record.row == row.name])
            for row in table.rows
        ),
        machines=tuple(dict.fromkeys(record.machine for record in mine)),
        versions=tuple(
            dict.fromkeys(
                ", ".join(f"{name} {number}" for name, number in record.versions.items())
                for record in mine
            )
        ),
        codes={method: tuple(sorted(found)) for method, found in codes.items()},
        spread=table.spread,
    )


@dataclass(frozen=True)
class Standing(Record):
    """How our method stands in a row, in one metric.

    Attributes
    ----------
    table, row, metric : str
        Where.
    ours : float
        Our mean.
    rival : str
        The best of the other methods, variants of the paper's own aside.
    missing : int
        How many of its runs are not there yet.
    theirs : float
        Its mean.
    place : int
        Our place, 1 for the first; equal means share it.
    speedup : float or None
        Processor time of the paper's own method over ours.
    """

    table: str
    row: str
    metric: str
    ours: float
    rival: str
    missing: int
    theirs: float
    place: int
    speedup: float | None


@dataclass(frozen=True)
class Agreement(Record):
    """Our run of the paper's own method beside the paper's number.

    Attributes
    ----------
    table, row, method, metric : str
        Where.
    here, printed : float
        Our mean and the paper's.
    error : float or None
        The standard error of their difference; None where either is a single run.
    agrees : bool or None
        Whether they differ by at most two standard errors; None without a standard error.
    """

    table: str
    row: str
    method: str
    metric: str
    here: float
    printed: float
    error: float | None
    agrees: bool | None


def _variants() -> list[str]:
    """Return the columns that repeat one of the paper's with another choice."""
    return [name for name, method in METHODS.items() if method.variant_of]


def _speedup(row: RowSummary) -> float | None:
    ours, theirs = row.cells.get(OURS), row.cells.get(PAPERS_OWN)
    if ours is None or theirs is None or not ours.seconds or theirs.seconds is None:
        return None
    return theirs.seconds / ours.seconds


def standings(summaries: Iterable[TableSummary]) -> list[Standing]:
    """Compare our method with the best other one in each row that has both.

    Parameters
    ----------
    summaries : iterable of TableSummary
        The tables.

    Returns
    -------
    found : list of Standing
        One for each row and metric.
    """
    found = []
    variants = _variants()
    for summary in summaries:
        for row in summary.rows:
            for metric in METRICS:
                means = {
                    method: cell.metrics[metric].mean
                    for method, cell in row.cells.items()
                    if metric in cell.metrics and method not in variants
                }
                ours = means.pop(OURS, None)
                if ours is None or not means:
                    continue
                rival = max(means, key=lambda method: means[method])
                place = 1 + sum(round(mean, 4) > round(ours, 4) for mean in means.values())
                found.append(
                    Standing(
                        summary.name,
                        row.name,
                        metric,
                        ours,
                        rival,
                        row.cells[rival].expected - row.cells[rival].done,
                        means[rival],
                        place,
                        _speedup(row),
                    )
                )
    return found


def _agreement(table: str, row: str, metric: str, cell: CellSummary) -> Agreement | None:
    found = cell.metrics.get(metric)
    if found is None or found.paper is None or found.difference is None:
        return None
    error = agrees = None
    if found.variance is not None and found.paper.variance is not None:
        # The paper's mean is over as many runs as its row has; ours over those done.
        variance = found.variance / cell.done + found.paper.variance / cell.expected
        error = variance**0.5
        agrees = abs(found.difference) <= STANDARD_ERRORS * error
    return Agreement(table, row, cell.method, metric, found.mean, found.paper.mean, error, agrees)


def agreements(summaries: Iterable[TableSummary]) -> list[Agreement]:
    """Compare our runs of the paper's own method with its numbers, where the data are the same."""
    found = []
    for summary in summaries:
        for row in summary.rows:
            for method in (PAPERS_OWN, *_variants()):
                if method in row.cells:
                    cell = row.cells[method]
                    found += [_agreement(summary.name, row.name, m, cell) for m in METRICS]
    return [agreement for agreement in found if agreement is not None]
