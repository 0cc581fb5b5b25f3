"""Labels with the index of what they belong to: for pandas and xarray, which are not imported."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tuckermix._validation import samples_first

CLUSTERS = "cluster"
"""The name of the axis of soft labels in xarray."""


def labels_like(labels: Any, X: Any) -> Any:
    """Give labels, or soft labels, the index of the samples that they belong to.

    Estimators return arrays, as those of scikit-learn do, also for data frames. This puts the index
    back: ``labels_like(model.labels_, X)``.

    Parameters
    ----------
    labels : array of shape (n_samples,) or (n_samples, n_clusters)
        Labels, as of `fit_predict`, or one column for each cluster, as of `predict_proba`.
    X : DataFrame, Series, DataArray or array of shape (n_samples, ...)
        The samples, with the first axis theirs.

    Returns
    -------
    labels : Series, DataFrame, DataArray or ndarray
        A Series named "label", or a DataFrame with a column for each cluster, where `X` is of
        pandas; a DataArray along the first dimension of `X`, with the coordinates along it, where
        `X` is of xarray; otherwise an array.

    Examples
    --------
    >>> import numpy as np
    >>> from tuckermix.datasets import labels_like
    >>> labels_like([0, 1], np.zeros((2, 5)))
    array([0, 1])
    """
    values, X = np.asarray(labels), samples_first(X)
    if values.ndim not in (1, 2) or len(values) != len(X):
        raise ValueError(
            f"labels has shape {values.shape}, but X has {len(X)} samples: give one label, or one "
            "row of soft labels, for each sample."
        )
    package = type(X).__module__.partition(".")[0]
    if package == "pandas":
        pandas = sys.modules["pandas"]
        if values.ndim == 1:
            return pandas.Series(values, index=X.index, name="label")
        return pandas.DataFrame(values, index=X.index)
    if package == "xarray":
        xarray = sys.modules["xarray"]
        first = X.dims[0]
        along = {name: axis for name, axis in X.coords.items() if axis.dims == (first,)}
        dims = (first, CLUSTERS)[: values.ndim]
        return xarray.DataArray(values, dims=dims, coords=along, name="label")
    return values
