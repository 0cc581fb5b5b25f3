"""The paper's benchmark PCA-B: its Tucker model with memberships that are nonnegative only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tuckermix._declaration import declare, describe
from tuckermix._records import StopReason
from tuckermix.baselines._base import ComponentClustering
from tuckermix.baselines._run import Run, Trace
from tuckermix.baselines._tucker import STARTED, TuckerMethod, TuckerStart
from tuckermix.baselines.nonnegative import least_squares_cost, nonnegative_least_squares
from tuckermix.decomposition.exact import update_factors
from tuckermix.decomposition.result import cost_of
from tuckermix.numerics.tensor import multi_mode_dot, squared_norm
from tuckermix.sources import Source

__all__ = ["PCAB", "solve_nonnegative_tucker"]

FACTOR_LOOPS = 2
"""How often a sweep goes through the factors: the paper's figure."""

NOISE = 1e3 * np.finfo(np.float64).eps
"""Singular values of the memberships below this share of the largest, and residuals below this
share of the data, are rounding: the memberships come from systems whose conditioning costs a few
digits of the sixteen."""


@describe(STARTED)
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
        factors = update_factors(T, factors, n_loops=FACTOR_LOOPS)
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
    max_iter : int, default=250
        The limit on the number of sweeps, the paper's figure.
    tol : float, default=1e-5
        Stop when a sweep lowers the relative error by less than this, after some dozens of
        sweeps on images. The paper does 250; 0 goes on as long as there is any progress, as the
        tables do.

    Attributes
    ----------
    memberships_ : array of shape (n_samples, n_clusters)
        The nonnegative memberships U, in units of the data.
    core_ : array of shape (n_clusters, r_1, ...)
        The components in the subspace, each of norm 1.

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
