"""Pictures of samples as PNG data addresses, small enough for ten thousand of them."""

from __future__ import annotations

import base64
import io
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuckermix._records import Record
from tuckermix.plots.pictures import montage, resized

GREY_LEVELS = 16
"""Four bits a pixel: shapes stay, and a file takes a third of eight bits."""

PALETTE_COLOURS = 64
"""The colours of a colour picture, chosen for it."""

CARD_SIDE = 64
"""The longest side of a picture on a card, in pixels of the picture."""

THUMB_SIDE = 28
"""The longest side of the pictures that the map shows."""

SMALLEST_SIDE = 8
"""Below this nothing can be recognised; the sheet may then exceed its budget."""

SHEET_BYTES = 2_400_000
"""The pictures of the map take no more than this: the file grows by a third when they are text."""

SHEET_COLUMNS = 100


@dataclass(frozen=True)
class Sheet(Record):
    """Many small pictures on one large one.

    Attributes
    ----------
    address : str
        The large picture as a data address.
    width, height : int
        The size of one small picture.
    columns, rows : int
        How many lie side by side and above each other.
    """

    address: str
    width: int
    height: int
    columns: int
    rows: int


def png(picture: np.ndarray) -> bytes:
    """Encode a picture with values in [0, 1], of shape (h, w) or (h, w, 3), with few colours."""
    from PIL import Image

    stream = io.BytesIO()
    if picture.ndim == 2:
        levels = np.rint(np.clip(picture, 0, 1) * (GREY_LEVELS - 1)).astype(np.uint8)
        image = Image.fromarray(levels, mode=None).convert("L")
        image = Image.frombytes("P", image.size, levels.tobytes())
        shades = np.rint(np.linspace(0, 255, GREY_LEVELS)).astype(int)
        image.putpalette(np.repeat(shades, 3).tolist())
        image.save(stream, "PNG", bits=4, optimize=True)
    else:
        levels = np.rint(np.clip(picture, 0, 1) * 255).astype(np.uint8)
        image = Image.fromarray(levels).quantize(PALETTE_COLOURS)
        image.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def data_address(content: bytes, kind: str = "image/png") -> str:
    """Return `content` as an address that holds it."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def picture_address(picture: np.ndarray) -> str:
    """Return one picture, shrunk to the size of a card, as a data address."""
    return data_address(png(resized(picture[None], CARD_SIDE)[0]))


def sprite_sheet(pictures: Any, budget: int = SHEET_BYTES) -> Sheet:
    """Lay pictures out on one sheet that takes no more than `budget` bytes.

    Parameters
    ----------
    pictures : array of shape (n, h, w) or (n, h, w, 3)
        The pictures, with values in [0, 1], no larger than `THUMB_SIDE`.
    budget : int, default=2400000
        The most bytes of the encoded sheet.

    Returns
    -------
    sheet : Sheet
        The sheet; the pictures are shrunk where the budget asks for it.
    """
    columns = min(SHEET_COLUMNS, len(pictures))
    side = min(THUMB_SIDE, max(pictures.shape[1:3]))
    while True:
        small = resized(pictures, side)
        content = png(montage(small, columns, gap=0))
        if len(content) <= budget or side <= SMALLEST_SIDE:
            break
        # Bytes grow a little slower than pixels; one below the estimate spares a third round.
        side = max(SMALLEST_SIDE, int(side * math.sqrt(budget / len(content))))
    height, width = small.shape[1:3]
    rows = math.ceil(len(pictures) / columns)
    return Sheet(data_address(content), width, height, columns, rows)
