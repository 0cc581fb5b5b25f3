"""Leading eigenvectors of sparse matrices, such as normalised graphs of neighbours."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from tuckermix._array_api import (
    Array,
    asarray_like,
    epsilon,
    get_namespace,
    is_double,
    is_numpy,
    to_numpy,
)
from tuckermix._estimators import Settings
from tuckermix.numerics import linalg


@dataclass(frozen=True)
class EigenSettings(Settings):
    """How eigenvectors of graphs are found.

    Attributes
    ----------
    sparse_size : int
        Up to this size a sparse matrix is solved as a dense one: LAPACK takes some 15 ms, no more
        than an iteration would.
    fallback_size : int
        Up to this size LAPACK (about a second) comes to help where the iteration has not converged.
    spare : int
        Vectors carried beyond those wanted: convergence depends on the gap to the first left out.
    many_wanted : int
        Where more than one in as many eigenvectors of a sparse matrix is wanted, a block of vectors
        takes less time than the Lanczos iteration: few long calls in place of many short ones, and
        it leaves out none.
    wider, further : float
        The Lanczos iteration keeps this many times the vectors wanted, and at least these more,
        between restarts: the fewest products for most graphs.
    restarts : int
        Most restarts of the Lanczos iteration: graphs of clusters take some 20, pure noise 30.
        Those that take more are better left to inverse iteration, see `max_filters`.
    probes : int
        Steps of a second Lanczos iteration, beside the vectors found, which looks for others: as
        many show an eigenvalue that stands out from the rest by a hundredth.
    left_out : float
        An eigenvalue that exceeds the last one found by more than this has been left out; nearer
        ones are ties.
    degree, device_degree : int
        Most products of a filter, between two orthogonalisations. On a device a product takes less
        time than what lies between two filters.
    growth, single_growth : float
        How much more a filter may enlarge the first vector than the last, in float64 and in
        float32: the square of it, by which products of the vectors differ, is what floating point
        can hold.
    device_spare : int
        Vectors carried beyond those wanted on a device: they save a filter and cost next to
        nothing.
    max_filters : int
        Most problems take 4 to 8 filters. Those that take more are graphs of samples on a line or
        in a plane, with eigenvalues that crowd at 1 for want of short ways from end to end.
    max_solves : int
        Inverse iteration takes some 10 steps.
    max_band_work : float
        Operations to factorise a band matrix, size times bandwidth squared: a few seconds.
    shift : float
        Inverse iteration works on ``(1 + 1e-8) I - N``, which is positive definite.
    tolerance : float
        Residual norms at which eigenvectors of a matrix of norm 1 are accurate enough for k-means.
    single_tolerance, block_tolerance : float
        The same for an iteration in float32. With ten times as much the first, that of Lanczos,
        ends sooner, but leaves out one of several eigenvalues near 1 more often; a block of vectors
        does not.
    crowded : float
        Where the last of the wanted eigenvalues is nearer to 1 than this, as on a graph of samples
        on a line, its neighbours are too near to be told apart to the tolerance in float32.
    improved : float
        The median residual at which a guess is good enough: partitions then differ from those of
        exact vectors by no more than those of other starts of k-means do.
    improving_degree : int
        Products of a round: a better guess needs fewer than `degree`.
    max_improvements : int
        Two rounds are usual; this bounds them where the guess says nothing.
    """

    sparse_size: int = 600
    fallback_size: int = 2500
    spare: int = 8
    many_wanted: int = 36
    wider: float = 2.5
    further: int = 20
    restarts: int = 60
    probes: int = 40
    left_out: float = 1e-05
    degree: int = 20
    device_degree: int = 40
    growth: float = 100000000.0
    single_growth: float = 10000.0
    device_spare: int = 12
    max_filters: int = 40
    max_solves: int = 40
    max_band_work: float = 40000000000.0
    shift: float = 1e-08
    tolerance: float = 1e-07
    single_tolerance: float = 1e-06
    block_tolerance: float = 1e-05
    crowded: float = 0.001
    improved: float = 0.001
    improving_degree: int = 10
    max_improvements: int = 6


def graph_eigenvectors(matrix: Any, n_vectors: int) -> tuple[Array, Array]:
    """Find the leading eigenpairs of a sparse symmetric matrix, eigenvalues falling.

    The sign of each vector is fixed by its entry of largest magnitude, so that runs agree. For a
    large matrix a Lanczos iteration takes the fewest products. It builds on a single vector, and
    where eigenvalues coincide it may find one eigenvector where there are several: whether any is
    left is looked for, and a block of vectors finds them all then.

    Parameters
    ----------
    matrix : sparse matrix of shape (d, d), with eigenvalues in [-1, 1]
        An array of SciPy, or a tensor of PyTorch in coordinates.
    n_vectors : int
        The number of pairs, at most d.

    Returns
    -------
    values : array of shape (n_vectors,)
        The largest eigenvalues.
    vectors : array of shape (d, n_vectors)
        The eigenvectors as columns.
    """
    use, size = EigenSettings.current(), matrix.shape[0]
    on_device = getattr(matrix, "is_sparse", False)  # of PyTorch: products cost little there
    if size > use.sparse_size and 4 * (n_vectors + use.spare) <= size:
        pair = None
        if not on_device and size >= use.many_wanted * n_vectors:
            pair = _lanczos(matrix, n_vectors)
        return _filtered_eigenvectors(matrix, n_vectors) if pair is None else pair
    wanted = linalg.part_of_eigenpairs(size, n_vectors)
    if wanted is not None and not on_device:  # in float32 as far as that goes, see `_lanczos`
        single = matrix.astype(np.float32).toarray()
        space = scipy.linalg.eigh(single, subset_by_index=wanted, check_finite=False)[1]
        space = np.linalg.qr(space.astype(np.float64))[0]
        values, turn = linalg.leading_eigenvectors(space.T @ (matrix @ space), n_vectors)
        if values[-1] < 1 - use.crowded:
            vectors = space @ turn
            return values, vectors * linalg.signs_of(vectors)
    dense = matrix.to_dense() if on_device else matrix.toarray()
    return linalg.leading_eigenvectors(dense, n_vectors)


def improved_eigenvectors(
    matrix: sparse.csr_array, guess: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Find leading eigenpairs of a sparse matrix near a guess, to the accuracy of k-means.

    A few rounds of the block iteration of `graph_eigenvectors` in float32, begun with the guess and
    some random vectors, until the typical residual is below a thousandth: where the graph of a part
    of the samples is cut, vectors of all samples are nearly right.

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
    use = EigenSettings.current()
    size, count = guess.shape
    if size <= linalg.WHOLE_EIGENPROBLEM or 4 * (count + use.spare) > size:
        return graph_eigenvectors(matrix, count)
    # Fixed vectors: the result depends on the matrix and the guess alone.
    further = np.random.default_rng(0).standard_normal((size, use.spare))
    matrix = matrix.astype(np.float32)
    vectors = _quick_qr(np.concatenate([guess, further], axis=1).astype(np.float32))
    for last in (*[False] * use.max_improvements, True):
        values, vectors, residuals = _rayleigh_ritz(matrix, vectors)
        if last or np.median(residuals[-count:]) <= use.improved:
            break
        vectors = _quick_qr(_filter(matrix, vectors, values[0], use.improving_degree))
    return values[::-1][:count], vectors[:, ::-1][:, :count]


def _lanczos(matrix: sparse.csr_array, count: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Find leading eigenpairs by ARPACK; None where it takes too long or left one out.

    The iteration runs in float32, where memory is read twice as fast, and the best pairs within the
    space that it finds are taken in float64. Where eigenvalues crowd at 1, float32 does not tell
    them apart.
    """
    use = EigenSettings.current()
    size = matrix.shape[0]
    # Fixed starts: the result depends on the matrix alone.
    start, probe = np.random.default_rng(0).standard_normal((2, size))
    width = min(size, max(int(use.wider * count), count + use.further))
    for dtype, tolerance in ((np.float32, use.single_tolerance), (np.float64, use.tolerance)):
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
                maxiter=use.restarts,
            )
        except ArpackNoConvergence:
            return None
        space = space.astype(np.float64)
        small = space.T @ (matrix @ space)
        values, turn = scipy.linalg.eigh((small + small.T) / 2, space.T @ space)
        values, vectors = values[::-1], space @ turn[:, ::-1]
        if values[-1] < 1 - use.crowded:
            break
    if _largest_beside(cast, vectors, probe) > values[-1] + use.left_out:
        return None
    return values, vectors * linalg.signs_of(vectors)


