"""Nonnegative matrix factorisation: multiplicative, alternating or projected-gradient steps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from tuckermix._estimators import declare
from tuckermix._records import StopReason
from tuckermix._validation import Rules, one_of
from tuckermix.baselines import nonnegative
from tuckermix.baselines._base import ComponentClustering, Run, Trace, relative_change
from tuckermix.baselines.nonnegative import least_squares_cost, scale_of


def iterate(
    sweep: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, float]],
    X: np.ndarray,
    W: np.ndarray,
    H: np.ndarray,
    *,
    max_iter: int,
    tol: float,
    keep_best: bool = False,
) -> Run:
    """Repeat a sweep, which returns factors and cost, until the error changes less than `tol`.

    With `keep_best` the last record and the factors are the best met, for sweeps that may raise
    the cost.
    """
    squared_norm = float(np.vdot(X, X))
    trace = Trace(squared_norm)
    trace.add(least_squares_cost(squared_norm, W, X @ H.T, H @ H.T))
    reason, residual = StopReason.MAX_ITER, float("inf")
    best = (float("inf"), W, H)
    for _ in range(max_iter):
        W, H, cost = sweep(W, H)
        trace.add(cost)
        if not keep_best or cost < best[0]:
            best = (cost, W, H)
        residual = relative_change(trace.records)
        if residual <= tol and tol > 0:
            reason = StopReason.TOLERANCE
            break
    n_iter = len(trace.records) - 1
    if best[0] < trace.records[-1].cost:
        trace.add(best[0])
    found = {"components_": best[2]}
    return trace.run(best[1], reason, n_iter=n_iter, fitted=found, residual=residual)


class NonnegativeFactorization(ComponentClustering):
    """Base of the nonnegative matrix factorisations: scaling around one of the algorithms."""

    _positive_only = True

    @abstractmethod
    def _factorize(self, X: np.ndarray, W: np.ndarray, H: np.ndarray, rng: Generator) -> Run:
        """Run the algorithm from the start `W`, `H` on data whose largest entry is one."""

    def _prepare(self, X: np.ndarray) -> Any:
        # In units of the largest entry no product of two entries leaves the range of floats.
        scale = scale_of(X)
        return X.reshape(X.shape[0], -1) / X.dtype.type(scale), scale, X.shape[1:]

    def _run(self, data: Any, rng: Generator) -> Run:
        X, scale, shape = data
        W, H = nonnegative.random_start(X, self.n_clusters, rng)
        run = self._factorize(X, W, H, rng)
        W, H = nonnegative.normalize_components(run.memberships, run.fitted["components_"])
        run.memberships = W * scale
        run.fitted["components_"] = H.reshape(self.n_clusters, *shape)
        if "noise_variance_" in run.fitted:
            run.fitted["noise_variance_"] = run.fitted["noise_variance_"] * scale * scale
        return run.in_units(scale)


CHECK_EVERY = 10
"""Iterations of multiplicative updates between two looks at the error."""


def multiplicative_nmf(
    X: np.ndarray, W: np.ndarray, H: np.ndarray, *, max_iter: int = 1000, tol: float = 1e-5
) -> Run:
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
    max_iter : int, default=1000
        The limit on iterations.
    tol : float, default=1e-5
        The least relative decrease of the error; 0 runs all iterations.

    Returns
    -------
    result : Run
        The factors and the records of the run.
    """
    W, H = W.copy(), H.copy()
    squared_norm = float(np.vdot(X, X))
    trace = Trace(squared_norm)
    gram = H @ H.T
    cross = X @ H.T
    trace.add(least_squares_cost(squared_norm, W, cross, gram))
    first = previous = np.sqrt(2.0 * trace.records[0].cost)
    reason, residual = StopReason.MAX_ITER, float("inf")
    if first == 0:  # the start is exact: an update would divide rounding by rounding
        reason, residual, max_iter = StopReason.TOLERANCE, 0.0, 0
    for n_iter in range(1, max_iter + 1):
        _update(W, cross, W @ gram)
        projected = W.T @ X
        _update(H, projected, W.T @ W @ H)
        # <W, X H'> = <W'X, H>: the cost at the new pair takes no product with X of its own.
        gram = H @ H.T
        cross = X @ H.T
        trace.add(least_squares_cost(squared_norm, W, cross, gram))
        if tol > 0 and n_iter % CHECK_EVERY == 0:
            error = np.sqrt(2.0 * trace.records[-1].cost)
            residual = float((previous - error) / first)
            if residual < tol:
                reason = StopReason.TOLERANCE
                break
            previous = error
    measured = {"measure": "relative decrease of the error", "residual": residual}
    return trace.run(W, reason, fitted={"components_": H}, **measured)


