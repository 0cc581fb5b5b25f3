"""Doubly stochastic subspace clustering (A-DSSC)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize

from tuckermix._estimators import declare
from tuckermix._validation import positive
from tuckermix.baselines._base import Rules
from tuckermix.baselines.self_expression import (
    Expression,
    SelfExpression,
    ridge_coefficients,
    solve_ridge,
)


@dataclass(frozen=True)
class DualSettings:
    """Settings of the search for the lowest point of the dual."""

    first_steps: int = 200
    """Quasi-Newton steps before Newton's method takes over; enough to find most of the support."""
    max_newton: int = 100
    """Newton steps. Some ten are usual, since the dual is quadratic wherever the support is
    fixed."""
    max_halvings: int = 40
    """Halvings of a Newton step: a trillionth of it is below the rounding of the dual."""
    armijo: float = 1e-4
    """The share of the linear decrease that a Newton step must achieve, the usual figure."""
    rounding: float = 1e-12
    """A decrease of the dual below this share of its terms cannot be told from rounding; the
    gradient, which keeps far more digits, then says whether a step is good."""
    overshoot: float = 0.5
    """The slope at the end of such a step, relative to that at its start with the sign reversed:
    since the dual is convex, less than 1 means that the step ends nearer to the lowest point of
    its line."""
    ridge: float = 1e-10
    """Added to the diagonal of Newton's system relative to its mean: the dual does not change when
    a constant moves from one half of its variables to the other."""


DUAL = DualSettings()


def doubly_stochastic(K: np.ndarray, eta: float, *, tol: float = 1e-10) -> np.ndarray:
    r"""Find the doubly stochastic matrix that is nearest to a scaled matrix.

    .. math::

        \min_A\ \tfrac\eta2 \lVert A \rVert_F^2 - \langle K, A \rangle, \qquad
        A \ge 0,\; A 1 = 1,\; A^\top 1 = 1

    The solution is :math:`a_{ij} = \max(0, \alpha_i + \beta_j + k_{ij}) / \eta` with the minimiser
    of the dual

    .. math:: \tfrac1{2\eta} \sum_{ij} \max(0, \alpha_i + \beta_j + k_{ij})^2
        - \sum_i \alpha_i - \sum_j \beta_j ,

    which is found by quasi-Newton steps, as the authors do, and finished by Newton's method.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The matrix.
    eta : float
        The weight of the squares, positive: the smaller, the sparser is A.
    tol : float, default=1e-10
        The largest deviation of a row or column sum from one.

    Returns
    -------
    A : ndarray of shape (n, n)
        Not negative; rows and columns sum to one.
    """
    size = len(K)

    def parts(nu: np.ndarray) -> np.ndarray:
        return np.maximum(nu[:size, None] + nu[size:] + K, 0.0)

    def dual(nu: np.ndarray) -> tuple[float, np.ndarray]:
        P = parts(nu)
        sums = np.concatenate([P.sum(axis=1), P.sum(axis=0)]) / eta
        return float(np.vdot(P, P)) / (2.0 * eta) - float(nu.sum()), sums - 1.0

    start = np.full(2 * size, -0.5 * float(K.max()) + 0.5 * eta / size)
    options = {"maxiter": DUAL.first_steps, "gtol": tol, "ftol": 0.0}
    nu = minimize(dual, start, jac=True, method="L-BFGS-B", options=options).x
    value, gradient = dual(nu)
    for _ in range(DUAL.max_newton):
        if np.max(np.abs(gradient)) <= tol:
            break
        step = _newton_step(parts(nu) > 0, eta, gradient, size)
        slope, length = float(step @ gradient), 1.0
        by_slope = abs(slope) <= DUAL.rounding * float(np.abs(nu).sum())
        for _ in range(DUAL.max_halvings):
            candidate = nu + length * step
            new_value, new_gradient = dual(candidate)
            if by_slope:
                good = float(step @ new_gradient) <= DUAL.overshoot * abs(slope)
            else:
                good = new_value <= value + DUAL.armijo * length * slope
            if good:
                break
            length *= 0.5
        else:
            break  # rounding is all that is left
        nu, value, gradient = candidate, new_value, new_gradient
    return parts(nu) / eta


