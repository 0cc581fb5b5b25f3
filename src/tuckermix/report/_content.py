"""How a clustering was made, in words, figures and curves, ready for the template."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._array_api import to_numpy
from tuckermix.features.registry import TRANSFORMERS
from tuckermix.metrics import matched_table
from tuckermix.plots.fitted import history_column, iterations_of
from tuckermix.plots.style import COLOURS
from tuckermix.report import _images
from tuckermix.summary import FitSummary, duration, known, sizes_text, surety

MAX_CONFUSION = 40
"""With more classes or clusters than this, a table of counts is no longer read: a list is."""

LISTED_CLUSTERS = 4
"""The number of clusters of a class that are named in the list."""

N_TICKS = 5
LOG_FLOOR = 1e-17
"""Where a zero is drawn on a log scale: below rounding error."""

HOMES = {
    "sklearn.pipeline": ("Pipeline", "make_pipeline"),
    "tuckermix": ("AutoClustering", "MultiViewClustering", "TuckerClustering"),
    "tuckermix.features": tuple(TRANSFORMERS),
    "tuckermix.labels": ("GraphLabels",),
}
"""Where Python finds what the lines that repeat a fit name."""

MOST_MAPS = 12
"""Maps of components that a report shows: more are hardly looked at."""


def facts(summary: FitSummary) -> list[tuple[str, str, str]]:
    """Return the figures that a person wants to see first: name, value, and what it means."""
    made = []
    if summary.ranks is not None:
        made.append(f"{summary.n_components} components, core {sizes_text(summary.ranks)}")
    if summary.n_iter is not None:
        stop = summary.stop_reason
        ended = f", stopped by {stop.replace('_', ' ')}" if stop else ""
        made.append(f"{summary.n_iter} iterations{ended}")
    sizes = f"of {min(summary.cluster_sizes)} to {max(summary.cluster_sizes)} samples"
    rows = [
        ("samples", f"{summary.n_samples} of shape {sizes_text(summary.sample_shape)}", ""),
        ("clusters", f"{summary.n_clusters}, {sizes}", "; ".join(made)),
    ]
    if summary.n_outliers:
        share = summary.n_outliers / summary.n_samples
        what = "outliers" if summary.settings.get("outliers") == "label" else "set aside"
        rows.append((what, f"{summary.n_outliers}, {share:.1%}, of label -1", ""))
    if summary.accuracy is not None:
        rows.append(("AC", f"{summary.accuracy:.3f}", "accuracy, clusters matched to classes"))
        rows.append(("NMI", f"{summary.nmi:.3f}", "shared information, 1 is perfect"))
    if summary.variance_explained is not None:
        explained = f"{summary.variance_explained:.1%}"
        rows.append(("variance explained", explained, f"cost {summary.cost:.4g}"))
    name, meaning = surety(summary.settings)
    rows.append((name, f"{summary.mean_confidence:.1%}", meaning))
    if summary.gap is not None:
        meaning = "0: for these factors no mixing weights fit better"
        rows.append(("optimality gap", f"{summary.gap:.1e}" if summary.gap else "0", meaning))
    if summary.seconds is not None:
        rows.append(("time of the fit", duration(summary.seconds), ""))
    return rows


def in_words(value: Any) -> str:
    """Write a setting for people."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {in_words(one)}" for key, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(in_words, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "not set" if value is None else str(value)


def scene_maps(model: Any, labels: np.ndarray, scene: Any) -> list[tuple[str, str]]:
    """Return maps of a scene whose pixels are the samples, each with its name: labels, weights."""
    if scene is None:
        return []
    colours = np.array([list(bytes.fromhex(colour[1:])) for colour in COLOURS]) / 255
    maps = [("Clusters", colours[labels % len(colours)].reshape(*scene, 3))]
    if hasattr(model, "memberships_"):
        weights = 1.0 - to_numpy(model.memberships_).T.reshape(-1, *scene)
        maps += [(f"Component {number}", one) for number, one in enumerate(weights[:MOST_MAPS])]
    return [(name, _images.address(np.rint(255 * one).astype(np.uint8))) for name, one in maps]


def chart(title: str, x: Any, y: Any, *, log: bool = False) -> dict[str, Any] | None:
    """Return a curve in shares of its drawing, with ticks; None where nothing of it is finite."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    known = np.isfinite(x) & np.isfinite(y)
    if not known.any():
        return None
    x, y = x[known], y[known]
    level = np.log10(np.maximum(y, LOG_FLOOR)) if log else y
    ends = (math.floor(level.min()), math.ceil(level.max())) if log else (level.min(), level.max())
    up = np.linspace(*ends, N_TICKS)
    up = np.unique(up.round() if log else up)
    across = np.unique(np.linspace(x.min(), x.max(), N_TICKS).round())

    # As many digits as tell the ticks apart: a large cost may change little.
    digits = next((n for n in range(6, 17) if len({f"{one:.{n}g}" for one in up}) == len(up)), 17)
    texts = [f"1e{value:.0f}" if log else f"{value:.{digits}g}" for value in up]
    places, columns = (np.interp(v, (x.min(), x.max()), (0, 1)).round(4) for v in (x, across))
    heights, rows = (np.interp(v, ends, (0, 1)).round(4) for v in (level, up))
    return {
        "title": title,
        "points": list(zip(places.tolist(), heights.tolist(), strict=True)),
        "x_ticks": list(zip(columns.tolist(), [f"{value:g}" for value in across], strict=True)),
        "y_ticks": list(zip(rows.tolist(), texts, strict=True)),
        "table": [(f"{a:g}", f"{b:.6g}") for a, b in zip(x, y, strict=True)],
    }


def charts(model: Any) -> list[dict[str, Any]]:
    """Draw the cost and the gap over the iterations."""
    history = getattr(model, "history_", [])
    iterations = iterations_of(history)
    cost = chart("Cost", iterations, history_column(history, "cost"))
    gap = chart("Optimality gap", iterations, history_column(history, "gap"), log=True)
    return [one for one in (cost, gap) if one is not None]


def selection(chosen: Any) -> dict[str, Any] | None:
    """Say how the view and the number of clusters were chosen, with the score over the numbers."""
    if chosen is None:
        return None
    several = len(chosen.curve) > 1
    shown = chosen.curve if several else chosen.of(chosen.n_clusters)
    numbers, scores = [t.n_clusters for t in shown], [t.score for t in shown]
    columns = ("stability", "modularity", "weight", "score")
    return {
        # How numbers nest in each other is what the slider shows.
        "lines": [line for line in str(chosen).splitlines() if " nest in the " not in line],
        "chart": chart("Score", numbers, scores) if several else None,
        "rows": [
            (t.n_clusters, t.view, *(f"{getattr(t, name):.3f}" for name in columns)) for t in shown
        ],
    }


def confusion(truth: Any, labels: np.ndarray) -> dict[str, Any] | None:
    """Return the matched table of classes and clusters.

    With more than `MAX_CONFUSION` classes or clusters it is a list instead: each class with its
    size and its largest clusters: number, count, and whether the class is matched with it.
    """
    if truth is None:
        return None
    sure = known(truth)
    table = matched_table(truth[sure], labels[sure])
    classes = list(zip(map(str, table.classes), table.counts, strict=True))
    if max(table.counts.shape) <= MAX_CONFUSION:
        rows = [(name, counts.tolist()) for name, counts in classes]
        return {"long": None, "clusters": table.clusters.tolist(), "rows": rows}
    long = []
    for row, (name, counts) in enumerate(classes):
        largest = np.argsort(-counts, kind="stable")[:LISTED_CLUSTERS].tolist()
        found = [(int(table.clusters[k]), int(counts[k]), k == row) for k in largest if counts[k]]
        long.append((name, int(counts.sum()), found))
    return {"long": long}


def reading_lines(
    source: str | None, reading: dict[str, Any] | None, skipped: bool = False, scene: Any = None
) -> tuple[str, str]:
    """Return the lines of Python that import and read the samples; none where it is not known."""
    if source is None or reading is None:
        return "", ""
    options = {key: value for key, value in reading.items() if key != "suffix"}
    embeddings = options.pop("embeddings", None)
    if skipped:
        options["on_error"] = "skip"
    name = "read"
    if not Path(source).exists():  # a dataset by its name
        name, options = "load", {}
    call = f"{name}({source!r}{''.join(f', {key}={value!r}' for key, value in options.items())})"
    lines = f"X = {call}.X\n"
    if embeddings is not None:
        lines = f"data = {call}\nX = data.X\n"
        lines += f"embeddings = read_embeddings({embeddings!r}, data.names)\n"
        name += ", read_embeddings"
    if scene is not None:
        lines += "X = X.reshape(-1, X.shape[-1])  # a pixel is a sample\n"
    return f"from tuckermix.datasets import {name}\n", lines


def snippet(model: Any, transformers: Any = (), reading: tuple[str, str] = ("", "")) -> str:
    """Return the lines of Python that repeat the fit, with the transformers before it if any."""
    call, (imported, read), given = _call(model, ("n_clusters",)), reading, "X"
    if transformers:
        call = f"make_pipeline({', '.join([*map(_call, transformers), call])})"
    if "read_embeddings" in imported:
        owner = f"{type(model).__name__.lower()}__" if transformers else ""
        given = f"X, {owner}embeddings=embeddings"
    imports = ""
    for home, names in HOMES.items():
        if named := [name for name in names if re.search(rf"\b{name}\(", call)]:
            imports += f"from {home} import {', '.join(named)}\n"
    fit = f"model = {call}\nlabels = model.fit_predict({given})"
    return f"{imports}{imported}\n{read}{fit}"


def _call(estimator: Any, always: tuple[str, ...] = ()) -> str:
    """Write the call that makes an estimator: parameters that differ from the defaults."""
    defaults, given = (each.get_params(deep=False) for each in (type(estimator)(), estimator))
    shown = {key: given[key] for key in always}
    shown |= {key: value for key, value in given.items() if repr(defaults[key]) != repr(value)}
    arguments = ", ".join(f"{key}={value!r}" for key, value in shown.items())
    return f"{type(estimator).__name__}({arguments})"
