"""Matrices: leading eigenvectors, orthonormal bases, singular values, for any array library.

Sums over many rows are taken in float64, block by block; small problems are solved on the host.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import scipy.linalg
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from tuckermix._array_api import (
    BLOCK_BYTES,
    Array,
    asarray_like,
    blocks,
    device,
    double,
    epsilon,
    get_namespace,
    is_double,
    is_numpy,
    to_numpy,
)
from tuckermix._threads import gather_rows, in_threads

__all__ = [
    "add_parts",
    "add_to",
    "centre_rows",
    "gram_of_columns",
    "leading_directions",
    "leading_eigenvectors",
    "leading_left_vectors",
    "on_the_host",
    "orthonormal_basis",
    "orthonormal_columns",
    "random_basis",
    "rank_of",
    "reduce_blocks",
    "signs_of",
    "summed_times",
    "tall_factors",
    "tall_svd",
    "times",
]

HOST_EIGENPROBLEM = 512
"""Symmetric matrices up to this size are solved on the host even for data on an accelerator:
for small matrices the launches of the device routine take longer than the whole solution."""

WHOLE_EIGENPROBLEM = 128
"""Up to this size all eigenpairs are computed even if few are wanted: the routine for a part is
no faster there."""

PART_WANTED = 6
"""The routine for a part of the eigenpairs is faster where that is less than a sixth of them."""

DENSE_SIDE = 2048
"""Up to this size of the smaller side, the Gram matrix is solved outright; beyond, a block Krylov
iteration needs far fewer operations for the few leading directions."""

EXTRA_DIRECTIONS = 10
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

GRAM_BLOCK = 4 * 2**20
"""Most bytes in float64 of the rows that are worked on at a time in NumPy, by one thread; the sum
of their products is no larger for up to 700 columns."""

ROW_BLOCKS, ROW_WORK, ROW_READING = 24, 3e7, 50
"""Rows make about as many blocks, for the threads of a large machine, unless that leaves less than
the second number of multiplications for a block, a millisecond; to read an entry takes as long as
the third number of them."""

WAITING_BYTES = 16 * 2**20
"""Results of blocks in NumPy wait for each other, up to this size in all, and are then combined by
one thread: if each thread added its own, others would wait for it."""

UPCAST_FLOPS = 4e9
"""Below this many operations the Gram matrix of float32 data is formed in float64, for which the
time does not matter."""

SPARSE_SIZE = 600
"""Up to this size a sparse matrix is solved as a dense one: LAPACK takes some 15 ms, no more than
an iteration would."""

FALLBACK_SIZE = 2500
"""Up to this size LAPACK (about a second) comes to help where the iteration has not converged."""

SPARE = 8
"""Vectors carried beyond those wanted: convergence depends on the gap to the first left out."""

MANY_WANTED = 36
"""Where more than one in as many eigenvectors of a sparse matrix is wanted, a block of vectors
takes less time than the Lanczos iteration: few long calls in place of many short ones, and it
leaves out none."""

WIDER, FURTHER = 2.5, 20
"""The Lanczos iteration keeps this many times the vectors wanted, and at least these more, between
restarts: the fewest products for most graphs."""

RESTARTS = 60
"""Most restarts of the Lanczos iteration: graphs of clusters take some 20, pure noise 30. Those
that take more are better left to inverse iteration, see `MAX_FILTERS`."""

PROBES = 40
"""Steps of a second Lanczos iteration, beside the vectors found, which looks for others: as many
show an eigenvalue that stands out from the rest by a hundredth."""

LEFT_OUT = 1e-5
"""An eigenvalue that exceeds the last one found by more than this has been left out; nearer ones
are ties."""

DEGREE, DEVICE_DEGREE = 20, 40
"""Most products of a filter, between two orthogonalisations. On a device a product takes less time
than what lies between two filters."""

GROWTH, SINGLE_GROWTH = 1e8, 1e4
"""How much more a filter may enlarge the first vector than the last, in float64 and in float32: the
square of it, by which products of the vectors differ, is what floating point can hold."""

DEVICE_SPARE = 12
"""Vectors carried beyond those wanted on a device: they save a filter and cost next to nothing."""

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

SINGLE_TOLERANCE, BLOCK_TOLERANCE = 1e-6, 1e-5
"""The same for an iteration in float32. With ten times as much the first, that of Lanczos, ends
sooner, but leaves out one of several eigenvalues near 1 more often; a block of vectors does not."""

CROWDED = 1e-3
"""Where the last of the wanted eigenvalues is nearer to 1 than this, as on a graph of samples on a
line, its neighbours are too near to be told apart to the tolerance in float32."""

IMPROVED = 1e-3
"""The median residual at which a guess is good enough: partitions then differ from those of exact
vectors by no more than those of other starts of k-means do."""

IMPROVING_DEGREE = 10
"""Products of a round: a better guess needs fewer than `DEGREE`."""

MAX_IMPROVEMENTS = 6
"""Two rounds are usual; this bounds them where the guess says nothing."""


def leading_eigenvectors(matrix: Any, n_vectors: int) -> tuple[Array, Array]:
    """Find the leading eigenpairs of a symmetric matrix, eigenvalues falling.

    The sign of each vector is fixed by its entry of largest magnitude, so that runs agree. For a
    large sparse matrix a Lanczos iteration takes the fewest products. It builds on a single vector,
    and where eigenvalues coincide it may find one eigenvector where there are several: whether any
    is left is looked for, and a block of vectors finds them all then.

    Parameters
    ----------
    matrix : array of shape (d, d), or a sparse matrix with eigenvalues in [-1, 1]
        A symmetric matrix; sparse ones are arrays of SciPy, or tensors of PyTorch in coordinates.
    n_vectors : int
        The number of pairs, at most d.

    Returns
    -------
    values : array of shape (n_vectors,)
        The largest eigenvalues.
    vectors : array of shape (d, n_vectors)
        The eigenvectors as columns.
    """
    size = matrix.shape[0]
    on_device = getattr(matrix, "is_sparse", False)  # of PyTorch: products cost little there
    a_part = size > WHOLE_EIGENPROBLEM and 0 < PART_WANTED * n_vectors < size
    wanted = (size - n_vectors, size - 1) if a_part else None
    if on_device or sparse.issparse(matrix):
        if size > SPARSE_SIZE and 4 * (n_vectors + SPARE) <= size:
            pair = None
            if not on_device and size >= MANY_WANTED * n_vectors:
                pair = _lanczos(matrix, n_vectors)
            return _filtered_eigenvectors(matrix, n_vectors) if pair is None else pair
        if a_part and not on_device:  # in float32 as far as that goes, see `_lanczos`
            single = matrix.astype(np.float32).toarray()
            space = scipy.linalg.eigh(single, subset_by_index=wanted, check_finite=False)[1]
            space = np.linalg.qr(space.astype(np.float64))[0]
            values, turn = leading_eigenvectors(space.T @ (matrix @ space), n_vectors)
            if values[-1] < 1 - CROWDED:
                vectors = space @ turn
                return values, vectors * signs_of(vectors)
        matrix = matrix.to_dense() if on_device else matrix.toarray()
    xp = get_namespace(matrix)
    if n_vectors == 0:
        return xp.zeros((0,), dtype=matrix.dtype, device=device(matrix)), matrix[:, :0]
    if not is_numpy(matrix) and size > HOST_EIGENPROBLEM:
        values, vectors = xp.linalg.eigh(matrix)
        values, vectors = xp.flip(values)[:n_vectors], xp.flip(vectors, axis=1)[:, :n_vectors]
        return values, vectors * signs_of(vectors)
    host = to_numpy(matrix)
    if a_part:
        values, vectors = scipy.linalg.eigh(host, subset_by_index=wanted)
    else:
        values, vectors = np.linalg.eigh(host)
    values, vectors = values[::-1][:n_vectors], vectors[:, ::-1][:, :n_vectors]
    vectors = np.ascontiguousarray(vectors) * signs_of(vectors)
    return asarray_like(values, matrix), asarray_like(vectors, matrix)


def leading_left_vectors(B: Array, n_vectors: int) -> Array:
    """Find the leading left singular vectors of a matrix, from the Gram matrix of its shorter side.

    Parameters
    ----------
    B : array of shape (d, c)
        The matrix, in float64.
    n_vectors : int
        How many to find, at most d.

    Returns
    -------
    vectors : array of shape (d, n_vectors)
        Orthonormal columns.
    """
    xp = get_namespace(B)
    if B.shape[1] >= B.shape[0] or n_vectors > B.shape[1]:
        return leading_eigenvectors(xp.matmul(B, B.T), n_vectors)[1]
    right = leading_eigenvectors(xp.matmul(B.T, B), n_vectors)[1]
    vectors = orthonormal_basis(xp.matmul(B, right))
    return vectors * signs_of(vectors)


def improved_eigenvectors(
    matrix: sparse.csr_array, guess: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Find leading eigenpairs of a sparse matrix near a guess, to the accuracy of k-means.

    A few rounds of the block iteration of `leading_eigenvectors`, begun with the guess and some
    random vectors, until the typical residual is below a thousandth: where the graph of a part of
    the samples is cut, vectors of all samples are nearly right.

    Parameters
    ----------
    matrix : scipy.sparse.csr_array of shape (d, d)
        Symmetric, with eigenvalues in [-1, 1].
    guess : ndarray of shape (d, n_vectors)
        The guess; of no use where d is small, or most eigenvectors are wanted.

    Returns
    -------
    values : ndarray of shape (n_vectors,)
        The largest eigenvalues, falling.
    vectors : ndarray of shape (d, n_vectors)
        The eigenvectors as columns, of any sign.
    """
    size, count = guess.shape
    if size <= WHOLE_EIGENPROBLEM or 4 * (count + SPARE) > size:
        return leading_eigenvectors(matrix, count)
    # Fixed vectors: the result depends on the matrix and the guess alone.
    further = np.random.default_rng(0).standard_normal((size, SPARE))
    vectors = _quick_qr(np.concatenate([guess, further], axis=1))
    for last in (*[False] * MAX_IMPROVEMENTS, True):
        values, vectors, residuals = _rayleigh_ritz(matrix, vectors)
        if last or np.median(residuals[-count:]) <= IMPROVED:
            break
        vectors = _quick_qr(_filter(matrix, vectors, values[0], IMPROVING_DEGREE))
    return values[::-1][:count], vectors[:, ::-1][:, :count]


