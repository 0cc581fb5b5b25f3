"""Which setting TAGCSC gets: ``TUCKERMIX_DATA=… python -m benchmarks.tagcsc_settings``.

The authors search both weights from 0.00001 to 0.5 and 4 to 15 kept entries with the true classes
of each dataset. Here 20 pairs of weights, 4 to 10 entries or all, and samples of norm 1 or in units
of the largest entry are tried on a draw from the tuning parts of six datasets; five of the best and
three beside the best are tried on a second draw. The best mean accuracy is the setting for all.
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np

from tuckermix.baselines.nonnegative import unit_rows
from tuckermix.baselines.self_expression import (
    graph_convolution,
    keep_largest_in_rows,
    normalized_eigenvectors,
    symmetrized,
)
from tuckermix.datasets import load
from tuckermix.metrics import clustering_accuracy
from tuckermix.numerics.points import kmeans
from tuckermix_bench.draws import TUNING, restrict

CASES = (
    ("pie", 10, 24),
    ("orl", 20, 10),
    ("yaleb", 6, 40),
    ("cbcl", 2, 120),
    ("mnist", 10, 24),
    ("digits", 10, 24),
)
"""Dataset, classes, samples of each."""

GRID = list(product(("largest 1", "norm 1"), (1e-3, 0.01, 0.1, 0.5), (1e-4, 1e-3, 0.01, 0.1, 0.5)))
SECOND = [
    *(("norm 1", 0.01, beta) for beta in (1e-3, 1e-4, 1e-5)),
    *(("norm 1", alpha, 1e-4) for alpha in (0.005, 0.05)),
    *(("largest 1", *pair) for pair in ((1e-3, 0.01), (0.01, 1e-4), (0.01, 0.01))),
]
KEPT = (4, 5, 6, 7, 8, 9, 10, 10**4)
PATH = Path(__file__).parent / "results" / "tagcsc_settings.json"


def measure(name: str, n_classes: int, each: int, seed: int, setting: tuple) -> dict[str, float]:
    data = restrict(load(name), name, TUNING)
    rng = np.random.default_rng(seed)
    classes = np.sort(rng.choice(np.unique(data.labels), n_classes, replace=False))
    places = [rng.choice(np.flatnonzero(data.labels == c), each, replace=False) for c in classes]
    chosen = np.concatenate(places)
    X, y = data.X[chosen].reshape(len(chosen), -1).astype(float), data.labels[chosen]
    unit, alpha, beta = setting
    C, _, _ = graph_convolution(unit_rows(X) if unit == "norm 1" else X / X.max(), alpha, beta)
    found = {}
    for kept in KEPT:
        W = symmetrized(keep_largest_in_rows(C, kept))
        vectors = unit_rows(normalized_eigenvectors(W, n_classes)[1])
        labels = kmeans(vectors, n_classes, n_init=20, rng=np.random.default_rng(0)).labels
        found[str(kept)] = clustering_accuracy(y, labels)
    return found


def main() -> None:
    held = json.loads(PATH.read_text()) if PATH.is_file() else {}
    tasks = [(177, setting) for setting in GRID] + [
        (seed, setting) for seed in (177, 178) for setting in SECOND
    ]
    for case, (seed, setting) in product(CASES, tasks):
        key = f"{case[0]}|{seed}|{'|'.join(map(str, setting))}"
        if key not in held:
            held[key] = measure(*case, seed, setting)
            PATH.write_text(json.dumps(held, indent=1) + "\n")


if __name__ == "__main__":
    main()
