import struct

import numpy as np
import pytest

from tuckermix.datasets import ReadError, read

Image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed")


def pages(shape=(3, 37, 21), dtype="u1"):
    return np.random.default_rng(0).integers(0, 100, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "i1", "i2", "i4", "f2", "f4", "f8", "u8", "?"])
def test_types_and_byte_orders(tmp_path, dtype):
    X = pages(dtype=dtype)
    for number, (order, big, packed) in enumerate([("<", True, None), (">", False, "zlib")]):
        path = tmp_path / f"{number}.tif"
        options = {"bigtiff": big, "compression": packed, "photometric": "minisblack"}
        tifffile.imwrite(path, X, byteorder=order, **options)
        data = read(path)
        assert np.array_equal(data.X, X)
        assert data.X.dtype == np.dtype(dtype)


@pytest.mark.parametrize("shape", [(3, 37, 21), (3, 37, 21, 3)])
@pytest.mark.parametrize("tile", [None, (16, 32)])
@pytest.mark.parametrize("compression", [None, "zlib"])
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


def test_options_of_stored_arrays_apply_to_pages(tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", pages(), photometric="minisblack")
    turned = read(tmp_path / "a.tif", sample_axis=1)
    assert np.array_equal(turned.X, pages().transpose(1, 0, 2))
    assert turned.extra["notes"] == []
    flat = read(tmp_path / "a.tif", sample_shape=777)
    assert np.array_equal(flat.X, pages().reshape(3, 777))


def test_smaller_copies_are_no_pages(tmp_path):
    with tifffile.TiffWriter(tmp_path / "a.tif") as writer:
        for page in pages():
            writer.write(page, photometric="minisblack", metadata=None)
            writer.write(page[::2, ::2], subfiletype=1, photometric="minisblack", metadata=None)
    assert np.array_equal(read(tmp_path / "a.tif").X, pages())


def test_more_pages_than_memory_stay_on_disk(tmp_path):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    X = pages((40, 6, 5), "u2")
    for compression in (None, "zlib"):
        tifffile.imwrite(tmp_path / "a.tif", X, photometric="minisblack", compression=compression)
        for options in ({"lazy": True}, {"chunks": 7}, {"lazy": "auto", "max_bytes": 1000}):
            lazy = read(tmp_path / "a.tif", **options).X
            assert isinstance(lazy, da.Array)
            assert np.array_equal(lazy.compute(scheduler="synchronous"), X)
        with pytest.raises(ReadError, match="size cannot be applied to pages that stay on disk"):
            read(tmp_path / "a.tif", lazy=True, size=3)


def hostile(**tags):
    """Write one directory of a page by hand, with some tags changed."""
    both = {256: (4, 1, 4), 257: (4, 1, 4), 258: (3, 1, 8), 273: (4, 1, 8), 279: (4, 1, 16)}
    both |= {int(key[1:]): value for key, value in tags.items()}
    table = b"".join(struct.pack("<HHII", key, *value) for key, value in sorted(both.items()))
    return b"II*\0" + struct.pack("<IH", 8, len(both)) + table + struct.pack("<I", 0)


@pytest.mark.parametrize(
    "content",
    [
        hostile(t256=(4, 1, 0)),
        hostile(t256=(4, 1, 2**31)),
        hostile(t258=(3, 1, 128)),
        hostile(t322=(4, 1, 2**30), t323=(4, 1, 2**30)),
        hostile(t262=(3, 1, 3)),
        hostile(t273=(4, 10**9, 8)),
        hostile(t259=(3, 1, 77)),
        hostile()[:60],
        b"II*\0" + bytes(4),
        b"no TIFF at all",
    ],
)
def test_hostile_tags(tmp_path, content):
    (tmp_path / "a.tif").write_bytes(content)
    with pytest.raises(ReadError, match=r"Cannot read .*a\.tif: "):
        read(tmp_path / "a.tif", max_bytes=2**26)


def test_a_description_opens_no_other_file(tmp_path, monkeypatch):
    """OME-XML may say that pages lie in other files."""
    monkeypatch.chdir(tmp_path)
    tifffile.imwrite(tmp_path / "b.tif", pages()[0], metadata=None)
    note = (
        '<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" UUID="urn:uuid:1"><Image>'
        '<Pixels DimensionOrder="XYCZT" Type="uint8" SizeX="21" SizeY="37" SizeC="1" SizeZ="1" '
        'SizeT="2"><TiffData IFD="0" FirstT="0"><UUID FileName="a.tif">urn:uuid:1</UUID></TiffData>'
        '<TiffData IFD="0" FirstT="1"><UUID FileName="b.tif">urn:uuid:2</UUID></TiffData>'
        "</Pixels></Image></OME>"
    )
    tifffile.imwrite(tmp_path / "a.tif", pages()[0], description=note, metadata=None)
    with pytest.raises(ReadError, match="Cannot read"):
        read(tmp_path / "a.tif")