def signs_of(vectors: Array) -> Array:
    """Return the sign that makes the largest entry of each column positive."""
    if isinstance(vectors, np.ndarray):  # called for every small eigenproblem
        return np.where(vectors.max(axis=0) + vectors.min(axis=0) < 0, -1.0, 1.0)
    xp = get_namespace(vectors)
    balance = xp.max(vectors, axis=0) + xp.min(vectors, axis=0)
    return xp.where(balance < 0, -xp.ones_like(balance), xp.ones_like(balance))


def orthonormal_basis(A: Array) -> Array:
    """Return an orthonormal basis of a space that holds all columns of a matrix.

    Parameters
    ----------
    A : array of shape (n, d)
        The matrix, of moderate size, in float64.

    Returns
    -------
    basis : array of shape (n, min(n, d))
        Orthonormal columns; the identity where there are as many columns as rows.
    """
    xp = get_namespace(A)
    if A.shape[1] >= A.shape[0]:
        return xp.eye(A.shape[0], dtype=A.dtype, device=device(A))
    return xp.linalg.qr(A, mode="reduced")[0]


def orthonormal_columns(rows: Array) -> Array:
    """Return an orthonormal basis of the space of the rows of a wide matrix, as columns.

    Parameters
    ----------
    rows : array of shape (n, d)
        The matrix, n <= d, which is given up: NumPy works in its memory.

    Returns
    -------
    basis : array of shape (d, n)
        Orthonormal columns, in the type of the rows.
    """
    if is_numpy(rows):  # no second copy: the transpose is laid out as LAPACK wants it
        return scipy.linalg.qr(rows.T, mode="economic", overwrite_a=True, check_finite=False)[0]
    return get_namespace(rows).linalg.qr(rows.T, mode="reduced")[0]


