"""Tables and figures for people, from stored records alone.

Tables are rendered for a terminal, in Markdown and as CSV. Figures are the paper's Figures 3 and 4,
and the curves.
"""

from __future__ import annotations

import io
import math
import os
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._files import atomic_paths, csv_text, write_text
from tuckermix._records import Record
from tuckermix._validation import check_option
from tuckermix_bench.methods import METHODS
from tuckermix_bench.runner import DEFAULT_DB
from tuckermix_bench.store import OK, RunRecord, Store, records_csv
from tuckermix_bench.summaries import (
    BEHIND,
    FIRST,
    METRICS,
    SHOWN,
    SINGLE,
    STANDARD_ERRORS,
    TIED,
    VERDICTS,
    Agreement,
    CellSummary,
    MetricSummary,
    RowSummary,
    Standing,
    TableSummary,
    agreements,
    our_columns,
    share_of,
    standings,
    summarize,
)
from tuckermix_bench.tables import (
    AUTO,
    LIBRARIES,
    OURS,
    PAPER,
    PAPERS_OWN,
    QUICK,
    Experiment,
    Figure,
    PaperScore,
    resolve_targets,
)

__all__ = [
    "FORMATS",
    "Point",
    "Shown",
    "curve_points",
    "draw_figure",
    "figure_records",
    "figure_svg",
    "overview_markdown",
    "save_figure",
    "show",
    "table_csv",
    "table_markdown",
    "table_text",
]

FORMATS = ("terminal", "md", "csv")

LEGEND = (
    "Each cell: mean over the runs, (variance), the paper's mean (variance), and the difference "
    "where the data are the paper's. Bold: first, more than two standard errors of the paired "
    "difference ahead of every rival; bold with =: tied first, nobody is so far ahead of it and it "
    "is not so far ahead of all. Single runs and variants of a column are not marked."
)
MARKS = {FIRST: "*", TIED: "=", "": " "}
OLDER = (
    "{} records belong to other draws or settings than the table asks for now: they are shown, but "
    "not compared with the others; `tuckermix reproduce` computes them anew."
)
SPLIT_NOTE = (
    '"Full set": the row needs more than the part of the data that is kept for reports; beside it '
    "stands the share of its images that belong to the part that choices may look at."
)

SECONDS_OF_AN_HOUR = 3600.0
GOOD_SHARE = 0.9
"""Of the ARI at the true number of clusters: so much is good where the number is open."""
MEASURES = {
    "AC": "Accuracy (AC)",
    "NMI": "Normalised mutual information (NMI)",
    "ARI": "Adjusted Rand index (ARI)",
}

BOLD, PLAIN = "\x1b[1m", "\x1b[0m"
BREAK = "<br>"
"""Between the lines of a cell in Markdown."""


def _number(value: float | None, form: str = ".4f") -> str:
    return "" if value is None else format(value, form)


def _row_title(row: RowSummary) -> str:
    """Name a row, with its classes where they are few and fixed, and what tuning has seen of it."""
    few = 10
    remarks = []
    if row.classes and len(row.classes) <= few and row.name.startswith("K="):
        remarks.append(", ".join(map(str, row.classes)))
    if row.seen:
        remarks.append(f"full set, {100 * row.seen:.0f} % of it for tuning")
    name = f"{row.name}, here on {row.stand_in}" if row.stand_in else row.name
    return f"{name} ({'; '.join(remarks)})" if remarks else name


def _standing_lines(row: RowSummary) -> list[str]:
    """Say in words who is first in a row, one line for each metric."""
    lines = []
    for metric in METRICS:
        marked: dict[str, list[str]] = {}
        for method, cell in row.cells.items():
            if metric in cell.metrics and cell.metrics[metric].standing:
                marked.setdefault(cell.metrics[metric].standing, []).append(method)
        parts = [f"{standing}: {', '.join(names)}" for standing, names in marked.items()]
        for ours in our_columns():
            if leads := row.leads(ours, metric):
                rival = min(leads, key=lambda method: leads[method].mean)
                parts.append(f"{ours} minus {rival} {leads[rival].text}")
        if parts:
            lines.append(f"{metric}: {'; '.join(parts)}")
    return lines


