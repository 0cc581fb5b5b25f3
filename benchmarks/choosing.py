"""How well the view and the number of clusters are chosen without labels.

``python -m benchmarks.choosing [--draws 10] [--planted 100]`` runs on the part of each dataset that
choices did not look at. With the number of clusters known: accuracy of the fixed default, of
`AutoClustering` on pixels, of all its candidates, and of the best candidate as only the classes
could tell it. With it open: the number found, and the adjusted Rand index beside that at the true
number. Planted clusters: how often the number is right. Results go to `results/choosing.json`.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from tuckermix import AutoClustering, TuckerClustering
from tuckermix.datasets import load, make_tensor_clusters
from tuckermix.experiments.splits import REPORTING, restrict
from tuckermix.metrics import clustering_accuracy
from tuckermix.selection.auto import built_in_candidates
from tuckermix.selection.resampling import set_clusters

RESULTS = Path(__file__).parent / "results" / "choosing.json"

COLUMNS = (
    ("orl", 10, 10),
    ("mnist", 3, 100),
    ("mnist", 5, 100),
    ("mnist", 10, 100),
    ("digits", 10, 80),
    ("cbcl", 2, 300),
    ("orl", 20, 10),
    ("pie", 24, 42),
    ("yaleb", 10, 64),
)
"""Dataset, classes, samples of each; quick ones first."""

NOISE = {3: 2.15, 4: 2.1, 5: 2.05, 6: 2.0, 7: 1.97, 8: 1.93, 9: 1.9, 10: 1.86, 11: 1.82, 12: 1.78}
"""Noise at which k-means with the true number just reaches an adjusted Rand index of 0.9, by number
of planted clusters of 40 samples."""


def draw(name: str, n_classes: int, each: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw classes and samples of a dataset's reporting part."""
    data = restrict(load(name), name, REPORTING)
    rng = np.random.default_rng([seed, 8])
    labels = np.asarray(data.labels)
    names = np.unique(labels)
    names = np.sort(rng.choice(names, min(n_classes, len(names)), replace=False))
    rows = [rng.permutation(np.flatnonzero(labels == c))[:each] for c in names]
    X = np.asarray(data.X)[np.concatenate(rows)].astype(np.float32)
    return X / float(X.max()), np.repeat(np.arange(len(rows)), [len(r) for r in rows])


def known(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, float | str]:
    """Compare views where the number of clusters is known."""
    n_clusters = int(y.max()) + 1
    chosen = AutoClustering(n_clusters, random_state=seed).fit(X)
    pixels = AutoClustering(n_clusters, features="pixels", random_state=seed).fit(X)
    fixed = TuckerClustering(n_clusters, random_state=seed).fit(X)
    candidates = built_in_candidates(X.shape[1:], "auto")
    fits = [set_clusters(clone(c), n_clusters, seed).fit_predict(X) for _, c in candidates]
    score = clustering_accuracy
    return {
        "default": score(y, fixed.labels_),
        "pixels": score(y, pixels.labels_),
        "auto": score(y, chosen.labels_),
        "oracle": max(score(y, labels) for labels in fits),
        "view": chosen.selection_.view,
        "ari": adjusted_rand_score(y, chosen.labels_),
    }


def opened(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, float | int | str]:
    """Find the number of clusters."""
    model = AutoClustering(random_state=seed).fit(X)
    true = int(y.max()) + 1
    return {
        "true": true,
        "found": model.n_clusters_,
        "view": model.selection_.view,
        "log2": abs(math.log2(model.n_clusters_ / true)),
        "ari": adjusted_rand_score(y, model.labels_),
    }


def planted(n_runs: int) -> list[tuple[int, int]]:
    """Return the true and the found number of planted clusters."""
    found = []
    for run in range(n_runs):
        true = 3 + run % 10
        X = make_tensor_clusters(
            40 * true, n_clusters=true, noise=NOISE[true], random_state=5000 + run
        ).X
        found.append((true, AutoClustering(random_state=run).fit(X).n_clusters_))
        store({"planted": found})
    return found


def store(part: dict[str, Any]) -> None:
    """Add to the stored results, so that a run which is ended early is not lost."""
    held = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps({**held, **part}, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Run what is asked for; results are stored after each column."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--planted", type=int, default=100)
    options = parser.parse_args()
    if options.planted:
        pairs = planted(options.planted)
        print(f"planted: {sum(a == b for a, b in pairs)} of {len(pairs)} right")
    for name, n_classes, each in COLUMNS if options.draws else ():
        rows = []
        for seed in range(options.draws):
            X, y = draw(name, n_classes, each, seed)
            rows.append({"known": known(X, y, seed), "open": opened(X, y, seed)})
            store({f"{name} {n_classes}x{each}": rows})
            print(name, n_classes, rows[-1], flush=True)


if __name__ == "__main__":
    main()
