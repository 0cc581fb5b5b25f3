"""Continue from published records: read the CSV that `show` writes back into a store."""

from __future__ import annotations

import csv
import os
from pathlib import Path

from tuckermix.experiments.rendering import RECORD_FIELDS
from tuckermix.experiments.store import RunRecord, Store

__all__ = ["import_records"]

INTEGERS = ("run", "seed", "n_samples", "peak_memory", "iterations")
NUMBERS = ("ac", "nmi", "seconds", "cpu_seconds")
OPTIONAL_TEXTS = ("stop_reason", "error")
NEEDED_BY_FIGURES = "figure"
"""Experiments of this prefix keep curves and pictures that the CSV lacks: they are run anew."""


def import_records(path: str | os.PathLike[str], db: str | os.PathLike[str]) -> int:
    """Add the records of a CSV file to a store, without touching those that it has.

    Parameters
    ----------
    path : path
        A `records.csv` that ``reproduce show --formats csv`` wrote.
    db : path
        The SQLite file of the store; made where it is missing.

    Returns
    -------
    count : int
        How many records were added.
    """
    with Path(path).open(newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream)
        if reader.fieldnames is None or set(RECORD_FIELDS) - set(reader.fieldnames):
            raise ValueError(
                f"{path} must be a records.csv of `tuckermix reproduce show`, with the columns "
                f"{', '.join(RECORD_FIELDS)}. Got {reader.fieldnames} instead."
            )
        records = [_record_of(line, path, number) for number, line in enumerate(reader, start=2)]
    with Store(db) as store:
        known = set(store.digests())
        new = [
            record
            for record in records
            if record.key not in known and not record.experiment.startswith(NEEDED_BY_FIGURES)
        ]
        for record in new:
            store.add(record)
    return len(new)


def _record_of(line: dict[str, str], path: object, number: int) -> RunRecord:
    """Turn one line of the file into a record."""
    values: dict[str, object] = {name: line[name] for name in RECORD_FIELDS}
    try:
        values["classes"] = [int(name) for name in (line["classes"] or "").split()]
        for name in INTEGERS:
            values[name] = int(line[name]) if line[name] else None
        for name in NUMBERS:
            values[name] = float(line[name]) if line[name] else None
        for name in OPTIONAL_TEXTS:
            values[name] = line[name] or None
        return RunRecord(**values)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise ValueError(f"Line {number} of {path} is no record: {error}.") from error
