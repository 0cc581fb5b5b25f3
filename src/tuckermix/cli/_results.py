"""What the commands write: labels, summary, model, report, and the folder they lie in."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._array_api import to_numpy
from tuckermix._files import (
    atomic_paths,
    csv_text,
    made_folder,
    refuse_link,
    remove_stale,
    write_text,
)
from tuckermix._version import __version__
from tuckermix.cli._console import UsageError
from tuckermix.summary import (
    FitSummary,
    duration,
    printable,
    sample_names,
    settings,
    sizes_text,
    summarize_fit,
    surety,
)

FILES = LABELS, MODEL, REPORT, SUMMARY = (
    *("labels.csv", "model.tuckermix", "report.html", "summary.json"),
)

SCHEMA_VERSION = 3
"""Of summary.json. Version 1, without a number, had all settings as text; 3 added what was skipped,
notes, and how many classes are known."""


@contextmanager
def result_folder(path: Path) -> Iterator[Path]:
    """Make a folder for results; one that was made and stayed empty is taken away again."""
    if path.is_symlink():
        raise UsageError(
            f"Cannot write to {path}: it is a link to {os.readlink(path)}. Name the folder itself "
            "with --out."
        )
    if path.exists() and not path.is_dir():
        raise UsageError(f"Cannot write to {path}: it is a file. Name a folder.")
    with ExitStack() as stack:
        try:
            stack.enter_context(made_folder(path))
        except OSError as error:  # a folder above it is read-only, or a file
            why = (error.strerror or str(error)).lower()
            raise UsageError(f"Cannot write to {path}: {why}. Name another folder.") from error
        if not os.access(path, os.W_OK):
            raise UsageError(f"Cannot write to {path}: permission is denied. Name another folder.")
        remove_stale(path, FILES)
        yield path


def refuse_to_replace(folder: Path, force: bool, unless: str | None = None) -> None:
    """Raise if a folder holds results, unless told to replace them or made by one command."""
    if folder.is_dir():
        for name in FILES:
            refuse_link(folder / name)
    there = [name for name in FILES if (folder / name).exists()]
    if not there or force:
        return
    if unless is not None:
        with suppress(OSError, ValueError):
            if json.loads((folder / SUMMARY).read_text(encoding="utf-8"))["command"] == unless:
                return
    raise UsageError(
        f"{folder} holds results already ({', '.join(there)}): name another folder with --out, or "
        "add --force to replace them."
    )


def labels_text(
    names: Any, proba: np.ndarray, labels: np.ndarray, scores: np.ndarray | None = None
) -> str:
    """Return labels and soft labels as CSV: name or index, label, confidence, one column each.

    Outlier scores, where there are any, are the last column.
    """
    columns = [f"p{cluster}" for cluster in range(proba.shape[1])]
    columns += [] if scores is None else ["outlier_score"]
    rows = [["index" if names is None else "name", "label", "confidence", *columns]]
    for sample in labels_values(names, proba, labels, scores):
        name, label, sure, shares, *score = sample.values()
        written = [f"{share:.6g}" for share in (sure, *shares)]
        rows.append([name, label, *written, *(f"{value:.4g}" for value in score)])
    return csv_text(rows)


def outlier_scores(model: Any, X: Any) -> np.ndarray | None:
    """Return the outlier scores of samples where the model labels outliers."""
    if getattr(model, "outliers", "keep") != "label":
        return None
    from tuckermix.plots.fitted import as_fitted

    return to_numpy(model.outlier_scores(as_fitted(model, X)))


def labels_values(
    names: Any, proba: np.ndarray, labels: np.ndarray, scores: np.ndarray | None = None
) -> list[dict[str, Any]]:
    """Return labels and soft labels as values for JSON, with the digits that CSV has."""
    named = range(len(labels)) if names is None else sample_names(names, len(labels))
    who = "index" if names is None else "name"
    rounded = [[float(f"{value:.6g}") for value in row] for row in proba]
    # Outliers, of label -1, are in no cluster: the largest soft label says how near they come.
    sure = np.where(labels < 0, proba.argmax(axis=1), labels)
    values = [
        {who: name, "label": label, "confidence": row[largest], "probabilities": row}
        for name, label, largest, row in zip(named, labels.tolist(), sure, rounded, strict=True)
    ]
    if scores is not None:
        for value, score in zip(values, scores, strict=True):
            value["outlier_score"] = float(f"{score:.4g}")
    return values


def left_out(skipped: Sequence[tuple[str, str]], notes: Sequence[str]) -> dict[str, Any]:
    """Return what was skipped while reading, and notes about it, as values for JSON."""
    return {
        "skipped": [{"name": printable(name), "reason": printable(why)} for name, why in skipped],
        "notes": [printable(note) for note in notes],
    }


def summary_rows(
    summary: FitSummary, folder: Path, sample_shape: Sequence[int]
) -> list[tuple[str, str]]:
    """Return the figures that a person wants to see first.

    The summary knows the shape of what was fitted, features perhaps; `sample_shape` is that of what
    was read.
    """
    shape, seen = sizes_text(sample_shape), sizes_text(summary.sample_shape)
    smallest, largest = min(summary.cluster_sizes), max(summary.cluster_sizes)
    rows = [
        ("samples", f"{summary.n_samples} of shape {shape}"),
        ("clusters", f"{summary.n_clusters}, of {smallest} to {largest} samples"),
    ]
    if seen != shape:
        rows.insert(1, ("features", f"of shape {seen}"))
    if summary.n_outliers:
        share = summary.n_outliers / summary.n_samples
        rows.append(("outliers", f"{summary.n_outliers}, {share:.1%}, of label -1"))
    if summary.accuracy is not None:
        rows += [("AC", f"{summary.accuracy:.3f}"), ("NMI", f"{summary.nmi:.3f}")]
    rows += [
        ("variance explained", f"{summary.variance_explained:.1%}"),
        (surety(summary.settings)[0], f"{summary.mean_confidence:.1%}"),
        ("optimality gap", summary.gap_text),
        ("time of the fit", duration(summary.seconds or 0.0)),
        ("folder", str(folder)),
    ]
    return rows


def write_results(
    folder: Path, model: Any, X: Any, *, notes: Sequence[str] = (), **about: Any
) -> tuple[FitSummary, dict[str, Any]]:
    """Write labels, model, report and summary: all of them, or none.

    What is known `about` the fit are options of `tuckermix.report.render_report`; `proba`, `truth`,
    `names`, `seconds`, `source` and `command` must be among them. `model` may be a pipeline, with
    the `features` of the samples beside it: figures are those of the features, pictures those of
    the samples.

    Returns
    -------
    summary : FitSummary
        The figures of the fit.
    values : dict
        What `summary.json` holds: these figures, and where everything lies.
    """
    from tuckermix.persistence import save
    from tuckermix.report import render_report

    features, selection = about.get("features"), about.get("selection")
    fitted, seen = (model, X) if features is None else (model[-1], features)
    proba, source = about["proba"], about["source"]
    summary = summarize_fit(fitted, seen, proba, truth=about["truth"], seconds=about["seconds"])
    if features is not None:
        before = {name: settings(step) for name, step in model.steps[:-1]}
        summary = replace(summary, settings={**before, **summary.settings})
    place = Path(source)  # where the names of samples may lie
    below = place if place.is_dir() else place.parent if place.is_file() else None
    page = render_report(model, X, summary=summary, folder=below, page_folder=folder, **about)
    scores = outlier_scores(fitted, seen)
    labels = labels_text(about["names"], proba, to_numpy(fitted.labels_), scores)
    files = {"labels": LABELS, "model": MODEL, "report": REPORT, "summary": SUMMARY}
    texts = {"input": source, "command": about["command"], "folder": str(folder)}
    values = {
        "schema_version": SCHEMA_VERSION,
        "tuckermix": __version__,
        **summary.to_dict(),
        **{name: printable(text) for name, text in texts.items()},
        "selection": None if selection is None else selection.table,
        **left_out(about.get("skipped", ()), notes),
        "files": files,
    }
    with atomic_paths(*(folder / name for name in files.values())) as (names, saved, html, told):
        write_text(names, labels)
        save(model, saved)
        write_text(html, page)
        write_text(told, json.dumps(values, indent=2) + "\n")
    return summary, values
