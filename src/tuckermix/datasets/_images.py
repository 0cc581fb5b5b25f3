"""Images: folders of them, and multi-page TIFF files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._reading import needs, open_regular, read_error
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._folder import stack_files
from tuckermix.datasets._options import Options
from tuckermix.datasets._pixels import match, resize

__all__ = ["IMAGE_SUFFIXES", "TIFF_SUFFIXES", "read_image", "read_image_folder", "read_tiff"]

FORMATS = ("PNG", "JPEG", "BMP", "PPM", "GIF", "WEBP", "TIFF")
"""Formats that Pillow may use. Left to itself it also tries some that start other programs, such as
Ghostscript for PostScript."""

TIFF_SUFFIXES = frozenset({".tif", ".tiff"})
"""File names of TIFF."""

IMAGE_SUFFIXES = TIFF_SUFFIXES | frozenset(
    {".png", ".jpg", ".jpeg", ".bmp", ".pgm", ".ppm", ".pbm", ".pnm", ".gif", ".webp"}
)
"""File names of images."""

MAX_CHANNELS = 4
"""Values that a pixel can have in the images read here: three colours and opacity."""


def read_image_folder(path: Path, names: list[str], options: Options) -> Dataset:
    """Read a folder of images, one sample each; subfolders are classes."""
    return stack_files(path, names, read_image, options, "images")


def read_tiff(path: Path, options: Options) -> Dataset:
    """Read a TIFF file whose pages are the samples."""
    X, colour = _tiff_pages(path, options)
    if X.ndim - colour < 3:
        raise read_error(
            path,
            f"it holds one image of shape {X.shape}, and samples are many",
            "Name the folder in which the images lie",
        )
    pages = [resize(match(path, page, options.grey), options.size) for page in X]
    return Dataset(X=np.stack(pages), name=path.name)


def read_image(path: Path, options: Options) -> np.ndarray:
    """Read one image: (height, width), colours in a last axis of 3, pages of a volume first."""
    if path.suffix.lower() in TIFF_SUFFIXES:
        image, colour = _tiff_pages(path, options)
        if image.ndim - colour == 3:  # a volume
            pages = [resize(match(path, page, options.grey), options.size) for page in image]
            return np.stack(pages)
    else:
        image = _pillow(path, options)
    if image.ndim not in (2, 3):
        raise read_error(
            path,
            f"it has shape {image.shape}, and an image has two axes or three",
            "Convert it to a plain image",
        )
    return resize(match(path, image, options.grey), options.size)


def _pillow(path: Path, options: Options) -> np.ndarray:
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError as error:
        raise needs("Reading images", "pillow", "io") from error

    with open_regular(path) as stream:
        try:
            image = Image.open(stream, formats=FORMATS)
        except UnidentifiedImageError as error:
            raise read_error(
                path,
                "it is not an image, or of a kind that is not read here",
                "Remove it from the folder, or convert it to PNG",
            ) from error
        _check_pixels(path, image.size, options)
        n_frames = getattr(image, "n_frames", 1)
        if n_frames > 1:
            raise read_error(
                path,
                f"it is an animation of {n_frames} frames",
                "Convert it to a video file, or keep one frame",
            )
        return _as_array(ImageOps.exif_transpose(image))


def _as_array(image: Any) -> np.ndarray:
    """Return a Pillow image as an array: grey without, colour with a last axis of 3."""
    if image.mode in ("1", "LA", "La"):
        image = image.convert("L")
    elif image.mode in ("P", "PA"):
        image = image.convert("RGB")
        colours = np.asarray(image)
        if np.array_equal(colours[..., 0], colours[..., 1]) and np.array_equal(
            colours[..., 0], colours[..., 2]
        ):
            image = image.convert("L")  # a palette of greys
    elif image.mode not in ("L", "RGB", "I", "F") and not image.mode.startswith("I;16"):
        image = image.convert("RGB")
    return np.array(image)


def _check_pixels(path: Path, size: tuple[int, int], options: Options) -> None:
    """Refuse an image whose declared size passes the limit, before it is unpacked."""
    declared = size[0] * size[1] * MAX_CHANNELS
    if declared > options.max_bytes:
        raise read_error(
            path,
            f"its {size[0]} x {size[1]} pixels would take {declared} bytes in memory, and the "
            f"limit is max_bytes={options.max_bytes}",
            "If you trust the file, raise max_bytes",
        )


def _tiff_pages(path: Path, options: Options) -> tuple[np.ndarray, bool]:
    """Read all pages of a TIFF file as one array, and tell whether its last axis holds colours."""
    try:
        import tifffile
    except ImportError as error:
        raise needs("Reading TIFF", "tifffile", "io") from error

    with open_regular(path), tifffile.TiffFile(os.fspath(path)) as file:
        series = file.series
        if not series:
            raise read_error(path, "it holds no pages", "Get the file anew")
        shapes = {(one.shape, one.dtype) for one in series}
        if len(shapes) > 1:
            raise read_error(
                path,
                f"its pages differ in size: {', '.join(sorted(str(s) for s, _ in shapes))}",
                "Save the pages as single images into a folder and pass size=(height, width)",
            )
        declared = sum(one.size * one.dtype.itemsize for one in series)
        if declared > options.max_bytes:
            raise read_error(
                path,
                f"its pages would take {declared} bytes in memory, and the limit is "
                f"max_bytes={options.max_bytes}",
                "If you trust the file, raise max_bytes",
            )
        if series[0].dtype.kind not in "buif":
            raise read_error(
                path, f"its pages have dtype {series[0].dtype}", "Save it with real grey values"
            )
        try:
            pages = [one.asarray() for one in series]
        except ValueError as error:
            # Some compressions need a package of codecs; Pillow knows the common ones by itself.
            if "imagecodecs" not in str(error):
                raise
            return _tiff_by_pillow(path)
        axes = series[0].axes
    X, colour = (pages[0] if len(pages) == 1 else np.stack(pages)), "S" in axes
    if colour:
        X = np.moveaxis(X, axes.index("S") - len(axes), -1)[..., :3]  # without opacity
    return X, colour


def _tiff_by_pillow(path: Path) -> tuple[np.ndarray, bool]:
    from PIL import Image, ImageSequence

    with Image.open(path, formats=("TIFF",)) as image:
        pages = [_as_array(page) for page in ImageSequence.Iterator(image)]
    return (pages[0] if len(pages) == 1 else np.stack(pages)), pages[0].ndim == 3
