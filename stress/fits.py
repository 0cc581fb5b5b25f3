"""Random fits: ``python -m stress.fits --count 10000``.

Each seed draws samples (shape, type, scale, structure: noise, planted groups, copies, constants,
one-hot rows, outliers) and parameters, fits with one, two and four BLAS threads allowed, and checks
what must hold for any fit: labels are predictions are the largest soft labels, everything is
finite, weights and soft labels are distributions, labels are numbered by size, no label is lost
where there are enough distinct samples, no warning comes from below, a saved model says the same.

One seed in ten draws a pipeline after `Scattering`, one in twenty `AutoClustering`, and one in
twenty samples with a mode of thousands.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
import multiprocessing
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from threadpoolctl import threadpool_limits

import tuckermix
from tuckermix import AutoClustering, TuckerClustering
from tuckermix.features import Scale, Scattering
from tuckermix.labels import GraphLabels

THREADS = (1, 2, 4)

OUR_WARNINGS = ("Stopped after max_iter=", "Only ", "The cost ")
"""How warnings of the package begin; any other comes from a library below and is a fault."""

SAVED = 10
"""One fit in so many is also saved and loaded."""

PART = 50
"""Seeds that a process is handed at a time."""

EXTREME = 150
"""Samples may be this many powers of ten away from 1: the squares of such numbers overflow."""

DIGITS = {"float64": 6, "float32": 2}
"""Samples that agree to so many digits where labels look at them need not get different labels."""

VARIANTS = {"pipeline": 0.1, "auto": 0.15, "wide": 0.2, "plain": 1.0}
"""The kinds of fits, with the share of seeds that draws one of them or of those before."""

KINDS = ("noise", "planted", "copies", "constant", "one-hot", "outliers", "low-rank", "integers")


class Broken(AssertionError):
    """Something that must hold does not."""


def variant(seed: int) -> str:
    """Return which kind of fit a seed draws."""
    share = np.random.default_rng([seed, 1]).random()
    return next(name for name, most in VARIANTS.items() if share < most)


def draw(seed: int) -> tuple[np.ndarray, dict[str, Any]]:
    """Return the samples and the parameters of a seed."""
    rng, kind = np.random.default_rng(seed), variant(seed)
    n_samples = int(rng.integers(1, 60))
    shape = tuple(int(size) for size in rng.integers(1, 9, size=rng.integers(1, 4)))
    if kind == "wide":
        long = int(np.exp(rng.uniform(np.log(300), np.log(6000))))
        shape = ((long,), (2, long), (long, 1), (long, 3))[int(rng.integers(4))]
    elif kind == "pipeline" or (kind == "auto" and rng.random() < 0.3):
        shape = tuple(int(size) for size in rng.integers(1, 20, size=2))
    X = _samples(rng, str(rng.choice(KINDS)), n_samples, shape)
    n_clusters = int(rng.integers(1, min(n_samples, 8) + 1))
    assign_labels = str(rng.choice(["graph", "graph", "subspace", "memberships", "argmax"]))
    graph = GraphLabels(n_neighbors=int(rng.integers(1, 25)))
    n_components = None
    if rng.random() < 0.3:
        n_components = int(rng.integers(1, n_clusters + 1 if assign_labels == "argmax" else 12))
    ranks: Any = [
        None,
        int(rng.integers(1, min(shape) + 1)),
        float(rng.uniform(0.05, 0.99)),
        tuple(int(rng.integers(1, size + 1)) for size in shape),
    ][int(rng.integers(4))]
    if kind == "pipeline" and isinstance(ranks, tuple | int):  # features have another shape
        ranks = None
    parameters = {
        "n_clusters": n_clusters,
        "n_components": n_components,
        "ranks": ranks,
        "solver": str(rng.choice(["exact"] * 17 + ["trust-region"] * 2 + ["joint"])),
        "init": str(rng.choice(["hosvd", "hosvd", "hosvd-samples", "random"])),
        "assign_labels": assign_labels if assign_labels != "graph" else graph,
        "n_init": int(rng.integers(1, 4)),
        "max_iter": int(rng.choice([1, 5, 20])),
        "random_state": int(rng.integers(2**31)),
    }
    return X, parameters


def _samples(
    rng: np.random.Generator, kind: str, n_samples: int, shape: tuple[int, ...]
) -> np.ndarray:
    size = (n_samples, *shape)
    noise = rng.standard_normal(size)
    if kind == "planted":
        n_groups = int(rng.integers(1, 6))
        centers = rng.standard_normal((n_groups, *shape)) * rng.uniform(0.5, 10)
        X = centers[rng.integers(n_groups, size=n_samples)] + 0.1 * noise
    elif kind == "copies":
        X = noise[rng.integers(rng.integers(1, n_samples + 1), size=n_samples)]
    elif kind == "constant":
        X = np.full(size, float(rng.choice([0.0, 1.0, -3.7])))
        if rng.random() < 0.5:
            X[rng.integers(n_samples)] += 1.0
    elif kind == "one-hot":
        flat = np.zeros((n_samples, int(np.prod(shape))))
        flat[np.arange(n_samples), rng.integers(flat.shape[1], size=n_samples)] = 1.0
        X = flat.reshape(size)
    elif kind == "outliers":
        X = noise
        X[rng.integers(n_samples)] *= 10.0 ** rng.integers(1, 12)
    elif kind == "low-rank":
        X = np.multiply.outer(rng.standard_normal(n_samples), rng.standard_normal(shape))
    elif kind == "integers":
        return rng.integers(-3, 4, size=size).astype(rng.choice(["int64", "int8", "bool"]))
    else:
        X = noise
    if rng.random() < 0.3:
        X = X * 10.0 ** rng.integers(-EXTREME, EXTREME + 1)
    elif rng.random() < 0.3:
        X = X.astype(np.float32)
    return X


def estimator_of(seed: int, parameters: dict[str, Any]) -> Any:
    """Return the estimator of a seed, not fitted."""
    kind, rng = variant(seed), np.random.default_rng([seed, 2])
    if kind == "auto":
        features = str(rng.choice(["auto", "pixels"]))
        return AutoClustering(features=features, random_state=parameters["random_state"])
    if kind == "pipeline":
        spread: dict[str, bool] = [{}, {"log": True}, {"relative": True}][int(rng.integers(3))]
        before = [Scale()] * int(rng.integers(2))
        before.append(Scattering(J=int(rng.integers(1, 4)), L=int(rng.integers(1, 5)), **spread))
        return make_pipeline(*before, TuckerClustering(**parameters))
    return TuckerClustering(**parameters)


def check(seed: int) -> str:
    """Fit what a seed draws, check it, and return a line that names the fit."""
    X, parameters = draw(seed)
    estimator = estimator_of(seed, parameters)
    results = []
    for threads in THREADS:
        with threadpool_limits(threads, user_api="blas"):
            results.append(_fit(X, clone(estimator)))
    for threads, result in zip(THREADS[1:], results[1:], strict=True):
        for key, value in results[0].items():
            _demand(np.array_equal(value, result[key]), f"{key} differs with {threads} threads")
    return f"seed {seed}: {X.dtype} {X.shape} {estimator}"


def _fit(X: np.ndarray, estimator: Any) -> dict[str, np.ndarray]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(X)
        labels = estimator.predict(X)
        if isinstance(estimator, AutoClustering):
            held = _check_choice(estimator, X, labels)
        else:
            steps = isinstance(estimator, Pipeline)
            model = estimator[-1] if steps else estimator
            seen = estimator[:-1].transform(X) if steps else X
            held = _check_model(model, seen, labels, [str(entry.message) for entry in caught])
    strange = [str(entry.message) for entry in caught]
    strange = [text for text in strange if not text.startswith(OUR_WARNINGS)]
    _demand(not strange, f"warnings that are not ours: {strange[:2]}")
    return held


def _check_choice(model: Any, X: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    _demand(np.array_equal(model.labels_, labels), "labels are not predictions")
    _demand(len(set(labels.tolist())) <= model.n_clusters_ <= len(X), "a wrong number of clusters")
    proba = model.predict_proba(X)
    _demand(np.array_equal(np.argmax(proba, axis=1), labels), "labels are not the largest shares")
    for key, value in (("predict_proba", proba), ("centroids_", model.centroids_)):
        _demand(np.isfinite(value).all(), f"{key} is not finite")
    return {"labels_": labels, "predict_proba": proba}


def _check_model(
    model: Any, X: np.ndarray, labels: np.ndarray, said: list[str]
) -> dict[str, np.ndarray]:
    proba = model.predict_proba(X)
    _demand(np.array_equal(model.labels_, labels), "labels are not predictions")
    _demand(np.array_equal(np.argmax(proba, axis=1), labels), "labels are not the largest shares")
    tolerance = 1e-4 if proba.dtype == np.float32 else 1e-9
    for key, shares in (("predict_proba", proba), ("memberships_", model.memberships_)):
        _demand(np.isfinite(shares).all(), f"{key} is not finite")
        _demand((shares >= 0).all(), f"{key} has negative entries")
        _demand(np.allclose(shares.sum(axis=1), 1, atol=tolerance), f"{key} does not sum to 1")
    values = {"core_": model.core_, "components_": model.components_}
    values |= {"centroids_": model.centroids_, "gap_": model.gap_}
    values |= {f"factors_[{mode}]": factor for mode, factor in enumerate(model.factors_)}
    if not any(text.startswith("The cost ") for text in said):
        values["cost_"] = model.cost_
    for key, value in values.items():
        if key == "gap_" and np.isnan(model.gap_):
            continue  # unknown, as documented
        _demand(np.isfinite(value).all(), f"{key} is not finite")
    sizes = np.bincount(labels, minlength=model.n_clusters)
    _demand((np.diff(sizes) <= 0).all(), f"labels are not numbered by size: {sizes.tolist()}")
    few = any(text.startswith("Only ") for text in said)
    if sizes.min() == 0:
        _demand(few, f"labels are lost without a word: {sizes.tolist()}")
    if few:
        # Samples that differ may be the same in what labels look at.
        weights = model.labelling.name in ("memberships", "argmax")
        seen = model.transform(X) if weights else model.place(X)
        distinct = len(np.unique(np.round(seen, DIGITS[seen.dtype.name]), axis=0))
        _demand(distinct < model.n_clusters, f"labels are lost with distinct samples: {sizes}")
    if model.random_state % SAVED == 0:
        _check_saved(model, X, proba)
    return {"labels_": labels, "predict_proba": proba, **values}


def _check_saved(model: Any, X: np.ndarray, proba: np.ndarray) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        tuckermix.save(model, path)
        _demand(
            np.array_equal(tuckermix.load(path).predict_proba(X), proba), "a saved model differs"
        )


def _demand(holds: Any, text: str) -> None:
    if not holds:
        raise Broken(text)


def failures_of(seeds: range) -> list[tuple[int, str]]:
    """Check seeds; return those that fail, with what does not hold."""
    found = []
    for seed in seeds:
        try:
            check(seed)
        except Exception as error:  # whatever it is, the other seeds go on
            found.append((seed, f"{type(error).__name__}: {str(error)[:60]}"))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    kinds: collections.Counter[str] = collections.Counter()
    start, stop = time.perf_counter(), options.first + options.count
    parts = [range(one, min(one + PART, stop)) for one in range(options.first, stop, PART)]
    with contextlib.ExitStack() as stack:
        found: Iterable[list[tuple[int, str]]] = map(failures_of, parts)
        if options.jobs > 1:
            context = multiprocessing.get_context("spawn")  # no forks of libraries with threads
            found = stack.enter_context(context.Pool(options.jobs)).imap(failures_of, parts)
        for seed, kind in itertools.chain.from_iterable(found):
            kinds[kind] += 1
            X, parameters = draw(seed)
            made = estimator_of(seed, parameters)
            print(f"seed {seed} {X.dtype}{X.shape} {made}\n  {kind}", flush=True)
    seconds = time.perf_counter() - start
    done = options.count - sum(kinds.values())
    print(f"{done} of {options.count} fits hold with {THREADS} threads, {seconds:.0f} s")
    for kind, count in kinds.most_common():
        print(f"  {count} × {kind}")
    return int(bool(kinds))


if __name__ == "__main__":
    os.environ.setdefault("SCIPY_ARRAY_API", "1")
    sys.exit(main())
