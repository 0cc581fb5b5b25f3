"""Methods in a Tucker subspace: PCA-Multinomial, PCA-B and ASI-T."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from tuckermix._array_api import to_numpy
from tuckermix._estimators import declare
from tuckermix._records import Record, StopReason
from tuckermix._validation import check_ranks, one_of
from tuckermix.baselines._base import (
    KMEANS_STARTS,
    ComponentClustering,
    IterativeClustering,
    PredictsClusters,
    Rules,
    Run,
    Trace,
    nearest_center,
)
from tuckermix.baselines.nonnegative import (
    least_squares_cost,
    nonnegative_least_squares,
    scale_of,
    solve_components,
)
from tuckermix.decomposition.alternating import PAPER, alternate, orthonormal_columns
from tuckermix.decomposition.exact import update_factors
from tuckermix.decomposition.fit import INITS, hosvd, start_factors
from tuckermix.decomposition.result import cost_of
from tuckermix.numerics.points import kmeans
from tuckermix.numerics.tensor import multi_mode_dot, squared_norm
from tuckermix.sources import Source, as_source


@dataclass(frozen=True)
class TuckerStart(Record):
    """The samples with the ranks and factors from which a method starts.

    Attributes
    ----------
    source : Source
        The samples, scaled to ordinary size; `cost_of` undoes it for costs.
    ranks : tuple of int
        One rank for each feature mode.
    factors : list of ndarray of shape (d_n, r_n)
        Leading singular vectors of each unfolding, the paper's first initialisation.
    """

    source: Source
    ranks: tuple[int, ...]
    factors: list[np.ndarray]


def start_tucker(X: np.ndarray, ranks: Any, owner: str) -> TuckerStart:
    """Choose ranks and factors as `TuckerClustering` does.

    Parameters
    ----------
    X : ndarray of shape (n_samples, d_1, ...)
        The samples, float64.
    ranks : None, int, float or sequence of int
        The parameter as the user gave it.
    owner : str
        The name of the class that has the parameter, for messages.

    Returns
    -------
    start : TuckerStart
        Source, ranks and factors.
    """
    chosen = check_ranks(ranks, tuple(X.shape[1:]), owner)
    source = as_source(X)
    return TuckerStart(source, *hosvd(source, chosen))


@declare
class TuckerMethod(IterativeClustering):
    """Base of the methods that work in a Tucker subspace.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    ranks : None, int, float or sequence of int, default=None
        The number of columns of each factor: one int for all modes, one for each, or the share of
        the centred energy to keep. None keeps 98 % of the energy above the noise.
    **shared : Any
        Parameters of `IterativeClustering`.

    Attributes
    ----------
    factors_ : list of arrays of shape (d_n, r_n)
        Orthonormal factors of the feature modes.
    core_ : array of shape (n_clusters, r_1, ...)
        The components in the subspace.
    ranks_ : tuple of int
        The number of columns of each factor.
    """

    ranks: Any = None

    def _prepare(self, X: np.ndarray) -> Any:
        return start_tucker(X, self.ranks, type(self).__name__)


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
    n_clusters : int, default=8
        The number of clusters, and of components where the model has any.
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
    ranks : None, int, float or sequence of int, default=None
        The number of columns of each factor: one int for all modes, one for each, or the share of
        the centred energy to keep. None keeps 98 % of the energy above the noise.
    n_init : int, default=1
        The number of starts; the run of least cost is kept.
    random_state : None, int, Generator or RandomState, default=None
        Source of randomness for the starts and for k-means.
    assign_labels : {"kmeans", "argmax"}, default="kmeans"
        Labels by k-means on the memberships, or by the largest one.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each sample; every label occurs.
    memberships_ : array of shape (n_samples, n_clusters)
        The memberships U at which the trust region stopped.
    cost_ : float
        The objective at the end, in units of the data.
    history_ : list of SweepRecord
        One record per sweep with `relative_error` (the paper's Figure 3) and `gap`. The first is
        the start: for ``init="hosvd"`` the decomposition with an orthonormal sample factor, whose
        error no memberships reach, so that the curve rises at first, as in the paper.
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
    factors_ : list of arrays of shape (d_n, r_n)
        Orthonormal factors of the feature modes.
    core_ : array of shape (n_clusters, r_1, ...)
        The components in the subspace.
    ranks_ : tuple of int
        The number of columns of each factor.
    components_ : array of shape (n_clusters, d_1, ...)
        The components in the space of the samples; the paper's centroids.
    centroids_ : array of shape (n_clusters, d_1, ...)
        The mean model sample of each cluster.
    membership_centers_ : array of shape (n_clusters, n_clusters)
        The mean memberships of each cluster.
    gap_ : float
        How far the memberships are from the optimum for these factors, relative to it.

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

    init: str = "hosvd"
    max_iter: int = 250
    tol: float = 1e-06

    _rules: ClassVar[Rules] = {"init": one_of((*INITS, "kmeans"))}

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
        # A tenth of a sample's weight goes to all clusters together: weights are positive, and
        # far enough from the boundary for the trust region to move.
        shared = 0.1
        return (1.0 - shared) * own + shared / self.n_clusters

    def _finish(self, X: np.ndarray, run: Run) -> None:
        """Keep the memberships of the trust region, on which the paper runs k-means."""

    def _weights(self, X: np.ndarray) -> np.ndarray:
        """Find the best convex combination of the components for each sample."""
        factors = [to_numpy(factor).astype(np.float64) for factor in self.factors_]
        rows = multi_mode_dot(X.astype(np.float64), factors, transpose=True)
        rows = rows.reshape(rows.shape[0], -1)
        core = to_numpy(self.core_).astype(np.float64).reshape(self.n_clusters, -1)
        unit = scale_of(core)
        # The rule that weights sum to one, beside components of size one. What the square of its
        # weight leaves, a millionth, goes when the rows are divided by their sums.
        weight = 1e3 * max(1.0, scale_of(rows) / unit)
        H = solve_components(
            np.hstack([rows / unit, np.full((rows.shape[0], 1), weight)]),
            np.hstack([core / unit, np.full((core.shape[0], 1), weight)]),
        )
        return H / H.sum(axis=1, keepdims=True)


NOISE = 1e3 * np.finfo(np.float64).eps
"""Singular values of the memberships below this share of the largest, and residuals below this
share of the data, are rounding: the memberships come from systems whose conditioning costs a few
digits of the sixteen."""


def solve_nonnegative_tucker(
    source: Source,
    factors: Sequence[np.ndarray],
    memberships: np.ndarray,
    energies: np.ndarray,
    *,
    max_iter: int,
    tol: float,
) -> Run:
    r"""Alternate closed forms of the factors and the core with nonnegative least squares.

    .. math::

        \min \tfrac12 \lVert X - G \times_0 U \times_1 U_1 \cdots \times_N U_N \rVert^2,
        \qquad U \ge 0,\; U_n^\top U_n = I

    A sweep reads the samples twice, through products with matrices of `n_components` columns; the
    projected samples are never formed. No step raises the cost.

    Parameters
    ----------
    source : Source
        The samples.
    factors : sequence of ndarray of shape (d_n, r_n)
        Orthonormal factors to start from.
    memberships : ndarray of shape (n_samples, n_components)
        Nonnegative memberships to start from.
    energies : ndarray of shape (n_samples,)
        The squared norm of each sample, in units of the source.
    max_iter : int
        The limit on the number of sweeps.
    tol : float
        Stop when a sweep lowers the relative error by less than this.

    Returns
    -------
    run : Run
        With `factors_` and `core_` of shape (n_components, r_1, ...), whose slices have norm 1 in
        units of the source.
    """
    factors, U = list(factors), np.array(memberships, dtype=np.float64)
    n_components, total = U.shape[1], source.squared_norm
    trace = Trace(total)
    history = trace.records

    def record(cost: float) -> None:
        trace.add(cost_of(source, 2.0 * cost), 2.0 * cost)

    Q, inverse = _pseudo_inverse(U)
    T = source.contract(Q)
    record(0.5 * max(0.0, total - squared_norm(multi_mode_dot(T, factors, transpose=True))))
    reason, gain = StopReason.MAX_ITER, np.inf
    for _ in range(max_iter):
        factors = update_factors(T, factors, n_loops=PAPER.factor_loops)
        small = multi_mode_dot(T, factors, transpose=True)
        core = inverse @ small.reshape(small.shape[0], -1)
        norms = np.linalg.norm(core, axis=1)
        norms[norms == 0] = 1.0
        core /= norms[:, None]
        gram = core @ core.T
        cross = source.project(factors, np.ascontiguousarray(core.T))
        U = _improve(U * norms, gram, cross)
        record(least_squares_cost(total, U, cross, gram))
        gain = history[-2].relative_error - history[-1].relative_error
        if gain <= tol:
            reason = StopReason.TOLERANCE
            break
        fitted = np.sum(U * (2.0 * cross - U @ gram), axis=1)
        _revive(U, energies - fitted, NOISE * total)
        Q, inverse = _pseudo_inverse(U)
        T = source.contract(Q)
    return Run(
        memberships=U / source.scale,
        cost=history[-1].cost,
        n_iter=len(history) - 1,
        stop_reason=reason,
        history=history,
        fitted={"factors_": factors, "core_": core.reshape(n_components, *small.shape[1:])},
        measure="decrease of the relative error",
        residual=gain,
    )


def _pseudo_inverse(U: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return an orthonormal basis Q of the columns, and R with pinv(U) = R Qᵀ."""
    left, values, right = np.linalg.svd(U, full_matrices=False)
    keep = max(1, int(np.sum(values > NOISE * values[0])))
    safe = np.where(values[:keep] > 0, values[:keep], 1.0)
    return left[:, :keep], right[:keep].T / safe


