"""Time fits on one, two and all processors, and beside scikit-learn.

Run it on a machine that does nothing else::

    python benchmarks/bench_cores.py --out benchmarks/results

Each number of processors has a process of its own, pinned to as many, of different cores as long
as there are any: two processors of one core share what computes. The largest number comes first.
Times are medians, of three runs where one takes a second or more, after a first one that does not
count; what takes longer than ten seconds is run once. The ratios that matter are between rows of
one run: a fit of all MNIST digits beside ``KMeans(n_init=1)``, the model without labels in units of
one product of the samples with a thin matrix on all threads of BLAS, predictions, a small fit (24
faces of PIE), eight of these in eight threads beside eight in a row, and the scattering transform
of all digits. The last table compares whole fits with `sklearn.cluster.SpectralClustering` on
pixels, on all processors. Datasets lie in `TUCKERMIX_DATA`; those that are not there are left out.
Results go to `cores.json` and `cores.md`, or what ``--name`` says. With 1, 2 and 16 processors it
takes some four minutes.
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

from tuckermix._machine import stated

LONG, FEW, LONGEST = 1.0, 3, 10.0
"""Seconds from which on a few runs are enough, how many these are, and seconds from which on the
first one is."""

N_FITS = 8
"""Fits that run at the same time, each in a thread of its own."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--name", default="cores", help="of the files, without an ending")
    parser.add_argument("--cores", default="", help="such as 1,2,16; 1, 2 and all by default")
    parser.add_argument("--samples", type=int, default=None, help="fewer digits, for a trial")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--peers", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(options.samples, options.peers)))
        return
    allowed, n_cores = by_core(sorted(os.sched_getaffinity(0)))
    wanted = [int(part) for part in options.cores.split(",") if part]
    counts = sorted({min(n, len(allowed)) for n in (wanted or [1, 2, len(allowed)])})
    name = stated("/proc/cpuinfo", "model name") or "unknown"
    document: dict = {"processor": name, "rows": [], "peers": []}
    document |= {"processors": len(allowed), "physical_cores": n_cores}
    options.out.mkdir(parents=True, exist_ok=True)
    for count in reversed(counts):
        began = time.perf_counter()
        row = pinned(allowed[:count], options.samples, peers=count == counts[-1])
        document["peers"] += row.pop("peers")
        document["rows"].insert(0, row)
        print(f"{time.perf_counter() - began:.0f} s: {json.dumps(row)}", flush=True)
        # After each, because the next may not come to its end.
        (options.out / f"{options.name}.json").write_text(json.dumps(document, indent=1) + "\n")
        (options.out / f"{options.name}.md").write_text(tables(document))
    print(tables(document))


