"""Options that several commands share, and how their words become values."""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

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


def check(value: str, option: str, values: Sequence[str]) -> str:
    """Return the value of an option, or raise where it does not take that."""
    if value not in values:
        raise UsageError(f"{option} must be {listed(values)}. Got {value!r}.")
    return value


def within(panel: str) -> Callable[..., Any]:
    """Return a function that declares an option under a heading of the help.

    Its `words` are completed by Tab, and listed where the help, which is in a docstring, ends in a
    colon or is left out. With `strict` there are no others. A `callback` turns the text of the
    option, its first argument, into a value; its second is the name.
    """

    def option(*names: str, words: Sequence[str] = (), strict: bool = False, **facts: Any) -> Any:
        if words:
            facts |= {"autocompletion": one_of(*words), "help": f"{listed(words)}."}
        if strict:
            facts["callback"] = functools.partial(check, values=words)
        return typer.Option(*names, rich_help_panel=panel, **facts)

    return option


class Group(dict[str, Any]):
    """The values of options that belong together; the subclass declares and describes them.

    One without a default is None where it is not given.
    """

    panel: ClassVar[str]
    """The heading of the options in the help."""

    @classmethod
    def usual(cls) -> Self:
        """Return the defaults."""
        return cls({name: getattr(cls, name, None) for name in cls.__annotations__})


def described(owner: Any) -> dict[str, tuple[str, str]]:
    """Return how the docstring of a command or a group describes options.

    Parameters
    ----------
    owner : callable or class
        Its docstring lists options as numpydoc lists parameters. The place of the type has the word
        for a value in the help.

    Returns
    -------
    described : dict of str to (str, str)
        The word for a value, which may be empty, and the help, by the name of the option.
    """
    _, _, listed = (inspect.getdoc(owner) or "").partition("\n---")
    found = re.findall(r"^(\w+)(?: : (.+))?\n((?: {4}.*\n?)+)", listed, re.MULTILINE)
    return {name: (word, " ".join(text.split())) for name, word, text in found}


