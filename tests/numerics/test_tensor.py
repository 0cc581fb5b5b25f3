"""Tensor operations against einsum and against each other."""

import numpy as np
import pytest

from tuckermix._array_api import to_numpy
from tuckermix.numerics import tensor


def test_unfold_keeps_the_order_of_the_other_axes():
    X = np.arange(12.0).reshape(3, 2, 2)
    np.testing.assert_array_equal(
        tensor.unfold(X, 1), [[0.0, 1, 4, 5, 8, 9], [2.0, 3, 6, 7, 10, 11]]
    )


def test_mode_dot_contracts_the_columns_of_the_matrix(xp, seed):
    rng = np.random.default_rng(seed)
    X, A = rng.standard_normal((3, 4, 5)), rng.standard_normal((2, 4))
    expected = np.einsum("ijk,aj->iak", X, A)
    np.testing.assert_allclose(
        to_numpy(tensor.mode_dot(xp.asarray(X), xp.asarray(A), 1)), expected, atol=1e-13
    )
    first, last = rng.standard_normal((2, 3)), rng.standard_normal((7, 5))
    np.testing.assert_allclose(
        to_numpy(tensor.mode_dot(xp.asarray(X), xp.asarray(first), 0)),
        np.einsum("ijk,ai->ajk", X, first),
        atol=1e-13,
    )
    np.testing.assert_allclose(
        to_numpy(tensor.mode_dot(xp.asarray(X), xp.asarray(last), 2)),
        np.einsum("ijk,ak->ija", X, last),
        atol=1e-13,
    )


def test_mode_dot_names_both_sizes_that_do_not_fit():
    with pytest.raises(ValueError, match="mode 1 of size 4 with a matrix of 3 columns"):
        tensor.mode_dot(np.ones((2, 4)), np.ones((5, 3)), 1)


def test_multi_mode_dot_projects_and_lifts(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((6, 4, 5))
    U, V = rng.standard_normal((4, 2)), rng.standard_normal((5, 3))
    small = tensor.multi_mode_dot(X, [U, V], transpose=True)
    np.testing.assert_allclose(small, np.einsum("mij,ia,jb->mab", X, U, V), atol=1e-12)
    np.testing.assert_allclose(
        tensor.multi_mode_dot(small, [U, None]), np.einsum("mab,ia->mib", small, U), atol=1e-12
    )


def test_mode_gram_is_the_product_of_the_unfolding(xp):
    X = np.random.default_rng(1).standard_normal((3, 4, 5))
    for mode in range(3):
        unfolded = tensor.unfold(X, mode)
        np.testing.assert_allclose(
            to_numpy(tensor.mode_gram(xp.asarray(X), mode)), unfolded @ unfolded.T, atol=1e-12
        )


def test_tucker_to_tensor_rebuilds(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((8, 4, 5))
    U = np.linalg.qr(rng.standard_normal((4, 2)))[0]
    V = np.linalg.qr(rng.standard_normal((5, 3)))[0]
    Q = np.linalg.qr(rng.standard_normal((8, 3)))[0]
    core = np.einsum("mij,mq,ia,jb->qab", X, Q, U, V)
    fit = tensor.tucker_to_tensor(core, [U, V], Q)
    np.testing.assert_allclose(fit, np.einsum("qab,mq,ia,jb->mij", core, Q, U, V), atol=1e-12)
    assert tensor.tucker_to_tensor(core, [U, V], None).shape == (3, 4, 5)
