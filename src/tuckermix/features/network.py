"""Feature maps of a pretrained network, as a transformer of N-way arrays."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from array_api_compat import is_torch_array

from tuckermix._array_api import Array, asarray_like, get_namespace, is_dask, is_numpy, to_numpy
from tuckermix._estimators import declare
from tuckermix._threads import one_blas_thread
from tuckermix._validation import check_integer, check_text, is_text, none_or, tuple_of
from tuckermix.features._input import ArrayTransformer, check_samples, dataset_range, map_rows
from tuckermix.features._networks import KNOWN, Engine, TorchEngine, engine_for, normalization_of
from tuckermix.features._pictures import Layout, fitting_size, in_channels, resized
from tuckermix.features.registry import NETWORK_LAYERS

POOLED = "pooled"

PLAIN_TYPES = {"bool": 1, "uint8": 2**8 - 1, "uint16": 2**16 - 1}
"""The largest value of types that pictures are stored in."""


@dataclass(frozen=True)
class NetworkSettings:
    """How pictures are brought to a network.

    Attributes
    ----------
    sides : tuple of three int
        Pictures with a shorter side outside the first two are resized: trained on 224 pixels, a
        network sees little in a picture of 32, and takes long for one of 1,000. The longer side of
        a long strip is not enlarged beyond the third.
    values_per_pixel : int
        Values that a network holds at a time for each pixel: some 60 in EfficientNet-Lite0.
    host_bytes : int
        Memory for these values on a processor: batches of 16 pictures of 128 pixels are fastest.
    device_bytes : int
        The same on an accelerator, where a launch should be worth its while.
    """

    sides: tuple[int, int, int] = (128, 224, 1024)
    values_per_pixel: int = 64
    host_bytes: int = 64 * 2**20
    device_bytes: int = 4 * 2**30

    def batch(self, n_pixels: int, on_host: bool) -> int:
        """Return how many pictures the network takes at a time."""
        n_bytes = self.host_bytes if on_host else self.device_bytes
        return max(1, n_bytes // (np.dtype(np.float32).itemsize * self.values_per_pixel * n_pixels))


SETTINGS = NetworkSettings()


@declare
class Network(ArrayTransformer):
    r"""Describe photographs by the feature maps of a pretrained network.

    A map is an array of channels by height by width, which `tuckermix.TuckerClustering` takes as it
    is. Maps of middle layers see strokes and parts, late ones things. Nothing is trained on your
    data, but the network was trained on other photographs, with labels.

    Parameters
    ----------
    model : str, path or torch.nn.Module, default="efficientnet-lite0"
        ``"efficientnet-lite0"``, which comes with ``tuckermix[photos]``; a module of PyTorch, such
        as one of torchvision or timm; or the path of an ONNX file. A network is code that you
        trust. None after loading a model whose network is not a known name, see `use`.
    layer : str or None, default=None
        The layer whose output is taken. None means the last map before the network pools,
        ``"pooled"`` the mean of that map over height and width. For EfficientNet-Lite0 ``"stem"``,
        ``"block 0"`` to ``"block 15"`` and ``"last"``; for a module of PyTorch the name of a module
        in it; for an ONNX file the name of a tensor.
    size : None, int or tuple of two int, default=None
        Height and width that images are resized to; an int is the shorter side. None brings the
        shorter side into the range from 128 to 224, or takes the size that an ONNX file asks for.
    normalize : None, str or tuple, default=None
        Mean and deviation of each channel, for intensities from 0 to 1: ``"imagenet"``,
        ``"symmetric"`` (from -1 to 1), ``"unit"`` (0 to 1) or a pair of tuples. None means what the
        network was trained with, where that is known, or else ``"imagenet"``.
    space : None or tuple of two int, default=None
        The axes of `X` that are height and width; None means axes 1 and 2.
    frames : int or None, default=None
        At most this many frames of a video, or slices of a volume, are looked at: evenly spaced
        ones of the last such axis. None means all.
    n_jobs : int or None, default=None
        How many threads work on batches of images, see `Scattering`.

    Attributes
    ----------
    sample_shape_ : tuple of int
        The shape of a sample.
    n_features_in_ : int
        ``X.shape[1]``, as scikit-learn sets it.
    range_ : tuple of two float
        The intensities that become 0 and 1.
    size_ : tuple of two int
        Height and width of the images that the network sees.
    layer_ : str
        The layer that is read.
    network_ : str
        What the network is called.
    digest_ : str
        SHA-256 of its weights.

    See Also
    --------
    Scattering : Features that are not trained at all.

    Notes
    -----
    The last axis of `X` is colour where it has 1, 3 or 4 entries; the fourth, transparency, is left
    out. All other axes beside height and width are frames or slices: the network sees one at a
    time, and the axis is kept at the end: the result has the shape (n_samples, channels, height,
    width, ...), or (n_samples, channels, ...) for ``layer="pooled"``. Integers of 8 and 16 bits
    without sign are scaled by the largest value of their type, all other numbers by the range seen
    in `fit`. The result is float32 and lies where `X` does; that of a Dask array is lazy.

    Examples
    --------
    >>> import numpy as np
    >>> from tuckermix.features import Network
    >>> images = np.random.default_rng(0).integers(0, 256, (4, 64, 64, 3), dtype=np.uint8)
    >>> Network(layer="block 8").fit_transform(images).shape  # doctest: +SKIP
    (4, 112, 8, 8)
    """

    model: Any = field(default="efficientnet-lite0", kw_only=False)
    layer: str | None = field(default=None, kw_only=False)
    size: Any = field(default=None, kw_only=False)
    normalize: Any = None
    space: Any = None
    frames: int | None = None
    n_jobs: int | None = None

    _takes_rows = False
    _gives = ("float32",)

    _rules: ClassVar = {"layer": none_or(check_text), "frames": none_or(check_integer)}
    _fields: ClassVar = {
        "range_": tuple_of(float),
        "size_": tuple_of(int),
        **dict.fromkeys(("layer_", "network_", "digest_"), is_text),
    }

    def _learn(self, X: Array) -> None:
        engine, layout = self._engine(again=True), self._layout()
        top = PLAIN_TYPES.get(str(X.dtype).rsplit(".", 1)[-1])
        self.range_ = dataset_range(X, None) if top is None else (0.0, float(top))
        size = engine.fixed_size if self.size is None and engine.fixed_size else self.size
        self.size_ = self._fitting(size, layout, X.shape)
        (self.layer_,) = self._resolved([self.layer])
        self.network_ = self.model if _is_known(self.model) else _name_of(self.model)
        self.digest_ = engine.digest

    def _transformed(self, X: Array) -> Array:
        return self._all_maps(X, [(self.layer_, self.layer == POOLED)])[0]

    @one_blas_thread
    def maps(self, X: Any, layers: Sequence[str]) -> dict[str, Array]:
        """Return the outputs of several layers, which one pass through the network computes.

        Parameters
        ----------
        X : array of shape (n_samples, height, width[, ...][, channels])
            Images in memory, of the shape on which the transformer was fitted.
        layers : sequence of str
            Names of layers, ``"pooled"`` among them.

        Returns
        -------
        maps : dict of str to array
            For each layer what `transform` returns.
        """
        X = check_samples(self, X, reset=False)
        if is_dask(X):
            raise TypeError("Network.maps takes arrays in memory. Got a Dask array: use transform.")
        pooled = [layer == POOLED for layer in layers]
        found = self._all_maps(X, list(zip(self._resolved(layers), pooled, strict=True)))
        return dict(zip(layers, found, strict=True))

    def plain(self) -> LayersOfNetwork:
        """Return what computes the maps of all layers worth comparing, see `from_plain`."""
        own = POOLED if self.layer == POOLED else self.layer_
        worth: tuple[str, ...] = (self.layer_, POOLED) if self.layer in (None, POOLED) else ()
        if _is_known(self.model):
            worth = tuple(NETWORK_LAYERS)
        return LayersOfNetwork(self, tuple(dict.fromkeys((*worth, own))))

    def shared_bytes(self, n_samples: int) -> int:
        """Return how much memory the maps of `plain` take, by those of one blank sample."""
        maps = self.plain().fit_transform(np.zeros((1, *self.sample_shape_), dtype=np.float32))
        return n_samples * sum(int(each.nbytes) for each in maps.values())

    def from_plain(self, maps: dict[str, Array]) -> Array:
        """Return what `transform` returns, from the maps of all layers that `plain` computed."""
        return maps[POOLED if self.layer == POOLED else self.layer_]

    def use(self, model: Any) -> Network:
        """Give a loaded transformer its network, whose weights are never stored.

        Parameters
        ----------
        model : torch.nn.Module or path
            The network on which the transformer was fitted: its weights are compared.

        Returns
        -------
        self : Network
            The transformer, ready to transform.
        """
        engine = engine_for(model, self.normalize, again=True)
        if engine.digest != self.digest_:
            raise ValueError(
                f"This {type(self).__name__} was fitted with {self.network_}, whose weights have "
                f"the digest {self.digest_}. Those of the network given have {engine.digest}."
            )
        self.model = model
        return self

    def _resolved(self, layers: Sequence[str | None]) -> list[str]:
        """Return the layers of the network by their names."""
        engine = self._engine()
        blank = np.zeros((1, engine.n_channels, *self.size_), dtype=np.float32)
        return [engine.resolve(None if layer == POOLED else layer, blank) for layer in layers]

    def _all_maps(self, X: Array, layers: list[tuple[str, bool]]) -> list[Array]:
        """Return the outputs of layers for samples in memory, pooled where asked for."""
        engine, layout = self._engine(), self._layout()
        X = layout.thinned(X, self.frames)
        stays = is_torch_array(X) and X.device.type != "cpu" and isinstance(engine, TorchEngine)
        work = X if stays else to_numpy(X)
        shape = tuple(int(size) for size in X.shape)
        batch = SETTINGS.batch(math.prod(self.size_), is_numpy(work))
        names = list(dict.fromkeys(name for name, _ in layers))
        shapes: list[tuple[int, ...]] = []

        def outputs(pictures: Array) -> list[Array]:
            found = dict(zip(names, engine(self._prepared(pictures, engine), names), strict=True))
            return [_pooled(found[name]) if pooled else found[name] for name, pooled in layers]

        def rows(block: Array) -> Array:
            pictures = layout.pictures(block)
            starts = range(0, int(pictures.shape[0]), batch)
            parts = [outputs(pictures[start : start + batch, ...]) for start in starts]
            xp = get_namespace(parts[0][0])
            found = [layout.samples(xp.concat(each), shape) for each in zip(*parts, strict=True)]
            shapes[:] = [tuple(int(size) for size in each.shape[1:]) for each in found]
            flat = [xp.reshape(each, (each.shape[0], -1)) for each in found]
            return flat[0] if len(flat) == 1 else xp.concat(flat, axis=1)

        n_frames = math.prod(shape[axis] for axis in layout.others)
        together = map_rows(work, rows, max(1, batch // n_frames))
        xp, like = get_namespace(together), get_namespace(X)
        stops = np.cumsum([0, *map(math.prod, shapes)]).tolist()
        results = [
            xp.reshape(together[:, start:stop], (shape[0], *one))
            for one, (start, stop) in zip(shapes, pairwise(stops), strict=True)
        ]
        return [each if work is X else asarray_like(each, X, like.float32) for each in results]

    def _prepared(self, pictures: Array, engine: Engine) -> Array:
        """Return pictures as the network takes them: (n, channels, height, width) in float32."""
        xp = get_namespace(pictures)
        low, high = self.range_
        pictures = xp.astype((pictures - low) / ((high - low) or 1.0), xp.float32)
        pictures = in_channels(resized(pictures, self.size_), engine.n_channels)
        mean, deviation = (np.array(each, dtype=np.float32) for each in engine.normalization)
        if len(mean) != engine.n_channels:
            mean, deviation = (each.mean(keepdims=True) for each in (mean, deviation))
        mean, deviation = (
            asarray_like(each[:, None, None], pictures) for each in (mean, deviation)
        )
        return (pictures - mean) / deviation

    def _engine(self, *, again: bool = False) -> Engine:
        if self.model is None:
            which = getattr(self, "network_", "the one it was fitted with")
            raise ValueError(
                f"This {type(self).__name__} has no network, because weights are never stored: "
                f"give it {which} by use()."
            )
        return engine_for(self.model, self.normalize, again=again)

    def _layout(self) -> Layout:
        return Layout.of((1, *self.sample_shape_), self.space, type(self).__name__)

    def _fitting(self, size: Any, layout: Layout, shape: tuple[int, ...]) -> tuple[int, int]:
        """Return height and width that pictures of samples of this shape are resized to."""
        sides = (int(shape[layout.space[0]]), int(shape[layout.space[1]]))
        return fitting_size(size, sides, SETTINGS.sides, type(self).__name__)

    def _check_params(self) -> None:
        super()._check_params()
        normalization_of(self.normalize)
        fitting_size(self.size, (1, 1), SETTINGS.sides, type(self).__name__)

    def _check_state(self) -> None:
        """Raise if what a file gave cannot be what `fit` sets. No file is opened for it."""
        if not (self.model is None or _is_known(self.model)):
            raise ValueError(f"its network {self.model!r} is not a known name")
        super()._check_state()
        fits = self._fitting(self.size, self._layout(), (1, *self.sample_shape_)) == self.size_
        if min(self.size_) < 1 or (self.model is not None and not fits):
            raise ValueError(f"size_ is {self.size_!r}")
        if self.model is not None and self._engine().digest != self.digest_:
            raise ValueError(
                f"the installed weights of {self.model!r} have the digest "
                f"{self._engine().digest}, and the model was fitted with {self.digest_}"
            )

    def _stored_parameters(self) -> dict[str, Any]:
        """Return parameters as a file may have them: the name of a known network, or none."""
        given = self.get_params(deep=False)
        return given if _is_known(self.model) else {**given, "model": None}

    def __sklearn_clone__(self) -> Network:
        """Return a copy that is not fitted, of the same network and not of a copy of it."""
        return type(self)(**self.get_params(deep=False))


class LayersOfNetwork:
    """The maps of several layers, which one pass computes for all views of a network.

    Parameters
    ----------
    network : Network
        A fitted transformer.
    layers : tuple of str
        The layers.
    """

    def __init__(self, network: Network, layers: tuple[str, ...]):
        self.network, self.layers = network, layers

    def fit_transform(self, X: Array) -> dict[str, Array]:
        """Return the maps by layer."""
        return self.network.maps(X, self.layers)

    def __repr__(self) -> str:
        model = self.network.model
        given = self.network.get_params(deep=False)
        given["model"] = model if isinstance(model, str) else id(model)
        given.pop("layer")
        return f"{type(self).__name__}({self.layers}, {given})"


def _pooled(output: Array) -> Array:
    """Return the mean over height and width, the axes from 2 on."""
    axes = tuple(range(2, output.ndim))
    return get_namespace(output).mean(output, axis=axes) if axes else output


def _is_known(model: Any) -> bool:
    """Tell whether a network is known by its name, so that files may name it."""
    return isinstance(model, str) and model in KNOWN


def _name_of(model: Any) -> str:
    """Return what people call a network of their own."""
    return os.path.basename(model) if isinstance(model, str | os.PathLike) else type(model).__name__
