"""``tuckermix datasets``: which data are known by name, and which are on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tuckermix.cli import _options as options
from tuckermix.cli._console import Console


def _known(incomplete: str) -> list[str]:
    """Complete the name of a dataset."""
    from tuckermix.datasets import list_datasets

    return [info.name for info in list_datasets() if info.name.startswith(incomplete)]


def datasets(
    name: Annotated[str | None, typer.Argument(autocompletion=_known, show_default=False)] = None,
    data: Path | None = None,
    as_json: options.AsJson = False,
) -> int:
    """List the datasets that are known by name.

    Nothing is ever downloaded: 'tuckermix datasets NAME' says what to get and where to put it.

    Parameters
    ----------
    name : NAME
        Tell more about this one.
    data
        Folder of the datasets; by default what TUCKERMIX_DATA names.
    """
    from tuckermix.datasets import describe, list_datasets
    from tuckermix.summary import sizes_text

    found = list_datasets(data) if name is None else [describe(name, data)]
    values = [info.to_dict() for info in found]
    rows: list[tuple[str, ...]] = [("name", "state", "samples", "shape", "classes", "what it is")]
    for info in found:
        sizes = (str(info.n_samples), sizes_text(info.sample_shape), str(info.n_classes))
        rows.append((info.name, info.state, *sizes, info.title))
    if name is not None:
        facts = values[0] | {"sample_shape": sizes_text(found[0].sample_shape)}
        if found[0].state != "missing":
            del facts["remedy"]  # nothing is wrong
        rows = [(key.replace("_", " "), str(value)) for key, value in facts.items() if value]
    Console(as_json=as_json).result({"datasets": values}, rows)
    return 0
