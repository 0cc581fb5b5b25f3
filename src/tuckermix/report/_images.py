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
from tuckermix.plots.pictures import montage, value_range, views

FILMS = ("video", "volume")
"""Kinds of samples that the page can go through, frame by frame or slice by slice."""


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
    film_share : float
        The share for the frames of videos and the slices of volumes.
    first_sides, other_sides, film_sides : tuple of int
        The least and the largest longest side of the first pictures, of the others and of a frame,
        in pixels.
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
    quality, sheet_quality : int
        Of WebP: no difference shows at the size of a screen, and less does on the sheet.
    frames : int
        Frames of a video that the page can play, and slices of a volume.
    tiny : int
        Pictures up to this side keep each pixel.
    """

    picture_bytes: int = 3_900_000
    first_share: float = 0.45
    film_share: float = 0.5
    first_sides: tuple[int, int] = (160, 420)
    other_sides: tuple[int, int] = (96, 260)
    film_sides: tuple[int, int] = (64, 260)
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
    sheet_quality: int = 70
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
        self.files = {at: path for at, path in enumerate(files) if path and self.still}
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
            Whether all frames or slices lie in one row, as the player needs them.
        """
        paths = [self.files[at] for at in indices if at in self.files]
        opened = small_pictures(paths, side, self.sandbox)
        frames = PageSettings.current().frames if whole else 6
        for part in blocks(len(indices), max(CURVE_BYTES, 8 * int(np.prod(self.shown.shape[1:])))):
            chosen = np.asarray(indices[part]).tolist()
            found: dict[int, Any] = dict.fromkeys(chosen)
            found |= {at: next(opened) for at in chosen if at in self.files}
            rest = [at for at, picture in found.items() if picture is None]
            if rest:
                several = self.views(np.array(rest), frames, whole)
                laid = (_laid_out(one, side, whole) for one in several)
                found |= dict(zip(rest, laid, strict=True))
            yield from found.values()

    def views(self, indices: np.ndarray, n_frames: int, whole: bool = False) -> np.ndarray:
        """Return all pictures of samples; with `whole` a volume is a row of slices."""
        kind = "video" if whole and self.kind == "volume" else self.kind
        rows = rows_of(self.shown, indices)
        return views(rows, kind, limits=self.limits, n_frames=n_frames)


def small_pictures(
    paths: Sequence[Path], side: int, sandbox: Sandbox | None = None
) -> Iterator[np.ndarray | None]:
    """Yield the pictures in files as bytes, upright, with no side longer than `side`.

    They are opened by a child process with limits; None stands for those that cannot be opened.
    """
    small: Any = {"kind": "picture", "do": "small", "side": side}
    sandbox = sandbox or Sandbox(default_limit())
    for answer in sandbox.each([question(path=path, **small) for path in paths]):
        yield None if isinstance(answer, Exception) else answer[1]


def _laid_out(pictures: np.ndarray, side: int, whole: bool) -> np.ndarray:
    """Lay the views of a sample side by side, as bytes; a player needs a gap of two pixels."""
    columns, gap = (len(pictures), 2) if whole else (min(len(pictures), 3), 1)
    small = [np.asarray(thumbnail(one, side)) for one in np.rint(255 * pictures).astype(np.uint8)]
    return montage(np.stack(small), columns, gap=gap, ground=128)


def encoded(picture: np.ndarray) -> tuple[bytes, str]:
    """Return a picture as a file and its media type."""
    from PIL import Image

    use = PageSettings.current()
    exact = is_tiny(picture) or (picture.ndim == 2 and picture.size <= 4 * use.tiny**2)
    return _as_file(Image.fromarray(picture), exact, use.quality)


def _as_file(image: Any, exact: bool, quality: int) -> tuple[bytes, str]:
    """Return an image as a file and its media type: PNG where each pixel counts, or WebP."""
    stream = io.BytesIO()
    how = {"optimize": True} if exact else {"quality": quality, "method": 2}
    kind = "png" if exact else "webp"
    image.save(stream, kind, **how)
    return stream.getvalue(), f"image/{kind}"


def in_address(content: bytes, kind: str) -> str:
    """Return an address that holds a file."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def address(picture: np.ndarray) -> str:
    """Return a picture as an address that holds it."""
    return in_address(*encoded(picture))


def fitting_side(
    pictures: Pictures, indices: Sequence[int], room: int, sides: Any, whole: bool = False
) -> int:
    """Return the longest side at which pictures of these samples take `room` bytes."""
    low, high = sides
    some = [indices[place] for place in even_subsample(len(indices), 12)]
    mean = np.mean([len(address(picture)) for picture in pictures.drawn(some, high, whole)])
    return int(np.clip(high * math.sqrt(room / (mean * len(indices))), low, high))


CURVE_BYTES = 2**18
"""The bytes that drawing a curve takes, of however few numbers."""


def is_tiny(picture: np.ndarray) -> bool:
    """Tell whether each pixel of a picture counts."""
    return max(picture.shape[:2]) <= PageSettings.current().tiny


def thumbnail(picture: np.ndarray, side: int) -> Any:
    """Return a picture as an image with no side longer than `side`."""
    from PIL import Image

    image = Image.fromarray(picture)
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
        exact = side <= use.tiny / 2  # then sixteen greys or 64 colours do
        file = sheet.quantize(64 if colour else 16) if exact else sheet
        content, kind = _as_file(file, exact, use.sheet_quality)
        if len(content) <= use.sheet_bytes or side <= 8:
            break
        side = max(8, int(0.95 * side * math.sqrt(use.sheet_bytes / len(content))))
    text = in_address(content, kind)
    return Sheet(text, (width, height), columns, rows, [image.size for image in images])
