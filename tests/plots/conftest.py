"""A small fitted model that all tests of the displays share."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.datasets import load_digits


@pytest.fixture(scope="session", autouse=True)
def _headless():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


class FakeClustering(ClusterMixin, BaseEstimator):
    """Nearest class mean, with the attributes of a fitted TuckerClustering."""

    def __init__(self, n_clusters=3):
        self.n_clusters = n_clusters

    def fit(self, X, y):
        self.sample_shape_ = X.shape[1:]
        self.centroids_ = np.stack([X[y == k].mean(axis=0) for k in range(self.n_clusters)])
        self.labels_ = self.predict(X)
        self.ranks_ = tuple(max(1, size // 2) for size in X.shape[1:])
        self.history_ = [
            SimpleNamespace(iteration=i, cost=10.0 + 2.0**-i, gap=10.0 ** (-4 * i), time=0.1 * i)
            for i in range(5)
        ]
        return self

    def _distances(self, X):
        flat = X.reshape(len(X), -1)
        means = self.centroids_.reshape(self.n_clusters, -1)
        return np.linalg.norm(flat[:, None] - means, axis=2)

    def predict_proba(self, X):
        weights = 1 / (self._distances(X) + 1e-9) ** 4
        return weights / weights.sum(axis=1, keepdims=True)

    def predict(self, X):
        return self._distances(X).argmin(axis=1)

    def transform(self, X):
        return self.predict_proba(X)


@pytest.fixture(scope="session")
def digits():
    X, y = load_digits(return_X_y=True)
    keep = y < 3
    return X[keep].reshape(-1, 8, 8), y[keep]


@pytest.fixture(scope="session")
def model(digits):
    X, y = digits
    return FakeClustering(3).fit(X, y)


@pytest.fixture
def make_model():
    """Return a function that fits a model to samples of any shape."""

    def make(X, n_clusters=3):
        return FakeClustering(n_clusters).fit(X, np.arange(len(X)) % n_clusters)

    return make
