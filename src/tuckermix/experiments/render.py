"""Tables for people, from stored records alone: terminal, Markdown, CSV and HTML."""

from __future__ import annotations

import html
import os
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tuckermix._files import csv_text, write_text
from tuckermix._records import Record
from tuckermix._validation import check_option
from tuckermix.experiments.figures import draw_figure, save_figure
from tuckermix.experiments.methods import METHODS
from tuckermix.experiments.runner import DEFAULT_DB
from tuckermix.experiments.store import Store, records_csv
from tuckermix.experiments.summaries import (
    BEHIND,
    FIRST,
    METRICS,
    SHOWN,
    SINGLE,
    STANDARD_ERRORS,
    TIED,
    Agreement,
    CellSummary,
    Difference,
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
from tuckermix.experiments.tables import (
    AUTO,
    OURS,
    PAPER,
    PAPERS_OWN,
    QUICK,
    Experiment,
    PaperScore,
    resolve_targets,
)

__all__ = [
    "FORMATS",
    "Shown",
    "overview_markdown",
    "page_html",
    "show",
    "table_csv",
    "table_html",
    "table_markdown",
    "table_text",
]

FORMATS = ("terminal", "md", "csv", "html")

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
MEASURES = {
    "AC": "Accuracy (AC)",
    "NMI": "Normalised mutual information (NMI)",
    "ARI": "Adjusted Rand index (ARI)",
}

BOLD, PLAIN = "\x1b[1m", "\x1b[0m"


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
    return f"{row.name} ({'; '.join(remarks)})" if remarks else row.name


def _error(lead: Difference) -> str:
    """Print a difference with its standard error."""
    return f"{lead.mean:+.4f} " + ("(one run)" if lead.error is None else f"± {lead.error:.4f}")


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
            leads = {
                method: cell.metrics[metric].leads[ours]
                for method, cell in row.cells.items()
                if metric in cell.metrics
                and ours in cell.metrics[metric].leads
                and not (method in METHODS and METHODS[method].variant_of)
            }
            if leads:
                rival = min(leads, key=lambda method: leads[method].mean)
                parts.append(f"{ours} minus {rival} {_error(leads[rival])}")
        if parts:
            lines.append(f"{metric}: {'; '.join(parts)}")
    return lines


def _runs_line(summary: TableSummary) -> str:
    """Say how many runs there are, and who has fewer."""
    counts: dict[int, list[str]] = {}
    for method in summary.methods:
        most = max((row.cells[method].expected for row in summary.rows), default=0)
        counts.setdefault(most, []).append(method)
    usual = max(counts, default=0)
    text = f"Runs of a row: {usual} at most"
    for count, names in sorted(counts.items()):
        if count != usual:
            text += f"; {count} for {', '.join(names)}"
    if len(counts) > 1:
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


def _lines_of_cell(cell: CellSummary, metric: str) -> tuple[str, str, list[str]]:
    """Return a cell's mean, how it stands, and the smaller lines below it."""
    found, paper = cell.metrics.get(metric), cell.papers.get(metric)
    small = []
    if found is not None and found.variance is not None:
        small.append(f"({found.variance:.3e})")
    if paper is not None:
        spread = "" if paper.variance is None else f" ({paper.variance:.3e})"
        small.append(f"paper {paper.mean:.4f}{spread}")
    if found is None:
        return "–", "", small
    if found.difference is not None:
        small.append(f"{found.difference:+.4f}")
    return f"{found.mean:.4f}", found.standing, small


def _shown(summary: TableSummary) -> list[str]:
    """Return the measures of which a table has any value; those of the paper in any case."""
    cells = [cell for row in summary.rows for cell in row.cells.values()]
    return [
        metric
        for metric in SHOWN
        if metric in METRICS or any(metric in cell.metrics for cell in cells)
    ]


def _header(summary: TableSummary) -> list[str]:
    return ["", *(_row_title(row) for row in summary.rows)]


def _score_lines(
    summary: TableSummary, metric: str, form: Callable[[CellSummary, str], str]
) -> list[list[str]]:
    """Return the lines of one measure, a line for each method and a column for each row."""
    return [
        [method, *(form(row.cells[method], metric) for row in summary.rows)]
        for method in summary.methods
    ]


def _time_lines(summary: TableSummary) -> list[list[str]]:
    return [
        [method, *(_number(row.cells[method].seconds, ".3g") or "–" for row in summary.rows)]
        for method in summary.methods
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


def _mixed(summary: TableSummary) -> list[str]:
    return [
        f"{method}: its records come from {len(codes)} versions of its code."
        for method, codes in summary.codes.items()
        if len(codes) > 1
    ]


def markdown_table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""

    def join(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [join(header), "|" + "---|" * len(header), *(join(line) for line in lines)]


def _markdown_cell(cell: CellSummary, metric: str) -> str:
    mean, standing, small = _lines_of_cell(cell, metric)
    marked = {FIRST: f"**{mean}**", TIED: f"**{mean}** ="}.get(standing, mean)
    return "<br>".join([marked, *small])


def _lead_cell(cell: CellSummary, metric: str, ours: str = OURS) -> str:
    """Print how far one of our columns leads a method, and whether the draws can tell."""
    found = cell.metrics.get(metric)
    lead = None if found is None else found.leads.get(ours)
    if lead is None:
        return "–"
    return _error(lead) + (" (tie)" if lead.tied else "")


def _lead_sections(summary: TableSummary) -> list[str]:
    """Return, for each of our columns, the paired differences to all others."""
    lines = []
    for ours in our_columns():
        others = [name for name in summary.methods if name not in our_columns()]
        if ours not in summary.methods or not others:
            continue
        lines += ["", f"## {ours} minus the others", ""]
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
        stops: dict[str, int] = {}
        for row in summary.rows:
            for reason, count in row.cells[name].stops.items():
                stops[reason] = stops.get(reason, 0) + count
        lines.append(
            [
                name,
                "" if known is None else known.description,
                "" if known is None else known.on,
                "" if known is None else known.notes,
                ", ".join(f"{reason} {count}" for reason, count in sorted(stops.items())),
            ]
        )
    return lines


COLUMNS_HEADER = ["column", "what it is", "sees", "to know", "ended by"]


def _older(summary: TableSummary) -> list[str]:
    if not summary.older:
        return []
    return [OLDER.format(summary.older)]


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
    lines = (
        [f"# {summary.title}", "", summary.note, ""] if summary.note else [f"# {summary.title}", ""]
    )
    lines += [LEGEND, "", _runs_line(summary), ""]
    if any(row.seen for row in summary.rows):
        lines += [SPLIT_NOTE, ""]
    for metric in _shown(summary):
        lines += [f"## {MEASURES[metric]}", ""]
        lines += markdown_table(_header(summary), _score_lines(summary, metric, _markdown_cell))
        lines.append("")
    lines += ["## Time", "", "Processor seconds of a fit, one thread, mean over the runs.", ""]
    lines += markdown_table(["", *(row.name for row in summary.rows)], _time_lines(summary))
    lines += _lead_sections(summary)
    lines += ["", "## Columns", "", *markdown_table(COLUMNS_HEADER, _column_lines(summary))]
    if summary.spread:
        lines += ["", "## Random starts", "", *markdown_table(STARTS_HEADER, _starts(summary))]
    gaps = [*_explanations(summary), *_older(summary)]
    if gaps:
        lines += ["", "## Gaps", "", *(f"- {_one_line(gap)}" for gap in gaps)]
    if mixed := _mixed(summary):
        lines += ["", "## Mixed code", "", *(f"- {line}" for line in mixed)]
    lines += ["", *(f"Machine: {name}." for name in summary.machines)]
    lines += [f"Versions: {name}." for name in summary.versions]
    return "\n".join(lines) + "\n"


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
    lines: list[list[object]] = [[*header, "cpu_seconds", "seen", "explanation"]]
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
            lines.append([*line, cell.seconds, row.seen, _one_line(cell.explanation)])
    return csv_text(lines)


def _html_table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Build a table from cells that are HTML already."""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in line) + "</tr>\n" for line in lines)
    inside = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f"<div class='wide'><table>{inside}</table></div>"


def _html_cell(cell: CellSummary, metric: str) -> str:
    mean, standing, small = _lines_of_cell(cell, metric)
    marked = {FIRST: f"<b>{mean}</b>", TIED: f"<b>{mean}</b> ="}.get(standing, mean)
    found = cell.metrics.get(metric)
    if found is not None and found.lead is not None:
        small.append(f"ours {_lead_cell(cell, metric)}")
    rest = "".join(f"<small>{html.escape(line)}</small>" for line in small)
    title = f" title='{html.escape(cell.explanation, quote=True)}'" if cell.explanation else ""
    return f"<span{title}>{marked}</span>{rest}"


def table_html(summary: TableSummary) -> str:
    """Render a table as a section of HTML."""

    def escaped(lines: list[list[str]]) -> list[list[str]]:
        return [[html.escape(cell) for cell in line] for line in lines]

    parts = [
        f"<section id='{html.escape(summary.name)}'><h2>{html.escape(summary.title)}</h2>",
        f"<p>{html.escape(summary.note)}</p>",
        f"<p>{html.escape(_runs_line(summary))}</p>",
    ]
    for metric in _shown(summary):
        lines = _score_lines(summary, metric, _html_cell)
        scores = [[html.escape(name), *cells] for name, *cells in lines]
        parts.append(f"<h3>{html.escape(MEASURES[metric])}</h3>")
        parts.append(_html_table(_header(summary), scores))
    if summary.spread:
        parts.append("<h3>Random starts</h3>")
        parts.append(_html_table(STARTS_HEADER, escaped(_starts(summary))))
    parts.append("<h3>Columns</h3>")
    parts.append(_html_table(COLUMNS_HEADER, escaped(_column_lines(summary))))
    parts.append("<h3>Processor seconds of a fit</h3>")
    parts.append(
        _html_table(["", *(row.name for row in summary.rows)], escaped(_time_lines(summary)))
    )
    remarks = [*_explanations(summary), *_older(summary), *_mixed(summary)]
    if remarks:
        items = "".join(f"<li>{html.escape(_one_line(remark))}</li>" for remark in remarks)
        parts.append(f"<h3>Gaps</h3><ul>{items}</ul>")
    return "\n".join([*parts, "</section>"])


# Drawings in SVG carry styles of their own. The page needs no script and fetches nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 90rem; padding: 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .85rem; }
th, td { border-bottom: 1px solid #ccc; padding: .3rem .5rem; }
th, td { text-align: right; vertical-align: top; }
th:first-child, td:first-child { text-align: left; }
small { display: block; color: #555; white-space: nowrap; }
.wide { overflow-x: auto; }
figure { margin: 1rem 0; } figure svg { max-width: 100%; height: auto; }
@media (prefers-color-scheme: dark) {
  body { background: #16181c; color: #e8e8e8; } small { color: #aaa; }
  th, td { border-color: #444; } figure { background: #fff; }
}
"""


def page_html(summaries: Iterable[TableSummary], figures: Mapping[str, tuple[str, str]]) -> str:
    """Render tables and figures as one self-contained page.

    Parameters
    ----------
    summaries : iterable of TableSummary
        The tables.
    figures : mapping of str to (str, str)
        Title and SVG text of each figure, by name.

    Returns
    -------
    page : str
        HTML without references to other files and without scripts.
    """
    summaries = list(summaries)
    machines = dict.fromkeys(name for summary in summaries for name in summary.machines)
    numbers = dict.fromkeys(name for summary in summaries for name in summary.versions)
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>Results</title><style>{_STYLE}</style></head><body><h1>Results</h1>",
        f"<p>{LEGEND}</p>",
        *(
            f"<p>Machine: {html.escape(name)}. One numerical thread a process.</p>"
            for name in machines
        ),
        *(f"<p>Versions: {html.escape(name)}.</p>" for name in numbers),
        *(table_html(summary) for summary in summaries),
    ]
    for name, (title, svg) in figures.items():
        inline = svg[svg.index("<svg") :]
        parts.append(
            f"<figure id='{html.escape(name)}'><figcaption><h2>{html.escape(title)}</h2>"
            f"</figcaption>{inline}</figure>"
        )
    return "\n".join([*parts, "</body></html>"]) + "\n"


VERDICTS = (FIRST, TIED, BEHIND, SINGLE)
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


def _ablations(summaries: Iterable[TableSummary]) -> list[list[str]]:
    """Compare our method with its own variants, one line for each row, variant and metric."""
    variants = [name for name, method in METHODS.items() if method.variant_of == OURS]
    return [
        [summary.name, row.name, name, metric, f"{found.mean:.4f}", _lead_cell(cell, metric)]
        for summary in summaries
        for row in summary.rows
        for name, cell in row.cells.items()
        for metric, found in cell.metrics.items()
        if name in variants and metric in METRICS and found.lead is not None
    ]


def _answer(agrees: bool | None) -> str:
    return "single run" if agrees is None else "yes" if agrees else "no"


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
    lines = _ablations(summaries)
    if not lines:
        return []
    header = ["table", "row", "variant", "metric", "mean", f"{OURS} minus it"]
    return [f"## {OURS} and its ablations", "", *markdown_table(header, lines), ""]


def _share_lines(summaries: list[TableSummary]) -> list[str]:
    """Say in how many rows each of our columns is behind nobody, and name the others."""
    lines = []
    for ours in our_columns():
        found = standings(summaries, ours)
        if not found:
            continue
        share = share_of(found, ours)
        if share.rows:
            percent = f"{100 * share.reached / share.rows:.0f} %"
            lines.append(
                f"**{ours}** is first or tied first in AC and NMI in {share.reached} of "
                f"{share.rows} rows ({percent}), against all rivals of each row."
            )
            lines.append("")
        if share.others:
            lines += markdown_table(
                ["table", "row", "measure", "ours", "ahead of it", "", "difference ± error"],
                (
                    [s.table, s.row, s.metric, f"{s.ours:.4f}", *_winners(summaries, s)]
                    for s in found
                    if s.verdict == BEHIND
                ),
            )
            lines.append("")
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
    lines = [f"{text}{absent} have none, each table says why."]
    for name in dict.fromkeys(name for summary in summaries for name in summary.machines):
        lines.append(f"Machine: {name}.")
    for name in dict.fromkeys(name for summary in summaries for name in summary.versions):
        lines.append(f"Versions: {name}.")
    return [*lines, ""]


def _winners(summaries: list[TableSummary], standing: Standing) -> list[str]:
    """Name who is ahead of us, the best mean and its lead."""
    table = next(summary for summary in summaries if summary.name == standing.table)
    cells = next(row for row in table.rows if row.name == standing.row).cells
    means = {name: cells[name].metrics[standing.metric] for name in standing.winners}
    best = max(means, key=lambda name: means[name].mean)
    names = [best, *(name for name in means if name != best)]
    lead = means[best].leads[standing.method]
    return [", ".join(names), f"{means[best].mean:.4f}", _error(lead)]


def _standing_section(summaries: list[TableSummary], ours: str) -> list[str]:
    """Compare one of our columns with the nearest rival of each row."""
    found = standings(summaries, ours)
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
            _error(one.lead),
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
    lines = [
        "# Overview",
        "",
        *_marked("shares", _share_lines(summaries)),
        VERDICT_NOTE,
        f'"faster": processor time of {PAPERS_OWN} over ours, row by row.',
        "",
        *(line for ours in our_columns() for line in _standing_section(summaries, ours)),
        *_ablation_section(summaries),
        f"## {PAPERS_OWN} here and in the paper",
        "",
        *_marked("agreement", _agreement_lines(agreements(summaries))),
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
        "",
        "## The run",
        "",
        *_marked("run", _run_lines(summaries)),
    ]
    return "\n".join(lines).rstrip() + "\n"


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
    db : path, default="tuckermix-results.sqlite"
        The file with the records.
    targets : str, Experiment, or iterable of them, default="all"
        Which tables and figures.
    formats : sequence of {"terminal", "md", "csv", "html"}, default=FORMATS
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
        drawn: dict[str, tuple[str, str]] = {}
        for figure in figures:
            canvas = draw_figure(figure, records, profile=profile)
            if canvas is not None:
                png, svg = save_figure(canvas, folder, figure.name)
                files += [png, svg]
                drawn[figure.name] = (figure.title, svg.read_text(encoding="utf-8"))
        texts: dict[str, str] = {}
        for summary in summaries:
            if "md" in formats:
                texts[f"{summary.name}.md"] = table_markdown(summary)
            if "csv" in formats:
                texts[f"{summary.name}.csv"] = table_csv(summary)
        if "md" in formats:
            texts["overview.md"] = overview_markdown(summaries)
        if "csv" in formats:
            names = {table.name for table in tables} | {figure.experiment for figure in figures}
            mine = [record for record in records if record.experiment in names]
            texts["records.csv"] = records_csv(mine)
        if "html" in formats:
            texts["results.html"] = page_html(summaries, drawn)
        for name, content in texts.items():
            write_text(folder / name, content)
            files.append(folder / name)
    return Shown(text, files, summaries)
