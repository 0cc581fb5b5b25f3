"""The datasets known by name."""

from __future__ import annotations

import numpy as np

from tuckermix.datasets._dataset import Dataset

__all__ = ["load"]


def load(name: str, data_home: str | None = None) -> Dataset:
    """Load a dataset by name."""
    if name != "digits":
        raise ValueError(f"The 'name' parameter of load must be one of 'digits'. Got {name!r}.")
    from sklearn.datasets import load_digits

    digits = load_digits()
    return Dataset(
        X=digits.images.astype(np.uint8),
        labels=digits.target.astype(np.int64),
        class_names=[str(digit) for digit in range(10)],
        name="digits",
        description="Handwritten digits of 8 x 8 pixels with 17 grey levels, from scikit-learn.",
    )
