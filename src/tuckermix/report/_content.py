"""How a clustering was made, in words, figures and curves, ready for the template."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._array_api import to_numpy
from tuckermix.features.registry import TRANSFORMERS
from tuckermix.metrics import matched_table
from tuckermix.plots.fitted import history_column, iterations_of
from tuckermix.plots.style import COLOURS
from tuckermix.report import _images, _svg
from tuckermix.summary import FitSummary, duration, known, sizes_text, surety

MAX_CONFUSION = 40
"""With more classes or clusters than this, a table of counts is no longer read: a list is."""

LISTED_CLUSTERS = 4
"""The number of clusters of a class that are named in the list."""

MOST_MAPS = 12
"""Maps of components that a report shows: more are hardly looked at."""


def facts(summary: FitSummary) -> list[tuple[str, str, str]]:
    """Return the figures of the overview: name, value, and what it means."""
    shape = sizes_text(summary.sample_shape)
    name, meaning = surety(summary.settings)
    rows = [
        ("Samples", f"{summary.n_samples:,}", f"each of shape {shape}"),
        ("Clusters", str(summary.n_clusters), "found in the samples"),
    ]
    if summary.ranks is not None:
        rows[1] = (*rows[1][:2], f"from {summary.n_components} components")
        rows.append(("Ranks", sizes_text(summary.ranks), "the core kept of each sample"))
    if summary.variance_explained is not None:
        explained = f"{100 * summary.variance_explained:.1f} %"
        rows.append(("Variance explained", explained, f"cost {summary.cost:.4g}"))
    rows.append((name[0].upper() + name[1:], f"{summary.mean_confidence:.0%}", meaning))
    if summary.n_outliers:
        share = f"{summary.n_outliers / summary.n_samples:.1%} of the samples, of label -1"
        what = "Outliers" if summary.settings.get("outliers") == "label" else "Set aside"
        rows.append((what, f"{summary.n_outliers:,}", share))
    if summary.accuracy is not None:
        known = f"{100 * summary.accuracy:.1f} %"
        rows.append(("Accuracy", known, "clusters matched to known classes"))
        rows.append(("NMI", f"{summary.nmi:.3f}", "shared information, 1 is perfect"))
    if summary.gap is not None:
        meaning = "0: for these factors no mixing weights fit better"
        rows.append(("Optimality gap", summary.gap_text, meaning))
    stop = summary.stop_reason
    ended = "" if stop is None else f", stopped by {stop.replace('_', ' ')}"
    note = "" if summary.n_iter is None else f"{summary.n_iter} iterations{ended}"
    if summary.seconds is not None:
        rows.append(("Time", duration(summary.seconds), note))
    elif summary.n_iter is not None:
        rows.append(("Iterations", str(summary.n_iter), ended.removeprefix(", ") or "done"))
    return rows


def scene_maps(
    model: Any, labels: np.ndarray, scene: tuple[int, int] | None
) -> list[tuple[str, str]]:
    """Return maps of a scene whose pixels are the samples, each with its name: labels, weights."""
    if scene is None:
        return []
    colours = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in COLOURS])
    painted = colours[labels % len(colours)].reshape(*scene, 3)
    maps = [("Clusters", painted)]
    if not hasattr(model, "memberships_"):
        return [(name, _images.address(np.rint(255 * one).astype(np.uint8))) for name, one in maps]
    weights = 1.0 - to_numpy(model.memberships_).T.reshape(-1, *scene)
    maps += [(f"Component {number}", one) for number, one in enumerate(weights[:MOST_MAPS])]
    return [(name, _images.address(np.rint(255 * one).astype(np.uint8))) for name, one in maps]


def charts(model: Any) -> list[_svg.Chart]:
    """Draw the cost and the gap over the iterations."""
    history = getattr(model, "history_", [])
    if not len(history):
        return []
    iterations = iterations_of(history)
    drawn = [
        _svg.chart("Cost", iterations, history_column(history, "cost")),
        _svg.chart("Optimality gap", iterations, history_column(history, "gap"), log=True),
    ]
    return [one for one in drawn if one is not None]


def selection(chosen: Any) -> dict[str, Any] | None:
    """Say how the view and the number of clusters were chosen, with the score over the numbers."""
    if chosen is None:
        return None
    curve = chosen.curve
    numbers = [trial.n_clusters for trial in curve]
    drawn = _svg.chart("Score", numbers, [t.score for t in curve]) if len(curve) > 1 else None
    shown = curve if len(curve) > 1 else chosen.of(chosen.n_clusters)
    columns = ["stability", "modularity", "score"]
    weighed = any(trial.weight != 1.0 for trial in shown)
    if weighed:
        columns.insert(2, "weight")
    return {
        # How numbers nest in each other is what the slider shows.
        "lines": [line for line in str(chosen).splitlines() if " nest in the " not in line],
        "chart": drawn,
        "weighed": weighed,
        "rows": [
            (t.n_clusters, t.view, *(f"{getattr(t, name):.3f}" for name in columns)) for t in shown
        ],
    }


def confusion(truth: Any, labels: np.ndarray) -> dict[str, Any] | None:
    """Return the matched table of classes and clusters with the shade of each cell.

    With more than `MAX_CONFUSION` classes or clusters it is a list instead: for each class its
    largest clusters, the one it is matched with marked.
    """
    if truth is None:
        return None
    sure = known(truth)
    table = matched_table(truth[sure], labels[sure])
    if max(table.counts.shape) > MAX_CONFUSION:
        return {"long": _largest_clusters(table), "shades": []}
    shares = table.counts / table.counts.sum(axis=1, keepdims=True)
    percents = np.rint(100 * shares).astype(int)
    return {
        "long": None,
        "clusters": [int(cluster) for cluster in table.clusters],
        "rows": [
            (str(name), list(zip(counts.tolist(), row.tolist(), strict=True)))
            for name, counts, row in zip(table.classes, table.counts, percents, strict=True)
        ],
        "shades": np.unique(percents).tolist(),
    }


def _largest_clusters(table: Any) -> list[tuple[str, int, list[tuple[int, int, bool]]]]:
    """Return each class with its size and its largest clusters: number, count, whether matched."""
    result = []
    for row, (name, counts) in enumerate(zip(table.classes, table.counts, strict=True)):
        largest = np.argsort(-counts, kind="stable")[:LISTED_CLUSTERS]
        found = [
            (int(table.clusters[place]), int(counts[place]), int(place) == row)
            for place in largest
            if counts[place]
        ]
        result.append((str(name), int(counts.sum()), found))
    return result


def reading_lines(
    source: str | None,
    reading: dict[str, Any] | None,
    skipped: bool = False,
    scene: tuple[int, int] | None = None,
) -> tuple[str, str]:
    """Return the lines of Python that import and read the samples; none where it is not known."""
    if source is None or reading is None:
        return "", ""
    options = {key: value for key, value in reading.items() if key != "suffix"}
    name = "read"
    embeddings = options.pop("embeddings", None)
    if skipped:
        options["on_error"] = "skip"
    if not Path(source).exists():  # a dataset by its name
        name, options = "load", {}
    given = "".join(f", {key}={value!r}" for key, value in options.items())
    lines = f"X = {name}({source!r}{given}).X\n"
    if embeddings is not None:
        lines = f"data = {name}({source!r}{given})\nX = data.X\n"
        lines += f"embeddings = read_embeddings({embeddings!r}, data.names)\n"
        name = f"{name}, read_embeddings"
    if scene is not None:
        lines += "X = X.reshape(-1, X.shape[-1])  # a pixel is a sample\n"
    return f"from tuckermix.datasets import {name}\n", lines


def snippet(model: Any, transformers: Any = (), reading: tuple[str, str] = ("", "")) -> str:
    """Return the lines of Python that repeat the fit, with the transformers before it if any."""
    call, (imported, read) = _call(model, ("n_clusters",)), reading
    if transformers:
        call = f"make_pipeline({', '.join([*map(_call, transformers), call])})"
    given = "X"
    if "read_embeddings" in imported:
        given += (
            f", {type(model).__name__.lower() + '__' if transformers else ''}embeddings=embeddings"
        )
    lines = [f"model = {call}", f"labels = model.fit_predict({given})"]
    return f"{_imports(call)}{imported}\n{read}" + "\n".join(lines)


def _imports(call: str) -> str:
    """Return the lines that import what a call names."""
    homes = {
        "sklearn.pipeline": ("Pipeline", "make_pipeline"),
        "tuckermix": ("AutoClustering", "MultiViewClustering", "TuckerClustering"),
        "tuckermix.features": tuple(TRANSFORMERS),
        "tuckermix.labels": ("GraphLabels",),
    }
    named = {
        home: [name for name in names if re.search(rf"\b{name}\(", call)]
        for home, names in homes.items()
    }
    return "".join(
        f"from {home} import {', '.join(names)}\n" for home, names in named.items() if names
    )


def _call(estimator: Any, always: tuple[str, ...] = ()) -> str:
    """Write the call that makes an estimator: parameters that differ from the defaults."""
    defaults, given = (each.get_params(deep=False) for each in (type(estimator)(), estimator))
    shown = {key: given[key] for key in always}
    shown |= {key: value for key, value in given.items() if repr(defaults[key]) != repr(value)}
    arguments = ", ".join(f"{key}={value!r}" for key, value in shown.items())
    return f"{type(estimator).__name__}({arguments})"
