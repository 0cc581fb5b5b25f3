"""Nonnegative matrix factorisation by Lin's projected gradients (PGM)."""

from __future__ import annotations

import numpy as np

from tuckermix._declaration import declare, describe
from tuckermix._records import StopReason
from tuckermix.baselines._factorization import FACTORS, Factorization, NonnegativeFactorization
from tuckermix.baselines._run import Trace
from tuckermix.baselines.nonnegative import least_squares_cost, projected_gradient_norm

__all__ = ["ProjectedGradientNMF", "projected_gradient_nmf", "projected_gradient_nnls"]

SHRINK = 0.1
"""Lin's beta: the factor by which a step length is changed."""

DECREASE = 0.01
"""Lin's sigma: the share of the linear decrease that a step must achieve."""

MAX_TRIALS = 20
"""Step lengths tried in one iteration, Lin's figure."""

MAX_INNER = 1000
"""Iterations of one subproblem, Lin's figure."""

SUBPROBLEM_TOL = 1e-3
"""Subproblems are first solved to this share of the first gradient, Lin's figure."""

TIGHTEN = 0.1
"""Factor on a subproblem's tolerance when it stops at its first iteration, Lin's figure."""


def projected_gradient_nnls(
    gram: np.ndarray, cross: np.ndarray, start: np.ndarray, *, tol: float, max_iter: int = MAX_INNER
) -> tuple[np.ndarray, np.ndarray, int]:
    r"""Solve nonnegative least squares for all rows together by projected gradients.

    .. math:: V \leftarrow \max(V - \alpha G, 0), \qquad G = V A - R

    A step with difference d is long enough not to be refused when
    :math:`(1 - \sigma) \langle G, d \rangle + \tfrac12 \langle d, d A \rangle < 0`. The first
    trial of an iteration decides the direction of the search: :math:`\alpha` shrinks until a
    step passes, or grows while steps pass, and the last that passed is taken. Stops when the
    projected gradient is smaller than `tol`.

    Parameters
    ----------
    gram : ndarray of shape (n_components, n_components)
        The Gram matrix A.
    cross : ndarray of shape (n_rows, n_components)
        The cross products R.
    start : ndarray of shape (n_rows, n_components)
        The first point, nonnegative.
    tol : float
        The norm of the projected gradient to reach.
    max_iter : int, default=1000
        The limit on iterations.

    Returns
    -------
    V : ndarray of shape (n_rows, n_components)
        The solution.
    gradient : ndarray of shape (n_rows, n_components)
        The gradient at it.
    n_iter : int
        The iteration that stopped, 1 when the start was good enough.
    """
    V, alpha = start, 1.0
    gradient = V @ gram - cross
    n_iter = 0
    for _ in range(max_iter):
        n_iter += 1
        if projected_gradient_norm((V, gradient)) < tol:
            break
        passed: tuple[np.ndarray, np.ndarray] | None = None
        growing = True
        for trial in range(MAX_TRIALS):
            candidate = np.maximum(V - alpha * gradient, 0.0)
            d = candidate - V
            dA = d @ gram
            good = (1.0 - DECREASE) * np.vdot(gradient, d) + 0.5 * np.vdot(d, dA) < 0
            if trial == 0:
                growing = bool(good)
            if growing:
                if not good or (passed is not None and np.array_equal(passed[0], candidate)):
                    break
                passed = (candidate, dA)
                alpha /= SHRINK
            elif good:
                passed = (candidate, dA)
                break
            else:
                alpha *= SHRINK
        if passed is None:
            break  # no length gives a decrease: rounding is all that is left
        V = passed[0]
        gradient = gradient + passed[1]  # G is affine in V: no second product with A
    return V, gradient, n_iter


