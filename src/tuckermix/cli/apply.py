"""``tuckermix apply`` and ``update``: results with corrections, and with more samples."""

from __future__ import annotations

from functools import partial
from typing import Any

from tuckermix.cli import _options as options
from tuckermix.cli._console import Console, UsageError


def apply(
    result: options.Argument,
    edits: options.Argument,
    out: options.Out = None,
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

    Parameters
    ----------
    edits : EDITS
        The file that 'Save edits' in the report wrote.
    out
        Folder for the new results; else RESULT-edited.

    Examples
    --------
    tuckermix apply photos-clusters edits.json
    tuckermix apply photos-clusters edits.json -o photos-named
    tuckermix predict photos-named new-photos/
    """
    console = Console(quiet, as_json)
    console.begin(f"Reading {result}")
    from tuckermix.cli import _earlier, _results
    from tuckermix.cli._edits import Edits, apply_edits

    wanted = Edits.read(edits)
    out = result.resolve().with_name(f"{result.resolve().name}-edited") if out is None else out
    _results.refuse_to_replace(out, force)
    earlier = _earlier.read_results(result)
    change = partial(apply_edits, names=earlier.names, edits=wanted)
    run: dict[str, Any] = {"elsewhere": elsewhere, "console": console}
    return _earlier.revise(earlier, out, "Correcting", change, **run)


def update(
    result: options.Argument,
    folder: options.Argument,
    out: options.Out = None,
    force: options.Force = False,
    *,
    elsewhere: options.Elsewhere,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> int:
    """Add later pictures to results: the model labels what is new.

    Labels, names and corrections stay as they are. FOLDER may be the folder of the results itself,
    to which pictures came, or another one.

    Parameters
    ----------
    folder : FOLDER
        A folder with later pictures.
    out
        Folder for the results; else they are added to RESULT.
    """
    console = Console(quiet, as_json)
    console.begin(f"Reading {result}")
    from tuckermix.cli import _earlier, _results
    from tuckermix.cli._edits import set_labels

    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder: name the folder of the later pictures.")
    if out is not None:
        _results.refuse_to_replace(out, force)
    earlier = _earlier.read_results(result)
    if earlier.names is None or not earlier.inputs[0].is_dir():
        raise UsageError(f"The samples of {result} are no files of a folder: cluster them again.")
    run: dict[str, Any] = {"elsewhere": elsewhere, "console": console, "more": folder}
    return _earlier.revise(earlier, out or result, "Labelling", set_labels, **run)
