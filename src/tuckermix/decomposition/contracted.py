"""The contracted tensor: what a sweep works on instead of the samples."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tuckermix._array_api import (
    Array,
    asarray_like,
    device,
    get_namespace,
    is_numpy,
    to_numpy,
)
from tuckermix.decomposition.factors import leading_eigenvectors, update_factors
from tuckermix.sources import Source
from tuckermix.tensor import mode_dot, multi_mode_dot, relative_error, squared_norm

__all__ = ["contracted", "row_space", "settle"]

INNER_LIMIT = 12
"""Most rounds on the contracted tensor: after that the extra directions are the limit."""

HOST_TENSOR = 2**18
"""A contracted tensor of an accelerator with at most this many entries is worked on by the host:
its rounds are dozens of tiny operations, and launching them takes longer than doing them."""

SKETCH_FLOOR = 1e-11
"""Directions of the sketch with less than this share of the energy of the first are dropped: they
are known to few digits only, and what they could add is at the level of rounding."""


def contracted(source: Source, factors: Sequence[Array], basis: Array) -> tuple[Array, np.ndarray]:
    """Read the samples once; return the contracted tensor and the energy of its directions."""
    constant = source.mean[None, ...] * source.n_samples**0.5
    if basis.shape[1] == 0:
        return constant, np.zeros(0)
    sketch = source.sketch(factors, basis)
    xp = get_namespace(sketch.gram)
    energies, vectors = leading_eigenvectors(sketch.gram, sketch.gram.shape[0])
    host = to_numpy(energies)
    keep = int(np.sum(host > SKETCH_FLOOR * max(float(host[0]), 0.0)))
    whiten = vectors[:, :keep] / xp.sqrt(energies[:keep])
    moving = mode_dot(sketch.cross, whiten.T, 0)
    return xp.concat([constant, moving], axis=0), host[:keep]


def settle(
    T: Array, factors: list[Array], n_directions: int, total: float, tol: float
) -> tuple[list[Array], Array, float]:
    """Run `_settle_here` on the host if the tensor is small, else where it lies."""
    if is_numpy(T) or math.prod(T.shape) > HOST_TENSOR:
        return _settle_here(T, factors, n_directions, total, tol)
    host = [to_numpy(factor) for factor in factors]
    found, basis, error = _settle_here(to_numpy(T), host, n_directions, total, tol)
    return [asarray_like(factor, T) for factor in found], asarray_like(basis, T), error


def _settle_here(
    T: Array, factors: list[Array], n_directions: int, total: float, tol: float
) -> tuple[list[Array], Array, float]:
    """Alternate on the contracted tensor until it gains no more.

    Parameters
    ----------
    T : array of shape (1 + width, d_1, ...)
        The samples contracted with the constant direction and `width` others.
    factors : list of arrays of shape (d_n, r_n)
        The present factors.
    n_directions : int
        How many of the `width` directions the model has.
    total : float
        The squared norm of the samples.
    tol : float
        Gain of relative error below which to stop.

    Returns
    -------
    factors : list of arrays of shape (d_n, r_n)
        Better factors.
    basis : array of shape (product of r_n, k)
        Orthonormal directions of the projected space that hold all directions of `T`.
    error : float
        The relative error that the directions of `T` and the factors reach.
    """
    xp = get_namespace(T)
    width = T.shape[0] - 1
    n_directions = min(n_directions, width)
    constant, moving = T[:1, ...], T[1:, ...]
    error = math.inf
    for round_ in range(INNER_LIMIT + 1):
        small = multi_mode_dot(T, factors, transpose=True)
        projected = xp.reshape(small, (width + 1, math.prod(small.shape[1:])))
        gram = xp.matmul(projected[1:, :], projected[1:, :].T)
        values, rotation = leading_eigenvectors(gram, n_directions)
        explained = squared_norm(projected[0, :]) + float(xp.sum(values))
        gain, error = error - relative_error(total, explained), relative_error(total, explained)
        if gain <= tol or round_ == INNER_LIMIT:
            break
        chosen = mode_dot(moving, rotation.T, 0)
        factors = update_factors(xp.concat([constant, chosen], axis=0), factors)
    return factors, row_space(projected[1:, :]), error


def row_space(rows: Array) -> Array:
    """Return an orthonormal basis of the space of a few long rows."""
    xp = get_namespace(rows)
    if rows.shape[0] >= rows.shape[1]:
        return xp.eye(rows.shape[1], dtype=rows.dtype, device=device(rows))
    return xp.linalg.qr(rows.T, mode="reduced")[0]
