"""The comparison methods beside scikit-learn and SciPy, and the time of a whole fit of each.

    TUCKERMIX_DATA=... python -m benchmarks.bench_baselines [--quick] [--repeats 9]

Ours and the peer's run in turn, one BLAS thread for both; medians of one run. Times are those of
the processor, so that other work on the machine matters little. Whole fits are timed once each, at
the settings of the paper's tables, which are the defaults. The data are a thousand MNIST digits, a
hundred of each, and 612 PIE faces of 68 people; random nonnegative matrices of the same shape where
the datasets are missing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks import reporting
from tuckermix import baselines, datasets
from tuckermix.baselines.nmf import alternating_nmf, multiplicative_nmf
from tuckermix.baselines.nonnegative import (
    nonnegative_least_squares,
    random_start,
    solve_components,
)
from tuckermix.persistence import CLASSES

SETS = {"mnist": (10, 100, (28, 28), (14, 14)), "pie": (68, 9, (32, 32), (12, 12))}
"""Name of the data: classes, samples of each, shape of a sample, core of the tensor methods."""

TOOLBOX_TOL = 1e-6
"""The tolerance that the paper's toolbox hands to Lin's method."""

FEW_ITERATIONS = 20
"""Iterations in a comparison of iterations: enough to hide what happens once."""


def draw(name: str, quick: bool) -> np.ndarray:
    """Return the samples of a set, in [0, 1]."""
    n_classes, per_class, shape, _ = SETS[name]
    rng = np.random.default_rng(0)
    if quick:
        n_classes, per_class, shape = min(n_classes, 12), 10, (10, 10)
    if quick or "TUCKERMIX_DATA" not in os.environ:
        components = rng.random((n_classes, *shape)) * (rng.random((n_classes, *shape)) < 0.3)
        weights = np.repeat(np.eye(n_classes), per_class, axis=0)
        weights = weights + 0.2 * rng.random(weights.shape)
        return np.tensordot(weights, components, axes=1) + 0.05 * rng.random(shape)
    data = datasets.load(name)
    index = np.concatenate(
        [
            rng.choice(np.flatnonzero(data.labels == label), per_class, replace=False)
            for label in np.unique(data.labels)[:n_classes]
        ]
    )
    return data.X[index].astype(np.float64) / 255.0


def row(what: str, ours: str, reference: str, ratio: str, goal: str) -> dict[str, Any]:
    """Return a line of the table."""
    return {"what": what, "ours": ours, "reference": reference, "ratio": ratio, "goal": goal}


def compare(
    what: str, ours: Callable[[], Any], peer: Callable[[], Any], repeats: int, name: str, goal: str
) -> dict[str, Any]:
    """Time ours and the peer's in turn and take medians."""
    taken: dict[str, list[float]] = {"ours": [], "peer": []}
    for _ in range(repeats):
        for side, function in (("ours", ours), ("peer", peer)):
            began = time.process_time()
            function()
            taken[side].append(time.process_time() - began)
    times = {side: statistics.median(values) for side, values in taken.items()}
    return row(
        what,
        f"{1e3 * times['ours']:.1f} ms",
        f"{1e3 * times['peer']:.1f} ms, {name}",
        f"{times['peer'] / times['ours']:.2f}× faster",
        goal,
    )


def bench_iterations(quick: bool, repeats: int) -> list[dict[str, Any]]:
    """Multiplicative updates beside scikit-learn's, from one start; alternating least squares."""
    rows = []
    for name in SETS:
        X = draw(name, quick)
        X = X.reshape(len(X), -1)
        n_components = SETS[name][0]
        for dtype in (np.float64, np.float32):
            data = X.astype(dtype)
            W, H = random_start(data, n_components, np.random.default_rng(0))

            def peer(data: np.ndarray = data, W: np.ndarray = W, H: np.ndarray = H) -> None:
                NMF(
                    W.shape[1], solver="mu", init="custom", tol=0, max_iter=FEW_ITERATIONS
                ).fit_transform(data, W=W.copy(), H=H.copy())

            def ours(data: np.ndarray = data, W: np.ndarray = W, H: np.ndarray = H) -> None:
                multiplicative_nmf(data, W, H, tol=0, max_iter=FEW_ITERATIONS)

            what = f"{FEW_ITERATIONS} iterations of MM, {name}, K={n_components}, {data.dtype}"
            rows.append(compare(what, ours, peer, repeats, "scikit-learn mu", "≥ 1×"))
    return rows


