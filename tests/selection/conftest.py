"""Samples that tests of the choice share."""

import pytest

from tuckermix.datasets import make_tensor_clusters


@pytest.fixture
def planted():
    """Four clusters of images of 16 × 16, well apart."""
    return make_tensor_clusters(
        120, shape=(16, 16), n_clusters=4, noise=0.8, random_state=1, return_X_y=True
    )
