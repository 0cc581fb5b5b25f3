"""Results of the commands: labels, summary, model, report, and the folder they lie in."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._array_api import is_dask, to_numpy
from tuckermix._files import (
    atomic_paths,
    csv_text,
    made_folder,
    refuse_link,
    remove_stale,
    write_text,
)
from tuckermix._validation import as_floating
from tuckermix._version import __version__
from tuckermix.cli._console import Console, UsageError, in_options
from tuckermix.datasets import Dataset
from tuckermix.features.registry import last_step
from tuckermix.persistence import save
from tuckermix.plots.fitted import Placed
from tuckermix.report import facts, render_report
from tuckermix.summary import (
    FitSummary,
    cluster_names,
    innermost,
    printable,
    sample_names,
    settings,
    summarize_fit,
)

FILES = LABELS, MODEL, REPORT, SUMMARY = (
    *("labels.csv", "model.tuckermix", "report.html", "summary.json"),
)

SCHEMA_VERSION = 4
"""Of summary.json. Version 1, without a number, had all settings as text; 3 added what was skipped,
notes, and how many classes are known; 4 has the settings of the choice, and no figures of a model
where there are several. Later additions: title, kind, inputs, cluster_names, truth."""


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


def refuse_to_replace(folder: Path, force: bool, *more: str, unless: str | None = None) -> None:
    """Raise if a folder holds results, unless told to replace them or made by one command."""
    names = (*FILES, *more)
    if folder.is_dir():
        for name in names:
            refuse_link(folder / name)
    there = [name for name in names if (folder / name).exists()]
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


def labels_text(samples: list[dict[str, Any]]) -> str:
    """Return what `labels_values` does as CSV, with a column for each soft label."""
    rows: list[dict[str, Any]] = []
    for sample in samples:
        row = dict(sample)
        score = row.pop("outlier_score", None)  # the last column
        row |= {f"p{cluster}": share for cluster, share in enumerate(row.pop("probabilities"))}
        rows.append(row if score is None else row | {"outlier_score": score})
    cells = ([f"{x:.6g}" if isinstance(x, float) else x for x in row.values()] for row in rows)
    return csv_text([list(rows[0]), *cells])


def computed(model: Any, placed: Placed) -> Placed:
    """Compute what is lazy in soft labels, scores and the model, in one pass over the samples.

    All that is written has a few numbers for each sample.
    """
    inner, proba = innermost(model), placed.proba
    labelled = getattr(inner, "outliers", "keep") == "label"
    scores = placed.unlike() if labelled and placed.unlike is not None else None
    if is_dask(proba):
        import dask

        lazy = [name for name in ("labels_", "memberships_") if is_dask(getattr(inner, name, None))]
        values = (getattr(inner, name) for name in lazy)
        proba, scores, *values = dask.compute(proba, scores, *values)
        vars(inner).update(zip(lazy, values, strict=True))
        model.labels_ = inner.labels_
    scores = None if scores is None else to_numpy(scores)
    return replace(placed, proba=to_numpy(proba), scores=scores)


def labels_values(
    names: Any, at: Placed, labels: np.ndarray, called: dict[int, str] | None = None
) -> list[dict[str, Any]]:
    """Return labels and soft labels as values for JSON, with the digits that CSV has.

    Each sample has its name or index, label, confidence and soft labels. Where clusters have names,
    as `called`, that of the cluster is "name" and that of the sample "file". Outlier scores come
    last, where there are any.
    """
    named = range(len(labels)) if names is None else sample_names(names, len(labels))
    who = "index" if names is None else "file" if called else "name"
    rounded = [[float(f"{value:.6g}") for value in row] for row in at.proba]
    # Outliers, of label -1, are in no cluster: the largest soft label says how near they come.
    sure = np.where(labels < 0, at.proba.argmax(axis=1), labels)
    columns: dict[str, Any] = {who: named, "label": labels.tolist()}
    if called:
        columns["name"] = [called.get(label, "") for label in columns["label"]]
    columns["confidence"] = [row[place] for row, place in zip(rounded, sure, strict=True)]
    columns["probabilities"] = rounded
    if at.scores is not None:
        columns["outlier_score"] = [float(f"{score:.4g}") for score in at.scores]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def left_out(data: Dataset) -> dict[str, Any]:
    """Return what was skipped while reading, and notes about it, as values for JSON."""
    skipped, notes = data.extra.get("skipped") or [], data.extra.get("notes") or []
    return {
        "skipped": [{"name": printable(name), "reason": printable(why)} for name, why in skipped],
        "notes": [printable(in_options(note)) for note in notes],
    }


def publish(
    folder: Path, model: Any, data: Dataset, at: Placed, *, console: Console, **about: Any
) -> FitSummary:
    """Write results, see `write_results`, print what came out, and return the figures."""
    with console.stage("Writing"):
        summary, values = write_results(folder, model, data, at, **about)
    rows = [*(fact[:2] for fact in facts(summary)), ("folder", str(folder))]
    called = ", ".join(values["cluster_names"].values())
    console.result(values, [*rows, ("names", called)] if called else rows)
    return summary


def write_results(
    folder: Path,
    model: Any,
    data: Dataset,
    at: Placed,
    *,
    truth: Any,
    seconds: float | None,
    source: str,
    title: str,
    kind: str,
    command: str | None = None,
    inputs: Sequence[Path] = (),
) -> tuple[FitSummary, dict[str, Any]]:
    """Write labels, model, report and summary: all of them, or none.

    Parameters
    ----------
    folder : Path
        Where they are written.
    model : estimator
        The fitted model, or a pipeline that ends in one.
    data : Dataset
        The samples that it was fitted on, with their names, and how they were read.
    at : Placed
        What the model says of them.
    truth, seconds, source, title, kind : object
        See `tuckermix.report.render_report`.
    command : str, default=None
        The command that is shown, so that it can be repeated; None means the present one.
    inputs : sequence of Path, default=()
        Where the samples lie; their names are paths below the first.

    Returns
    -------
    summary : FitSummary
        The figures of the fit.
    values : dict
        What `summary.json` holds: these figures, and where everything lies.
    """
    final, X, called = last_step(model), as_floating(data.X), cluster_names(model)
    summary = summarize_fit(final, X, at.proba, truth=truth, seconds=seconds, seen=at.seen)
    if final is not model:
        before = {name: settings(step) for name, step in model.steps[:-1]}
        summary = replace(summary, settings={**before, **summary.settings})
    inputs = inputs or [Path(source)]
    place = inputs[0]  # where the names of samples may lie
    below = [place if place.is_dir() else place.parent, *inputs[1:]] if place.exists() else None
    command = command or "tuckermix " + shlex.join(sys.argv[1:])
    skipped = data.extra.get("skipped") or []
    page = render_report(
        model, X, truth=truth, names=data.names, title=title, source=source, command=command,
        kind=kind, summary=summary, placed=at, scene=data.extra.get("scene"), folder=below,
        page_folder=folder, skipped=skipped,
    )  # fmt: skip
    files = {"labels": LABELS, "model": MODEL, "report": REPORT, "summary": SUMMARY}
    selection = getattr(final, "selection_", None)
    texts = {"input": source, "command": command, "folder": str(folder)}
    classes = None if truth is None else np.asarray(truth).tolist()
    values = {
        "schema_version": SCHEMA_VERSION,
        "tuckermix": __version__,
        **summary.to_dict(),
        **{name: printable(text) for name, text in texts.items()},
        "selection": None if selection is None else selection.table,
        "view": None if selection is None else selection.view,
        "title": title,
        "kind": kind,
        "inputs": [_seen_from(folder, one) for one in inputs],
        "cluster_names": {str(number): name for number, name in called.items()},
        "truth": classes and [one if one == one else None for one in classes],  # JSON knows no nan
        **left_out(data),
        "files": files,
    }
    table = labels_text(labels_values(data.names, at, to_numpy(final.labels_), called))
    with atomic_paths(*(folder / name for name in files.values())) as (names, saved, html, told):
        write_text(names, table)
        save(model, saved)
        write_text(html, page)
        write_text(told, json.dumps(values, indent=2) + "\n")
    return summary, values


def _seen_from(folder: Path, path: Path) -> str:
    """Return a path relative to a folder, so that both can move; a dataset's name as it is."""
    if not path.exists():
        return printable(path)
    with suppress(ValueError):  # another drive
        path = Path(os.path.relpath(path.resolve(), folder.resolve()))
    return printable(path)
