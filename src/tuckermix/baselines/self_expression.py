"""Methods that write each sample as a combination of the others."""

from __future__ import annotations

import itertools
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import enet_path
from sklearn.neighbors import kneighbors_graph

from tuckermix._array_api import Array, asarray_like, get_namespace, is_numpy, to_numpy
from tuckermix._estimators import declare
from tuckermix._records import Record, StopReason
from tuckermix._validation import (
    Rules,
    check_integer,
    check_real,
    inner_share,
    none_or,
    one_of,
    positive,
)
from tuckermix.baselines._base import PredictsClusters, Run, Trace
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
    n_clusters : int, default=8
        The number of clusters.
    n_init : int, default=20
        The number of starts of k-means on the eigenvectors.
    random_state : None, int, Generator or RandomState, default=None
        Source of randomness for k-means.

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
        facts = {"n_iter": found.n_iter, "fitted": fitted}
        return trace.run(self._embed(found), StopReason.TOLERANCE, **facts)

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


def ridge_coefficients(G: np.ndarray, penalty: float, *, zero_diagonal: bool) -> np.ndarray:
    r"""Express each sample by the others with the least squared coefficients.

    .. math:: \min_C \lVert Z^\top - Z^\top C \rVert_F^2 + \lambda \lVert C \rVert_F^2

    With :math:`G = Z Z^\top` and :math:`P = (G + \lambda I)^{-1}` the solution is
    :math:`C = P G = I - \lambda P`; under the constraint :math:`\operatorname{diag} C = 0` it is
    :math:`c_{ij} = -p_{ij} / p_{jj}` off the diagonal.

    Parameters
    ----------
    G : ndarray of shape (n, n)
        The Gram matrix of the samples, or a kernel.
    penalty : float
        The weight lambda, positive.
    zero_diagonal : bool
        Whether no sample may take part in its own expression.

    Returns
    -------
    C : ndarray of shape (n, n)
        Column j has the coefficients of sample j.
    """
    size = len(G)
    P = cho_solve(_factor(G, penalty), np.eye(size))
    if not zero_diagonal:
        return np.eye(size) - penalty * P
    C = -P / np.diag(P)
    np.fill_diagonal(C, 0.0)
    return C


def solve_ridge(G: np.ndarray, penalty: float, cross: np.ndarray) -> np.ndarray:
    """Express new samples, given as products with the training samples (n, m), as rows."""
    return cho_solve(_factor(G, penalty), cross.T).T


def _factor(G: np.ndarray, penalty: float) -> tuple[np.ndarray, bool]:
    # Symmetric to the last bit: the factorisation reads one half only.
    return cho_factor(0.5 * (G + G.T) + penalty * np.eye(len(G)))


