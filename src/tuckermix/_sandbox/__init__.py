"""The child process in which libraries parse files: how it is started, asked, watched and ended.

Parsers of foreign formats may crash, hang or fill the memory. They run in a child process with
limits, one for each reading, which is started by the first question and started again after it
died. A question is a line of JSON. An answer is two lengths, that many bytes of JSON and that many
bytes of values; both lengths are checked before anything is taken, and nothing is unpickled.
"""

from __future__ import annotations

import json
import math
import os
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuckermix._reading import Refusal, damaged

LENGTHS = struct.Struct("<2Q")
NUMBERS_AND_TEXT = "buifSU"
START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from tuckermix._sandbox.child import main; main(int(sys.argv[2]))"
)
# The child uses one thread for algebra, few pools of memory, and loads no plugins.
ENVIRONMENT = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
ENVIRONMENT |= {"MALLOC_ARENA_MAX": "2", "HDF5_PLUGIN_PRELOAD": "::"}

Said = dict[str, Any]
Question = dict[str, Any]


@dataclass(frozen=True)
class Limits:
    """Limits of a child process.

    Attributes
    ----------
    start : float
        Seconds to start, on a machine that is busy with other things.
    seconds : float
        Seconds for any question, in which a library opens a hundred thousand arrays.
    rate : int
        Bytes of file and answer for which there is one more second: a tenth of the usual speed.
    parts : int
        Chunks of an array for which there is one more second.
    room : int
        Bytes of memory beyond `max_bytes`, for copies, caches and tables of the libraries.
    libraries : int
        Bytes of resident memory beyond `max_bytes`, with the code of the libraries.
    files : int
        Open files; the library of Zarr opens some ten at a time.
    said : int
        Bytes of JSON in an answer: more than a kilobyte for each of ten thousand arrays.
    ahead : int
        Questions that are sent at a time. Twice as many paths must fit into a pipe.
    buffer : int
        Bytes of answers to send at a time: each sending wakes another process.
    pipe : int
        Bytes of the pipe of answers where its size can be set: a larger one doubles the speed.
    piece : int
        Bytes of values to ask for at a time, so that the child holds no second copy of an array.
    tick : float
        Seconds between looks at time and memory.
    """

    start: float = 60.0
    seconds: float = 6.0
    rate: int = 10 * 2**20
    parts: int = 1000
    room: int = 64 * 2**20
    libraries: int = 512 * 2**20
    files: int = 64
    said: int = 16 * 2**20
    ahead: int = 32
    buffer: int = 2**18
    pipe: int = 2**20
    piece: int = 16 * 2**20
    tick: float = 0.1


LIMITS = Limits()


