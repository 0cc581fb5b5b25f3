"""``tuckermix bench``: how fast this machine is, in a few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Any

import typer

from tuckermix.cli import _options as options
from tuckermix.cli._console import Console

N_REPEATS = 3
"""The median of so many runs is shown."""

SIDE, RANK, NOISE = 32, 12, 1.0
SEED = 0


def median_seconds(function: Callable[[], Any]) -> float:
    """Time a function a few times and return the median."""
    times = []
    for _ in range(N_REPEATS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return sorted(times)[N_REPEATS // 2]


def bench(
    n_samples: Annotated[int, typer.Option(min=10, help="Samples of 32 × 32.")] = 1000,
    n_clusters: Annotated[int, typer.Option("--n-clusters", "-k", min=2, help="Clusters.")] = 10,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> int:
    """Time the fit on this machine against scikit-learn's KMeans.

    The data are planted clusters of 32 × 32 images. All times are from one run on one machine;
    compare their ratios. The benchmarks against other tensor libraries are in the repository.
    """
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
            seconds = median_seconds(function)
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
    if as_json:
        console.result({"n_samples": n_samples, "results": results}, [], True)
    else:
        console.table(("method", "median time", "speed", "AC"), rows)
    return 0
