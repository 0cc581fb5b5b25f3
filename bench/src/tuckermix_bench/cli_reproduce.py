"""``tuckermix reproduce``: the paper's tables and figures from the command line."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from tuckermix.cli import _options as options
from tuckermix.cli._console import (
    EXIT_INTERRUPTED,
    EXIT_NOT_WHOLE,
    EXIT_USAGE,
    UsageError,
    logging_to,
    visible,
)
from tuckermix_bench.methods import METHODS
from tuckermix_bench.render import FORMATS
from tuckermix_bench.render import show as show_results
from tuckermix_bench.runner import (
    DEFAULT_DB,
    Cost,
    Progress,
    RunReport,
    import_records,
    log_progress,
)
from tuckermix_bench.runner import plan as plan_reproduction
from tuckermix_bench.runner import reproduce as run_reproduction
from tuckermix_bench.tables import EXPERIMENTS, FIGURES

__all__ = ["add_to", "app", "reproduce"]

SHOW = "show"
NAMES = [*EXPERIMENTS, *FIGURES, "all"]
SECONDS_BETWEEN_LINES = 5.0

# The targets are arguments, not commands, so the whole sub-app is its callback. Groups stop reading
# options at the first argument unless told otherwise.
app = typer.Typer(
    add_completion=False,
    invoke_without_command=True,
    context_settings={"allow_interspersed_args": True},
)


def add_to(program: typer.Typer) -> None:
    """Add the command to the program `tuckermix`."""
    program.add_typer(app, name="reproduce", cls=options.GroupedTargets)


def _clock(seconds: float) -> str:
    """Write a duration as 1:02:03."""
    minutes, second = divmod(int(seconds), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02d}:{second:02d}"


@contextmanager
def shown_progress(quiet: bool = False) -> Iterator[Callable[[Progress], None]]:
    """Give the callback that shows progress: a live bar on a terminal, lines elsewhere."""
    if quiet:
        yield lambda progress: None
        return
    if not sys.stderr.isatty():
        last = -SECONDS_BETWEEN_LINES

        def now_and_then(progress: Progress) -> None:
            nonlocal last
            now = time.monotonic()
            if progress.last is not None and (
                progress.done == progress.total or now - last >= SECONDS_BETWEEN_LINES
            ):
                last = now
                log_progress(progress)

        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
        with logging_to(handler):
            yield now_and_then
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    columns: list[Any] = [
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]} left"),
        TextColumn("{task.description}", markup=False),
    ]
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("starting", total=None, left="–")

        def update(progress: Progress) -> None:
            fields: dict[str, Any] = {"left": _clock(progress.left)}
            if progress.running:
                fields["description"] = " | ".join(progress.running)
            bar.update(task, completed=progress.done, total=progress.total, **fields)

        yield update


def summary_line(report: RunReport) -> str:
    """Say in a line what a run did and where its records are."""
    text = f"{report.computed} cells computed, {report.skipped} were stored before"
    if report.failed:
        text += f", {report.failed} failed"
    if report.missing:
        text += f", {report.missing} lack their data"
    if report.left:
        text += f", {report.left} are left for the next run"
    return f"{text}; {_clock(report.seconds)} in all. Records: {report.db}"


def _plan_text(costs: Iterable[Cost]) -> str:
    """Print processor seconds by method and table, sums at the end, the dearest method first."""
    by_method: dict[str, dict[str, Cost]] = {}
    for cost in costs:
        by_method.setdefault(cost.method, {})[cost.table] = cost
    tables = [name for name in EXPERIMENTS if any(name in row for row in by_method.values())]
    sums = {m: sum(c.seconds for c in row.values()) for m, row in by_method.items()}
    width = max(map(len, by_method), default=0)
    lines = [f"{'seconds':{width}}" + "".join(f"{t:>9}" for t in (*tables, "all", "longest"))]
    for method in sorted(by_method, key=lambda name: -sums[name]):
        row = by_method[method]
        cells = [f"{row[t].seconds:9.1f}" if t in row else f"{'':9}" for t in tables]
        longest = max(cost.longest for cost in row.values())
        lines.append(f"{method:{width}}{''.join(cells)}{sums[method]:9.1f}{longest:9.1f}")
    totals = [sum(row[t].seconds for row in by_method.values() if t in row) for t in tables]
    lines.append(f"{'all':{width}}" + "".join(f"{s:9.1f}" for s in (*totals, sum(totals))))
    count = sum(cost.cells for row in by_method.values() for cost in row.values())
    return "\n".join([*lines, f"{count} cells, by the times of cells like them."])


def split_methods(value: str | None) -> list[str] | None:
    """Divide a list of columns at its commas."""
    return None if value is None else [name.strip() for name in value.split(",") if name.strip()]


@app.callback()
@options.grouped
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
    methods: Annotated[
        str | None,
        typer.Option(
            help=f"Only these, separated by commas: {', '.join(METHODS)}.",
            autocompletion=options.one_of(*METHODS),
        ),
    ] = None,
    row: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Only this row of the targets; may be given several times."
        ),
    ] = None,
    db: Annotated[Path, typer.Option(help="File with the records.")] = Path(DEFAULT_DB),
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Compute cells again that are stored.")
    ] = False,
    stop_after: Annotated[
        float | None, typer.Option(help="Seconds after which it ends; run it again to continue.")
    ] = None,
    longest_first: Annotated[
        bool,
        typer.Option(
            "--longest-first", help="Begin with cells that take long, to keep all processors busy."
        ),
    ] = False,
    times: Annotated[
        Path | None,
        typer.Option(
            help="A records.csv that only tells how long cells take; else the published one."
        ),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print what is left to compute and its cost, and stop.")
    ] = False,
    records: Annotated[
        Path | None,
        typer.Option(help="Take the records of a records.csv or another --db into --db first."),
    ] = None,
    formats: Annotated[
        str,
        typer.Option(
            help=f"For {SHOW}: any of {', '.join(FORMATS)}.",
            autocompletion=options.one_of(*FORMATS),
        ),
    ] = "terminal",
    out: Annotated[Path | None, typer.Option(help=f"For {SHOW}: folder for the files.")] = None,
    *,
    running: options.Running,
) -> None:
    """Compute the paper's tables and figures; `reproduce show` renders what is stored.

    Each cell and run is saved to --db as soon as it is done. Stop it when you like and start it
    again: it continues. Datasets that are missing are named first; the exit code is 3 then, and 2
    where nothing could be computed.
    """
    if records is not None:
        count = import_records(records, db)
        typer.echo(f"Took {count} records from {records}.", err=True)
    quick = running["quick"]
    if targets[0] == SHOW:
        _show(targets[1:] or ["all"], db=db, formats=formats, out=out, quick=quick)
        return
    chosen: dict[str, Any] = {
        "methods": split_methods(methods),
        "rows": row or None,
        "db": db,
        "times": times,
        "refresh": refresh,
    }
    if plan:
        costs = plan_reproduction(targets, runs=running["runs"], quick=quick, **chosen)
        typer.echo(_plan_text(costs))
        return
    try:
        with shown_progress() as progress:
            report = run_reproduction(
                targets,
                **chosen,
                **running,
                stop_after=stop_after,
                longest_first=longest_first,
                progress=progress,
                warn=lambda absent: typer.echo(visible(_directions(absent)), err=True),
            )
    except RuntimeError as error:  # the file is in use
        raise UsageError(str(error)) from error
    if report.interrupted:
        typer.echo(summary_line(report))
        raise typer.Exit(EXIT_INTERRUPTED)
    if "all" not in targets and report.computed + report.skipped:
        _show(targets, db=db, formats="terminal", out=None, quick=quick)
    typer.echo(summary_line(report))
    if report.missing:
        nothing = not report.computed and not report.skipped
        raise typer.Exit(EXIT_USAGE if nothing else EXIT_NOT_WHOLE)


def _directions(absent: dict[str, str]) -> str:
    """Say which datasets were not found, where the first may be had, and what needs none."""
    count = "1 dataset was" if len(absent) == 1 else f"{len(absent)} datasets were"
    first = next(iter(absent.values())).replace("as data_home", "with --data")
    return (
        f"tuckermix: {count} not found: {', '.join(absent)}. {first} 'tuckermix datasets NAME' "
        "says this of each. --quick computes miniature tables on data that everybody has."
    )


def _show(targets: list[str], *, db: Path, formats: str, out: Path | None, quick: bool) -> None:
    forms = [form.strip() for form in formats.split(",") if form.strip()]
    if out is None and any(form != "terminal" for form in forms if form in FORMATS):
        raise ValueError(f"--formats {formats} writes files: name their folder with --out.")
    shown = show_results(
        db, targets=targets, formats=forms, out=out, quick=quick, color=sys.stdout.isatty()
    )
    if shown.text:
        typer.echo(shown.text)
    for path in shown.files:
        typer.echo(f"Wrote {path}")