def random_basis(n_rows: int, n_columns: int, rng: np.random.Generator, like: Array) -> Array:
    """Draw orthonormal columns, uniformly among all of them.

    Parameters
    ----------
    n_rows, n_columns : int
        The shape.
    rng : numpy.random.Generator
        The source of randomness.
    like : array
        An array whose library, device and type the basis takes.

    Returns
    -------
    basis : array of shape (n_rows, n_columns)
        Orthonormal columns.
    """
    basis, triangle = np.linalg.qr(rng.standard_normal((n_rows, n_columns)))
    return asarray_like(basis * np.where(np.diag(triangle) < 0, -1.0, 1.0), like)


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
    xp = get_namespace(B)
    mean = xp.zeros((B.shape[1],), dtype=xp.float64, device=device(B))
    parts = _row_blocks(B)  # no copy of all rows in float64
    # In float32 the mean itself is rounded: what is left of it goes in a second round.
    for _ in range(1 if is_double(B) else 2):
        views = [B[part, :] for part in parts]
        total = reduce_blocks(partial(xp.sum, axis=0, dtype=xp.float64), views, B, operator.add)
        step = asarray_like(total / B.shape[0], B)
        if is_numpy(B):
            in_threads(lambda rows, by=step: operator.isub(rows, by), views, B)  # type: ignore[misc]
        else:
            B -= step
        mean = mean + double(step)
    return B, mean


