"""Nonnegative matrix factorisation by alternating least squares (ALS)."""

from __future__ import annotations

import numpy as np

from tuckermix._declaration import declare, describe, ruled
from tuckermix._records import StopReason
from tuckermix._validation import one_of
from tuckermix.baselines._factorization import (
    FACTORS,
    Factorization,
    NonnegativeFactorization,
    normalize_components,
)
from tuckermix.baselines._run import Trace, relative_change
from tuckermix.baselines.nonnegative import least_squares_cost, nonnegative_least_squares

__all__ = ["AlternatingNMF", "alternating_nmf", "truncated_nmf"]

VARIANTS = ("anls", "truncated", "obs")

SURGEON_SWEEPS = 14
"""Corrections before truncation in the "obs" variant, the figure of the toolbox."""

DEAD = 1e-12
"""A component whose share of the data is below this counts as dead: rounding, not signal."""


@describe(FACTORS)
def alternating_nmf(
    X: np.ndarray, W: np.ndarray, H: np.ndarray, *, max_iter: int = 1000, tol: float = 1e-5
) -> Factorization:
    r"""Factorise by exact alternating nonnegative least squares, from a given start.

    .. math::

        H \leftarrow \arg\min_{H \ge 0} \lVert X - W H \rVert_F, \qquad
        W \leftarrow \arg\min_{W \ge 0} \lVert X - W H \rVert_F

    each by block principal pivoting, warm-started from the last passive sets. The cost never
    rises. Components are kept at unit norm. Stops when the error :math:`\lVert X - WH \rVert` falls
    relatively by less than `tol` in one iteration.

    Parameters
    ----------
    H : ndarray of shape (n_components, n_features)
        Start of the components; only its zeros matter.
    """
    squared_norm = float(np.vdot(X, X))
    trace = Trace(squared_norm)
    trace.add(least_squares_cost(squared_norm, W, X @ H.T, H @ H.T))
    reason, residual, n_iter = StopReason.MAX_ITER, float("inf"), 0
    for _ in range(max_iter):
        n_iter += 1
        H = nonnegative_least_squares(W.T @ W, X.T @ W, start=H.T).T
        W, H = normalize_components(W, _revive(X, W, H))
        gram, cross = H @ H.T, X @ H.T
        W = nonnegative_least_squares(gram, cross, start=W)
        trace.add(least_squares_cost(squared_norm, W, cross, gram))
        residual = relative_change(trace.records)
        if residual <= tol and tol > 0:
            reason = StopReason.TOLERANCE
            break
    return Factorization(W, H, n_iter, reason, trace.records, residual=residual)


@describe(FACTORS)
def truncated_nmf(
    X: np.ndarray,
    W: np.ndarray,
    H: np.ndarray,
    *,
    max_iter: int = 1000,
    tol: float = 1e-5,
    surgeon: bool = False,
) -> Factorization:
    r"""Factorise by unconstrained least squares with negatives set to zero.

    .. math::

        H \leftarrow \max\bigl(0, (W^\top W)^\dagger W^\top X\bigr), \qquad
        W \leftarrow \max\bigl(0, X H^\top (H H^\top)^\dagger\bigr)

    Each row of H is divided by its sum in between. Nothing guarantees that the cost falls; the
    best pair met is returned. Stops when the relative change of the error falls below `tol`.

    Parameters
    ----------
    H : ndarray of shape (n_components, n_features)
        Start of the components; for the first record only.
    tol : float, default=1e-5
        The least relative change of the error; 0 runs all iterations.
    surgeon : bool, default=False
        Whether negative entries are first moved to zero with the others adjusted to it ("optimal
        brain surgeon"), at most 14 times, before truncation.

    Returns
    -------
    result : Factorization
        The factors and the records of the run; the cost of the last record is that of the
        factors returned.
    """
    squared_norm = float(np.vdot(X, X))
    trace = Trace(squared_norm)
    trace.add(least_squares_cost(squared_norm, W, X @ H.T, H @ H.T))
    best = (float("inf"), W, H)
    reason, residual, n_iter = StopReason.MAX_ITER, float("inf"), 0
    for _ in range(max_iter):
        n_iter += 1
        H = _truncated(W.T @ W, X.T @ W, surgeon).T
        H = _revive(X, W, H)
        sums = H.sum(axis=1)
        H = H / np.where(sums > 0, sums, 1.0)[:, None]
        gram, cross = H @ H.T, X @ H.T
        W = _truncated(gram, cross, surgeon)
        trace.add(least_squares_cost(squared_norm, W, cross, gram))
        cost = trace.records[-1].cost
        if cost < best[0]:
            best = (cost, W, H)
        residual = relative_change(trace.records)
        if residual <= tol and tol > 0:
            reason = StopReason.TOLERANCE
            break
    if best[0] < trace.records[-1].cost:
        trace.add(best[0])
    return Factorization(best[1], best[2], n_iter, reason, trace.records, residual=residual)


