import numpy as np
import pytest
from tuckermix.plots.components import mode_profiles

from tuckermix import TuckerClustering
from tuckermix.datasets import make_tensor_clusters
from tuckermix.plots import ComponentDisplay


def test_profiles_say_where_and_when():
    videos = np.zeros((2, 6, 5, 4))
    videos[0, 3] = 1.0  # the first flashes in frame 3
    videos[1, :, 2] = 1.0  # the second has a bright row
    frames, rows, columns = mode_profiles(videos, np.zeros((6, 5, 4)))
    assert np.argmax(frames[0]) == 3
    np.testing.assert_allclose(frames[1], frames[1, 0])
    assert np.argmax(rows[1]) == 2
    np.testing.assert_allclose(columns, columns[:, :1] * np.ones(4))
    np.testing.assert_allclose(frames[0, 3], 1.0)


@pytest.mark.parametrize(
    ("shape", "kind", "names"),
    [
        ((8, 7), "auto", ["row", "column"]),
        ((5, 6, 7), "auto", ["depth", "row", "column"]),
        ((5, 6, 7), "video", ["frame", "row", "column"]),
        ((9,), "auto", ["position"]),
    ],
)
def test_each_mode_has_a_profile(shape, kind, names):
    X = make_tensor_clusters(n_samples=60, shape=shape, n_clusters=3, random_state=0).X
    model = TuckerClustering(3, memberships="archetypes", random_state=0).fit(X)
    display = ComponentDisplay.from_estimator(model, kind=kind)
    assert [axes.get_xlabel() for axes in display.profile_axes_] == names
    for axes, size in zip(display.profile_axes_, shape, strict=True):
        assert len(axes.lines) == model.n_components_
        assert len(axes.lines[0].get_xdata()) == size
    assert display.figure_ is display.ax_.figure


def test_axes_of_ones_own_get_the_pictures_only():
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    display = ComponentDisplay(np.eye(8).reshape(1, 8, 8), weights=[1.0]).plot(ax)
    assert display.ax_ is ax
    assert display.profile_axes_ == []
    assert [text.get_text() for text in ax.texts] == ["0 (100 %)"]