def times(A: Array, matrix: Array, finish: Callable[[Array], Array] | None = None) -> Array:
    """Multiply many rows by a small matrix, on NumPy blocks of rows in several threads.

    Parameters
    ----------
    A : array of shape (n, d)
        The rows.
    matrix : array of shape (d, k)
        The matrix, which is brought to their type.
    finish : callable or None, default=None
        What makes rows of the result from those of the product, which it may overwrite.

    Returns
    -------
    product : array of shape (n, k)
        In the type of the rows.
    """
    xp = get_namespace(A)
    matrix = asarray_like(matrix, A)
    finish = finish or (lambda rows: rows)
    parts = _row_blocks(A) if is_numpy(A) else []
    if len(parts) <= 1:
        return finish(xp.matmul(A, matrix))
    return gather_rows(lambda part: finish(xp.matmul(A[part, :], matrix)), parts, A.shape[0], A)


def summed_times(A: Array, matrix: Array) -> tuple[Array, Array, Array]:
    """Multiply many rows by a small matrix, and sum up the result in the same pass.

    Parameters
    ----------
    A : array of shape (n, d)
        The rows.
    matrix : array of shape (d, k)
        The matrix, which is brought to their type.

    Returns
    -------
    product : array of shape (n, k)
        In the type of the rows.
    gram : array of shape (k, k)
        The products of its columns, in float64.
    total : array of shape (k,)
        The sum of its rows, in float64.
    """
    xp = get_namespace(A)
    parts = _row_blocks(A)
    if not is_numpy(A) or len(parts) <= 1:
        product = xp.matmul(A, asarray_like(matrix, A))
        return product, gram_of_columns(product), xp.sum(product, axis=0, dtype=xp.float64)
    matrix = asarray_like(matrix, A)
    product = np.empty((A.shape[0], matrix.shape[1]), dtype=A.dtype)

    def multiply(part: slice) -> tuple[Array, Array]:
        rows = np.matmul(A[part, :], matrix, out=product[part, :]).astype(np.float64, copy=False)
        return rows.T @ rows, rows.sum(axis=0)

    gram, total = reduce_blocks(multiply, parts, A, add_to)
    return product, gram, total


def add_parts(left: Any, right: Any) -> Any:
    """Combine two results, each a tuple or list of things that can be added, None staying None."""
    return type(left)(
        None if one is None else one + other for one, other in zip(left, right, strict=True)
    )


def add_to(left: Any, right: Any) -> Any:
    """Do what `add_parts` does in the memory of the first, which nobody else has seen."""
    return type(left)(
        None if one is None else operator.iadd(one, other)
        for one, other in zip(left, right, strict=True)
    )