def _runs_line(summary: TableSummary) -> str:
    """Say how many runs there are, and who has fewer, and where."""
    usual = {
        row.name: max((cell.expected for cell in row.cells.values()), default=0)
        for row in summary.rows
    }
    fewer: dict[int, list[str]] = {}
    for method in summary.methods:
        expected = {row.name: row.cells[method].expected for row in summary.rows}
        asked = [name for name, count in expected.items() if count]
        for count in sorted(set(expected.values()) - {0}):
            rows = [name for name in asked if expected[name] == count < usual[name]]
            if rows:
                where = "" if len(rows) == len(asked) else f" ({', '.join(rows)})"
                fewer.setdefault(count, []).append(method + where)
    text = f"Runs of a row: {max(usual.values(), default=0)} at most"
    for count, names in sorted(fewer.items()):
        text += f"; {count} for {', '.join(names)}"
    if fewer:
        text += ", which are dear"
    return f"{text}. All methods see the same draws; they are compared on those that both have."


STARTS_HEADER = ["metric", "method", "mean", "standard deviation", "best", "worst"]


def _starts(summary: TableSummary) -> list[list[str]]:
    """Return mean, deviation, best and worst over the random starts, the paper's first."""
    cells = next(row for row in summary.rows if row.name == summary.spread).cells
    lines = []
    for metric in METRICS:
        shown: dict[str, PaperScore | MetricSummary] = {}
        if PAPERS_OWN in cells and metric in cells[PAPERS_OWN].papers:
            shown["paper"] = cells[PAPERS_OWN].papers[metric]
        shown |= {name: cells[name].metrics[metric] for name in cells if cells[name].metrics}
        for name, score in shown.items():
            spread = None if score.variance is None else score.variance**0.5
            numbers = (score.mean, spread, score.best, score.worst)
            lines.append([metric, name, *map(_number, numbers)])
    return lines


def table_text(summary: TableSummary, *, color: bool = False) -> str:
    """Render a table for a terminal: one block a row, one line a method, the best marked.

    Parameters
    ----------
    summary : TableSummary
        The table.
    color : bool, default=False
        Whether the best are printed bold; a star marks them in any case.

    Returns
    -------
    text : str
        Lines of at most 100 characters, explanations aside.
    """
    width = max(len(method) for method in summary.methods)
    lines = [f"{summary.name}: {summary.title}", ""]
    head = f"  {'':{width}}" + "".join(
        f"  {metric:>7}  {'variance':>9} {'paper':>7} {'diff':>8}" for metric in METRICS
    )
    for row in summary.rows:
        lines += [_row_title(row), f"{head}  {'time':>8}  runs"]
        notes: dict[str, list[str]] = {}
        for method, cell in row.cells.items():
            line = f"  {method:{width}}"
            for metric in METRICS:
                line += "  " + _text_metric(cell, metric, color)
            seconds = "" if cell.seconds is None else f"{cell.seconds:.2f} s"
            line += f"  {seconds:>8}  {cell.done}/{cell.expected}"
            lines.append(line.rstrip())
            if cell.explanation:
                notes.setdefault(cell.explanation, []).append(method)
        lines += [f"  {line}" for line in _standing_lines(row)]
        lines += [f"  {', '.join(names)}: {why}" for why, names in notes.items()]
        lines.append("")
    if summary.note:
        lines += [summary.note, ""]
    lines += [_runs_line(summary), ""]
    return "\n".join(lines)


def _text_metric(cell: CellSummary, metric: str, color: bool) -> str:
    found, paper = cell.metrics.get(metric), cell.papers.get(metric)
    printed = "" if paper is None else f"{paper.mean:.4f}"
    if found is None:
        return f"{'-':>7}  {'':>9} {printed:>7} {'':>8}"
    mean = f"{found.mean:.4f}{MARKS[found.standing]}"
    if color and found.standing:
        mean = f"{BOLD}{mean}{PLAIN}"
    difference = _number(found.difference, "+.4f")
    return f" {mean} {_number(found.variance, '.3e'):>9} {printed:>7} {difference:>8}"


def _shown(summary: TableSummary) -> list[str]:
    """Return the measures of which a table has any value; those of the paper in any case."""
    cells = [cell for row in summary.rows for cell in row.cells.values()]
    return [
        metric
        for metric in SHOWN
        if metric in METRICS or any(metric in cell.metrics for cell in cells)
    ]


def _explanations(summary: TableSummary) -> list[str]:
    """Group the explanations of incomplete cells, each sentence once."""
    by_method: dict[tuple[str, str], list[str]] = {}
    for row in summary.rows:
        for method, cell in row.cells.items():
            if cell.explanation:
                by_method.setdefault((method, cell.explanation), []).append(row.name)
    grouped: dict[tuple[str, str], list[str]] = {}
    for (method, why), rows in by_method.items():
        grouped.setdefault((", ".join(rows), why), []).append(method)
    return [f"{', '.join(methods)} ({rows}): {why}" for (rows, why), methods in grouped.items()]


