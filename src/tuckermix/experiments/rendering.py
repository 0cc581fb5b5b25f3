"""Tables for people: terminal, Markdown, CSV and HTML."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Iterable, Mapping, Sequence

from tuckermix.experiments.store import RunRecord
from tuckermix.experiments.summaries import METRICS, CellSummary, RowSummary, TableSummary

__all__ = [
    "markdown_table",
    "records_csv",
    "table_csv",
    "table_html",
    "table_markdown",
    "table_text",
    "page_html",
]

RECORD_FIELDS = (
    "profile",
    "experiment",
    "row",
    "method",
    "run",
    "status",
    "dataset",
    "n_samples",
    "classes",
    "seed",
    "ac",
    "nmi",
    "seconds",
    "cpu_seconds",
    "peak_memory",
    "iterations",
    "stop_reason",
    "error",
    "digest",
    "fingerprint",
    "finished",
)
"""What the CSV of records holds; the store has the rest."""

LEGEND = (
    "Each cell: mean over the runs, (variance), the paper's mean (variance), and the difference "
    "where the data are the paper's. The best mean of a row is bold."
)

BOLD, PLAIN = "\x1b[1m", "\x1b[0m"


def _number(value: float | None, form: str = ".4f") -> str:
    return "" if value is None else format(value, form)


def _row_title(row: RowSummary) -> str:
    """Name a row, with its classes where they are few and fixed."""
    few = 10
    if row.classes and len(row.classes) <= few and row.name.startswith("K="):
        return f"{row.name} ({', '.join(map(str, row.classes))})"
    return row.name


def _starts(summary: TableSummary) -> list[list[str]]:
    """Return the paper's Table 1: mean, deviation, best and worst over the random starts."""
    from tuckermix.experiments.paper import PAPER_STARTS

    lines = []
    row = next(row for row in summary.rows if row.name == "random")
    for metric in METRICS:
        paper = PAPER_STARTS[metric]
        numbers = (paper.mean, paper.deviation, paper.best, paper.worst)
        lines.append([metric, "paper", *(f"{value:.4f}" for value in numbers)])
        for method, cell in row.cells.items():
            found = cell.metrics.get(metric)
            if found is not None:
                spread = None if found.variance is None else found.variance**0.5
                numbers4 = (found.mean, spread, found.high, found.low)
                lines.append([metric, method, *(_number(value) for value in numbers4)])
    return lines


STARTS_HEADER = ["metric", "method", "mean", "standard deviation", "best", "worst"]


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
        lines += [f"  {', '.join(names)}: {why}" for why, names in notes.items()]
        lines.append("")
    if summary.note:
        lines += [summary.note, ""]
    return "\n".join(lines)


def _text_metric(cell: CellSummary, metric: str, color: bool) -> str:
    found, paper = cell.metrics.get(metric), cell.papers.get(metric)
    printed = "" if paper is None else f"{paper.mean:.4f}"
    if found is None:
        return f"{'-':>7}  {'':>9} {printed:>7} {'':>8}"
    mean = f"{found.mean:.4f}{'*' if found.best else ' '}"
    if color and found.best:
        mean = f"{BOLD}{mean}{PLAIN}"
    difference = _number(found.difference, "+.4f")
    return f" {mean} {_number(found.variance, '.3e'):>9} {printed:>7} {difference:>8}"


