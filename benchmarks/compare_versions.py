"""Compare two versions of the package: ``python -m benchmarks.compare_versions --against FILE``.

A change of structure must change no result. Store the results of one version, with that version on
the path, and compare another one with them::

    PYTHONPATH=old/src python -m benchmarks.compare_versions --save before.npz
    PYTHONPATH=new/src python -m benchmarks.compare_versions --against before.npz

Labels are compared up to their numbers, costs up to rounding. The datasets of ``TUCKERMIX_DATA``
are taken where they are present, and named where they are not.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix import TuckerClustering
from tuckermix.datasets import load, make_tensor_clusters

SEEDS = range(3)

ROUNDING = {"float32": 1e-4, "float64": 1e-9}
"""Relative differences of costs below these come from the order of sums. A cost is a small
difference of large squared norms, so it has fewer digits than the arithmetic."""

DRAWS: dict[str, tuple[str, int, int, Any]] = {
    "pie": ("pie_pose27.npz", 68, 42, (12, 12)),
    "orl": ("orl.npz", 40, 10, (12, 12)),
    "mnist 10 x 100": ("mnist.npz", 10, 100, (14, 14)),
    "cbcl 2 x 600": ("cbcl.npz", 2, 600, (8, 8)),
}
"""File, classes, samples of each class, ranks."""

SETTINGS: dict[str, dict[str, Any]] = {
    "graph": {},
    "subspace": {"assign_labels": "subspace"},
    "memberships": {"assign_labels": "memberships"},
    "argmax": {"assign_labels": "argmax"},
    "random": {"init": "random", "n_init": 3},
    "hosvd-samples": {"init": "hosvd-samples"},
    "trust-region": {"solver": "trust-region", "assign_labels": "memberships", "max_iter": 20},
    "joint": {"solver": "joint", "max_iter": 20},
}
"""What is tried on small data; the datasets are fitted with the defaults."""


def samples(only: str) -> Iterator[tuple[str, np.ndarray, int, Any, dict[str, dict[str, Any]]]]:
    """Yield the name of each set of samples, the samples, their clusters, ranks and settings."""
    first: dict[str, dict[str, Any]] = {"graph": {}}
    for seed in SEEDS:
        planted = make_tensor_clusters(240, (9, 8), 4, noise=0.5, random_state=seed).X
        yield f"planted {seed}", planted, 4, None, SETTINGS
    if only in "planted, many":
        yield (
            "planted, many",
            make_tensor_clusters(17000, (6, 5), 5, random_state=0).X,
            5,
            None,
            first,
        )
    yield "digits", load("digits").X / 16.0, 10, (7, 7), first
    home = os.environ.get("TUCKERMIX_DATA")
    for name, (file, n_classes, each, ranks) in DRAWS.items():
        if home is None or not (Path(home) / file).is_file():
            print(f"skipped: {name}, TUCKERMIX_DATA has no {file}")
            continue
        data = load(name.split()[0])
        classes = np.unique(data.labels)[:n_classes]
        chosen = np.concatenate([np.flatnonzero(data.labels == c)[:each] for c in classes])
        yield name, data.X[chosen] / 255.0, n_classes, ranks, first


def libraries() -> dict[str, Callable[[np.ndarray], Any]]:
    """Return how samples are handed to each library that is installed."""
    found: dict[str, Callable[[np.ndarray], Any]] = {"numpy": lambda X: X}
    try:
        import torch
    except ImportError:
        print("skipped: torch is not installed")
    else:
        found["torch"] = torch.asarray
    return found


def results(only: str = "") -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Fit everything and yield its name with labels, cost, weights and soft labels."""
    warnings.simplefilter("ignore")
    for name, X, n_clusters, ranks, settings in samples(only):
        if only not in name:
            continue
        for dtype in ROUNDING:
            for library, convert in libraries().items():
                for setting, options in settings.items():
                    for seed in SEEDS:
                        model = TuckerClustering(
                            n_clusters, ranks=ranks, random_state=seed, **options
                        ).fit(convert(X.astype(dtype)))
                        new = convert((X[:50] * 0.98).astype(dtype))
                        yield (
                            f"{name}, {setting}, seed {seed}, {library}, {dtype}",
                            {
                                "labels": np.asarray(model.labels_).astype(np.int16),
                                "cost": np.asarray(model.cost_),
                                "error": np.asarray([r.relative_error for r in model.history_]),
                                "predicted": np.asarray(model.predict(new)).astype(np.int16),
                                "score": np.asarray(model.score(new)),
                                "centroids": np.sort(
                                    np.linalg.norm(
                                        np.asarray(model.centroids_).reshape(n_clusters, -1), axis=1
                                    )
                                ),
                            },
                        )


def differences(now: dict[str, Any], before: dict[str, Any], rounding: float) -> list[str]:
    """Say in which results two fits differ beyond rounding and the numbers of labels."""
    found = []
    pairs = np.unique(np.stack([before["labels"], now["labels"]]), axis=1)
    partners = dict(pairs.T.tolist())
    if len(pairs[0]) != len(np.unique(pairs[0])) or len(pairs[1]) != len(np.unique(pairs[1])):
        table: dict[int, dict[int, int]] = {}
        for old, new in zip(before["labels"].tolist(), now["labels"].tolist(), strict=True):
            table.setdefault(old, {}).setdefault(new, 0)
            table[old][new] += 1
        moved = len(now["labels"]) - sum(max(row.values()) for row in table.values())
        found.append(f"labels: about {moved} of {len(now['labels'])} samples moved")
    elif [partners[old] for old in before["predicted"].tolist()] != now["predicted"].tolist():
        found.append("predicted labels differ")
    for key in ("cost", "error", "score", "centroids"):
        if now[key].shape != before[key].shape:
            found.append(f"{key}: {now[key].shape} where {before[key].shape} was")
            continue
        scale = max(float(np.max(np.abs(before[key]), initial=0.0)), np.finfo(float).tiny)
        gap = float(np.max(np.abs(now[key] - before[key]), initial=0.0)) / scale
        if not gap <= rounding:
            found.append(f"{key}: relative difference {gap:.1e}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", type=Path, help="store the results of this version")
    parser.add_argument("--against", type=Path, help="compare this version with stored results")
    parser.add_argument("--only", default="", help="samples whose name contains this")
    options = parser.parse_args()
    if (options.save is None) == (options.against is None):
        parser.error("give either --save or --against")
    if options.save is not None:
        stored = {
            f"{name}|{key}": value
            for name, fit in results(options.only)
            for key, value in fit.items()
        }
        np.savez_compressed(options.save, **stored)
        print(f"stored {len({key.split('|')[0] for key in stored})} fits in {options.save}")
        return 0
    with np.load(options.against) as archive:
        before: dict[str, dict[str, Any]] = {}
        for key in archive.files:
            name, field = key.split("|")
            before.setdefault(name, {})[field] = archive[key]
    n_same, n_other = 0, 0
    for name, fit in results(options.only):
        if name not in before:
            print(f"new: {name}")
            continue
        found = differences(fit, before[name], ROUNDING[name.rsplit(", ", 1)[1]])
        n_same, n_other = n_same + (not found), n_other + bool(found)
        if found:
            print(f"{name}: {'; '.join(found)}", flush=True)
    print(f"{n_same} fits agree, {n_other} differ")
    return int(n_other > 0)


if __name__ == "__main__":
    raise SystemExit(main())
