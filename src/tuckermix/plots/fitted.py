"""Labels, distances and coordinates of a fitted estimator, for arrays of any library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tuckermix._array_api import asarray_like, blocks, get_namespace, is_numpy, to_numpy
from tuckermix._records import Record
from tuckermix._threads import one_blas_thread
from tuckermix.features.registry import first_steps, last_step
from tuckermix.selection.multiview import MultiViewClustering
from tuckermix.selection.shared import EMBEDDINGS, Features
from tuckermix.summary import innermost

RESPONSES = {
    "predict_proba": ("predict_proba", "Soft labels"),
    "memberships": ("transform", "Mixing weights"),
}
"""What is asked of an estimator: the method that knows it, and a title."""


def attribute(estimator: Any, owner: str, name: str) -> Any:
    """Return a fitted attribute, or say that the estimator does not have it."""
    check_is_fitted(estimator)
    if not hasattr(estimator, name):
        raise TypeError(
            f"{owner} needs an estimator with {name}, which {type(estimator).__name__} "
            "does not set: use TuckerClustering."
        )
    return getattr(estimator, name)


def as_fitted(estimator: Any, X: Any) -> Any:
    """Return NumPy samples in the library and on the device on which the estimator was fitted."""
    core = getattr(estimator, "core_", None)
    if core is None or is_numpy(core) or not is_numpy(X):
        return X
    return asarray_like(X, core)


def centroids_of(estimator: Any, owner: str) -> np.ndarray:
    """Return the centroids, shape (n_clusters, d_1, ...), on the host."""
    return to_numpy(attribute(estimator, owner, "centroids_"))


def labels_of(estimator: Any, X: Any, owner: str) -> np.ndarray:
    """Return the labels of `X`: the stored ones if it has as many rows, else by `predict`.

    `labels_` is `predict` on the training data, so the two agree where `X` is that.
    """
    check_is_fitted(estimator)
    stored = getattr(estimator, "labels_", None)
    if stored is not None and stored.shape[0] == X.shape[0]:
        return to_numpy(stored)
    if not hasattr(estimator, "predict"):
        raise ValueError(
            f"{owner} needs the samples that the {type(estimator).__name__} was fitted on: "
            f"X has {X.shape[0]} samples, labels_ has {0 if stored is None else stored.shape[0]}."
        )
    return to_numpy(estimator.predict(as_fitted(estimator, X)))


def distances_to(X: Any, centroids: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return ‖x_i − c_{label(i)}‖ for all samples, worked in blocks.

    Parameters
    ----------
    X : array of shape (n, d_1, ...)
        The samples.
    centroids : array of shape (n_clusters, d_1, ...)
        The centroids.
    labels : array of shape (n,)
        The cluster of each sample.

    Returns
    -------
    distances : array of shape (n,)
        The distances.
    """
    flat = centroids.reshape(centroids.shape[0], -1)
    result = np.empty(X.shape[0])
    for part in blocks(X.shape[0], 8 * flat.shape[1]):
        block = to_numpy(X[part]).reshape(-1, flat.shape[1])
        result[part] = np.linalg.norm(block - flat[labels[part]], axis=1)
    return result


def rows_of(X: Any, indices: np.ndarray) -> np.ndarray:
    """Return some samples on the host; other libraries take no index with negative strides."""
    return to_numpy(X[np.ascontiguousarray(indices)])


def even_subsample(n: int, limit: int) -> np.ndarray:
    """Choose at most `limit` of `n` indices, evenly spaced: the same ones at every call."""
    if n <= limit:
        return np.arange(n)
    return np.unique(np.linspace(0, n - 1, limit).round().astype(int))


@dataclass(frozen=True)
class Placed(Record):
    """Soft labels and places of samples: all that a fitted estimator says of them, in one go.

    Attributes
    ----------
    proba : array of shape (n_samples, n_clusters)
        Their soft labels; like the rest a Dask array for samples on disk.
    places : array of shape (n_samples, d)
        Where they lie in the learned subspace, or in those of all views beside each other. Samples
        that are alike lie near each other.
    seen : array of shape (n_samples, ...) or None
        The features that the model was fitted on; None where there are several views.
    unlike : callable or None
        Returns the outlier scores of the samples, whether or not outliers are labelled, from the
        features that are known; None where the estimator gives none.
    scores : array of shape (n_samples,) or None
        These, where outliers are labelled and somebody has asked.
    """

    proba: Any
    places: Any
    seen: Any
    unlike: Callable[[], Any] | None = None
    scores: Any = None


