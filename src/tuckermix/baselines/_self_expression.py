r"""What the methods share that write each sample as a combination of the others.

The affinity of two samples is how much one of them contributes to the other; clusters are cut from
it by the leading eigenvectors. Samples are flattened and divided by their norms, so that a cluster
is a set of samples on or near a low-dimensional subspace. All of it works on matrices with a row
and a column for each sample, which limits the methods to some ten thousand of them.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import eigh

from tuckermix._array_api import to_numpy
from tuckermix._declaration import declare
from tuckermix._records import Record, StopReason
from tuckermix.baselines._base import PredictsClusters
from tuckermix.baselines._run import Run, Trace
from tuckermix.baselines.nonnegative import scale_of, unit_rows
from tuckermix.numerics.points import kmeans


def symmetrized(C: np.ndarray) -> np.ndarray:
    r"""Turn coefficients into an affinity, :math:`W = \tfrac12 (|C| + |C|^\top)`."""
    size = np.abs(C)
    return 0.5 * (size + size.T)


def normalized_eigenvectors(W: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Return the leading eigenpairs of :math:`D^{-1/2} W D^{-1/2}`.

    By a dense solver: affinities fall apart into parts when a method works well, and the repeated
    eigenvalue 1 is then what iterative solvers miss.

    Parameters
    ----------
    W : ndarray of shape (n, n)
        A symmetric affinity. A sample without any affinity, a blank image for one, has the
        eigenvalue 0: as a part of its own it would take a cluster from all others.
    count : int
        The number of pairs, at most n.

    Returns
    -------
    values : ndarray of shape (count,)
        The eigenvalues, the largest first, at most 1.
    vectors : ndarray of shape (n, count)
        The eigenvectors as columns.
    roots : ndarray of shape (n,)
        The inverse square roots of the degrees D.
    """
    degrees = W.sum(axis=1)
    roots = 1.0 / np.sqrt(np.where(degrees > 0, degrees, 1.0))
    matrix = roots[:, None] * W * roots
    size = len(W)
    values, vectors = eigh(matrix, subset_by_index=[size - count, size - 1], overwrite_a=True)
    return values[::-1], vectors[:, ::-1], roots


@dataclass
class Expression(Record):
    """How samples are expressed by each other.

    Attributes
    ----------
    coefficients : ndarray of shape (n_samples, n_samples)
        Column j has the coefficients of sample j.
    affinity : ndarray of shape (n_samples, n_samples)
        What is cut into clusters, symmetric.
    n_iter : int
        Iterations done, 1 for a closed form.
    fitted : dict
        Further fitted attributes by name.
    """

    coefficients: np.ndarray
    affinity: np.ndarray
    n_iter: int = 1
    fitted: dict[str, Any] = field(default_factory=dict)


@declare
class SelfExpression(PredictsClusters):
    """Base of the methods that cluster samples by how they express each other.

    A method implements `_express`, for the training samples, and `_contributions`, for new ones.

    Parameters
    ----------
    n_init : int, default=20
        The number of starts of k-means on the eigenvectors.

    Attributes
    ----------
    memberships_ : array of shape (n_samples, n_clusters)
        The share of each sample's affinity that goes to each cluster; rows sum to one.
    affinity_matrix_ : array of shape (n_samples, n_samples)
        How much two samples contribute to each other, symmetric.
    training_rows_ : array of shape (n_samples, n_features)
        The flattened training samples as they were expressed, for `predict`.
    cost_ : float
        Half the squared error of the expressions of samples of norm 1.
    history_ : list of Step
        One record.
    """

    n_init: int = 20

    @abstractmethod
    def _express(self, Z: np.ndarray) -> Expression:
        """Express each row by the others."""

    @abstractmethod
    def _contributions(self, rows: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return the coefficients (n, n_samples) of new rows in the training rows Z."""

    def _reduced(self, flat: np.ndarray) -> np.ndarray:
        """Reduce flattened samples before they are divided by their norms."""
        return flat

    def _embed(self, expression: Expression) -> np.ndarray:
        """Return the leading eigenvectors, rows divided by their norms (Ng, Jordan and Weiss)."""
        return unit_rows(normalized_eigenvectors(expression.affinity, self.n_clusters)[1])

    @property
    def _n_starts(self) -> int:
        return 1  # the starts are those of k-means alone

    def _prepare(self, X: np.ndarray) -> np.ndarray:
        # In units of the largest entry no square leaves the range of floats.
        return unit_rows(self._reduced(X.reshape(X.shape[0], -1) / scale_of(X)))

    def _run(self, data: np.ndarray, rng: np.random.Generator) -> Run:
        trace = Trace(float(np.vdot(data, data)))
        found = self._express(data)
        residual = data - found.coefficients.T @ data
        trace.add(0.5 * float(np.vdot(residual, residual)))
        fitted = {"affinity_matrix_": found.affinity, "training_rows_": data, **found.fitted}
        return Run(
            memberships=self._embed(found),
            cost=trace.records[-1].cost,
            n_iter=found.n_iter,
            stop_reason=StopReason.TOLERANCE,
            history=trace.records,
            fitted=fitted,
        )

    def _label(self, X: np.ndarray, run: Run, rng: np.random.Generator) -> np.ndarray:
        labels = kmeans(run.memberships, self.n_clusters, n_init=self.n_init, rng=rng).labels
        indicator = np.eye(self.n_clusters)[labels]
        shares = run.fitted["affinity_matrix_"] @ indicator
        total = shares.sum(axis=1, keepdims=True)
        run.memberships = np.where(total > 0, shares / np.where(total > 0, total, 1.0), indicator)
        return labels

    def _assign(self, X: np.ndarray) -> np.ndarray:
        """Take the cluster whose samples contribute most."""
        flat = X.reshape(X.shape[0], -1).astype(np.float64)
        rows = unit_rows(self._reduced(flat / scale_of(flat)))
        Z = to_numpy(self.training_rows_).astype(np.float64)
        sizes = np.abs(self._contributions(rows, Z))
        return np.argmax(sizes @ np.eye(self.n_clusters)[to_numpy(self.labels_)], axis=1)
