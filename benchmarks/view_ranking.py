"""What views of images are ranked by, and whether strokes want few neighbours.

``TUCKERMIX_DATA=… python -m benchmarks.view_ranking --jobs 16`` draws images from the tuning part
of the datasets (see `tuckermix_bench.draws`), and turned objects made from it. *before*
chooses among the views of `benchmarks.image_views` by stability alone, *weighed* by stability times
a power of modularity (see `tuckermix.selection.record.weight_of`), and *now* does so among the
views of `AutoClustering`, where a sum of strokes with few neighbours has taken the place of the sum
of scattering and log-scattering. The number of clusters is given; each has the mean paired
difference to *before* with its standard error, and *oracle* is what the best view of each draw has,
as only the classes could tell it. These draws served no choice: the power and the sum were taken on
others. *weighed* goes on from the subsamples of *before*, and may differ a little even where all
weights are one; *now* begins anew.

``--open`` leaves the number of clusters open, and compares the number found and the adjusted Rand
index. Results go to `view_ranking.json` and `view_ranking.md` in the folder ``--out``, or to
`view_ranking_open`; draws that a file holds are not computed again.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import reporting
from benchmarks.image_views import CHOSEN, LISTS, measures, views
from benchmarks.image_views import COLUMNS as SAME
from benchmarks.turned_objects import turned_objects
from benchmarks.view_choices import drawn
from tuckermix.selection.auto import built_in_candidates
from tuckermix.selection.resampling import Resampler
from tuckermix.selection.search import choose

TURNED = "turned objects"

COLUMNS = (
    *SAME,
    ("cbcl", 2, 100),
    ("mnist", 2, 100),
    ("mnist", 6, 100),
    ("mnist", 8, 100),
    ("orl", 5, 10),
    ("orl", 15, 10),
    ("pie", 6, 42),
    ("yaleb", 4, 64),
    ("yaleb", 8, 64),
    ("yaleb", 12, 64),
    ("yaleb", 10, 11),
    ("pie", 10, 11),
    (TURNED, 10, 36),
    (TURNED, 10, 72),
    (TURNED, 20, 72),
)
"""Dataset, classes, samples of each."""

DRAWS, OPEN_DRAWS = 16, 2
FIRST, OPEN = 800, 900
"""The first draw with the number given, and with the number open; the power was set on draws before
these."""

BEFORE, RULES = "before", ("before", "weighed", "now")


def compare(column: tuple[str, int, int], seed: int, given: bool) -> dict[str, Any]:
    """Score what each rule chooses, and the best of all views."""
    warnings.simplefilter("ignore")
    name, classes, each = column
    draw = turned_objects(classes, each, seed) if name == TURNED else drawn(*column, False, seed)
    X, truth = draw
    distinct = np.sort(np.unique(X.reshape(len(X), -1), axis=0, return_index=True)[1])
    X, truth = X[distinct], truth[distinct]
    earlier, true = views(), len(np.unique(truth))
    then = [(name, earlier[name]) for name in LISTS[CHOSEN]]
    now = built_in_candidates(X.shape[1:], "auto")
    found: dict[str, Any] = {}
    first: Resampler | None = None
    accuracies = []
    for rule, candidates in zip(RULES, (then, then, now), strict=True):
        rng = np.random.default_rng(seed)
        resampler = Resampler(X, candidates, rng, weigh=rule != BEFORE)
        first = first or resampler
        resampler.features, resampler._spectra = first.features, first._spectra
        if candidates is then:  # the same labels for both
            resampler._kept, resampler._within = first._kept, first._within
            resampler._runs = first._runs
        selection = choose(resampler, true if given else None, lambda share, doing: None)
        labels = resampler.labels(selection.n_clusters, selection.view)
        found[rule] = {"view": selection.view, "found": selection.n_clusters}
        found[rule] |= measures(truth, labels)
        for (number, _), (labels, _, _) in resampler._runs.items():
            if number == true:
                accuracies.append(measures(truth, labels))
    found["oracle"] = max(accuracies, key=lambda score: score["ac"], default=found["now"])
    return found


def summary_of(draws: list[Any], measure: str) -> dict[str, Any]:
    """Average a measure over the draws of a column: each rule, its gain and its error."""
    values = {rule: np.array([draw[rule][measure] for draw in draws]) for rule in RULES}
    found: dict[str, Any] = {
        rule: reporting.paired(own, values[BEFORE]) for rule, own in values.items()
    }
    found["oracle"] = {"mean": float(np.mean([draw["oracle"][measure] for draw in draws]))}
    return found


def mean_of(columns: list[Any]) -> dict[str, Any]:
    """Average the summaries of columns."""
    found: dict[str, Any] = {}
    for rule in (*RULES, "oracle"):
        own = [column[rule] for column in columns]
        found[rule] = {key: float(np.mean([each[key] for each in own])) for key in own[0]}
        if "error" in own[0]:
            squares = np.sum([each["error"] ** 2 for each in own])
            found[rule]["error"] = float(np.sqrt(squares)) / len(own)
    return found


def cells_of(found: dict[str, Any], digits: int) -> list[str]:
    """Lay out a summary."""
    gains = [
        f"{found[rule]['gain']:+.{digits}f} ± {found[rule]['error']:.{digits}f}"
        for rule in RULES
        if rule != BEFORE
    ]
    mean, oracle = found[BEFORE]["mean"], found["oracle"]["mean"]
    return [f"{mean:.{digits}f}", *gains, f"{oracle:.{digits}f}"]


def page(held: dict[str, list[Any]], given: bool) -> tuple[dict[str, Any], list[str]]:
    """Lay out all columns and their means; return these and the lines."""
    summary: dict[str, Any] = {}
    lines: list[str] = []
    for measure in ("ac", "nmi") if given else ("ari",):
        every = {name: summary_of(draws, measure) for name, draws in held.items()}
        heads = [measure.upper(), "draws", *RULES, "oracle"]
        lines += ["", "| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
        for name, found in every.items():
            lines.append(
                "| " + " | ".join([name, str(len(held[name])), *cells_of(found, 3)]) + " |"
            )
        mean = mean_of(list(every.values()))
        lines.append("| " + " | ".join(["mean", "", *cells_of(mean, 4)]) + " |")
        summary[measure] = {"columns": every, "mean": mean}
    if not given:
        numbers = {
            name: {rule: [draw[rule]["found"] for draw in draws] for rule in RULES}
            for name, draws in held.items()
        }
        true = {name: int(name.split(" × ")[0].split()[-1]) for name in held}
        summary["octaves"], more = reporting.numbers_found(numbers, true)
        lines += more
    return summary, lines


def main() -> None:
    """Compute what is missing and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--open", action="store_true", help="leave the number of clusters open")
    parser.add_argument("--draws", type=int, help="draws of each column")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    first, count = (OPEN, OPEN_DRAWS) if options.open else (FIRST, DRAWS)
    path = options.out / ("view_ranking_open.json" if options.open else "view_ranking.json")
    tasks = {
        f"{column[0]} {column[1]} × {column[2]}/{seed}": (column, seed, not options.open)
        for column in sorted(COLUMNS, key=lambda column: -column[1] * column[2])
        for seed in range(first, first + (options.draws or count))
    }
    draws = reporting.computed(path, tasks, compare, options.jobs)
    held: dict[str, list[Any]] = {}
    for name, classes, each in sorted(COLUMNS):
        title = f"{name} {classes} × {each}"
        own = [draws[key] for key in sorted(draws) if key.startswith(f"{title}/")]
        if own:
            held[title] = own
    summary, lines = page(held, not options.open)
    path.write_text(json.dumps({"summary": summary, "draws": draws}) + "\n", encoding="utf-8")
    command = "TUCKERMIX_DATA=… python -m benchmarks.view_ranking" + " --open" * options.open
    heading = reporting.heading(command, "Tuning part", reporting.environment())
    text = "\n".join([heading, "", *lines, ""])
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
