"""The estimator: from samples to labels, soft labels, mixing weights and centroids."""

from __future__ import annotations

import logging
import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning

from tuckermix import inference
from tuckermix._array_api import Array, is_dask
from tuckermix._callbacks import CallbackSupportMixin, FitProgress, with_callbacks
from tuckermix._records import StopReason
from tuckermix._threads import one_blas_thread
from tuckermix._validation import check_integer, check_option, check_random_state, check_real
from tuckermix.decomposition import INITS, SOLVERS, Decomposition
from tuckermix.decomposition.fit import decompose_source
from tuckermix.decomposition.ranks import check_ranks
from tuckermix.decomposition.result import SweepRecord
from tuckermix.labels import METHODS, choose_landmarks, fit_labels
from tuckermix.memberships import SIMPLICES
from tuckermix.prediction import FittedMethods
from tuckermix.sources import Source, as_blocks, as_source
from tuckermix.sources.memory import explain_shortage
from tuckermix.tensor import multi_mode_dot

__all__ = ["TuckerClustering"]

logger = logging.getLogger("tuckermix")


class TuckerClustering(CallbackSupportMixin, FittedMethods, ClusterMixin, BaseEstimator):
    r"""Cluster samples that are N-way arrays, without flattening them.

    Each sample is modelled as a convex mixture of L components that live in a small Tucker
    subspace shared by all samples:

    .. math::

        \min \tfrac12 \| X - G \times_0 U \times_1 U_1 \cdots \times_{N-1} U_{N-1} \|^2,
        \qquad U > 0,\ U 1 = 1,\ U_n^\top U_n = I .

    The solution determines the column space of `U`, and labels are read off that space and what
    lies next to it: samples of one cluster point in similar directions there.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters K.
    n_components : int or None, default=None
        The number of components L. None means ``2 * n_clusters + 1`` for
        ``assign_labels="graph"`` and `n_clusters` otherwise. Fewer are fitted where the rank of
        the data is lower.
    ranks : None, int, float or tuple of int, default=None
        The number of columns of each factor: one int for all feature modes, one for each, or the
        share of the centred energy of each mode to keep; None keeps 97 %.
    solver : {"exact", "trust-region", "joint"}, default="exact"
        ``"exact"`` solves for the memberships in closed form; ``"trust-region"`` is the paper's
        Riemannian method; ``"joint"`` optimises all modes at once through Pymanopt.
    init : {"hosvd", "hosvd-samples", "random"}, default="hosvd"
        Where the factors start: the paper's HOSVD initialisations I and II, or random bases.
    memberships : {"anchored"}, default="anchored"
        Which of the equally good simplices gives the mixing weights.
    assign_labels : {"graph", "subspace", "memberships", "argmax"}, default="graph"
        How samples get labels: by a graph of nearest neighbours in the subspace and the directions
        next to it, by k-means in the subspace, by k-means on the mixing weights (the paper), or by
        the largest weight.
    n_neighbors : int, default=20
        The number of neighbours in the graph and in votes.
    n_init : int, default=10
        The number of starts of k-means, and of the whole fit for ``init="random"``.
    max_iter : int, default=100
        Most sweeps of the solver.
    tol : float, default=1e-6
        Stop when a sweep lowers the relative error by less than this.
    random_state : None, int or RandomState, default=None
        Set an int for results that repeat.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each sample, from 0 on, largest cluster first.
    memberships_ : array of shape (n_samples, n_components_)
        Mixing weights: positive rows that sum to one. See the notes.
    core_ : array of shape (n_components_, r_1, ...)
        The components in the projected space.
    components_ : array of shape (n_components_, d_1, ...)
        The components in sample space. They lie around the samples, not among them.
    centroids_ : array of shape (n_clusters, d_1, ...)
        The mean of each cluster within the learned subspace.
    factors_ : list of arrays of shape (d_n, r_n)
        Orthonormal factors of the feature modes.
    ranks_ : tuple of int
        The number of columns of each factor.
    n_components_ : int
        The number of components that the data support.
    cost_ : float
        Half the squared error of the model.
    gap_ : float
        How far the mixing weights are from the optimum for these factors, relative to it.
    history_ : list of records
        Cost, relative error and time for each sweep, the start first.
    n_iter_ : int
        The number of sweeps.
    stop_reason_ : StopReason
        Why the solver ended.
    sample_shape_ : tuple of int
        The shape of a sample.
    n_features_in_ : int
        ``X.shape[1]``, as scikit-learn sets it.
    feature_names_in_ : array of shape (n_features_in_,)
        The names of the columns, where `X` was a data frame.

    See Also
    --------
    tuckermix.decompose : The model without labels.
    tuckermix.baselines.PCAMultinomial : The paper's recipe to the letter.

    Notes
    -----
    The model does not identify the mixing weights: every simplex around the samples has the same
    cost. Soft labels are therefore `predict_proba`, not `memberships_`, which are flat for most
    data because the simplex must hold all samples.

    References
    ----------
    Sun, Gao, Hong, Mishra and Yin, Heterogeneous Tensor Decomposition for Clustering via Manifold
    Optimization, IEEE Transactions on Pattern Analysis and Machine Intelligence 38(3), 2016.

    Examples
    --------
    >>> from tuckermix import TuckerClustering
    >>> from tuckermix.datasets import make_tensor_clusters
    >>> data = make_tensor_clusters(n_clusters=3, random_state=0)
    >>> model = TuckerClustering(n_clusters=3, random_state=0).fit(data.X)
    >>> sorted(set(model.labels_.tolist()))
    [0, 1, 2]
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_components: int | None = None,
        ranks: Any = None,
        solver: str = "exact",
        init: str = "hosvd",
        memberships: str = "anchored",
        assign_labels: str = "graph",
        n_neighbors: int = 20,
        n_init: int = 10,
        max_iter: int = 100,
        tol: float = 1e-6,
        random_state: Any = None,
    ):
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.ranks = ranks
        self.solver = solver
        self.init = init
        self.memberships = memberships
        self.assign_labels = assign_labels
        self.n_neighbors = n_neighbors
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @one_blas_thread
    @with_callbacks
    @explain_shortage
    def fit(self, X: Any, y: Any = None) -> TuckerClustering:
        """Fit the model and label the samples.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            The samples, one for each entry of the first axis.
        y : Ignored
            Present for scikit-learn's sake.

        Returns
        -------
        self : TuckerClustering
            The fitted estimator.
        """
        before = dict(vars(self))
        try:
            self._check_params()
            X = self._checked(X, reset=True)
            if X.shape[0] < self.n_clusters:
                raise ValueError(f"n_samples={X.shape[0]} must be >= n_clusters={self.n_clusters}.")
            ranks = check_ranks(self.ranks, self.sample_shape_, type(self).__name__)
            self._fit(X, as_source(X), ranks)
        except BaseException:
            # A failed fit must not leave half of a new model beside half of an old one.
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Array:
        """Fit the model and return the mixing weights of the samples.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            The samples.
        y : Ignored
            Present for scikit-learn's sake.
        **params : dict
            Further parameters of `fit`.

        Returns
        -------
        memberships : array of shape (n_samples, n_components_)
            The same as ``fit(X).transform(X)``.
        """
        return self.fit(X, y, **params).transform(X)

    def _check_params(self) -> None:
        name = type(self).__name__
        check_integer(self.n_clusters, "n_clusters", name)
        if self.n_components is not None:
            check_integer(self.n_components, "n_components", name)
        check_option(self.solver, "solver", name, SOLVERS)
        check_option(self.init, "init", name, INITS)
        check_option(self.memberships, "memberships", name, SIMPLICES)
        check_option(self.assign_labels, "assign_labels", name, METHODS)
        check_integer(self.n_neighbors, "n_neighbors", name)
        check_integer(self.n_init, "n_init", name)
        check_integer(self.max_iter, "max_iter", name)
        check_real(self.tol, "tol", name)

    def _fit(self, X: Array, source: Source, ranks: tuple[int, ...] | float) -> None:
        rng = check_random_state(self.random_state)
        progress = FitProgress(self, X)
        n_components = self.n_components
        if n_components is None:
            n_components = self.n_clusters
            if self.assign_labels == "graph":
                n_components = 2 * self.n_clusters + 1
        fit = decompose_source(
            source,
            n_components,
            ranks,
            solver=self.solver,
            init=self.init,
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            rng=rng,
            callback=partial(_report, progress),
        )
        self._set_model(fit, source, rng)
        self._set_labels(X, rng)
        progress.end()
        if fit.stop_reason is StopReason.MAX_ITER:
            last = fit.history[-2].relative_error - fit.history[-1].relative_error
            warnings.warn(
                f"Stopped after max_iter={self.max_iter} sweeps, the last of which lowered the "
                f"relative error by {last:.1e} > tol={self.tol:g}. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _set_model(self, fit: Decomposition, source: Source, rng: np.random.Generator) -> None:
        """Store the model: factors, core and mixing weights."""
        state, memberships, gap = inference.model_from(fit, rng)
        self._model_ = state
        self.memberships_ = memberships
        self.factors_ = state.factors
        self.core_ = state.core
        self.components_ = multi_mode_dot(self.core_, self.factors_)
        self.ranks_ = fit.ranks
        self.n_components_ = fit.n_components
        self._n_features_out = fit.n_components
        self.cost_ = fit.cost
        self.gap_ = gap
        self.history_ = fit.history
        self.n_iter_ = fit.n_iter
        self.stop_reason_ = fit.stop_reason

    def _set_labels(self, X: Array, rng: np.random.Generator) -> None:
        """Find the clusters, label all samples by the same route as `predict`, average them."""
        landmarks = choose_landmarks(X.shape[0], rng)
        if landmarks is None and is_dask(X):
            landmarks = np.arange(X.shape[0])
        chosen = X if landmarks is None else as_blocks(X).take(landmarks)
        if self.assign_labels == "graph":
            self._model_ = inference.with_wider_view(self._model_, chosen)
        Z, U = inference.views(self._model_, chosen, self.assign_labels)
        self._labeller_ = fit_labels(
            self.assign_labels,
            Z,
            U,
            self.n_clusters,
            n_neighbors=self.n_neighbors,
            n_init=self.n_init,
            rng=rng,
        )
        self.labels_ = inference.labels(self._model_, self._labeller_, X)
        means = inference.cluster_means(self._model_, self.n_clusters, X, self.labels_)
        self.centroids_ = inference.lift(self._model_, means)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.array_api_support = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _report(progress: FitProgress, record: SweepRecord) -> bool:
    """Log a sweep and tell the callbacks of it; return whether one asks to stop."""
    logger.info(
        "sweep %d: relative error %.9f after %.3f s",
        record.iteration,
        record.relative_error,
        record.time,
    )
    return progress.sweep(record.iteration)
