"""
Volumes and videos
==================

A sample may have any number of axes. Nothing changes in the calls; displays only need to know whether a stack of
pictures is a volume or a video, since the numbers do not tell.
"""

# %%
# Volumes
# -------
# Sixty scans of 16 × 16 × 16 voxels: a box, a ball or a cross, somewhere near the middle, under noise.

import matplotlib.pyplot as plt
import numpy as np

from tuckermix import TuckerClustering
from tuckermix.metrics import clustering_accuracy
from tuckermix.plots import CentroidDisplay, MemberDisplay

rng = np.random.default_rng(0)
grid = np.mgrid[:16, :16, :16]


def scan(kind):
    """Draw one volume of a kind."""
    x, y, z = grid - (8 + rng.normal(scale=0.4, size=3))[:, None, None, None]
    box = np.maximum(np.maximum(abs(x), abs(y)), abs(z)) < 4
    ball = x**2 + y**2 + z**2 < 26
    cross = (np.minimum(np.minimum(abs(x) + abs(y), abs(x) + abs(z)), abs(y) + abs(z)) < 3) & (
        x**2 + y**2 + z**2 < 49
    )
    return np.stack([box, ball, cross])[kind] + rng.normal(scale=0.3, size=(16, 16, 16))


kinds = rng.integers(3, size=60)
volumes = np.stack([scan(kind) for kind in kinds])
model = TuckerClustering(n_clusters=3, random_state=0).fit(volumes)
print(volumes.shape, "ranks", model.ranks_)
print(f"{clustering_accuracy(kinds, model.labels_):.0%} in the cluster of their shape")

# %%
# A volume is drawn by its three middle slices.

CentroidDisplay.from_estimator(model)
plt.show()

# %%
# Videos
# ------
# Ninety clips of 12 frames: a spot that moves to the right, moves down, or blinks in its place. Any single frame looks
# the same in all three; what differs is how frames follow each other, and time is an axis like any other.

time = np.arange(12)[:, None, None]
y, x = np.mgrid[:16, :16]


def clip(kind):
    """Film one spot."""
    row, column = rng.uniform(5, 9, size=2)
    down, right = [(0, 0.5), (0.5, 0), (0, 0)][kind]
    light = 0.5 + 0.5 * np.cos(time) if kind == 2 else 1.0
    spot = light * np.exp(
        -((y - row - down * (time - 6)) ** 2 + (x - column - right * (time - 6)) ** 2) / 6
    )
    return spot + rng.normal(scale=0.1, size=(12, 16, 16))


kinds = rng.integers(3, size=90)
videos = np.stack([clip(kind) for kind in kinds])
model = TuckerClustering(n_clusters=3, random_state=0).fit(videos)
print(videos.shape, "ranks", model.ranks_)
print(f"{clustering_accuracy(kinds, model.labels_):.0%} in the cluster of their movement")

# %%
# ``kind="video"`` draws frames side by side. ``tuckermix cluster clips/`` does so by itself for files of videos, and
# `write_report` takes the same word.

CentroidDisplay.from_estimator(model, kind="video")
plt.show()

# %%

MemberDisplay.from_estimator(model, videos, n_members=3, kind="video")
plt.show()
