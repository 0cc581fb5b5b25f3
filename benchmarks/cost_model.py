"""The cost model of the documentation, checked against measurements and extrapolated.

Run it with the package and threadpoolctl installed::

    python benchmarks/cost_model.py --out benchmarks/results

`Problem` counts what each pass over the samples does: floating-point operations, bytes read, bytes
sent. Two rates of the machine, of matrix products and of reading memory, turn counts into time;
they are measured with bare NumPy calls, and the passes with the library's own functions. Results
go to `cost_model.json` and `cost_model.md`.
"""

from __future__ import annotations

import argparse
import json
import math
import pickle
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from tuckermix.clustering import MAX_LANDMARKS
from tuckermix.decomposition.exact import widened
from tuckermix.numerics.points import nearest_neighbors
from tuckermix.sources import as_source
from tuckermix.sources.source import MemoryBlocks, Projection, _moments, _sketch, add_parts

REPEATS = 7
NARROW = 48
"""Columns of the bare matrix product: as narrow as the products of the passes are."""


@dataclass(frozen=True)
class Problem:
    """The sizes that costs depend on: see the page on costs for the formulas."""

    n_samples: int
    sample_shape: tuple[int, ...]
    ranks: tuple[int, ...]
    n_components: int
    itemsize: int = 4
    chunk: int = 2**13

    @property
    def size(self) -> int:
        """Return the number of entries of a sample."""
        return math.prod(self.sample_shape)

    @property
    def width(self) -> int:
        """Return the number of directions that a sweep keeps."""
        return min(
            widened(self.n_components - 1, lazy=True), math.prod(self.ranks), self.n_samples - 1
        )

    def project_flops(self, n_columns: int) -> float:
        """Count for one sample: mode by mode and then the basis, or both in one product."""
        steps, size = 0, self.size
        for length, rank in zip(self.sample_shape[::-1], self.ranks[::-1], strict=True):
            steps += size * rank
            size = size // length * rank
        steps += size * n_columns
        whole = self.size * n_columns
        return 2.0 * (whole if whole <= 2 * steps else steps)

    def sketch_flops(self) -> float:
        """Count for one sample: project, Gram matrix, sums weighted by the projection."""
        width = self.width
        return self.project_flops(width) + 2.0 * width * (width + self.size)

    def read_bytes(self) -> float:
        """Return the size of the samples, which every pass reads."""
        return float(self.n_samples) * self.size * self.itemsize

    def partial_bytes(self) -> float:
        """Return the size of what one task of a sketch sends on, in float64."""
        return 8.0 * self.width * (self.width + self.size)

    def n_chunks(self) -> int:
        """Return the number of tasks of a pass."""
        return math.ceil(self.n_samples / self.chunk)


def processor_time(function, repeats: int = REPEATS) -> float:
    """Return the median time on the processor, which other processes disturb least."""
    function()
    times = []
    for _ in range(repeats):
        began = time.process_time()
        function()
        times.append(time.process_time() - began)
    return statistics.median(times)


