"""Time a fit beside UMAP followed by k-means, on the first 10,000 digits of MNIST.

Needs the extra ``rivals`` (umap-learn) and the digits in `TUCKERMIX_DATA`::

    python -m benchmarks.bench_umap

Both run in one process, on the same float32 pixels, in turns. UMAP keeps ten directions of 15
neighbours, as in the tables, without a seed, so that it may use all threads; what it compiles is
compiled before the clock starts. k-means has ten starts. Wall time and processor time are medians.
Results go to `umap.json` and `umap.md`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans

from benchmarks.reporting import environment
from tuckermix import TuckerClustering
from tuckermix._optional import require
from tuckermix.datasets import load
from tuckermix.metrics import clustering_accuracy

N_DIGITS, N_WARM, K = 10_000, 1_000, 10
N_NEIGHBORS, N_DIRECTIONS = 15, 10  # those of the column of the tables


def ours(X: np.ndarray, seed: int) -> np.ndarray:
    return TuckerClustering(K, random_state=seed).fit_predict(X)


def umap_and_kmeans(X: np.ndarray, seed: int) -> np.ndarray:
    umap = require("umap", "The time of UMAP", "rivals", package="umap-learn")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own dependencies
        reducer = umap.UMAP(N_NEIGHBORS, N_DIRECTIONS, min_dist=0.0)
        embedding = reducer.fit_transform(X.reshape(len(X), -1))
    return KMeans(K, n_init=10, random_state=seed).fit_predict(embedding)


METHODS = {"TuckerClustering": ours, "UMAP + k-means": umap_and_kmeans}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--samples", type=int, default=N_DIGITS)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    data = load("mnist")
    X = np.asarray(data.X[: options.samples], dtype=np.float32) / 255
    truth = np.asarray(data.labels[: options.samples])
    for method in METHODS.values():
        method(X[:N_WARM], 0)
    runs: dict[str, list[tuple[float, float, float]]] = {name: [] for name in METHODS}
    for seed in range(options.repeats):
        for name, method in METHODS.items():
            wall, processor = time.perf_counter(), time.process_time()
            labels = method(X, seed)
            took = time.perf_counter() - wall, time.process_time() - processor
            runs[name].append((*took, clustering_accuracy(truth, labels)))
            print(name, runs[name][-1], flush=True)
    rows = []
    for name, found in runs.items():
        wall, processor, accuracy = (
            statistics.median(values) for values in zip(*found, strict=True)
        )
        rows.append({"method": name, "wall": wall, "processor": processor, "AC": accuracy})
    document = {
        "environment": environment(),
        "n_digits": len(X),
        "rows": rows,
        "ratio": rows[1]["wall"] / rows[0]["wall"],
        "processor_ratio": rows[1]["processor"] / rows[0]["processor"],
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "umap.json").write_text(json.dumps(document, indent=1) + "\n")
    (options.out / "umap.md").write_text(table(document))
    print(table(document))


def table(document: dict) -> str:
    lines = [
        (
            f"The first {document['n_digits']:,} digits of MNIST, pixels, one process on "
            f"{document['environment']['cores']} cores of {document['environment']['processor']}."
        ),
        "",
        "| method | wall time | processor time | AC |",
        "|---|---|---|---|",
    ]
    for row in document["rows"]:
        lines.append(
            f"| {row['method']} | {row['wall']:.2f} s | {row['processor']:.2f} s "
            f"| {row['AC']:.3f} |"
        )
    lines += [
        "",
        (
            f"UMAP and k-means take {document['ratio']:.1f} times the wall time and "
            f"{document['processor_ratio']:.1f} times the processor time."
        ),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
