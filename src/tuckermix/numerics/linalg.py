"""Matrices: leading eigenvectors, orthonormal bases, singular values, for any array library.

Sums over many rows are taken in float64, block by block; small problems are solved on the host.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
import scipy.linalg

from tuckermix._array_api import (
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
from tuckermix._estimators import Settings
from tuckermix._threads import gather_rows, in_threads

HOST_EIGENPROBLEM = 512
"""Symmetric matrices up to this size are solved on the host even for data on an accelerator:
for small matrices the launches of the device routine take longer than the whole solution."""

WHOLE_EIGENPROBLEM = 128
"""Up to this size all eigenpairs are computed even if few are wanted: the routine for a part is
no faster there."""


@dataclass(frozen=True)
class BlockSettings(Settings):
    """How large matrices are cut into blocks.

    Attributes
    ----------
    part_wanted : int
        The routine for a part of the eigenpairs is faster where that is less than a sixth of them.
    rough : float
        Relative growth of the captured energy at which a rough start is good enough.
    gram_range : float
        Eigenvalues of a Gram matrix are good to about eight digits down to this share of the
        largest; below, the singular values come from a decomposition that does not square them.
    householder : int
        Columns with more entries that are orthogonal but for rounding are made so by products.
    """

    part_wanted: int = 6
    rough: float = 0.001
    gram_range: float = 1e-08
    householder: int = 2**21


DENSE_SIDE = 2048
"""Up to this size of the smaller side, the Gram matrix is solved outright; beyond, a block Krylov
iteration needs far fewer operations for the few leading directions."""

EXTRA_DIRECTIONS = 10
"""Extra directions of an iterated subspace; they make its leading part converge quickly."""

KRYLOV_LIMIT = 60
"""Most block steps of the iteration; each one multiplies the accuracy, so this is never reached
unless the singular values do not fall at all, in which case any subspace is as good."""


RANK_FACTOR = 10.0
"""Singular values below this many roundings of the norm are noise, see `rank_of`."""


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


def part_of_eigenpairs(size: int, n_vectors: int) -> tuple[int, int] | None:
    """Return the places of the leading pairs where the routine for a part of them is faster."""
    if size > WHOLE_EIGENPROBLEM and 0 < BlockSettings.current().part_wanted * n_vectors < size:
        return size - n_vectors, size - 1
    return None


def leading_eigenvectors(matrix: Array, n_vectors: int) -> tuple[Array, Array]:
    """Find the leading eigenpairs of a symmetric matrix, eigenvalues falling.

    The sign of each vector is fixed by its entry of largest magnitude, so that runs agree.

    Parameters
    ----------
    matrix : array of shape (d, d)
        A symmetric matrix.
    n_vectors : int
        The number of pairs, at most d.

    Returns
    -------
    values : array of shape (n_vectors,)
        The largest eigenvalues.
    vectors : array of shape (d, n_vectors)
        The eigenvectors as columns.
    """
    xp = get_namespace(matrix)
    if n_vectors == 0:
        return xp.zeros((0,), dtype=matrix.dtype, device=device(matrix)), matrix[:, :0]
    if not is_numpy(matrix) and matrix.shape[0] > HOST_EIGENPROBLEM:
        values, vectors = xp.linalg.eigh(matrix)
        values, vectors = xp.flip(values)[:n_vectors], xp.flip(vectors, axis=1)[:, :n_vectors]
        return values, vectors * signs_of(vectors)
    host = to_numpy(matrix)
    wanted = part_of_eigenpairs(len(host), n_vectors)
    if wanted is not None:
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


def with_constant(coordinates: Array, n_samples: int | None = None) -> Array:
    """Put the constant unit vector before orthonormal centred coordinates.

    Parameters
    ----------
    coordinates : array of shape (n, d)
        The coordinates of all samples, or of a block of them.
    n_samples : int or None, default=None
        The number of all samples; None means n.

    Returns
    -------
    Q : array of shape (n, 1 + d)
        The rows of the basis.
    """
    xp = get_namespace(coordinates)
    n_rows = coordinates.shape[0]
    constant = np.full((n_rows, 1), (n_samples or n_rows) ** -0.5)
    return xp.concat([asarray_like(constant, coordinates), coordinates], axis=1)


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


def times_in_place(A: Array, matrix: Array) -> Array:
    """Multiply many rows by a small matrix; NumPy works in the memory of the rows.

    Parameters
    ----------
    A : array of shape (n, d)
        The rows, which are given up.
    matrix : array of shape (d, k)
        The matrix, k <= d.

    Returns
    -------
    product : array of shape (n, k)
        In the type of the rows.
    """
    if not is_numpy(A):
        return get_namespace(A).matmul(A, matrix)
    width = matrix.shape[1]
    for part in blocks(A.shape[0], 8 * A.shape[1], GRAM_BLOCK):
        A[part, :width] = A[part, :] @ matrix
    return A[:, :width]


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


def add_parts(left: Any, right: Any, add: Callable[[Any, Any], Any] = operator.add) -> Any:
    """Combine two results, each a tuple or list of things that can be added, None staying None."""
    pairs = zip(left, right, strict=True)
    return type(left)(None if one is None else add(one, other) for one, other in pairs)


add_to = partial(add_parts, add=operator.iadd)
"""Do what `add_parts` does in the memory of the first, which nobody else has seen."""


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
        return list(blocks(n_rows, row))
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
    if keep and float(weights[-1]) > BlockSettings.current().gram_range * float(weights[0]):
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
    use = BlockSettings.current()
    xp = get_namespace(B)
    n_samples, n_features = B.shape
    width = min(width, n_samples - 1, n_features)
    none = xp.zeros((n_features, 0), dtype=xp.float64, device=device(B))
    if width <= 0:
        return none
    if min(B.shape) > max(DENSE_SIDE, 3 * width):
        if not bool(xp.any(B != 0)):
            return none
        return _krylov_basis(B, width, start, use.rough if rough else 4 * epsilon(B))
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
    directions = double(xp.matmul(B.T, asarray_like(left, B)))
    polished = _polished(directions) if n_features * width > use.householder else None
    return orthonormal_basis(directions) if polished is None else polished


def _polished(columns: Array) -> Array | None:
    """Return an orthonormal basis of columns that are nearly orthogonal; None where they are not.

    Products of matrices take a third of the time of a Householder factorisation.
    """
    xp = get_namespace(columns)
    gram = to_numpy(xp.matmul(columns.T, columns))
    lengths = np.sqrt(np.diagonal(gram))
    if lengths.min() == 0.0:
        return None
    gram = gram / (lengths[:, None] * lengths)
    apart = np.abs(gram - np.eye(len(gram))).sum(axis=1).max()  # a bound on the eigenvalues
    if apart > 0.5:
        return None
    triangle = np.linalg.cholesky(gram)
    turn = scipy.linalg.solve_triangular(triangle, np.diag(1.0 / lengths), lower=True).T
    return xp.matmul(columns, asarray_like(turn, columns))


def _krylov_basis(B: Array, width: int, start: Array | None, tol: float) -> Array:
    """Find leading right singular vectors of a large matrix by block subspace iteration.

    Each step adds the image of the present block and keeps the best part of both (a block
    Lanczos method restarted at every step), until the captured energy no longer grows.
    """
    xp = get_namespace(B)
    size = min(width + max(EXTRA_DIRECTIONS, width // 2), *B.shape)
    guess = np.random.default_rng(0).standard_normal((B.shape[1], size))
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
