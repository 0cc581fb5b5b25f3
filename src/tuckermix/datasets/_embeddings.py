"""Vectors or maps of samples that were computed elsewhere, in the order of the samples."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from operator import attrgetter
from pathlib import Path, PurePosixPath

import numpy as np

from tuckermix._archives import open_archive, zip_entries
from tuckermix._reading import Refusal, reading
from tuckermix.datasets._container import assemble, check_declared
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._options import Options
from tuckermix.datasets._read import read_with
from tuckermix.datasets._table import PATH_NAMES, TABLE_SUFFIXES, read_table

NAMES = ("names", *PATH_NAMES, *(f"{name}s" for name in PATH_NAMES))
"""Names by which an ``.npz`` file has the names of samples."""


def read_embeddings(
    path: str | os.PathLike[str],
    names: Sequence[str] | None = None,
    *,
    max_bytes: int | None = None,
) -> np.ndarray:
    """Read embeddings of samples that were computed elsewhere.

    Parameters
    ----------
    path : str or path
        The file, of any kind that `read` knows. In a table (``.csv``, ``.tsv``, ``.parquet``) a
        column ``name``, ``file`` or ``path`` says which sample a row belongs to; in ``.npz`` an
        array of such a name does.
    names : sequence of str or None, default=None
        The names of the samples, such as `Dataset.names`. A name in the file is the same, or has
        the same end after the last slash, or that without its suffix. None, or a file without
        names, means that rows are in the order of the samples.
    max_bytes : int or None, default=None
        See `read`.

    Returns
    -------
    embeddings : ndarray of shape (n_samples, ...)
        One row for each of `names`, in their order.

    Examples
    --------
    >>> from tuckermix.datasets import read, read_embeddings
    >>> data = read("photos/")  # doctest: +SKIP
    >>> embeddings = read_embeddings("clip.parquet", data.names)  # doctest: +SKIP
    """
    source = Path(path)
    data = _read(source, max_bytes)
    with reading(source):
        if names is None:
            return np.asarray(data.X)
        if data.names is not None:
            return np.asarray(data.X[_rows(data.names, names)])
        if data.n_samples != len(names):
            raise Refusal(
                f"it has {data.n_samples} rows without names, and there are {len(names)} samples",
                "Store a row for each sample in their order, or a column of their names",
            )
        return np.asarray(data.X)


def _read(source: Path, max_bytes: int | None) -> Dataset:
    """Read a file; the names in a table are those of rows, never of files to open."""
    options = Options.checked(max_bytes=max_bytes)
    with closing(options.sandbox), reading(source):
        suffix = source.suffix.lower() if source.is_file() else ""
        if suffix in TABLE_SUFFIXES:
            return read_table(source, options, files=False)
        return (_read_npz if suffix == ".npz" else read_with)(source, options)


def _read_npz(source: Path, options: Options) -> Dataset:
    """Read an archive, with one of its arrays as the names of the samples."""
    with open_archive(source) as archive:
        entries = zip_entries(source, archive)
        data = assemble(source, entries, options)
        named = next((entry for entry in entries if entry.name in NAMES), None)
        if named is None:
            return data
        check_declared(named, options)
        return replace(data, names=[str(name) for name in named.load().ravel()])


def _rows(theirs: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return the row of each name, by the first way of comparing that finds all of them."""
    missing: list[str] = []
    for short in (str, attrgetter("name"), attrgetter("stem")):
        rows = {short(_path(name)): row for row, name in enumerate(theirs)}
        wanted = [short(_path(name)) for name in names]
        unique = len(rows) == len(theirs) and len(set(wanted)) == len(wanted)
        lacking = [name for name, key in zip(names, wanted, strict=True) if key not in rows]
        if unique and not lacking:
            return [rows[key] for key in wanted]
        if not missing or (unique and len(lacking) < len(missing)):
            missing = lacking
    raise Refusal(
        f"it has no row for {len(missing)} of {len(names)} samples, such as {missing[0]!r}"
        if missing
        else "it names a sample twice",
        "Store a row for each sample, with the name of its file",
    )


def _path(name: str) -> PurePosixPath:
    return PurePosixPath(name.replace("\\", "/"))
