"""The two questions about the tables, answered row by row from the records."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from tuckermix._records import Record
from tuckermix.experiments.paper import PAPER_COLUMNS
from tuckermix.experiments.rendering import markdown_table
from tuckermix.experiments.summaries import METRICS, CellSummary, RowSummary, TableSummary
from tuckermix.experiments.tables import OURS, PAPERS_OWN

__all__ = ["Agreement", "Standing", "agreements", "overview_markdown", "standings"]

STANDARD_ERRORS = 2.0
"""Two means agree if they differ by at most so many standard errors of their difference."""


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
    for summary in summaries:
        for row in summary.rows:
            for metric in METRICS:
                means = {
                    method: cell.metrics[metric].mean
                    for method, cell in row.cells.items()
                    if metric in cell.metrics and method not in PAPER_COLUMNS
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
    """Compare our runs of the paper's own method with its numbers, where the data are the same.

    Parameters
    ----------
    summaries : iterable of TableSummary
        The tables.

    Returns
    -------
    found : list of Agreement
        One for each row and metric.
    """
    found = []
    for summary in summaries:
        for row in summary.rows:
            for method in (PAPERS_OWN, *PAPER_COLUMNS):
                if method in row.cells:
                    cell = row.cells[method]
                    found += [_agreement(summary.name, row.name, m, cell) for m in METRICS]
    return [agreement for agreement in found if agreement is not None]


def _answer(agrees: bool | None) -> str:
    return "single run" if agrees is None else "yes" if agrees else "no"


def _by_table(found: list[Standing]) -> list[list[str]]:
    """Count first places and give the range of the speed, one line for each table."""
    lines = []
    for table in dict.fromkeys(standing.table for standing in found):
        here = [standing for standing in found if standing.table == table]
        faster = [s.speedup for s in here if s.metric == METRICS[0] and s.speedup is not None]
        spread = (min(faster), statistics.median(faster), max(faster)) if faster else ()
        lines.append(
            [
                table,
                f"{sum(standing.place == 1 for standing in here)} of {len(here)}",
                ", ".join(f"{s.row} {s.metric} to {s.rival}" for s in here if s.place > 1) or "–",
                *([f"{value:.1f} ×" for value in spread] or ["–"] * 3),
            ]
        )
    return lines


def overview_markdown(summaries: Iterable[TableSummary]) -> str:
    """Render both comparisons in Markdown."""
    summaries = list(summaries)
    standing = standings(summaries)
    lines = [
        "# Overview",
        "",
        *markdown_table(
            ["table", f"{OURS} first", "behind", "faster: least", "median", "most"],
            _by_table(standing),
        ),
        "",
        '"first": in rows times AC and NMI.',
        f'"faster": processor time of {PAPERS_OWN} over that of {OURS}, row by row.',
        "",
        f"## {OURS} beside the best other method of each row",
        "",
        *markdown_table(
            ["table", "row", "metric", OURS, "best other", "", "difference", "place", "faster"],
            (
                [
                    found.table,
                    found.row,
                    found.metric,
                    f"{found.ours:.4f}",
                    found.rival + (f" ({found.missing} runs missing)" if found.missing else ""),
                    f"{found.theirs:.4f}",
                    f"{found.ours - found.theirs:+.4f}",
                    f"**{found.place}**" if found.place == 1 else str(found.place),
                    "–" if found.speedup is None else f"{found.speedup:.0f} ×",
                ]
                for found in standing
            ),
        ),
        "",
        f"## {PAPERS_OWN} here and in the paper",
        "",
        *markdown_table(
            [
                "table",
                "row",
                "method",
                "metric",
                "here",
                "paper",
                "difference",
                "two errors",
                "agrees",
            ],
            (
                [
                    found.table,
                    found.row,
                    found.method,
                    found.metric,
                    f"{found.here:.4f}",
                    f"{found.printed:.4f}",
                    f"{found.here - found.printed:+.4f}",
                    "–" if found.error is None else f"{STANDARD_ERRORS * found.error:.4f}",
                    _answer(found.agrees),
                ]
                for found in agreements(summaries)
            ),
        ),
        "",
        '"two errors": twice the standard error of the difference of the two means.',
    ]
    return "\n".join(lines) + "\n"
