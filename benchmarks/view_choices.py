"""Which views are worth comparing where samples are no images.

``TUCKERMIX_DATA=… python -m benchmarks.view_choices`` draws volumes, videos and tables from the
tuning part of the datasets (see `tuckermix_bench.draws`), from generators with the seeds that
are for tuning, and from the small tables that come with scikit-learn, of which nothing is reported.
Pictures of the tuning part stand among the tables as rows of pixels; *gains* are planted clusters
whose samples differ in brightness, made to see whether that is found. The number of clusters is
given; each list names what stability chooses among beside the views of before, and has the paired
difference to these with its standard error. A list falls where it is worse by more than two of
them. *now* is the list with soft edges for tables and volumes in which no entry is negative, as
`AutoClustering` has it, and the views of before for all others. *taken* says how often norm 1 was
chosen, *oracle* what the best candidate of each draw has, as only the classes could tell it.

One of several lists was chosen by these draws, so that what it gains on them is too much:
``--fresh`` compares it with what was before on other draws of the same parts, which served no
choice among the lists. Two thirds of a small table are much the same in each draw; the errors of
such columns are too small.

Results go to `view_choices.json` and `view_choices.md` in the folder ``--out``; ``--only`` names
groups of columns, and columns that the file holds are not computed again. Those of fresh draws go
to `view_choices_fresh.json` and `view_choices_fresh.md`. ``--planted 10`` looks for the numbers of
planted clusters of amounts instead, for `view_choices_planted.json`.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets as of_sklearn
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline

from benchmarks import choosing, reporting
from benchmarks.label_choices import shapes, textures
from benchmarks.quality import draw_places
from tuckermix import AutoClustering, MultiViewClustering, TuckerClustering
from tuckermix.datasets import load, make_tensor_clusters
from tuckermix_bench.draws import TUNING, part_seed, restrict
from tuckermix.features import Scale
from tuckermix.metrics import clustering_accuracy
from tuckermix.selection.auto import (
    SHARP_EDGE,
    SHARP_POWER,
    SOFT_EDGE,
    SOFT_POWER,
    fit_with,
    has_norms,
    is_noisy,
)
from tuckermix.selection.resampling import Resampler, set_clusters
from tuckermix.selection.search import choose
from tuckermix.selection.shared import Features

SEED = 277
"""The first seed of the draws, apart from those of other benchmarks."""

TOLERANCE = 2.0
"""A list has fallen in a column where it is worse by more than this many standard errors."""

BEFORE, BEST, ADDED = "before", "+ unit, unit soft", "now"
"""What was compared before, the list that gained most, and what is compared now: that list for
tables and volumes without negative entries, and what was compared before elsewhere."""

ORACLES = ("oracle before", "oracle now")
"""The best of the candidates of a draw, before and with those of the list that gained most."""

OPEN = {(64,): 1.0, (8, 8, 8): 1.5}
"""Shapes of the planted amounts whose number is looked for, and their noise in units of that in
`benchmarks.choosing`."""

FRESH = 100
"""The first of the draws that served no choice among the lists."""

LISTS: dict[str, tuple[str, ...]] = {
    BEFORE: (),
    "+ unit": ("unit",),
    BEST: ("unit", "unit, soft edge"),
    "+ sum": ("pixels + unit",),
    "+ unit, sum": ("unit", "pixels + unit"),
    "+ all three": ("unit", "unit, soft edge", "pixels + unit"),
}
"""What is compared beside the views of the samples as they are."""

NEW = {name for names in LISTS.values() for name in names}

VOXELS = {2: 90, 3: 90, 4: 90, 6: 80, 8: 70, 10: 60}
"""Samples of each class by number of classes, near those of the paper's Table 6."""

PICTURES = (
    ("mnist", 5, 100),
    ("cbcl", 2, 300),
    ("orl", 10, 10),
    ("pie", 12, 42),
    ("yaleb", 6, 64),
)
"""Pictures that stand among the tables: dataset, classes, samples of each."""

GAINS = 0.5
"""The standard deviation of the logarithm of the brightness, where samples differ in it."""

PLANTED = {"64": (64,), "8 × 8": (8, 8), "8 × 8 × 8": (8, 8, 8)}
"""Shapes of planted samples."""

