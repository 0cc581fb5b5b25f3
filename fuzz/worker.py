"""Read spoilt inputs one after the other, in a process that may die of them.

Two ways. End to end: `read` and `load`, with children as users have them. In the child's own loop:
one child, forked from this process, which has the libraries loaded already, answers for input after
input until one of them ends it. What it runs, and under which limits, is the same; that takes a
fraction of the time.
"""

from __future__ import annotations

import os
import pickle
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import tuckermix
from fuzz.corpus import Seed
from fuzz.mutators import spoil
from tuckermix import _sandbox
from tuckermix._sandbox import child as inside
from tuckermix.datasets import ReadError, read
from tuckermix.persistence import ModelFileError

__all__ = ["MAX_BYTES", "SECONDS", "SPARE_BYTES", "run"]

MAX_BYTES = 16 * 2**20
"""The limit that each reading is given."""

SPARE_BYTES = 64 * 2**20
"""What a reading may take beyond the limit, by the most memory that the process held."""

SECONDS = 10
"""The longest that one reading may take; the system ends the process then."""

ADDRESS_SPACE = 2**30
"""Bytes that the process may claim beyond what it has at the start. Room that is claimed and never
used does not show in the memory held; the stacks of threads do not either, and fit in here."""

LAZY_SHARE = 0.3
"""Share of the readings that are lazy where the reader can."""

FORBIDDEN = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn")
FORBIDDEN += ("os.fork", "socket.connect", "socket.getaddrinfo", "ctypes.dlopen")
"""What no reading may do, by the names under which Python announces it."""


WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
"""Flags of the system with which a file can change."""

CODE = 99
"""Exit code of a forked process in which something happened that must not."""

CONTAINED = ("its parser finds no end", "ends the process", "needs more memory for it")
"""Parts of the messages about a file that made a parser pass a limit or die, in the child."""

N_PREDICTED = 5
"""Samples for which a model that loads is asked."""

UNPICKLED = ("dask", "cloudpickle", "numpy", "tuckermix")
"""Packages whose objects Dask pickles and unpickles when it names a lazy array."""


class _Watch:
    """Note what a reading does, as far as Python announces it."""

    def __init__(self) -> None:
        self.on = False
        self.seen = ""
        self.forked = False
        sys.addaudithook(self)

    @staticmethod
    def _is_sandbox(event: str, arguments: tuple[Any, ...]) -> bool:
        """Tell whether what is started is the child itself."""
        return event == "subprocess.Popen" and _sandbox.START in arguments[1]

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event in FORBIDDEN and not self._is_sandbox(event, arguments):
            self.seen = event
        if event == "pickle.find_class" and arguments[0].split(".")[0] not in UNPICKLED:
            self.seen = f"unpickle {arguments[0]}.{arguments[1]}"
        # A number is the end of a pipe, or a file whose opening by name was announced before.
        named = event == "open" and not isinstance(arguments[0], int)
        if named and arguments[2] & WRITES and arguments[0] != os.devnull:
            self.seen = f"open {arguments[0]!r} for writing"
        if self.seen and self.forked:
            os._exit(CODE)


