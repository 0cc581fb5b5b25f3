"""The estimator: from samples to labels, soft labels, mixing weights and centroids."""

from __future__ import annotations

import math
import warnings
from dataclasses import field
from functools import partial, wraps
from typing import Any, ClassVar

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from tuckermix._array_api import Array, asarray_like, is_array, is_dask, take_rows, to_numpy
from tuckermix._estimators import CallbackSupportMixin, all_or_nothing, declare, with_callbacks
from tuckermix._names import MISSING
from tuckermix._records import StopReason
from tuckermix._threads import count_threads, on_samples, one_blas_thread
from tuckermix._validation import (
    Rules,
    TakesArrays,
    check_integer,
    check_option,
    check_random_state,
    check_ranks,
    check_rules,
    check_same_library,
    check_stored,
    check_tensor,
    none_or,
    one_of,
    positive,
    share,
    too_few,
)
from tuckermix.decomposition.fit import OPTIONS, SOLVERS, decompose_source
from tuckermix.decomposition.missing import Filling, fill_gaps, filling_of, impute, split_gaps
from tuckermix.decomposition.result import Decomposition, SweepRecord
from tuckermix.decomposition.stream import Summary, decompose_summary
from tuckermix.labels import LABELLINGS, GraphLabels
from tuckermix.labels.calibration import matching
from tuckermix.labels.graph import stays_on_device
from tuckermix.labels.outliers import check_outliers
from tuckermix.labels.tree import Tree, TreeMixin, grow_tree, labels_of
from tuckermix.memberships import SIMPLICES
from tuckermix.model import Model, Way
from tuckermix.numerics.tensor import multi_mode_dot
from tuckermix.sources import Blocks, Source, add_parts, as_blocks

MAX_LANDMARKS = 10_000
"""Beyond this many samples labels are learned from a random part of them: the cost of the graph
grows with the square, and that of the votes of all samples with their number."""

DEVICE_LANDMARKS = 20_000
"""The same where the graph stays on a device, which has the operations to spare: of all digits of
MNIST one in twenty more gets the label of its class, and on a processor the fit takes twice the
time."""


def most_landmarks(X: Any) -> int:
    """Return how many of the samples labels are learned from at most."""
    return DEVICE_LANDMARKS if stays_on_device(X) else MAX_LANDMARKS


OF_THE_GRAPH = ("n_neighbors", "ridge_edge", "ridge_power")
"""Parameters of version 0.2 that are those of `GraphLabels` now."""


def in_new_spelling(
    params: dict[str, Any], assign_labels: Any = "graph", warn_at: int | None = None
) -> dict[str, Any]:
    """Return parameters of `TuckerClustering` with those of the graph where they belong.

    Parameters
    ----------
    params : dict
        Parameters by name, some perhaps as version 0.2 spelled them.
    assign_labels : str or GraphLabels, default="graph"
        The value of that parameter where `params` has none.
    warn_at : int or None, default=None
        The stack level of a warning where there are old names; None does not warn.

    Returns
    -------
    params : dict
        The same, with `assign_labels` in place of old names.
    """
    old = {name: params[name] for name in OF_THE_GRAPH if name in params}
    if old and warn_at is not None:
        listed = ", ".join(f"{name}={value!r}" for name, value in old.items())
        warnings.warn(
            f"{', '.join(old)} moved to tuckermix.labels.GraphLabels, and TuckerClustering will "
            f"not take {'it' if len(old) == 1 else 'them'} from version 0.4 on: write "
            f"assign_labels=GraphLabels({listed}).",
            FutureWarning,
            stacklevel=warn_at + 1,
        )
    rest = {name: value for name, value in params.items() if name not in old}
    given = rest.get("assign_labels", assign_labels)
    if old and (isinstance(given, GraphLabels) or given == "graph"):
        options = given.get_params() if isinstance(given, GraphLabels) else {}
        rest["assign_labels"] = GraphLabels(**{**options, **old})
    return rest