def _improve(U: np.ndarray, gram: np.ndarray, cross: np.ndarray) -> np.ndarray:
    """Solve for the memberships; a row that rounding makes worse stays as it is."""
    best = nonnegative_least_squares(gram, cross, start=U)

    def gains(rows: np.ndarray) -> np.ndarray:
        return np.sum(rows * (2.0 * cross - rows @ gram), axis=1)

    return np.where((gains(best) >= gains(U))[:, None], best, U)


def _revive(U: np.ndarray, residuals: np.ndarray, floor: float) -> None:
    """Give each component that no sample uses to the sample fitted worst, in place.

    More columns can only enlarge the space that the core chooses from, so the cost falls.
    """
    worst = np.argsort(-residuals, kind="stable")
    for component, sample in zip(np.flatnonzero(~U.any(axis=0)), worst, strict=False):
        if residuals[sample] > floor:
            U[sample, component] = np.sqrt(residuals[sample])


@declare
class PCAB(TuckerMethod, ComponentClustering):
    r"""The benchmark PCA-B of Sun et al.: nonnegative memberships without the sum constraint.

    .. math::

        \min\ \tfrac12 \lVert X - G \times_0 U \times_1 U_1 \cdots \times_N U_N \rVert_F^2,
        \qquad U \ge 0,\; U_n^\top U_n = I

    which is the model of `TuckerClustering` without the rule that the weights of a sample sum to 1.
    A sweep finds, with the projected samples :math:`B = (X \times_n U_n^\top)_{(0)}` and an
    orthonormal basis Q of the columns of U,

    1. each :math:`U_n`: the leading left singular vectors of the mode-n unfolding of
       :math:`Q^\top X` projected on the other factors, twice around;
    2. the core :math:`G = U^{+} B`;
    3. the memberships :math:`U = \arg\min_{U \ge 0} \lVert B - U G \rVert`, by block principal
       pivoting.

    No step raises the cost. Samples of any sign and shape are taken.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters, and of components where the model has any.
    max_iter : int, default=250
        The limit on the number of sweeps, the paper's figure.
    tol : float, default=1e-5
        Stop when a sweep lowers the relative error by less than this, after some dozens of
        sweeps on images. The paper does 250; 0 goes on as long as there is any progress, as the
        tables do.
    ranks : None, int, float or sequence of int, default=None
        The number of columns of each factor: one int for all modes, one for each, or the share of
        the centred energy to keep. None keeps 98 % of the energy above the noise.
    n_init : int, default=1
        The number of starts; the run of least cost is kept.
    random_state : None, int, Generator or RandomState, default=None
        Source of randomness for the starts and for k-means.
    assign_labels : {"kmeans", "argmax"}, default="kmeans"
        Labels by k-means on the memberships, or by the largest one.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each sample; every label occurs.
    memberships_ : array of shape (n_samples, n_clusters)
        The nonnegative memberships U, in units of the data.
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
    factors_ : list of arrays of shape (d_n, r_n)
        Orthonormal factors of the feature modes.
    core_ : array of shape (n_clusters, r_1, ...)
        The components in the subspace, each of norm 1.
    ranks_ : tuple of int
        The number of columns of each factor.
    components_ : array of shape (n_clusters, d_1, ...)
        The components, each of unit norm.
    centroids_ : array of shape (n_clusters, d_1, ...)
        The mean model sample of each cluster.
    membership_centers_ : array of shape (n_clusters, n_clusters)
        The mean memberships of each cluster.

    Notes
    -----
    The paper says of the benchmark that the problem is solved by alternating optimisation with a
    quadratic program for U. What it leaves open is settled so: the start is the higher-order
    singular value decomposition for the factors, as for all methods of its comparison, and uniform
    random numbers for U; the scale that can move freely between U and the core is fixed by
    components of norm 1; a component that no sample uses is given to the sample fitted worst,
    which lowers the cost.

    The sum constraint makes the problem harder: rows of U divided by their sums are feasible for
    `TuckerClustering`, whose optimum for the same factors they never beat.

    References
    ----------
    Sun, Gao, Hong, Mishra and Yin (2016), as `PCAMultinomial` has it.

    Examples
    --------
    >>> from tuckermix import baselines, datasets
    >>> X = datasets.make_tensor_clusters(60, (6, 5), 3, random_state=0).X
    >>> model = baselines.PCAB(3, ranks=(2, 3), random_state=0).fit(X)
    >>> bool((model.memberships_ >= 0).all())
    True
    """

    max_iter: int = 250

    def _prepare(self, X: np.ndarray) -> tuple[TuckerStart, np.ndarray]:
        start = super()._prepare(X)
        flat = X.reshape(X.shape[0], -1) * start.source.scale
        return start, np.einsum("ij,ij->i", flat, flat)

    def _run(self, data: tuple[TuckerStart, np.ndarray], rng: np.random.Generator) -> Run:
        start, energies = data
        run = solve_nonnegative_tucker(
            start.source,
            start.factors,
            rng.random((energies.size, self.n_clusters)),
            energies,
            max_iter=self.max_iter,
            tol=self.tol,
        )
        run.fitted["ranks_"] = start.ranks
        run.fitted["components_"] = multi_mode_dot(run.fitted["core_"], run.fitted["factors_"])
        return run