@declare
class LSR(SelfExpression):
    r"""Subspace clustering by least squares regression (Lu et al.).

    .. math::

        \min_C \lVert Z^\top - Z^\top C \rVert_F^2 + \lambda \lVert C \rVert_F^2,
        \qquad \operatorname{diag} C = 0

    where the rows of Z are the samples, reduced to a few principal directions and divided by their
    norms. The solution has a closed form (`ridge_coefficients`). The affinity
    :math:`\tfrac12(|C| + |C|^\top)`, of columns divided by their largest entries, is cut by its
    leading eigenvectors.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters, and of components where the model has any.
    penalty : float, default=0.004
        The weight lambda.
    zero_diagonal : bool, default=True
        Whether a sample may not take part in its own expression: the authors' LSR1. Their LSR2 has
        no such constraint.
    directions_per_cluster : int or None, default=6
        As many times `n_clusters` principal directions are kept; None keeps samples as they are.
    scale_columns : bool, default=True
        Whether the coefficients of each sample are divided by the largest of them, as the authors'
        program does for faces and their paper does not mention.
    n_init : int, default=20
        The number of starts of k-means on the eigenvectors.
    random_state : None, int, Generator or RandomState, default=None
        Source of randomness for the starts and for k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each sample; every label occurs.
    memberships_ : array of shape (n_samples, n_clusters)
        The share of each sample's affinity that goes to each cluster; rows sum to one.
    cost_ : float
        Half the squared error of the expressions of samples of norm 1.
    history_ : list of Step
        One record.
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
    affinity_matrix_ : array of shape (n_samples, n_samples)
        How much two samples contribute to each other, symmetric.
    training_rows_ : array of shape (n_samples, n_features)
        The flattened training samples as they were expressed, for `predict`.
    directions_ : array of shape (n_features, n_directions) or None
        The principal directions that were kept.

    Notes
    -----
    Defaults are those of the authors' program for ten persons of the Extended Yale B faces; for
    five persons it has a penalty of 0.4. As there, directions are those of the centred samples, on
    which samples are projected as they are. What differs: rows are divided by their norms after the
    projection, not before it, and rows of eigenvectors by theirs before k-means, as for all methods
    here, where the program divides them by the roots of the degrees. The figure that the authors
    published for the first ten persons is met so; with the program's own end it is not: the page
    of rivals in the documentation has both.

    `predict` expresses a new sample by all training samples with the same penalty, and takes the
    cluster whose coefficients have the largest sum of sizes.

    References
    ----------
    Lu, Min, Zhao, Zhu, Huang and Yan (2012), Robust and efficient subspace segmentation via least
    squares regression, ECCV.

    Examples
    --------
    >>> from tuckermix import baselines, datasets
    >>> X = datasets.make_tensor_clusters(60, (6, 5), 3, random_state=0).X
    >>> baselines.LSR(3, random_state=0).fit(X).affinity_matrix_.shape
    (60, 60)
    """

    penalty: float = 0.004
    zero_diagonal: bool = True
    directions_per_cluster: int | None = 6
    scale_columns: bool = True

    _rules: ClassVar[Rules] = {
        "penalty": positive,
        "directions_per_cluster": none_or(check_integer),
    }

    def _prepare(self, X: np.ndarray) -> np.ndarray:
        self.directions_ = None
        if self.directions_per_cluster is not None:
            flat = X.reshape(X.shape[0], -1)
            flat = flat / scale_of(flat)
            count = self.directions_per_cluster * self.n_clusters
            right = np.linalg.svd(flat - flat.mean(axis=0), full_matrices=False)[2]
            self.directions_ = np.ascontiguousarray(right[:count].T)
        return super()._prepare(X)

    def _reduced(self, flat: np.ndarray) -> np.ndarray:
        if self.directions_ is None:
            return flat
        return flat @ to_numpy(self.directions_).astype(np.float64)

    def _express(self, Z: np.ndarray) -> Expression:
        C = ridge_coefficients(Z @ Z.T, self.penalty, zero_diagonal=self.zero_diagonal)
        largest = np.max(np.abs(C), axis=0)
        scale = np.where(largest > 0, largest, 1.0) if self.scale_columns else 1.0
        return Expression(C, symmetrized(C / scale), fitted={"directions_": self.directions_})

    def _contributions(self, rows: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return solve_ridge(Z @ Z.T, self.penalty, rows @ Z.T)


@dataclass(frozen=True)
class AutoGrid:
    """Settings of AutoSC."""

    penalties: tuple[float, ...] = (0.01, 0.1, 1.0)
    """The authors' penalties of the regression."""
    kept: Sequence[int] = range(5, 16)
    """The authors' numbers of entries that a column keeps."""
    gap_floor: float = 1e-6
    """Added to the mean of the first eigenvalues, the authors' figure."""
    no_width: float = 1e-6
    """A mean distance of samples of norm 1 below this means that all are equal: distances come
    from squares, whose rounding of 1e-16 is a distance of 1e-8. Their kernel is 1 for any width."""


GRID = AutoGrid()


def relative_eigengap(eigenvalues: np.ndarray, n_clusters: int) -> float:
    r"""Tell how clearly an affinity falls into parts.

    .. math:: \frac{\sigma_{K+1} - \bar\sigma}{\bar\sigma + 10^{-6}}, \qquad
        \bar\sigma = \tfrac1K \sum_{k \le K} \sigma_k

    Parameters
    ----------
    eigenvalues : ndarray of shape (n_clusters + 1,) or longer
        The smallest eigenvalues of the normalised Laplacian, ascending.
    n_clusters : int
        The number K of parts.

    Returns
    -------
    gap : float
        The larger, the clearer. Zero where there is no eigenvalue beyond the first K.
    """
    if len(eigenvalues) <= n_clusters:
        return 0.0
    mean = float(np.mean(eigenvalues[:n_clusters]))
    return (float(eigenvalues[n_clusters]) - mean) / (mean + GRID.gap_floor)


def keep_largest_in_columns(S: np.ndarray, count: int) -> np.ndarray:
    """Keep the largest entries of each column, divided by their sum, and symmetrise.

    Parameters
    ----------
    S : ndarray of shape (n, n)
        Not negative.
    count : int
        The number of entries that a column keeps.

    Returns
    -------
    W : ndarray of shape (n, n)
        The mean of the result and its transpose.
    """
    count = min(count, len(S) - 1)
    rows = np.argsort(-S, axis=0, kind="stable")[:count]
    kept = np.zeros_like(S)
    np.put_along_axis(kept, rows, np.take_along_axis(S, rows, axis=0), axis=0)
    sums = kept.sum(axis=0)
    kept /= np.where(sums > 0, sums, 1.0)
    return 0.5 * (kept + kept.T)


def keep_largest_in_rows(S: np.ndarray, count: int) -> np.ndarray:
    """Keep the largest entries of each row, and all that equal the last of them.

    Parameters
    ----------
    S : ndarray of shape (n, m)
        Not negative.
    count : int
        The number of entries that a row keeps.

    Returns
    -------
    kept : ndarray of shape (n, m)
        Zeros elsewhere.
    """
    last = np.sort(S, axis=1)[:, -min(count, S.shape[1])]
    return np.where(last[:, None] <= S, S, 0.0)


class AutoSC(SelfExpression):
    r"""Automated spectral clustering (Fan et al.).

    Affinities come from least squares regression, :math:`C = (K + \lambda I)^{-1} K`, with two
    kernels K: the products of the samples, and a Gaussian whose width is the mean distance of two
    samples. Of each column the :math:`\tau` entries of largest size off the diagonal are kept and
    divided by their sum. Of all 66 affinities with :math:`\lambda \in \{0.01, 0.1, 1\}` and
    :math:`\tau = 5, \dots, 15` the one with the largest relative gap of eigenvalues is taken
    (`relative_eigengap`). Samples are divided by their norms first.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters, and of components where the model has any.
    n_init : int, default=20
        The number of starts of k-means on the eigenvectors.
    random_state : None, int, Generator or RandomState, default=None
        Source of randomness for the starts and for k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each sample; every label occurs.
    memberships_ : array of shape (n_samples, n_clusters)
        The share of each sample's affinity that goes to each cluster; rows sum to one.
    cost_ : float
        Half the squared error of the expressions of samples of norm 1.
    history_ : list of Step
        One record.
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
    affinity_matrix_ : array of shape (n_samples, n_samples)
        How much two samples contribute to each other, symmetric.
    training_rows_ : array of shape (n_samples, n_features)
        The flattened training samples as they were expressed, for `predict`.
    kernel_ : {"linear", "gaussian"}
        The kernel that was chosen.
    penalty_ : float
        The penalty lambda that was chosen.
    n_kept_ : int
        The number of entries that a column keeps.
    gap_ : float
        The relative gap of eigenvalues that they reach.
    width_ : float
        The width of the Gaussian.

    Notes
    -----
    The grid, the kernels and the rule of choice are those of the authors' program AutoSC+GD; the
    variants with a search by Bayesian optimisation and with a neural network for more than 5000
    samples are left out.

    `predict` expresses a new sample by all training samples with the kernel and penalty chosen,
    keeps as many coefficients, and takes the cluster in which they have the largest sum of sizes.

    References
    ----------
    Fan, Tu, Zhang, Zhao and Zhang (2022), A simple approach to automated spectral clustering,
    NeurIPS.

    Examples
    --------
    >>> from tuckermix import baselines, datasets
    >>> X = datasets.make_tensor_clusters(60, (6, 5), 3, random_state=0).X
    >>> baselines.AutoSC(3, random_state=0).fit(X).n_kept_ in range(5, 16)
    True
    """

    def _kernel(self, name: str, rows: np.ndarray, Z: np.ndarray) -> np.ndarray:
        if name == "linear":
            return rows @ Z.T
        return np.exp(-_squared_distances(rows, Z) / (2.0 * self.width_**2))

    def _express(self, Z: np.ndarray) -> Expression:
        width = float(np.mean(np.sqrt(_squared_distances(Z, Z))))
        self.width_ = width if width > GRID.no_width else 1.0
        return max(self._candidates(Z), key=lambda found: found.fitted["gap_"])

    def _candidates(self, Z: np.ndarray) -> Iterator[Expression]:
        """Give the affinities of all kernels, penalties and numbers of entries kept."""
        count = min(self.n_clusters + 1, len(Z))
        for kernel, penalty in itertools.product(("linear", "gaussian"), GRID.penalties):
            C = ridge_coefficients(self._kernel(kernel, Z, Z), penalty, zero_diagonal=False)
            sizes = np.abs(C)
            np.fill_diagonal(sizes, 0.0)
            for kept in GRID.kept:
                W = keep_largest_in_columns(sizes, kept)
                values = 1.0 - normalized_eigenvectors(W, count)[0]
                gap = relative_eigengap(values, self.n_clusters)
                chosen = {"kernel_": kernel, "penalty_": penalty, "n_kept_": kept, "gap_": gap}
                yield Expression(C, W, fitted=chosen)

    def _embed(self, expression: Expression) -> np.ndarray:
        # Eigenvectors of the random walk, as columns of norm 1, then rows of norm 1.
        _, vectors, roots = normalized_eigenvectors(expression.affinity, self.n_clusters)
        columns = roots[:, None] * vectors
        return unit_rows(columns / np.linalg.norm(columns, axis=0))

    def _contributions(self, rows: np.ndarray, Z: np.ndarray) -> np.ndarray:
        K = self._kernel(self.kernel_, Z, Z)
        sizes = np.abs(solve_ridge(K, self.penalty_, self._kernel(self.kernel_, rows, Z)))
        return keep_largest_in_rows(sizes, self.n_kept_)


def _squared_distances(rows: np.ndarray, Z: np.ndarray) -> np.ndarray:
    squares = np.sum(rows**2, axis=1)[:, None] + np.sum(Z**2, axis=1) - 2.0 * (rows @ Z.T)
    return np.maximum(squares, 0.0)


def matching_pursuit(
    G: np.ndarray,
    cross: np.ndarray,
    squares: np.ndarray,
    *,
    n_nonzero: int,
    tol: float,
    exclude_self: bool = False,
) -> np.ndarray:
    r"""Express many samples by few atoms each, by orthogonal matching pursuit.

    In each round every sample takes the atom that its residual correlates with most, and all its
    coefficients are then solved for again. Only products are needed,

    .. math:: Z r = Z x - G c, \qquad \lVert r \rVert^2 = \lVert x \rVert^2 - c^\top Z x

    for the residual r of a sample x, the atoms as rows of Z and :math:`G = Z Z^\top`.

    Parameters
    ----------
    G : ndarray of shape (m, m)
        The Gram matrix of the atoms.
    cross : ndarray of shape (n, m)
        The products of samples and atoms.
    squares : ndarray of shape (n,)
        The squared norms of the samples.
    n_nonzero : int
        The most atoms of a sample.
    tol : float
        A sample whose squared residual is below this takes no further atom.
    exclude_self : bool, default=False
        Whether sample i may not take atom i; samples and atoms are then the same.

    Returns
    -------
    C : ndarray of shape (n, m)
        The coefficients of each sample as a row, at most `n_nonzero` of them not zero.
    """
    C = np.zeros_like(cross)
    correlation = cross.copy()
    open_ = np.arange(len(cross))
    support = np.empty((len(cross), 0), dtype=np.intp)
    for _ in range(min(n_nonzero, len(G) - exclude_self)):
        sizes = np.abs(correlation)
        np.put_along_axis(sizes, support, -1.0, axis=1)  # taken already
        if exclude_self:
            sizes[np.arange(len(open_)), open_] = -1.0
        best = np.argmax(sizes, axis=1)
        useful = sizes[np.arange(len(open_)), best] > 0  # nothing correlates with a zero sample
        open_, best, support = open_[useful], best[useful], support[useful]
        if len(open_) == 0:
            break
        support = np.column_stack([support, best])
        wanted = np.take_along_axis(cross[open_], support, axis=1)
        # A pseudo-inverse: atoms may be equal up to rounding.
        inverse = np.linalg.pinv(G[support[:, :, None], support[:, None, :]], hermitian=True)
        values = np.matmul(inverse, wanted[:, :, None])[:, :, 0]
        C[open_[:, None], support] = values
        left = squares[open_] - np.sum(values * wanted, axis=1) >= tol
        open_, support, values = open_[left], support[left], values[left]
        edges = np.arange(len(open_) + 1) * support.shape[1]
        taken = scipy.sparse.csr_array(
            (values.ravel(), support.ravel(), edges), shape=(len(open_), len(G))
        )
        correlation = cross[open_] - taken @ G
    return C


@declare
class SSCOMP(SelfExpression):
    r"""Sparse subspace clustering by orthogonal matching pursuit (You, Robinson and Vidal).

    .. math::

        \min_c \lVert z_j - Z^\top c \rVert_2^2, \qquad \lVert c \rVert_0 \le k,\; c_j = 0

    for each sample :math:`z_j`, divided by its norm, by taking one sample after the other
    (`matching_pursuit`). Coefficients of a sample are divided by their norm, and the affinity
    :math:`\tfrac12(|C| + |C|^\top)` is cut by its leading eigenvectors.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters, and of components where the model has any.
    n_nonzero : int, default=10
        The most samples k by which one is expressed. The authors have 5 for faces, 10 for digits.
    tol : float, default=1e-6
        A sample whose squared residual is below this is expressed well enough.
    n_init : int, default=20
        The number of starts of k-means on the eigenvectors.
    random_state : None, int, Generator or RandomState, default=None
        Source of randomness for the starts and for k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each sample; every label occurs.
    memberships_ : array of shape (n_samples, n_clusters)
        The share of each sample's affinity that goes to each cluster; rows sum to one.
    cost_ : float
        Half the squared error of the expressions of samples of norm 1.
    history_ : list of Step
        One record.
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
    affinity_matrix_ : array of shape (n_samples, n_samples)
        How much two samples contribute to each other, symmetric.
    training_rows_ : array of shape (n_samples, n_features)
        The flattened training samples as they were expressed, for `predict`.

    Notes
    -----
    All samples are worked on together, on the Gram matrix. `predict` expresses a new sample by all
    training samples in the same way, and takes the cluster whose coefficients have the largest sum
    of sizes; a training sample is expressed by itself alone then.

    References
    ----------
    You, Robinson and Vidal (2016), Scalable sparse subspace clustering by orthogonal matching
    pursuit, CVPR.

    Examples
    --------
    >>> from tuckermix import baselines, datasets
    >>> X = datasets.make_tensor_clusters(60, (6, 5), 3, random_state=0).X
    >>> model = baselines.SSCOMP(3, n_nonzero=4, random_state=0).fit(X)
    >>> bool((model.predict(X) == model.labels_).all())
    True
    """

    n_nonzero: int = 10
    tol: float = 1e-06

    _rules: ClassVar[Rules] = {"n_nonzero": check_integer, "tol": check_real}

    def _express(self, Z: np.ndarray) -> Expression:
        rows = self._contributions(Z, Z, exclude_self=True)
        return Expression(rows.T, symmetrized(unit_rows(rows)))

    def _contributions(
        self, rows: np.ndarray, Z: np.ndarray, exclude_self: bool = False
    ) -> np.ndarray:
        products = (Z @ Z.T, rows @ Z.T, np.vecdot(rows, rows))
        limits: dict[str, Any] = {"n_nonzero": self.n_nonzero, "tol": self.tol}
        return matching_pursuit(*products, **limits, exclude_self=exclude_self)


@dataclass(frozen=True)
class DualSettings:
    """Settings of the search for the lowest point of the dual."""

    first_steps: int = 200
    """Quasi-Newton steps before Newton's method takes over; enough to find most of the support."""
    max_newton: int = 100
    """Newton steps. Some ten are usual, since the dual is quadratic wherever the support is
    fixed."""
    max_halvings: int = 40
    """Halvings of a Newton step: a trillionth of it is below the rounding of the dual."""
    armijo: float = 1e-4
    """The share of the linear decrease that a Newton step must achieve, the usual figure."""
    rounding: float = 1e-12
    """A decrease of the dual below this share of its terms cannot be told from rounding; the
    gradient, which keeps far more digits, then says whether a step is good."""
    overshoot: float = 0.5
    """The slope at the end of such a step, relative to that at its start with the sign reversed:
    since the dual is convex, less than 1 means that the step ends nearer to the lowest point of
    its line."""
    ridge: float = 1e-10
    """Added to the diagonal of Newton's system relative to its mean: the dual does not change when
    a constant moves from one half of its variables to the other."""


DUAL = DualSettings()


def doubly_stochastic(K: np.ndarray, eta: float, *, tol: float = 1e-10) -> np.ndarray:
    r"""Find the doubly stochastic matrix that is nearest to a scaled matrix.

    .. math::

        \min_A\ \tfrac\eta2 \lVert A \rVert_F^2 - \langle K, A \rangle, \qquad
        A \ge 0,\; A 1 = 1,\; A^\top 1 = 1

    The solution is :math:`a_{ij} = \max(0, \alpha_i + \beta_j + k_{ij}) / \eta` with the minimiser
    of the dual

    .. math:: \tfrac1{2\eta} \sum_{ij} \max(0, \alpha_i + \beta_j + k_{ij})^2
        - \sum_i \alpha_i - \sum_j \beta_j ,

    which is found by quasi-Newton steps, as the authors do, and finished by Newton's method.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The matrix.
    eta : float
        The weight of the squares, positive: the smaller, the sparser is A.
    tol : float, default=1e-10
        The largest deviation of a row or column sum from one.

    Returns
    -------
    A : ndarray of shape (n, n)
        Not negative; rows and columns sum to one.
    """
    size = len(K)

    def parts(nu: np.ndarray) -> np.ndarray:
        return np.maximum(nu[:size, None] + nu[size:] + K, 0.0)

    def dual(nu: np.ndarray) -> tuple[float, np.ndarray]:
        P = parts(nu)
        sums = np.concatenate([P.sum(axis=1), P.sum(axis=0)]) / eta
        return float(np.vdot(P, P)) / (2.0 * eta) - float(nu.sum()), sums - 1.0

    start = np.full(2 * size, -0.5 * float(K.max()) + 0.5 * eta / size)
    options = {"maxiter": DUAL.first_steps, "gtol": tol, "ftol": 0.0}
    nu = minimize(dual, start, jac=True, method="L-BFGS-B", options=options).x
    value, gradient = dual(nu)
    for _ in range(DUAL.max_newton):
        if np.max(np.abs(gradient)) <= tol:
            break
        step = _newton_step(parts(nu) > 0, eta, gradient, size)
        slope, length = float(step @ gradient), 1.0
        by_slope = abs(slope) <= DUAL.rounding * float(np.abs(nu).sum())
        for _ in range(DUAL.max_halvings):
            candidate = nu + length * step
            new_value, new_gradient = dual(candidate)
            if by_slope:
                good = float(step @ new_gradient) <= DUAL.overshoot * abs(slope)
            else:
                good = new_value <= value + DUAL.armijo * length * slope
            if good:
                break
            length *= 0.5
        else:
            break  # rounding is all that is left
        nu, value, gradient = candidate, new_value, new_gradient
    return parts(nu) / eta


def _newton_step(active: np.ndarray, eta: float, gradient: np.ndarray, size: int) -> np.ndarray:
    """Solve Newton's system by eliminating the first half of the variables."""
    S = active.astype(np.float64)
    rows, columns = S.sum(axis=1), S.sum(axis=0)
    ridge = DUAL.ridge * max(float(rows.mean()), 1.0)
    rows += ridge
    g, h = -eta * gradient[:size], -eta * gradient[size:]
    schur = -(S.T / rows) @ S
    schur[np.diag_indices(size)] += columns + ridge
    right = h - S.T @ (g / rows)
    try:
        second = cho_solve(cho_factor(schur), right)
    except LinAlgError:  # rounding has made the smallest eigenvalue negative
        second = np.linalg.lstsq(schur, right, rcond=None)[0]
    return np.concatenate([(g - S @ second) / rows, second])


@declare
class ADSSC(SelfExpression):
    r"""Doubly stochastic subspace clustering, the approximate model A-DSSC (Lim et al.).

    Samples, divided by their norms, express each other by least squares regression with the weight
    :math:`\eta_1` and no part in their own expression (`ridge_coefficients`). The sizes of the
    coefficients are then replaced by the doubly stochastic matrix

    .. math::

        A = \arg\min\ \tfrac{\eta_2}2 \lVert A \rVert_F^2 - \langle |C|, A \rangle, \qquad
        A \ge 0,\; A 1 = 1,\; A^\top 1 = 1

    (`doubly_stochastic`), which is sparse and gives all samples the same weight. The affinity
    :math:`\tfrac12 (A + A^\top)` is cut by its leading eigenvectors.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters, and of components where the model has any.
    penalty : float, default=1.0
        The weight :math:`\eta_1` of the squared coefficients.
    smoothing : float, default=0.1
        The weight :math:`\eta_2`: the smaller, the fewer neighbours has a sample.
    n_init : int, default=20
        The number of starts of k-means on the eigenvectors.
    random_state : None, int, Generator or RandomState, default=None
        Source of randomness for the starts and for k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each sample; every label occurs.
    memberships_ : array of shape (n_samples, n_clusters)
        The share of each sample's affinity that goes to each cluster; rows sum to one.
    cost_ : float
        Half the squared error of the expressions of samples of norm 1.
    history_ : list of Step
        One record.
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
    affinity_matrix_ : array of shape (n_samples, n_samples)
        How much two samples contribute to each other, symmetric.
    training_rows_ : array of shape (n_samples, n_features)
        The flattened training samples as they were expressed, for `predict`.

    Notes
    -----
    The authors search both weights on each dataset, among 0.1, 1, 10, 25, 50 and among 0.0005 to
    0.1, and name no setting. The defaults are the best of that grid over the parts of several
    datasets that are for choices; the page of decisions has figures of two others. On digits
    weights like 25 and 0.025 do better, on faces far worse.

    `predict` expresses a new sample by all training samples with the same penalty, and takes the
    cluster whose coefficients have the largest sum of sizes.

    References
    ----------
    Lim, Vidal and Haeffele (2020), Doubly stochastic subspace clustering, arXiv 2011.14859.

    Examples
    --------
    >>> from tuckermix.baselines import ADSSC
    >>> from tuckermix.datasets import make_tensor_clusters
    >>> X, y = make_tensor_clusters(60, (6, 5), 3, random_state=0, return_X_y=True)
    >>> model = ADSSC(3, random_state=0).fit(X)
    >>> bool(abs(model.affinity_matrix_.sum(axis=0) - 1).max() < 1e-8)
    True
    """

    penalty: float = 1.0
    smoothing: float = 0.1

    _rules: ClassVar[Rules] = {"penalty": positive, "smoothing": positive}

    def _express(self, Z: np.ndarray) -> Expression:
        C = ridge_coefficients(Z @ Z.T, self.penalty, zero_diagonal=True)
        A = doubly_stochastic(np.abs(C), self.smoothing)
        return Expression(C, 0.5 * (A + A.T))

    def _contributions(self, rows: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return solve_ridge(Z @ Z.T, self.penalty, rows @ Z.T)


@dataclass(frozen=True)
class NetSettings:
    """Settings of the elastic nets."""

    working_set: int = 100
    """Atoms among which the rough solution is sought, those that resemble the sample most: the
    authors' figure. Any atom may join afterwards."""
    rough_tol: float = 1e-3
    """Relative duality gap of the rough solution, which only has to find most of the atoms."""
    rough_sweeps: int = 100
    """Limit on its sweeps."""
    steps_per_atom: int = 10
    """Exchanges of atoms before the search is given up, per atom. Each lowers the objective, so
    that only rounding can make them many; some tens in all are usual."""
    joining: int = 16
    """Atoms that may join at once: a sample of an image takes a hundred, and each exchange solves
    a system. Where all of them have to leave again they join one by one, which cannot cycle."""
    slack: float = 1e-10
    """How far a correlation may exceed its bound, relative to it: rounding of the products."""


NET = NetSettings()

AFFINITIES = ("nearest_neighbors", "symmetrized")


def elastic_net(
    Z: np.ndarray,
    G: np.ndarray,
    target: np.ndarray,
    *,
    gamma: float,
    tau: float,
    exclude: int | None = None,
) -> np.ndarray:
    r"""Express one sample by atoms with an elastic net, exactly.

    .. math::

        \min_c\ \tau \lVert c \rVert_1 + \tfrac{1 - \tau}2 \lVert c \rVert_2^2
        + \tfrac\gamma2 \lVert x - Z^\top c \rVert_2^2

    Coordinate descent finds most of the atoms that take part. From there on the coefficients of a
    set of atoms with given signs solve a linear system; an atom whose sign would change on the way
    to its solution leaves, and those whose correlations with the residual exceed
    :math:`\tau / \gamma` most join, until there is none (Lee et al., 2007).

    Parameters
    ----------
    Z : ndarray of shape (m, d)
        The atoms.
    G : ndarray of shape (m, m)
        Their Gram matrix.
    target : ndarray of shape (d,)
        The sample x.
    gamma : float
        The weight of the error.
    tau : float
        The share of the absolute values in the penalty, between 0 and 1: what is left for the
        squares makes the solution unique.
    exclude : int, default=None
        An atom that may not take part.

    Returns
    -------
    c : ndarray of shape (m,)
        The coefficients.
    """
    cross = Z @ target
    allowed = np.ones(len(Z), dtype=bool)
    if exclude is not None:
        allowed[exclude] = False

    def solved(support: np.ndarray, signs: np.ndarray) -> np.ndarray:
        """Return the coefficients of atoms whose signs are known."""
        system = gamma * G[np.ix_(support, support)]
        system[np.diag_indices(len(support))] += 1.0 - tau
        return np.linalg.solve(system, gamma * cross[support] - tau * signs)

    c = _rough(Z, G, target, np.where(allowed, cross, 0.0), gamma, tau)
    support = np.flatnonzero(c)
    signs, before = np.sign(c[support]), np.zeros(0, dtype=int)
    for _ in range(NET.steps_per_atom * len(Z)):
        present, exact = c[support], solved(support, signs)
        crossing = exact * signs <= 0
        if crossing.any():
            lengths = np.ones(len(support))
            lengths[crossing] = present[crossing] / (present - exact)[crossing]
            leaving = crossing & (lengths == lengths.min())
            c[support] = np.where(leaving, 0.0, present + lengths.min() * (exact - present))
            support, signs = support[~leaving], signs[~leaving]
            continue
        c[support] = exact
        pull = gamma * (cross - G[:, support] @ exact)
        pull[support] = 0.0
        pull[~allowed] = 0.0
        joining = np.flatnonzero(np.abs(pull) > tau * (1.0 + NET.slack))
        if not len(joining):
            break
        at_once = 1 if np.array_equal(support, before) else NET.joining
        before = support
        joining = joining[np.argsort(-np.abs(pull[joining]), kind="stable")[:at_once]]
        support, signs = np.append(support, joining), np.append(signs, np.sign(pull[joining]))
    return c


def _rough(
    Z: np.ndarray, G: np.ndarray, target: np.ndarray, cross: np.ndarray, gamma: float, tau: float
) -> np.ndarray:
    """Solve roughly by coordinate descent on the atoms with the largest cross products."""
    working = np.argsort(-np.abs(cross), kind="stable")[: NET.working_set]
    working = working[cross[working] != 0]
    c = np.zeros(len(Z))
    if len(working):
        # What comes next is exact.
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            path = enet_path(
                Z[working].T,
                target,
                l1_ratio=tau,
                alphas=[1.0 / (gamma * Z.shape[1])],
                precompute=G[np.ix_(working, working)],
                Xy=cross[working],
                tol=NET.rough_tol,
                max_iter=NET.rough_sweeps,
                check_input=False,
            )
        c[working] = path[1][:, 0]
    return c


@declare
class EnSC(SelfExpression):
    r"""Elastic net subspace clustering (You, Li, Robinson and Vidal).

    .. math::

        \min_c\ \tau \lVert c \rVert_1 + \tfrac{1 - \tau}2 \lVert c \rVert_2^2
        + \tfrac{\gamma_j}2 \lVert z_j - Z^\top c \rVert_2^2, \qquad c_j = 0

    for each sample :math:`z_j`, divided by its norm, with
    :math:`\gamma_j = \gamma \tau / \max_{i \ne j} |z_i^\top z_j|`: below :math:`\gamma = 1` all
    coefficients are zero. Coefficients of a sample are divided by their norm, and an affinity made
    from them is cut by its leading eigenvectors.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters, and of components where the model has any.
    gamma : float, default=200.0
        The weight of the error, relative to the least that gives any coefficients.
    tau : float, default=0.9
        The share of the absolute values in the penalty, above 0 and below 1.
    affinity : {"nearest_neighbors", "symmetrized"}, default="nearest_neighbors"
        Join each sample to the three whose coefficients are most like its own, or take
        :math:`\tfrac12(|C| + |C|^\top)`.
    n_init : int, default=20
        The number of starts of k-means on the eigenvectors.
    random_state : None, int, Generator or RandomState, default=None
        Source of randomness for the starts and for k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each sample; every label occurs.
    memberships_ : array of shape (n_samples, n_clusters)
        The share of each sample's affinity that goes to each cluster; rows sum to one.
    cost_ : float
        Half the squared error of the expressions of samples of norm 1.
    history_ : list of Step
        One record.
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
    affinity_matrix_ : array of shape (n_samples, n_samples)
        How much two samples contribute to each other, symmetric.
    training_rows_ : array of shape (n_samples, n_features)
        The flattened training samples as they were expressed, for `predict`.

    Notes
    -----
    Defaults are those of the authors' program for digits; unless told it has :math:`\gamma = 50`
    and :math:`\tfrac12(|C| + |C|^\top)`. What differs from it: the optimum is found exactly
    (`elastic_net`), where it stops at a tolerance; all coefficients are kept, where it keeps the 50
    largest of a sample.

    `predict` expresses a new sample by all training samples in the same way, and takes the cluster
    whose coefficients have the largest sum of sizes.

    References
    ----------
    You, Li, Robinson and Vidal (2016), Oracle based active set algorithm for scalable elastic net
    subspace clustering, CVPR.

    Examples
    --------
    >>> from tuckermix import baselines, datasets
    >>> X = datasets.make_tensor_clusters(60, (6, 5), 3, random_state=0).X
    >>> baselines.EnSC(3, random_state=0).fit_predict(X).shape
    (60,)
    """

    gamma: float = 200.0
    tau: float = 0.9
    affinity: str = "nearest_neighbors"

    _rules: ClassVar[Rules] = {
        "gamma": positive,
        "tau": inner_share,
        "affinity": one_of(AFFINITIES),
    }

    def _express(self, Z: np.ndarray) -> Expression:
        rows = self._contributions(Z, Z, exclude_self=True)
        return Expression(rows.T, self._affinity(unit_rows(rows)))

    def _affinity(self, rows: np.ndarray) -> np.ndarray:
        if self.affinity == "symmetrized":
            return symmetrized(rows)
        count = min(3, len(rows) - 1)  # the authors' figure
        if count == 0:
            return np.zeros((1, 1))
        nearest = kneighbors_graph(rows, count, include_self=False).toarray()
        return 0.5 * (nearest + nearest.T)

    def _contributions(
        self, rows: np.ndarray, Z: np.ndarray, exclude_self: bool = False
    ) -> np.ndarray:
        G, sizes = Z @ Z.T, np.abs(rows @ Z.T)
        if exclude_self:
            np.fill_diagonal(sizes, 0.0)
        C = np.zeros_like(sizes)
        for i, (row, largest) in enumerate(zip(rows, sizes.max(axis=1), strict=True)):
            if largest > 0:
                C[i] = elastic_net(
                    Z,
                    G,
                    row,
                    gamma=self.gamma * self.tau / largest,
                    tau=self.tau,
                    exclude=i if exclude_self else None,
                )
        return C


@dataclass(frozen=True)
class ConvolutionSettings:
    """Settings of the augmented Lagrangian, those of the authors' program."""

    first_weight: float = 1e-6
    """The weight mu of the constraints in the first round."""
    growth: float = 1.1
    """By what it grows in each round."""
    tol: float = 1e-7
    """The largest entry by which a constraint may be missed at the end."""
    max_rounds: int = 500
    """Some 200 to 320 are usual. The weight is 5e14 by then, so that constraints that can be met
    are."""


CONVOLUTION = ConvolutionSettings()


def graph_convolution(X: Array, alpha: float, beta: float) -> tuple[Array, Array, int]:
    r"""Express samples by aggregated ones, which the coefficients themselves aggregate.

    .. math::

        \min_{F, C}\ \lVert 2F - (C + I) X \rVert^2 + \alpha \lVert X - C F \rVert^2
        + \beta \lVert C - C Z \rVert^2, \qquad Z = C

    where Z is not negative and symmetric, has a diagonal of zeros, and :math:`C 1 = 1`. In each
    round C, F and Z take their least squares solutions in turn, the constraints on Z follow by
    projection, and the multipliers and the weight of the constraints grow.

    Parameters
    ----------
    X : array of shape (n, d)
        The samples, of any library.
    alpha : float
        The weight of the expressions.
    beta : float
        The weight of the coefficients that change when they are aggregated themselves.

    Returns
    -------
    Z : array of shape (n, n)
        The coefficients, of the library of X.
    F : array of shape (n, d)
        The aggregated samples.
    n_rounds : int
        The rounds that it took.
    """
    xp, size = get_namespace(X), X.shape[0]
    eye, G, F = asarray_like(np.eye(size), X), X @ X.T, X
    Z, Y, y, others = 0 * eye, 0 * eye, 0 * eye[:, :1], 1 - eye
    mu, n_rounds = CONVOLUTION.first_weight, 0
    while n_rounds < CONVOLUTION.max_rounds:
        n_rounds += 1
        H, cross = eye - Z, F @ X.T
        left = 2 * (G + alpha * F @ F.T + beta * H @ H.T) + mu * (eye + 1)
        right = 4 * cross - 2 * G + 2 * alpha * cross.T + mu * (Z + 1) - Y - y
        C = _solve_definite(left, right.T).T
        CC = C.T @ C
        F = _solve_definite(4 * eye + alpha * CC, 2 * (X + C @ X) + alpha * C.T @ X)
        Z = _solve_definite(2 * beta * CC + mu * eye, 2 * beta * CC + Y + mu * C)
        Z = xp.clip(0.5 * (Z + Z.T) * others, 0.0, None)
        missed, sums = C - Z, xp.sum(C, axis=1, keepdims=True) - 1
        if max(xp.max(xp.abs(missed)), xp.max(xp.abs(sums))) < CONVOLUTION.tol:
            break
        Y, y, mu = Y + mu * missed, y + mu * sums, mu * CONVOLUTION.growth
    return Z, F, n_rounds


def _solve_definite(A: Array, B: Array) -> Array:
    """Solve A Z = B for a positive definite A; the array API has no Cholesky solver."""
    if is_numpy(A):
        return cho_solve(cho_factor(A), B)
    return get_namespace(A).linalg.solve(A, B)


@declare
class TAGCSC(SelfExpression):
    r"""Adaptive graph convolutional subspace clustering with a threshold (Wei et al.).

    Samples X, divided by their norms, are expressed as :math:`X \approx C F` by aggregated samples
    :math:`F \approx \tfrac12 (C + I) X`. C is symmetric and not negative, its rows sum to one, its
    diagonal is zero, and aggregated coefficients resemble it (`graph_convolution`). The largest
    entries of each row are kept, and :math:`\tfrac12 (C + C^\top)` is cut by its leading
    eigenvectors.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters, and of components where the model has any.
    alpha : float, default=0.01
        The weight of the error of expressions.
    beta : float, default=0.0001
        The weight of what aggregation changes in the coefficients.
    n_kept : int, default=4
        How many coefficients of a sample are kept. The authors have 4 to 15.
    n_init : int, default=20
        The number of starts of k-means on the eigenvectors.
    random_state : None, int, Generator or RandomState, default=None
        Source of randomness for the starts and for k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each sample; every label occurs.
    memberships_ : array of shape (n_samples, n_clusters)
        The share of each sample's affinity that goes to each cluster; rows sum to one.
    cost_ : float
        Half the squared error of the expressions of samples by each other.
    history_ : list of Step
        One record.
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
    affinity_matrix_ : array of shape (n_samples, n_samples)
        How much two samples contribute to each other, symmetric.
    training_rows_ : array of shape (n_samples, n_features)
        The aggregated samples F, by which samples are expressed, for `predict`.

    Notes
    -----
    The authors search both weights, among 0.00001 to 0.5, and the number kept with the true
    classes of each dataset. The defaults are the best of a grid over the parts of several datasets
    that are for choices. Samples of norm 1 do better there than samples in units of the largest
    entry, which the authors take.

    All steps minimise the function at `graph_convolution`, whose :math:`\alpha` is four times that
    of the paper. The authors' program has its steps for C and Z; in the step for F a version of it
    weighs the error of expressions twice as much as in the step for C.

    `predict` expresses a new sample by the aggregated ones with the penalty
    :math:`\beta / \alpha` on squared coefficients, keeps as many of them, and takes the cluster in
    which they have the largest sum of sizes.

    References
    ----------
    Wei, Chen, Yin, Zhu, Zhou and Liu (2023), Adaptive graph convolutional subspace clustering,
    CVPR.

    Examples
    --------
    >>> from tuckermix import baselines, datasets
    >>> X = datasets.make_tensor_clusters(60, (6, 5), 3, random_state=0).X
    >>> baselines.TAGCSC(3, random_state=0).fit_predict(X).shape
    (60,)
    """

    alpha: float = 0.01
    beta: float = 0.0001
    n_kept: int = 4

    _rules: ClassVar[Rules] = {"alpha": positive, "beta": positive, "n_kept": check_integer}

    def _express(self, Z: np.ndarray) -> Expression:
        C, F, n_iter = graph_convolution(Z, self.alpha, self.beta)
        W = symmetrized(keep_largest_in_rows(C, self.n_kept))
        return Expression(C, W, n_iter, {"training_rows_": F})

    def _contributions(self, rows: np.ndarray, Z: np.ndarray) -> np.ndarray:
        sizes = np.abs(solve_ridge(Z @ Z.T, self.beta / self.alpha, rows @ Z.T))
        return keep_largest_in_rows(sizes, self.n_kept)
