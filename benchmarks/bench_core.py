"""The exact solver and the whole fit against other libraries and against bare products."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.bench_trust_region import PlainObjective
from benchmarks.reporting import in_turn
from tuckermix import TuckerClustering, decompose
from tuckermix.datasets import DatasetNotFound, load, make_tensor_clusters
from tuckermix.decomposition.exact import closed_form
from tuckermix.manifolds import Multinomial, to_pymanopt
from tuckermix.objectives import MembershipObjective

Row = dict[str, Any]


def faces(n_classes: int = 24) -> tuple[np.ndarray, str]:
    """Return the paper's setting, 24 classes of PIE, or planted images of the same shape."""
    try:
        data = load("pie")
    except DatasetNotFound:
        stand_in = make_tensor_clusters(
            n_samples=1008, shape=(32, 32), n_clusters=n_classes, ranks=12, random_state=0
        )
        return stand_in.X, "planted 1008×32×32"
    chosen = np.random.default_rng(0).choice(np.unique(data.labels), n_classes, replace=False)
    return data.X[np.isin(data.labels, chosen)] / 255.0, "PIE 1008×32×32"


def digits() -> tuple[np.ndarray, str]:
    """Return MNIST in float32, or planted images of the same shape."""
    try:
        return load("mnist").X.astype(np.float32) / 255, "MNIST 70000×28×28"
    except DatasetNotFound:
        stand_in = make_tensor_clusters(
            n_samples=70_000, shape=(28, 28), n_clusters=10, ranks=14, random_state=0
        )
        return stand_in.X.astype(np.float32), "planted 70000×28×28"


def against_partial_tucker(*, quick: bool) -> list[Row]:
    """Time `decompose` against TensorLy's partial Tucker decomposition, same ranks, same tol."""
    from tensorly.decomposition import partial_tucker

    X, name = faces()
    times = in_turn(
        {
            "ours": lambda: decompose(X, 24, (12, 12), tol=1e-9),
            "peer": lambda: partial_tucker(
                X, rank=[24, 12, 12], modes=[0, 1, 2], tol=1e-9, n_iter_max=1000
            ),
        },
        3 if quick else 11,
    )
    return [ratio_row(f"`decompose`, {name}, 24 components, tol 1e-9", times, "TensorLy", "≥ 10×")]


def against_kmeans(*, quick: bool) -> list[Row]:
    """Time the whole fit, labels and mixing weights included, against k-means on raw pixels."""
    from sklearn.cluster import KMeans

    X, name = faces()
    flat = X.reshape(len(X), -1)
    times = in_turn(
        {
            "ours": lambda: TuckerClustering(24, ranks=(12, 12), random_state=0).fit(X),
            "peer": lambda: KMeans(24, n_init=10, random_state=0).fit(flat),
        },
        3 if quick else 9,
    )
    # Planted clusters lie apart: k-means and the trust region end after a few steps there.
    goal = "≥ 3×" if name.startswith("PIE") else "≥ 2×"
    return [ratio_row(f"whole fit, {name}, K = 24", times, "KMeans(n_init=10) on pixels", goal)]


class Reached(Exception):
    """The peer has come near enough to the optimum."""


def against_trust_region(*, quick: bool) -> list[Row]:
    """Time the closed form against what Pymanopt's trust region needs to come within 1e-6."""
    import pymanopt
    from pymanopt.optimizers import TrustRegions

    X, name = faces()
    fit = decompose(X, 24, (12, 12))
    B = np.einsum("mij,ia,jb->mab", X, *fit.factors).reshape(len(X), -1)
    objective = PlainObjective(B)  # what a user of Pymanopt would write from the paper
    best = MembershipObjective(B).optimum(24)
    manifold = to_pymanopt(Multinomial(len(B), 24))
    start = Multinomial(len(B), 24).random_point(random_state=0)

    def watched(U: np.ndarray) -> float:
        cost = objective.cost(U)
        if cost - best <= 1e-6 * abs(best):
            raise Reached
        return cost

    def peer() -> None:
        cost = pymanopt.function.numpy(manifold)(watched)
        gradient = pymanopt.function.numpy(manifold)(objective.egrad)
        hessian = pymanopt.function.numpy(manifold)(objective.ehess)
        problem = pymanopt.Problem(
            manifold, cost, euclidean_gradient=gradient, euclidean_hessian=hessian
        )
        optimizer = TrustRegions(max_iterations=1000, max_time=300, verbosity=0)
        try:
            optimizer.run(problem, initial_point=start, maxinner=30)
        except Reached:
            return
        warnings.warn("Pymanopt did not come within 1e-6 of the optimum", stacklevel=1)

    times = in_turn({"peer": peer}, 1 if quick else 3)
    goal = "≥ 1000×" if name.startswith("PIE") else "≥ 100×"
    times.update(in_turn({"ours": lambda: closed_form(B.copy(), 23)}, 21))
    return [ratio_row(f"closed form, {name}, L = 24", times, "Pymanopt to within 1e-6", goal)]


