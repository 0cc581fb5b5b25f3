"""Fit a Zarr store ten times as large as the memory allowed, and time samples by the number.

Run it on a machine with some gigabytes of free disk::

    python benchmarks/bench_out_of_core.py --out benchmarks/results

Every measurement runs in a process of its own whose memory the operating system limits: a
process that asks for more gets a `MemoryError`, and a control shows that the limit bites.
Stores are written chunk by chunk and removed at the end. Results go to `out_of_core.json` and
`out_of_core.md`.

Times are given twice. Time on the clock depends on who else uses the machine; time on the
processors, all threads together, hardly does.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MEBIBYTE = 2**20
GIBIBYTE = 2**30
CHUNK_BYTES = 8 * MEBIBYTE
FACTOR = 10
"""How many times the memory of a process the large store takes."""

SETTINGS = {
    "full": {
        "limit": 512 * MEBIBYTE,
        "large": {"sample": (32, 32), "core": (8, 8), "n_clusters": 10},
        "subset": 20_000,
        "small": {"sample": (8, 8), "core": (5, 5), "n_clusters": 5},
        "counts": (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000),
    },
    # The same course in seconds, to see that the script works.
    "tiny": {
        "limit": 512 * MEBIBYTE,
        "large": {"sample": (32, 32), "core": (8, 8), "n_clusters": 10, "n_samples": 40_000},
        "subset": 12_000,
        "small": {"sample": (8, 8), "core": (5, 5), "n_clusters": 5},
        "counts": (20_000, 40_000),
    },
}


def planted(n_samples: int, sample: tuple, core: tuple, n_clusters: int, start: int = 0):
    """Make noisy samples around planted centres in a Tucker subspace; the same for any cuts."""
    import numpy as np

    rng = np.random.default_rng(0)
    factors = [
        np.linalg.qr(rng.standard_normal((size, rank)))[0]
        for size, rank in zip(sample, core, strict=True)
    ]
    centres = rng.standard_normal((n_clusters, *core))
    for axis, factor in enumerate(factors, start=1):
        centres = np.moveaxis(np.tensordot(centres, factor, axes=(axis, 1)), -1, axis)
    rng = np.random.default_rng([1, start])
    labels = rng.integers(n_clusters, size=n_samples)
    X = rng.standard_normal((n_samples, *sample), dtype=np.float32)
    X *= 0.3 * core[0] / sample[0]
    X += centres.astype(np.float32)[labels]
    return X, labels


def write_store(path: str, n_samples: int, kind: dict) -> dict:
    """Write samples to a Zarr store, one chunk at a time."""
    import numpy as np
    import zarr

    sample = tuple(kind["sample"])
    rows = max(1, CHUNK_BYTES // (4 * int(np.prod(sample))))
    store = zarr.create_array(
        path, shape=(n_samples, *sample), chunks=(rows, *sample), dtype="float32", compressors=None
    )
    core = tuple(kind["core"])
    for start in range(0, n_samples, rows):
        stop = min(start + rows, n_samples)
        store[start:stop] = planted(stop - start, sample, core, kind["n_clusters"], start)[0]
    return {"chunk": rows, "bytes": int(store.nbytes)}


def spent() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def fit_store(path: str, kind: dict, n_samples: int, labels: str, subset: int = 0) -> dict:
    """Fit the first samples of a store out of core; return times, memory, and labels of some."""
    import dask
    import dask.array as da
    import numpy as np

    from tuckermix import TuckerClustering

    X = da.from_zarr(path)[:n_samples]
    model = TuckerClustering(
        kind["n_clusters"], ranks=tuple(kind["core"]), assign_labels=labels, random_state=0
    )
    with dask.config.set(scheduler="threads", num_workers=2):
        # Imports and first calls are paid once in a process, whatever the number of samples.
        model.fit(X[:2000])
        began, worked = time.perf_counter(), spent()
        model.fit(X)
        seconds, processor = time.perf_counter() - began, spent() - worked
        found = np.asarray(model.labels_[:subset]).tolist()
    return {
        "n_samples": n_samples,
        "bytes": int(X.nbytes),
        "labels": labels,
        "seconds": seconds,
        "processor_seconds": processor,
        "sweeps": model.n_iter_,
        "relative_error": model.history_[-1].relative_error,
        "peak_resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "found": found,
    }


def fit_subset(path: str, kind: dict, subset: int) -> dict:
    """Fit a part that fits in memory, there and out of core."""
    import dask.array as da
    import numpy as np
    import zarr

    from tuckermix import TuckerClustering

    model = TuckerClustering(kind["n_clusters"], ranks=tuple(kind["core"]), random_state=0)
    inside = model.fit(zarr.open_array(path, mode="r")[:subset]).labels_
    outside = np.asarray(model.fit(da.from_zarr(path)[:subset]).labels_)
    return {"found": inside.tolist(), "same_out_of_core": bool(np.array_equal(inside, outside))}


def load_store(path: str) -> dict:
    """Try to read the whole store into memory: the control, which must fail."""
    import zarr

    try:
        zarr.open_array(path, mode="r")[:]
    except MemoryError as error:
        return {"failed": str(error)}
    return {"failed": None}


TASKS = {f.__name__: f for f in (write_store, fit_store, fit_subset, load_store)}


def in_process(task: str, limit: int | None, **arguments: object) -> dict:
    """Run a task in a process of its own, with at most `limit` bytes of memory."""
    order = json.dumps({"task": task, "limit": limit, "arguments": arguments})
    environment = {**os.environ, "MALLOC_ARENA_MAX": "2"}
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        environment[name] = "1"  # Dask's threads do the work; more would only fight
    done = subprocess.run(
        [sys.executable, __file__, "--child", order],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def child(order: str) -> None:
    todo = json.loads(order)
    if todo["limit"] is not None:
        # All private memory that can be written: heap, arrays and stacks, but no files.
        resource.setrlimit(resource.RLIMIT_DATA, (todo["limit"], todo["limit"]))
    print(json.dumps(TASKS[todo["task"]](**todo["arguments"])))


def run_large(folder: Path, settings: dict) -> dict:
    from sklearn.metrics import adjusted_rand_score

    kind, limit, subset = settings["large"], settings["limit"], settings["subset"]
    sample_bytes = 4 * kind["sample"][0] * kind["sample"][1]
    n_samples = kind.get("n_samples", FACTOR * limit // sample_bytes)
    path = str(folder / "large.zarr")
    written = in_process("write_store", None, path=path, n_samples=n_samples, kind=kind)
    print("written", written, flush=True)
    control = in_process("load_store", limit, path=path)
    fitted = in_process(
        "fit_store", limit, path=path, kind=kind, n_samples=n_samples, labels="graph", subset=subset
    )
    part = in_process("fit_subset", None, path=path, kind=kind, subset=subset)
    rows = written["chunk"]
    truth = []
    for start in range(0, subset, rows):  # planted again, as the store was
        stop = min(start + rows, n_samples)
        labels = planted(
            stop - start, tuple(kind["sample"]), tuple(kind["core"]), kind["n_clusters"], start
        )[1]
        truth += labels.tolist()
    found = fitted.pop("found")
    shutil.rmtree(path)
    return {
        **fitted,
        "limit": limit,
        "store_over_limit": written["bytes"] / limit,
        "loading_fails_with": control["failed"],
        "subset": subset,
        "ari_with_memory": adjusted_rand_score(part["found"], found),
        "ari_with_planted": adjusted_rand_score(truth[:subset], found),
        "subset_same_out_of_core": part["same_out_of_core"],
    }


def run_counts(folder: Path, settings: dict) -> list[dict]:
    kind, counts = settings["small"], settings["counts"]
    path = str(folder / "small.zarr")
    in_process("write_store", None, path=path, n_samples=max(counts), kind=kind)
    rows = []
    for count in counts:
        row = in_process(
            "fit_store",
            settings["limit"],
            path=path,
            kind=kind,
            n_samples=count,
            labels="subspace",
        )
        row.pop("found")
        rows.append(row)
        print(row, flush=True)
    shutil.rmtree(path)
    return rows


def table(result: dict) -> str:
    large, counts = result["large"], result["counts"]
    lines = [
        f"{result['machine']}. Memory limit of each process: {large['limit'] / MEBIBYTE:.0f} MiB.",
        "",
        f"A store of {large['bytes'] / GIBIBYTE:.2f} GiB, {large['store_over_limit']:.1f} times "
        f"the limit: {large['n_samples']:,} samples, fitted with labels in "
        f"{large['seconds']:.0f} s ({large['processor_seconds']:.0f} s on the processors), "
        f"{large['sweeps']} sweeps, "
        f"{large['peak_resident'] / MEBIBYTE:.0f} MiB resident at most. Reading the store into "
        f"memory under the same limit "
        + ("fails." if large["loading_fails_with"] is not None else "works.")
        + f" On {large['subset']:,} samples the adjusted Rand index with a fit of these alone in "
        f"memory is {large['ari_with_memory']:.4f}, with the planted classes "
        f"{large['ari_with_planted']:.4f}; fitted alone, they get "
        + ("the same labels" if large["subset_same_out_of_core"] else "other labels")
        + " out of core as in memory.",
        "",
        "| samples | size | sweeps | clock | processors | processors, a sample | resident |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in counts:
        lines.append(
            f"| {row['n_samples']:,} | {row['bytes'] / GIBIBYTE:.2f} GiB | {row['sweeps']} "
            f"| {row['seconds']:.1f} s | {row['processor_seconds']:.1f} s "
            f"| {1e6 * row['processor_seconds'] / row['n_samples']:.1f} µs "
            f"| {row['peak_resident'] / MEBIBYTE:.0f} MiB |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--folder", type=Path, default=None, help="where the stores are written")
    parser.add_argument("--settings", choices=SETTINGS, default="full")
    parser.add_argument("--child", default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        child(options.child)
        return
    settings = SETTINGS[options.settings]
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        result = {
            "machine": f"{platform.machine()}, {os.cpu_count()} processors, Python "
            f"{platform.python_version()}",
            "large": run_large(Path(folder), settings),
            "counts": run_counts(Path(folder), settings),
        }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "out_of_core.json").write_text(json.dumps(result, indent=1) + "\n")
    (options.out / "out_of_core.md").write_text(table(result))
    print(table(result))


if __name__ == "__main__":
    main()
