"""Compare the results of two source trees: ``compare_versions.py save FILE``, then ``against``.

A change of structure must change no result. Results decide, not the text of the code::

    PYTHONPATH=old/src python benchmarks/compare_versions.py save before.npz
    PYTHONPATH=new/src python benchmarks/compare_versions.py against before.npz

What is fitted: every option of `TuckerClustering`, every baseline, `decompose` and the feature
transforms, on digits, on planted samples and on the datasets in ``TUCKERMIX_DATA``, with three
seeds, in float32 and float64, in NumPy and, where it is installed, PyTorch. Every array is compared
bit for bit. A difference below `TOLERANCE` is called rounding; labels may then have other numbers.
The exit code is 0 if all results are the same or differ by rounding (``--strict``: are the same).
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # sums in another order are another result
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import argparse
import inspect
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

SEEDS = range(3)
TOLERANCE = {"float32": 1e-3, "float64": 1e-8}
"""Largest relative difference that is called rounding. Costs are small differences of large norms,
and directions with close singular values turn, so both lose digits."""

DRAWS: dict[str, tuple[str, int, int]] = {
    "orl": ("orl.npz", 10, 10),
    "pie": ("pie_pose27.npz", 12, 10),
    "mnist": ("mnist.npz", 5, 40),
    "cbcl": ("cbcl.npz", 2, 80),
    "coil20": ("coil20.npz", 8, 12),
    "voxels": ("modelnet10_vox32.npz", 4, 8),
    "fruits": ("fruits.npz", 5, 10),
}
"""File, classes and samples of each class. The first ones of each class are taken."""

OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "subspace": {"assign_labels": "subspace"},
    "memberships": {"assign_labels": "memberships"},
    "argmax": {"assign_labels": "argmax"},
    "random": {"init": "random", "n_init": 3},
    "hosvd-samples": {"init": "hosvd-samples"},
    "trust-region": {"solver": "trust-region", "assign_labels": "memberships", "max_iter": 5},
    "joint": {"solver": "joint", "max_iter": 5},
    "min-volume": {"memberships": "min-volume"},
    "min-volume outside": {"memberships": "min-volume", "outside": 0.05},
    "archetypes": {"memberships": "archetypes"},
    "outliers": {"outliers": "label"},
    "neighbours 8": {"n_neighbors": 8},
    "edge 2": {"ridge_edge": 2.0},
    "power 0.5": {"ridge_power": 0.5},
    "ranks": {"ranks": 4},
    "energy": {"ranks": 0.9, "n_components": 7},
    "calibrate": {"calibrate": True},
}
"""What is tried of `TuckerClustering`."""

RELATIVE = ("gap", "stationarity")
"""Already relative to an energy: their rounding is that of 1, not of their own size."""

METHODS = ("labels_", "memberships_", "cost_", "gap_", "stationarity_", "core_", "centroids_")
CALLS = ("predict", "predict_proba", "transform", "outlier_scores", "score")
ON_TORCH = ("default", "subspace", "archetypes", "outliers", "ranks", "trust-region")
ON_DATASETS = ("default", "subspace", "memberships", "random", "outliers", "trust-region")
IN_QUICK = ("default", "subspace", "trust-region", "outliers", "archetypes")
MORE = ("stream", "gaps")
DEAR = ("min-volume outside",)
"""Takes two seconds per fit on the digits."""
FEW_ROUNDS = {"max_iter": 15, "n_init": 2}
"""Baselines are compared after a few rounds: what differs later differs then."""

Arrays = dict[str, np.ndarray]
Fit = Callable[[], Arrays]


def planted(seed: int, shape: tuple[int, ...], n_samples: int, n_clusters: int) -> np.ndarray:
    """Return samples around planted means, drawn without the package."""
    rng = np.random.default_rng([seed, *shape])
    means = 2.0 * rng.random((n_clusters, *shape))
    which = rng.integers(n_clusters, size=n_samples)
    return np.maximum(means[which] + 0.5 * rng.standard_normal((n_samples, *shape)), 0.0)


def many_samples() -> np.ndarray:
    """Return more samples than the graph takes without landmarks."""
    return planted(3, (6, 5), 17000, 5)


def samples() -> Iterator[tuple[str, np.ndarray, int]]:
    """Yield name, samples and number of clusters of each dataset."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    yield "digits", digits.images[:400] / 16.0, 10
    yield "planted", planted(0, (9, 8), 160, 4), 4
    yield "planted rows", planted(1, (30,), 160, 4), 4
    yield "planted 4-way", planted(2, (6, 5, 4), 150, 3), 3
    home = os.environ.get("TUCKERMIX_DATA")
    for name, (file, n_classes, each) in DRAWS.items():
        path = Path(home or ".", file)
        if home is None or not path.is_file():
            print(f"left out: {name}, TUCKERMIX_DATA has no {file}")
            continue
        with np.load(path, allow_pickle=False) as archive:
            labels, images = archive["labels"], archive["images"]
        classes = np.unique(labels)[:n_classes]
        chosen = np.concatenate([np.flatnonzero(labels == c)[:each] for c in classes])
        scale = 255.0 if images.dtype == np.uint8 and images.max() > 1 else 1.0
        yield name, images[chosen] / scale, n_classes


