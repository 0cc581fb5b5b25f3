"""Which setting each rival gets: ``TUCKERMIX_DATA=… python -m benchmarks.rival_settings``.

Authors publish one setting, several, or a grid. For each rival all of them are tried on draws from
the tuning part of the datasets (see `tuckermix_bench.draws`); the one with the best mean
accuracy over the datasets is that of the columns called "tuned", and of methods whose authors name
no setting at all. Results go to `rival_settings.json` and `rival_settings.md`, after every dataset;
with ``--methods`` and ``--datasets`` the others stay as they are.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import reporting
from benchmarks.quality import draw
from tuckermix.baselines import ADSSC, LSR, SSCOMP, EnSC
from tuckermix.datasets import DatasetNotFound, load
from tuckermix_bench.draws import TUNING, restrict
from tuckermix.metrics import clustering_accuracy

SEED = 177
"""The first seed of the draws, apart from those of other choices."""

CASES = (
    ("pie", 15, 42, 2),
    ("orl", 20, 10, 2),
    ("yaleb", 10, 60, 2),
    ("cbcl", 2, 300, 2),
    ("mnist", 10, 60, 2),
    ("digits", 10, 60, 2),
)
"""Dataset, classes, samples of each, draws: at most some 600 samples, so that all grids together
take a quarter of an hour on one core."""

GRIDS: dict[str, tuple[type, list[dict[str, Any]]]] = {
    "LSR": (
        LSR,
        [
            {"penalty": penalty, "directions_per_cluster": count, "scale_columns": scaled}
            for scaled, count, penalty in product((True, False), (6, None), (0.004, 0.01, 0.1, 0.4))
        ],
    ),
    "A-DSSC": (
        ADSSC,
        [
            {"penalty": penalty, "smoothing": smoothing}
            for penalty, smoothing in product(
                (0.1, 1.0, 10.0, 25.0, 50.0), (0.0005, 0.001, 0.01, 0.025, 0.05, 0.1)
            )
        ],
    ),
    "EnSC": (
        EnSC,
        [
            {"gamma": gamma, "affinity": affinity}
            for gamma, affinity in product((50.0, 200.0), ("nearest_neighbors", "symmetrized"))
        ],
    ),
    "SSC-OMP": (SSCOMP, [{"n_nonzero": count} for count in (5, 10)]),
}
"""What the authors' papers and programs name: for LSR the penalties of five and of ten persons and
those between them, with and without the projection and the scaling of its program; for A-DSSC the
grid of its program; for EnSC and SSC-OMP the settings for faces and for digits."""


def described(setting: dict[str, Any]) -> str:
    """Write a setting as it would be passed."""
    return ", ".join(f"{name}={value!r}" for name, value in setting.items())


def draws() -> Iterator[tuple[str, list[tuple[Any, Any]]]]:
    """Yield the name of each dataset and its draws."""
    for name, n_classes, each, count in CASES:
        try:
            data = restrict(load(name), name, TUNING)
        except DatasetNotFound as error:
            print(f"skipped: {error}")
            continue
        yield name, [draw(data, n_classes, each, SEED + seed) for seed in range(count)]


def measure(samples: list[tuple[Any, Any]], rivals: list[str]) -> dict[str, dict[str, float]]:
    """Return the mean accuracy of every setting of the rivals."""
    scores: dict[str, dict[str, float]] = {}
    for name in rivals:
        cls, grid = GRIDS[name]
        scores[name] = {}
        for setting in grid:
            found = [
                clustering_accuracy(y, cls(len(set(y)), random_state=0, **setting).fit(X).labels_)
                for X, y in samples
            ]
            scores[name][described(setting)] = float(np.mean(found))
    return scores


def chosen(scores: dict[str, dict[str, dict[str, float]]]) -> dict[str, str]:
    """Return the best setting of each rival; of equal ones the first."""
    best = {}
    for rival in next(iter(scores.values())):
        means = {
            setting: np.mean([columns[rival][setting] for columns in scores.values()])
            for setting in next(iter(scores.values()))[rival]
        }
        best[rival] = max(means, key=lambda setting: means[setting])
    return best


def table(scores: dict[str, dict[str, dict[str, float]]]) -> list[str]:
    """Lay out the accuracies, the setting that was chosen in bold."""
    best, names = chosen(scores), list(scores)
    lines = ["| | setting | " + " | ".join([*names, "mean"]) + " |"]
    lines.append("|---" * (len(names) + 3) + "|")
    for rival in best:
        for setting in scores[names[0]][rival]:
            values = [scores[name][rival][setting] for name in names]
            cells = " | ".join(f"{value:.3f}" for value in [*values, np.mean(values)])
            shown = f"**`{setting}`**" if setting == best[rival] else f"`{setting}`"
            lines.append(f"| {rival} | {shown} | {cells} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--methods", nargs="+", choices=GRIDS, default=list(GRIDS))
    datasets = [case[0] for case in CASES]
    parser.add_argument("--datasets", nargs="+", choices=datasets, default=datasets)
    options = parser.parse_args()
    path = options.out / "rival_settings.json"
    earlier = json.loads(path.read_text())["accuracy"] if path.is_file() else {}
    command = "TUCKERMIX_DATA=… python -m benchmarks.rival_settings"
    scores: dict[str, dict[str, dict[str, float]]] = {}
    for name, samples in draws():
        scores[name] = earlier.get(name, {})
        if name in options.datasets:
            scores[name] |= measure(samples, options.methods)
        heading = reporting.heading(command, "Mean accuracies", reporting.environment())
        stored = {"chosen": chosen(scores), "accuracy": scores}
        path.write_text(json.dumps(stored, indent=1) + "\n")
        text = "\n".join([heading, "", *table(scores), ""])
        (options.out / "rival_settings.md").write_text(text)
        print(name, chosen(scores), flush=True)


if __name__ == "__main__":
    main()
