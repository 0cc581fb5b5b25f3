import numpy as np
import pytest
from tests.cases import each

from tuckermix._axes import (
    ORDER,
    arrange,
    check_axes,
    kind_of,
    sample_letter,
    take_channels,
)
from tuckermix.datasets import ReadError, read


@pytest.mark.parametrize(
    ("given", "letters"),
    [("nyx", "NYX"), ("TCZYX", "TCZYX"), ("", None), ("NYY", None), ("NQ", None)],
)
def test_letters(given, letters):
    assert check_axes(given) == letters


@pytest.mark.parametrize("seed", range(5))
def test_any_order_ends_in_the_same_samples(seed):
    rng = np.random.default_rng(seed)
    X = rng.random((4, 2, 3, 5, 6, 7))  # in the order of `ORDER`
    order = rng.permutation(6)
    axes = "".join(ORDER[axis] for axis in order)
    back, letters = arrange(X.transpose(order), axes, "N")
    assert letters == ORDER
    assert np.array_equal(back, X)
    assert np.shares_memory(back, X)
    # Another axis of samples comes first, and N keeps its place among the others.
    other, letters = arrange(X.transpose(order), axes, "T")
    assert letters == "TNZYXC"
    assert np.array_equal(other, np.moveaxis(X, 1, 0))


def test_one_file_is_cut_along_time_then_depth_then_channels():
    assert sample_letter("NTYX", (1, 9, 5, 5)) == "N"
    assert sample_letter("ZTYX", (9, 9, 5, 5)) == "T"
    assert sample_letter("TZYX", (1, 9, 5, 5)) == "Z"
    assert sample_letter("CYX", (3, 5, 5)) == "C"
    with pytest.raises(ReadError, match=r"it holds one image of shape \(5, 5\)"):
        sample_letter("YX", (5, 5))


def test_channels_by_number_and_name():
    X = np.arange(24).reshape(2, 3, 4)
    kept, axes = take_channels(X, "YCX", (2, 0))
    assert axes == "YCX"
    assert np.array_equal(kept, X[:, [2, 0]])
    kept, axes = take_channels(X, "YCX", ("GFP",), ["DAPI", "GFP", "red"])
    assert axes == "YX"
    assert np.array_equal(kept, X[:, 1])
    with pytest.raises(ReadError, match="it has no channel 'x': it has 3, numbered from 0, named"):
        take_channels(X, "YCX", ("x",), ["DAPI", "GFP", "red"])
    with pytest.raises(ReadError, match=r"it has no channel 'x': it has 3, numbered from 0\. Set"):
        take_channels(X, "YCX", ("x",))
    with pytest.raises(ReadError, match="it has no channel -1"):
        take_channels(X, "YCX", (-1,))
    with pytest.raises(ReadError, match="it has no channels to choose from"):
        take_channels(X, "ZYX", (0,))


@each(
    "axes, shape, kind",
    [
        ("TYX", (9, 5, 5), "video"),
        ("ZYX", (9, 5, 5), "volume"),
        ("YX", (5, 5), "image"),
        ("YXC", (5, 5, 3), "colour"),
        ("YXC", (5, 5, 2), "channels"),
        ("TYXC", (9, 5, 5, 3), "video"),
        ("ZYXC", (9, 5, 5, 7), "channels"),
        ("TX", (9, 5), "auto"),
    ],
)
def test_how_samples_are_drawn(axes, shape, kind):
    assert kind_of(axes, shape) == kind


@pytest.mark.parametrize("lazy", [False, True])
def test_axes_of_stored_arrays(tmp_path, lazy):
    X = np.random.default_rng(0).random((6, 2, 5, 4))
    np.save(tmp_path / "a.npy", X)
    data = read(tmp_path / "a.npy", axes="YCNX", lazy=lazy)
    assert np.array_equal(data.X, X.transpose(2, 0, 3, 1))
    assert data.extra["kind"] == "channels"
    one = read(tmp_path / "a.npy", axes="YCNX", channels=1, lazy=lazy)
    assert np.array_equal(one.X, X[:, 1].transpose(1, 0, 2))
    assert one.extra["kind"] == "image"
    asked = read(tmp_path / "a.npy", axes="ZTYX", sample_axis=0, lazy=lazy)
    assert np.array_equal(asked.X, X)
    with pytest.raises(ReadError, match=r"axes='NYX' names 3 axes, and .* has 4"):
        read(tmp_path / "a.npy", axes="NYX")
    with pytest.raises(ReadError, match="channels cannot be chosen in an array whose axes"):
        read(tmp_path / "a.npy", channels=0)


def test_axes_of_arrays_in_chunks(tmp_path):
    pytest.importorskip("dask")
    X = np.random.default_rng(0).random((6, 2, 5, 4))
    np.save(tmp_path / "a.npy", X)
    data = read(tmp_path / "a.npy", axes="YCNX", channels=[1, 0], chunks=2)
    assert np.array_equal(data.X.compute(), X[:, ::-1].transpose(2, 0, 3, 1))
