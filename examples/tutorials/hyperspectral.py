"""
Hyperspectral scenes
====================

The pixels of a scene are samples with a spectrum each. With ``memberships="min-volume"`` the components are the spectra
of pure materials and the mixing weights their abundances: unmixing and clustering in one fit.
"""

# %%
# A scene of 40 × 60 pixels and 30 bands: three materials that pass into each other, and a little noise.

import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(0)
height, width, n_bands = 40, 60, 30
y, x = np.mgrid[:height, :width]
places = np.array([(10, 12), (28, 30), (12, 50)])
near = np.stack([np.exp(-np.hypot(y - a, x - b) / 5) for a, b in places], axis=-1)
abundances = near / near.sum(axis=-1, keepdims=True)
bands = np.linspace(0, 1, n_bands)
spectra = np.stack([0.2 + 0.8 * np.exp(-(((bands - c) / 0.2) ** 2)) for c in (0.2, 0.5, 0.8)])
scene = abundances @ spectra + 0.005 * rng.normal(size=(height, width, n_bands))

# %%
# Fit
# ---
# As many components as materials. The simplex around the pixels may leave 2 % of them outside, for noise.

from tuckermix import TuckerClustering

pixels = scene.reshape(-1, n_bands)
model = TuckerClustering(
    n_clusters=3,
    n_components=3,
    ranks=n_bands,
    memberships="min-volume",
    outside=0.02,
    assign_labels="memberships",
    random_state=0,
).fit(pixels)

# %%
# Maps of the abundances
# ----------------------

from tuckermix.plots import AbundanceDisplay, ComponentDisplay

AbundanceDisplay.from_estimator(model, (height, width))
plt.show()

# %%
# Against the truth, which a generated scene has: the correlation of each map with its material.

truth = abundances.reshape(-1, 3)
table = np.corrcoef(model.memberships_.T, truth.T)[:3, 3:]
print(np.abs(table).round(3))

# %%
# The spectra of the components, and the labels as a map.

ComponentDisplay.from_estimator(model)
plt.show()

# %%

plt.imshow(model.labels_.reshape(height, width), cmap="cividis")
plt.title("clusters of pixels")
plt.axis("off")
plt.show()

# %%
# From a terminal: ``tuckermix cluster scene.npy --pixels -k 3 --n-components 3 --memberships min-volume``. The report
# then shows the maps. More on the choice of the simplex: :doc:`/memberships`.
