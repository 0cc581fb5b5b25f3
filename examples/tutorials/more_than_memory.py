"""
More than memory holds
======================

A Dask array goes in, and at no time are more than a few of its chunks in memory. What has a row for each sample comes
out lazy; what has not is a NumPy array. This page does it with 5 MB; no line depends on that.
"""

# %%
# Samples on disk
# ---------------
# They come from somewhere, piece by piece, and go to a Zarr store.

import tempfile
from pathlib import Path

import dask.array as da
import numpy as np
import zarr

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
kinds = rng.standard_normal((4, 8, 8))
store = zarr.create_array(
    folder / "samples.zarr", shape=(20_000, 8, 8), chunks=(1_000, 8, 8), dtype="float32"
)
for start in range(0, 20_000, 1_000):
    noise = rng.standard_normal((1_000, 8, 8))
    store[start : start + 1_000] = kinds[rng.integers(4, size=1_000)] + 0.5 * noise

# %%
# Fit
# ---
# A sweep reads the data once. A few sweeps are enough, and `cost_model` (:doc:`/cost_model`) says beforehand what a fit
# will take.

from tuckermix import TuckerClustering

X = da.from_zarr(folder / "samples.zarr")
model = TuckerClustering(n_clusters=4, ranks=(5, 5), random_state=0).fit(X)
print(X)
print(f"{X.nbytes / 1e6:.0f} MB in {model.n_iter_ + 1} sweeps")

# %%
# Results
# -------
# Labels are written chunk by chunk, as they are computed.

print(type(model.labels_).__module__, type(model.centroids_).__module__)
model.labels_.to_zarr(folder / "labels.zarr")
print(np.bincount(zarr.open_array(folder / "labels.zarr")[:]))

# %%
# Centroids are small, and drawn at once.

import matplotlib.pyplot as plt

from tuckermix.plots import CentroidDisplay

CentroidDisplay.from_estimator(model)
plt.show()

# %%
# Samples that do not come as a Dask array: ``read("scans.h5", chunks=1000).X``, or
# ``tuckermix cluster scans.h5 --chunk 1000``. Samples that come one batch after the other, without an end:
#
# .. code-block:: python
#
#    model = TuckerClustering(4)
#    for batch in batches:
#        model.partial_fit(batch)

stream = TuckerClustering(4, ranks=(5, 5), random_state=0)
for start in range(0, 5_000, 1_000):
    stream.partial_fit(store[start : start + 1_000])
print(np.bincount(stream.predict(store[:2_000])))
