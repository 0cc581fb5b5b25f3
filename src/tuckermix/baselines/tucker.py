"""Methods in a Tucker subspace: PCA-Multinomial, PCA-B, ASI-T and Tri-ONTD."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from tuckermix._array_api import to_numpy
from tuckermix._estimators import declare
from tuckermix._records import StopReason
from tuckermix._validation import Rules, check_ranks, one_of
from tuckermix.baselines import _base, nonnegative
from tuckermix.baselines._base import ComponentClustering, PredictsClusters, Run, Step, Trace
from tuckermix.baselines.nonnegative import TINY, scale_of, unit_rows
from tuckermix.decomposition.alternating import PAPER, alternate, orthonormal_columns
from tuckermix.decomposition.exact import update_factors
from tuckermix.decomposition.fit import INITS, hosvd, start_factors
from tuckermix.decomposition.result import Start as SolverStart
from tuckermix.decomposition.result import cost_of
from tuckermix.numerics.points import kmeans
from tuckermix.numerics.tensor import mode_dot, mode_gram, multi_mode_dot, squared_norm, unfold
from tuckermix.sources import Source

Start = tuple[Source, tuple[int, ...], list[np.ndarray]]
"""The samples, scaled to ordinary size (`cost_of` undoes it for costs), and what `hosvd` gives: a
rank for each feature mode, and as factors the leading singular vectors of each unfolding, the
paper's first initialisation."""


MEASURE = "decrease of the relative error"


