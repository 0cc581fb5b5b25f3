"""``tuckermix predict``: label new data with a model that was saved."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tuckermix.cli import _options as options
from tuckermix.cli._console import Console

EXAMPLES = """\b
Examples:
  tuckermix predict photos-clusters/model.tuckermix new-photos/
  tuckermix predict photos-clusters/model.tuckermix new-photos/ -o new-labels.csv
"""


def predict(
    model_path: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="A model.tuckermix that 'cluster' wrote.", show_default=False
        ),
    ],
    source: options.Input,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File for the labels; else stdout.")
    ] = None,
    key: options.Key = None,
    sample_axis: options.SampleAxis = None,
    sample_shape: options.SampleShape = None,
    size: options.Size = None,
    grey: options.Grey = None,
    frames: options.Frames = None,
    quiet: options.Quiet = False,
) -> int:
    """Label new samples with a saved model.

    Writes name or index, label, confidence and soft labels as CSV. On the samples of the fit this
    gives the same labels.csv again.
    """
    from tuckermix._array_api import to_numpy
    from tuckermix._files import write_text
    from tuckermix.cli import _features, _input, _results
    from tuckermix.persistence import load

    console = Console(quiet)
    reading = options.reading(key, sample_axis, sample_shape, size, grey, frames)
    model = load(model_path)
    with console.stage(f"Reading {source}"):
        reading = _features.reading_as_before(model, source, reading)
        data = _input.read_input(source, **reading)
        _features.refuse_mixed_depths(data, _features.scale_of(model))
        X = data.X if _features.is_pipeline(model) else _input.floating(data.X)
    with console.stage("Labelling"):
        proba, labels, scores = to_numpy(model.predict_proba(X)), None, None
        final = _features.final(model)
        if getattr(final, "outliers", "keep") == "label":
            labels = to_numpy(model.predict(X))
            seen = model[:-1].transform(X) if _features.is_pipeline(model) else X
            scores = _results.outlier_scores(final, seen)
    labels = proba.argmax(axis=1) if labels is None else labels
    text = _results.labels_text(data.names, proba, labels, scores)
    if out is None:
        sys.stdout.write(text)
    else:
        write_text(out, text)
        console.note(f"{data.n_samples} labels in {out}")
    return 0