def rates(itemsize: int) -> dict[str, float]:
    """Measure the two rates of this machine with bare NumPy calls."""
    dtype = np.float32 if itemsize == 4 else np.float64
    rng = np.random.default_rng(0)
    X = rng.standard_normal((512, 1024)).astype(dtype)  # the block of a pass: 2 MiB
    A = rng.standard_normal((1024, NARROW)).astype(dtype)
    product = processor_time(lambda: [X @ A for _ in range(40)]) / 40
    large = np.ones(64 * 2**20 // itemsize, dtype=dtype)
    read = processor_time(lambda: float(np.vdot(large, large)))
    return {"flops": 2.0 * X.shape[0] * X.shape[1] * NARROW / product, "bytes": large.nbytes / read}


CASES = [
    Problem(20_000, (32, 32), (12, 12), 25),
    Problem(20_000, (32, 32), (12, 12), 69),
    Problem(20_000, (28, 28), (14, 14), 21),
    Problem(100_000, (8, 8), (5, 5), 11),
    Problem(600, (30, 30, 30), (10, 10, 10), 13),
    Problem(10_000, (32, 32), (12, 12), 25, itemsize=8),
]


def check(problem: Problem) -> dict:
    """Compare the model with the time of a sketch, of the moments, and of votes."""
    rng = np.random.default_rng(0)
    dtype = np.float32 if problem.itemsize == 4 else np.float64
    X = rng.standard_normal((problem.n_samples, *problem.sample_shape), dtype=dtype)
    samples = MemoryBlocks(X)
    factors = [
        np.linalg.qr(rng.standard_normal((length, rank)))[0].astype(dtype)
        for length, rank in zip(problem.sample_shape, problem.ranks, strict=True)
    ]
    basis = np.linalg.qr(rng.standard_normal((math.prod(problem.ranks), problem.width)))[0]
    source = as_source(X)
    projection = Projection(factors, basis, samples.like)
    offset = np.zeros((1, problem.width), dtype=dtype)
    part = _sketch(X[:64], projection, offset, True)
    speed = rates(problem.itemsize)
    work = problem.n_samples * problem.sketch_flops() / speed["flops"]
    reading = problem.read_bytes() / speed["bytes"]
    measured = {
        "sketch": processor_time(lambda: source.sketch(factors, basis)),
        "moments": processor_time(lambda: samples.reduce(_moments, add_parts)),
    }
    # A sketch works on what it has read; the moments read the samples twice, for two sums.
    predicted = {"sketch": work + reading, "moments": 2 * reading}
    n_landmarks, n_voters = 5_000, 1_000
    Z = rng.standard_normal((n_landmarks, problem.n_components)).astype(dtype)
    votes = processor_time(lambda: nearest_neighbors(Z[:n_voters], Z, 20), 3)
    return {
        "sample_shape": problem.sample_shape,
        "ranks": problem.ranks,
        "n_components": problem.n_components,
        "width": problem.width,
        "dtype": str(np.dtype(dtype)),
        "rates": speed,
        "predicted": predicted,
        "measured": measured,
        "partial_bytes": problem.partial_bytes(),
        "pickled_bytes": len(pickle.dumps(part)),
        "pair_seconds": votes / (n_landmarks * n_voters),
    }


@dataclass(frozen=True)
class Cluster:
    """A cluster to extrapolate to, with rates for each worker thread.

    The reading rate is that of storage, which bounds passes over data that do not stay in memory.
    """

    n_workers: int
    flops: float
    storage: float
    network: float = 1e9
    task_seconds: float = 1e-3
    latency: float = 1e-3


def pass_seconds(problem: Problem, cluster: Cluster) -> dict[str, float]:
    """Return the parts of the time of one sketch on a cluster."""
    share = 1.0 / min(cluster.n_workers, problem.n_chunks())
    levels = math.ceil(math.log(max(2, problem.n_chunks()), 8))
    message = problem.partial_bytes() / cluster.network + cluster.latency
    return {
        "read": problem.read_bytes() / cluster.storage * share,
        "compute": problem.n_samples * problem.sketch_flops() / cluster.flops * share,
        # The scheduler hands out tasks one after the other, to whichever worker.
        "schedule": problem.n_chunks() * cluster.task_seconds,
        # A worker adds up what it holds; each level of the tree sends what eight tasks made.
        "messages": levels * 8 * message,
    }


PASSES = 11
"""Passes of a whole fit with three sweeps: see the page on costs."""

EXTRAPOLATED = [
    Problem(10**6, (32, 32), (12, 12), 21, chunk=2**13),
    Problem(10**7, (32, 32), (12, 12), 21, chunk=2**13),
    Problem(10**9, (32, 32), (12, 12), 21, chunk=2**16),
    Problem(10**9, (8, 8), (5, 5), 11, chunk=2**20),
]


def extrapolate(speed: dict[str, float], pair_seconds: float) -> list[dict]:
    rows = []
    for problem in EXTRAPOLATED:
        for n_workers in (1, 16, 256):
            cluster = Cluster(n_workers, speed["flops"], storage=2e8)
            parts = pass_seconds(problem, cluster)
            # A task reads, then computes; tasks of other threads overlap, those of one do not.
            one_pass = sum(parts.values())
            votes = problem.n_samples * MAX_LANDMARKS * pair_seconds / n_workers
            rows.append(
                {
                    "n_samples": problem.n_samples,
                    "sample_shape": problem.sample_shape,
                    "terabytes": problem.read_bytes() / 1e12,
                    "chunk_mebibytes": problem.chunk * problem.size * problem.itemsize / 2**20,
                    "n_workers": n_workers,
                    "pass_seconds": parts,
                    "fit_seconds": PASSES * one_pass,
                    "vote_seconds": votes,
                }
            )
    return rows


def duration(seconds: float) -> str:
    for limit, unit, length in ((120, "s", 1), (7200, "min", 60), (172800, "h", 3600)):
        if seconds < limit:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds / 86400:.3g} days"


HEAD = """Times on one processor thread, in memory.

| sample | core | L | type | sketch, model | measured | ratio | moments, model | measured | ratio |
|---|---|---|---|---|---|---|---|---|---|"""

MIDDLE = f"""
Extrapolated from these rates, with storage of 0.2 GB/s a worker thread, a network of 1 GB/s and
1 ms a task; a fit of {PASSES} passes, then votes of {MAX_LANDMARKS:,} landmarks.

| samples | shape | data | chunk | threads | one sweep | fit without labels | votes |
|---|---|---|---|---|---|---|---|"""


def table(checks: list[dict], rows: list[dict]) -> str:
    lines = [HEAD]
    for row in checks:
        shape, core = ("×".join(map(str, row[key])) for key in ("sample_shape", "ranks"))
        cells = [shape, core, str(row["n_components"]), row["dtype"]]
        for name in ("sketch", "moments"):
            model, measured = row["predicted"][name], row["measured"][name]
            cells += [
                f"{1e3 * model:.0f} ms",
                f"{1e3 * measured:.0f} ms",
                f"{measured / model:.2f}",
            ]
        lines.append("| " + " | ".join(cells) + " |")
    lines.append(MIDDLE)
    for row in rows:
        lines.append(
            f"| {row['n_samples']:.0e} | {'×'.join(map(str, row['sample_shape']))} "
            f"| {row['terabytes']:.3g} TB | {row['chunk_mebibytes']:.0f} MiB | {row['n_workers']} "
            f"| {duration(sum(row['pass_seconds'].values()))} | {duration(row['fit_seconds'])} "
            f"| {duration(row['vote_seconds'])} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    with threadpool_limits(1):  # the model counts for one thread of a worker
        checks = [check(problem) for problem in CASES]
        speed = rates(4)
    rows = extrapolate(speed, statistics.median(row["pair_seconds"] for row in checks))
    options.out.mkdir(parents=True, exist_ok=True)
    document = {"rates": speed, "checks": checks, "extrapolated": rows}
    (options.out / "cost_model.json").write_text(json.dumps(document, indent=1) + "\n")
    (options.out / "cost_model.md").write_text(table(checks, rows))
    print(table(checks, rows))


if __name__ == "__main__":
    main()
