"""The paper's own algorithm with the settings of its experiments."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tuckermix._array_api import to_numpy
from tuckermix._declaration import declare, ruled
from tuckermix._validation import one_of
from tuckermix.baselines._base import ComponentClustering
from tuckermix.baselines._labels import KMEANS_STARTS
from tuckermix.baselines._run import Run
from tuckermix.baselines._tucker import TuckerMethod, TuckerStart
from tuckermix.baselines.nonnegative import scale_of, solve_components
from tuckermix.decomposition.alternating import PAPER, alternate, orthonormal_columns
from tuckermix.decomposition.exact import update_factors
from tuckermix.decomposition.fit import INITS, start_factors
from tuckermix.numerics.points import kmeans
from tuckermix.numerics.tensor import multi_mode_dot
from tuckermix.sources import Source

__all__ = ["PCAMultinomial"]

SUM_WEIGHT = 1e3
"""Weight of the rule that weights sum to one, beside components of size one, in `transform`. What
its square leaves of the rule, a millionth, goes when the rows are divided by their sums."""

SHARED = 0.1
"""The share of a sample's weight that k-means, as a start, leaves to all clusters together: weights
are positive, and far enough from the boundary for the trust region to move."""


@declare
class PCAMultinomial(TuckerMethod, ComponentClustering):
    r"""The method of Sun et al. as they ran it: the Tucker model of the package by trust regions.

    .. math::

        \min\ \tfrac12 \lVert X - G \times_0 U \times_1 U_1 \cdots \times_N U_N \rVert_F^2,
        \qquad U > 0,\; U 1 = 1,\; U_n^\top U_n = I

    The model is that of `TuckerClustering`; what differs is how it is solved and how labels follow.
    Each sweep calls a Riemannian trust region for U on the multinomial manifold, with Manopt's
    defaults and at most 30 inner iterations: 1000 iterations in the first sweep, from a random
    point, and 5 in each later one, from the last U. The factors follow in closed form, twice a
    sweep. Labels come from k-means on U, with as many components as clusters.

    Parameters
    ----------
    init : {"hosvd", "hosvd-samples", "random", "kmeans"}, default="hosvd"
        Where the factors start: the paper's HOSVD initialisations I and II, or random bases; or,
        as its Remark 3 has it, first factors for memberships that k-means estimates, from which
        the trust region then starts.
    max_iter : int, default=250
        The limit on the number of sweeps, the paper's figure.
    tol : float, default=1e-6
        Stop when a sweep lowers the relative error by less than this, after 2 to 14 sweeps on
        images, where the paper does 250. That moves the error by 6e-8 at most and AC by 0.005; 0
        goes on to `max_iter` as long as there is any progress, which is what the tables do.

    Attributes
    ----------
    memberships_ : array of shape (n_samples, n_clusters)
        The memberships U at which the trust region stopped.
    components_ : array of shape (n_clusters, d_1, ...)
        The components in the space of the samples; the paper's centroids.
    gap_ : float
        How far the memberships are from the optimum for these factors, relative to it.
    history_ : list of SweepRecord
        One record a sweep with `relative_error` (the paper's Figure 3) and `gap`. The first is the
        start: for ``init="hosvd"`` the decomposition with an orthonormal sample factor, whose error
        no memberships reach, so that the curve rises at first, as in the paper.

    Notes
    -----
    Manopt's default radius is an eighth of Mπ/2 at the start of *every* call, far beyond the
    diameter of the manifold. Where the factors have just moved a long way, as after a random start,
    all 5 iterations of a later call can go into bringing it down: every step is rejected, U stays
    where the first call left it, and the error stops falling, as the paper observed. From HOSVD
    the steps fit into the radius and the error settles within a few sweeps.
    ``TuckerClustering(solver="trust-region")`` keeps the radius from call to call and
    preconditions; ``solver="exact"`` needs no trust region at all.

    References
    ----------
    Sun, Gao, Hong, Mishra and Yin (2016), Heterogeneous tensor decomposition for clustering via
    manifold optimization, IEEE Transactions on Pattern Analysis and Machine Intelligence 38.

    Examples
    --------
    >>> from tuckermix import baselines, datasets
    >>> X = datasets.make_tensor_clusters(60, (6, 5), 3, random_state=0).X
    >>> model = baselines.PCAMultinomial(3, ranks=(2, 3), random_state=0).fit(X)
    >>> bool(abs(model.memberships_.sum(axis=1) - 1).max() < 1e-12)
    True
    """

    init: str = ruled("hosvd", one_of((*INITS, "kmeans")))
    max_iter: int = 250
    tol: float = 1e-6

    def _run(self, data: TuckerStart, rng: np.random.Generator) -> Run:
        factors, guess = data.factors, None
        if self.init == "kmeans":
            guess = self._guess(data.source, factors, rng)
            T = data.source.contract(orthonormal_columns(guess))
            factors = update_factors(T, factors, n_loops=PAPER.factor_loops)
        elif self.init != "hosvd":
            factors = start_factors(data.source, data.ranks, self.init, rng)
        reached = alternate(
            data.source,
            factors,
            self.n_clusters,
            max_iter=self.max_iter,
            tol=self.tol,
            rng=rng,
            # Other starts bring no orthonormal sample factor whose error could be recorded.
            recipe=replace(PAPER, starts_orthogonal=self.init == "hosvd"),
            memberships=guess,
        )
        rows = np.linalg.lstsq(reached.memberships, reached.B, rcond=None)[0]
        core = (rows / data.source.scale).reshape(self.n_clusters, *data.ranks)
        errors = [entry.relative_error for entry in reached.history[-2:]]
        return Run(
            memberships=reached.memberships,
            cost=reached.history[-1].cost,
            n_iter=len(reached.history) - 1,
            stop_reason=reached.stop_reason,
            history=reached.history,
            fitted={
                "factors_": reached.factors,
                "core_": core,
                "components_": multi_mode_dot(core, reached.factors),
                "ranks_": data.ranks,
                "gap_": reached.history[-1].gap,
            },
            measure="decrease of the relative error",
            residual=errors[0] - errors[-1],
        )

    def _guess(
        self, source: Source, factors: list[np.ndarray], rng: np.random.Generator
    ) -> np.ndarray:
        """Estimate memberships by k-means on the projected samples."""
        B = source.project(factors)
        labels = kmeans(B, self.n_clusters, n_init=KMEANS_STARTS, rng=rng).labels
        own = np.eye(self.n_clusters)[labels]
        return (1.0 - SHARED) * own + SHARED / self.n_clusters

    def _finish(self, X: np.ndarray, run: Run) -> None:
        """Keep the memberships of the trust region, on which the paper runs k-means."""

    def _weights(self, X: np.ndarray) -> np.ndarray:
        """Find the best convex combination of the components for each sample."""
        factors = [to_numpy(factor).astype(np.float64) for factor in self.factors_]
        rows = multi_mode_dot(X.astype(np.float64), factors, transpose=True)
        rows = rows.reshape(rows.shape[0], -1)
        core = to_numpy(self.core_).astype(np.float64).reshape(self.n_clusters, -1)
        unit = scale_of(core)
        weight = SUM_WEIGHT * max(1.0, scale_of(rows) / unit)
        H = solve_components(
            np.hstack([rows / unit, np.full((rows.shape[0], 1), weight)]),
            np.hstack([core / unit, np.full((core.shape[0], 1), weight)]),
        )
        return H / H.sum(axis=1, keepdims=True)