def add(program: typer.Typer, command: Callable[..., Any], called: str | None = None) -> None:
    """Add a function to the program as a command.

    Its docstring describes its arguments and options, and its examples end the help. Where it has a
    parameter for a `Group`, it takes the options of that.

    Parameters
    ----------
    program : typer.Typer
        The program.
    command : callable
        The function, which returns an exit code.
    called : str, default=None
        What the command is called; None means the name of the function.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, type[Group]] = {}

    def declare(parameter: inspect.Parameter, owner: Any) -> None:
        kind = parameter.annotation
        if get_origin(kind) is Annotated:
            kind, info = kind.__origin__, copy(kind.__metadata__[0])
        else:
            info = typer.Option(rich_help_panel=getattr(owner, "panel", None))
        option, convert = f"--{parameter.name.replace('_', '-')}", info.callback
        if kind is bool and info.default is ...:  # typer has the first name there
            info.param_decls = (option,)
        if convert is not None:
            info.callback = lambda value: None if value is None else convert(value, option)
        said = described(Common) | described(owner)
        word, text = said.get(parameter.name, ("", ""))
        info.metavar = info.metavar or word or None
        info.help = text if text.endswith(".") else f"{text} {info.help or ''}".strip()
        parameters.append(parameter.replace(annotation=Annotated[kind, info]))

    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        group = parameter.annotation
        if not (isinstance(group, type) and issubclass(group, Group)):
            declare(parameter, command)
            continue
        groups[parameter.name] = group
        hints = get_type_hints(group, include_extras=True)
        for name in group.__annotations__:
            default = getattr(group, name, None)
            declare(parameter.replace(name=name, annotation=hints[name], default=default), group)

    def call(**given: Any) -> Any:
        for name, group in groups.items():
            given[name] = group({one: given.pop(one) for one in group.__annotations__})
        return command(**given)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in parameters}
    about, _, rest = (inspect.getdoc(command) or "").partition("\nParameters\n---")
    examples = rest.partition("\nExamples\n--------\n")[2]
    epilog = f"\b\nExamples:\n{textwrap.indent(examples, '  ')}" if examples else None
    program.command(called or command.__name__, cls=GroupedCommand, help=about, epilog=epilog)(call)


def parse_channels(text: str, option: str) -> tuple[int | str, ...]:
    """Read --channels: numbers and names, separated by commas."""
    words = [word.strip() for word in text.split(",")]
    return tuple(int(word) if word.isascii() and word.isdigit() else word for word in words)


def sizes(text: str, option: str) -> int | tuple[int, ...]:
    """Read "64", "48x64" or "48,64" as an int or a tuple of ints."""
    parts = text.lower().replace("x", ",").replace("×", ",").split(",")
    try:
        values = tuple(int(part) for part in parts)
    except ValueError:
        raise UsageError(
            f"{option} must be one or more whole numbers such as 32 or 32x24. Got {text!r}."
        ) from None
    return values[0] if len(values) == 1 else values


def size(text: str, option: str) -> Any:
    """Read --size: "original", or sizes."""
    return text if text == "original" else sizes(text, option)


def parse_ranks(text: str, option: str) -> Any:
    """Read --ranks: "12", "12x12", or a share of the energy such as "0.95"."""
    with suppress(ValueError):
        if 0 < float(text) < 1:
            return float(text)
    return sizes(text, option)


class Common:
    """Arguments and options of several commands, described once.

    Attributes
    ----------
    source : INPUT
        A folder of images, videos, NIfTI or .npy files; a .npy, .npz, .mat, HDF5, Zarr, idx, TIFF,
        NIfTI or video file; a .csv or .parquet table of paths or pixels; or a dataset by name, see
        'tuckermix datasets'.
    result : RESULT
        A folder that 'tuckermix cluster' wrote.
    force
        Replace results that are there already.
    as_json
        Write the result as JSON.
    quiet
        Write errors only to stderr.
    """


reads, writes = within("Reading"), within("Output")
"""Options about INPUT, and about the results."""

Argument = Annotated[Path, typer.Argument(show_default=False)]
Input = Annotated[str, typer.Argument(show_default=False)]
Out = Annotated[Path | None, typer.Option("--out", "-o")]
Force = Annotated[bool, typer.Option("--force")]
AsJson = Annotated[bool, writes("--json")]
Quiet = Annotated[bool, writes("--quiet", "-q")]


class Reading(Group):
    """How INPUT is read: what `tuckermix.datasets.read` takes.

    Attributes
    ----------
    key : NAME
        The array of samples in INPUT.
    sample_axis
        The axis of the samples.
    sample_shape : SHAPE
        Unfold flat samples, e.g. 32x32.
    size : SIZE
        Bring pictures to this size, e.g. 64 or 48x64, or leave them: original. By default the
        longest side has at most 128 pixels.
    fit
        Pictures of other proportions: crop (the default), pad or stretch.
    grey
        Make all images grey, or all colour.
    frames
        Frames to take of each video, evenly spaced.
    channels : LIST
        Channels to keep, by number or name, e.g. 0,2 or DAPI.
    axes : LETTERS
        What the axes of a stored array mean: N samples, T time, Z depth, Y height, X width, C
        channels; e.g. NTYX.
    drop : COLUMNS
        Columns of a table to leave out, e.g. id,day.
    on_error
        At a file of a folder that cannot be read: skip it and list it, or stop.
    """

    panel = "Reading"
    key: str | None
    sample_axis: int | None
    sample_shape: Annotated[str | None, reads(callback=sizes)]
    size: Annotated[str | None, reads(callback=size)]
    fit: Annotated[str | None, reads(words=FITS, strict=True)]
    grey: Annotated[bool | None, reads("--grey/--colour")]
    frames: int | None
    channels: Annotated[str | None, reads(callback=parse_channels)]
    axes: str | None
    drop: str | None
    on_error: Annotated[str, reads(words=ON_ERROR, strict=True)] = "skip"


class Elsewhere(Group):
    """Files of networks and of vectors that the user has already.

    Attributes
    ----------
    network : FILE
        An ONNX file: a network of your own in place of that of tuckermix[photos].
    embeddings : FILE
        Vectors or maps of the samples, computed elsewhere: a table or an array, rows by name or in
        the order of INPUT. One more view.
    """

    panel = "Reading"
    network: Annotated[Path | None, within("The model")()]
    embeddings: Path | None


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


class GroupedCommand(TyperCommand):
    """Help with a section for each group of options, in plain words.

    Typer draws groups as boxes, which take a third of the screen.
    """

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line, arguments without decoration."""
        pieces = super().collect_usage_pieces(ctx)
        return [piece.replace("{", "").replace("}", "") for piece in pieces]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and options by their groups, in the order of their declaration."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            usual = "Arguments" if parameter.param_type_name == "argument" else "Options"
            if record is not None:
                group = getattr(parameter, "rich_help_panel", None) or usual
                groups.setdefault(group, []).append(plain(record))
        for group, records in groups.items():
            with formatter.section(group):
                formatter.write_dl(records)
