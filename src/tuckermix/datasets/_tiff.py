"""TIFF files, page by page, with everything that a file claims checked before it is used.

General readers follow a chain of directories, tags of any length and many dialects of metadata;
four hundred damaged bytes are enough to keep them busy for minutes or to take gigabytes. This one
reads the tags that an image needs, each within a limit, and decodes the common compressions itself;
single pages in the others go to Pillow, after their sizes are known.
"""

from __future__ import annotations

import io
import lzma
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tuckermix._optional import require
from tuckermix._reading import LZMA_MEMORY, Refusal, check_fits, inflate, open_regular, slack
from tuckermix.datasets._tiff_notes import images_noted, noted

MAGICS = {b"II*\0": "<", b"MM\0*": ">", b"II+\0": "<", b"MM\0+": ">"}
"""First bytes, with the byte order that they mean; those with a plus are of the wide form."""

MAX_PAGES = 65_536
"""Pages in a file; microscopes write some ten thousand."""

MAX_BLOCKS = 500_000
"""Strips and tiles in a file, each of which costs some microseconds however small it is."""

MAX_TAGS = 1_000
"""Tags of a page; images have some twenty."""

MAX_DESCRIPTION = 2**22
"""Bytes of the description of the first page, in which writers note what the pages are: OME takes a
few hundred for each of them."""

FIELD_TYPES = {1: "u1", 3: "u2", 4: "u4", 6: "i1", 8: "i2", 9: "i4", 13: "u4", 16: "u8"}
"""Types of the values of a tag that are of use here."""

FIELD_BYTES = {**dict.fromkeys((1, 2, 6, 7), 1), **dict.fromkeys((3, 8), 2)}
FIELD_BYTES |= {**dict.fromkeys((4, 9, 11, 13), 4), **dict.fromkeys((5, 10, 12, 16, 17, 18), 8)}
"""Bytes of one value of each type."""

SIZES = REDUCED, WIDTH, HEIGHT, BITS = 254, 256, 257, 258
MEANING = COMPRESSION, PHOTOMETRIC, DESCRIPTION = 259, 262, 270
STRIPS = STRIP_OFFSETS, SAMPLES, ROWS, STRIP_COUNTS, PLANAR = 273, 277, 278, 279, 284
TILES = TILE_WIDTH, TILE_HEIGHT, TILE_OFFSETS, TILE_COUNTS = 322, 323, 324, 325
FURTHER = PREDICTOR, COLOURS, FORMAT, DEPTH = 317, 320, 339, 32997
"""Numbers of the tags that are read."""

WANTED = frozenset(SIZES + MEANING + STRIPS + TILES + FURTHER)
"""All of them."""

PASSED_ON = frozenset({266, 292, 293, 347, 530, 532})
"""Tags that only Pillow needs: of fax, of JPEG in TIFF, of its colours."""

MAX_PASSED_ON = 2**16
"""Bytes of one of those."""

NOT_A_PAGE = 0b101
"""Bits by which a page is a smaller copy of another, or a mask."""

PLAIN, ADOBE_DEFLATE, DEFLATE, PACKBITS, LZMA = OURS = (1, 8, 32946, 32773, 34925)
"""Compressions that are decoded here."""

PILLOW = (2, 3, 4, 5, 7, 50000, 50001)
"""Compressions that Pillow decodes: fax, LZW, JPEG, zstd, WebP."""

KINDS = {1: "u", 2: "i", 3: "f"}
"""Kinds of numbers by their number in the format."""

RGB, PALETTE = 2, 3
"""What the values of a pixel may mean."""


