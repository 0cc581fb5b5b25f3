"""The estimator that chooses the view and the number of clusters, and then acts as the chosen."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import field
from hashlib import sha256
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tuckermix._array_api import Array, blocks, to_numpy
from tuckermix._estimators import CallbackSupportMixin, all_or_nothing, declare, with_callbacks
from tuckermix._threads import on_samples, one_blas_thread
from tuckermix._validation import (
    check_integer,
    check_option,
    check_pairs,
    check_random_state,
    check_same_library,
    check_stored,
    check_tensor,
    too_few,
)
from tuckermix.clustering import TuckerClustering
from tuckermix.features import Network
from tuckermix.features.registry import BUILT_IN, first_steps, last_step, require_network
from tuckermix.labels.outliers import check_outliers
from tuckermix.labels.tree import Tree, TreeMixin
from tuckermix.selection.candidates import (
    ALL,
    AUTO,
    FEATURES,
    NETWORK,
    built_in_candidates,
    has_norms,
    is_image,
    is_narrow,
    is_noisy,
    is_video,
)
from tuckermix.selection.multiview import MultiViewClustering, cluster_means
from tuckermix.selection.record import Selection
from tuckermix.selection.resampling import Recall, Resampler, set_clusters
from tuckermix.selection.search import Progress, at_the_end, choose
from tuckermix.selection.shared import EMBEDDINGS, Embedded, Features
from tuckermix.selection.views import looks_of
from tuckermix.sources import as_blocks

LOGGER = logging.getLogger(__name__)

PART = 1500
"""Beyond this many samples the choice is made on a random part of them: its time grows with the
square, and views and numbers of clusters already differ by less than what they leave open."""

SPARED = 1.2
"""A part is taken of samples that are more than it by this factor: another part of the same samples
may change the answer, and all of them take little longer."""


Decide = Callable[[Recall | None], tuple[Selection, int]]
Remember = Callable[[Decide], tuple[Selection, int]]
"""Is given the function that makes the choice, and returns what was chosen, with a seed."""


def _as_chosen(decide: Decide) -> tuple[Selection, int]:
    """Remember nothing."""
    return decide(None)


def _flatten(X: Any) -> Any:
    """Make rows of samples, for estimators that know no others."""
    return X.reshape((X.shape[0], -1))


def _chosen_has(name: str, *, before_fit: bool = True) -> Any:
    """Make a test of whether the chosen estimator has a method, and what holds before there is one.

    Before a fit nobody knows, and scikit-learn takes what has `transform` for a transformer.
    """

    def check(self: AutoClustering) -> bool:
        if "best_estimator_" not in vars(self):
            return before_fit
        return hasattr(self.best_estimator_, name)

    return check


@declare
class AutoClustering(CallbackSupportMixin, ClusterMixin, BaseEstimator):
    r"""Choose the view of the samples and the number of clusters, without labels.

    For each number of clusters K the view is taken whose labels are most stable,

    .. math:: s_v(K) = \frac1R \sum_r \mathrm{ARI}\bigl(\ell_v(K)|_{S_r},\ \ell_v(K; S_r)\bigr) ,

    the mean agreement between labels from all samples and labels from 80 % of them. Among the views
    of images stability counts times :math:`q^{4 (1 - 2/K)}`, where q is the modularity of the
    labels on the graph of the eight nearest neighbours in the view. Then the K is taken with the
    largest :math:`s(K)\, q(K) / \sqrt{1 - 1/K}`, stability times modularity over the root of the
    largest modularity possible, or the smallest of those that differ by less than 0.01. The chosen
    view is fitted to all samples.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        The number of clusters; "auto" searches from 2 to a quarter of the samples
        that the choice is made on, and of more of them where the answer is at the end. It is 1
        where nothing is clustered.
    features : {"auto", "pixels", "scattering", "network", "all"}, default="auto"
        Which views are compared. "pixels": the samples themselves in two weightings and, for
        images, at norm 1 with few neighbours. "scattering": the scattering transform, its
        logarithm and its relative coefficients. "auto": both, and sums of the graphs of two of
        them. "network": layers of a network that was trained on photographs, which needs
        ``tuckermix[photos]``, see `tuckermix.features.Network`. "all": all of these. Of videos and
        volumes "scattering" and "auto" compare the texture of their frames, see
        `tuckermix.features.Texture`. Samples that are no images, videos or volumes of at least 16 ×
        16 have views of themselves only; tables, volumes and videos without negative entries are
        compared at norm 1 too.
    network : str, path or torch.nn.Module, default="efficientnet-lite0"
        The network for "network" and "all": any that `tuckermix.features.Network` takes.
    candidates : list of (str, estimator) or None, default=None
        Views of your own in place of those: clusterers with `n_clusters` and `fit_predict`. They
        are cloned. `TuckerClustering`, pipelines that end in it and `MultiViewClustering` are
        resampled by their label step alone; others are fitted to each subsample, and stability
        alone then ranks all of them.
    max_samples : int, default=1500
        The choice is made on a random part of this size where there are more samples than 1.2
        times as many.
    calibrate : bool, default=False
        Whether `predict_proba` gives probabilities that an independent fit agrees, and not votes,
        see `TuckerClustering`. Candidates of your own must have the parameter.
    outliers : {"keep", "label"}, default="keep"
        Whether samples that fit none of the clusters get the label of the nearest one, or the label
        -1. The chosen estimator is told so; candidates of your own must have the parameter.
    false_alarms : float, default=0.05
        For ``outliers="label"``, the share of ordinary samples that may get the label -1.
    random_state : None, int or RandomState, default=None
        Set an int for results that repeat.
    n_jobs : int or None, default=None
        How many threads work on blocks of samples, see `TuckerClustering`.

    Attributes
    ----------
    best_estimator_ : estimator
        The chosen candidate, fitted to all samples; it takes samples as `fit` does.
    labels_ : array of shape (n_samples,)
        The cluster of each sample; -1 for outliers where these are labelled.
    cluster_names_ : dict of int to str
        The names that people gave to clusters, see :doc:`/report`; empty after a fit.
    n_clusters_ : int
        The number of clusters.
    selection_ : Selection
        What was compared: number, view, stability, modularity and score; the next best number and
        how sure the choice is; coarser and finer numbers; whether good partitions nest.
    sample_shape_ : tuple of int
        The shape of a sample.
    n_features_in_ : int
        ``X.shape[1]``, as scikit-learn sets it.

    See Also
    --------
    tuckermix.TuckerClustering : One fixed view, for a number of clusters that is known.

    Notes
    -----
    There is one cluster where the best number scores no more than it would in one normal cloud
    with the same directions: of clouds and white noise, about one in twenty is taken for
    clusters. Stability says that a partition comes back, not that it is the one you had in mind;
    look at `selection_` for others that are nearly as good.

    Examples
    --------
    >>> from tuckermix import AutoClustering
    >>> from tuckermix.datasets import make_tensor_clusters
    >>> data = make_tensor_clusters(n_clusters=4, random_state=0)
    >>> model = AutoClustering(random_state=0).fit(data.X)
    >>> model.n_clusters_
    4
    """

    n_clusters: Any = field(default=AUTO, kw_only=False)
    features: str = AUTO
    network: Any = BUILT_IN
    candidates: Any = None
    max_samples: int = PART
    calibrate: bool = False
    outliers: str = "keep"
    false_alarms: float = 0.05
    random_state: Any = None
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any = None, *, embeddings: Any = None) -> AutoClustering:
        """Choose the view and the number of clusters, and fit.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            The samples.
        y : Ignored
            Present for scikit-learn's sake.
        embeddings : array of shape (n_samples, e_1, ...) or None, default=None
            Vectors or maps of the samples that were computed elsewhere: one more view, named
            "embeddings". If it is chosen, new samples need embeddings too. See
            `tuckermix.datasets.read_embeddings`.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X, None if embeddings is None else Features(X, embeddings))

    @one_blas_thread
    @with_callbacks
    @all_or_nothing
    def _fit(
        self, X: Any, features: Features | None = None, remember: Remember = _as_chosen
    ) -> AutoClustering:
        """Fit; `features` are those of the same samples, `remember` may know the choice already."""
        self.check_params()
        X = check_tensor(self, X, reset=True, lazy=True)
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self, X=X)

        def progress(share: float, doing: str) -> None:
            _log(share, doing)
            task = context.subcontext(task_name=doing)
            task.call_on_fit_task_begin(estimator=self, X=X)
            task.call_on_fit_task_end(estimator=self, X=X)

        features = Features(X) if features is None else features
        features.check_embeddings(type(self).__name__)
        best, self.selection_ = self._choose(X, progress, features, remember)
        progress(0.97, f"fitting {self.selection_.view}")
        self.n_clusters_ = self.selection_.n_clusters
        self.cluster_names_: dict[int, str] = {}
        self.best_estimator_ = fit_with(best, X, features)
        final = last_step(best)
        ours = isinstance(final, TuckerClustering | MultiViewClustering)
        if ours or not hasattr(best, "predict"):
            self.labels_ = final.labels_
        else:
            self.labels_ = best.predict(X)
        own = hasattr(best, "centroids_")  # a pipeline has none, and its last step has features
        self._means_ = None if own else cluster_means(X, self.labels_, self.n_clusters_)
        if self.selection_.view == EMBEDDINGS:
            self.best_estimator_ = final
        context.call_on_fit_task_end(estimator=self, X=X)
        return self

    @available_if(_chosen_has("predict"))
    @one_blas_thread
    def predict(self, X: Any, n_clusters: int | None = None, *, embeddings: Any = None) -> Array:
        """Give samples the labels of the chosen estimator.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            Samples of the shape on which the model was fitted.
        n_clusters : int or None, default=None
            The level of `tree_` whose labels are given; None means that of `labels_`.
        embeddings : array of shape (n_samples, e_1, ...) or None, default=None
            Embeddings of `X`, where `fit` chose these.

        Returns
        -------
        labels : array of shape (n_samples,)
            Labels from 0 to ``n_clusters - 1``; -1 for outliers with ``outliers="label"``.
        """
        X = self._samples(X, "predict", embeddings)
        if n_clusters is None or n_clusters == self.n_clusters_:
            return self.best_estimator_.predict(X)
        return self.best_estimator_.predict(X, n_clusters=n_clusters)

    @available_if(lambda self: hasattr(last_step(self._fitted()), "labels_at"))
    def labels_at(self, n_clusters: int) -> Array:
        """Return the labels of the fitted samples at another level of the tree.

        Parameters
        ----------
        n_clusters : int
            The number of clusters, from 1 to ``tree_.n_leaves``.

        Returns
        -------
        labels : array of shape (n_samples,)
            See `TuckerClustering.labels_at`.
        """
        return last_step(self.best_estimator_).labels_at(n_clusters)

    @property
    def tree_(self) -> Tree:
        """The tree of partitions that passes through `labels_`; see :doc:`/tree`."""
        return last_step(self._fitted()).tree_

    report = TreeMixin.report

    @available_if(_chosen_has("predict_proba"))
    @one_blas_thread
    def predict_proba(self, X: Any, *, embeddings: Any = None) -> Array:
        """Give the soft labels of the chosen estimator.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            Samples of the shape on which the model was fitted.
        embeddings : array of shape (n_samples, e_1, ...) or None, default=None
            Embeddings of `X`, where `fit` chose these.

        Returns
        -------
        probabilities : array of shape (n_samples, n_clusters)
            Rows that sum to one; the label is the position of the largest entry.
        """
        X = self._samples(X, "predict_proba", embeddings)
        return self.best_estimator_.predict_proba(X)

    @available_if(_chosen_has("transform", before_fit=False))
    @one_blas_thread
    def transform(self, X: Any, *, embeddings: Any = None) -> Array:
        """Give the mixing weights of samples in the chosen estimator.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            Samples of the shape on which the model was fitted.
        embeddings : array of shape (n_samples, e_1, ...) or None, default=None
            Embeddings of `X`, where `fit` chose these.

        Returns
        -------
        memberships : array of shape (n_samples, n_components)
            Nonnegative rows that sum to one.
        """
        X = self._samples(X, "transform", embeddings)
        return self.best_estimator_.transform(X)

    @available_if(lambda self: hasattr(last_step(self._fitted()), "outlier_scores"))
    @one_blas_thread
    def outlier_scores(self, X: Any, *, embeddings: Any = None) -> Array:
        """Say how unlike the fitted samples others are, as the chosen estimator does.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            Samples of the shape on which the model was fitted.
        embeddings : array of shape (n_samples, e_1, ...) or None, default=None
            Embeddings of `X`, where `fit` chose these.

        Returns
        -------
        scores : array of shape (n_samples,)
            Larger for samples that fit less.
        """
        X = self._samples(X, "outlier_scores", embeddings)
        best = self.best_estimator_
        if isinstance(best, Pipeline):
            return best[-1].outlier_scores(best[:-1].transform(X))
        return best.outlier_scores(X)

    @property
    def memberships_(self) -> Array:
        """Mixing weights of the fitted samples, of shape (n_samples, n_components)."""
        return last_step(self._fitted()).memberships_

    @property
    def centroids_(self) -> Array:
        """The mean sample of each cluster, an array of shape ``(n_clusters_, d_1, ...)``."""
        best = self._fitted()
        return self._means_ if self._means_ is not None else best.centroids_

    def check_params(self) -> None:
        """Raise where a parameter is none that `fit` takes, before any data are read."""
        name = type(self).__name__
        if not (isinstance(self.n_clusters, str) and self.n_clusters == AUTO):
            try:
                check_integer(self.n_clusters, "n_clusters", name)
            except ValueError:
                raise ValueError(
                    f"The 'n_clusters' parameter of {name} must be 'auto' or an integer >= 1. "
                    f"Got {self.n_clusters!r} instead."
                ) from None
        check_option(self.features, "features", name, FEATURES)
        if self.features in (NETWORK, ALL) and not self._is_built_in() and self.network is not None:
            Network(self.network)._engine()
        check_integer(self.max_samples, "max_samples", name, minimum=2)
        check_outliers(self.outliers, self.false_alarms, name)
        self._given()

    def _given(self) -> list[tuple[str, Any]] | None:
        """Return the user's candidates as a list, or raise if they are not valid."""
        if self.candidates is None:
            return None
        pairs = check_pairs(self.candidates, "candidates", "AutoClustering")
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            raise ValueError(f"The names of candidates must differ. Got {names!r} instead.")
        for name, estimator in pairs:
            final = last_step(estimator)
            params = final.get_params(deep=False) if hasattr(final, "get_params") else {}
            if "n_clusters" not in params or not hasattr(final, "fit_predict"):
                raise ValueError(
                    f"The candidate {name!r} of AutoClustering must have the parameter n_clusters "
                    f"and the method fit_predict. Got {type(final).__name__} instead."
                )
            lacking = [asked for asked in self._asked() if asked not in params]
            if lacking:
                raise ValueError(
                    f"AutoClustering needs candidates that have the parameter {lacking[0]} to pass "
                    f"it on. Got {name!r}, {type(final).__name__}, which does not."
                )
        return pairs

    @on_samples
    def select(self, X: Any) -> tuple[Any, Selection]:
        """Choose without fitting to all samples.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            The samples.

        Returns
        -------
        estimator : estimator
            A copy of the chosen candidate, with its number of clusters and a seed, not fitted.
        selection : Selection
            What was compared.
        """
        chooser = clone(self)
        chooser.check_params()
        X = check_tensor(chooser, X, reset=True, lazy=True)
        return chooser._choose(X, _log, Features(X))

    def _choose(
        self, X: Array, progress: Progress, features: Features, remember: Remember = _as_chosen
    ) -> tuple[Any, Selection]:
        """Return the chosen candidate, not fitted, and what was compared."""
        rng = check_random_state(self.random_state)
        n_samples = int(X.shape[0])
        wanted = None if self.n_clusters == AUTO else int(self.n_clusters)
        if wanted is not None and n_samples < wanted:
            raise too_few(X.shape, wanted)
        given = self._given()
        size = max(self.max_samples, wanted or 0)
        part, kept = self._part(X, size, rng)
        judge, image = None, is_image(self.sample_shape_)
        if given is not None:
            candidates = [(name, _for_tensors(estimator, X)) for name, estimator in given]
        else:
            spatial = image or is_video(self.sample_shape_)
            if spatial and self._is_built_in() and self.features in (NETWORK, ALL):
                require_network(f"AutoClustering(features={self.features!r})")
            about: dict[str, Any] = {"network": self.network}
            if not image:
                about |= {"noisy": is_noisy(part), "norms": has_norms(part)}
                about |= {"narrow": is_narrow(part)}
            candidates = built_in_candidates(self.sample_shape_, self.features, **about)
            # A view of few directions finds groups in any noise; those of all directions do not.
            judge = None if image else candidates[0][0]
        if features.embeddings is not None:
            candidates.append((EMBEDDINGS, make_pipeline(Embedded(), TuckerClustering())))

        def decide(recall: Recall | None) -> tuple[Selection, int]:
            some, rows, most = part, kept, size
            while True:
                seen = features if some is X else features.of_part(some, rows)
                about = {"weigh": image, "given": wanted is not None}
                resampler = Resampler(
                    some, candidates, rng, judge, **about, features=seen, recall=recall
                )
                selection = choose(resampler, wanted, progress)
                if wanted is not None or SPARED * most >= n_samples or not at_the_end(selection):
                    return selection, int(rng.integers(2**31))
                most *= 2
                some, rows = self._part(X, most, rng)

        selection, seed = remember(decide)
        best = set_clusters(clone(dict(candidates)[selection.view]), selection.n_clusters, seed)
        last_step(best).set_params(**self._asked())
        return best, selection

    def _asked(self) -> dict[str, Any]:
        """Return what the chosen estimator is told beside its number of clusters."""
        asked: dict[str, Any] = {"calibrate": True} if self.calibrate else {}
        if self.outliers != "keep":
            asked |= {"outliers": self.outliers, "false_alarms": self.false_alarms}
        return asked

    def _part(self, X: Array, size: int, rng: np.random.Generator) -> tuple[Array, np.ndarray]:
        """Return the distinct samples, or a random part of them, in memory, and their places."""
        samples = as_blocks(X)
        indices = np.arange(samples.n_samples)
        if samples.n_samples > SPARED * size:
            indices = np.sort(rng.choice(samples.n_samples, size, replace=False, shuffle=False))
        part = (
            X if len(indices) == samples.n_samples and not samples.lazy else samples.take(indices)
        )
        pieces = blocks(len(indices), 8 * math.prod(part.shape[1:]))
        rows = (row for piece in pieces for row in to_numpy(part[piece, ...]))
        seen: dict[bytes, int] = {}  # by digests: samples may be large
        for place, row in enumerate(rows):
            seen.setdefault(sha256(row.tobytes()).digest(), place)
        if len(seen) == len(indices):
            return part, indices
        distinct = np.array(sorted(seen.values()))
        return as_blocks(part).take(distinct), indices[distinct]

    def _fitted(self) -> Any:
        if "best_estimator_" not in vars(self):
            raise AttributeError("AutoClustering has this attribute after fit.")
        return self.best_estimator_

    def _samples(self, X: Any, method: str, embeddings: Any = None) -> Array:
        """Validate new samples; return them, or their embeddings where these were chosen."""
        check_is_fitted(self)
        X = check_tensor(self, X, reset=False, lazy=True)
        check_same_library(X, self.centroids_, f"{type(self).__name__}.{method}()")
        if self.selection_.view != EMBEDDINGS:
            return X
        if embeddings is None:
            raise ValueError(
                f"{type(self).__name__}.{method}() needs embeddings of the samples: their view was "
                "chosen in fit()."
            )
        features = Features(X, embeddings)
        features.check_embeddings(type(self).__name__)
        return features.embeddings

    def _stored_parameters(self) -> dict[str, Any]:
        """Return parameters as a file may have them: the name of a known network, or none."""
        given = self.get_params(deep=False)
        return given if self._is_built_in() else {**given, "network": None}

    def _is_built_in(self) -> bool:
        return isinstance(self.network, str) and self.network == BUILT_IN

    def _check_state(self) -> None:
        """Raise where fitted attributes, which a file may have made up, do not fit together."""
        if self.network not in (None, BUILT_IN):
            raise ValueError(f"its network {self.network!r} is not a known name")
        self.check_params()
        if not isinstance(self.selection_, Selection):
            raise ValueError("its selection_ is none")
        n_clusters = check_integer(self.n_clusters_, "n_clusters_", type(self).__name__)
        best = last_step(self.best_estimator_)
        if best.n_clusters != n_clusters:  # edits may have made it another than was chosen
            raise ValueError("n_clusters_ is not that of its best estimator")
        shape = getattr(self, "sample_shape_", None)
        if not isinstance(shape, tuple) or not all(type(n) is int and n > 0 for n in shape):
            raise ValueError(f"sample_shape_ is {shape!r}")
        labels = check_stored(self.labels_, "labels_", (None,), kind="i")
        if not np.array_equal(labels, best.labels_):
            raise ValueError("labels_ are not those of its best estimator")
        if self._means_ is not None:
            check_stored(self._means_, "_means_", (n_clusters, *self.sample_shape_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.array_api_support = True
        return tags


def _log(share: float, doing: str) -> None:
    """Log what is going on, and how far the work has come as `share` of the record."""
    LOGGER.info(doing, extra={"share": share})


def fit_with(estimator: Any, X: Array, features: Features) -> Any:
    """Fit a candidate to samples, some of whose features may be known."""
    if type(estimator) is MultiViewClustering:
        return estimator._fit(X, features)
    if looks_of(estimator) is None or not isinstance(estimator, Pipeline):
        return estimator.fit(X)
    estimator[-1].fit(features.fit_transform(first_steps(estimator)))
    return estimator


def _for_tensors(estimator: Any, X: Array) -> Any:
    """Let an estimator that takes tables only see samples as rows."""
    if X.ndim == 2 or isinstance(estimator, Pipeline):
        return estimator
    if estimator.__sklearn_tags__().input_tags.three_d_array:
        return estimator
    return make_pipeline(FunctionTransformer(_flatten, validate=False), estimator)
