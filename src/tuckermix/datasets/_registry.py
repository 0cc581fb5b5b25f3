"""Datasets by name: where they are looked for, and what to do when they are not there."""

from __future__ import annotations

import fnmatch
import hashlib
import os
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._reading import read_error, reading
from tuckermix._records import Record
from tuckermix._validation import check_option
from tuckermix.datasets import _layouts
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._layouts import Layout


@dataclass(frozen=True)
class KnownDataset:
    """A dataset that can be asked for by name."""

    name: str  # the name to ask for
    title: str  # its full name
    n_samples: tuple[int, ...]  # the number of samples; several where there are variants
    sample_shape: tuple[int, ...]  # the shape of a sample
    n_classes: int  # the number of classes
    description: str  # what it shows
    terms: str  # what is known about its terms of use
    source: str  # where a person gets it
    layouts: tuple[Layout, ...] = ()  # the forms that are recognised
    sha256: dict[str, str] = field(default_factory=dict)  # checksums of known files, by file name
    class_names: tuple[str, ...] = ()  # the names of the classes by label, where they have names


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _layout(patterns: list[str], reader: str, says: str, arguments: Sequence[Any] = ()) -> Layout:
    reads = getattr(_layouts, reader)
    return Layout(tuple(patterns), partial(reads, *map(_frozen, arguments)), says)


def _known(name: str, layouts: Sequence[dict[str, Any]] = (), **stated: Any) -> KnownDataset:
    forms = tuple(_layout(**form) for form in layouts)
    plain = {key: _frozen(value) for key, value in stated.items()}
    return KnownDataset(name=name, layouts=forms, **plain)


_STATED = tomllib.loads(Path(__file__).with_name("known.toml").read_text(encoding="utf-8"))

KNOWN = {name: _known(name, **stated) for name, stated in _STATED.items()}
"""All known datasets by name, those of the paper first."""

VARIABLE = "TUCKERMIX_DATA"
"""The environment variable that names the folder of datasets."""


class DatasetNotFound(FileNotFoundError):
    """A known dataset that is not on this machine; the message says what to get and where from."""


@dataclass(frozen=True)
class DatasetInfo(Record):
    """Facts about a dataset, and whether it is on this machine.

    Attributes
    ----------
    name : str
        The name that `load` takes.
    title : str
        Its full name.
    n_samples : int
        The number of samples, of the first variant where there are several.
    sample_shape : tuple of int
        The shape of a sample.
    n_classes : int
        The number of classes.
    state : {"built in", "verified", "found", "missing"}
        Verified means that the file is, byte for byte, one that is known; found that it has a
        known name, and its content is checked when it is loaded.
    path : str or None
        Where it is.
    terms : str
        What is known about its terms of use.
    source : str
        Where a person gets it.
    remedy : str
        What to get and where to put it.
    """

    name: str
    title: str
    n_samples: int
    sample_shape: tuple[int, ...]
    n_classes: int
    state: str
    path: str | None
    terms: str
    source: str
    remedy: str


