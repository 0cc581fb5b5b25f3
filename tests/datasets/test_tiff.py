import struct

import numpy as np
import pytest

from tuckermix.datasets import ReadError, _tiff, read

Image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed")


def pages(shape=(3, 37, 21), dtype="u1"):
    return np.random.default_rng(0).integers(0, 100, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "i1", "i2", "i4", "f2", "f4", "f8", "u8", "?"])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("big", [False, True])
def test_types_and_byte_orders(tmp_path, dtype, order, big):
    X = pages(dtype=dtype)
    tifffile.imwrite(tmp_path / "a.tif", X, byteorder=order, bigtiff=big, photometric="minisblack")
    data = read(tmp_path / "a.tif")
    assert np.array_equal(data.X, X)
    assert data.X.dtype == np.dtype(dtype)


@pytest.mark.parametrize("shape", [(3, 37, 21), (3, 37, 21, 3)])
@pytest.mark.parametrize("tile", [None, (16, 32)])
@pytest.mark.parametrize("compression", [None, "zlib", "lzma"])
@pytest.mark.parametrize("planar", ["contig", "separate"])
def test_strips_tiles_and_planes(tmp_path, shape, tile, compression, planar):
    X = pages(shape, "u2")
    options = {"compression": compression, "tile": tile, "photometric": "minisblack"}
    if len(shape) == 4:
        options |= {"photometric": "rgb", "planarconfig": planar}
    stored = X.transpose(0, 3, 1, 2) if len(shape) == 4 and planar == "separate" else X
    tifffile.imwrite(tmp_path / "a.tif", stored, **options)
    assert np.array_equal(read(tmp_path / "a.tif").X, X)


@pytest.mark.parametrize("how", ["raw", "packbits", "tiff_lzw", "tiff_adobe_deflate", "group4"])
def test_what_pillow_writes(tmp_path, how):
    X = pages() > 50 if how == "group4" else pages()
    images = [Image.fromarray(page) for page in X]
    images[0].save(tmp_path / "a.tif", save_all=True, append_images=images[1:], compression=how)
    assert np.array_equal(read(tmp_path / "a.tif").X, X)
    colours = [Image.fromarray(page) for page in pages((3, 37, 21, 3))]
    if how != "group4":
        colours[0].save(
            tmp_path / "a.tif", save_all=True, append_images=colours[1:], compression=how
        )
        assert np.array_equal(read(tmp_path / "a.tif").X, pages((3, 37, 21, 3)))


def test_palettes(tmp_path):
    image = Image.fromarray(pages((37, 21, 3))).quantize(16)
    image.save(tmp_path / "a.tif")
    assert np.array_equal(read(tmp_path).X[0], np.array(image.convert("RGB")))
    grey = Image.fromarray(pages((37, 21))).convert("P")
    grey.putpalette([level for level in range(256) for _ in range(3)])
    grey.save(tmp_path / "a.tif")
    assert np.array_equal(read(tmp_path).X[0], np.array(grey))


def test_a_stack_of_volumes_keeps_its_axes(tmp_path):
    X = pages((2, 7, 6, 5))
    tifffile.imwrite(tmp_path / "a.tif", X, photometric="minisblack")
    assert np.array_equal(read(tmp_path / "a.tif").X, X)


def test_smaller_copies_are_no_pages(tmp_path):
    with tifffile.TiffWriter(tmp_path / "a.tif") as writer:
        for page in pages():
            writer.write(page, photometric="minisblack", metadata=None)
            writer.write(page[::2, ::2], subfiletype=1, photometric="minisblack", metadata=None)
    assert np.array_equal(read(tmp_path / "a.tif").X, pages())


def tiff(tags, rest=b"", following=0):
    """Write one directory by hand, its values inside the tags, then `rest`."""
    table = b"".join(struct.pack("<HHII", *tag) for tag in sorted(tags))
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + table + struct.pack("<I", following) + rest


GOOD = {256: (4, 1, 4), 257: (4, 1, 4), 258: (3, 1, 8), 273: (4, 1, 8), 279: (4, 1, 16)}


