"""What a fitted model says of samples: subspace rows, mixing weights, soft labels, rebuilt samples.

Each function of samples is a pure function of a block, so that it serves arrays in memory and
Dask arrays alike: the public ones below only send it over the blocks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tuckermix._array_api import Array, asarray_like, device, double, get_namespace
from tuckermix._records import Record
from tuckermix.decomposition import Decomposition
from tuckermix.decomposition.factors import leading_eigenvectors
from tuckermix.labels import compared_directions, normalize_rows
from tuckermix.memberships import choose_simplex, simplex_least_squares
from tuckermix.sources import as_blocks
from tuckermix.sources.blocks import add_parts
from tuckermix.tensor import mode_dot, multi_mode_dot, squared_norm

__all__ = [
    "FittedModel",
    "cluster_means",
    "labels",
    "lift",
    "mean_squared_error",
    "mixing_weights",
    "model_from",
    "probabilities",
    "rebuild",
    "subspace_rows",
    "views",
    "with_wider_view",
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
    vertices : array of shape (n_components, n_components - 1)
        The components relative to the mean, along the directions.
    spread : float
        The standard deviation of the fitted samples along the first direction.
    view : array of shape (product of r_n, d)
        Scaled directions in which labels compare samples, in units of `spread`: at first those of
        the model, along each of which the fitted samples have the variance 1.
    """

    factors: list[Array]
    core: Array
    mean: Array
    directions: Array
    vertices: Array
    spread: float
    view: Array


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
    xp = get_namespace(fit.core)
    core_rows = xp.reshape(double(fit.core), (fit.core.shape[0], math.prod(fit.ranks)))
    if fit.memberships is None:
        simplex = choose_simplex(fit.Q[:, 1:], rng)
        memberships = simplex.weights
        # Coordinates are in units of the singular values, vertices in units of the samples.
        vertices = simplex.vertices * fit.singular_values
        gap = _gap_of(memberships, fit.Q, core_rows)
    else:
        memberships = fit.memberships
        gap = fit.gap
        small = xp.matmul(double(fit.Q).T, double(memberships))  # memberships = Q @ small
        vertices = xp.matmul(xp.linalg.solve(small, core_rows) - fit.mean, fit.directions)
    rows = xp.matmul(vertices, fit.directions.T) + fit.mean
    deviations = fit.singular_values / fit.Q.shape[0] ** 0.5
    spread = float(deviations[0]) if deviations.shape[0] else 1.0
    model = FittedModel(
        factors=fit.factors,
        core=asarray_like(xp.reshape(rows, (rows.shape[0], *fit.ranks)), fit.core),
        mean=asarray_like(fit.mean, fit.core),
        directions=asarray_like(fit.directions, fit.core),
        vertices=asarray_like(vertices, fit.core),
        spread=spread,
        view=asarray_like(fit.directions * (spread / deviations), fit.core),
    )
    return model, memberships, gap


def _gap_of(memberships: Array, Q: Array, core_rows: Array) -> float:
    """Measure how much of the optimum the column space of the memberships misses."""
    xp = get_namespace(core_rows)
    peak = float(xp.max(xp.abs(core_rows)))
    if peak == 0.0:
        return 0.0
    core_rows = core_rows / peak
    gram, cross = as_blocks(memberships).reduce(_gram_and_cross, add_parts, Q)
    values, vectors = leading_eigenvectors(gram, gram.shape[0])
    basis = vectors / xp.sqrt(values)  # memberships @ basis has orthonormal columns
    optimum = squared_norm(core_rows)
    reached = squared_norm(xp.matmul(xp.matmul(basis.T, cross), core_rows))
    return max(0.0, optimum - reached) / optimum


def _gram_and_cross(memberships: Array, Q: Array) -> tuple[Array, Array]:
    xp = get_namespace(memberships)
    U = double(memberships)
    return xp.matmul(U.T, U), xp.matmul(U.T, double(Q))


def with_wider_view(model: FittedModel, X: Array) -> FittedModel:
    """Let labels look beyond the directions of the model, see `labels.directions`.

    Parameters
    ----------
    model : FittedModel
        The model.
    X : array of shape (n_samples, d_1, ...)
        The samples from which labels are learned, in memory.

    Returns
    -------
    model : FittedModel
        The same with a wider view.
    """
    B = as_blocks(X).map(partial(_scaled_block, model=model))
    view = compared_directions(B, model.directions.shape[1])
    return model if view is None else replace(model, view=asarray_like(view, model.core))


def subspace_rows(model: FittedModel, X: Any) -> Array:
    """Return the points that labels compare: where samples lie in the view, on a sphere."""
    return as_blocks(X).map(partial(_subspace_block, model=model))


def mixing_weights(model: FittedModel, X: Any) -> Array:
    """Return the best convex mixture of the components for each sample."""
    return as_blocks(X).map(partial(_weights_block, model=model))


