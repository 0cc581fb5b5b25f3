"""
Pixels or features?
===================

Two pictures of one thing differ in many pixels when it moves a little. `Scattering` turns pictures into strokes and
edges that may move; the result is an N-way array again, so that the clustering does not change.
"""

# %%
# Digits of four kinds, each a few pixels away from where the others are.

import matplotlib.pyplot as plt
import numpy as np

from tuckermix import TuckerClustering
from tuckermix.datasets import load
from tuckermix.features import Scale, Scattering
from tuckermix.metrics import clustering_accuracy

rng = np.random.default_rng(0)
digits = load("digits")
some = np.isin(digits.labels, [0, 1, 2, 6])
kinds = digits.labels[some][:300]
X = np.zeros((300, 32, 32))
for picture, digit in zip(X, digits.X[some][:300], strict=True):
    top, left = rng.integers(4, 13, size=2)
    picture[top : top + 16, left : left + 16] = digit.repeat(2, axis=0).repeat(2, axis=1)

pixels = TuckerClustering(4, random_state=0).fit(X)
print(f"by pixels: {clustering_accuracy(kinds, pixels.labels_):.0%}")

# %%
# By strokes
# ----------
# The coefficients have shape (channels, 2, 2) here: which strokes of which size, and roughly where. A larger `J` allows
# for longer ways, and sees less of where things are.

scattering = Scattering(J=4)
strokes = scattering.fit_transform(X)
print(strokes.shape)
model = TuckerClustering(4, random_state=0).fit(strokes)
print(f"by strokes: {clustering_accuracy(kinds, model.labels_):.0%}")

# %%


def show(labels, title):
    """Draw the first members of each cluster in a row."""
    figure, axes = plt.subplots(4, 10, figsize=(8, 3.6))
    for cluster, row in enumerate(axes):
        for axis in row:
            axis.axis("off")
        for place, axis in zip(np.flatnonzero(labels == cluster), row, strict=False):
            axis.imshow(X[place], cmap="gray")
    figure.suptitle(title)
    plt.show()


show(pixels.labels_, "By pixels: clusters of places")

# %%

# sphinx_gallery_thumbnail_number = 2
show(model.labels_, "By strokes: clusters of digits")

# %%
# In a pipeline new pictures pass through the same steps, and the report on a pipeline shows pictures, not features.

from sklearn.pipeline import make_pipeline

pipeline = make_pipeline(Scattering(J=4), TuckerClustering(4, random_state=0)).fit(X)
print((pipeline.predict(X) == model.labels_).all())

# %%
# Brightness
# ----------
# Pictures of many exposures cluster by exposure first. `Scale` takes it away, of each sample or of all.

exposures = rng.choice([1.0, 20.0], size=300)
dark_and_bright = X * exposures[:, None, None]
for name, samples in (
    ("as they are", dark_and_bright),
    ("scaled", Scale("sample").fit_transform(dark_and_bright)),
):
    found = TuckerClustering(4, random_state=0).fit(scattering.transform(samples))
    print(f"{name}: {clustering_accuracy(kinds, found.labels_):.0%}")

# %%
# From a terminal: ``tuckermix cluster photos --features scattering --scale sample``, or ``--features auto`` to let
# stability decide. What the coefficients are: :doc:`/features`.