def _largest_beside(matrix: sparse.csr_array, vectors: np.ndarray, probe: np.ndarray) -> float:
    """Estimate the largest eigenvalue of a matrix beside eigenvectors, from below, by Lanczos."""
    use = EigenSettings.current()
    size, count = vectors.shape
    # Column by column, as products with a part of the columns read it.
    basis = np.zeros((size, count + use.probes), dtype=matrix.dtype, order="F")
    basis[:, :count] = vectors
    probe = probe.astype(matrix.dtype)
    steep: list[float] = []
    links: list[float] = []
    for step in range(count, count + use.probes):
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
    use = EigenSettings.current()
    size, on_host = matrix.shape[0], sparse.issparse(matrix)
    like = np.empty(0) if on_host else matrix.values()
    width = count + (use.spare if on_host else use.device_spare)
    # A fixed start: the result depends on the matrix alone.
    vectors = asarray_like(np.random.default_rng(0).standard_normal((size, width)), like)
    if on_host:
        vectors = vectors.astype(np.float32)
        vectors = _filtered(matrix.astype(np.float32), vectors, count)[1].astype(np.float64)
        values, vectors, converged = _filtered(matrix, vectors, count)
    else:
        # Coordinates would be compressed again for every product.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*beta state")
            values, vectors, converged = _filtered(matrix.to_sparse_csr(), vectors, count)
    if not converged:
        if not on_host:
            matrix, vectors = on_the_host(matrix), to_numpy(vectors)
        if size <= use.fallback_size:
            values, vectors = linalg.leading_eigenvectors(matrix.toarray(), count)
            return asarray_like(values, like), asarray_like(vectors, like)
        values, vectors = _inverse_iteration(matrix, vectors, count)
        vectors = asarray_like(vectors, like)
    order = np.arange(vectors.shape[1])[::-1][:count]
    vectors = vectors[:, asarray_like(order, like, dtype=get_namespace(like).int64)]
    return asarray_like(values[order], like), vectors * linalg.signs_of(vectors)


