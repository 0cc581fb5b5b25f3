"""What each choice of the labels is worth: ``TUCKERMIX_DATA=… python -m benchmarks.label_choices``.

Each line changes one thing and leaves the rest at its default. All draws come from the part of each
dataset that is for choices; what the tables report on is not looked at. *shapes* is the mean
adjusted Rand index over point sets with 2 to 20 coordinates, the other columns are mean accuracies.
Results go to `label_choices.md`.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from benchmarks import reporting
from benchmarks.quality import draw
from tuckermix import TuckerClustering, model
from tuckermix.datasets import DatasetNotFound, load, make_dynamic_textures
from tuckermix.experiments.splits import TUNING, part_seed, restrict
from tuckermix.labels import graph
from tuckermix.metrics import clustering_accuracy

SEED = 77
"""The first seed of the draws."""

CASES = (
    ("pie", 24, 42, (12, 12), 2),
    ("pie", 34, 9, (12, 12), 4),
    ("orl", 10, 10, (12, 12), 12),
    ("orl", 20, 10, (12, 12), 4),
    ("yaleb", 10, 64, (12, 12), 6),
    ("yaleb", 19, 64, (12, 12), 1),
    ("cbcl", 2, 600, (8, 8), 10),
    ("mnist", 3, 100, (14, 14), 10),
    ("mnist", 5, 100, (14, 14), 10),
    ("mnist", 7, 100, (14, 14), 10),
    ("mnist", 10, 100, (14, 14), 6),
    ("digits", 10, 80, (7, 7), 4),
    ("modelnet10", 4, 90, (19, 19, 19), 3),
)
"""Dataset, classes, samples of each, core, draws; at most half of what a dataset has."""

TEXTURES = (4, 60, (12, 12, 12), 3)

BLOBS: dict[str, tuple[list[int], int, float]] = {
    "equal, 2": ([150] * 4, 2, 5.0),
    "unequal, 2": ([500, 60, 40], 2, 6.0),
    "unequal, 5": ([500, 60, 40], 5, 6.0),
    "unequal and near, 2": ([400, 100, 50], 2, 4.5),
    "equal, 20": ([100] * 6, 20, 6.0),
    "unequal, 20": ([400, 100, 50], 20, 5.5),
    "very unequal, 10": ([800, 80], 10, 6.0),
}
"""Sizes, coordinates, and the distance of the centres in standard deviations."""

SHAPE_SEEDS = 4


def blobs(sizes: list[int], n_coordinates: int, distance: float, rng: Any) -> tuple[Any, Any]:
    """Draw Gaussian blobs whose centres lie on a circle or in orthogonal directions."""
    count = len(sizes)
    if n_coordinates >= count:
        square = np.linalg.qr(rng.standard_normal((n_coordinates, n_coordinates)))[0]
        centers = square[:count] * distance / np.sqrt(2)
    else:
        angles = 2 * np.pi * np.arange(count) / count
        radius = distance / (2 * np.sin(np.pi / count))
        centers = radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    truth = np.repeat(np.arange(count), sizes)
    return centers[truth] + rng.standard_normal((len(truth), n_coordinates)), truth


def shapes(seed: int) -> Iterator[tuple[Any, Any]]:
    """Draw one point set of each kind."""
    rng = np.random.default_rng(SEED + seed)
    for sizes, n_coordinates, distance in BLOBS.values():
        yield blobs(sizes, n_coordinates, distance, rng)
    yield make_moons(400, noise=0.08, random_state=SEED + seed)
    yield make_circles(500, noise=0.05, factor=0.5, random_state=SEED + seed)


def without_shrinkage(fitted: Any, X: Any) -> Any:
    """Look at as many directions, all with the same weight."""
    wider = SHRUNK(fitted, X)
    if wider is fitted:
        return fitted
    rows = fitted.project(X) / fitted.spread @ wider.view
    scales = np.sqrt(np.mean((rows - rows.mean(axis=0)) ** 2, axis=0))
    return replace(wider, view=wider.view / scales)


def without_density(indices: Any, squares: Any, n_directions: int) -> Any:
    """Give no weight to how dense the samples lie."""
    return WEIGHED(indices, squares, 10**9)


SHRUNK: Callable[..., Any] = model.Model.looking_beyond
WEIGHED: Callable[..., Any] = graph.adjacency

CHANGES: dict[str, AbstractContextManager[Any]] = {
    "as it is": nullcontext(),
    "the directions of the model only": mock.patch.object(model, "WIDER", 1),
    "all directions alike": mock.patch.object(model.Model, "looking_beyond", without_shrinkage),
    "one embedding": mock.patch.object(graph, "CUT_ALLOWANCE", 0.0),
    "the second may cut 20 % more": mock.patch.object(graph, "CUT_ALLOWANCE", 1.2),
    "the second may cut anything": mock.patch.object(graph, "CUT_ALLOWANCE", np.inf),
    "no weight for mutual edges": mock.patch.object(graph, "MUTUAL", 0.0),
    "no gaps": mock.patch.object(graph, "GAP", np.inf),
    "no weight for density": mock.patch.object(graph, "adjacency", without_density),
    "all neighbours alike": mock.patch.object(graph, "DECAY", 0.0),
}

NEIGHBORS = (10, 15, 30)
"""Values of `n_neighbors` beside the default."""


def mean_score(samples: list[tuple[Any, Any, Any]], score: Any, **options: Any) -> float:
    """Fit all draws and compare the labels with the classes."""
    found = []
    for seed, (X, truth, ranks) in enumerate(samples):
        n_clusters = len(np.unique(truth))
        fitted = TuckerClustering(n_clusters, ranks=ranks, random_state=seed, **options).fit(X)
        found.append(score(truth, fitted.labels_))
    return float(np.mean(found))


def columns() -> Iterator[tuple[str, list[tuple[Any, Any, Any]], Any]]:
    """Yield the name of each column, its samples, and its score."""
    for name, n_classes, each, ranks, n_draws in CASES:
        try:
            data = restrict(load(name), name, TUNING)
        except DatasetNotFound as error:
            print(f"skipped: {error}")
            continue
        drawn = [draw(data, n_classes, each, SEED + seed) for seed in range(n_draws)]
        yield f"{name} {n_classes}", [(X, y, ranks) for X, y in drawn], clustering_accuracy
    n_classes, each, core, n_draws = TEXTURES
    videos = [
        make_dynamic_textures(
            n_classes * each,
            n_classes,
            shape=20,
            n_frames=20,
            random_state=part_seed(TUNING, SEED + seed),
            return_X_y=True,
        )
        for seed in range(n_draws)
    ]
    yield f"textures {n_classes}", [(X, y, core) for X, y in videos], clustering_accuracy
    points = [pair for seed in range(SHAPE_SEEDS) for pair in shapes(seed)]
    yield "shapes", [(X, y, X.shape[1]) for X, y in points], adjusted_rand_score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names: list[str] = []
    scores: dict[str, list[float]] = {change: [] for change in CHANGES}
    scores |= {f"{count} neighbours": [] for count in NEIGHBORS}
    for name, samples, score in columns():
        names.append(name)
        for change, patch in CHANGES.items():
            with patch:
                scores[change].append(mean_score(samples, score))
        for count in NEIGHBORS:
            found = mean_score(samples, score, n_neighbors=count)
            scores[f"{count} neighbours"].append(found)
        print(name, " ".join(f"{values[-1]:.3f}" for values in scores.values()), flush=True)
    lines = [
        "| | " + " | ".join([*names, "mean"]) + " |",
        "|---" * (len(names) + 2) + "|",
        *(
            f"| {change} | " + " | ".join(f"{v:.2f}" for v in [*found, np.mean(found)]) + " |"
            for change, found in scores.items()
        ),
    ]
    command = "TUCKERMIX_DATA=… python -m benchmarks.label_choices"
    heading = reporting.heading(command, "Means over the draws", reporting.environment())
    text = "\n".join([heading, "", *lines, ""])
    (options.out / "label_choices.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