@one_blas_thread
def placed(estimator: Any, X: Any, features: Features | None = None) -> Placed:
    """Compute soft labels and places of samples, and their features once for both.

    Parameters
    ----------
    estimator : TuckerClustering, MultiViewClustering, AutoClustering or Pipeline
        A fitted estimator.
    X : array of shape (n_samples, d_1, ...)
        The samples.
    features : Features or None, default=None
        Features of the same samples that are known from the fit.

    Returns
    -------
    placed : Placed
        What it says of them.
    """
    if features is None:
        features = Features(as_fitted(innermost(estimator), X))
    best = getattr(estimator, "best_estimator_", estimator)
    selection = getattr(estimator, "selection_", None)
    if selection is not None and selection.view == EMBEDDINGS:
        features = Features(estimator._samples(features.X, "predict", features.embeddings))
    if isinstance(best, MultiViewClustering):
        several = best._places(features)
        shares = [Z / len(several) ** 0.5 for Z in several]
        places = get_namespace(*shares).concat(shares, axis=1)
        unlike = partial(best._scores, features)
        return Placed(best._proba(several, features), places, None, unlike)
    seen, final = features.transform(first_steps(best)), last_step(best)
    if hasattr(final, "best_estimator_"):  # transformers before a choice
        return placed(final, seen)
    given = partial(final.outlier_scores, seen) if hasattr(final, "outlier_scores") else None
    look = final.place if hasattr(final, "place") else final.transform
    return Placed(final.predict_proba(seen), look(seen), seen, given)


def subspace_of(estimator: Any, X: Any) -> np.ndarray:
    """Return the samples in the learned subspace, shape (n, L): rows of Z, or mixing weights."""
    check_is_fitted(estimator)
    look = estimator.place if hasattr(estimator, "place") else estimator.transform
    return to_numpy(look(as_fitted(estimator, X)))


def confidence_of(estimator: Any, X: Any, labels: np.ndarray) -> np.ndarray:
    """Return the soft label of each sample for its own cluster, or ones without `predict_proba`.

    Outliers, of label -1, get the largest of their soft labels.
    """
    if not hasattr(estimator, "predict_proba"):
        return np.ones(len(labels))
    proba = to_numpy(estimator.predict_proba(as_fitted(estimator, X)))
    return proba[np.arange(len(labels)), np.where(labels < 0, proba.argmax(axis=1), labels)]


def typical_members(
    labels: np.ndarray,
    confidence: np.ndarray,
    distances: np.ndarray,
    n_clusters: int,
    n_members: int,
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Choose the typical and the doubtful members of each cluster.

    Typical members have the largest soft label for their cluster and, among equals, lie nearest
    to its centroid; doubtful ones have the smallest and, among equals, lie farthest. This is what
    the two words mean everywhere: in displays, in the report and in the documentation.

    A cluster with fewer than twice `n_members` samples shows none of them twice: the typical come
    first, the doubtful take what is left.

    Parameters
    ----------
    labels : array of shape (n,)
        The cluster of each sample.
    confidence : array of shape (n,)
        The soft label of each sample for its cluster.
    distances : array of shape (n,)
        The distance of each sample from its centroid.
    n_clusters, n_members : int
        The number of clusters, and of members wanted on each side.

    Returns
    -------
    typical, doubtful : lists of arrays
        For each cluster the sample indices, the most typical or doubtful first.
    """
    typical, doubtful = [], []
    for cluster in range(n_clusters):
        members = np.flatnonzero(labels == cluster)
        order = members[np.lexsort((distances[members], -confidence[members]))]
        typical.append(order[:n_members])
        doubtful.append(order[n_members:][::-1][:n_members])
    return typical, doubtful


def history_column(history: Any, name: str) -> np.ndarray:
    """Return one quantity of all history records as floats, nan where a record lacks it."""
    values = [getattr(record, name, None) for record in history]
    return np.array([np.nan if value is None else float(value) for value in values])


def iterations_of(history: Any) -> np.ndarray:
    """Return the numbers of the iterations; their places where records have none."""
    numbers = history_column(history, "iteration")
    return np.arange(len(history), dtype=float) if np.isnan(numbers).any() else numbers
