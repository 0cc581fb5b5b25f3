"""Records of runs: a file of JSON lines that only grows, and the CSV that is published."""

from __future__ import annotations

import csv
import errno
import io
import json
import math
import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from tuckermix._files import csv_text, from_csv_cell
from tuckermix._reading import open_regular
from tuckermix._records import Record

try:
    import fcntl
except ImportError:  # Windows: two runs on one file are not told apart there
    fcntl = None  # type: ignore[assignment]

STATUSES = ("ok", "failed", "timeout")
"""How a cell ended: with scores, with an error, or at its time limit."""

FORMAT = {"format": "tuckermix records", "version": 2}
"""The first line of a file of records. Version 1 was an SQLite file."""

KEY = ("profile", "experiment", "row", "method", "run")
Key = tuple[str, str, str, str, int]

IN_CSV = (
    *("profile", "experiment", "row", "method", "run", "status", "dataset", "n_samples", "classes"),
    *("ac", "nmi", "seconds", "cpu_seconds", "peak_memory", "iterations", "stop_reason", "error"),
    *("digest", "method_version", "package_version", "commit", "finished"),
)
"""What the CSV of records must have; seeds follow from the names."""
IN_EXTRAS = ("seen", "ari", "found")
"""Further columns of the CSV: how much of the draw tuning has seen, the adjusted Rand index, and
the number of clusters of a method that finds it."""
OF_DRAW = ("dataset", "n_samples", "classes", "seen")
"""What all records of a draw share. An empty cell of the CSV repeats what the file said before."""


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
    status : {"ok", "failed", "timeout"}
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
    method_version : str
        The version of the method, which is raised by hand when its results change.
    package_version, commit : str
        The version of tuckermix that made the record, and the commit where it ran in a checkout.
    machine, finished : str
        Where it ran, and when it ended (UTC).
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
    method_version: str = ""
    package_version: str = ""
    commit: str = ""
    machine: str = ""
    finished: str = ""
    extras: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """What identifies the record."""
        return (self.profile, self.experiment, self.row, self.method, self.run)

    @property
    def seen(self) -> float | None:
        """The share of the draw that choices have looked at; None where that is not known."""
        return self.extras.get("seen")

    @property
    def ari(self) -> float | None:
        """The adjusted Rand index; None where the fit failed."""
        return self.extras.get("ari")

    @property
    def found(self) -> float | None:
        """The number of clusters that the method found; None where it was given."""
        return self.extras.get("found")


KINDS = {one.name: str(one.type) for one in fields(RunRecord)}
READERS: dict[str, Callable[[str], Any]] = {"str": from_csv_cell, "int": int, "float": float}
TYPES: dict[str, Any] = {"str": str, "int": int, "float": int | float, "list": list, "dict": dict}