def reduce_blocks(
    function: Callable[[Any], Any],
    parts: Sequence[Any],
    like: Array,
    combine: Callable[[Any, Any], Any],
) -> Any:
    """Apply a function to every block, in several threads, and combine what comes of them.

    Parameters
    ----------
    function : callable
        Takes a block; returns an array, or a tuple or list of them.
    parts : sequence
        The blocks, or where they begin and end; at least one.
    like : array
        An array of the library in question.
    combine : callable
        Makes one result of two; may overwrite the first, which nobody else has seen.

    Returns
    -------
    result : object
        Combined in the order of the blocks.
    """
    results: list[Any] = []
    waits = is_numpy(like)

    def keep(result: Any) -> None:
        # Threads wait for each other here. What is small is added up when all is there.
        results.append(result)
        if not waits or len(results) * _n_bytes(result) > WAITING_BYTES:
            results[:] = [reduce(combine, results)]

    in_threads(function, parts, like, keep)
    return reduce(combine, results)


def _n_bytes(result: Any) -> int:
    """Return the size of what a function made of a block: an array, or a few in a row."""
    parts = result if isinstance(result, tuple | list) else (result,)
    return sum(getattr(part, "nbytes", 0) for part in parts)


def _row_blocks(A: Array) -> list[slice]:
    """Cut the rows of a matrix into blocks, one of them for a thread at a time in NumPy."""
    n_rows, n_columns = A.shape
    row = 8 * max(1, n_columns)
    if not is_numpy(A):
        return list(blocks(n_rows, row, BLOCK_BYTES))
    work = max(1, n_columns) * (n_columns + ROW_READING)
    least = max(n_rows / ROW_BLOCKS, ROW_WORK / work)
    return list(blocks(n_rows, row, max(row, min(GRAM_BLOCK, math.ceil(least) * row))))


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
    xp, parts = get_namespace(A), _row_blocks(A)
    if len(parts) > 1 and (is_numpy(A) or not is_double(A)):

        def gram_of_block(part: slice) -> Array:
            block = double(A[part, :]) if exact else A[part, :]
            return double(xp.matmul(block.T, block))

        return reduce_blocks(gram_of_block, parts, A, operator.iadd)
    A = double(A) if exact else A
    return double(xp.matmul(A.T, A))


def tall_svd(A: Array) -> tuple[Array, Array, Array]:
    """Compute the thin singular value decomposition of a tall matrix, see `tall_factors`.

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
    rows, _, turn, values, right = tall_factors(A, gram_of_columns(A))
    return times(rows, turn), values, right


def tall_factors(A: Array, gram: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Find the thin singular value decomposition of a tall matrix from Gram matrices.

    The left vectors are left as a product, so that more can be done in the pass that multiplies it
    out: ``A = (rows @ turn * values) @ right.T``. The columns are brought to equal length before
    the Gram matrix is diagonalised in float64, and the result is polished once more: two rounds
    give orthonormality to rounding for any matrix whose columns are independent to working
    accuracy. This costs a few products with small matrices, where a Householder factorisation of a
    tall matrix would crawl.

    Parameters
    ----------
    A : array of shape (n, d)
        The matrix, n >= d.
    gram : array of shape (d, d)
        The products of its columns, in float64.

    Returns
    -------
    rows : array of shape (n, r)
        What spans the left singular vectors for the singular values that are not noise.
    total : array of shape (r,)
        The sum of these rows, in float64.
    turn : array of shape (r, r)
        What makes them of it, in float64.
    values : array of shape (r,)
        The singular values, falling, in float64.
    right : array of shape (d, r)
        Right singular vectors, in float64.
    """
    xp = get_namespace(A)
    if A.shape[1] == 0:
        none = xp.zeros((0,), dtype=gram.dtype, device=device(A))
        return A, none, gram, none, gram
    lengths = xp.sqrt(xp.linalg.diagonal(gram))
    # Columns far below rounding of rounding are nothing; divided by their length they overflow.
    floor = float(xp.max(lengths)) * epsilon(A) ** 4
    lengths = xp.clip(lengths, floor, None) if floor > 0 else xp.ones_like(lengths)
    weights, vectors = leading_eigenvectors(gram / (lengths[:, None] * lengths), A.shape[1])
    keep = int(np.sum(to_numpy(weights) > RANK_FACTOR * A.shape[1] * epsilon(double(A[:1, :]))))
    whiten = vectors[:, :keep] / (lengths[:, None] * xp.sqrt(weights[:keep]))
    rows, rest, total = summed_times(A, whiten)
    # Second round: so far the columns are orthonormal up to the conditioning of the Gram matrix.
    weights, vectors = leading_eigenvectors(rest, keep)
    polish = xp.matmul(vectors / xp.sqrt(weights), vectors.T)
    factor = xp.matmul(xp.matmul(whiten, polish).T, gram)  # A = (rows @ polish) @ factor
    weights, rotation = leading_eigenvectors(xp.matmul(factor, factor.T), keep)
    if keep and float(weights[-1]) > GRAM_RANGE * float(weights[0]):
        values = xp.sqrt(weights)
        right = xp.matmul(factor.T, rotation) / values
    else:
        parts = np.linalg.svd(to_numpy(factor), full_matrices=False)
        rotation, values, right = (asarray_like(part, factor) for part in parts)
        right = right.T
    return rows, total, xp.matmul(polish, rotation), values, right


