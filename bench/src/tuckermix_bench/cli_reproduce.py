"""``tuckermix reproduce``: the paper's tables and figures from the command line."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from tuckermix.cli import _options as options
from tuckermix.cli._console import Exit, UsageError, visible
from tuckermix_bench import render, runner
from tuckermix_bench.cli_bench import Running
from tuckermix_bench.methods import METHODS
from tuckermix_bench.runner import DEFAULT_DB, Cost, Progress, RunReport, progress_line
from tuckermix_bench.tables import EXPERIMENTS, FIGURES

SHOW = "show"
NAMES = [*EXPERIMENTS, *FIGURES, "all"]
SECONDS_BETWEEN_LINES = 5.0


def add_to(program: typer.Typer) -> None:
    """Add the command to the program `tuckermix`."""
    options.add(program, reproduce)


def show_progress(quiet: bool = False) -> Callable[[Progress], None]:
    """Return a function that writes a finished cell to stderr every few seconds."""
    last = -SECONDS_BETWEEN_LINES

    def now_and_then(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if not quiet and (progress.done == progress.total or now - last >= SECONDS_BETWEEN_LINES):
            last = now
            typer.echo(progress_line(progress), err=True)

    return now_and_then


def summary_line(report: RunReport) -> str:
    """Say in a line what a run did and where its records are."""
    text = f"{report.computed} cells computed, {report.skipped} were stored before"
    if report.failed:
        text += f", {report.failed} failed"
    if report.missing:
        text += f", {report.missing} lack their data"
    if report.left:
        text += f", {report.left} are left for the next run"
    return f"{text}; {timedelta(seconds=int(report.seconds))} in all. Records: {report.db}"


def _plan_text(costs: Iterable[Cost]) -> str:
    """Print cells and processor seconds by table, with their sums."""
    costs = list(costs)
    lines = [f"{'table':12}{'cells':>8}{'seconds':>10}{'longest':>10}"]
    longest = max((one.longest for one in costs), default=0.0)
    total = Cost("all", sum(c.cells for c in costs), sum(c.seconds for c in costs), longest)
    for one in (*costs, total):
        lines.append(f"{one.table:12}{one.cells:8}{one.seconds:10.1f}{one.longest:10.1f}")
    return "\n".join([*lines, "Seconds of one processor, by the times of cells like them."])


def split_methods(value: str | None) -> list[str] | None:
    """Divide a list of columns at its commas."""
    return None if value is None else [name.strip() for name in value.split(",") if name.strip()]


def reproduce(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGETS",
            help=f"{', '.join(NAMES)}; or '{SHOW}' before them to render what is stored.",
            autocompletion=options.one_of(*NAMES, SHOW),
            show_default=False,
        ),
    ],
    methods: Annotated[str | None, options.within("Options")(words=list(METHODS))] = None,
    row: list[str] | None = None,
    db: Path = Path(DEFAULT_DB),
    refresh: bool = False,
    stop_after: float | None = None,
    longest_first: bool = False,
    plan: bool = False,
    records: Path | None = None,
    out: Path | None = None,
    *,
    running: Running,
) -> None:
    """Compute the paper's tables and figures; `reproduce show` renders what is stored.

    Each cell and run is saved to --db as soon as it is done. Stop it when you like and start it
    again: it continues. Datasets that are missing are named first; the exit code is 3 then, and 2
    where nothing could be computed.

    Parameters
    ----------
    methods
        Only these, separated by commas:
    row : NAME
        Only this row of the targets; may be given several times.
    db
        File with the records.
    refresh
        Compute cells again that are stored.
    stop_after
        Seconds after which it ends; run it again to continue.
    longest_first
        Begin with cells that take long, to keep all processors busy.
    plan
        Print what is left to compute and its cost, and stop.
    records
        Take the records of a records.csv or another --db into --db first.
    out
        Folder for the tables in Markdown and as CSV, and for figures.
    """
    if records is not None:
        count = runner.import_records(records, db)
        typer.echo(f"Took {count} records from {records}.", err=True)
    quick = running["quick"]
    if targets[0] == SHOW:
        _show(targets[1:] or ["all"], db, out, quick)
        return
    chosen: dict[str, Any] = {
        "methods": split_methods(methods),
        "rows": row or None,
        "runs": running.pop("runs"),
        "quick": running.pop("quick"),
        "db": db,
        "refresh": refresh,
    }
    if plan:
        typer.echo(_plan_text(runner.plan(targets, **chosen)))
        return
    try:
        report = runner.reproduce(
            targets,
            **chosen,
            **running,
            stop_after=stop_after,
            longest_first=longest_first,
            progress=show_progress(),
            warn=lambda absent: typer.echo(visible(_directions(absent)), err=True),
        )
    except RuntimeError as error:  # the file is in use
        raise UsageError(str(error)) from error
    if report.interrupted:
        typer.echo(summary_line(report))
        raise typer.Exit(Exit.INTERRUPTED)
    if report.computed + report.skipped:
        _show(targets, db, out, quick)
    typer.echo(summary_line(report))
    if report.missing:
        nothing = not report.computed and not report.skipped
        raise typer.Exit(Exit.USAGE if nothing else Exit.NOT_WHOLE)


def _directions(absent: dict[str, str]) -> str:
    """Say which datasets were not found, where the first may be had, and what needs none."""
    count = "1 dataset was" if len(absent) == 1 else f"{len(absent)} datasets were"
    first = next(iter(absent.values())).replace("as data_home", "with --data")
    return (
        f"tuckermix: {count} not found: {', '.join(absent)}. {first} 'tuckermix datasets NAME' "
        "says this of each. --quick computes miniature tables on data that everybody has."
    )


def _show(targets: list[str], db: Path, out: Path | None, quick: bool) -> None:
    shown = render.show(db, targets=targets, out=out, quick=quick)
    typer.echo(shown.text)
    for path in shown.files:
        typer.echo(f"Wrote {path}")
