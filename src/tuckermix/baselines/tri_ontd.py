"""Orthogonal nonnegative Tucker decomposition, a reading of Tri-ONTD."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tuckermix._estimators import declare
from tuckermix._records import StopReason
from tuckermix.baselines._base import (
    KMEANS_STARTS,
    Run,
    Step,
    Trace,
    label_memberships,
    lifted_indicator,
)
from tuckermix.baselines.nonnegative import TINY, scale_of, unit_rows
from tuckermix.baselines.tucker import TuckerMethod
from tuckermix.numerics.points import kmeans
from tuckermix.numerics.tensor import mode_dot, mode_gram, multi_mode_dot, squared_norm, unfold


@dataclass(frozen=True)
class OrthogonalStep(Step):
    r"""One cycle over all modes and the core.

    Attributes
    ----------
    iteration, cost, relative_error, time, gap
        As in `Step`; the cost is half the squared error, without the multiplier terms.
    orthogonality : float
        The largest entry of all :math:`|U_n^\top U_n - I|`; zero in the second phase, where the
        factors satisfy all constraints.
    lagrangian_change : float
        The largest change of a Lagrangian in the steps of the cycle, relative to the squared norm
        of the data; at most zero, up to rounding.
    """

    orthogonality: float = 0.0
    lagrangian_change: float = 0.0


def factorize_orthogonal(
    X: np.ndarray, factors: Sequence[np.ndarray], *, max_iter: int, tol: float
) -> tuple[list[np.ndarray], list[OrthogonalStep], StopReason]:
    r"""Run the multiplicative rules for a Tucker model with nonnegative, orthogonal factors.

    .. math::

        \min \tfrac12 \lVert X - S \times_0 U_0 \cdots \times_N U_N \rVert^2,
        \qquad S, U_n \ge 0,\; U_n^\top U_n = I

    With :math:`N_n = X_{(n)} (S \times_{m \ne n} U_m)_{(n)}^\top`, each factor step is

    .. math:: U_n \leftarrow U_n \odot \sqrt{N_n / (U_n \operatorname{sym}(U_n^\top N_n))} .

    It does not raise the Lagrangian
    :math:`\lVert X - \cdot \rVert^2 + \operatorname{tr}(\Lambda (U_n^\top U_n - I))` with the
    multiplier :math:`\Lambda = \operatorname{sym}(U_n^\top N_n) - P_n` of the present point, where
    :math:`P_n` is the Gram matrix of the model's other side. The core step does not raise the
    error.

    Parameters
    ----------
    X : ndarray of shape (n_samples, d_1, ...)
        Nonnegative data of ordinary size.
    factors : sequence of ndarray of shape (d_n, r_n)
        Positive factors to start from, that of the samples first.
    max_iter : int
        The limit on the number of cycles.
    tol : float
        Stop when a cycle changes the relative error by less than this.

    Returns
    -------
    factors : list of ndarray of shape (d_n, r_n)
        Nonnegative factors, orthogonal only approximately.
    history : list of OrthogonalStep
        One record per cycle, the start first.
    stop_reason : StopReason
        Why the iteration ended.
    """
    factors = [np.array(factor, dtype=np.float64) for factor in factors]
    flat = X.reshape(X.shape[0], -1)
    total = squared_norm(X)
    trace = Trace(total, OrthogonalStep)
    history = trace.records

    def record(projected: np.ndarray, change: float) -> None:
        """Record the error from the projection of X, ``X ×_n U_nᵀ``, without rebuilding X."""
        grams = [factor.T @ factor for factor in factors]
        model = np.vdot(core, multi_mode_dot(core, grams, first_mode=0))
        squared = max(0.0, float(total - 2.0 * np.vdot(core, projected) + model))
        defect = max(float(np.max(np.abs(gram - np.eye(len(gram))))) for gram in grams)
        change = change / total if total > 0 else 0.0
        trace.add(0.5 * squared, orthogonality=defect, lagrangian_change=change)

    contracted = mode_dot(X, factors[0].T, 0)
    core = multi_mode_dot(contracted, factors[1:], transpose=True)
    record(core, 0.0)
    for _ in range(max_iter):
        # Samples first: the components, lifted to sample space, take one product with X ...
        components = multi_mode_dot(core, factors[1:]).reshape(core.shape[0], -1)
        factors[0], change = _factor_step(factors[0], flat @ components.T)
        # ... and the other modes see only the n_clusters weighted sums of the samples.
        contracted = mode_dot(X, factors[0].T, 0)
        for mode in range(1, X.ndim):
            others = [None if m == mode else factors[m] for m in range(1, X.ndim)]
            partial = multi_mode_dot(contracted, others, transpose=True)
            cross = unfold(partial, mode) @ unfold(core, mode).T
            factors[mode], change_here = _factor_step(factors[mode], cross)
            change = max(change, change_here)
        projected = multi_mode_dot(contracted, factors[1:], transpose=True)
        grams = [factor.T @ factor for factor in factors]
        model = multi_mode_dot(core, grams, first_mode=0)
        core = core * np.sqrt((projected + TINY) / (model + TINY))
        record(projected, change)
        if abs(history[-2].relative_error - history[-1].relative_error) <= tol:
            return factors, history, StopReason.TOLERANCE
    return factors, history, StopReason.MAX_ITER


def _factor_step(U: np.ndarray, cross: np.ndarray) -> tuple[np.ndarray, float]:
    """Take the multiplicative step of one factor; return it with the change of its Lagrangian."""
    product = U.T @ cross
    symmetric = 0.5 * (product + product.T)
    new = U * np.sqrt((cross + TINY) / (U @ symmetric + TINY))

    def lagrangian(Z: np.ndarray) -> float:
        return float(np.vdot(symmetric, Z.T @ Z) - 2.0 * np.vdot(cross, Z))

    return new, lagrangian(new) - lagrangian(U)


def refine_exactly(
    X: np.ndarray, factors: Sequence[np.ndarray], *, max_iter: int, tol: float
) -> tuple[list[np.ndarray], np.ndarray, list[OrthogonalStep], StopReason]:
    r"""Improve factors that satisfy the constraints, within the constraints.

    Nonnegative columns are orthogonal exactly when no row has two positive entries. For factors of
    that kind the best core is :math:`S = X \times_n U_n^\top`, and for one mode the model is
    :math:`B \approx U C` with :math:`B = (X \times_{m \ne n} U_m^\top)_{(n)}` and
    :math:`C = S_{(n)}`. Each row of B goes to the line through 0 on which it leaves the least
    residual,

    .. math:: j(i) = \arg\max_j \langle b_i, c_j / \lVert c_j \rVert \rangle, \qquad
        u_{i j(i)} \propto \langle b_i, c_{j(i)} \rangle ,

    and the columns are brought to norm 1. No step raises the error.

    Parameters
    ----------
    X : ndarray of shape (n_samples, d_1, ...)
        Nonnegative data of ordinary size.
    factors : sequence of ndarray of shape (d_n, r_n)
        Nonnegative factors with orthonormal columns, that of the samples first.
    max_iter : int
        The limit on the number of cycles.
    tol : float
        Stop when a cycle changes the relative error by less than this.

    Returns
    -------
    factors : list of ndarray of shape (d_n, r_n)
        Factors of the same kind; a column that lost all its rows is zero.
    core : ndarray of shape (r_0, r_1, ...)
        The best core for them.
    history : list of OrthogonalStep
        One record per cycle, the start first.
    stop_reason : StopReason
        Why the iteration ended.
    """
    factors = list(factors)
    flat, total = X.reshape(X.shape[0], -1), squared_norm(X)
    trace = Trace(total, OrthogonalStep)
    history = trace.records

    def record() -> None:
        trace.add(0.5 * max(0.0, total - squared_norm(core)))

    core = multi_mode_dot(X, factors, first_mode=0, transpose=True)
    record()
    for _ in range(max_iter):
        lines = unit_rows(core.reshape(core.shape[0], -1)).reshape(core.shape)
        components = multi_mode_dot(lines, factors[1:]).reshape(core.shape[0], -1)
        factors[0] = keep_largest(flat @ components.T)
        contracted = mode_dot(X, factors[0].T, 0)
        for mode in range(1, X.ndim):
            others = [None if m == mode else factors[m] for m in range(1, X.ndim)]
            B = unfold(multi_mode_dot(contracted, others, transpose=True), mode)
            factors[mode] = keep_largest(B @ unit_rows(factors[mode].T @ B).T)
        core = multi_mode_dot(contracted, factors[1:], transpose=True)
        record()
        if history[-2].relative_error - history[-1].relative_error <= tol:
            return factors, core, history, StopReason.TOLERANCE
    return factors, core, history, StopReason.MAX_ITER


def keep_largest(U: np.ndarray) -> np.ndarray:
    """Keep the largest entry of each row and bring the columns to norm 1.

    Parameters
    ----------
    U : ndarray of shape (d, r)
        A nonnegative matrix.

    Returns
    -------
    factor : ndarray of shape (d, r)
        Nonnegative, columns orthogonal with norm 1; a column that kept no row is zero.
    """
    rows, best = np.arange(len(U)), np.argmax(U, axis=1)
    kept = np.zeros_like(U)
    kept[rows, best] = U[rows, best]
    return unit_rows(kept.T).T


@declare
class TriONTD(TuckerMethod):
    r"""Tri-factor orthogonal nonnegative tensor decomposition, after Zhang, Li and Ding.

    .. math::

        \min\ \tfrac12 \lVert X - S \times_0 W \times_1 U_1 \cdots \times_N U_N \rVert_F^2,
        \qquad S, W, U_n \ge 0,\; W^\top W = I,\; U_n^\top U_n = I

    Nonnegative and orthonormal columns cannot overlap, so that W assigns each sample to one
    cluster and each :math:`U_n` each row of its mode to one group. With
    :math:`N_n = X_{(n)} (S \times_{m \ne n} U_m)_{(n)}^\top` a cycle is, for W and each
    :math:`U_n` and then the core,

    .. math::

        U_n \leftarrow U_n \odot \sqrt{\frac{N_n}{U_n \operatorname{sym}(U_n^\top N_n)}}, \qquad
        S \leftarrow S \odot \sqrt{\frac{X \times_n U_n^\top}{S \times_n U_n^\top U_n}} .

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters, and of components where the model has any.
    ranks : None, int, float or sequence of int, default=None
        The number of groups in each feature mode: one int for all modes, one for each, or the share
        of the centred energy to keep. None keeps 98 % of the energy above the noise.
    max_iter : int, default=300
        The limit on the number of cycles of each phase, see the notes. To reach it is no failure:
        multiplicative rules converge slowly, and what counts is which entry of a row is largest.
    tol : float, default=1e-6
        Stop when a cycle changes the relative error by less than this.
    n_init : int, default=1
        The number of starts; the run of least cost is kept.
    random_state : None, int, Generator or RandomState, default=None
        Source of randomness for the starts and for k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each sample: the column of its positive entry in W.
    memberships_ : array of shape (n_samples, n_clusters)
        The indicator W, nonnegative with orthonormal columns.
    cost_ : float
        Half the squared error at the factors above, which satisfy the constraints.
    history_ : list of OrthogonalStep
        One record per cycle, the start of each of the two phases first. Each has `orthogonality`
        and `lagrangian_change` besides the usual fields; `orthogonality` is 0 in the second phase.
    n_iter_ : int
        Iterations of the best start.
    stop_reason_ : StopReason
        Why the run ended; ``"max_iter"`` where either phase reached that limit. The first nearly
        always does.
    failure_ : str
        Why the result is meaningless, where `stop_reason_` is `StopReason.FAILED`.
    sample_shape_ : tuple of int
        The shape of a sample.
    n_features_in_ : int
        The length of its first axis.
    factors_ : list of arrays of shape (d_n, r_n)
        The factors :math:`U_n`, nonnegative with orthonormal columns.
    core_ : array of shape (n_clusters, r_1, ...)
        The nonnegative core, in units of the data.
    ranks_ : tuple of int
        The number of columns of each factor; groups that end without a row are left out.
    components_ : array of shape (n_clusters, d_1, ...)
        What a sample with one unit of membership looks like.

    Notes
    -----
    The full text of the original is not public, and no program for it was found. The abstract
    describes three-way nonnegative data with a common basis, nonnegativity, orthogonality and an
    extension of the tri-factor matrix model; of the two models that fit it, this is the full Tucker
    one with an indicator for the samples. The rules are those of Ding et al. for the matrix case,
    carried over to any number of modes.

    *What decreases.* A factor step does not raise the Lagrangian
    :math:`\lVert X - \cdot \rVert^2 + \operatorname{tr}(\Lambda(U_n^\top U_n - I))`, whose
    multiplier is taken from the present point; its symmetric part is used, without which the proof
    does not hold. The core step does not raise the error. The error itself usually falls in every
    cycle too, but nothing forces it to, as the factors approach orthogonality at the same time.

    *Constraints.* These rules reach orthogonality only approximately: after 300 cycles on images,
    scalar products of columns are still 0.3 to 0.9. Each row therefore keeps only its largest
    entry, and a second phase goes on from there with exact steps in one mode after the other
    (`refine_exactly`), which satisfy all constraints and never raise the error. All fitted
    attributes belong to its end.

    *Failure.* A run in which fewer than `n_clusters` columns of W keep a sample has not found the
    clusters asked for. It ends with `StopReason.FAILED`, the reason in `failure_` and a warning.

    References
    ----------
    Zhang, Li and Ding (2013), Non-negative tri-factor tensor decomposition with applications,
    Knowledge and Information Systems 34. Ding, Li, Peng and Park (2006), Orthogonal nonnegative
    matrix tri-factorizations for clustering, KDD.

    Examples
    --------
    >>> from tuckermix.baselines import TriONTD
    >>> from tuckermix.datasets import make_tensor_clusters
    >>> X = make_tensor_clusters(60, (6, 5), 3, positive=True, random_state=0).X
    >>> TriONTD(3, ranks=(2, 3), random_state=0).fit(X).memberships_.shape
    (60, 3)
    """

    max_iter: int = 300
    tol: float = 1e-06

    _positive_only = True

    def _prepare(self, X: np.ndarray) -> tuple[np.ndarray, float, tuple[int, ...]]:
        scale = scale_of(X)  # squares of tiny or huge entries leave the range of floats
        X = X / scale
        return X, scale, super()._prepare(X).ranks

    def _run(self, data: Any, rng: np.random.Generator) -> Run:
        X, scale, ranks = data
        flat = X.reshape(X.shape[0], -1)
        start = [_start_factor(flat, self.n_clusters, rng)]
        for mode, rank in enumerate(ranks, start=1):
            # Rows of a square root of the Gram matrix have the distances of the rows themselves.
            values, vectors = np.linalg.eigh(mode_gram(X, mode))
            start.append(_start_factor(vectors * np.sqrt(np.maximum(values, 0.0)), rank, rng))
        soft, history, first = factorize_orthogonal(X, start, max_iter=self.max_iter, tol=self.tol)
        factors, core, refined, second = refine_exactly(
            X,
            [keep_largest(unit_rows(factor.T).T) for factor in soft],
            max_iter=self.max_iter,
            tol=self.tol,
        )
        failure = _find_failure(factors, self.n_clusters)
        reason = second if first.converged else first
        for mode in range(1, X.ndim):
            alive = factors[mode].any(axis=0)
            factors[mode] = factors[mode][:, alive]
            core = np.compress(alive, core, axis=mode)
        history += [
            replace(
                step, iteration=len(history) + step.iteration, time=history[-1].time + step.time
            )
            for step in refined
        ]
        return Run(
            memberships=factors[0],
            cost=refined[-1].cost * scale * scale,
            n_iter=len(history) - 2,  # neither of the two starts is a cycle
            stop_reason=StopReason.FAILED if failure else reason,
            history=[replace(step, cost=step.cost * scale * scale) for step in history],
            fitted={
                "factors_": factors[1:],
                "core_": core * scale,
                "components_": multi_mode_dot(core * scale, factors[1:]),
                "ranks_": tuple(factor.shape[1] for factor in factors[1:]),
            },
            failure=failure,
        )

    def _label(self, X: np.ndarray, run: Run, rng: np.random.Generator) -> np.ndarray:
        return label_memberships(run.memberships, self.n_clusters, "argmax", rng)[0]


def _start_factor(rows: np.ndarray, n_groups: int, rng: np.random.Generator) -> np.ndarray:
    """Group rows by k-means; return the 0/1 indicator, lifted off zero, with columns of norm 1."""
    labels = kmeans(rows, n_groups, n_init=KMEANS_STARTS, rng=rng).labels
    return unit_rows(lifted_indicator(labels, n_groups).T).T


def _find_failure(factors: Sequence[np.ndarray], n_clusters: int) -> str:
    """Return why a run is meaningless, or an empty string."""
    if not all(bool(np.isfinite(factor).all()) for factor in factors):
        return "the factors are not finite."
    n_alive = int(np.count_nonzero(factors[0].any(axis=0)))
    if n_alive < n_clusters:
        return f"only {n_alive} of {n_clusters} columns of the indicator keep a sample."
    return ""
