import numpy as np
import pytest

from tuckermix.features._pictures import (
    Layout,
    fitting_size,
    in_channels,
    resized,
    resizing_matrix,
)


@pytest.mark.parametrize(
    ("size", "target"), [((7, 9), (14, 5)), ((30, 4), (8, 16)), ((5, 5), (5, 5))]
)
@pytest.mark.torch
def test_resizing_is_that_of_pytorch(rng, size, target):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    pictures = rng.random((2, 3, *size)).astype(np.float32)
    expected = torch.nn.functional.interpolate(
        torch.from_numpy(pictures), size=target, mode="bilinear", antialias=True
    )
    assert np.allclose(resized(pictures, target), expected.numpy(), atol=1e-6)


def test_resizing_keeps_what_is_flat():
    for size, target in ((3, 11), (40, 7), (1, 5)):
        assert np.allclose(resizing_matrix(size, target) @ np.ones(size), 1.0)


def test_every_frame_is_a_picture_and_comes_back(rng, xp):
    for shape, space, channels in (
        ((2, 4, 5), None, 1),
        ((2, 4, 5, 3), None, 3),
        ((2, 4, 5, 4), None, 3),
        ((2, 4, 5, 6), None, 1),
        ((2, 4, 5, 6, 3), None, 3),
        ((2, 6, 4, 5, 3), (2, 3), 3),
        ((2, 6, 7, 4, 5), (-2, -1), 1),
    ):
        X = rng.random(shape)
        layout = Layout.of(shape, space, "Network")
        pictures = layout.pictures(xp.asarray(X))
        n_frames = int(np.prod([shape[axis] for axis in layout.others]))
        assert tuple(pictures.shape) == (2 * n_frames, channels, 4, 5)
        back = np.asarray(layout.samples(pictures, shape))
        assert back.shape == (2, channels, 4, 5, *(shape[axis] for axis in layout.others))
        where = [
            axis for axis in (layout.channel, *layout.space, *layout.others) if axis is not None
        ]
        straight = X.transpose(0, *where)
        straight = straight if layout.channel is not None else straight[:, None]
        assert np.array_equal(back, straight[:, :3])


def test_grey_and_colour(rng):
    grey = rng.random((2, 1, 3, 3))
    assert np.array_equal(in_channels(grey, 3), np.repeat(grey, 3, axis=1))
    colour = rng.random((2, 3, 3, 3))
    assert in_channels(colour, 3) is colour
    assert np.allclose(in_channels(colour, 1)[:, 0], colour.mean(axis=1))


def test_the_size_of_pictures():
    sides = (128, 224, 1024)
    for size, shape, wanted in (
        (None, (32, 32), (128, 128)),
        (None, (150, 200), (150, 200)),
        (None, (1000, 2000), (224, 448)),
        (None, (1, 10**6), (128, 1024)),
        (96, (200, 100), (192, 96)),
        ((30, 40), (200, 100), (30, 40)),
    ):
        assert fitting_size(size, shape, sides, "Network") == wanted
    for size in (0, -1, 2.5, (3,), (3, 0), (3, 4, 5), (10**6, 3), 10**6, "large", True):
        with pytest.raises(ValueError, match="'size' parameter of Network must be None"):
            fitting_size(size, (5, 5), sides, "Network")


def test_what_is_not_an_image():
    with pytest.raises(ValueError, match=r"Network takes images, .*Got an array of shape \(5, 9\)"):
        Layout.of((5, 9), None, "Network")
    for space in ((1,), (1, 1), (0, 1), (1, 9), "xy", 3):
        with pytest.raises(ValueError, match="'space' parameter of Network must"):
            Layout.of((5, 9, 9), space, "Network")
