import sys

import numpy as np
import pytest

from tuckermix.plots import CentroidDisplay


def test_shows_every_centroid_with_its_size(model):
    display = CentroidDisplay.from_estimator(model)
    texts = [text.get_text() for text in display.ax_.texts]
    sizes = np.bincount(model.labels_)
    assert texts == [f"{k} (n={sizes[k]})" for k in range(3)]
    assert "mean of each cluster" in display.ax_.get_title()
    assert display.figure_ is display.ax_.figure
    assert display.animation_ is None


def test_draws_on_the_axes_it_is_given(model):
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    before = plt.get_fignums()
    assert CentroidDisplay.from_estimator(model, ax=ax).ax_ is ax
    assert plt.get_fignums() == before


@pytest.mark.parametrize(
    ("shape", "columns"), [((20,), 1), ((6, 7), 1), ((6, 7, 3), 1), ((6, 7, 8), 3)]
)
def test_any_sample_shape_is_drawn(shape, columns):
    centroids = np.random.default_rng(0).random((4, *shape))
    display = CentroidDisplay(centroids).plot()
    assert display.image_.get_array().ndim in (2, 3)
    assert len(display.ax_.texts) == 4
    assert ("slices" in display.ax_.get_title()) == (columns == 3)


def test_animation_goes_through_all_frames():
    centroids = np.random.default_rng(0).random((3, 7, 6, 5))
    display = CentroidDisplay(centroids, kind="video").plot(animate=True)
    frames = list(display.animation_.new_frame_seq())
    assert len(frames) == 7
    display.animation_._func(0)
    first = np.array(display.image_.get_array())
    display.animation_._func(6)
    assert not np.array_equal(first, display.image_.get_array())
    display.animation_._draw_was_started = True  # it is meant to be thrown away


def test_animation_needs_videos(model):
    with pytest.raises(ValueError, match="animate=True needs videos, but the centroids are shown"):
        CentroidDisplay.from_estimator(model, animate=True)


def test_estimator_without_centroids_is_refused():
    from sklearn.cluster import KMeans

    fitted = KMeans(2, n_init=1, random_state=0).fit(np.eye(4))
    with pytest.raises(TypeError, match=r"needs an estimator with centroids_, which KMeans"):
        CentroidDisplay.from_estimator(fitted)


def test_missing_matplotlib_is_named(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"CentroidDisplay needs matplotlib: install tuckermix"):
        CentroidDisplay.from_estimator(model)
