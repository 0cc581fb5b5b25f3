import dataclasses

import numpy as np
import pytest

from tuckermix.datasets import Dataset


def test_reading_by_attribute_and_by_key():
    data = Dataset(X=np.zeros((4, 3, 2)), labels=np.array([7, 7, 2, 2]), name="toy")
    assert data["X"] is data.X
    assert data["labels"] is data.labels
    assert (data.n_samples, data.sample_shape, data.n_classes) == (4, (3, 2), 2)
    assert data.names is data.class_names is None
    assert repr(data) == "Dataset(toy: X (4, 3, 2) float64, 2 classes)"
    assert repr(Dataset(X=np.zeros((4, 3), np.uint8))) == (
        "Dataset(unnamed: X (4, 3) uint8, no labels)"
    )
    assert Dataset(X=np.zeros((4, 3))).n_classes is None


def test_fields_cannot_be_replaced():
    data = Dataset(X=np.zeros((4, 3)))
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.X = None
