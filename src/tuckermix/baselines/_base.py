"""What all comparison methods share: checking, starts, labels, records of the run."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import field
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
from tuckermix._declaration import PREDICT, check_declared, declare, describe, ruled
from tuckermix._records import StopReason
from tuckermix._validation import (
    check_integer,
    check_random_state,
    check_real,
    check_stored,
    check_tensor,
    one_of,
)
from tuckermix.baselines._labels import LABEL_RULES, label_memberships
from tuckermix.baselines._run import Run, Step
from tuckermix.baselines.nonnegative import scale_of, solve_components


class _Fitted:
    """Attributes that `fit` sets, for type checkers."""

    labels_: Array
    memberships_: Array
    components_: Array
    membership_centers_: Array
    factors_: list[Array]
    core_: Array
    history_: list[Step]
    affinity_matrix_: Array
    training_rows_: Array


@declare
class BaselineClustering(_Fitted, ClusterMixin, BaseEstimator):
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
        One record an iteration, the start first.
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

    n_clusters: int = field(default=8, kw_only=False, metadata={"rule": check_integer})
    n_init: int = ruled(1, check_integer)
    random_state: Any = None

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
        check_declared(self)
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
        best: Run | None = None
        # One generator for each start: a start does not depend on how much the last one drew.
        for seed in rng.integers(2**63, size=(self._n_starts, 2)):
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
        self.labels_ = follow(labels, like)
        self.memberships_ = follow(run.memberships, like)
        for name, value in run.fitted.items():
            setattr(self, name, follow(value, like))
        self.cost_ = run.cost
        self.history_ = run.history
        self.n_iter_ = max(1, run.n_iter)
        self.stop_reason_ = run.stop_reason
        self.failure_ = run.failure

    def _check_state(self) -> None:
        """Raise where fitted attributes, which a file may have made up, do not fit together."""
        finite = (
            self.stop_reason_ is not StopReason.FAILED
        )  # a failed run says that it means nothing
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

    def _warn(self, run: Run) -> None:
        """Say that the best run failed or stopped early, and how far off it was."""
        text = self._complaint(run)
        if text:
            warnings.warn(f"{type(self).__name__} {text}", ConvergenceWarning, stacklevel=3)

    def _complaint(self, run: Run) -> str:
        if run.stop_reason is StopReason.FAILED:
            return f"failed: {run.failure} Its labels mean nothing."
        return ""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.positive_only = self._positive_only
        return tags


@declare
class PredictsClusters(BaselineClustering):
    """Base of the methods that can label samples which they have not seen."""

    @abstractmethod
    def _assign(self, X: np.ndarray) -> np.ndarray:
        """Return the clusters of samples of the fitted shape."""

    @describe(PREDICT)
    def predict(self, X: Array) -> Array:
        """Return the cluster of each sample, as the notes of the class say.

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
    max_iter : int, default=1000
        The limit on iterations of each start.
    tol : float, default=1e-5
        Stop when the error changes relatively by less than this in one iteration. With 0 all
        iterations are done.
    """

    max_iter: int = ruled(1000, check_integer)
    tol: float = ruled(1e-5, check_real)

    @property
    def _label_rule(self) -> str:
        """The parameter `assign_labels`; the largest membership for methods that have none."""
        return getattr(self, "assign_labels", "argmax")

    def _label(self, X: np.ndarray, run: Run, rng: np.random.Generator) -> np.ndarray:
        """Return the labels, and add to `run.fitted` what `predict` needs."""
        labels, centers = label_memberships(run.memberships, self.n_clusters, self._label_rule, rng)
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
    assign_labels : {"kmeans", "argmax"}, default="kmeans"
        Labels by k-means on the memberships, or by the largest one.

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

    assign_labels: str = ruled("kmeans", one_of(LABEL_RULES))

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

    @describe(PREDICT)
    def transform(self, X: Array) -> Array:
        """Return the nonnegative weights of the components in each sample.

        Returns
        -------
        memberships : array of shape (n_samples, n_clusters)
            The weights.
        """
        X = check_tensor(self, X, reset=False, positive=self._positive_only)
        return follow(self._weights(to_numpy(X)), X)

    def _weights(self, X: np.ndarray) -> np.ndarray:
        components = to_numpy(self.components_)
        flat = X.reshape(X.shape[0], -1)
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

    @describe(PREDICT)
    def score(self, X: Array, y: None = None) -> float:
        """Return minus the mean squared error of reconstruction.

        Parameters
        ----------
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