class Forked:
    """The child process, forked; as much of `subprocess.Popen` as the sandbox uses.

    Parameters
    ----------
    command : list of str
        What the sandbox would start; the limit comes last.
    watch : _Watch
        What watches this process; it watches the new one, too.
    """

    def __init__(self, command: list[str], watch: _Watch) -> None:
        asked, ask = os.pipe()
        answered, answer = os.pipe()
        was_on, watch.on = watch.on, False
        self.pid = os.fork()
        watch.on = was_on
        if not self.pid:
            watch.forked = True
            try:
                os.close(ask)
                os.close(answered)
                signal.alarm(0)
                for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU):
                    resource.setrlimit(kind, (resource.RLIM_INFINITY,) * 2)
                with open(asked, "rb") as questions, _stream(answer, "wb", watch) as answers:
                    inside.serve(int(command[-1]), questions, answers)
            finally:
                os._exit(0)
        os.close(asked)
        os.close(answer)
        self.stdin, self.stdout = _stream(ask, "wb", watch), _stream(answered, "rb", watch)
        self.code: int | None = None

    def kill(self) -> None:
        """End the process."""
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)

    def poll(self) -> int | None:
        """Return its exit code if it has ended."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code

    def wait(self) -> int:
        """Wait for its end and return its exit code."""
        if self.code is None:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code


def _stream(descriptor: int, mode: str, watch: _Watch) -> Any:
    """Open the end of a pipe, which is no file that a reading opens."""
    was_on, watch.on = watch.on, False
    try:
        return open(descriptor, mode)
    finally:
        watch.on = was_on


def _status(name: str) -> int:
    """Return a number of bytes that the system keeps about this process."""
    with open("/proc/self/status") as stream:
        line = next(line for line in stream if line.startswith(name))
    return 1024 * int(line.split()[1])


def _peak(forget: bool = False) -> int:
    """Return the most memory that this process has held; since `forget`, where Linux can do so."""
    with suppress(OSError, StopIteration):
        if forget:
            with open("/proc/self/clear_refs", "w") as stream:
                stream.write("5")
        return _status("VmHWM")
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _predict(model: Any) -> None:
    """Ask a model for labels: one that loads is one that predicts."""
    shape = (model[0] if hasattr(model, "steps") else model).sample_shape_
    X = np.random.default_rng(0).random((N_PREDICTED, *shape))
    labels = model.predict(X)
    if labels.shape != (N_PREDICTED,) or not (0 <= labels.min() <= labels.max() < 2**31):
        raise AssertionError(f"labels {labels!r}")


def _read(seed: Seed, target: Path, lazy: bool) -> None:
    if seed.reader == "model":
        model = tuckermix.load(target, max_bytes=MAX_BYTES)
        _predict(model)
        return
    lazy = lazy and seed.reader in ("npy", "hdf5", "zarr", "mat", "tiff")
    try:
        X = read(target, max_bytes=MAX_BYTES, lazy=lazy, **seed.options).X
    except ReadError as error:
        if not lazy or "cannot be left on disk" not in str(error):
            raise
        X = read(target, max_bytes=MAX_BYTES, **seed.options).X
    if hasattr(X, "dask"):
        if X.nbytes > MAX_BYTES:
            X = X[:1]
        X.compute(scheduler="synchronous")


def one(seeds: list[Seed], number: int, start: int, watch: _Watch, folder: Path) -> str:
    """Make and read the input with a number; return what became of it."""
    rng = np.random.default_rng([start, number])
    readers = sorted({seed.reader for seed in seeds})
    reader = readers[number % len(readers)]
    mine = [seed for seed in seeds if seed.reader == reader]
    seed = mine[int(rng.integers(len(mine)))]
    target = spoil(seed, mine, folder, rng)
    before = _peak(forget=True)
    outcome = "read"
    watch.seen, watch.on = "", True
    signal.alarm(SECONDS)
    try:
        _read(seed, target, lazy=bool(rng.random() < LAZY_SHARE))
    except (ReadError, ModelFileError) as error:
        outcome = "refused"
        if any(part in str(error) for part in CONTAINED):
            outcome = "contained"
        if f"exit code {CODE}" in str(error):
            watch.seen = "in the child"
        if isinstance(error.__cause__, MemoryError):
            outcome = "memory"
    except BaseException as error:
        outcome = f"error {type(error).__name__}: {str(error)[:200]}".replace("\n", " ")
    finally:
        signal.alarm(0)
        watch.on = False
    if watch.seen:
        outcome = f"code {watch.seen}"
    elif _peak() - before > MAX_BYTES + SPARE_BYTES:
        outcome = f"memory {(_peak() - before) / 2**20:.0f} MiB"
    return f"{reader}\t{outcome}"


def run(seeds: list[Seed], start: int, numbers: range, whole: bool, until: float) -> None:
    """Read the inputs with some numbers up to a time; print a line before and one after each."""
    warnings.simplefilter("ignore")
    watch = _Watch()
    if not whole:
        for kind in {KINDS[seed.reader] for seed in seeds if seed.reader in KINDS}:
            module = import_module(f"tuckermix._sandbox.{inside.KINDS[kind]}")
            getattr(module, kind.title()).load()
        started = lambda command, **_: Forked(command, watch)  # noqa: E731
        _sandbox.subprocess = SimpleNamespace(Popen=started, PIPE=None, DEVNULL=None)  # type: ignore
        shared: list[Any] = []

        def share(box: Any, limit: int) -> None:
            box.limit, box._idle, box._busy = limit, shared, []

        _sandbox.Sandbox.__init__ = share  # type: ignore[method-assign]
        _sandbox.Sandbox.close = lambda _: None  # type: ignore[method-assign]
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    warm = {
        (seed.reader, "" if whole and seed.reader != "model" else seed.name): seed for seed in seeds
    }
    for seed in warm.values():  # so that everything is loaded that readers need in this process
        for name, content in seed.files.items():
            (folder / seed.reader / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / seed.reader / name).write_bytes(content)
        for lazy in (True, False):
            _read(seed, folder / seed.reader / seed.target, lazy)
    most = _status("VmSize") + ADDRESS_SPACE
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    for number in numbers:
        if time.time() > until:
            break
        place = folder / str(number)
        place.mkdir()
        print(f"begin\t{number}", flush=True)
        print(f"end\t{number}\t{one(seeds, number, start, watch, place)}", flush=True)
        shutil.rmtree(place)
    shutil.rmtree(folder)


KINDS = {"hdf5": "hdf5", "mat": "mat", "zarr": "zarr", "parquet": "parquet", "nifti": "nifti"}
KINDS |= {"images": "picture", "tiff": "tiff", "video": "video"}
"""What reads the inputs of each reader in the child."""


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as stored:
        # Written by the parent a moment ago.
        given = [Seed(**fields) for fields in pickle.load(stored)]
    first, last = int(sys.argv[3]), int(sys.argv[4])
    run(given, int(sys.argv[2]), range(first, last), sys.argv[5] == "whole", float(sys.argv[6]))
