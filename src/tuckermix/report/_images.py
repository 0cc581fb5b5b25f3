"""Pictures of samples: from their files or from arrays, small enough for one page."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._array_api import blocks
from tuckermix._estimators import Settings
from tuckermix._machine import default_limit
from tuckermix._records import Record
from tuckermix._sandbox import Sandbox, question
from tuckermix.plots.fitted import even_subsample, rows_of
from tuckermix.plots.pictures import montage, resized, value_range, views


@dataclass(frozen=True)
class PageSettings(Settings):
    """How much a page holds, so that it opens at once and can be sent by mail.

    Attributes
    ----------
    picture_bytes : int
        The text of all pictures. With the sheet and the names a page of a thousand photographs
        stays below 6 MB.
    first_share : float
        The share of these bytes for the pictures that people see first, which are larger.
    first_sides, other_sides : tuple of int
        The least and the largest longest side of these pictures and of the others, in pixels.
    sheet_bytes, sheet_pixels, sheet_side : int
        The sheet of thumbnails for the map: bytes, pixels, and the longest side of one.
    originals : int
        Files that are opened again for their pictures. Of more samples the others are shown as
        they were read.
    first_seen, first_doubtful : int
        Members of each cluster that people see first, and how many of them are doubtful.
    scale_samples : int
        Samples from which the values shown as black and white are taken.
    listed, placed : int
        The most samples that the page knows, and of which the map is laid out.
    levels : int
        The finest level of the slider, where the chosen one is not much finer.
    quality : int
        Of WebP: no difference shows at the size of a screen.
    frames : int
        Frames of a video that the page can play.
    tiny : int
        Pictures up to this side keep each pixel.
    """

    picture_bytes: int = 3_900_000
    first_share: float = 0.45
    first_sides: tuple[int, int] = (160, 420)
    other_sides: tuple[int, int] = (96, 260)
    sheet_bytes: int = 900_000
    sheet_pixels: int = 12_000_000
    sheet_side: int = 64
    originals: int = 2000
    first_seen: int = 14
    first_doubtful: int = 3
    scale_samples: int = 2000
    listed: int = 100_000
    placed: int = 10_000
    levels: int = 40
    quality: int = 78
    frames: int = 16
    tiny: int = 48


@dataclass(frozen=True)
class Sheet(Record):
    """Many small pictures on one large one, and the size of each within its tile."""

    address: str
    tile: tuple[int, int]  # width and height
    columns: int
    rows: int
    sizes: list[tuple[int, int]]


class Pictures:
    """Where the pictures of samples come from: their files, or what was read of them.

    Files are opened by the child process with limits. What comes back is pixels, so that no page
    carries the place where a photograph was taken.

    Parameters
    ----------
    shown : array of shape (n_samples, d_1, ...)
        The samples as they were read.
    kind : str
        How a sample is drawn, one of the kinds of `picture_kind` other than "auto".
    files : sequence of (Path or None), default=()
        The picture file of each sample; none of them is opened for samples of several views.
    """

    def __init__(self, shown: Any, kind: str, files: Sequence[Path | None] = ()) -> None:
        use = PageSettings.current()
        self.shown, self.kind = shown, kind
        self.still = kind in ("image", "colour")
        some = rows_of(shown, even_subsample(shown.shape[0], use.scale_samples))
        self.limits = value_range(some)
        self.files = list(files) if self.still else []
        self.sandbox = Sandbox(default_limit())

    def drawn(self, indices: Sequence[int], side: int, whole: bool = False) -> Iterator[np.ndarray]:
        """Yield pictures as bytes, of shape (h, w) or (h, w, 3).

        Parameters
        ----------
        indices : sequence of int
            The samples.
        side : int
            The longest side of a picture, of each view where a sample has several.
        whole : bool, default=False
            Whether the views lie in one row, as the player of a video needs them.
        """
        named = [index for index in indices if index < len(self.files) and self.files[index]]
        small = {"kind": "picture", "do": "small", "side": side}
        asked = [question(path=self.files[index], **small) for index in named]  # type: ignore
        answers = zip(named, self.sandbox.each(asked), strict=True)
        for part in blocks(len(indices), 8 * int(np.prod(self.shown.shape[1:]))):
            chosen = np.asarray(indices[part])
            opened: dict[int, Any] = {}
            for index in chosen.tolist():
                if index < len(self.files) and self.files[index]:
                    _, answer = next(answers)
                    if not isinstance(answer, Exception):
                        opened[index] = answer[1]
            rest = [index for index in chosen.tolist() if index not in opened]
            frames = PageSettings.current().frames if whole else 6
            several = (
                views(
                    rows_of(self.shown, np.array(rest)),
                    self.kind,
                    limits=self.limits,
                    n_frames=frames,
                )
                if rest
                else ()
            )
            opened |= {
                index: _laid_out(one, side, whole) for index, one in zip(rest, several, strict=True)
            }
            for index in chosen.tolist():
                yield opened[index]


def _laid_out(pictures: np.ndarray, side: int, whole: bool) -> np.ndarray:
    """Lay the views of a sample side by side, as bytes; a player needs a gap of two pixels."""
    columns, gap = (len(pictures), 2) if whole else (min(len(pictures), 3), 1)
    sheet = montage(resized(pictures, side), columns, gap=gap, ground=0.5)
    return np.rint(255 * np.clip(sheet, 0, 1)).astype(np.uint8)


def encoded(picture: np.ndarray) -> tuple[bytes, str]:
    """Return a picture as a file and its media type: PNG where each pixel counts, or WebP."""
    from PIL import Image

    stream = io.BytesIO()
    image = Image.fromarray(picture)
    if is_tiny(picture):
        image.save(stream, "PNG", optimize=True)
        return stream.getvalue(), "image/png"
    image.save(stream, "WEBP", quality=PageSettings.current().quality, method=2)
    return stream.getvalue(), "image/webp"


def address(picture: np.ndarray) -> str:
    """Return a picture as an address that holds it."""
    content, kind = encoded(picture)
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def fitting_side(pictures: Pictures, indices: Sequence[int], room: int, sides: Any) -> int:
    """Return the longest side at which pictures of these samples take `room` bytes."""
    low, high = sides
    some = [indices[place] for place in even_subsample(len(indices), 12)]
    mean = np.mean([len(address(picture)) for picture in pictures.drawn(some, high)])
    return int(np.clip(high * math.sqrt(room / (mean * len(indices))), low, high))


def is_tiny(picture: np.ndarray) -> bool:
    """Tell whether each pixel of a picture counts."""
    return max(picture.shape[:2]) <= PageSettings.current().tiny


def thumbnail(picture: np.ndarray) -> Any:
    """Return a picture as an image for the sheet."""
    from PIL import Image

    image, side = Image.fromarray(picture), PageSettings.current().sheet_side
    image.thumbnail((side, side))
    return image


def sprite_sheet(images: Sequence[Any]) -> Sheet:
    """Lay small images out on one sheet of limited bytes, each at the top left of its tile."""
    from PIL import Image

    use = PageSettings.current()
    side = int(np.clip(math.sqrt(use.sheet_pixels / len(images)), 8, use.sheet_side))
    side = min(side, max(max(image.size) for image in images))
    colour = any(image.mode == "RGB" for image in images)
    while True:
        for image in images:
            image.thumbnail((side, side))
        width = max(image.width for image in images)
        height = max(image.height for image in images)
        columns = math.ceil(math.sqrt(len(images) * height / width))
        rows = math.ceil(len(images) / columns)
        sheet = Image.new("RGB" if colour else "L", (columns * width, rows * height))
        for place, image in enumerate(images):
            sheet.paste(image, (place % columns * width, place // columns * height))
        content, kind = _encoded_sheet(sheet, side)
        if len(content) <= use.sheet_bytes or side <= 8:
            break
        side = max(8, int(0.95 * side * math.sqrt(use.sheet_bytes / len(content))))
    text = f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
    return Sheet(text, (width, height), columns, rows, [image.size for image in images])


def _encoded_sheet(sheet: Any, side: int) -> tuple[bytes, str]:
    """Encode a sheet; where each pixel of a picture counts, with sixteen greys or 64 colours."""
    stream = io.BytesIO()
    if side <= PageSettings.current().tiny / 2:
        sheet.quantize(16 if sheet.mode == "L" else 64).save(stream, "PNG", optimize=True)
        return stream.getvalue(), "image/png"
    sheet.save(stream, "WEBP", quality=70, method=2)
    return stream.getvalue(), "image/webp"
