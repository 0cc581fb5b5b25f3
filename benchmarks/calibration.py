"""How well soft labels are calibrated: ``TUCKERMIX_DATA=… python -m benchmarks.calibration``.

Two fits A and B on disjoint thirds of a draw label the last third. A's largest probability should
be how often B, its clusters matched to A's, gives the same label: the expected calibration error
(ECE) is the mean distance of both over ten bins, pooled over all splits. Votes stand beside
probabilities. Accuracy against the classes is another matter: clusters are not classes. Draws are
from the part of the datasets that is for reports (``--part tuning`` for choices). Results go to
`calibration.md`, and to `calibration_tuning.md`.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import reporting
from benchmarks.quality import draw
from tuckermix import TuckerClustering
from tuckermix.datasets import DatasetNotFound, load
from tuckermix_bench.draws import PARTS, REPORTING, restrict
from tuckermix.labels.calibration import matched
from tuckermix.metrics import clustering_accuracy

SEED = 911
"""The first seed of the draws."""

N_BINS = 10
"""Bins of equal width."""

CASES = (
    ("digits", 10, 85),
    ("pie", 24, 42),
    ("orl", 20, 10),
    ("yaleb", 10, 64),
    ("cbcl", 2, 600),
    ("mnist", 10, 300),
)
"""Dataset, classes, samples of each."""


def calibration_error(confidence: Any, right: Any) -> float:
    """Return the mean distance between confidence and what comes true, over bins."""
    bins = np.minimum((np.asarray(confidence) * N_BINS).astype(int), N_BINS - 1)
    total = 0.0
    for name in range(N_BINS):
        inside = bins == name
        if inside.any():
            total += inside.mean() * abs(confidence[inside].mean() - right[inside].mean())
    return float(total)


def measure(data: Any, n_classes: int, each: int, n_splits: int) -> dict[str, float]:
    """Pool the splits of one dataset."""
    sure: list[Any] = []
    votes: list[Any] = []
    agree: list[Any] = []
    accuracy: list[float] = []
    for seed in range(n_splits):
        X, truth = draw(data, n_classes, each, SEED + seed)
        order = np.random.default_rng(SEED + seed).permutation(len(X))
        thirds = [order[start::3] for start in range(3)]
        one = TuckerClustering(n_classes, calibrate=True, random_state=seed).fit(X[thirds[0]])
        two = TuckerClustering(n_classes, random_state=seed + 1).fit(X[thirds[1]])
        last = X[thirds[2]]
        P = one.predict_proba(last)
        labels, others = P.argmax(axis=1), two.predict(last)
        labeller = one._model_.labeller
        plain = labeller.__class__(**{**labeller.to_dict(), "knots": None})
        sure.append(P.max(axis=1))
        votes.append(plain.predict_proba(one.place(last)).max(axis=1))
        agree.append(labels == matched(labels, others, n_classes))
        accuracy.append(clustering_accuracy(truth[thirds[2]], labels))
    right, p, v = (np.concatenate(parts) for parts in (agree, sure, votes))
    return {
        "agreement": float(right.mean()),
        "probability": float(p.mean()),
        "ECE": calibration_error(p, right),
        "ECE of votes": calibration_error(v, right),
        "accuracy": float(np.mean(accuracy)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--part", choices=PARTS, default=REPORTING)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines: list[str] = []
    for name, n_classes, each in CASES:
        try:
            data = restrict(load(name), name, options.part)
        except DatasetNotFound as error:
            print(f"skipped: {error}")
            continue
        found = measure(data, n_classes, each, options.splits)
        if not lines:
            lines = ["| | " + " | ".join(found) + " |", "|---" * (len(found) + 1) + "|"]
        cells = " | ".join(f"{value:.3f}" for value in found.values())
        lines.append(f"| {name} {n_classes} × {each} | {cells} |")
        print(lines[-1], flush=True)
        command = f"TUCKERMIX_DATA=… python -m benchmarks.calibration --splits {options.splits}"
        command += "" if options.part == REPORTING else f" --part {options.part}"
        what = f"Pooled over splits of the {options.part} part"
        heading = reporting.heading(command, what, reporting.environment())
        file = "calibration.md" if options.part == REPORTING else f"calibration_{options.part}.md"
        (options.out / file).write_text("\n".join([heading, "", *lines, ""]))


if __name__ == "__main__":
    main()
