"""What all comparison methods share: checking, starts, labels, records of the run."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning

from tuckermix._array_api import Array, asarray_like, get_namespace, is_numpy, to_numpy
from tuckermix._records import Record, StopReason
from tuckermix._validation import (
    check_integer,
    check_option,
    check_random_state,
    check_real,
    check_tensor,
)
from tuckermix.baselines._labels import LABEL_RULES, label_memberships
from tuckermix.baselines.nonnegative import scale_of, solve_components

__all__ = ["BaselineClustering", "ComponentClustering", "Run", "Step"]


@dataclass(frozen=True)
class Step(Record):
    """One iteration of a method.

    Attributes
    ----------
    iteration : int
        Zero for the start.
    cost : float
        The objective of the method, in units of the data.
    relative_error : float
        Norm of the residual divided by the norm of the data.
    time : float
        Seconds since the start of the run.
    gap : float
        Distance to a known optimum; not a number, since these methods know none.
    """

    iteration: int
    cost: float
    relative_error: float
    time: float
    gap: float = float("nan")


@dataclass
class Run(Record):
    """What one start of a method gives; the estimator keeps the run of least cost.

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
        One record an iteration, the start first.
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
    measure: str = "relative change of the cost"
    residual: float = float("nan")
    failure: str = ""

    def beats(self, other: Run | None) -> bool:
        """Tell whether this run is to be kept rather than `other`."""
        if other is None:
            return True
        failed, other_failed = (r.stop_reason is StopReason.FAILED for r in (self, other))
        return self.cost < other.cost if failed == other_failed else other_failed


class BaselineClustering(ClusterMixin, BaseEstimator):
    """Base of the comparison methods: the loop over starts around one run of a method.

    A method implements `_run`, and may override `_check_parameters`, `_prepare` and `_label`.
    Runs see NumPy arrays, float64 unless the class says otherwise; the fitted arrays follow the
    library, device and floating type of `X`.
    """

    _positive_only = False
    """Whether negative data are refused."""

    _keeps_precision = False
    """Whether runs see float32 data as they are, for methods without small linear systems."""

    n_clusters: int
    n_init: int
    max_iter: int
    tol: float
    random_state: Any
    assign_labels: str

    labels_: Array
    memberships_: Array

    @abstractmethod
    def _run(self, data: Any, rng: np.random.Generator) -> Run:
        """Run the method once from a start drawn with `rng`, on what `_prepare` returned."""

    def _prepare(self, X: np.ndarray) -> Any:
        """Compute what all starts share."""
        return X

    def _check_parameters(self, X: np.ndarray) -> None:
        """Check all parameters, against each other and against the data."""
        owner = type(self).__name__
        check_integer(self.n_clusters, "n_clusters", owner)
        check_integer(self.n_init, "n_init", owner)
        check_integer(self.max_iter, "max_iter", owner)
        check_real(self.tol, "tol", owner)
        if hasattr(self, "assign_labels"):
            check_option(self.assign_labels, "assign_labels", owner, LABEL_RULES)
        if X.shape[0] < self.n_clusters:
            raise ValueError(f"n_samples={X.shape[0]} must be >= n_clusters={self.n_clusters}.")

    def _label(self, X: np.ndarray, run: Run, rng: np.random.Generator) -> np.ndarray:
        """Return the labels, and add to `run.fitted` what `predict` needs."""
        labels, centers = label_memberships(
            run.memberships, self.n_clusters, self.assign_labels, rng
        )
        run.fitted["membership_centers_"] = centers
        return labels

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
        best: Run | None = None
        # One generator for each start: a start does not depend on how much the last one drew.
        for seed in rng.integers(2**63, size=(self.n_init, 2)):
            run = self._run(data, np.random.default_rng(seed))
            if run.beats(best):
                best = run
        assert best is not None
        self._finish(host, best)
        labels = self._label(host, best, rng)
        self._store(best, labels, X)
        self._warn(best)
        return self

    def _store(self, run: Run, labels: np.ndarray, like: Array) -> None:
        """Set the fitted attributes, on the library, device and floating type of `like`."""
        self.labels_ = _follow(labels, like)
        self.memberships_ = _follow(run.memberships, like)
        for name, value in run.fitted.items():
            setattr(self, name, _follow(value, like))
        self.cost_ = run.cost
        self.history_ = run.history
        self.n_iter_ = max(1, run.n_iter)
        self.stop_reason_ = run.stop_reason
        self.failure_ = run.failure

    def _warn(self, run: Run) -> None:
        """Say that the best run failed or stopped early, and how far off it was."""
        owner = type(self).__name__
        if run.stop_reason is StopReason.FAILED:
            text = f"{owner} failed: {run.failure} Its labels mean nothing."
        elif run.stop_reason is StopReason.MAX_ITER and self.tol > 0 and run.residual > self.tol:
            text = (
                f"{owner} stopped after max_iter={self.max_iter} with {run.measure} "
                f"{run.residual:.1e} > tol={self.tol:g}. Raise max_iter or loosen tol."
            )
        else:
            return
        warnings.warn(text, ConvergenceWarning, stacklevel=3)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.positive_only = self._positive_only
        return tags


