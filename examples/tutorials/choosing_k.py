"""
How many clusters?
==================

`AutoClustering` tries numbers of clusters and takes the one whose labels come back best when samples are left out. It
says what it compared, so that you can decide otherwise.
"""

# %%
# Nobody told it that these are five kinds of digits.

import numpy as np

from tuckermix import AutoClustering
from tuckermix.datasets import load

digits = load("digits")
few = digits.labels < 5
X, y = digits.X[few][:450].astype(float), digits.labels[few][:450]

model = AutoClustering(features="pixels", random_state=0).fit(X)
print(model.n_clusters_, "clusters")
print(model.selection_)

# %%
# Why that number
# ---------------
# Stability: how well labels come back from 80 % of the samples. Modularity: how much more neighbours share a cluster
# than chance has it. The number with the largest product is taken.

import matplotlib.pyplot as plt

from tuckermix.plots import SelectionDisplay

SelectionDisplay.from_estimator(model)
plt.show()

# %%
# Was it right? Here we can look.

from tuckermix.metrics import clustering_accuracy

print(f"{clustering_accuracy(y, model.labels_):.1%} in the cluster of their class")
print(np.bincount(model.labels_))

# %%
# What not to go by
# -----------------
# The cost falls with every cluster that is added, and the mean of the largest soft label is highest where clusters are
# few: neither has its best value at the right number.

from tuckermix import TuckerClustering

for k in (2, 5, 8):
    one = TuckerClustering(k, random_state=0).fit(X)
    sure = one.predict_proba(X).max(axis=1).mean()
    print(f"k={k}: cost {one.cost_:,.0f}, largest soft label {sure:.1%} on average")

# %%
# A number of your own is as good a choice: ``TuckerClustering(n_clusters=7)``. From a terminal, leave ``-k`` out to have it
# chosen; the report then shows this curve. How it works and where it fails: :doc:`/choosing`.
