import numpy as np
import pytest

from tuckermix import TuckerClustering
from tuckermix.plots import AbundanceDisplay


def test_maps_show_the_weights_in_their_places():
    weights = np.random.default_rng(0).dirichlet(np.ones(2), size=12)
    display = AbundanceDisplay(weights, (3, 4), names=["soil", "water"]).plot()
    sheet = np.asarray(display.image_.get_array())
    np.testing.assert_allclose(sheet[1:4, :4], 1 - weights[:, 0].reshape(3, 4))
    assert [text.get_text() for text in display.ax_.texts] == ["soil", "water"]


def test_many_maps_fill_several_rows():
    weights = np.full((9, 6), 1 / 6)
    display = AbundanceDisplay(weights, (3, 3)).plot()
    assert np.asarray(display.image_.get_array()).shape[0] > 2 * 3
    assert len(display.ax_.texts) == 6


def test_a_fitted_scene_is_shown():
    scene = np.random.default_rng(1).random((5, 6, 8))
    model = TuckerClustering(2, n_components=3, memberships="archetypes", random_state=0)
    model.fit(scene.reshape(30, 8))
    display = AbundanceDisplay.from_estimator(model, (5, 6))
    assert display.figure_ is display.ax_.figure


def test_the_shape_must_have_as_many_pixels_as_there_are_weights():
    with pytest.raises(ValueError, match="needs one row of memberships for each pixel"):
        AbundanceDisplay(np.ones((10, 1)), (3, 4)).plot()
