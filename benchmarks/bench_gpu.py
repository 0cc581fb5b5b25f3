"""Time the exact solver and the whole fit on one CUDA device.

Run it on a machine with PyTorch and a GPU::

    python benchmarks/bench_gpu.py --out benchmarks/results

Every time is the median of several runs, after a warm-up, with the device synchronised. Beside
each stands the bare time of reading the samples once (the sum of their squares). Results go to
`gpu.json` and `gpu.md`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch

from tuckermix import TuckerClustering, decompose
from tuckermix.datasets import DatasetNotFound, load
from tuckermix.features import Scattering
from tuckermix.metrics import clustering_accuracy, normalized_mutual_information

CASES = [
    {"name": "videos", "shape": (3600, 50, 50, 50), "ranks": (30, 30, 30), "n_clusters": 36},
    {"name": "images", "shape": (1_000_000, 32, 32), "ranks": (12, 12), "n_clusters": 68},
    {"name": "digits", "shape": (70_000, 28, 28), "ranks": (14, 14), "n_clusters": 10},
]
GIGABYTE = 2**30


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


def timed(function, repeats: int) -> tuple[float, object]:
    """Return the median time of several runs and the last result."""
    result = function()
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


def run(case: dict, repeats: int) -> dict:
    X, truth = planted(case["shape"], case["ranks"], case["n_clusters"])
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
    seconds, fitted = timed(lambda: model.fit(X), max(1, repeats // 3))
    row["fit_seconds"] = seconds
    row["fit_peak_over_size"] = (torch.cuda.max_memory_allocated() - base + size) / size
    row["accuracy"] = agreement(truth, fitted.labels_)
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
            seconds, fitted = timed(partial(model.fit, features), 1)
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
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    rows = []
    for case in CASES:
        if options.only in case["name"]:
            rows.append(run(case, options.repeats))
            print(json.dumps(rows[-1]), flush=True)
            torch.cuda.empty_cache()
    features = []
    if options.only in "scattering":
        try:
            features = scattering(options.repeats)
        except DatasetNotFound as error:
            print(f"skipped: {error}")
    options.out.mkdir(parents=True, exist_ok=True)
    device = torch.cuda.get_device_name()
    document = {"device": device, "rows": rows, "features": features}
    (options.out / "gpu.json").write_text(json.dumps(document, indent=1))
    text = table(rows, device) + (scattering_table(features) if features else "")
    (options.out / "gpu.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
