"""Find images that do not belong: ``python examples/strangers_among_digits.py``.

Forty of scikit-learn's digits are replaced: twenty by noise, twenty by blobs that look alike.
"""

import numpy as np

from tuckermix import TuckerClustering
from tuckermix.datasets import load

rng = np.random.default_rng(0)
X = load("digits").X[:800].astype(np.float64).copy()
strange = np.zeros(len(X), dtype=bool)
strange[rng.choice(len(X), 40, replace=False)] = True
noise, blobs = np.split(np.flatnonzero(strange), 2)
X[noise] = rng.uniform(0, X.max(), (20, 8, 8))
rows, columns = np.mgrid[:8, :8]
for index in blobs:
    x, y = rng.uniform(2, 5, 2)
    X[index] = X.max() * np.exp(-((rows - x) ** 2 + (columns - y) ** 2) / 12)

# The label -1 for samples that fit no cluster; at most about 5 % of the others get it too.
model = TuckerClustering(10, outliers="label", false_alarms=0.05, random_state=0).fit(X)
found = np.mean(model.labels_[strange] == -1)
alarms = np.mean(model.labels_[~strange] == -1)
print(f"{found:.0%} of the strangers found, {alarms:.1%} of the digits taken for one")

# New samples have scores too, and soft labels of outliers are nearly alike.
new = np.stack([X[~strange][0], rng.uniform(0, X.max(), (8, 8))])
scores, labels = model.outlier_scores(new), model.predict(new)
sure = model.predict_proba(new).max(axis=1)
for what, score, label, share in zip(("a digit", "noise"), scores, labels, sure, strict=True):
    print(f"{what}: outlier score {score:.1f}, label {label}, largest soft label {share:.0%}")
