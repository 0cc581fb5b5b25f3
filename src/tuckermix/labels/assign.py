"""From the learned subspace or the memberships to labels: four ways, one interface.

`fit_labels` learns a labeller from the samples (or landmarks); its `predict_proba` serves training
and new samples alike, so that labels, predictions and soft labels always agree.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tuckermix._array_api import (
    Array,
    asarray_like,
    blocks,
    device,
    double,
    epsilon,
    get_namespace,
    to_numpy,
)
from tuckermix._threads import one_blas_thread
from tuckermix._validation import check_option
from tuckermix.labels.graph import COPY_POWER, distinct_rows, graph_partition, host_neighbors
from tuckermix.labels.kmeans import kmeans
from tuckermix.labels.votes import GraphLabels, elect

METHODS = ("graph", "subspace", "memberships", "argmax")

FLAT_BELOW = 10.0
"""Below about this many directions the length of a row counts, see `normalize_rows`. With rows of
plain unit length a ring around a blob or a small group far out is bent out of shape."""

MAX_RAISES = 20
"""Rounds, per component, in which components without a sample are raised. Few are ever needed."""


class Labeller(Protocol):
    """What the estimator needs of a labeller."""

    kind: str
    uses: str

    def predict_proba(self, Z: Array | None, U: Array | None = None) -> Array:
        """Return soft labels of shape (n_samples, n_clusters)."""

    def to_arrays(self) -> dict[str, Any]:
        """Return arrays and numbers that describe the labeller."""


def normalize_rows(Q: Array) -> Array:
    """Return the rows of the subspace as points on a sphere.

    ``Z = rows of [c q_0, q_1, …, q_d] / norm`` with ``c = sqrt(1 + (10 / d)²)``, where q_0 is the
    constant column. For d well above 10 that is the direction of a row of `Q`: the length is one
    of many coordinates then, and says more of brightness than of shape. For small d it is a good
    part of what there is to know; the larger constant keeps it, because a small cap of a sphere is
    flat.

    Parameters
    ----------
    Q : array of shape (n_samples, d + 1)
        A basis of the subspace, the constant column first.

    Returns
    -------
    Z : array of shape (n_samples, d + 1)
        Rows of unit length; rows of zeros stay.
    """
    xp = get_namespace(Q)
    n_directions = int(Q.shape[1]) - 1
    constant = math.hypot(1.0, FLAT_BELOW / max(1, n_directions))
    Q = xp.concat([constant * Q[:, :1], Q[:, 1:]], axis=1)
    norms = xp.sqrt(xp.sum(Q * Q, axis=1, keepdims=True))
    return Q / xp.where(norms > 0, norms, xp.ones_like(norms))


@dataclass(frozen=True)
class CenterLabels:
    """The nearest of the cluster means, with Gaussian soft labels.

    ``p_k(x) ∝ exp(-|x - c_k|² / (2 s))`` with s the mean squared distance of the fitted samples
    to their centres, per dimension.

    Attributes
    ----------
    centers : array of shape (n_clusters, n_features)
        The means, float64; NaN for labels that no sample has, because there are fewer distinct
        samples than labels.
    scale : float
        The variance s; 0 where every sample is its own centre, and soft labels are 0 and 1.
    on : {"subspace", "memberships"}
        Which of the two is compared with the centres.
    """

    centers: Array
    scale: float
    on: str

    kind = "center"

    @property
    def uses(self) -> str:
        """Which of Z and U `predict_proba` looks at."""
        return self.on

    def predict_proba(self, Z: Array | None, U: Array | None = None) -> Array:
        """Return the soft labels of rows of `Z` or `U`, of shape (n_samples, n_clusters)."""
        X: Any = U if self.on == "memberships" else Z
        xp = get_namespace(X, self.centers)
        absent = xp.isnan(self.centers[:, 0])
        center = self.centers[0, :]  # the largest cluster, which is never absent
        centers = xp.where(absent[:, None], 0.0, self.centers - center)
        squares = xp.where(absent, xp.inf, xp.sum(centers * centers, axis=1))
        names = xp.arange(int(centers.shape[0]), device=device(X))
        parts = []
        for cut in blocks(int(X.shape[0]), 8 * (3 * int(centers.shape[0]) + int(X.shape[1]))):
            scores = squares[None, :] - 2.0 * xp.matmul(double(X[cut, :]) - center, centers.T)
            nearest = xp.argmin(scores, axis=1)
            gaps = scores - xp.min(scores, axis=1, keepdims=True)
            sharp = self.scale <= 0
            shares = xp.zeros_like(gaps) if sharp else xp.exp(-gaps / (2.0 * self.scale))
            shares = xp.where(nearest[:, None] == names[None, :], 1.0, shares)
            parts.append(xp.astype(shares / xp.sum(shares, axis=1, keepdims=True), X.dtype))
        return xp.concat(parts, axis=0)

    def to_arrays(self) -> dict[str, Any]:
        """Return arrays and numbers from which `from_arrays` makes the same labeller."""
        return {"centers": self.centers, "scale": self.scale, "on": METHODS.index(self.on)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> CenterLabels:
        """Make a labeller from what `to_arrays` returned."""
        return cls(arrays["centers"], float(arrays["scale"]), METHODS[int(arrays["on"])])


@dataclass(frozen=True)
class ArgmaxLabels:
    """The component with the largest membership.

    ``p_k(u) ∝ s_k u_{order(k)}``. The factors s are 1, save for components that are nobody's
    largest: they are raised until they are somebody's.

    Attributes
    ----------
    order : array of shape (n_clusters,)
        The component that each label stands for, int64.
    scale : array of shape (n_clusters,)
        The factors s, float64; 0 for labels that have no component.
    """

    order: Array
    scale: Array

    kind = "argmax"
    uses = "memberships"

    def predict_proba(self, Z: Array | None, U: Any = None) -> Array:
        """Return the scaled memberships in the order of the labels, rows summing to 1."""
        xp = get_namespace(U, self.order)
        shares = double(xp.take(U, self.order, axis=1)) * self.scale[None, :]
        return xp.astype(shares / xp.sum(shares, axis=1, keepdims=True), U.dtype)

    def to_arrays(self) -> dict[str, Any]:
        """Return arrays from which `from_arrays` makes the same labeller."""
        return {"order": self.order, "scale": self.scale}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> ArgmaxLabels:
        """Make a labeller from what `to_arrays` returned."""
        return cls(arrays["order"], arrays["scale"])


@one_blas_thread
def fit_labels(
    method: str,
    Z: Array | None,
    U: Array | None,
    n_clusters: int,
    *,
    n_neighbors: int = 20,
    n_init: int = 10,
    rng: np.random.Generator,
) -> Labeller:
    """Learn to label samples from the subspace `Z` or the memberships `U`.

    Labels are numbered by decreasing size of the clusters, then by their first sample. On the
    samples given here, the largest entries of `predict_proba` use every label, as long as there are
    as many distinct samples as labels; equal samples always share a label.

    Parameters
    ----------
    method : {"graph", "subspace", "memberships", "argmax"}
        "graph": groups of the neighbour graph of Z. "subspace": k-means on Z. "memberships":
        k-means on U. "argmax": the largest membership.
    Z : array of shape (n_samples, n_components) or None
        Rows of unit length, see `normalize_rows`; needed by the first two.
    U : array of shape (n_samples, n_components) or None
        Mixing weights; needed by the last two.
    n_clusters : int
        The number of labels.
    n_neighbors : int, default=20
        The number of neighbours of "graph".
    n_init : int, default=10
        Starts of k-means.
    rng : numpy.random.Generator
        The source of random numbers.

    Returns
    -------
    labeller : GraphLabels, CenterLabels or ArgmaxLabels
        An object with `predict_proba(Z, U)`, `to_arrays()`, and the attributes `kind` and `uses`.
    """
    check_option(method, "method", "fit_labels", METHODS)
    X = Z if method in ("graph", "subspace") else U
    if X is None:
        missing = "Z" if method in ("graph", "subspace") else "U"
        raise ValueError(f"fit_labels(method={method!r}) needs {missing}. Got None instead.")
    if X.shape[0] < n_clusters:
        raise ValueError(f"n_samples={X.shape[0]} must be >= n_clusters={n_clusters}.")
    if method == "graph":
        return _fit_graph(X, n_clusters, n_neighbors, n_init, rng)
    labeller: Any
    if method == "argmax":
        labeller = _fit_argmax(X, n_clusters)
    else:
        labeller = _fit_centers(X, n_clusters, method, n_init, rng)
    labels = to_numpy(get_namespace(X).argmax(labeller.predict_proba(X, X), axis=1))
    return _number(labeller, labels, n_clusters)


def labeller_from_arrays(kind: str, arrays: dict[str, Any]) -> Labeller:
    """Make the labeller of this `kind` from what its `to_arrays` returned."""
    kinds: dict[str, Any] = {
        labeller.kind: labeller for labeller in (GraphLabels, CenterLabels, ArgmaxLabels)
    }
    check_option(kind, "kind", "labeller_from_arrays", tuple(kinds))
    return kinds[kind].from_arrays(arrays)


def _fit_graph(
    Z: Array, n_clusters: int, n_neighbors: int, n_init: int, rng: np.random.Generator
) -> GraphLabels:
    """Partition the distinct samples: many copies of one must not fill its neighbourhood."""
    xp = get_namespace(Z)
    indices, squares = host_neighbors(Z, n_neighbors)
    first, member = distinct_rows(indices, squares, epsilon(Z))
    if len(first) < Z.shape[0]:
        Z = xp.take(Z, asarray_like(first, Z, dtype=xp.int64), axis=0)
        indices, squares = host_neighbors(Z, n_neighbors)
    labels = graph_partition(Z, indices, squares, n_clusters, n_init=n_init, rng=rng)
    labeller, won = elect(Z, labels, indices, n_clusters)
    return _number(labeller, won[member], n_clusters)


def _fit_centers(
    X: Array, n_clusters: int, on: str, n_init: int, rng: np.random.Generator
) -> CenterLabels:
    result = kmeans(X, n_clusters, n_init=n_init, rng=rng)
    centers = np.array(to_numpy(result.centers))
    # Which of two equal centres is nearer is a matter of rounding: one of them has to go.
    gaps = np.linalg.norm(centers[:, None, :] - centers[None, :, :], axis=2)
    size = np.abs(centers).max(initial=0.0)
    equal = gaps <= epsilon(X) ** COPY_POWER * size
    centers[np.triu(equal, 1).any(axis=0)] = np.nan
    scale = result.inertia / (int(X.shape[0]) * max(1, int(X.shape[1])))
    return CenterLabels(centers=asarray_like(centers, result.centers), scale=scale, on=on)


def _fit_argmax(U: Array, n_clusters: int) -> ArgmaxLabels:
    """Take components as clusters, and raise those that nobody has as the largest."""
    xp = get_namespace(U)
    n_components = int(U.shape[1])
    if n_components > n_clusters:
        raise ValueError(
            f"assign_labels='argmax' needs n_components={n_components} <= n_clusters={n_clusters}: "
            "set n_components, or use assign_labels='memberships'."
        )
    scale = np.ones(n_components)
    weights = double(U)
    for _ in range(MAX_RAISES * n_components):
        scaled = weights * asarray_like(scale, weights)
        owner = to_numpy(xp.argmax(scaled, axis=1))
        empty = np.flatnonzero(np.bincount(owner, minlength=n_components) == 0)
        if len(empty) == 0:
            break
        name = int(empty[0])
        # The least factor that makes the component the largest of some sample, and a bit more.
        needed = to_numpy(xp.min(xp.max(scaled, axis=1) / weights[:, name]))
        scale[name] = float(needed) * (1 + 1e-9)
    order = np.concatenate([np.arange(n_components), np.zeros(n_clusters - n_components, int)])
    scale = np.concatenate([scale, np.zeros(n_clusters - n_components)])
    return ArgmaxLabels(
        order=asarray_like(order, U, dtype=xp.int64), scale=asarray_like(scale, weights)
    )


def _number(labeller: Any, labels: np.ndarray, n_clusters: int) -> Any:
    """Give the labels numbers by decreasing size, then by the first sample; warn of unused ones."""
    sizes = np.bincount(labels, minlength=n_clusters)
    first = np.full(n_clusters, len(labels))
    names, places = np.unique(labels, return_index=True)
    first[names] = places
    if len(names) < n_clusters:
        warnings.warn(
            f"Only {len(names)} of n_clusters={n_clusters} clusters have samples: there are not "
            "that many distinct ones. Lower n_clusters, or look for duplicates in X.",
            ConvergenceWarning,
            stacklevel=3,
        )
    order = np.lexsort((first, -sizes))

    def reorder(values: Array) -> Array:
        xp = get_namespace(values)
        return xp.take(values, xp.asarray(order, device=device(values)), axis=0)

    if isinstance(labeller, CenterLabels):
        return replace(labeller, centers=reorder(labeller.centers))
    if isinstance(labeller, ArgmaxLabels):
        return replace(labeller, order=reorder(labeller.order), scale=reorder(labeller.scale))
    held = labeller.landmark_labels
    rank = asarray_like(np.argsort(order), held)
    return replace(labeller, landmark_labels=get_namespace(held).take(rank, held, axis=0))
