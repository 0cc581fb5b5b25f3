"""Clusters of photographs with a pretrained network, beside those without it.

``TUCKERMIX_DATA=… python -m benchmarks.photographs`` takes draws from four sets of photographs and
from older images, with the number of clusters given. Of each class of the photographs the odd
samples are for choices (``--part tuning``) and the even ones for reports; older sets have the parts
of `tuckermix_bench.draws`. Columns: `AutoClustering` with features "auto" (nothing is trained),
"network" and "all", and what people do with a network: its pooled vectors, of norm 1, with k-means,
spectral clustering, and UMAP followed by k-means (``pip install "tuckermix[rivals]"``). The network
was trained on ImageNet, with labels.

What `photographs.json` in the folder ``--out`` holds is not computed again. ``--rows`` and
``--methods`` name some of them, ``--jobs 16`` takes as many processes. ``--speed`` times features
and fits of photographs of 128 pixels instead, on a GPU where there is one.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import reporting
from tuckermix import AutoClustering
from tuckermix.datasets import load
from tuckermix.features import Network
from tuckermix.metrics import clustering_accuracy
from tuckermix.selection.candidates import built_in_candidates
from tuckermix_bench.draws import REPORTING, TUNING, part_indices

FOLDER = Path(__file__).parent / "results"

PHOTOGRAPHS = {
    "cifar10": (10, 40),
    "clothing": (10, 18),
    "signs": (10, 18),
    "fruits": (20, 9),
}
"""Sets of photographs in `TUCKERMIX_DATA`: classes, samples of each in a draw."""

OLDER = {
    "pie": (34, 9),
    "orl": (10, 10),
    "yaleb": (10, 60),
    "cbcl": (2, 200),
    "mnist": (10, 100),
    "coil20": (20, 72),
    "yale": (15, 11),
}
"""The same of older images, grey and small."""

ONE_DRAW = ("coil20", "yale")
"""Sets whose draw takes everything there is, and by which nothing was chosen."""

SEED = 360
N_NEIGHBORS = 15  # of the graph of spectral clustering and of UMAP
N_DIRECTIONS = 10  # of UMAP, as in the tables


def draw(name: str, part: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples and classes of a draw."""
    if name in PHOTOGRAPHS:
        with np.load(Path(os.environ["TUCKERMIX_DATA"]) / f"{name}.npz") as data:
            X, y = data["images"], data["labels"]
        first = 1 if part == TUNING else 0
        kept = np.concatenate([np.flatnonzero(y == label)[first::2] for label in np.unique(y)])
    else:
        data = load(name)
        X, y = data.X, np.asarray(data.labels)
        kept = part_indices(name, part, y)
    X, y = X[kept], y[kept]
    n_classes, each = (PHOTOGRAPHS | OLDER)[name]
    rng = np.random.default_rng(SEED + seed)
    classes = rng.permutation(np.unique(y))[:n_classes]
    rows = [rng.permutation(np.flatnonzero(y == label))[:each] for label in classes]
    chosen = rng.permutation(np.concatenate(rows))
    return X[chosen], y[chosen]


def pooled(X: np.ndarray) -> np.ndarray:
    """Return pooled vectors of norm 1, from the pictures that the candidates see."""
    size = built_in_candidates(X.shape[1:], "network")[0][1][0].size
    vectors = Network(layer="pooled", size=size).fit_transform(X)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def auto(X: np.ndarray, n_clusters: int, seed: int, *, features: str) -> tuple[np.ndarray, str]:
    model = AutoClustering(n_clusters, features=features, random_state=seed).fit(X)
    return model.labels_, model.selection_.view


def by_kmeans(X: np.ndarray, n_clusters: int, seed: int) -> tuple[np.ndarray, str]:
    from sklearn.cluster import KMeans

    return KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(pooled(X)), "pooled"


def spectral(X: np.ndarray, n_clusters: int, seed: int) -> tuple[np.ndarray, str]:
    from sklearn.cluster import SpectralClustering

    graph: dict[str, Any] = {"affinity": "nearest_neighbors", "n_neighbors": N_NEIGHBORS}
    model = SpectralClustering(n_clusters, random_state=seed, **graph)
    return model.fit_predict(pooled(X)), "pooled"


def by_umap(X: np.ndarray, n_clusters: int, seed: int) -> tuple[np.ndarray, str]:
    from sklearn.cluster import KMeans
    from umap import UMAP

    vectors = pooled(X)
    placed = UMAP(n_components=N_DIRECTIONS, n_neighbors=N_NEIGHBORS, random_state=seed)
    Z = placed.fit_transform(vectors)
    return KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(Z), "pooled"


METHODS = {
    "auto": partial(auto, features="auto"),
    "network": partial(auto, features="network"),
    "all": partial(auto, features="all"),
    "k-means": by_kmeans,
    "spectral": spectral,
    "UMAP + k-means": by_umap,
}