Sample = tuple[np.ndarray, np.ndarray]
"""Samples and their classes."""


@lru_cache(maxsize=2)
def tuning_part(name: str) -> Any:
    """Return the part of a dataset that choices may look at."""
    return restrict(load(name), name, TUNING)


def drawn(name: str, n_classes: int, each: int, flat: bool, seed: int) -> Sample:
    """Draw from a tuning part, with values from 0 to 1."""
    data = tuning_part(name)
    places = draw_places(data.labels, n_classes, each, SEED + seed)
    X = data.X[places].astype(np.float32)
    X = X / float(data.X.max())
    return X.reshape(len(X), -1) if flat else X, data.labels[places]


def videos(n_classes: int, seed: int) -> Sample:
    """Draw videos, 50 of each class."""
    return textures(n_classes, 50, SEED + seed)


def planted(shape: tuple[int, ...], noise: float, positive: bool, seed: int) -> Sample:
    """Draw six planted clusters."""
    return make_tensor_clusters(
        240,
        shape,
        6,
        noise=noise,
        positive=positive,
        random_state=part_seed(TUNING, SEED + seed),
        return_X_y=True,
    )


def with_gains(shape: tuple[int, ...], noise: float, seed: int) -> Sample:
    """Draw planted clusters whose samples differ in brightness."""
    X, y = planted(shape, noise, True, seed)
    gains = np.exp(GAINS * np.random.default_rng(SEED + seed).standard_normal(len(X)))
    return X * gains.reshape(-1, *(1,) * len(shape)), y


