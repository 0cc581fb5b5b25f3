"""The three initialisations."""

import numpy as np
import pytest

from tuckermix._array_api import to_numpy
from tuckermix.decomposition.start import INITS, start_factors
from tuckermix.sources import as_source
from tuckermix.tensor import multi_mode_dot


@pytest.mark.parametrize("init", INITS)
def test_starts_are_orthonormal_and_repeat(xp, init):
    X = np.random.default_rng(0).standard_normal((20, 6, 5))
    source = as_source(xp.asarray(X))
    first = start_factors(source, (3, 2), init, np.random.default_rng(1))
    again = start_factors(source, (3, 2), init, np.random.default_rng(1))
    for factor, other in zip(first, again, strict=True):
        factor = to_numpy(factor)
        np.testing.assert_allclose(factor.T @ factor, np.eye(factor.shape[1]), atol=1e-12)
        np.testing.assert_array_equal(factor, to_numpy(other))


def test_hosvd_is_that_of_the_unfoldings(seed):
    X = np.random.default_rng(seed).standard_normal((20, 6, 5))
    factors = start_factors(as_source(X), (3, 2), "hosvd", np.random.default_rng(0))
    for mode, factor in enumerate(factors):
        unfolded = np.moveaxis(X, mode + 1, 0).reshape(X.shape[mode + 1], -1)
        left = np.linalg.svd(unfolded, full_matrices=False)[0][:, : factor.shape[1]]
        np.testing.assert_allclose(factor @ factor.T, left @ left.T, atol=1e-10)


def test_the_second_start_explains_single_samples_better_than_the_first(seed):
    X = np.random.default_rng(seed).standard_normal((20, 6, 5)) ** 3
    source, rng = as_source(X), np.random.default_rng(0)
    energy = {
        init: np.sum(
            multi_mode_dot(X, start_factors(source, (2, 2), init, rng), transpose=True) ** 2
        )
        for init in INITS
    }
    assert energy["hosvd-samples"] >= energy["hosvd"] * (1 - 1e-12)
    assert energy["hosvd"] > energy["random"]
