"""Elastic net subspace clustering (EnSC)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import enet_path
from sklearn.neighbors import kneighbors_graph

from tuckermix._estimators import declare
from tuckermix._validation import one_of, positive
from tuckermix.baselines._base import Rules
from tuckermix.baselines.nonnegative import unit_rows
from tuckermix.baselines.self_expression import Expression, SelfExpression, symmetrized


@dataclass(frozen=True)
class NetSettings:
    """Settings of the elastic nets."""

    working_set: int = 100
    """Atoms among which the rough solution is sought, those that resemble the sample most: the
    authors' figure. Any atom may join afterwards."""
    rough_tol: float = 1e-3
    """Relative duality gap of the rough solution, which only has to find most of the atoms."""
    rough_sweeps: int = 100
    """Limit on its sweeps."""
    steps_per_atom: int = 10
    """Exchanges of atoms before the search is given up, per atom. Each lowers the objective, so
    that only rounding can make them many; some tens in all are usual."""
    joining: int = 16
    """Atoms that may join at once: a sample of an image takes a hundred, and each exchange solves
    a system. Where all of them have to leave again they join one by one, which cannot cycle."""
    slack: float = 1e-10
    """How far a correlation may exceed its bound, relative to it: rounding of the products."""


NET = NetSettings()

AFFINITIES = ("nearest_neighbors", "symmetrized")


def elastic_net(
    Z: np.ndarray,
    G: np.ndarray,
    target: np.ndarray,
    *,
    gamma: float,
    tau: float,
    exclude: int | None = None,
) -> np.ndarray:
    r"""Express one sample by atoms with an elastic net, exactly.

    .. math::

        \min_c\ \tau \lVert c \rVert_1 + \tfrac{1 - \tau}2 \lVert c \rVert_2^2
        + \tfrac\gamma2 \lVert x - Z^\top c \rVert_2^2

    Coordinate descent finds most of the atoms that take part. From there on the coefficients of a
    set of atoms with given signs solve a linear system; an atom whose sign would change on the way
    to its solution leaves, and those whose correlations with the residual exceed
    :math:`\tau / \gamma` most join, until there is none (Lee et al., 2007).

    Parameters
    ----------
    Z : ndarray of shape (m, d)
        The atoms.
    G : ndarray of shape (m, m)
        Their Gram matrix.
    target : ndarray of shape (d,)
        The sample x.
    gamma : float
        The weight of the error.
    tau : float
        The share of the absolute values in the penalty, between 0 and 1: what is left for the
        squares makes the solution unique.
    exclude : int, default=None
        An atom that may not take part.

    Returns
    -------
    c : ndarray of shape (m,)
        The coefficients.
    """
    cross = Z @ target
    allowed = np.ones(len(Z), dtype=bool)
    if exclude is not None:
        allowed[exclude] = False
    c = _rough(Z, G, target, np.where(allowed, cross, 0.0), gamma, tau)
    support = np.flatnonzero(c)
    signs, before = np.sign(c[support]), np.zeros(0, dtype=int)
    for _ in range(NET.steps_per_atom * len(Z)):
        present, exact = c[support], _solve(G, cross, support, signs, gamma, tau)
        crossing = exact * signs <= 0
        if crossing.any():
            lengths = np.ones(len(support))
            lengths[crossing] = present[crossing] / (present - exact)[crossing]
            leaving = crossing & (lengths == lengths.min())
            c[support] = np.where(leaving, 0.0, present + lengths.min() * (exact - present))
            support, signs = support[~leaving], signs[~leaving]
            continue
        c[support] = exact
        pull = gamma * (cross - G[:, support] @ exact)
        pull[support] = 0.0
        pull[~allowed] = 0.0
        joining = np.flatnonzero(np.abs(pull) > tau * (1.0 + NET.slack))
        if not len(joining):
            break
        at_once = 1 if np.array_equal(support, before) else NET.joining
        before = support
        joining = joining[np.argsort(-np.abs(pull[joining]), kind="stable")[:at_once]]
        support, signs = np.append(support, joining), np.append(signs, np.sign(pull[joining]))
    return c


def _rough(
    Z: np.ndarray, G: np.ndarray, target: np.ndarray, cross: np.ndarray, gamma: float, tau: float
) -> np.ndarray:
    """Solve roughly by coordinate descent on the atoms with the largest cross products."""
    working = np.argsort(-np.abs(cross), kind="stable")[: NET.working_set]
    working = working[cross[working] != 0]
    c = np.zeros(len(Z))
    if len(working):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # what comes next is exact
            path = enet_path(
                Z[working].T,
                target,
                l1_ratio=tau,
                alphas=[1.0 / (gamma * Z.shape[1])],
                precompute=G[np.ix_(working, working)],
                Xy=cross[working],
                tol=NET.rough_tol,
                max_iter=NET.rough_sweeps,
                check_input=False,
            )
        c[working] = path[1][:, 0]
    return c


