"""What each choice of the labels is worth: ``TUCKERMIX_DATA=… python -m benchmarks.label_choices``.

Each line changes one thing and leaves the rest at its default. All draws are from the tuning part
of the datasets (see `tuckermix_bench.draws`), with ranks that the data choose. *shapes* is
the mean adjusted Rand index over point sets with 2 to 20 coordinates, the other columns are mean
accuracies. Results go to `label_choices.json` and `label_choices.md`.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from benchmarks import reporting
from benchmarks.quality import draw
from tuckermix import TuckerClustering
from tuckermix.datasets import DatasetNotFound, load, make_dynamic_textures
from tuckermix_bench.draws import TUNING, part_seed, restrict
from tuckermix.labels import fit_labels, graph
from tuckermix.metrics import clustering_accuracy

SEED = 77
"""The first seed of the draws, apart from those of `quality` and of the tables."""

CASES = (
    ("pie", 24, 42, 2),
    ("pie", 34, 9, 2),
    ("orl", 10, 10, 8),
    ("orl", 20, 10, 1),
    ("yaleb", 10, 64, 4),
    ("yaleb", 19, 64, 1),
    ("cbcl", 2, 600, 4),
    ("mnist", 3, 100, 6),
    ("mnist", 5, 100, 6),
    ("mnist", 7, 100, 6),
    ("mnist", 10, 100, 4),
    ("digits", 10, 85, 4),
    ("modelnet10", 4, 90, 2),
)
"""Dataset, classes, samples of each, draws."""

TEXTURES = (4, 60, 2)
"""Classes, samples of each, draws."""

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

SHAPE_SEEDS = 8

Sample = tuple[Any, Any, Any]
"""Samples, their classes, ranks."""


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


WEIGHED: Callable[..., Any] = graph.adjacency


def textures(n_classes: int, each: int, seed: int) -> tuple[Any, Any]:
    """Draw videos of the part for choices."""
    return make_dynamic_textures(
        n_classes * each,
        n_classes,
        shape=20,
        n_frames=20,
        random_state=part_seed(TUNING, seed),
        return_X_y=True,
    )


def without_density(indices: Any, squares: Any, n_directions: int) -> Any:
    """Give no weight to how dense the samples lie."""
    return WEIGHED(indices, squares, 10**9)


KMEANS: Callable[..., Any] = graph.kmeans


def fewer_starts(embedding: Any, n_clusters: int, *, n_init: int, rng: Any) -> Any:
    """Start k-means half as often."""
    return KMEANS(embedding, n_clusters, n_init=n_init // 2, rng=rng)


class FromTheFirst:
    """Start k-means on the second embedding once, from the groups that the first one gave."""

    def __init__(self) -> None:
        self.last: Any = None

    def __call__(self, embedding: Any, n_clusters: int, *, n_init: int, rng: Any) -> Any:
        """Do what `kmeans` does."""
        shape, last = (len(embedding), n_clusters), self.last
        if last is None or last[0] != shape:
            found = KMEANS(embedding, n_clusters, n_init=n_init, rng=rng)
            self.last = shape, found.labels
            return found
        self.last = None
        means = [embedding[last[1] == group].mean(axis=0) for group in range(n_clusters)]
        return KMEANS(embedding, n_clusters, init=np.stack(means))


def _with(**values: Any) -> list[Callable[[], AbstractContextManager[Any]]]:
    """Set constants of the graph."""
    return [
        lambda name=name, value=value: mock.patch.object(graph, name, value)  # type: ignore[misc]
        for name, value in values.items()
    ]


CHANGES: dict[str, list[Callable[[], AbstractContextManager[Any]]]] = {
    "one embedding": _with(CUT_ALLOWANCE=0.0),
    "the second may cut 20 % more": _with(CUT_ALLOWANCE=1.2),
    "the second may cut anything": _with(CUT_ALLOWANCE=np.inf),
    "a quarter more in the second": _with(MORE=0.25),
    "as many more in the second": _with(MORE=1.0),
    "the second has at least one more": _with(LEAST_MORE=1),
    "eigenvectors alike": _with(STEPS=0),
    "no weight for mutual edges": _with(MUTUAL=0.0),
    "no bound on density": _with(DENSEST=1e-12),
    "no weight for density": [lambda: mock.patch.object(graph, "adjacency", without_density)],
    "all neighbours alike": _with(DECAY=0.0),
    "half the starts of k-means": [lambda: mock.patch.object(graph, "kmeans", fewer_starts)],
    "the second from the groups of the first": [
        lambda: mock.patch.object(graph, "kmeans", FromTheFirst())
    ],
}
"""Changes of the graph, with the points as they are."""

VIEWS: dict[str, dict[str, float]] = {
    "the directions of the model only": {"edge": 0.0},
    "the edge at 2 K": {"edge": 2.0},
    "the edge at 3 K": {"edge": 3.0},
    "the edge at 6 K": {"edge": 6.0},
    "power ½": {"power": 0.5},
    "all directions alike": {"power": 0.0},
}
"""Changes of the points. An edge of 0 stands for those of the model, whitened."""

NEIGHBORS = (10, 20, 30)
"""Values of `n_neighbors` beside the default."""


def found_labels(
    fitted: Any, X: Any, seed: int, *, edge: float = 4.0, power: float = 1.0, n_neighbors: int = 15
) -> Any:
    """Label the samples anew with the fitted decomposition."""
    n_clusters, model = fitted.n_clusters, fitted._model_
    if edge:
        model = model.looking_beyond(model.project(X), round(edge * n_clusters), power)
    else:
        along = (model.project(X) - model.mean) @ model.directions / model.spread
        scales = np.sqrt(np.mean((along - along.mean(axis=0)) ** 2, axis=0))
        model = replace(model, view=model.directions / scales)
    rows, rng = model.place(X), np.random.default_rng(seed)
    labeller = fit_labels("graph", rows, n_clusters, n_neighbors=n_neighbors, rng=rng)
    return labeller.predict_proba(rows).argmax(axis=1)


def compare(samples: list[Sample], score: Any) -> dict[str, float]:
    """Fit every draw once, label it in all ways, and average the scores."""
    found: dict[str, list[float]] = {}
    for seed, (X, truth, ranks) in enumerate(samples):
        n_clusters = len(np.unique(truth))
        fitted = TuckerClustering(n_clusters, ranks=ranks, random_state=seed).fit(X)

        def note(change: str, fitted: Any = fitted, data: Any = (X, truth, seed), **o: Any) -> None:
            labels = found_labels(fitted, data[0], data[2], **o)
            found.setdefault(change, []).append(score(data[1], labels))

        note("as it is")
        for change, view in VIEWS.items():
            note(change, **view)
        for count in NEIGHBORS:
            note(f"{count} neighbours", n_neighbors=count)
        for change, patches in CHANGES.items():
            with ExitStack() as stack:
                for patch in patches:
                    stack.enter_context(patch())
                note(change)
    return {change: float(np.mean(values)) for change, values in found.items()}


def columns() -> Iterator[tuple[str, list[Sample], Any]]:
    """Yield the name of each column, its samples, and its score."""
    for name, n_classes, each, n_draws in CASES:
        try:
            data = restrict(load(name), name, TUNING)
        except DatasetNotFound as error:
            print(f"skipped: {error}")
            continue
        drawn = [draw(data, n_classes, each, SEED + seed) for seed in range(n_draws)]
        yield f"{name} {n_classes}", [(X, y, None) for X, y in drawn], clustering_accuracy
    n_classes, each, n_draws = TEXTURES
    videos = [textures(n_classes, each, SEED + seed) for seed in range(n_draws)]
    yield f"textures {n_classes}", [(X, y, None) for X, y in videos], clustering_accuracy
    points = [pair for seed in range(SHAPE_SEEDS) for pair in shapes(seed)]
    yield "shapes", [(X, y, X.shape[1]) for X, y in points], adjusted_rand_score


def table(scores: dict[str, dict[str, float]]) -> list[str]:
    """Turn the scores of each column into a table, with the difference of the means at the end."""
    names = list(scores)
    changes = list(next(iter(scores.values())))
    base = np.mean([scores[name]["as it is"] for name in names])
    lines = ["| | " + " | ".join([*names, "mean"]) + " |", "|---" * (len(names) + 2) + "|"]
    for change in changes:
        values = [scores[name][change] for name in names]
        gain = "" if change == "as it is" else f" ({np.mean(values) - base:+.3f})"
        cells = [f"{value:.3f}" for value in [*values, np.mean(values)]]
        lines.append(f"| {change} | " + " | ".join(cells) + f"{gain} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    scores: dict[str, dict[str, float]] = {}
    for name, samples, score in columns():
        scores[name] = compare(samples, score)
        print(name, " ".join(f"{value:.3f}" for value in scores[name].values()), flush=True)
        (options.out / "label_choices.json").write_text(json.dumps(scores, indent=1) + "\n")
    command = "TUCKERMIX_DATA=… python -m benchmarks.label_choices"
    heading = reporting.heading(command, "Means over the draws", reporting.environment())
    text = "\n".join([heading, "", *table(scores), ""])
    (options.out / "label_choices.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
