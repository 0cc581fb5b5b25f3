"""Tables of samples: a column of paths, a column for each pixel, or a column of lists."""

from __future__ import annotations

import csv
import math
import os
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._names import AS_STORED, COLUMNS
from tuckermix._pixels import as_grey_values
from tuckermix._reading import Refusal, check_fits
from tuckermix._tables import rows_of_text
from tuckermix.datasets._container import LABEL_NAMES, SAMPLE_NAMES, encode_labels, unfold
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._options import Options
from tuckermix.datasets._pictures import read_files

PARQUET_SUFFIXES = frozenset({".parquet", ".pq"})
"""File names of Parquet."""

TABLE_SUFFIXES = PARQUET_SUFFIXES | {".csv", ".tsv"}
"""File names of tables."""

PATH_NAMES = ("path", "file", "filename", "image", "name")
"""Columns in which paths are commonly stored, the clearest first."""

PIXEL_NAMES = ("pixels", "image", *SAMPLE_NAMES)
"""Columns in which samples are commonly stored as lists."""

CLASS_NAMES = (*LABEL_NAMES, "class", "truth", "y")
"""Columns in which classes are commonly stored."""

TEXT_BYTES, NUMBER_BYTES = 64, 16
"""Bytes that a short text takes in memory, and a number while it is compared with others."""


@dataclass(frozen=True)
class Table:
    """The columns of a table, which are read when they are asked for.

    Attributes
    ----------
    n_rows : int
        The number of rows.
    kinds : dict of str to str
        What each column holds: "number", "text", "list" (of numbers), "date" or "other".
    says : dict of str to str
        The same for people, of the columns without numbers.
    numbers : callable
        Reads a column of numbers or of lists.
    texts : callable
        Reads any other column that was asked for, as a list of texts.
    """

    n_rows: int
    kinds: dict[str, str]
    says: dict[str, str]
    numbers: Callable[[str], np.ndarray]
    texts: Callable[[str], list[str]]


DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}")
"""The beginning of a date."""


COUNTERS = ("", "index", "unnamed: 0", "__index_level_0__")
"""Names of columns in which programs number the rows."""


def _roles(columns: Sequence[str], options: Options) -> tuple[str | None, str | None]:
    """Tell which column holds paths or names, and which the classes, or None."""
    key, label = options.key, options.label_key
    asked = [("drop", name) for name in options.drop or ()]
    for option, name in (("key", key), ("label_key", label), *asked):
        if isinstance(name, str) and name not in columns:
            raise Refusal(
                f"it has no column {name!r}", f"Set {option} to one of these: {', '.join(columns)}"
            )
    kept = [name for name in columns if name not in (options.drop or ())]
    if label is None:
        label = next((name for name in CLASS_NAMES if name in kept and name != key), None)
    if key is None:
        key = next((name for name in PATH_NAMES if name in kept and name != label), None)
    return key, label if isinstance(label, str) else None


def read_table(path: Path, options: Options, *, files: bool = True) -> Dataset:
    """Read a table: the files that it names, or the numbers in it.

    A column of paths counts where it was asked for, where there are no numbers, or where the first
    of its files is there; else its texts are the names of the samples, and the numbers are these.

    Parameters
    ----------
    path : Path
        The table.
    options : Options
        `key` is the column of the samples or of their paths, `label_key` that of the classes.
    files : bool, default=True
        Whether the table may name files. If not, paths are names of rows, and none is opened.

    Returns
    -------
    dataset : Dataset
        One sample for each row.
    """
    table = (_parquet if path.suffix.lower() in PARQUET_SUFFIXES else _text)(path, options)
    key, label = _roles(list(table.kinds), options)
    kinds = {name: kind for name, kind in table.kinds.items() if name not in (options.drop or ())}
    paths = table.texts(key) if key is not None and kinds.get(key) == "text" else None
    numbers = [name for name, kind in kinds.items() if kind == "number" and name != label]
    samples = _lists(kinds, options)
    rows: Sequence[int] = range(table.n_rows)
    if samples is not None:
        data = replace(_from_numbers(path, table.numbers(samples), options), names=paths)
    elif options.key is not None and paths is None:
        raise Refusal(f"the column {key!r} holds numbers", "Set key to the column of the paths")
    elif files and paths and (options.key or not numbers or (path.parent / paths[0]).is_file()):
        data = _from_paths(path, paths, options)
        rows = data.extra.pop("rows")
    elif numbers:
        told = {label, key if paths else None}
        others = {name: what for name, what in table.says.items() if name in kinds.keys() - told}
        if others:
            columns = ", ".join(f"{name!r} ({what})" for name, what in others.items())
            raise Refusal(
                f"these columns hold no numbers: {columns}",
                f"Leave them out with drop='{','.join(others)}', write them as numbers, or "
                "name that of the classes with label_key",
            )
        what = f"{len(numbers)} numbers in {table.n_rows} rows"
        check_fits(what, 8 * len(numbers) * table.n_rows, options.max_bytes)
        X = np.empty((table.n_rows, len(numbers)))
        for place, name in enumerate(numbers):
            X[:, place] = table.numbers(name)
        data = replace(_from_numbers(path, X, options, numbers), names=paths)
    else:
        columns = ", ".join(kinds)
        raise Refusal(
            f"it has neither a column of paths nor one of numbers ({columns})",
            f"Set key to one of these: {columns}",
        )
    if label is None:
        return replace(data, labels=None, class_names=None)
    cells = table.texts(label)
    return _with_classes(data, [cells[row] for row in rows], label)