ROUNDING = 16 * np.finfo(np.float64).eps
"""Changes of the cost below this share of the squared norm of the data are rounding."""


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
    n_clusters : int, default=8
        The number of clusters, and of components where the model has any.
    n_init : int, default=10
        The number of k-means++ starts in the first subspace, each followed to its end; the run of
        least cost is kept.
    max_iter : int, default=100
        The limit on the number of rounds.
    tol : float, default=1e-6
        Stop when no label changes and the factors gain less than this share of the cost.
    ranks : None, int, float or sequence of int, default=None
        The number of columns of each factor: one int for all modes, one for each, or the share of
        the centred energy to keep. None keeps 98 % of the energy above the noise.
    random_state : None, int, Generator or RandomState, default=None
        Source of randomness for the starts and for k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each sample; every label occurs.
    memberships_ : array of shape (n_samples, n_clusters)
        The labels as a 0/1 matrix.
    cost_ : float
        Half the squared distance of the samples from their centroids.
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
    factors_ : list of arrays of shape (d_n, r_n)
        Orthonormal factors of the feature modes.
    core_ : array of shape (n_clusters, r_1, ...)
        The cluster means in the subspace.
    ranks_ : tuple of int
        The number of columns of each factor.
    centroids_ : array of shape (n_clusters, d_1, ...)
        The same in the space of the samples.

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
    tol: float = 1e-06

    def _run(self, data: TuckerStart, rng: np.random.Generator) -> Run:
        source, factors, n_clusters = data.source, list(data.factors), self.n_clusters
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
        for _ in range(self.max_iter):
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
                if gain <= self.tol * previous:
                    reason = StopReason.STABLE
                    break
            elif previous - cost <= ROUNDING * total:
                # Equal samples change places between equal centres.
                reason = StopReason.STALLED
                break
        core = found.centers.reshape(n_clusters, *data.ranks) / source.scale
        return Run(
            memberships=np.eye(n_clusters)[found.labels],
            cost=history[-1].cost,
            n_iter=len(history) - 1,
            stop_reason=reason,
            history=history,
            fitted={
                "factors_": factors,
                "core_": core,
                "ranks_": data.ranks,
                "centroids_": multi_mode_dot(core, factors),
                "labels": found.labels,
            },
            measure="relative decrease of the cost",
            residual=(previous - cost) / previous if previous > 0 else 0.0,
        )

    def _label(self, X: np.ndarray, run: Run, rng: np.random.Generator) -> np.ndarray:
        return run.fitted.pop("labels")

    def _assign(self, X: np.ndarray) -> np.ndarray:
        """Take the nearest centroid in the subspace."""
        unit = scale_of(X)  # squares of tiny or huge entries leave the range of floats
        factors = [to_numpy(factor).astype(np.float64) for factor in self.factors_]
        rows = multi_mode_dot(X.astype(np.float64) / unit, factors, transpose=True)
        centers = to_numpy(self.core_).astype(np.float64) / unit
        return nearest_center(rows.reshape(len(rows), -1), centers.reshape(len(centers), -1))
