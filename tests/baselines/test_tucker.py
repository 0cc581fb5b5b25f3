"""Tests of the start that the methods with a Tucker subspace share."""

import numpy as np
import pytest

from tuckermix.baselines.tucker import start_tucker
from tuckermix.datasets import make_tensor_clusters
from tuckermix.numerics.tensor import unfold


def test_factors_are_the_leading_singular_vectors(seed):
    X = make_tensor_clusters(30, (6, 5, 4), 3, random_state=seed).X
    start = start_tucker(X, (3, 2, 1), "PCAB")
    assert start.ranks == (3, 2, 1)
    for mode, factor in enumerate(start.factors, start=1):
        left = np.linalg.svd(unfold(X, mode), full_matrices=False)[0][:, : factor.shape[1]]
        np.testing.assert_allclose(factor @ factor.T, left @ left.T, atol=1e-8)


def test_default_ranks_find_the_planted_subspace():
    X = make_tensor_clusters(100, (9, 8), 4, ranks=(3, 4), noise=0.01, random_state=0).X
    assert start_tucker(X, None, "PCAB").ranks == (3, 4)


def test_source_brings_the_data_to_ordinary_size():
    X = 1e-150 * np.random.default_rng(0).random((10, 4, 3))
    source = start_tucker(X, 2, "PCAB").source
    assert 1.0 < source.squared_norm < 1e3
    np.testing.assert_allclose(source.squared_norm, np.sum((X * source.scale) ** 2))


def test_owner_is_named():
    with pytest.raises(ValueError, match="The 'ranks' parameter of PCAB must be"):
        start_tucker(np.ones((4, 3)), -1, "PCAB")
