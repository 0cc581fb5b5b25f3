"""Leading eigenvectors of a sparse symmetric matrix, on the host.

Groups that hardly touch each other give eigenvalues that (almost) coincide. A Lanczos iteration
builds on a single vector and finds one eigenvector of such a cluster where there are several; a
block of vectors finds all of them, so large matrices are worked on with a block here.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.linalg import eigh, qr

DENSE_SIZE = 600
"""Up to this size LAPACK takes some 15 ms, no more than an iteration would."""

FALLBACK_SIZE = 2500
"""Up to this size LAPACK (about a second) comes to help where the iteration has not converged."""

SPARE = 8
"""Vectors carried beyond those wanted: convergence depends on the gap to the first left out."""

DEGREE = 10
"""Degree of the filter between two orthogonalisations: larger ones save work, until the filtered
vectors become dependent in floating point."""

MAX_FILTERS = 60
"""Most problems take 4 to 8 filters."""

TOLERANCE = 1e-7
"""Residual norms at which eigenvectors of a matrix of norm 1 are accurate enough for k-means."""


def leading_eigenvectors(matrix: sparse.csr_array, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues of a symmetric matrix whose eigenvalues lie in [-1, 1].

    Small matrices go to LAPACK. For large ones, subspace iteration with a Chebyshev filter: the
    span of `count` + 8 vectors is multiplied by a polynomial of the matrix that is small on
    ``[-1, t]``, t the smallest Ritz value of the block, and grows fast above it.

    Parameters
    ----------
    matrix : scipy.sparse.csr_array of shape (n, n)
        The matrix.
    count : int
        How many eigenpairs are wanted, at most n.

    Returns
    -------
    values : ndarray of shape (count,)
        The eigenvalues, largest first.
    vectors : ndarray of shape (n, count)
        The eigenvectors, each with its entry of largest magnitude positive.
    """
    size = matrix.shape[0]
    block = count + SPARE
    if size <= DENSE_SIZE or 4 * block > size:
        return _dense(matrix, count)
    # A fixed start: the result depends on the matrix alone.
    vectors = np.random.default_rng(0).standard_normal((size, block))
    vectors = qr(vectors, mode="economic", overwrite_a=True)[0]
    for _ in range(MAX_FILTERS):
        values, vectors, residuals = _rayleigh_ritz(matrix, vectors)
        if residuals[-count:].max() <= TOLERANCE:
            break
        vectors = qr(
            _filter(matrix, vectors, values[0]),
            mode="economic",
            overwrite_a=True,
            check_finite=False,
        )[0]
    else:
        if size <= FALLBACK_SIZE:
            return _dense(matrix, count)
        values, vectors, _ = _rayleigh_ritz(matrix, vectors)
    return values[::-1][:count], _signed(vectors[:, ::-1][:, :count])


def _dense(matrix: sparse.csr_array, count: int) -> tuple[np.ndarray, np.ndarray]:
    size = matrix.shape[0]
    values, vectors = eigh(matrix.toarray(), subset_by_index=[size - count, size - 1])
    return values[::-1], _signed(vectors[:, ::-1])


def _rayleigh_ritz(
    matrix: sparse.csr_array, vectors: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return Ritz values (ascending), Ritz vectors and the norms of their residuals."""
    images = matrix @ vectors
    small = vectors.T @ images
    values, turn = eigh((small + small.T) / 2)
    vectors, images = vectors @ turn, images @ turn
    return values, vectors, np.linalg.norm(images - vectors * values, axis=0)


def _filter(matrix: sparse.csr_array, vectors: np.ndarray, edge: float) -> np.ndarray:
    """Apply the Chebyshev polynomial that is at most 1 in magnitude on [-1, edge]."""
    center, half = (edge - 1) / 2, max((edge + 1) / 2, np.finfo(float).eps)
    previous, current = vectors, (matrix @ vectors - center * vectors) / half
    for _ in range(DEGREE - 1):
        previous, current = current, (matrix @ current - center * current) * (2 / half) - previous
    return current


def _signed(vectors: np.ndarray) -> np.ndarray:
    """Fix the sign of each column, so that equal input gives equal output everywhere."""
    rows = np.argmax(np.abs(vectors), axis=0)
    return vectors * np.where(vectors[rows, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)
