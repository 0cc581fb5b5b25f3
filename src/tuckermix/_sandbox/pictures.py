"""Images, stacks of pages and videos, as libraries read them in the child process."""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from tuckermix._axes import arrange, chosen_axes, kind_of
from tuckermix._optional import require
from tuckermix._pixels import fitted, match, resize
from tuckermix._reading import Refusal, check_fits, open_regular
from tuckermix._sandbox.arrays import Answers, Parser, Region, in_pieces, part

FORMATS = ("PNG", "JPEG", "BMP", "PPM", "GIF", "WEBP")
# Left to itself, Pillow also tries formats that start other programs, such as PostScript.
CONTAINERS = "avi,mov,matroska,webm,mpeg,mpegvideo,mpegts,ogg,m4v"
# FFmpeg also knows playlists, which name other files and hosts.
TIFF_STARTS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
MAX_CHANNELS = 4
COPIES = 3  # of an image: decoded, handed over, turned upright
MAX_PAGES = 65_536
LEADING = "NTZ"  # letters for axes of pages that nobody named; the last ones are taken
GREY_FORMATS = ("gray", "gray8", "gray10le", "gray12le", "gray16le", "monow", "monob")


class Picture(Parser):
    """One image of a folder: by Pillow, or by tifffile."""

    needs = ("PIL.Image", "Reading images", "io", "pillow")

    @classmethod
    def load(cls) -> None:
        super().load()
        cls.library.preinit()

    def _opened(self, stream: BinaryIO) -> Any:
        Image = self.library
        length = stream.seek(0, 2)
        stream.seek(0)
        check_fits("the file itself", length, self.limit)
        try:
            image = Image.open(stream, formats=FORMATS)
        except Image.DecompressionBombError as error:
            raise Refusal(
                f"it has more than {2 * (Image.MAX_IMAGE_PIXELS or 0)} pixels, where Pillow stops",
                "Make it smaller",
            ) from error
        except Image.UnidentifiedImageError as error:
            raise Refusal(
                "it is not an image, or of a kind that is not read here",
                "Remove it from the folder, or convert it to PNG",
            ) from error
        width, height = image.size
        declared = width * height * MAX_CHANNELS * COPIES
        check_fits(f"its {width} x {height} pixels", declared, self.limit)
        return image

    def answer_read(
        self,
        axes: str | None,
        channels: Sequence[int | str] | None,
        grey: bool | None,
        size: tuple[int, int] | None,
    ) -> Answers:
        """Read it: (height, width), colours in a last axis of 3, pages of a volume first."""
        with open_regular(self.path) as stream:
            if stream.read(4) in TIFF_STARTS:
                tiff = Tiff(self.path, self.limit)
                declared = math.prod(tiff.shape) * tiff.dtype.itemsize
                check_fits("its pages", declared, self.limit)
                image = tiff[tuple(slice(0, size) for size in tiff.shape)]
                found, colour, names = tiff.axes, tiff.colour, tiff.channels
            else:
                image, names = self._decoded(stream), []
                found, colour = ("YXC", True) if image.ndim == 3 else ("YX", False)
                if axes not in (None, found):
                    raise Refusal(
                        f"its axes are {found}, and axes={axes!r} was asked for",
                        "Leave axes out: they concern stacks of pages and stored arrays",
                    )
        image, letters = arrange(
            image, chosen_axes(axes, found, image.shape), None, channels, names
        )
        image, letters = fitted(image, letters, colour, grey, size)
        yield {"kind": kind_of(letters, image.shape)}, image

    def answer_small(self, side: int) -> Answers:
        """Read it for showing: upright, 8 bits, no side longer than `side`; the first of frames."""
        from PIL import Image, ImageOps

        with open_regular(self.path) as stream:
            if stream.read(4) in TIFF_STARTS:
                tiff = Tiff(self.path, self.limit)
                check_fits("its pages", math.prod(tiff.shape) * tiff.dtype.itemsize, self.limit)
                sizes = tiff.shape[: len(tiff.shape) - len(tiff.plane)]
                middle = [slice(n // 2, n // 2 + 1) for n in sizes]
                image = tiff[(*middle, *(slice(0, n) for n in tiff.plane))].reshape(tiff.plane)
                if image.ndim > 2 and not tiff.colour:
                    image = image[..., 0]
                image = Image.fromarray(_eight_bits(image))
            else:
                image = self._opened(stream)
                if image.mode not in ("L", "RGB"):
                    image = _plain(image)
            # A JPEG is decoded at about the size that is wanted, which takes a tenth of the time.
            image.thumbnail((side, side), reducing_gap=2.0)
            ImageOps.exif_transpose(image, in_place=True)
            yield {}, np.ascontiguousarray(image)

    def _decoded(self, stream: BinaryIO) -> np.ndarray:
        from PIL import ImageOps

        image = self._opened(stream)
        n_frames = getattr(image, "n_frames", 1)
        if n_frames > 1:
            raise Refusal(
                f"it is an animation of {n_frames} frames",
                "Convert it to a video file, or keep one frame",
            )
        ImageOps.exif_transpose(image, in_place=True)
        return _as_array(image)


def _plain(image: Any) -> Any:
    """Return a Pillow image of any mode with 8 bits, on white where it is transparent."""
    from PIL import Image

    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        plain = Image.fromarray(_eight_bits(np.asarray(image)))
    elif image.has_transparency_data:
        image = image.convert("RGBA")
        plain = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    else:
        return image.convert("L" if image.mode == "1" else "RGB")
    plain.getexif().update(image.getexif())
    return plain


def _eight_bits(values: np.ndarray) -> np.ndarray:
    """Return grey values or colours of any type as bytes, by their own range."""
    if values.dtype == np.uint8:
        return values
    low, high = np.percentile(values[np.isfinite(values)].astype(np.float64), [0.5, 99.5])
    shares = (values.astype(np.float64) - low) / (high - low if high > low else 1.0)
    return np.rint(255 * np.clip(np.nan_to_num(shares), 0, 1)).astype(np.uint8)


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
    return np.asarray(image)


class _Stream(io.BufferedReader):
    """A file of which tifffile sees neither name nor place: it opens no other files beside it."""

    def fileno(self) -> int:
        """Say that the stream has no descriptor."""
        raise OSError("a stream")


class Tiff(Parser):
    """A stack of pages by tifffile, which knows what OME, ImageJ and others note in it.

    Pages in compressions that tifffile leaves to other packages are decoded by Pillow.
    """

    needs = ("tifffile", "Reading TIFF", "io")

    def __init__(self, path: str, limit: int) -> None:
        tifffile = require(*self.needs)
        super().__init__(path, limit)
        self.stream = _Stream(open_regular(path).detach())  # type: ignore[attr-defined]
        tiff = tifffile.TiffFile(self.stream, name="stack", _multifile=False)
        if len(tiff.pages) > MAX_PAGES:
            raise Refusal(f"it has more than {MAX_PAGES} pages", "Store fewer in a file")
        if not len(tiff.pages):
            raise Refusal("it holds no pages")
        shown = [
            one for one in tiff.series if not (one.keyframe.is_reduced or one.keyframe.is_mask)
        ]
        if len(shown) != 1:
            sizes = ", ".join(sorted({str(_page_shape(one.keyframe)[0]) for one in shown}))
            raise Refusal(
                f"its pages differ in size: {sizes}",
                "Save the pages as single images into a folder and pass size=(height, width)",
            )
        series = shown[0]
        self.pages, page = series.pages, series.keyframe
        self.offset, self.stored = series.dataoffset, page
        self.plane, plane_axes, self.dtype = _page_shape(page)
        if self.dtype.kind not in "buif":
            raise Refusal(f"its pages have dtype {self.dtype}", "Save it with real grey values")
        n_axes = len(series.shape) - len(page.shape)
        self.before = tuple(series.shape[:n_axes])
        named = "".join(letter if letter in "TZC" else "Q" for letter in series.axes[:n_axes])
        free = [letter for letter in LEADING if letter not in named][-named.count("Q") or 99 :]
        if named.count("Q") > len(free):
            raise Refusal(
                f"it has axes {series.axes}, which are not understood", "Save its parts as files"
            )
        for letter in free:
            named = named.replace("Q", letter, 1)
        self.axes, self.shape = named + plane_axes, (*self.before, *self.plane)
        self.colour = plane_axes.endswith("C") and page.photometric in (2, 3)
        self.channels = _channel_names(tiff) if "C" in self.axes and not self.colour else []

    def answer_list(self) -> Answers:
        said = part("", self.shape, self.dtype, axes=self.axes, channels=self.channels)
        yield {**said, "colour": self.colour}, None

    def answer_read(self, name: str, region: Region, step: int) -> Answers:
        """Read a region of the array of all pages."""
        return in_pieces(self, region, step)

    def __getitem__(self, region: tuple[slice, ...]) -> np.ndarray:
        n_axes = len(self.before)
        numbers = np.arange(math.prod(self.before)).reshape(self.before)[region[:n_axes]]
        inside = region[n_axes:]
        shape = [one.stop - one.start for one in inside]
        values = np.empty((numbers.size, *shape), self.dtype)
        for place, number in enumerate(numbers.flat):
            values[place] = self._page(int(number))[inside]
        return values.reshape((*numbers.shape, *shape))

    def _page(self, number: int) -> np.ndarray:
        if self.offset is not None:  # all values lie behind one another
            count = math.prod(self.stored.shape)
            dtype = self.stored.dtype.newbyteorder(self.stored.parent.byteorder)
            self.stream.seek(self.offset + number * count * dtype.itemsize)
            content = self.stream.read(count * dtype.itemsize)
            return _shown(np.frombuffer(content, dtype).reshape(self.stored.shape), self.stored)
        page = self.pages[number]
        if page is None:
            raise Refusal(
                "its description names pages that it does not hold",
                "Save it as one file with one image, which Bio-Formats' bfconvert can",
            )
        try:
            values = page.asarray()
        except (ValueError, ImportError, NotImplementedError) as error:
            if "imagecodecs" not in str(error):
                raise
            values = self._by_pillow(page.index)
            if values.shape == self.plane:
                return values
        return _shown(values, self.stored)

    def _by_pillow(self, number: int) -> np.ndarray:
        Image = require("PIL.Image", "Reading this TIFF", "io", package="pillow")
        with Image.open(self.path, formats=("TIFF",)) as image:
            image.seek(number)
            plain = image.mode in ("1", "L", "RGB", "I", "F", "P") or image.mode.startswith("I;16")
            return np.array(image if plain else image.convert("RGB"))


def _palette(page: Any) -> np.ndarray | None:
    """Return the colours of a page with a palette, or its greys."""
    if page.photometric != 3 or page.colormap is None:
        return None
    colours = (np.asarray(page.colormap) >> 8).astype(np.uint8)
    return colours[0] if (colours == colours[0]).all() else colours.T


def _page_shape(page: Any) -> tuple[tuple[int, ...], str, np.dtype]:
    """Return shape, axes and type of a page as it is shown."""
    sizes = dict(zip(page.axes, page.shape, strict=True))
    letters = "".join(letter for letter in page.axes if letter != "S")
    palette = _palette(page)
    dtype = np.dtype(page.dtype or "V").newbyteorder("=")
    if palette is not None:
        sizes["S"], dtype = palette.ndim > 1 and 3, palette.dtype
    elif "S" in sizes and (page.photometric == 2 or sizes["S"] == 2):
        sizes["S"] = 3 if page.photometric == 2 else 1  # what remains is opacity
    bands = sizes.pop("S", 1)
    shape = tuple(sizes[letter] for letter in letters)
    if not letters.endswith("YX") or set(letters) - set("TZCYX"):
        raise Refusal(f"its pages have axes {page.axes}, which are not understood")
    return ((*shape, bands), letters + "C", dtype) if bands > 1 else (shape, letters, dtype)


def _shown(values: np.ndarray, page: Any) -> np.ndarray:
    """Bring the values of a page into the shape of `_page_shape`."""
    palette = _palette(page)
    if palette is not None:
        return palette[values]
    if "S" in page.axes:
        values = np.moveaxis(values, page.axes.index("S"), -1)
        if page.photometric == 2:
            values = values[..., :3]
        elif values.shape[-1] == 2:
            values = values[..., 0]
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _channel_names(tiff: Any) -> list[str]:
    """Return the names of the channels in OME-XML."""
    import re

    found = re.findall(r"<(?:\w+:)?Channel\b[^>]*?\bName=\"([^\"]*)\"", tiff.ome_metadata or "")
    return list(found)


class Video(Parser):
    """The first video stream of a file by PyAV, frame by frame."""

    needs = ("av", "Reading videos", "io")

    def answer_frames(
        self, grey: bool | None, size: tuple[int, int] | None, most: int | None
    ) -> Answers:
        """Send frames one by one, then an answer without values."""
        for frame in itertools.islice(self._frames(grey), most):
            yield {"more": True}, resize(match(frame, grey), size)
        yield {}, None

    def _frames(self, grey: bool | None) -> Iterator[np.ndarray]:
        # The stream is handed over open: no name that the file contains is ever opened.
        options = {"format_whitelist": CONTAINERS, "protocol_whitelist": ""}
        with (
            open_regular(self.path) as raw,
            self.library.open(raw, "r", container_options=options) as container,
        ):
            if not container.streams.video:
                raise Refusal("it has no pictures", "Name a file that holds a video")
            stream = container.streams.video[0]
            plain = grey or stream.codec_context.pix_fmt in GREY_FORMATS
            self._check(stream.codec_context)
            # The head may say less than the frames have: the decoder must know the limit too.
            most = min(self.limit // 3 + 2**16, 2**31 - 1)
            stream.codec_context.options = {"max_pixels": str(most)}
            for frame in container.decode(stream):
                self._check(frame)
                yield frame.to_ndarray(format="gray" if plain else "rgb24")

    def _check(self, one: Any) -> None:
        check_fits("one of its frames", 3 * one.width * one.height, self.limit)
