"""A factorisation in three parts along a graph of the rows and a graph of the columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from tuckermix._records import Record, StopReason
from tuckermix.baselines._run import Run, Trace
from tuckermix.numerics.points import nearest_neighbors

__all__ = ["Graph", "cocluster", "neighbor_graph"]

MAX_HALVINGS = 30
"""How often a step that raises the objective is halved. A billionth of a step is below the
rounding of the objective, so that further halving could not tell progress from noise."""

TINY = np.finfo(np.float64).tiny
"""Added to numerator and denominator of a multiplicative rule: 0/0 becomes 1, no step."""

ROUNDING = 16 * np.finfo(np.float64).eps
"""Changes of the objective below this share of it are rounding."""


@dataclass(frozen=True)
class Graph(Record):
    """A neighbour graph with adjacency W and the row sums of W as degrees."""

    adjacency: scipy.sparse.csr_array
    degrees: np.ndarray

    def smoothness(self, Z: np.ndarray) -> np.ndarray:
        """Return zᵀLz for each column z, with the Laplacian L = Deg − W."""
        return np.sum(Z * (self.degrees[:, None] * Z - self.adjacency @ Z), axis=0)


def neighbor_graph(X: np.ndarray, n_neighbors: int) -> Graph:
    """Join each row to its nearest rows, with weight 1 if either counts the other.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The points as rows.
    n_neighbors : int
        The number of neighbours, cut to n - 1.

    Returns
    -------
    graph : Graph
        The symmetric adjacency and its degrees.
    """
    size = X.shape[0]
    n_neighbors = min(n_neighbors, size - 1)
    if n_neighbors < 1:
        return Graph(scipy.sparse.csr_array((size, size)), np.zeros(size))
    columns = nearest_neighbors(X, X, n_neighbors, exclude_self=True)[0]
    rows = np.repeat(np.arange(size), n_neighbors)
    entries = (np.ones(rows.size), (rows, columns.ravel()))
    directed = scipy.sparse.csr_array(entries, shape=(size, size))
    adjacency = scipy.sparse.csr_array(directed.maximum(directed.T))
    return Graph(adjacency, np.asarray(adjacency.sum(axis=1), dtype=np.float64).ravel())


@dataclass
class _Side:
    """One of the two nonnegative factors, with its graph and the weight of its penalty."""

    Z: np.ndarray
    graph: Graph
    weight: float

    def __post_init__(self) -> None:
        self.Z, _ = _unit_columns(self.Z)

    def penalty(self, Z: np.ndarray) -> float:
        """Return the weighted sum of the Rayleigh quotients zᵀLz/zᵀz of the columns."""
        norms = np.sum(Z * Z, axis=0)
        return self.weight * float(np.sum(self.graph.smoothness(Z) / np.where(norms > 0, norms, 1)))

    def improve(self, cross: np.ndarray, gram: np.ndarray) -> np.ndarray:
        r"""Take one multiplicative step; return the norms taken out of the columns.

        The step decreases ``-2⟨cross, Z⟩ + ⟨gram, ZᵀZ⟩ + penalty(Z)`` or stays.
        """
        Z, penalty = self.Z, self.weight
        up = penalty * (self.graph.adjacency @ Z)
        up += np.maximum(cross, 0.0) + Z @ np.maximum(-gram, 0.0)
        down = penalty * self.graph.degrees[:, None] * Z
        down += np.maximum(-cross, 0.0) + Z @ np.maximum(gram, 0.0)
        target = Z * np.sqrt((up + TINY) / (down + TINY))

        def objective(candidate: np.ndarray) -> float:
            fit = np.vdot(gram, candidate.T @ candidate) - 2.0 * np.vdot(cross, candidate)
            return float(fit) + self.penalty(candidate)

        before = objective(Z)
        norms = np.ones(Z.shape[1])
        for halving in range(MAX_HALVINGS):
            share = 0.5**halving
            candidate = target if halving == 0 else Z + share * (target - Z)
            if objective(candidate) <= before:
                self.Z, norms = _unit_columns(candidate)
                break
        return norms


def cocluster(
    X: np.ndarray,
    memberships: np.ndarray,
    features: np.ndarray,
    sample_graph: Graph,
    feature_graph: Graph,
    *,
    sample_penalty: float,
    feature_penalty: float,
    max_iter: int,
    tol: float,
) -> Run:
    r"""Factorise a matrix along a graph of its rows and a graph of its columns.

    .. math::

        \min_{G, F \ge 0,\, S} \lVert X - G S F^\top \rVert^2
        + \mu \operatorname{tr}(G^\top L_G G) + \lambda \operatorname{tr}(F^\top L_F F),
        \qquad \lVert g_j \rVert = \lVert f_j \rVert = 1

    No step raises this objective.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The data, of ordinary size.
    memberships : ndarray of shape (n, c)
        The start of G, positive.
    features : ndarray of shape (d, m)
        The start of F, positive.
    sample_graph, feature_graph : Graph
        Graphs of the rows and of the columns.
    sample_penalty, feature_penalty : float
        The weights mu and lambda.
    max_iter : int
        The limit on the number of cycles.
    tol : float
        Stop when a cycle lowers the objective by less than this share of it.

    Returns
    -------
    run : Run
        With `core_` S of shape (c, m) and `feature_clusters_` F of shape (d, m).
    """
    left = _Side(memberships, sample_graph, sample_penalty)
    right = _Side(features, feature_graph, feature_penalty)
    total = float(np.vdot(X, X))
    products = X.T @ left.Z  # (d, c), the one product with X that the F and the S step share

    def fit(core: np.ndarray, middle: np.ndarray) -> float:
        G, F = left.Z, right.Z
        model = np.vdot((G.T @ G) @ core, core @ (F.T @ F))
        return max(0.0, float(total - 2.0 * np.vdot(middle, core) + model))

    middle = products.T @ right.Z
    core = _best_core(left.Z, right.Z, middle)
    trace = Trace(total)

    def record() -> float:
        residual = fit(core, middle)
        trace.add(residual + left.penalty(left.Z) + right.penalty(right.Z), residual)
        return trace.records[-1].cost

    cost = record()
    reason = StopReason.MAX_ITER
    for _ in range(max_iter):
        lifted = right.Z @ core.T  # (d, c)
        core = left.improve(X @ lifted, lifted.T @ lifted)[:, None] * core
        products = X.T @ left.Z
        core = core * right.improve(products @ core, core.T @ (left.Z.T @ left.Z) @ core)
        middle = products.T @ right.Z
        best = _best_core(left.Z, right.Z, middle)
        # With nearly dependent columns the closed form is inexact: keep the core that is better.
        if fit(best, middle) <= fit(core, middle):
            core = best
        previous, cost = cost, record()
        change = (previous - cost) / previous if previous > 0 else 0.0
        if change <= max(tol, ROUNDING):
            reason = StopReason.TOLERANCE
            break
    return Run(
        memberships=left.Z,
        cost=cost,
        n_iter=len(trace.records) - 1,
        stop_reason=reason,
        history=trace.records,
        fitted={"core_": core, "feature_clusters_": right.Z},
    )


def _best_core(G: np.ndarray, F: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """Solve for S: (GᵀG)⁻¹ GᵀXF (FᵀF)⁻¹, by pseudo-inverses for dependent columns."""
    left = np.linalg.pinv(G.T @ G, hermitian=True)
    return left @ middle @ np.linalg.pinv(F.T @ F, hermitian=True)


def _unit_columns(Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Divide each column by its norm; a column of zeros stays."""
    norms = np.linalg.norm(Z, axis=0)
    norms[norms == 0] = 1.0
    return Z / norms, norms