def probabilities(model: FittedModel, labeller: Any, X: Any) -> Array:
    """Return soft labels of samples."""
    return as_blocks(X).map(partial(_probabilities_block, model=model, labeller=labeller))


def labels(model: FittedModel, labeller: Any, X: Any) -> Array:
    """Return the label of each sample."""
    return as_blocks(X).map(partial(_labels_block, model=model, labeller=labeller))


def views(model: FittedModel, X: Any, assign_labels: str) -> tuple[Array | None, Array | None]:
    """Return what a way of labelling looks at: normalised subspace rows, or mixing weights."""
    if assign_labels in ("graph", "subspace"):
        return subspace_rows(model, X), None
    return None, mixing_weights(model, X)


def cluster_means(model: FittedModel, n_clusters: int, X: Any, found: Array) -> Array:
    """Average each cluster along the directions.

    Parameters
    ----------
    model : FittedModel
        The model.
    n_clusters : int
        The number of clusters.
    X : array of shape (n_samples, d_1, ...)
        The samples.
    found : array of shape (n_samples,)
        Their labels.

    Returns
    -------
    means : array of shape (n_clusters, n_components - 1)
        The mean offset of each cluster; zero, the mean of all, for a cluster without samples.
    """
    xp = get_namespace(model.core)
    function = partial(_sums_block, model=model, n_clusters=n_clusters)
    sums, counts = as_blocks(X).reduce(function, add_parts, found)
    return sums / xp.clip(counts, 1.0, None)[:, None]


def lift(model: FittedModel, offset: Array) -> Array:
    """Return the points of sample space at given offsets along the directions."""
    xp = get_namespace(offset)
    rows = xp.matmul(asarray_like(offset, model.core), model.directions.T) + model.mean
    small = xp.reshape(rows, (rows.shape[0], *model.core.shape[1:]))
    return multi_mode_dot(small, model.factors)


def rebuild(model: FittedModel, weights: Array) -> Array:
    """Mix the components with given weights."""
    return as_blocks(weights).map(partial(_rebuild_block, model=model))


def mean_squared_error(model: FittedModel, X: Any) -> float:
    """Average the squared error of rebuilt samples over all entries."""
    samples = as_blocks(X)
    (total,) = samples.reduce(partial(_error_block, model=model), add_parts)
    return total / (samples.n_samples * math.prod(samples.sample_shape))


def _projected_block(block: Array, model: FittedModel) -> Array:
    """Return the projected samples as rows."""
    xp = get_namespace(block)
    small = multi_mode_dot(block, model.factors, transpose=True)
    return xp.reshape(small, (small.shape[0], math.prod(small.shape[1:])))


def _scaled_block(block: Array, model: FittedModel) -> Array:
    """Return the projected samples as rows of ordinary size."""
    return _projected_block(block, model) / model.spread


def _offsets_block(block: Array, model: FittedModel) -> Array:
    """Return where samples lie along the directions, in units of the samples."""
    rows = _projected_block(block, model) - model.mean
    return get_namespace(block).matmul(rows, model.directions)


def _subspace_block(block: Array, model: FittedModel) -> Array:
    xp = get_namespace(block)
    constant = xp.ones((block.shape[0], 1), dtype=block.dtype, device=device(block))
    rows = (_projected_block(block, model) - model.mean) / model.spread
    coordinates = xp.matmul(rows, model.view)
    return normalize_rows(xp.concat([constant, coordinates], axis=1))


def _weights_block(block: Array, model: FittedModel) -> Array:
    return simplex_least_squares(_offsets_block(block, model), model.vertices)


def _probabilities_block(block: Array, model: FittedModel, labeller: Any) -> Array:
    if labeller.uses == "subspace":
        return labeller.predict_proba(_subspace_block(block, model), None)
    return labeller.predict_proba(None, _weights_block(block, model))


def _labels_block(block: Array, model: FittedModel, labeller: Any) -> Array:
    xp = get_namespace(block)
    return xp.argmax(_probabilities_block(block, model, labeller), axis=1)


def _sums_block(
    block: Array, found: Array, model: FittedModel, n_clusters: int
) -> tuple[Array, Array]:
    xp = get_namespace(block)
    names = xp.arange(n_clusters, dtype=found.dtype, device=device(block))
    one_hot = xp.astype(found[:, None] == names, xp.float64)
    return xp.matmul(one_hot.T, double(_offsets_block(block, model))), xp.sum(one_hot, axis=0)


def _rebuild_block(weights: Array, model: FittedModel) -> Array:
    return multi_mode_dot(mode_dot(model.core, weights, 0), model.factors)


def _error_block(block: Array, model: FittedModel) -> tuple[float]:
    return (squared_norm(block - _rebuild_block(_weights_block(block, model), model)),)
