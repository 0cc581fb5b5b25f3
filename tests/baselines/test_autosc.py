"""Tests of automated spectral clustering."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel

from tuckermix.baselines import AutoSC
from tuckermix.baselines.self_expression import keep_largest_in_columns, relative_eigengap


def blobs(seed, size=36, width=7):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((3, width))[np.arange(size) % 3] + rng.standard_normal((size, width))


def candidates(Z, n_clusters):
    """The authors' grid, by scikit-learn's kernel ridge regression and NumPy's eigenvalues."""
    width = euclidean_distances(Z).mean()
    kernels = {"linear": Z @ Z.T, "gaussian": rbf_kernel(Z, gamma=1 / (2 * width**2))}
    for name, K in kernels.items():
        for penalty in (0.01, 0.1, 1.0):
            ridge = KernelRidge(alpha=penalty, kernel="precomputed").fit(K, K)
            S = np.abs(ridge.dual_coef_)
            S -= np.diag(np.diag(S))
            for count in range(5, 16):
                A = np.zeros_like(S)
                for j in range(len(S)):
                    best = np.argsort(-S[:, j])[:count]
                    A[best, j] = S[best, j] / S[best, j].sum()
                A = (A + A.T) / 2
                walk = np.linalg.eigvals(A / A.sum(axis=1, keepdims=True)).real
                e = 1 - np.sort(walk)[::-1]
                mean = e[:n_clusters].mean()
                yield (e[n_clusters] - mean) / (mean + 1e-6), name, penalty, count, A


def test_the_affinity_of_the_largest_gap_is_chosen(seed):
    X = blobs(seed)
    Z = X / np.linalg.norm(X, axis=1, keepdims=True)
    gap, kernel, penalty, count, A = max(candidates(Z, 3), key=lambda found: found[0])
    model = AutoSC(3, random_state=0).fit(X)
    assert model.gap_ == pytest.approx(gap, rel=1e-8)
    assert (model.kernel_, model.penalty_, model.n_kept_) == (kernel, penalty, count)
    np.testing.assert_allclose(model.affinity_matrix_, A, atol=1e-8)
    assert model.width_ == pytest.approx(euclidean_distances(Z).mean())


def test_gap():
    assert relative_eigengap(np.array([0.0, 0.2, 0.4]), 2) == pytest.approx(0.3 / (0.1 + 1e-6))
    assert relative_eigengap(np.array([0.0, 0.2]), 2) == 0.0


def test_columns_keep_their_largest_entries():
    S = np.array([[0.0, 3.0, 1.0], [1.0, 0.0, 4.0], [3.0, 1.0, 0.0]])
    expected = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(keep_largest_in_columns(S, 1), 0.5 * (expected + expected.T))
    whole = S / S.sum(axis=0)
    np.testing.assert_allclose(keep_largest_in_columns(S, 10), 0.5 * (whole + whole.T))
    assert keep_largest_in_columns(np.zeros((3, 3)), 2).sum() == 0
