"""Which views of images are worth comparing.

``TUCKERMIX_DATA=… python -m benchmarks.image_views --jobs 16`` draws images from the tuning part of
the datasets (see `tuckermix_bench.draws`). The number of clusters is given; each list names
what stability chooses among beside the views of before (or in their place), and has the paired
difference to these with its standard error. *taken* says how often the list's new views were
chosen, *oracle* what the best candidate of each draw has, as only the classes could tell it.

One of the lists was chosen by these draws, so that what it gains on them is too much: ``--fresh``
compares it with what was before on other draws of the same parts, which served no choice.
``--open`` leaves the number of clusters open, and compares the number found and the adjusted Rand
index.

Results go to `image_views.json` and `image_views.md` in the folder ``--out``, those of the other
two to `image_views_fresh` and `image_views_open`; draws that a file holds are not computed again.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.pipeline import make_pipeline

from benchmarks import reporting
from benchmarks.view_choices import drawn
from tuckermix import MultiViewClustering, TuckerClustering
from tuckermix.features import Scale, Scattering
from tuckermix.metrics import clustering_accuracy
from tuckermix.selection.auto import NEAR, SOFT_EDGE, SOFT_POWER
from tuckermix.selection.resampling import Resampler
from tuckermix.selection.search import choose

COLUMNS = (
    ("mnist", 3, 100),
    ("mnist", 4, 100),
    ("mnist", 5, 100),
    ("mnist", 7, 100),
    ("mnist", 10, 100),
    ("cbcl", 2, 400),
    ("orl", 10, 10),
    ("orl", 20, 10),
    ("pie", 12, 42),
    ("pie", 24, 42),
    ("yaleb", 6, 64),
    ("yaleb", 10, 64),
    ("yaleb", 15, 64),
)
"""Dataset, classes, samples of each."""

DRAWS, OPEN_DRAWS = 8, 3
FIRST, FRESH, OPEN = 20, 120, 220
"""The first draw that compares lists, the first that served no choice, the first of open numbers.
Draws before the first were looked at when the views were made up."""

BEFORE = (
    "pixels",
    "pixels, soft edge",
    "scattering",
    "log-scattering",
    "pixels + log-scattering",
    "scattering + log-scattering",
)
LISTS: dict[str, tuple[str, ...]] = {
    "before": BEFORE,
    "+ near": (*BEFORE, "near"),
    "+ relative": (*BEFORE, "relative, soft edge"),
    "+ both": (*BEFORE, "near", "relative, soft edge"),
    "+ both, sum": (*BEFORE, "near", "relative, soft edge", "relative + log, soft edge"),
    "+ both, sharp": (*BEFORE, "near", "relative"),
    "+ both, sharp sum": (*BEFORE, "near", "relative", "relative + log"),
    "other sum": (*BEFORE[:-1], "near", "relative", "relative + log"),
    "other soft sum": (
        *BEFORE[:3],
        "log, soft edge",
        BEFORE[4],
        "near",
        "relative, soft edge",
        "relative + log, soft edge",
    ),
    "pixels alone": BEFORE[:2],
    "pixels, near": (*BEFORE[:2], "near"),
}
"""What stability chooses among."""

CHOSEN = "+ both, sum"
"""The list that was taken; `benchmarks.view_ranking` says what came after it."""


def views() -> dict[str, Any]:
    """Return all views by name."""
    soft = {"ridge_edge": SOFT_EDGE, "ridge_power": SOFT_POWER}

    def strokes(log: bool = False, relative: bool = False, **options: Any) -> Any:
        return make_pipeline(Scattering(log=log, relative=relative), TuckerClustering(**options))

    every: dict[str, Any] = {
        "pixels": TuckerClustering(),
        "pixels, soft edge": TuckerClustering(**soft),
        "scattering": strokes(),
        "log-scattering": strokes(log=True),
        "near": make_pipeline(Scale("unit"), TuckerClustering(**NEAR)),
        "relative": strokes(relative=True),
        "relative, soft edge": strokes(relative=True, **soft),
        "log, soft edge": strokes(log=True, **soft),
    }
    sums = {
        "pixels + log-scattering": ("pixels", "log-scattering"),
        "scattering + log-scattering": ("scattering", "log-scattering"),
        "relative + log": ("relative", "log-scattering"),
        "relative + log, soft edge": ("relative, soft edge", "log, soft edge"),
    }
    for name, parts in sums.items():
        every[name] = MultiViewClustering([(part, every[part]) for part in parts])
    return every


def compare(column: tuple[str, int, int], seed: int, given: bool, lists: tuple[str, ...]) -> Any:
    """Score what stability chooses among the views of each list, and every view."""
    warnings.simplefilter("ignore")
    X, truth = drawn(*column, False, seed)
    distinct = np.sort(np.unique(X.reshape(len(X), -1), axis=0, return_index=True)[1])
    X, truth = X[distinct], truth[distinct]
    every, true = views(), len(np.unique(truth))
    first: Resampler | None = None
    found: dict[str, Any] = {"lists": {}, "views": {}}
    for title in lists:
        candidates = [(name, every[name]) for name in LISTS[title]]
        resampler = Resampler(X, candidates, np.random.default_rng(seed))
        if first is None:
            first = resampler
        for shared in ("features", "_spectra", "_kept", "_within", "_runs"):  # the same for all
            setattr(resampler, shared, getattr(first, shared))
        selection = choose(resampler, true if given else None, lambda share, doing: None)
        labels = resampler.labels(selection.n_clusters, selection.view)
        found["lists"][title] = {"view": selection.view, "found": selection.n_clusters}
        found["lists"][title] |= measures(truth, labels)
    assert first is not None
    for (number, name), (labels, _, agreements) in first._runs.items():
        if number == true:
            accuracy = clustering_accuracy(truth, labels)
            found["views"][name] = {"ac": accuracy, "stability": float(np.mean(agreements))}
    return found


def measures(truth: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Compare labels with classes."""
    return {
        "ac": clustering_accuracy(truth, labels),
        "nmi": normalized_mutual_info_score(truth, labels, average_method="max"),
        "ari": adjusted_rand_score(truth, labels),
    }


