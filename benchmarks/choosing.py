"""How well the view and the number of clusters are chosen without labels.

``TUCKERMIX_DATA=… python -m benchmarks.choosing`` runs on the part of each dataset that choices did
not look at, on the draws of `benchmarks.compare_defaults`, so that scores are paired with those of
version 0.1.0 in `results/compare_defaults_old.json`.

*known*: accuracy for the true number of clusters, of the fixed default, of `AutoClustering` on
pixels and with all its views, and of the best candidate as only the classes could tell it (oracle).
*open*: the number found, and the adjusted Rand index of what was chosen beside that which
`AutoClustering` reaches for the true number. *planted*: how often the number is right. What is
already in `results/choosing.json` is not computed again, so that a run can be ended and taken up;
``--only`` names parts. The table goes to `results/choosing.md`.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from benchmarks import compare_defaults, reporting
from tuckermix import AutoClustering, TuckerClustering
from tuckermix.datasets import load, make_tensor_clusters
from tuckermix.experiments.splits import REPORTING, part_seed
from tuckermix.metrics import clustering_accuracy
from tuckermix.selection.auto import built_in_candidates, is_image
from tuckermix.selection.resampling import set_clusters

FOLDER = Path(__file__).parent / "results"

COLUMNS = tuple((name, classes, each) for name, classes, each, _ in compare_defaults.CASES)
"""Dataset, classes, samples of each."""

WHOLE = ("coil20 20", "yale 15", "orl 20", "yaleb 19")
"""Columns that take all there is of the reporting part, with one draw."""

FULL = ("pie", "orl")
"""Sets that are tried as a whole too with the number open; half of their persons served choices."""

IMAGES = ("pie", "orl", "yaleb", "cbcl", "mnist")
"""Datasets of images large enough for wavelets, over which views are compared."""

NOISE = {3: 2.15, 4: 2.1, 5: 2.05, 6: 2.0, 7: 1.97, 8: 1.93, 9: 1.9, 10: 1.86, 11: 1.82, 12: 1.78}
"""Noise at which k-means with the true number just reaches an adjusted Rand index of 0.9, by number
of planted clusters of 40 samples."""

EACH = 40
"""Samples of a planted cluster."""


def known(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, Any]:
    """Compare views where the number of clusters is known."""
    n_clusters = len(np.unique(y))
    fixed = TuckerClustering(n_clusters, random_state=seed).fit(X)
    pixels = AutoClustering(n_clusters, features="pixels", random_state=seed).fit(X)
    auto = pixels
    if is_image(X.shape[1:]):
        auto = AutoClustering(n_clusters, random_state=seed).fit(X)
    score = clustering_accuracy
    every = {}
    for name, candidate in built_in_candidates(X.shape[1:], "auto"):
        labels = set_clusters(clone(candidate), n_clusters, seed).fit_predict(X)
        every[name] = score(y, labels)
    return {
        "default": score(y, fixed.labels_),
        "pixels": score(y, pixels.labels_),
        "auto": score(y, auto.labels_),
        "oracle": max(every.values()),
        "candidates": every,
        "view": auto.selection_.view,
        "ari": adjusted_rand_score(y, auto.labels_),
    }


def opened(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, Any]:
    """Find the number of clusters."""
    model = AutoClustering(random_state=seed).fit(X)
    true = len(np.unique(y))
    at_true = AutoClustering(true, random_state=seed).fit(X)
    return {
        "true": true,
        "found": model.n_clusters_,
        "view": model.selection_.view,
        "octaves": abs(math.log2(model.n_clusters_ / true)),
        "ari": adjusted_rand_score(y, model.labels_),
        "ari at the true number": adjusted_rand_score(y, at_true.labels_),
        "ac": clustering_accuracy(y, model.labels_),
    }


def planted(run: int, part: str = REPORTING) -> dict[str, int]:
    """Find the number of planted clusters, 3 to 12 of them."""
    true = 3 + run % 10
    X = make_tensor_clusters(
        EACH * true, n_clusters=true, noise=NOISE[true], random_state=5000 + part_seed(part, run)
    ).X
    return {"true": true, "found": AutoClustering(random_state=run).fit(X).n_clusters_}


def full_set(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return all samples of a dataset and their classes."""
    data = load(name)
    return data.X.astype(np.float32) / 255, data.labels


class Store:
    """Results in a file, taken up where an earlier run ended."""

    def __init__(self, path: Path):
        self.path = path
        self.held: dict[str, Any] = {"planted": [], "known": {}, "open": {}}
        if path.exists():
            self.held.update(json.loads(path.read_text(encoding="utf-8")))

    def rows(self, part: str, column: str) -> list[Any]:
        """Return the rows of a column, to which one may add."""
        return self.held[part].setdefault(column, [])

    def save(self) -> None:
        """Write the file."""
        self.path.write_text(json.dumps(self.held, indent=1) + "\n", encoding="utf-8")


def columns(n_draws: int) -> Iterator[tuple[str, str, int, int, int]]:
    """Return title, dataset, classes, samples of each and draws of all columns."""
    for name, classes, each in COLUMNS:
        title = f"{name} {classes}"
        yield title, name, classes, each, 1 if title in WHOLE else n_draws


