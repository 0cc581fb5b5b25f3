"""
On a GPU
========

Everything follows the samples: a tensor on a GPU is clustered there, and results stay there. There is nothing to switch
on. Where there is no GPU, as when this page was built, the same lines run on the processor.
"""

# %%

import torch

from tuckermix import TuckerClustering
from tuckermix.datasets import load
from tuckermix.metrics import clustering_accuracy

device = "cuda" if torch.cuda.is_available() else "cpu"
digits = load("digits")
X = torch.as_tensor(digits.X, dtype=torch.float32, device=device)

model = TuckerClustering(n_clusters=10, random_state=0).fit(X)
print(device, type(model.labels_).__name__, model.centroids_.dtype)

# %%
# Nothing goes back to the host unless you ask for it.

labels = model.labels_.cpu().numpy()
print(f"{clustering_accuracy(digits.labels, labels):.1%} in the cluster of their class")

# %%
# Features are computed where the samples are, too.

from tuckermix.features import Scattering

strokes = Scattering(J=2).fit_transform(X)
print(tuple(strokes.shape), strokes.device)
by_strokes = TuckerClustering(n_clusters=10, random_state=0).fit(strokes)
print(f"{clustering_accuracy(digits.labels, by_strokes.labels_.cpu().numpy()):.1%} by strokes")

# %%
# A model that is saved and loaded predicts in NumPy, on any machine.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import tuckermix
from tuckermix.plots import CentroidDisplay

path = Path(tempfile.mkdtemp()) / "digits.tuckermix"
tuckermix.save(model, path)
anywhere = tuckermix.load(path)
print(anywhere.predict(digits.X[:5].astype("float32")), labels[:5])

# %%

CentroidDisplay.from_estimator(model)
plt.show()

# %%
# From a terminal it is ``tuckermix cluster photos --device cuda``. What float32 costs, what stays on the host and how long
# a million images take: :doc:`/gpu`.
