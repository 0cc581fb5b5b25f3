"""One SQLite file with one record a cell and run, and the CSV in which records are published."""

from __future__ import annotations

import csv
import errno
import json
import os
import sqlite3
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from tuckermix._files import csv_text, from_csv_cell
from tuckermix._records import Record
from tuckermix.experiments.draws import seed_of

__all__ = ["RunRecord", "Store", "import_records", "read_records", "records_csv"]

SCHEMA_VERSION = 1
BUSY_SECONDS = 30.0
"""How long a reader or the writer waits for the other: far more than one record takes to write."""

OK, FAILED, MISSING, TIMEOUT = "ok", "failed", "missing", "timeout"
"""How a cell ended: with scores, with an error, without its data, or at its time limit."""

KEY = ("profile", "experiment", "row", "method", "run")
Key = tuple[str, str, str, str, int]

RECORD_FIELDS = (
    *("profile", "experiment", "row", "method", "run", "status", "dataset", "n_samples", "classes"),
    *("ac", "nmi", "seconds", "cpu_seconds", "peak_memory", "iterations", "stop_reason", "error"),
    *("digest", "fingerprint", "finished"),
)
"""What the CSV of records must hold; the store has the rest, and seeds follow from the names."""
SEEN, ARI = "seen", "ari"
"""The last columns of the CSV, which older files lack: how much of the draw tuning has seen, and
the adjusted Rand index. In the store they stand among the extras, so that its format stays."""
LATER_FIELDS = (SEEN, ARI)
OF_DRAW = ("dataset", "n_samples", "classes", SEEN)
"""What all records of a draw have alike. The CSV has it where it is new: an empty cell stands for
what the file has said of the draw before."""
NEEDED_BY_FIGURES = "figure"
"""Experiments of this prefix keep curves and pictures that the CSV lacks: they are run anew."""


@dataclass(frozen=True)
class RunRecord(Record):
    """What is known about one cell and run.

    Attributes
    ----------
    profile, experiment, row, method : str
        Which cell.
    run : int
        Which run, from 0.
    digest : str
        A digest of the parameters.
    status : {"ok", "failed", "missing", "timeout"}
        How it ended.
    dataset : str
        The dataset's name.
    seed : int
        The method's random state.
    n_samples : int or None
        The number of samples drawn.
    ac, nmi : float or None
        Clustering accuracy and normalised mutual information.
    seconds, cpu_seconds : float or None
        Time of the fit by the clock and by the processor.
    peak_memory : int or None
        By how many bytes resident memory rose during the fit, at most.
    iterations : int or None
        The method's own count.
    stop_reason, error : str or None
        Why it ended.
    warnings, classes : list
        Warnings given, classes drawn.
    parameters, versions : dict
        What determines the numbers.
    machine, fingerprint, finished : str
        Where it ran, a digest of the method's code, and when it ended (UTC).
    extras : dict
        What the figures need.
    """

    profile: str
    experiment: str
    row: str
    method: str
    run: int
    digest: str
    status: str
    dataset: str = ""
    seed: int = 0
    n_samples: int | None = None
    ac: float | None = None
    nmi: float | None = None
    seconds: float | None = None
    cpu_seconds: float | None = None
    peak_memory: int | None = None
    iterations: int | None = None
    stop_reason: str | None = None
    error: str | None = None
    warnings: list[str] = field(default_factory=list)
    classes: list[int] = field(default_factory=list)
    parameters: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    machine: str = ""
    fingerprint: str = ""
    finished: str = ""
    extras: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """What identifies the record."""
        return (self.profile, self.experiment, self.row, self.method, self.run)

    @property
    def seen(self) -> float | None:
        """Which share of the draw choices have looked at; None where that is not known."""
        return self._extra(SEEN)

    @property
    def ari(self) -> float | None:
        """The adjusted Rand index; None where the fit failed and in records from before it."""
        return self._extra(ARI)

    def _extra(self, name: str) -> float | None:
        value = self.extras.get(name)
        return None if value is None else float(value)


_KINDS = {"str": "TEXT", "int": "INTEGER", "float": "REAL"}
"""How SQLite keeps the fields; lists and dictionaries become JSON."""


def _kind(name: str) -> str:
    """Return the type of a field, without saying that it may be missing."""
    return str(RunRecord.__dataclass_fields__[name].type).removesuffix(" | None")


_COLUMNS = {
    entry.name: _KINDS.get(_kind(entry.name), "TEXT")
    + (" NOT NULL" if entry.default is entry.default_factory else "")  # neither is there
    for entry in fields(RunRecord)
}
_JSON = [name for name in _COLUMNS if _kind(name) not in _KINDS]


