"""Planted simplices: samples with known mixing weights."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment


def planted_simplex(n_components, seed, *, n_samples=1500, snr=None, highest=0.9, n_features=40):
    """Return samples, weights and vertices: Dirichlet(0.6) weights, no entry above `highest`."""
    rng = np.random.default_rng(seed)
    vertices = rng.uniform(size=(n_components, n_features))
    weights = np.empty((0, n_components))
    while len(weights) < n_samples:
        drawn = rng.dirichlet(np.full(n_components, 0.6), size=4 * n_samples)
        weights = np.vstack([weights, drawn[drawn.max(axis=1) <= highest]])
    weights = weights[:n_samples]
    X = weights @ vertices
    if snr is not None:
        deviation = (np.mean(X**2) / 10 ** (snr / 10)) ** 0.5
        X = X + deviation * rng.standard_normal(X.shape)
    return X, weights, vertices


def orthonormal_coordinates(X, n_components):
    """Return the leading left singular vectors of the centred samples."""
    return np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[0][:, : n_components - 1]


def barycentric(Z, vertices):
    """Return the weights with which vertices mix to points."""
    lifted = np.column_stack([np.ones(len(vertices)), vertices])
    return np.column_stack([np.ones(len(Z)), Z]) @ np.linalg.inv(lifted)


def rmse(weights, truth):
    """Return the root mean squared error of weights under the best matching of components."""
    squares = np.sum((weights[:, :, None] - truth[:, None, :]) ** 2, axis=0)
    return (np.sum(squares[linear_sum_assignment(squares)]) / truth.size) ** 0.5


@pytest.fixture(scope="session")
def planted():
    """Give the functions that draw planted simplices and compare with them."""
    return SimpleNamespace(
        simplex=planted_simplex,
        coordinates=orthonormal_coordinates,
        barycentric=barycentric,
        rmse=rmse,
    )
