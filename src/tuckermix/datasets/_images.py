"""Images: folders of them, and multi-page TIFF files."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._optional import require
from tuckermix._reading import Refusal, check_fits, open_regular
from tuckermix.datasets._axes import WORDS, arrange, chosen_axes, kind_of, sample_letter
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._options import Options
from tuckermix.datasets._pixels import match, resize
from tuckermix.datasets._tiff import is_tiff, read_pages

FORMATS = ("PNG", "JPEG", "BMP", "PPM", "GIF", "WEBP")
"""Formats that Pillow may use; TIFF is read here. Left to itself it also tries some that start
other programs, such as Ghostscript for PostScript."""

TIFF_SUFFIXES = frozenset({".tif", ".tiff"})
"""File names of TIFF."""

IMAGE_SUFFIXES = TIFF_SUFFIXES | frozenset(
    {".png", ".jpg", ".jpeg", ".bmp", ".pgm", ".ppm", ".pbm", ".pnm", ".gif", ".webp"}
)
"""File names of images."""

MAX_CHANNELS = 4
"""Values that a pixel can have in the images read here: three colours and opacity."""

COPIES = 3
"""Copies of an image in memory while it is read: decoded by Pillow, handed over, turned upright."""

HEAD_BYTES = 30
"""First bytes by which formats are told, and WebP tells its size."""


def read_tiff(path: Path, options: Options) -> Dataset:
    """Read a TIFF file whose pages are the samples."""
    X, axes, colour, names = _stack(path, options)
    first = sample_letter(axes, X.shape)
    X, axes = arrange(X, axes, first, options.channels, names)
    fitted = [_fitted(page, axes[1:], colour, options) for page in X]
    X, axes = np.stack([page for page, _ in fitted]), first + fitted[0][1]
    notes = []
    if len(axes) > 3 and first in "TZC" and options.axes is None:
        shape = " × ".join(map(str, X.shape[1:]))
        notes.append(
            f"Samples are the {X.shape[0]} entries along {first} ({WORDS[first]}), each of shape "
            f"{shape}: set axes to say otherwise, with N for the samples."
        )
    extra = {"notes": notes, "channels": names, "kind": kind_of(axes[1:], X.shape[1:])}
    return Dataset(X=X, name=path.name, extra=extra)


def read_image(path: Path, options: Options) -> tuple[np.ndarray, str]:
    """Read one image: (height, width), colours in a last axis of 3, pages of a volume first.

    Returns
    -------
    image : array
        The image.
    kind : str
        How it is drawn.
    """
    with open_regular(path) as stream:
        head = stream.read(HEAD_BYTES)
    if is_tiff(head):
        image, axes, colour, names = _stack(path, options)
    else:
        image, names = _pillow(path, head, options), []
        axes, colour = ("YXC", True) if image.ndim == 3 else ("YX", False)
        if options.axes not in (None, axes):
            raise Refusal(
                f"its axes are {axes}, and axes={options.axes!r} was asked for",
                "Leave axes out: they concern stacks of pages and stored arrays",
            )
    image, axes = arrange(image, axes, None, options.channels, names)
    image, axes = _fitted(image, axes, colour, options)
    return image, kind_of(axes, image.shape)


def _stack(path: Path, options: Options) -> tuple[np.ndarray, str, bool, list[str]]:
    """Read the pages of a TIFF file with their axes, those of the file or those asked for."""
    stack = read_pages(path, options.max_bytes)
    axes = chosen_axes(options.axes, stack.axes, stack.X.shape)
    return stack.X, axes, stack.colour, stack.channels


def _fitted(
    sample: np.ndarray, axes: str, colour: bool, options: Options
) -> tuple[np.ndarray, str]:
    """Give a sample the colours and the size asked for, plane by plane; return it with its axes."""
    plane_axes = "YXC" if axes.endswith("YXC") else "YX"
    if options.grey is None and options.size is None:
        return np.ascontiguousarray(sample), axes
    if not axes.endswith(plane_axes):
        raise Refusal(f"its axes {axes} do not end in height and width", "Leave out size and grey")
    grey = options.grey if colour or len(plane_axes) == 2 else None
    planes = sample.reshape(-1, *sample.shape[len(axes) - len(plane_axes) :])
    done = [resize(match(plane, grey), options.size) for plane in planes]
    before = len(axes) - len(plane_axes)
    shape = (*sample.shape[:before], *done[0].shape)
    return np.stack(done).reshape(shape), axes[:before] + "YXC"[: done[0].ndim]


def _pillow(path: Path, head: bytes, options: Options) -> np.ndarray:
    Image = require("PIL.Image", "Reading images", "io", package="pillow")
    from PIL import ImageOps

    with open_regular(path) as stream, warnings.catch_warnings():
        # Pillow warns of images that are merely large; the limit here is on their memory.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        length = stream.seek(0, os.SEEK_END)
        stream.seek(0)
        check_fits("the file itself", length, options.max_bytes)
        _check_pixels(_webp_size(head), options)
        try:
            image = Image.open(stream, formats=FORMATS)
        except Image.DecompressionBombError as error:
            raise Refusal(
                f"it has more than {2 * (Image.MAX_IMAGE_PIXELS or 0)} pixels, where Pillow stops",
                "Make it smaller, or raise PIL.Image.MAX_IMAGE_PIXELS if you trust the file",
            ) from error
        except Image.UnidentifiedImageError as error:
            raise Refusal(
                "it is not an image, or of a kind that is not read here",
                "Remove it from the folder, or convert it to PNG",
            ) from error
        _check_pixels(image.size, options)
        n_frames = getattr(image, "n_frames", 1)
        if n_frames > 1:
            raise Refusal(
                f"it is an animation of {n_frames} frames",
                "Convert it to a video file, or keep one frame",
            )
        ImageOps.exif_transpose(image, in_place=True)
        return _as_array(image)


def _webp_size(head: bytes) -> tuple[int, int]:
    """Read the size of a WebP image, for which Pillow takes memory as soon as it opens one."""
    if head[:4] != b"RIFF" or head[8:12] != b"WEBP":
        return (0, 0)
    if head[12:16] == b"VP8X":
        width, height = (int.from_bytes(head[i : i + 3], "little") + 1 for i in (24, 27))
    elif head[12:16] == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    else:
        width, height = (int.from_bytes(head[i : i + 2], "little") & 0x3FFF for i in (26, 28))
    return width, height


def _as_array(image: Any) -> np.ndarray:
    """Return a Pillow image as an array: grey without, colour with a last axis of 3."""
    if image.mode in ("1", "LA", "La"):
        image = image.convert("L")
    elif image.mode in ("P", "PA"):
        image = image.convert("RGB")
        colours = np.asarray(image)
        if (colours == colours[..., :1]).all():
            image = image.convert("L")  # a palette of greys
    elif image.mode not in ("L", "RGB", "I", "F") and not image.mode.startswith("I;16"):
        image = image.convert("RGB")
    return np.array(image)


def _check_pixels(size: tuple[int, int], options: Options) -> None:
    """Refuse an image whose declared size passes the limit, before it is unpacked."""
    declared = size[0] * size[1] * MAX_CHANNELS * COPIES
    check_fits(f"its {size[0]} x {size[1]} pixels", declared, options.max_bytes)