class Store:
    """Records in an SQLite file.

    Each record is a transaction of its own. The journal is a write-ahead log, so that `show` can
    read while a run writes, and every commit is flushed to the disk (``synchronous=FULL``): a
    record costs seconds to compute and milliseconds to flush. A process killed at any moment leaves
    the file at its last commit.

    Parameters
    ----------
    path : path
        The file; it is made if it does not exist, unless `read_only`.
    read_only : bool, default=False
        Whether nothing may be written.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = Path(path)
        self.read_only = read_only
        if read_only and not self.path.is_file():
            raise FileNotFoundError(
                f"There are no results in {str(self.path)!r}: run `tuckermix reproduce` first, or "
                "name another file with --db."
            )
        if not read_only:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._explained():
            self._connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS)
            self._prepare()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say what is wrong with the file, and what to do, where SQLite names an error of its own.

        Yields
        ------
        None
            The block works on the file.
        """
        try:
            yield
        except sqlite3.DatabaseError as error:
            name = str(self.path)
            # The lower byte is the kind of the error, the rest tells where it struck.
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
            if code == sqlite3.SQLITE_FULL:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name) from error
            if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
                raise PermissionError(
                    f"Cannot {'read' if self.read_only else 'write'} {name!r} ({error}): make the "
                    "file and its folder writable, or name another file with --db."
                ) from error
            if code == sqlite3.SQLITE_NOTADB:
                raise ValueError(
                    f"{name!r} is no SQLite file ({error}): name another file with --db."
                ) from error
            if code == sqlite3.SQLITE_CORRUPT:
                raise ValueError(
                    f"{name!r} is damaged ({error}): restore it from a copy, or start anew with "
                    "another file."
                ) from error
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise RuntimeError(
                    f"{name!r} is held by another program for more than {BUSY_SECONDS:g} s: wait "
                    "for it, stop it, or name another file with --db."
                ) from error
            raise RuntimeError(
                f"Cannot use {name!r} ({error}): name another file with --db."
            ) from error

    def _prepare(self) -> None:
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, SCHEMA_VERSION):
            raise ValueError(
                f"{str(self.path)!r} holds records of format {version}, but this tuckermix reads "
                f"format {SCHEMA_VERSION}: name another file with --db."
            )
        if self.read_only:
            self._connection.execute("PRAGMA query_only = ON")
            if version == 0:
                raise ValueError(
                    f"{str(self.path)!r} holds no results: name another file with --db."
                )
            return
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        columns = ", ".join(f'"{name}" {kind}' for name, kind in _COLUMNS.items())
        with self._connection:
            self._connection.execute(
                f"CREATE TABLE IF NOT EXISTS records ({columns}, PRIMARY KEY ({', '.join(KEY)}))"
            )
            self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def add(self, record: RunRecord) -> None:
        """Write a record, in place of an older one of the same cell and run.

        Parameters
        ----------
        record : RunRecord
            What to write.
        """
        values = [json.dumps(record[name]) if name in _JSON else record[name] for name in _COLUMNS]
        marks = ", ".join("?" for _ in values)
        with self._explained(), self._connection:
            self._connection.execute(f"INSERT OR REPLACE INTO records VALUES ({marks})", values)

    def check(self) -> None:
        """Raise if the file is damaged; deprecated, as every reading says so."""
        self._retired("check", "every reading of a damaged file raises")
        ((answer,), *_) = self._rows("PRAGMA integrity_check")
        if answer != "ok":
            raise ValueError(f"{str(self.path)!r} is damaged ({answer}): restore it from a copy.")

    def stale(self, fingerprints: dict[str, str]) -> list[RunRecord]:
        """Return the records of these methods that have another fingerprint; deprecated."""
        self._retired("stale", "compare the fingerprints of `records()`")
        return self._stale(fingerprints)

    def _stale(self, fingerprints: dict[str, str]) -> list[RunRecord]:
        return [
            record
            for record in self.records()
            if fingerprints.get(record.method, record.fingerprint) != record.fingerprint
        ]

    @staticmethod
    def _retired(name: str, instead: str) -> None:
        warnings.warn(
            f"Store.{name} goes with version 0.3: {instead}.", DeprecationWarning, stacklevel=3
        )

    def records(self, **where: Any) -> list[RunRecord]:
        """Return the records, in a fixed order.

        Parameters
        ----------
        **where
            Values that fields must have, such as ``experiment="table3"``.

        Returns
        -------
        records : list of RunRecord
            Sorted by profile, experiment, row, method and run.
        """
        condition, values = self._condition(where)
        names = ", ".join(f'"{name}"' for name in _COLUMNS)
        rows = self._rows(
            f"SELECT {names} FROM records{condition} ORDER BY {', '.join(KEY)}", values
        )
        return [
            RunRecord(
                **{
                    name: json.loads(value) if name in _JSON and value is not None else value
                    for name, value in zip(_COLUMNS, row, strict=True)
                }
            )
            for row in rows
        ]

    def digests(self) -> dict[Key, tuple[str, str]]:
        """Return digest and status of each record by its key, without reading the rest."""
        rows = self._rows(f"SELECT {', '.join(KEY)}, digest, status FROM records")
        return {tuple(row[:5]): (row[5], row[6]) for row in rows}

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._explained():
            return self._connection.execute(query, values).fetchall()

    def delete(self, **where: Any) -> int:
        """Delete records, such as all of one method: ``delete(method="MM")``.

        Parameters
        ----------
        **where
            Values that fields must have; at least one.

        Returns
        -------
        count : int
            How many were deleted.
        """
        if not where:
            raise ValueError(
                "delete() without a condition would delete every record: name a field, such as "
                "method='MM', or delete the file."
            )
        condition, values = self._condition(where)
        with self._explained(), self._connection:
            return self._connection.execute(f"DELETE FROM records{condition}", values).rowcount

    @staticmethod
    def _condition(where: dict[str, Any]) -> tuple[str, list[Any]]:
        for name in where:
            if name not in _COLUMNS:
                raise ValueError(
                    f"A record has no field {name!r}: its fields are {', '.join(_COLUMNS)}."
                )
        condition = " AND ".join(f'"{name}" = ?' for name in where)
        return (f" WHERE {condition}" if where else ""), list(where.values())

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the store for one runner: a second one on the same file is refused.

        The lock is an exclusive transaction on a file beside the store, which the system releases
        when the process ends, however it ends.
        """
        with self._explained():
            lock = sqlite3.connect(f"{self.path}.lock", timeout=0.0, isolation_level=None)
        try:
            with self._explained():
                try:
                    lock.execute("BEGIN EXCLUSIVE")
                except sqlite3.OperationalError as error:
                    if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                        raise
                    raise RuntimeError(
                        f"Another run is writing to {str(self.path)!r}: wait for it, stop it, or "
                        "name another file with --db."
                    ) from error
            yield
        finally:
            lock.close()

    def of_older_code(self, keys: set[Key], fingerprints: dict[str, str]) -> set[Key]:
        """Return which of these records are of older code than today's, see `delete_stale`."""
        return {record.key for record in self._stale(fingerprints)} & keys

    def delete_stale(self, keys: set[Key], fingerprints: dict[str, str]) -> int:
        """Delete the records of older code.

        Parameters
        ----------
        keys : set of tuple
            The records in question.
        fingerprints : dict of str to str
            Today's fingerprints, by method; records of other methods stay.

        Returns
        -------
        count : int
            How many were deleted.
        """
        older = self.of_older_code(keys, fingerprints)
        for key in older:
            self.delete(**dict(zip(KEY, key, strict=True)))
        return len(older)


