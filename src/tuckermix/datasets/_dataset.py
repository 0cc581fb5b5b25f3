"""The record of readers, loaders and generators, and labels with the index of their samples."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tuckermix._records import Record
from tuckermix._validation import samples_first


@dataclass(frozen=True)
class Dataset(Record):
    """Samples with what is known about them.

    Attributes
    ----------
    X : array of shape (n_samples, d_1, ...)
        The samples, in the type in which they are stored: images usually as uint8. The estimators
        convert to floating point themselves. A NumPy array, a memory map, or a Dask array where
        lazy reading was asked for.
    labels : ndarray of shape (n_samples,) or None
        The class of each sample, an integer, numbered as the source numbers them.
    names : list of str or None
        The name of each *sample*: for folders the path of its file relative to the folder, with
        forward slashes. None where samples have no names.
    class_names : list of str or None
        The name of each *class*: ``class_names[label]``. None where classes have no names.
    name : str
        What the dataset is called, for titles and tables.
    description : str
        One or two sentences on what it is and where it comes from.
    extra : dict
        What else the source holds, by name, such as the split into training and test part.
    """

    X: Any
    labels: np.ndarray | None = None
    names: list[str] | None = None
    class_names: list[str] | None = None
    name: str = ""
    description: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def n_samples(self) -> int:
        """The number of samples."""
        return int(self.X.shape[0])

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return tuple(int(size) for size in self.X.shape[1:])

    @property
    def n_classes(self) -> int | None:
        """The number of classes that occur, or None without labels."""
        return None if self.labels is None else int(np.unique(self.labels).size)

    def __repr__(self) -> str:
        classes = "no labels" if self.labels is None else f"{self.n_classes} classes"
        return (
            f"Dataset({self.name or 'unnamed'}: X {tuple(self.X.shape)} {self.X.dtype}, {classes})"
        )


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
        dims = (first, "cluster")[: values.ndim]
        return xarray.DataArray(values, dims=dims, coords=along, name="label")
    return values
