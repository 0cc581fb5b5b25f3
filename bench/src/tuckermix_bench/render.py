"""Tables for people, from stored records alone: for a terminal, in Markdown and as CSV."""

from __future__ import annotations

import math
import os
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tuckermix._files import csv_text, write_text
from tuckermix._records import Record
from tuckermix_bench import summaries
from tuckermix_bench.figures import draw_figure, save_figure
from tuckermix_bench.methods import DECLARED, METHODS
from tuckermix_bench.runner import DEFAULT_DB
from tuckermix_bench.store import read_store, records_csv
from tuckermix_bench.summaries import CellSummary, Place, RowSummary, TableSummary
from tuckermix_bench.tables import PAPER, PAPERS_OWN, QUICK, Experiment, resolve_targets

WORDS = DECLARED["words"]
"""What the pages say of all tables alike."""
MARKS = {"first": "*", "tied first": "=", "": " "}
GOOD_SHARE = 0.9
"""Of the ARI at the true number of clusters: this share is good where the number is open."""
Lines = list[list[str]]


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
    # In the quick setting the data are others: they come first.
    name = f"{row.stand_in}, in place of {row.name}" if row.stand_in else row.name
    return f"{name} ({'; '.join(remarks)})" if remarks else name


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _explanations(summary: TableSummary) -> list[str]:
    """Group the explanations of incomplete cells, each sentence once."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for method in summary.methods:
        rows: dict[str, list[str]] = {}
        for row in summary.rows:
            if why := row.cells[method].explanation:
                rows.setdefault(_one_line(why), []).append(row.name)
        for why, names in rows.items():
            grouped.setdefault((", ".join(names), why), []).append(method)
    return [f"{', '.join(methods)} ({rows}): {why}" for (rows, why), methods in grouped.items()]


def table_text(summary: TableSummary) -> str:
    """Render a table for a terminal: one block per row, one line per method.

    Parameters
    ----------
    summary : TableSummary
        The table.

    Returns
    -------
    text : str
        The first of a row are marked with a star, tied ones with an equals sign.
    """
    width = max(len(method) for method in summary.methods)
    lines = [f"{summary.name}: {summary.title}", ""]
    for row in summary.rows:
        shown = [cell for cell in row.cells.values() if cell.expected]
        head = "".join(f"  {metric:>7} {'paper':>7}" for metric in summaries.METRICS)
        lines += [_row_title(row), f"  {'':{width}}{head}  {'time':>8}  runs"] if shown else []
        for cell in shown:
            line = f"  {cell.method:{width}}"
            for metric in summaries.METRICS:
                paper = cell.papers.get(metric)
                mean = _number(cell.mean(metric)) or "-"
                line += f"  {mean:>6}{MARKS[cell.standing(metric)]}"
                line += f" {_number(None if paper is None else paper.mean):>7}"
            seconds = "" if cell.seconds is None else f"{cell.seconds:.2f} s"
            lines.append(f"{line}  {seconds:>8}  {cell.done}/{cell.expected}")
        lines += [""] if shown else []
    gaps = [f"{gap}\n" for gap in _explanations(summary)]
    return "\n".join([*lines, *gaps, *([f"{summary.note}\n"] if summary.note else [])])


def markdown_table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""

    def join(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [join(header), "|" + "---|" * len(header), *(join(line) for line in lines)]


def section(title: str, header: list[str], lines: Lines, text: str = "") -> list[str]:
    """Return the lines of a section of a page: a heading, a sentence and a table."""
    said = [text, ""] if text else []
    return [f"## {title}", "", *said, *markdown_table(header, lines), ""]


def _score_cell(cell: CellSummary, metric: str) -> str:
    """Print a mean, marked by how it stands, and the smaller lines below it."""
    mean, paper = cell.mean(metric), cell.papers.get(metric)
    marked = {"first": "**{}**", "tied first": "**{}** ="}.get(cell.standing(metric), "{}")
    lines = [marked.format(_number(mean) or "–")]
    if (variance := cell.variance(metric)) is not None:
        lines.append(f"({variance:.3e}; {cell.done})")
    if paper is not None:
        spread = "" if paper.variance is None else f" ({paper.variance:.3e})"
        lines.append(f"paper {paper.mean:.4f}{spread}")
    if (difference := cell.difference(metric)) is not None:
        lines.append(f"{difference:+.4f}")
    return "<br>".join(lines)


def _seconds_cell(cell: CellSummary) -> str:
    return _number(cell.seconds, ".3g") or "–"


def _memory_cell(cell: CellSummary) -> str:
    return "–" if cell.memory is None else f"{cell.memory / 1e6:.0f}"


COSTS = {
    "Time": ("Processor seconds of a fit, one thread", _seconds_cell),
    "Memory": ("MB by which the memory of the process rises during a fit", _memory_cell),
}


def _starts(summary: TableSummary) -> list[str]:
    """Compare mean, deviation, best and worst over the random starts with the paper's."""
    cells, lines = next(row for row in summary.rows if row.name == summary.spread).cells, []
    for metric in summaries.METRICS:
        shown: dict[str, tuple[float | None, ...]] = {}
        paper = cells[PAPERS_OWN].papers.get(metric) if PAPERS_OWN in cells else None
        if paper is not None:
            shown["paper"] = (paper.mean, paper.variance, paper.best, paper.worst)
        for name, cell in cells.items():
            if scores := cell.scores.get(metric):
                mean, variance = cell.mean(metric), cell.variance(metric)
                shown[name] = (mean, variance, max(scores), min(scores))
        for name, (mean, variance, *ends) in shown.items():
            numbers = (mean, None if variance is None else variance**0.5, *ends)
            lines.append([metric, name, *map(_number, numbers)])
    header = ["metric", "method", "mean", "standard deviation", "best", "worst"]
    return section("Random starts", header, lines)


