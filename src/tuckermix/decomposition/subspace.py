r"""The closed form of the membership step.

For projected samples `B` with mean row :math:`\mu`, the largest value of
:math:`\tfrac12 \operatorname{tr}(B^\top P_U B)` over all memberships with L columns is

.. math:: h^* = \tfrac12 \Bigl( M \|\mu\|^2 + \sum_{k < L} \sigma_k^2 \Bigr),

reached exactly where the columns of the memberships span the constant vector and the L - 1 leading
left singular vectors of the centred samples (see the page on the method).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tuckermix._array_api import (
    Array,
    asarray_like,
    blocks,
    device,
    double,
    epsilon,
    get_namespace,
    is_double,
    to_numpy,
)
from tuckermix._records import Record
from tuckermix.decomposition.factors import leading_eigenvectors, signs_of

__all__ = [
    "Subspace",
    "centre_rows",
    "closed_form",
    "gram_of_columns",
    "rank_of",
    "ritz",
    "rough_basis",
    "rough_directions",
    "tall_svd",
]

DENSE_SIDE = 1536
"""Up to this size of the smaller side, the Gram matrix is solved outright; beyond, a block Krylov
iteration needs far fewer operations for the few leading directions."""

OVERSAMPLING = 10
"""Extra directions of an iterated subspace; they make its leading part converge quickly."""

KRYLOV_LIMIT = 60
"""Most block steps of the iteration; each one multiplies the accuracy, so this is never reached
unless the singular values do not fall at all, in which case any subspace is as good."""

ROUGH = 1e-3
"""Relative growth of the captured energy at which a rough start is good enough."""

RANK_FACTOR = 10.0
"""Singular values below this many roundings of the norm are noise, see `rank_of`."""

GRAM_RANGE = 1e-8
"""Eigenvalues of a Gram matrix are good to about eight digits down to this share of the largest;
below, the singular values come from a decomposition that does not square them."""

UPCAST_FLOPS = 4e9
"""Below this many operations the Gram matrix of float32 data is formed in float64, for which the
time does not matter."""


@dataclass(frozen=True)
class Subspace(Record):
    """The optimal subspace of the memberships for fixed factors.

    Attributes
    ----------
    mean : array of shape (n_features,)
        The mean row, in float64.
    directions : array of shape (n_features, r)
        Leading right singular vectors of the centred rows, in float64.
    singular_values : array of shape (r,)
        Their singular values, in float64.
    coordinates : array of shape (n_samples, r)
        Leading left singular vectors, each orthogonal to the constant vector.
    explained : float
        The squared norm of the rows projected on the subspace, the constant vector included.
    """

    mean: Array
    directions: Array
    singular_values: Array
    coordinates: Array
    explained: float


def centre_rows(B: Array) -> tuple[Array, Array]:
    """Subtract the mean row, in place where the library allows it.

    Parameters
    ----------
    B : array of shape (n_samples, n_features)
        The rows; the caller gives them up.

    Returns
    -------
    B : array of shape (n_samples, n_features)
        The centred rows.
    mean : array of shape (n_features,)
        The mean row, in float64.
    """
    mean = _mean_row(B)
    B -= asarray_like(mean, B)
    if not is_double(B):
        # The mean itself was rounded to float32: what is left of it goes in a second round.
        rest = _mean_row(B)
        B -= asarray_like(rest, B)
        mean = mean + rest
    return B, mean


def _mean_row(B: Array) -> Array:
    """Average the rows, in blocks so that no copy of all of them in float64 is made."""
    xp = get_namespace(B)
    total = xp.zeros((B.shape[1],), dtype=xp.float64, device=device(B))
    for part in blocks(B.shape[0], 8 * B.shape[1]):
        total += xp.sum(B[part, :], axis=0, dtype=xp.float64)
    return total / B.shape[0]


def gram_of_columns(A: Array, *, exact: bool = True) -> Array:
    """Compute the Gram matrix of the columns, summed over blocks of rows in float64.

    Parameters
    ----------
    A : array of shape (n, d)
        The matrix.
    exact : bool, default=True
        Whether float32 entries are multiplied in float64 too.

    Returns
    -------
    gram : array of shape (d, d)
        The products of the columns, in float64.
    """
    xp = get_namespace(A)
    if is_double(A):
        return xp.matmul(A.T, A)
    total = xp.zeros((A.shape[1], A.shape[1]), dtype=xp.float64, device=device(A))
    for part in blocks(A.shape[0], 8 * A.shape[1]):
        block = double(A[part, :]) if exact else A[part, :]
        total += double(xp.matmul(block.T, block))
    return total


def tall_svd(A: Array) -> tuple[Array, Array, Array]:
    r"""Compute the thin singular value decomposition of a tall matrix from Gram matrices.

    The columns are brought to equal length before the Gram matrix is diagonalised in float64, and
    the result is polished once more: two rounds give orthonormality to rounding for any matrix
    whose columns are independent to working accuracy. This costs a few products with small
    matrices, where a Householder factorisation of a tall matrix would crawl.

    Parameters
    ----------
    A : array of shape (n, d)
        The matrix, n >= d.

    Returns
    -------
    left : array of shape (n, r)
        Left singular vectors for the singular values that are not noise.
    values : array of shape (r,)
        The singular values, falling, in float64.
    right : array of shape (d, r)
        Right singular vectors, in float64.
    """
    xp = get_namespace(A)
    gram = gram_of_columns(A)
    lengths = xp.sqrt(xp.linalg.diagonal(gram))
    lengths = xp.where(lengths > 0, lengths, xp.ones_like(lengths))
    weights, vectors = leading_eigenvectors(gram / (lengths[:, None] * lengths), A.shape[1])
    keep = int(np.sum(to_numpy(weights) > RANK_FACTOR * A.shape[1] * epsilon(double(A[:1, :]))))
    whiten = vectors[:, :keep] / (lengths[:, None] * xp.sqrt(weights[:keep]))
    left = xp.matmul(A, asarray_like(whiten, A))
    # Second round: so far the columns are orthonormal up to the conditioning of the Gram matrix.
    weights, vectors = leading_eigenvectors(gram_of_columns(left), keep)
    polish = xp.matmul(vectors / xp.sqrt(weights), vectors.T)
    factor = xp.matmul(xp.matmul(whiten, polish).T, gram)  # A = (left @ polish) @ factor
    rotation, values, right = _small_svd(factor)
    return xp.matmul(left, asarray_like(xp.matmul(polish, rotation), A)), values, right


def _small_svd(factor: Array) -> tuple[Array, Array, Array]:
    """Decompose a small square matrix, by its Gram matrix where that is accurate enough."""
    xp = get_namespace(factor)
    weights, rotation = leading_eigenvectors(xp.matmul(factor, factor.T), factor.shape[0])
    smallest, largest = (float(weights[-1]), float(weights[0])) if weights.shape[0] else (1.0, 1.0)
    if smallest > GRAM_RANGE * largest:
        values = xp.sqrt(weights)
        return rotation, values, xp.matmul(factor.T, rotation) / values
    left, singular, right = np.linalg.svd(to_numpy(factor), full_matrices=False)
    return tuple(asarray_like(part, factor) for part in (left, singular, right.T))


def rank_of(singular_values: np.ndarray, norm: float, eps: float) -> int:
    """Count the singular values that stand out from rounding.

    Rounding the entries of a matrix moves its singular values by a few eps times its norm, and the
    norm that counts is that before the mean was subtracted.
    """
    return int(np.sum(singular_values > RANK_FACTOR * eps * norm))


def closed_form(B: Array, n_directions: int, *, start: Array | None = None) -> Subspace:
    """Find the subspace of the theorem for given projected samples.

    Parameters
    ----------
    B : array of shape (n_samples, n_features)
        The projected samples as rows; overwritten.
    n_directions : int
        How many centred directions to find, one less than the number of components. Fewer come
        back where the rank of the centred rows is lower.
    start : array of shape (n_features, k) or None, default=None
        Directions from which an iteration starts, such as those of the last sweep.

    Returns
    -------
    subspace : Subspace
        The optimum.
    """
    xp = get_namespace(B)
    n_samples, n_features = B.shape
    B, mean = centre_rows(B)
    fixed = n_samples * float(xp.vecdot(mean, mean))
    width = min(n_directions, n_samples - 1, n_features)
    if width <= 0 or not bool(xp.any(B != 0)):
        return _constant_only(B, mean, fixed)
    if is_dense(B.shape, width):
        basis = _dense_basis(B, width)
    else:
        basis = _krylov_basis(B, width, start, 4 * epsilon(B))
    return ritz(B, basis, mean, fixed, width)


def is_dense(shape: tuple[int, int], width: int) -> bool:
    """Tell whether the Gram matrix of the smaller side is the way to `width` directions."""
    return min(shape) <= max(DENSE_SIDE, 3 * width)


def rough_directions(B: Array, n_directions: int) -> Array:
    """Find leading directions to a few digits, as a start that sweeps improve anyway.

    Parameters
    ----------
    B : array of shape (n_samples, n_features)
        The projected samples as rows; overwritten.
    n_directions : int
        How many directions to find at most.

    Returns
    -------
    directions : array of shape (n_features, k)
        Orthonormal columns, in float64; none for samples that are all equal.
    """
    xp = get_namespace(B)
    B, _ = centre_rows(B)
    width = min(n_directions, B.shape[0] - 1, B.shape[1])
    if width <= 0 or not bool(xp.any(B != 0)):
        return xp.zeros((B.shape[1], 0), dtype=xp.float64, device=device(B))
    return rough_basis(B, width)


def rough_basis(B: Array, width: int) -> Array:
    """Find leading right singular vectors, to a few digits where an iteration is needed.

    Parameters
    ----------
    B : array of shape (n_samples, n_features)
        Centred rows, not all zero.
    width : int
        How many directions to find.

    Returns
    -------
    directions : array of shape (n_features, width) or wider
        Orthonormal columns in the order of their singular values, in float64.
    """
    if is_dense(B.shape, width):
        return _dense_basis(B, width)
    return _krylov_basis(B, width, None, ROUGH)


def ritz(B: Array, basis: Array, mean: Array, fixed: float, width: int) -> Subspace:
    """Take the best directions within a basis, with orthonormal coordinates of the samples.

    Parameters
    ----------
    B : array of shape (n_samples, n_features)
        Centred rows.
    basis : array of shape (n_features, k)
        Orthonormal columns, in float64.
    mean : array of shape (n_features,)
        The mean row that was subtracted.
    fixed : float
        The part of `explained` that the mean contributes.
    width : int
        How many directions to keep at most.

    Returns
    -------
    subspace : Subspace
        The best subspace within the basis.
    """
    xp = get_namespace(B)
    left, sigma, right = tall_svd(xp.matmul(B, asarray_like(basis, B)))
    host = to_numpy(sigma)
    norm = (fixed + float(np.max(host, initial=0.0)) ** 2) ** 0.5
    rank = min(width, rank_of(host, norm, epsilon(B)))
    if rank == 0:
        return _constant_only(B, mean, fixed)
    sigma = sigma[:rank]
    directions = xp.matmul(basis, right[:, :rank])
    signs = signs_of(directions)
    directions = directions * signs
    coordinates = left[:, :rank] * asarray_like(signs, B)
    # Rounding leaves a trace of the constant vector, which the theorem needs orthogonal.
    coordinates = coordinates - asarray_like(xp.mean(double(coordinates), axis=0), B)
    explained = fixed + float(xp.vecdot(sigma, sigma))
    return Subspace(mean, directions, sigma, coordinates, explained)


def _constant_only(B: Array, mean: Array, fixed: float) -> Subspace:
    """Return the subspace of the constant vector alone, for samples that are all equal."""
    xp = get_namespace(B)
    place = device(B)
    return Subspace(
        mean,
        xp.zeros((B.shape[1], 0), dtype=xp.float64, device=place),
        xp.zeros((0,), dtype=xp.float64, device=place),
        xp.zeros((B.shape[0], 0), dtype=B.dtype, device=place),
        fixed,
    )


def _dense_basis(B: Array, width: int) -> Array:
    """Find leading right singular vectors from the Gram matrix of the smaller side."""
    xp = get_namespace(B)
    n_samples, n_features = B.shape
    if n_features <= n_samples:
        exact = 2.0 * n_samples * n_features**2 < UPCAST_FLOPS
        # A few more directions than needed let `ritz` repair what float32 products mixed up.
        more = min(n_features, width + (0 if is_double(B) or exact else OVERSAMPLING))
        return leading_eigenvectors(gram_of_columns(B, exact=exact), more)[1]
    left = leading_eigenvectors(gram_of_columns(B.T), width)[1]
    return orthonormal_basis(double(xp.matmul(B.T, asarray_like(left, B))))


def _krylov_basis(B: Array, width: int, start: Array | None, tol: float) -> Array:
    """Find leading right singular vectors of a large matrix by block subspace iteration.

    Each step adds the image of the present block and keeps the best part of both (a block
    Lanczos method restarted at every step), until the captured energy no longer grows.
    """
    xp = get_namespace(B)
    size = min(width + max(OVERSAMPLING, width // 2), *B.shape)
    rng = np.random.default_rng(0)
    guess = rng.standard_normal((B.shape[1], size))
    if start is not None:
        guess[:, : start.shape[1]] = to_numpy(start)[:, :size]
    block = orthonormal_basis(asarray_like(guess, B, dtype=xp.float64))
    previous, captured = None, 0.0
    for _ in range(KRYLOV_LIMIT):
        trial = (
            block if previous is None else orthonormal_basis(xp.concat([block, previous], axis=1))
        )
        image = xp.matmul(B, asarray_like(trial, B))
        values, rotation = leading_eigenvectors(gram_of_columns(image), trial.shape[1])
        energy = float(xp.sum(values[:width]))
        keep = asarray_like(rotation[:, :size], B)
        best = xp.matmul(trial, double(keep))
        if energy <= captured * (1.0 + tol):
            return best
        captured = energy
        previous = best
        block = orthonormal_basis(double(xp.matmul(B.T, xp.matmul(image, keep))))
    return best


def orthonormal_basis(A: Array) -> Array:
    """Orthonormalise the columns of a matrix of moderate size in float64."""
    xp = get_namespace(A)
    return xp.linalg.qr(A, mode="reduced")[0]
