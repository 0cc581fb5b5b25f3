"""From --features and --scale to a pipeline, and how its input was read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._array_api import is_dask, to_numpy
from tuckermix._names import FEATURES, PIXELS, SCALES
from tuckermix._reading import default_limit
from tuckermix._threads import one_blas_thread
from tuckermix.cli._console import UsageError
from tuckermix.cli._options import AUTO, NONE, check
from tuckermix.datasets import Dataset

SAME_KIND = ("key", "sample_axis", "sample_shape", "axes")
"""Options for reading that speak of a file's inside: they serve for files of the same kind."""

OF_THE_RUN = ("on_error",)
"""Options for reading that a model does not remember."""


def with_features(model: Any, features: str, scale: str) -> Any:
    """Put what --scale and --features ask for before a model; return a pipeline, or the model."""
    from sklearn.pipeline import make_pipeline

    from tuckermix.features import Scale
    from tuckermix.features.registry import VIEWS

    check("--features", features, (*FEATURES, AUTO))
    check("--scale", scale, (NONE, *SCALES))
    steps: list[Any] = [] if scale == NONE else [Scale(scale)]
    if features != AUTO:
        steps += VIEWS[features].transformers()
    return make_pipeline(*steps, model) if steps else model


def choose(model: Any, X: Any, features: str, scale: str, n_clusters: int | None, seed: int) -> Any:
    """Choose what is open: the number of clusters, the view, or both.

    Returns
    -------
    selection : Selection
        What was compared. With --features auto these are the views that a report can show: of
        images pixels, also of norm 1 with few neighbours, scattering, log-scattering and relative
        scattering; pixels, also of norm 1, of tables and volumes in memory without negative
        entries. What --scale changes is compared by the views that --features names.
    """
    from sklearn.base import clone

    from tuckermix.cli._input import floating
    from tuckermix.selection import AutoClustering
    from tuckermix.selection.auto import NORM_ONE, PART, has_norms, is_image

    image, names = is_image(tuple(X.shape[1:])), [features]
    if features == AUTO:
        names = list(FEATURES) if image else [PIXELS]
        if image and scale == NONE:
            names += _further_views()
        elif scale == NONE and not is_dask(X) and has_norms(X):
            names.append(NORM_ONE)
    candidates = [(name, _view(clone(model), name, scale)) for name in names]
    chooser = AutoClustering(
        "auto" if n_clusters is None else n_clusters, candidates=candidates, random_state=seed
    )
    if not is_dask(X) and len(X) > PART:  # not all of it need be converted
        rows = np.random.default_rng(seed).choice(len(X), PART, replace=False, shuffle=False)
        X = X[np.sort(rows)]
    return chooser.select(floating(X))[1]


def as_chosen(model: Any, selection: Any, scale: str) -> Any:
    """Return what `with_features` would return for what was chosen."""
    from sklearn.base import clone

    chosen = clone(model).set_params(n_clusters=selection.n_clusters)
    return _view(chosen, selection.view, scale)


def _further_views() -> dict[str, tuple[list[Any], dict[str, Any]]]:
    """Return views of images that have no word of --features: what computes them, and settings."""
    from sklearn.pipeline import Pipeline

    from tuckermix.selection.auto import SMALLEST_IMAGE, built_in_candidates

    found = {}
    for name, candidate in built_in_candidates((SMALLEST_IMAGE, SMALLEST_IMAGE), AUTO):
        if isinstance(candidate, Pipeline) and name not in FEATURES:
            *steps, last = (step for _, step in candidate.steps)
            found[name] = (steps, _settings(last))
    return found


def _settings(model: Any) -> dict[str, Any]:
    """Return the parameters of a model that are not its defaults."""
    usual = type(model)().get_params()
    return {name: value for name, value in model.get_params().items() if value != usual[name]}


def _view(model: Any, name: str, scale: str) -> Any:
    """Put before a model what a view that was compared needs; options that were given stay."""
    from sklearn.pipeline import make_pipeline

    from tuckermix.selection.auto import NORM_ONE

    if name in FEATURES:
        return with_features(model, name, scale)
    if name == NORM_ONE:
        return with_features(model, PIXELS, "unit")
    steps, settings = _further_views()[name]
    return make_pipeline(*steps, model.set_params(**(settings | _settings(model))))


def is_pipeline(model: Any) -> bool:
    """Tell whether features are computed before the model sees the samples."""
    return hasattr(model, "steps")


def scale_of(model: Any) -> str:
    """Return how a model scales intensities first, in the words of --scale."""
    steps = [step for _, step in model.steps] if is_pipeline(model) else []
    return next((step.mode for step in steps if type(step).__name__ == "Scale"), NONE)


def fit_features(model: Any, X: Any) -> Any:
    """Fit the transformers of a pipeline and return the features; `X` itself where there are none.

    Features of samples on disk are kept in memory if they fit there: every pass would compute them
    again.
    """
    if not is_pipeline(model):
        return X
    features = model[:-1].fit_transform(X)
    if is_dask(features) and features.nbytes <= default_limit():
        return features.persist()
    return features


@one_blas_thread
def soft_labels(model: Any, X: Any) -> np.ndarray:
    """Return the soft labels of the fitted samples, and make what is lazy in the model concrete.

    All that is written has a few numbers for each sample; one pass computes it.
    """
    if not is_dask(X):
        return to_numpy(model.predict_proba(X))
    import dask

    proba, model.labels_, model.memberships_ = dask.compute(
        model.predict_proba(X), model.labels_, model.memberships_
    )
    return proba


def refuse_mixed_depths(data: Dataset, scale: str) -> None:
    """Raise if images of several bit depths are to be compared by their raw values."""
    kinds = data.extra.get("dtypes") or {}
    if len(kinds) < 2 or scale in ("sample", "unit"):
        return
    examples = ", ".join(f"{name} ({kind})" for kind, name in kinds.items())
    raise UsageError(
        f"The images differ in bit depth, such as {examples}, and would be clustered by it: "
        "add --scale sample to bring each of them to the range from 0 to 1."
    )


def reading_of(
    source: str, data: Dataset, options: dict[str, Any], *, pixels: bool = False
) -> dict[str, Any]:
    """Return how the input was read, to be stored with the model: what was asked for or found."""
    found = {
        key: value for key, value in options.items() if value is not None and key not in OF_THE_RUN
    }
    if Path(source).is_dir() and data.names and "grey" not in found:
        # Pictures in a folder are grey if all of them are; new ones follow the old.
        colour = len(data.sample_shape) == 3 and data.sample_shape[-1] in (3, 4)
        if colour or len(data.sample_shape) == 2:
            found["grey"] = not colour
    if pixels:
        found["pixels"] = True
    return {"suffix": Path(source).suffix.lower(), **found}


def reading_as_before(model: Any, source: str, options: dict[str, Any]) -> dict[str, Any]:
    """Complete the options for reading by those with which the model's own input was read."""
    known = dict(getattr(model, "reading_", None) or {})
    same = known.pop("suffix", None) == Path(source).suffix.lower()
    if not Path(source).exists():
        return options  # a dataset by name
    before = {key: value for key, value in known.items() if same or key not in SAME_KIND}
    given = {key: value for key, value in options.items() if value is not None}
    return {**dict.fromkeys(options), **{k: v for k, v in before.items() if k in options}, **given}
