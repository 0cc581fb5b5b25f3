r"""View of a candidate: features, their directions, and points weighted by a ridge.

A candidate of this package labels samples by a graph of nearest neighbours among points. The points
of one set of features follow from a single decomposition for every number of clusters:

.. math:: w_j = \left(\frac{\lambda_j}{\lambda_j + \lambda_e}\right)^p

weighs the direction j of the projected samples, whose energy is :math:`\lambda_j`; the edge e is a
multiple of the number of clusters. So features, factors and directions are computed once, and a
number of clusters costs a product and a graph.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.fft import dct, idct
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from tuckermix._array_api import Array, to_numpy
from tuckermix._records import Record
from tuckermix._validation import check_ranks, check_tensor
from tuckermix.clustering import TuckerClustering
from tuckermix.decomposition.fit import hosvd
from tuckermix.features.registry import first_steps, last_step
from tuckermix.model import FLAT_BELOW, NEGLIGIBLE
from tuckermix.selection.multiview import MultiViewClustering
from tuckermix.selection.shared import Features
from tuckermix.sources import Source

RELATIVE_RANK = 1e-6
"""Directions whose singular value is below this part of the largest are rounding."""

SINGLE_BEYOND = 4096
"""Columns of features of images, whose weak directions drown in noise anyway."""


@dataclass(frozen=True)
class Look(Record):
    """One way to look at samples, as an estimator has it.

    Attributes
    ----------
    transformers : Pipeline or None
        What computes the features; None for the samples themselves.
    model : TuckerClustering
        Whose parameters say how the features are compared.
    """

    transformers: Pipeline | None
    model: TuckerClustering

    @property
    def features(self) -> str:
        """A name for the features with these ranks: looks of the same name share them."""
        return f"{self.transformers!r} {self.model.ranks!r}"

    @property
    def weighting(self) -> tuple[float, float]:
        """The edge of the ridge, in clusters, and its power."""
        graph = self.model.labelling.graph
        return float(graph.ridge_edge), float(graph.ridge_power)

    @property
    def n_neighbors(self) -> int:
        """The number of neighbours in its graph."""
        return self.model.labelling.graph.n_neighbors


@dataclass(frozen=True)
class Spectrum(Record):
    """The centred projected samples as ``vectors @ diag(values) @ directions.T``.

    Attributes
    ----------
    vectors : ndarray of shape (n_samples, rank)
        Orthonormal columns.
    values : ndarray of shape (rank,)
        The singular values, falling.
    """

    vectors: np.ndarray
    values: np.ndarray


def looks_of(estimator: Any) -> list[Look] | None:
    """Read from an estimator which views it sums; None where its label step is not ours.

    Parameters
    ----------
    estimator : object
        A candidate.

    Returns
    -------
    looks : list of Look or None
        One for a `TuckerClustering` that labels by the graph, alone or at the end of a pipeline;
        several for a `MultiViewClustering` of such; None for all others.
    """
    if isinstance(estimator, MultiViewClustering):
        inner = [looks_of(view) for _, view in estimator.views]
        if any(look is None for look in inner):
            return None
        return [look for looks in inner for look in looks or []]
    model = last_step(estimator)
    if type(model) is not TuckerClustering or model.labelling.name != "graph":
        return None
    return [Look(first_steps(estimator), model)]


def spectrum_of(X: Array, ranks: Any) -> Spectrum:
    """Project samples on the leading subspaces of their modes and decompose what is left.

    Parameters
    ----------
    X : array of shape (n_samples, d_1, ...)
        The samples, or features of them, in memory.
    ranks : None, int, float or tuple of int
        See `TuckerClustering`.

    Returns
    -------
    spectrum : Spectrum
        The directions that tell samples apart, on the host, in float64.
    """
    return decomposed(_projected(X, ranks))


def projected(look: Look, features: Features) -> np.ndarray:
    """Project the features of samples in memory on the leading subspaces of their modes."""
    before = None if look.transformers is None else clone(look.transformers)
    return _projected(features.fit_transform(before), look.model.ranks)


def _projected(X: Array, ranks: Any) -> np.ndarray:
    model = TuckerClustering(ranks=ranks)
    X = check_tensor(model, X, reset=True)
    source = Source(X)
    shape = source.sample_shape
    checked = check_ranks(ranks, shape, "TuckerClustering")
    _, factors = hosvd(source, checked)
    return to_numpy(source.project(factors))


def decomposed(B: np.ndarray) -> Spectrum:
    """Find the directions that tell projected samples apart, in float64.

    Products of very many columns are taken in the type that these have.
    """
    if B.shape[1] <= SINGLE_BEYOND:
        B = B.astype(np.float64)
    B = B - B.mean(axis=0)
    tall = B.shape[0] > B.shape[1]
    energies, vectors = np.linalg.eigh((B.T @ B if tall else B @ B.T).astype(np.float64))
    values = np.sqrt(np.clip(energies[::-1], 0.0, None))
    vectors = vectors[:, ::-1]
    keep = min(int(np.sum(values > RELATIVE_RANK * values[0])), len(B) - 1)
    values, vectors = values[:keep], vectors[:, :keep]
    return Spectrum(B @ vectors / values if tall else vectors, values)


def rotated(spectra: list[Spectrum], rng: np.random.Generator) -> list[Spectrum]:
    """Rotate the samples of several spectra at random, in the same way.

    Parameters
    ----------
    spectra : list of Spectrum
        Of the same samples.
    rng : numpy.random.Generator
        The source of the rotation.

    Returns
    -------
    spectra : list of Spectrum
        Of samples of one normal cloud with the same directions: there the left singular vectors are
        a random rotation of any others with mean 0.
    """
    count = len(spectra[0].vectors) - 1
    # Three flips, orders and cosine transforms make what no test tells from any rotation.
    steps = [(rng.choice([-1.0, 1.0], (count, 1)), rng.permutation(count)) for _ in range(3)]

    def turn(vectors: np.ndarray) -> np.ndarray:
        rows = dct(vectors, axis=0, norm="ortho")
        for flip, order in steps:  # the first row is that of the mean, 0
            rows[1:] = dct(flip * rows[1:][order], type=4, axis=0, norm="ortho")
        return idct(rows, axis=0, norm="ortho")

    return [Spectrum(turn(spectrum.vectors), spectrum.values) for spectrum in spectra]


def ridge_points(spectrum: Spectrum, edge: int, power: float) -> np.ndarray:
    """Place samples as `tuckermix.model.Model.place` does, for a given edge of the ridge.

    Parameters
    ----------
    spectrum : Spectrum
        The decomposed samples.
    edge : int
        The direction that counts for a half, counted from 0.
    power : float
        The power of the weights.

    Returns
    -------
    Z : ndarray of shape (n_samples, 1 + d)
        Rows of unit length.
    """
    n_samples = len(spectrum.vectors)
    squares = spectrum.values**2
    if len(squares) == 0:
        return np.ones((n_samples, 1))
    weights = (squares / (squares + squares[min(edge, len(squares) - 1)])) ** power
    rest = np.cumsum(weights[::-1] ** 2)[::-1]
    weights = weights[: int(np.sum(rest > NEGLIGIBLE * rest[0]))]
    scale = math.sqrt(n_samples / float(np.mean(weights**2)))
    constant = math.hypot(1.0, FLAT_BELOW / len(weights))
    coordinates = spectrum.vectors[:, : len(weights)] * (weights * scale)
    rows = np.concatenate([np.full((n_samples, 1), constant), coordinates], axis=1)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
