"""Images, stacks of pages and videos, as libraries read them in the child process."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

import numpy as np

from tuckermix._axes import arrange, chosen_axes, kind_of
from tuckermix._names import CROP, SAMPLE, STRETCH
from tuckermix._optional import require
from tuckermix._pixels import eight_bits, fitted, match, resize
from tuckermix._reading import Refusal, check_fits, open_regular
from tuckermix._sandbox.arrays import Answers, Parser, Region, in_pieces, part

FORMATS = ("PNG", "JPEG", "MPO", "BMP", "PPM", "GIF", "WEBP", "AVIF", "HEIF")
PLUGINS = ("PIL.WebPImagePlugin", "PIL.AvifImagePlugin")
# Left to itself, Pillow also tries formats that start other programs, such as PostScript.
CONTAINERS = "avi,mov,matroska,webm,mpeg,mpegvideo,mpegts,ogg,m4v"
# FFmpeg also knows playlists, which name other files and hosts.
ORIENTATION, TURNED = 0x0112, (5, 6, 7, 8)  # the tag of EXIF, and its values for upright pictures
DEEP_MODES = {"I;16": "<u2", "I;16B": "<u2", "I": "<i4", "F": "<f4"}
TIFF_STARTS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
MAX_CHANNELS = 4
MAX_PAGES = 65_536
LEADING = "NTZ"  # letters for axes of pages that nobody named; the last ones are taken
GREY_FORMATS = ("gray", "gray8", "gray10le", "gray12le", "gray16le", "monow", "monob")


class Picture(Parser):
    """One image of a folder: by Pillow, or by tifffile."""

    needs = ("PIL.Image", "Reading images", "io", "pillow")
    formats: Sequence[str] = ()

    @classmethod
    def load(cls) -> None:
        super().load()
        cls.library.preinit()
        for name in PLUGINS:
            with suppress(ImportError):
                import_module(name)
        with suppress(ImportError):
            import_module("pillow_heif").register_heif_opener()
        cls.formats = [name for name in FORMATS if name in cls.library.OPEN]

    def __init__(self, path: str, limit: int) -> None:
        super().__init__(path, limit)
        self.stream = open_regular(path)
        self.tiff = Tiff(path, limit) if self.stream.read(4) in TIFF_STARTS else None

    def _opened(self) -> Any:
        Image = self.library
        check_fits("the file itself", self.stream.seek(0, 2), self.limit)
        self.stream.seek(0)
        try:
            image = Image.open(self.stream, formats=self.formats)
        except Image.DecompressionBombError as error:
            raise Refusal(
                f"it has more than {2 * (Image.MAX_IMAGE_PIXELS or 0)} pixels, where Pillow stops",
                "Make it smaller",
            ) from error
        except Image.UnidentifiedImageError as error:
            if self.path.lower().endswith((".heic", ".heif")) and "HEIF" not in self.formats:
                raise Refusal(
                    "it is HEIC, which needs one more package",
                    "Install pillow-heif, or convert it to JPEG",
                ) from error
            raise Refusal(
                "it is not an image, or of a kind that is not read here",
                "Remove it from the folder, or convert it to PNG",
            ) from error
        width, height = image.size
        declared = width * height * MAX_CHANNELS * 3  # decoded, handed over, turned upright
        check_fits(f"its {width} x {height} pixels", declared, self.limit)
        return image

    def answer_look(self) -> Answers:
        """Say what the header says: axes, their lengths, whether it is in colour, and its type."""
        if tiff := self.tiff:
            said = {"axes": tiff.axes, "shape": tiff.shape, "type": tiff.dtype.str}
            yield said | {"colour": tiff.colour}, None
            return
        image = self._opened()
        n_frames, colour = _n_frames(image), _in_colour(image)
        # Without the test, Pillow decodes a PNG to look for EXIF at its end.
        known = image.format != "PNG" or "exif" in image.info
        turned = known and image.getexif().get(ORIENTATION) in TURNED
        shape = (*((n_frames,) if n_frames > 1 else ()), *image.size[:: 1 if turned else -1])
        yield (
            {
                "axes": "T" * (n_frames > 1) + "YX" + "C" * colour,
                "shape": (*shape, 3) if colour else shape,
                "colour": colour,
                "type": DEEP_MODES.get(image.mode, "|u1"),
                "clear": bool(image.has_transparency_data),
            },
            None,
        )

    def answer_read(
        self,
        axes: str | None,
        channels: Sequence[int | str] | None,
        grey: bool | None,
        size: tuple[int, int] | None,
        fit: str = STRETCH,
        scale: str | None = None,
        places: int | list[int] | None = None,
    ) -> Answers:
        """Read it: (height, width), colours in a last axis of 3, pages of a volume first.

        `places` are entries of the first axis: one loses the axis.
        """
        if self.tiff:
            tiff = self.tiff.fitting()
            image = tiff[tuple(slice(0, size) for size in tiff.shape)]
            found, colour, names = tiff.axes, tiff.colour, tiff.channels
        else:
            (image, found), names = self._decoded(places, size, fit), []
            colour, places = image.ndim > 2, None
            if axes not in (None, found):
                raise Refusal(
                    f"its axes are {found}, and axes={axes!r} was asked for",
                    "Leave axes out: they concern stacks of pages and stored arrays",
                )
        image, letters = arrange(
            image, chosen_axes(axes, found, image.shape), None, channels, names
        )
        if places is not None:
            image = image[places]
            letters = letters[1:] if isinstance(places, int) else letters
        image, letters = fitted(image, letters, colour, grey, size, fit)
        if scale == SAMPLE:
            image = eight_bits(image)
        yield {"kind": kind_of(letters, image.shape)}, image

    def answer_small(self, side: int) -> Answers:
        """Read it for showing: upright, 8 bits, no side longer than `side`; the first of frames."""
        from PIL import Image, ImageOps

        if self.tiff:
            tiff = self.tiff.fitting()
            sizes = tiff.shape[: len(tiff.shape) - len(tiff.plane)]
            middle = [slice(n // 2, n // 2 + 1) for n in sizes]
            pixels = tiff[(*middle, *(slice(0, n) for n in tiff.plane))].reshape(tiff.plane)
            if pixels.ndim > 2 and not tiff.colour:
                pixels = pixels[..., 0]
            image = Image.fromarray(pixels if pixels.dtype == np.uint8 else eight_bits(pixels))
        else:
            opened = self._opened()
            deep = opened.mode in DEEP_MODES
            image = Image.fromarray(eight_bits(np.asarray(opened))) if deep else _plain(opened)
            if image is not opened:
                image.getexif().update(opened.getexif())
        # A JPEG is decoded at about the size that is wanted, which takes a tenth of the time.
        image.thumbnail((side, side), reducing_gap=2.0)
        ImageOps.exif_transpose(image, in_place=True)
        yield {}, np.ascontiguousarray(image)

    def _decoded(
        self, places: Any, size: tuple[int, int] | None, fit: str
    ) -> tuple[np.ndarray, str]:
        """Return a still picture, or the frames of an animation, and the axes."""
        from PIL import ImageOps

        image = self._opened()
        n_frames = _n_frames(image)
        if n_frames == 1 or isinstance(places, int):
            image = _reduced(image, size, fit)
            ImageOps.exif_transpose(image, in_place=True)
            pixels = _as_array(image)
            return pixels, "YXC"[: pixels.ndim]
        wanted = range(n_frames) if places is None else places
        declared = len(wanted) * image.width * image.height * MAX_CHANNELS
        check_fits(f"its {len(wanted)} frames", declared, self.limit)
        frames = []
        for number in wanted:
            image.seek(number)
            frames.append(np.asarray(_plain(image).convert("RGB")))
        return np.stack(frames), "TYXC"


def _n_frames(image: Any) -> int:
    # Further frames of pictures by cameras are previews and the like.
    return 1 if image.format in ("MPO", "HEIF") else int(getattr(image, "n_frames", 1))


def _in_colour(image: Any) -> bool:
    """Tell whether an image that is not decoded has colours, by its mode or its palette."""
    if image.mode in ("P", "PA"):
        colours = np.array(image.getpalette("RGB") or [0, 0, 0]).reshape(-1, 3)
        return bool((colours != colours[:, :1]).any())
    return image.mode not in ("1", "L", "LA", "La") and image.mode not in DEEP_MODES


def _reduced(image: Any, size: tuple[int, int] | None, fit: str) -> Any:
    """Decode an image at about twice the size that is wanted, which takes a fraction of the time.

    Pictures that are stretched keep each pixel: the tables of the paper depend on them.
    """
    if size is None or fit == STRETCH or image.mode not in ("L", "RGB", "CMYK"):
        return image
    height, width = size[:: -1 if image.getexif().get(ORIENTATION) in TURNED else 1]
    nearest = min if fit == CROP else max
    factor = nearest(image.height / height, image.width / width)
    if factor < 2:
        return image
    before = image.width
    image.draft(None, (int(2 * before / factor), int(2 * image.height / factor)))
    steps = int(factor * image.width / before / 2)
    return image.reduce(steps) if steps > 1 else image


def _on_white(image: Any) -> Any:
    """Return an image with transparent parts, on white."""
    from PIL import Image

    shown = Image.alpha_composite(
        Image.new("RGBA", image.size, "white"), image.convert("RGBA")
    ).convert("RGB")
    return shown.convert("L") if image.mode[0] in "1L" else shown


def _plain(image: Any) -> Any:
    """Return a Pillow image of 8 bits as grey or colours, on white where it is transparent."""
    if image.has_transparency_data:
        return _on_white(image)
    if image.mode in ("L", "RGB"):
        return image
    return image.convert("L" if image.mode == "1" else "RGB")


def _as_array(image: Any) -> np.ndarray:
    """Return a Pillow image as an array: grey without, colour with a last axis of 3."""
    if image.mode in DEEP_MODES:
        return np.asarray(image)
    pixels = np.asarray(_plain(image))
    greys = image.mode in ("P", "PA") and (pixels == pixels[..., :1]).all()
    return pixels[..., 0] if greys else pixels


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

    def fitting(self) -> Tiff:
        """Return it if all of its pages fit into memory."""
        check_fits("its pages", math.prod(self.shape) * self.dtype.itemsize, self.limit)
        return self

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
    """Return shape, axes and type of a page as it is shown, by what becomes of one pixel."""
    letters = page.axes.replace("S", "")
    if not letters.endswith("YX") or set(letters) - set("TZCYX"):
        raise Refusal(f"its pages have axes {page.axes}, which are not understood")
    sizes = dict(zip(page.axes, page.shape, strict=True))
    pixel = np.zeros(
        [sizes["S"] if letter == "S" else 1 for letter in page.axes], page.dtype or "V"
    )
    shown = _shown(pixel, page)
    shape = tuple(sizes[letter] for letter in letters)
    bands = shown.shape[len(letters) :]
    return (*shape, *bands), letters + "C" * len(bands), shown.dtype


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

    def answer_look(self) -> Answers:
        """Say what the header and the first frame say."""
        with self._opened() as (container, stream):
            count = stream.frames or sum(packet.size > 0 for packet in container.demux(stream))
        first = next(self._frames(None), None)
        if first is None:
            raise Refusal("it has no frames")
        axes = "TYXC"[: first.ndim + 1]
        said = {"axes": axes, "shape": (max(1, count), *first.shape), "colour": first.ndim == 3}
        yield {**said, "type": first.dtype.str}, None

    def answer_read(
        self,
        grey: bool | None,
        size: tuple[int, int] | None,
        fit: str = STRETCH,
        scale: str | None = None,
        places: int | list[int] | None = None,
        **unused: Any,
    ) -> Answers:
        """Read some of its frames; a file that has fewer than its header says repeats the last."""
        wanted = None if places is None else np.atleast_1d(places).tolist()
        found: dict[int, np.ndarray] = {}
        for number, frame in enumerate(self._frames(grey)):
            if wanted is None or number in wanted:
                found[number] = resize(match(frame, grey), size, fit)
                most = (len(found) if wanted is None else len(wanted)) * found[number].nbytes
                check_fits("its frames", most, self.limit)
            if wanted is not None and number >= wanted[-1]:
                break
        last = max(found)
        video = np.stack([found.get(one, found[last]) for one in wanted or found])
        if isinstance(places, int):
            video = video[0]
        if scale == SAMPLE:
            video = eight_bits(video)
        letters = "TYXC"[isinstance(places, int) :][: video.ndim]
        yield {"kind": kind_of(letters, video.shape)}, video

    def answer_frames(self, grey: bool | None, size: tuple[int, int] | None, fit: str) -> Answers:
        """Send frames one by one, then an answer without values."""
        for frame in self._frames(grey):
            yield {"more": True}, resize(match(frame, grey), size, fit)
        yield {}, None

    @contextmanager
    def _opened(self) -> Iterator[tuple[Any, Any]]:
        # The stream is handed over open: no name that the file contains is ever opened.
        options = {"format_whitelist": CONTAINERS, "protocol_whitelist": ""}
        with (
            open_regular(self.path) as raw,
            self.library.open(raw, "r", container_options=options) as container,
        ):
            if not container.streams.video:
                raise Refusal("it has no pictures", "Name a file that holds a video")
            yield container, container.streams.video[0]

    def _frames(self, grey: bool | None) -> Iterator[np.ndarray]:
        with self._opened() as (container, stream):
            plain = grey or stream.codec_context.pix_fmt in GREY_FORMATS
            self._check(stream.codec_context)
            # The head may say less than the frames have: the decoder must know the limit too.
            most = min(self.limit // 3 + 2**16, 2**31 - 1)
            stream.codec_context.options = {"max_pixels": str(most)}
            for frame in container.decode(stream):
                self._check(frame)
                pixels = frame.to_ndarray(format="gray" if plain else "rgb24")
                yield np.rot90(pixels, frame.rotation // 90) if frame.rotation else pixels

    def _check(self, one: Any) -> None:
        check_fits("one of its frames", 3 * one.width * one.height, self.limit)
