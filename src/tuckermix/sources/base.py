"""The interface through which solvers see the data, and the choice of its implementation.

A sweep of the exact solver needs the product of the samples with a basis, its Gram matrix and the
sums of the samples weighted by it. All three come out of one pass, `Source.sketch`, because the
weights of a block of samples follow from that block alone once the mean is known.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuckermix._array_api import Array, is_dask
from tuckermix._records import Record

__all__ = ["Sketch", "Source", "as_source"]


@dataclass(frozen=True)
class Sketch(Record):
    """What one pass over the samples tells of their part in a small subspace.

    With `y` the centred samples projected on the factors and the basis,

    Attributes
    ----------
    gram : array of shape (k, k)
        The sum of y yᵀ over the samples, in float64.
    cross : array of shape (k, d_1, ...) or None
        The sum of y xᵀ over the samples, in float64, where it was asked for.
    """

    gram: Array
    cross: Array | None


class Source(ABC):
    """Samples that are only ever reduced, never handed out as a whole.

    The samples are multiplied by `scale`, a power of two, wherever they are read, so that squares
    neither overflow nor vanish. It is 1 for data of ordinary size.

    Attributes
    ----------
    n_samples : int
        The number of samples M.
    sample_shape : tuple of int
        The shape of one sample.
    like : array
        A small array of the library, device and floating type of the data.
    scale : float
        What the samples are multiplied by.
    squared_norm : float
        The squared norm of the scaled samples.
    mean : array of shape (d_1, ...)
        The mean of the scaled samples, in float64.
    lazy : bool
        Whether rows of samples come back as a Dask array.
    """

    n_samples: int
    sample_shape: tuple[int, ...]
    like: Array
    scale: float
    squared_norm: float
    mean: Array
    lazy: bool = False

    @abstractmethod
    def mode_grams(self, factors: Sequence[Array] | None = None) -> list[Array]:
        """Compute the Gram matrix of each feature mode.

        Parameters
        ----------
        factors : sequence of arrays of shape (d_n, r_n) or None, default=None
            Where given, the matrix of mode n is that of the samples projected on the factors of
            all other modes.

        Returns
        -------
        grams : list of arrays of shape (d_n, d_n)
            In float64.
        """

    @abstractmethod
    def project(self, factors: Sequence[Array], basis: Array | None = None) -> Array:
        """Project the samples on the factors, and further on a basis of the projected space.

        Parameters
        ----------
        factors : sequence of arrays of shape (d_n, r_n)
            Orthonormal factors.
        basis : array of shape (product of r_n, k) or None, default=None
            A basis of part of the projected space.

        Returns
        -------
        B : array of shape (n_samples, product of r_n) or (n_samples, k)
            The projected samples as rows.
        """

    @abstractmethod
    def contract(self, Q: Array) -> Array:
        """Sum the samples with weights.

        Parameters
        ----------
        Q : array of shape (n_samples, k)
            The weights.

        Returns
        -------
        T : array of shape (k, d_1, ...)
            The k weighted sums, in float64.
        """

    @abstractmethod
    def sketch(self, factors: Sequence[Array], basis: Array, *, cross: bool = True) -> Sketch:
        """Read the samples once for all that a sweep of the exact solver needs.

        Parameters
        ----------
        factors : sequence of arrays of shape (d_n, r_n)
            Orthonormal factors.
        basis : array of shape (product of r_n, k)
            A basis of part of the projected space.
        cross : bool, default=True
            Whether the sums with the whole samples are wanted as well.

        Returns
        -------
        sketch : Sketch
            The sums over all samples.
        """

    @abstractmethod
    def take(self, indices: np.ndarray) -> Source:
        """Return a source in memory of the samples with these indices.

        Parameters
        ----------
        indices : array of int
            Sorted indices of samples.

        Returns
        -------
        source : Source
            The chosen samples.
        """


def as_source(X: Any) -> Source:
    """Wrap an array as the source that suits it.

    Parameters
    ----------
    X : array of shape (n_samples, d_1, ...)
        A NumPy, PyTorch, CuPy, JAX or Dask array, already validated.

    Returns
    -------
    source : Source
        The samples, ready to be reduced.
    """
    if is_dask(X):
        from tuckermix.sources.dask import DaskSource

        return DaskSource(X)
    from tuckermix.sources.memory import MemorySource

    return MemorySource(X)
