"""Spectral clustering that chooses its own affinity (AutoSC)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tuckermix._declaration import declare
from tuckermix.baselines._self_expression import Expression, SelfExpression, normalized_eigenvectors
from tuckermix.baselines.lsr import ridge_coefficients, solve_ridge
from tuckermix.baselines.nonnegative import unit_rows

__all__ = ["AutoSC", "keep_largest_in_columns", "relative_eigengap"]

PENALTIES = (0.01, 0.1, 1.0)
"""The authors' penalties of the regression."""

KEPT = range(5, 16)
"""The authors' numbers of entries that a column keeps."""

GAP_FLOOR = 1e-6
"""Added to the mean of the first eigenvalues, the authors' figure."""

NO_WIDTH = 1e-6
"""A mean distance of samples of norm 1 below this means that all are equal: distances come from
squares, whose rounding of 1e-16 is a distance of 1e-8. Their kernel is 1 for any width."""


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
    return (float(eigenvalues[n_clusters]) - mean) / (mean + GAP_FLOOR)


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


@declare
class AutoSC(SelfExpression):
    r"""Automated spectral clustering (Fan et al.).

    Affinities come from least squares regression, :math:`C = (K + \lambda I)^{-1} K`, with two
    kernels K: the products of the samples, and a Gaussian whose width is the mean distance of two
    samples. Of each column the :math:`\tau` entries of largest size off the diagonal are kept and
    divided by their sum. Of all 66 affinities with :math:`\lambda \in \{0.01, 0.1, 1\}` and
    :math:`\tau = 5, \dots, 15` the one with the largest relative gap of eigenvalues is taken
    (`relative_eigengap`). Samples are divided by their norms first.

    Attributes
    ----------
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

    def _candidates(
        self, Z: np.ndarray
    ) -> Iterator[tuple[str, float, int, np.ndarray, np.ndarray]]:
        """Give kernel, penalty, entries kept, coefficients and affinity of all candidates."""
        for kernel in ("linear", "gaussian"):
            K = self._kernel(kernel, Z, Z)
            for penalty in PENALTIES:
                C = ridge_coefficients(K, penalty, zero_diagonal=False)
                sizes = np.abs(C)
                np.fill_diagonal(sizes, 0.0)
                for count in KEPT:
                    yield kernel, penalty, count, C, keep_largest_in_columns(sizes, count)

    def _kernel(self, name: str, rows: np.ndarray, Z: np.ndarray) -> np.ndarray:
        products = rows @ Z.T
        if name == "linear":
            return products
        squares = np.sum(rows**2, axis=1)[:, None] + np.sum(Z**2, axis=1) - 2.0 * products
        return np.exp(-np.maximum(squares, 0.0) / (2.0 * self.width_**2))

    def _express(self, Z: np.ndarray) -> Expression:
        norms = np.sum(Z**2, axis=1)
        squares = np.maximum(norms[:, None] + norms - 2.0 * Z @ Z.T, 0.0)
        width = float(np.mean(np.sqrt(squares)))
        self.width_ = width if width > NO_WIDTH else 1.0
        count = min(self.n_clusters + 1, len(Z))
        best: tuple[float, Expression] | None = None
        for kernel, penalty, kept, C, W in self._candidates(Z):
            values = 1.0 - normalized_eigenvectors(W, count)[0]
            gap = relative_eigengap(values, self.n_clusters)
            if best is None or gap > best[0]:
                chosen = {"kernel_": kernel, "penalty_": penalty, "n_kept_": kept, "gap_": gap}
                best = gap, Expression(C, W, fitted=chosen)
        assert best is not None
        return best[1]

    def _embed(self, expression: Expression) -> np.ndarray:
        # Eigenvectors of the random walk, as columns of norm 1, then rows of norm 1.
        _, vectors, roots = normalized_eigenvectors(expression.affinity, self.n_clusters)
        columns = roots[:, None] * vectors
        return unit_rows(columns / np.linalg.norm(columns, axis=0))

    def _contributions(self, rows: np.ndarray, Z: np.ndarray) -> np.ndarray:
        K = self._kernel(self.kernel_, Z, Z)
        sizes = np.abs(solve_ridge(K, self.penalty_, self._kernel(self.kernel_, rows, Z)))
        smallest = np.sort(sizes, axis=1)[:, -min(self.n_kept_, sizes.shape[1])]
        return np.where(sizes >= smallest[:, None], sizes, 0.0)