def _checked(values: Any) -> RunRecord:
    """Turn the values of a line into a record, or raise with what is wrong with them."""
    if not isinstance(values, dict):
        raise ValueError(f"it holds a {type(values).__name__}, not a record")
    unknown = sorted(values.keys() - KINDS.keys())
    if unknown:
        raise ValueError(f"it has an unknown field {unknown[0]!r}")
    for name, value in values.items():
        kind, _, optional = KINDS[name].partition(" | ")
        known = isinstance(value, TYPES[kind.partition("[")[0]]) and not isinstance(value, bool)
        if not (known or (value is None and optional)):
            raise ValueError(f"its {name} is {value!r}, not of type {KINDS[name]}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"its {name} is {value}")
    record = RunRecord(**values)
    if record.status not in STATUSES:
        raise ValueError(f"its status is {record.status!r}, not one of {', '.join(STATUSES)}")
    return record


def _parsed(path: Path, text: bytes) -> tuple[dict[Key, RunRecord], int]:
    """Return the records of a file and the length of its whole lines; the last may be cut short."""
    *lines, torn = text.split(b"\n")
    records, name = {}, str(path)
    for number, line in enumerate(lines, start=1):
        try:
            values = json.loads(line)
            if number > 1:
                record = _checked(values)
                records[record.key] = record
            elif values != FORMAT:
                raise ValueError(f"it must be {json.dumps(FORMAT)}")
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(
                f"Line {number} of {name!r} is no record: {error}. Delete the line, restore "
                "the file from a copy, or name another one with --db."
            ) from error
    if not lines and not json.dumps(FORMAT).encode().startswith(torn):
        raise ValueError(f"{name!r} holds no records: name another file with --db.")
    return records, len(text) - len(torn)


def _in_order(records: dict[Key, RunRecord]) -> list[RunRecord]:
    return [records[key] for key in sorted(records)]


class Store(AbstractContextManager["Store"]):
    """Records in a file of JSON lines, to which one run at a time adds.

    A record is appended as one line and flushed to the disk. A process that is killed leaves at
    most half a line at the end, which is ignored and overwritten by the next run. Of several
    records of one cell and run the last one counts. A second run is kept off the file; the system
    gives it free when the process ends.

    Parameters
    ----------
    path : path
        The file; it is made if it does not exist.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = _regular(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.touch()
        self._stream = self.path.open("r+b", buffering=0)
        try:
            if fcntl is not None:
                fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._records, self._size = _parsed(self.path, self._stream.readall())
        except BlockingIOError as error:
            self.close()
            raise RuntimeError(
                f"Another run is writing to {str(self.path)!r}: wait for it, stop it, or name "
                "another file with --db."
            ) from error
        except ValueError:
            self.close()
            raise

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def add(self, *records: RunRecord) -> None:
        """Append records.

        Parameters
        ----------
        *records : RunRecord
            Each takes the place of an earlier one of the same cell and run.
        """
        lines = [] if self._size else [FORMAT]
        text = "".join(json.dumps(one) + "\n" for one in [*lines, *map(asdict, records)]).encode()
        try:
            # Half a line of a killed run is overwritten.
            self._stream.truncate(self._size)
            self._stream.seek(self._size)
            if self._stream.write(text) != len(text):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._stream.fileno())
        except OSError as error:
            error.filename = str(self.path)
            raise
        self._size += len(text)
        self._records |= {record.key: record for record in records}

    def records(self) -> list[RunRecord]:
        """Return the records, sorted by profile, experiment, row, method and run."""
        return _in_order(self._records)


def _regular(path: str | os.PathLike[str]) -> Path:
    """Refuse a link, a folder or a pipe."""
    path = Path(path)
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise ValueError(f"{str(path)!r} must be a regular file, not a link, folder or pipe.")
    return path


def read_store(path: str | os.PathLike[str]) -> list[RunRecord]:
    """Read the records of a store, also while a run is adding to it.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    records : list of RunRecord
        Sorted by profile, experiment, row, method and run.
    """
    path = _regular(path)
    if not path.exists():
        raise FileNotFoundError(
            f"There are no results in {str(path)!r}: run `tuckermix reproduce` first, or "
            "name another file with --db."
        )
    return _in_order(_parsed(path, path.read_bytes())[0])


def records_csv(records: Iterable[RunRecord]) -> str:
    """Return records as CSV, one line each, without what only the figures need."""
    rows: list[Iterable[Any]] = [[*IN_CSV, *IN_EXTRAS]]
    said: dict[tuple[Any, ...], dict[str, Any]] = {}
    for record in records:
        line = record.to_dict() | {name: record.extras.get(name) for name in IN_EXTRAS}
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
        A `records.csv` that ``reproduce show --out`` wrote, or the file of a store.

    Returns
    -------
    records : list of RunRecord
        In the order of the file.
    """
    if Path(path).suffix != ".csv":
        return read_store(path)
    with io.TextIOWrapper(open_regular(Path(path)), encoding="utf-8", newline="") as stream:
        reader = csv.DictReader(stream)
        lacking = [name for name in IN_CSV if name not in (reader.fieldnames or ())]
        if lacking:
            raise ValueError(
                f"{path} must be a records.csv of `tuckermix reproduce show`, but has no column "
                f"{lacking[0]!r}."
            )
        said: dict[tuple[Any, ...], dict[str, str]] = {}
        records = []
        for number, line in enumerate(reader, start=2):
            try:
                records.append(_checked(_values(line, said)))
            except (AttributeError, TypeError, ValueError) as error:
                raise ValueError(f"Line {number} of {path} is no record: {error}.") from error
        return records


def _values(line: dict[str, str], said: dict[tuple[Any, ...], dict[str, str]]) -> dict[str, Any]:
    """Read one line of the CSV; `said` holds what lines before say of their draws."""
    key = [from_csv_cell(line[name]) for name in KEY[:4]]
    of_draw = said.setdefault((*key[:3], line["run"]), {})
    of_draw |= {name: line[name] for name in OF_DRAW if line.get(name)}
    line = line | of_draw
    values: dict[str, Any] = {"classes": [int(name) for name in line["classes"].split()]}
    for name in IN_CSV:
        read = READERS.get(KINDS[name].partition(" | ")[0])
        if read is not None and line[name]:  # an empty cell is a default
            values[name] = read(line[name])
    values["extras"] = {name: float(line[name]) for name in IN_EXTRAS if line.get(name)}
    return values
