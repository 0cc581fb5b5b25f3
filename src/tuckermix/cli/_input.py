"""From the words of the user to samples: INPUT, --truth and --device."""

from __future__ import annotations

import codecs
import csv
import io
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._array_api import is_dask
from tuckermix._files import from_csv_cell
from tuckermix.cli._console import UsageError
from tuckermix.cli._large import in_chunks, read_in_chunks
from tuckermix.datasets import VIDEO_SUFFIXES, Dataset, ReadError, load, read
from tuckermix.summary import printable

LARGE = 20_000_000
"""Integers of more entries than this are taken as float32, which holds them exactly up to 2²⁴ and
halves time and memory."""

DELIMITERS = (",", ";", "\t")
NAME_COLUMNS = ("name", "file", "filename", "path", "index")
LABEL_COLUMNS = ("label", "labels", "class", "truth", "target", "y")
TRUTH_SUFFIXES = (".csv", ".tsv", ".txt", ".npy")
"""A --truth that ends so is meant for a file, whether it is there or not."""
OWN_LABELS = ("labels", "folders")
"""Words for --truth that mean the labels which INPUT itself carries."""


def read_input(
    source: str,
    *,
    label_key: str | None = None,
    chunk: int | None = None,
    on_disk: bool = False,
    **options: Any,
) -> Dataset:
    """Read INPUT: a path, or the name of a known dataset if there is no such path.

    What would not fit in memory stays on disk, and so does everything with `chunk` or `on_disk`.
    """
    if not Path(source).exists() and Path(source).name == source and not Path(source).suffix:
        try:
            data = load(source)
            return data if chunk is None and not on_disk else in_chunks(data, chunk)
        except ReadError:
            raise
        except ValueError as error:
            raise UsageError(f"Cannot read {source}: no such file, folder or dataset.") from error
    given = {name: value for name, value in options.items() if value is not None}
    reader = partial(read, source, label_key=label_key, **given)
    return read_in_chunks(reader, chunk, everything=on_disk)


def label_key_of(truth: str | None) -> str | None:
    """Tell which array of INPUT holds the classes, if --truth names one."""
    if truth is None or truth in OWN_LABELS or _truth_file(truth)[0].is_file():
        return None
    file = Path(truth.partition(":")[0])
    if file.suffix.lower() in TRUTH_SUFFIXES or file.name != str(file):
        raise UsageError(f"--truth {truth}: there is no such file. Check the path.")
    return truth


def known_classes(truth: str | None, data: Dataset) -> np.ndarray | None:
    """Return the known class of each sample as --truth asks, or None."""
    if truth is None:
        return None
    path, column = _truth_file(truth)
    if path.is_file():
        values = _read_classes(path, column, data)
    elif data.labels is None:
        raise UsageError(f"--truth {truth}: neither a file nor labels in the input.")
    else:
        values = _named(data)
    if len(values) != data.n_samples:
        raise UsageError(
            f"--truth {truth} holds {len(values)} classes, but the input has {data.n_samples} "
            "samples."
        )
    return values


def _named(data: Dataset) -> np.ndarray:
    """Return the labels of a dataset, by the names of the classes where it has them."""
    labels = np.asarray(data.labels)
    names = data.class_names
    if names is not None and labels.size and labels.min() >= 0 and labels.max() < len(names):
        return np.array(names, dtype=str)[labels]
    return labels


def _truth_file(truth: str) -> tuple[Path, str | None]:
    """Split FILE:COLUMN, where the file exists."""
    path = Path(truth)
    if not path.is_file() and ":" in truth:
        head, column = truth.rsplit(":", 1)
        if Path(head).is_file():
            return Path(head), column
    return path, None


def _read_classes(path: Path, column: str | None, data: Dataset) -> np.ndarray:
    if path.suffix == ".npy":
        values = np.load(path, allow_pickle=False)
        return values.reshape(-1)
    content = path.read_bytes()
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = content.decode("utf-16")
    else:
        # As the system hands over the names of files, so that both agree whatever bytes they hold.
        text = content.decode("utf-8-sig", errors="surrogateescape")
    # Spreadsheets write semicolons where the comma is the decimal sign.
    delimiter = max(DELIMITERS, key=text.lstrip().partition("\n")[0].count)
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if row]
    if not rows:
        raise UsageError(f"Cannot read {path}: it is empty.")
    if len(rows[0]) == 1:
        values = [row[0].strip() for row in rows]
        # One value more than samples: the first is a heading.
        return np.array(values[1:] if len(values) == data.n_samples + 1 else values)
    head = [name.strip().lower() for name in rows[0]]
    wanted = [column.lower()] if column else [name for name in LABEL_COLUMNS if name in head]
    if not wanted or wanted[0] not in head:
        raise UsageError(
            f"{path} has the columns {', '.join(rows[0])}: say which one holds the classes, "
            f"as --truth {path}:COLUMN."
        )
    place = head.index(wanted[0])
    names = next((head.index(name) for name in NAME_COLUMNS if name in head), None)
    try:
        if names is not None and data.names is not None:
            found = {from_csv_cell(row[names].strip()): row[place].strip() for row in rows[1:]}
            return np.array(
                [found[name if name in found else printable(name)] for name in data.names]
            )
        return np.array([row[place].strip() for row in rows[1:]])
    except KeyError as error:
        raise UsageError(f"{path} has no row for {error.args[0]!r}.") from None
    except IndexError:
        raise UsageError(f"{path} has rows with too few columns.") from None


def pixels_of(data: Dataset) -> tuple[Dataset, tuple[int, int]]:
    """Make the pixels of a scene the samples; return them and the height and width of it."""
    X = data.X
    if X.ndim != 3:
        raise UsageError(
            f"--pixels needs a scene of height × width × bands, but INPUT has shape {X.shape}: "
            "name the array with --key."
        )
    height, width = int(X.shape[0]), int(X.shape[1])
    labels = None if data.labels is None else np.asarray(data.labels).reshape(-1)
    if labels is not None and len(labels) != height * width:
        labels = None
    names = [f"{row},{column}" for row in range(height) for column in range(width)]
    spectra = X.reshape(height * width, X.shape[2])
    return replace(data, X=spectra, labels=labels, names=names), (height, width)


def floating(X: Any) -> Any:
    """Return integer samples as floating point; large ones in single precision."""
    if X.dtype.kind in "iub":
        return X.astype(np.float32 if X.size > LARGE else np.float64)
    return X


def to_device(X: Any, device: str) -> Any:
    """Move samples to a device; "cpu" leaves them in NumPy."""
    if device == "cpu":
        return X
    if is_dask(X):
        raise UsageError(
            f"--device {device} cannot be used for samples that stay on disk: leave out --chunk "
            "and --scheduler, or compute on the processor."
        )
    try:
        import torch
    except ImportError as error:
        raise ImportError(f"--device {device} needs PyTorch: install tuckermix[torch].") from error
    try:
        return torch.as_tensor(X, device=device)
    except (RuntimeError, AssertionError) as error:
        first = str(error).splitlines()[0]
        raise UsageError(f"--device {device} cannot be used: {first}") from error


def picture_kind_of(data: Dataset) -> str:
    """Tell whether the samples are videos, which their shape alone does not."""
    if data.names and len(data.sample_shape) >= 3:
        suffix = Path(data.names[0]).suffix.lower()
        return "video" if suffix in VIDEO_SUFFIXES else "auto"
    return "auto"