@dataclass(frozen=True)
class Page:
    """One page as its tags describe it.

    Attributes
    ----------
    height, width, n_samples : int
        Its size, and the values of a pixel.
    bits, kind : int, str
        The bits of a value, and "u", "i", "f" or another letter for numbers that are not real.
    compression, predictor, photometric, planar : int
        How it is stored, by the numbers of the format.
    block : (int, int)
        Height and width of a strip or tile.
    tiled : bool
        Whether these are tiles.
    offsets, counts : ndarray of shape (n_blocks,)
        Where each strip or tile lies, and its length.
    colours : ndarray or None
        The palette.
    description : str
        What the writer noted.
    order : str
        The byte order.
    others : dict
        Tags for Pillow: type, number of values, bytes.
    """

    height: int
    width: int
    n_samples: int
    bits: int
    kind: str
    compression: int
    predictor: int
    photometric: int
    planar: int
    block: tuple[int, int]
    tiled: bool
    offsets: np.ndarray
    counts: np.ndarray
    colours: np.ndarray | None
    description: str
    order: str
    others: dict[int, tuple[int, int, bytes]]

    @property
    def dtype(self) -> np.dtype:
        """The type of the values as they are stored, in the byte order of the machine."""
        if self.bits == 1:
            return np.dtype(bool)
        return np.dtype(f"{self.kind}{self.bits // 8}")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the decoded page, with colours last."""
        if self.colours is not None:
            grey = bool((self.colours == self.colours[0]).all())
        else:
            grey = self.n_samples <= 2  # the second one is opacity
        if grey:
            return (self.height, self.width)
        bands = 3 if self.colours is not None or self.photometric == RGB else self.n_samples
        return (self.height, self.width, bands)

    @property
    def nbytes(self) -> int:
        """The size of the page as it is stored, unpacked."""
        return self.height * self.width * self.n_samples * self.dtype.itemsize

    @property
    def colour(self) -> bool:
        """Whether the last axis holds colours."""
        return len(self.shape) == 3


@dataclass(frozen=True)
class Stack:
    """The pages of a file.

    Attributes
    ----------
    X : ndarray
        All of them as one array.
    axes : str
        A letter for each axis: T time, Z depth or pages of which nothing is known, C channels,
        Y height, X width.
    colour : bool
        Whether the channels are red, green and blue.
    channels : list of str
        The names of the channels, where the file has them.
    """

    X: np.ndarray
    axes: str
    colour: bool
    channels: list[str]


def is_tiff(head: bytes) -> bool:
    """Tell whether a file starts like TIFF."""
    return head[:4] in MAGICS


def read_pages(path: Path, limit: int) -> Stack:
    """Read all pages as one array.

    Parameters
    ----------
    path : Path
        The file.
    limit : int
        The most bytes that the pages may take in memory.

    Returns
    -------
    stack : Stack
        The pages, of shape (..., height, width) or (..., height, width, n_colours); the axes before
        height and width are those that the writer noted, or the pages in their order, or none for
        a single page.
    """
    with open_regular(path) as stream:
        sizes: dict[tuple[tuple[int, ...], np.dtype], None] = {}
        n_pages = 0
        # Once through all of them before anything is decoded. No page is kept: many small ones can
        # share long tags.
        for page in _directories(stream, limit):
            sizes[page.shape, page.dtype] = None
            if not n_pages:
                description, first = page.description, page
            n_pages += 1
        if not n_pages:
            raise Refusal("it holds no pages")
        if len(sizes) > 1:
            raise Refusal(
                f"its pages differ in size: {', '.join(sorted({str(s) for s, _ in sizes}))}",
                "Save the pages as single images into a folder and pass size=(height, width)",
            )
        n_images = images_noted(description) or 1
        if n_pages == 1 and n_images > 1:
            raise Refusal(
                f"it says that it holds {n_images} images, and has one page",
                "Save it anew with one page for each image",
            )
        n_bands = first.shape[2] if first.colour else 1
        said = noted(description, n_pages, len(first.shape), n_bands)
        X: np.ndarray | None = None
        for index, page in enumerate(_directories(stream, limit)):
            decoded = _decode(stream, page)
            if X is None:
                X = np.empty((n_pages, *decoded.shape), dtype=decoded.dtype)
                places = np.argsort(said.order) if said.order else range(n_pages)
            X[places[index]] = decoded
    assert X is not None
    axes = said.axes + ("YXC" if first.colour else "YX")
    rgb = first.colour and (first.colours is not None or first.photometric == RGB)
    return Stack(X.reshape((*said.sizes, *X.shape[1:])), axes, rgb, said.channels)


# --- the directories ----------------------------------------------------------------------------


def _directories(stream: BinaryIO, limit: int) -> Iterator[Page]:
    """Yield the pages of a file, following the chain of their directories once."""
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    head = stream.read(16)
    if not is_tiff(head) or len(head) < 8:
        raise ValueError("it does not start like TIFF")
    order = MAGICS[head[:4]]
    wide = b"+" in head[:4]
    form, place = ("Q", head[8:16]) if wide else ("I", head[4:8])
    (start,) = struct.unpack(order + form, place)
    seen: set[int] = set()
    total = n_blocks = 0
    while start:
        if start in seen:
            raise ValueError("its chain of pages leads back to itself")
        if len(seen) >= MAX_PAGES:
            raise ValueError(f"it has more than {MAX_PAGES} pages")
        seen.add(start)
        # Only of the first page: many can share one long description.
        longest = MAX_DESCRIPTION if len(seen) == 1 else 0
        tags, others, start = _tags(stream, start, order, wide, size, longest)
        if int(tags.get(REDUCED, np.zeros(1, int))[0]) & NOT_A_PAGE:
            continue
        page = _page(tags, others, order, size, limit)
        total += page.nbytes
        check_fits("its pages", total, limit)
        n_blocks += page.offsets.size
        if n_blocks > MAX_BLOCKS:
            raise ValueError(f"its pages lie in more than {MAX_BLOCKS} strips or tiles")
        yield page


def _exactly(stream: BinaryIO, start: int, count: int, size: int) -> bytes:
    if start + count > size:
        raise EOFError(f"{count} bytes at {start} lie beyond the end of the file")
    stream.seek(start)
    content = stream.read(count)
    if len(content) != count:
        raise EOFError(f"{count} bytes at {start} are cut off")
    return content


def _tags(
    stream: BinaryIO, start: int, order: str, wide: bool, size: int, longest: int
) -> tuple[dict[int, Any], dict[int, tuple[int, int, bytes]], int]:
    """Read the wanted tags of one directory, those for Pillow, and where the next one lies."""
    counter, entry, pointer = ("Q", "HHQ8s", "Q") if wide else ("H", "HHI4s", "I")
    counter_bytes, entry_bytes = struct.calcsize(f"<{counter}"), struct.calcsize(f"<{entry}")
    (count,) = struct.unpack(order + counter, _exactly(stream, start, counter_bytes, size))
    if count > MAX_TAGS:
        raise ValueError(f"a page has {count} tags, more than {MAX_TAGS}")
    start += counter_bytes
    table = _exactly(stream, start, count * entry_bytes, size)
    tags: dict[int, Any] = {}
    others: dict[int, tuple[int, int, bytes]] = {}
    for number, kind, length, inside in struct.iter_unpack(order + entry, table):
        if number not in WANTED | PASSED_ON or kind not in FIELD_BYTES or number in tags:
            continue
        nbytes = length * FIELD_BYTES[kind]
        if number == DESCRIPTION:
            nbytes = min(nbytes, longest)
        if nbytes == 0 or (number in PASSED_ON and nbytes > MAX_PASSED_ON):
            continue
        if nbytes <= len(inside):
            content = inside[:nbytes]
        else:
            (where,) = struct.unpack(order + pointer, inside)
            content = _exactly(stream, where, nbytes, size)
        if number in PASSED_ON:
            others[number] = (kind, length, content)
        elif number == DESCRIPTION:
            tags[number] = content
        elif kind in FIELD_TYPES:
            tags[number] = np.frombuffer(content, dtype=order + FIELD_TYPES[kind])
    start += count * entry_bytes
    try:
        (following,) = struct.unpack(
            order + pointer, _exactly(stream, start, struct.calcsize(f"<{pointer}"), size)
        )
    except EOFError:  # some writers end the file with the last page
        following = 0
    return tags, others, following


def _page(
    tags: dict[int, Any],
    others: dict[int, tuple[int, int, bytes]],
    order: str,
    size: int,
    limit: int,
) -> Page:
    """Check the tags of a page against each other."""

    def numbers(tag: int, *default: int) -> np.ndarray:
        return tags.get(tag, np.array(default, dtype=np.int64))

    def number(tag: int, default: int) -> int:
        return int(numbers(tag, default)[0])

    height, width, n_samples = number(HEIGHT, 0), number(WIDTH, 0), number(SAMPLES, 1)
    if min(height, width, n_samples) < 1 or number(DEPTH, 1) != 1:
        raise ValueError(f"a page has the impossible size {height} x {width} x {n_samples}")
    bits, form = number(BITS, 1), number(FORMAT, 1)
    if (numbers(BITS, 1) != bits).any() or (numbers(FORMAT, 1) != form).any():
        raise ValueError("the values of a pixel are stored in different ways")
    kind = KINDS.get(form, "c" if form in (5, 6) else "u")
    if bits not in (1, 8, 16, 32, 64, 128) or (kind == "f" and bits not in (16, 32, 64)):
        raise ValueError(f"values of {bits} bits are not read here")
    if (bits == 128) > (kind == "c") or (kind == "c" and bits < 64) or (kind == "i" and bits == 1):
        raise ValueError(f"values of {bits} bits of this kind are not read here")
    if TILE_WIDTH in tags:
        block = (number(TILE_HEIGHT, 0), number(TILE_WIDTH, 0))
        offsets, counts = numbers(TILE_OFFSETS), numbers(TILE_COUNTS)
    else:
        block = (min(number(ROWS, height), height), width)
        offsets, counts = numbers(STRIP_OFFSETS), numbers(STRIP_COUNTS)
    # A tile may reach over the border, however small the page is.
    if min(block) < 1 or block[0] * block[1] * n_samples * max(1, bits // 8) > limit:
        raise ValueError(
            f"a strip or tile of {block[0]} x {block[1]} pixels passes max_bytes={limit}"
        )
    planes = n_samples if number(PLANAR, 1) == 2 else 1
    expected = planes * -(-height // block[0]) * -(-width // block[1])
    if offsets.size == 1 and not counts.size:
        counts = np.array([max(0, size - int(offsets[0]))])
    if offsets.size != expected or counts.size != expected:
        raise ValueError(
            f"a page needs {expected} strips or tiles, and has {offsets.size} with {counts.size} "
            "lengths"
        )
    colours = None
    if number(PHOTOMETRIC, 1) == PALETTE:
        colours = numbers(COLOURS)
        if bits not in (8, 16) or kind != "u" or n_samples != 1 or colours.size != 3 * 2**bits:
            raise ValueError("a page has no palette that fits")
        colours = (colours.reshape(3, -1) >> 8).astype(np.uint8)
    return Page(
        height=height,
        width=width,
        n_samples=n_samples,
        bits=bits,
        kind=kind,
        compression=number(COMPRESSION, PLAIN),
        predictor=number(PREDICTOR, 1),
        photometric=number(PHOTOMETRIC, 1),
        planar=number(PLANAR, 1),
        block=block,
        tiled=TILE_WIDTH in tags,
        offsets=offsets,
        counts=counts,
        colours=colours,
        description=tags.get(DESCRIPTION, b"").rstrip(b"\0").decode("utf-8", "replace"),
        order=order,
        others=others,
    )


# --- the pixels ---------------------------------------------------------------------------------


def _decode(stream: BinaryIO, page: Page) -> np.ndarray:
    """Decode one page."""
    if page.kind == "c":
        raise Refusal(f"its pages have dtype {page.dtype}", "Save it with real grey values")
    if page.compression not in OURS:
        return _by_pillow(stream, page)
    if page.photometric not in (0, 1, RGB, PALETTE):
        raise ValueError(f"pixels of the meaning {page.photometric} are not read here")
    size = stream.seek(0, io.SEEK_END)
    values = np.zeros((page.height, page.width, page.n_samples), dtype=page.dtype)
    separate = page.planar == 2
    rows, columns = page.block
    down, across = -(-page.height // rows), -(-page.width // columns)
    depth = 1 if separate else page.n_samples
    most = rows * -(-columns * depth * page.bits // 8)
    for number, (offset, count) in enumerate(zip(page.offsets, page.counts, strict=True)):
        plane, place = divmod(number, down * across)
        top, left = place // across * rows, place % across * columns
        high, wide = min(rows, page.height - top), min(columns, page.width - left)
        length = min(int(count), most) if page.compression == PLAIN else int(count)
        if length > slack(most):
            raise ValueError(f"{most} bytes of a page take {length} bytes in the file")
        packed = _exactly(stream, int(offset), length, size)
        block = _block(packed, page, depth, high)[:high, :wide]
        if separate:
            values[top : top + high, left : left + wide, plane] = block[..., 0]
        else:
            values[top : top + high, left : left + wide] = block
    if page.colours is not None:
        palette = page.colours[0] if len(page.shape) == 2 else page.colours.T
        return palette[values[..., 0]]
    return values[..., 0] if len(page.shape) == 2 else values[..., : page.shape[2]]


def _block(packed: bytes, page: Page, depth: int, least_rows: int) -> np.ndarray:
    """Decode one strip or tile into (rows, columns, values of a pixel); the last may be short."""
    rows, columns = page.block
    row_bytes = -(-columns * depth * page.bits // 8)
    most = rows * row_bytes
    if page.compression in (ADOBE_DEFLATE, DEFLATE):
        content = inflate(packed, most)
    elif page.compression == PACKBITS:
        content = _packbits(packed, most)
    elif page.compression == LZMA:
        content = lzma.LZMADecompressor(memlimit=LZMA_MEMORY).decompress(packed, most)
    else:
        content = packed[:most]
    found = min(rows, len(content) // row_bytes)
    if found < least_rows:
        raise EOFError(f"a block has {len(content)} bytes and needs {least_rows * row_bytes}")
    table = np.frombuffer(content, np.uint8, count=found * row_bytes).reshape(found, row_bytes)
    if page.bits == 1:
        bits = np.unpackbits(table, axis=1, count=columns * depth)
        return bits.view(bool).reshape(found, columns, depth)
    if page.predictor == 3:
        return _floats(table, page, columns, depth)
    stored = np.dtype(f"{page.order}{page.dtype.str[1:]}")
    values = np.frombuffer(table.tobytes(), dtype=stored).reshape(found, columns, depth)
    if page.predictor == 2:
        unsigned = values.astype(page.dtype).view(f"u{page.dtype.itemsize}")
        return np.cumsum(unsigned, axis=1, dtype=unsigned.dtype).view(page.dtype)
    if page.predictor != 1:
        raise ValueError(f"the predictor {page.predictor} is unknown")
    return values


def _floats(table: np.ndarray, page: Page, columns: int, depth: int) -> np.ndarray:
    """Undo the predictor of floating-point numbers: differences of bytes, the high ones first."""
    width = page.dtype.itemsize
    by_depth = table.reshape(len(table), -1, depth)
    plain = np.cumsum(by_depth, axis=1, dtype=np.uint8).reshape(len(table), width, -1)
    joined = np.ascontiguousarray(np.moveaxis(plain, 1, 2))
    values = joined.view(page.dtype.newbyteorder(">"))
    return values.reshape(len(table), columns, depth)


def _packbits(packed: bytes, most: int) -> bytes:
    """Undo runs of equal bytes, up to a length."""
    content = bytearray()
    start = 0
    while start + 1 < len(packed) and len(content) < most:
        count = packed[start]
        if count < 128:
            content += packed[start + 1 : start + 2 + count]
            start += 2 + count
        elif count > 128:
            content += packed[start + 1 : start + 2] * (257 - count)
            start += 2
        else:
            start += 1
    return bytes(content[:most])


def _by_pillow(stream: BinaryIO, page: Page) -> np.ndarray:
    """Decode one page whose compression needs a library."""
    if page.compression not in PILLOW:
        raise Refusal(
            f"its pages are packed in the way number {page.compression}, which is not read here",
            "Save it without compression, or with deflate",
        )
    Image = require("PIL.Image", "Reading this TIFF", "io", package="pillow")
    with Image.open(_alone(stream, page), formats=("TIFF",)) as image:
        if image.size != (page.width, page.height):
            raise ValueError("the size of a page is not what its tags say")
        plain = image.mode in ("1", "L", "RGB", "I", "F") or image.mode.startswith("I;16")
        values = np.array(image if plain else image.convert("RGB"))
    if values.shape != page.shape:
        raise ValueError(f"a page of shape {page.shape} was decoded to {values.shape}")
    return values


def _alone(stream: BinaryIO, page: Page) -> io.BytesIO:
    """Copy one page into a file of its own, with the tags that were checked and no others."""
    size = stream.seek(0, io.SEEK_END)
    if float(page.counts.astype(float).sum()) > size:
        raise ValueError("the strips or tiles of a page are longer than the file")
    target = io.BytesIO()
    target.write({"<": b"II*\0", ">": b"MM\0*"}[page.order] + bytes(4))
    offsets = []
    for offset, count in zip(page.offsets.tolist(), page.counts.tolist(), strict=True):
        offsets.append(target.tell())
        target.write(_exactly(stream, offset, count, size))
    tags: dict[int, tuple[int, int, bytes]] = dict(page.others)
    plain: list[tuple[int, list[int]]] = [
        (WIDTH, [page.width]),
        (HEIGHT, [page.height]),
        (BITS, [page.bits] * page.n_samples),
        (COMPRESSION, [page.compression]),
        (PHOTOMETRIC, [page.photometric]),
        (SAMPLES, [page.n_samples]),
        (PLANAR, [page.planar]),
        (PREDICTOR, [page.predictor]),
        (FORMAT, [{"u": 1, "i": 2, "f": 3}[page.kind]] * page.n_samples),
        (TILE_OFFSETS if page.tiled else STRIP_OFFSETS, offsets),
        (TILE_COUNTS if page.tiled else STRIP_COUNTS, page.counts.tolist()),
    ]
    plain += (
        [(TILE_HEIGHT, [page.block[0]]), (TILE_WIDTH, [page.block[1]])]
        if page.tiled
        else [(ROWS, [page.block[0]])]
    )
    for tag, numbers in plain:
        short = tag in (BITS, COMPRESSION, PHOTOMETRIC, SAMPLES, PLANAR, PREDICTOR, FORMAT)
        content = np.array(numbers, dtype=page.order + ("u2" if short else "u4")).tobytes()
        tags[tag] = (3 if short else 4, len(numbers), content)
    table = b""
    for tag, (kind, length, content) in sorted(tags.items()):
        if len(content) > 4:
            place = target.tell()
            target.write(content)
            content = struct.pack(f"{page.order}I", place)
        table += struct.pack(f"{page.order}HHI", tag, kind, length) + content.ljust(4, b"\0")
    start = target.tell()
    target.write(struct.pack(f"{page.order}H", len(tags)) + table + bytes(4))
    target.seek(4)
    target.write(struct.pack(f"{page.order}I", start))
    target.seek(0)
    return target
