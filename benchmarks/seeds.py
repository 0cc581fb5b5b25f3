"""How much labels depend on the seed: ``TUCKERMIX_DATA=… python -m benchmarks.seeds``.

The same samples are clustered with several seeds, and the labels are compared by the adjusted Rand
index, pair by pair: 1 where the seed makes no difference. Draws are from the part of the datasets
that is for reports. Results go to `seeds.json` and `seeds.md`.
"""

from __future__ import annotations

import argparse
import json
import warnings
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

from benchmarks import reporting
from benchmarks.quality import draw
from tuckermix import TuckerClustering
from tuckermix.datasets import load
from tuckermix_bench.draws import REPORTING, restrict
from tuckermix.features import Scattering

SEED = 29
"""The first seed of the draws."""

CASES = (
    ("mnist", 10, 100, "pixels"),
    ("mnist", 10, 100, "log-scattering"),
    ("digits", 10, 80, "pixels"),
    ("yaleb", 10, 64, "pixels"),
)
"""Dataset, classes, samples of each, view."""


def labels_of(X: Any, n_clusters: int, view: str, seed: int) -> Any:
    """Cluster with the defaults."""
    model = TuckerClustering(n_clusters, random_state=seed)
    if view == "pixels":
        return model.fit_predict(X)
    return make_pipeline(Scattering(log=True), model).fit(X)[-1].labels_


def main() -> None:
    """Compare seeds on all draws and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: dict[str, dict[str, float]] = {}
    lines = ["| | mean ARI | least mean of a draw | most |", "|---|---|---|---|"]
    for name, n_classes, each, view in CASES:
        data = restrict(load(name), name, REPORTING)
        means = []
        for number in range(options.draws):
            X, _ = draw(data, n_classes, each, SEED + number)
            fits = [labels_of(X, n_classes, view, seed) for seed in range(options.seeds)]
            means.append(np.mean([adjusted_rand_score(a, b) for a, b in combinations(fits, 2)]))
        title = f"{name} {n_classes} × {each}, {view}"
        values = {"mean": np.mean(means), "least": np.min(means), "most": np.max(means)}
        rows[title] = {key: float(value) for key, value in values.items()}
        lines.append(f"| {title} | " + " | ".join(f"{v:.3f}" for v in values.values()) + " |")
        print(lines[-1], flush=True)
    size = f"--draws {options.draws} --seeds {options.seeds}"
    command = f"TUCKERMIX_DATA=… python -m benchmarks.seeds {size}"
    about = reporting.environment()
    heading = reporting.heading(command, "Adjusted Rand index between seeds", about)
    (options.out / "seeds.md").write_text("\n".join([heading, "", *lines, ""]))
    document = {"command": command, "environment": about, "rows": rows}
    (options.out / "seeds.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
