"""From the words of the user to samples: INPUT, --truth, --chunk, --device and --scheduler."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._array_api import BLOCK_BYTES, is_dask
from tuckermix._files import from_csv_cell
from tuckermix._optional import require
from tuckermix._tables import rows_of_text
from tuckermix.cli._console import Console, UsageError, in_options
from tuckermix.cli._results import SUMMARY
from tuckermix.datasets import Dataset, ReadError, load, read, read_embeddings
from tuckermix.summary import known, printable

LISTED = 10
"""Skipped files that are named on the terminal."""

UNKNOWN = ""
"""The class of a sample for which a table of classes has no row."""
NAME_COLUMNS = ("file", "name", "filename", "path", "index")
LABEL_COLUMNS = ("label", "labels", "class", "truth", "target", "y")
TRUTH_SUFFIXES = (".csv", ".tsv", ".txt", ".npy")
"""A --truth that ends so is meant for a file, whether it is there or not."""
CONNECT_SECONDS = 10
"""How long to wait for a scheduler: a machine that is there answers in a fraction of it."""
OWN_LABELS = ("labels", "folders")
"""Words for --truth that mean the labels which INPUT itself carries."""


def read_input(
    source: str,
    *,
    label_key: str | None = None,
    chunk: int | None = None,
    on_disk: bool = False,
    remember: Any = None,
    **options: Any,
) -> Dataset:
    """Read INPUT: a path, or the name of a known dataset if there is no such path.

    What would not fit in memory stays on disk, and so does everything with `chunk` or `on_disk`.
    `remember` is that of `tuckermix.datasets.read`.
    """
    if not Path(source).exists() and Path(source).name == source and not Path(source).suffix:
        try:
            data = load(source)
            return data if chunk is None and not on_disk else _in_chunks(data, chunk)
        except ReadError:
            raise
        except ValueError as error:
            raise UsageError(f"Cannot read {source}: no such file, folder or dataset.") from error
    given = {name: value for name, value in options.items() if value is not None}
    reader = partial(read, source, label_key=label_key, remember=remember, **given)
    data = reader(lazy=True if on_disk else "auto", chunks=chunk)
    if isinstance(data.X, np.memmap):
        # A map counts as an array in memory, and integers in it would be converted as a whole.
        data = reader(chunks=_chunk_of(data.X))
    return data


def _in_chunks(data: Dataset, chunks: int | None) -> Dataset:
    """Wrap samples in memory as a Dask array."""
    try:
        import dask.array as da
    except ImportError as error:
        raise ImportError("--chunk and --scheduler need Dask: install tuckermix[dask].") from error
    sizes = (chunks or _chunk_of(data.X), *data.sample_shape)
    return replace(data, X=da.from_array(data.X, chunks=sizes))


def _chunk_of(X: np.ndarray) -> int:
    """Return how many samples make a chunk of the usual size."""
    return max(1, BLOCK_BYTES // max(1, X.nbytes // X.shape[0]))


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
        values, names = np.asarray(data.labels), data.class_names
        if names is not None and values.size and values.min() >= 0 and values.max() < len(names):
            values = np.array(names, dtype=str)[values]
    if len(values) != data.n_samples:
        raise UsageError(
            f"--truth {truth} holds {len(values)} classes, but the input has {data.n_samples} "
            "samples."
        )
    return values


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
        return np.load(path, allow_pickle=False).reshape(-1)
    try:
        rows = [[cell.strip() for cell in row] for row in rows_of_text(path)]
    except (OSError, ValueError, csv.Error) as error:
        raise UsageError(f"Cannot read {path}: it is no table of text ({error}).") from error
    if not rows:
        raise UsageError(f"Cannot read {path}: it is empty.")
    if len(rows[0]) == 1:
        # One value more than samples: the first is a heading.
        first = 1 if len(rows) == data.n_samples + 1 else 0
        return np.array([row[0] for row in rows[first:]])
    head = [name.lower() for name in rows[0]]
    wanted = [column.lower()] if column else LABEL_COLUMNS
    place = next((head.index(name) for name in wanted if name in head), None)
    if place is None:
        raise UsageError(
            f"{path} has the columns {', '.join(rows[0])}: say which one holds the classes, "
            f"as --truth {path}:COLUMN."
        )
    names = next((head.index(name) for name in NAME_COLUMNS if name in head), None)
    try:
        classes = [row[place] for row in rows[1:]]
        if names is None or data.names is None:
            return np.array(classes)
        theirs = [from_csv_cell(row[names]) for row in rows[1:]]
    except IndexError:
        raise UsageError(f"{path} has rows with too few columns.") from None
    return _by_name(path, dict(zip(theirs, classes, strict=True)), data.names)


def _by_name(path: Path, found: dict[str, str], names: list[str]) -> np.ndarray:
    """Give each sample the class of the row with its name, or `UNKNOWN`.

    A table may leave out the folders of a name, or the ending, where that stays clear.
    """
    by_short: dict[str, set[str]] = {}
    for name, one in found.items():
        by_short.setdefault(_short(name), set()).add(one)
    unique = len({*map(_short, names)}) == len(names)
    values = []
    for name in names:
        alike = by_short.get(_short(name), set()) if unique else set()
        near = next(iter(alike)) if len(alike) == 1 else UNKNOWN
        values.append(found.get(name, found.get(printable(name), near)))
    if not any(values):
        raise UsageError(
            f"{path} has no row for {names[0]!r}, nor for any other sample: its names are like "
            f"{next(iter(found), '')!r}."
        )
    return np.array(values)


def _short(name: str) -> str:
    """Return a name without its folders and its ending."""
    base = name.replace("\\", "/").rpartition("/")[2]
    return re.sub(r"\.(nii\.gz|[A-Za-z0-9]{1,5})$", "", base)


def embeddings_of(elsewhere: Mapping[str, Path | None], data: Dataset) -> np.ndarray | None:
    """Return the embeddings of the samples as --embeddings asks, or None."""
    path = elsewhere["embeddings"]
    return None if path is None else read_embeddings(path, data.names)


def tell(console: Console, data: Dataset, classes: np.ndarray | None = None) -> None:
    """Say what was left out while reading, and what else is to be known about it."""
    skipped = data.extra.get("skipped") or []
    if skipped:
        one, several = "1 file was skipped, as it", f"{len(skipped)} files were skipped, as they"
        console.note(f"{several if len(skipped) > 1 else one} could not be read:")
        for name, reason in skipped[:LISTED]:
            console.note(f"  {name}: {in_options(reason.partition('. ')[0])}")
        if len(skipped) > LISTED:
            console.note(f"  and {len(skipped) - LISTED} more; all are in {SUMMARY}")
    for note in data.extra.get("notes") or []:
        console.note(f"note: {in_options(note)}")
    unknown = 0 if classes is None else int((~known(classes)).sum())
    if unknown:
        why = f"the class of {unknown} samples is not known; they are left out of the comparison"
        console.note(f"note: {why}.")


@contextmanager
def naming(data: Dataset) -> Iterator[None]:
    """Call INPUT and its samples by their names in errors of the library."""
    try:
        yield
    except ValueError as error:
        said = str(error).replace("Input X", data.name or "INPUT")
        found = re.search(r"\bsample (\d+) is the first\b", said)
        if data.names is not None and found is not None and int(found[1]) < len(data.names):
            said = said.replace(found[0], f"{data.names[int(found[1])]} is the first")
        raise UsageError(in_options(" ".join(said.split()))) from error


def pixels_of(data: Dataset) -> Dataset:
    """Make the pixels of a scene the samples, with its height and width as an extra, "scene"."""
    X = data.X
    if X.ndim != 3:
        raise UsageError(
            f"--pixels needs a scene of height × width × bands, but INPUT has shape {X.shape}: "
            "name the array with --key."
        )
    height, width = map(int, X.shape[:2])
    fits = data.labels is not None and np.size(data.labels) == height * width
    labels = np.asarray(data.labels).reshape(-1) if fits else None
    names = [f"{row},{column}" for row in range(height) for column in range(width)]
    extra = {**data.extra, "scene": (height, width)}
    return replace(data, X=X.reshape(-1, X.shape[2]), labels=labels, names=names, extra=extra)


def to_device(X: Any, device: str) -> Any:
    """Move samples to a device; "cpu" leaves them in NumPy."""
    if device == "cpu":
        return X
    if is_dask(X):
        raise UsageError(
            f"--device {device} cannot be used for samples that stay on disk: leave out --chunk "
            "and --scheduler, or compute on the processor."
        )
    torch = require("torch", f"--device {device}", "torch", package="PyTorch")
    try:
        return torch.as_tensor(X, device=device)
    except (RuntimeError, AssertionError) as error:
        first = str(error).splitlines()[0]
        raise UsageError(f"--device {device} cannot be used: {first}") from error


def scheduler(address: str | None) -> AbstractContextManager[Any]:
    """Let a Dask cluster do the work as long as the context lasts; None means this machine."""
    if address is None:
        return nullcontext()
    distributed = require("distributed", "--scheduler", "dask", package="dask.distributed")
    try:
        return distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=True)
    except (OSError, TimeoutError, ValueError) as error:
        raise UsageError(
            f"--scheduler {address}: no Dask scheduler answers there. Start one with "
            "'dask scheduler', or leave the option out to compute here."
        ) from error


def picture_kind_of(data: Dataset) -> str:
    """Tell how the samples are drawn, where the reader knows more than their shape says."""
    return str(data.extra.get("kind", "auto"))
