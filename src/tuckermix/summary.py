"""What is said of a fit, each figure computed once: for the report, the command line and records.

:func:`summarize_fit` gathers the figures of a fitted model; :func:`versions` and :func:`machine`
say where it ran.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np

from tuckermix._array_api import blocks, to_numpy
from tuckermix._machine import stated, total_memory
from tuckermix._records import Record
from tuckermix._version import __version__

__all__ = [
    "FitSummary",
    "duration",
    "innermost",
    "known",
    "machine",
    "printable",
    "sample_names",
    "scores",
    "settings",
    "sizes_text",
    "summarize_fit",
    "surety",
    "variance_explained",
    "versions",
]

NUMERICAL = ("numpy", "scipy", "scikit-learn")
PACKAGES = (*NUMERICAL, "torch")
"""Packages on which a number may depend beside this package; the last only where it is used."""

SECONDS_DIGITS = 6
"""Digits of a time behind the point: no clock tells more."""


@dataclass(frozen=True)
class FitSummary(Record):
    """The figures of a fit, as plain values that JSON can hold.

    Attributes
    ----------
    n_samples : int
        The number of samples.
    sample_shape : list of int
        The shape of one.
    dtype : str
        The type of their entries.
    n_clusters : int
        The number of clusters.
    cluster_sizes : list of int
        The samples of each cluster.
    n_components : int or None
        Components of the model. This and the next three are None where the clusters come from a
        sum of views, which have a model each.
    ranks : list of int or None
        The core size.
    cost : float or None
        Half the squared distance between the model and what it was fitted to: the samples, or
        features of them.
    variance_explained : float or None
        The share of the variance about the mean that the model explains; None also where that is
        not known.
    gap : float or None
        How far the memberships are from the best ones; None where it is not known.
    mean_confidence : float
        The mean of the largest soft label: agreement of votes, or with `calibrate` a probability.
    n_iter : int or None
        Iterations of the solver.
    stop_reason : str or None
        Why it ended.
    converged : bool
        Whether that means success.
    seconds : float or None
        The time of the fit, where it was taken.
    accuracy, nmi : float or None
        Agreement with known classes, where there are any, over the samples that are in a cluster.
    n_known : int or None
        The number of samples whose class is known, over which agreement is measured.
    settings : dict
        The parameters of the model.
    versions : dict of str to str
        The versions of what the run depended on.
    n_outliers : int, default=0
        Samples with the label -1, which are in no cluster.
    """

    n_samples: int
    sample_shape: list[int]
    dtype: str
    n_clusters: int
    cluster_sizes: list[int]
    n_components: int | None
    ranks: list[int] | None
    cost: float | None
    variance_explained: float | None
    gap: float | None
    mean_confidence: float
    n_iter: int | None
    stop_reason: str | None
    converged: bool
    seconds: float | None
    accuracy: float | None
    nmi: float | None
    n_known: int | None
    settings: dict[str, Any]
    versions: dict[str, str]
    n_outliers: int = 0


def summarize_fit(
    model: Any,
    X: Any,
    proba: np.ndarray,
    *,
    labels: np.ndarray | None = None,
    truth: Any = None,
    seconds: float | None = None,
    seen: Any = None,
) -> FitSummary:
    """Gather the figures of a fit in one pass over the samples.

    Parameters
    ----------
    model : TuckerClustering, MultiViewClustering or AutoClustering
        The fitted clustering.
    X : array of shape (n_samples, d_1, ...)
        The samples that it was fitted on.
    proba : array of shape (n_samples, n_clusters)
        Their soft labels.
    labels : array of shape (n_samples,), default=None
        Their labels; None means those of the fit.
    truth : array-like of shape (n_samples,), default=None
        Known classes, to compare with; empty texts and NaN stand for unknown ones.
    seconds : float, default=None
        How long the fit took.
    seen : array of shape (n_samples, ...), default=None
        The features on which the chosen view of an `AutoClustering` was fitted, where they are
        known.

    Returns
    -------
    summary : FitSummary
        The figures.
    """
    inner = innermost(model)
    if inner is model and seen is None:
        seen = X
    labels = to_numpy(model.labels_) if labels is None else labels
    inside = labels >= 0
    found: dict[str, Any] = {"ac": None, "nmi": None}
    if truth is not None:
        found = scores(np.asarray(truth)[inside], labels[inside])
    reason = getattr(inner, "stop_reason_", None)
    one = hasattr(inner, "cost_")
    return FitSummary(
        n_samples=int(X.shape[0]),
        sample_shape=[int(size) for size in X.shape[1:]],
        dtype=str(X.dtype),
        n_clusters=int(proba.shape[1]),
        cluster_sizes=np.bincount(labels[inside], minlength=proba.shape[1]).tolist(),
        n_components=int(inner.n_components_) if one else None,
        ranks=[int(rank) for rank in inner.ranks_] if one else None,
        cost=float(inner.cost_) if one else None,
        variance_explained=variance_explained(inner, seen) if one and seen is not None else None,
        gap=None if not one or np.isnan(inner.gap_) else float(inner.gap_),  # JSON knows no nan
        mean_confidence=float(proba.max(axis=1).mean()),
        n_iter=int(inner.n_iter_) if one else None,
        stop_reason=None if reason is None else str(reason),
        converged=bool(getattr(reason, "converged", True)),
        seconds=None if seconds is None else round(seconds, SECONDS_DIGITS),
        accuracy=found["ac"],
        nmi=found["nmi"],
        n_known=None if truth is None else int(known(truth)[inside].sum()),
        settings=settings(model),
        versions=versions(),
        n_outliers=int(np.sum(~inside)),
    )


def innermost(model: Any) -> Any:
    """Return the fitted clustering inside choices and pipelines, such as a `TuckerClustering`."""
    while hasattr(model, "best_estimator_") or hasattr(model, "steps"):
        model = model.best_estimator_ if hasattr(model, "best_estimator_") else model[-1]
    return model


def cluster_names(model: Any) -> dict[int, str]:
    """Return the names that people gave to clusters, by number."""
    found = getattr(model, "cluster_names_", None)
    if found is None and hasattr(model, "steps"):
        return cluster_names(model[-1])
    named = found.items() if isinstance(found, dict) else ()
    return {key: printable(name) for key, name in named if type(key) is int and name}


def surety(settings: dict[str, Any]) -> tuple[str, str]:
    """Name the largest soft label by what it is: agreement of votes, or a probability.

    Parameters
    ----------
    settings : dict
        The parameters of the model.

    Returns
    -------
    name : str
        What it is called.
    meaning : str
        What it says.
    """
    if settings.get("calibrate"):
        return "probability of the label", "that an independent fit agrees, on average"
    return "agreement of votes", "the largest soft label, on average; not a probability"


def variance_explained(model: Any, X: Any) -> float:
    """Return 1 − ‖X − X̂‖² / ‖X − mean‖², with ½‖X − X̂‖² the cost of the model.

    Parameters
    ----------
    model : TuckerClustering
        The fitted clustering.
    X : array of shape (n_samples, d_1, ...)
        The samples that it was fitted on; read once, block by block.

    Returns
    -------
    share : float
        At most 1, which means that the model repeats the samples.
    """
    n, size = X.shape[0], int(np.prod(X.shape[1:]))
    total, square = np.zeros(size), 0.0
    for part in blocks(n, 8 * size):
        block = to_numpy(X[part]).reshape(-1, size)
        total += block.sum(axis=0, dtype=np.float64)
        square += float(np.einsum("ij,ij->", block, block, dtype=np.float64))
    spread = square - float(total @ total) / n
    return 1 - 2 * float(model.cost_) / spread if spread > 0 else 1.0


def scores(truth: Any, labels: Any) -> dict[str, float]:
    """Return the paper's two measures of agreement between classes and clusters.

    Parameters
    ----------
    truth : array-like of shape (n_samples,)
        The classes; samples whose class is not `known` are left out.
    labels : array-like of shape (n_samples,)
        The clusters.

    Returns
    -------
    scores : dict of str to float
        "ac", the clustering accuracy, and "nmi", the normalised mutual information.
    """
    from tuckermix.metrics import clustering_accuracy, normalized_mutual_information

    sure = known(truth)
    if not sure.all():
        truth, labels = np.asarray(truth)[sure], to_numpy(labels)[sure]
    return {
        "ac": clustering_accuracy(truth, labels),
        "nmi": normalized_mutual_information(truth, labels),
    }


def known(truth: Any) -> np.ndarray:
    """Tell for which samples the class is known.

    Parameters
    ----------
    truth : array-like of shape (n_samples,)
        The classes.

    Returns
    -------
    known : ndarray of bool of shape (n_samples,)
        False for empty texts and NaN.
    """
    values = np.asarray(to_numpy(truth) if hasattr(truth, "shape") else truth)
    if values.dtype.kind == "f":
        return ~np.isnan(values)
    return values != "" if values.dtype.kind == "U" else np.ones(values.shape, dtype=bool)


def settings(model: Any) -> dict[str, Any]:
    """Return the parameters of a model by name: plain values as they are, others as text."""
    return {name: _plain(value) for name, value in sorted(model.get_params().items())}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def versions(packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Return the versions of Python, of this package and of `packages`, those that are installed.

    Parameters
    ----------
    packages : sequence of str, default=PACKAGES
        Names of distributions.

    Returns
    -------
    versions : dict of str to str
        By name.
    """
    found = {"python": platform.python_version(), "tuckermix": __version__}
    for package in packages:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def machine() -> str:
    """Describe the processor and the memory of this machine in a line."""
    name = stated("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()
    memory = f", {total_memory() / 2**30:.0f} GiB" if total_memory() else ""
    return f"{name}, {os.cpu_count()} cores{memory}, {platform.system()}"


def duration(seconds: float) -> str:
    """Write a duration for people."""
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min"


def sizes_text(sizes: Sequence[int]) -> str:
    """Write sizes for people: "32 × 32"."""
    return " × ".join(map(str, sizes))


def printable(text: Any) -> str:
    r"""Return a text that can be stored as UTF-8, whatever bytes a file name was made of.

    What UTF-8 does not have appears as an escape such as ``\udce9``, so that names that differ
    still do.
    """
    return str(text).encode("utf-8", "backslashreplace").decode("utf-8")


def sample_names(names: Any, n: int) -> list[str]:
    """Return one name for each sample: those given, or "sample 0" and so on."""
    if names is None:
        return [f"sample {index}" for index in range(n)]
    if len(names) != n:
        raise ValueError(f"names has {len(names)} entries, but X has {n} samples.")
    return [printable(name) for name in names]