class _Child:
    """One process, and the thread that ends it when it takes too long or too much."""

    def __init__(self, limit: int) -> None:
        command = [sys.executable, "-I", "-c", START, json.dumps(sys.path), str(limit)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=LIMITS.buffer,
            env={**os.environ, **ENVIRONMENT},
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        _widen(self.stdout.fileno())
        self.owner = os.getpid()
        self.kinds: set[str] = set()
        self.why = ""
        self._deadline = math.inf
        self._asked, self._closed = threading.Event(), threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()
        self.memory = limit + LIMITS.libraries
        try:
            self.receive(LIMITS.start, 0)
        except EOFError as error:
            self.close()
            raise Refusal(
                "the process that parses files does not start",
                "Check that Python can start another Python here",
            ) from error

    def _watch(self) -> None:
        while not self._closed.is_set():
            self._asked.wait()
            if self._closed.wait(LIMITS.tick):
                break
            if time.monotonic() > self._deadline:
                self.why = "time"
            elif resident_memory(self.process.pid) > self.memory:
                self.why = "memory"
            if self.why:
                self.process.kill()
                break

    def send(self, *questions: Question) -> None:
        """Send questions; a process that has died is noticed when its answer is missing."""
        with suppress(OSError):
            for one in questions:
                self.stdin.write(json.dumps(one).encode() + b"\n")
            self.stdin.write(b"\n")  # says that these answers are waited for
            self.stdin.flush()

    def receive(self, seconds: float, most: int, into: np.ndarray | None = None) -> _Answer:
        """Wait for an answer with at most `most` bytes of values, or exactly those of `into`."""
        self._deadline = time.monotonic() + seconds
        self._asked.set()
        try:
            said_bytes, nbytes = LENGTHS.unpack(self._exactly(LENGTHS.size))
            if said_bytes > LIMITS.said or nbytes > most:
                raise Refusal(f"its parser gave {nbytes} bytes where {most} were expected")
            said = json.loads(self._exactly(said_bytes))
            if into is None or nbytes != into.nbytes or not said.get("shape") or "turned" in said:
                return said, self._exactly(nbytes)
            self._fill(into.reshape(-1).view("u1").data)
            return said, bytearray()
        finally:
            self._asked.clear()
            self._deadline = math.inf

    def _exactly(self, count: int) -> bytearray:
        content = bytearray(count)
        self._fill(memoryview(content))
        return content

    def _fill(self, place: memoryview) -> None:
        if self.stdout.readinto(place) < len(place):  # type: ignore[attr-defined]
            raise EOFError

    def close(self) -> None:
        """End the process."""
        self._closed.set()
        self._asked.set()
        if self.owner != os.getpid():
            return  # a fork of the process that started it
        self.process.kill()
        with suppress(OSError):  # what was not sent any more
            self.stdin.close()
        self.stdout.close()
        self.process.wait()

    def cause(self) -> Refusal:
        """Say why it died."""
        if self.why == "time":
            return Refusal(
                "its parser finds no end in it: it is damaged, or has far too many parts",
                "Get the file again, or store it in fewer parts",
            )
        if self.why == "memory":
            return no_memory()
        code = self.process.wait()
        return Refusal(
            f"it ends the process that parses it (exit code {code})",
            "Get the file again, or open it in the program that made it and save it again",
        )


_Answer = tuple[Said, bytearray]
Values = tuple[Said, np.ndarray]


def no_memory() -> Refusal:
    """Return the refusal of a file for which the memory of a child does not suffice."""
    return Refusal(
        "its parser needs more memory for it than max_bytes allows",
        "If you trust the file, raise max_bytes",
    )


class Sandbox:
    """A child process that answers questions about files, or several where threads ask.

    Parameters
    ----------
    limit : int
        The most bytes that the values of an answer, and the child beside a fixed room, may take.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._idle: list[_Child] = []
        weakref.finalize(self, _end, self._idle)

    def __reduce__(self) -> Any:  # in another process there is another child
        return Sandbox, (self.limit,)

    def __dask_tokenize__(self) -> int:
        return self.limit

    def close(self) -> None:
        """End the children; the next question starts one again."""
        _end(self._idle)

    def ask(self, kind: str, do: str, path: str | os.PathLike[str], **details: Any) -> Said:
        """Ask for something without values."""
        return self._one(question(kind, do, path, **details), 0)[0]

    def array(
        self,
        kind: str,
        do: str,
        path: str | os.PathLike[str],
        into: np.ndarray | None = None,
        **details: Any,
    ) -> Values:
        """Ask for values; those that `into` has room for, in its type, are put there."""
        most = self.limit
        if into is not None:
            most, details["expected"] = max(most, into.nbytes), into.nbytes
        said, content = self._one(question(kind, do, path, **details), most, into)
        return said, values_of(said, content, into)

    def _one(self, asked: Question, most: int, into: np.ndarray | None = None) -> _Answer:
        with self._child(asked["kind"]) as child:
            child.send(asked)
            return _received(child, asked, most, into)

    @contextmanager
    def _child(self, kind: str) -> Iterator[_Child]:
        """Hold a child. It is kept for the next question unless one has no proper answer."""
        child = self._free()
        try:
            if kind not in child.kinds:  # libraries may take long to load, and files may not
                load = {"kind": kind, "do": "load", "path": "", "seconds": LIMITS.start}
                child.send(load)
                _received(child, load, 0)
                child.kinds.add(kind)
            yield child
        except BaseException as error:
            if not getattr(error, "answered", False):
                child.close()
                raise
            self._idle.append(child)
            raise
        self._idle.append(child)

    def _free(self) -> _Child:
        while self._idle:
            child = self._idle.pop()
            if child.owner == os.getpid() and child.process.poll() is None:
                return child
            child.close()
        return _Child(self.limit)

    def each(self, questions: Sequence[Question]) -> Iterator[Values | Exception]:
        """Answer questions in their order; the next ones are sent before they are due.

        What a file raises is yielded, not raised, so that the others follow it.
        """
        done = alone = 0
        while done < len(questions):
            with suppress(_Died), self._child(questions[done]["kind"]) as child:
                sent = done
                while done < len(questions):
                    most = 1 if done < alone else LIMITS.ahead
                    if sent - done <= most // 2:
                        child.send(*questions[sent : sent + most])
                        sent = min(len(questions), sent + most)
                    try:
                        said, content = _received(child, questions[done], self.limit)
                        answer: Any = said, values_of(said, content)
                    except Exception as error:
                        if not getattr(error, "answered", False):
                            if sent - done > 1:  # some answers were lost: ask again one by one
                                alone = sent
                                raise _Died from error
                            child.process.kill()
                        answer = error
                    done += 1
                    yield answer

    def pieces(
        self, kind: str, do: str, path: str | os.PathLike[str], **details: Any
    ) -> Iterator[np.ndarray]:
        """Ask for values whose number is not known before: they come one piece after another."""
        asked = question(kind, do, path, **details)
        with self._child(kind) as child:
            child.send(asked)
            while True:
                said, content = _received(child, asked, self.limit)
                if "shape" not in said:
                    return
                yield values_of(said, content)


class _Died(Exception):
    """Says that a child is not asked any further."""


def question(
    kind: str,
    do: str,
    path: str | os.PathLike[str],
    expected: int = 0,
    parts: int = 0,
    **details: Any,
) -> Question:
    """Put a question together, with the time that its answer may take.

    Parameters
    ----------
    kind, do, path : str
        The kind of the file, what to do with it, and where it is.
    expected : int, default=0
        Bytes that are known to come.
    parts : int, default=0
        Chunks that have to be found for it.
    **details
        What else the parser has to know.

    Returns
    -------
    asked : dict
        What goes to the child.
    """
    path = os.path.abspath(path)
    with suppress(OSError):
        expected += os.stat(path).st_size
    seconds = LIMITS.seconds + expected / LIMITS.rate + parts / LIMITS.parts
    return {"kind": kind, "do": do, "path": path, "seconds": seconds, **details}


def values_of(said: Said, content: bytearray, into: np.ndarray | None = None) -> np.ndarray:
    """Take the values of an answer, whose type, shape and length must agree."""
    if "shape" not in said:
        return np.empty(0)
    dtype, shape = np.dtype(said["dtype"]), tuple(said["shape"])
    if dtype.kind not in NUMBERS_AND_TEXT or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(f"values of type {dtype} and shape {shape} came")
    values = None
    if into is not None and not content:
        values = into
    elif math.prod(shape) * dtype.itemsize == len(content):
        values = np.frombuffer(content, dtype).reshape(shape)
        values = values.T if said.get("turned") else values
    if values is None or (into is not None and (dtype, values.shape) != (into.dtype, into.shape)):
        raise ValueError(f"{len(content)} bytes came for {shape} values of {dtype}")
    if into is not None and values is not into:
        into[...] = values
    return values


def _received(child: _Child, asked: Question, most: int, into: np.ndarray | None = None) -> _Answer:
    """Wait for an answer and raise what it says went wrong."""
    try:
        said, content = child.receive(asked["seconds"], most, into)
    except EOFError as error:
        raise child.cause() from error
    told = _error(said, asked["path"])
    if told is not None:
        told.answered = True  # type: ignore[attr-defined]
        raise told
    return said, content


def _error(said: Said, path: str) -> Exception | None:
    """Return the exception that an answer tells of."""
    if "refusal" in said:
        problem, remedy, shapes = said["refusal"]
        return Refusal(problem, remedy, tuple(map(tuple, shapes)))
    if "memory" in said:
        return no_memory()
    if "missing" in said:
        return ImportError(said["missing"])
    if "system" in said:
        return OSError(*said["system"], path)
    if "fault" in said:
        return damaged(*said["fault"])
    return None


def _widen(descriptor: int) -> None:
    """Make a pipe larger, where the system can."""
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, LIMITS.pipe)


def _end(children: list[_Child]) -> None:
    while children:
        children.pop().close()


def resident_memory(pid: int) -> int:
    """Return the bytes of memory that a process holds; 0 where nothing here can tell."""
    with suppress(OSError, ValueError), open(f"/proc/{pid}/statm") as stream:
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    with suppress(ImportError):
        import psutil  # type: ignore[import-untyped]

        with suppress(psutil.Error):
            return int(psutil.Process(pid).memory_info().rss)
    if sys.platform == "darwin":
        told = subprocess.run(
            ["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, check=False
        )
        return 1024 * int(told.stdout or 0)
    return 0
