"""Accuracy on scattering features, with pixels beside, on the part of the data kept for reports.

One setting for all rows: three scales, eight angles, mirrored borders. It was chosen on the tuning
part (``--part tuning`` prints that, ``--borders`` what each border reaches there); Yale and COIL-20
were not looked at. Part of ``python -m benchmarks.quality``; alone:
``python -m benchmarks.feature_quality``.
"""

from __future__ import annotations

import argparse
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import reporting
from tuckermix import TuckerClustering
from tuckermix.datasets import DatasetNotFound, load
from tuckermix_bench.draws import REPORTING, REPORTING_ONLY, TUNING, restrict
from tuckermix.features import Scattering
from tuckermix.features._borders import BORDERS
from tuckermix.metrics import clustering_accuracy

N_DRAWS = 10
EIGHT_BITS = 255

CASES: list[dict[str, Any]] = [
    {"data": "mnist", "classes": 10, "each": 100, "goal": "scattering ≥ 0.90"},
    {"data": "cbcl", "classes": 2, "each": 600, "goal": "log-scattering ≥ 0.85"},
    {"data": "orl", "classes": 10, "each": 10, "goal": "log-scattering ≥ 0.93"},
    {"data": "yale", "classes": 15, "each": 11, "goal": "–"},
    {"data": "coil20", "classes": 20, "each": 72, "goal": "–"},
    {"data": "yaleb", "classes": 10, "each": 40, "goal": "–"},
    {"data": "pie", "classes": 20, "each": 42, "goal": "–"},
]


VIEWS = {"scattering": False, "log-scattering": True}
"""Whether each view of features takes the logarithm."""


def drawn(case: dict[str, Any], part: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the images and classes of a draw from a part of the data."""
    data = restrict(load(case["data"]), case["data"], part)
    rng = np.random.default_rng(seed)
    classes = np.unique(data.labels)
    classes = np.sort(rng.choice(classes, case["classes"], replace=False))
    places = [rng.permutation(np.flatnonzero(data.labels == name)) for name in classes]
    chosen = np.concatenate([place[: case["each"]] for place in places])
    return data.X[chosen].astype(np.float32) / EIGHT_BITS, data.labels[chosen]


def accuracy(seen: Any, truth: np.ndarray, n_clusters: int, seed: int) -> float:
    """Cluster what is seen of the images and compare with their classes."""
    labels = TuckerClustering(n_clusters, random_state=seed).fit(seen).labels_
    return clustering_accuracy(truth, labels)


def accuracies(case: dict[str, Any], part: str, draws: int) -> dict[str, np.ndarray]:
    """Return the accuracy of every view in every draw."""
    found: dict[str, list[float]] = {"pixels": [], "scattering": [], "log-scattering": []}
    for seed in range(draws):
        X, truth = drawn(case, part, seed)
        for name in found:
            seen = X if name == "pixels" else Scattering(log=VIEWS[name]).fit_transform(X)
            found[name].append(accuracy(seen, truth, case["classes"], seed))
    return {name: np.array(values) for name, values in found.items()}


def measure(case: dict[str, Any], part: str = REPORTING, draws: int = N_DRAWS) -> dict[str, Any]:
    """Average the accuracies of a case, with the standard error of the difference to pixels."""
    found = accuracies(case, part, draws)

    def shown(name: str) -> str:
        gain = found[name] - found["pixels"]
        error = gain.std(ddof=1) / math.sqrt(draws)
        return f"{name} {found[name].mean():.3f} ({gain.mean():+.3f} ± {error:.3f})"

    return {
        "what": f"{case['data']}, {case['classes']} × {case['each']}, {part}, {draws} draws",
        "ours": f"{shown('scattering')}, {shown('log-scattering')}",
        "reference": f"pixels {found['pixels'].mean():.3f}",
        "ratio": "",
        "goal": case["goal"],
        "accuracy": {name: values.tolist() for name, values in found.items()},
    }


def run(folder: Path, only: str = "", part: str = REPORTING, draws: int = N_DRAWS) -> None:
    """Measure all cases, print them and store them as `features.json` and `features.md`."""
    rows = []
    for case in CASES:
        if only not in case["data"]:
            continue
        try:
            rows.append(measure(case, part, draws))
        except (DatasetNotFound, ValueError) as error:  # some are never for tuning
            print(f"skipped: {error}")
            continue
        print(reporting.lines_of(rows[-1:])[-1], flush=True)
    if part == REPORTING and not only:
        command = "TUCKERMIX_DATA=… python -m benchmarks.feature_quality"
        reporting.store(rows, folder, "features", command)


def choose_border(folder: Path, draws: int) -> None:
    """Compare what may lie beyond the border on the tuning part; print and store `borders.md`."""
    names = [f"{border}, {view}" for border in BORDERS for view in VIEWS]
    lines = [f"| data | {' | '.join(names)} |", "|---" * (1 + len(names)) + "|"]
    print(lines[0])
    rows = []
    for case in CASES:
        if case["data"] in REPORTING_ONLY:
            continue
        cells = []
        for border, log in itertools.product(BORDERS, VIEWS.values()):
            scores = []
            for seed in range(draws):
                X, truth = drawn(case, TUNING, seed)
                features = Scattering(log=log, border=border).fit_transform(X)
                scores.append(accuracy(features, truth, case["classes"], seed))
            cells.append(float(np.mean(scores)))
        rows.append(cells)
        what = f"{case['data']}, {case['classes']} × {case['each']}"
        lines.append(f"| {what} | {' | '.join(f'{cell:.3f}' for cell in cells)} |")
        print(lines[-1], flush=True)
    lines.append(f"| mean | {' | '.join(f'{cell:.3f}' for cell in np.mean(rows, axis=0))} |")
    command = f"TUCKERMIX_DATA=… python -m benchmarks.feature_quality --borders --draws {draws}"
    kind = f"Accuracy on the tuning part, means of {draws} draws"
    about = reporting.heading(command, kind, reporting.environment())
    (folder / "borders.md").write_text("\n".join([about, "", *lines, ""]))
    print(lines[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="datasets whose name contains this")
    parser.add_argument("--part", default=REPORTING, choices=(TUNING, REPORTING))
    parser.add_argument("--draws", type=int, default=N_DRAWS)
    parser.add_argument("--borders", action="store_true", help="compare borders instead")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    if options.borders:
        choose_border(options.out, options.draws)
        return
    run(options.out, options.only, options.part, options.draws)


if __name__ == "__main__":
    main()
