"""One partition from several views: their neighbour graphs are added, and so are their votes."""

from __future__ import annotations

import math
from dataclasses import field
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, clone

from tuckermix._array_api import (
    Array,
    asarray_like,
    device,
    epsilon,
    get_namespace,
    is_dask,
    to_numpy,
)
from tuckermix._estimators import all_or_nothing, declare
from tuckermix._threads import on_samples, one_blas_thread
from tuckermix._validation import (
    check_integer,
    check_pairs,
    check_random_state,
    check_same_library,
    check_stored,
    check_tensor,
)
from tuckermix.clustering import TuckerClustering, most_landmarks
from tuckermix.features.registry import first_steps, last_step
from tuckermix.labels import VoteLabels
from tuckermix.labels.calibration import learn_agreement
from tuckermix.labels.graph import distinct_rows, graph_partition
from tuckermix.labels.labellers import (
    calibrated,
    check_knots,
    first_voter,
    relative_votes,
    voting_labeller,
)
from tuckermix.labels.outliers import check_outliers, fade, threshold_at
from tuckermix.labels.tree import Tree, TreeMixin, grow_tree, labels_of
from tuckermix.numerics.points import nearest_neighbors
from tuckermix.selection.shared import Features
from tuckermix.sources import as_blocks


@declare
class MultiViewClustering(TreeMixin, ClusterMixin, BaseEstimator):
    r"""Cluster samples by the sum of the neighbour graphs of several views.

    .. math:: A = \sum_v A_v, \qquad p_k(x) = \frac1V \sum_v p_k^{(v)}(x)

    with :math:`A_v` the graph of nearest neighbours in view v, which is cut once for all views, and
    :math:`p^{(v)}` the share of votes of the nearest landmarks in that view. The views share the
    landmarks and their labels.

    Parameters
    ----------
    views : list of (str, estimator) or None, default=None
        Names, and estimators that place samples: `TuckerClustering` that labels by the graph, or
        scikit-learn pipelines that end in one. They are cloned. None stands for one view, the
        samples themselves.
    n_clusters : int, default=8
        The number of clusters; that of the views is not used.
    calibrate : bool, default=False
        Whether `predict_proba` gives probabilities that an independent fit agrees, learned from
        halves of the samples as in `TuckerClustering`, and not votes.
    outliers : {"keep", "label"}, default="keep"
        Whether samples that fit none of the clusters get the label of the nearest one, or the label
        -1; what the views themselves are told of that is not used.
    false_alarms : float, default=0.05
        For ``outliers="label"``, the share of ordinary samples that may get the label -1.
    n_init : int, default=10
        Starts of k-means.
    random_state : None, int or RandomState, default=None
        Set an int for results that repeat.
    n_jobs : int or None, default=None
        How many threads work on blocks of samples, see `TuckerClustering`.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each sample, largest first; the same as ``predict(X)``.
    cluster_names_ : dict of int to str
        The names that people gave to clusters, see :doc:`/report`; empty after a fit.
    estimators_ : list of (str, estimator)
        The fitted views.
    centroids_ : array of shape (n_clusters, d_1, ...)
        The mean of the samples of each cluster.
    sample_shape_ : tuple of int
        The shape of a sample.
    n_features_in_ : int
        ``X.shape[1]``, as scikit-learn sets it.

    See Also
    --------
    AutoClustering : Chooses among views and sums of them.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from tuckermix import MultiViewClustering, TuckerClustering
    >>> from tuckermix.datasets import make_tensor_clusters
    >>> from tuckermix.features import Scattering
    >>> data = make_tensor_clusters(shape=(16, 16), n_clusters=3, random_state=0)
    >>> strokes = make_pipeline(Scattering(J=2), TuckerClustering())
    >>> views = [("pixels", TuckerClustering()), ("strokes", strokes)]
    >>> model = MultiViewClustering(views, n_clusters=3, random_state=0).fit(data.X)
    >>> sorted(set(model.labels_.tolist()))
    [0, 1, 2]
    """

    views: Any = field(default=None, kw_only=False)
    n_clusters: int = field(default=8, kw_only=False)
    calibrate: bool = False
    outliers: str = "keep"
    false_alarms: float = 0.05
    n_init: int = 10
    random_state: Any = None
    n_jobs: int | None = None

    @one_blas_thread
    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> MultiViewClustering:
        """Fit the views, add their graphs and label the samples.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            The samples.
        y : Ignored
            Present for scikit-learn's sake.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X)

    def _fit(self, X: Any, features: Features | None = None) -> MultiViewClustering:
        """Fit; `features` are those of the same samples, where some are known."""
        self.check_params()
        rng = check_random_state(self.random_state)
        X = check_tensor(self, X, reset=True, lazy=True)
        samples = as_blocks(X)
        if samples.n_samples < self.n_clusters:
            raise ValueError(
                f"n_samples={samples.n_samples} must be >= n_clusters={self.n_clusters}."
            )
        features = Features(X) if features is None else features
        seed = int(rng.integers(2**31))
        # Features are the larger part of the work: one look at those of a view is all there is.
        self.estimators_, every, scores = [], [], []
        for name, given in self._given():
            view = clone(given)
            final = last_step(view)
            own = {"n_clusters": self.n_clusters, "random_state": seed}
            final.set_params(**own, outliers="keep", calibrate=False)
            seen = features.fit_transform(first_steps(view))
            final.fit(seen)
            every.append(final.place(seen))
            if self.outliers == "label":
                scores.append(final.outlier_scores(seen))
            self.estimators_.append((name, view))
        places = every
        if samples.n_samples > (most := most_landmarks(X)):
            some = rng.choice(samples.n_samples, most, replace=False, shuffle=False)
            places = [as_blocks(Z).take(np.sort(some)) for Z in every]
        elif samples.lazy:
            some = np.arange(samples.n_samples)
            places = [as_blocks(Z).take(some) for Z in every]
        widths = [last_step(view).labelling.graph.n_neighbors for _, view in self.estimators_]
        self._voters_ = _learn(places, widths, self.n_clusters, self.n_init, rng)
        for left in ("_threshold_", "_knots_"):  # of an earlier fit
            self.__dict__.pop(left, None)
        if self.calibrate:
            self._knots_ = self._agreement(places, widths, rng)
        score = sum(scores) / len(scores) if scores else None
        if score is not None:
            held = as_blocks(score).take(np.sort(some)) if places is not every else score
            self._threshold_ = threshold_at(to_numpy(held), self.false_alarms)
        labels, self._nearest_ = self._assign(every, score)
        held = to_numpy(labels)
        sizes = np.bincount(held[held >= 0], minlength=self.n_clusters)
        first = np.array([np.argmax(held == name) for name in range(self.n_clusters)])
        order = np.lexsort((first, -sizes))
        if np.any(order[1:] < order[:-1]):
            self._voters_ = [voter.renumbered(order) for voter in self._voters_]
            labels, self._nearest_ = self._assign(every, score)
        self.labels_, self._tree_ = labels, None
        self.cluster_names_: dict[int, str] = {}
        self.centroids_ = cluster_means(X, labels, self.n_clusters)
        return self

    @on_samples
    def predict(self, X: Any, n_clusters: int | None = None) -> Array:
        """Give each sample the label for which its neighbours in all views vote most.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            Samples of the shape on which the model was fitted.
        n_clusters : int or None, default=None
            The level of `tree_` whose labels are given; None means that of `labels_`.

        Returns
        -------
        labels : array of shape (n_samples,)
            Labels from 0 to ``n_clusters - 1``; -1 for outliers with ``outliers="label"``.
        """
        X = Features(self._samples(X, "predict"))
        labelled = hasattr(self, "_threshold_")
        scores = self._scores(X) if labelled else None
        labels, nearest = self._assign(self._places(X), scores)
        if n_clusters is None or n_clusters == self.n_clusters:
            return labels
        return labels_of(nearest, self.tree_.of_landmarks(n_clusters))

    def _grow(self) -> Tree:
        """Grow the tree through the fitted labels, see `TreeMixin`."""
        widths = [last_step(view).labelling.graph.n_neighbors for _, view in self.estimators_]
        assign = partial(_assign, voters=self._voters_, threshold=None)
        nearest = self._nearest_landmarks(self._voters_, lambda *landmarks: assign(*landmarks).T)
        return grow_tree(self._voters_, widths, nearest)

    @on_samples
    def predict_proba(self, X: Any) -> Array:
        """Give soft labels: the mean over the views of the shares of votes, or what it is worth.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            Samples of the shape on which the model was fitted.

        Returns
        -------
        probabilities : array of shape (n_samples, n_clusters)
            Rows that sum to one; the label is the position of the largest entry.
        """
        X = Features(self._samples(X, "predict_proba"))
        return self._proba(self._places(X), X)

    @on_samples
    def outlier_scores(self, X: Any) -> Array:
        """Say how unlike the fitted samples others are: the mean of the scores of the views.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            Samples of the shape on which the model was fitted.

        Returns
        -------
        scores : array of shape (n_samples,)
            Larger for samples that fit less, see `TuckerClustering.outlier_scores`.
        """
        return self._scores(Features(self._samples(X, "outlier_scores")))

    def _proba(self, places: list[Array], X: Features) -> Array:
        """Return the soft labels of samples that the views have placed."""
        shares = self._votes(places)
        if hasattr(self, "_knots_"):
            shares = as_blocks(shares).map(self._calibrated)
        if not hasattr(self, "_threshold_"):
            return shares
        return fade(shares, self._scores(X), self._threshold_)

    def _samples(self, X: Any, method: str) -> Array:
        """Validate new samples, which must be of the library of the fitted ones."""
        X = check_tensor(self, X, reset=False, lazy=True)
        check_same_library(X, self.centroids_, f"{type(self).__name__}.{method}()")
        return X

    def _assign(self, places: list[Array], scores: Array | None) -> tuple[Array, Array]:
        """Return labels and the nearest landmarks of these labels, -1 for outliers."""
        threshold = None if scores is None else self._threshold_
        assign = partial(_assign, voters=self._voters_, threshold=threshold)
        others = places[1:] if scores is None else [*places[1:], scores]
        pairs = as_blocks(places[0]).map(assign, *others)
        return pairs[:, 0], pairs[:, 1]

    def _calibrated(self, votes: Array) -> Array:
        """Turn votes into probabilities."""
        scores = relative_votes(votes, _attainable(self._voters_))
        return calibrated(votes, scores, self._knots_)

    def _scores(self, X: Features) -> Array:
        """Return the mean over the views of the outlier scores."""
        views = [view for _, view in self.estimators_]
        scores = (last_step(view).outlier_scores(X.transform(first_steps(view))) for view in views)
        return sum(scores) / len(views)

    def _places(self, X: Features) -> list[Array]:
        """Return where the views place samples."""
        return [
            last_step(view).place(X.transform(first_steps(view))) for _, view in self.estimators_
        ]

    def _votes(self, places: list[Array]) -> Array:
        """Return the mean over the views of the shares of votes."""
        pairs = zip(places, self._voters_, strict=True)
        return sum(as_blocks(Z).map(voter.predict_proba) for Z, voter in pairs) / len(places)

    def check_params(self) -> None:
        """Raise where a parameter is none that `fit` takes, before any data are read."""
        name = type(self).__name__
        check_integer(self.n_clusters, "n_clusters", name)
        check_integer(self.n_init, "n_init", name)
        check_outliers(self.outliers, self.false_alarms, name)
        for label, view in self._given():
            final = last_step(view)
            if not isinstance(final, TuckerClustering) or final.labelling.name != "graph":
                raise ValueError(
                    f"The view {label!r} of {name} must be a TuckerClustering with "
                    "assign_labels='graph', or a pipeline that ends in one. "
                    f"Got {type(final).__name__} instead."
                )

    def _given(self) -> list[tuple[str, Any]]:
        """Return the views as a list, or raise if they are not valid."""
        if self.views is None:
            return [("samples", TuckerClustering())]
        return check_pairs(self.views, "views", "MultiViewClustering")

    def _agreement(
        self, places: list[Array], widths: list[int], rng: np.random.Generator
    ) -> np.ndarray:
        """Learn from halves of the landmarks what votes are worth."""
        xp = get_namespace(places[0])

        def fit_part(indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            some = asarray_like(indices, places[0], dtype=xp.int64)
            parts = [xp.take(Z, some, axis=0) for Z in places]
            voters = _learn(parts, widths, self.n_clusters, self.n_init, rng)
            votes: Any = 0.0
            for voter, Z in zip(voters, places, strict=True):
                votes = votes + to_numpy(voter.votes_of_others(Z)) / len(voters)
            return votes.argmax(axis=1), relative_votes(votes, _attainable(voters))

        held = np.mean([voter.scores_of_landmarks() for voter in self._voters_], axis=0)
        return learn_agreement(fit_part, int(places[0].shape[0]), self.n_clusters, rng, held)

    def _check_state(self) -> None:
        """Raise where fitted attributes, which a file may have made up, do not fit together."""
        self.check_params()
        fitted = getattr(self, "estimators_", None)
        voters = getattr(self, "_voters_", None)
        if not isinstance(fitted, list) or not isinstance(voters, list) or not fitted:
            raise ValueError("its views are none")
        if len(fitted) != len(voters) or not all(isinstance(v, VoteLabels) for v in voters):
            raise ValueError("its views and voters do not fit together")
        shape = getattr(self, "sample_shape_", None)
        if not isinstance(shape, tuple) or self.n_features_in_ != shape[0]:
            raise ValueError(f"sample_shape_ is {shape!r}")
        for (_, view), voter in zip(fitted, voters, strict=True):
            model = last_step(view)
            first = first_steps(view)
            if tuple((model if first is None else first[0]).sample_shape_) != shape:
                raise ValueError("its views take samples of another shape")
            voter.check(int(model._model_.view.shape[1]) + 1, self.n_clusters)
        labels = check_stored(self.labels_, "labels_", (None,), kind="i")
        if labels.min() < -1 or labels.max() >= self.n_clusters:
            raise ValueError(f"labels_ must lie between -1 and {self.n_clusters - 1}")
        if hasattr(self, "_knots_"):
            check_knots(self._knots_)
        threshold = getattr(self, "_threshold_", 0.0)
        if type(threshold) is not float or not math.isfinite(threshold):
            raise ValueError(f"its threshold is {threshold!r}")
        check_stored(self.centroids_, "centroids_", (self.n_clusters, *shape))
        self._check_tree(voters)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.array_api_support = True
        return tags


def _assign(*rows: Array, voters: list[VoteLabels], threshold: float | None) -> Array:
    """Return labels and nearest landmarks of a block, of shape (n_samples, 2)."""
    places = rows if threshold is None else rows[:-1]
    xp = get_namespace(*places)
    found = [voter.find_voters(Z) for voter, Z in zip(voters, places, strict=True)]
    shares = [voter.count_votes(each) for voter, each in zip(voters, found, strict=True)]
    labels = xp.argmax(sum(shares) / len(shares), axis=1)
    nearest = first_voter(found, labels, voters[0].landmark_labels)
    pairs = xp.stack([labels, nearest], axis=1)
    return pairs if threshold is None else xp.where((rows[-1] > threshold)[:, None], -1, pairs)


def _attainable(voters: list[VoteLabels]) -> np.ndarray:
    """Return the largest mean vote that each cluster can get."""
    return np.mean([voter.attainable() for voter in voters], axis=0)


def _learn(
    places: list[Array], widths: list[int], n_clusters: int, n_init: int, rng: np.random.Generator
) -> list[VoteLabels]:
    """Cut the sum of the graphs of all views, and let the landmarks vote in each."""
    xp = get_namespace(places[0])
    # Copies are the same samples in every view; those of the first view are left out of all.
    while True:
        size = int(places[0].shape[0])
        lists = [
            nearest_neighbors(Z, Z, min(width, size - 1), exclude_self=True)
            for Z, width in zip(places, widths, strict=True)
        ]
        indices, squares = lists[0]
        first, _ = distinct_rows(to_numpy(indices), to_numpy(squares), epsilon(places[0]))
        if len(first) == size:
            break
        places = [xp.take(Z, asarray_like(first, Z, dtype=xp.int64), axis=0) for Z in places]
    labels = graph_partition(places, lists, n_clusters, n_init=n_init, rng=rng)
    voters = [
        voting_labeller(Z, labels, indices, n_clusters)[0]
        for Z, (indices, _) in zip(places, lists, strict=True)
    ]
    # Added votes must leave no cluster without a landmark; a single vote in each view does.
    wanted = len(np.unique(labels))
    while max(voter.n_neighbors for voter in voters) > 1:
        total = sum(voter.predict_proba(Z) for voter, Z in zip(voters, places, strict=True))
        if len(np.unique(to_numpy(xp.argmax(total, axis=1)))) == wanted:
            break
        voters = [
            VoteLabels(v.landmarks, v.landmark_labels, n_clusters, max(1, v.n_neighbors // 2))
            for v in voters
        ]
    return voters


def cluster_means(X: Array, labels: Array, n_clusters: int) -> Array:
    """Return the mean sample of each cluster; that of all where a cluster is empty.

    Parameters
    ----------
    X : array of shape (n_samples, d_1, ...)
        The samples.
    labels : array of shape (n_samples,)
        Their clusters.
    n_clusters : int
        The number of clusters.

    Returns
    -------
    means : array of shape (n_clusters, d_1, ...)
        In the type of the samples.
    """
    samples = as_blocks(X)
    held = np.asarray(labels) if is_dask(labels) else labels
    sums, counts = samples.reduce(_Sums(n_clusters), lambda a, b: (a[0] + b[0], a[1] + b[1]), held)
    xp = get_namespace(sums)
    overall = xp.sum(sums, axis=0, keepdims=True) / float(xp.sum(counts))
    shape = (n_clusters,) + (1,) * (sums.ndim - 1)
    counts = xp.reshape(counts, shape)
    means = xp.where(counts > 0, sums / xp.clip(counts, 1.0, None), overall)
    return asarray_like(means, samples.like)


class _Sums:
    """Sum the samples of a block by cluster; a class, so that workers elsewhere can have it."""

    def __init__(self, n_clusters: int):
        self.n_clusters = n_clusters

    def __call__(self, block: Array, labels: Array) -> tuple[Array, Array]:
        xp = get_namespace(block)
        labels = asarray_like(labels, block, dtype=xp.int64)
        names = xp.arange(self.n_clusters, dtype=xp.int64, device=device(block))
        one_hot = xp.astype(labels[:, None] == names, xp.float64)
        flat = xp.reshape(xp.astype(block, xp.float64), (block.shape[0], -1))
        sums = xp.matmul(one_hot.T, flat)
        return (
            xp.reshape(sums, (self.n_clusters, *block.shape[1:])),
            xp.sum(one_hot, axis=0),
        )
