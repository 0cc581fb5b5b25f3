"""Data that break careless implementations, for all comparison methods."""

from __future__ import annotations

import numpy as np
import pytest

KINDS = (
    "zero sample",
    "zero slices",
    "one cluster",
    "more clusters than rank",
    "every sample a cluster",
    "constant",
    "all zero",
    "two distinct samples",
    "one feature",
    "tiny",
    "huge",
    "integers",
    "float32",
)
N_SAMPLES, SHAPE = 20, (5, 4)


def _edge(name: str) -> tuple[np.ndarray, int]:
    """Return nonnegative samples and a number of clusters."""
    rng = np.random.default_rng(0)
    X = rng.random((N_SAMPLES, *SHAPE))
    match name:
        case "zero sample":
            X[3] = 0.0
        case "zero slices":
            X[:, 1] = 0.0
            X[:, :, 2] = 0.0
        case "one cluster":
            return X, 1
        case "more clusters than rank":
            return rng.random((N_SAMPLES, 1, 1)) * rng.random(SHAPE), 4
        case "every sample a cluster":
            return X[:5], 5
        case "constant":
            X[:] = 1.0
        case "all zero":
            X[:] = 0.0
        case "two distinct samples":
            X = np.repeat(X[:2], N_SAMPLES // 2, axis=0)
        case "one feature":
            X = X[:, :1, :1]
        case "tiny":
            X *= 1e-150
        case "huge":
            X *= 1e150
        case "integers":
            X = np.floor(10 * X).astype(np.int64)
        case "float32":
            X = X.astype(np.float32)
    return X, 3


@pytest.fixture
def edges() -> list[tuple[np.ndarray, int]]:
    """Give samples and a number of clusters of each awkward kind."""
    return [_edge(name) for name in KINDS]