def _number_lines(summary: TableSummary) -> list[str]:
    """Compare the numbers of clusters that methods find with the true ones."""
    lines: Lines = []
    medians, near = [], []
    open_cells = [(row, one) for row in summary.rows for one in row.cells.values() if one.found]
    for row, cell in open_cells:
        given = row.cells.get(METHODS[cell.method].variant_of)
        off = [abs(math.log2(found / true)) for true, found in cell.found]
        medians.append(statistics.median(off))
        scores = [None if one is None else one.mean("ARI") for one in (cell, given)]
        if scores[0] is not None and scores[1] is not None:
            near.append(scores[0] >= GOOD_SHARE * scores[1])
        true = ", ".join(dict.fromkeys(str(one) for one, _ in cell.found))
        found = ", ".join(str(found) for _, found in cell.found)
        numbers = (_number(score, ".3f") for score in (statistics.fmean(off), *scores))
        lines.append([row.name, cell.method, true, found, *numbers])
    if not lines:
        return []
    text = f"Median over {len(medians)} rows of the octaves off: {statistics.median(medians):.3f}."
    text += (
        f" ARI at least {GOOD_SHARE} of that at the true number: {sum(near)} of {len(near)} rows."
    )
    header = ["", "column", "true", "found", "octaves off", "ARI", "ARI at the true number"]
    return [*section("Numbers of clusters", header, lines), text, ""]


def _column_lines(summary: TableSummary) -> Lines:
    """Say of each column what it is, what it sees, what to know, and how its runs ended."""
    lines = []
    for name in summary.methods:
        known = METHODS.get(name)
        said = ["", "", ""] if known is None else [known.description, known.on, known.notes]
        stops = sum((Counter(row.cells[name].stops) for row in summary.rows), Counter())
        ended = ", ".join(f"{reason} {count}" for reason, count in sorted(stops.items()))
        lines.append([name, *said, ended])
    return lines


