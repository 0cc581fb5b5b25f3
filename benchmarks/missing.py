"""Accuracy with gaps, and how well they are filled: ``python -m benchmarks.missing``.

Needs ``TUCKERMIX_DATA``, the folder with the datasets. Results go to `missing.md`. TensorLy's
masked Tucker gets the same ranks and as many components, and the mean of each pixel taken off.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from benchmarks import reporting
from tuckermix import TuckerClustering
from tuckermix.datasets import load
from tuckermix.metrics import clustering_accuracy

COMMAND = "TUCKERMIX_DATA=… python -m benchmarks.missing"
TENSORLY_SWEEPS = 100


def gaps(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Return where entries are observed: 30 % missing at random, or in blocks of rows."""
    if kind == "at random":
        return rng.random(shape) >= 0.3
    observed = np.ones(shape, dtype=bool)
    n_rows = round(0.3 * shape[1])
    for sample, first in enumerate(rng.integers(0, shape[1] - n_rows + 1, size=shape[0])):
        observed[sample, first : first + n_rows] = False
    return observed


def rmse(filled: np.ndarray, X: np.ndarray, observed: np.ndarray) -> float:
    return float(np.mean((filled - X)[~observed] ** 2)) ** 0.5


def masked_tucker(X: np.ndarray, observed: np.ndarray, ranks: tuple[int, ...]) -> np.ndarray:
    import tensorly
    from tensorly.decomposition import tucker

    counts = np.maximum(observed.sum(axis=0), 1)
    means = np.where(observed, X, 0).sum(axis=0) / counts
    centred = np.where(observed, X - means, 0.0)
    found = tucker(
        centred,
        rank=list(ranks),
        mask=observed.astype(X.dtype),
        n_iter_max=TENSORLY_SWEEPS,
        tol=1e-4,
    )
    return means + tensorly.tucker_to_tensor(found)


def measure(name: str, kind: str, n_classes: int | None, seeds: int) -> str:
    """Fit with and without gaps; return a row of the table."""
    data = load(name)
    classes = np.unique(data.labels)[:n_classes]
    chosen = np.isin(data.labels, classes)
    X, truth = data.X[chosen].astype(np.float64) / 255, data.labels[chosen]
    whole, part, errors, times = [], [], [], []
    for seed in range(seeds):
        observed = gaps(kind, X.shape, np.random.default_rng(seed))
        full = TuckerClustering(len(classes), random_state=seed).fit(X)
        began = time.perf_counter()
        model = TuckerClustering(len(classes), missing="impute", random_state=seed)
        model.fit(np.where(observed, X, np.nan))
        seconds = time.perf_counter() - began
        whole.append(clustering_accuracy(truth, full.labels_))
        part.append(clustering_accuracy(truth, model.labels_))
        filled = model.fill_missing(np.where(observed, X, np.nan))
        means = np.where(observed, X, 0).sum(axis=0) / np.maximum(observed.sum(axis=0), 1)
        began = time.perf_counter()
        rival = masked_tucker(X, observed, (full.n_components_, *full.ranks_))
        times.append((seconds, time.perf_counter() - began))
        errors.append(
            (rmse(filled, X, observed), rmse(rival, X, observed), rmse(means, X, observed))
        )
    ours, theirs, mean = np.mean(errors, axis=0)
    fast, slow = np.median(times, axis=0)
    return (
        f"| {name}, {len(classes)} classes, 30 % {kind} | {np.mean(whole):.3f} | "
        f"{np.mean(part):.3f} | {ours:.4f} | {theirs:.4f} | {mean:.4f} | "
        f"{fast:.1f} s | {slow:.1f} s |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    lines = [
        "| data, gaps | AC whole | AC | RMSE in gaps | TensorLy | means | our time | TensorLy |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, kind, n_classes in (
        ("orl", "of the rows in a block", None),
        ("pie", "at random", 24),
    ):
        lines.append(measure(name, kind, n_classes, options.seeds))
        print(lines[-1], flush=True)
    about = reporting.heading(COMMAND, "Means, times are medians", reporting.environment())
    (options.out / "missing.md").write_text("\n".join([about, "", *lines, ""]))


if __name__ == "__main__":
    main()
