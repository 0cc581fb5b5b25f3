"""What a fitted model says of samples: subspace rows, mixing weights, soft labels, rebuilt samples.

All functions are pure and treat each sample on its own, so they work on blocks of samples as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuckermix._array_api import (
    Array,
    asarray_like,
    blocks,
    device,
    double,
    gather_rows,
    get_namespace,
)
from tuckermix._records import Record
from tuckermix.decomposition import Decomposition
from tuckermix.decomposition.subspace import tall_svd
from tuckermix.labels import normalize_rows
from tuckermix.memberships import choose_simplex, simplex_least_squares
from tuckermix.tensor import mode_dot, multi_mode_dot, squared_norm

__all__ = [
    "FittedModel",
    "label_and_average",
    "labels",
    "lift",
    "mean_squared_error",
    "mixing_weights",
    "model_from",
    "probabilities",
    "rebuild",
    "subspace_rows",
    "views",
]


@dataclass(frozen=True)
class FittedModel(Record):
    """The arrays that place a new sample.

    Attributes
    ----------
    factors : list of arrays of shape (d_n, r_n)
        Orthonormal factors.
    core : array of shape (n_components, r_1, ...)
        The components in the projected space.
    mean : array of shape (product of r_n,)
        The mean of the projected samples.
    directions : array of shape (product of r_n, n_components - 1)
        Directions of the subspace in the projected space.
    singular_values : array of shape (n_components - 1,)
        The spread of the fitted samples along the directions.
    vertices : array of shape (n_components, n_components - 1)
        The components relative to the mean, along the directions.
    n_samples : int
        The number of fitted samples.
    """

    factors: list[Array]
    core: Array
    mean: Array
    directions: Array
    singular_values: Array
    vertices: Array
    n_samples: int


def model_from(fit: Decomposition, rng: np.random.Generator) -> tuple[FittedModel, Array, float]:
    """Choose the simplex for a decomposition and gather what inference needs.

    Parameters
    ----------
    fit : Decomposition
        The model without labels.
    rng : numpy.random.Generator
        The source of randomness.

    Returns
    -------
    model : FittedModel
        The arrays that place a new sample.
    memberships : array of shape (n_samples, n_components)
        The mixing weights of the fitted samples.
    gap : float
        Their distance from the optimum.
    """
    xp = get_namespace(fit.Q)
    if fit.memberships is None:
        simplex = choose_simplex(fit.Q[:, 1:], rng)
        memberships = simplex.weights
        # Coordinates are in units of the singular values, vertices in units of the samples.
        vertices = simplex.vertices * fit.singular_values
        gap = _gap_of(memberships, fit)
    else:
        memberships = fit.memberships
        gap = fit.gap
        core_rows = xp.reshape(double(fit.core), (fit.core.shape[0], -1))
        mix = _components_of(memberships, fit.Q, core_rows)
        vertices = xp.matmul(mix - fit.mean, fit.directions)
    rows = xp.matmul(vertices, fit.directions.T) + fit.mean
    core = xp.reshape(rows, (rows.shape[0], *fit.ranks))
    model = FittedModel(
        factors=fit.factors,
        core=asarray_like(core, fit.Q),
        mean=asarray_like(fit.mean, fit.Q),
        directions=asarray_like(fit.directions, fit.Q),
        singular_values=asarray_like(fit.singular_values, fit.Q),
        vertices=asarray_like(vertices, fit.Q),
        n_samples=int(fit.Q.shape[0]),
    )
    return model, memberships, gap


def _gap_of(memberships: Array, fit: Decomposition) -> float:
    """Measure how much of the optimum the memberships miss, from their column space."""
    xp = get_namespace(memberships)
    basis, _, _ = tall_svd(double(memberships))
    overlap = xp.matmul(basis.T, double(fit.Q))
    core = xp.reshape(double(fit.core), (fit.core.shape[0], -1))
    peak = float(xp.max(xp.abs(core)))
    if peak == 0.0:
        return 0.0
    core = core / peak
    reached = squared_norm(xp.matmul(overlap, core))
    optimum = squared_norm(core)
    return max(0.0, optimum - reached) / optimum


def _components_of(memberships: Array, Q: Array, core_rows: Array) -> Array:
    """Return the components for which mixing weights rebuild ``Q @ core_rows``."""
    xp = get_namespace(Q)
    small = xp.matmul(double(Q).T, double(memberships))  # memberships = Q @ small
    return xp.linalg.solve(small, core_rows)


def projected(model: FittedModel, X: Array) -> Array:
    """Project samples on the factors; rows of shape (n_samples, product of r_n)."""
    xp = get_namespace(X)
    return xp.reshape(multi_mode_dot(X, model.factors, transpose=True), (X.shape[0], -1))


def offsets(model: FittedModel, X: Array) -> Array:
    """Return where samples lie along the directions, in units of the samples."""
    xp = get_namespace(X)
    return xp.matmul(projected(model, X) - model.mean, model.directions)


def subspace_rows(model: FittedModel, X: Array) -> Array:
    """Return the rows of `Q` that belong to samples, the constant column first."""
    xp = get_namespace(X)
    constant = xp.full_like(X[:, :1, ...], model.n_samples**-0.5)
    constant = xp.reshape(constant, (X.shape[0], -1))[:, :1]
    return xp.concat([constant, offsets(model, X) / model.singular_values], axis=1)


def mixing_weights(model: FittedModel, X: Array) -> Array:
    """Return the best convex mixture of the components for each sample."""
    return _by_blocks(lambda block: simplex_least_squares(offsets(model, block), model.vertices), X)


def views(model: FittedModel, X: Array, assign_labels: str) -> tuple[Array | None, Array | None]:
    """Return what a way of labelling looks at: normalised subspace rows, or mixing weights."""
    if assign_labels in ("graph", "subspace"):
        return _by_blocks(lambda block: normalize_rows(subspace_rows(model, block)), X), None
    return None, mixing_weights(model, X)


def probabilities(model: FittedModel, labeller: Any, X: Array) -> Array:
    """Return soft labels of samples."""
    return _by_blocks(lambda block: _probabilities(model, labeller, block), X)


def _probabilities(model: FittedModel, labeller: Any, X: Array) -> Array:
    if labeller.uses == "subspace":
        return labeller.predict_proba(normalize_rows(subspace_rows(model, X)), None)
    return labeller.predict_proba(None, mixing_weights(model, X))


def labels(model: FittedModel, labeller: Any, X: Array) -> Array:
    """Return the label of each sample."""
    xp = get_namespace(X)
    return _by_blocks(lambda block: xp.argmax(_probabilities(model, labeller, block), axis=1), X)


def label_and_average(
    model: FittedModel, labeller: Any, n_clusters: int, X: Array
) -> tuple[Array, Array]:
    """Label all samples and average each cluster along the directions.

    Parameters
    ----------
    model : FittedModel
        The model.
    labeller : object
        The fitted way of labelling.
    n_clusters : int
        The number of clusters.
    X : array of shape (n_samples, d_1, ...)
        The samples.

    Returns
    -------
    labels : array of shape (n_samples,)
        The labels.
    means : array of shape (n_clusters, n_components - 1)
        The mean offset of each cluster.
    """
    xp = get_namespace(X)
    found = labels(model, labeller, X)
    names = xp.arange(n_clusters, dtype=found.dtype, device=device(X))
    one_hot = xp.astype(found[:, None] == names, xp.float64)
    sums = xp.matmul(one_hot.T, double(_by_blocks(lambda block: offsets(model, block), X)))
    # A cluster without samples, which only equal samples can cause, stays at the mean.
    counts = xp.clip(xp.sum(one_hot, axis=0), 1.0, None)
    return found, sums / counts[:, None]


def lift(model: FittedModel, offset: Array) -> Array:
    """Return the points of sample space at given offsets along the directions."""
    xp = get_namespace(offset)
    rows = xp.matmul(asarray_like(offset, model.core), model.directions.T) + model.mean
    small = xp.reshape(rows, (rows.shape[0], *model.core.shape[1:]))
    return multi_mode_dot(small, model.factors)


def rebuild(model: FittedModel, weights: Array) -> Array:
    """Mix the components with given weights."""
    return multi_mode_dot(mode_dot(model.core, weights, 0), model.factors)


def mean_squared_error(model: FittedModel, X: Array) -> float:
    """Average the squared error of rebuilt samples over all entries."""
    total = 0.0
    for part in blocks(X.shape[0], 16 * math.prod(X.shape[1:])):
        block = X[part, ...]
        total += squared_norm(block - rebuild(model, mixing_weights(model, block)))
    return total / math.prod(X.shape)


def _by_blocks(function: Callable[[Array], Array], X: Array) -> Array:
    """Apply a function of samples block by block, to bound the memory for intermediate arrays."""

    def results() -> Iterator[tuple[slice, Array]]:
        for part in blocks(X.shape[0], 8 * math.prod(X.shape[1:])):
            yield part, function(X[part, ...])

    return gather_rows(results(), X.shape[0], X)