def markdown_table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""

    def join(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [join(header), "|" + "---|" * len(header), *(join(line) for line in lines)]


def _score_cell(cell: CellSummary, metric: str) -> str:
    """Print a mean, marked by how it stands, and the smaller lines below it."""
    found, paper = cell.metrics.get(metric), cell.papers.get(metric)
    lines = ["–"]
    if found is not None:
        marked = {FIRST: "**{:.4f}**", TIED: "**{:.4f}** ="}.get(found.standing, "{:.4f}")
        lines = [marked.format(found.mean)]
        if found.variance is not None:
            lines.append(f"({found.variance:.3e})")
    if paper is not None:
        spread = "" if paper.variance is None else f" ({paper.variance:.3e})"
        lines.append(f"paper {paper.mean:.4f}{spread}")
    if found is not None and found.difference is not None:
        lines.append(f"{found.difference:+.4f}")
    return BREAK.join(lines)


def _lead_cell(cell: CellSummary, metric: str, ours: str = OURS) -> str:
    """Print how far one of our columns leads a method, and whether the draws can tell."""
    found = cell.metrics.get(metric)
    lead = None if found is None else found.leads.get(ours)
    if lead is None:
        return "–"
    return lead.text + (" (tie)" if lead.tied else "")


COSTS: tuple[tuple[str, str, Callable[[CellSummary], str]], ...] = (
    (
        "Time",
        "Processor seconds of a fit, one thread",
        lambda cell: _number(cell.seconds, ".3g") or "–",
    ),
    (
        "Memory",
        "By how many MB the resident memory of the process rises during a fit, at most",
        lambda cell: "–" if cell.memory is None else f"{cell.memory / 1e6:.0f}",
    ),
)
NUMBERS_HEADER = [
    *("", "column", "true number", "found", "octaves off", "ARI", "ARI at the true number"),
]


def _number_lines(summary: TableSummary) -> list[str]:
    """Compare the numbers of clusters that methods find with the true ones."""
    lines, medians, near = [], [], []
    for row in summary.rows:
        for name, cell in row.cells.items():
            known = METHODS.get(name)
            if not cell.found or known is None:
                continue
            given = row.cells.get(known.variant_of)
            off = [abs(math.log2(found / true)) for true, found in cell.found]
            medians.append(statistics.median(off))
            scores = [
                one.metrics["ARI"].mean if one is not None and "ARI" in one.metrics else math.nan
                for one in (cell, given)
            ]
            if not math.isnan(sum(scores)):
                near.append(scores[0] >= GOOD_SHARE * scores[1])
            lines.append(
                [
                    *(row.name, name, ", ".join(dict.fromkeys(str(one) for one, _ in cell.found))),
                    ", ".join(str(found) for _, found in cell.found),
                    *(f"{statistics.fmean(off):.3f}", *(_number(score, ".3f") for score in scores)),
                ]
            )
    if not lines:
        return []
    text = (
        f"Median over the {len(medians)} rows of the octaves off: {statistics.median(medians):.3f}."
    )
    if near:
        text += (
            f" The ARI is at least {GOOD_SHARE} of that at the true number in {sum(near)} of "
            f"{len(near)} rows."
        )
    return ["## Numbers of clusters", "", *markdown_table(NUMBERS_HEADER, lines), "", text, ""]


def _lead_sections(summary: TableSummary) -> list[str]:
    """Return, for each of our columns, the paired differences to all others."""
    lines = []
    for ours in our_columns():
        others = [name for name in summary.methods if name not in our_columns()]
        if ours not in summary.methods or not others:
            continue
        lines += [f"## {ours} minus the others", ""]
        lines += ["Mean and standard error of the differences, draw by draw.", ""]
        for metric in METRICS:
            found = [
                [name, *(_lead_cell(row.cells[name], metric, ours) for row in summary.rows)]
                for name in others
            ]
            names = [f"{metric}", *(row.name for row in summary.rows)]
            kept = [line for line in found if any(cell != "–" for cell in line[1:])]
            lines += [*markdown_table(names, kept), ""] if kept else []
    return lines


def _column_lines(summary: TableSummary) -> list[list[str]]:
    """Say of each column what it is, what it sees, what to know, and how its runs ended."""
    lines = []
    for name in summary.methods:
        known = METHODS.get(name)
        said = ["", "", ""] if known is None else [known.description, known.on, known.notes]
        stops = sum((Counter(row.cells[name].stops) for row in summary.rows), Counter())
        ended = ", ".join(f"{reason} {count}" for reason, count in sorted(stops.items()))
        lines.append([name, *said, ended])
    return lines


COLUMNS_HEADER = ["column", "what it is", "sees", "to know", "ended by"]


def table_markdown(summary: TableSummary) -> str:
    """Render a table in Markdown: mean, variance, the paper's value and the difference.

    Parameters
    ----------
    summary : TableSummary
        The table.

    Returns
    -------
    text : str
        A section with scores, times, and the reasons for gaps.
    """
    names = [row.name for row in summary.rows]
    titles = [_row_title(row) for row in summary.rows]

    def by_row(form: Callable[[CellSummary], str]) -> list[list[str]]:
        """Return a line for each method, with a cell for each row."""
        return [
            [method, *(form(row.cells[method]) for row in summary.rows)]
            for method in summary.methods
        ]

    lines = [f"# {summary.title}", "", *([summary.note, ""] if summary.note else [])]
    lines += _number_lines(summary)
    lines += [LEGEND, "", _runs_line(summary), ""]
    if any(row.seen for row in summary.rows):
        lines += [SPLIT_NOTE, ""]
    for metric in _shown(summary):
        scores = by_row(partial(_score_cell, metric=metric))
        lines += [f"## {MEASURES[metric]}", "", *markdown_table(["", *titles], scores), ""]
    for title, text, form in COSTS:
        lines += [f"## {title}", "", f"{text}, mean over the runs.", ""]
        lines += [*markdown_table(["", *names], by_row(form)), ""]
    lines += _lead_sections(summary)
    lines += ["## Columns", "", *markdown_table(COLUMNS_HEADER, _column_lines(summary))]
    if summary.spread:
        lines += ["", "## Random starts", "", *markdown_table(STARTS_HEADER, _starts(summary))]
    older = [OLDER.format(summary.older)] if summary.older else []
    if gaps := [*_explanations(summary), *older]:
        lines += ["", "## Gaps", "", *(f"- {_one_line(gap)}" for gap in gaps)]
    return "\n".join([*lines, "", *_origins([summary])]) + "\n"


def _origins(summaries: Iterable[TableSummary]) -> list[str]:
    """Say on which machines and with which versions records were made, each once."""
    summaries = list(summaries)
    machines = dict.fromkeys(name for summary in summaries for name in summary.machines)
    versions = dict.fromkeys(name for summary in summaries for name in summary.versions)
    return [
        *(f"Machine: {name}." for name in machines),
        *(f"Versions: {name}." for name in versions),
    ]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def table_csv(summary: TableSummary) -> str:
    """Render a table as CSV, one line for each row and method."""
    header = ["table", "row", "method", "runs", "expected"]
    for metric in SHOWN:
        name = metric.lower()
        header += [
            f"{name}_{part}"
            for part in (
                *("mean", "variance", "low", "high", "standing", "lead", "lead_error", "pairs"),
                *("auto_lead", "auto_lead_error", "auto_pairs", "paper", "difference"),
            )
        ]
    lines: list[list[object]] = [[*header, "cpu_seconds", "memory", "seen", "explanation"]]
    for row in summary.rows:
        for cell in row.cells.values():
            line: list[object] = [summary.name, row.name, cell.method, cell.done, cell.expected]
            for metric in SHOWN:
                found, paper = cell.metrics.get(metric), cell.papers.get(metric)
                printed = None if paper is None else paper.mean
                if found is None:
                    line += [None] * 11 + [printed, None]
                else:
                    line += [found.mean, found.variance, found.worst, found.best, found.standing]
                    for ours in (OURS, AUTO):
                        lead = found.leads.get(ours)
                        line += [None] * 3 if lead is None else [lead.mean, lead.error, lead.pairs]
                    line += [printed, found.difference]
            lines.append([*line, cell.seconds, cell.memory, row.seen, _one_line(cell.explanation)])
    return csv_text(lines)


VERDICT_NOTE = (
    f'Comparisons are rows times AC and NMI. "{FIRST}": ours is more than two standard errors of '
    f'the paired difference ahead of every rival; "{BEHIND}": a rival is so far ahead of it; '
    f'"{TIED}": neither; "{SINGLE}": no standard error, nothing decided. Variants of a column, '
    "ablations, and bounds that know the true classes are no rivals, nor are our two columns of "
    "each other."
)


def _marked(name: str, lines: Iterable[str]) -> list[str]:
    """Put marks around a part that other pages take from the overview."""
    return [f"<!-- {name} -->", "", *lines, f"<!-- end of {name} -->", ""]


def _by_table(found: list[Standing]) -> list[list[str]]:
    """Count places, name winners, and give the range of the speed, one line for each table."""
    lines = []
    for table in dict.fromkeys(standing.table for standing in found):
        here = [standing for standing in found if standing.table == table]
        faster = [s.speedup for s in here if s.metric == METRICS[0] and s.speedup is not None]
        spread = (min(faster), statistics.median(faster), max(faster)) if faster else ()
        lines.append(
            [
                table,
                str(len(here)),
                *(str(sum(s.verdict == verdict for s in here)) for verdict in VERDICTS),
                "; ".join(
                    f"{s.row} {s.metric} to {', '.join(s.winners)}"
                    for s in here
                    if s.verdict == BEHIND
                )
                or "–",
                *([f"{value:.1f} ×" for value in spread] or ["–"] * 3),
            ]
        )
    return lines


def _ablation_section(summaries: Iterable[TableSummary]) -> list[str]:
    """Compare our method with its own variants, one line for each row, variant and metric."""
    variants = [name for name, method in METHODS.items() if method.variant_of == OURS]
    lines = [
        [summary.name, row.name, name, metric, f"{found.mean:.4f}", _lead_cell(cell, metric)]
        for summary in summaries
        for row in summary.rows
        for name, cell in row.cells.items()
        for metric, found in cell.metrics.items()
        if name in variants and metric in METRICS and found.lead is not None
    ]
    if not lines:
        return []
    header = ["table", "row", "variant", "metric", "mean", f"{OURS} minus it"]
    return [f"## {OURS} and its ablations", "", *markdown_table(header, lines), ""]


def _share_lines(
    summaries: list[TableSummary], standing: Mapping[str, list[Standing]]
) -> list[str]:
    """Say in how many rows each of our columns is behind nobody, and name the others."""
    lines = []
    for ours, found in standing.items():
        share = share_of(found, ours)
        if share.rows:
            percent = f"{100 * share.reached / share.rows:.0f} %"
            text = (
                f"**{ours}** is first or tied first in AC and NMI in {share.reached} of "
                f"{share.rows} rows ({percent}), against all rivals of each row."
            )
            lines += [text, ""]
        if share.others:
            header = ["table", "row", "measure", "ours", "ahead of it", "", "difference ± error"]
            lost = (
                [s.table, s.row, s.metric, f"{s.ours:.4f}", *_winners(summaries, s)]
                for s in found
                if s.verdict == BEHIND
            )
            lines += [*markdown_table(header, lost), ""]
    return lines


def _agreement_lines(found: Sequence[Agreement]) -> list[str]:
    """Count the rows in which the paper's own method has the paper's scores."""
    lines = []
    for method in dict.fromkeys(one.method for one in found):
        counts = []
        for metric in METRICS:
            known = [
                one
                for one in found
                if (one.method, one.metric) == (method, metric) and one.agrees is not None
            ]
            counts.append(f"{metric} in {sum(bool(one.agrees) for one in known)} of {len(known)}")
        lines.append(
            f"- **{method}**, {METHODS[method].description}: agrees with the paper to two standard "
            f"errors in {', '.join(counts)} rows that have more than one run."
        )
    return [*lines, ""]


def _run_lines(summaries: Sequence[TableSummary]) -> list[str]:
    """Say how many fits there are, what they took, and where they were made."""
    cells = [
        cell
        for summary in summaries
        for row in summary.rows
        for cell in row.cells.values()
        if not row.borrowed
    ]
    fits = sum(cell.done for cell in cells)
    hours = sum(cell.done * (cell.seconds or 0.0) for cell in cells) / SECONDS_OF_AN_HOUR
    absent = sum(cell.expected - cell.done for cell in cells)
    text = f"{fits} fits with scores, {hours:.1f} hours of processor time, one thread each; "
    return [f"{text}{absent} have none, each table says why.", *_origins(summaries), ""]


def _winners(summaries: list[TableSummary], standing: Standing) -> list[str]:
    """Name who is ahead of us, the best mean and its lead."""
    table = next(summary for summary in summaries if summary.name == standing.table)
    cells = next(row for row in table.rows if row.name == standing.row).cells
    means = {name: cells[name].metrics[standing.metric] for name in standing.winners}
    best = max(means, key=lambda name: means[name].mean)
    names = [best, *(name for name in means if name != best)]
    lead = means[best].leads[standing.method]
    return [", ".join(names), f"{means[best].mean:.4f}", lead.text]


def _standing_section(ours: str, found: list[Standing]) -> list[str]:
    """Compare one of our columns with the nearest rival of each row."""
    if not found:  # the marks stay, for pages that take what is between them
        return [*_marked(f"tables of {ours}", [f"No row of {ours} is computed yet.", ""])]
    lines = (
        [
            one.table,
            one.row,
            one.metric,
            f"{one.ours:.4f}",
            one.rival + (f" ({one.missing} runs missing)" if one.missing else ""),
            f"{one.theirs:.4f}",
            one.lead.text,
            str(one.lead.pairs),
            f"**{one.verdict}**" if one.verdict == FIRST else one.verdict,
            ", ".join(one.ties) or "–",
            "–" if one.speedup is None else f"{one.speedup:.0f} ×",
        ]
        for one in found
    )
    header = [
        *("table", "row", "metric", ours, "nearest rival", "", "difference ± error"),
        *("draws", "stands", "tied with", "faster"),
    ]
    counts = ["table", "comparisons", *VERDICTS, "lost", "faster: least", "median", "most"]
    return [
        f"## {ours}, table by table",
        "",
        *_marked(f"tables of {ours}", [*markdown_table(counts, _by_table(found)), ""]),
        f"## {ours} beside the nearest rival of each row",
        "",
        *markdown_table(header, lines),
        "",
    ]


def overview_markdown(summaries: Iterable[TableSummary]) -> str:
    """Render both comparisons in Markdown."""
    summaries = list(summaries)
    standing = {ours: standings(summaries, ours) for ours in our_columns()}
    agreed = agreements(summaries)
    header = [
        *("table", "row", "method", "metric", "here", "paper", "difference", "two errors"),
        "agrees",
    ]
    lines = [
        "# Overview",
        "",
        *_marked("shares", _share_lines(summaries, standing)),
        VERDICT_NOTE,
        f'"faster": processor time of {PAPERS_OWN} over ours, row by row.',
        "",
        *(line for ours, found in standing.items() for line in _standing_section(ours, found)),
        *_ablation_section(summaries),
        f"## {PAPERS_OWN} here and in the paper",
        "",
        *_marked("agreement", _agreement_lines(agreed)),
        *markdown_table(
            header,
            (
                [
                    *(one.table, one.row, one.method, one.metric),
                    *(f"{one.here:.4f}", f"{one.printed:.4f}", f"{one.here - one.printed:+.4f}"),
                    "–" if one.error is None else f"{STANDARD_ERRORS * one.error:.4f}",
                    {None: "single run", True: "yes", False: "no"}[one.agrees],
                ]
                for one in agreed
            ),
        ),
        "",
        '"two errors": twice the standard error of the difference of the two means.',
        "",
        "## The run",
        "",
        *_marked("run", _run_lines(summaries)),
    ]
    return "\n".join(lines).rstrip() + "\n"


PNG_DPI = 150
PANEL_WIDTH, PANEL_HEIGHT = 6.4, 3.0
OFF_SCALE = 1.5
"""A start whose error exceeds all others by this factor is not drawn."""
CURVE_WIDTH = 3.2
CURVE_STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#1b4f8a", "marker": "o", "markersize": 4},
    {"color": "#b3471d", "marker": "s", "markersize": 4, "linestyle": "--"},
)
"""The tensor in full lines, flattened samples in broken ones."""
TILE = 1.3
"""Inches of a centroid's picture."""