def _update(factor: np.ndarray, numerator: np.ndarray, denominator: np.ndarray) -> None:
    """Multiply `factor` in place; where the denominator is zero the result is zero anyway."""
    if not denominator.all():
        denominator[denominator == 0] = 1.0
    np.divide(numerator, denominator, out=denominator)
    factor *= denominator


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
    n_clusters : int, default=8
        The number of clusters, and of components where the model has any.
    tol : float, default=1e-5
        Stop when the error falls by less than this share of its first value in ten iterations.
        With 0 all iterations are done.
    max_iter : int, default=1000
        The limit on iterations of each start, that of the toolbox which the paper used.
    assign_labels : {"kmeans", "argmax"}, default="kmeans"
        Labels by k-means on the memberships, or by the largest one.
    n_init : int, default=1
        The number of starts; the run of least cost is kept.
    random_state : None, int, Generator or RandomState, default=None
        Source of randomness for the starts and for k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each sample; every label occurs.
    memberships_ : array of shape (n_samples, n_clusters)
        Nonnegative weights of the components in each sample.
    cost_ : float
        The objective at the end, in units of the data.
    history_ : list of Step
        One record per iteration, the start first.
    n_iter_ : int
        Iterations of the best start.
    stop_reason_ : StopReason
        Why the best start ended.
    failure_ : str
        Empty; the reason where a method fails.
    sample_shape_ : tuple of int
        The shape of a sample.
    n_features_in_ : int
        The length of its first axis.
    components_ : array of shape (n_clusters, d_1, ...)
        The components, each of unit norm.
    centroids_ : array of shape (n_clusters, d_1, ...)
        The mean model sample of each cluster.
    membership_centers_ : array of shape (n_clusters, n_clusters)
        The mean memberships of each cluster.

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

    def _factorize(self, X: np.ndarray, W: np.ndarray, H: np.ndarray, rng: Generator) -> Run:
        return multiplicative_nmf(X, W, H, max_iter=self.max_iter, tol=self.tol)


VARIANTS = ("anls", "truncated", "obs")


