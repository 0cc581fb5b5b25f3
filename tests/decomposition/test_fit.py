"""The public function: parameters, starts, input."""

import numpy as np
import pytest

from tuckermix import decompose


@pytest.fixture
def X():
    return np.random.default_rng(0).standard_normal((30, 5, 6))


@pytest.mark.parametrize("init", ["hosvd", "hosvd-samples", "random"])
def test_every_start_leads_to_a_good_fit(X, init):
    best = decompose(X, 3, 2).cost
    fit = decompose(X, 3, 2, init=init, n_init=5, random_state=0, tol=1e-9)
    assert fit.cost <= 1.02 * best


def test_random_starts_keep_the_best(X):
    one = decompose(X, 3, 2, init="random", n_init=1, random_state=3)
    many = decompose(X, 3, 2, init="random", n_init=8, random_state=3)
    assert many.cost <= one.cost


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"n_components": 0}, "'n_components' parameter of decompose must be an integer >= 1"),
        ({"n_components": 2.5}, "'n_components' parameter of decompose must be an integer >= 1"),
        ({"solver": "newton"}, "'solver' parameter of decompose must be one of 'exact'"),
        ({"init": "zeros"}, "'init' parameter of decompose must be one of 'hosvd'"),
        ({"tol": -1.0}, "'tol' parameter of decompose must be a number >= 0"),
        ({"max_iter": 0}, "'max_iter' parameter of decompose must be an integer >= 1"),
        ({"n_init": 0}, "'n_init' parameter of decompose must be an integer >= 1"),
        ({"random_state": "x"}, "random_state must be None, an int"),
    ],
)
def test_bad_parameters_are_named(X, bad, message):
    with pytest.raises(ValueError, match=message):
        decompose(**{"X": X, "n_components": 3, **bad})


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.ones(5), "at least 2 axes"),
        (np.ones((0, 3)), "at least one sample"),
        (np.ones((3, 2), dtype=complex), "takes real numbers"),
        (np.array([["a", "b"]]), "takes real numbers"),
        (np.full((3, 2), np.nan), "NaN or infinity"),
    ],
)
def test_bad_samples_are_named(bad, message):
    with pytest.raises(ValueError, match=message):
        decompose(bad, 1)


def test_integers_and_lists_are_taken_as_float64():
    fit = decompose([[0, 1], [1, 0], [2, 5]], 2)
    assert fit.Q.dtype == np.float64
    assert decompose(np.array([[True, False], [False, True]]), 2).Q.dtype == np.float64
