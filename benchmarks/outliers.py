"""How well outliers are found: ``TUCKERMIX_DATA=… python -m benchmarks.outliers``.

Of each draw 5 % of the samples are replaced, by uniform noise or by images of another dataset that
are scaled to the same size and range. *found at 5 %* is the share of them whose outlier score is
above what 5 % of the other samples exceed; *labelled* and *false alarms* are the shares that
``outliers="label"`` gives the label -1, of the replaced samples and of the others, with its own
threshold, which knows nothing of which they are. *one sample in two* repeats that for new samples:
the fit has seen every other sample only. Beside: the local outlier factor and isolation forests of
scikit-learn on the pixels, with their defaults. *told* is no rival but a bound: a support vector
machine that is told which samples of the other folds were replaced; what it does not find, nobody
finds who is not even told that there are others. Draws are from the part of the datasets that is
for reports (``--part tuning`` for choices). ``--told`` computes that column alone and adds it to
what is stored. Results go to `outliers.json` and `outliers.md`.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.ndimage import zoom
from sklearn.ensemble import IsolationForest
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import SVC

from benchmarks import reporting
from benchmarks.quality import draw_places
from tuckermix import TuckerClustering
from tuckermix.datasets import load
from tuckermix_bench.draws import PARTS, REPORTING, restrict

SEED = 313
"""The first seed of the draws."""

SHARE, FALSE_ALARMS = 0.05, 0.05
"""How many samples are replaced, and how many others may be taken for one of them."""

FOLDS = 5
"""Folds of the classifier that is told."""

CASES = (
    ("digits", 10, 85, ("noise", "cbcl", "orl", "mnist")),
    ("pie", 24, 42, ("noise", "cbcl", "orl", "mnist")),
    ("mnist", 10, 100, ("noise", "cbcl", "pie", "digits")),
)
"""Dataset, classes, samples of each, and what replaces some of them."""


def unit(X: Any) -> np.ndarray:
    """Return samples with values up to 1."""
    X = np.asarray(X, dtype=np.float64)
    return X / X.max()


def scaled(images: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Bring images to another size, by linear interpolation."""
    factors = (1, *(new / old for new, old in zip(shape, images.shape[1:], strict=True)))
    return zoom(images, factors, order=1, grid_mode=True, mode="nearest")


def contaminated(
    data: Any, others: Any, n_classes: int, each: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw samples and replace some; return them and which were replaced."""
    rng = np.random.default_rng(seed)
    X = unit(data.X[draw_places(data.labels, n_classes, each, seed)])
    strange = np.zeros(len(X), dtype=bool)
    strange[rng.choice(len(X), round(SHARE * len(X)), replace=False)] = True
    n_strange = int(strange.sum())
    if others is None:
        X[strange] = rng.random((n_strange, *X.shape[1:]))
    else:
        chosen = rng.choice(len(others.X), n_strange, replace=False)
        X[strange] = scaled(unit(others.X[np.sort(chosen)]), X.shape[1:])
    return X.astype(np.float32), strange


def found_at(scores: np.ndarray, strange: np.ndarray) -> float:
    """Return the share of strangers above what 5 % of the others exceed."""
    return float(np.mean(scores[strange] > np.quantile(scores[~strange], 1 - FALSE_ALARMS)))


def told(X: np.ndarray, strange: np.ndarray, seed: int) -> float:
    """Return the share of strangers found by a classifier that learns from others of them."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    machine = SVC(C=10.0, class_weight="balanced")
    flat = X.reshape(len(X), -1)
    scores = cross_val_predict(machine, flat, strange, cv=folds, method="decision_function")
    return found_at(scores, strange)


def measure(X: np.ndarray, strange: np.ndarray, n_clusters: int, seed: int) -> dict[str, float]:
    """Score one draw."""
    options: dict[str, Any] = {"outliers": "label", "false_alarms": FALSE_ALARMS}
    model = TuckerClustering(n_clusters, random_state=seed, **options).fit(X)
    half = TuckerClustering(n_clusters, random_state=seed, **options).fit(X[::2])
    new, unseen = half.predict(X[1::2]), strange[1::2]
    flat = X.reshape(len(X), -1)
    factor = LocalOutlierFactor().fit(flat).negative_outlier_factor_
    forest = IsolationForest(random_state=seed).fit(flat).score_samples(flat)
    return {
        "found at 5 %": found_at(model.outlier_scores(X), strange),
        "labelled": float(np.mean(model.labels_[strange] == -1)),
        "false alarms": float(np.mean(model.labels_[~strange] == -1)),
        "new, labelled": float(np.mean(new[unseen] == -1)),
        "new, false alarms": float(np.mean(new[~unseen] == -1)),
        "local factor": found_at(-factor, strange),
        "forest": found_at(-forest, strange),
        "told": told(X, strange, seed),
    }


def main() -> None:
    """Measure all cases and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--part", choices=PARTS, default=REPORTING)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--told", action="store_true", help="add the bound to what is stored")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    stored: dict[str, dict[str, float]] = {}
    if options.told:
        text = (options.out / "outliers.json").read_text(encoding="utf-8")
        stored = json.loads(text)["rows"]
    parts: dict[str, Any] = {"noise": None}
    rows: dict[str, dict[str, float]] = {}
    lines: list[str] = []
    for name, n_classes, each, kinds in CASES:
        for kind in kinds:
            for needed in (name, kind):
                if needed not in parts:
                    parts[needed] = restrict(load(needed), needed, options.part)
            found = []
            for seed in range(options.draws):
                X, strange = contaminated(parts[name], parts[kind], n_classes, each, SEED + seed)
                if options.told:
                    found.append({"told": told(X, strange, seed)})
                else:
                    found.append(measure(X, strange, n_classes, seed))
            title = f"{name} with {kind}"
            mean = {key: float(np.mean([row[key] for row in found])) for key in found[0]}
            mean = {**stored.get(title, {}), **mean}
            rows[title] = mean
            if not lines:
                lines = ["| | " + " | ".join(mean) + " |", "|---" * (len(mean) + 1) + "|"]
            lines.append(f"| {title} | " + " | ".join(f"{v:.3f}" for v in mean.values()) + " |")
            print(lines[-1], flush=True)
    command = f"TUCKERMIX_DATA=… python -m benchmarks.outliers --draws {options.draws}"
    about = reporting.environment()
    heading = reporting.heading(command, f"Means over draws of the {options.part} part", about)
    (options.out / "outliers.md").write_text("\n".join([heading, "", *lines, ""]))
    document = {"command": command, "environment": about, "rows": rows}
    (options.out / "outliers.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