def table_markdown(summary: TableSummary) -> str:
    """Render a table in Markdown: mean, variance, the paper's value and the difference.

    Parameters
    ----------
    summary : TableSummary
        The table.

    Returns
    -------
    text : str
        A page with scores, times, memory, and the reasons for gaps.
    """

    def by_row(form: Callable[[CellSummary], str]) -> Lines:
        """Return a line for each method, with a cell for each row."""
        return [
            [name, *(form(row.cells[name]) for row in summary.rows)] for name in summary.methods
        ]

    titles = ["", *map(_row_title, summary.rows)]
    lines = [f"# {summary.title}", "", *([summary.note, ""] if summary.note else [])]
    lines += [*_number_lines(summary), WORDS["cells"], ""]
    if any(row.seen for row in summary.rows):
        lines += [WORDS["full set"], ""]
    known = {
        metric for row in summary.rows for cell in row.cells.values() for metric in cell.scores
    }
    for metric in (name for name in summaries.SHOWN if name in summaries.METRICS or name in known):
        lines += section(WORDS[metric], titles, by_row(partial(_score_cell, metric=metric)))
    for title, (text, form) in COSTS.items():
        lines += section(title, titles, by_row(form), f"{text}, mean over the runs.")
    header = ["column", "what it is", "sees", "to know", "ended by"]
    lines += section("Columns", header, _column_lines(summary))
    if summary.spread:
        lines += _starts(summary)
    older = [WORDS["older"].format(summary.older)] if summary.older else []
    if gaps := [*_explanations(summary), *older]:
        lines += ["## Gaps", "", *(f"- {gap}" for gap in gaps), ""]
    return "\n".join([*lines, *_origins([summary])]) + "\n"


def _origins(shown: Sequence[TableSummary]) -> list[str]:
    """Say on which machines and with which versions records were made, each once."""
    machines = dict.fromkeys(name for summary in shown for name in summary.machines)
    versions = dict.fromkeys(name for summary in shown for name in summary.versions)
    return [*(f"Machine: {one}." for one in machines), *(f"Versions: {one}." for one in versions)]


def table_csv(summary: TableSummary) -> str:
    """Render a table as CSV, one line for each row and method."""
    parts = ("mean", "variance", "low", "high", "standing", "paper", "difference")
    header = ["table", "row", "method", "runs", "expected"]
    header += [f"{metric.lower()}_{part}" for metric in summaries.SHOWN for part in parts]
    lines: list[list[object]] = [[*header, "cpu_seconds", "memory", "seen", "explanation"]]
    for row in summary.rows:
        for cell in row.cells.values():
            line: list[object] = [summary.name, row.name, cell.method, cell.done, cell.expected]
            for metric in summaries.SHOWN:
                scores, paper = cell.scores.get(metric, ()), cell.papers.get(metric)
                line += [cell.mean(metric), cell.variance(metric)]
                line += [min(scores, default=None), max(scores, default=None)]
                line += [cell.standing(metric), None if paper is None else paper.mean]
                line.append(cell.difference(metric))
            lines.append([*line, cell.seconds, cell.memory, row.seen, _one_line(cell.explanation)])
    return csv_text(lines)


def _marked(name: str, lines: Iterable[str]) -> list[str]:
    """Put marks around a part that other pages take from the overview."""
    return [f"<!-- {name} -->", "", *lines, "", f"<!-- end of {name} -->", ""]


STANDING_HEADER = [
    *("table", "row", "measure", "mean", "nearest rival", "its mean", "difference ± error"),
    *("draws", "stands", "ahead of it"),
]


def _standing_line(one: Place) -> list[str]:
    """Compare a column of ours with the rival that it leads least."""
    return [
        *(one.table, one.row, one.metric, _number(one.mean), one.rival, _number(one.rival_mean)),
        *("" if one.lead is None else one.lead.text, str(one.lead.pairs if one.lead else 0)),
        *(f"**{one.verdict}**" if one.verdict == "first" else one.verdict, ", ".join(one.winners)),
    ]


def _share_lines(standing: dict[str, list[Place]]) -> list[str]:
    """Say in how many rows each of our columns is behind nobody, and name the others."""
    lines = []
    for ours, found in standing.items():
        reached, rows = summaries.share_of(found)
        if rows:
            text = (
                f"**{ours}** is first or tied first in AC and NMI in {reached} of {rows} rows "
                f"({100 * reached / rows:.0f} %), against all rivals of each row."
            )
            lines += [text, ""]
        if lost := [_standing_line(one) for one in found if one.verdict == "behind"]:
            lines += [*markdown_table(STANDING_HEADER, lost), ""]
    return lines