def rank_of(singular_values: np.ndarray, norm: float, eps: float) -> int:
    """Count the singular values that stand out from rounding.

    Rounding the entries of a matrix moves its singular values by a few eps times its norm, and the
    norm that counts is that before the mean was subtracted.
    """
    return int(np.sum(singular_values > RANK_FACTOR * eps * norm))


def leading_directions(
    B: Array, width: int, *, rough: bool = False, start: Array | None = None
) -> Array:
    """Find leading right singular vectors.

    Parameters
    ----------
    B : array of shape (n_samples, n_features)
        The rows, centred.
    width : int
        How many directions to find at most: centred rows have one less than there are of them.
    rough : bool, default=False
        Whether a few digits are enough.
    start : array of shape (n_features, k) or None, default=None
        Directions from which an iteration starts.

    Returns
    -------
    directions : array of shape (n_features, k)
        Orthonormal columns in the order of their singular values, in float64: `width` of them or a
        few more, fewer where there are not as many, none where all rows are zero.
    """
    xp = get_namespace(B)
    n_samples, n_features = B.shape
    width = min(width, n_samples - 1, n_features)
    none = xp.zeros((n_features, 0), dtype=xp.float64, device=device(B))
    if width <= 0:
        return none
    if min(B.shape) > max(DENSE_SIDE, 3 * width):
        if not bool(xp.any(B != 0)):
            return none
        return _krylov_basis(B, width, start, ROUGH if rough else 4 * epsilon(B))
    tall = n_features <= n_samples
    exact = not tall or 2.0 * n_samples * n_features**2 < UPCAST_FLOPS
    gram = gram_of_columns(B if tall else B.T, exact=exact)
    if not bool(xp.any(xp.linalg.diagonal(gram) > 0)):
        return none
    if tall:
        # A few more directions than needed repair later what float32 products mixed up.
        more = min(n_features, width + (0 if is_double(B) or exact else EXTRA_DIRECTIONS))
        if rough and 1 < n_features <= HOST_EIGENPROBLEM:  # SciPy 1.13 fails for a size of 1
            # LAPACK takes half the time in float32, whose range is smaller.
            host = to_numpy(gram / xp.max(xp.linalg.diagonal(gram))).astype(np.float32)
            vectors = scipy.linalg.eigh(host, driver="evd", check_finite=False)[1]
            return asarray_like(vectors[:, ::-1][:, :more], gram)
        return leading_eigenvectors(gram, more)[1]
    left = leading_eigenvectors(gram, width)[1]
    return orthonormal_basis(double(xp.matmul(B.T, asarray_like(left, B))))


