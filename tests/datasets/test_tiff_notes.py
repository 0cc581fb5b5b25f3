import numpy as np
import pytest

from tuckermix.datasets import ReadError, _tiff_notes, read
from tuckermix.datasets._tiff_notes import Noted, noted

tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed")

OME = (
    '<?xml version="1.0" encoding="UTF-8"?>'
    '<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0">{}'
    "</Image></OME>"
)
PIXELS = '<Pixels DimensionOrder="{}" SizeX="5" SizeY="6" SizeC="2" SizeZ="3" SizeT="4">{}</Pixels>'


def stack(shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


@pytest.mark.parametrize("axes", ["TZCYX", "TCZYX", "ZTCYX", "CZTYX"])
def test_ome_with_channels_depth_and_time(tmp_path, axes):
    sizes = {"T": 4, "Z": 3, "C": 2, "Y": 6, "X": 5}
    X = stack([sizes[letter] for letter in axes])
    names = ["DAPI", "GFP"]
    tifffile.imwrite(tmp_path / "a.ome.tif", X, metadata={"axes": axes, "Channel": {"Name": names}})
    expected = X.transpose([axes.index(letter) for letter in "TZYXC"])
    data = read(tmp_path / "a.ome.tif")
    assert np.array_equal(data.X, expected)
    assert data.extra["channels"] == names
    assert "4 entries along T (time), each of shape 3 × 6 × 5 × 2" in data.extra["notes"][0]
    one = read(tmp_path / "a.ome.tif", channels="GFP")
    assert np.array_equal(one.X, expected[..., 1])
    assert one.extra["kind"] == "volume"
    # In a folder, the whole file is one sample.
    whole = read(tmp_path, channels=0)
    assert np.array_equal(whole.X[0], expected[..., 0])
    assert whole.extra["kind"] == "video"
    small = read(tmp_path / "a.ome.tif", size=3)
    assert small.X.shape == (4, 3, 3, 3, 2)


def test_ome_with_colours_in_a_page(tmp_path):
    X = stack((4, 6, 5, 3))
    tifffile.imwrite(tmp_path / "a.ome.tif", X, photometric="rgb", metadata={"axes": "TYXS"})
    assert np.array_equal(read(tmp_path / "a.ome.tif").X, X)
    assert read(tmp_path / "a.ome.tif", grey=True).X.shape == (4, 6, 5)


def test_imagej_stacks(tmp_path):
    X = stack((4, 3, 2, 6, 5))
    tifffile.imwrite(tmp_path / "a.tif", X, imagej=True, metadata={"axes": "TZCYX"})
    data = read(tmp_path / "a.tif")
    assert np.array_equal(data.X, X.transpose(0, 1, 3, 4, 2))
    assert data.extra["kind"] == "channels"


def test_notes_without_meaning_leave_the_pages(tmp_path):
    assert noted("anything", 6, 2) == Noted("Z", (6,))
    assert noted("anything", 1, 2) == Noted("", ())
    assert noted('{"shape": [2, 3, 6, 5]}', 6, 2) == Noted("TZ", (2, 3))
    for text in (
        '{"shape": [2, "3", 6, 5]}',
        '{"shape": 4}',
        "{",
        '{"shape": [5, 6, 5]}',
        "[" * 99,
    ):
        assert noted(text, 6, 2) == Noted("Z", (6,))
    assert noted("ImageJ=1\nimages=6\nframes=2\nslices=9\n", 6, 2) == Noted("Z", (6,))
    assert noted("ImageJ=1\nframes=2\nslices=3\n", 6, 2) == Noted("TZ", (2, 3))


def test_pages_may_lie_in_another_order():
    planes = "".join(
        f'<TiffData IFD="{23 - number}" FirstC="{number % 2}" FirstZ="{number // 2 % 3}" '
        f'FirstT="{number // 6}" PlaneCount="1"/>'
        for number in range(24)
    )
    found = noted(OME.format(PIXELS.format("XYCZT", planes)), 24, 2)
    assert (found.axes, found.sizes) == ("TZC", (4, 3, 2))
    assert found.order == list(range(23, -1, -1))
    plain = noted(OME.format(PIXELS.format("XYZTC", "<TiffData/>")), 24, 2)
    assert (plain.axes, plain.sizes, plain.order) == ("CTZ", (2, 4, 3), None)


def test_pages_in_another_order_are_put_right(tmp_path):
    X = stack((4, 6, 5))
    planes = "".join(f'<TiffData IFD="{3 - t}" FirstT="{t}"/>' for t in range(4))
    pixels = f'<Pixels DimensionOrder="XYCZT" SizeX="5" SizeY="6" SizeT="4">{planes}</Pixels>'
    tifffile.imwrite(
        tmp_path / "a.tif",
        X,
        photometric="minisblack",
        description=OME.format(pixels),
        metadata=None,
    )
    assert np.array_equal(read(tmp_path / "a.tif").X, X[::-1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (OME.format(PIXELS.format("XYCZT", "")), r"first of 2 C x 3 Z x 4 T pages, and it holds 6"),
        (OME.format(2 * PIXELS.format("XYCZT", "")), "its OME-XML describes 2 images"),
        (OME.format(PIXELS.format("YXCZT", "")), "the order 'YXCZT' of its axes is unknown"),
        (OME.format(""), "its OME-XML describes no pixels"),
        (OME[:-30].format(""), "its OME-XML cannot be read"),
        (OME.format('<Pixels SizeT="-6"/>'), "its OME-XML says SizeT='-6'"),
        (
            OME.format('<Pixels SizeT="6"><TiffData IFD="0" FirstT="6"/></Pixels>'),
            "places a page at T=6 of 6",
        ),
        (
            OME.format('<Pixels SizeT="6"><TiffData IFD="0" PlaneCount="7"/></Pixels>'),
            "places 7 pages, and it holds 6",
        ),
        (
            OME.format('<Pixels SizeT="6"><TiffData IFD="1" PlaneCount="6"/></Pixels>'),
            "does not give each page one place",
        ),
        (
            OME.replace("<OME", '<!DOCTYPE x [<!ENTITY a "aa">]><OME').format("&a;"),
            "declares a document type",
        ),
    ],
)
def test_ome_that_cannot_be(tmp_path, text, message):
    tifffile.imwrite(
        tmp_path / "a.tif", stack((6, 6, 5)), photometric="minisblack", description=text,
        metadata=None,
    )  # fmt: skip
    with pytest.raises(ReadError, match=message):
        read(tmp_path / "a.tif")


def test_channels_in_pages_and_pixels():
    text = OME.format('<Pixels SizeC="4" SizeT="3"/>')
    with pytest.raises(ValueError, match="4 channels do not come 3 in a page"):
        noted(text, 3, 3, 3)
    with pytest.raises(ValueError, match="its channels lie both in pages and in pixels"):
        noted(OME.format('<Pixels SizeC="6"/>'), 2, 3, 3)


def test_elements_are_counted(monkeypatch):
    monkeypatch.setattr(_tiff_notes, "MAX_ELEMENTS", 20)
    with pytest.raises(ValueError, match="its XML has more than 20 elements"):
        noted(OME.format("<a/>" * 30), 6, 2)
