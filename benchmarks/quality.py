"""Accuracy on the datasets with the defaults: ``TUCKERMIX_DATA=… python -m benchmarks.quality``.

Only the core size is given; every draw of classes and images is fixed by its seed, and comes from
the part of each dataset that no choice looks at. Cases that need everybody are called "full set",
with the share of their images that choices may look at. The second row of each dataset leaves the
ranks to the default. Results go to `quality.json` and `quality.md`.
Then the same on scattering features, with pixels beside: see `benchmarks.feature_quality`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import feature_quality, reporting
from tuckermix import TuckerClustering
from tuckermix.datasets import DatasetNotFound, load
from tuckermix_bench.draws import EVERYTHING, REPORTING, restrict, seen_share
from tuckermix.metrics import clustering_accuracy, normalized_mutual_information

CASES: list[dict[str, Any]] = [
    {"data": "pie", "classes": 8, "each": 42, "ranks": (12, 12), "draws": 5, "goal": (0.98, 0)},
    {"data": "pie", "classes": 24, "each": 42, "ranks": (12, 12), "draws": 5, "goal": (0.98, 0)},
    {
        "data": "pie",
        "classes": 68,
        "each": 42,
        "ranks": (12, 12),
        "draws": 5,
        "goal": (0.98, 0),
        "part": EVERYTHING,
    },
    {
        "data": "orl",
        "classes": 10,
        "each": 10,
        "ranks": (12, 12),
        "draws": 20,
        "goal": (0.85, 0.87),
    },
    {
        "data": "yaleb",
        "classes": 10,
        "each": 64,
        "ranks": (12, 12),
        "draws": 20,
        "goal": (0.70, 0.72),
    },
    {"data": "yaleb", "ranks": (12, 12), "draws": 3, "goal": (0.70, 0.72), "part": EVERYTHING},
    {"data": "cbcl", "classes": 2, "each": 600, "ranks": (8, 8), "draws": 10, "goal": (0.74, 0.20)},
    {
        "data": "mnist",
        "classes": 10,
        "each": 100,
        "ranks": (14, 14),
        "draws": 5,
        "goal": (0.58, 0.59),
    },
    {"data": "mnist", "ranks": (14, 14), "draws": 3, "goal": (0.68, 0.69), "part": EVERYTHING},
    {"data": "coil20", "ranks": (12, 12), "draws": 3, "goal": (0, 0)},
    {"data": "yale", "ranks": (12, 12), "draws": 3, "goal": (0, 0)},
    {
        "data": "pie",
        "classes": 24,
        "each": 42,
        "ranks": (12, 12),
        "draws": 10,
        "goal": (0.80, 0),
        "options": {"assign_labels": "subspace"},
    },
]


def draw_places(labels: Any, n_classes: int | None, each: int | None, seed: int) -> Any:
    """Choose classes and samples of each at random; return the places of the samples."""
    rng = np.random.default_rng(seed)
    classes = np.unique(labels)
    if n_classes is not None and n_classes < len(classes):
        classes = np.sort(rng.choice(classes, n_classes, replace=False))
    index = [rng.permutation(np.flatnonzero(labels == name))[:each] for name in classes]
    return np.concatenate(index)


def draw(data: Any, n_classes: int | None, each: int | None, seed: int) -> tuple[Any, Any]:
    """Choose classes and samples of each at random."""
    chosen = draw_places(data.labels, n_classes, each, seed)
    return data.X[chosen].astype(np.float32) / 255, data.labels[chosen]


def measure(case: dict[str, Any], ranks: Any) -> dict[str, Any]:
    """Fit every draw of a case and average the scores."""
    part = case.get("part", REPORTING)
    whole = load(case["data"])
    seen = seen_share(case["data"], np.arange(whole.n_samples), whole.labels)
    data = restrict(whole, case["data"], part)
    scores, times = [], []
    for seed in range(case["draws"]):
        X, truth = draw(data, case.get("classes"), case.get("each"), seed)
        n_clusters = len(np.unique(truth))
        model = TuckerClustering(
            n_clusters, ranks=ranks, random_state=seed, **case.get("options", {})
        )
        began = time.perf_counter()
        model.fit(X)
        times.append(time.perf_counter() - began)
        scores.append(
            (
                clustering_accuracy(truth, model.labels_),
                normalized_mutual_information(truth, model.labels_),
            )
        )
    accuracy, information = np.mean(scores, axis=0)
    error = np.std(scores, axis=0, ddof=1) / np.sqrt(len(scores))
    goal = " / ".join(f"{value:.2f}" if value else "–" for value in case["goal"])
    setting = ", ".join(f"{name}={value!r}" for name, value in case.get("options", {}).items())
    size = f"{n_clusters} × {case['each']}" if "each" in case else "all"
    # Where everybody is taken, only the start changes.
    kind = "draws" if part != EVERYTHING and "each" in case else "seeds"
    if part == EVERYTHING:
        size += f" (full set, {100 * (seen or 0.0):.0f} % for choices)"
    return {
        "what": f"{case['data']}, {size}, {len(X)} samples, {case['draws']} {kind} {setting}",
        "ours": f"AC {accuracy:.3f} ± {error[0]:.3f}, NMI {information:.3f} ± {error[1]:.3f}",
        "reference": f"ranks={ranks}, fitted {model.ranks_}",
        "ratio": f"{np.median(times):.2f} s a fit",
        "goal": goal,
        "accuracy": accuracy,
        "information": information,
        "accuracy_error": error[0],
        "information_error": error[1],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="datasets whose name contains this")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    rows = []
    for case in CASES:
        if options.only not in case["data"]:
            continue
        for ranks in (case["ranks"], None):
            try:
                rows.append(measure(case, ranks))
            except DatasetNotFound as error:
                print(f"skipped: {error}")
                continue
            print(reporting.lines_of(rows[-1:])[-1], flush=True)
    command = "TUCKERMIX_DATA=… python -m benchmarks.quality"
    reporting.store(rows, options.out, "quality", command)
    feature_quality.run(options.out, options.only)


if __name__ == "__main__":
    main()