def data_folders(data_home: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return the folders in which datasets are looked for, in order.

    Parameters
    ----------
    data_home : str or path, default=None
        The only folder to look in. None means what the variable TUCKERMIX_DATA names, then
        ``tuckermix`` in the user's cache folder.

    Returns
    -------
    folders : list of Path
        The folders; they need not exist.
    """
    if data_home is not None:
        return [Path(data_home).expanduser()]
    named = [Path(os.environ[VARIABLE]).expanduser()] if os.environ.get(VARIABLE) else []
    return [*named, _cache_folder()]


def load(name: str, data_home: str | os.PathLike[str] | None = None) -> Dataset:
    """Load a dataset by name from the files on this machine; nothing is ever downloaded.

    Known are the paper's ``cbcl``, ``mnist``, ``pie``, ``orl``, ``yaleb`` and ``dyntex++``, and
    beside them ``modelnet10``, ``samson`` and scikit-learn's ``digits``. They are recognised in
    the forms in which they are usually passed around; what is found is checked against the known
    shape and number of classes.

    Parameters
    ----------
    name : str
        The name of the dataset.
    data_home : str or path, default=None
        The folder to look in. None means what the environment variable TUCKERMIX_DATA names, then
        ``tuckermix`` in the user's cache folder.

    Returns
    -------
    dataset : Dataset
        `X` as stored: uint8 for images, float for digits and spectra; `labels` as the source
        numbers them.

    Raises
    ------
    DatasetNotFound
        If it is not there; the message says what to get and where to put it.
    ReadError
        If it is there and is not what it should be.

    Examples
    --------
    >>> from tuckermix.datasets import load
    >>> load("digits")
    Dataset(digits: X (1797, 8, 8) float64, 10 classes)
    """
    known = KNOWN[check_option(name, "name", "load", tuple(KNOWN))]
    if name == "digits":
        return _finished(known, _digits())
    found = _find(known, data_home)
    if found is None:
        raise DatasetNotFound(_remedy(known, data_home))
    layout, path = found
    with reading(path):
        data = _finished(known, layout.read(path))
    _check(known, data, path)
    return data


def describe(name: str, data_home: str | os.PathLike[str] | None = None) -> DatasetInfo:
    """Say what is known about a dataset and whether it is on this machine.

    Parameters
    ----------
    name : str
        The name of the dataset.
    data_home : str or path, default=None
        As for `load`.

    Returns
    -------
    info : DatasetInfo
        Shape, classes, state, path, terms, source and remedy.
    """
    known = KNOWN[check_option(name, "name", "describe", tuple(KNOWN))]
    found = None if name == "digits" else _find(known, data_home)
    state = "built in" if name == "digits" else "missing"
    if found is not None:
        state = "verified" if _verified(known, found[1]) else "found"
    shared = ("name", "title", "sample_shape", "n_classes", "terms", "source")
    return DatasetInfo(
        **{field: getattr(known, field) for field in shared},
        n_samples=known.n_samples[0],
        state=state,
        path=None if found is None else str(found[1]),
        remedy=_remedy(known, data_home) if state == "missing" else "",
    )


def list_datasets(data_home: str | os.PathLike[str] | None = None) -> list[DatasetInfo]:
    """Describe all known datasets, those of the paper first.

    Parameters
    ----------
    data_home : str or path, default=None
        As for `load`.

    Returns
    -------
    infos : list of DatasetInfo
        One for each dataset.
    """
    return [describe(name, data_home) for name in KNOWN]


def _cache_folder() -> Path:
    """Return our part of the user's cache folder, as the platform has it."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "tuckermix"


def _find(
    known: KnownDataset, data_home: str | os.PathLike[str] | None
) -> tuple[Layout, Path] | None:
    """Find the first form of a dataset in the first folder that has one."""
    for folder in data_folders(data_home):
        for layout in known.layouts:
            for pattern in layout.patterns:
                for place in (pattern, f"{known.name}/{pattern}"):
                    path = next(_matching(folder, place.lower().split("/")), None)
                    if path is not None:
                        return layout, path
    return None


def _matching(folder: Path, parts: list[str]) -> Iterator[Path]:
    """Yield the paths below `folder` whose parts match, whatever their case."""
    try:
        items = sorted(folder.iterdir())
    except OSError:  # not there, no folder, or not ours to read
        return
    for item in items:
        if fnmatch.fnmatchcase(item.name.lower(), parts[0]):
            if len(parts) == 1:
                yield item
            else:
                yield from _matching(item, parts[1:])


def _remedy(known: KnownDataset, data_home: str | os.PathLike[str] | None) -> str:
    """Say what to get, where from, and where to put it."""
    shape = " x ".join(map(str, known.sample_shape))
    forms = "; or ".join(layout.says for layout in known.layouts)
    folders = [str(folder) for folder in data_folders(data_home)]
    return (
        f"The dataset {known.name!r} ({known.title}: {known.n_samples[0]} samples of {shape} in "
        f"{known.n_classes} classes) is not in {' or '.join(folders)}. Get {forms}. "
        f"It comes from {known.source}. Terms: {known.terms}. Put it into {folders[0]}, "
        f"or name its folder in the environment variable {VARIABLE} or as data_home."
    )


def _verified(known: KnownDataset, path: Path) -> bool:
    """Tell whether a file is, byte for byte, one that is known."""
    expected = known.sha256.get(path.name.lower())
    if expected is None or not path.is_file():
        return False
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == expected


def _finished(known: KnownDataset, data: Dataset) -> Dataset:
    return replace(
        data,
        name=known.name,
        class_names=list(known.class_names) or data.class_names,
        description=f"{known.title}. {known.description}",
    )


def _check(known: KnownDataset, data: Dataset, path: Path) -> None:
    """Compare what was read with what is known."""
    if (
        data.n_samples not in known.n_samples
        or data.sample_shape != known.sample_shape
        or data.n_classes != known.n_classes
    ):
        counts = " or ".join(map(str, known.n_samples))
        raise read_error(
            path,
            f"it holds {data.n_samples} samples of shape {data.sample_shape} in "
            f"{data.n_classes or 'no'} classes, and {known.name!r} has {counts} of "
            f"{known.sample_shape} in {known.n_classes}",
            f"Download or copy it again from {known.source}, or use tuckermix.datasets.read for "
            "other data",
        )


def _digits() -> Dataset:
    from sklearn.datasets import load_digits

    digits = load_digits()
    return Dataset(X=digits.images, labels=digits.target.astype(np.int64))
