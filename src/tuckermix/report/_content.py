"""The numbers of the report, ready for the template."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._array_api import blocks, to_numpy
from tuckermix._records import Record
from tuckermix.features.registry import TRANSFORMERS, VIEWS
from tuckermix.metrics import matched_table
from tuckermix.plots.fitted import (
    distances_to,
    even_subsample,
    history_column,
    iterations_of,
    rows_of,
    subspace_of,
    typical_members,
)
from tuckermix.plots.layout import neighbor_map
from tuckermix.plots.pictures import picture, picture_kind, resized, value_range, views
from tuckermix.plots.style import COLOURS
from tuckermix.report import _images, _svg
from tuckermix.summary import FitSummary, duration, known, sizes_text, surety

MAX_MARKS = 10_000
"""The map shows no more samples than this: the file stays small and opens at once."""

N_MEMBERS = 6
"""Typical and doubtful members on each card: a row on a screen, two on a phone."""

FEW_MARKS = 3
"""The number of a cluster with no more marks than this stands beside them."""

SOFT_LABELS = 4
"""The number of largest soft labels that go with each sample."""

SCALE_SAMPLES = 2000
"""The scale of grey is taken from this many samples."""

MAX_CONFUSION = 40
"""With more classes or clusters than this, a table of counts is no longer read: a list is."""

LISTED_CLUSTERS = 4
"""The number of clusters of a class that are named in the list."""

MOST_MAPS = 12
"""Maps of components that a report shows: more are hardly looked at."""


@dataclass(frozen=True)
class Subject(Record):
    """Subject of the report: a fitted model, its samples, and what is known of them."""

    model: Any
    X: Any
    labels: np.ndarray
    proba: np.ndarray
    names: list[str]
    truth: Any = None
    kind: str = "auto"
    images: Any = None
    """Samples to show in place of `X`, where `X` holds features of images."""
    outliers: Any = None
    """Which samples are outliers, where these are told apart."""
    places: Any = None
    """Where the samples lie in the learned subspace."""

    @property
    def shown(self) -> Any:
        """Arrays that pictures are made of."""
        return self.X if self.images is None else self.images

    @property
    def shown_kind(self) -> str:
        """How samples are drawn: one of the kinds of `picture_kind`, and never "auto"."""
        return picture_kind(tuple(self.shown.shape[1:]), self.kind)


@dataclass(frozen=True)
class Member(Record):
    """A sample on a card: which one, its name, its picture and what is said about it."""

    sample: int
    name: str
    address: str
    note: str


@dataclass(frozen=True)
class Card(Record):
    """Facts about one cluster."""

    cluster: int
    size: int
    share: float
    confidence: float
    centroid: list[str]
    typical: list[Member]
    doubtful: list[Member]
    truth: str
    shape: str


@dataclass(frozen=True)
class Map(Record):
    """The map: marks by cluster, and what hovering tells, in the same order."""

    groups: list[tuple[int, list[str]]]
    numbers: list[tuple[int, int, int, int]]
    n_marks: int
    sheet: _images.Sheet
    data: dict[str, Any]


def shown_samples(subject: Subject) -> tuple[Any, tuple[float, float]]:
    """Return what pictures are made of, and the values shown as black and as white."""
    X = subject.shown
    return X, value_range(rows_of(X, even_subsample(X.shape[0], SCALE_SAMPLES)))


def cards(subject: Subject) -> list[Card]:
    """Describe each cluster.

    `typical_members` says which members are typical and which doubtful. Where there are
    images beside the features, each cluster is shown by the mean of its images.
    """
    X, labels, truth, kind = subject.X, subject.labels, subject.truth, subject.kind
    centroids = to_numpy(subject.model.centroids_)
    confidence = subject.proba[np.arange(len(labels)), labels]
    unit = "sure" if getattr(subject.model, "calibrate", False) else "of votes"
    distances = distances_to(X, centroids, labels)
    typical, doubtful = typical_members(labels, confidence, distances, len(centroids), N_MEMBERS)
    if subject.images is not None:
        centroids = mean_images(subject.images, labels, len(centroids))
    X, limits = shown_samples(subject)
    shown = views(centroids, kind, limits=limits)
    side = _images.card_side(len(centroids) * (2 * N_MEMBERS + 1) * shown.shape[1])
    result = []
    for cluster in range(len(centroids)):
        members = np.flatnonzero(labels == cluster)

        def describe(chosen: np.ndarray) -> list[Member]:
            if not len(chosen):
                return []
            drawn = views(rows_of(X, chosen), kind, limits=limits)
            return [
                Member(
                    int(index),
                    subject.names[index],
                    _images.contact_sheet(several, side),
                    f"{confidence[index]:.0%} {unit}" + _truth_note(truth, index),
                )
                for index, several in zip(chosen, drawn, strict=True)
            ]

        result.append(
            Card(
                cluster=cluster,
                size=len(members),
                share=len(members) / len(labels),
                confidence=float(confidence[members].mean()) if len(members) else 0.0,
                centroid=[_images.contact_sheet(view[None], side) for view in shown[cluster]],
                typical=describe(typical[cluster]),
                doubtful=describe(doubtful[cluster]),
                truth=_majority(truth, members),
                shape=_svg.mark(cluster, 6),
            )
        )
    return result


def mean_images(images: Any, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the mean image of each cluster, block by block of the images; zeros where none is."""
    size = int(np.prod(images.shape[1:]))
    total = np.zeros((n_clusters, size))
    for part in blocks(images.shape[0], 8 * size):
        flat = to_numpy(images[part]).reshape(-1, size)
        total += np.eye(n_clusters)[labels[part]].T @ flat
    counts = np.maximum(np.bincount(labels, minlength=n_clusters), 1)
    return (total / counts[:, None]).reshape(n_clusters, *images.shape[1:])


