"""``tuckermix datasets``: which data are known by name, and which are on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tuckermix.cli import _options as options
from tuckermix.cli._console import Console

INCLUDED = ("digits",)
"""Datasets that come with a dependency of this package."""


def datasets(
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of the datasets; by default what TUCKERMIX_DATA names."),
    ] = None,
    as_json: options.AsJson = False,
) -> int:
    """List the datasets that are known by name."""
    console = Console()
    found = [_describe(name, data) for name in INCLUDED]
    if as_json:
        console.result({"datasets": found}, [], True)
    else:
        rows = [(one["name"], one["state"], one["description"]) for one in found]
        console.table(("name", "here", "what it is"), rows)
    return 0


def _describe(name: str, data: Path | None) -> dict[str, Any]:
    """Say what a dataset is and whether it can be loaded."""
    from tuckermix.datasets import load

    loaded = load(name, None if data is None else str(data))
    return {"name": name, "state": "yes", "description": loaded.description}
