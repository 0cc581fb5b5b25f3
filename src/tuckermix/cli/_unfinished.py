"""What a run of `tuckermix cluster` has done, kept until its results are written.

A run that is killed leaves a hidden folder beside the folder of its results. The same command on
the same input finds there the files that were read, the choice of view and number of clusters, the
features and the fitted model, and goes on after them. Whatever is kept is written in one piece, or
checked by a sum; what does not belong to the run, or is damaged, counts as not there. Nothing is
unpickled.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._archives import NUMERIC_KINDS
from tuckermix._array_api import blocks, is_dask
from tuckermix._files import atomic_open, write_text
from tuckermix._validation import check_integer
from tuckermix.cli._console import Console
from tuckermix.datasets import Dataset
from tuckermix.selection import Selection, Trial
from tuckermix.summary import versions

__all__ = ["Unfinished", "key_of"]

WORTH = 10.0
"""Seconds of work from which on it is kept: what took less is done again as quickly."""

RATE = 50e6
"""Bytes a second that a slow disk gives back: a file is kept only if reading it was slower."""

PIECE_BYTES = 2**27
"""Features are computed, and kept, in pieces of about this size."""

ROOM = 2
"""Nothing is kept on a disk that would not hold it so many times: the results need room too."""

SAMPLES, CHOICE, MODEL, TIME, FEATURES = "samples", "choice", "model", "time", "features"
"""What is kept, by the first part of its name; the second is the key of the run."""

DAMAGED = (ValueError, TypeError, KeyError, RecursionError)
"""What something that was kept may raise where it is damaged: it is then made anew."""

LONGEST_LINE = 2**16
"""Bytes of the line that describes a record; names of files are far shorter."""

KEY_LENGTH = 16

READING = ("key", "sample_axis", "sample_shape", "size", "grey", "frames", "channels", "axes")
"""Options on which it depends what is read of one file."""


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
        Letters and digits that may stand in the name of a file.
    """
    X = data.X
    found = hashlib.blake2b(digest_size=KEY_LENGTH // 2)
    about = [list(X.shape), str(X.dtype), options, versions()]
    found.update(json.dumps(about, sort_keys=True, default=repr).encode())
    if is_dask(X):
        for path in sorted(_files_below(Path(source))):
            state = path.stat()
            found.update(f"{path}|{state.st_size}|{state.st_mtime_ns}\n".encode())
    else:
        for part in blocks(len(X), max(1, X.nbytes // max(1, len(X)))):
            found.update(np.ascontiguousarray(X[part]).data.cast("B"))
    return found.hexdigest()


def _files_below(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    for folder, _, names in os.walk(path):
        for name in names:
            yield Path(folder, name)


def _choice(text: str) -> Selection:
    """Make the record of a choice from what was kept, or raise where that is none."""
    values = json.loads(text)
    trials = [Trial(**trial) for trial in values.pop("trials")]
    for trial in trials:
        check_integer(trial.n_clusters, "n_clusters", "Trial")
        for name in ("stability", "modularity", "within", "weight"):
            if not isinstance(getattr(trial, name), float | int):
                raise ValueError(f"the {name} of a trial is no number")
    found = Selection(trials, **values)
    if (found.n_clusters, found.view) not in [(trial.n_clusters, trial.view) for trial in trials]:
        raise ValueError("what was chosen is none of what was tried")
    str(found)  # it is going to be told
    return found


class Unfinished:
    """What one run has done so far.

    Parameters
    ----------
    results : Path
        The folder of the results; what is kept lies beside it.
    console : Console
        Where it is said that a run goes on.
    """

    def __init__(self, results: Path, console: Console) -> None:
        whole = Path(os.path.abspath(results))
        self.path = whole.parent / f".{whole.name}.unfinished"
        self.console = console
        self.told = False
        self._key: Callable[[], str] = str

    def under(self, key: Callable[[], str]) -> None:
        """Go on under the key of the run; what other runs left is taken away.

        The key is asked for where there is something to find or to keep, since all samples are read
        for it.
        """
        self._key = cache(key)
        for path in self._all():
            if path.name != SAMPLES and self._key() not in path.name:
                with suppress(OSError):
                    path.unlink()

    @contextmanager
    def guarding(self) -> Iterator[None]:
        """Take away what was kept when the block ends, and say where it is when it is left."""
        try:
            yield
        except BaseException:
            size = sum(path.stat().st_size for path in self._all())
            if size:
                self.console.note(
                    f"What was done is kept in {self.path} ({size / 1e6:.1f} MB): the same command "
                    "goes on after it. Delete that folder if you do not want to."
                )
            raise
        shutil.rmtree(self.path, ignore_errors=True)

    def _all(self) -> list[Path]:
        try:
            return [path for path in self.path.iterdir() if path.is_file()]
        except OSError:
            return []

    def _named(self, what: str, ending: str) -> Path:
        return self.path / f"{what}-{self._key()}{ending}"

    def _found(self, what: str, ending: str) -> Path | None:
        """Return where something is that was kept, if it is."""
        if not self._all():
            return None
        path = self._named(what, ending)
        return path if path.is_file() else None

    def _tell(self) -> None:
        """Say once that the run goes on."""
        if not self.told:
            self.told = True
            self.console.note(f"Going on after what an earlier run left in {self.path}.")

    def _keep(self, seconds: float, nbytes: int, write: Callable[[], None]) -> bool:
        """Keep something that took that long, where there is room; a disk that fails stops nothing.

        Returns
        -------
        kept : bool
            Whether it is there now.
        """
        if seconds < WORTH:
            return False
        with suppress(OSError):
            self.path.mkdir(exist_ok=True)
            if shutil.disk_usage(self.path).free >= ROOM * nbytes:
                write()
                return True
        return False

    # ---- files that were read -----------------------------------------------------------------

    def remember(self, read_one: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap what reads one file of a folder: what an earlier run has read is taken from there.

        Parameters
        ----------
        read_one : callable
            See `tuckermix.datasets.read`.

        Returns
        -------
        known : callable
            The same, for files that have the name, size and time they had.
        """
        journal = self.path / SAMPLES
        known = _scan(journal)
        begin = time.monotonic()

        def read(path: Path, options: Any) -> tuple[np.ndarray, str]:
            state = path.stat()
            asked = {name: getattr(options, name) for name in READING}
            name = [str(path.absolute()), state.st_size, state.st_mtime_ns, repr(asked)]
            place = known.get(json.dumps(name))
            found = None if place is None else _sample(journal, *place)
            if found is not None:
                self._tell()
                return found
            start = time.monotonic()
            sample, kind = read_one(path, options)
            now = time.monotonic()
            if sample.dtype.kind in NUMERIC_KINDS and now - start > sample.nbytes / RATE:
                record = _record(name, kind, sample)
                self._keep(now - begin, sample.nbytes, lambda: _append(journal, record))
            return sample, kind

        return read

    # ---- the choice, the features, the fit ----------------------------------------------------

    def choice(
        self, choose: Callable[[], Selection], use: Callable[[Selection], Any] = str
    ) -> Selection:
        """Return the choice of an earlier run, or choose and keep it.

        Parameters
        ----------
        choose : callable
            Makes the choice.
        use : callable, default=str
            What the choice is for; one of an earlier run with which that fails is damaged.

        Returns
        -------
        selection : Selection
            The choice.
        """
        path = self._found(CHOICE, ".json")
        if path is not None:
            with suppress(OSError, *DAMAGED):
                found = _choice(path.read_text(encoding="utf-8"))
                use(found)
                self._tell()
                return found
        start = time.monotonic()
        chosen = choose()
        values = chosen.to_dict() | {"trials": [trial.to_dict() for trial in chosen.trials]}
        text = json.dumps(values, default=lambda value: value.item())
        # The key is asked for only if there is something to keep.
        taken = time.monotonic() - start
        self._keep(taken, len(text), lambda: write_text(self._named(CHOICE, ".json"), text))
        return chosen

    def rows(self, transform: Callable[[Any], np.ndarray], X: np.ndarray) -> np.ndarray:
        """Transform samples piece by piece; pieces of an earlier run are taken from there.

        Parameters
        ----------
        transform : callable
            Makes an array with as many rows of each piece of samples.
        X : array of shape (n_samples, ...)
            The samples.

        Returns
        -------
        rows : array of shape (n_samples, ...)
            What it makes of all of them.
        """
        n = len(X)
        first = np.asarray(transform(X[:1]))
        rows = np.empty((n, *first.shape[1:]), dtype=first.dtype)
        begin, waiting = time.monotonic(), 0
        for part in blocks(n, max(1, first.nbytes), PIECE_BYTES):
            found = self._piece(part.start, part.stop, rows)
            if found is not None:
                rows[part] = found
                waiting = part.stop
                continue
            rows[part] = transform(X[part])
            if time.monotonic() - begin >= WORTH:
                # Those that came before the time was up follow, one file for all of them.
                piece = rows[waiting : part.stop]
                path = self._named(f"{FEATURES}-{waiting}-{part.stop}", ".npy")
                if self._keep(WORTH, piece.nbytes, partial(_save, path, piece)):
                    waiting = part.stop
        return rows

    def _piece(self, start: int, stop: int, rows: np.ndarray) -> np.ndarray | None:
        """Return the rows from `start` to `stop` where a file holds them."""
        for path in self._all():
            what, _, rest = path.name.partition("-")
            if what != FEATURES or not rest.endswith(f"-{self._key()}.npy"):
                continue
            with suppress(OSError, ValueError, EOFError):
                low, high, *_ = map(int, rest.split("-")[:2])
                if low <= start and stop <= high:
                    held = np.load(path, mmap_mode="r", allow_pickle=False)
                    if held.dtype == rows.dtype and held.shape == (high - low, *rows.shape[1:]):
                        self._tell()
                        return held[start - low : stop - low]
        return None

    def fitted(self) -> tuple[Any, float] | None:
        """Return the model that an earlier run fitted, and how long that took."""
        from tuckermix.persistence import load

        taken, path = self._found(TIME, ".json"), self._found(MODEL, ".tuckermix")
        if taken is None or path is None:
            return None
        with suppress(OSError, *DAMAGED):
            seconds = float(json.loads(taken.read_text(encoding="utf-8"))["seconds"])
            model = load(path)
            self._tell()
            return model, seconds
        return None

    def keep_fitted(self, model: Any, seconds: float) -> None:
        """Keep a fitted model, and how long the fit took."""
        from tuckermix.persistence import save

        def write() -> None:
            write_text(self._named(TIME, ".json"), json.dumps({"seconds": seconds}))
            save(model, self._named(MODEL, ".tuckermix"))

        self._keep(seconds, 0, write)


def _save(path: Path, piece: np.ndarray) -> None:
    with atomic_open(path) as stream:
        np.save(stream, piece, allow_pickle=False)


# ---- the journal of samples: one record after the other, so that a kill costs at most the last ---


def _record(name: list[Any], kind: str, sample: np.ndarray) -> bytes:
    """Return a sample as one record of the journal: a line that describes it, and its values."""
    target = io.BytesIO()
    np.save(target, np.ascontiguousarray(sample), allow_pickle=False)
    values = target.getvalue()
    line = json.dumps([_checksum(name, kind, values), len(values), name, kind])
    return line.encode() + b"\n" + values


def _checksum(name: list[Any], kind: str, values: bytes) -> int:
    return zlib.crc32(json.dumps([name, kind]).encode() + values)


def _append(journal: Path, record: bytes) -> None:
    """Add a record at the end, in one step, so that two writers do not mix."""
    with open(journal, "ab", buffering=0, opener=partial(os.open, mode=0o600)) as stream:
        stream.write(record)


def _scan(journal: Path) -> dict[str, tuple[Any, ...]]:
    """Find the records of a journal by the names of what was read: what `_sample` takes of each.

    What stands behind the last whole record is cut off, so that new ones can be found again.
    """
    places: dict[str, tuple[Any, ...]] = {}
    with suppress(OSError), open(journal, "r+b") as stream:
        size, here = os.fstat(stream.fileno()).st_size, 0
        with suppress(*DAMAGED):  # a line that is not whole, or none of ours
            while here < size:
                total, length, name, kind = json.loads(stream.readline(LONGEST_LINE))
                start = stream.tell()
                if not 0 <= length <= size - start:
                    break
                here = stream.seek(start + length)
                places[json.dumps(name)] = (start, length, total, name, kind)
        if here < size:
            stream.truncate(here)
    return places


def _sample(
    journal: Path, start: int, length: int, total: int, name: list[Any], kind: str
) -> tuple[np.ndarray, str] | None:
    """Read one record of a journal; None where it is damaged."""
    with suppress(OSError, *DAMAGED), open(journal, "rb") as stream:
        stream.seek(start)
        content = stream.read(length)
        if _checksum(name, kind, content) == total:
            values = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
            return (values, kind) if values.dtype.kind in NUMERIC_KINDS else None
    return None
