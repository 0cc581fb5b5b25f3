"""Results that a command wrote before: read again with their samples, changed, and written."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._array_api import to_numpy
from tuckermix._files import from_csv_cell
from tuckermix._machine import default_limit
from tuckermix._names import KINDS
from tuckermix._records import Record
from tuckermix._tables import rows_of_text
from tuckermix._validation import as_floating
from tuckermix.cli import _features, _input, _results
from tuckermix.cli import _options as options
from tuckermix.cli._console import Console, Exit, UsageError
from tuckermix.datasets import Dataset
from tuckermix.features.registry import last_step
from tuckermix.persistence import bounded_json, load
from tuckermix.plots.fitted import Placed, as_fitted, placed
from tuckermix.selection.shared import Features
from tuckermix.summary import innermost, printable


@dataclass(frozen=True)
class Earlier(Record):
    """The contents of a folder of results.

    Attributes
    ----------
    folder : Path
        The folder.
    summary : dict
        What its summary.json holds.
    names : list of str or None
        The names of the samples.
    labels : ndarray of shape (n_samples,)
        Their labels; -1 for outliers and what was set aside.
    inputs : list of Path
        Where the samples lie. Names are paths that start from the first.
    """

    folder: Path
    summary: dict[str, Any]
    names: list[str] | None
    labels: np.ndarray
    inputs: list[Path]

    @property
    def roots(self) -> list[Path]:
        """The folders of the inputs."""
        return [one if one.is_dir() else one.parent for one in self.inputs]

    def truth_of(self, n_samples: int) -> np.ndarray | None:
        """Return the known classes of `n_samples` samples; new ones have none."""
        stored = self.summary.get("truth")
        if not isinstance(stored, list) or len(stored) != len(self.labels):
            return None
        if len(stored) < n_samples or None in stored:
            more = [None] * (n_samples - len(stored))
            stored = ["" if one is None else str(one) for one in [*stored, *more]]
        return np.array(stored)

    def name_of(self, label: int) -> str:
        """Return the name of a cluster, empty where it has none."""
        called = self.summary.get("cluster_names")
        return str(called.get(str(label), "")) if isinstance(called, dict) else ""


def read_results(folder: Path) -> Earlier:
    """Read labels and summary of a folder of results."""
    for name in (_results.LABELS, _results.SUMMARY, _results.MODEL):
        if not (folder / name).is_file():
            raise UsageError(
                f"{folder} has no {name}: name a folder that 'tuckermix cluster' wrote."
            )
    try:
        summary = bounded_json((folder / _results.SUMMARY).read_bytes(), default_limit())
        if not isinstance(summary, dict):
            raise ValueError("its summary is no object")
        head, *rows = rows_of_text(folder / _results.LABELS)
        labels = np.array([int(row[1]) for row in rows], dtype=np.int64)
        names = [from_csv_cell(row[0]) for row in rows] if head[0] != "index" else None
    except (ValueError, IndexError, csv.Error, RecursionError) as error:
        raise UsageError(
            f"Cannot read the results in {folder}: {error}. Write them again."
        ) from error
    return Earlier(folder, summary, names, labels, _inputs(folder, summary))


def _inputs(folder: Path, summary: dict[str, Any]) -> list[Path]:
    """Return where the samples lie: as seen from the results, or as the command named it."""
    source = str(summary.get("input", ""))
    given = summary.get("inputs")
    stored = [str(one) for one in given] if isinstance(given, list) and given else [source]
    paths = [Path(os.path.normpath(folder.resolve() / one)) for one in stored]
    found = [path if path.exists() else Path(one) for path, one in zip(paths, stored, strict=True)]
    return found if found[0].exists() else [Path(source), *found[1:]]


def read_as_before(model: Any, source: str, given: options.Reading) -> Dataset:
    """Read INPUT as that of the model was read, as far as nothing else is asked for."""
    reading = _features.reading_as_before(model, source, {"scale": None, **given})
    data = _input.read_input(source, **reading)
    known = getattr(model, "reading_", None) or {}
    if known.get("pixels") and data.X.ndim != 2:  # else spectra as rows
        data = _input.pixels_of(data)
    return data


def samples_of(
    earlier: Earlier,
    model: Any,
    elsewhere: options.Elsewhere,
    more: Path | None = None,
    *,
    new: bool = False,
) -> tuple[Dataset, Any]:
    """Read the samples of earlier results again, with `more` those of a further folder.

    Returns
    -------
    data : Dataset
        The samples in the order of the labels, then the `new` ones.
    embeddings : array or None
        Their embeddings.
    """
    known = getattr(model, "reading_", None) or {}
    if elsewhere["embeddings"] is None and "embeddings" in known:
        elsewhere["embeddings"] = Path(known["embeddings"])
    parts, vectors = [], list[Any]()
    inputs = [*earlier.inputs, *([] if more is None else [more])]
    for source in inputs:
        data = read_as_before(model, str(source), options.Reading.usual())
        vectors.append(_input.embeddings_of(elsewhere, data))
        way = "" if source is inputs[0] else os.path.relpath(source, inputs[0]).replace(os.sep, "/")
        if way not in ("", ".") and data.names is not None:
            data = replace(data, names=[os.path.normpath(f"{way}/{name}") for name in data.names])
        parts.append(data)
    data = parts[0] if len(parts) == 1 else _joined(parts)
    embeddings: Any = None if vectors[0] is None else np.concatenate(vectors)
    order = _order(earlier, data, new=new)
    if not np.array_equal(order, np.arange(data.n_samples)):
        names = None if data.names is None else [data.names[place] for place in order]
        data = replace(data, X=data.X[order], names=names)
        embeddings = None if embeddings is None else embeddings[order]
    return data, embeddings


def _joined(parts: Sequence[Dataset]) -> Dataset:
    """Put samples of several inputs together."""
    shapes = {part.sample_shape for part in parts}
    if len(shapes) > 1:
        raise UsageError(f"The inputs have samples of different shapes: {sorted(shapes)}.")
    extra = dict(parts[0].extra)
    for name in ("skipped", "notes"):
        extra[name] = [one for part in parts for one in part.extra.get(name) or []]
    names = [name for part in parts for name in part.names or ()]
    return replace(parts[0], X=np.concatenate([part.X for part in parts]), names=names, extra=extra)


def _order(earlier: Earlier, data: Dataset, *, new: bool) -> np.ndarray:
    """Return the places of the samples that have labels, in their order, then of new ones."""
    if earlier.names is None or data.names is None:
        if data.n_samples != len(earlier.labels):
            raise UsageError(
                f"{earlier.inputs[0]} has {data.n_samples} samples, and the results are of "
                f"{len(earlier.labels)}."
            )
        return np.arange(data.n_samples)
    place = {printable(name): index for index, name in enumerate(data.names)}
    gone = [name for name in earlier.names if name not in place]
    if gone:
        raise UsageError(
            f"{len(gone)} samples of the results are not in {earlier.inputs[0]}, such as "
            f"{gone[0]!r}: put them back, or cluster again."
        )
    order = [place.pop(name) for name in earlier.names]
    return np.array(order + (sorted(place.values()) if new else []), dtype=np.int64)


def revise(
    earlier: Earlier,
    out: Path,
    doing: str,
    change: Callable[..., Placed],
    *,
    elsewhere: options.Elsewhere,
    console: Console,
    more: Path | None = None,
) -> int:
    """Change the model of earlier results, write them again, and say what came out.

    Parameters
    ----------
    earlier : Earlier
        The results.
    out : Path
        The folder of the new ones.
    doing : str
        What is said of the change.
    change : callable
        ``change(model, X, at, labels)`` changes the model, where `at` and `labels` are what it says
        of the samples now, and returns what it says then.
    elsewhere : Elsewhere
        Files of networks and embeddings.
    console : Console
        Where progress is shown.
    more : Path, default=None
        A folder whose files are new samples, if they are not in the results.

    Returns
    -------
    code : int
        The exit code.
    """
    known, inputs = earlier.summary, list(earlier.inputs)
    model = _features.use_network(load(earlier.folder / _results.MODEL), elsewhere["network"])
    inside = any(more and more.resolve().is_relative_to(root.resolve()) for root in inputs)
    further = None if inside else more
    inputs += [] if further is None else [further]
    with console.stage(f"Reading {more or inputs[0]}"):
        data, embeddings = samples_of(earlier, model, elsewhere, further, new=more is not None)
    data = replace(data, X=as_floating(data.X))
    n_known = len(earlier.labels)
    if more is not None:
        console.note(f"{data.n_samples - n_known} new samples")
    with console.stage(doing):
        at, labels = label_again(model, data, embeddings)
        labels[:n_known] = earlier.labels
        at = change(model, data.X, at, labels)
    title, kind = known.get("title"), known.get("kind")
    with _results.result_folder(out):
        _results.publish(
            out,
            model,
            data,
            at,
            console=console,
            truth=earlier.truth_of(data.n_samples),
            seconds=known.get("seconds"),
            source=str(known.get("input") or inputs[0]),
            inputs=inputs,
            title=str(title) if title else f"Clusters in {inputs[0].name}",
            kind=kind if kind in KINDS else _input.picture_kind_of(data),
        )
    console.note(f"Open {out / _results.REPORT} in a browser.")
    return Exit.DONE


def label_again(model: Any, data: Dataset, embeddings: Any = None) -> tuple[Any, np.ndarray]:
    """Return what a loaded model says of samples, see `placed`, and their labels."""
    final, X = last_step(model), as_floating(data.X)
    seen = X if final is model else model[:-1].transform(X)
    at = placed(final, seen, Features(as_fitted(innermost(final), seen), embeddings))
    at = _results.computed(final, at)
    labels = at.proba.argmax(axis=1)
    if at.scores is not None:
        about = {"embeddings": embeddings} if hasattr(final, "selection_") else {}
        labels = to_numpy(final.predict(seen, **about))
    return (replace(at, seen=seen) if at.seen is None and final is not model else at), labels
