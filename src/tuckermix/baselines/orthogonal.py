"""Tucker models whose factors are nonnegative and orthogonal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tuckermix._declaration import describe
from tuckermix._records import StopReason
from tuckermix.baselines._run import Step, Trace
from tuckermix.numerics.tensor import mode_dot, multi_mode_dot, squared_norm, unfold

__all__ = ["OrthogonalStep", "factorize_orthogonal", "keep_largest", "refine_exactly", "unit_rows"]

TINY = np.finfo(np.float64).tiny
"""Added to numerator and denominator of a multiplicative rule: 0/0 becomes 1, no step."""


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
        One record a cycle, the start first.
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


@describe(factorize_orthogonal)
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
    factors : sequence of ndarray of shape (d_n, r_n)
        Nonnegative factors with orthonormal columns, that of the samples first.

    Returns
    -------
    factors : list of ndarray of shape (d_n, r_n)
        Factors of the same kind; a column that lost all its rows is zero.
    core : ndarray of shape (r_0, r_1, ...)
        The best core for them.
    history : list of OrthogonalStep
        One record a cycle, the start first.
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


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Divide each row by its norm; a row of zeros stays."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1.0)
