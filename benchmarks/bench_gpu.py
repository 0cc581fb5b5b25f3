"""Time the exact solver and the whole fit on one CUDA device, and fits on the processors beside it.

Run it on a machine with PyTorch and a GPU::

    python benchmarks/bench_gpu.py --out benchmarks/results

Every time is the median of several runs, after a warm-up, with the device synchronised. Beside
each stands the bare time of reading the samples once (the sum of their squares). Planted samples
have clear clusters; all digits of MNIST, and noisy copies of them, have not. The digits lie in
`TUCKERMIX_DATA`. A second table says where the time of a fit goes, part by part, and what is
printed beside it, kernel by kernel. Results go to `gpu.json` and `gpu.md`, and those of
`bench_cores.py`, which runs at the end unless ``--no-cores`` is given, to `cores.json` and
`cores.md`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import torch

from tuckermix import TuckerClustering, clustering, decompose
from tuckermix.datasets import DatasetNotFound, load
from tuckermix.features import Scattering
from tuckermix.metrics import clustering_accuracy, normalized_mutual_information

CASES = [
    {"name": "videos", "shape": (3600, 50, 50, 50), "ranks": (30, 30, 30), "n_clusters": 36},
    {"name": "images", "shape": (1_000_000, 32, 32), "ranks": (12, 12), "n_clusters": 68},
    {"name": "digits", "shape": (70_000, 28, 28), "ranks": (14, 14), "n_clusters": 10},
]
GIGABYTE = 2**30
COPIES, NOISE = 14, 0.1  # of all digits: 980,000 samples
LANDMARKS = (5_000, 10_000, 20_000, 40_000)
LONGEST = 25  # kernels and calls that are printed


def planted(shape: tuple[int, ...], ranks: tuple[int, ...], n_clusters: int, seed: int = 0):
    """Make noisy float32 samples around planted centres in a Tucker subspace, on the device."""
    generator = torch.Generator("cuda").manual_seed(seed)

    def normal(*size: int) -> torch.Tensor:
        return torch.randn(*size, generator=generator, device="cuda")

    labels = torch.randint(n_clusters, (shape[0],), generator=generator, device="cuda")
    n_directions = 3 * n_clusters
    centres = normal(n_clusters, n_directions) * 2
    spread = torch.linspace(1.0, 0.1, n_directions, device="cuda")
    coordinates = centres[labels] + normal(shape[0], n_directions) * spread
    basis = normal(n_directions, *ranks) / n_directions**0.5
    for axis, size in enumerate(shape[1:]):
        factor = torch.linalg.qr(normal(size, ranks[axis]))[0]
        basis = torch.movedim(torch.tensordot(basis, factor, dims=([axis + 1], [1])), -1, axis + 1)
    X = torch.empty(shape, device="cuda")
    step = max(1, shape[0] // 16)
    for start in range(0, shape[0], step):
        block = torch.tensordot(coordinates[start : start + step], basis, dims=1)
        noise = torch.randn(block.shape, generator=generator, device="cuda")
        X[start : start + step] = block + 0.05 * noise
    return X, labels


def timed(function, repeats: int, *, warm: bool = False) -> tuple[float, object]:
    """Return the median time of several runs, after a first one unless warm, and a result."""
    result = None if warm else function()
    times = []
    for _ in range(repeats):
        del result
        torch.cuda.synchronize()
        began = time.perf_counter()
        result = function()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return statistics.median(times), result


def agreement(truth: torch.Tensor, found: torch.Tensor) -> float:
    return clustering_accuracy(truth.cpu().numpy(), found.cpu().numpy())


def planted_cases(repeats: int) -> list[dict]:
    """Measure planted samples of several shapes."""
    rows = []
    for case in CASES:
        X, truth = planted(case["shape"], case["ranks"], case["n_clusters"])
        rows.append(measured(case, X, truth, repeats))
        print(json.dumps(rows[-1]), flush=True)
        del X, truth
        torch.cuda.empty_cache()
    return rows


def real(repeats: int) -> list[dict]:
    """Measure all digits of MNIST, and noisy copies of them."""
    data = load("mnist")
    X = torch.as_tensor(data.X, device="cuda").to(torch.float32) / 255
    truth = torch.as_tensor(np.asarray(data.labels), device="cuda")
    case = {"name": "MNIST", "shape": tuple(X.shape), "ranks": (14, 14), "n_clusters": 10}
    rows = [measured(case, X, truth, repeats)]
    kernels(TuckerClustering(10, ranks=(14, 14), random_state=0), X)
    rows[-1]["landmarks"] = landmarks(X, truth, LANDMARKS)
    print(json.dumps(rows[-1]), flush=True)
    generator = torch.Generator("cuda").manual_seed(0)
    many = X.repeat(COPIES, 1, 1)
    for start in range(0, len(many), len(X)):
        shape = many[start : start + len(X)].shape
        noise = torch.randn(shape, generator=generator, device="cuda")
        many[start : start + len(X)] += NOISE * noise
    case = {**case, "name": f"MNIST, {COPIES} noisy copies", "shape": tuple(many.shape)}
    rows.append(measured(case, many, truth.repeat(COPIES), max(1, repeats // 2)))
    kernels(TuckerClustering(10, ranks=(14, 14), random_state=0), many)
    rows[-1]["landmarks"] = landmarks(many, truth.repeat(COPIES), LANDMARKS[1:3], n_seeds=1)
    print(json.dumps(rows[-1]), flush=True)
    return rows


def landmarks(
    X: torch.Tensor, truth: torch.Tensor, counts: tuple[int, ...], n_seeds: int = 3
) -> list[dict]:
    """Say what more landmarks bring, and what they take."""
    rows, usual = [], (clustering.MAX_LANDMARKS, clustering.DEVICE_LANDMARKS)
    for count in counts:
        clustering.MAX_LANDMARKS = clustering.DEVICE_LANDMARKS = count
        times, scores = [], []
        for seed in range(n_seeds):
            model = TuckerClustering(10, ranks=(14, 14), random_state=seed)
            seconds, fitted = timed(partial(model.fit, X), 1, warm=seed > 0)
            times.append(seconds)
            scores.append(agreement(truth, fitted.labels_))
        rows.append({"landmarks": count, "seconds": statistics.median(times), "scores": scores})
    clustering.MAX_LANDMARKS, clustering.DEVICE_LANDMARKS = usual
    return rows


def stages(model: TuckerClustering, X: torch.Tensor) -> dict[str, float]:
    """Return the milliseconds of parts of one fit, each synchronised; parts lie within others."""
    import tuckermix.decomposition.fit as fit
    import tuckermix.labels.graph as graph
    import tuckermix.labels.labellers as labellers
    from tuckermix.model import Model
    from tuckermix.sources import Source

    watched = [
        (clustering, "decompose_source", "decompose"),
        (fit, "certify", "decompose: certificate"),
        (Source, "contracted", "decompose: wide passes"),
        (Source, "measure", "decompose: narrow passes"),
        (Model, "from_decomposition", "simplex"),
        (Model, "with_wide_view", "view"),
        (Model, "with_landmarks", "landmarks"),
        (Model, "labelled", "labels"),
        (labellers, "distinct_rows", "labels: copies"),
        (labellers, "graph_partition", "labels: graph"),
        (graph, "adjacency", "graph: weights"),
        (graph, "_hangs_together", "graph: connected?"),
        (graph, "on_the_host", "graph: to the host"),
        (graph, "connected_components", "graph: components"),
        (graph, "graph_eigenvectors", "graph: eigenvectors"),
        (graph, "kmeans", "graph: k-means"),
        (labellers.NearestPoints, "find", "neighbours, all"),
        (labellers.VoteLabels, "predict_proba", "votes"),
        (labellers.VoteLabels, "count_votes", "votes: counted"),
        (Model, "numbered", "numbers of clusters"),
        (Model, "place", "points"),
        (Model, "cluster_sums", "sums of clusters"),
    ]
    total: dict[str, float] = {}

    def watch(name, function):
        def watching(*args, **options):
            torch.cuda.synchronize()
            began = time.perf_counter()
            result = function(*args, **options)
            torch.cuda.synchronize()
            total[name] = total.get(name, 0.0) + 1e3 * (time.perf_counter() - began)
            return result

        return watching

    with ExitStack() as stack:
        for owner, name, title in watched:
            patched = vars(owner).get(name, getattr(owner, name))
            if isinstance(patched, classmethod):
                new = classmethod(watch(title, patched.__func__))
            else:
                new = watch(title, patched)
            stack.enter_context(mock.patch.object(owner, name, new))
        watch("the whole fit", model.fit)(X)
    return total


def kernels(model: TuckerClustering, X: torch.Tensor) -> None:
    """Print what takes longest in a fit: kernels on the device, and calls on the host."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        model.fit(X)
        torch.cuda.synchronize()
    entries = found.key_averages()
    for title, field in (("device", "self_device_time_total"), ("host", "self_cpu_time_total")):
        print(f"{title}: milliseconds, calls, name")
        ordered = sorted(entries, key=lambda entry: -getattr(entry, field))
        for entry in ordered[:LONGEST]:
            print(f"{getattr(entry, field) / 1e3:9.1f} {entry.count:6d}  {entry.key[:90]}")
        print(flush=True)


