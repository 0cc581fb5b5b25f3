"""``tuckermix bench``: how fast this machine is, or the rank of your own method."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from timeit import repeat
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tuckermix._files import write_text
from tuckermix._names import VIEWS
from tuckermix._version import __version__
from tuckermix.cli import _options as options
from tuckermix.cli._console import Console, Exit, UsageError

if TYPE_CHECKING:
    from tuckermix_bench.places import Benchmark
    from tuckermix_bench.store import RunRecord
    from tuckermix_bench.summaries import Place

MOST_NAMED = 3
"""The most columns ahead, and kinds of failures, that are named; CSV and records have all."""

_method, _tables = options.within("A method of your own"), options.within("Running the tables")


class Running(options.Group):
    """How rows of the tables are computed: what `reproduce` and `bench` both take.

    Attributes
    ----------
    data
        Folder of the datasets; else what TUCKERMIX_DATA names.
    runs
        Draws of a row; else as many as it has.
    quick
        Miniature tables on open data, in little time.
    jobs
        Processes; else one per core. 0: no further process.
    time_limit
        Seconds after which a run is given up.
    retry_failed
        Try runs again that failed before.
    """

    panel = "Running the tables"
    data: Path | None
    runs: Annotated[int | None, _tables(min=1)]
    quick: bool = False
    jobs: Annotated[int | None, _tables(min=0)]
    time_limit: float | None
    retry_failed: bool = False


class Own(options.Group):
    """Which methods are run on which rows, and what is written of it.

    Attributes
    ----------
    method : MODULE:OBJECT
        Your method, from a module or file here or an installed one; repeatable.
    name : NAME
        What to call it; once for each --method.
    rows : ROWS
        A table (table5), a row (table5:ORL) or a dataset (mnist); repeatable.
    view : VIEW
        What it is given: tensors, pixels, scattering; auto asks its tags.
    beside
        Published columns to compute here too, separated by commas.
    db
        File with the records, to continue later; else tuckermix-bench.jsonl.
    records
        Published records; else those of this version.
    refresh
        Compute everything again.
    csv
        Write the places as CSV.
    """

    panel = "A method of your own"
    method: list[str] | None
    name: list[str] | None
    rows: list[str] | None
    view: Annotated[str, _method("--as", words=VIEWS)] = "auto"
    beside: str | None
    db: Path | None
    records: Path | None
    refresh: bool = False
    csv: Path | None


def add_to(program: typer.Typer) -> None:
    """Add the command to the program `tuckermix`."""
    options.add(program, bench)


def bench(
    n_samples: Annotated[int, typer.Option(min=10)] = 1000,
    n_clusters: Annotated[int, typer.Option("--n-clusters", "-k", min=2)] = 10,
    *,
    own: Own,
    running: Running,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> int:
    """Time the fit on this machine, or rank your own method.

    Without --method: planted clusters of 32 × 32 images, against scikit-learn's KMeans. All
    times are from one run on one machine; compare their ratios.

    With --method MODULE:OBJECT: your method on the draws of the published tables, and its place
    among their columns, draw by draw. OBJECT is a function (X, n_clusters) that returns labels,
    an estimator, or a class or function that takes n_clusters and returns one.

    Parameters
    ----------
    n_samples
        Samples of 32 × 32.
    n_clusters
        Clusters.

    Examples
    --------
    tuckermix bench --n-samples 200 -k 3
    tuckermix bench --method mymethod:cluster --quick
    tuckermix bench --method mymethod:MyClustering --rows table5 --runs 5 --csv places.csv
    """
    if own["view"] not in VIEWS:
        raise UsageError(f"--as must be one of {', '.join(VIEWS)}. Got {own['view']!r}.")
    if own["method"]:
        return _places(own, running, as_json=as_json, quiet=quiet)
    given = {**own, "as": own["view"] != "auto", "view": None, **running}
    lonely = [name for name, value in given.items() if value is not None and value is not False]
    if lonely:
        option = lonely[0].replace("_", "-")
        raise UsageError(f"--{option} goes with --method MODULE:OBJECT: name your method.")
    return _times(n_samples, n_clusters, as_json=as_json, quiet=quiet)


def _times(n_samples: int, n_clusters: int, *, as_json: bool, quiet: bool) -> int:
    """Time the fit against scikit-learn's KMeans."""
    from sklearn.cluster import KMeans

    from tuckermix.clustering import TuckerClustering
    from tuckermix.datasets import make_tensor_clusters
    from tuckermix.decomposition import decompose
    from tuckermix.metrics import clustering_accuracy

    console, ranks = Console(quiet, as_json), (12, 12)
    with console.stage("Making data"):
        data = make_tensor_clusters(n_samples, (32, 32), n_clusters, noise=1.0, random_state=0)
    kmeans = KMeans(n_clusters, n_init=10, random_state=0)
    model = TuckerClustering(n_clusters, ranks=ranks, random_state=0)
    flat = data.X.reshape(n_samples, -1)
    methods: dict[str, tuple[Callable[[], Any], Any]] = {
        "KMeans, 10 starts, on pixels": (lambda: kmeans.fit(flat), kmeans),
        "decompose, the model alone": (lambda: decompose(data.X, n_clusters, ranks), None),
        "TuckerClustering, with labels": (lambda: model.fit(data.X), model),
    }
    results: list[dict[str, Any]] = []
    for name, (function, fitted) in methods.items():
        with console.stage(name):
            seconds = median(repeat(function, number=1, repeat=3))
        found = None if fitted is None else clustering_accuracy(data.labels, fitted.labels_)
        results.append({"method": name, "seconds": seconds, "accuracy": found})
    rows = [
        (
            str(one["method"]),
            f"{1000 * one['seconds']:.1f} ms",
            f"{results[0]['seconds'] / one['seconds']:.1f} ×",
            "" if one["accuracy"] is None else f"{one['accuracy']:.3f}",
        )
        for one in results
    ]
    head = ("method", "median time", "speed", "AC")
    console.result({"n_samples": n_samples, "results": results}, [head, *rows])
    return 0


