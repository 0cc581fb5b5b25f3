"""``tuckermix predict``: label new data with a model that was saved."""

from __future__ import annotations

import json
import sys

from tuckermix._version import __version__
from tuckermix.cli import _options as options
from tuckermix.cli._console import Console, UsageError

SCHEMA_VERSION = 1
"""Of what --json writes."""


def predict(
    model_path: options.Argument,
    source: options.Input,
    out: options.Out = None,
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

    Parameters
    ----------
    model_path : MODEL
        A model.tuckermix that 'cluster' wrote, or its folder.
    out
        File for the labels; else stdout.

    Examples
    --------
    tuckermix predict photos-clusters new-photos/
    tuckermix predict photos-clusters/model.tuckermix new-photos/ -o new-labels.csv
    tuckermix predict photos-clusters/model.tuckermix new-photos/ --json
    """
    console = Console(quiet)
    if out is not None and out.exists() and not force:
        raise UsageError(
            f"{out} is there already: name another file with --out, or add --force to replace it."
        )
    console.begin(f"Reading {source}")
    from tuckermix._files import write_text
    from tuckermix.cli import _earlier, _features, _input, _results
    from tuckermix.persistence import load
    from tuckermix.summary import cluster_names, printable

    if model_path.is_dir():
        if not (model_path / _results.MODEL).is_file():
            raise UsageError(
                f"{model_path} is a folder without a {_results.MODEL}: name the model, or the "
                "folder that 'tuckermix cluster' wrote."
            )
        model_path = model_path / _results.MODEL
    model = _features.use_network(load(model_path), elsewhere["network"])
    with console.stage(f"Reading {source}"):
        data = _earlier.read_as_before(model, source, given)
    _input.tell(console, data)
    with console.stage("Labelling"), _input.naming(data):
        at, labels = _earlier.label_again(model, data, _input.embeddings_of(elsewhere, data))
        samples = _results.labels_values(data.names, at, labels, cluster_names(model))
    if as_json:
        values = {
            "schema_version": SCHEMA_VERSION,
            "tuckermix": __version__,
            "model": printable(model_path),
            "input": printable(source),
            "n_samples": data.n_samples,
            "n_clusters": int(at.proba.shape[1]),
            **_results.left_out(data),
            "samples": samples,
        }
        text = json.dumps(values, indent=2) + "\n"
    else:
        text = _results.labels_text(samples)
    if out is None:
        sys.stdout.write(text)
    else:
        write_text(out, text)
        console.note(f"{data.n_samples} labels in {out}. Open it in a spreadsheet.")
    return 0
