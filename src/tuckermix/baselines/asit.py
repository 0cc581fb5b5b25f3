"""Adaptive subspace iteration on tensors: k-means and its best Tucker subspace in turn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tuckermix._array_api import to_numpy
from tuckermix._declaration import declare, describe
from tuckermix._records import StopReason
from tuckermix.baselines._base import PredictsClusters, nearest_center
from tuckermix.baselines._run import Run, Trace
from tuckermix.baselines._tucker import STARTED, TuckerMethod, TuckerStart
from tuckermix.baselines.nonnegative import scale_of
from tuckermix.decomposition.exact import update_factors
from tuckermix.decomposition.result import cost_of
from tuckermix.numerics.points import kmeans
from tuckermix.numerics.tensor import multi_mode_dot, squared_norm
from tuckermix.sources import Source

__all__ = ["ASIT", "iterate_subspace"]

ROUNDING = 16 * np.finfo(np.float64).eps
"""Changes of the cost below this share of the squared norm of the data are rounding."""


@describe(STARTED)
def iterate_subspace(
    source: Source,
    factors: Sequence[np.ndarray],
    n_clusters: int,
    *,
    max_iter: int,
    tol: float,
    rng: np.random.Generator,
) -> Run:
    r"""Alternate k-means in a Tucker subspace with the best subspace for its clusters.

    .. math::

        \min \tfrac12 \sum_i \lVert X_i - S_{z_i} \times_1 U_1 \cdots \times_N U_N \rVert^2
        \iff \max \sum_c n_c \lVert M_c \times_1 U_1^\top \cdots \times_N U_N^\top \rVert^2

    with labels z, cluster means :math:`M_c` of :math:`n_c` samples and orthonormal factors. No step
    raises the cost.

    Parameters
    ----------
    n_clusters : int
        The number of clusters.
    max_iter : int
        The limit on the number of rounds.
    tol : float
        The labels count as settled only when the factors gain less than this share of the cost.
    rng : numpy.random.Generator
        Source of randomness for the start of k-means.

    Returns
    -------
    run : Run
        With 0/1 memberships, `factors_`, and `core_` of shape (n_clusters, r_1, ...), which holds
        the projected cluster means in units of the data.
    """
    factors = list(factors)
    ranks = [factor.shape[1] for factor in factors]
    total = source.squared_norm
    trace = Trace(total)
    history = trace.records

    def record(explained: float) -> float:
        trace.add(cost_of(source, total - explained), total - explained)
        return 0.5 * max(0.0, total - explained)

    B = source.project(factors)
    found = kmeans(B, n_clusters, n_init=1, rng=rng)
    counts = np.bincount(found.labels, minlength=n_clusters)
    cost = record(float(counts @ np.sum(found.centers**2, axis=1)))
    reason = StopReason.MAX_ITER
    for _ in range(max_iter):
        labels = found.labels
        T = source.contract(np.eye(n_clusters)[labels] / np.sqrt(counts))  # √n_c M_c
        factors = update_factors(T, factors)
        projected = multi_mode_dot(T, factors, transpose=True)
        gain = cost - 0.5 * (total - squared_norm(projected))
        centers = projected.reshape(n_clusters, -1) / np.sqrt(counts)[:, None]
        found = kmeans(source.project(factors), n_clusters, init=centers)
        counts = np.bincount(found.labels, minlength=n_clusters)
        previous, cost = cost, record(float(counts @ np.sum(found.centers**2, axis=1)))
        if np.array_equal(found.labels, labels):
            if gain <= tol * previous:
                reason = StopReason.STABLE
                break
        elif previous - cost <= ROUNDING * total:
            reason = StopReason.STALLED  # equal samples that change places between equal centres
            break
    return Run(
        memberships=np.eye(n_clusters)[found.labels],
        cost=history[-1].cost,
        n_iter=len(history) - 1,
        stop_reason=reason,
        history=history,
        fitted={
            "factors_": factors,
            "core_": found.centers.reshape(n_clusters, *ranks) / source.scale,
            "labels": found.labels,
        },
        measure="relative decrease of the cost",
        residual=(previous - cost) / previous if previous > 0 else 0.0,
    )


@declare
class ASIT(TuckerMethod, PredictsClusters):
    r"""Adaptive subspace iteration on tensors (Peng and Li).

    K-means in a Tucker subspace that adapts to the clusters:

    .. math::

        \min\ \tfrac12 \sum_i \lVert X_i - S_{z_i} \times_1 U_1 \cdots \times_N U_N \rVert_F^2,
        \qquad U_n^\top U_n = I

    over hard labels z, cores :math:`S_c` and factors. Rounds alternate between

    1. k-means on the projected samples :math:`Y_i = X_i \times_n U_n^\top`, from the present
       centres :math:`S_c`, the means of the :math:`Y_i`;
    2. for each mode n, the leading left singular vectors of the mode-n unfolding of the cluster
       means, weighted by the roots of the cluster sizes and projected on the other factors.

    Neither step raises the cost. The method is k-means with a low-rank constraint on the centres.

    Parameters
    ----------
    n_init : int, default=10
        The number of k-means++ starts in the first subspace, each followed to its end; the run of
        least cost is kept.
    max_iter : int, default=100
        The limit on the number of rounds.
    tol : float, default=1e-6
        Stop when no label changes and the factors gain less than this share of the cost.

    Attributes
    ----------
    memberships_ : array of shape (n_samples, n_clusters)
        The labels as a 0/1 matrix.
    core_ : array of shape (n_clusters, r_1, ...)
        The cluster means in the subspace.
    centroids_ : array of shape (n_clusters, d_1, ...)
        The same in the space of the samples.
    cost_ : float
        Half the squared distance of the samples from their centroids.

    Notes
    -----
    The full text was not at hand: the rules are derived from the abstract, which says that the
    method alternates the two-dimensional singular value decomposition of the current clusters with
    k-means in the current subspace, and from the matrix method of Li, Ma and Ogihara that it
    extends. The original has two feature modes; here there may be any number. The start is the
    truncated higher-order singular value decomposition of all samples. A cluster that loses all its
    samples takes the sample farthest from its own centroid, which lowers the cost.

    References
    ----------
    Peng and Li (2011), Tensor clustering via adaptive subspace iteration, Intelligent Data
    Analysis 15. Li, Ma and Ogihara (2004), Document clustering via adaptive subspace iteration,
    SIGIR.

    Examples
    --------
    >>> from tuckermix import baselines, datasets
    >>> X = datasets.make_tensor_clusters(60, (6, 5), 3, random_state=0).X
    >>> baselines.ASIT(3, ranks=(2, 3), random_state=0).fit(X).core_.shape
    (3, 2, 3)
    """

    n_init: int = 10
    max_iter: int = 100
    tol: float = 1e-6

    def _run(self, data: TuckerStart, rng: np.random.Generator) -> Run:
        run = iterate_subspace(
            data.source,
            data.factors,
            self.n_clusters,
            max_iter=self.max_iter,
            tol=self.tol,
            rng=rng,
        )
        run.fitted["ranks_"] = data.ranks
        run.fitted["centroids_"] = multi_mode_dot(run.fitted["core_"], run.fitted["factors_"])
        return run

    def _label(self, X: np.ndarray, run: Run, rng: np.random.Generator) -> np.ndarray:
        return run.fitted.pop("labels")

    def _assign(self, X: np.ndarray) -> np.ndarray:
        """Take the nearest centroid in the subspace."""
        unit = scale_of(X)  # squares of tiny or huge entries leave the range of floats
        factors = [to_numpy(factor).astype(np.float64) for factor in self.factors_]
        rows = multi_mode_dot(X.astype(np.float64) / unit, factors, transpose=True)
        centers = to_numpy(self.core_).astype(np.float64) / unit
        return nearest_center(rows.reshape(len(rows), -1), centers.reshape(len(centers), -1))
