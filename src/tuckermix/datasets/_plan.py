"""What is read of pictures and videos of all kinds, so that they make one array.

A first look at the headers of all files gives axes, sizes, colours and types. From these one plan
is made: options in which everything is decided. What was decided is told in notes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tuckermix._axes import ORDER
from tuckermix._estimators import Settings
from tuckermix._names import AS_STORED, CROP, PAD, SAMPLE
from tuckermix._records import Record
from tuckermix.datasets._options import Options

Places = int | list[int] | None
"""Which entries of the first axis are read: one, whose axis is dropped, several, or all."""


@dataclass(frozen=True)
class PlanSettings(Settings):
    """How much is read of pictures and videos.

    Attributes
    ----------
    side : int
        The longest side: the views that are compared see no finer details.
    frames : int
        Frames of a video, evenly spaced: more of them repeat each other.
    reach : int
        Frames of a video within which these lie, since all up to the last must be decoded.
    quick, small : int
        Numbers in the whole array beyond which the longest side is less, down to `small`: wavelets
        of a thousand photographs then take half a minute on one core.
    entries : int
        Numbers in the whole array at most: one gigabyte in single precision.
    share : int
        The array in single precision takes at most one part in `share` of `max_bytes`.
    """

    side: int = 128
    frames: int = 32
    reach: int = 2000
    quick: int = 2**24
    small: int = 64
    entries: int = 2**28
    share: int = 2


@dataclass(frozen=True)
class Look(Record):
    """The header of a file: its axes and their lengths, whether it is in colour, its type."""

    axes: str
    shape: tuple[int, ...]
    colour: bool
    type: str
    clear: bool = False  # whether parts of it may be transparent

    @classmethod
    def of(cls, said: Mapping[str, Any], options: Options) -> Look:
        """Take what the parser said, with its axes in the order and the channels asked for."""
        axes, shape = said["axes"], said["shape"]
        asked = options.axes if options.axes and len(options.axes) == len(axes) else axes
        sizes = dict(zip(asked, shape, strict=True))
        colour = bool(said["colour"])
        if options.channels is not None and "C" in sizes:
            colour, sizes["C"] = False, len(options.channels)
            if sizes["C"] == 1:
                del sizes["C"]
        letters = "".join(letter for letter in ORDER if letter in sizes)
        lengths = tuple(sizes[letter] for letter in letters)
        return cls(letters, lengths, colour, said["type"], bool(said.get("clear")))

    @property
    def before(self) -> str:
        """The axes before height and width, such as that of frames."""
        return self.axes.partition("YX")[0]

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.shape[len(self.before)], self.shape[len(self.before) + 1]

    @property
    def channels(self) -> int:
        """The number of channels that are no colours; 0 for pictures, grey or in colour."""
        return 0 if self.colour or not self.axes.endswith("C") else self.shape[-1]


@dataclass(frozen=True)
class Plan(Record):
    """What is read of each file: options, entries of the first axis, and files left out."""

    options: Options
    places: dict[str, Places] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def reading(self) -> dict[str, Any]:
        """The options by which other files are read in the same way."""
        names = ("size", "fit", "grey", "frames", "scale")
        found = {name: getattr(self.options, name) for name in names}
        return {name: value for name, value in found.items() if value is not None}


def plan(looks: Mapping[str, Look], options: Options) -> Plan:
    """Decide how files become samples of one shape.

    Parameters
    ----------
    looks : dict of str to Look
        What is known of each file, by its name.
    options : Options
        What the caller asked for: that is decided already.

    Returns
    -------
    plan : Plan
        With options in which nothing is open.
    """
    left_out: dict[str, str] = {}
    notes: list[str] = []
    deep = {name for name, look in looks.items() if look.before}
    few = options.frames is None and 2 * len(deep) <= len(looks)
    flat = not deep or few or options.frames == 1
    places: dict[str, Places] = {}
    if flat:
        for name in sorted(deep):
            if len(looks[name].before) > 1:
                left_out[name] = "it has frames of several pages, and most files are pictures"
            else:
                count = looks[name].shape[0]
                places[name] = 0 if looks[name].before == "T" else count // 2
        if places and len(deep) < len(looks):
            notes.append(
                f"{len(places)} of {len(looks)} files have several frames or pages: one picture "
                "was taken of each. To take videos or stacks only: frames=..."
            )
        if places:
            options = replace(options, frames=1)
    else:
        for name in looks.keys() - deep:
            left_out[name] = (
                "it is a single picture among videos or stacks: frames=1 takes pictures only"
            )
    kept = _alike(looks, left_out, "axes", lambda look: "" if flat else look.before)
    kept = _alike(kept, left_out, "channels", lambda look: look.channels)
    first = next(iter(kept.values()))
    if not flat and len(first.before) == 1:
        options = _frames(kept, options, places, notes)
    elif not flat:
        kept = _alike(kept, left_out, "pages", lambda look: look.shape[: len(look.before)])
    colours = sum(look.colour for look in kept.values())
    if options.grey is None and options.channels is None and not first.channels:
        options = replace(options, grey=not colours)
        if 0 < colours < len(kept):
            notes.append(
                f"{colours} of {len(kept)} files are in colour: the others got three equal "
                "colours. To change this: grey=True."
            )
    types = sorted({look.type for look in kept.values()})
    if options.scale is None:
        options = replace(options, scale=SAMPLE if len(types) > 1 else AS_STORED)
        if len(types) > 1:
            names = " and ".join(str(np.dtype(one)) for one in types)
            notes.append(
                f"Files have values of type {names}: each was scaled from its own darkest to its "
                "brightest value. To keep the values: scale='none'."
            )
    if any(look.clear for look in kept.values()):
        notes.append("Transparent parts, where there are any, are white.")
    others = math.prod(next(iter(kept.values())).shape[1 : len(first.before)]) or 1
    each = others * (1 if flat else options.frames or first.shape[0])
    each *= first.channels or (3 if colours and not options.grey else 1)
    options, note = sized([look.size for look in kept.values()], len(kept) * each, options)
    left_out = {name: left_out[name] for name in looks if name in left_out}
    return Plan(options, places, left_out, note + notes)


def _alike(
    looks: Mapping[str, Look], left_out: dict[str, str], what: str, key: Any
) -> dict[str, Look]:
    """Keep the files that are as most of them, and say why the others are left out."""
    looks = {name: look for name, look in looks.items() if name not in left_out}
    usual = Counter(map(key, looks.values())).most_common(1)[0][0]
    for name, look in looks.items():
        if key(look) != usual:
            left_out[name] = f"its {what} are {key(look)!r}, and those of most files are {usual!r}"
    return {name: look for name, look in looks.items() if name not in left_out}


def _frames(
    looks: Mapping[str, Look], options: Options, places: dict[str, Places], notes: list[str]
) -> Options:
    """Take one number of frames, or pages, of each file: all, or some that are evenly spaced."""
    use, letter = PlanSettings.current(), next(iter(looks.values())).before
    lengths = {name: look.shape[0] for name, look in looks.items()}
    low, high = min(lengths.values()), max(lengths.values())
    count = options.frames
    if count is None:
        usual = int(np.median(list(lengths.values())))
        count = min(usual, use.frames if letter == "T" else use.side)
        if (low, high) != (count, count):
            span = f"{low}" if low == high else f"{low} to {high}"
            what = "frames" if letter == "T" else "pages"
            notes.append(
                f"Files have {span} {what}: {count} of each were taken, evenly spaced. To change "
                "this: frames=..."
            )
    for name, length in lengths.items():
        if length != count:
            reach = min(length, use.reach)
            places[name] = np.rint(np.linspace(0, reach - 1, count)).astype(int).tolist()
    return replace(options, frames=count)


def sized(
    sizes: Sequence[tuple[int, int]], planes: int, options: Options
) -> tuple[Options, list[str]]:
    """Decide to which size pictures are brought.

    Their proportions are the geometric mean of those of all pictures, so that as little as possible
    is cropped.

    Parameters
    ----------
    sizes : sequence of (int, int)
        Height and width of the pictures.
    planes : int
        How many planes of this size the array will have.
    options : Options
        What was asked for.

    Returns
    -------
    options : Options
        With a size, unless the original one was asked for.
    notes : list of str
        What was decided.
    """
    if options.size is not None or options.whole:
        return options, []
    use, values = PlanSettings.current(), np.array(sizes, dtype=float)
    least, most = min(sizes), max(sizes)
    ratio = math.exp(np.log(values[:, 0] / values[:, 1]).mean())
    longest = min(use.side, float(np.median(values.max(axis=1))))
    usual, narrow = longest, min(ratio, 1 / ratio)
    most_entries = min(use.entries, options.max_bytes / (4 * use.share))
    for entries, floor in ((use.quick, use.small), (most_entries, 1)):
        longest = min(longest, max(floor, math.sqrt(entries / planes / narrow)))
    height = longest * min(1.0, ratio)
    size = (max(1, round(height)), max(1, round(height / ratio)))
    if size == least == most:
        return replace(options, size=size), []
    span = _times(least) if least == most else f"{_times(least)} to {_times(most)}"
    words = {CROP: "scaled and cropped", PAD: "scaled and padded"}
    done = "scaled" if least == most else words.get(options.fit, "stretched")
    why = ", which saves memory and time" if longest < usual else ""
    other = "size='original'" if least == most else "fit='pad'"
    note = (
        f"Pictures of {span} were {done} to {_times(size)}{why}. To change this: "
        f"size=(height, width), {other}."
    )
    return replace(options, size=size), [note]


def _times(size: Sequence[int]) -> str:
    return " × ".join(map(str, size))