def figure_records(
    figure: Figure, records: Iterable[RunRecord], *, profile: str = PAPER
) -> list[RunRecord]:
    """Return the records that a figure shows, in its own order, as far as they are computed."""
    found = {record.key: record for record in records if record.status == OK}
    keys = [
        (profile, figure.experiment, row, method, 0)
        for row in figure.rows
        for method in figure.methods
    ]
    return [found[key] for key in keys if key in found]


@dataclass(frozen=True)
class Point(Record):
    """A point of a curve.

    Attributes
    ----------
    curve : str
        What changes along it.
    at : float
        Where the point lies.
    method : str
        The column.
    runs : int
        The runs behind the means.
    accuracy, seconds : float
        Mean accuracy, and mean processor time of a fit.
    error : float
        The standard error of the accuracy; 0 for a single run.
    """

    curve: str
    at: float
    method: str
    runs: int
    accuracy: float
    error: float
    seconds: float


def curve_points(
    figure: Figure, table: Experiment, records: Iterable[RunRecord], *, profile: str = PAPER
) -> list[Point]:
    """Return the points of all curves of a table, in its own order, as far as they are computed.

    Parameters
    ----------
    figure : Figure
        Which columns are drawn.
    table : Experiment
        The table whose rows lie on curves.
    records : iterable of RunRecord
        The records.
    profile : {"paper", "quick"}, default="paper"
        The settings.

    Returns
    -------
    points : list of Point
        One for each row and method with records.
    """
    summary = summarize(table, records, profile=profile)
    points = []
    for row, shown in zip(table.rows, summary.rows, strict=True):
        for method in figure.methods:
            cell = shown.cells[method]
            found = cell.metrics.get("AC")
            if row.on is None or found is None:
                continue
            error = ((found.variance or 0.0) / cell.done) ** 0.5
            numbers = (cell.done, found.mean, error, cell.seconds or 0.0)
            points.append(Point(*row.on, method, *numbers))
    return points