def against_bare_products(*, quick: bool) -> list[Row]:
    """Express `decompose` on many images in products of the samples with a thin matrix."""
    X, name = digits()
    U = np.linalg.qr(np.random.default_rng(0).standard_normal((28, 14)))[0].astype(np.float32)
    times = in_turn(
        {
            "ours": lambda: decompose(X, 10, (14, 14), tol=1e-6, random_state=0),
            "product": lambda: X.reshape(-1, 28) @ U,
        },
        3 if quick else 9,
    )
    return [
        {
            "what": f"`decompose`, {name} float32, 10 components, tol 1e-6",
            "ours": seconds(times["ours"]),
            "reference": f"{seconds(times['product'])} for `X.reshape(-1, 28) @ U`",
            "ratio": f"{times['ours'] / times['product']:.1f} products",
            "goal": "≤ 15, then ≤ 10",
        }
    ]


def growth_with_samples(*, quick: bool) -> list[Row]:
    """Show that time is linear in the number of samples."""
    sizes = (1_000, 10_000, 100_000) if quick else (1_000, 10_000, 100_000, 1_000_000)
    rng = np.random.default_rng(0)
    low = rng.standard_normal((sizes[-1], 12), dtype=np.float32)
    X = (low @ rng.standard_normal((12, 64), dtype=np.float32)).reshape(-1, 8, 8)
    X += 0.3 * rng.standard_normal(X.shape, dtype=np.float32)
    per_sample = {
        size: 1e6
        * in_turn({"x": lambda s=size: decompose(X[:s], 10, 6, random_state=0)}, 5)["x"]
        / size
        for size in sizes
    }
    rows = [growth_row("`decompose`, 8×8 samples, float32", per_sample)]
    with_labels = {}
    for size in [size for size in (20_000, *sizes[2:]) if size >= 20_000]:
        began = time.process_time()
        TuckerClustering(10, ranks=6, random_state=0).fit(X[:size])
        with_labels[size] = 1e6 * (time.process_time() - began) / size
    rows.append(growth_row("whole fit with labels, K = 10", with_labels))
    return rows


def growth_row(what: str, per_sample: dict[int, float]) -> Row:
    figures = ", ".join(f"{size:,}: {value:.2f}" for size, value in per_sample.items())
    first, last = next(iter(per_sample.values())), list(per_sample.values())[-1]
    return {
        "what": what,
        "ours": f"µs a sample: {figures}",
        "reference": "the smallest size",
        "ratio": f"{last / first:.2f} × its time a sample",
        "goal": "≤ 1 or so",
    }


def ratio_row(what: str, times: dict[str, float], peer: str, goal: str) -> Row:
    return {
        "what": what,
        "ours": seconds(times["ours"]),
        "reference": f"{seconds(times['peer'])} {peer}",
        "ratio": f"{times['peer'] / times['ours']:.1f}× faster",
        "goal": goal,
    }


def seconds(value: float) -> str:
    return f"{1e3 * value:.1f} ms" if value < 1 else f"{value:.2f} s"


BENCHMARKS: tuple[Callable[..., list[Row]], ...] = (
    against_partial_tucker,
    against_kmeans,
    against_trust_region,
    against_bare_products,
    growth_with_samples,
)