def _places(given: Own, running: Running, *, as_json: bool, quiet: bool) -> int:
    """Run the methods, print where they stand, and return the exit code."""
    from tuckermix_bench.cli_reproduce import show_progress, split_methods, summary_line
    from tuckermix_bench.places import PLACES_DB, benchmark, own_method, places_csv

    console, paths = Console(quiet, as_json), given["method"]
    names = given["name"] or paths
    if len(names) != len(paths):
        raise UsageError(
            f"--name must be given once for each --method. Got {len(names)} for {len(paths)}."
        )
    own = [
        own_method(path, name=name, view=given["view"])
        for path, name in zip(paths, names, strict=True)
    ]
    if len(set(names)) < len(names):
        twice = max(names, key=names.count)
        raise UsageError(f"Two methods are called {twice!r}: tell them apart with --name.")
    try:
        result = benchmark(
            own,
            rows=given["rows"] or None,
            beside=split_methods(given["beside"]),
            db=given["db"] or PLACES_DB,
            records=given["records"],
            refresh=given["refresh"],
            progress=show_progress(quiet),
            **running,
        )
    except RuntimeError as error:  # the file is in use
        raise UsageError(str(error)) from error
    console.note(summary_line(result.report))
    if given["csv"] is not None:
        write_text(given["csv"], places_csv(result.places))
        console.note(f"Wrote {given['csv']}")
    if running["quick"]:
        console.note("The miniature tables show that everything runs; their places mean little.")
    tallies = {
        name: {one.metric: result.tally(name, one.metric) for one in result.places}
        for name in names
    }
    if as_json or result.places:
        console.result(_values(result, tallies), [HEAD, *map(_line, result.places)])
    if not as_json:
        for name, by_metric in tallies.items():
            for metric, tally in by_metric.items():
                if tally["rows"]:
                    sys.stdout.write(f"{name}, {metric}: {_sentence(tally)}\n")
        for text in (*_failures(result.failures), *_gaps(result)):
            console.note(text)
    if result.report.interrupted:
        return Exit.INTERRUPTED
    return Exit.DONE if result.places else Exit.FAILED


def _values(result: Benchmark, tallies: dict[str, Any]) -> dict[str, object]:
    """Return everything as the JSON has it."""
    from tuckermix_bench.places import PLACES_VERSION, place_line

    facts = {name: name for name in ("method", "table", "row", "run", "status", "error")}
    facts["table"] = "experiment"
    return {
        "schema_version": PLACES_VERSION,
        "tuckermix": __version__,
        "places": [place_line(one) for one in result.places],
        "summary": tallies,
        "failures": [{fact: one[name] for fact, name in facts.items()} for one in result.failures],
        "missing": list(result.report.absent),
        "older": result.older,
    }


def _stands(one: Place) -> str:
    """Say how a method stands, and behind whom."""
    rest = len(one.winners) - MOST_NAMED
    more = f" and {rest} more" if rest > 0 else ""
    return f"{one.verdict} {', '.join(one.winners[:MOST_NAMED])}{more}".strip()


HEAD = (
    *("method", "row", "measure", "yours", "place", "best other", "", "difference", "draws"),
    *("time", ""),
)


def _line(one: Place) -> tuple[str, ...]:
    """Return a place as a line of the table under `HEAD`."""
    return (
        *(one.method, f"{one.table} · {one.row}", one.metric, f"{one.mean:.4f}"),
        *(f"{one.rank} of {one.columns}", one.rival or "–"),
        "–" if one.rival_mean is None else f"{one.rival_mean:.4f}",
        "–" if one.lead is None else one.lead.text,
        str(one.draws if one.lead is None else one.lead.pairs),
        *("–" if one.seconds is None else f"{one.seconds:.2f} s", _stands(one)),
    )


def _sentence(tally: dict[str, Any]) -> str:
    """Put the counts of a method into words."""
    from tuckermix_bench.summaries import VERDICTS

    parts = [f"{verdict} in {tally[verdict]}" for verdict in VERDICTS if tally[verdict]]
    text = f"{', '.join(parts)} of {tally['rows']} rows"
    if tally["median_rank"] is not None:
        text += f"; median place {tally['median_rank']:g}"
    ahead = [f"{name} ({n})" for name, n in list(tally["behind_whom"].items())[:MOST_NAMED]]
    return text + (f"; ahead of it most often: {', '.join(ahead)}" if ahead else "")


def _failures(failures: Iterable[RunRecord]) -> Iterable[str]:
    """Tell the failures, equal ones together."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for one in failures:
        where = f"{one.experiment} · {one.row} · run {one.run}"
        kinds.setdefault((one.method, one.error or one.status), []).append(where)
    for (method, error), places in list(kinds.items())[:MOST_NAMED]:
        runs = "1 run (" if len(places) == 1 else f"{len(places)} runs (the first: "
        yield f"{method} failed in {runs}{places[0]}): {error}"
    if len(kinds) > MOST_NAMED:
        yield f"and in {len(kinds) - MOST_NAMED} other ways, see the file of records."


def _gaps(result: Benchmark) -> Iterable[str]:
    """Tell which rows and records do not count."""
    if absent := ", ".join(result.report.absent):
        yield (
            f"Rows on {absent} were left out: `tuckermix datasets NAME` says where to get the data."
        )
    if result.older:
        yield (
            f"{result.older} published records of these rows belong to other draws or settings "
            "and do not count."
        )