def _curves(canvas: Any, points: list[Point]) -> None:
    """Draw accuracy above time, one column a curve, one line a method."""
    names = list(dict.fromkeys(point.curve for point in points))
    methods = list(dict.fromkeys(point.method for point in points))
    panels = canvas.subplots(2, len(names), squeeze=False)
    for column, name in enumerate(names):
        top, bottom = panels[0][column], panels[1][column]
        for method, style in zip(methods, CURVE_STYLES, strict=False):
            line = [point for point in points if (point.curve, point.method) == (name, method)]
            places = [point.at for point in line]
            heights = [point.accuracy for point in line]
            spans = [2.0 * point.error for point in line]
            top.errorbar(places, heights, yerr=spans, label=method, capsize=2, **style)
            bottom.plot(places, [point.seconds for point in line], **style)
        top.set_title(name, loc="left", fontsize=10)
        top.set_ylim(0.0, 1.05)
        bottom.set_yscale("log")
        bottom.set_xlabel(name)
        ticks = sorted({point.at for point in points if point.curve == name})
        for panel in (top, bottom):
            panel.set_xticks(ticks)
            panel.grid(alpha=0.3)
    panels[0][0].set_ylabel("accuracy ± 2 standard errors")
    panels[1][0].set_ylabel("seconds a fit")
    panels[0][0].legend(frameon=False, fontsize=8, loc="lower left")


