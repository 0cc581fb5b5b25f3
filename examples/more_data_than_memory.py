"""Cluster a Zarr store chunk by chunk, and write the labels chunk by chunk."""

import sys
import tempfile
from pathlib import Path

import dask.array as da
import numpy as np
import zarr

from tuckermix import TuckerClustering

N_CHUNKS, CHUNK = 20, 1_000  # here 5 MB in all; the lines below do not depend on it

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
rng = np.random.default_rng(0)
kinds = rng.standard_normal((4, 8, 8))

# 1. Write samples to disk, piece by piece.
store = zarr.create_array(
    folder / "samples.zarr",
    shape=(N_CHUNKS * CHUNK, 8, 8),
    chunks=(CHUNK, 8, 8),
    dtype="float32",
)
for start in range(0, N_CHUNKS * CHUNK, CHUNK):
    noise = rng.standard_normal((CHUNK, 8, 8))
    store[start : start + CHUNK] = kinds[rng.integers(4, size=CHUNK)] + 0.5 * noise

# 2. A lazy array in, a fitted model out. No more than a few chunks are in memory at a time.
X = da.from_zarr(folder / "samples.zarr")
model = TuckerClustering(n_clusters=4, ranks=(5, 5), random_state=0).fit(X)

# 3. Arrays with a row per sample are lazy, all others are NumPy arrays.
assert isinstance(model.labels_, da.Array)
assert isinstance(model.centroids_, np.ndarray)
model.labels_.to_zarr(folder / "labels.zarr")

sizes = np.bincount(zarr.open_array(folder / "labels.zarr")[:])
print(f"{X.nbytes / 1e6:.0f} MB, {model.n_iter_} sweeps, clusters of {sizes.tolist()}")
