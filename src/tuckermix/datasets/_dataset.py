"""The record that every reader, loader and generator of this package returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tuckermix._records import Record


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
