"""Orthogonal nonnegative Tucker decomposition, a reading of Tri-ONTD."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tuckermix._declaration import declare
from tuckermix._records import StopReason
from tuckermix.baselines._labels import KMEANS_STARTS, label_memberships
from tuckermix.baselines._run import Run
from tuckermix.baselines._tucker import TuckerMethod
from tuckermix.baselines.nonnegative import scale_of
from tuckermix.baselines.orthogonal import (
    factorize_orthogonal,
    keep_largest,
    refine_exactly,
    unit_rows,
)
from tuckermix.numerics.points import kmeans
from tuckermix.numerics.tensor import mode_gram, multi_mode_dot

__all__ = ["TriONTD"]

START_OFFSET = 0.2
"""Added to the 0/1 indicators of the start: a multiplicative rule cannot move an entry away from
zero."""


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
    ranks : None, int, float or sequence of int, default=None
        The number of groups in each feature mode: one int for all modes, one for each, or the share
        of the centred energy to keep. None keeps 98 % of the energy above the noise.
    max_iter : int, default=300
        The limit on the number of cycles of each phase, see the notes. To reach it is no failure:
        multiplicative rules converge slowly, and what counts is which entry of a row is largest.
    tol : float, default=1e-6
        Stop when a cycle changes the relative error by less than this.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each sample: the column of its positive entry in W.
    memberships_ : array of shape (n_samples, n_clusters)
        The indicator W, nonnegative with orthonormal columns.
    factors_ : list of arrays of shape (d_n, r_n)
        The factors :math:`U_n`, nonnegative with orthonormal columns.
    core_ : array of shape (n_clusters, r_1, ...)
        The nonnegative core, in units of the data.
    components_ : array of shape (n_clusters, d_1, ...)
        What a sample with one unit of membership looks like.
    ranks_ : tuple of int
        The number of columns of each factor; groups that end without a row are left out.
    cost_ : float
        Half the squared error at the factors above, which satisfy the constraints.
    history_ : list of OrthogonalStep
        One record a cycle, the start of each of the two phases first. Each has `orthogonality`
        and `lagrangian_change` besides the usual fields; `orthogonality` is 0 in the second phase.
    stop_reason_ : StopReason
        Why the run ended; ``"max_iter"`` where either phase reached that limit. The first nearly
        always does.
    failure_ : str
        Why the result is meaningless, where `stop_reason_` is `StopReason.FAILED`.

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

    _positive_only = True

    max_iter: int = 300
    tol: float = 1e-6

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
    return unit_rows((np.eye(n_groups)[labels] + START_OFFSET).T).T


def _find_failure(factors: Sequence[np.ndarray], n_clusters: int) -> str:
    """Return why a run is meaningless, or an empty string."""
    if not all(bool(np.isfinite(factor).all()) for factor in factors):
        return "the factors are not finite."
    n_alive = int(np.count_nonzero(factors[0].any(axis=0)))
    if n_alive < n_clusters:
        return f"only {n_alive} of {n_clusters} columns of the indicator keep a sample."
    return ""
