"""Views of videos: chosen on generated textures and early halves of real ones, reported on late.

``python -m benchmarks.dynamic_textures`` clusters the eight real textures of ``TUCKERMIX_DATA``,
cut into 50 × 50 × 50 as DynTex++ is, with the number of clusters given. Every view is labelled by
`TuckerClustering` with its defaults and three seeds; k-means on pixels and what `AutoClustering`
chooses without labels stand beside them. The network needs ``tuckermix[photos]``. Results go to
`dynamic_textures.json` and `dynamic_textures.md`.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from tuckermix import AutoClustering, TuckerClustering
from tuckermix.datasets import make_dynamic_textures
from tuckermix.features import Network, Scattering, Texture
from tuckermix.metrics import clustering_accuracy

SEEDS = range(3)
EVERY, FRAMES = 5, 10
"""Every fifth frame serves, ten in all, where time itself is not looked at."""

RESULTS = Path(__file__).parent / "results"


def strokes(X: np.ndarray, every: int = EVERY) -> np.ndarray:
    return Scattering(L=4, log=True).fit_transform(X[..., ::every])


def tempo(X: np.ndarray) -> np.ndarray:
    """Return a scattering transform in time of one in space, averaged over cells and time."""
    frames = Scattering(L=4).fit_transform(X)
    in_time = Scattering().fit_transform(frames.reshape(-1, X.shape[-1])).mean(axis=2)
    means = in_time.reshape(*frames.shape[:4], -1).mean(axis=(2, 3))
    return np.log(means / np.median(X.mean(axis=(1, 2, 3))) + 3e-5)


def maps(X: np.ndarray) -> np.ndarray:
    return Network(layer="block 8", size=96, frames=FRAMES).fit_transform(X)


VIEWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "pixels": lambda X: X,
    "strokes of frames, in place": strokes,
    "strokes of frames, mean": lambda X: strokes(X).mean(axis=(2, 3, 4)),
    "strokes of frames, mean and change": lambda X: Texture().fit_transform(strokes(X, 2)),
    "strokes, scattering in time": tempo,
    "network per frame, in place": lambda X: Network(
        layer="block 14", size=64, frames=FRAMES
    ).fit_transform(X),
    "network per frame, mean": lambda X: maps(X).mean(axis=(2, 3, 4)),
    "network per frame, mean and change": lambda X: Texture().fit_transform(maps(X)),
}


def read_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    with np.load(Path(os.environ["TUCKERMIX_DATA"]) / "dynamic_textures.npz") as data:
        X, labels, late = data["images"], data["labels"], data["is_test"].astype(bool)
    sets = {}
    for seed in range(2):
        made = make_dynamic_textures(96, 8, 32, 32, random_state=seed)
        sets[f"generated {seed}"] = (made.X.astype(np.float32), made.labels)
    sets["early"] = (X[~late], labels[~late])
    sets["late"] = (X[late], labels[late])
    return sets


def accuracy(make: Callable[[int], Any], features: np.ndarray, labels: np.ndarray) -> float:
    found = [make(seed).fit_predict(features) for seed in SEEDS]
    return float(np.mean([clustering_accuracy(labels, each) for each in found]))


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    sets = read_sets()
    rows: dict[str, dict[str, float]] = {
        "pixels, k-means": {
            name: accuracy(
                lambda seed: KMeans(8, n_init=10, random_state=seed), X.reshape(len(X), -1), labels
            )
            for name, (X, labels) in sets.items()
        }
    }
    for view, features in VIEWS.items():
        rows[view] = {
            name: accuracy(lambda seed: TuckerClustering(8, random_state=seed), features(X), labels)
            for name, (X, labels) in sets.items()
        }
        print(view, rows[view], flush=True)
    for features in ("auto", "all"):
        row = rows[f"chosen among {features}"] = {}
        for name, (X, labels) in sets.items():
            row[name] = accuracy(
                lambda seed, kind=features: AutoClustering(8, features=kind, random_state=seed),
                X.astype(np.float32),
                labels,
            )
        print(features, row, flush=True)
    lines = [f"| view | {' | '.join(sets)} |", "|---" * (len(sets) + 1) + "|"]
    lines += [
        f"| {view} | {' | '.join(f'{value:.3f}' for value in row.values())} |"
        for view, row in rows.items()
    ]
    (RESULTS / "dynamic_textures.md").write_text("\n".join(lines) + "\n")
    (RESULTS / "dynamic_textures.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