def _text(path: Path, options: Options) -> Table:
    """Read a table of text. Its first row tells which columns hold numbers."""
    rows = rows_of_text(path, options.max_bytes)
    try:
        head = [cell.strip() for cell in next(rows, [])]
        if not head:
            raise Refusal("it is empty")
        if len(set(head)) < len(head):
            raise Refusal("two of its columns have one name", "Give each column a name of its own")
        return _parsed(head, rows, options)
    except csv.Error as error:
        raise ValueError(str(error)) from error


def _parsed(head: list[str], rows: Iterator[list[str]], options: Options) -> Table:
    """Read the rows; numbers are kept as numbers, eight bytes each."""
    told = _roles(head, options)
    kept = {place: name for place, name in enumerate(head) if name not in (options.drop or ())}
    places: dict[str, int] = {}
    texts: dict[str, list[str]] = {}
    numbers = array("d")
    held = 0
    for number, row in enumerate(rows, start=2):
        if len(row) != len(head):
            raise Refusal(
                f"row {number} has {len(row)} cells, and the first has {len(head)}",
                "Check how the table was written",
            )
        if not held:
            plain = [p for p, name in kept.items() if name not in told and _is_number(row[p])]
            places = {kept[place]: place for place in plain}
            texts = {name: [] for name in kept.values() if name not in places}
        try:
            numbers.extend(float(row[place]) for place in places.values())
        except ValueError as error:
            name = next(name for name, place in places.items() if not _is_number(row[place]))
            raise Refusal(
                f"row {number} holds a text in the column {name!r}, where the rows above it hold "
                "numbers",
                f"Fill the gap, or leave the column out with drop={name!r}",
            ) from error
        for name, cells in texts.items():
            cells.append(row[head.index(name)].strip())
            held += TEXT_BYTES + len(cells[-1])
        held += NUMBER_BYTES * len(places)
        check_fits(f"its first {number - 1} rows", held, options.max_bytes, verb="take")
    if not held:
        raise Refusal("it has a heading and no rows", "Store one row for each sample")
    columns = dict(
        zip(places, np.frombuffer(numbers).reshape(number - 1, len(places)).T, strict=True)
    )
    says = {
        name: f"{'dates' if DATE.match(cells[0]) else 'texts'} such as {cells[0]!r}"
        for name, cells in texts.items()
    }
    kinds = {name: "number" if name in places else "text" for name in head}
    return Table(number - 1, kinds, says, columns.__getitem__, texts.__getitem__)


def _parquet(path: Path, options: Options) -> Table:
    """List the columns of a Parquet file."""
    said, _ = options.sandbox.ask("parquet", "list", path)
    kinds, n_rows = dict(said["columns"]), int(said["rows"])
    if not n_rows:
        raise Refusal("it has no rows", "Store one row for each sample")

    def numbers(name: str) -> np.ndarray:
        return options.sandbox.ask("parquet", "read", path, name=name)[1]

    def texts(name: str) -> list[str]:
        return [str(value) for value in numbers(name).ravel().tolist()]

    words = {"text": "texts", "date": "dates", "other": "neither numbers nor texts"}
    says = {name: words[kind] for name, kind in kinds.items() if kind in words}
    return Table(n_rows, kinds, says, numbers, texts)


def _lists(kinds: dict[str, str], options: Options) -> str | None:
    """Find the column whose lists are the samples, or return None."""
    found = [name for name, kind in kinds.items() if kind == "list"]
    if options.key is not None:
        return options.key if options.key in found else None
    if len(found) < 2:
        return found[0] if found else None
    common = next((name for name in PIXEL_NAMES if name in found), None)
    if common is None:
        raise Refusal(
            "it is not clear which of its columns holds the samples",
            f"Set key to one of these: {', '.join(found)}",
        )
    return common


