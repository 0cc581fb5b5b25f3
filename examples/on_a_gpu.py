"""Cluster images on a GPU. Without one, the same lines run on the processor."""

import torch

from tuckermix import TuckerClustering
from tuckermix.datasets import load
from tuckermix.metrics import clustering_accuracy

device = "cuda" if torch.cuda.is_available() else "cpu"
digits = load("digits")
X = torch.as_tensor(digits.X, dtype=torch.float32, device=device)

model = TuckerClustering(n_clusters=10, random_state=0).fit(X)

# Everything follows X: library, device and floating type.
for value in (model.labels_, model.memberships_, model.centroids_, model.predict_proba(X[:5])):
    assert value.device == X.device
assert model.centroids_.dtype == torch.float32

# Arrays go back to the host only where you ask for it.
labels = model.labels_.cpu().numpy()
accuracy = clustering_accuracy(digits.labels, labels)
print(f"{device}: {accuracy:.0%} of {len(labels)} digits in the cluster of their class")