def as_numpy(value: Any) -> np.ndarray:
    """Return an array of any library, a number or a list as a NumPy array."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    return np.asarray(value)


def read_model(model: Any, X: Any) -> Arrays:
    """Return what a fitted estimator holds and what it says of some samples."""
    found = {name: as_numpy(getattr(model, name)) for name in METHODS if hasattr(model, name)}
    for index, factor in enumerate(getattr(model, "factors_", ())):
        found[f"factor {index}"] = as_numpy(factor)
    for name in CALLS:
        if hasattr(model, name):
            try:
                found[name] = as_numpy(getattr(model, name)(X))
            except (NotImplementedError, ValueError, AttributeError) as error:
                found[name] = np.asarray(type(error).__name__)
    return found


def clustering_fits(name: str, X: Any, n_clusters: int, seed: int, wanted: Any) -> dict[str, Fit]:
    """Return the fits of `TuckerClustering`, by what is tried."""
    from tuckermix import TuckerClustering

    def fit(options: dict[str, Any]) -> Arrays:
        model = TuckerClustering(n_clusters, random_state=seed, **options).fit(X)
        return read_model(model, X[:25] * 0.98)

    def stream() -> Arrays:
        model = TuckerClustering(n_clusters, random_state=seed, memory=100.0)
        third = len(X) // 3
        for start in range(0, 3 * third, third):
            model.partial_fit(X[start : start + third])
        return read_model(model, X[:25] * 0.98)

    def gaps() -> Arrays:
        hidden = np.random.default_rng(seed).random(tuple(X.shape)) < 0.1
        values = as_numpy(X).copy()
        values[hidden] = np.nan
        given = values if isinstance(X, np.ndarray) else type(X)(values)
        model = TuckerClustering(n_clusters, random_state=seed, missing="impute").fit(given)
        return read_model(model, given[:25]) | {"filled": as_numpy(model.fill_missing(given))}

    fits: dict[str, Fit] = {key: (lambda o=o: fit(o)) for key, o in OPTIONS.items()}
    fits |= {"stream": stream, "gaps": gaps}
    return {key: one for key, one in fits.items() if wanted is None or key in wanted}


def decomposition_fits(X: Any, n_clusters: int, seed: int) -> dict[str, Fit]:
    """Return the fits of `decompose`."""
    from tuckermix import decompose

    def fit(**options: Any) -> Arrays:
        options = {"max_iter": 6, "random_state": seed} | options
        found = decompose(X, 2 * n_clusters + 1, **options)
        kept = {
            name: as_numpy(getattr(found, name))
            for name in ("Q", "memberships", "core", "mean", "singular_values", "cost", "gap")
            if getattr(found, name, None) is not None
        }
        kept |= {f"factor {index}": as_numpy(f) for index, f in enumerate(found.factors)}
        return kept | {"costs": np.asarray([float(one.cost) for one in found.history])}

    return {
        "exact": fit,
        "exact, ranks 3": lambda: fit(ranks=3),
        "trust-region": lambda: fit(solver="trust-region"),
        "joint": lambda: fit(solver="joint"),
        "random": lambda: fit(init="random", n_init=2),
    }


def baseline_fits(X: np.ndarray, n_clusters: int, seed: int) -> dict[str, Fit]:
    """Return the fits of the comparison methods, with their variants."""
    from tuckermix import baselines

    variants: dict[str, tuple[dict[str, Any], ...]] = {
        "AlternatingNMF": tuple({"variant": name} for name in ("anls", "truncated", "obs")),
        "BayesianNMF": tuple({"method": name} for name in ("gibbs", "icm", "multinomial")),
    }

    def fit(kind: Any, options: dict[str, Any]) -> Arrays:
        known = inspect.signature(kind).parameters
        given = {key: value for key, value in FEW_ROUNDS.items() if key in known} | options
        if "ranks" in known:
            given["ranks"] = 4
        return read_model(kind(n_clusters, random_state=seed, **given).fit(X), X[:25])

    fits: dict[str, Fit] = {}
    for name, kind in vars(baselines).items():
        if inspect.isclass(kind) and hasattr(kind, "fit") and name != "BaselineClustering":
            for options in variants.get(name, ({},)):
                key = " ".join([name, *map(str, options.values())])
                fits[key] = lambda kind=kind, options=options: fit(kind, options)
    return fits


def feature_fits(X: np.ndarray) -> dict[str, Fit]:
    """Return the feature transforms."""
    from tuckermix import features

    def apply(name: str, **options: Any) -> Arrays:
        transform = getattr(features, name)(**options)
        return {"rows": as_numpy(transform.fit(X[:20]).transform(X[:40]))}

    fits = {f"Scale {mode}": lambda m=mode: apply("Scale", mode=m) for mode in SCALES}
    if X.ndim == 3 and min(X.shape[1:]) >= 16:
        fits |= {
            "Scattering": lambda: apply("Scattering", J=2),
            "Scattering log": lambda: apply("Scattering", J=2, log=True),
            "Scattering relative": lambda: apply("Scattering", J=2, L=4, relative=True),
        }
    return fits


SCALES = ("sample", "dataset", "unit")


def all_fits(quick: bool) -> Iterator[tuple[str, Fit]]:
    """Yield the name of each fit, "what, dataset, seed, library, type", and the fit itself."""
    libraries: dict[str, Callable[[np.ndarray], Any]] = {"numpy": lambda X: X}
    try:
        import torch
    except ImportError:
        print("left out: PyTorch is not installed")
    else:
        libraries["torch"] = torch.asarray
    if not quick:
        many = clustering_fits("many", many_samples(), 5, 0, ("default", "subspace"))
        yield from (
            (f"TuckerClustering {key}, landmarks, seed 0, numpy, float64", f)
            for key, f in many.items()
        )
    for name, exact, n_clusters in samples():
        small = name not in DRAWS
        for dtype in TOLERANCE:
            X = exact.astype(dtype)
            for seed in SEEDS if not quick else SEEDS[:1]:
                for library, convert in libraries.items():
                    place = f"{name}, seed {seed}, {library}, {dtype}"
                    wanted: Any = None if small else ON_DATASETS
                    if library == "torch":
                        wanted = ON_TORCH if small else ON_TORCH[:1]
                    if quick:
                        wanted = [key for key in wanted or OPTIONS if key in IN_QUICK]
                    elif name == "digits":
                        wanted = [key for key in wanted or (*OPTIONS, *MORE) if key not in DEAR]
                    if seed and library == "torch" and not small:
                        continue
                    given = convert(X)
                    fits = clustering_fits(name, given, n_clusters, seed, wanted)
                    yield from ((f"TuckerClustering {key}, {place}", f) for key, f in fits.items())
                    if small and (name == "planted" or not quick):
                        fits = decomposition_fits(given, n_clusters, seed)
                        yield from ((f"decompose {key}, {place}", f) for key, f in fits.items())
                    if library == "torch" or not (
                        name == "planted" or (not quick and name == "orl")
                    ):
                        continue
                    fits = baseline_fits(X, n_clusters, seed)
                    yield from ((f"{key}, {place}", f) for key, f in fits.items())
            if name in ("planted", "orl"):
                place = f"{name}, seed 0, numpy, {dtype}"
                yield from ((f"{key}, {place}", f) for key, f in feature_fits(X).items())


def results(quick: bool, only: str) -> Iterator[tuple[str, Arrays]]:
    """Compute every fit and yield its name and its arrays; an error is a result too."""
    warnings.simplefilter("ignore")
    for name, fit in all_fits(quick):
        if only in name:
            try:
                found = fit()
            except Exception as error:
                found = {"error": np.asarray(type(error).__name__)}
            yield name, found


def renumbered(now: np.ndarray, before: np.ndarray) -> bool:
    """Say whether labels are the same up to their numbers."""
    if now.shape != before.shape:
        return False
    pairs = np.unique(np.stack([before, now]), axis=1)
    return all(len(line) == len(np.unique(line)) for line in pairs)


def difference(key: str, now: np.ndarray, before: np.ndarray, tolerance: float) -> str:
    """Return "" for the same bits, "rounding", or what is different."""
    if (
        now.dtype == before.dtype
        and now.shape == before.shape
        and now.tobytes() == before.tobytes()
    ):
        return ""
    if now.dtype.kind != before.dtype.kind or "U" in (now.dtype.kind, before.dtype.kind):
        return (
            f"{key}: {now.dtype} {now.reshape(-1)[:1]}, was {before.dtype} {before.reshape(-1)[:1]}"
        )
    if now.shape != before.shape:
        return f"{key}: shape {now.shape}, was {before.shape}"
    if now.dtype.kind in "iu":
        if renumbered(now, before):
            return "rounding"
        return f"{key}: {np.count_nonzero(now != before)} of {now.size} differ"
    if not np.array_equal(np.isfinite(now), np.isfinite(before)):
        return f"{key}: NaN or infinity in other places"
    scale = max(float(np.nanmax(np.abs(before), initial=0.0)), np.finfo(float).tiny)
    if key.rstrip("_") in RELATIVE:
        scale = 1.0
    gap = float(np.nanmax(np.abs(now - before), initial=0.0)) / scale
    return "rounding" if gap <= tolerance else f"{key}: relative difference {gap:.1e}"


def save(path: Path, quick: bool, only: str) -> int:
    """Store the results of this source tree."""
    stored = {f"{name}|{key}": a for name, fit in results(quick, only) for key, a in fit.items()}
    np.savez_compressed(path, **stored)
    names = {key.split("|")[0] for key in stored}
    errors = Counter(str(a) for key, a in stored.items() if key.endswith("|error"))
    print(f"stored {len(names)} fits in {path}; fits that raise: {dict(errors) or 'none'}")
    return 0


def against(path: Path, quick: bool, only: str, strict: bool) -> int:
    """Compare this source tree with stored results and say what differs."""
    archive = np.load(path)
    fields: dict[str, list[str]] = {}
    for stored in archive.files:
        name, key = stored.split("|")
        fields.setdefault(name, []).append(key)
    count: Counter[str] = Counter()
    for name, fit in results(quick, only):
        if name not in fields:
            count["not stored"] += 1
            continue
        tolerance = TOLERANCE[name.rsplit(", ", 1)[1]]
        old = {key: archive[f"{name}|{key}"] for key in fields[name]}
        found = [f"{key}: now missing" for key in old if key not in fit]
        found += [
            said
            for key in fit
            if key in old and (said := difference(key, fit[key], old[key], tolerance))
        ]
        real = [said for said in found if said != "rounding"]
        outcome = "different" if real else "equal to rounding" if found else "the same"
        count[outcome] += 1
        if real or (strict and found):
            print(f"{name}: {'; '.join(real) or 'rounding'}", flush=True)
    print(", ".join(f"{n} fits {outcome}" for outcome, n in sorted(count.items())))
    bad = count["different"] + (count["equal to rounding"] if strict else 0)
    return int(bad > 0 or not count)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("save", "against"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--quick", action="store_true", help="one seed and fewer settings")
    parser.add_argument("--only", default="", help="fits whose name contains this")
    parser.add_argument("--strict", action="store_true", help="rounding counts as a difference")
    options = parser.parse_args()
    import tuckermix

    print(f"tuckermix of {Path(tuckermix.__file__).parent}")
    start = time.perf_counter()
    if options.action == "save":
        code = save(options.file, options.quick, options.only)
    else:
        code = against(options.file, options.quick, options.only, options.strict)
    print(f"{time.perf_counter() - start:.0f} s")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
