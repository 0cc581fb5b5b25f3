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

CARD_SIDES = (48, 128)
"""The longest side of a picture on a card, in pixels of the picture: the least, and the most."""

CARD_BYTES = 2_000_000
"""Bytes of the pictures on all cards together; at half a byte per pixel the side follows."""

THUMB_SIDE = 96
"""The longest side of the pictures of the map and the list: enough to judge a picture by."""

SHEET_PIXELS = 16_000_000
"""The most pixels of a sheet: a phone holds that many, unpacked, and no more."""

PHOTO_SIDE = 48
"""From this side on a picture keeps its greys and colours; below, each pixel counts more."""

JPEG_QUALITY = 85
"""Where it shows no difference at the size of a thumbnail."""

FULL_QUALITY = 92
FULL_SIDE = 1024
"""The longest side of a picture in full: no screen shows much more of one."""

FULL_BYTES = 4_000_000
"""Bytes of all pictures in full on the page; others are left to their files."""

SMALLEST_SIDE = 8
"""Below this nothing can be recognised; the sheet may then exceed its budget."""

SHEET_BYTES = 2_400_000
"""The thumbnails take no more than this: the file grows by a third when they are text."""

SHEET_COLUMNS = 100
SHEET_VIEWS = 3
"""Views of a sample side by side on a card: the slices of a volume; a video has rows of them."""

FULL_GAP = 2
"""Pixels between the views of one sample, shown in full."""

BETWEEN = 0.5
"""The grey between views: it parts dark ones from dark ones, and bright from bright."""

PLAYED_FRAMES = 16
"""Frames of a video that the page can play: enough to see what moves, within the budget."""


@dataclass(frozen=True)
class Sheet(Record):
    """Many small pictures on one large one."""

    address: str  # the large picture as a data address
    width: int  # the size of one small picture
    height: int
    columns: int  # how many lie side by side and above each other
    rows: int


def png(picture: np.ndarray) -> bytes:
    """Encode a picture with values in [0, 1], of shape (h, w) or (h, w, 3), with few colours."""
    from PIL import Image

    stream = io.BytesIO()
    if picture.ndim == 2:
        levels = np.rint(np.clip(picture, 0, 1) * (GREY_LEVELS - 1)).astype(np.uint8)
        height, width = picture.shape
        image = Image.frombytes("P", (width, height), levels.tobytes())
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


def encoded(picture: np.ndarray, quality: int = JPEG_QUALITY) -> tuple[bytes, str]:
    """Encode one picture with all its greys or colours: a PNG, or a JPEG where that is shorter.

    Parameters
    ----------
    picture : array of shape (h, w) or (h, w, 3)
        Values in [0, 1].
    quality : int, default=85
        The quality of the JPEG.

    Returns
    -------
    content : bytes
        The file.
    kind : str
        Its media type.
    """
    from PIL import Image

    image = Image.fromarray(np.rint(np.clip(picture, 0, 1) * 255).astype(np.uint8))
    plain, lossy = io.BytesIO(), io.BytesIO()
    image.save(plain, "PNG")
    # Colours at full resolution: neighbours on a sheet must not run into each other.
    image.save(lossy, "JPEG", quality=quality, subsampling=0)
    if len(lossy.getvalue()) < len(plain.getvalue()):
        return lossy.getvalue(), "image/jpeg"
    return plain.getvalue(), "image/png"


def compact(picture: np.ndarray, side: int) -> tuple[bytes, str]:
    """Encode a picture, or a sheet of pictures of this side, in the way that suits its size."""
    return encoded(picture) if side >= PHOTO_SIDE else (png(picture), "image/png")


def full_address(pictures: np.ndarray) -> str:
    """Return the views of one sample, side by side and as large as they are, as a data address."""
    shown = resized(pictures, FULL_SIDE)
    return data_address(
        *encoded(montage(shown, len(shown), gap=FULL_GAP, ground=BETWEEN), FULL_QUALITY)
    )


def contact_sheet(pictures: np.ndarray, side: int = CARD_SIDES[1]) -> str:
    """Return the views of one sample, side by side in rows of `SHEET_VIEWS`, as a data address.

    Parameters
    ----------
    pictures : array of shape (n_views, h, w) or (n_views, h, w, 3)
        The frames of a video, the slices of a volume, or one picture.
    side : int, default=128
        The longest side of one of them in the result.

    Returns
    -------
    address : str
        The sheet.
    """
    small = resized(pictures, side)
    sheet = montage(small, min(len(small), SHEET_VIEWS), gap=1, ground=BETWEEN)
    return data_address(*compact(sheet, max(small.shape[1:3])))


def card_side(n: int) -> int:
    """Return the side of the pictures on cards so that `n` of them keep to `CARD_BYTES`."""
    return int(np.clip(math.sqrt(2 * CARD_BYTES / max(n, 1)), *CARD_SIDES))


def thumb_side(n: int) -> int:
    """Return the side of thumbnails so that `n` of them keep to `SHEET_PIXELS`."""
    return int(np.clip(math.sqrt(SHEET_PIXELS / max(n, 1)), SMALLEST_SIDE, THUMB_SIDE))


def sprite_sheet(pictures: Any, budget: int = SHEET_BYTES) -> Sheet:
    """Lay pictures out on one sheet that takes no more than `budget` bytes.

    Parameters
    ----------
    pictures : array of shape (n, h, w) or (n, h, w, 3)
        The pictures, with values in [0, 1].
    budget : int, default=2400000
        The most bytes of the encoded sheet.

    Returns
    -------
    sheet : Sheet
        The sheet; the pictures are shrunk where the budget asks for it.
    """
    columns = min(SHEET_COLUMNS, len(pictures))
    side = min(thumb_side(len(pictures)), max(pictures.shape[1:3]))
    while True:
        small = resized(pictures, side)
        content, kind = compact(montage(small, columns, gap=0), side)
        if len(content) <= budget or side <= SMALLEST_SIDE:
            break
        # Bytes grow a little slower than pixels; one below the estimate spares a third round.
        side = max(SMALLEST_SIDE, int(side * math.sqrt(budget / len(content))))
    height, width = small.shape[1:3]
    rows = math.ceil(len(pictures) / columns)
    return Sheet(data_address(content, kind), width, height, columns, rows)