def _truncated(gram: np.ndarray, cross: np.ndarray, surgeon: bool) -> np.ndarray:
    """Solve least squares for all rows without constraints, then drop the negatives."""
    inverse = np.linalg.pinv(gram, hermitian=True)
    rows = cross @ inverse
    if surgeon:
        for _ in range(SURGEON_SWEEPS):
            rows, done = _operate(rows, inverse)
            if done:
                break
    return np.maximum(rows, 0.0)


def _operate(rows: np.ndarray, inverse: np.ndarray) -> tuple[np.ndarray, bool]:
    r"""Move the negatives N of each row to zero: :math:`w - Q_{:N} Q_{NN}^{-1} w_N`."""
    negative = rows < 0
    counts = np.count_nonzero(negative, axis=1)
    if not counts.any():
        return rows, True
    rows = rows.copy()
    for count in np.unique(counts[counts > 0]):
        where = np.flatnonzero(counts == count)
        index = np.nonzero(negative[where])[1].reshape(len(where), count)
        blocks = inverse[index[:, :, None], index[:, None, :]]
        values = np.take_along_axis(rows[where], index, axis=1)
        multipliers = np.matmul(np.linalg.pinv(blocks, hermitian=True), values[:, :, None])
        rows[where] -= np.matmul(inverse[:, index].transpose(1, 0, 2), multipliers)[:, :, 0]
        rows[where[:, None], index] = 0.0  # exactly, whatever the rounding
    return rows, False


def _revive(X: np.ndarray, W: np.ndarray, H: np.ndarray) -> np.ndarray:
    """Give a dead component the part of the data that is explained worst.

    Its coefficients are zero at that moment or are about to be solved for, so that the cost
    after the next step is not larger than it would have been.
    """
    dead = np.flatnonzero(~np.any(H > 0, axis=1))
    if len(dead) == 0:
        return H
    H = H.copy()
    alive = np.any(H > 0, axis=1)
    residual = np.maximum(X - W[:, alive] @ H[alive], 0.0)
    sizes = np.vecdot(residual, residual)
    worst = np.argsort(-sizes, kind="stable")[: len(dead)]
    threshold = DEAD * max(float(np.vdot(X, X)), np.finfo(float).tiny)
    for component, sample in zip(dead, worst, strict=False):
        if sizes[sample] > threshold:
            H[component] = residual[sample]
    return H


@declare
class AlternatingNMF(NonnegativeFactorization):
    r"""Cluster by nonnegative matrix factorisation with alternating least squares (ALS).

    .. math:: \min_{W, H \ge 0} \tfrac12 \lVert X - W H \rVert_F^2

    with the flattened samples as rows of X, memberships W and components H. Each factor in turn
    is the exact nonnegative least-squares solution for the other, found for all rows together by
    block principal pivoting. Labels come from k-means on the memberships.

    Parameters
    ----------
    variant : {"anls", "truncated", "obs"}, default="anls"
        Exact nonnegative least squares; or unconstrained least squares with negatives set to
        zero; or the same after adjusting the other entries ("optimal brain surgeon").

    Notes
    -----
    The paper cites Kim and Park, whose algorithm is "anls", and says that the code is that of the
    toolbox of the Technical University of Denmark, whose ``als`` is "truncated" and ``alsobs`` is
    "obs". What differs from Kim and Park: no sparsity terms; pivoting on passive sets of equal
    size in batches; a component that dies gets the worst-explained sample, which does not raise
    the cost; the change of the error decides when to stop, since the violation of the optimality
    conditions, which they use, goes on falling long after labels have settled. What differs from
    the toolbox: the same rule, and the best iterate is returned, since its cost may rise. In all
    variants components get unit norm at the end and the
    memberships are recomputed by exact nonnegative least squares on them.

    References
    ----------
    Kim and Park (2008), Nonnegative matrix factorization based on alternating nonnegativity
    constrained least squares and active set method, SIAM J. Matrix Anal. Appl. 30.

    Kim and Park (2008), Toward faster nonnegative matrix factorization: a new algorithm and
    comparisons, ICDM.

    Examples
    --------
    >>> import numpy as np
    >>> from tuckermix.baselines import AlternatingNMF
    >>> X = np.repeat(np.eye(3), 4, axis=0).reshape(12, 3, 1)
    >>> labels = AlternatingNMF(n_clusters=3, random_state=0).fit_predict(X)
    >>> len(set(labels.tolist()))
    3
    """

    variant: str = ruled("anls", one_of(VARIANTS))

    def _factorize(
        self, X: np.ndarray, W: np.ndarray, H: np.ndarray, rng: np.random.Generator
    ) -> Factorization:
        if self.variant == "anls":
            return alternating_nmf(X, W, H, max_iter=self.max_iter, tol=self.tol)
        return truncated_nmf(
            X, W, H, max_iter=self.max_iter, tol=self.tol, surgeon=self.variant == "obs"
        )
