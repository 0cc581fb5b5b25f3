"""What choosing costs: ``TUCKERMIX_DATA=… python -m benchmarks.choosing_cost [--all]``.

`AutoClustering()` with the number of clusters open and all its views, on 1,000 images of 28 × 28 of
MNIST, with ``--all`` on all 70,000, of which landmarks stand for the others. *processor* is the
processor time of all threads of the process, which other programs do not disturb; *first word* is
when the first message on progress comes. ``taskset -c 0`` before it keeps it on one core. Results
go to `choosing_cost.json` and `choosing_cost.md`.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks import reporting
from tuckermix import AutoClustering
from tuckermix.datasets import load

FEW = 1000
"""Images of the first row."""


class Listener(logging.Handler):
    """Note when the first message comes, and how many there are."""

    def __init__(self) -> None:
        super().__init__()
        self.began, self.first, self.count = time.perf_counter(), float("nan"), 0

    def emit(self, record: logging.LogRecord) -> None:
        """Take a message."""
        if self.count == 0:
            self.first = time.perf_counter() - self.began
        self.count += 1


def measure(X: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Choose and fit once."""
    logger = logging.getLogger("tuckermix.selection")
    listener = Listener()
    logger.addHandler(listener)
    logger.setLevel(logging.INFO)
    began, worked = time.perf_counter(), time.process_time()
    model = AutoClustering(random_state=0).fit(X)
    row = {
        "seconds": time.perf_counter() - began,
        "processor": time.process_time() - worked,
        "first word": listener.first,
        "messages": listener.count,
        "clusters": model.n_clusters_,
        "view": model.selection_.view,
        "ARI": float(adjusted_rand_score(labels, model.labels_)),
    }
    logger.removeHandler(listener)
    return row


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="all 70,000 images too")
    parser.add_argument("--again", action="store_true", help="measure what is stored too")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    data = load("mnist")
    X, labels = data.X, np.asarray(data.labels)
    some = np.random.default_rng(0).permutation(len(X))[:FEW]
    rows: dict[str, dict[str, Any]] = {}
    path = options.out / "choosing_cost.json"
    if path.exists():
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    for title, chosen in ((f"{FEW:,} images", some), (f"{len(X):,} images", slice(None))):
        asked = title.startswith(f"{FEW:,}") or options.all
        if asked and (options.again or title not in rows):
            rows[title] = measure(X[chosen].astype(np.float32) / 255, labels[chosen])
            print(title, rows[title], flush=True)
    first = next(iter(rows.values()))
    lines = ["| | " + " | ".join(first) + " |", "|---" * (len(first) + 1) + "|"]
    for title, row in rows.items():
        cells = [f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    about = reporting.environment()
    command = "TUCKERMIX_DATA=… python -m benchmarks.choosing_cost --all"
    heading = reporting.heading(command, "One run", about)
    (options.out / "choosing_cost.md").write_text("\n".join([heading, "", *lines, ""]))
    document = {"command": command, "environment": about, "rows": rows}
    path.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
