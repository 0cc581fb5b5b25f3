"""Renders what is stored."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuckermix._records import Record
from tuckermix._validation import check_option
from tuckermix.experiments.cells import PAPER, QUICK
from tuckermix.experiments.figures import draw_figure, save_figure
from tuckermix.experiments.overview import overview_markdown
from tuckermix.experiments.rendering import (
    page_html,
    records_csv,
    table_csv,
    table_markdown,
    table_text,
)
from tuckermix.experiments.reproducing import DEFAULT_DB
from tuckermix.experiments.specs import Experiment
from tuckermix.experiments.store import Store
from tuckermix.experiments.summaries import TableSummary, summarize
from tuckermix.experiments.tables import resolve_targets

__all__ = ["FORMATS", "Shown", "show"]

FORMATS = ("terminal", "md", "csv", "html")


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


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


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
            canvas: Any = draw_figure(figure, records, profile=profile)
            if canvas is not None:
                png, svg = save_figure(canvas, folder, figure.name)
                files += [png, svg]
                drawn[figure.name] = (figure.title, svg.read_text(encoding="utf-8"))
        for summary in summaries:
            if "md" in formats:
                files.append(_write(folder / f"{summary.name}.md", table_markdown(summary)))
            if "csv" in formats:
                files.append(_write(folder / f"{summary.name}.csv", table_csv(summary)))
        if "md" in formats:
            files.append(_write(folder / "overview.md", overview_markdown(summaries)))
        if "csv" in formats:
            names = {table.name for table in tables} | {figure.experiment for figure in figures}
            mine = [record for record in records if record.experiment in names]
            files.append(_write(folder / "records.csv", records_csv(mine)))
        if "html" in formats:
            files.append(_write(folder / "results.html", page_html(summaries, drawn)))
    return Shown(text, files, summaries)
