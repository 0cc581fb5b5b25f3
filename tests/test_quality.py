"""Clusters on real images, with the defaults and only the core size given.

These are a few rows of the tables, with slack for the
smaller number of draws.
"""

import numpy as np
import pytest

from tuckermix import TuckerClustering
from tuckermix.datasets import load
from tuckermix.metrics import clustering_accuracy, normalized_mutual_information


def scores(data, n_classes, each, ranks, draws, **options):
    found = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        classes = rng.choice(np.unique(data.labels), n_classes, replace=False)
        index = [rng.permutation(np.flatnonzero(data.labels == name))[:each] for name in classes]
        chosen = np.concatenate(index)
        X, truth = data.X[chosen] / 255.0, data.labels[chosen]
        model = TuckerClustering(n_classes, ranks=ranks, random_state=seed, **options).fit(X)
        found.append(
            (
                clustering_accuracy(truth, model.labels_),
                normalized_mutual_information(truth, model.labels_),
            )
        )
    return np.mean(found, axis=0)


@pytest.mark.parametrize("ranks", [(12, 12), None])
def test_faces_under_changing_light(data_home, ranks):
    accuracy, _ = scores(load("pie", data_home), 8, 42, ranks, draws=3)
    assert accuracy >= 0.98


def test_faces_with_changing_expression(data_home):
    accuracy, information = scores(load("orl", data_home), 10, 10, (12, 12), draws=8)
    assert accuracy >= 0.82
    assert information >= 0.85


def test_faces_against_everything_else_with_all_zero_images(data_home):
    accuracy, information = scores(load("cbcl", data_home), 2, 600, (8, 8), draws=3)
    assert accuracy >= 0.72
    assert information >= 0.18


def test_digits_of_many_hands(data_home):
    accuracy, information = scores(load("mnist", data_home), 10, 100, (14, 14), draws=3)
    assert accuracy >= 0.55
    assert information >= 0.56


def test_kmeans_in_the_subspace(data_home):
    accuracy, _ = scores(
        load("pie", data_home), 24, 42, (12, 12), draws=3, assign_labels="subspace"
    )
    assert accuracy >= 0.78
