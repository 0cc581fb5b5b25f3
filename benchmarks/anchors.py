"""Compare two ways to anchor the simplex of the mixing weights.

Run it from the root of the repository::

    python -m benchmarks.anchors

Every simplex around the samples has the same cost, so what tells them apart is how much they have
to grow to hold all samples, how well conditioned they are, and how unlike the weights of a sample
are: the mean over samples of the largest weight, in units of the mean weight 1/L. *Means of groups*
is what ``memberships="anchored"`` took before: k-means with one start and ten steps. *Far samples*
is what it takes now. The last columns are accuracies of labels that rest on the weights, with K
components and three seeds; labels of the default do not. The samples are from the parts of the
datasets for reports, at most forty of each of ten classes. Datasets lie in `TUCKERMIX_DATA`; those
that are not there are left out. Results go to `anchors.md`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.reporting import table_by_data
from tuckermix import decompose
from tuckermix.datasets import load
from tuckermix_bench.draws import REPORTING, restrict
from tuckermix.labels import fit_labels
from tuckermix.memberships.simplex import MARGIN, anchored_simplex
from tuckermix.metrics import clustering_accuracy
from tuckermix.numerics import kmeans

SEEDS = 3
N_CLASSES, EACH = 10, 40
NAMES = ("pie", "orl", "yaleb", "coil20", "yale", "mnist", "digits")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    titles = ["data", "anchors", "growth", "condition", "largest weight · L"]
    titles += ['AC, `"memberships"`', 'AC, `"argmax"`']
    lines = table_by_data(titles, NAMES, compared)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "anchors.md").write_text("\n".join(lines) + "\n")


def compared(name: str) -> Iterator[tuple[str, ...]]:
    """Yield a row for each way."""
    X, labels = drawn(name)
    wide, narrow = (decompose(X, count).Q[:, 1:] for count in (2 * N_CLASSES + 1, N_CLASSES))
    for title, weigh in (("means of groups", by_groups), ("far samples", by_samples)):
        U, growth, condition = weigh(wide)
        largest = U.max(axis=1).mean() * U.shape[1]
        scores = accuracies(weigh(narrow)[0], labels)
        numbers = f"{growth:.0f}", f"{condition:.0f}", f"{largest:.2f}"
        yield name, title, *numbers, *(f"{score:.3f}" for score in scores)


def drawn(name: str) -> tuple[np.ndarray, np.ndarray]:
    data = restrict(load(name), name, REPORTING)
    labels = np.asarray(data.labels)
    keep = [np.flatnonzero(labels == each)[:EACH] for each in np.unique(labels)[:N_CLASSES]]
    chosen = np.concatenate(keep)
    return np.asarray(data.X[chosen], dtype=np.float64), labels[chosen]


def by_groups(Z: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return weights, growth and condition of a simplex through the means of groups."""
    rng, count = np.random.default_rng(0), Z.shape[1] + 1
    anchors = kmeans(Z, count, n_init=1, rng=rng, max_iter=10).centers
    weights = np.column_stack([np.ones(len(Z)), Z]) @ np.linalg.inv(with_ones(anchors))
    growth = MARGIN * max(1.0, 1.0 - count * weights.min())
    return 1 / count + (weights - 1 / count) / growth, growth, condition_of(anchors, len(Z))


def by_samples(Z: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return the same for the simplex of the library, whose anchors are samples."""
    found = anchored_simplex(Z, np.random.default_rng(0))
    centre, count = found.vertices.mean(axis=0), len(found.vertices)
    # An anchor lies before its vertex, seen from the barycentre: its other weights are all equal.
    others = np.sort(found.weights, axis=1)[:, :-1]
    anchors = Z[np.argsort(others.max(axis=1) - others.min(axis=1))[:count]]
    growth = np.linalg.norm(found.vertices - centre) / np.linalg.norm(anchors - centre)
    return found.weights, float(growth), condition_of(anchors, len(Z))


def with_ones(points: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(points)), points])


def condition_of(anchors: np.ndarray, n_samples: int) -> float:
    return float(np.linalg.cond(with_ones(anchors * n_samples**0.5)))


def accuracies(U: np.ndarray, labels: np.ndarray) -> list[float]:
    scores = []
    for way in ("memberships", "argmax"):
        learned = [
            fit_labels(way, U, N_CLASSES, rng=np.random.default_rng(seed)) for seed in range(SEEDS)
        ]
        found = [labeller.predict_proba(U).argmax(axis=1) for labeller in learned]
        scores.append(float(np.mean([clustering_accuracy(labels, one) for one in found])))
    return scores


if __name__ == "__main__":
    main()
