"""Nonnegative matrix factorisation by multiplicative updates (MM)."""

from __future__ import annotations

import numpy as np

from tuckermix._declaration import declare, describe
from tuckermix._records import StopReason
from tuckermix.baselines._factorization import FACTORS, Factorization, NonnegativeFactorization
from tuckermix.baselines._run import Trace

__all__ = ["MultiplicativeNMF", "multiplicative_nmf"]

CHECK_EVERY = 10
"""Iterations between two looks at the stopping rule, as in scikit-learn's solver, so that both
stop at the same iteration."""


@describe(FACTORS)
def multiplicative_nmf(
    X: np.ndarray, W: np.ndarray, H: np.ndarray, *, max_iter: int = 1000, tol: float = 1e-5
) -> Factorization:
    r"""Factorise by the updates of Lee and Seung, from a given start.

    .. math::

        W \leftarrow W \odot \frac{X H^\top}{W H H^\top}, \qquad
        H \leftarrow H \odot \frac{W^\top X}{W^\top W H}

    The cost never rises and entries that are zero stay zero. Stops when the error
    :math:`\lVert X - WH \rVert` has fallen by less than `tol` times its first value over ten
    iterations.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data, nonnegative.
    W : ndarray of shape (n_samples, n_components)
        Start of the coefficients, nonnegative.
    H : ndarray of shape (n_components, n_features)
        Start of the components, nonnegative.
    """
    W, H = W.copy(), H.copy()
    squared_norm = float(np.vdot(X, X))
    trace = Trace(squared_norm)
    gram = H @ H.T
    cross = X @ H.T
    trace.add(_cost(squared_norm, W, cross, W.T @ W, gram))
    first = previous = np.sqrt(2.0 * trace.records[0].cost)
    reason, residual, n_iter = StopReason.MAX_ITER, float("inf"), 0
    if first == 0:  # the start is exact: an update would divide rounding by rounding
        reason, residual, max_iter = StopReason.TOLERANCE, 0.0, 0
    for n_iter in range(1, max_iter + 1):
        _update(W, cross, W @ gram)
        projected = W.T @ X
        left_gram = W.T @ W
        _update(H, projected, left_gram @ H)
        # <W, X H'> = <W'X, H>: the cost at the new pair takes no product with X of its own.
        gram = H @ H.T
        cross = X @ H.T
        trace.add(_cost(squared_norm, W, cross, left_gram, gram))
        if tol > 0 and n_iter % CHECK_EVERY == 0:
            error = np.sqrt(2.0 * trace.records[-1].cost)
            residual = float((previous - error) / first)
            if residual < tol:
                reason = StopReason.TOLERANCE
                break
            previous = error
    return Factorization(
        W, H, n_iter, reason, trace.records, "relative decrease of the error", residual
    )


def _update(factor: np.ndarray, numerator: np.ndarray, denominator: np.ndarray) -> None:
    """Multiply `factor` in place; where the denominator is zero the result is zero anyway."""
    if not denominator.all():
        denominator[denominator == 0] = 1.0
    np.divide(numerator, denominator, out=denominator)
    factor *= denominator


def _cost(
    squared_norm: float, W: np.ndarray, cross: np.ndarray, left: np.ndarray, right: np.ndarray
) -> float:
    """Half the squared error from the Gram matrices of both factors."""
    value = 0.5 * squared_norm - float(np.vdot(W, cross)) + 0.5 * float(np.vdot(left, right))
    return max(0.0, value)


@declare
class MultiplicativeNMF(NonnegativeFactorization):
    r"""Cluster by nonnegative matrix factorisation with multiplicative updates (MM).

    .. math:: \min_{W, H \ge 0} \tfrac12 \lVert X - W H \rVert_F^2

    with the flattened samples as rows of X, memberships W and components H, by

    .. math::

        W \leftarrow W \odot \frac{X H^\top}{W H H^\top}, \qquad
        H \leftarrow H \odot \frac{W^\top X}{W^\top W H}.

    Labels come from k-means on the memberships.

    Parameters
    ----------
    tol : float, default=1e-5
        Stop when the error falls by less than this share of its first value in ten iterations.
        With 0 all iterations are done.

    See Also
    --------
    sklearn.decomposition.NMF : With ``solver="mu"``, the same updates without labels.

    Notes
    -----
    The updates are those of scikit-learn's ``mu`` solver, iterate for iterate. They are not
    called there because that solver keeps no record of its run and accepts matrices only. What
    differs from the toolbox of the paper: W, the memberships, is updated before H, while the
    toolbox updates the components first; it does all its iterations and has no rule to stop, here
    the error decides; at the end components get unit norm and the memberships are recomputed by
    exact nonnegative least squares on them, so that `transform` and `fit` agree.

    References
    ----------
    Lee and Seung (2001), Algorithms for non-negative matrix factorization, NIPS 13.

    Examples
    --------
    >>> import numpy as np
    >>> from tuckermix.baselines import MultiplicativeNMF
    >>> X = np.repeat(np.eye(3), 4, axis=0).reshape(12, 3, 1)
    >>> labels = MultiplicativeNMF(n_clusters=3, random_state=0).fit_predict(X)
    >>> len(set(labels.tolist()))
    3
    """

    _keeps_precision = True

    def _factorize(
        self, X: np.ndarray, W: np.ndarray, H: np.ndarray, rng: np.random.Generator
    ) -> Factorization:
        return multiplicative_nmf(X, W, H, max_iter=self.max_iter, tol=self.tol)