def _solve(
    G: np.ndarray,
    cross: np.ndarray,
    support: np.ndarray,
    signs: np.ndarray,
    gamma: float,
    tau: float,
) -> np.ndarray:
    """Solve for the coefficients of atoms whose signs are known."""
    system = gamma * G[np.ix_(support, support)]
    system[np.diag_indices(len(support))] += 1.0 - tau
    return np.linalg.solve(system, gamma * cross[support] - tau * signs)


@declare
class EnSC(SelfExpression):
    r"""Elastic net subspace clustering (You, Li, Robinson and Vidal).

    .. math::

        \min_c\ \tau \lVert c \rVert_1 + \tfrac{1 - \tau}2 \lVert c \rVert_2^2
        + \tfrac{\gamma_j}2 \lVert z_j - Z^\top c \rVert_2^2, \qquad c_j = 0

    for each sample :math:`z_j`, divided by its norm, with
    :math:`\gamma_j = \gamma \tau / \max_{i \ne j} |z_i^\top z_j|`: below :math:`\gamma = 1` all
    coefficients are zero. Coefficients of a sample are divided by their norm, and an affinity made
    from them is cut by its leading eigenvectors.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters, and of components where the model has any.
    gamma : float, default=200.0
        The weight of the error, relative to the least that gives any coefficients.
    tau : float, default=0.9
        The share of the absolute values in the penalty, above 0 and below 1.
    affinity : {"nearest_neighbors", "symmetrized"}, default="nearest_neighbors"
        Join each sample to the three whose coefficients are most like its own, or take
        :math:`\tfrac12(|C| + |C|^\top)`.
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
    Defaults are those of the authors' program for digits; unless told it has :math:`\gamma = 50`
    and :math:`\tfrac12(|C| + |C|^\top)`. What differs from it: the optimum is found exactly
    (`elastic_net`), where it stops at a tolerance; all coefficients are kept, where it keeps the 50
    largest of a sample.

    `predict` expresses a new sample by all training samples in the same way, and takes the cluster
    whose coefficients have the largest sum of sizes.

    References
    ----------
    You, Li, Robinson and Vidal (2016), Oracle based active set algorithm for scalable elastic net
    subspace clustering, CVPR.

    Examples
    --------
    >>> from tuckermix import baselines, datasets
    >>> X = datasets.make_tensor_clusters(60, (6, 5), 3, random_state=0).X
    >>> baselines.EnSC(3, random_state=0).fit_predict(X).shape
    (60,)
    """

    gamma: float = 200.0
    tau: float = 0.9
    affinity: str = "nearest_neighbors"

    _rules: ClassVar[Rules] = {"gamma": positive, "tau": positive, "affinity": one_of(AFFINITIES)}

    def _check_parameters(self, X: np.ndarray) -> None:
        super()._check_parameters(X)
        if self.tau >= 1:
            raise ValueError(
                f"The 'tau' parameter of {type(self).__name__} must be a share, below 1. "
                f"Got {self.tau!r} instead."
            )

    def _express(self, Z: np.ndarray) -> Expression:
        rows = self._nets(Z, Z, exclude_self=True)
        return Expression(rows.T, self._affinity(unit_rows(rows)))

    def _affinity(self, rows: np.ndarray) -> np.ndarray:
        if self.affinity == "symmetrized":
            return symmetrized(rows)
        count = min(3, len(rows) - 1)  # the authors' figure
        if count == 0:
            return np.zeros((1, 1))
        nearest = kneighbors_graph(rows, count, include_self=False).toarray()
        return 0.5 * (nearest + nearest.T)

    def _contributions(self, rows: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return self._nets(rows, Z)

    def _nets(self, rows: np.ndarray, Z: np.ndarray, exclude_self: bool = False) -> np.ndarray:
        G, sizes = Z @ Z.T, np.abs(rows @ Z.T)
        if exclude_self:
            np.fill_diagonal(sizes, 0.0)
        C = np.zeros_like(sizes)
        for i, (row, largest) in enumerate(zip(rows, sizes.max(axis=1), strict=True)):
            if largest > 0:
                C[i] = elastic_net(
                    Z,
                    G,
                    row,
                    gamma=self.gamma * self.tau / largest,
                    tau=self.tau,
                    exclude=i if exclude_self else None,
                )
        return C