def _with_classes(data: Dataset, cells: Sequence[str], label: str) -> Dataset:
    """Take the cells of the column `label` as classes: whole numbers as they are, texts by name."""
    whole = all(_is_number(cell) for cell in cells)
    known = np.array([float(cell) for cell in cells]) if whole else np.array(cells)
    labels, class_names = encode_labels(known, label)
    return replace(data, labels=labels, class_names=class_names)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _from_numbers(
    path: Path, X: np.ndarray, options: Options, names: Sequence[str] | None = None
) -> Dataset:
    """Take each row of numbers as a sample, with standardised columns where their scales differ."""
    options.refuse(
        ("size", "grey", "frames", "channels", "axes", "sample_axis", "chunks"),
        "a table of numbers",
        "Leave the option out; sample_shape gives rows the shape of images",
    )
    notes: list[str] = []
    counts = [
        place
        for place, name in enumerate(names or ())
        if name.lower() in COUNTERS and len(X) > 1 and (np.diff(X[:, place]) == 1).all()
    ]
    if counts and len(counts) < X.shape[1]:
        X = np.delete(X, counts, axis=1)
        notes.append("The column that numbers the rows was left out.")
    X = X.astype(np.float64, copy=False) if X.dtype.kind == "f" else X
    flat = X.ndim == 2 and options.sample_shape is None
    X, scale, told = _standardised(X, options.scale, flat)
    notes += told
    side = math.isqrt(X.shape[1]) if flat else 0
    if X.dtype == np.uint8 and side >= SMALL and side**2 == X.shape[1]:
        notes.append(
            f"{side**2} columns may be pictures of {side} × {side}. To see them so: "
            f"sample_shape=({side}, {side})."
        )
    if options.sample_shape is not None:
        X = unfold(X, options.sample_shape, has="a row has {} numbers")
    reading = {"scale": scale} | ({"drop": options.drop} if options.drop else {})
    return Dataset(X=X, name=path.name, extra={"notes": notes, "reading": reading})


def _standardised(X: np.ndarray, scale: Any, flat: bool) -> tuple[np.ndarray, Any, list[str]]:
    """Bring columns to mean 0 and deviation 1 where they have to be; return how, and a note."""
    notes = []
    spans = _different_scales(X) if flat and scale is None else None
    if spans is not None:
        scale = COLUMNS
        notes.append(
            f"Columns differ in scale (deviations from {spans[0]:.2g} to {spans[1]:.2g}): each was "
            "brought to mean 0 and deviation 1. To keep the values: scale='none'."
        )
    if scale == COLUMNS:
        found = [_mean_and_deviation(column) for column in X.T]
        scale = {"mean": [m for m, _ in found], "deviation": [d or 1.0 for _, d in found]}
    if not isinstance(scale, dict):
        return (as_grey_values(X) if X.dtype == np.float64 else X), AS_STORED, notes
    if not flat or len(scale["mean"]) != X.shape[1]:
        raise Refusal(
            f"its rows have shape {X.shape[1:]}, and the scale is that of {len(scale['mean'])} "
            "columns",
            "Name a table with the same columns",
        )
    return (X - scale["mean"]) / scale["deviation"], scale, notes


SMALL = 8
"""Pixels of a side of the smallest pictures that are stored as rows."""


def _mean_and_deviation(column: np.ndarray) -> tuple[float, float]:
    """Return the mean and the deviation of what is known of a column."""
    known = column[np.isfinite(column)]
    return (float(known.mean()), float(known.std())) if len(known) else (0.0, 0.0)


def _different_scales(X: np.ndarray) -> tuple[float, float] | None:
    """Return the least and the largest deviation of columns of different scales, else None.

    Those of pixels differ too, at the border, but most of them have one smallest or largest value.
    """
    deviations = [one for column in X.T if (one := _mean_and_deviation(column)[1]) > 0]
    if not deviations or max(deviations) <= 10 * min(deviations):
        return None
    if X.shape[1] >= SMALL**2 // 4:
        for bounds in (X.min(axis=0), X.max(axis=0)):
            _, counts = np.unique(bounds, return_counts=True)
            if 2 * counts.max() > len(bounds):
                return None
    return min(deviations), max(deviations)


def _from_paths(path: Path, cells: Sequence[str], options: Options) -> Dataset:
    """Read the files that a column names, which lie in the folder of the table or below."""
    names = [_below(path, cell) for cell in cells]
    places: dict[str, int] = {}
    for row, name in enumerate(names):
        if name in places:
            raise Refusal(f"it names {name!r} twice", "Keep one row for each file")
        places[name] = row
    data = read_files(path.parent, names, replace(options, key=None, label_key=None))
    assert data.names is not None
    rows = [places[name] for name in data.names]
    return replace(data, name=path.name, extra={**data.extra, "rows": rows})


def _below(path: Path, cell: str) -> str:
    """Return a path relative to the folder of the table.

    A table may come from a stranger, who must not choose files elsewhere on the machine.
    """
    base = os.path.abspath(path.parent)
    named = os.path.join(base, cell.replace("\\", "/"))
    place = os.path.relpath(named, base)
    # A link in the name of a folder leads elsewhere although the name does not.
    real = os.path.relpath(os.path.realpath(named), os.path.realpath(base))
    outside = os.pardir in (place.split(os.sep)[0], real.split(os.sep)[0])
    if not cell or place == os.curdir or outside:
        raise Refusal(
            f"it names {cell!r}, which does not lie in the folder of the table",
            "Put the table into the folder of the files, or above it",
        )
    return Path(place).as_posix()
