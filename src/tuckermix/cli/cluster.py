"""``tuckermix cluster``: from files to clusters one can look at."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tuckermix.cli import _options as options
from tuckermix.cli._console import EXIT_NOT_CONVERGED, Console

EXAMPLES = """\b
Examples:
  tuckermix cluster photos/ -k 10
  tuckermix cluster faces.mat -k 4 --sample-shape 16x16 --ranks 8x8 --truth gnd
  tuckermix cluster scans.h5 -k 3 --key volumes --json --quiet
"""


def cluster(
    source: options.Input,
    n_clusters: Annotated[
        int, typer.Option("--n-clusters", "-k", min=1, help="The number of clusters.")
    ] = 8,
    out: options.Out = None,
    n_components: Annotated[
        int | None, typer.Option(min=1, help="Components of the model; by default 2 k + 1.")
    ] = None,
    ranks: Annotated[
        str | None,
        typer.Option(help="Core size, e.g. 12x12, or the energy to keep, e.g. 0.95."),
    ] = None,
    solver: Annotated[str, typer.Option(help="exact, trust-region or joint.")] = "exact",
    init: Annotated[str, typer.Option(help="hosvd, hosvd-samples or random.")] = "hosvd",
    assign_labels: Annotated[
        str, typer.Option(help="graph, subspace, memberships or argmax.")
    ] = "graph",
    n_neighbors: Annotated[int, typer.Option(min=1, help="Neighbours in the graph.")] = 20,
    n_init: Annotated[int, typer.Option(min=1, help="Starts of k-means.")] = 10,
    max_iter: Annotated[int, typer.Option(min=1, help="Most sweeps of the solver.")] = 100,
    tol: Annotated[float, typer.Option(min=0.0, help="When to stop.")] = 1e-6,
    seed: Annotated[int, typer.Option(min=0, help="Makes runs repeat.")] = 0,
    device: options.Device = "cpu",
    truth: Annotated[
        str | None,
        typer.Option(
            metavar="FILE_OR_COLUMN",
            help="Known classes, to compare with: a .csv, .txt or .npy file, FILE:COLUMN, the "
            "name of an array in INPUT, or 'labels' for those that INPUT carries.",
        ),
    ] = None,
    key: options.Key = None,
    sample_axis: options.SampleAxis = None,
    sample_shape: options.SampleShape = None,
    size: options.Size = None,
    grey: options.Grey = None,
    frames: options.Frames = None,
    chunk: options.Chunk = None,
    scheduler: options.Scheduler = None,
    title: Annotated[str | None, typer.Option(help="Heading of the report.")] = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> int:
    r"""Cluster samples; write labels, model and report to a folder.

    \b
    labels.csv       name or index, label, confidence, soft labels
    report.html      the clusters, to look at
    model.tuckermix  for 'tuckermix predict'
    summary.json     figures, settings, versions
    """
    from tuckermix.cli import _large
    from tuckermix.clustering import TuckerClustering

    model = TuckerClustering(
        n_clusters,
        n_components=n_components,
        ranks=options.parse_ranks(ranks),
        solver=solver,
        init=init,
        assign_labels=assign_labels,
        n_neighbors=n_neighbors,
        n_init=n_init,
        max_iter=max_iter,
        tol=tol,
        random_state=seed,
    )
    model._check_params()  # before minutes of reading
    console = Console(quiet)
    reading: dict[str, Any] = {
        "key": key,
        "sample_axis": sample_axis,
        "sample_shape": options.sizes(sample_shape, "--sample-shape"),
        "size": options.sizes(size, "--size"),
        "grey": grey,
        "frames": frames,
        "chunk": chunk,
        "on_disk": scheduler is not None,
    }
    with _large.scheduler(scheduler):
        return cluster_input(
            model, source, out, truth, device, reading, title, console, as_json, _command()
        )


def _command() -> str:
    """Return the command line as the user would type it again."""
    return "tuckermix " + shlex.join(sys.argv[1:])


def cluster_input(
    model: object,
    source: str,
    out: Path | None,
    truth: str | None,
    device: str,
    reading: dict[str, Any],
    title: str | None,
    console: Console,
    as_json: bool,
    command: str,
) -> int:
    """Read, fit, and write what ``tuckermix cluster`` promises; return the exit code."""
    from tuckermix._array_api import is_dask
    from tuckermix.cli import _input, _results
    from tuckermix.report import require_packages

    require_packages()  # before minutes of fitting
    place = Path(source.rstrip("/\\") or source)
    folder = out if out is not None else Path(f"{place.stem or 'input'}-clusters")
    with _results.result_folder(folder):
        with console.stage(f"Reading {source}"):
            label_key = _input.label_key_of(truth)
            data = _input.read_input(source, label_key=label_key, **reading)
            classes = _input.known_classes(truth, data)
            X = _input.floating(data.X)
        shape = " × ".join(map(str, data.sample_shape))
        where = ", left on disk" if is_dask(X) else ""
        console.note(f"{data.n_samples} samples of shape {shape}{where}")
        if truth is None and data.labels is not None:
            console.note("The input carries labels: add --truth labels to compare with them.")
        return fit_and_write(
            model,
            X,
            folder,
            device=device,
            truth=classes,
            names=data.names,
            source=source,
            title=title or f"Clusters in {place.name or source}",
            command=command,
            kind=_input.picture_kind_of(data),
            console=console,
            as_json=as_json,
        )


def fit_and_write(
    model: object,
    X: object,
    folder: Path,
    *,
    device: str = "cpu",
    truth: object = None,
    names: object = None,
    source: str,
    title: str,
    command: str,
    kind: str,
    console: Console,
    as_json: bool,
) -> int:
    """Fit `model` to `X`, write the results to `folder` and say what came out."""
    import time

    from tuckermix.cli import _input, _large, _results

    moved = _input.to_device(X, device)
    with console.stage("Fitting"):
        start = time.perf_counter()
        model.fit(moved)  # type: ignore[attr-defined]
        seconds = time.perf_counter() - start
    with console.stage("Soft labels"):
        proba = _large.soft_labels(model, moved)
    with console.stage("Writing"):
        summary, values = _results.write_results(
            folder,
            model,
            X,
            proba=proba,
            truth=truth,
            names=names,
            seconds=seconds,
            source=source,
            title=title,
            command=command,
            kind=kind,
        )
    console.result(values, _results.summary_rows(summary, folder), as_json)
    if not summary.converged:
        console.note(f"The solver stopped by {summary.stop_reason} before it converged.")
        return EXIT_NOT_CONVERGED
    return 0