def _lines_of_cell(cell: CellSummary, metric: str) -> tuple[str, bool, list[str]]:
    """Return a cell's mean, whether it is the best, and the smaller lines below it."""
    found, paper = cell.metrics.get(metric), cell.papers.get(metric)
    small = []
    if found is not None and found.variance is not None:
        small.append(f"({found.variance:.3e})")
    if paper is not None:
        spread = "" if paper.variance is None else f" ({paper.variance:.3e})"
        small.append(f"paper {paper.mean:.4f}{spread}")
    if found is None:
        return "–", False, small
    if found.difference is not None:
        small.append(f"{found.difference:+.4f}")
    return f"{found.mean:.4f}", found.best, small


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
    lines += [LEGEND, ""]
    body, times = [], []
    for row in summary.rows:
        for metric in METRICS:
            cells = []
            for cell in row.cells.values():
                mean, best, small = _lines_of_cell(cell, metric)
                cells.append("<br>".join([f"**{mean}**" if best else mean, *small]))
            body.append([_row_title(row), metric, *cells])
        times.append(
            [row.name, *(_number(cell.seconds, ".3g") or "–" for cell in row.cells.values())]
        )
    lines += markdown_table(["", "", *summary.methods], body)
    if summary.name == "table1":
        lines += ["", "## Random starts", "", *markdown_table(STARTS_HEADER, _starts(summary))]
    lines += ["", "## Time", "", "Processor seconds of a fit, one thread, mean over the runs.", ""]
    lines += markdown_table(["", *summary.methods], times)
    gaps = _explanations(summary)
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
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    header = ["table", "row", "method", "runs", "expected"]
    for metric in METRICS:
        name = metric.lower()
        header += [
            f"{name}_{part}"
            for part in ("mean", "variance", "low", "high", "best", "paper", "difference")
        ]
    writer.writerow([*header, "cpu_seconds", "explanation"])
    for row in summary.rows:
        for cell in row.cells.values():
            line: list[object] = [summary.name, row.name, cell.method, cell.done, cell.expected]
            for metric in METRICS:
                found, paper = cell.metrics.get(metric), cell.papers.get(metric)
                printed = None if paper is None else paper.mean
                if found is None:
                    line += [None] * 5 + [printed, None]
                else:
                    line += [found.mean, found.variance, found.low, found.high, found.best]
                    line += [printed, found.difference]
            writer.writerow([*line, cell.seconds, _one_line(cell.explanation)])
    return stream.getvalue()


def records_csv(records: Iterable[RunRecord]) -> str:
    """Render records as CSV, one line each, without what only the figures need."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(RECORD_FIELDS)
    for record in records:
        line = record.to_dict() | {"classes": " ".join(map(str, record.classes))}
        line["error"] = _one_line(record.error or "")
        writer.writerow([line[name] for name in RECORD_FIELDS])
    return stream.getvalue()


def _html_table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Build a table from cells that are HTML already."""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in line) + "</tr>\n" for line in lines)
    inside = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f"<div class='wide'><table>{inside}</table></div>"


def table_html(summary: TableSummary) -> str:
    """Render a table as a section of HTML."""
    body, times = [], []
    for row in summary.rows:
        for metric in METRICS:
            cells = []
            for cell in row.cells.values():
                mean, best, small = _lines_of_cell(cell, metric)
                first = f"<b>{mean}</b>" if best else mean
                rest = "".join(f"<small>{html.escape(line)}</small>" for line in small)
                title = f" title='{html.escape(cell.explanation, quote=True)}'"
                cells.append(f"<span{title if cell.explanation else ''}>{first}</span>{rest}")
            body.append([html.escape(_row_title(row)), metric, *cells])
        seconds = (_number(cell.seconds, ".3g") or "–" for cell in row.cells.values())
        times.append([html.escape(row.name), *seconds])
    parts = [
        f"<section id='{html.escape(summary.name)}'><h2>{html.escape(summary.title)}</h2>",
        f"<p>{html.escape(summary.note)}</p>",
        _html_table(["", "", *summary.methods], body),
    ]
    if summary.name == "table1":
        lines = [[html.escape(cell) for cell in line] for line in _starts(summary)]
        parts += ["<h3>Random starts</h3>", _html_table(STARTS_HEADER, lines)]
    parts += ["<h3>Processor seconds of a fit</h3>", _html_table(["", *summary.methods], times)]
    remarks = [*_explanations(summary), *_mixed(summary)]
    if remarks:
        items = "".join(f"<li>{html.escape(_one_line(remark))}</li>" for remark in remarks)
        parts.append(f"<h3>Gaps</h3><ul>{items}</ul>")
    parts.append("</section>")
    return "\n".join(parts)


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
