"""Time fits on one, two and all processors, and beside scikit-learn.

Run it on a machine that does nothing else::

    python benchmarks/bench_cores.py --out benchmarks/results

Each number of processors has a process of its own, pinned to as many. Times are medians, and the
ratios that matter are between rows of one run: a fit of all MNIST digits beside
``KMeans(n_init=1)``, the model without labels in units of one product of the samples with a thin
matrix on all threads of BLAS, predictions, a small fit (24 faces of PIE), and the scattering
transform. The last table compares whole fits with `sklearn.cluster.SpectralClustering` on pixels,
on all processors. Datasets lie in `TUCKERMIX_DATA`; those that are not there are left out. Results
go to `cores.json` and `cores.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

N_SCATTERED = 4_000
"""Digits through the scattering transform: enough for every thread to have many blocks."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--cores", default="", help="such as 1,2,16; 1, 2 and all by default")
    parser.add_argument("--samples", type=int, default=None, help="fewer digits, for a trial")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(options.samples)))
        return
    allowed = sorted(os.sched_getaffinity(0))
    wanted = [int(part) for part in options.cores.split(",") if part]
    counts = sorted({min(n, len(allowed)) for n in (wanted or [1, 2, len(allowed)])})
    rows = []
    for count in counts:
        rows.append(pinned(allowed[:count], options.samples))
        print(json.dumps(rows[-1]), flush=True)
    document = {"processor": processor(), "rows": rows, "peers": rows[-1].pop("peers")}
    for row in rows:
        row.pop("peers", None)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "cores.json").write_text(json.dumps(document, indent=1) + "\n")
    (options.out / "cores.md").write_text(tables(document))
    print(tables(document))


def pinned(cores: list[int], samples: int | None) -> dict:
    """Measure in a process of its own that has these processors only, from its first import on."""
    command = ["taskset", "--cpu-list", ",".join(map(str, cores)), sys.executable, __file__]
    command += ["--child", *(["--samples", str(samples)] if samples else [])]
    hidden = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return {"cores": len(cores), **json.loads(done.stdout.splitlines()[-1])}


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return "unknown"


def timed(function, least: float = 0.5, most: int = 7) -> float:
    """Return the median time of some runs after a first one: fewer where one takes long."""
    began = time.perf_counter()
    function()
    repeats = max(1, min(most, int(least / (time.perf_counter() - began)) + 1))
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def measure(samples: int | None) -> dict:
    import numpy as np
    from sklearn.cluster import KMeans

    from tuckermix import TuckerClustering, decompose
    from tuckermix.datasets import DatasetNotFound
    from tuckermix.features import Scattering

    row: dict = {"peers": []}
    try:
        X, y = digits(samples)
        flat = X.reshape(len(X), -1)
        U = np.random.default_rng(0).standard_normal((flat.shape[1], 10)).astype(np.float32)
        model = TuckerClustering(10, ranks=(14, 14), random_state=0)
        row["n_digits"] = len(X)
        row["product"] = timed(lambda: flat @ U)
        row["decompose"] = timed(lambda: decompose(X, 10, (14, 14)))
        row["fit"] = timed(lambda: model.fit(X))
        row["predict"] = timed(lambda: model.predict(X))
        row["kmeans"] = timed(lambda: KMeans(10, n_init=1, random_state=0).fit(flat))
        few = X[:N_SCATTERED]
        row["n_scattered"] = len(few)
        row["scattering"] = timed(lambda: Scattering().fit_transform(few))
        tenth = np.concatenate([np.flatnonzero(y == name)[:100] for name in range(10)])
        row["peers"].append(peer("MNIST 10×100", X[tenth].astype(np.float64), 10))
    except DatasetNotFound as error:
        print(f"skipped: {error}", file=sys.stderr)
    for name, title, most in (("pie", "PIE, 24 faces", 24), ("orl", "ORL", None)):
        try:
            X, y = faces(name, most)
        except DatasetNotFound as error:
            print(f"skipped: {error}", file=sys.stderr)
            continue
        row["peers"].append(peer(title, X, len(np.unique(y))))
        row[name] = row["peers"][-1]["ours"]
    return row


def digits(samples: int | None):
    import numpy as np

    from tuckermix.datasets import load

    data = load("mnist")
    return np.asarray(data.X[:samples], dtype=np.float32) / 255, np.asarray(data.labels[:samples])


def faces(name: str, most: int | None):
    import numpy as np

    from tuckermix.datasets import load

    data = load(name)
    labels = np.asarray(data.labels)
    keep = np.isin(labels, np.unique(labels)[:most])
    return np.asarray(data.X, dtype=np.float64)[keep] / 255, labels[keep]


def peer(title: str, X, n_clusters: int) -> dict:
    """Compare a whole fit with spectral clustering on pixels, with the same K and neighbours."""
    import warnings

    from sklearn.cluster import SpectralClustering

    from tuckermix import TuckerClustering

    spectral = SpectralClustering(
        n_clusters, affinity="nearest_neighbors", n_neighbors=15, random_state=0
    )
    ours = TuckerClustering(n_clusters, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says so where its graph has several parts
        theirs = timed(partial(spectral.fit, X.reshape(len(X), -1)))
    return {"data": title, "K": n_clusters, "ours": timed(lambda: ours.fit(X)), "spectral": theirs}


COLUMNS = {
    "product": "one product",
    "decompose": "decompose",
    "fit": "fit",
    "kmeans": "`KMeans(n_init=1)`",
    "predict": "predict",
    "pie": "fit of PIE, K = 24",
    "scattering": "scattering",
}


def tables(document: dict) -> str:
    rows = document["rows"]
    first = rows[0]
    shown = [key for key in COLUMNS if key in first]
    lines = [
        f"Processor: {document['processor']}. Medians, and how many times as fast as on one core.",
        f"{first.get('n_digits', 0):,} digits of MNIST in float32; {first.get('n_scattered', 0):,}",
        "of them through the scattering transform.",
        "",
        "| cores | " + " | ".join(COLUMNS[key] for key in shown) + " |",
        "|---|" + "---|" * len(shown),
    ]
    for row in rows:
        cells = [f"{seconds(row[key])} ({first[key] / row[key]:.1f})" for key in shown]
        lines.append(f"| {row['cores']} | " + " | ".join(cells) + " |")
    lines += [
        "",
        f"Whole fits on {rows[-1]['cores']} cores, beside spectral clustering of pixels:",
        "",
        "| data | K | tuckermix | spectral clustering | ratio |",
        "|---|---|---|---|---|",
    ]
    for entry in document["peers"]:
        lines.append(
            f"| {entry['data']} | {entry['K']} | {seconds(entry['ours'])} "
            f"| {seconds(entry['spectral'])} | {entry['ours'] / entry['spectral']:.2f} |"
        )
    return "\n".join(lines) + "\n"


def seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else f"{1e3 * value:.0f} ms"


if __name__ == "__main__":
    main()
