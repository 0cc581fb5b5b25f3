"""Parquet tables: a column of paths, columns of numbers, or a column of lists."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from tuckermix._reading import Refusal, check_fits
from tuckermix.datasets._container import SAMPLE_NAMES
from tuckermix.datasets._dataset import Dataset
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


def read_parquet(path: Path, options: Options, read_files: FileReader | None) -> Dataset:
    """Read the samples of a Parquet table.

    Parameters
    ----------
    path : Path
        The table.
    options : Options
        `key` is the column of the samples or of their paths, `label_key` that of the classes.
    read_files : callable or None
        Reads files, given their folder, their names and the options, see `read_table`.

    Returns
    -------
    dataset : Dataset
        One sample for each row.
    """
    said, _ = options.sandbox.ask("parquet", "list", path)
    kinds, n_rows = dict(said["columns"]), int(said["rows"])
    if not n_rows:
        raise Refusal("it has no rows", "Store one row for each sample")

    def column(name: str) -> np.ndarray:
        return options.sandbox.ask("parquet", "read", path, name=name)[1]

    key, label = roles(list(kinds), options)
    kinds = {name: kind for name, kind in kinds.items() if name not in (options.drop or ())}
    lists = _lists(kinds, options)
    texts: dict[str, list[str]] = {}
    if key is not None and kinds[key] == "text":
        texts[key] = column(key).tolist()
    paths = texts.get(str(key))
    if label is not None:
        texts[label] = [str(value) for value in column(label).ravel().tolist()]
    if lists is not None:
        data = replace(from_numbers(path, column(lists), options), names=paths)
        return data if label is None else with_classes(data, texts[label], label)
    told = (label, key if key in texts else None)
    names = [name for name, kind in kinds.items() if kind == "number" and name not in told]
    numbers = np.empty((n_rows, 0))
    if options.key is not None and key in texts:
        names = []
    if names:
        what = f"{len(names)} numbers in {n_rows} rows"
        check_fits(what, 8 * len(names) * n_rows, options.max_bytes)
        numbers = np.empty((n_rows, len(names)))
        for place, name in enumerate(names):
            numbers[:, place] = column(name)
    words = {"text": "texts", "date": "dates", "other": "neither numbers nor texts"}
    others = {
        name: words[kind] for name, kind in kinds.items() if kind in words and name not in told
    }
    return samples_of_table(path, Table(texts, names, numbers, others), options, read_files)


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
