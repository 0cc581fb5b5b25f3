"""Dual regularised co-clustering: samples and features are grouped at once, along two graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tuckermix._declaration import declare, ruled
from tuckermix._validation import check_integer, check_real, none_or, one_of
from tuckermix.baselines._base import IterativeClustering
from tuckermix.baselines._labels import KMEANS_STARTS, LABEL_RULES
from tuckermix.baselines._run import Run
from tuckermix.baselines.coclustering import Graph, cocluster, neighbor_graph
from tuckermix.baselines.nonnegative import scale_of
from tuckermix.numerics.points import kmeans

__all__ = ["DRCC", "penalty_grid"]

START_OFFSET = 0.2
"""Added to the 0/1 indicators of the start, as the authors do: a multiplicative rule cannot move
an entry away from zero."""

PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0)
"""The penalties among which the authors choose, both being equal."""

NEIGHBORS = range(1, 11)
"""The numbers of neighbours among which they choose."""


def penalty_grid() -> list[dict[str, Any]]:
    """List the settings among which the authors choose on each dataset.

    Returns
    -------
    settings : list of dict
        Parameters of `DRCC`: five penalties, ten numbers of neighbours.
    """
    return [
        {"sample_penalty": penalty, "feature_penalty": penalty, "n_neighbors": count}
        for penalty in PENALTIES
        for count in NEIGHBORS
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

    Attributes
    ----------
    memberships_ : array of shape (n_samples, n_clusters)
        The sample clusters G, nonnegative with columns of norm 1.
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
    cost_ : float
        The objective, for data divided by `data_scale_`.
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

    n_feature_clusters: int | None = ruled(None, none_or(check_integer))
    sample_penalty: float = ruled(1.0, check_real)
    feature_penalty: float = ruled(1.0, check_real)
    n_neighbors: int = ruled(5, check_integer)
    assign_labels: str = ruled("argmax", one_of(LABEL_RULES))
    max_iter: int = 200

    def _prepare(self, X: np.ndarray) -> tuple[np.ndarray, float, Graph, Graph]:
        flat = X.reshape(X.shape[0], -1)
        peak = scale_of(flat)  # squares of tiny or huge entries leave the range of floats
        flat = flat / peak
        size = float(np.sqrt(np.mean(np.sum(flat * flat, axis=1))))
        if size > 0:
            flat = flat / size
            peak *= size
        return (
            flat,
            peak,
            neighbor_graph(flat, self.n_neighbors),
            neighbor_graph(np.ascontiguousarray(flat.T), self.n_neighbors),
        )

    def _run(self, data: Any, rng: np.random.Generator) -> Run:
        X, scale, sample_graph, feature_graph = data
        wanted = self.n_clusters if self.n_feature_clusters is None else self.n_feature_clusters
        n_groups = min(wanted, X.shape[1])
        samples = kmeans(X, self.n_clusters, n_init=KMEANS_STARTS, rng=rng).labels
        features = kmeans(X.T, n_groups, n_init=KMEANS_STARTS, rng=rng).labels
        run = cocluster(
            X,
            _indicator(samples, self.n_clusters),
            _indicator(features, n_groups),
            sample_graph,
            feature_graph,
            sample_penalty=self.sample_penalty,
            feature_penalty=self.feature_penalty,
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


def _indicator(labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Turn labels into a 0/1 matrix, lifted off zero."""
    return np.eye(n_clusters)[labels] + START_OFFSET
