"""libhdf5 at arm's length: a process with limits that answers questions about one file."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from importlib.util import find_spec
from typing import IO, Any, Self

import numpy as np

from tuckermix._hdf5_child import LENGTHS, MAX_ANSWER
from tuckermix._reading import Refusal, damaged, open_regular

START_SECONDS = 60.0
"""The longest that the process may take to start, on a machine that is busy with other things."""

SECONDS = 4.0
"""Time that the library has for any file, in which it opens a hundred thousand arrays."""

BYTES_PER_SECOND = 10 * 2**20
"""Bytes of the file and of answers for which the library gets one more second; a tenth of what it
reads where nothing is wrong."""

TABLE_BYTES = 8 * 2**20
"""Bytes that a table of chunks may have whatever the limit is: more than 200,000 chunks."""

START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from importlib import import_module; import_module(sys.argv[2]).main()"
)
"""What the process runs. It looks for modules where this one does, and nowhere else."""

Region = tuple[tuple[int, int], ...]


class Library:
    """Answers of libhdf5 about one file.

    The process is started by the first question and ended with the context. It gets `limit` bytes
    and a fixed room (on Linux; elsewhere there is no such limit) and a time that grows with the
    file and with what it delivers. A process that dies, takes too long or too much is a
    `ReadError`, as a damaged file is.

    Parameters
    ----------
    path : str or path
        The file.
    limit : int
        Bytes that the library may take.
    """

    child = "tuckermix._hdf5_child"
    """What the process runs."""
    package = "h5py"
    called = "libhdf5"
    what = "Reading HDF5"
    again = "Get the file anew, or store it anew, with h5repack for example"
    """The names of the package and the library in messages, what needs them, and the remedy."""

    def __init__(self, path: str | os.PathLike[str], limit: int) -> None:
        self.path = path
        self.limit = limit
        self._process: Any = None
        self._started = False
        self._left = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            self._process.kill()
            with suppress(OSError):  # what was not sent any more
                self._process.stdin.close()
            self._process.stdout.close()
            self._process.wait()
            self._process, self._started = None, False

    def arrays(self, most: int, matlab: bool) -> list[Any]:
        """List the arrays: name, shape, three words on the type, MATLAB's class."""
        return self._ask(0, do="list", most=most, matlab=matlab)[0]

    def describe(self, name: str) -> tuple[dict[str, Any], np.ndarray]:
        """Say how an array is stored, with a table that has one row for each chunk."""
        most = self.limit + TABLE_BYTES
        said, table = self._ask(most, do="describe", name=name, most=most)
        return said, np.frombuffer(table, dtype=np.int64).reshape(-1, len(said["shape"]) + 3)

    def read(self, name: str, region: Region, dtype: np.dtype) -> np.ndarray:
        """Read numbers or text of fixed length."""
        shape = tuple(high - low for low, high in region)
        nbytes = math.prod(shape) * dtype.itemsize
        said, content = self._ask(nbytes, do="read", name=name, region=region)
        if said["dtype"] != dtype.str or len(content) != nbytes:
            came = f"{len(content)} bytes of {said['dtype']}"
            raise ValueError(f"{came} came, not {nbytes} of {dtype.str}")
        return np.frombuffer(content, dtype=dtype).reshape(shape)

    def strings(self, name: str, region: Region) -> list[str]:
        """Read strings of any length."""
        count = math.prod(high - low for low, high in region)
        most = self.limit + count * np.dtype(np.int64).itemsize
        return texts_of(*self._ask(most, do="strings", name=name, region=region))

    def _ask(self, expected: int, **request: Any) -> tuple[Any, bytes]:
        """Ask a question; `expected` bytes may come beside the JSON."""
        if self._process is None:
            self._process = self._start()
            self._answer(START_SECONDS, 0)
            self._started = True
            self._left = SECONDS + os.path.getsize(self.path) / BYTES_PER_SECOND
        with suppress(OSError):  # it may have died, which the missing answer says
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        if request["do"] == "read":  # as much is sure to come, and sending it may take the longest
            self._left += expected / BYTES_PER_SECOND
        began = time.monotonic()
        said, content = self._answer(self._left, expected)
        if request["do"] != "read":
            self._left += len(content) / BYTES_PER_SECOND
        self._left -= time.monotonic() - began
        return said, content

    def _start(self) -> Any:
        if find_spec(self.package) is None:
            raise ImportError(f"{self.what} needs {self.package}: install tuckermix[io].")
        with open_regular(self.path):
            work = os.path.getsize(self.path) + self.limit
        seconds = math.ceil(SECONDS + work / BYTES_PER_SECOND)
        command = [sys.executable, "-I", "-c", START, json.dumps(sys.path), self.child]
        return _spawn([*command, os.path.abspath(self.path), str(self.limit), str(seconds)])

    def _answer(self, seconds: float, most: int) -> tuple[Any, bytes]:
        """Wait for an answer, and end the process when it does not come in time."""
        late = threading.Event()
        process = self._process

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(max(seconds, 0.0), end)
        timer.daemon = True
        timer.start()
        try:
            lengths = LENGTHS.unpack(_exactly(process.stdout, LENGTHS.size))
            if lengths[0] > MAX_ANSWER or lengths[1] > most:
                raise Refusal(f"{self.called} gave {sum(lengths)} bytes where {most} were expected")
            said = json.loads(_exactly(process.stdout, lengths[0]))
            content = _exactly(process.stdout, lengths[1])
        except EOFError as error:
            if not self._started:
                raise Refusal(
                    f"the process that runs {self.called} does not start "
                    f"(exit code {process.wait()})",
                    f"Check that {self.package} can be imported",
                ) from error
            if late.is_set():
                raise Refusal(
                    f"{self.called} finds no end in its structures, which are damaged or far too "
                    "many",
                    self.again,
                ) from error
            raise Refusal(
                f"its structures end the process that reads them (exit code {process.wait()})",
                self.again,
            ) from error
        finally:
            timer.cancel()
        if isinstance(said, dict):
            if "refusal" in said:
                raise Refusal(*said["refusal"])
            if "memory" in said:
                raise Refusal(
                    f"{self.called} needs more memory for it than max_bytes={self.limit}",
                    "If you trust the file, raise max_bytes",
                )
            if "fault" in said:
                raise damaged(self.path, *said["fault"])
        return said, content


def texts_of(said: dict[str, Any], content: bytes) -> list[str]:
    """Take an answer apart in which lengths stand before the texts themselves."""
    lengths = np.frombuffer(content, dtype=np.int64, count=said["count"])
    ends = lengths.nbytes + np.cumsum(lengths)
    return [
        content[end - length : end].decode()
        for length, end in zip(lengths.tolist(), ends.tolist(), strict=True)
    ]


def _spawn(command: list[str]) -> subprocess.Popen[bytes]:
    """Start the process, with the libraries told to use one thread and to load no plugins."""
    environment = {
        **os.environ,
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "HDF5_PLUGIN_PRELOAD": "::",
    }
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )


def _exactly(stream: IO[bytes], count: int) -> bytes:
    content = stream.read(count)
    if len(content) < count:
        raise EOFError
    return content