def _error_curves(canvas: Any, records: list[RunRecord]) -> None:
    """Draw the relative error against the iteration, one panel a start."""
    panels = canvas.subplots(len(records), 1, squeeze=False)[:, 0]
    for panel, record in zip(panels, records, strict=True):
        course = [entry for entry in record.extras.get("history", []) if "relative_error" in entry]
        errors = [entry["relative_error"] for entry in course]
        steps = [entry.get("iteration", index) for index, entry in enumerate(course)]
        if len(errors) > 1 and errors[0] > OFF_SCALE * max(errors[1:]):
            # A random start would flatten the rest of the curve; it is named in place of drawn.
            panel.plot([], [], " ", label=f"start: {errors[0]:.3f}, off the scale")
            steps, errors = steps[1:], errors[1:]
        elif errors:
            panel.plot(steps[:1], errors[:1], "o", color="#b3471d", label="start", zorder=3)
        panel.plot(steps, errors, color="#1b4f8a", linewidth=1.6)
        if errors:
            panel.legend(frameon=False)
        panel.set_title(f"{record.row} ({record.method})", loc="left", fontsize=10)
        panel.set_xlabel("iteration")
        panel.set_ylabel("relative error")
        panel.grid(alpha=0.3)


def _pictures_of(record: RunRecord) -> list[tuple[str, np.ndarray]]:
    """Return the lifted centres of a record with their captions, those of the paper first."""
    found = []
    components = record.extras.get("components")
    centroids = record.extras.get("centroids")
    if components is not None and len(components) == len(record.classes):
        found.append((f"{record.method}\ncomponents", np.asarray(components)))
    if centroids is not None:
        found.append((f"{record.method}\ncluster means", np.asarray(centroids)))
    return found


