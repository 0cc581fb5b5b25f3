"""Methods and data that take no time, importable by the processes of a run."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tuckermix_bench import (
    DATASETS,
    METHODS,
    DatasetEntry,
    Experiment,
    Method,
    Progress,
    Row,
    register_dataset,
    register_method,
    reproduce,
)


@dataclass
class Blobs:
    X: np.ndarray
    labels: np.ndarray


def load_blobs(data_home):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(5), 12)
    return Blobs(rng.random((60, 3, 4)) + labels[:, None, None], labels)


def load_nothing(data_home):
    raise FileNotFoundError("Nowhere: get it from its authors and put it into the data folder.")


class Random:
    """Labels at random from the seed."""

    pause = 0.0

    def __init__(self, n_clusters, ranks, seed):
        self.n_clusters, self.seed = n_clusters, seed

    def fit(self, X):
        time.sleep(self.pause)
        self.labels_ = np.random.default_rng(self.seed).integers(self.n_clusters, size=len(X))
        self.n_iter_ = 1
        return self


class Slow(Random):
    pause = 0.03


class Endless(Random):
    pause = 600.0


class Failing(Random):
    def fit(self, X):
        raise ArithmeticError("The matrix is singular.")


class Collapsing(Random):
    def fit(self, X):
        self.labels_ = np.zeros(len(X), dtype=int)
        return self


class Dying(Random):
    def fit(self, X):
        os._exit(7)


class GivingUp(Random):
    def fit(self, X):
        super().fit(X)
        self.stop_reason_ = "failed"
        return self


FAKES = {
    "random": Random,
    "slow": Slow,
    "endless": Endless,
    "failing": Failing,
    "collapsing": Collapsing,
    "dying": Dying,
    "giving-up": GivingUp,
}


def register():
    for name, factory in FAKES.items():
        register_method(Method(name, factory), replace=True)
    register_dataset(DatasetEntry("blobs", load_blobs), replace=True)
    register_dataset(DatasetEntry("nowhere", load_nothing), replace=True)


def unregister():
    for name in FAKES:
        METHODS.pop(name, None)
    for name in ("blobs", "nowhere"):
        DATASETS.pop(name, None)


def table(*methods, runs=3, dataset="blobs", name="fake"):
    rows = tuple(
        Row(f"K={count}", dataset, (2, 2), n_classes=count, per_class=6, runs=runs)
        for count in (2, 3)
    )
    return Experiment(name, "A table for tests", rows, methods)


def main(db, log):
    """Run a slow table; note each record in `log` as soon as the store has it."""
    register()

    def note(progress: Progress) -> None:
        with Path(log).open("a") as stream:
            stream.write(f"{progress.last.row} {progress.last.run}\n")

    reproduce(table("slow", runs=40), db=db, jobs=1, progress=note)


if __name__ == "__main__":
    main(*sys.argv[1:])
