"""Tests of sparse subspace clustering by orthogonal matching pursuit."""

import numpy as np
import pytest
from sklearn.linear_model import orthogonal_mp

from tuckermix.baselines import SSCOMP
from tuckermix.baselines.self_expression import matching_pursuit


def unit(seed, size=40, width=15):
    Z = np.random.default_rng(seed).standard_normal((size, width))
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


@pytest.mark.parametrize("n_nonzero", [1, 3, 7])
def test_each_sample_is_expressed_as_scikit_learn_does(seed, n_nonzero):
    Z = unit(seed)
    G = Z @ Z.T
    C = matching_pursuit(G, G, np.diag(G), n_nonzero=n_nonzero, tol=0.0, exclude_self=True)
    for i in range(len(Z)):
        others = np.delete(np.arange(len(Z)), i)
        theirs = orthogonal_mp(Z[others].T, Z[i], n_nonzero_coefs=n_nonzero)
        np.testing.assert_allclose(C[i, others], theirs, atol=1e-8)
        assert C[i, i] == 0


def test_pursuit_stops_at_the_residual_wanted(seed):
    Z, tol = unit(seed), 0.2
    G = Z @ Z.T
    C = matching_pursuit(G, G, np.diag(G), n_nonzero=15, tol=tol, exclude_self=True)
    residual = np.sum((Z - C @ Z) ** 2, axis=1)
    assert np.all(residual < tol)
    for i in range(len(Z)):
        others = np.delete(np.arange(len(Z)), i)
        theirs = orthogonal_mp(Z[others].T, Z[i], tol=tol)
        np.testing.assert_allclose(C[i, others], theirs, atol=1e-8)


def test_new_samples_and_equal_atoms(seed):
    Z, new = unit(seed, 20), unit(seed + 100, 5)
    atoms = np.vstack([Z, Z])
    C = matching_pursuit(atoms @ atoms.T, new @ atoms.T, np.ones(5), n_nonzero=4, tol=0.0)
    theirs = orthogonal_mp(Z.T, new.T, n_nonzero_coefs=4)
    np.testing.assert_allclose(C[:, :20] + C[:, 20:], theirs.T, atol=1e-8)


def test_a_sample_that_nothing_resembles_has_no_coefficients():
    Z = np.eye(4)
    C = matching_pursuit(Z, Z, np.ones(4), n_nonzero=3, tol=1e-6, exclude_self=True)
    np.testing.assert_array_equal(C, np.zeros((4, 4)))


def test_affinity_of_unit_coefficients(seed):
    Z = unit(seed)
    G = Z @ Z.T
    model = SSCOMP(3, n_nonzero=4, random_state=0).fit(Z)
    C = matching_pursuit(G, G, np.diag(G), n_nonzero=4, tol=1e-6, exclude_self=True)
    C = np.abs(C) / np.linalg.norm(C, axis=1, keepdims=True)
    np.testing.assert_allclose(model.affinity_matrix_, 0.5 * (C + C.T), atol=1e-10)
    np.testing.assert_array_equal(model.predict(Z), model.labels_)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"n_nonzero": 0}, "'n_nonzero' parameter of SSCOMP must be an integer >= 1. Got 0"),
        ({"tol": -1.0}, "'tol' parameter of SSCOMP must be a number >= 0. Got -1.0"),
    ],
)
def test_parameters_are_checked(settings, text):
    with pytest.raises(ValueError, match=text):
        SSCOMP(2, **settings).fit(unit(0))
