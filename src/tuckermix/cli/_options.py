"""Options that several commands share, and how their words become values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from tuckermix._names import ON_ERROR
from tuckermix.cli._console import UsageError

AUTO, NONE = "auto", "none"
"""What several options take beside the words of the library: let the data decide, leave it out."""


def one_of(*values: str) -> Callable[[str], list[str]]:
    """Complete a value by Tab."""
    return lambda incomplete: [value for value in values if value.startswith(incomplete)]


def listed(values: Sequence[str]) -> str:
    """Write values as people list them: "graph, subspace or argmax"."""
    *first, last = values
    return f"{', '.join(first)} or {last}" if first else last


def check(option: str, value: str, values: Sequence[str]) -> None:
    """Raise where an option has a value that it does not take."""
    if value not in values:
        raise UsageError(f"{option} must be {listed(values)}. Got {value!r}.")


Input = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        help="A folder of images, videos, NIfTI or .npy files; a .npy, .npz, .mat, HDF5, Zarr, "
        "idx, TIFF, NIfTI or video file; a .csv or .parquet table of paths or pixels; or a "
        "dataset by name, see 'tuckermix datasets'.",
        show_default=False,
    ),
]
READING = "Reading"
"""The heading under which the help lists what concerns INPUT."""

Key = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The array of samples in INPUT.", rich_help_panel=READING),
]
SampleAxis = Annotated[
    int | None, typer.Option(help="The axis of the samples.", rich_help_panel=READING)
]
SampleShape = Annotated[
    str | None,
    typer.Option(metavar="SHAPE", help="Unfold flat samples, e.g. 32x32.", rich_help_panel=READING),
]
Size = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Resize images, e.g. 64 or 48x64.", rich_help_panel=READING),
]
Grey = Annotated[
    bool | None,
    typer.Option(
        "--grey/--colour", help="Make all images grey, or all colour.", rich_help_panel=READING
    ),
]
Frames = Annotated[
    int | None, typer.Option(help="Frames to take of each video.", rich_help_panel=READING)
]
Channels = Annotated[
    str | None,
    typer.Option(
        metavar="LIST",
        help="Channels to keep, by number or name, e.g. 0,2 or DAPI.",
        rich_help_panel=READING,
    ),
]
Axes = Annotated[
    str | None,
    typer.Option(
        metavar="LETTERS",
        help="What the axes of a stored array mean: N samples, T time, Z depth, Y height, X "
        "width, C channels; e.g. NTYX.",
        rich_help_panel=READING,
    ),
]
OnError = Annotated[
    str,
    typer.Option(
        help="At a file of a folder that cannot be read: skip it and list it, or stop.",
        autocompletion=one_of(*ON_ERROR),
        rich_help_panel=READING,
    ),
]
Chunk = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Leave INPUT on disk and read this many samples at a time. Inputs that would not "
        "fit in memory are left there in any case.",
        rich_help_panel=READING,
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Write the result as JSON.", rich_help_panel="Output")
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Write errors only to stderr.", rich_help_panel="Output"),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="Folder for the results; else named after INPUT."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace results that are there already.")]


TYPES = {"int": "N", "int range": "N", "float": "NUMBER", "float range": "NUMBER", "str": "WORD"}
"""What stands for a value in the help, in place of the name of a type."""

BOUND = re.compile(r"(; )?x>=[0-9.]+(?=\])")


def plain(record: tuple[str, str]) -> tuple[str, str]:
    """Put a line of the help into words: no types of Python, no bounds that nobody would cross."""
    name, text = record
    if not name.startswith("-"):
        name = name.partition(" ")[0]  # an argument is its name
    name = re.sub(
        r"<(?:list\[)?([a-z ]+)\]?>", lambda found: TYPES.get(found[1], found[1].upper()), name
    )
    return name, BOUND.sub("", text).replace("  [required]", "").replace("  []", "")


class Grouped:
    """Help with a section for each group of options, in plain words.

    Typer draws groups as boxes only, which take a third of the screen.
    """

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line, arguments without decoration."""
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [piece.replace("{", "").replace("}", "") for piece in pieces]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and options by their groups, in the order of their declaration."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):  # type: ignore[attr-defined]
            record = parameter.get_help_record(ctx)
            usual = "Arguments" if parameter.param_type_name == "argument" else "Options"
            if record is not None:
                group = getattr(parameter, "rich_help_panel", None) or usual
                groups.setdefault(group, []).append(plain(record))
        for group, records in groups.items():
            with formatter.section(group):
                formatter.write_dl(records)


class GroupedCommand(Grouped, TyperCommand):
    """A command with such a help."""


class GroupedTargets(Grouped, TyperGroup):
    """A command that typer takes for a group, since it has arguments of any number."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line; there are no commands below it."""
        below = self.subcommand_metavar
        return [piece for piece in super().collect_usage_pieces(ctx) if piece != below]


def reading(
    key: str | None,
    sample_axis: int | None,
    sample_shape: str | None,
    size: str | None,
    grey: bool | None,
    frames: int | None,
    channels: str | None,
    axes: str | None,
    on_error: str,
) -> dict[str, Any]:
    """Return the options for reading as arguments of `tuckermix.datasets.read`."""
    check("--on-error", on_error, ON_ERROR)
    return {
        "key": key,
        "sample_axis": sample_axis,
        "sample_shape": sizes(sample_shape, "--sample-shape"),
        "size": sizes(size, "--size"),
        "grey": grey,
        "frames": frames,
        "channels": parse_channels(channels),
        "axes": axes,
        "on_error": on_error,
    }


def parse_channels(text: str | None) -> tuple[int | str, ...] | None:
    """Read --channels: numbers and names, separated by commas."""
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    return tuple(int(word) if word.isascii() and word.isdigit() else word for word in words)


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