def _run_lines(shown: Sequence[TableSummary]) -> list[str]:
    """Say how many fits there are, what they took, and where they were made."""
    rows = [row for summary in shown for row in summary.rows if not row.borrowed]
    cells = [cell for row in rows for cell in row.cells.values()]
    fits = sum(cell.done for cell in cells)
    hours = sum(cell.done * (cell.seconds or 0.0) for cell in cells) / 3600
    absent = sum(cell.expected - cell.done for cell in cells)
    text = f"{fits} fits with scores, {hours:.1f} hours of processor time, one thread each; "
    return [f"{text}{absent} have none, each table says why.", *_origins(shown)]


def overview_markdown(shown: Sequence[TableSummary]) -> str:
    """Render in Markdown how our columns stand, and how the paper's method agrees with it."""
    standing = {ours: summaries.standings(shown, ours) for ours in summaries.our_columns()}
    lines = ["# Overview", "", *_marked("shares", _share_lines(standing)), WORDS["verdicts"], ""]
    for ours, found in standing.items():
        if found:
            title = f"{ours} beside the nearest rival of each row"
            lines += section(title, STANDING_HEADER, [_standing_line(one) for one in found])
    counts: Counter[tuple[str, bool]] = Counter()
    table: Lines = []
    for summary in shown:
        for row, cell, metric, error in summaries.agreements(summary):
            gap, spread = cell.difference(metric) or 0.0, summaries.STANDARD_ERRORS * (error or 0.0)
            said = "single run"
            if error is not None:
                counts[cell.method, abs(gap) <= spread] += 1
                said = "yes" if abs(gap) <= spread else "no"
            numbers = (_number(cell.mean(metric)), _number(cell.papers[metric].mean))
            line = [summary.name, row.name, cell.method, metric, *numbers, f"{gap:+.4f}"]
            table.append([*line, f"{spread:.4f}" if error is not None else "–", said])
    agreed = [
        f"- **{name}**, {METHODS[name].description}: agrees with the paper to two standard errors "
        f"in {counts[name, True]} of {counts[name, True] + counts[name, False]} comparisons."
        for name in dict.fromkeys(name for name, _ in counts)
    ]
    lines += [f"## {PAPERS_OWN} here and in the paper", "", *_marked("agreement", agreed)]
    header = ["table", "row", "method", "metric", "here", "paper", "difference", "two errors"]
    lines += [*markdown_table([*header, "agrees"], table), ""]
    lines += ['"two errors": twice the standard error of the difference of the two means.', ""]
    return "\n".join([*lines, "## The run", "", *_marked("run", _run_lines(shown))])


@dataclass(frozen=True)
class Shown(Record):
    """What was rendered.

    Attributes
    ----------
    text : str
        The tables for a terminal.
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
    out: str | os.PathLike[str] | None = None,
    quick: bool = False,
) -> Shown:
    """Render the stored records of tables and figures.

    Parameters
    ----------
    db : path, default="tuckermix-results.jsonl"
        The file with the records.
    targets : str, Experiment, or iterable of them, default="all"
        Which tables and figures.
    out : path or None, default=None
        The folder for files: each table in Markdown and as CSV, an overview, the records as CSV,
        and figures as PNG and SVG. None writes none.
    quick : bool, default=False
        Whether the miniature tables are meant.

    Returns
    -------
    shown : Shown
        The text and the files. A row that was never computed is shown empty, with the reason.
    """
    profile = QUICK if quick else PAPER
    tables, figures = resolve_targets(targets, quick=quick)
    records = [record for record in read_store(db) if record.profile == profile]
    shown = [summaries.summarize(table, records, profile=profile) for table in tables]
    files: list[Path] = []
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        for figure in figures:
            canvas = draw_figure(figure, records, profile=profile)
            files += [] if canvas is None else save_figure(canvas, folder, figure.name)
        names = {table.name for table in tables} | {figure.experiment for figure in figures}
        texts = {
            **{f"{one.name}.md": table_markdown(one) for one in shown},
            **{f"{one.name}.csv": table_csv(one) for one in shown},
            "overview.md": overview_markdown(shown),
            "records.csv": records_csv(one for one in records if one.experiment in names),
        }
        for name, content in texts.items():
            write_text(folder / name, content)
            files.append(folder / name)
    return Shown("\n".join(map(table_text, shown)), files, shown)