@declare
class TuckerMethod(_base.IterativeClustering):
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
        """Choose ranks and factors as `TuckerClustering` does."""
        source = Source(X)
        return source, *hosvd(source, check_ranks(self.ranks, X.shape[1:], type(self).__name__))

    def _projected(self, X: np.ndarray) -> np.ndarray:
        """Return samples in the subspace, as rows."""
        factors = [to_numpy(factor).astype(np.float64) for factor in self.factors_]
        return multi_mode_dot(X, factors, transpose=True).reshape(len(X), -1)


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

    def _run(self, data: Start, rng: np.random.Generator) -> Run:
        source, ranks, factors = data
        guess = None
        if self.init == "kmeans":
            points = source.project(factors)
            labels = kmeans(points, self.n_clusters, n_init=_base.KMEANS_STARTS, rng=rng).labels
            # A tenth of a sample's weight goes to all clusters together: weights are positive, and
            # far enough from the boundary for the trust region to move.
            guess = 0.9 * np.eye(self.n_clusters)[labels] + 0.1 / self.n_clusters
            T = source.contract(orthonormal_columns(guess))
            factors = update_factors(T, factors, n_loops=PAPER.factor_loops)
        elif self.init != "hosvd":
            factors = start_factors(source, ranks, self.init, rng)
        begin = SolverStart(factors, rng, max_iter=self.max_iter, tol=self.tol)
        # Other starts bring no orthonormal sample factor whose error could be recorded.
        recipe = replace(PAPER, starts_orthogonal=self.init == "hosvd")
        reached = alternate(source, begin, self.n_clusters, recipe, memberships=guess)
        rows = np.linalg.lstsq(reached.memberships, reached.B, rcond=None)[0]
        core = (rows / source.scale).reshape(self.n_clusters, *ranks)
        history = reached.progress.history
        errors = [entry.relative_error for entry in history[-2:]]
        fitted = {"factors_": reached.factors, "core_": core, "ranks_": ranks}
        fitted |= {"components_": multi_mode_dot(core, reached.factors), "gap_": history[-1].gap}
        measured = {"measure": MEASURE, "residual": errors[0] - errors[-1]}
        reason = reached.progress.stop
        return Run.of(reached.memberships, history, reason, fitted=fitted, **measured)

    def _finish(self, X: np.ndarray, run: Run) -> None:
        """Keep the memberships of the trust region, on which the paper runs k-means."""

    def _weights(self, X: np.ndarray) -> np.ndarray:
        """Find the best convex combination of the components for each sample."""
        rows = self._projected(X.astype(np.float64))
        core = to_numpy(self.core_).astype(np.float64).reshape(self.n_clusters, -1)
        unit = scale_of(core)
        # The rule that weights sum to one, beside components of size one. What the square of its
        # weight leaves, a millionth, goes when the rows are divided by their sums.
        weight = 1e3 * max(1.0, scale_of(rows) / unit)
        H = nonnegative.solve_components(
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
        U, core = nonnegative.normalize_components(U, core)
        gram = core @ core.T
        cross = source.project(factors, np.ascontiguousarray(core.T))
        U = _improve(U, gram, cross)
        record(nonnegative.least_squares_cost(total, U, cross, gram))
        gain = history[-2].relative_error - history[-1].relative_error
        if gain <= tol:
            reason = StopReason.TOLERANCE
            break
        fitted = np.sum(U * (2.0 * cross - U @ gram), axis=1)
        _revive(U, energies - fitted, NOISE * total)
        Q, inverse = _pseudo_inverse(U)
        T = source.contract(Q)
    fitted = {"factors_": factors, "core_": core.reshape(n_components, *small.shape[1:])}
    measured = {"measure": MEASURE, "residual": gain}
    return trace.run(U / source.scale, reason, fitted=fitted, **measured)


def _pseudo_inverse(U: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return an orthonormal basis Q of the columns, and R with pinv(U) = R Qᵀ."""
    left, values, right = np.linalg.svd(U, full_matrices=False)
    keep = max(1, int(np.sum(values > NOISE * values[0])))
    safe = np.where(values[:keep] > 0, values[:keep], 1.0)
    return left[:, :keep], right[:keep].T / safe


def _improve(U: np.ndarray, gram: np.ndarray, cross: np.ndarray) -> np.ndarray:
    """Solve for the memberships; a row that rounding makes worse stays as it is."""
    best = nonnegative.nonnegative_least_squares(gram, cross, start=U)

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

    def _prepare(self, X: np.ndarray) -> tuple[Start, np.ndarray]:
        start = super()._prepare(X)
        flat = X.reshape(X.shape[0], -1) * start[0].scale
        return start, np.einsum("ij,ij->i", flat, flat)

    def _run(self, data: tuple[Start, np.ndarray], rng: np.random.Generator) -> Run:
        (source, ranks, factors), energies = data
        run = solve_nonnegative_tucker(
            source,
            factors,
            rng.random((energies.size, self.n_clusters)),
            energies,
            max_iter=self.max_iter,
            tol=self.tol,
        )
        run.fitted["ranks_"] = ranks
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

    def _run(self, data: Start, rng: np.random.Generator) -> Run:
        (source, ranks, factors), n_clusters = data, self.n_clusters
        total = source.squared_norm
        trace = Trace(total)

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
        core = found.centers.reshape(n_clusters, *ranks) / source.scale
        fitted = {"factors_": factors, "core_": core, "ranks_": ranks}
        fitted["centroids_"] = multi_mode_dot(core, factors)
        change = (previous - cost) / previous if previous > 0 else 0.0
        measured = {"measure": "relative decrease of the cost", "residual": change}
        return trace.run(np.eye(n_clusters)[found.labels], reason, fitted=fitted, **measured)

    def _label(self, X: np.ndarray, run: Run, rng: np.random.Generator) -> np.ndarray:
        return np.argmax(run.memberships, axis=1)

    def _assign(self, X: np.ndarray) -> np.ndarray:
        """Take the nearest centroid in the subspace."""
        unit = scale_of(X)  # squares of tiny or huge entries leave the range of floats
        centers = to_numpy(self.core_).astype(np.float64).reshape(self.n_clusters, -1)
        return _base.nearest_center(self._projected(X.astype(np.float64) / unit), centers / unit)


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
        return X, scale, super()._prepare(X)[1]

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
        done, before = len(history), history[-1].time
        history += [
            replace(step, iteration=done + step.iteration, time=before + step.time)
            for step in refined
        ]
        fitted = {"factors_": factors[1:], "core_": core * scale}
        fitted["components_"] = multi_mode_dot(core * scale, factors[1:])
        fitted["ranks_"] = tuple(factor.shape[1] for factor in factors[1:])
        # Neither of the two starts is a cycle.
        facts = {"n_iter": len(history) - 2, "fitted": fitted, "failure": failure}
        reason = StopReason.FAILED if failure else reason
        return Run.of(factors[0], history, reason, **facts).in_units(scale)

    def _label(self, X: np.ndarray, run: Run, rng: np.random.Generator) -> np.ndarray:
        return _base.label_memberships(run.memberships, self.n_clusters, "argmax", rng)[0]


def _start_factor(rows: np.ndarray, n_groups: int, rng: np.random.Generator) -> np.ndarray:
    """Group rows by k-means; return the 0/1 indicator, lifted off zero, with columns of norm 1."""
    return unit_rows(_base.lifted_start(rows, n_groups, rng).T).T


def _find_failure(factors: Sequence[np.ndarray], n_clusters: int) -> str:
    """Return why a run is meaningless, or an empty string."""
    if not all(bool(np.isfinite(factor).all()) for factor in factors):
        return "the factors are not finite."
    n_alive = int(np.count_nonzero(factors[0].any(axis=0)))
    if n_alive < n_clusters:
        return f"only {n_alive} of {n_clusters} columns of the indicator keep a sample."
    return ""
