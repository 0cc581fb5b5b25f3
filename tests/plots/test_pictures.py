import numpy as np
import pytest
from tests.cases import each

from tuckermix.plots.pictures import (
    curves,
    montage,
    picture,
    picture_kind,
    scaled,
    squeezed_shape,
    value_range,
    views,
)


@each(
    "shape, kind",
    [
        ((7,), "signal"),
        ((7, 1), "signal"),
        ((8, 9), "image"),
        ((8, 9, 1), "image"),
        ((8, 9, 3), "colour"),
        ((8, 9, 4), "colour"),
        ((8, 9, 10), "volume"),
        ((3, 3, 3), "volume"),
        ((5, 8, 9, 3), "video"),
        ((2, 5, 8, 9), "volume"),
    ],
)
def test_kind_follows_the_shape(shape, kind):
    assert picture_kind(shape) == kind


def test_kind_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"kind='video' does not fit samples of shape \(8, 8\)"):
        picture_kind((8, 8), "video")
    with pytest.raises(ValueError, match="kind='colour' does not fit"):
        picture_kind((8, 8, 8), "colour")
    with pytest.raises(ValueError, match="must be one of 'auto'"):
        picture_kind((8, 8), "film")


def test_squeezing_keeps_one_axis():
    assert squeezed_shape((1, 1)) == (1,)


def test_views_lie_between_zero_and_one_and_use_the_whole_scale(seed):
    rng = np.random.default_rng(seed)
    for shape in [(6,), (5, 6), (8, 9, 3), (5, 6, 7), (4, 8, 9, 3), (2, 5, 6, 7)]:
        samples = 100 * rng.normal(size=(3, *shape))
        pictures = views(samples)
        assert pictures.min() == 0
        assert pictures.max() == 1


def test_volume_slices_are_the_middle_ones():
    volume = np.arange(4 * 5 * 6, dtype=float).reshape(1, 4, 5, 6)
    shown = views(volume, limits=(0, 119))[0]
    assert shown.shape == (3, 5, 6)
    np.testing.assert_allclose(shown[0] * 119, volume[0, 2], rtol=1e-6)
    np.testing.assert_allclose(shown[1][:4] * 119, volume[0, :, 2], rtol=1e-6)
    np.testing.assert_allclose(shown[2][:4, :5] * 119, volume[0, :, :, 3], rtol=1e-6)


def test_video_frames_run_from_first_to_last():
    video = np.arange(10.0)[None, :, None, None] * np.ones((1, 10, 3, 4))
    frames = views(video, "video", limits=(0, 9), n_frames=4)[0]
    np.testing.assert_allclose(frames[:, 0, 0] * 9, [0, 3, 6, 9], rtol=1e-6)


def test_single_picture_of_a_video_is_its_middle_frame():
    video = np.arange(7.0)[None, :, None, None] * np.ones((1, 7, 3, 4))
    assert 3 <= 6 * picture(video, "video", (0, 6))[0, 0, 0] <= 4


def test_channels_are_drawn_one_by_one():
    X = np.random.default_rng(0).random((2, 7, 8, 9, 2))
    shown = views(X, "channels", limits=(0.0, 1.0))
    np.testing.assert_allclose(shown, np.moveaxis(X[:, 3], -1, 1), atol=1e-6)
    assert picture(X, "channels", (0.0, 1.0)).shape == (2, 8, 9)


def test_constant_samples_have_a_scale():
    low, high = value_range(np.full((3, 4), 7.0))
    assert low < high
    assert np.isfinite(scaled(np.full((3, 4), 7.0), (low, high))).all()


def test_scale_ignores_a_few_outliers():
    values = np.concatenate([np.linspace(0, 1, 10_000), [1e9]])
    assert value_range(values)[1] < 1.01


def test_curves_connect_and_rise_with_the_values():
    drawn = curves(np.array([[0.0, 1.0], [1.0, 0.0]]), (0, 1))
    assert (drawn.sum(axis=1) >= 1).all()  # no column is empty
    rising = drawn[0].argmax(axis=0)
    assert rising[0] > rising[-1]  # row 0 is the top
    assert (drawn[1].argmax(axis=0)[0]) < drawn[1].argmax(axis=0)[-1]


def test_montage_puts_every_tile_in_its_place():
    tiles = np.arange(5.0)[:, None, None] / 5 * np.ones((5, 2, 3))
    sheet = montage(tiles, 3, gap=1)
    assert sheet.shape == (5, 11)
    np.testing.assert_allclose(sheet[0, [0, 4, 8]], [0, 0.2, 0.4], rtol=1e-6)
    np.testing.assert_allclose(sheet[3, [0, 4]], [0.6, 0.8], rtol=1e-6)
    assert sheet[2].min() == 1  # the gap
    assert sheet[3, 8] == 1  # no sixth tile