def measure(name: str, part: str, seed: int, method: str) -> dict[str, Any]:
    """Cluster one draw by one method."""
    from sklearn.metrics import normalized_mutual_info_score

    warnings.simplefilter("ignore")  # of UMAP and of disconnected graphs
    X, y = draw(name, part, seed)
    began = time.process_time()
    labels, view = METHODS[method](X, len(np.unique(y)), seed)
    return {
        "ac": clustering_accuracy(y, labels),
        "nmi": float(normalized_mutual_info_score(y, labels)),
        "seconds": time.process_time() - began,
        "view": view,
    }


def gap(values: np.ndarray, others: np.ndarray) -> str:
    """Return the mean of paired differences, with its standard error."""
    differences = values - others
    if len(differences) < 2:
        return f"{differences.mean():+.3f}"
    error = differences.std(ddof=1) / len(differences) ** 0.5
    return f"{differences.mean():+.3f} ± {error:.3f}"


def table(draws: dict[str, Any], part: str) -> tuple[list[str], dict[str, Any]]:
    """Lay out accuracies by set, with means over the photographs and over the older images."""
    here = [key for key in draws if key.startswith(part)]
    methods = [name for name in METHODS if any(key.endswith(f"/{name}") for key in here)]
    heads = ["accuracy", "draws", *methods, "all − auto", "all − k-means", "seconds of all"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    summary: dict[str, Any] = {}
    for heading, names in (("photographs", PHOTOGRAPHS), ("older images", OLDER)):
        inside = []
        for name in names:
            rows = {
                method: [
                    row
                    for seed in range(len(draws))
                    if (row := draws.get(f"{part}/{name}/{seed}/{method}")) is not None
                ]
                for method in methods
            }
            count = min(len(found) for found in rows.values())
            if not count:
                continue
            ac = {m: np.array([row["ac"] for row in found[:count]]) for m, found in rows.items()}
            seconds = np.mean([row["seconds"] for row in rows["all"]])
            cells = [f"{values.mean():.3f}" for values in ac.values()]
            cells += [gap(ac["all"], ac["auto"]), gap(ac["all"], ac["k-means"]), f"{seconds:.0f}"]
            lines.append(f"| {name} | {count} | {' | '.join(cells)} |")
            summary[name] = {m: float(values.mean()) for m, values in ac.items()}
            inside.append(name)
        if inside:
            means = {m: float(np.mean([summary[name][m] for name in inside])) for m in methods}
            gaps = [f"{means['all'] - means[other]:+.3f}" for other in ("auto", "k-means")]
            cells = [f"{value:.3f}" for value in means.values()] + gaps
            lines.append(f"| mean of {heading} | | {' | '.join(cells)} | |")
            summary[heading] = means
    return lines, summary


def speed(folder: Path) -> None:
    """Time features and fits of photographs of 128 pixels: processor time, or that of a GPU."""
    import torch

    with np.load(Path(os.environ["TUCKERMIX_DATA"]) / "cifar10.npz") as data:
        X = np.repeat(np.repeat(data["images"], 4, axis=1), 4, axis=2)
    rows = {}
    if torch.cuda.is_available():
        many = torch.from_numpy(X).cuda().repeat(50, 1, 1, 1)
        for layer in ("block 8", "last", "pooled"):
            network = Network(layer=layer).fit(many)
            for _ in range(2):  # the first pass loads kernels
                torch.cuda.synchronize()
                began = time.perf_counter()
                network.transform(many)
                torch.cuda.synchronize()
                rows[f"{len(many)} photographs, {layer}, GPU"] = time.perf_counter() - began
    else:
        began = time.process_time()
        Network(n_jobs=1).fit_transform(X)
        rows[f"{len(X)} photographs, features"] = time.process_time() - began
        for features in ("auto", "network", "all"):
            began = time.process_time()
            AutoClustering(10, features=features, random_state=0, n_jobs=1).fit(X)
            rows[f"{len(X)} photographs, {features}"] = time.process_time() - began
    for name, seconds in rows.items():
        print(f"{name}: {seconds:.2f} s", flush=True)
    path = folder / "photographs_speed.json"
    held = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps(held | rows, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=(TUNING, REPORTING), default=REPORTING)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--rows", nargs="*", default=[*PHOTOGRAPHS, *OLDER])
    parser.add_argument("--methods", nargs="*", default=[*METHODS])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--speed", action="store_true", help="time features and fits instead")
    options = parser.parse_args()
    if options.speed:
        speed(options.out)
        return
    tasks = {
        f"{options.part}/{name}/{seed}/{method}": (name, options.part, seed, method)
        for seed in range(options.draws)
        for name in options.rows
        for method in options.methods
        if not (name in ONE_DRAW and (seed or options.part == TUNING))
    }
    path = options.out / "photographs.json"
    draws = reporting.computed(path, tasks, measure, options.jobs)
    lines, summary = table(draws, options.part)
    text = json.dumps({"summary": summary, "draws": draws}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")
    (options.out / "photographs.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