def _centroids(canvas: Any, groups: list[tuple[str, np.ndarray]]) -> None:
    """Draw the centres as pictures: raw, on a scale symmetric about 0, and their positive part."""
    lines = [(name, pictures, clip) for name, pictures in groups for clip in (False, True)]
    panels = canvas.subplots(len(lines), max(len(p) for _, p, _ in lines), squeeze=False)
    for line, (name, pictures, clip) in zip(panels, lines, strict=True):
        for panel in line:
            panel.axis("off")
        limit = float(np.abs(pictures).max()) or 1.0
        for panel, picture in zip(line, pictures, strict=False):
            if clip:
                panel.imshow(np.maximum(picture, 0.0), cmap="gray", vmin=0.0, vmax=limit)
            else:
                panel.imshow(picture, cmap="RdBu_r", vmin=-limit, vmax=limit)
        line[0].text(
            -0.15,
            0.5,
            f"{name}\n{'positive part' if clip else 'raw'}",
            ha="right",
            va="center",
            fontsize=8,
            transform=line[0].transAxes,
        )


def draw_figure(
    figure: Figure, records: Iterable[RunRecord], *, profile: str = PAPER
) -> Any | None:
    """Draw a figure.

    Parameters
    ----------
    figure : Figure
        Which.
    records : iterable of RunRecord
        The records; the figure picks its own.
    profile : {"paper", "quick"}, default="paper"
        The settings.

    Returns
    -------
    canvas : matplotlib.figure.Figure or None
        None where none of its runs is stored.
    """
    shown: Any
    draw: Any
    if figure.kind == "curves":
        table = LIBRARIES[profile][figure.experiment]
        shown = curve_points(figure, table, records, profile=profile)
        draw, size = _curves, (CURVE_WIDTH * len({one.curve for one in shown}), 2 * PANEL_HEIGHT)
    else:
        found = figure_records(figure, records, profile=profile)
        if figure.kind == "errors":
            # Records that came through a CSV file have no course.
            shown = [record for record in found if record.extras.get("history")]
            draw, size = _error_curves, (PANEL_WIDTH, PANEL_HEIGHT * len(shown))
        else:
            shown = [group for record in found for group in _pictures_of(record)]
            columns = max((len(pictures) for _, pictures in shown), default=0)
            draw, size = _centroids, ((columns + 1.5) * TILE, 2 * len(shown) * TILE)
    if not shown:
        return None
    from tuckermix.plots.style import require_matplotlib

    canvas = require_matplotlib("draw_figure").Figure(figsize=size, layout="constrained")
    draw(canvas, shown)
    return canvas


