"""What ``tuckermix bench --method`` does: run methods of the user's and print their places."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tuckermix._files import write_text
from tuckermix._version import __version__
from tuckermix.cli._console import EXIT_DONE, EXIT_FAILED, EXIT_INTERRUPTED, Console, UsageError
from tuckermix.cli.reproduce import shown_progress, split_methods, summary_line
from tuckermix.experiments.bench import (
    PLACES_DB,
    PLACES_VERSION,
    VERDICTS,
    Benchmark,
    Place,
    benchmark,
    own_method,
    places_csv,
)

MOST_NAMED = 3
"""So many of the columns that are ahead are named in a line; the CSV has all."""
MOST_FAILURES = 5
"""So many kinds of failures are told; the file of records has all."""


def run_places(
    paths: list[str],
    names: list[str],
    view: str,
    csv: Path | None,
    *,
    as_json: bool,
    quiet: bool,
    beside: str | None,
    db: Path | None,
    **options: Any,
) -> int:
    """Run the methods, print where they stand, and return the exit code.

    The `options` are those of :func:`tuckermix.experiments.benchmark`.
    """
    console = Console(quiet)
    if names and len(names) != len(paths):
        raise UsageError(
            f"--name must be given once for each --method. Got {len(names)} for {len(paths)}."
        )
    own = [own_method(path, name=name, view=view) for path, name in zip_longest(paths, names)]
    named = [one.name for one in own]
    twice = {name for name in named if named.count(name) > 1}
    if twice:
        raise UsageError(f"Two methods are called {min(twice)!r}: tell them apart with --name.")
    with shown_progress(quiet) as progress:
        try:
            result = benchmark(
                own,
                beside=split_methods(beside),
                db=PLACES_DB if db is None else db,
                progress=progress,
                **options,
            )
        except RuntimeError as error:  # the file is in use
            raise UsageError(str(error)) from error
    console.note(summary_line(result.report))
    if csv is not None:
        write_text(csv, places_csv(result.places))
        console.note(f"Wrote {csv}")
    if options["quick"]:
        console.note("The miniature tables show that everything runs; their places mean little.")
    if as_json:
        console.result(_values(result, named), [], True)
    else:
        _print(console, result, named)
    if result.report.interrupted:
        return EXIT_INTERRUPTED
    return EXIT_DONE if result.places else EXIT_FAILED


def _metrics(result: Benchmark) -> list[str]:
    return list(dict.fromkeys(one.metric for one in result.places))


def _values(result: Benchmark, names: list[str]) -> dict[str, object]:
    """Return everything as the JSON has it."""
    return {
        "schema_version": PLACES_VERSION,
        "tuckermix": __version__,
        "places": [one.line() for one in result.places],
        "summary": {
            name: {metric: result.tally(name, metric) for metric in _metrics(result)}
            for name in names
        },
        "failures": [
            {
                "method": one.method,
                "table": one.experiment,
                "row": one.row,
                "run": one.run,
                "status": one.status,
                "error": one.error,
            }
            for one in result.failures
        ],
        "missing": list(result.missing),
        "older": result.older,
    }


def _stands(one: Place) -> str:
    """Say how a method stands, and behind whom."""
    if not one.winners:
        return one.verdict
    rest = len(one.winners) - MOST_NAMED
    more = f" and {rest} more" if rest > 0 else ""
    return f"{one.verdict} {', '.join(one.winners[:MOST_NAMED])}{more}"


def _line(one: Place, several: bool) -> tuple[str, ...]:
    lead = one.lead
    difference = "–"
    if lead is not None:
        spread = "(one run)" if lead.error is None else f"± {lead.error:.4f}"
        difference = f"{lead.mean:+.4f} {spread}"
    return (
        *([one.method] if several else []),
        f"{one.table} · {one.row}",
        one.metric,
        f"{one.mean:.4f}",
        f"{one.rank} of {one.columns}",
        one.rival or "–",
        "–" if one.rival_mean is None else f"{one.rival_mean:.4f}",
        difference,
        str(one.draws if lead is None else lead.pairs),
        "–" if one.seconds is None else f"{one.seconds:.2f} s",
        _stands(one),
    )


HEAD = ("row", "measure", "yours", "place", "best other", "", "difference", "draws", "time", "")


def _print(console: Console, result: Benchmark, names: list[str]) -> None:
    """Write the table of places, a summary, and what is missing or failed."""
    several = len(names) > 1
    if result.places:
        head = (*(["method"] if several else []), *HEAD)
        console.table(head, [_line(one, several) for one in result.places])
    for name in names:
        for metric in _metrics(result):
            tally = result.tally(name, metric)
            if tally["rows"]:
                sys.stdout.write(f"{name}, {metric}: {_sentence(tally)}\n")
    for text in _failures(result):
        console.note(text)
    if result.missing:
        console.note(
            f"Rows on {', '.join(result.missing)} were left out: `tuckermix datasets NAME` says "
            "where to get the data."
        )
    if result.older:
        console.note(
            f"{result.older} published records of these rows belong to other draws or settings "
            "and do not count."
        )


def _sentence(tally: dict[str, object]) -> str:
    """Put the counts of a method into words."""
    rows, counts = tally["rows"], [(tally[verdict], verdict) for verdict in VERDICTS]
    parts = [f"{verdict} in {count}" for count, verdict in counts if count]
    text = f"{', '.join(parts)} of {rows} rows"
    if tally["median_rank"] is not None:
        text += f"; median place {tally['median_rank']:g}"
    ahead = tally["behind_whom"]
    assert isinstance(ahead, dict)
    named = [f"{name} ({count})" for name, count in list(ahead.items())[:MOST_NAMED]]
    return text + (f"; ahead of it most often: {', '.join(named)}" if named else "")


def _failures(result: Benchmark) -> Iterable[str]:
    """Tell the failures, equal ones together."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for one in result.failures:
        place = f"{one.experiment} · {one.row} · run {one.run}"
        kinds.setdefault((one.method, one.error or one.status), []).append(place)
    for (method, error), places in list(kinds.items())[:MOST_FAILURES]:
        runs = "1 run (" if len(places) == 1 else f"{len(places)} runs (the first: "
        yield f"{method} failed in {runs}{places[0]}): {error}"
    if len(kinds) > MOST_FAILURES:
        yield f"and in {len(kinds) - MOST_FAILURES} other ways, see the file of records."
