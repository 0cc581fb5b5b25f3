"""Compare the default labels of two versions of the package, draw by draw.

Run ``TUCKERMIX_DATA=… python -m benchmarks.compare_defaults run FILE`` with each version on the
path, then ``python -m benchmarks.compare_defaults compare OLD NEW``. A version that has no parts of
datasets is told them: ``parts PARTS`` writes them with this version, ``run FILE --parts PARTS``
reads them with another. All draws are from the part of
the datasets that is for reports, with `ranks=None`; COIL-20 and Yale, which nothing was ever chosen
by, stand beside and are not in the mean. Differences are paired, with standard errors over the
draws. Results go to `compare_defaults.md`.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from tuckermix import TuckerClustering
from tuckermix.datasets import DatasetNotFound, load, make_dynamic_textures
from tuckermix.metrics import clustering_accuracy

SEED = 4711
"""The first seed of the draws."""

CASES = (
    ("pie", 24, 42, 10),
    ("pie", 34, 9, 10),
    ("orl", 10, 10, 12),
    ("orl", 20, 10, 1),
    ("yaleb", 10, 64, 10),
    ("yaleb", 19, 64, 1),
    ("cbcl", 2, 600, 10),
    ("mnist", 3, 100, 12),
    ("mnist", 5, 100, 12),
    ("mnist", 7, 100, 12),
    ("mnist", 10, 100, 12),
    ("digits", 10, 80, 10),
    ("modelnet10", 4, 50, 10),
    ("coil20", 20, 72, 1),
    ("yale", 15, 11, 1),
)
"""Dataset, classes, samples of each, draws: one where a draw takes everything there is."""

BESIDE = ("coil20 20", "yale 15")
"""Columns that are not in the mean."""

BLOBS = (
    ([150] * 4, 2, 5.0),
    ([500, 60, 40], 2, 6.0),
    ([500, 60, 40], 5, 6.0),
    ([400, 100, 50], 2, 4.5),
    ([100] * 6, 20, 6.0),
    ([400, 100, 50], 20, 5.5),
    ([800, 80], 10, 6.0),
)
"""Sizes, coordinates, and the distance of the centres, as in `label_choices`."""

TOLERANCE = 2.0
"""A column has fallen where it is worse by more than this many standard errors."""


def reporting_indices(name: str, data: Any) -> Any:
    """Return which samples of a dataset are for reports."""
    # Not at the top: an older version on the path may have no parts.
    from tuckermix_bench.draws import REPORTING, part_indices

    is_test = getattr(data, "extra", {}).get("is_test")
    return part_indices(name, REPORTING, data.labels, is_test=is_test)


def write_parts(path: Path) -> None:
    """Save which samples are for reports, of the datasets that are there."""
    parts = {}
    for name in dict.fromkeys(name for name, *_ in CASES):
        try:
            parts[name] = reporting_indices(name, load(name))
        except DatasetNotFound as error:
            print(f"skipped: {error}")
    np.savez(path, **parts)


def draws(
    name: str, n_classes: int, each: int, n_draws: int, parts: Any = None
) -> Iterator[tuple[Any, Any]]:
    """Choose classes and samples of each at random, of the part of a dataset that is for reports.

    `parts` has the indices of these samples by name, where the version on the path cannot tell.
    """
    data = load(name)
    chosen = reporting_indices(name, data) if parts is None else parts[name]
    X, labels = data.X[chosen], data.labels[chosen]
    for seed in range(n_draws):
        rng = np.random.default_rng(SEED + seed)
        classes = np.unique(labels)
        if n_classes < len(classes):
            classes = np.sort(rng.choice(classes, n_classes, replace=False))
        rows = [rng.permutation(np.flatnonzero(labels == label))[:each] for label in classes]
        chosen = np.concatenate(rows)
        yield X[chosen].astype(np.float32) / 255, labels[chosen]


def point_sets(seed: int) -> Iterator[tuple[Any, Any]]:
    """Draw blobs, moons and rings."""
    rng = np.random.default_rng(SEED + seed)
    for sizes, width, distance in BLOBS:
        count = len(sizes)
        if width >= count:
            centers = np.linalg.qr(rng.standard_normal((width, width)))[0][:count]
            centers = centers * distance / np.sqrt(2)
        else:
            angles = 2 * np.pi * np.arange(count) / count
            radius = distance / (2 * np.sin(np.pi / count))
            centers = radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        truth = np.repeat(np.arange(count), sizes)
        yield centers[truth] + rng.standard_normal((len(truth), width)), truth
    yield make_moons(400, noise=0.08, random_state=SEED + seed)
    yield make_circles(500, noise=0.05, factor=0.5, random_state=SEED + seed)


def label(X: Any, truth: Any, seed: int, **options: Any) -> Any:
    """Fit with the defaults and the true number of clusters."""
    return TuckerClustering(len(np.unique(truth)), random_state=seed, **options).fit(X).labels_


def run(path: Path, parts: Any) -> None:
    """Score all draws with the version on the path, and save the scores."""
    scores: dict[str, list[float]] = {}
    for name, n_classes, each, n_draws in CASES:
        try:
            found = [
                clustering_accuracy(truth, label(X, truth, seed))
                for seed, (X, truth) in enumerate(draws(name, n_classes, each, n_draws, parts))
            ]
        except (DatasetNotFound, ValueError, KeyError) as error:  # or a version lacks it
            print(f"skipped: {error}")
            continue
        scores[f"{name} {n_classes}"] = found
        print(name, n_classes, f"{np.mean(found):.3f}", flush=True)
        path.write_text(json.dumps(scores, indent=1) + "\n")
    videos = [
        make_dynamic_textures(
            240, 4, shape=20, n_frames=20, random_state=2 * (SEED + seed) + 1, return_X_y=True
        )
        for seed in range(10)
    ]
    scores["textures 4"] = [
        clustering_accuracy(truth, label(X, truth, seed)) for seed, (X, truth) in enumerate(videos)
    ]
    scores["shapes"] = [
        float(
            np.mean(
                [
                    adjusted_rand_score(truth, label(X, truth, seed, ranks=X.shape[1]))
                    for X, truth in point_sets(seed)
                ]
            )
        )
        for seed in range(10)
    ]
    path.write_text(json.dumps(scores, indent=1) + "\n")


def compare(old: dict[str, list[float]], new: dict[str, list[float]]) -> list[str]:
    """Make a table of the paired differences."""
    lines = ["| | draws | old | new | difference | |", "|---|---|---|---|---|---|"]
    gains = {}
    for name in [key for key in old if key in new]:
        before, after = np.array(old[name]), np.array(new[name])
        gap = after - before
        gains[name] = gap.mean()
        error = gap.std(ddof=1) / len(gap) ** 0.5 if len(gap) > 1 else np.nan
        spread = f" ± {error:.3f}" if len(gap) > 1 else ""
        mark = "falls" if gap.mean() < -TOLERANCE * error else ""
        mark = "beside" if name in BESIDE else mark
        lines.append(
            f"| {name} | {len(gap)} | {before.mean():.3f} | {after.mean():.3f} "
            f"| {gap.mean():+.3f}{spread} | {mark} |"
        )
    inside = [name for name in gains if name not in BESIDE]
    means = [np.mean([np.mean(side[name]) for name in inside]) for side in (old, new)]
    lines.append(f"| mean | | {means[0]:.3f} | {means[1]:.3f} | {means[1] - means[0]:+.3f} | |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("parts").add_argument("file", type=Path)
    one = commands.add_parser("run")
    one.add_argument("file", type=Path)
    one.add_argument("--parts", type=Path, help="what `parts` wrote")
    both = commands.add_parser("compare")
    both.add_argument("old", type=Path)
    both.add_argument("new", type=Path)
    both.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.command == "parts":
        write_parts(options.file)
        return
    if options.command == "run":
        run(options.file, None if options.parts is None else np.load(options.parts))
        return
    lines = compare(json.loads(options.old.read_text()), json.loads(options.new.read_text()))
    text = "\n".join(["Command: `python -m benchmarks.compare_defaults`.", "", *lines, ""])
    (options.out / "compare_defaults.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
