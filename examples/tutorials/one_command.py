"""
One command and one page
========================

You have a folder of images and do not know what is in it, nor how many kinds there are. One command finds out, and one
page shows it: what belongs together, what could not be read, why that many clusters; open any image, and leave with a
list of names.
"""

# %%
# The folder
# ----------
# Yours is ready. For this page we make one: 300 files, PNG and JPEG, of many sizes, with handwritten digits of four kinds
# somewhere in the picture. One file was cut off in the middle.

import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from tuckermix.datasets import load

rng = np.random.default_rng(0)
place = Path(tempfile.mkdtemp())
folder = place / "photos"
folder.mkdir()
digits = load("digits")
some = np.isin(digits.labels, [0, 1, 2, 6])
kinds = digits.labels[some][:299]
for index, digit in enumerate(digits.X[some][:299]):
    picture = np.zeros((32, 32))
    top, left = rng.integers(5, 12, size=2)
    picture[top : top + 16, left : left + 16] = (digit * 15).repeat(2, axis=0).repeat(2, axis=1)
    side = int(rng.integers(36, 60))
    image = Image.fromarray(picture.astype(np.uint8)).resize((side, side))
    image.save(folder / f"scan-{index:03d}.{'jpg' if index % 3 == 0 else 'png'}")
(folder / "scan-299.png").write_bytes((folder / "scan-001.png").read_bytes()[:200])

# %%
# The command
# -----------
# Sizes differ, so ``--size`` brings all images to one. Without ``-k`` the number of clusters is chosen, and stability decides
# whether pixels or strokes are compared. In a terminal:
#
# .. code-block:: console
#
#    $ tuckermix cluster photos --size 32 -o kinds

import subprocess
import sys

command = ["cluster", "photos", "--size", "32", "-o", "kinds"]
done = subprocess.run(
    [sys.executable, "-m", "tuckermix", *command],
    cwd=place,
    text=True,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    check=True,
)
print(done.stdout)

# %%
# It says that one file was skipped and why, which view and which number of clusters it took, and how close the next ones
# came.
#
# The page
# --------
# ``kinds/report.html`` opens in any browser, without a network. It shows the pictures of each cluster. A slider makes clusters
# coarser or finer; you can name, merge and split them, move pictures, and keep all of that: :doc:`/report`.
#
# .. image:: /_static/one-command.png
#    :alt: The page: rows of pictures, one for each cluster, below a slider for the number of clusters.
#
# The same for scripts
# --------------------
# Names, labels and soft labels of all samples are in ``labels.csv``, figures and the choice in ``summary.json``.

import csv
import json

with open(place / "kinds" / "labels.csv", newline="") as file:
    rows = list(csv.DictReader(file))
print(rows[0]["name"], rows[0]["label"])

summary = json.loads((place / "kinds" / "summary.json").read_text())
print(summary["n_clusters"], "clusters,", "skipped:", summary["skipped"])

# %%
# Some members of each cluster, a row each. By content: where a digit stands and how large its file is makes no difference.

import matplotlib.pyplot as plt

labels = np.array([int(row["label"]) for row in rows])
figure, axes = plt.subplots(summary["n_clusters"], 10, figsize=(8, 3.6))
for cluster, line in enumerate(axes):
    for member, axis in zip(np.flatnonzero(labels == cluster), line, strict=False):
        axis.imshow(Image.open(folder / rows[member]["name"]), cmap="gray")
        axis.axis("off")
plt.show()

# %%
# Here we know what is in the folder, and can say how many files lie with their kind.

from tuckermix.metrics import clustering_accuracy

print(f"{clustering_accuracy(kinds, labels):.0%}")

# %%
# New files later: ``tuckermix predict kinds/model.tuckermix new-photos``. The model remembers how its images were read.
