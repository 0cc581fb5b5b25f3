"""Least squares regression of each sample on the others (LSR)."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from tuckermix._array_api import to_numpy
from tuckermix._declaration import declare, ruled
from tuckermix._validation import check_integer, none_or, positive
from tuckermix.baselines._self_expression import Expression, SelfExpression, symmetrized
from tuckermix.baselines.nonnegative import scale_of

__all__ = ["LSR", "ridge_coefficients"]


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

    Attributes
    ----------
    directions_ : array of shape (n_features, n_directions) or None
        The principal directions that were kept.

    Notes
    -----
    Defaults are those of the authors' program for ten persons of the Extended Yale B faces; for
    five persons it has a penalty of 0.4. As there, directions are those of the centred samples, on
    which samples are projected as they are. What differs: rows are divided by their norms after the
    projection, not before it, and rows of eigenvectors by theirs before k-means, as for all methods
    here, where the program divides them by the roots of the degrees. The figure that the authors
    published for the first ten persons is met so; with the program's own end it is not, which
    ``python -m benchmarks.published_rivals`` shows for both.

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

    penalty: float = ruled(0.004, positive)
    zero_diagonal: bool = True
    directions_per_cluster: int | None = ruled(6, none_or(check_integer))
    scale_columns: bool = True

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