def _truth_note(truth: Any, index: int) -> str:
    return "" if truth is None or truth[index] == "" else f", class {truth[index]}"


def _majority(truth: Any, members: np.ndarray) -> str:
    """Say which known class most members belong to."""
    if truth is not None:
        members = members[known(truth[members])]
    if truth is None or not len(members):
        return ""
    values, counts = np.unique(truth[members], return_counts=True)
    best = counts.argmax()
    return f"{counts[best] / len(members):.0%} of class {values[best]}"


def sample_map(subject: Subject, chosen: np.ndarray) -> Map:
    """Place the `chosen` samples, which come cluster by cluster, and draw their thumbnails."""
    here = subject.labels[chosen]
    # Samples that are alike lie side by side in most files; the layout wants them in that order.
    order = np.sort(chosen)
    laid = _svg.map_positions(neighbor_map(_places(subject, order), subject.labels[order]))
    positions = laid[np.searchsorted(order, chosen)]
    sheet = _images.sprite_sheet(thumbnails(subject, chosen))
    size = _svg.mark_size(len(chosen))
    groups, numbers = [], []
    for cluster in np.unique(here):
        inside = positions[here == cluster]
        outline = _svg.mark(int(cluster), size)
        groups.append((int(cluster), [f"M{x} {y}{outline}" for x, y in inside]))
        middle = np.median(inside, axis=0)
        x, y = inside[((inside - middle) ** 2).sum(axis=1).argmin()]
        # Beside the marks where there are few: on top of them it would hide what it names.
        aside = _svg.number_offset(size) if len(inside) <= FEW_MARKS else 0
        numbers.append((int(cluster), int(x), int(y), aside))
    data = {
        "soft": [_soft(row) for row in subject.proba[chosen]],
        "sheet": [sheet.width, sheet.height, sheet.columns, sheet.rows],
        "shapes": _svg.SHAPES,
        "size": size,
    }
    return Map(groups, numbers, len(chosen), sheet, data)


def _places(subject: Subject, order: np.ndarray) -> np.ndarray:
    if subject.places is not None:
        return rows_of(subject.places, order)
    X = subject.X
    return subspace_of(subject.model, X if len(order) == X.shape[0] else X[order])


def thumbnails(subject: Subject, chosen: np.ndarray) -> np.ndarray:
    """Draw the chosen samples as small as a sheet of them may be, block by block."""
    X, limits = shown_samples(subject)
    side = _images.thumb_side(len(chosen))
    parts = blocks(len(chosen), 8 * int(np.prod(X.shape[1:])))
    small = [
        resized(picture(rows_of(X, chosen[part]), subject.kind, limits), side) for part in parts
    ]
    return np.concatenate(small)


def _soft(row: np.ndarray) -> list[int]:
    """Return the largest soft labels as a flat list: cluster, percent, cluster, percent."""
    largest = np.argsort(-row, kind="stable")[:SOFT_LABELS]
    percents = np.rint(100 * row[largest]).astype(int)
    return [
        int(value) for pair in zip(largest, percents, strict=True) if pair[1] > 0 for value in pair
    ]


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
        rows.append(("Outliers", f"{summary.n_outliers:,}", share))
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
        return [(name, _images.data_address(_images.png(one))) for name, one in maps]
    weights = 1.0 - to_numpy(model.memberships_).T.reshape(-1, *scene)
    maps += [(f"Component {number}", one) for number, one in enumerate(weights[:MOST_MAPS])]
    return [(name, _images.data_address(_images.png(one))) for name, one in maps]


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
        "lines": str(chosen).splitlines(),
        "views": [(view, VIEWS[view].words if view in VIEWS else "") for view in chosen.views],
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
    if skipped:
        options["on_error"] = "skip"
    if not Path(source).exists():  # a dataset by its name
        name, options = "load", {}
    given = "".join(f", {key}={value!r}" for key, value in options.items())
    lines = f"X = {name}({source!r}{given}).X\n"
    if scene is not None:
        lines += "X = X.reshape(-1, X.shape[-1])  # a pixel is a sample\n"
    return f"from tuckermix.datasets import {name}\n", lines


def snippet(model: Any, transformers: Any = (), reading: tuple[str, str] = ("", "")) -> str:
    """Return the lines of Python that repeat the fit, with the transformers before it if any."""
    call, (imported, read) = _call(model, ("n_clusters",)), reading
    if transformers:
        call = f"make_pipeline({', '.join([*map(_call, transformers), call])})"
    lines = [f"model = {call}", "labels = model.fit_predict(X)"]
    return f"{_imports(call)}{imported}\n{read}" + "\n".join(lines)


def _imports(call: str) -> str:
    """Return the lines that import what a call names."""
    homes = {
        "sklearn.pipeline": ("Pipeline", "make_pipeline"),
        "tuckermix": ("AutoClustering", "MultiViewClustering", "TuckerClustering"),
        "tuckermix.features": tuple(TRANSFORMERS),
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
    defaults, given = type(estimator)().get_params(), estimator.get_params()
    shown = {key: given[key] for key in always}
    shown |= {key: value for key, value in given.items() if repr(defaults[key]) != repr(value)}
    arguments = ", ".join(f"{key}={value!r}" for key, value in shown.items())
    return f"{type(estimator).__name__}({arguments})"
