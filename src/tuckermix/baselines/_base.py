"""Common parts of the comparison methods: records, the loop over starts, labels."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning

from tuckermix._array_api import Array, asarray_like, get_namespace, is_numpy, to_numpy
from tuckermix._estimators import declare
from tuckermix._records import Record, StopReason
from tuckermix._validation import (
    Rules,
    check_integer,
    check_random_state,
    check_real,
    check_rules,
    check_stored,
    check_tensor,
    one_of,
)
from tuckermix.baselines.nonnegative import scale_of, solve_components
from tuckermix.numerics.points import kmeans


@dataclass(frozen=True)
class Step(Record):
    """One iteration of a method."""

    iteration: int  # zero for the start
    cost: float  # the objective of the method, in units of the data
    relative_error: float  # norm of the residual divided by the norm of the data
    time: float  # seconds since the start of the run
    # Distance to a known optimum; not a number, since these methods know none.
    gap: float = float("nan")


@dataclass
class Run(Record):
    """Result of one start of a method; the estimator keeps the run of least cost.

    Attributes
    ----------
    memberships : ndarray of shape (n_samples, n_clusters)
        The weights on which labels are based.
    cost : float
        The objective at the end.
    n_iter : int
        Iterations done.
    stop_reason : StopReason
        Why the run ended.
    history : list of Step
        One record per iteration, the start first.
    fitted : dict
        Further fitted attributes by name: arrays, lists of arrays or plain values.
    measure : str
        What `tol` is compared with, for the warning when `max_iter` is reached.
    residual : float
        The last value of that measure. Not a number: reaching `max_iter` is no failure.
    failure : str
        Why the result is meaningless, when `stop_reason` is `StopReason.FAILED`.
    """

    memberships: np.ndarray
    cost: float
    n_iter: int
    stop_reason: StopReason
    history: list[Any]
    fitted: dict[str, Any] = field(default_factory=dict)
    measure: str = "relative change of the error"
    residual: float = float("nan")
    failure: str = ""

    @classmethod
    def of(
        cls, memberships: np.ndarray, history: list[Any], stop_reason: StopReason, **facts: Any
    ) -> Run:
        """Return the run of a history, which tells the cost and counts iterations."""
        facts = {"cost": history[-1].cost, "n_iter": len(history) - 1} | facts
        return cls(memberships, stop_reason=stop_reason, history=history, **facts)

    def in_units(self, scale: float) -> Run:
        """Return the run on the data that were divided by `scale`, with costs of these data."""
        history = [replace(step, cost=step.cost * scale * scale) for step in self.history]
        return replace(self, cost=history[-1].cost, history=history)

    @property
    def order(self) -> tuple[bool, float]:
        """The key by which the best run is the least: failure first, then cost."""
        return self.stop_reason is StopReason.FAILED, self.cost


class Trace:
    """Collect the records of a run.

    Parameters
    ----------
    squared_norm : float
        The squared norm of the data, for relative errors.
    step : callable, default=Step
        Makes a record of iteration, cost, relative error and time.
    """

    def __init__(self, squared_norm: float, step: Callable[..., Any] = Step) -> None:
        self.records: list[Any] = []
        self._squared_norm = squared_norm
        self._step = step
        self._begin = time.perf_counter()

    def add(self, cost: float, squared_error: float | None = None, **further: float) -> float:
        """Record one more iteration, the first time the start, and return the relative error.

        Parameters
        ----------
        cost : float
            The objective.
        squared_error : float, default=None
            The squared norm of the residual; None means twice the cost.
        further : float
            Further fields of the record.

        Returns
        -------
        relative_error : float
            Norm of the residual divided by the norm of the data; 0 for data that are all zero.
        """
        squared = 2.0 * cost if squared_error is None else max(0.0, squared_error)
        error = float(np.sqrt(squared / self._squared_norm)) if self._squared_norm > 0 else 0.0
        elapsed = time.perf_counter() - self._begin
        self.records.append(self._step(len(self.records), cost, error, elapsed, **further))
        return error

    def run(self, memberships: np.ndarray, stop_reason: StopReason, **facts: Any) -> Run:
        """Return the run whose records these are, with further facts of `Run`."""
        return Run.of(memberships, self.records, stop_reason, **facts)


def relative_change(records: list[Step]) -> float:
    """Return the relative change of the error from the last record but one to the last.

    Parameters
    ----------
    records : list of Step
        At least two records.

    Returns
    -------
    change : float
        Not negative; zero when the error stays zero.
    """
    before, after = records[-2].relative_error, records[-1].relative_error
    change = abs(before - after)
    return change / max(before, after) if change > 0 else 0.0


LABEL_RULES = ("kmeans", "argmax")

KMEANS_STARTS = 10
"""Starts of k-means on the memberships; the best counts. One start alone decides the labels of
a run by luck; ten cost less than a tenth of any factorisation here."""


def label_memberships(
    memberships: np.ndarray, n_clusters: int, rule: str, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Turn memberships into labels, every one of which occurs.

    Parameters
    ----------
    memberships : ndarray of shape (n_samples, n_components)
        The weights.
    n_clusters : int
        The number of clusters, at most `n_samples`.
    rule : {"kmeans", "argmax"}
        K-means on the rows, or the largest weight of each row (`n_components` clusters).
    rng : numpy.random.Generator
        Source of randomness for k-means.

    Returns
    -------
    labels : ndarray of shape (n_samples,)
        Labels from 0 to `n_clusters` - 1, int64.
    centers : ndarray of shape (n_clusters, n_components)
        The mean row of each cluster.
    """
    scale = scale_of(memberships)  # squares of tiny or huge weights leave the range of floats
    rows = np.asarray(memberships, dtype=np.float64) / scale
    if rule == "argmax":
        labels = np.argmax(rows, axis=1).astype(np.int64)
    else:
        labels = kmeans(rows, n_clusters, n_init=KMEANS_STARTS, rng=rng).labels
    labels = _occupy(rows, labels, n_clusters)
    return labels, _means(rows, labels, n_clusters) * scale


