"""Tests of least squares regression."""

import numpy as np
import pytest
from scipy.linalg import lstsq
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

from tuckermix.baselines import LSR
from tuckermix.baselines.self_expression import ridge_coefficients, solve_ridge
from tuckermix.metrics import clustering_accuracy


def unit(seed, size=25, width=10):
    Z = np.random.default_rng(seed).standard_normal((size, width))
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


@pytest.mark.parametrize("penalty", [0.004, 0.4])
def test_coefficients_are_those_of_a_regression_on_the_others(seed, penalty):
    Z = unit(seed)
    C = ridge_coefficients(Z @ Z.T, penalty, zero_diagonal=True)
    for j in range(len(Z)):
        others = np.delete(np.arange(len(Z)), j)
        ridge = Ridge(alpha=penalty, fit_intercept=False, solver="svd").fit(Z[others].T, Z[j])
        np.testing.assert_allclose(C[others, j], ridge.coef_, atol=1e-10)
        assert C[j, j] == 0


def test_coefficients_without_constraint_solve_the_normal_equations(seed):
    Z, penalty = unit(seed), 0.1
    C = ridge_coefficients(Z @ Z.T, penalty, zero_diagonal=False)
    stacked = np.vstack([Z.T, np.sqrt(penalty) * np.eye(len(Z))])
    wanted = np.vstack([Z.T, np.zeros((len(Z), len(Z)))])
    np.testing.assert_allclose(C, lstsq(stacked, wanted)[0], atol=1e-10)
    np.testing.assert_allclose(solve_ridge(Z @ Z.T, penalty, Z @ Z.T), C.T, atol=1e-10)


def test_principal_directions(seed):
    X = np.random.default_rng(seed).standard_normal((40, 6, 5)) + 3.0
    model = LSR(2, directions_per_cluster=4, random_state=0).fit(X)
    pca = PCA(8, svd_solver="full").fit(X.reshape(40, -1))
    rows = X.reshape(40, -1) @ pca.components_.T
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(
        model.training_rows_ @ model.training_rows_.T, rows @ rows.T, atol=1e-10
    )
    assert model.directions_.shape == (30, 8)
    assert LSR(2, directions_per_cluster=None, random_state=0).fit(X).directions_ is None


def test_affinity_has_columns_scaled_to_one_or_as_they_are(seed):
    Z = unit(seed)
    model = LSR(3, directions_per_cluster=None, random_state=0)
    C = np.abs(ridge_coefficients(Z @ Z.T, 0.004, zero_diagonal=True))
    plain = model.set_params(scale_columns=False).fit(Z).affinity_matrix_
    np.testing.assert_allclose(plain, 0.5 * (C + C.T), atol=1e-10)
    C /= C.max(axis=0)
    scaled = model.set_params(scale_columns=True).fit(Z).affinity_matrix_
    np.testing.assert_allclose(scaled, 0.5 * (C + C.T), atol=1e-10)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"penalty": 0.0}, "'penalty' parameter of LSR must be a number > 0. Got 0.0"),
        ({"directions_per_cluster": 0}, "'directions_per_cluster' parameter of LSR must be an int"),
    ],
)
def test_parameters_are_checked(settings, text):
    with pytest.raises(ValueError, match=text):
        LSR(2, **settings).fit(unit(0))


@pytest.mark.data
def test_ten_persons_as_published(data_home):
    """The authors report 0.74 for the first ten persons of the Extended Yale B faces."""
    from tuckermix.datasets import load

    data = load("yaleb", data_home=data_home)
    first = np.isin(data.labels, np.unique(data.labels)[:10])
    model = LSR(10, random_state=0).fit(data.X[first])
    assert clustering_accuracy(data.labels[first], model.labels_) > 0.7
