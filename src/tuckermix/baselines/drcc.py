"""Dual regularised co-clustering: samples and features are grouped at once, along two graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from tuckermix._estimators import declare
from tuckermix._records import Record, StopReason
from tuckermix._validation import Rules, check_integer, check_real, none_or, one_of
from tuckermix.baselines import _base
from tuckermix.baselines._base import IterativeClustering, Run, Trace
from tuckermix.baselines.nonnegative import TINY, scale_of
from tuckermix.numerics.points import nearest_neighbors

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
class Side:
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

    def improve(self, cross: np.ndarray, gram: np.ndarray, max_halvings: int = 30) -> np.ndarray:
        r"""Take one multiplicative step; return the norms taken out of the columns.

        The step decreases ``-2⟨cross, Z⟩ + ⟨gram, ZᵀZ⟩ + penalty(Z)`` or stays. It is halved
        while it does not: a billionth of a step is below the rounding of the objective.
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
        for halving in range(max_halvings):
            share = 0.5**halving
            candidate = target if halving == 0 else Z + share * (target - Z)
            if objective(candidate) <= before:
                self.Z, norms = _unit_columns(candidate)
                break
        return norms


def cocluster(X: np.ndarray, left: Side, right: Side, *, max_iter: int, tol: float) -> Run:
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
    left : Side
        The start of G, positive, of shape (n, c), with the graph of the rows and its weight mu.
    right : Side
        The start of F, positive, of shape (d, m), with the graph of the columns and lambda.
    max_iter : int
        The limit on the number of cycles.
    tol : float
        Stop when a cycle lowers the objective by less than this share of it.

    Returns
    -------
    run : Run
        With `core_` S of shape (c, m) and `feature_clusters_` F of shape (d, m).
    """
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
    return trace.run(left.Z, reason, fitted={"core_": core, "feature_clusters_": right.Z})


def _best_core(G: np.ndarray, F: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """Solve for S: (GᵀG)⁻¹ GᵀXF (FᵀF)⁻¹, by pseudo-inverses for dependent columns."""
    left = np.linalg.pinv(G.T @ G, hermitian=True)
    return left @ middle @ np.linalg.pinv(F.T @ F, hermitian=True)


def _unit_columns(Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Divide each column by its norm; a column of zeros stays."""
    norms = np.linalg.norm(Z, axis=0)
    norms[norms == 0] = 1.0
    return Z / norms, norms


def penalty_grid() -> list[dict[str, Any]]:
    """List the settings among which the authors choose on each dataset.

    Returns
    -------
    settings : list of dict
        Parameters of `DRCC`: five penalties, ten numbers of neighbours.
    """
    return [
        {"sample_penalty": penalty, "feature_penalty": penalty, "n_neighbors": count}
        for penalty in (0.1, 1.0, 10.0, 100.0, 1000.0)
        for count in range(1, 11)
    ]