def alternating_nmf(
    X: np.ndarray, W: np.ndarray, H: np.ndarray, *, max_iter: int = 1000, tol: float = 1e-5
) -> Run:
    r"""Factorise by exact alternating nonnegative least squares, from a given start.

    .. math::

        H \leftarrow \arg\min_{H \ge 0} \lVert X - W H \rVert_F, \qquad
        W \leftarrow \arg\min_{W \ge 0} \lVert X - W H \rVert_F

    each by block principal pivoting, warm-started from the last passive sets. The cost never
    rises. Components are kept at unit norm. Stops when the error :math:`\lVert X - WH \rVert` falls
    relatively by less than `tol` in one iteration.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data.
    W : ndarray of shape (n_samples, n_components)
        Start of the coefficients.
    H : ndarray of shape (n_components, n_features)
        Start of the components; only its zeros matter.
    max_iter : int, default=1000
        The limit on iterations.
    tol : float, default=1e-5
        The least relative decrease of the error; 0 runs all iterations.

    Returns
    -------
    result : Run
        The factors and the records of the run.
    """
    squared_norm = float(np.vdot(X, X))

    def sweep(W: np.ndarray, H: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        H = nonnegative.nonnegative_least_squares(W.T @ W, X.T @ W, start=H.T).T
        W, H = nonnegative.normalize_components(W, _revive(X, W, H))
        gram, cross = H @ H.T, X @ H.T
        W = nonnegative.nonnegative_least_squares(gram, cross, start=W)
        return W, H, least_squares_cost(squared_norm, W, cross, gram)

    return iterate(sweep, X, W, H, max_iter=max_iter, tol=tol)


def truncated_nmf(
    X: np.ndarray,
    W: np.ndarray,
    H: np.ndarray,
    *,
    max_iter: int = 1000,
    tol: float = 1e-5,
    surgeon: bool = False,
) -> Run:
    r"""Factorise by unconstrained least squares with negatives set to zero.

    .. math::

        H \leftarrow \max\bigl(0, (W^\top W)^\dagger W^\top X\bigr), \qquad
        W \leftarrow \max\bigl(0, X H^\top (H H^\top)^\dagger\bigr)

    Each row of H is divided by its sum in between. Nothing guarantees that the cost falls; the
    best pair met is returned. Stops when the relative change of the error falls below `tol`.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data.
    W : ndarray of shape (n_samples, n_components)
        Start of the coefficients.
    H : ndarray of shape (n_components, n_features)
        Start of the components; for the first record only.
    max_iter : int, default=1000
        The limit on iterations.
    tol : float, default=1e-5
        The least relative change of the error; 0 runs all iterations.
    surgeon : bool, default=False
        Whether negative entries are first moved to zero with the others adjusted to it ("optimal
        brain surgeon"), at most 14 times, before truncation.

    Returns
    -------
    result : Run
        The factors and the records of the run; the cost of the last record is that of the
        factors returned.
    """
    squared_norm = float(np.vdot(X, X))

    def sweep(W: np.ndarray, H: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        H = _revive(X, W, _truncated(W.T @ W, X.T @ W, surgeon).T)
        sums = H.sum(axis=1)
        H = H / np.where(sums > 0, sums, 1.0)[:, None]
        gram, cross = H @ H.T, X @ H.T
        W = _truncated(gram, cross, surgeon)
        return W, H, least_squares_cost(squared_norm, W, cross, gram)

    return iterate(sweep, X, W, H, max_iter=max_iter, tol=tol, keep_best=True)


def _truncated(
    gram: np.ndarray, cross: np.ndarray, surgeon: bool, max_sweeps: int = 14
) -> np.ndarray:
    """Solve least squares for all rows, then drop the negatives; 14 sweeps are the toolbox's."""
    inverse = np.linalg.pinv(gram, hermitian=True)
    rows = cross @ inverse
    if surgeon:
        for _ in range(max_sweeps):
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


def _revive(X: np.ndarray, W: np.ndarray, H: np.ndarray, rounding: float = 1e-12) -> np.ndarray:
    """Give a dead component the part of the data that is explained worst.

    Its coefficients are zero at that moment or are about to be solved for, so that the cost
    after the next step is not larger than it would have been. A residual whose share of the data
    is below `rounding` is no signal.
    """
    dead = np.flatnonzero(~np.any(H > 0, axis=1))
    if len(dead) == 0:
        return H
    H = H.copy()
    alive = np.any(H > 0, axis=1)
    residual = np.maximum(X - W[:, alive] @ H[alive], 0.0)
    sizes = np.vecdot(residual, residual)
    worst = np.argsort(-sizes, kind="stable")[: len(dead)]
    threshold = rounding * max(float(np.vdot(X, X)), np.finfo(float).tiny)
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
    n_clusters : int, default=8
        The number of clusters, and of components where the model has any.
    variant : {"anls", "truncated", "obs"}, default="anls"
        Exact nonnegative least squares; or unconstrained least squares with negatives set to
        zero; or the same after adjusting the other entries ("optimal brain surgeon").
    max_iter : int, default=1000
        The limit on iterations of each start, that of the toolbox which the paper used.
    assign_labels : {"kmeans", "argmax"}, default="kmeans"
        Labels by k-means on the memberships, or by the largest one.
    tol : float, default=1e-5
        Stop when the error changes relatively by less than this in one iteration. With 0 all
        iterations are done.
    n_init : int, default=1
        The number of starts; the run of least cost is kept.
    random_state : None, int, Generator or RandomState, default=None
        Source of randomness for the starts and for k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each sample; every label occurs.
    memberships_ : array of shape (n_samples, n_clusters)
        Nonnegative weights of the components in each sample.
    cost_ : float
        The objective at the end, in units of the data.
    history_ : list of Step
        One record per iteration, the start first.
    n_iter_ : int
        Iterations of the best start.
    stop_reason_ : StopReason
        Why the best start ended.
    failure_ : str
        Empty; the reason where a method fails.
    sample_shape_ : tuple of int
        The shape of a sample.
    n_features_in_ : int
        The length of its first axis.
    components_ : array of shape (n_clusters, d_1, ...)
        The components, each of unit norm.
    centroids_ : array of shape (n_clusters, d_1, ...)
        The mean model sample of each cluster.
    membership_centers_ : array of shape (n_clusters, n_clusters)
        The mean memberships of each cluster.

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

    variant: str = "anls"

    _rules: ClassVar[Rules] = {"variant": one_of(VARIANTS)}

    def _factorize(self, X: np.ndarray, W: np.ndarray, H: np.ndarray, rng: Generator) -> Run:
        if self.variant == "anls":
            return alternating_nmf(X, W, H, max_iter=self.max_iter, tol=self.tol)
        return truncated_nmf(
            X, W, H, max_iter=self.max_iter, tol=self.tol, surgeon=self.variant == "obs"
        )


@dataclass(frozen=True)
class LinSettings:
    """Settings of the projected gradients, all of them Lin's."""

    shrink: float = 0.1
    """Beta: the factor by which a step length is changed."""
    decrease: float = 0.01
    """Sigma: the share of the linear decrease that a step must achieve."""
    max_trials: int = 20
    """Step lengths tried in one iteration."""
    max_inner: int = 1000
    """Iterations of one subproblem."""
    subproblem_tol: float = 1e-3
    """Subproblems are first solved to this share of the first gradient."""
    tighten: float = 0.1
    """Factor on a subproblem's tolerance when it stops at its first iteration."""


LIN = LinSettings()


def projected_gradient_nnls(
    gram: np.ndarray,
    cross: np.ndarray,
    start: np.ndarray,
    *,
    tol: float,
    max_iter: int = LIN.max_inner,
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
    V, alpha, n_iter = start, 1.0, 0
    gradient = V @ gram - cross
    for _ in range(max_iter):
        n_iter += 1
        if nonnegative.projected_gradient_norm((V, gradient)) < tol:
            break
        passed: tuple[np.ndarray, np.ndarray] | None = None
        for trial in range(LIN.max_trials):
            candidate = np.maximum(V - alpha * gradient, 0.0)
            d = candidate - V
            dA = d @ gram
            good = (1.0 - LIN.decrease) * np.vdot(gradient, d) + 0.5 * np.vdot(d, dA) < 0
            if trial == 0:
                growing = bool(good)
            same = passed is not None and np.array_equal(passed[0], candidate)
            if growing and (same or not good):
                break
            if good:
                passed = (candidate, dA)
                if not growing:
                    break
            alpha = alpha / LIN.shrink if growing else alpha * LIN.shrink
        if passed is None:
            break  # no length gives a decrease: rounding is all that is left
        V = passed[0]
        gradient = gradient + passed[1]  # G is affine in V: no second product with A
    return V, gradient, n_iter


def projected_gradient_nmf(
    X: np.ndarray, W: np.ndarray, H: np.ndarray, *, max_iter: int = 1000, tol: float = 1e-3
) -> Run:
    r"""Factorise by alternating projected gradients with Lin's tolerances, from a given start.

    Stops when the norm of the projected gradient of both factors falls below `tol` times the norm
    :math:`g_0` of the whole gradient at the start. Subproblems are solved to
    :math:`\max(10^{-3}, tol)\, g_0`, ten times closer whenever one stops at its first iteration.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data.
    W : ndarray of shape (n_samples, n_components)
        Start of the coefficients, nonnegative.
    H : ndarray of shape (n_components, n_features)
        Start of the components, nonnegative.
    max_iter : int, default=1000
        The limit on outer iterations.
    tol : float, default=1e-3
        The relative tolerance; 0 runs all iterations.

    Returns
    -------
    result : Run
        The factors and the records of the run.
    """
    squared_norm = float(np.vdot(X, X))
    trace = Trace(squared_norm)
    B = H.T
    gram, cross = B.T @ B, X @ B
    left_gram, projected = W.T @ W, X.T @ W
    grad_W, grad_B = W @ gram - cross, B @ left_gram - projected
    trace.add(least_squares_cost(squared_norm, W, cross, gram))
    first = float(np.sqrt(np.vdot(grad_W, grad_W) + np.vdot(grad_B, grad_B)))
    tol_W = tol_B = max(LIN.subproblem_tol, tol) * first
    reason, residual = StopReason.MAX_ITER, float("inf")
    for _ in range(max_iter):
        W, grad_W, n_inner = projected_gradient_nnls(gram, cross, W, tol=tol_W)
        if n_inner == 1:
            tol_W *= LIN.tighten
        left_gram, projected = W.T @ W, X.T @ W
        B, grad_B, n_inner = projected_gradient_nnls(left_gram, projected, B, tol=tol_B)
        if n_inner == 1:
            tol_B *= LIN.tighten
        trace.add(least_squares_cost(squared_norm, B, projected, left_gram))
        gram, cross = B.T @ B, X @ B
        grad_W = W @ gram - cross
        norm = nonnegative.projected_gradient_norm((W, grad_W), (B, grad_B))
        residual = norm / first if first > 0 else 0.0
        if residual < tol or norm == 0:
            reason = StopReason.GRADIENT
            break
    measured = {"measure": "relative projected gradient", "residual": residual}
    return trace.run(W, reason, fitted={"components_": B.T}, **measured)


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
    n_clusters : int, default=8
        The number of clusters, and of components where the model has any.
    tol : float, default=1e-3
        Stop when the projected gradient falls below this share of the gradient at the start. With
        0 all iterations are done. That toolbox has 1e-6, which takes two to six times as long for
        an error that is smaller by a thousandth on digits and by a thirtieth on faces.
    max_iter : int, default=1000
        The limit on iterations of each start, that of the toolbox which the paper used.
    assign_labels : {"kmeans", "argmax"}, default="kmeans"
        Labels by k-means on the memberships, or by the largest one.
    n_init : int, default=1
        The number of starts; the run of least cost is kept.
    random_state : None, int, Generator or RandomState, default=None
        Source of randomness for the starts and for k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each sample; every label occurs.
    memberships_ : array of shape (n_samples, n_clusters)
        Nonnegative weights of the components in each sample.
    cost_ : float
        The objective at the end, in units of the data.
    history_ : list of Step
        One record per iteration, the start first.
    n_iter_ : int
        Iterations of the best start.
    stop_reason_ : StopReason
        Why the best start ended.
    failure_ : str
        Empty; the reason where a method fails.
    sample_shape_ : tuple of int
        The shape of a sample.
    n_features_in_ : int
        The length of its first axis.
    components_ : array of shape (n_clusters, d_1, ...)
        The components, each of unit norm.
    centroids_ : array of shape (n_clusters, d_1, ...)
        The mean model sample of each cluster.
    membership_centers_ : array of shape (n_clusters, n_clusters)
        The mean memberships of each cluster.

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

    tol: float = 0.001

    def _factorize(self, X: np.ndarray, W: np.ndarray, H: np.ndarray, rng: Generator) -> Run:
        return projected_gradient_nmf(X, W, H, max_iter=self.max_iter, tol=self.tol)
