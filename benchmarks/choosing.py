"""How well the view and the number of clusters are chosen without labels.

``TUCKERMIX_DATA=… python -m benchmarks.choosing`` runs on the part of each dataset that choices did
not look at, on the draws of `benchmarks.compare_defaults`, so that scores are paired with those of
version 0.1.0 in `results/compare_defaults_old.json`.

*known*: accuracy for the true number of clusters, of the fixed default, of `AutoClustering` on
pixels and with all its views, and of the best candidate as only the classes could tell it (oracle).
*open*: the number found, and the adjusted Rand index of what was chosen beside that which
`AutoClustering` reaches for the true number of the same draws. *planted*: how often the number is
right, with ``--many 10`` among 150 clusters too, and with ``--noise 100`` where there are none.
What `choosing.json` in the folder ``--out`` already holds is not computed again, so that a run can
be ended at any time and continued. To results of other code nothing is added: ``--anew`` replaces
them.
``--only`` names columns, ``--jobs 16`` takes as many processes, the longest tasks first. The table
goes to `choosing.md` in the same folder.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import Pipeline

from benchmarks import compare_defaults, reporting
from tuckermix import AutoClustering, TuckerClustering, __version__
from tuckermix.datasets import load, make_tensor_clusters
from tuckermix.metrics import clustering_accuracy
from tuckermix.selection.auto import fit_with
from tuckermix.selection.candidates import (
    built_in_candidates,
    has_norms,
    is_image,
    is_narrow,
    is_noisy,
)
from tuckermix.selection.resampling import set_clusters
from tuckermix.selection.shared import Features
from tuckermix_bench.draws import REPORTING, part_seed

FOLDER = Path(__file__).parent / "results"

COLUMNS = tuple((name, classes, each) for name, classes, each, _ in compare_defaults.CASES)
"""Dataset, classes, samples of each."""

WHOLE = ("coil20 20", "yale 15", "orl 20", "yaleb 19")
"""Columns that take all there is of the reporting part, with one draw."""

FULL = {"pie": (68, 42), "orl": (40, 10)}
"""Sets that are tried as a whole too, with their persons and pictures of each; half of the persons
served choices."""

IMAGES = ("pie", "orl", "yaleb", "cbcl", "mnist")
"""Datasets of images large enough for wavelets, over which views are compared."""

NOISE = {3: 2.15, 4: 2.1, 5: 2.05, 6: 2.0, 7: 1.97, 8: 1.93, 9: 1.9, 10: 1.86, 11: 1.82, 12: 1.78}
"""Noise at which k-means with the true number just reaches an adjusted Rand index of 0.9, by number
of planted clusters of 40 samples."""

KINDS = ("default", "pixels", "auto", "oracle")
"""What is compared for a known number."""

EACH, MANY = 40, 150
"""Samples of a planted cluster, and the clusters where there are many."""


def known(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, Any]:
    """Compare views where the number of clusters is known."""
    n_clusters = len(np.unique(y))
    fixed = TuckerClustering(n_clusters, random_state=seed).fit(X)
    pixels = AutoClustering(n_clusters, features="pixels", random_state=seed).fit(X)
    auto = pixels
    if is_image(X.shape[1:]):
        auto = AutoClustering(n_clusters, random_state=seed).fit(X)
    score = clustering_accuracy
    every, features = {}, Features(X)
    about = {}
    if not is_image(X.shape[1:]):
        about = {"noisy": is_noisy(X), "norms": has_norms(X), "narrow": is_narrow(X)}
    for name, candidate in built_in_candidates(X.shape[1:], "auto", **about):
        model = fit_with(set_clusters(clone(candidate), n_clusters, seed), X, features)
        final = model[-1] if isinstance(model, Pipeline) else model
        every[name] = score(y, final.labels_)
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
    return {
        "true": true,
        "found": model.n_clusters_,
        "view": model.selection_.view,
        "octaves": abs(math.log2(model.n_clusters_ / true)),
        "ari": adjusted_rand_score(y, model.labels_),
        "ac": clustering_accuracy(y, model.labels_),
    }


def planted(run: int, part: str = REPORTING) -> np.ndarray:
    """Draw 3 to 12 planted clusters."""
    true = 3 + run % 10
    seed = 5000 + part_seed(part, run)
    options = {"noise": NOISE[true], "random_state": seed}
    return make_tensor_clusters(EACH * true, n_clusters=true, **options).X


def many_planted(run: int) -> np.ndarray:
    """Draw 150 planted clusters of ten samples."""
    return make_tensor_clusters(
        10 * MANY, shape=(14, 14), n_clusters=MANY, noise=0.5, random_state=5000 + run
    ).X


def no_clusters(run: int) -> np.ndarray:
    """Draw white noise, or every other time one normal cloud of any covariance."""
    rng = np.random.default_rng([5000, run])
    X = rng.standard_normal((200 + 10 * (run % 20), 5 + run % 40))
    return X @ rng.standard_normal((X.shape[1], X.shape[1])) if run % 2 else X


MADE = {
    "planted": (planted, lambda run: 3 + run % 10),
    "many planted": (many_planted, lambda run: MANY),
    "no clusters": (no_clusters, lambda run: 1),
}
"""Samples that are made: what draws them, and the number of clusters, by run."""


def full_set(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return all samples of a dataset and their classes."""
    data = load(name)
    return data.X.astype(np.float32) / 255, data.labels