@describe(FACTORS)
def projected_gradient_nmf(
    X: np.ndarray, W: np.ndarray, H: np.ndarray, *, max_iter: int = 1000, tol: float = 1e-3
) -> Factorization:
    r"""Factorise by alternating projected gradients with Lin's tolerances, from a given start.

    Stops when the norm of the projected gradient of both factors falls below `tol` times the norm
    :math:`g_0` of the whole gradient at the start. Subproblems are solved to
    :math:`\max(10^{-3}, tol)\, g_0`, ten times closer whenever one stops at its first iteration.

    Parameters
    ----------
    W : ndarray of shape (n_samples, n_components)
        Start of the coefficients, nonnegative.
    H : ndarray of shape (n_components, n_features)
        Start of the components, nonnegative.
    max_iter : int, default=1000
        The limit on outer iterations.
    tol : float, default=1e-3
        The relative tolerance; 0 runs all iterations.
    """
    squared_norm = float(np.vdot(X, X))
    trace = Trace(squared_norm)
    B = H.T
    gram, cross = B.T @ B, X @ B
    left_gram, projected = W.T @ W, X.T @ W
    grad_W, grad_B = W @ gram - cross, B @ left_gram - projected
    trace.add(least_squares_cost(squared_norm, W, cross, gram))
    first = float(np.sqrt(np.vdot(grad_W, grad_W) + np.vdot(grad_B, grad_B)))
    tol_W = tol_B = max(SUBPROBLEM_TOL, tol) * first
    reason, residual, n_iter = StopReason.MAX_ITER, float("inf"), 0
    for _ in range(max_iter):
        n_iter += 1
        W, grad_W, n_inner = projected_gradient_nnls(gram, cross, W, tol=tol_W)
        if n_inner == 1:
            tol_W *= TIGHTEN
        left_gram, projected = W.T @ W, X.T @ W
        B, grad_B, n_inner = projected_gradient_nnls(left_gram, projected, B, tol=tol_B)
        if n_inner == 1:
            tol_B *= TIGHTEN
        trace.add(least_squares_cost(squared_norm, B, projected, left_gram))
        gram, cross = B.T @ B, X @ B
        grad_W = W @ gram - cross
        norm = projected_gradient_norm((W, grad_W), (B, grad_B))
        residual = norm / first if first > 0 else 0.0
        if residual < tol or norm == 0:
            reason = StopReason.GRADIENT
            break
    return Factorization(
        W, B.T, n_iter, reason, trace.records, "relative projected gradient", residual
    )


@declare
class ProjectedGradientNMF(NonnegativeFactorization):
    r"""Cluster by nonnegative matrix factorisation with projected gradients (PGM).

    .. math:: \min_{W, H \ge 0} \tfrac12 \lVert X - W H \rVert_F^2

    with the flattened samples as rows of X, memberships W and components H. Each factor in turn
    is improved by projected gradient steps

    .. math:: V \leftarrow \max(V - \alpha \nabla, 0)

    whose length :math:`\alpha` is carried from step to step and shrunk or grown by tens until
    the decrease is sufficient, to a tolerance that tightens with the iteration. Labels come from
    k-means on the memberships.

    Parameters
    ----------
    tol : float, default=1e-3
        Stop when the projected gradient falls below this share of the gradient at the start. With
        0 all iterations are done. That toolbox has 1e-6, which takes two to six times as long for
        an error that is smaller by a thousandth on digits and by a thirtieth on faces.

    Notes
    -----
    What differs from Lin's routine: the gradient after a step is updated from the product that
    the step search has formed already; when all twenty lengths pass, the longest is taken, where
    his routine keeps the old point; the test for stopping sees the gradient at the present pair,
    where his sees that of W before the last change of H; no limit on time. At the end components
    get unit norm and the memberships are recomputed by exact nonnegative least squares on them.

    References
    ----------
    Lin (2007), Projected gradient methods for nonnegative matrix factorization, Neural
    Computation 19.

    Examples
    --------
    >>> import numpy as np
    >>> from tuckermix.baselines import ProjectedGradientNMF
    >>> X = np.repeat(np.eye(3), 4, axis=0).reshape(12, 3, 1)
    >>> labels = ProjectedGradientNMF(n_clusters=3, tol=1e-4, random_state=0).fit_predict(X)
    >>> len(set(labels.tolist()))
    3
    """

    tol: float = 1e-3

    def _factorize(
        self, X: np.ndarray, W: np.ndarray, H: np.ndarray, rng: np.random.Generator
    ) -> Factorization:
        return projected_gradient_nmf(X, W, H, max_iter=self.max_iter, tol=self.tol)
