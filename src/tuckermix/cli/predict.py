"""``tuckermix predict``: label new data with a model that was saved."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from tuckermix._version import __version__
from tuckermix.cli import _options as options
from tuckermix.cli._console import Console, UsageError, in_options

EXAMPLES = """\b
Examples:
  tuckermix predict photos-clusters new-photos/
  tuckermix predict photos-clusters/model.tuckermix new-photos/ -o new-labels.csv
  tuckermix predict photos-clusters/model.tuckermix new-photos/ --json
"""

SCHEMA_VERSION = 1
"""Of what --json writes."""


@options.grouped
def predict(
    model_path: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="A model.tuckermix that 'cluster' wrote, or its folder.",
            show_default=False,
        ),
    ],
    source: options.Input,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File for the labels; else stdout.")
    ] = None,
    force: options.Force = False,
    *,
    given: options.Reading,
    elsewhere: options.Elsewhere,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> int:
    """Label new samples with a saved model.

    Writes name or index, label, confidence and soft labels as CSV, or with --json as JSON; with
    names of clusters, as 'apply' gives them, file, label, name and so on. On the samples of the fit
    this gives the same labels.csv again. Models made with --pixels take scenes.
    """
    from tuckermix._array_api import to_numpy
    from tuckermix._files import write_text
    from tuckermix.cli import _features, _input, _results
    from tuckermix.cli._earlier import label_again
    from tuckermix.persistence import load
    from tuckermix.summary import cluster_names, printable

    console = Console(quiet)
    if out is not None and out.exists() and not force:
        raise UsageError(
            f"{out} is there already: name another file with --out, or add --force to replace it."
        )
    reading = options.reading(given)
    if model_path.is_dir():
        if not (model_path / _results.MODEL).is_file():
            raise UsageError(
                f"{model_path} is a folder without a {_results.MODEL}: name the model, or the "
                "folder that 'tuckermix cluster' wrote."
            )
        model_path = model_path / _results.MODEL
    model = load(model_path)
    _features.use_network(model, elsewhere["network"])
    with console.stage(f"Reading {source}"):
        reading = _features.reading_as_before(model, source, reading)
        data = _input.read_input(source, **reading)
        known = getattr(model, "reading_", None) or {}
        if known.get("pixels") and data.X.ndim != 2:  # else spectra as rows
            data, _ = _input.pixels_of(data)
    _input.tell(console, data)
    with console.stage("Labelling"), _input.naming(data):
        at, labels = label_again(model, data, _input.embeddings_of(elsewhere, data))
        proba = to_numpy(at.proba)
        scores = None if at.scores is None else to_numpy(at.scores)
    called = cluster_names(model)
    if as_json:
        notes = [in_options(note) for note in data.extra.get("notes", [])]
        values = {
            "schema_version": SCHEMA_VERSION,
            "tuckermix": __version__,
            "model": printable(model_path),
            "input": printable(source),
            "n_samples": data.n_samples,
            "n_clusters": int(proba.shape[1]),
            **_results.left_out(data.extra.get("skipped", []), notes),
            "samples": _results.labels_values(data.names, proba, labels, scores, called),
        }
        text = json.dumps(values, indent=2) + "\n"
    else:
        text = _results.labels_text(data.names, proba, labels, scores, called)
    if out is None:
        sys.stdout.write(text)
    else:
        write_text(out, text)
        console.note(f"{data.n_samples} labels in {out}. Open it in a spreadsheet.")
    return 0
