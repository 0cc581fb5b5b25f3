"""What the commands write: labels, summary, model, report, and the folder they lie in."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._array_api import to_numpy
from tuckermix._files import write_text
from tuckermix._version import __version__
from tuckermix.cli._console import UsageError

LABELS, MODEL, REPORT, SUMMARY = "labels.csv", "model.tuckermix", "report.html", "summary.json"


@contextmanager
def result_folder(path: Path) -> Iterator[Path]:
    """Make a folder for results; one that was made and stayed empty is taken away again."""
    made = not path.exists()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise UsageError(f"Cannot write to {path}: it is a file. Name a folder.") from None
    if not os.access(path, os.W_OK):
        raise UsageError(f"Cannot write to {path}: permission is denied.")
    try:
        yield path
    finally:
        if made:
            with suppress(OSError):  # not empty: there are results in it
                path.rmdir()


def labels_text(names: Any, proba: np.ndarray, labels: np.ndarray) -> str:
    """Return labels and soft labels as CSV: name or index, label, confidence, one column each."""
    from tuckermix.report._content import sample_names

    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    columns = [f"p{cluster}" for cluster in range(proba.shape[1])]
    writer.writerow(["index" if names is None else "name", "label", "confidence", *columns])
    named = None if names is None else sample_names(names, len(labels))
    written = np.char.mod("%.6g", proba)
    confidence = written[np.arange(len(labels)), labels].tolist()
    rows = zip(labels.tolist(), confidence, written.tolist(), strict=True)
    for index, (label, sure, row) in enumerate(rows):
        writer.writerow([index if named is None else named[index], label, sure, *row])
    return stream.getvalue()


def summarise(model: Any, X: Any, proba: np.ndarray, truth: Any, seconds: float) -> dict[str, Any]:
    """Return the figures of a fit as plain values."""
    from tuckermix.metrics import clustering_accuracy, normalized_mutual_information
    from tuckermix.report._content import settings, variance_explained, versions

    labels = to_numpy(model.labels_)
    values: dict[str, Any] = {
        "tuckermix": __version__,
        "n_samples": int(X.shape[0]),
        "sample_shape": [int(size) for size in X.shape[1:]],
        "dtype": str(X.dtype),
        "n_clusters": int(proba.shape[1]),
        "cluster_sizes": np.bincount(labels, minlength=proba.shape[1]).tolist(),
        "n_components": int(model.n_components_),
        "ranks": [int(rank) for rank in model.ranks_],
        "cost": float(model.cost_),
        "variance_explained": variance_explained(model, X),
        "gap": None if np.isnan(model.gap_) else float(model.gap_),  # JSON knows no nan
        "mean_confidence": float(proba.max(axis=1).mean()),
        "n_iter": int(model.n_iter_),
        "stop_reason": str(model.stop_reason_),
        "converged": bool(model.stop_reason_.converged),
        "seconds": round(seconds, 6),
        "accuracy": None if truth is None else clustering_accuracy(truth, labels),
        "nmi": None if truth is None else normalized_mutual_information(truth, labels),
        "settings": dict(settings(model)),
        "versions": dict(versions()),
    }
    return values


def summary_rows(values: dict[str, Any], folder: Path) -> list[tuple[str, str]]:
    """Return the figures that a person wants to see first."""
    from tuckermix.report._content import duration

    shape = " × ".join(map(str, values["sample_shape"]))
    smallest, largest = min(values["cluster_sizes"]), max(values["cluster_sizes"])
    rows = [
        ("samples", f"{values['n_samples']} of shape {shape}"),
        ("clusters", f"{values['n_clusters']}, of {smallest} to {largest} samples"),
    ]
    if values["accuracy"] is not None:
        rows += [("AC", f"{values['accuracy']:.3f}"), ("NMI", f"{values['nmi']:.3f}")]
    rows += [
        ("variance explained", f"{values['variance_explained']:.1%}"),
        ("mean confidence", f"{values['mean_confidence']:.1%}"),
        ("optimality gap", "unknown" if values["gap"] is None else f"{values['gap']:.1e}"),
        ("time of the fit", duration(values["seconds"])),
        ("folder", str(folder)),
    ]
    return rows


def write_results(
    folder: Path,
    model: Any,
    X: Any,
    *,
    proba: np.ndarray,
    truth: Any,
    names: Any,
    seconds: float,
    source: str,
    title: str,
    command: str,
    kind: str,
) -> dict[str, Any]:
    """Write labels, model, report and summary, each atomically, and return the summary."""
    from tuckermix.persistence import save
    from tuckermix.report import render_report
    from tuckermix.report._content import printable

    values = summarise(model, X, proba, truth, seconds)
    page = render_report(
        model,
        X,
        truth=truth,
        names=names,
        title=title,
        source=source,
        seconds=seconds,
        proba=proba,
        command=command,
        kind=kind,
    )
    labels = labels_text(names, proba, to_numpy(model.labels_))
    files = {"labels": LABELS, "model": MODEL, "report": REPORT, "summary": SUMMARY}
    place = {"input": source, "command": command, "folder": str(folder)}
    values = {**values, **{name: printable(text) for name, text in place.items()}, "files": files}
    write_text(folder / LABELS, labels)
    save(model, folder / MODEL)
    write_text(folder / REPORT, page)
    write_text(folder / SUMMARY, json.dumps(values, indent=2) + "\n")
    return values
