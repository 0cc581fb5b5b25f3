"""
A folder of images
==================

From files to clusters, and back to files: read a folder, cluster it, look at the clusters, keep the labels and a
report. From a terminal the same is one command, ``tuckermix cluster photos``; see :doc:`/cli`.
"""

# %%
# Any folder will do. For this page we write one: 300 handwritten digits as PNG files.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

from tuckermix.datasets import load

folder = Path(tempfile.mkdtemp()) / "photos"
folder.mkdir()
digits = load("digits")
for index, pixels in enumerate(digits.X[:300]):
    levels = np.rint(pixels * 255 / 16).astype(np.uint8)
    Image.fromarray(levels).save(folder / f"scan-{index:03d}.png")

# %%
# Reading
# -------
# `read` takes folders of images, videos, arrays, HDF5, Zarr, MATLAB files and more (:doc:`/datasets`). Samples come
# first, and each keeps its name. Images of many sizes need ``size=(64, 64)``; ``grey=True`` drops colours.

from tuckermix.datasets import read

photos = read(folder)
print(photos.X.shape, photos.X.dtype, photos.names[:3])

# %%
# Clustering
# ----------
# Images stay images: each is a mixture of a few components that share one small Tucker subspace, and labels come
# from that subspace. How many clusters? Here we know; :doc:`choosing_k` shows what to do when you do not.

from tuckermix import TuckerClustering

model = TuckerClustering(n_clusters=10, random_state=0).fit(photos.X.astype(float))
print(np.bincount(model.labels_))

# %%
# Looking
# -------
# The mean of each cluster in the learned subspace, then typical and doubtful members of each.

from tuckermix.plots import CentroidDisplay, MemberDisplay

CentroidDisplay.from_estimator(model)
plt.show()

# %%

MemberDisplay.from_estimator(model, photos.X, n_members=8)
plt.show()

# %%
# Which images are doubtful? Those whose largest soft label is small: look at them first.

soft = model.predict_proba(photos.X.astype(float))
for index in np.argsort(soft.max(axis=1))[:5]:
    first, second = np.argsort(-soft[index])[:2]
    print(f"{photos.names[index]}: cluster {first} or {second}, {soft[index, first]:.0%}")

# %%
# Keeping
# -------
# A report to work in (:doc:`/report`): every picture, search, a selection that leaves as a CSV of names. With `folder`
# each picture leads to its file. The model goes to a file too, and labels what comes later.

import tuckermix
from tuckermix.report import write_report

write_report(folder.parent / "report.html", model, photos.X, names=photos.names, folder=folder)
tuckermix.save(model, folder.parent / "model.tuckermix")

again = tuckermix.load(folder.parent / "model.tuckermix")
print(again.predict(digits.X[300:310].astype(float) * 255 / 16))
