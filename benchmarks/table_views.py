"""Which views tables have that lie near few directions, with the number of clusters given or open.

``TUCKERMIX_DATA=… python -m benchmarks.table_views`` draws tables without negative entries from the
tuning parts of the datasets, their pictures as rows of pixels; from small tables that come with
scikit-learn; and from generators: planted clusters of amounts, and mixtures of a few spectra, whose
class is the spectrum that they have most of. *before* keeps 98 % of the energy above the noise, as
`ranks=None` does; *now* is what `AutoClustering` has. A table that is not narrow has the same views
before and now, and is not computed. ``--open`` leaves the number open, and compares the adjusted
Rand index. ``--first 100`` takes other draws.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn import datasets as of_sklearn
from sklearn.metrics import adjusted_rand_score

from tuckermix import AutoClustering
from tuckermix.datasets import load, make_tensor_clusters
from tuckermix.metrics import clustering_accuracy
from tuckermix.selection.candidates import built_in_candidates, has_norms, is_narrow, is_noisy
from tuckermix_bench.draws import TUNING, part_indices, part_seed

PICTURES = (
    *(("mnist", 3, 100), ("mnist", 5, 100), ("mnist", 10, 60), ("cbcl", 2, 200), ("orl", 10, 10)),
    *(("orl", 20, 10), ("pie", 12, 42), ("yaleb", 6, 60), ("yaleb", 10, 40), ("digits", 10, 85)),
    *(("fruits", 20, 10), ("signs", 10, 20), ("clothing", 10, 18), ("cifar10", 10, 40)),
)
"""Dataset, classes, samples of each."""

SPECTRA = (
    *((3, 0.3, 0.01), (3, 0.7, 0.01), (4, 0.4, 0.003)),
    *((5, 0.4, 0.01), (4, 0.5, 0.02), (6, 0.3, 0.005), (3, 0.2, 0.03)),
)
"""Spectra that are mixed, how evenly, and the noise."""

Sample = tuple[np.ndarray, np.ndarray]
"""Samples and their classes."""


def pictures(name: str, n_classes: int, each: int, seed: int) -> Sample:
    """Draw rows of pixels from a tuning part."""
    data = load(name)
    places = part_indices(name, TUNING, data.labels)
    rng, labels = np.random.default_rng([31415, seed]), data.labels[places]
    classes = rng.permutation(np.unique(labels))[:n_classes]
    chosen = [rng.permutation(places[labels == label])[:each] for label in classes]
    rows = np.concatenate(chosen)
    X = np.asarray(data.X[rows], dtype=np.float32).reshape(len(rows), -1)
    return X / X.max(), data.labels[rows]


def table(read: Callable[..., Any], seed: int) -> Sample:
    """Draw two thirds of a table of scikit-learn."""
    X, y = read(return_X_y=True)
    places = np.random.default_rng(277 + seed).permutation(len(X))[: 2 * len(X) // 3]
    return X[places], y[places]


def planted(noise: float, gains: float, seed: int) -> Sample:
    """Draw six planted clusters of amounts, whose samples may differ in brightness."""
    seed = part_seed(TUNING, 1000 + seed)
    drawn = make_tensor_clusters(240, (64,), 6, noise=noise, positive=True, random_state=seed)
    rng = np.random.default_rng(seed)
    return drawn.X * np.exp(gains * rng.standard_normal((240, 1))), drawn.labels


def spectra(count: int, evenness: float, noise: float, seed: int) -> Sample:
    """Mix smooth spectra of different brightness, 150 samples for each as the main part."""
    rng = np.random.default_rng([99, part_seed(TUNING, seed)])
    bands = np.linspace(0, 1, 100)
    pure = np.zeros((count, len(bands)))
    for spectrum in pure:
        for _ in range(4):
            height, place, width = rng.uniform((0.2, -0.1, 0.08), (1.0, 1.1, 0.4))
            spectrum += height * np.exp(-0.5 * ((bands - place) / width) ** 2)
        spectrum *= rng.uniform(0.15, 1.0) / spectrum.max()
    shares = rng.dirichlet(np.full(count, evenness), 1000 * count)
    main = shares.argmax(axis=1)
    chosen = np.concatenate([np.flatnonzero(main == name)[:150] for name in range(count)])
    brightness = np.exp(0.3 * rng.standard_normal((len(chosen), 1)))
    X = shares[chosen] @ pure * brightness
    X += noise * pure.mean(axis=1).mean() * rng.standard_normal(X.shape)
    return np.clip(X, 0.0, None), main[chosen]


def columns() -> Iterator[tuple[str, Callable[[int], Sample]]]:
    """Yield the name of a column and what draws."""
    for numbers in SPECTRA:
        yield f"{numbers[0]} spectra, {numbers[1]}, {numbers[2]}", partial(spectra, *numbers)
    for name, n_classes, each in PICTURES:
        yield f"{name} {n_classes}", partial(pictures, name, n_classes, each)
    for name in ("iris", "wine", "breast_cancer"):
        yield name, partial(table, getattr(of_sklearn, f"load_{name}"))
    yield "planted", partial(planted, 2.0, 0.0)
    yield "gains", partial(planted, 1.0, 0.5)


def compare(X: np.ndarray, y: np.ndarray, seed: int, given: bool) -> list[tuple[float, ...]]:
    """Return score, processor time and number of clusters before and now."""
    about = {"noisy": is_noisy(X), "norms": has_norms(X)}
    found = []
    for narrow in (False, True):
        candidates = built_in_candidates(X.shape[1:], "auto", **about, narrow=narrow)
        number = len(np.unique(y)) if given else "auto"
        began = time.process_time()
        model = AutoClustering(number, candidates=candidates, random_state=seed).fit(X)
        seconds = time.process_time() - began
        score = clustering_accuracy if given else adjusted_rand_score
        found.append((score(y, model.labels_), seconds, model.n_clusters_))
    return found


def main() -> None:
    """Print a line for each column."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--open", action="store_true", help="leave the number of clusters open")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    print("| | before | now − before | time | numbers before | now |\n|---|---|---|---|---|---|")
    for name, draw in columns():
        drawn = {seed: draw(seed) for seed in range(options.first, options.first + options.draws)}
        if not any(is_narrow(X) for X, _ in drawn.values()):
            print(f"| {name} | not narrow | | | | |", flush=True)
            continue
        found = np.array(  # draw, before and now, measure
            [compare(X, y, seed, not options.open) for seed, (X, y) in drawn.items()]
        )
        gains, times = found[:, 1, 0] - found[:, 0, 0], found[..., 1].sum(axis=0)
        error = gains.std(ddof=1) / len(gains) ** 0.5
        rows.append((found[:, 0, 0].mean(), gains.mean(), error))
        falls = " falls" if gains.mean() < -2 * error else ""
        change = f"{gains.mean():+.3f} ± {error:.3f}{falls}"
        numbers = " | ".join(", ".join(map(str, each)) for each in found[..., 2].astype(int).T)
        ratio = times[1] / times[0]
        print(f"| {name} | {rows[-1][0]:.3f} | {change} | × {ratio:.2f} | {numbers} |", flush=True)
    before, gain, errors = np.array(rows).T
    error = np.sum(errors**2) ** 0.5 / len(rows)
    print(f"| mean of these | {before.mean():.3f} | {gain.mean():+.3f} ± {error:.3f} | | | |")


if __name__ == "__main__":
    main()