class Store:
    """Results in a file, taken up where an earlier run of the same version ended.

    They are held by part, column and draw.
    """

    def __init__(self, path: Path, *, anew: bool = False):
        self.path = path
        code = __version__
        self.held: dict[str, Any] = {"code": code, "planted": {}, "known": {}, "open": {}}
        if path.exists() and not anew:
            stored = json.loads(path.read_text(encoding="utf-8"))
            if stored.get("code") != code:
                raise SystemExit(
                    f"{path} was computed with another version of tuckermix: name "
                    "another folder with --out, or replace what it holds with --anew."
                )
            self.held.update(stored)

    def has(self, task: Task) -> bool:
        """Tell whether a task is done."""
        part, title, seed = task[:3]
        return str(seed) in self.held[part].get(title, {})

    def add(self, task: Task, row: dict[str, Any]) -> None:
        """Add the result of a task, and write the file."""
        part, title, seed = task[:3]
        self.held[part].setdefault(title, {})[str(seed)] = row
        self.save()

    def save(self) -> None:
        """Write the file, with the figures that pages quote."""
        self.held["summary"] = self.summary()
        # A run may be ended at any time: a file is either the old one or the new one.
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps(self.held, indent=1) + "\n", encoding="utf-8")
        os.replace(fresh, self.path)

    def summary(self) -> dict[str, Any]:
        """Return how many planted numbers are right, and the means of each column."""
        made = {
            title: [row["true"] == row["found"] for row in rows.values()]
            for title, rows in self.rows("planted").items()
        }
        return {
            **{title: {"right": sum(each), "runs": len(each)} for title, each in made.items()},
            "known": {
                title: {
                    kind: float(np.mean([row[kind] for row in rows.values()])) for kind in KINDS
                }
                for title, rows in self.rows("known").items()
            },
        }

    def rows(self, part: str) -> dict[str, dict[int, dict[str, Any]]]:
        """Return the rows of all columns of a part by draw, columns in their order."""
        held = self.held[part]
        order = [title for title, *_ in columns()] + [f"{name}, full set" for name in FULL]
        known = [title for title in (*order, *MADE) if title in held]
        return {
            title: {int(key): held[title][key] for key in sorted(held[title], key=int)}
            for title in known
        }


Task = tuple[str, str, int, str, int, int]
"""Part, column, draw, dataset, classes, samples of each."""


def columns() -> Iterator[tuple[str, str, int, int]]:
    """Return title, dataset, classes and samples of each of all columns."""
    for name, classes, each in COLUMNS:
        yield f"{name} {classes}", name, classes, each


def tasks(options: argparse.Namespace) -> Iterator[Task]:
    """Return what is asked for."""
    for title, count in zip(MADE, (options.planted, options.many, options.noise), strict=True):
        for run in range(count):
            yield ("planted", title, run, "", 0, 0)
    for seed in range(max(options.draws, options.open_draws)):
        for part, n_draws in (("known", options.draws), ("open", options.open_draws)):
            for title, name, classes, each in columns() if seed < n_draws else ():
                if seed == 0 or title not in WHOLE:
                    yield (part, title, seed, name, classes, each)
    for part, n_draws in (("known", options.draws), ("open", options.open_draws)):
        for name, (classes, each) in FULL.items() if n_draws else ():
            yield (part, f"{name}, full set", 0, name, classes, each)


def length(task: Task) -> float:
    """Estimate how long a task takes, in any unit, from its samples."""
    part, _, seed, _, classes, each = task
    if part == "planted":
        return float(EACH * (3 + seed % 10))
    # Finding the number tries some ten values, most of them up to the true one and beyond.
    return classes * each * (2.0 if part == "known" else 4.0 + classes / 2)


def work(task: Task) -> dict[str, Any]:
    """Compute one task."""
    warnings.simplefilter("ignore")
    part, title, seed, name, classes, each = task
    if part == "planted":
        draw, number = MADE[title]
        found = AutoClustering(random_state=seed).fit(draw(seed)).n_clusters_
        return {"true": number(seed), "found": found}
    if "full set" in title:
        X, y = full_set(name)
    else:
        *_, (X, y) = compare_defaults.draws(name, classes, each, seed + 1)
    return known(X, y, seed) if part == "known" else opened(X, y, seed)


