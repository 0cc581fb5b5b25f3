"""``tuckermix bench``: how fast this machine is, or where a method of one's own stands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median
from timeit import repeat
from typing import Annotated, Any

import typer

from tuckermix._names import VIEWS
from tuckermix.cli import _options as options
from tuckermix.cli._console import Console, UsageError

N_REPEATS = 3
"""The median of so many runs is shown."""

SIDE, RANK, NOISE = 32, 12, 1.0
SEED = 0


HELP = """Time the fit on this machine, or tell the place of your method.

Without --method: planted clusters of 32 × 32 images, against scikit-learn's KMeans. All times are
from one run on one machine; compare their ratios.

With --method MODULE:OBJECT: your method on the draws of the published tables, and its place among
their columns, draw by draw. OBJECT is a class or function that takes n_clusters and gives something
with fit_predict, such a thing ready made, or a function (X, n_clusters) that returns labels.
"""
EXAMPLES = """\b
Examples:
  tuckermix bench --n-samples 200 -k 3
  tuckermix bench --method mymethod:cluster --quick
  tuckermix bench --method mymethod:MyClustering --rows table5 --runs 5 --csv places.csv
"""

_method = options.within("A method of your own")
"""What goes with --method."""


def bench(
    n_samples: Annotated[int, typer.Option(min=10, help="Samples of 32 × 32.")] = 1000,
    n_clusters: Annotated[int, typer.Option("--n-clusters", "-k", min=2, help="Clusters.")] = 10,
    method: Annotated[
        list[str] | None,
        _method(
            metavar="MODULE:OBJECT",
            help="Your method, from a module or file here or an installed one; repeatable.",
        ),
    ] = None,
    name: Annotated[
        list[str] | None, _method(metavar="NAME", help="What to call it; once for each --method.")
    ] = None,
    rows: Annotated[
        list[str] | None,
        _method(
            metavar="ROWS",
            help="A table (table5), a row (table5:ORL) or a dataset (mnist); repeatable.",
        ),
    ] = None,
    view: Annotated[
        str,
        _method(
            "--as",
            metavar="VIEW",
            help="What it is given: tensors, pixels, scattering; auto asks its tags.",
            words=VIEWS,
        ),
    ] = "auto",
    runs: Annotated[int | None, _method(min=1, help="Draws of a row; else all.")] = None,
    beside: Annotated[
        str | None,
        _method(help="Published columns to compute here too, separated by commas."),
    ] = None,
    quick: Annotated[
        bool, _method("--quick", help="Miniature tables on open data, in seconds.")
    ] = False,
    data: Annotated[
        Path | None, _method(help="Folder of the datasets; else what TUCKERMIX_DATA names.")
    ] = None,
    jobs: Annotated[
        int | None, _method(min=0, help="Processes; else one a core. 0: no further process.")
    ] = None,
    db: Annotated[
        Path | None,
        _method(
            help="File with the records, to continue later; else tuckermix-bench.sqlite.",
        ),
    ] = None,
    records: Annotated[
        Path | None, _method(help="Published records; else those of this version.")
    ] = None,
    time_limit: Annotated[
        float | None, _method(help="Seconds after which a run is given up.")
    ] = None,
    retry_failed: Annotated[
        bool, _method("--retry-failed", help="Try runs again that failed before.")
    ] = False,
    refresh: Annotated[bool, _method("--refresh", help="Compute everything anew.")] = False,
    csv: Annotated[Path | None, _method(help="Write the places as CSV.")] = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> int:
    """Time the fit on this machine, or run a method of the user's on the benchmark."""
    if view not in VIEWS:
        raise UsageError(f"--as must be one of {', '.join(VIEWS)}. Got {view!r}.")
    if method:
        from tuckermix.cli._places import run_places

        return run_places(
            method,
            name or [],
            view,
            csv,
            as_json=as_json,
            quiet=quiet,
            rows=rows or None,
            data=data,
            runs=runs,
            beside=beside,
            quick=quick,
            jobs=jobs,
            db=db,
            records=records,
            time_limit=time_limit,
            retry_failed=retry_failed,
            refresh=refresh,
        )
    given = {"--name": name, "--rows": rows, "--csv": csv, "--beside": beside, "--quick": quick}
    lonely = [option for option, value in given.items() if value]
    if lonely:
        raise UsageError(f"{lonely[0]} goes with --method MODULE:OBJECT: name your method.")
    return _times(n_samples, n_clusters, as_json=as_json, quiet=quiet)


def _times(n_samples: int, n_clusters: int, *, as_json: bool, quiet: bool) -> int:
    """Time the fit against scikit-learn's KMeans."""
    from sklearn.cluster import KMeans

    from tuckermix.clustering import TuckerClustering
    from tuckermix.datasets import make_tensor_clusters
    from tuckermix.decomposition import decompose
    from tuckermix.metrics import clustering_accuracy

    console = Console(quiet)
    with console.stage("Making data"):
        data = make_tensor_clusters(
            n_samples=n_samples,
            n_clusters=n_clusters,
            shape=(SIDE, SIDE),
            noise=NOISE,
            random_state=SEED,
        )
    ranks = (RANK, RANK)
    kmeans = KMeans(n_clusters, n_init=10, random_state=SEED)
    model = TuckerClustering(n_clusters, ranks=ranks, random_state=SEED)
    flat = data.X.reshape(n_samples, -1)
    methods: list[tuple[str, Callable[[], Any], Callable[[], Any] | None]] = [
        ("KMeans, 10 starts, on pixels", lambda: kmeans.fit(flat), lambda: kmeans.labels_),
        ("decompose, the model alone", lambda: decompose(data.X, n_clusters, ranks), None),
        ("TuckerClustering, with labels", lambda: model.fit(data.X), lambda: model.labels_),
    ]
    results: list[dict[str, Any]] = []
    for name, function, labels in methods:
        with console.stage(name):
            seconds = median(repeat(function, number=1, repeat=N_REPEATS))
        found = None if labels is None else clustering_accuracy(data.labels, labels())
        results.append({"method": name, "seconds": seconds, "accuracy": found})
    slowest = results[0]["seconds"]
    rows = [
        (
            str(one["method"]),
            f"{1000 * one['seconds']:.1f} ms",
            f"{slowest / one['seconds']:.1f} ×",
            "" if one["accuracy"] is None else f"{one['accuracy']:.3f}",
        )
        for one in results
    ]
    head = ("method", "median time", "speed", "AC")
    console.result({"n_samples": n_samples, "results": results}, rows, as_json, head)
    return 0