def records_csv(records: Iterable[RunRecord]) -> str:
    """Render records as CSV, one line each, without what only the figures need."""
    rows: list[Iterable[Any]] = [[*RECORD_FIELDS, *LATER_FIELDS]]
    said: dict[tuple[Any, ...], dict[str, Any]] = {}
    for record in records:
        line = record.to_dict() | {SEEN: record.seen, ARI: record.ari}
        line["classes"] = " ".join(map(str, record.classes))
        line["error"] = " ".join((record.error or "").split())
        before = said.setdefault((*record.key[:3], record.run), {})
        for name in OF_DRAW:
            if before.get(name) == line[name]:
                line[name] = None
            else:
                before[name] = line[name]
        rows.append([line[name] for name in rows[0]])
    return csv_text(rows)


def read_records(path: str | os.PathLike[str]) -> list[RunRecord]:
    """Read published records.

    Parameters
    ----------
    path : path
        A `records.csv` that ``reproduce show --formats csv`` wrote.

    Returns
    -------
    records : list of RunRecord
        In the order of the file.
    """
    with Path(path).open(newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream)
        if reader.fieldnames is None or set(RECORD_FIELDS) - set(reader.fieldnames):
            raise ValueError(
                f"{path} must be a records.csv of `tuckermix reproduce show`, with the columns "
                f"{', '.join(RECORD_FIELDS)}. Got {reader.fieldnames} instead."
            )
        said: dict[tuple[Any, ...], dict[str, str]] = {}
        records = []
        for number, line in enumerate(reader, start=2):
            try:
                records.append(_record_of(line, said))
            except (AttributeError, TypeError, ValueError) as error:
                raise ValueError(f"Line {number} of {path} is no record: {error}.") from error
        return records


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
    records = read_records(path)
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


def _record_of(line: dict[str, str], said: dict[tuple[Any, ...], dict[str, str]]) -> RunRecord:
    """Turn one line of the file into a record; `said` is what lines before say of their draws."""
    key = [from_csv_cell(line[name]) for name in KEY[:4]]
    of_draw = said.setdefault((*key[:3], line["run"]), {})
    of_draw |= {name: line[name] for name in OF_DRAW if line.get(name)}
    line = line | of_draw
    values: dict[str, Any] = {"classes": [int(name) for name in line["classes"].split()]}
    for name in RECORD_FIELDS:
        kind, text = _kind(name), line[name]
        if kind in ("int", "float"):
            values[name] = {"int": int, "float": float}[kind](text) if text else None
        elif kind == "str":
            optional = RunRecord.__dataclass_fields__[name].default is None
            values[name] = from_csv_cell(text) or (None if optional else "")
    values["seed"] = seed_of(*key[1:], values["run"])
    values["extras"] = {name: float(line[name]) for name in LATER_FIELDS if line.get(name)}
    return RunRecord(**values)
