"""Sparse subspace clustering by orthogonal matching pursuit (SSC-OMP)."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from tuckermix._declaration import declare, ruled
from tuckermix._validation import check_integer, check_real
from tuckermix.baselines._self_expression import Expression, SelfExpression, symmetrized
from tuckermix.baselines.nonnegative import unit_rows

__all__ = ["SSCOMP", "matching_pursuit"]


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
    coefficients are then solved for anew. Only products are needed,

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
    n_nonzero : int, default=10
        The most samples k by which one is expressed. The authors have 5 for faces, 10 for digits.
    tol : float, default=1e-6
        A sample whose squared residual is below this is expressed well enough.

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

    n_nonzero: int = ruled(10, check_integer)
    tol: float = ruled(1e-6, check_real)

    def _express(self, Z: np.ndarray) -> Expression:
        G = Z @ Z.T
        rows = self._pursue(G, G, np.diag(G), exclude_self=True)
        return Expression(rows.T, symmetrized(unit_rows(rows)))

    def _contributions(self, rows: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return self._pursue(Z @ Z.T, rows @ Z.T, np.sum(rows**2, axis=1))

    def _pursue(
        self, G: np.ndarray, cross: np.ndarray, squares: np.ndarray, exclude_self: bool = False
    ) -> np.ndarray:
        return matching_pursuit(
            G, cross, squares, n_nonzero=self.n_nonzero, tol=self.tol, exclude_self=exclude_self
        )