def _newton_step(active: np.ndarray, eta: float, gradient: np.ndarray, size: int) -> np.ndarray:
    """Solve Newton's system by eliminating the first half of the variables."""
    S = active.astype(np.float64)
    rows, columns = S.sum(axis=1), S.sum(axis=0)
    ridge = DUAL.ridge * max(float(rows.mean()), 1.0)
    rows += ridge
    g, h = -eta * gradient[:size], -eta * gradient[size:]
    schur = -(S.T / rows) @ S
    schur[np.diag_indices(size)] += columns + ridge
    right = h - S.T @ (g / rows)
    try:
        second = cho_solve(cho_factor(schur), right)
    except LinAlgError:  # rounding has made the smallest eigenvalue negative
        second = np.linalg.lstsq(schur, right, rcond=None)[0]
    return np.concatenate([(g - S @ second) / rows, second])


@declare
class ADSSC(SelfExpression):
    r"""Doubly stochastic subspace clustering, the approximate model A-DSSC (Lim et al.).

    Samples, divided by their norms, express each other by least squares regression with the weight
    :math:`\eta_1` and no part in their own expression (`ridge_coefficients`). The sizes of the
    coefficients are then replaced by the doubly stochastic matrix

    .. math::

        A = \arg\min\ \tfrac{\eta_2}2 \lVert A \rVert_F^2 - \langle |C|, A \rangle, \qquad
        A \ge 0,\; A 1 = 1,\; A^\top 1 = 1

    (`doubly_stochastic`), which is sparse and gives all samples the same weight. The affinity
    :math:`\tfrac12 (A + A^\top)` is cut by its leading eigenvectors.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters, and of components where the model has any.
    penalty : float, default=1.0
        The weight :math:`\eta_1` of the squared coefficients.
    smoothing : float, default=0.1
        The weight :math:`\eta_2`: the smaller, the fewer neighbours has a sample.
    n_init : int, default=20
        The number of starts of k-means on the eigenvectors.
    random_state : None, int, Generator or RandomState, default=None
        Source of randomness for the starts and for k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each sample; every label occurs.
    memberships_ : array of shape (n_samples, n_clusters)
        The share of each sample's affinity that goes to each cluster; rows sum to one.
    cost_ : float
        Half the squared error of the expressions of samples of norm 1.
    history_ : list of Step
        One record.
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
    affinity_matrix_ : array of shape (n_samples, n_samples)
        How much two samples contribute to each other, symmetric.
    training_rows_ : array of shape (n_samples, n_features)
        The flattened training samples as they were expressed, for `predict`.

    Notes
    -----
    The authors search both weights on each dataset, among 0.1, 1, 10, 25, 50 and among 0.0005 to
    0.1, and name no setting. The defaults are the best of that grid over the parts of several
    datasets that are for choices (``python -m benchmarks.rival_settings``). On digits weights like
    25 and 0.025 do better, on faces far worse.

    `predict` expresses a new sample by all training samples with the same penalty, and takes the
    cluster whose coefficients have the largest sum of sizes.

    References
    ----------
    Lim, Vidal and Haeffele (2020), Doubly stochastic subspace clustering, arXiv 2011.14859.

    Examples
    --------
    >>> from tuckermix.baselines import ADSSC
    >>> from tuckermix.datasets import make_tensor_clusters
    >>> X, y = make_tensor_clusters(60, (6, 5), 3, random_state=0, return_X_y=True)
    >>> model = ADSSC(3, random_state=0).fit(X)
    >>> bool(abs(model.affinity_matrix_.sum(axis=0) - 1).max() < 1e-8)
    True
    """

    penalty: float = 1.0
    smoothing: float = 0.1

    _rules: ClassVar[Rules] = {"penalty": positive, "smoothing": positive}

    def _express(self, Z: np.ndarray) -> Expression:
        C = ridge_coefficients(Z @ Z.T, self.penalty, zero_diagonal=True)
        A = doubly_stochastic(np.abs(C), self.smoothing)
        return Expression(C, 0.5 * (A + A.T))

    def _contributions(self, rows: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return solve_ridge(Z @ Z.T, self.penalty, rows @ Z.T)
