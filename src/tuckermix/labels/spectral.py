"""Leading eigenvectors of a sparse symmetric matrix, on the host.

Groups that hardly touch each other give eigenvalues that (almost) coincide. A Lanczos iteration
builds on a single vector and finds one eigenvector of such a cluster where there are several; a
block of vectors finds all of them, so large matrices are worked on with a block here.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.linalg import cho_solve_banded, cholesky_banded, eigh, qr
from scipy.sparse.csgraph import reverse_cuthill_mckee

DENSE_SIZE = 600
"""Up to this size LAPACK takes some 15 ms, no more than an iteration would."""

FALLBACK_SIZE = 2500
"""Up to this size LAPACK (about a second) comes to help where the iteration has not converged."""

SPARE = 8
"""Vectors carried beyond those wanted: convergence depends on the gap to the first left out."""

DEGREE = 10
"""Degree of the filter between two orthogonalisations: larger ones save work, until the filtered
vectors become dependent in floating point."""

MAX_FILTERS = 40
"""Most problems take 4 to 8 filters. Those that take more are graphs of samples on a line or in a
plane, with eigenvalues that crowd at 1 for want of short ways from end to end."""

MAX_SOLVES = 40
"""Inverse iteration takes some 10 steps."""

MAX_BAND_WORK = 4e10
"""Operations to factorise a band matrix, size times bandwidth squared: a few seconds."""

SHIFT = 1e-8
"""Inverse iteration works on ``(1 + 1e-8) I - N``, which is positive definite."""

TOLERANCE = 1e-7
"""Residual norms at which eigenvectors of a matrix of norm 1 are accurate enough for k-means."""


def leading_eigenvectors(matrix: sparse.csr_array, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues of a symmetric matrix whose eigenvalues lie in [-1, 1].

    Small matrices go to LAPACK. For large ones, subspace iteration with a Chebyshev filter: the
    span of `count` + 8 vectors is multiplied by a polynomial of the matrix that is small on
    ``[-1, t]``, t the smallest Ritz value of the block, and grows fast above it. Where that is
    slow, inverse iteration, if the matrix can be ordered to a narrow band.

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
        values, vectors = _inverse_iteration(matrix, vectors, count)
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


def _inverse_iteration(
    matrix: sparse.csr_array, vectors: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Improve a block of vectors by solving with ``(1 + shift) I - matrix`` as a band matrix.

    Where slow convergence comes from samples of low dimension, neighbours can be numbered so that
    they have near numbers. Otherwise the block is returned as it is, with its Ritz values.
    """
    order = reverse_cuthill_mckee(sparse.csr_matrix(matrix), symmetric_mode=True)
    ordered = matrix[order, :][:, order].tocoo()
    offsets = ordered.row - ordered.col
    width = int(offsets.max())
    values, vectors, residuals = _rayleigh_ritz(matrix, vectors)
    if len(order) * width**2 > MAX_BAND_WORK:
        return values, vectors
    band = np.zeros((width + 1, len(order)))
    band[0] = 1 + SHIFT
    below = offsets >= 0
    band[offsets[below], ordered.col[below]] -= ordered.data[below]
    factor = cholesky_banded(band, lower=True, overwrite_ab=True, check_finite=False)
    for _ in range(MAX_SOLVES):
        if residuals[-count:].max() <= TOLERANCE:
            break
        solved = np.empty_like(vectors)
        solved[order] = cho_solve_banded((factor, True), vectors[order], check_finite=False)
        vectors = qr(solved, mode="economic", overwrite_a=True, check_finite=False)[0]
        values, vectors, residuals = _rayleigh_ritz(matrix, vectors)
    return values, vectors


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