def summary_of(draws: list[Any], measure: str) -> dict[str, Any]:
    """Average a measure over the draws of a column: each list, its gain and its error."""
    titles = draws[0]["lists"]
    values = {t: np.array([draw["lists"][t][measure] for draw in draws]) for t in titles}
    found: dict[str, Any] = {}
    for title, own in values.items():
        found[title] = reporting.paired(own, values["before"])
        new = [draw["lists"][title]["view"] not in BEFORE for draw in draws]
        found[title]["taken"] = int(sum(new))
    best = [max(view["ac"] for view in draw["views"].values()) for draw in draws]
    found["oracle"] = {"mean": float(np.mean(best))}
    return found


def page(held: dict[str, list[Any]], given: bool) -> tuple[dict[str, Any], list[str]]:
    """Lay out all columns and their means; return these and the lines."""
    titles = [title for title in next(iter(held.values()))[0]["lists"] if title != "before"]
    summary: dict[str, Any] = {}
    lines: list[str] = []
    for measure in ("ac", "nmi") if given else ("ari",):
        every = {name: summary_of(draws, measure) for name, draws in held.items()}
        heads = [measure.upper(), "draws", "before", *titles, "oracle (AC)"]
        lines += ["", "| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
        for name, found in every.items():
            cells = [name, str(len(held[name])), f"{found['before']['mean']:.3f}"]
            for title in titles:
                own = found[title]
                cells.append(f"{own['gain']:+.3f} ± {own['error']:.3f} ({own['taken']})")
            lines.append("| " + " | ".join([*cells, f"{found['oracle']['mean']:.3f}"]) + " |")
        means = {
            t: float(np.mean([f[t]["mean"] for f in every.values()])) for t in ("before", *titles)
        }
        gains = {t: means[t] - means["before"] for t in titles}
        errors = {
            t: float(np.sqrt(np.sum([f[t]["error"] ** 2 for f in every.values()]))) / len(every)
            for t in titles
        }
        cells = ["mean", "", f"{means['before']:.4f}"]
        cells += [f"{gains[t]:+.4f} ± {errors[t]:.4f}" for t in titles]
        lines.append("| " + " | ".join([*cells, ""]) + " |")
        summary[measure] = {"columns": every, "means": means, "gains": gains, "errors": errors}
    if not given:
        found_numbers = {
            name: {t: [draw["lists"][t]["found"] for draw in draws] for t in ("before", *titles)}
            for name, draws in held.items()
        }
        true = {name: int(name.split()[1]) for name in held}
        summary["octaves"], more = reporting.numbers_found(found_numbers, true)
        lines += more
    return summary, lines


def main() -> None:
    """Compute what is missing and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fresh", action="store_true", help="draws that served no choice")
    parser.add_argument("--open", action="store_true", help="leave the number of clusters open")
    parser.add_argument("--draws", type=int, help="draws of each column")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    kind = "open" if options.open else "fresh" if options.fresh else ""
    first = {"": FIRST, "fresh": FRESH, "open": OPEN}[kind]
    lists = tuple(LISTS) if not kind else ("before", CHOSEN)
    count = options.draws or (OPEN_DRAWS if options.open else DRAWS)
    path = options.out / f"image_views{'_' if kind else ''}{kind}.json"
    tasks = {
        f"{column[0]} {column[1]}/{seed}": (column, seed, not options.open, lists)
        for column in sorted(COLUMNS, key=lambda column: -column[1] * column[2])
        for seed in range(first, first + count)
    }
    draws = reporting.computed(path, tasks, compare, options.jobs)
    held: dict[str, list[Any]] = {}
    for name, classes, _ in COLUMNS:
        own = [draws[key] for key in sorted(draws) if key.startswith(f"{name} {classes}/")]
        if own:
            held[f"{name} {classes}"] = own
    summary, lines = page(held, not options.open)
    stored = {"summary": summary, "draws": draws}
    path.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    command = "TUCKERMIX_DATA=… python -m benchmarks.image_views" + (f" --{kind}" if kind else "")
    heading = reporting.heading(command, "Tuning part", reporting.environment())
    text = "\n".join([heading, *lines, ""])
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
