"""Leading eigenvectors and the update of the factors."""

import numpy as np
import pytest

from tuckermix._array_api import to_numpy
from tuckermix.decomposition import factors as module
from tuckermix.decomposition.factors import leading_eigenvectors, update_factors
from tuckermix.tensor import multi_mode_dot


@pytest.mark.parametrize("n_vectors", [0, 1, 3, 20])
def test_leading_eigenpairs_solve_the_problem(xp, n_vectors, seed):
    A = np.random.default_rng(seed).standard_normal((20, 20))
    gram = A @ A.T
    values, vectors = leading_eigenvectors(xp.asarray(gram), n_vectors)
    values, vectors = to_numpy(values), to_numpy(vectors)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(gram)[::-1][:n_vectors], rtol=1e-10)
    np.testing.assert_allclose(gram @ vectors, vectors * values, atol=1e-10)
    if n_vectors:
        peaks = np.abs(vectors).argmax(axis=0)
        assert np.all(vectors[peaks, np.arange(n_vectors)] > 0)


@pytest.mark.torch
def test_large_problems_stay_on_the_device(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(module, "HOST_EIGENPROBLEM", 4)
    A = np.random.default_rng(0).standard_normal((9, 9))
    gram = torch.asarray(A @ A.T)
    values, vectors = leading_eigenvectors(gram, 3)
    np.testing.assert_allclose(gram @ vectors, vectors * values, atol=1e-10)


def test_an_update_never_loses_energy_and_beats_other_factors(seed):
    rng = np.random.default_rng(seed)
    T = rng.standard_normal((4, 6, 7, 5))
    old = [np.linalg.qr(rng.standard_normal((size, 2)))[0] for size in (6, 7, 5)]
    energy = np.sum(multi_mode_dot(T, old, transpose=True) ** 2)
    for _ in range(5):
        new = update_factors(T, old)
        gained = np.sum(multi_mode_dot(T, new, transpose=True) ** 2)
        assert gained >= energy * (1 - 1e-12)
        old, energy = new, gained
        for factor in new:
            np.testing.assert_allclose(factor.T @ factor, np.eye(2), atol=1e-12)
    # The last factor is optimal for the others: no other orthonormal one explains more.
    for _ in range(50):
        other = np.linalg.qr(rng.standard_normal((5, 2)))[0]
        assert np.sum(multi_mode_dot(T, [*old[:2], other], transpose=True) ** 2) <= energy


def test_square_factors_are_left_alone():
    T = np.random.default_rng(0).standard_normal((3, 4, 5))
    square = np.eye(4)
    new = update_factors(T, [square, np.eye(5)[:, :2]], n_loops=2)
    assert new[0] is square
