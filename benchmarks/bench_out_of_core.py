"""Fit what is larger than memory: under a limit, on small workers of a cluster, and as a stream.

Run it on a machine with some gigabytes of free disk::

    python benchmarks/bench_out_of_core.py --out benchmarks/results

- *large*: a Zarr store ten times as large as the memory that the operating system grants. A
  process that asks for more gets a `MemoryError`, and a control shows that the limit bites.
- *counts*: time by the number of samples, under the same limit.
- *workers*: images of 128 × 128 on two Dask workers of 1 GB. Each chunk counts how often it is
  read, the workers count what they send, and one of them is killed in the middle of a fit.
- *stream*: a thousand batches through `partial_fit`.

Every measurement runs in a process of its own. Stores are written chunk by chunk and removed at the
end. Results go to `out_of_core.json` and `out_of_core.md`; ``--parts`` measures some of them again.

Times are given twice. Time on the clock depends on who else uses the machine; time on the
processors, all threads together, hardly does.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import platform
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MEBIBYTE = 2**20
GIBIBYTE = 2**30
CHUNK_BYTES = 8 * MEBIBYTE
IMAGE_CHUNK_BYTES = 32 * MEBIBYTE
WORKER_BYTES = 10**9
FACTOR = 10
"""How many times the memory of a process the large store takes."""

SETTINGS = {
    "full": {
        "limit": 512 * MEBIBYTE,
        "large": {"sample": (32, 32), "core": (8, 8), "n_clusters": 10},
        "subset": 20_000,
        "small": {"sample": (8, 8), "core": (5, 5), "n_clusters": 5},
        "counts": (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000),
        "images": {"sample": (128, 128), "core": (12, 12), "n_clusters": 10, "n_samples": 50_400},
        "common": 10_240,
        "batches": 1000,
    },
    # The same course in seconds, to see that the script works.
    "tiny": {
        "limit": 512 * MEBIBYTE,
        "large": {"sample": (32, 32), "core": (8, 8), "n_clusters": 10, "n_samples": 40_000},
        "subset": 12_000,
        "small": {"sample": (8, 8), "core": (5, 5), "n_clusters": 5},
        "counts": (20_000, 40_000),
        "images": {"sample": (32, 32), "core": (8, 8), "n_clusters": 4, "n_samples": 2000},
        "common": 500,
        "batches": 60,
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


def write_store(path: str, n_samples: int, kind: dict, chunk: int = CHUNK_BYTES) -> dict:
    """Write samples to a Zarr store, one chunk at a time."""
    import numpy as np
    import zarr

    sample = tuple(kind["sample"])
    rows = max(1, chunk // (4 * int(np.prod(sample))))
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


def status_of(field: str) -> int:
    """Return what the system says of the memory of this process, in bytes."""
    text = Path("/proc/self/status").read_text()
    return 1024 * int(text.partition(f"{field}:")[2].split()[0])


def counted(chunk: Any) -> Any:
    """Note in the worker that it has read a chunk."""
    import distributed

    with contextlib.suppress(ValueError):  # no worker: Dask asks what comes back
        held = distributed.get_worker().__dict__
        held["n_read"] = held.get("n_read", 0) + 1
    return chunk


def state_of(dask_worker: Any) -> dict:
    """Return what a worker has done so far, and its highest memory."""
    return {
        "pid": os.getpid(),
        "read": vars(dask_worker).get("n_read", 0),
        "sent": dask_worker.transfer_outgoing_bytes_total,
        "processor_seconds": spent(),
        "peak": status_of("VmHWM"),
    }


class KillAfterSweep(logging.Handler):
    """Kill a worker as soon as the first sweep over all samples is reported."""

    def __init__(self, pid: int):
        super().__init__(logging.INFO)
        self.pid, self.killed = pid, False

    def emit(self, record: logging.LogRecord) -> None:
        """See whether the record is that of a sweep."""
        if not self.killed and record.getMessage().startswith("sweep"):
            self.killed = True
            os.kill(self.pid, signal.SIGKILL)


@contextlib.contextmanager
def two_workers() -> Iterator[Any]:
    """Start two worker processes of 1 GB with a nanny each, and connect to them."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=WORKER_BYTES,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def fit_on_workers(path: str, estimator: str, n_clusters: int, n_samples: int, kill: bool) -> dict:
    """Fit the first samples of a store on two workers; return times, memory, traffic, labels."""
    import dask.array as da
    import numpy as np

    import tuckermix

    X = da.from_zarr(path)[:n_samples]
    X = X.map_blocks(counted, dtype=X.dtype, meta=np.empty((0,) * X.ndim, X.dtype))
    models = {
        "fit": tuckermix.TuckerClustering(n_clusters, random_state=0),
        "pixels": tuckermix.AutoClustering(features="pixels", random_state=0),
        "auto": tuckermix.AutoClustering(features="auto", random_state=0),
    }
    model = models[estimator]
    with two_workers() as client:
        at_first = client.run(state_of)
        began = time.perf_counter()
        accident = KillAfterSweep(min(state["pid"] for state in at_first.values()))
        if kill:
            logger = logging.getLogger("tuckermix")
            logger.setLevel(logging.INFO)
            logger.addHandler(accident)
        labels = np.asarray(model.fit(X).labels_)
        seconds = time.perf_counter() - began
        states = client.run(state_of)
    before = sum(at_first[name]["processor_seconds"] for name in states if name in at_first)
    worked = sum(state["processor_seconds"] for state in states.values())
    return {
        "estimator": estimator,
        "n_samples": n_samples,
        "bytes": int(X.nbytes),
        "seconds": seconds,
        "processor_seconds": worked - before,
        "passes": sum(state["read"] for state in states.values()) / X.numblocks[0],
        "sent": sum(state["sent"] for state in states.values()),
        "peaks": sorted(state["peak"] for state in states.values()),
        "killed": accident.killed,
        "view": model.selection_.view if estimator != "fit" else None,
        "found": labels.tolist(),
    }


