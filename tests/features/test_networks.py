import copy
import sys

import numpy as np
import pytest

from tuckermix.features import _networks
from tuckermix.features._networks import IMAGENET, OnnxEngine, TorchEngine, engine_for

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

pytestmark = pytest.mark.torch


@pytest.fixture
def pictures(rng):
    return rng.random((5, 3, 24, 20)).astype(np.float32)


def test_layers_of_a_module_are_what_it_computes(small_network, pictures):
    engine = TorchEngine(small_network)
    names = ["stem.1", "stem", "body", "act", "fc"]
    found = dict(zip(names, engine(pictures, names), strict=True))
    net = small_network.eval()
    with torch.no_grad():
        x = torch.from_numpy(pictures)
        normed = net.stem[1](net.stem[0](x))
        stem = torch.relu(normed)
        body = net.body(stem)
        act = torch.relu(net.head(torch.relu(stem + body)))
    for name, expected in {"stem.1": normed, "stem": stem, "body": body, "act": act}.items():
        # What works in place later does not reach back, and the last use of a module counts.
        np.testing.assert_allclose(found[name], expected.numpy(), rtol=1e-4, atol=1e-6)
        assert found[name].dtype == np.float32
    np.testing.assert_allclose(found["fc"], net(x).detach().numpy(), rtol=1e-4, atol=1e-6)
    assert engine.resolve(None, pictures) == "act"


def test_what_follows_the_layer_is_not_computed(small_network, pictures):
    engine = TorchEngine(small_network)
    engine.resolve("stem", pictures)
    calls = []
    engine._host.head.register_forward_hook(lambda *_: calls.append(1))
    engine(pictures, ["stem"])
    assert not calls


def test_the_module_of_the_user_is_left_alone(small_network, pictures):
    small_network.train()
    before = {name: value.clone() for name, value in small_network.state_dict().items()}
    hooks = [len(part._forward_hooks) for part in small_network.modules()]
    TorchEngine(small_network)(pictures, ["act"])
    assert small_network.training
    assert all(torch.equal(v, before[name]) for name, v in small_network.state_dict().items())
    assert [len(part._forward_hooks) for part in small_network.modules()] == hooks


def test_digests_tell_weights_apart(small_network):
    other = copy.deepcopy(small_network)
    assert TorchEngine(other).digest == TorchEngine(small_network).digest
    with torch.no_grad():
        other.fc.bias[0] += 1
    assert TorchEngine(other).digest != TorchEngine(small_network).digest
    assert engine_for(other, None) is engine_for(other, None)


def test_a_module_says_how_it_was_trained(small_network):
    other = copy.deepcopy(small_network)
    assert TorchEngine(other).normalization == IMAGENET
    other.pretrained_cfg = {"mean": (0.1, 0.2, 0.3), "std": [0.4, 0.5, 0.6]}
    assert TorchEngine(other).normalization == ((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))


def test_an_onnx_file_agrees_with_the_module(onnx_file, small_network, pictures):
    engine = OnnxEngine(onnx_file)
    assert engine.resolve(None, pictures) == "strokes"
    edges, vector = engine(pictures, ["edges", "vector"])
    (expected,) = TorchEngine(small_network)(pictures, ["stem.0"])
    np.testing.assert_allclose(edges, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(vector, np.maximum(expected, 0).mean(axis=(2, 3)), rtol=1e-4)
    with pytest.raises(ValueError, match=r"no layer 'stroke'\. Near to it are 'strokes'"):
        engine.resolve("stroke", pictures)


def test_an_onnx_file_with_batches_of_one_size(onnx_file, pictures, tmp_path):
    import onnx

    model = onnx.load(onnx_file)
    for axis, size in zip(
        model.graph.input[0].type.tensor_type.shape.dim, (2, 3, 24, 20), strict=True
    ):
        axis.dim_value = size
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 2
    onnx.save(model, tmp_path / "fixed.onnx")
    engine = OnnxEngine(str(tmp_path / "fixed.onnx"))
    assert engine.fixed_size == (24, 20)
    (found,) = engine(pictures, ["edges"])
    (expected,) = OnnxEngine(onnx_file)(pictures, ["edges"])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_networks_that_are_refused(tmp_path):
    for model in ("resnet", "weights.pth", 7, None):
        with pytest.raises(ValueError, match="'model' parameter of Network must be one of 'effic"):
            engine_for(model, None)
    with pytest.raises(FileNotFoundError, match=r"Network cannot read .*none\.onnx: it does not"):
        engine_for(tmp_path / "none.onnx", None)


def test_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    with pytest.raises(ImportError, match=r"Network needs efficientnet_lite_.*tuckermix\[photos\]"):
        _networks.KNOWN["efficientnet-lite0"][0]()