class ComponentClustering(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaselineClustering):
    r"""Base of the methods that model a sample as a nonnegative mixture of components.

    .. math:: x \approx \sum_k u_k c_k, \qquad u \ge 0

    `_run` leaves the components in ``run.fitted["components_"]``, shape (n_clusters, d_1, ...).
    The memberships of training and of new samples come from one routine, the exact nonnegative
    least squares on the final components, so that `transform` agrees with `fit`.
    """

    components_: Array
    membership_centers_: Array

    def _finish(self, X: np.ndarray, run: Run) -> None:
        components = run.fitted["components_"]
        run.memberships = solve_components(
            X.reshape(X.shape[0], -1), components.reshape(components.shape[0], -1)
        )

    def _label(self, X: np.ndarray, run: Run, rng: np.random.Generator) -> np.ndarray:
        labels = super()._label(X, run, rng)
        centers, components = run.fitted["membership_centers_"], run.fitted["components_"]
        run.fitted["centroids_"] = np.tensordot(centers, components, axes=1)
        return labels

    def transform(self, X: Array) -> Array:
        """Return the nonnegative weights of the components in each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, d_1, ...)
            Samples of the fitted shape.

        Returns
        -------
        memberships : array of shape (n_samples, n_clusters)
            The weights.
        """
        X = check_tensor(self, X, reset=False, positive=self._positive_only)
        return _follow(self._weights(X), X)

    def _weights(self, X: Array) -> np.ndarray:
        components = to_numpy(self.components_)
        flat = to_numpy(X).reshape(X.shape[0], -1)
        return solve_components(flat, components.reshape(components.shape[0], -1))

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
            The weights, those of `transform`.
        """
        return self.fit(X).memberships_

    def predict(self, X: Array) -> Array:
        """Return the cluster of each sample: that of its weights' nearest centre.

        Parameters
        ----------
        X : array-like of shape (n_samples, d_1, ...)
            Samples of the fitted shape.

        Returns
        -------
        labels : array of shape (n_samples,)
            The labels; with `assign_labels="argmax"`, the largest weight.
        """
        X = check_tensor(self, X, reset=False, positive=self._positive_only)
        weights = self._weights(X)
        if self.assign_labels == "argmax":
            return _follow(np.argmax(weights, axis=1).astype(np.int64), X)
        centers = to_numpy(self.membership_centers_).astype(np.float64)
        scale = scale_of(centers)
        centers, weights = centers / scale, weights / scale
        distance = np.sum(centers**2, axis=1) - 2.0 * weights @ centers.T
        return _follow(np.argmin(distance, axis=1).astype(np.int64), X)

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
        X : array-like of shape (n_samples, d_1, ...)
            Samples of the fitted shape.
        y : Ignored
            Ignored.

        Returns
        -------
        score : float
            The larger, the better the components describe the samples.
        """
        X = check_tensor(self, X, reset=False, positive=self._positive_only)
        weights, components = self._weights(X), to_numpy(self.components_)
        residual = to_numpy(X) - np.tensordot(weights, components, axes=1)
        return -float(np.mean(residual**2))

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])


def _follow(value: Any, like: Array) -> Any:
    """Move fitted arrays to the library and device of `like`, floats to its type."""
    if isinstance(value, list | tuple):
        return type(value)(_follow(entry, like) for entry in value)
    if not isinstance(value, np.ndarray):
        return value
    floating = np.issubdtype(value.dtype, np.floating)
    if is_numpy(like):
        return value.astype(like.dtype, copy=False) if floating else value
    xp = get_namespace(like)
    return asarray_like(value, like, dtype=like.dtype if floating else xp.int64)
