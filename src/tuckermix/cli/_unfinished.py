"""Keep what a run of `tuckermix cluster` has done until its results are written.

A run that is killed leaves a hidden file beside the folder of its results. The same command on the
same input finds there the files that were read, the choice of view and number of clusters, and the
fitted model, and continues after them. A file that this user's runs have not written is ignored
and left alone, see `tuckermix.cli._journal`.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._archives import NUMERIC_KINDS
from tuckermix._array_api import blocks, is_dask
from tuckermix.cli._console import Console
from tuckermix.cli._journal import Journal, JournalError
from tuckermix.datasets import Dataset
from tuckermix.selection import Selection, Trial
from tuckermix.selection.resampling import Recall
from tuckermix.summary import versions

DAMAGED = (ValueError, TypeError, KeyError, RecursionError)
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

    @classmethod
    def from_environment(cls) -> Keeping:
        """Return the defaults, changed as the environment says."""
        try:
            seconds = float(os.environ.get("TUCKERMIX_KEEP_SECONDS", cls.seconds))
        except ValueError:
            return cls()
        return cls(seconds, cls.rate if seconds > 0 else float("inf"))


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
    X = data.X
    found = hashlib.blake2b(digest_size=16)
    about = [list(X.shape), str(X.dtype), options, versions()]
    found.update(json.dumps(about, sort_keys=True, default=repr).encode())
    if is_dask(X):
        for path in sorted((Path(source), *Path(source).rglob("*"))):
            if not path.is_file():
                continue
            state = path.stat()
            found.update(f"{path}|{state.st_size}|{state.st_mtime_ns}\n".encode())
    else:
        for part in blocks(len(X), max(1, X.nbytes // max(1, len(X)))):
            found.update(np.ascontiguousarray(X[part]).data.cast("B"))
    return found.hexdigest()


class Unfinished:
    """The work that one run has done so far.

    Parameters
    ----------
    results : Path
        The folder of the results; the journal lies beside it.
    console : Console
        Where it is said that a run continues, or why a journal is ignored.
    keeping : Keeping or None, default=None
        When work is worth keeping; None asks the environment.
    """

    def __init__(self, results: Path, console: Console, keeping: Keeping | None = None) -> None:
        whole = Path(os.path.abspath(results))
        self.path = whole.parent / f".{whole.name}.unfinished"
        self.console, self.keeping = console, keeping or Keeping.from_environment()
        self._told = False
        self._turn = threading.Lock()  # numbers of clusters are compared in threads
        self._key: Callable[[], str] = str
        self._journal: Journal | None = None
        try:
            self._journal = Journal(self.path)
        except (JournalError, OSError) as error:
            self._ignore(error)

    def under(self, key: Callable[[], str]) -> None:
        """Continue under the key of the run.

        The key is computed only where there is something to find or to keep, since it needs all
        samples.
        """
        self._key = cache(key)

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

    def _found(self, head: Callable[[], list[Any]]) -> bytes | None:
        """Return the values of a record, and say once that the run continues.

        The head is asked for only where there is any record: its key may be costly.
        """
        with self._turn:
            known = self._journal is not None and self._journal.size
            values = self._journal.read(head()) if self._journal and known else None
            if values is not None and not self._told:
                self._told = True
                self.console.note(f"Continuing an earlier run, from {self.path}.")
            return values

    def _keep(
        self, seconds: float, head: Callable[[], list[Any]], values: Callable[[], bytes]
    ) -> None:
        """Add a record of work that took that long, where there is room."""
        if self._journal is None or seconds < self.keeping.seconds:
            return
        with self._turn:
            try:
                content = values()
                if shutil.disk_usage(self.path.parent).free >= self.keeping.room * len(content):
                    self._journal.append(head(), content)
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
            state = path.stat()
            asked = {name: getattr(options, name) for name in READING}
            about = [str(path.absolute()), state.st_size, state.st_mtime_ns, repr(asked)]
            found = self._found(lambda: ["sample", *about])
            if found is not None:
                with suppress(*DAMAGED):
                    kind, _, values = found.partition(b"\n")
                    sample = np.lib.format.read_array(io.BytesIO(values), allow_pickle=False)
                    return sample, kind.decode()
            start = time.monotonic()
            sample, kind = read_one(path, options)
            now = time.monotonic()
            slow = now - start > sample.nbytes / self.keeping.rate
            if slow and sample.dtype.kind in NUMERIC_KINDS:
                content = partial(_sample_bytes, sample, kind)
                self._keep(now - begin, lambda: ["sample", *about], content)
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
        found = self._found(lambda: ["choice", self._key()])
        if found is not None:
            with suppress(*DAMAGED):
                return _choice(found.decode())
        start = time.monotonic()

        def recall(name: str, compute: Callable[[], list[float]]) -> list[float]:
            known = self._found(lambda: ["compared", name, self._key()])
            if known is not None:
                with suppress(*DAMAGED):
                    return [float(value) for value in json.loads(known)]
            values = compute()
            taken = time.monotonic() - start
            self._keep(taken, lambda: ["compared", name, self._key()], json.dumps(values).encode)
            return values

        chosen, seed = choose(recall)
        values = chosen.to_dict() | {"trials": [trial.to_dict() for trial in chosen.trials]}
        text = json.dumps({**values, "seed": seed}, default=lambda value: value.item())
        taken = time.monotonic() - start
        self._keep(taken, lambda: ["choice", self._key()], text.encode)
        return chosen, seed

    def fitted(self) -> tuple[Any, float] | None:
        """Return the model that an earlier run fitted, and how many seconds that took."""
        from tuckermix.persistence import load

        found = self._found(lambda: ["model", self._key()])
        if found is None:
            return None
        with suppress(OSError, *DAMAGED), tempfile.TemporaryDirectory() as folder:
            taken, _, content = found.partition(b"\n")
            path = Path(folder, "model.tuckermix")
            path.write_bytes(content)
            return load(path), float(taken)
        return None

    def keep_fitted(self, model: Any, seconds: float) -> None:
        """Keep a fitted model, and how many seconds the fit took."""
        from tuckermix.persistence import write_model

        def content() -> bytes:
            stream = io.BytesIO()
            stream.write(f"{seconds!r}\n".encode())
            write_model(model, stream)
            return stream.getvalue()

        self._keep(seconds, lambda: ["model", self._key()], content)


def _sample_bytes(sample: np.ndarray, kind: str) -> bytes:
    target = io.BytesIO()
    target.write(kind.encode() + b"\n")
    np.lib.format.write_array(target, np.ascontiguousarray(sample), allow_pickle=False)
    return target.getvalue()


def _choice(text: str) -> tuple[Selection, int]:
    """Return a choice that this user's program kept, or raise where another version did."""
    values = json.loads(text)
    seed, trials = values.pop("seed"), [Trial(**trial) for trial in values.pop("trials")]
    return Selection(trials, **values), seed