def _krylov_basis(B: Array, width: int, start: Array | None, tol: float) -> Array:
    """Find leading right singular vectors of a large matrix by block subspace iteration.

    Each step adds the image of the present block and keeps the best part of both (a block
    Lanczos method restarted at every step), until the captured energy no longer grows.
    """
    xp = get_namespace(B)
    size = min(width + max(EXTRA_DIRECTIONS, width // 2), *B.shape)
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


def _lanczos(matrix: sparse.csr_array, count: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Find leading eigenpairs by ARPACK; None where it takes too long or left one out.

    The iteration runs in float32, where memory is read twice as fast, and the best pairs within the
    space that it finds are taken in float64. Where eigenvalues crowd at 1, float32 does not tell
    them apart.
    """
    size = matrix.shape[0]
    # Fixed starts: the result depends on the matrix alone.
    start, probe = np.random.default_rng(0).standard_normal((2, size))
    width = min(size, max(int(WIDER * count), count + FURTHER))
    for dtype, tolerance in ((np.float32, SINGLE_TOLERANCE), (np.float64, TOLERANCE)):
        cast = matrix.astype(dtype)
        try:
            # Straight to the product: the detours of SciPy take longer than a small one.
            product = LinearOperator(cast.shape, matvec=cast.__matmul__, dtype=dtype)
            _, space = eigsh(
                product,
                count,
                which="LA",
                v0=start.astype(dtype),
                ncv=width,
                tol=tolerance,
                maxiter=RESTARTS,
            )
        except ArpackNoConvergence:
            return None
        space = space.astype(np.float64)
        small = space.T @ (matrix @ space)
        values, turn = scipy.linalg.eigh((small + small.T) / 2, space.T @ space)
        values, vectors = values[::-1], space @ turn[:, ::-1]
        if values[-1] < 1 - CROWDED:
            break
    if _largest_beside(cast, vectors, probe) > values[-1] + LEFT_OUT:
        return None
    return values, vectors * signs_of(vectors)


def _largest_beside(matrix: sparse.csr_array, vectors: np.ndarray, probe: np.ndarray) -> float:
    """Estimate the largest eigenvalue of a matrix beside eigenvectors, from below, by Lanczos."""
    size, count = vectors.shape
    # Column by column, as products with a part of the columns read it.
    basis = np.zeros((size, count + PROBES), dtype=matrix.dtype, order="F")
    basis[:, :count] = vectors
    probe = probe.astype(matrix.dtype)
    steep: list[float] = []
    links: list[float] = []
    for step in range(count, count + PROBES):
        known = basis[:, :step]
        probe -= known @ (known.T @ probe)
        length = float(np.linalg.norm(probe))
        if length <= np.finfo(matrix.dtype).eps:  # there is nothing beyond
            break
        if step > count:
            links.append(length)
        basis[:, step] = probe / length
        probe = matrix @ basis[:, step]
        steep.append(float(probe @ basis[:, step]))
    if not steep:
        return -math.inf
    return float(scipy.linalg.eigvalsh_tridiagonal(np.array(steep), np.array(links))[-1])


def _filtered_eigenvectors(matrix: Any, count: int) -> tuple[Array, Array]:
    """Find leading eigenpairs by subspace iteration with a Chebyshev filter.

    The span of `count` + 8 vectors is multiplied by a polynomial of the matrix that is small on
    ``[-1, t]``, t the smallest Ritz value of the block, and grows fast above it. On the host it
    begins in float32, see `_lanczos`. Where the iteration is slow, inverse iteration, if the matrix
    can be ordered to a narrow band.
    """
    size, on_host = matrix.shape[0], sparse.issparse(matrix)
    like = np.empty(0) if on_host else matrix.values()
    width = count + (SPARE if on_host else DEVICE_SPARE)
    # A fixed start: the result depends on the matrix alone.
    vectors = asarray_like(np.random.default_rng(0).standard_normal((size, width)), like)
    if on_host:
        vectors = vectors.astype(np.float32)
        vectors = _filtered(matrix.astype(np.float32), vectors, count)[1].astype(np.float64)
        values, vectors, converged = _filtered(matrix, vectors, count)
    else:
        # Coordinates would be compressed anew for every product.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*beta state")
            values, vectors, converged = _filtered(matrix.to_sparse_csr(), vectors, count)
    if not converged:
        if not on_host:
            matrix, vectors = on_the_host(matrix), to_numpy(vectors)
        if size <= FALLBACK_SIZE:
            values, vectors = leading_eigenvectors(matrix.toarray(), count)
            return asarray_like(values, like), asarray_like(vectors, like)
        values, vectors = _inverse_iteration(matrix, vectors, count)
        vectors = asarray_like(vectors, like)
    order = np.arange(vectors.shape[1])[::-1][:count]
    vectors = vectors[:, asarray_like(order, like, dtype=get_namespace(like).int64)]
    return asarray_like(values[order], like), vectors * signs_of(vectors)


def _filtered(matrix: Any, vectors: Array, count: int) -> tuple[np.ndarray, Array, bool]:
    """Filter a block of vectors until the last `count` are eigenvectors, or it takes too long.

    Returns Ritz values (ascending), Ritz vectors, and whether they have converged. In float32 it
    ends as soon as eigenvalues are seen to crowd at 1.
    """
    single, on_host = not is_double(vectors), is_numpy(vectors)
    most = DEGREE if on_host else DEVICE_DEGREE
    vectors = _quick_qr(vectors)
    for _ in range(MAX_FILTERS):
        values, vectors, residuals = _rayleigh_ritz(matrix, vectors)
        crowded = values[-count] >= 1 - CROWDED
        tolerance = TOLERANCE if crowded or not on_host else BLOCK_TOLERANCE
        if residuals[-count:].max() <= tolerance or (single and crowded):
            return values, vectors, True
        reach = math.acosh(max(1.0 + TOLERANCE, (3.0 - values[0]) / (1.0 + values[0])))
        growth = SINGLE_GROWTH if single else GROWTH
        degree = max(2, min(most, int(math.log(growth) / reach)))
        vectors = _quick_qr(_filter(matrix, vectors, values[0], degree))
    return values, vectors, False


def on_the_host(matrix: Any) -> sparse.csr_array:
    """Bring a sparse matrix of PyTorch to SciPy."""
    rows = to_numpy(matrix.indices())
    return sparse.csr_array((to_numpy(matrix.values()), (rows[0], rows[1])), shape=matrix.shape)


def _quick_qr(vectors: Array) -> Array:
    """Orthonormalise a block of vectors, which is overwritten."""
    if is_numpy(vectors):
        return scipy.linalg.qr(vectors, mode="economic", overwrite_a=True, check_finite=False)[0]
    # Products with small matrices: on a device Householder's reflections are many small steps. The
    # second round removes what the rounding of the first left.
    whole = vectors
    for _ in range(2):
        gram = to_numpy(vectors.T @ vectors)
        lengths = np.sqrt(np.diag(gram))
        if not np.all(lengths > 0):
            return orthonormal_basis(whole)
        weights, turn = np.linalg.eigh(gram / np.outer(lengths, lengths))
        if weights[0] <= RANK_FACTOR * len(weights) * epsilon(vectors):
            return orthonormal_basis(whole)
        vectors = vectors @ asarray_like(turn / np.sqrt(weights) / lengths[:, None], vectors)
    return vectors


def _rayleigh_ritz(matrix: Any, vectors: Array) -> tuple[np.ndarray, Array, np.ndarray]:
    """Return Ritz values (ascending), Ritz vectors and the norms of their residuals."""
    xp = get_namespace(vectors)
    images = matrix @ vectors
    small = to_numpy(vectors.T @ images)
    values, turn = scipy.linalg.eigh((small + small.T) / 2)
    turn = asarray_like(turn, vectors)
    vectors, images = vectors @ turn, images @ turn
    gaps = images - vectors * asarray_like(values, vectors)
    return values, vectors, to_numpy(xp.sqrt(xp.sum(gaps * gaps, axis=0)))


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
    factor = scipy.linalg.cholesky_banded(band, lower=True, overwrite_ab=True, check_finite=False)
    for _ in range(MAX_SOLVES):
        if residuals[-count:].max() <= TOLERANCE:
            break
        solved = np.empty_like(vectors)
        solved[order] = scipy.linalg.cho_solve_banded(
            (factor, True), vectors[order], check_finite=False
        )
        vectors = _quick_qr(solved)
        values, vectors, residuals = _rayleigh_ritz(matrix, vectors)
    return values, vectors


def _filter(matrix: Any, vectors: Array, edge: float, degree: int) -> Array:
    """Apply the Chebyshev polynomial that is at most 1 in magnitude on [-1, edge]."""
    edge = float(edge)
    center, half = (edge - 1) / 2, max((edge + 1) / 2, float(np.finfo(float).eps))
    previous, current = vectors, (matrix @ vectors - center * vectors) / half
    for _ in range(degree - 1):
        following = matrix @ current
        following -= center * current
        following *= 2 / half
        following -= previous
        previous, current = current, following
    return current
