"""What displays ask of a fitted estimator, whatever library its arrays belong to."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tuckermix._array_api import asarray_like, blocks, is_numpy, to_numpy

RESPONSES = ("predict_proba", "memberships")


def fitted(estimator: Any, owner: str, attribute: str) -> Any:
    """Return a fitted attribute, or say that the estimator does not have it."""
    check_is_fitted(estimator)
    if not hasattr(estimator, attribute):
        raise TypeError(
            f"{owner} needs an estimator with {attribute}, which {type(estimator).__name__} "
            "does not set: use TuckerClustering."
        )
    return getattr(estimator, attribute)


def as_fitted(estimator: Any, X: Any) -> Any:
    """Return NumPy samples in the library and on the device on which the estimator was fitted."""
    core = getattr(estimator, "core_", None)
    if core is None or is_numpy(core) or not is_numpy(X):
        return X
    return asarray_like(X, core)


def centroids_of(estimator: Any, owner: str) -> np.ndarray:
    """Return the centroids, shape (n_clusters, d_1, ...), on the host."""
    return to_numpy(fitted(estimator, owner, "centroids_"))


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


def subspace_of(estimator: Any, X: Any) -> np.ndarray:
    """Return the samples in the learned subspace, shape (n, L): rows of Z, or mixing weights."""
    check_is_fitted(estimator)
    look = estimator.place if hasattr(estimator, "place") else estimator.transform
    return to_numpy(look(as_fitted(estimator, X)))