def figure_svg(canvas: Any) -> str:
    """Return a drawn figure as SVG text, the same bytes for the same records."""
    import matplotlib

    stream = io.StringIO()
    # Without a fixed salt and date, each rendering would differ in its identifiers.
    with matplotlib.rc_context({"svg.hashsalt": "tuckermix"}):
        canvas.savefig(stream, format="svg", metadata={"Date": None})
    # Trailing blanks are matplotlib's; files under version control have none.
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def save_figure(canvas: Any, folder: Path, name: str) -> list[Path]:
    """Write a drawn figure as PNG and SVG, both or neither, and return the two paths."""
    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    # Saving moves the panels a little each time; the first rendering is the one that repeats.
    with atomic_paths(png, svg) as (new_png, new_svg):
        new_svg.write_text(figure_svg(canvas), encoding="utf-8")
        canvas.savefig(new_png, dpi=PNG_DPI, metadata={"Software": None})
    return [png, svg]


@dataclass(frozen=True)
class Shown(Record):
    """What was rendered.

    Attributes
    ----------
    text : str
        The tables for a terminal; empty if that was not asked for.
    files : list of Path
        What was written.
    tables : list of TableSummary
        The tables behind both.
    """

    text: str
    files: list[Path]
    tables: list[TableSummary]


def show(
    db: str | os.PathLike[str] = DEFAULT_DB,
    *,
    targets: str | Experiment | Iterable[str | Experiment] = "all",
    formats: Sequence[str] = FORMATS,
    out: str | os.PathLike[str] | None = None,
    quick: bool = False,
    color: bool = False,
) -> Shown:
    """Render the stored records of tables and figures.

    Parameters
    ----------
    db : path, default="tuckermix-results.jsonl"
        The file with the records.
    targets : str, Experiment, or iterable of them, default="all"
        Which tables and figures.
    formats : sequence of {"terminal", "md", "csv"}, default=FORMATS
        Which forms, all of them unless told. Figures are written as PNG and SVG with any form but
        "terminal".
    out : path or None, default=None
        The folder for files; None writes none.
    quick : bool, default=False
        Whether the miniature tables are meant.
    color : bool, default=False
        Whether the terminal can print bold.

    Returns
    -------
    shown : Shown
        The text and the files. A row that was never computed is shown empty, with the reason.
    """
    for form in formats:
        check_option(form, "formats", "show", FORMATS)
    profile = QUICK if quick else PAPER
    tables, figures = resolve_targets(targets, quick=quick)
    with Store(db, read_only=True) as store:
        records = store.records(profile=profile)
    summaries = [summarize(table, records, profile=profile) for table in tables]
    text = ""
    if "terminal" in formats:
        text = "\n".join(table_text(summary, color=color) for summary in summaries)
    files: list[Path] = []
    if out is not None and any(form != "terminal" for form in formats):
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        for figure in figures:
            canvas = draw_figure(figure, records, profile=profile)
            if canvas is not None:
                files += save_figure(canvas, folder, figure.name)
        texts: dict[str, str] = {}
        for summary in summaries:
            for form, render in (("md", table_markdown), ("csv", table_csv)):
                if form in formats:
                    texts[f"{summary.name}.{form}"] = render(summary)
        if "md" in formats:
            texts["overview.md"] = overview_markdown(summaries)
        if "csv" in formats:
            names = {table.name for table in tables} | {figure.experiment for figure in figures}
            mine = [record for record in records if record.experiment in names]
            texts["records.csv"] = records_csv(mine)
        for name, content in texts.items():
            write_text(folder / name, content)
            files.append(folder / name)
    return Shown(text, files, summaries)
