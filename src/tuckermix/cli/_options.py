"""Options that several commands share, and how their words become values."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from tuckermix._names import FITS, ON_ERROR
from tuckermix.cli._console import UsageError

AUTO, NONE = "auto", "none"
"""Further words of several options: let the data decide, leave it out."""


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


def within(panel: str) -> Callable[..., Any]:
    """Return a function that declares an option under a heading of the help.

    Its `words` are completed by Tab, and listed where the help ends in a colon or is left out.
    """

    def option(*names: str, words: Sequence[str] = (), help: str = "", **facts: Any) -> Any:
        if words:
            facts["autocompletion"] = one_of(*words)
            help = help if help.endswith(".") else f"{help} {listed(words)}.".lstrip()
        return typer.Option(*names, rich_help_panel=panel, help=help, **facts)

    return option


class Group(dict[str, Any]):
    """The values of options that belong together; the subclass declares them.

    One without a default is None where it is not given.
    """


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """Make a command take the options of a `Group` where it has a parameter for all of them."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, type[Group]] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        group = parameter.annotation
        if not (isinstance(group, type) and issubclass(group, Group)):
            parameters.append(parameter)
            continue
        groups[parameter.name] = group
        for name, hint in get_type_hints(group, include_extras=True).items():
            default = getattr(group, name, None)
            parameters.append(parameter.replace(name=name, annotation=hint, default=default))

    @functools.wraps(command)
    def call(**given: Any) -> Any:
        for name, group in groups.items():
            given[name] = group({one: given.pop(one) for one in get_type_hints(group)})
        return command(**given)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call


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
reads, writes, tables = within("Reading"), within("Output"), within("Running the tables")
"""Options about INPUT, about the results, and about computing rows of the tables."""


class Reading(Group):
    """How INPUT is read: what `tuckermix.datasets.read` takes."""

    key: Annotated[str | None, reads(metavar="NAME", help="The array of samples in INPUT.")]
    sample_axis: Annotated[int | None, reads(help="The axis of the samples.")]
    sample_shape: Annotated[
        str | None, reads(metavar="SHAPE", help="Unfold flat samples, e.g. 32x32.")
    ]
    size: Annotated[
        str | None,
        reads(
            metavar="SIZE",
            help="Bring pictures to this size, e.g. 64 or 48x64, or leave them: original. By "
            "default the longest side has at most 128 pixels.",
        ),
    ]
    fit: Annotated[
        str | None,
        reads(
            help="Pictures of other proportions: crop (the default), pad or stretch.", words=FITS
        ),
    ]
    grey: Annotated[
        bool | None, reads("--grey/--colour", help="Make all images grey, or all colour.")
    ]
    frames: Annotated[int | None, reads(help="Frames to take of each video, evenly spaced.")]
    channels: Annotated[
        str | None,
        reads(metavar="LIST", help="Channels to keep, by number or name, e.g. 0,2 or DAPI."),
    ]
    axes: Annotated[
        str | None,
        reads(
            metavar="LETTERS",
            help="What the axes of a stored array mean: N samples, T time, Z depth, Y height, X "
            "width, C channels; e.g. NTYX.",
        ),
    ]
    drop: Annotated[
        str | None, reads(metavar="COLUMNS", help="Columns of a table to leave out, e.g. id,day.")
    ]
    on_error: Annotated[
        str,
        reads(
            help="At a file of a folder that cannot be read: skip it and list it, or stop.",
            words=ON_ERROR,
        ),
    ] = "skip"


class Elsewhere(Group):
    """Files of networks and of vectors that the user has already."""

    network: Annotated[
        Path | None,
        within("The model")(
            metavar="FILE",
            help="An ONNX file: a network of your own in place of that of tuckermix[photos].",
        ),
    ]
    embeddings: Annotated[
        Path | None,
        reads(
            metavar="FILE",
            help="Vectors or maps of the samples, computed elsewhere: a table or an array, rows by "
            "name or in the order of INPUT. One more view.",
        ),
    ]

    @property
    def states(self) -> list[tuple[str, int, int]]:
        """The files as they are now: their paths, sizes and times."""
        files = [path for path in self.values() if path is not None]
        return [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]


class Running(Group):
    """How rows of the tables are computed: what `reproduce` and `benchmark` both take."""

    data: Annotated[
        Path | None, tables(help="Folder of the datasets; else what TUCKERMIX_DATA names.")
    ]
    runs: Annotated[int | None, tables(min=1, help="Draws of a row; else as many as it has.")]
    quick: Annotated[
        bool, tables("--quick", help="Miniature tables on open data, in little time.")
    ] = False
    jobs: Annotated[
        int | None, tables(min=0, help="Processes; else one per core. 0: no further process.")
    ]
    time_limit: Annotated[float | None, tables(help="Seconds after which a run is given up.")]
    retry_failed: Annotated[
        bool, tables("--retry-failed", help="Try runs again that failed before.")
    ] = False


AsJson = Annotated[bool, writes("--json", help="Write the result as JSON.")]
Quiet = Annotated[bool, writes("--quiet", "-q", help="Write errors only to stderr.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="Folder for the results; else named after INPUT."),
]
Data = Annotated[
    Path | None,
    typer.Option(help="Folder of the datasets; by default what TUCKERMIX_DATA names."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace results that are there already.")]


TYPES = {"int": "N", "int range": "N", "float": "NUMBER", "float range": "NUMBER", "str": "WORD"}
"""Words for values in the help, in place of names of types."""

BOUND = re.compile(r"(; )?x>=[0-9.]+(?=\])")


def plain(record: tuple[str, str]) -> tuple[str, str]:
    """Put a line of the help into words, without types of Python and obvious bounds."""
    name, text = record
    if not name.startswith("-"):
        name = name.partition(" ")[0]  # an argument is its name
    name = re.sub(
        r"<(?:list\[)?([a-z ]+)\]?>", lambda found: TYPES.get(found[1], found[1].upper()), name
    )
    return name, BOUND.sub("", text).replace("  [required]", "").replace("  []", "")


class Grouped:
    """Help with a section for each group of options, in plain words.

    Typer draws groups as boxes, which take a third of the screen.
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
    """A command with grouped help."""


class GroupedTargets(Grouped, TyperGroup):
    """A command that typer takes for a group, since it has arguments of any number."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line; there are no commands below it."""
        below = self.subcommand_metavar
        return [piece for piece in super().collect_usage_pieces(ctx) if piece != below]


def reading(given: Reading) -> dict[str, Any]:
    """Return the options for reading as arguments of `tuckermix.datasets.read`."""
    check("--on-error", given["on_error"], ON_ERROR)
    if given["fit"] is not None:
        check("--fit", given["fit"], FITS)
    size = given["size"]
    return given | {
        "scale": None,
        "sample_shape": sizes(given["sample_shape"], "--sample-shape"),
        "size": size if size == "original" else sizes(size, "--size"),
        "channels": parse_channels(given["channels"]),
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
    with suppress(ValueError):
        if 0 < float(text) < 1:
            return float(text)
    return sizes(text, "--ranks")