def changed(**tags):
    both = GOOD | {int(key[1:]): value for key, value in tags.items()}
    return [(key, *value) for key, value in both.items() if value is not None]


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ({"t256": (4, 1, 0)}, "a page has the impossible size 4 x 0 x 1"),
        ({"t256": (4, 1, 2**31)}, r"bytes in memory, and the limit is|passes max_bytes"),
        ({"t258": (3, 1, 12)}, "values of 12 bits are not read here"),
        ({"t258": (3, 1, 128)}, "values of 128 bits of this kind are not read here"),
        ({"t258": (3, 2, 8 + (16 << 16))}, "the values of a pixel are stored in different ways"),
        ({"t278": (4, 1, 1)}, "a page needs 4 strips or tiles, and has 1 with 1 lengths"),
        ({"t322": (4, 1, 2**20), "t323": (4, 1, 2**20)}, "a strip or tile of 1048576 x 1048576"),
        ({"t262": (3, 1, 3)}, "a page has no palette that fits"),
        ({"t262": (3, 1, 9)}, "pixels of the meaning 9 are not read here"),
        ({"t273": (4, 1, 10**6)}, "16 bytes at 1000000 lie beyond the end of the file"),
        ({"t273": (4, 10**6, 8)}, "4000000 bytes at 8 lie beyond the end of the file"),
        ({"t279": (4, 1, 3)}, "a block has 3 bytes and needs 16"),
        ({"t259": (3, 1, 8), "t279": (4, 1, 9999)}, "16 bytes of a page take 9999 bytes in the"),
        ({"t259": (3, 1, 77)}, "packed in the way number 77, which is not read here. Save it"),
        ({"t317": (3, 1, 7)}, "the predictor 7 is unknown"),
    ],
)
def test_hostile_tags(tmp_path, tags, message):
    (tmp_path / "a.tif").write_bytes(tiff(changed(**tags)))
    with pytest.raises(ReadError, match=message):
        read(tmp_path, max_bytes=2**26)


def test_a_chain_that_leads_back_to_itself(tmp_path):
    (tmp_path / "a.tif").write_bytes(tiff(changed(), following=8))
    with pytest.raises(ReadError, match="its chain of pages leads back to itself"):
        read(tmp_path / "a.tif")
    (tmp_path / "a.tif").write_bytes(b"II*\0" + bytes(4))
    with pytest.raises(ReadError, match="it holds no pages"):
        read(tmp_path / "a.tif")
    (tmp_path / "a.tif").write_bytes(b"II*\0" + struct.pack("<IH", 8, 5000) + bytes(99))
    with pytest.raises(ReadError, match="a page has 5000 tags, more than 1000"):
        read(tmp_path / "a.tif")
    (tmp_path / "a.tif").write_bytes(b"no TIFF at all")
    with pytest.raises(ReadError, match="it does not start like TIFF"):
        read(tmp_path / "a.tif")


def test_limits_on_pages_and_blocks(tmp_path, monkeypatch):
    tifffile.imwrite(tmp_path / "a.tif", pages(), photometric="minisblack")
    monkeypatch.setattr(_tiff, "MAX_BLOCKS", 2)
    with pytest.raises(ReadError, match="its pages lie in more than 2 strips or tiles"):
        read(tmp_path / "a.tif")
    monkeypatch.setattr(_tiff, "MAX_PAGES", 2)
    with pytest.raises(ReadError, match="it has more than 2 pages"):
        read(tmp_path / "a.tif")


def test_more_images_than_pages(tmp_path):
    noted = "ImageJ=1.11a\nimages=9\nslices=9\n"
    tifffile.imwrite(tmp_path / "a.tif", pages()[0], description=noted, metadata=None)
    with pytest.raises(ReadError, match="it says that it holds 9 images, and has one page"):
        read(tmp_path / "a.tif")


def test_a_strip_that_unpacks_to_more_is_stopped(tmp_path):
    import zlib

    packed = zlib.compress(bytes(10**6))
    tags = changed(t259=(3, 1, 8), t273=(4, 1, 0), t279=(4, 1, len(packed)))
    start = len(tiff(tags))
    tags = changed(t259=(3, 1, 8), t273=(4, 1, start), t279=(4, 1, len(packed)))
    (tmp_path / "a.tif").write_bytes(tiff(tags, packed))
    with pytest.raises(ReadError, match="more than the expected 16 bytes are packed"):
        read(tmp_path)


def by_hand(path, content, height, width, bits, form, predictor):
    tags = {
        "t256": (4, 1, width),
        "t257": (4, 1, height),
        "t258": (3, 1, bits),
        "t339": (3, 1, form),
        "t317": (3, 1, predictor),
        "t279": (4, 1, len(content)),
    }
    start = len(tiff(changed(**tags)))
    path.write_bytes(tiff(changed(**tags, t273=(4, 1, start)), content))


@pytest.mark.parametrize("dtype", ["<u1", "<u2", "<u4"])
def test_differences_of_pixels(tmp_path, dtype):
    X = pages((37, 21), dtype)
    content = np.diff(X, axis=1, prepend=X.dtype.type(0)).astype(dtype).tobytes()
    by_hand(tmp_path / "a.tif", content, 37, 21, 8 * X.itemsize, 1, 2)
    assert np.array_equal(read(tmp_path).X[0], X)


@pytest.mark.parametrize("dtype", [">f4", ">f8"])
def test_differences_of_floats(tmp_path, dtype):
    X = (pages((37, 21), dtype) / 7).astype(dtype)
    parts = X.view("u1").reshape(37, 21, X.itemsize).transpose(0, 2, 1).reshape(37, -1)
    content = np.diff(parts, axis=1, prepend=np.uint8(0)).astype("u1").tobytes()
    by_hand(tmp_path / "a.tif", content, 37, 21, 8 * X.itemsize, 3, 3)
    assert np.array_equal(read(tmp_path).X[0], X)