@declare
class DRCC(IterativeClustering):
    r"""Dual regularised co-clustering (Gu and Zhou).

    Samples and features are clustered at once by a semi-nonnegative factorisation in three parts,
    which is pulled towards assignments that vary little along two neighbour graphs:

    .. math::

        \min_{G, F \ge 0,\, S}\ \lVert X - G S F^\top \rVert_F^2
        + \mu \operatorname{tr}(G^\top L_G G) + \lambda \operatorname{tr}(F^\top L_F F)

    with the samples as rows of X, the sample clusters G, the feature clusters F, a core S of any
    sign and the graph Laplacians :math:`L_G` of samples and :math:`L_F` of features. A cycle is,
    with :math:`A = X F S^\top` and :math:`B = S F^\top F S^\top`,

    .. math::

        G \leftarrow G \odot \sqrt{\frac{\mu W_G G + A^+ + G B^-}{\mu D_G G + A^- + G B^+}}, \qquad
        S \leftarrow (G^\top G)^{-1} G^\top X F (F^\top F)^{-1}

    where :math:`L_G = D_G - W_G` and plus and minus denote positive and negative parts; F alike.
    Samples of any sign and shape are taken, and flattened.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters, and of components where the model has any.
    n_feature_clusters : int, default=None
        The number of clusters of features; None means `n_clusters`. More clusters than features
        are cut to the number of features.
    sample_penalty : float, default=1.0
        The weight mu of the sample graph.
    feature_penalty : float, default=1.0
        The weight lambda of the feature graph.
    n_neighbors : int, default=5
        Neighbours in both graphs. Weights are 0 and 1.
    assign_labels : {"argmax", "kmeans"}, default="argmax"
        How labels follow from the memberships: the largest weight of each sample, since G stands
        for a 0/1 indicator, or k-means on the rows.
    max_iter : int, default=200
        The limit on the number of cycles. To reach it is no failure: multiplicative rules converge
        slowly, the authors run a fixed number of cycles, and the clusters do not gain from more.
    tol : float, default=1e-5
        Stop when a cycle lowers the objective by less than this share of it.
    n_init : int, default=1
        The number of starts; the run of least cost is kept.
    random_state : None, int, Generator or RandomState, default=None
        Source of randomness for the starts and for k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each sample; every label occurs.
    memberships_ : array of shape (n_samples, n_clusters)
        The sample clusters G, nonnegative with columns of norm 1.
    cost_ : float
        The objective, for data divided by `data_scale_`.
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
    core_ : array of shape (n_clusters, n_feature_clusters)
        The core S, in units of the data.
    feature_clusters_ : array of shape (n_feature_clusters, d_1, ...)
        The feature clusters F, nonnegative, each of norm 1 and in the shape of a sample.
    feature_labels_ : array of shape (d_1, ...)
        The cluster with the largest weight of each feature.
    components_ : array of shape (n_clusters, d_1, ...)
        What a sample with one unit of membership looks like, in units of the data.
    membership_centers_ : array of shape (n_clusters, n_clusters)
        The mean memberships of each cluster.
    data_scale_ : float
        The root mean square norm of a sample, by which the data are divided before all else.

    Notes
    -----
    The start is k-means on samples and on features, as 0/1 indicators plus 0.2, and columns are
    kept at norm 1 with their scale moved into S, both as in the authors' own program; without the
    latter the penalties could be evaded by shrinking G and F. What differs from it:

    - A step that would raise the objective, evaluated at columns of norm 1, is halved. Dividing by
      the norms after a step that ignores them could do so; on images it was never seen to.
    - The data are divided by one number, the root mean square norm of a sample, so that the same
      penalties suit data of any unit. Samples are not normalised one by one: the length of a sample
      is part of the data.
    - The authors search penalties and neighbours on each dataset by the score, that is, with the
      true classes in hand. Here one setting serves all data; `penalty_grid` has theirs.

    References
    ----------
    Gu and Zhou (2009), Co-clustering on manifolds, KDD.

    Examples
    --------
    >>> from tuckermix import baselines, datasets
    >>> X = datasets.make_tensor_clusters(60, (6, 5), 3, random_state=0).X
    >>> baselines.DRCC(3, random_state=0).fit(X).feature_clusters_.shape
    (3, 6, 5)
    """

    n_feature_clusters: int | None = None
    sample_penalty: float = 1.0
    feature_penalty: float = 1.0
    n_neighbors: int = 5
    assign_labels: str = "argmax"
    max_iter: int = 200

    _rules: ClassVar[Rules] = {
        "n_feature_clusters": none_or(check_integer),
        "sample_penalty": check_real,
        "feature_penalty": check_real,
        "n_neighbors": check_integer,
        "assign_labels": one_of(_base.LABEL_RULES),
    }

    def _prepare(self, X: np.ndarray) -> tuple[Any, ...]:
        flat = X.reshape(X.shape[0], -1)
        peak = scale_of(flat)  # squares of tiny or huge entries leave the range of floats
        flat = flat / peak
        size = float(np.sqrt(np.mean(np.sum(flat * flat, axis=1)))) or 1.0
        flat = flat / size
        sides = (flat, np.ascontiguousarray(flat.T))
        return flat, peak * size, *(neighbor_graph(rows, self.n_neighbors) for rows in sides)

    def _run(self, data: Any, rng: np.random.Generator) -> Run:
        X, scale, sample_graph, feature_graph = data
        wanted = self.n_clusters if self.n_feature_clusters is None else self.n_feature_clusters
        n_groups = min(wanted, X.shape[1])
        samples = _base.lifted_start(X, self.n_clusters, rng)
        features = _base.lifted_start(X.T, n_groups, rng)
        run = cocluster(
            X,
            Side(samples, sample_graph, self.sample_penalty),
            Side(features, feature_graph, self.feature_penalty),
            max_iter=self.max_iter,
            tol=self.tol,
        )
        core, F = run.fitted["core_"] * scale, run.fitted["feature_clusters_"].T
        shape = self.sample_shape_
        run.fitted = {
            "core_": core,
            "feature_clusters_": F.reshape(n_groups, *shape),
            "feature_labels_": np.argmax(F, axis=0).reshape(shape),
            "components_": (core @ F).reshape(self.n_clusters, *shape),
            "data_scale_": scale,
        }
        return run