def stages_table(rows: list[dict]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row["stages"]))
    lines = [
        "",
        "Milliseconds of one fit, the device synchronised before and after each part. Parts lie",
        "within others: eigenvectors in the graph, the graph in the labels, all in the fit.",
        "",
        "| part | " + " | ".join(row["name"] for row in rows) + " |",
        "|---|" + "---|" * len(rows),
    ]
    for name in names:
        cells = [f"{row['stages'][name]:.1f}" if name in row["stages"] else "" for row in rows]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def measured(case: dict, X: torch.Tensor, truth: torch.Tensor, repeats: int) -> dict:
    size = X.numel() * X.element_size()
    read, _ = timed(lambda: float(torch.linalg.vector_norm(X)), repeats)
    torch.cuda.reset_peak_memory_stats()
    base = torch.cuda.memory_allocated()
    seconds, fit = timed(
        lambda: decompose(X, case["n_clusters"], case["ranks"], random_state=0), repeats
    )
    peak = torch.cuda.max_memory_allocated()
    row = {
        **case,
        "gigabytes": size / GIGABYTE,
        "read_seconds": read,
        "decompose_seconds": seconds,
        "sweeps": fit.n_iter,
        "sweep_times": [record.time for record in fit.history],
        "relative_error": fit.relative_error,
        "peak_over_size": (peak - base + size) / size,
    }
    del fit
    torch.cuda.reset_peak_memory_stats()
    model = TuckerClustering(case["n_clusters"], ranks=case["ranks"], random_state=0)
    seconds, fitted = timed(lambda: model.fit(X), max(1, repeats // 2))
    row["fit_seconds"] = seconds
    row["fit_peak_over_size"] = (torch.cuda.max_memory_allocated() - base + size) / size
    row["accuracy"] = agreement(truth, fitted.labels_)
    del fitted
    row["stages"] = stages(model, X)
    return row


def scattering(repeats: int) -> list[dict]:
    """Transform and cluster all MNIST digits on the device; the data lie in `TUCKERMIX_DATA`."""
    data = load("mnist")
    X = torch.as_tensor(data.X, device="cuda").to(torch.float32) / 255
    rows = []
    for log in (False, True):
        torch.cuda.reset_peak_memory_stats()
        base = torch.cuda.memory_allocated()
        transform, features = timed(partial(Scattering(log=log).fit_transform, X), repeats)
        size = features.numel() * features.element_size()
        peak = torch.cuda.max_memory_allocated() - base
        torch.cuda.reset_peak_memory_stats()
        scores, times = [], []
        for seed in range(3):
            model = TuckerClustering(10, random_state=seed)
            seconds, fitted = timed(partial(model.fit, features), 1, warm=seed > 0)
            labels = fitted.labels_.cpu().numpy()
            times.append(seconds)
            scores.append(
                (
                    clustering_accuracy(data.labels, labels),
                    normalized_mutual_information(data.labels, labels),
                )
            )
        rows.append(
            {
                "name": "log-scattering" if log else "scattering",
                "shape": list(features.shape),
                "transform_seconds": transform,
                "transform_peak_over_features": peak / size,
                "fit_seconds": statistics.median(times),
                "fit_peak_over_features": (torch.cuda.max_memory_allocated() - base) / size,
                "scores": scores,
            }
        )
        print(json.dumps(rows[-1]), flush=True)
        del features, fitted, model
        torch.cuda.empty_cache()
    return rows


def landmarks_table(data: dict) -> str:
    rows = data["landmarks"]
    lines = [
        "",
        f"{data['name']}, labels learned from fewer or more landmarks; a score for each seed.",
        "",
        "| landmarks | fit with labels | AC |",
        "|---|---|---|",
    ]
    for row in rows:
        scores = ", ".join(f"{score:.4f}" for score in row["scores"])
        lines.append(f"| {row['landmarks']:,} | {row['seconds']:.2f} s | {scores} |")
    return "\n".join(lines) + "\n"


def scattering_table(rows: list[dict]) -> str:
    lines = [
        "",
        "All MNIST digits through the scattering transform, three seeds.",
        "",
        "| features | shape | transform | fit with labels | AC / NMI | peak / features |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        scores = ", ".join(f"{ac:.4f} / {nmi:.4f}" for ac, nmi in row["scores"])
        peak = max(row["transform_peak_over_features"], row["fit_peak_over_features"])
        lines.append(
            f"| {row['name']} | {'×'.join(map(str, row['shape']))} "
            f"| {row['transform_seconds']:.2f} s | {row['fit_seconds']:.2f} s | {scores} "
            f"| {peak:.2f} |"
        )
    return "\n".join(lines) + "\n"


def table(rows: list[dict], device: str) -> str:
    lines = [
        f"Device: {device}, PyTorch {torch.__version__}, NumPy {np.__version__}, float32. Medians.",
        "",
        "| data | shape | core | K | one read | decompose | sweeps | with labels | AC | peak / X |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        shape, core = ("×".join(map(str, row[key])) for key in ("shape", "ranks"))
        lines.append(
            f"| {row['name']} | {shape} | {core} | {row['n_clusters']} "
            f"| {1e3 * row['read_seconds']:.2f} ms | {row['decompose_seconds']:.3f} s "
            f"| {row['sweeps']} | {row['fit_seconds']:.2f} s | {row['accuracy']:.3f} "
            f"| {row['fit_peak_over_size']:.2f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="MNIST, planted, scattering or cores")
    parser.add_argument("--no-cores", action="store_true", help="leave out bench_cores.py")
    options = parser.parse_args()
    rows, features = [], []

    def store() -> None:
        options.out.mkdir(parents=True, exist_ok=True)
        device = torch.cuda.get_device_name()
        document = {"device": device, "rows": rows, "features": features}
        (options.out / "gpu.json").write_text(json.dumps(document, indent=1) + "\n")
        text = table(rows, device) + (stages_table(rows) if rows else "")
        text += scattering_table(features) if features else ""
        text += "".join(landmarks_table(row) for row in rows if "landmarks" in row)
        (options.out / "gpu.md").write_text(text)

    try:
        for name, measure, found in (
            ("MNIST", real, rows),
            ("planted", planted_cases, rows),
            ("scattering", scattering, features),
        ):
            if options.only in name:
                try:
                    found += measure(options.repeats)
                except DatasetNotFound as error:
                    print(f"skipped: {error}")
                torch.cuda.empty_cache()
                store()
        print((options.out / "gpu.md").read_text(), flush=True)
    finally:  # what the processors do is worth knowing whatever happens on the device
        if options.only in "cores" and not options.no_cores:
            command = [sys.executable, str(Path(__file__).with_name("bench_cores.py"))]
            subprocess.run([*command, "--out", str(options.out)], check=True)


if __name__ == "__main__":
    main()
