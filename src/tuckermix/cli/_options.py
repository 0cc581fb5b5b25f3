"""Options that several commands share, and how their words become values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tuckermix.cli._console import UsageError

Input = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        help="A folder of images or videos; a .npy, .npz, .mat, HDF5, Zarr, idx, TIFF or video "
        "file; or a dataset by name, see 'tuckermix datasets'.",
        show_default=False,
    ),
]
Key = Annotated[
    str | None, typer.Option(help="The array of samples in INPUT.", rich_help_panel="Reading")
]
SampleAxis = Annotated[
    int | None, typer.Option(help="The axis of the samples.", rich_help_panel="Reading")
]
SampleShape = Annotated[
    str | None,
    typer.Option(help="Unfold flat samples, e.g. 32x32.", rich_help_panel="Reading"),
]
Size = Annotated[
    str | None,
    typer.Option(help="Resize images, e.g. 64 or 48x64.", rich_help_panel="Reading"),
]
Grey = Annotated[
    bool | None,
    typer.Option(
        "--grey/--colour", help="Make all images grey, or all colour.", rich_help_panel="Reading"
    ),
]
Frames = Annotated[
    int | None, typer.Option(help="Frames to take of each video.", rich_help_panel="Reading")
]
Device = Annotated[str, typer.Option(help="Where to compute: cpu, cuda, cuda:1, mps (PyTorch).")]
Chunk = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Leave INPUT on disk and read this many samples at a time. Inputs that would not "
        "fit in memory are left there in any case.",
        rich_help_panel="Reading",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Let a Dask cluster compute, e.g. tcp://host:8786; its workers must see INPUT.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Write errors only to stderr.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the results.")]


def sizes(text: str | None, option: str) -> int | tuple[int, ...] | None:
    """Read "64", "48x64" or "48,64" as an int or a tuple of ints."""
    if text is None:
        return None
    parts = text.lower().replace("x", ",").replace("×", ",").split(",")
    try:
        values = tuple(int(part) for part in parts)
    except ValueError:
        raise UsageError(
            f"{option} must be one or more whole numbers such as 32 or 32x24. Got {text!r}."
        ) from None
    return values[0] if len(values) == 1 else values


def parse_ranks(text: str | None) -> Any:
    """Read --ranks: "12", "12x12", or a share of the energy such as "0.95"."""
    if text is None:
        return None
    try:
        share = float(text)
    except ValueError:
        return sizes(text, "--ranks")
    if 0 < share < 1:
        return share
    return sizes(text, "--ranks")