def old_spellings(estimator: Any) -> Any:
    """Let a constructor take the parameters of the graph by their old names, with a warning."""
    new = estimator.__init__

    @wraps(new)
    def constructor(self: Any, *args: Any, **params: Any) -> None:
        if not params.keys().isdisjoint(OF_THE_GRAPH):
            params = in_new_spelling(params, warn_at=2)
        new(self, *args, **params)

    estimator.__init__ = constructor
    return estimator


@old_spellings
@declare
class TuckerClustering(
    TakesArrays,
    TreeMixin,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    BaseEstimator,
):
    r"""Cluster samples that are N-way arrays, without flattening them.

    Each sample is modelled as a convex mixture of L components that live in a small Tucker
    subspace shared by all samples:

    .. math::

        \min \tfrac12 \| X - G \times_0 U \times_1 U_1 \cdots \times_{N-1} U_{N-1} \|^2,
        \qquad U > 0,\ U 1 = 1,\ U_n^\top U_n = I .

    The solution determines the column space of `U`, and labels are read off that space and what
    lies next to it: samples of one cluster point in similar directions there. The number of
    components sizes the model; labels have directions of their own, see :doc:`/labels`.

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
        share of the centred energy of each mode to keep. None keeps 98 % of the energy above the
        noise, see :doc:`/method/index`.
    solver : {"exact", "trust-region", "joint"}, default="exact"
        ``"exact"`` solves for the memberships in closed form; ``"trust-region"`` is the paper's
        Riemannian method; ``"joint"`` optimises all modes at once through Pymanopt.
    init : {"hosvd", "hosvd-samples", "random"}, default="hosvd"
        Where the factors start: the paper's HOSVD initialisations I and II, or random bases.
    memberships : {"anchored", "min-volume", "archetypes"}, default="anchored"
        Which simplex gives the mixing weights: one through samples that lie far apart, grown until
        it holds all of them; the smallest that holds them, whose vertices are the pure components
        where samples are mixtures; or one whose vertices are mixtures of samples themselves, at
        some loss in cost. The last two need ``solver="exact"``.
    outside : float, default=0.0
        For ``memberships="min-volume"``, the largest share of samples that may lie outside and
        are projected: for noise and outliers.
    memory : float or None, default=None
        For `partial_fit`, how many samples back their weight has fallen to 1/e, so that the model
        follows what changes; None forgets nothing.
    missing : {None, "impute"}, default=None
        What to do with NaN and with entries that a NumPy mask covers: refuse them, or fill them by
        the model. Then `predict` and the other methods take samples with gaps too.
    assign_labels : {"graph", "subspace", "memberships", "argmax"} or GraphLabels, default="graph"
        How samples get labels: by a graph of nearest neighbours in all directions of the projected
        samples, weighted by ridge regression, by k-means in the subspace, by k-means on the mixing
        weights (the paper's last step, but on exact weights, which are flatter than those of its
        solver and give worse labels), or by the largest weight (by k-means on the weights where
        there are fewer components than clusters). A `tuckermix.labels.GraphLabels` is the graph
        with other options: the number of neighbours, and how directions are weighted.
    calibrate : bool, default=False
        Whether `predict_proba` gives probabilities: that a fit on an independent draw of as many
        samples, clusters matched, gives the sample that label. They are learned without classes
        from fits of the labels to 16 halves and up to 16 quarters of the samples; see
        :doc:`/labels`. Otherwise it gives votes.
    outliers : {"keep", "label"}, default="keep"
        Whether samples that fit none of the clusters get the label of the nearest one, or the label
        -1; for ``assign_labels="graph"``. See `outlier_scores`.
    false_alarms : float, default=0.05
        For ``outliers="label"``, the share of ordinary samples that may get the label -1.
    n_init : int, default=10
        The number of starts of k-means, and of the whole fit for ``init="random"``.
    max_iter : int, default=100
        Most sweeps of the solver.
    tol : float, default=1e-6
        Stop when a sweep lowers the relative error by less than this.
    random_state : None, int or RandomState, default=None
        Set an int for results that repeat.
    n_jobs : int or None, default=None
        How many threads work on blocks of samples in NumPy; -1 for all processors. None takes the
        number of ``joblib.parallel_config``, else ``OMP_NUM_THREADS``, else all processors that the
        process may use. The results are the same for any number; see :doc:`/threads`.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each sample, from 0 on, largest cluster first; -1 for outliers where these
        are labelled.
    cluster_names_ : dict of int to str
        The names that people gave to clusters, see :doc:`/report`; empty after a fit.
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
        What the mixing weights miss of the optimum for these factors, relative to the centred
        energy that as many components can explain: 0 up to rounding for a simplex that holds all
        samples, which means that no weights fit better with these factors. The optimum is
        computed apart from the solver.
    stationarity_ : float
        How far the factors are from a stationary point: the norm of the gradient over the factors,
        relative to the same energy. A stationary point need not be the best one.
    imputation_ : Imputation
        How well gaps were filled, where there were any: the error at observed entries that were
        hidden from the model, and that of filling with means. `cost_` is that of the filled
        samples then.
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
    tuckermix.baselines.PCAMultinomial : The paper's recipe; with ``tol=0`` its 250 sweeps.

    Notes
    -----
    The model does not identify the mixing weights: every simplex around the samples has the same
    cost, and `memberships` chooses one. Soft labels are therefore `predict_proba`, not
    `memberships_`, which are flat for most data because the simplex must hold all samples.

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

    n_clusters: int = field(default=8, kw_only=False)
    n_components: int | None = None
    ranks: Any = None
    solver: str = "exact"
    init: str = "hosvd"
    memberships: str = "anchored"
    outside: float = 0.0
    missing: str | None = None
    memory: float | None = None
    assign_labels: Any = "graph"
    calibrate: bool = False
    outliers: str = "keep"
    false_alarms: float = 0.05
    n_init: int = 10
    max_iter: int = 100
    tol: float = 1e-06
    random_state: Any = None
    n_jobs: int | None = None

    _in_new_spelling = staticmethod(in_new_spelling)
    _rules: ClassVar[Rules] = {
        "n_clusters": check_integer,
        "n_components": none_or(check_integer),
        **OPTIONS,
        "memberships": one_of(SIMPLICES),
        "outside": share,
        "missing": none_or(one_of(MISSING)),
        "memory": none_or(positive),
    }

    @one_blas_thread
    @with_callbacks
    @all_or_nothing
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
        self : object
            The fitted estimator.
        """
        self.check_params()
        rng = check_random_state(self.random_state)
        for left in ("imputation_", "_filling_", "_summary_"):  # of an earlier fit
            self.__dict__.pop(left, None)
        gaps = None
        if self.missing is not None:
            X, gaps = split_gaps(X, type(self).__name__)
        filled = X = check_tensor(self, X, reset=True, lazy=True)
        if X.shape[0] < self.n_clusters:
            raise too_few(X.shape, self.n_clusters)
        ranks = check_ranks(self.ranks, self.sample_shape_, type(self).__name__)
        options = self._of_the_solver(rng)
        # How many sweeps there will be is not known: several random starts may each take some.
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self, X=X)
        if gaps is not None:
            most = options["n_components"]
            filled, self.imputation_, self._filling_ = impute(X, gaps, most, ranks, rng)
            ranks = self.imputation_.ranks
        watched = hasattr(self, "_skl_callbacks")
        report = partial(self._report, context, filled) if watched else None
        fit = decompose_source(Source(filled), ranks=ranks, **options, callback=report)
        self._set_model(X, fit, rng, gaps)
        self.cluster_names_: dict[int, str] = {}
        context.call_on_fit_task_end(estimator=self, X=filled)
        if fit.stop_reason is StopReason.MAX_ITER:
            last = fit.history[-2].relative_error - fit.history[-1].relative_error
            warnings.warn(
                f"Stopped after max_iter={self.max_iter} sweeps, the last of which lowered the "
                f"relative error by {last:.1e} > tol={self.tol:g}. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _of_the_solver(self, rng: np.random.Generator) -> dict[str, Any]:
        """Return what the decomposition is asked for."""
        way = LABELLINGS[self.labelling.name]
        return {
            "n_components": self.n_components or way.per_cluster * self.n_clusters + way.further,
            "rng": rng,
            **{name: getattr(self, name) for name in OPTIONS},
        }

    @one_blas_thread
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None) -> TuckerClustering:
        """Update the model with a batch of samples.

        What is kept of all batches is a summary of fixed size: mean, Gram matrices, a few
        directions, and at most 4096 samples that stand for the others. The model is fitted to the
        summary and clusters keep their numbers as far as they can. `labels_` and `memberships_`
        are those of the batch. A model that was fitted as a whole starts again.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            The samples, in memory. The first batch needs at least `n_clusters` of them.
        y : Ignored
            Present for scikit-learn's sake.

        Returns
        -------
        self : TuckerClustering
            The updated estimator.
        """
        name = type(self).__name__
        self.check_params()
        if SOLVERS[self.solver].gives != "subspace" or self.missing is not None or is_dask(X):
            raise ValueError(
                f"{name}.partial_fit takes batches in memory, without gaps, and solver='exact'. "
                f"Got solver={self.solver!r}, missing={self.missing!r} and a "
                f"{type(X).__name__}: pass Dask arrays chunk by chunk, and fill gaps first."
            )
        summary = getattr(self, "_summary_", None)
        X = check_tensor(self, X, reset=summary is None)
        if summary is None:
            if X.shape[0] < self.n_clusters:
                raise ValueError(
                    f"n_samples={X.shape[0]} must be >= n_clusters={self.n_clusters} in the "
                    "first batch."
                )
            summary = Summary.start(X)
        else:
            check_same_library(X, self.core_, f"{name}.partial_fit()")
        rng = check_random_state(self.random_state)
        rng = np.random.default_rng([int(rng.integers(2**63)), summary.n_seen])
        self._update(X, summary, rng)
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

    @on_samples
    def predict(self, X: Any, n_clusters: int | None = None) -> Array:
        """Give each sample the label of the cluster that it resembles most.

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
        samples = self._samples(X, "predict")
        if n_clusters is None or n_clusters == self.n_clusters:
            return samples.map(self._model_.label)
        nearest = samples.map(self._model_.assign)[:, 1]
        return labels_of(nearest, self.tree_.of_landmarks(n_clusters))

    def _grow(self) -> Tree:
        """Grow the tree through the fitted labels, see `TreeMixin`."""
        labeller: Any = self._model_.labeller
        nearest = self._nearest_landmarks([labeller], labeller.assign)
        width, part = self.labelling.graph.n_neighbors, hasattr(self, "_summary_")
        return grow_tree([labeller], [width], nearest, every_landmark=part)

    @on_samples
    def predict_proba(self, X: Any) -> Array:
        """Give soft labels.

        For ``assign_labels="graph"`` they are the rank-weighted share of votes of the nearest
        fitted samples; for k-means they fall with the distance to the cluster means, as a Gaussian
        of the mean spread does; for ``"argmax"`` they are the mixing weights. They tell clear
        samples from doubtful ones, and are not calibrated: 0.9 does not mean right nine times out
        of ten. With `calibrate` they are probabilities that an independent fit gives the label.
        With ``outliers="label"`` they speak of clusters for outliers too, but are the more alike
        the less a sample fits.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            Samples of the shape on which the model was fitted.

        Returns
        -------
        probabilities : array of shape (n_samples, n_clusters)
            Rows that sum to one; the label is the position of the largest entry.
        """
        return self._samples(X, "predict_proba").map(self._model_.soft_labels)

    @on_samples
    def outlier_scores(self, X: Any) -> Array:
        """Say how unlike the fitted samples others are, or they themselves.

        The score is the largest of four parts: the distance to the nearest neighbours relative to
        theirs, the part of the sample outside the directions in which most samples vary, the part
        that the model does not explain, and how much weaker or stronger it is than others. Each is
        compared with what is usual, learned from the fitted samples that fit best, so that outliers
        in groups do not vouch for each other. Needs ``assign_labels="graph"``; see
        :doc:`/outliers`.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            Samples of the shape on which the model was fitted.

        Returns
        -------
        scores : array of shape (n_samples,)
            0 is usual, 1 is what one in ten of the usual samples exceeds in one of the parts, and
            there is no upper end.
        """
        samples = self._samples(X, "outlier_scores")
        _ = self._model_.reference
        return samples.map(self._model_.outlier_scores)

    @on_samples
    def transform(self, X: Any) -> Array:
        """Find the mixing weights of samples: the best convex mixture of the components.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            Samples of the shape on which the model was fitted.

        Returns
        -------
        memberships : array of shape (n_samples, n_components_)
            Nonnegative rows that sum to one.
        """
        return self._samples(X, "transform").map(self._model_.weigh)

    @on_samples
    def inverse_transform(self, memberships: Any) -> Array:
        """Rebuild samples from mixing weights.

        Parameters
        ----------
        memberships : array of shape (n_samples, n_components_)
            Mixing weights.

        Returns
        -------
        X : array of shape (n_samples, d_1, ...)
            The samples that the model has for these weights.
        """
        check_is_fitted(self)
        lazy, name = is_dask(memberships), f"{type(self).__name__}.inverse_transform()"
        if lazy or is_array(memberships):
            check_same_library(memberships, self.core_, name)
        weights = memberships if lazy else asarray_like(memberships, self.core_)
        if weights.ndim != 2 or weights.shape[1] != self.n_components_:
            raise ValueError(
                f"memberships must have shape (n_samples, {self.n_components_}), one column for "
                f"each component of this model. Got {tuple(weights.shape)} instead."
            )
        return as_blocks(weights).map(self._model_.rebuild)

    @on_samples
    def fill_missing(self, X: Any) -> Array:
        """Fill the gaps of samples by the model.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            Samples of the shape on which the model was fitted, with NaN or masked entries; needs
            ``missing="impute"``.

        Returns
        -------
        filled : array of shape (n_samples, d_1, ...)
            The samples; what was observed is as it was. Lazy where `X` is a Dask array.
        """
        filled = self._checked(X, "fill_missing")
        return filled if is_dask(filled) else take_rows(filled, np.arange(filled.shape[0]))

    @on_samples
    def place(self, X: Any) -> Array:
        """Find the points by which labels compare samples.

        They lie on a sphere, near each other where samples are alike. A map of the samples shows
        these points.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            Samples of the shape on which the model was fitted.

        Returns
        -------
        Z : array of shape (n_samples, d)
            Rows of unit length.
        """
        return self._samples(X, "place").map(self._model_.place)

    @on_samples
    def score(self, X: Any, y: Any = None) -> float:
        """Give minus the mean squared error with which the model rebuilds samples.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            Samples of the shape on which the model was fitted.
        y : Ignored
            Present for scikit-learn's sake.

        Returns
        -------
        score : float
            Minus the squared error averaged over all entries; higher is better.
        """
        samples = self._samples(X, "score")
        (total,) = samples.reduce(self._model_.squared_error, add_parts)
        return -total / (samples.n_samples * math.prod(samples.sample_shape))

    @property
    def labelling(self) -> Way:
        """How samples get labels, with the options of the graph."""
        given, alarms = self.assign_labels, self.false_alarms if self.outliers == "label" else None
        own = isinstance(given, GraphLabels)
        name, graph = ("graph", given) if own else (given, GraphLabels())
        return Way(name, graph, self.n_clusters, self.n_init, self.calibrate, alarms)

    def set_params(self, **params: Any) -> TuckerClustering:
        """Set parameters, see scikit-learn's `BaseEstimator.set_params`.

        Parameters
        ----------
        **params : dict
            Parameters by name; ``assign_labels__n_neighbors`` is that of `GraphLabels`.

        Returns
        -------
        self : TuckerClustering
            The estimator.
        """
        if not params.keys().isdisjoint(OF_THE_GRAPH):
            params = in_new_spelling(params, self.assign_labels, warn_at=2)
        nested = any(name.startswith("assign_labels__") for name in params)
        if nested and self.labelling.name == "graph":
            self.assign_labels = self.labelling.graph
        return super().set_params(**params)

    def check_params(self) -> None:
        """Raise where a parameter is none that `fit` takes, before any data are read."""
        name, (way, graph, *_) = type(self).__name__, self.labelling
        check_rules(self)
        check_option(way, "assign_labels", name, LABELLINGS)
        check_rules(graph)
        count_threads(self.n_jobs)
        if self.outliers != "keep":
            check_outliers(self.outliers, self.false_alarms, name)
        if self.memberships != "anchored" and SOLVERS[self.solver].gives != "subspace":
            raise ValueError(
                f"memberships={self.memberships!r} needs a solver that leaves the choice open, "
                f"such as 'exact'. Got solver={self.solver!r}, which determines the weights."
            )
        if self.outside and self.memberships != "min-volume":
            raise ValueError(
                "outside must be 0 unless memberships='min-volume'. Got "
                f"outside={self.outside!r} with memberships={self.memberships!r}."
            )
        of_graph = {"calibrate=True": self.calibrate, "outliers='label'": self.outliers == "label"}
        for option, asked in of_graph.items():
            if asked and way != "graph":
                raise ValueError(
                    f"{option} needs the landmarks of assign_labels='graph'. Got "
                    f"assign_labels={self.assign_labels!r}."
                )

    def _check_state(self) -> None:
        """Raise where fitted attributes, which a file may have made up, do not fit together."""
        if not isinstance(self._model_, Model):
            raise ValueError("it has no model")
        self.check_params()
        self._model_.check(self.sample_shape_, self.n_clusters)
        if hasattr(self, "_filling_"):
            if not isinstance(self._filling_, Filling):
                raise ValueError("its filling of gaps is no Filling")
            self._filling_.check(math.prod(self.sample_shape_))
        core, factors = self._model_.core, self._model_.factors
        same = len(self.factors_) == len(factors) and all(
            map(np.array_equal, self.factors_, factors)
        )
        if not same or not np.array_equal(self.core_, core):
            raise ValueError("factors_ and core_ are not those of its model")
        n_components = int(core.shape[0])
        if self.n_components_ != n_components or self.ranks_ != tuple(core.shape[1:]):
            raise ValueError("n_components_ and ranks_ are not those of its model")
        check_stored(self.components_, "components_", (n_components, *self.sample_shape_))
        check_stored(self.centroids_, "centroids_", (self.n_clusters, *self.sample_shape_))
        check_stored(self.memberships_, "memberships_", (len(self.labels_), n_components))
        self._check_tree([self._model_.labeller])

    def _set_model(
        self, X: Array, fit: Decomposition, rng: np.random.Generator, gaps: Array | None = None
    ) -> None:
        """Place the samples, label them, number the clusters, and set what is fitted."""
        most = most_landmarks(X)
        model, self.memberships_, self.gap_, self.cost_ = Model.from_decomposition(
            fit, self.memberships, rng, self.outside
        )
        axes = fit.axes if gaps is None else None
        if gaps is not None:
            # From here on as for new samples, so that labels are what `predict` says.
            X = fill_gaps(X, gaps, self._filling_)
            self.memberships_ = as_blocks(X).map(model.weigh)
            self.cost_ = 0.5 * as_blocks(X).reduce(model.squared_error, add_parts)[0]
        elif self.missing is not None:
            self._filling_ = filling_of(fit)
        samples = as_blocks(X)
        way = self.labelling
        model, marks = model.with_landmarks(samples, way, rng, most, axes)
        model, voters = model.labelled(marks, way, rng)
        model, self.labels_, self._nearest_, means = model.numbered(samples, marks, voters, way)
        self._model_ = model
        self._tree_ = None
        self.centroids_ = model.lift(means)  # a cluster without samples gets the mean of all
        self.factors_ = model.factors
        self.core_ = model.core
        self.components_ = multi_mode_dot(model.core, model.factors)
        self.ranks_ = tuple(int(size) for size in model.core.shape[1:])
        self.n_components_ = self._n_features_out = int(model.core.shape[0])
        self.stationarity_ = fit.stationarity
        self.history_ = fit.history
        self.n_iter_ = fit.n_iter
        self.stop_reason_ = fit.stop_reason

    def _update(self, X: Array, summary: Summary, rng: np.random.Generator) -> None:
        """Add a batch to the summary, fit the model to it, and keep the numbers of clusters."""
        options = self._of_the_solver(rng)
        summary = summary.updated(X, options["n_components"] - 1, self.memory, rng)
        ranks = check_ranks(self.ranks, self.sample_shape_, type(self).__name__)
        fit = decompose_summary(summary, ranks=ranks, **options)
        old = self._model_ if summary.n_seen > X.shape[0] else None
        self._set_model(summary.landmarks, fit, rng)
        # What the simplex adds to the cost was found on the landmarks.
        share = summary.weight / summary.landmarks.shape[0]
        self.cost_ = fit.cost + share * (self.cost_ - fit.cost)
        if old is None:
            self.cluster_names_ = {}
        else:
            was = to_numpy(as_blocks(summary.landmarks).map(old.label))
            now = to_numpy(self.labels_)
            both = (was >= 0) & (now >= 0)  # outliers of one of them say nothing
            order = matching(was[both], now[both], self.n_clusters)
            self._model_ = self._model_.renumbered(order)
            self.centroids_ = take_rows(self.centroids_, order)
        self._summary_, batch = summary, as_blocks(asarray_like(X, self.core_))
        self.memberships_ = batch.map(self._model_.weigh)
        pairs = batch.map(self._model_.assign)
        self.labels_, self._nearest_ = pairs[:, 0], pairs[:, 1]

    def _report(self, context: Any, X: Array, record: SweepRecord) -> bool:
        """Tell the callbacks of a sweep; return whether one asks to stop."""
        task = context.subcontext(task_name=f"sweep {record.iteration}")
        task.call_on_fit_task_begin(estimator=self, X=X)
        return bool(task.call_on_fit_task_end(estimator=self, X=X))

    def _samples(self, X: Any, method: str) -> Blocks:
        """Validate new samples and prepare the model for them."""
        X = self._checked(X, method)
        self._model_.ready()
        return as_blocks(X)

    def _checked(self, X: Any, method: str) -> Array:
        """Validate new samples and bring them to the library and type of the model."""
        observed, owner = None, type(self).__name__
        if hasattr(self, "_filling_"):
            X, observed = split_gaps(X, owner, self._filling_)
        X = check_tensor(self, X, reset=False, lazy=True)
        check_same_library(X, self.core_, f"{owner}.{method}()")
        X = X.astype(self.core_.dtype) if is_dask(X) else asarray_like(X, self.core_)
        return X if observed is None else fill_gaps(X, observed, self._filling_)
