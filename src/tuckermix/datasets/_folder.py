"""Folders of files: one sample a file, one class a subfolder."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import numpy as np

from tuckermix._reading import read_error, reading
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._options import Options

__all__ = ["files_in", "natural_key", "stack_files"]


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Return a key that sorts "s2" before "s10"."""
    parts = re.split(r"(\d+)", name)
    return [
        (1, int(part), part) if part.isdigit() and part.isascii() else (0, 0, part.lower())
        for part in parts
    ]


def files_in(folder: Path, suffixes: Collection[str]) -> list[str]:
    """List the files with one of `suffixes`, in natural order, as paths relative to `folder`.

    Hidden files and folders are left out; links to folders are followed, but never in a circle.
    """
    return sorted(_walk(folder, "", frozenset(suffixes), set()), key=natural_key)


def _walk(folder: Path, prefix: str, suffixes: Collection[str], seen: set[str]) -> Iterator[str]:
    real = os.path.realpath(folder)
    if real in seen:
        return
    seen.add(real)
    with os.scandir(folder) as scan:
        items = [item for item in scan if not item.name.startswith(".")]
    for item in items:
        if item.is_dir():
            yield from _walk(folder / item.name, f"{prefix}{item.name}/", suffixes, seen)
        elif os.path.splitext(item.name)[1].lower() in suffixes:
            yield prefix + item.name


def stack_files(
    folder: Path,
    names: Sequence[str],
    read_one: Callable[[Path, Options], np.ndarray],
    options: Options,
    kind: str,
) -> Dataset:
    """Read every file and stack them; the first folder of a name is the class.

    Parameters
    ----------
    folder : Path
        Where the files lie.
    names : sequence of str
        Their paths relative to `folder`.
    read_one : callable
        Reads one file, given its path and the options.
    options : Options
        What the caller asked for.
    kind : str
        What the files are called in messages, in the plural.

    Returns
    -------
    dataset : Dataset
        The samples, their names, and labels where there are two subfolders or more.
    """
    labels, class_names = _classes(folder, names, kind)
    X: np.ndarray | None = None
    dtypes: dict[str, str] = {}
    for index, name in enumerate(names):
        path = folder / name
        with reading(path):
            sample = read_one(path, options)
        if X is None:
            _check_total(folder, len(names), sample, options)
            X = np.empty((len(names), *sample.shape), dtype=sample.dtype)
        if sample.shape != X.shape[1:]:
            raise _mismatch(folder, names[0], X.shape[1:], name, sample.shape)
        if not np.can_cast(sample.dtype, X.dtype, "safe"):
            X = X.astype(np.result_type(sample.dtype, X.dtype))
        X[index] = sample
        dtypes.setdefault(str(sample.dtype), name)
    assert X is not None
    return Dataset(
        X=X,
        labels=labels,
        names=list(names),
        class_names=class_names,
        name=folder.resolve().name,
        # Which types of numbers there were, each with the first file that has it: values of files
        # with 8 and with 16 bits cannot be compared as they are.
        extra={"dtypes": dtypes},
    )


def _classes(
    folder: Path, names: Sequence[str], kind: str
) -> tuple[np.ndarray | None, list[str] | None]:
    """Take the first folder of each name as its class, where that says something."""
    first = [name.partition("/")[0] if "/" in name else "" for name in names]
    classes = sorted(set(first), key=natural_key)
    if "" in classes and len(classes) > 1:
        raise read_error(
            folder,
            f"some {kind} lie in subfolders and some, like {names[first.index('')]!r}, do not",
            "Put each class into a subfolder of its own, or all files into the folder itself",
        )
    if len(classes) < 2:
        return None, None
    number = {label: index for index, label in enumerate(classes)}
    return np.array([number[label] for label in first], dtype=np.int64), classes


def _check_total(folder: Path, count: int, sample: np.ndarray, options: Options) -> None:
    if count * sample.nbytes > options.max_bytes:
        raise read_error(
            folder,
            f"{count} samples of shape {sample.shape} would take {count * sample.nbytes} bytes in "
            f"memory, and the limit is max_bytes={options.max_bytes}",
            "Pass a smaller size, grey=True, or a larger max_bytes",
        )


def _mismatch(
    folder: Path, first: str, shape: tuple[int, ...], name: str, other: tuple[int, ...]
) -> ValueError:
    """Explain how two files differ, and which option makes them alike."""
    colours = len(shape) != len(other)
    remedy = (
        "Pass grey=True to make all grey, or grey=False to give all three colours"
        if colours
        else "Pass size=(height, width) to resize all to one size"
    )
    if not colours and len(shape) >= 3 and shape[0] != other[0] and shape[1:] == other[1:]:
        remedy = "Pass frames=... to take as many from each"
    return read_error(
        folder,
        f"its files differ: {first!r} has shape {shape} and {name!r} has shape {other}",
        remedy,
    )