def by_core(processors: list[int]) -> tuple[list[int], int]:
    """Return processors with one of each core first, and the number of cores.

    Where the system does not say which processors share a core, each counts as one.
    """
    turns: dict[str, int] = {}
    order = []
    for number in processors:
        path = Path(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list")
        core = path.read_text().strip() if path.exists() else str(number)
        order.append((turns.setdefault(core, 0), number))
        turns[core] += 1
    return [number for _, number in sorted(order)], len(turns)


def pinned(cores: list[int], samples: int | None, *, peers: bool) -> dict:
    """Measure in a process of its own that has these processors only, from its first import on."""
    child = started(cores, samples, ["--child", *(["--peers"] if peers else [])])
    return {"cores": len(cores), **answer(child)}


def started(cores: list[int], samples: int | None, words: list[str]) -> subprocess.Popen:
    """Start this script in a process that has these processors only."""
    command = ["taskset", "--cpu-list", ",".join(map(str, cores)), sys.executable, __file__]
    command += [*words, *(["--samples", str(samples)] if samples else [])]
    hidden = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def answer(child: subprocess.Popen):
    """Wait for a process and read what it printed last."""
    text, _ = child.communicate()
    if child.returncode:
        raise SystemExit(f"A measurement ended with code {child.returncode}.")
    return json.loads(text.splitlines()[-1])


def timed(function, least: float = 2.0, most: int = 15) -> float:
    """Return the median time of some runs after a first one, which does not count."""
    began = time.perf_counter()
    function()
    first = time.perf_counter() - began
    if first >= LONGEST:
        return first
    times = []
    for _ in range(FEW if first >= LONG else max(1, min(most, int(least / first) + 1))):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def measure(samples: int | None, peers: bool) -> dict:
    import numpy as np
    from sklearn.cluster import KMeans

    from tuckermix import TuckerClustering, decompose
    from tuckermix.datasets import DatasetNotFound
    from tuckermix.features import Scattering

    row: dict = {"peers": []}
    try:
        X, y = digits(samples)
        flat = X.reshape(len(X), -1)
        # One mode projected on its rank, as in `make bench`: the unit of reading the samples once.
        U = np.random.default_rng(0).standard_normal((X.shape[2], 14)).astype(np.float32)
        model = TuckerClustering(10, ranks=(14, 14), random_state=0)
        model.fit(X[:1000])  # loads what fits need
        KMeans(10, n_init=1, max_iter=2, random_state=0).fit(flat[:1000])
        row["n_digits"] = len(X)
        row["product"] = timed(lambda: X.reshape(-1, X.shape[2]) @ U)
        row["decompose"] = timed(lambda: decompose(X, 10, (14, 14)))
        row["fit"] = timed(lambda: model.fit(X))
        row["predict"] = timed(lambda: model.predict(X))
        row["kmeans"] = timed(lambda: KMeans(10, n_init=1, random_state=0).fit(flat))
        Scattering().fit_transform(X[:100])
        row["scattering"] = timed(lambda: Scattering().fit_transform(X))
        tenth = np.concatenate([np.flatnonzero(y == name)[:100] for name in range(10)])
        if peers:
            row["peers"].append(peer("MNIST 10×100", X[tenth].astype(np.float64), 10))
    except DatasetNotFound as error:
        print(f"skipped: {error}", file=sys.stderr)
    for name, title, most in (("pie", "PIE, 24 faces", 24), ("orl", "ORL", None)):
        try:
            X, y = faces(name, most)
        except DatasetNotFound as error:
            print(f"skipped: {error}", file=sys.stderr)
            continue
        n_clusters = len(np.unique(y))
        fit = partial(TuckerClustering(n_clusters, random_state=0).fit, X)
        row[name] = timed(fit)
        if name == "pie":
            row["in_a_row"], row["at_once"] = several(X, n_clusters)
        if peers:
            row["peers"].append(peer(title, X, n_clusters))
    return row


def several(X, n_clusters: int) -> tuple[float, float]:
    """Return the times of several fits one after the other, and each in a thread of its own."""
    from concurrent.futures import ThreadPoolExecutor

    from tuckermix import TuckerClustering

    def fit(seed: int):
        return TuckerClustering(n_clusters, random_state=seed).fit(X)

    def at_once() -> None:
        with ThreadPoolExecutor(N_FITS) as pool:
            list(pool.map(fit, range(N_FITS)))

    return timed(lambda: [fit(seed) for seed in range(N_FITS)]), timed(at_once)


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
    "in_a_row": "eight of these",
    "at_once": "in eight threads",
    "scattering": "scattering",
}


def tables(document: dict) -> str:
    rows = document["rows"]
    first = rows[0]
    shown = [key for key in COLUMNS if key in first]
    lines = [
        f"Processor: {document['processor']}. Medians, and how many times as fast as on one core.",
        f"{document['processors']} processors of {document['physical_cores']} cores.",
        f"{first.get('n_digits', 0):,} digits of MNIST in float32.",
        "",
        "| cores | " + " | ".join(COLUMNS[key] for key in shown) + " |",
        "|---|" + "---|" * len(shown),
    ]
    for row in rows:
        cells = [f"{seconds(row[key])} ({first[key] / row[key]:.1f})" for key in shown]
        lines.append(f"| {row['cores']} | " + " | ".join(cells) + " |")
    last = rows[-1]
    if "n_digits" in last:
        work = [row["scattering"] * row["cores"] for row in (first, last)]
        lines += [
            "",
            (
                f"On {last['cores']} cores: the model without labels takes "
                f"{last['decompose'] / last['product']:.1f} products, the fit "
                f"{last['fit'] / last['kmeans']:.2f} times as long as `KMeans(n_init=1)`, and the "
                f"scattering transform scales from {first['cores']} with an efficiency of "
                f"{100 * work[0] / work[1]:.0f} %."
            ),
        ]
    if "at_once" in last:
        lines += [
            "",
            (
                "Eight small fits in eight threads take "
                + ", ".join(f"{row['at_once'] / row['in_a_row']:.2f}" for row in rows)
                + " times as long as one after the other."
            ),
        ]
    if not document["peers"]:
        return "\n".join(lines) + "\n"
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
