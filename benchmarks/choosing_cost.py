"""What choosing costs: ``TUCKERMIX_DATA=… python -m benchmarks.choosing_cost [--all]``.

`AutoClustering` with all its views on 1,000 images of 28 × 28 of MNIST, with the number of clusters
open and given, with ``--all`` on all 70,000 too, of which landmarks stand for the others.
*processor* is the processor time of all threads of the process, which other programs do not
disturb; *choice* is the time until the chosen view is fitted, and *first word* when the first
message on progress comes. ``taskset -c 0`` before it keeps it on one core. ``--device cuda`` puts
the samples on that device: each row of seed 0 is then the second of two fits. ``--seeds 5`` adds
fits of all images from further seeds, with the number of clusters given. Results go to
`choosing_cost.json` and `choosing_cost.md`, or `choosing_cost_cuda.json` and so on.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from benchmarks import reporting
from tuckermix import AutoClustering
from tuckermix._array_api import to_numpy
from tuckermix.datasets import load
from tuckermix.metrics import clustering_accuracy

FEW, CLASSES = 1000, 10
"""Images of the first rows, and their classes."""


class Listener(logging.Handler):
    """Note when the first and the last message come, and how many there are."""

    def __init__(self) -> None:
        super().__init__()
        self.began, self.first, self.last, self.count = time.perf_counter(), math.nan, math.nan, 0

    def emit(self, record: logging.LogRecord) -> None:
        """Take a message."""
        self.last = time.perf_counter() - self.began
        if self.count == 0:
            self.first = self.last
        self.count += 1


def measure(X: Any, truth: np.ndarray, n_clusters: int | None, seed: int = 0) -> dict[str, Any]:
    """Choose and fit once."""
    logger = logging.getLogger("tuckermix.selection")
    listener = Listener()
    logger.addHandler(listener)
    logger.setLevel(logging.INFO)
    began, worked = time.perf_counter(), time.process_time()
    model = AutoClustering(n_clusters or "auto", random_state=seed).fit(X)
    labels = to_numpy(model.labels_)  # waits for a device
    row = {
        "seconds": time.perf_counter() - began,
        "processor": time.process_time() - worked,
        "choice": listener.last,
        "first word": listener.first,
        "messages": listener.count,
        "clusters": model.n_clusters_,
        "view": model.selection_.view,
        "AC": float(clustering_accuracy(truth, labels)),
        "NMI": float(normalized_mutual_info_score(truth, labels)),
        "ARI": float(adjusted_rand_score(truth, labels)),
    }
    logger.removeHandler(listener)
    return row


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="all 70,000 images too")
    parser.add_argument("--seeds", type=int, default=1, help="fits of all images")
    parser.add_argument("--again", action="store_true", help="measure what is stored too")
    parser.add_argument("--device", default="", help="where PyTorch has the samples")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    data = load("mnist")
    X, labels = data.X.astype(np.float32) / 255, np.asarray(data.labels)
    some = np.random.default_rng(0).permutation(len(X))[:FEW]
    rows: dict[str, dict[str, Any]] = {}
    ending = f"_{options.device}" if options.device else ""
    path = options.out / f"choosing_cost{ending}.json"
    if path.exists():
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    some_name, all_name = f"{FEW:,} images", f"{len(X):,} images"
    asked = [(some_name, some, None, 0), (some_name, some, CLASSES, 0)]
    if options.all:
        asked.append((all_name, slice(None), None, 0))
        asked += [(all_name, slice(None), CLASSES, seed) for seed in range(options.seeds)]
    for title, chosen, n_clusters, seed in asked:
        name = title + (f", {n_clusters} clusters" if n_clusters else "")
        name += f", seed {seed}" if seed else ""
        if name in rows and not options.again:
            continue
        samples: Any = X[chosen]
        if options.device:
            import torch

            samples = torch.as_tensor(samples, device=options.device)
            if seed == 0:
                measure(samples, labels[chosen], n_clusters)
        rows[name] = measure(samples, labels[chosen], n_clusters, seed)
        print(name, rows[name], flush=True)
    first = next(iter(rows.values()))
    lines = ["| | " + " | ".join(first) + " |", "|---" * (len(first) + 1) + "|"]
    for title, row in rows.items():
        cells = [f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    about = reporting.environment()
    command = "TUCKERMIX_DATA=… python -m benchmarks.choosing_cost"
    command += " --all" if options.all else ""
    command += f" --seeds {options.seeds}" if options.seeds > 1 else ""
    command += f" --device {options.device}" if options.device else ""
    heading = reporting.heading(command, "One run", about)
    path.with_suffix(".md").write_text("\n".join([heading, "", *lines, ""]))
    document = {"command": command, "environment": about, "rows": rows}
    path.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