def fit_in_memory(path: str, n_clusters: int, n_samples: int) -> dict:
    """Fit the first samples of a store in memory."""
    import zarr

    from tuckermix import TuckerClustering

    X = zarr.open_array(path, mode="r")[:n_samples]
    return {"found": TuckerClustering(n_clusters, random_state=0).fit(X).labels_.tolist()}


def stream(batches: int) -> dict:
    """Learn from batches that are made one after the other; return the memory after some."""
    from tuckermix import TuckerClustering

    kind = {"sample": (32, 32), "core": (8, 8), "n_clusters": 5}
    model = TuckerClustering(kind["n_clusters"], ranks=kind["core"], random_state=0)
    after: dict[int, int] = {}
    worked = spent()
    for done in range(1, batches + 1):
        model.partial_fit(planted(100, **kind, start=done)[0])
        if done in (50, batches // 2, batches):
            after[done] = status_of("VmRSS")
    return {
        "batches": batches,
        "resident": after,
        "peak": status_of("VmHWM"),
        "processor_seconds": spent() - worked,
    }


TASKS = {
    f.__name__: f
    for f in (
        write_store,
        fit_store,
        fit_subset,
        load_store,
        fit_on_workers,
        fit_in_memory,
        stream,
    )
}


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


@contextlib.contextmanager
def images(folder: Path, settings: dict) -> Iterator[dict]:
    """Write the images for the workers, and remove them afterwards."""
    kind, path = settings["images"], str(folder / "images.zarr")
    store = {"path": path, "n_samples": kind["n_samples"]}
    in_process("write_store", None, **store, kind=kind, chunk=IMAGE_CHUNK_BYTES)
    yield {**store, "n_clusters": kind["n_clusters"], "kill": False}
    shutil.rmtree(path)


def run_workers(folder: Path, settings: dict) -> dict:
    with images(folder, settings) as store:
        run = in_process("fit_on_workers", None, **store, estimator="fit")
        run.pop("found")
        print(run, flush=True)
        part = {**store, "n_samples": settings["common"]}
        outside = in_process("fit_on_workers", None, **part, estimator="fit")
        killed = in_process("fit_on_workers", None, **{**part, "kill": True}, estimator="fit")
        del part["kill"]
        inside = in_process("fit_in_memory", None, **part)["found"]
    return {
        "run": run,
        "common": settings["common"],
        "same_on_workers": inside == outside["found"],
        "killed": killed["killed"],
        "same_after_death": inside == killed["found"],
        "seconds": outside["seconds"],
        "seconds_with_death": killed["seconds"],
    }


def run_choosing(folder: Path, settings: dict) -> list[dict]:
    runs = []
    with images(folder, settings) as store:
        for features in ("pixels", "auto"):
            runs.append(in_process("fit_on_workers", None, **store, estimator=features))
            runs[-1].pop("found")
            print(runs[-1], flush=True)
    return runs


def run_stream(folder: Path, settings: dict) -> dict:
    return in_process("stream", None, batches=settings["batches"])


def workers_table(result: dict, choosing: list[dict]) -> list[str]:
    runs = [result["run"], *choosing]
    names = {
        "fit": "`TuckerClustering`",
        "pixels": '`AutoClustering(features="pixels")`',
        "auto": "`AutoClustering()`",
    }
    about = (
        f"Two Dask workers of 1 GB with one thread each, and {runs[0]['n_samples']:,} images in "
        f"float32, {runs[0]['bytes'] / 1e9:.1f} GB. Times are those of a fit with labels. Passes "
        "are counted by the chunks that were read, and moved is what workers have sent."
    )
    lines = [
        about,
        "",
        "| estimator | clock | processors | passes | moved | highest memory of a worker |",
        "|---|---|---|---|---|---|",
    ]
    for run in runs:
        chosen = f", chose {run['view']}" if run["view"] else ""
        lines.append(
            f"| {names[run['estimator']]}{chosen} | {run['seconds']:.0f} s "
            f"| {run['processor_seconds']:.0f} s | {run['passes']:.1f} "
            f"| {run['sent'] / 1e6:,.0f} MB | {max(run['peaks']) / 1e6:.0f} MB |"
        )
    same = {True: "the same labels", False: "other labels"}
    accident = "a worker killed after the first sweep" if result["killed"] else "no worker killed"
    on_part = (
        f"On the first {result['common']:,} images workers find {same[result['same_on_workers']]} "
        f"as a fit in memory, in {result['seconds']:.0f} s. With {accident} they find "
        f"{same[result['same_after_death']]}, in {result['seconds_with_death']:.0f} s."
    )
    return [*lines, "", on_part]


def stream_table(result: dict) -> str:
    said = [
        f"{n_bytes / MEBIBYTE:.0f} MiB after {done}" for done, n_bytes in result["resident"].items()
    ]
    each = 1e3 * result["processor_seconds"] / result["batches"]
    return (
        f"{result['batches']:,} batches of 100 images of 32 × 32 through `partial_fit`: "
        f"{', '.join(said)}; {result['peak'] / MEBIBYTE:.0f} MiB at most, {each:.0f} ms on the "
        "processors per batch."
    )


def table(result: dict) -> str:
    """Return what was measured so far; the first three parts are needed."""
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
    lines += ["", *workers_table(result["workers"], result.get("choosing", []))]
    lines += ["", stream_table(result["stream"])] if "stream" in result else []
    return "\n".join(lines) + "\n"


PARTS = {
    "large": run_large,
    "counts": run_counts,
    "workers": run_workers,
    "choosing": run_choosing,
    "stream": run_stream,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--folder", type=Path, default=None, help="where the stores are written")
    parser.add_argument("--settings", choices=SETTINGS, default="full")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--child", default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        child(options.child)
        return
    stored = options.out / "out_of_core.json"
    result = json.loads(stored.read_text()) if stored.exists() else {}
    result["machine"] = (
        f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}"
    )
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for part in options.parts:
            result[part] = PARTS[part](Path(folder), SETTINGS[options.settings])
            stored.write_text(json.dumps(result, indent=1) + "\n")
    if all(part in result for part in ("large", "counts", "workers")):
        (options.out / "out_of_core.md").write_text(table(result))
        print(table(result))


if __name__ == "__main__":
    main()
