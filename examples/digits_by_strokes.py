"""Cluster MNIST by strokes instead of pixels: ``python examples/digits_by_strokes.py``.

Reads the folder that TUCKERMIX_DATA names; without MNIST there, scikit-learn's small digits serve.
"""

import numpy as np
from sklearn.pipeline import make_pipeline

from tuckermix import TuckerClustering
from tuckermix.datasets import DatasetNotFound, load
from tuckermix.features import Scattering
from tuckermix.metrics import clustering_accuracy

try:
    digits, scales = load("mnist"), 3
except DatasetNotFound:
    digits, scales = load("digits"), 2

rng = np.random.default_rng(0)
chosen = rng.permutation(len(digits.labels))[:1000]
X, truth = digits.X[chosen].astype(np.float32), digits.labels[chosen]

pixels = TuckerClustering(10, random_state=0).fit(X)
strokes = make_pipeline(Scattering(J=scales, log=True), TuckerClustering(10, random_state=0)).fit(X)

accuracies = {
    "pixels": clustering_accuracy(truth, pixels.labels_),
    "strokes": clustering_accuracy(truth, strokes[-1].labels_),
}
for name, accuracy in accuracies.items():
    print(
        f"{digits.name}: {accuracy:.0%} of {len(X)} digits in the cluster of their class, by {name}"
    )

# The pipeline labels new samples too.
labels = strokes.predict(digits.X[:5].astype(np.float32))