def run(store: Store, part: str, only: tuple[str, ...], n_draws: int) -> None:
    """Compute what is missing of a part."""
    measure = known if part == "known" else opened
    for title, name, classes, each, wanted in columns(n_draws):
        rows = store.rows(part, title)
        if (only and title not in only) or len(rows) >= wanted:
            continue
        for seed, (X, y) in enumerate(compare_defaults.draws(name, classes, each, wanted)):
            if seed >= len(rows):
                rows.append(measure(X, y, seed))
                store.save()
                print(part, title, rows[-1], flush=True)
    for name in FULL if part == "open" and not only else ():
        rows = store.rows(part, f"{name}, full set")
        if not rows:
            rows.append(opened(*full_set(name), 0))
            store.save()
            print(part, name, rows[-1], flush=True)


def table_of_views(held: dict[str, Any], old: dict[str, list[float]]) -> list[str]:
    """Lay out accuracies for a known number, with paired gains over version 0.1.0."""
    kinds = ("default", "pixels", "auto", "oracle")
    lines = [
        "| known number | draws | 0.1.0 | default | pixels | auto | oracle | auto − 0.1.0 | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    means: dict[str, dict[str, float]] = {}
    for title, rows in held["known"].items():
        if not rows:
            continue
        means[title] = {kind: float(np.mean([row[kind] for row in rows])) for kind in kinds}
        before, gap, mark = "–", "–", ""
        if title in old:
            paired = old[title][: len(rows)]
            means[title]["0.1.0"] = float(np.mean(paired))
            before = f"{np.mean(paired):.3f}"
            gaps = np.array([row["auto"] for row in rows[: len(paired)]]) - paired
            gap = f"{gaps.mean():+.3f}"
            if len(gaps) > 1:
                error = gaps.std(ddof=1) / len(gaps) ** 0.5
                gap += f" ± {error:.3f}"
                mark = "falls" if gaps.mean() < -compare_defaults.TOLERANCE * error else ""
        cells = " | ".join(f"{means[title][kind]:.3f}" for kind in kinds)
        lines.append(f"| {title} | {len(rows)} | {before} | {cells} | {gap} | {mark} |")
    groups = {
        "mean": [title for title in means if "0.1.0" in means[title]],
        "mean of images": [
            title for title in means if "0.1.0" in means[title] and title.split()[0] in IMAGES
        ],
    }
    for heading, inside in groups.items():
        if inside:
            kinds_ = ("0.1.0", *kinds)
            mean = {kind: np.mean([means[title][kind] for title in inside]) for kind in kinds_}
            cells = " | ".join(f"{value:.3f}" for value in mean.values())
            lines.append(f"| {heading} | | {cells} | {mean['auto'] - mean['0.1.0']:+.3f} | |")
    return lines


def table_of_numbers(held: dict[str, Any]) -> list[str]:
    """Lay out the numbers found."""
    lines = [
        "| open number | draws | true | found | octaves off | ARI | at the true number |",
        "|---|---|---|---|---|---|---|",
    ]
    off, near = [], []
    for title, rows in held["open"].items():
        if not rows:
            continue
        found = ", ".join(str(row["found"]) for row in rows)
        values = [
            float(np.mean([row[key] for row in rows]))
            for key in ("octaves", "ari", "ari at the true number")
        ]
        off.append(float(np.median([row["octaves"] for row in rows])))
        near.append(values[1] >= 0.9 * values[2])
        cells = " | ".join(f"{value:.3f}" for value in values)
        lines.append(f"| {title} | {len(rows)} | {rows[0]['true']} | {found} | {cells} |")
    if off:
        summary = (
            f"Median over the {len(off)} columns of the octaves that the number found is off: "
            f"{np.median(off):.3f}. The ARI of what was chosen is at least 0.9 of that at the true "
            f"number in {sum(near)} of {len(near)} columns."
        )
        lines += ["", summary]
    return lines


def report(held: dict[str, Any], folder: Path) -> str:
    """Make the page of all tables."""
    old = json.loads((folder / "compare_defaults_old.json").read_text(encoding="utf-8"))
    parts = []
    if held["planted"]:
        right = sum(row["true"] == row["found"] for row in held["planted"])
        parts.append(f"Planted clusters: {right} of {len(held['planted'])} numbers right.")
        wrong = [f"{row['true']} → {row['found']}" for row in held["planted"]]
        wrong = [text for text in wrong if len(set(text.split(" → "))) > 1]
        parts.append(f"Others: {', '.join(wrong)}." if wrong else "")
    command = "TUCKERMIX_DATA=… python -m benchmarks.choosing"
    heading = reporting.heading(command, "Reporting part", reporting.environment())
    lines = [heading, "", *parts, "", *table_of_views(held, old), "", *table_of_numbers(held), ""]
    return "\n".join(lines)


def main() -> None:
    """Compute what is missing and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10, help="draws with the number known")
    parser.add_argument("--open-draws", type=int, default=5, help="draws with the number open")
    parser.add_argument("--planted", type=int, default=100)
    parser.add_argument("--only", nargs="*", default=(), help="columns, such as 'orl 10'")
    parser.add_argument("--out", type=Path, default=FOLDER)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    store, only = Store(options.out / "choosing.json"), tuple(options.only)
    for number in range(len(store.held["planted"]), 0 if only else options.planted):
        store.held["planted"].append(planted(number))
        store.save()
    run(store, "known", only, options.draws)
    run(store, "open", only, options.open_draws)
    page = report(store.held, FOLDER)
    (options.out / "choosing.md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
