"""What a fitted model is asked: labels, soft labels, mixing weights, rebuilt samples, a score."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tuckermix import inference
from tuckermix._array_api import Array, asarray_like, is_array, is_dask
from tuckermix._threads import one_blas_thread
from tuckermix._validation import check_same_library, check_sample_shape, check_tensor
from tuckermix.sources.memory import explain_shortage

__all__ = ["FittedMethods"]


class FittedMethods(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """The methods of the estimator that need a fit.

    They validate samples, bring them to the library and type of the model, and ask `inference`.
    """

    core_: Array
    n_components_: int
    _model_: inference.FittedModel
    _labeller_: Any

    @explain_shortage
    @one_blas_thread
    def predict_proba(self, X: Any) -> Array:
        """Give soft labels: the share of votes of the nearest fitted samples.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            Samples of the shape on which the model was fitted.

        Returns
        -------
        probabilities : array of shape (n_samples, n_clusters)
            Rows that sum to one; the label is the position of the largest entry.
        """
        return inference.probabilities(
            self._model_of(), self._labeller_, self._validated(X, "predict_proba")
        )

    @explain_shortage
    @one_blas_thread
    def predict(self, X: Any) -> Array:
        """Give each sample the label of the cluster that it resembles most.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            Samples of the shape on which the model was fitted.

        Returns
        -------
        labels : array of shape (n_samples,)
            Labels from 0 to ``n_clusters - 1``.
        """
        return inference.labels(self._model_of(), self._labeller_, self._validated(X, "predict"))

    @explain_shortage
    @one_blas_thread
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
        return inference.mixing_weights(self._model_of(), self._validated(X, "transform"))

    @explain_shortage
    @one_blas_thread
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
        model = self._model_of()
        weights = memberships
        if is_dask(memberships) or is_array(memberships):
            name = f"{type(self).__name__}.inverse_transform()"
            check_same_library(memberships, self.core_, name)
        if not is_dask(memberships):
            weights = asarray_like(memberships, self.core_)
        if weights.ndim != 2 or weights.shape[1] != self.n_components_:
            raise ValueError(
                f"memberships must have shape (n_samples, {self.n_components_}), one column for "
                f"each component of this model. Got {tuple(weights.shape)} instead."
            )
        return inference.rebuild(model, weights)

    @explain_shortage
    @one_blas_thread
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
        return -inference.mean_squared_error(self._model_of(), self._validated(X, "score"))

    def _subspace(self, X: Any) -> Array:
        """Return the rows of the samples in the subspace from which labels are read."""
        return inference.subspace_rows(self._model_of(), self._validated(X, "_subspace"))

    def _model_of(self) -> inference.FittedModel:
        check_is_fitted(self)
        return self._model_

    def _validated(self, X: Any, method: str) -> Array:
        X = self._checked(X, reset=False)
        check_same_library(X, self.core_, f"{type(self).__name__}.{method}()")
        return X.astype(self.core_.dtype) if is_dask(X) else asarray_like(X, self.core_)

    def _checked(self, X: Any, *, reset: bool) -> Array:
        """Validate samples; a Dask array stays lazy, its values are looked at when it is read."""
        if not is_dask(X):
            return check_tensor(self, X, reset=reset)
        from tuckermix.sources.dask import check_dask

        X = check_dask(X)
        check_sample_shape(self, X.shape, reset)
        return X
