"""``tuckermix apply`` and ``update``: results with corrections, and with more samples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tuckermix.cli import _options as options
from tuckermix.cli._console import Console, UsageError

EXAMPLES = """\b
Examples:
  tuckermix apply photos-clusters edits.json
  tuckermix apply photos-clusters edits.json -o photos-named
  tuckermix predict photos-named new-photos/
"""

Result = Annotated[
    Path,
    typer.Argument(
        metavar="RESULT", help="A folder that 'tuckermix cluster' wrote.", show_default=False
    ),
]


@options.grouped
def apply(
    result: Result,
    edits: Annotated[
        Path,
        typer.Argument(
            metavar="EDITS",
            help="The file that 'Save edits' in the report wrote.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for the new results; else RESULT-edited."),
    ] = None,
    force: options.Force = False,
    *,
    elsewhere: options.Elsewhere,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> int:
    """Write new results with the corrections made in a report.

    Clusters get their names, are merged and split; pictures are moved or set aside. Pictures that
    were moved vote for their new cluster, and what was set aside has no vote. The new model's
    'predict' gives these clusters, and their names.
    """
    from tuckermix._validation import as_floating
    from tuckermix.cli import _earlier, _features, _results
    from tuckermix.cli._edits import Edits, apply_edits
    from tuckermix.persistence import load

    console = Console(quiet)
    wanted = Edits.read(edits)
    out = result.resolve().with_name(f"{result.resolve().name}-edited") if out is None else out
    _results.refuse_to_replace(out, force)
    earlier = _earlier.read_results(result)
    model = load(result / _results.MODEL)
    _features.use_network(model, elsewhere["network"])
    with console.stage(f"Reading {earlier.inputs[0]}"):
        data, embeddings, _ = _earlier.samples_of(earlier, model, elsewhere)
    with console.stage("Correcting"):
        at, _ = _earlier.label_again(model, data, embeddings)
        at = apply_edits(model, as_floating(data.X), at, earlier.names, earlier.labels, wanted)
    _earlier.write_again(earlier, model, data, at, out, console=console, as_json=as_json)
    return 0


@options.grouped
def update(
    result: Result,
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="A folder with later pictures.", show_default=False),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for the results; else they are added to RESULT."),
    ] = None,
    force: options.Force = False,
    *,
    elsewhere: options.Elsewhere,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> int:
    """Add later pictures to results: the model labels what is new.

    Labels, names and corrections stay as they are. FOLDER may be the folder of the results itself,
    to which pictures came, or another one.
    """
    from tuckermix._validation import as_floating
    from tuckermix.cli import _earlier, _features, _results
    from tuckermix.cli._edits import set_labels
    from tuckermix.persistence import load

    console = Console(quiet)
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder: name the folder of the later pictures.")
    if out is not None:
        _results.refuse_to_replace(out, force)
    earlier = _earlier.read_results(result)
    if earlier.names is None or not earlier.inputs[0].is_dir():
        raise UsageError(f"The samples of {result} are no files of a folder: cluster them again.")
    model = load(result / _results.MODEL)
    _features.use_network(model, elsewhere["network"])
    inside = any(folder.resolve().is_relative_to(root.resolve()) for root in earlier.inputs)
    with console.stage(f"Reading {folder}"):
        data, embeddings, old = _earlier.samples_of(
            earlier, model, elsewhere, None if inside else folder, new=True
        )
    console.note(f"{int((~old).sum())} new samples")
    with console.stage("Labelling"):
        at, labels = _earlier.label_again(model, data, embeddings)
        labels[old] = earlier.labels
        at = set_labels(model, as_floating(data.X), at, labels)
    inputs = earlier.inputs if inside else [*earlier.inputs, folder]
    _earlier.write_again(
        earlier, model, data, at, out or result, console=console, as_json=as_json, inputs=inputs
    )
    return 0
