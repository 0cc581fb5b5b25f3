"""Say what more landmarks bring, and what they take: all digits of MNIST on processors.

Run it with the datasets in `TUCKERMIX_DATA`::

    python -m benchmarks.landmarks --out benchmarks/results

Beyond `MAX_LANDMARKS` samples labels are learned from a random part of them. Times are seconds of
processors, all threads together, so that a busy machine changes them little. Results go to
`landmarks.json` and `landmarks.md`; `bench_gpu.py` has the same for a device.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np

from tuckermix import TuckerClustering, clustering
from tuckermix.datasets import load
from tuckermix.metrics import clustering_accuracy, normalized_mutual_information

COUNTS = (5_000, 10_000, 20_000, 40_000)
SEEDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--samples", type=int, default=None, help="fewer digits, for a trial")
    parser.add_argument("--counts", type=int, nargs="*", default=COUNTS)
    options = parser.parse_args()
    data = load("mnist")
    X = np.asarray(data.X[: options.samples], dtype=np.float32) / 255
    truth = np.asarray(data.labels[: options.samples])
    rows = []
    for count in options.counts:
        clustering.MAX_LANDMARKS = count
        for seed in range(SEEDS):
            model = TuckerClustering(10, ranks=(14, 14), random_state=seed)
            began = time.process_time()
            labels = model.fit(X).labels_
            row = {
                "landmarks": count,
                "seed": seed,
                "processor_seconds": round(time.process_time() - began, 1),
                "accuracy": round(clustering_accuracy(truth, labels), 4),
                "nmi": round(normalized_mutual_information(truth, labels), 4),
            }
            rows.append(row)
            print(json.dumps(row), flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    document = {"n_samples": len(X), "rows": rows}
    (options.out / "landmarks.json").write_text(json.dumps(document, indent=1) + "\n")
    (options.out / "landmarks.md").write_text(table(document))
    print(table(document))


def table(document: dict) -> str:
    lines = [
        f"{document['n_samples']:,} digits of MNIST, a score for each seed; seconds of processors.",
        "",
        "| landmarks | time | AC | mean AC | mean NMI |",
        "|---|---|---|---|---|",
    ]
    for count in sorted({row["landmarks"] for row in document["rows"]}):
        rows = [row for row in document["rows"] if row["landmarks"] == count]
        scores = ", ".join(f"{row['accuracy']:.3f}" for row in rows)
        seconds = statistics.median(row["processor_seconds"] for row in rows)
        accuracy = statistics.mean(row["accuracy"] for row in rows)
        nmi = statistics.mean(row["nmi"] for row in rows)
        lines.append(f"| {count:,} | {seconds:.1f} s | {scores} | {accuracy:.3f} | {nmi:.3f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
