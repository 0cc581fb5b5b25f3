import numpy as np
import pytest

from tuckermix.datasets import read

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


def test_pages_in_another_order_are_put_right(tmp_path):
    X = stack((4, 6, 5))
    planes = "".join(f'<TiffData IFD="{3 - t}" FirstT="{t}"/>' for t in range(4))
    sizes = 'SizeX="5" SizeY="6" SizeC="1" SizeZ="1" SizeT="4"'
    pixels = f'<Pixels DimensionOrder="XYCZT" {sizes}>{planes}</Pixels>'
    tifffile.imwrite(
        tmp_path / "a.tif",
        X,
        photometric="minisblack",
        description=OME.format(pixels),
        metadata=None,
    )
    assert np.array_equal(read(tmp_path / "a.tif").X, X[::-1])
