"""Keep what a run of `tuckermix cluster` has done until its results are written.

A run that is killed leaves a hidden file beside the folder of its results. The same command on the
same input finds there the files that were read, the choice of view and number of clusters, and the
fitted model, and continues after them. A file that this user's runs have not written is ignored
and left alone, see `tuckermix.cli._journal`.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from tuckermix._archives import NUMERIC_KINDS
from tuckermix._array_api import is_dask
from tuckermix.cli._console import Console
from tuckermix.cli._journal import Journal, JournalError
from tuckermix.datasets import Dataset
from tuckermix.persistence import load, write_model
from tuckermix.selection import Selection, Trial
from tuckermix.selection.resampling import Recall
from tuckermix.summary import versions

DAMAGED = (OSError, ValueError, TypeError, KeyError, RecursionError)
"""Errors of records that an older version wrote; they are then computed again."""

READING = (
    *("key", "sample_axis", "sample_shape", "size", "fit", "grey", "frames", "channels", "axes"),
    "scale",
)
"""Options on which it depends what is read of one file."""


@dataclass(frozen=True)
class Keeping:
    """When work is worth keeping.

    Attributes
    ----------
    seconds : float, default=10.0
        Work that took less is done again as quickly. The environment variable
        ``TUCKERMIX_KEEP_SECONDS`` sets it; 0 keeps everything.
    rate : float, default=50e6
        Bytes per second that a slow disk reads: a file is kept only if reading it was slower.
    room : int, default=2
        Nothing is kept on a disk that would not hold it this many times: results need room too.
    """

    seconds: float = 10.0
    rate: float = 50e6
    room: int = 2


def state_of(path: Path) -> tuple[str, int, int]:
    """Return what changes when a file does: its path, size and time."""
    state = path.stat()
    return str(path.absolute()), state.st_size, state.st_mtime_ns


def key_of(data: Dataset, source: str, **options: Any) -> str:
    """Return what tells a run from others: its samples, its options and the versions in use.

    Parameters
    ----------
    data : Dataset
        The samples. Those in memory count by their values; those on disk by the names, sizes and
        times of their files.
    source : str
        Where they came from.
    **options
        What else the results depend on.

    Returns
    -------
    key : str
        A hexadecimal digest.
    """
    X: Any = data.X
    if is_dask(X):
        X = [*map(state_of, filter(Path.is_file, sorted((Path(source), *Path(source).rglob("*")))))]
    return str(joblib.hash((X, data.X.shape, str(data.X.dtype), options, versions())))


class Unfinished:
    """The work that one run has done so far.

    Parameters
    ----------
    results : Path
        The folder of the results; the journal lies beside it.
    console : Console
        Where it is said that a run continues, or why a journal is ignored.

    Attributes
    ----------
    key : callable
        Returns the key of the run, see `key_of`. It is called only where there is something to find
        or to keep, since it needs all samples.
    """

    def __init__(self, results: Path, console: Console) -> None:
        whole = Path(os.path.abspath(results))
        self.path = whole.parent / f".{whole.name}.unfinished"
        self.console, self.keeping = console, Keeping()
        with suppress(KeyError, ValueError):
            seconds = float(os.environ["TUCKERMIX_KEEP_SECONDS"])
            self.keeping = Keeping(seconds, self.keeping.rate if seconds > 0 else float("inf"))
        self._told = False
        self._turn = threading.Lock()  # numbers of clusters are compared in threads
        self.key: Callable[[], str] = str
        self._journal: Journal | None = None
        try:
            self._journal = Journal(self.path)
        except (JournalError, OSError) as error:
            self._ignore(error)

    @contextmanager
    def guarding(self) -> Iterator[None]:
        """Remove the journal when the block ends, and say where it is when it is left."""
        try:
            yield
        except BaseException:
            if self._journal is not None and self._journal.size:
                self.console.note(
                    f"The work so far is kept in {self.path} ({self._journal.size / 1e6:.1f} MB): "
                    "the same command continues from there. Delete that file if you do not want it."
                )
            raise
        if self._journal is not None:
            self._journal.remove()

    def _ignore(self, error: Exception) -> None:
        """Say why the journal is not used, and work without one."""
        self._journal = None
        why = str(error) or type(error).__name__
        self.console.note(
            f"Ignoring {self.path}: {why}. This run starts from the beginning and keeps nothing "
            "for a restart."
        )

    def _head(self, kind: str, *about: Any) -> list[Any]:
        """Return the head of a record: files speak for themselves, the others have the key."""
        return [kind, *about] if kind == "sample" else [kind, *about, self.key()]

    def _found(self, decode: Callable[[bytes], Any], *head: Any) -> Any:
        """Return what a record holds, or None, and say once that the run continues."""
        with self._turn:
            if self._journal is None or not self._journal.size:
                return None
            values = self._journal.read(self._head(*head))
            if values is None:
                return None
            if not self._told:
                self._told = True
                self.console.note(f"Continuing an earlier run, from {self.path}.")
        with suppress(*DAMAGED):
            return decode(values)
        return None

    def _keep(self, seconds: float, values: Callable[[], bytes], *head: Any) -> None:
        """Add a record of work that took that long, where there is room."""
        if self._journal is None or seconds < self.keeping.seconds:
            return
        with self._turn:
            try:
                content = values()
                if shutil.disk_usage(self.path.parent).free >= self.keeping.room * len(content):
                    self._journal.append(self._head(*head), content)
            except (JournalError, OSError) as error:  # a disk that fails stops nothing
                self._ignore(error)

    def remember(self, read_one: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the reader of one file of a folder, so that no file is read twice.

        Parameters
        ----------
        read_one : callable
            See `tuckermix.datasets.read`.

        Returns
        -------
        known : callable
            The same reader. Files that an earlier run has read, and that have the name, size and
            time they had, come from the journal.
        """
        begin = time.monotonic()

        def read(path: Path, options: Any) -> tuple[np.ndarray, str]:
            asked = {name: getattr(options, name) for name in READING}
            head = ("sample", *state_of(path), repr(asked))
            found = self._found(_sample, *head)
            if found is not None:
                return found
            start = time.monotonic()
            sample, kind = read_one(path, options)
            now = time.monotonic()
            slow = now - start > sample.nbytes / self.keeping.rate
            if slow and sample.dtype.kind in NUMERIC_KINDS:
                self._keep(now - begin, partial(_sample_bytes, sample, kind), *head)
            return sample, kind

        return read

    def choice(self, choose: Callable[[Recall], tuple[Selection, int]]) -> tuple[Selection, int]:
        """Return the choice of an earlier run, or choose and keep it.

        Parameters
        ----------
        choose : callable
            Makes the choice, given what recalls the comparisons of a run that did not come so far.

        Returns
        -------
        selection : Selection
            The choice.
        seed : int
            The seed of the fit that follows.
        """
        found = self._found(_choice, "choice")
        if found is not None:
            return found
        start = time.monotonic()

        def recall(name: str, compute: Callable[[], list[float]]) -> list[float]:
            values = self._found(json.loads, "compared", name)
            if values is None:
                values = compute()
                seconds = time.monotonic() - start
                self._keep(seconds, json.dumps(values).encode, "compared", name)
            return values

        chosen, seed = choose(recall)
        text = json.dumps({**asdict(chosen), "seed": seed}, default=lambda value: value.item())
        self._keep(time.monotonic() - start, text.encode, "choice")
        return chosen, seed

    def fitted(self) -> tuple[Any, float] | None:
        """Return the model that an earlier run fitted, and how many seconds that took."""
        return self._found(_fitted, "model")

    def keep_fitted(self, model: Any, seconds: float) -> None:
        """Keep a fitted model, and how many seconds the fit took."""
        self._keep(seconds, partial(_fitted_bytes, model, seconds), "model")


def _sample(values: bytes) -> tuple[np.ndarray, str]:
    kind, _, content = values.partition(b"\n")
    return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False), kind.decode()


def _sample_bytes(sample: np.ndarray, kind: str) -> bytes:
    target = io.BytesIO()
    target.write(kind.encode() + b"\n")
    np.lib.format.write_array(target, np.ascontiguousarray(sample), allow_pickle=False)
    return target.getvalue()


def _choice(values: bytes) -> tuple[Selection, int]:
    found = json.loads(values)
    seed, trials = found.pop("seed"), [Trial(**trial) for trial in found.pop("trials")]
    return Selection(trials, **found), seed


def _fitted(values: bytes) -> tuple[Any, float]:
    seconds, _, content = values.partition(b"\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.tuckermix")
        path.write_bytes(content)
        return load(path), float(seconds)


def _fitted_bytes(model: Any, seconds: float) -> bytes:
    target = io.BytesIO()
    target.write(f"{seconds!r}\n".encode())
    write_model(model, target)
    return target.getvalue()