def bench_least_squares(quick: bool, repeats: int) -> list[dict[str, Any]]:
    """Block principal pivoting beside SciPy's routine row by row."""
    rows = []
    for name in SETS:
        X = draw(name, quick)
        X = X.reshape(len(X), -1)
        n_components = SETS[name][0]
        W, H = random_start(X, n_components, np.random.default_rng(0))
        result = alternating_nmf(X, W, H, max_iter=5)
        components = result.fitted["components_"]
        gram, cross = components @ components.T, X @ components.T
        # The peer gets the samples once, as it is used column by column, and once the small square
        # problem with the same solution, which is the best that can be done with it.
        root = np.linalg.cholesky(gram + 1e-12 * np.trace(gram) * np.eye(len(gram)))
        targets = np.linalg.solve(root, cross.T).T

        def peer(
            root: np.ndarray = root, targets: np.ndarray = targets, X: np.ndarray = X
        ) -> np.ndarray:
            return np.stack([nnls(root.T, target)[0] for target in targets])

        def tall(X: np.ndarray = X, components: np.ndarray = components) -> np.ndarray:
            return np.stack([nnls(components.T, x)[0] for x in X])

        def ours(gram: np.ndarray = gram, cross: np.ndarray = cross) -> np.ndarray:
            return nonnegative_least_squares(gram, cross)

        def whole(X: np.ndarray = X, components: np.ndarray = components) -> np.ndarray:
            return solve_components(X, components)

        def warm(
            gram: np.ndarray = gram, cross: np.ndarray = cross, W: np.ndarray = result.memberships
        ) -> np.ndarray:
            return nonnegative_least_squares(gram, cross, start=W)

        what = f"nonnegative least squares, {len(X)} rows, K={n_components}"
        goal = "≥ 3×"
        rows.append(compare(f"{what}, from samples", whole, tall, repeats, "SciPy nnls", goal))
        small = "SciPy nnls on a Cholesky factor"
        rows.append(compare(f"{what}, from products", ours, peer, repeats, small, ""))
        rows.append(compare(f"{what}, warm, as in ALS", warm, peer, repeats, small, goal))
        off = float(np.max(np.abs(whole() - tall())))
        rows.append(row(f"{what}, largest difference", f"{off:.1e}", "SciPy nnls", "", "≤ 1e-8"))
    return rows


def bench_fits(quick: bool, name: str, goal: str) -> list[dict[str, Any]]:
    """Time a whole fit of every method at the settings of the paper's tables."""
    X = draw(name, quick)
    n_clusters, core = SETS[name][0], SETS[name][3]
    settings: list[tuple[str, str, dict[str, Any]]] = [
        (label, label, {}) for label in CLASSES if hasattr(baselines, label)
    ]
    settings.append(("AlternatingNMF", "AlternatingNMF, truncated", {"variant": "truncated"}))
    settings.append(("BayesianNMF", "BayesianNMF, icm", {"method": "icm"}))
    if name == "mnist":
        label = f"ProjectedGradientNMF, tol={TOOLBOX_TOL:g}"
        settings.append(("ProjectedGradientNMF", label, {"tol": TOOLBOX_TOL}))
    rows = []
    for class_name, label, extra in settings:
        estimator = getattr(baselines, class_name)(n_clusters, random_state=0, **extra)
        if "ranks" in estimator.get_params():
            estimator.set_params(ranks=(5, 5) if quick else core)
        began = time.process_time()
        estimator.fit(X)
        seconds = time.process_time() - began
        rows.append(
            row(
                f"whole fit, {name} {len(X)}×{X[0].size}, K={n_clusters}, {label}",
                f"{seconds:.1f} s",
                f"{estimator.n_iter_} iterations, {estimator.stop_reason_}",
                "",
                goal,
            )
        )
        print(reporting.lines_of(rows[-1:])[-1], flush=True)
    return rows


def main() -> None:
    """Run all and store `baselines.json` and `baselines.md`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small data, few repeats")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    repeats = 2 if options.quick else options.repeats
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        rows = bench_iterations(options.quick, repeats)
        rows += bench_least_squares(options.quick, repeats)
        rows += bench_fits(options.quick, "mnist", "< 60 s")
        rows += bench_fits(options.quick, "pie", "")
    reporting.store(rows, options.out, "baselines", "python -m benchmarks.bench_baselines")


if __name__ == "__main__":
    main()
