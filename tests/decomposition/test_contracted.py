"""The contracted tensor is that of orthonormal coordinates, and settling on it only gains."""

import numpy as np
import pytest

from tuckermix._array_api import to_numpy
from tuckermix.decomposition import contracted as module
from tuckermix.decomposition.contracted import contracted, row_space, settle
from tuckermix.sources import as_source
from tuckermix.tensor import multi_mode_dot


def problem(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((50, 6, 7)) + 3.0
    factors = [np.linalg.qr(rng.standard_normal((size, 3)))[0] for size in (6, 7)]
    basis = np.linalg.qr(rng.standard_normal((9, 5)))[0]
    return X, factors, basis


def test_one_pass_gives_what_coordinates_would(xp, seed):
    X, factors, basis = problem(seed)
    T, energies = contracted(
        as_source(xp.asarray(X)), [xp.asarray(f) for f in factors], xp.asarray(basis)
    )
    Y = np.einsum("mij,ia,jb->mab", X - X.mean(axis=0), *factors).reshape(50, -1) @ basis
    u, sigma, _ = np.linalg.svd(Y, full_matrices=False)
    np.testing.assert_allclose(energies, sigma**2, rtol=1e-10)
    expected = np.einsum("mk,mij->kij", u, X)
    np.testing.assert_allclose(np.abs(to_numpy(T)[1:]), np.abs(expected), atol=1e-9)
    np.testing.assert_allclose(to_numpy(T)[0], 50**0.5 * X.mean(axis=0), atol=1e-10)


@pytest.mark.parametrize("limit", [0, 10**6], ids=["on the device", "on the host"])
def test_settling_gains_and_spans_the_projected_rows(xp, seed, limit, monkeypatch):
    monkeypatch.setattr(module, "HOST_TENSOR", limit)
    X, factors, basis = problem(seed)
    source = as_source(xp.asarray(X))
    moved = [xp.asarray(factor) for factor in factors]
    T, energies = contracted(source, moved, xp.asarray(basis))
    mean = multi_mode_dot(X.mean(axis=0)[None], factors, transpose=True)
    start = (1 - (50 * np.sum(mean**2) + energies[:2].sum()) / np.sum(X**2)) ** 0.5
    found, space, error = settle(T, moved, 2, source.squared_norm, 1e-12)
    assert error <= start + 1e-12
    projected = np.einsum("kij,ia,jb->kab", to_numpy(T)[1:], *map(to_numpy, found)).reshape(-1, 9)
    space = to_numpy(space)
    np.testing.assert_allclose(projected @ space @ space.T, projected, atol=1e-9)


def test_equal_samples_leave_the_mean_alone():
    source = as_source(np.ones((5, 3, 2)))
    T, energies = contracted(source, [np.eye(3), np.eye(2)], np.zeros((6, 0)))
    assert T.shape == (1, 3, 2)
    assert energies.size == 0


def test_row_space_of_many_rows_is_everything():
    np.testing.assert_array_equal(row_space(np.ones((5, 3))), np.eye(3))
