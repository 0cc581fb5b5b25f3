"""``tuckermix cluster``: from files to clusters one can look at."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tuckermix import _names
from tuckermix.cli import _options as options
from tuckermix.cli._console import Console, Exit
from tuckermix.cli._features import COLOURS, FOR_PHOTOS, SCALES, WORDS
from tuckermix.features import registry

if TYPE_CHECKING:
    from tuckermix.cli._unfinished import Unfinished
    from tuckermix.datasets import Dataset

models, computes = options.within("The model"), options.within("Computing")
"""Options of the model and of the machine."""

SAID = 3
"""Lines on a choice for the terminal: what, the next view, the next number; the report has all."""


class Model(options.Group):
    """Parameters of `TuckerClustering`; `AutoClustering` has `calibrate` and `outliers` too.

    Attributes
    ----------
    n_components
        Components of the model; by default 2 k + 1.
    ranks : RANKS
        Core size, e.g. 12x12, or the energy to keep, e.g. 0.95.
    memberships
        Which simplex gives the mixing weights:
    calibrate
        Soft labels as probabilities that another fit agrees, in place of votes.
    outliers
        keep (all samples get a cluster) or label (-1 for those that fit none).
    missing
        At gaps (NaN): none refuses them, impute fills them by the model.
    n_neighbors
        Neighbours in the graph.
    n_init
        Starts of k-means.
    max_iter
        Most sweeps of the solver.
    tol
        When to stop.
    """

    panel = "The model"
    n_components: Annotated[int | None, models(min=1)]
    ranks: Annotated[str | None, models(callback=options.parse_ranks)]
    solver: Annotated[str, models(words=_names.SOLVERS)] = "exact"
    init: Annotated[str, models(words=_names.INITS)] = "hosvd"
    memberships: Annotated[str, models(words=_names.SIMPLICES)] = "anchored"
    assign_labels: Annotated[str, models(words=_names.LABELLINGS)] = "graph"
    calibrate: bool = False
    outliers: Annotated[str, models(words=_names.OUTLIERS)] = "keep"
    missing: Annotated[str, models(words=(options.NONE, *_names.MISSING))] = "none"
    n_neighbors: Annotated[int, models(min=1)] = 15
    n_init: Annotated[int, models(min=1)] = 10
    max_iter: Annotated[int, models(min=1)] = 100
    tol: Annotated[float, models(min=0.0)] = 1e-6


def cluster(
    source: options.Input,
    n_clusters: Annotated[int | None, typer.Option("--n-clusters", "-k", min=1)] = None,
    out: options.Out = None,
    force: options.Force = False,
    truth: str | None = None,
    *,
    given: options.Reading,
    chunk: Annotated[int | None, options.reads(min=1)] = None,
    pixels: Annotated[bool, options.reads()] = False,
    features: Annotated[str | None, models(words=WORDS, strict=True)] = None,
    elsewhere: options.Elsewhere,
    scale: Annotated[str, models(words=SCALES, strict=True)] = "auto",
    settings: Model,
    seed: Annotated[int, computes(min=0)] = 0,
    device: Annotated[str, computes(words=("cpu", "cuda", "mps"))] = "cpu",
    scheduler: Annotated[str | None, computes()] = None,
    title: Annotated[str | None, options.writes()] = None,
    kind: Annotated[str, options.writes(words=_names.KINDS, strict=True)] = "auto",
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> int:
    """Cluster samples; write labels, model and report to a folder.

    \b
    labels.csv       name or index, label, confidence, soft labels
    report.html      the clusters, to look at
    model.tuckermix  for 'tuckermix predict'
    summary.json     figures, settings, versions

    A run that was killed goes on when the same command is given again.

    Parameters
    ----------
    n_clusters
        The number of clusters; without it the number is chosen.
    out
        Folder for the results; else named after INPUT.
    truth : FILE_OR_COLUMN
        Known classes, to compare with: a .csv, .txt or .npy file, FILE:COLUMN, the name of an array
        in INPUT, or 'labels' for those that INPUT carries.
    chunk
        Leave INPUT on disk and read this many samples at a time. Inputs that would not fit in
        memory are left there in any case.
    pixels
        INPUT is a scene of height × width × bands: its pixels are the samples, and the report shows
        maps.
    features
        Which views are compared: pixels, scattering (strokes and edges, which may move a little),
        auto (both), network (what a network trained on photographs sees), or all. log-scattering is
        a single view. By default all where tuckermix[photos] is there, else auto.
    scale
        Values first: none (as they are), sample (each from 0 to 1), dataset (all from 0 to 1), unit
        (norm one), columns (of a table: mean 0, deviation 1) or auto (columns of different scales,
        and pictures of different bit depths).
    seed
        Makes runs repeat.
    device
        Where to compute: cpu, cuda, cuda:1, mps (PyTorch).
    scheduler : ADDRESS
        Let a Dask cluster compute, e.g. tcp://host:8786; its workers must see INPUT.
    title : TEXT
        Heading of the report.
    kind
        How the report draws a sample:

    Examples
    --------
    tuckermix cluster photos/
    tuckermix cluster photos/ -k 10 --size 64 -o ten-kinds
    tuckermix cluster faces.mat -k 4 --sample-shape 16x16 --truth gnd -o faces
    tuckermix cluster scans.h5 -k 3 --key volumes -o scans --json --quiet
    """  # noqa: D301 - typer keeps the lines behind \b apart
    console = Console(quiet, as_json)
    console.begin(f"Reading {source}")  # before the libraries are loaded, which takes a second
    from tuckermix._array_api import is_dask
    from tuckermix.cli import _features, _input, _results
    from tuckermix.cli._unfinished import Unfinished, key_of, state_of
    from tuckermix.report import require_packages
    from tuckermix.summary import sizes_text

    reading: dict[str, Any] = {**given, "scale": None}
    if scale != options.AUTO:
        reading["scale"] = scale if scale == _names.COLUMNS else options.NONE
    # All that can be wrong with options is said before minutes of reading.
    model, note = _features.estimator(n_clusters, features, scale, settings, seed, elsewhere)
    require_packages()
    name = Path(os.path.abspath(source)).name or "input"
    folder = out if out is not None else Path(f"{name}-clusters")
    if out is None and Path(source).resolve() in folder.resolve().parents:  # not among the pictures
        folder = Path(os.path.relpath(Path(source).resolve().parent)) / folder
    _results.refuse_to_replace(folder, force)
    unfinished = Unfinished(folder, console)
    with _input.scheduler(scheduler), unfinished.guarding(), _results.result_folder(folder):
        with console.stage(f"Reading {source}"):
            data = _input.read_input(
                source,
                label_key=_input.label_key_of(truth),
                chunk=chunk,
                on_disk=scheduler is not None,
                remember=unfinished.remember,
                **reading,
            )
            data = _input.pixels_of(data) if pixels else data
            classes = _input.known_classes(truth, data)
        shape = sizes_text(data.sample_shape)
        where = ", left on disk" if is_dask(data.X) else ""
        console.note(f"{data.n_samples} samples of shape {shape}{where}")
        _input.tell(console, data, classes)
        if note:
            console.note(note)
        elif features is None and data.sample_shape[2:] == COLOURS and not registry.has_network():
            console.note(FOR_PHOTOS)
        about = {"model": repr(model), "device": device, "pixels": pixels}
        files = [state_of(path) for path in elsewhere.values() if path is not None]
        unfinished.key = cache(partial(key_of, data, source, elsewhere=files, **about))
        model.reading_ = _features.reading_of(source, data, reading, pixels=pixels)
        if elsewhere["embeddings"] is not None:
            model.reading_["embeddings"] = str(elsewhere["embeddings"])
        kind = "auto" if pixels else _input.picture_kind_of(data) if kind == "auto" else kind
        with _input.naming(data):
            code = fit_and_write(
                model,
                data,
                folder,
                console=console,
                device=device,
                unfinished=unfinished,
                embeddings=_input.embeddings_of(elsewhere, data),
                network=elsewhere["network"],
                truth=classes,
                source=source,
                title=title or f"Clusters in {name}",
                kind=kind,
            )
    console.note(f"Open {folder / _results.REPORT} in a browser.")
    return code


def fit_and_write(
    model: Any,
    data: Dataset,
    folder: Path,
    *,
    console: Console,
    device: str = "cpu",
    unfinished: Unfinished | None = None,
    embeddings: Any = None,
    network: Path | None = None,
    **about: Any,
) -> int:
    """Fit `model` to samples, write the results to `folder` and say what came out.

    `embeddings` are those of the samples, `network` the file of --network. What else is known
    `about` the samples goes to `write_results`. A model that an `unfinished` run has fitted is
    taken as it is.
    """
    from tuckermix._validation import as_floating
    from tuckermix.cli import _features, _input, _results
    from tuckermix.plots.fitted import placed
    from tuckermix.selection.shared import Features, in_memory

    earlier = None if unfinished is None else unfinished.fitted()
    data = replace(data, X=as_floating(data.X))
    # What is loaded is in NumPy, wherever it was fitted.
    moved = _input.to_device(data.X, device if earlier is None else "cpu")
    start = time.perf_counter()
    final = registry.last_step(model)
    if final is not model:
        with console.stage("Features"):
            moved = in_memory(model[:-1].fit_transform(moved))
    seen = Features(moved, None if embeddings is None else _input.to_device(embeddings, device))
    if earlier is None:
        chooses = hasattr(final, "select")
        with console.stage("Choosing and fitting" if chooses else "Fitting"):
            if chooses:
                final._fit(moved, seen, *([] if unfinished is None else [unfinished.choice]))
            else:
                final.fit(moved)
            seconds = time.perf_counter() - start
        for line in str(getattr(final, "selection_", "")).splitlines()[:SAID]:
            console.note(line)
    else:
        fitted, seconds = earlier
        _features.use_network(fitted, network)
        fitted.reading_, model = getattr(model, "reading_", None), fitted
        final = registry.last_step(model)

    with console.stage("Soft labels"):
        at = _results.computed(final, placed(final, moved, seen))
    if unfinished is not None and earlier is None:  # now nothing in the model is lazy
        unfinished.keep_fitted(model, seconds)
    summary = _results.publish(folder, model, data, at, console=console, seconds=seconds, **about)
    if not summary.converged:
        console.note(f"The solver stopped by {summary.stop_reason} before it converged.")
        return Exit.NOT_WHOLE
    return Exit.DONE