def _filtered(matrix: Any, vectors: Array, count: int) -> tuple[np.ndarray, Array, bool]:
    """Filter a block of vectors until the last `count` are eigenvectors, or it takes too long.

    Returns Ritz values (ascending), Ritz vectors, and whether they have converged. In float32 it
    ends as soon as eigenvalues are seen to crowd at 1.
    """
    use = EigenSettings.current()
    single, on_host = not is_double(vectors), is_numpy(vectors)
    most = use.degree if on_host else use.device_degree
    vectors = _quick_qr(vectors)
    for _ in range(use.max_filters):
        values, vectors, residuals = _rayleigh_ritz(matrix, vectors)
        crowded = values[-count] >= 1 - use.crowded
        tolerance = use.tolerance if crowded or not on_host else use.block_tolerance
        if residuals[-count:].max() <= tolerance or (single and crowded):
            return values, vectors, True
        vectors = _quick_qr(_filter(matrix, vectors, values[0], most))
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
            return linalg.orthonormal_basis(whole)
        weights, turn = np.linalg.eigh(gram / np.outer(lengths, lengths))
        if weights[0] <= linalg.RANK_FACTOR * len(weights) * epsilon(vectors):
            return linalg.orthonormal_basis(whole)
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
    use = EigenSettings.current()
    order = reverse_cuthill_mckee(sparse.csr_matrix(matrix), symmetric_mode=True)
    ordered = matrix[order, :][:, order].tocoo()
    offsets = ordered.row - ordered.col
    width = int(offsets.max())
    values, vectors, residuals = _rayleigh_ritz(matrix, vectors)
    if len(order) * width**2 > use.max_band_work:
        return values, vectors
    band = np.zeros((width + 1, len(order)))
    band[0] = 1 + use.shift
    below = offsets >= 0
    band[offsets[below], ordered.col[below]] -= ordered.data[below]
    factor = scipy.linalg.cholesky_banded(band, lower=True, overwrite_ab=True, check_finite=False)
    for _ in range(use.max_solves):
        if residuals[-count:].max() <= use.tolerance:
            break
        solved = np.empty_like(vectors)
        solved[order] = scipy.linalg.cho_solve_banded(
            (factor, True), vectors[order], check_finite=False
        )
        vectors = _quick_qr(solved)
        values, vectors, residuals = _rayleigh_ritz(matrix, vectors)
    return values, vectors


def _filter(matrix: Any, vectors: Array, edge: float, degree: int) -> Array:
    """Apply the Chebyshev polynomial that is at most 1 in magnitude on [-1, edge].

    Its degree is at most that given, and such that floating point can hold what it makes of 1.
    """
    use, edge = EigenSettings.current(), float(edge)
    reach = math.acosh(max(1.0 + use.tolerance, (3.0 - edge) / (1.0 + edge)))
    growth = use.growth if is_double(vectors) else use.single_growth
    degree = max(2, min(degree, int(math.log(growth) / reach)))
    center, half = (edge - 1) / 2, max((edge + 1) / 2, float(np.finfo(float).eps))
    previous, current = vectors, (matrix @ vectors - center * vectors) / half
    for _ in range(degree - 1):
        following = matrix @ current
        following -= center * current
        following *= 2 / half
        following -= previous
        previous, current = current, following
    return current
