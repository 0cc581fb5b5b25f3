"""Parquet tables: a column of paths, columns of numbers, or a column of lists."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._archives import NUMERIC_KINDS
from tuckermix._reading import Refusal
from tuckermix.datasets._container import SAMPLE_NAMES
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._library import Library, texts_of
from tuckermix.datasets._options import Options
from tuckermix.datasets._table import (
    FileReader,
    Table,
    from_numbers,
    roles,
    samples_of_table,
    with_classes,
)

PARQUET_SUFFIXES = frozenset({".parquet", ".pq"})
"""File names of Parquet."""

PIXEL_NAMES = ("pixels", "image", *SAMPLE_NAMES)
"""Columns in which samples are commonly stored as lists."""


class _Columns(Library):
    """Answers of pyarrow about one table."""

    child = "tuckermix._parquet_child"
    package = "pyarrow"
    called = "pyarrow"
    what = "Reading Parquet"
    again = "Get the file anew, or store it anew"

    def columns(self) -> tuple[dict[str, str], int]:
        """Return the kinds of the columns by name, and the number of rows."""
        said = self._ask(0, do="columns")[0]
        return dict(said["columns"]), int(said["rows"])

    def texts(self, name: str) -> list[str]:
        """Read a column of texts."""
        return texts_of(*self._ask(2 * self.limit, do="read", name=name))

    def numbers(self, name: str) -> np.ndarray:
        """Read a column of numbers, or of lists of one length."""
        said, content = self._ask(self.limit, do="read", name=name)
        dtype, shape = np.dtype(said["dtype"]), tuple(said["shape"])
        if dtype.kind not in NUMERIC_KINDS or math.prod(shape) * dtype.itemsize != len(content):
            raise ValueError(f"{len(content)} bytes came for {shape} values of {dtype}")
        return np.frombuffer(content, dtype=dtype).reshape(shape)


def read_parquet(path: Path, options: Options, read_files: FileReader) -> Dataset:
    """Read the samples of a Parquet table.

    Parameters
    ----------
    path : Path
        The table.
    options : Options
        `key` is the column of the samples or of their paths, `label_key` that of the classes.
    read_files : callable
        Reads files, given their folder, their names and the options.

    Returns
    -------
    dataset : Dataset
        One sample for each row.
    """
    with _Columns(path, options.max_bytes) as library:
        kinds, n_rows = library.columns()
        if not n_rows:
            raise Refusal("it has no rows", "Store one row for each sample")
        key, label = roles(list(kinds), options)
        lists = _lists(kinds, options)
        texts: dict[str, list[str]] = {}
        if key is not None and kinds[key] == "text":
            texts[key] = library.texts(key)
        paths = texts.get(str(key))
        if label is not None:
            texts[label] = _as_text(library, label, kinds[label])
        if lists is not None:
            data = replace(from_numbers(path, library.numbers(lists), options), names=paths)
            return data if label is None else with_classes(data, texts[label], label)
        told = (label, key if key in texts else None)
        names = [name for name, kind in kinds.items() if kind == "number" and name not in told]
        columns: list[Any] = []
        if names and not (options.key is not None and key in texts):
            if 8 * len(names) * n_rows > options.max_bytes:
                raise Refusal(
                    f"{len(names)} numbers in {n_rows} rows would take more than the limit, "
                    f"max_bytes={options.max_bytes}",
                    "If you trust the file, raise max_bytes",
                )
            columns = [library.numbers(name).astype(np.float64) for name in names]
        numbers = np.stack(columns, axis=1) if columns else np.empty((n_rows, 0))
    return samples_of_table(
        path, Table(texts, names if columns else [], numbers), options, read_files
    )


def _lists(kinds: dict[str, str], options: Options) -> str | None:
    """Find the column whose lists are the samples; None where there is none."""
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


def _as_text(library: _Columns, name: str, kind: str) -> list[str]:
    """Read a column of classes, texts or numbers."""
    if kind == "text":
        return library.texts(name)
    return [str(value) for value in library.numbers(name).ravel().tolist()]