def table(load_table: Callable[..., Any], seed: int) -> Sample:
    """Draw two thirds of a table of scikit-learn."""
    X, y = load_table(return_X_y=True)
    rng = np.random.default_rng(SEED + seed)
    places = rng.permutation(len(X))[: 2 * len(X) // 3]
    return X[places], y[places]


def point_set(kind: int, seed: int) -> Sample:
    """Draw a point set of `benchmarks.label_choices`."""
    return list(shapes(seed))[kind]


def columns() -> Iterator[tuple[str, str, Callable[[int], Sample], int]]:
    """Yield group, column, what draws, and how many draws."""
    for count, each in VOXELS.items():
        yield "volumes", f"voxels {count}", partial(drawn, "modelnet10", count, each, False), 8
    for count in (4, 8):
        yield "volumes", f"textures {count}", partial(videos, count), 6
    for title, shape in PLANTED.items():
        noise = {1: 2.0, 2: 2.0, 3: 4.5}[len(shape)]
        group = "tables" if len(shape) == 1 else "small" if len(shape) == 2 else "volumes"
        for positive in (False, True):
            name = f"planted {title}" + (", positive" if positive else "")
            yield group, name, partial(planted, shape, noise, positive), 6
    yield "gains", "gains 64", partial(with_gains, (64,), 1.0), 6
    yield "gains", "gains 8 × 8 × 8", partial(with_gains, (8, 8, 8), 2.0), 6
    yield "small", "digits 10", partial(drawn, "digits", 10, 85, False), 6
    yield "tables", "digits 10, rows", partial(drawn, "digits", 10, 85, True), 6
    for name, count, each in PICTURES:
        yield "tables", f"{name} {count}, rows", partial(drawn, name, count, each, True), 6
    for name in ("iris", "wine", "breast_cancer"):
        yield "tables", name, partial(table, getattr(of_sklearn, f"load_{name}")), 8
    for kind, name in enumerate(
        ("equal 2", "unequal 2", "unequal 5", "near 2", "equal 20", "unequal 20", "two of 10")
    ):
        yield "points", f"blobs, {name}", partial(point_set, kind), 4
    yield "points", "moons", partial(point_set, 7), 4
    yield "points", "rings", partial(point_set, 8), 4


def views(X: np.ndarray, wanted: set[str]) -> dict[str, Any]:
    """Return the views of before, and those of the new ones that are wanted."""
    soft = {"ridge_edge": SOFT_EDGE, "ridge_power": SOFT_POWER}
    unit = make_pipeline(Scale("unit"), TuckerClustering())
    every: dict[str, Any] = {
        "pixels": TuckerClustering(),
        "pixels, soft edge": TuckerClustering(**soft),
    }
    if X.ndim <= 3 and is_noisy(X):
        sharp = TuckerClustering(ridge_edge=SHARP_EDGE, ridge_power=SHARP_POWER)
        every["pixels, sharp edge"] = sharp
    every["unit"] = unit
    every["unit, soft edge"] = make_pipeline(Scale("unit"), TuckerClustering(**soft))
    every["pixels + unit"] = MultiViewClustering([("pixels", TuckerClustering()), ("unit", unit)])
    return {name: view for name, view in every.items() if name not in NEW or name in wanted}


def compare(
    X: np.ndarray, truth: np.ndarray, seed: int, lists: dict[str, tuple[str, ...]]
) -> dict[str, Any]:
    """Score every view of a draw, and what stability chooses among those of each list."""
    wanted = {name for names in lists.values() for name in names}
    n_clusters, every = len(np.unique(truth)), views(X, wanted)
    features, score = Features(X), {}
    fit_seed = int(_after_subsamples(seed).integers(2**31))
    for name, candidate in every.items():
        model = fit_with(set_clusters(clone(candidate), n_clusters, fit_seed), X, features)
        final = model[-1] if isinstance(model, Pipeline) else model
        score[name] = clustering_accuracy(truth, final.labels_)
    distinct = np.sort(np.unique(X.reshape(len(X), -1), axis=0, return_index=True)[1])
    spectra: dict[str, Any] = {}
    chosen, stability = {}, {}
    for title, added in lists.items():
        candidates = [(name, e) for name, e in every.items() if name not in NEW or name in added]
        resampler = Resampler(X[distinct], candidates, np.random.default_rng(seed), "pixels")
        resampler._spectra = spectra  # the same for all lists
        selection = choose(resampler, n_clusters, lambda share, doing: None)
        chosen[title] = selection.view
        stability |= {trial.view: trial.stability for trial in selection.trials}
    chosen[ADDED] = chosen[BEST if has_norms(X) else BEFORE]
    return {"accuracy": score, "stability": stability, "chosen": chosen}


def _after_subsamples(seed: int) -> np.random.Generator:
    """Return the generator of `AutoClustering` as it is when the fit takes its seed."""
    rng = np.random.default_rng(seed)
    rng.integers(2**31)
    return rng


def numbers(runs: int) -> dict[str, Any]:
    """Look for the number of planted clusters of amounts, 3 to 12 of them."""
    found = []
    for run in range(runs):
        true = 3 + run % len(choosing.NOISE)
        for shape, factor in OPEN.items():
            X = make_tensor_clusters(
                choosing.EACH * true,
                shape,
                true,
                noise=factor * choosing.NOISE[true],
                positive=True,
                random_state=5000 + part_seed(TUNING, run),
            ).X
            model = AutoClustering(random_state=run).fit(X)
            row = {"shape": shape, "true": true, "found": model.n_clusters_}
            found.append(row | {"view": model.selection_.view})
            print(found[-1], flush=True)
    right = sum(row["true"] == row["found"] for row in found)
    return {"right": right, "runs": len(found), "rows": found}


def differences(rows: list[dict[str, Any]], title: str) -> np.ndarray:
    """Return by how much a list is better than what was compared before, for each draw."""
    pairs = [[row["accuracy"][row["chosen"][key]] for key in (title, BEFORE)] for row in rows]
    return np.array([new - old for new, old in pairs])


def summary_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Average the accuracies of a column: of each list, its gain and error, and of the oracle."""
    found: dict[str, Any] = {}
    for title in rows[0]["chosen"]:
        gaps = differences(rows, title)
        values = [row["accuracy"][row["chosen"][title]] for row in rows]
        found[title] = {
            "accuracy": float(np.mean(values)),
            "gain": float(gaps.mean()),
            "error": float(gaps.std(ddof=1) / len(gaps) ** 0.5),
        }
    for title, left_out in zip(ORACLES, (NEW, NEW - set(LISTS[BEST])), strict=True):
        best = [
            max(score for name, score in row["accuracy"].items() if name not in left_out)
            for row in rows
        ]
        found[title] = {"accuracy": float(np.mean(best))}
    found["unit alone"] = {"accuracy": float(np.mean([row["accuracy"]["unit"] for row in rows]))}
    found["taken"] = sum(row["chosen"][ADDED] in NEW for row in rows)
    return found


def page(held: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Lay out all columns and the means of groups; return these and the lines."""
    first = next(iter(held.values()))["draws"][0]["chosen"] if held else {}
    titles = [title for title in first if title != BEFORE]
    heads = ["", "draws", BEFORE, *titles, "taken", "unit alone", *ORACLES]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    every = {name: summary_of(column["draws"]) for name, column in held.items()}
    for name, found in every.items():
        cells = [name, str(len(held[name]["draws"])), f"{found[BEFORE]['accuracy']:.3f}"]
        for title in titles:
            gain, error = found[title]["gain"], found[title]["error"]
            falls = " falls" if gain < -TOLERANCE * error else ""
            cells.append(f"{gain:+.3f} ± {error:.3f}{falls}")
        cells += [str(found["taken"]), f"{found['unit alone']['accuracy']:.3f}"]
        cells += [f"{found[title]['accuracy']:.3f}" for title in ORACLES]
        lines.append("| " + " | ".join(cells) + " |")
    means: dict[str, Any] = {}
    for group in dict.fromkeys(column["group"] for column in held.values()):
        inside = [every[name] for name, column in held.items() if column["group"] == group]
        scores = (BEFORE, *titles, "unit alone", *ORACLES)
        mean = {
            title: float(np.mean([found[title]["accuracy"] for found in inside]))
            for title in scores
        }
        cells = [f"mean of {group}", "", f"{mean[BEFORE]:.3f}"]
        means[group] = mean
        for title in titles:
            errors = [found[title]["error"] for found in inside]
            error = float(np.sqrt(np.sum(np.square(errors)))) / len(inside)
            means[group][f"gain {title}"] = gain = mean[title] - mean[BEFORE]
            cells.append(f"{gain:+.3f} ± {error:.3f}")
        cells += ["", f"{mean['unit alone']:.3f}", *(f"{mean[title]:.3f}" for title in ORACLES)]
        lines.append("| " + " | ".join(cells) + " |")
    return {"columns": every, "means": means}, lines


def main() -> None:
    """Compute what is missing and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=(), help="groups, such as 'volumes'")
    parser.add_argument("--planted", type=int, default=0, help="numbers to be found, for a shape")
    parser.add_argument("--fresh", action="store_true", help="draws that served no choice")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.planted:
        stored = json.dumps(numbers(options.planted), indent=1) + "\n"
        (options.out / "view_choices_planted.json").write_text(stored, encoding="utf-8")
        return
    name_of_file = "view_choices_fresh" if options.fresh else "view_choices"
    lists = {title: LISTS[title] for title in (BEFORE, BEST)} if options.fresh else LISTS
    first = FRESH if options.fresh else 0
    path, held = options.out / f"{name_of_file}.json", {}
    if path.exists():
        held = json.loads(path.read_text(encoding="utf-8"))["columns"]
    order = []
    for group, name, sample, n_draws in columns():
        order.append(name)
        if name in held or (options.only and group not in options.only):
            continue
        seeds = range(first, first + n_draws)
        rows = [compare(*sample(seed), seed, lists) for seed in seeds]
        held[name] = {"group": group, "draws": rows}
        print(name, page({name: held[name]})[1][2], flush=True)
        _write(path, {name: held[name] for name in order if name in held})
    held = {name: held[name] for name in order if name in held}
    _write(path, held)
    command = "TUCKERMIX_DATA=… python -m benchmarks.view_choices" + " --fresh" * options.fresh
    heading = reporting.heading(command, "Tuning part", reporting.environment())
    text = "\n".join([heading, "", *page(held)[1], ""])
    (options.out / f"{name_of_file}.md").write_text(text, encoding="utf-8")
    print(text)


def _write(path: Path, held: dict[str, Any]) -> None:
    """Store all columns, and the figures that pages quote."""
    stored = {"summary": page(held)[0], "columns": held}
    path.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