def table_of_views(store: Store, old: dict[str, list[float]]) -> list[str]:
    """Lay out accuracies for a known number, with paired gains over version 0.1.0."""
    lines = [
        "| known number | draws | 0.1.0 | default | pixels | auto | oracle | auto − 0.1.0 | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    means: dict[str, dict[str, float]] = {}
    for title, by_draw in store.rows("known").items():
        rows = list(by_draw.values())
        means[title] = {kind: float(np.mean([row[kind] for row in rows])) for kind in KINDS}
        before, gap, mark = "–", "–", ""
        if title in old:
            paired = [old[title][seed] for seed in by_draw if seed < len(old[title])]
            means[title]["0.1.0"] = float(np.mean(paired))
            before = f"{np.mean(paired):.3f}"
            gaps = np.array([row["auto"] for row in rows[: len(paired)]]) - paired
            gap = f"{gaps.mean():+.3f}"
            if len(gaps) > 1:
                error = gaps.std(ddof=1) / len(gaps) ** 0.5
                gap += f" ± {error:.3f}"
                mark = "falls" if gaps.mean() < -compare_defaults.TOLERANCE * error else ""
        cells = " | ".join(f"{means[title][kind]:.3f}" for kind in KINDS)
        lines.append(f"| {title} | {len(rows)} | {before} | {cells} | {gap} | {mark} |")
    groups = {
        "mean": [title for title in means if "0.1.0" in means[title]],
        "mean of images": [
            title for title in means if "0.1.0" in means[title] and title.split()[0] in IMAGES
        ],
    }
    for heading, inside in groups.items():
        if inside:
            kinds = ("0.1.0", *KINDS)
            mean = {kind: np.mean([means[title][kind] for title in inside]) for kind in kinds}
            cells = " | ".join(f"{value:.3f}" for value in mean.values())
            lines.append(f"| {heading} | | {cells} | {mean['auto'] - mean['0.1.0']:+.3f} | |")
    return lines


def table_of_numbers(store: Store) -> list[str]:
    """Lay out the numbers found."""
    lines = [
        "| open number | draws | true | found | octaves off | ARI | at the true number |",
        "|---|---|---|---|---|---|---|",
    ]
    off, near, told = [], [], store.rows("known")
    for title, by_draw in store.rows("open").items():
        rows = list(by_draw.values())
        found = ", ".join(str(row["found"]) for row in rows)
        values = [float(np.mean([row[key] for row in rows])) for key in ("octaves", "ari")]
        known = told.get(title, {})
        at_true = [known[seed]["ari"] for seed in by_draw if seed in known]
        values.append(float(np.mean(at_true)) if at_true else math.nan)
        off.append(float(np.median([row["octaves"] for row in rows])))
        near.append(values[1] >= 0.9 * values[2])  # not where nothing is known
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


def report(store: Store, folder: Path) -> str:
    """Make the page of all tables."""
    old = json.loads((folder / "compare_defaults_old.json").read_text(encoding="utf-8"))
    parts = []
    for title, rows in store.rows("planted").items():
        numbers = [(row["true"], row["found"]) for row in rows.values()]
        wrong = [f"{true} → {found}" for true, found in numbers if true != found]
        right = len(numbers) - len(wrong)
        parts.append(f"{title.capitalize()}: {right} of {len(numbers)} numbers right.")
        parts.append(f"Others: {', '.join(wrong)}." if wrong else "")
    command = "TUCKERMIX_DATA=… python -m benchmarks.choosing"
    heading = reporting.heading(command, "Reporting part", reporting.environment())
    lines = [heading, "", *parts, "", *table_of_views(store, old), "", *table_of_numbers(store), ""]
    return "\n".join(lines)


def main() -> None:
    """Compute what is missing and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10, help="draws with the number known")
    parser.add_argument("--open-draws", type=int, default=5, help="draws with the number open")
    parser.add_argument("--planted", type=int, default=100, help="draws of 3 to 12 clusters")
    parser.add_argument("--many", type=int, default=0, help="draws of 150 clusters")
    parser.add_argument("--noise", type=int, default=0, help="draws without clusters")
    parser.add_argument("--only", nargs="*", default=(), help="columns, such as 'orl 10'")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--anew", action="store_true", help="leave out what is stored")
    options = parser.parse_args()
    store = Store(options.out / "choosing.json", anew=options.anew)
    wanted = [task for task in tasks(options) if not options.only or task[1] in options.only]
    missing = sorted((task for task in wanted if not store.has(task)), key=length, reverse=True)
    # Spawned, since libraries with threads do not bear a fork.
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(work, task): task for task in missing}
        for done in as_completed(running):
            if done.exception() is not None:
                print(*running[done][:3], "failed:", done.exception(), flush=True)
                continue
            store.add(running[done], done.result())
            print(*running[done][:3], done.result(), flush=True)
    store.save()
    page = report(store, FOLDER)
    (options.out / "choosing.md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
