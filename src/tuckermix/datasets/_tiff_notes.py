"""What programs note in a TIFF file about its pages: OME, ImageJ and tifffile.

A TIFF file is a list of pages. Which of them are times, depths or channels stands in a text beside
the first one: OME writes XML, ImageJ lines of words, tifffile JSON. The text may come from a
stranger: XML with a document type, in which entities can be declared, is refused, and elements are
counted.
"""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from tuckermix._reading import Refusal
from tuckermix._records import Record

MAX_NOTE = 2**16
"""Characters of a note by ImageJ or tifffile; both write some hundred."""

MAX_ELEMENTS = 500_000
"""Elements of XML; microscopes write a few for each page."""

LEADING = "NTZ"
"""Letters for axes before height and width that nobody named; the last ones are taken."""

DIMENSIONS = "CZT"
"""Axes that OME and ImageJ know beside height and width."""


@dataclass(frozen=True)
class Noted(Record):
    """How the pages of a file are to be understood.

    Attributes
    ----------
    axes : str
        A letter for each axis before those of a page, the slowest first.
    sizes : tuple of int
        Their lengths.
    order : list of int or None
        Which page lies at each place, or None where they lie in their order.
    channels : list of str
        The names of the channels, where all have one.
    """

    axes: str
    sizes: tuple[int, ...]
    order: list[int] | None = None
    channels: list[str] = field(default_factory=list)


def images_noted(description: str) -> int | None:
    """Return how many images ImageJ notes, or None; beyond four gigabytes it writes one page."""
    return _imagej(description).get("images")


def noted(description: str, n_pages: int, n_axes: int, n_channels: int = 1) -> Noted:
    """Understand the pages of a file by its description.

    Parameters
    ----------
    description : str
        What its writer noted.
    n_pages : int
        The number of pages.
    n_axes : int
        The number of axes of a page.
    n_channels : int, default=1
        The values of a pixel.

    Returns
    -------
    noted : Noted
        What the description says, or one axis of pages where it says nothing that fits.
    """
    if "<OME" in description[:MAX_NOTE] and "http://www.openmicroscopy.org" in description:
        return _ome(description, n_pages, n_channels)
    if description.startswith("ImageJ="):
        said = _imagej(description)
        sizes = {"T": said.get("frames", 1), "Z": said.get("slices", 1)}
        sizes["C"] = said.get("channels", 1)
        if math.prod(sizes.values()) == n_pages and (n_channels == 1 or sizes["C"] == 1):
            return _without_ones(sizes)
    if description.startswith("{"):
        try:
            found = json.loads(description[:MAX_NOTE])["shape"]
            leading = tuple(found[: len(found) - n_axes])
            plain = all(type(size) is int for size in leading) and len(leading) <= len(LEADING)
            if plain and math.prod(leading) == n_pages:
                return Noted(LEADING[len(LEADING) - len(leading) :], leading)
        except (ValueError, KeyError, TypeError, RecursionError):
            pass  # a note of somebody else
    return Noted(LEADING[-1], (n_pages,)) if n_pages > 1 else Noted("", ())


def _without_ones(sizes: dict[str, int], **more: Any) -> Noted:
    """Leave out axes of a single entry."""
    kept = {letter: size for letter, size in sizes.items() if size > 1}
    return Noted("".join(kept), tuple(kept.values()), **more)


def _imagej(description: str) -> dict[str, int]:
    """Read the lines of ImageJ that give a number."""
    found: dict[str, int] = {}
    if description.startswith("ImageJ="):
        for line in description[:MAX_NOTE].splitlines():
            name, _, value = line.partition("=")
            if value.isascii() and value.isdigit() and len(value) < 10:
                found.setdefault(name, int(value))
    return found


def _ome(description: str, n_pages: int, n_channels: int) -> Noted:
    """Read the order of the pages from OME-XML."""
    images: list[dict[str, str]] = []
    channels: list[str] = []
    planes: list[dict[str, str]] = []
    numbers = itertools.count(1)

    def refuse(*arguments: Any) -> None:
        raise ValueError("its XML declares a document type, which OME has none of")

    def start(tag: str, attributes: dict[str, str]) -> None:
        if next(numbers) > MAX_ELEMENTS:
            raise ValueError(f"its XML has more than {MAX_ELEMENTS} elements")
        name = tag.rpartition(":")[2]
        if name == "Pixels":
            images.append(attributes)
        elif len(images) == 1 and name == "Channel":
            channels.append(attributes.get("Name", ""))
        elif len(images) == 1 and name == "TiffData":
            planes.append(attributes)

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = start
    try:
        parser.Parse(description, True)
    except expat.ExpatError as error:
        raise ValueError(f"its OME-XML cannot be read: {error}") from error
    if not images:
        raise ValueError("its OME-XML describes no pixels")
    pixels = images[0]
    sizes = {letter: _number(pixels, f"Size{letter}", 1) for letter in DIMENSIONS}
    if sizes["C"] % n_channels:
        raise ValueError(f"{sizes['C']} channels do not come {n_channels} in a page")
    in_pages = {**sizes, "C": sizes["C"] // n_channels}
    order = pixels.get("DimensionOrder", "XYCZT")
    if sorted(order) != sorted("XYCZT") or order[:2] != "XY":
        raise ValueError(f"the order {order!r} of its axes is unknown")
    if math.prod(in_pages.values()) != n_pages or len(images) > 1:
        several = f"{len(images)} images" if len(images) > 1 else "one image"
        pages = " x ".join(f"{in_pages[letter]} {letter}" for letter in order[2:])
        raise Refusal(
            f"its OME-XML describes {several}, the first of {pages} pages, and it holds {n_pages}",
            "Save it as one file with one image, which Bio-Formats' bfconvert can",
        )
    if n_channels > 1 and in_pages["C"] > 1:
        raise ValueError("its channels lie both in pages and in pixels")
    slow = {letter: in_pages[letter] for letter in reversed(order[2:])}
    named = channels if all(channels) else []
    places = _places(planes, slow, n_pages)
    return _without_ones(slow, order=places, channels=named[: sizes["C"]])


def _number(attributes: dict[str, str], name: str, default: int) -> int:
    text = attributes.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ValueError(f"its OME-XML says {name}={text[:20]!r}")
    return int(text)


def _places(planes: list[dict[str, str]], slow: dict[str, int], n_pages: int) -> list[int] | None:
    """Say which page lies at each place of the stack, or None where they lie in their order."""
    found: dict[int, int] = {}
    for plane in planes:
        page = _number(plane, "IFD", 0)
        place = 0
        for letter, size in slow.items():
            first = _number(plane, f"First{letter}", 0)
            if first >= size:
                raise ValueError(f"its OME-XML places a page at {letter}={first} of {size}")
            place = place * size + first
        count = _number(plane, "PlaneCount", 1 if "IFD" in plane else n_pages)
        if count > n_pages:
            raise ValueError(f"its OME-XML places {count} pages, and it holds {n_pages}")
        for step in range(count):
            found[place + step] = page + step
        if len(found) > n_pages:
            break
    if not found:
        return None
    order = [found.get(place, -1) for place in range(n_pages)]
    if sorted(order) != list(range(n_pages)):
        raise ValueError("its OME-XML does not give each page one place")
    return None if order == list(range(n_pages)) else order