def _means(rows: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the mean row of each cluster; that of an empty one is zero."""
    sums = np.zeros((n_clusters, rows.shape[1]))
    np.add.at(sums, labels, rows)
    return sums / np.maximum(np.bincount(labels, minlength=n_clusters), 1)[:, None]


def _occupy(rows: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Give each empty cluster the sample that lies farthest from the mean of its own."""
    counts = np.bincount(labels, minlength=n_clusters)
    for empty in np.flatnonzero(counts == 0):
        distance = np.sum((rows - _means(rows, labels, n_clusters)[labels]) ** 2, axis=1)
        distance[counts[labels] < 2] = -1.0  # the last sample of a cluster stays
        moved = int(np.argmax(distance))
        counts[labels[moved]] -= 1
        labels[moved] = empty
        counts[empty] = 1
    return labels


def lifted_start(rows: np.ndarray, n_groups: int, rng: np.random.Generator) -> np.ndarray:
    """Group rows by k-means, as a 0/1 matrix plus 0.2, the start of the authors of DRCC.

    A multiplicative rule cannot move an entry away from zero.
    """
    labels = kmeans(rows, n_groups, n_init=KMEANS_STARTS, rng=rng).labels
    return np.eye(n_groups)[labels] + 0.2


@declare
class BaselineClustering(ClusterMixin, BaseEstimator):
    """Base of the comparison methods: the loop over starts around one run of a method.

    A method implements `_run`, and may override `_check_parameters`, `_prepare` and `_label`.
    Runs see NumPy arrays, float64 unless the class says otherwise; the fitted arrays follow the
    library, device and floating type of `X`.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters, and of components where the model has any.
    n_init : int, default=1
        The number of starts; the run of least cost is kept.
    random_state : None, int, Generator or RandomState, default=None
        Source of randomness for the starts and for k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each sample; every label occurs.
    memberships_ : array of shape (n_samples, n_clusters)
        The weights on which labels are based.
    cost_ : float
        The objective at the end, in units of the data.
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
    """

    n_clusters: int = field(default=8, kw_only=False)
    n_init: int = 1
    random_state: Any = None

    _rules: ClassVar[Rules] = {"n_clusters": check_integer, "n_init": check_integer}
    """The rules of parameters; a subclass lists those of its own."""

    _positive_only = False
    """Whether negative data are refused."""

    _keeps_precision = False
    """Whether runs see float32 data as they are, for methods without small linear systems."""

    @property
    def _n_starts(self) -> int:
        """How often the method is run."""
        return self.n_init

    @abstractmethod
    def _run(self, data: Any, rng: np.random.Generator) -> Run:
        """Run the method once from a start drawn with `rng`, on what `_prepare` returned."""

    def _prepare(self, X: np.ndarray) -> Any:
        """Compute what all starts share."""
        return X

    def _check_parameters(self, X: np.ndarray) -> None:
        """Check all parameters, against each other and against the data."""
        check_rules(self)
        if X.shape[0] < self.n_clusters:
            raise ValueError(f"n_samples={X.shape[0]} must be >= n_clusters={self.n_clusters}.")

    @abstractmethod
    def _label(self, X: np.ndarray, run: Run, rng: np.random.Generator) -> np.ndarray:
        """Return the labels, and add to `run.fitted` what `predict` needs."""

    def _finish(self, X: np.ndarray, run: Run) -> None:
        """Complete the best run before its labels are assigned."""

    def fit(self, X: Array, y: None = None) -> Self:
        """Cluster the samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, d_1, ...)
            The samples. Methods for vectors flatten them.
        y : Ignored
            Ignored.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X = check_tensor(self, X, reset=True, positive=self._positive_only)
        host = to_numpy(X)
        if not self._keeps_precision:
            host = host.astype(np.float64, copy=False)
        self._check_parameters(host)
        rng = check_random_state(self.random_state)
        data = self._prepare(host)
        # One generator for each start: a start does not depend on how much the last one drew.
        seeds = rng.integers(2**63, size=(self._n_starts, 2))
        runs = (self._run(data, np.random.default_rng(seed)) for seed in seeds)
        best = min(runs, key=attrgetter("order"))
        self._finish(host, best)
        labels = self._label(host, best, rng)
        for name, value in best.fitted.items():
            setattr(self, name, follow(value, X))
        self.labels_, self.memberships_ = follow(labels, X), follow(best.memberships, X)
        self.cost_, self.history_ = best.cost, best.history
        self.n_iter_ = max(1, best.n_iter)
        self.stop_reason_, self.failure_ = best.stop_reason, best.failure
        if complaint := self._complaint(best):
            warnings.warn(f"{type(self).__name__} {complaint}", ConvergenceWarning, stacklevel=2)
        return self

    def _check_state(self) -> None:
        """Raise where fitted attributes, which a file may have made up, do not fit together."""
        # A failed run says that it means nothing.
        finite = self.stop_reason_ is not StopReason.FAILED
        check_stored(self.memberships_, "memberships_", (len(self.labels_), None), finite=finite)
        for name in ("components_", "centroids_"):
            if hasattr(self, name):
                shape = (None, *self.sample_shape_)
                check_stored(getattr(self, name), name, shape, finite=finite)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                check_stored(value, name, value.shape, finite=finite)
        if hasattr(self, "predict"):
            found = self.predict(np.ones((1, *self.sample_shape_), dtype=self.memberships_.dtype))
            check_stored(found, "what it predicts", (1,), kind="i")

    def _complaint(self, run: Run) -> str:
        """Say that the best run failed or stopped early, and how far off it was."""
        if run.stop_reason is StopReason.FAILED:
            return f"failed: {run.failure} Its labels mean nothing."
        return ""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.positive_only = self._positive_only
        return tags


class PredictsClusters(BaselineClustering):
    """Base of the methods that can label new samples."""

    @abstractmethod
    def _assign(self, X: np.ndarray) -> np.ndarray:
        """Return the clusters of samples of the fitted shape."""

    def predict(self, X: Array) -> Array:
        """Return the cluster of each sample, as the notes of the class say.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            Samples of the shape on which the model was fitted.

        Returns
        -------
        labels : array of shape (n_samples,)
            The labels.
        """
        X = check_tensor(self, X, reset=False, positive=self._positive_only)
        return follow(self._assign(to_numpy(X)).astype(np.int64), X)


@declare
class IterativeClustering(BaselineClustering):
    """Base of the methods that iterate to a tolerance and label samples by their memberships.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    max_iter : int, default=1000
        The limit on iterations of each start.
    tol : float, default=1e-5
        Stop when the error changes relatively by less than this in one iteration. With 0 all
        iterations are done.
    **shared : Any
        Parameters of `BaselineClustering`.
    """

    max_iter: int = 1000
    tol: float = 1e-5

    _rules: ClassVar[Rules] = {"max_iter": check_integer, "tol": check_real}

    def _label(self, X: np.ndarray, run: Run, rng: np.random.Generator) -> np.ndarray:
        """Return the labels, and add to `run.fitted` what `predict` needs."""
        rule = getattr(self, "assign_labels", "argmax")
        labels, centers = label_memberships(run.memberships, self.n_clusters, rule, rng)
        run.fitted["membership_centers_"] = centers
        return labels

    def _complaint(self, run: Run) -> str:
        if run.stop_reason is StopReason.MAX_ITER and self.tol > 0 and run.residual > self.tol:
            return (
                f"stopped after max_iter={self.max_iter} with {run.measure} "
                f"{run.residual:.1e} > tol={self.tol:g}. Raise max_iter or loosen tol."
            )
        return super()._complaint(run)


@declare
class ComponentClustering(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, IterativeClustering, PredictsClusters
):
    r"""Base of the methods that model a sample as a nonnegative mixture of components.

    .. math:: x \approx \sum_k u_k c_k, \qquad u \ge 0

    `_run` leaves the components in ``run.fitted["components_"]``, shape (n_clusters, d_1, ...).
    The memberships of training and of new samples come from one routine, the exact nonnegative
    least squares on the final components, so that `transform` agrees with `fit`.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters and of components.
    assign_labels : {"kmeans", "argmax"}, default="kmeans"
        Labels by k-means on the memberships, or by the largest one.
    max_iter : int, default=1000
        The limit on iterations of each start.
    tol : float, default=1e-5
        Stop when the error changes relatively by less than this in one iteration. With 0 all
        iterations are done.
    n_init : int, default=1
        The number of starts; the run of least cost is kept.
    random_state : None, int, Generator or RandomState, default=None
        Source of randomness for the starts and for k-means.

    Attributes
    ----------
    memberships_ : array of shape (n_samples, n_clusters)
        Nonnegative weights of the components in each sample.
    components_ : array of shape (n_clusters, d_1, ...)
        The components, each of unit norm.
    centroids_ : array of shape (n_clusters, d_1, ...)
        The mean model sample of each cluster.
    membership_centers_ : array of shape (n_clusters, n_clusters)
        The mean memberships of each cluster.
    """

    assign_labels: str = "kmeans"

    _rules: ClassVar[Rules] = {"assign_labels": one_of(LABEL_RULES)}

    def _finish(self, X: np.ndarray, run: Run) -> None:
        run.memberships = solve_components(X, run.fitted["components_"])

    def _label(self, X: np.ndarray, run: Run, rng: np.random.Generator) -> np.ndarray:
        labels = super()._label(X, run, rng)
        centers, components = run.fitted["membership_centers_"], run.fitted["components_"]
        run.fitted["centroids_"] = np.tensordot(centers, components, axes=1)
        return labels

    def transform(self, X: Array) -> Array:
        """Return the nonnegative weights of the components in each sample.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            Samples of the shape on which the model was fitted.

        Returns
        -------
        memberships : array of shape (n_samples, n_clusters)
            The weights.
        """
        X = check_tensor(self, X, reset=False, positive=self._positive_only)
        return follow(self._weights(to_numpy(X)), X)

    def _weights(self, X: np.ndarray) -> np.ndarray:
        return solve_components(X, to_numpy(self.components_))

    def fit_transform(self, X: Array, y: None = None) -> Array:
        """Fit the model and return the memberships of the samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, d_1, ...)
            The samples.
        y : Ignored
            Ignored.

        Returns
        -------
        memberships : array of shape (n_samples, n_clusters)
            The same as ``fit(X).transform(X)``.
        """
        return self.fit(X).transform(X)

    def _assign(self, X: np.ndarray) -> np.ndarray:
        """Take the nearest centre of the weights, or the largest weight."""
        weights = self._weights(X)
        if self.assign_labels == "argmax":
            return np.argmax(weights, axis=1)
        return nearest_center(weights, to_numpy(self.membership_centers_))

    def inverse_transform(self, memberships: Array) -> Array:
        """Rebuild samples from weights.

        Parameters
        ----------
        memberships : array of shape (n_samples, n_clusters)
            The weights.

        Returns
        -------
        X : array of shape (n_samples, d_1, ...)
            The samples that the components give.
        """
        xp = get_namespace(self.components_)
        memberships = asarray_like(memberships, self.components_)
        return xp.tensordot(memberships, self.components_, axes=1)

    def score(self, X: Array, y: None = None) -> float:
        """Return minus the mean squared error of reconstruction.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            Samples of the shape on which the model was fitted.
        y : Ignored
            Ignored.

        Returns
        -------
        score : float
            The larger, the better the components describe the samples.
        """
        X = check_tensor(self, X, reset=False, positive=self._positive_only)
        host, components = to_numpy(X), to_numpy(self.components_)
        residual = host - np.tensordot(self._weights(host), components, axes=1)
        return -float(np.mean(residual**2))

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])


def nearest_center(rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return the index of the nearest centre of each row, from 0 on."""
    scale = scale_of(centers)  # squares of tiny or huge entries leave the range of floats
    centers, rows = centers.astype(np.float64) / scale, rows / scale
    return np.argmin(np.sum(centers**2, axis=1) - 2.0 * rows @ centers.T, axis=1)


def follow(value: Any, like: Array) -> Any:
    """Move fitted arrays to the library and device of `like`, floats to its type.

    Parameters
    ----------
    value : object
        An array, a list or tuple of them, or anything else, which stays.
    like : array
        An array of the library and type wanted.

    Returns
    -------
    value : object
        The same; integer arrays become int64.
    """
    if isinstance(value, list | tuple):
        return type(value)(follow(entry, like) for entry in value)
    if not isinstance(value, np.ndarray):
        return value
    floating = np.issubdtype(value.dtype, np.floating)
    if is_numpy(like):
        return value.astype(like.dtype, copy=False) if floating else value
    xp = get_namespace(like)
    return asarray_like(value, like, dtype=like.dtype if floating else xp.int64)
