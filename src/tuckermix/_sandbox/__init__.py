"""The child process in which libraries parse files: how it is started, asked, watched and ended.

Parsers of foreign formats may crash, hang or fill the memory. They run in a child process with
limits, one for each reading, which is started by the first question and started again after it
died. A question is a line of JSON. An answer is two lengths, that many bytes of JSON and that many
bytes of values; both lengths are checked before anything is taken, and nothing is unpickled. Large
arrays come in several answers.
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

from tuckermix._reading import SAVE_AGAIN, Path, Refusal

LENGTHS = struct.Struct("<2Q")
START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from tuckermix._sandbox.child import main; main(int(sys.argv[2]))"
)
# The child uses one thread for algebra and one pool of memory, since each sets aside 64 MiB of
# addresses, and loads no plugins.
ENVIRONMENT = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
ENVIRONMENT |= {"MALLOC_ARENA_MAX": "1", "HDF5_PLUGIN_PRELOAD": "::"}
# Memory of one piece serves the next: given back to the system, its pages are cleared each time.
ENVIRONMENT |= {"MALLOC_MMAP_THRESHOLD_": str(2**24), "MALLOC_TRIM_THRESHOLD_": str(2**26)}

Said = dict[str, Any]
Question = dict[str, Any]
Values = tuple[Said, np.ndarray]


@dataclass(frozen=True)
class Limits:
    """Limits of a child process.

    Attributes
    ----------
    start : float
        Seconds to start, on a machine that is busy with other things.
    patience : float
        Seconds to wait for a child that another thread uses before one more is started, which
        takes about as long: libraries are loaded in each.
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
        Bytes of values to send at a time, so that the child holds no copy of a whole array, and
        what it copies lies in the cache of the processor.
    tick : float
        Seconds between looks at time and memory.
    glance : float
        Seconds between looks for a child that is free.
    """

    start: float = 60.0
    patience: float = 1.0
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
    piece: int = 2**20
    tick: float = 0.1
    glance: float = 0.002


LIMITS = Limits()


class _Child:
    """One process, and the thread that ends it when it takes too long or too much."""

    def __init__(self, limit: int) -> None:
        command = [sys.executable, "-I", "-c", START, json.dumps(sys.path), str(limit)]
        started: Any = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=LIMITS.buffer,
            env={**os.environ, **ENVIRONMENT},
        )
        with suppress(ImportError, AttributeError, OSError):
            import fcntl

            fcntl.fcntl(started.stdout.fileno(), fcntl.F_SETPIPE_SZ, LIMITS.pipe)
        self.process = started
        self.owner, self.memory = os.getpid(), limit + LIMITS.libraries
        self.kinds: set[str] = set()
        self.why = ""
        self._deadline = math.inf
        self._asked, self._closed = threading.Event(), threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self.why:
            self._asked.wait()
            if self._closed.wait(LIMITS.tick):
                return
            if time.monotonic() > self._deadline:
                self.why = "time"
            elif resident_memory(self.process.pid) > self.memory:
                self.why = "memory"
        self.process.kill()

    def send(self, *questions: Question) -> None:
        """Send questions; a process that has died is noticed when its answer is missing."""
        with suppress(OSError):
            for one in questions:
                self.process.stdin.write(json.dumps(one).encode() + b"\n")
            self.process.stdin.write(b"\n")  # says that these answers are waited for
            self.process.stdin.flush()

    def receive(self, asked: Question, most: int, place: Any = None) -> Values | Exception:
        """Wait for an answer with at most `most` bytes of values, which are put into `place`.

        What the parser refuses is returned. What is raised ends the process.
        """
        self._deadline = time.monotonic() + asked["seconds"]
        self._asked.set()
        try:
            said_bytes, nbytes = LENGTHS.unpack(self._exactly(LENGTHS.size))
            if said_bytes > LIMITS.said or nbytes > most:
                raise Refusal(f"its parser gave {nbytes} bytes where {most} were expected")
            said = json.loads(self._exactly(said_bytes))
            content = self._exactly(nbytes, place)
        except EOFError as error:
            raise self._cause() from error
        finally:
            self._asked.clear()
            self._deadline = math.inf
        if "missing" in said:
            return ImportError(said["missing"])
        return Refusal(*said["refusal"]) if "refusal" in said else (said, _values(said, content))

    def _exactly(self, count: int, place: Any = None) -> Any:
        content = bytearray(count) if place is None else place[:count]
        if self.process.stdout.readinto(content) < count:
            raise EOFError
        return content

    def close(self) -> None:
        """End the process."""
        self._closed.set()
        self._asked.set()
        if self.owner != os.getpid():
            return  # a fork of the process that started it
        self.process.kill()
        with suppress(OSError):  # what was not sent any more
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def _cause(self) -> Refusal:
        """Say why it died."""
        if self.why == "time":
            return Refusal(
                "its parser finds no end in it: it is damaged, or has far too many parts",
                "Get the file again, or store it again in fewer parts",
            )
        if self.why == "memory":
            return no_memory()
        code = self.process.wait()
        if not self.kinds:  # no library was loaded
            return Refusal(
                "the process that parses files does not start",
                "Check that Python can start another Python here",
            )
        return Refusal(f"it ends the process that parses it (exit code {code})", SAVE_AGAIN)


def _values(said: Said, content: bytearray | memoryview) -> np.ndarray:
    """Take the values of an answer, whose type, shape and length must agree."""
    if "values" not in said:
        return np.empty(0)
    dtype, shape = np.dtype(said["values"][0]), tuple(said["values"][1])
    whole = all(type(size) is int and size >= 0 for size in shape)
    nbytes = math.prod(shape) * dtype.itemsize
    if dtype.kind not in "buifSU" or not whole or nbytes != len(content):
        raise ValueError(f"{len(content)} bytes came for {shape} values of {dtype}")
    values = np.frombuffer(content, dtype).reshape(shape)
    return values.T if said.get("turned") else values


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
        self._busy: list[int] = []  # processes, one for each question that is being answered
        weakref.finalize(self, _end, self._idle)

    def __reduce__(self) -> Any:  # in another process there is another child
        return Sandbox, (self.limit,)

    def close(self) -> None:
        """End the children; the next question starts one again."""
        _end(self._idle)

    @contextmanager
    def _child(self, kind: str) -> Iterator[_Child]:
        """Hold a child, which is kept for the next question unless something is raised."""
        me, until = os.getpid(), time.monotonic() + LIMITS.patience
        while me in self._busy and not self._idle and time.monotonic() < until:
            time.sleep(LIMITS.glance)
        self._busy.append(me)
        try:
            child = self._free()
            try:
                if kind not in child.kinds:  # libraries may take long to load, and files may not
                    load = {"kind": kind, "do": "load", "path": "", "seconds": LIMITS.start}
                    child.send(load)
                    answer = child.receive(load, 0)
                    if isinstance(answer, Exception):
                        raise answer
                    child.kinds.add(kind)
                yield child
            except BaseException:
                child.close()
                raise
            self._idle.append(child)
        finally:
            self._busy.remove(me)

    def _free(self) -> _Child:
        while self._idle:
            child = self._idle.pop()
            if child.owner == os.getpid() and child.process.poll() is None:
                return child
            child.close()
        return _Child(self.limit)

    def ask(self, kind: str, do: str, path: Path, into: Any = None, **details: Any) -> Values:
        """Ask for one answer, or for values that come in pieces and are put into an array."""
        *_, last = self.pieces(kind, do, path, into, **details)
        return last

    def pieces(
        self, kind: str, do: str, path: Path, into: Any = None, **details: Any
    ) -> Iterator[Values]:
        """Ask for values that come one piece after another."""
        asked = question(kind, do, path, **details)
        room = None if into is None else into.reshape(-1).view("u1").data
        with self._child(kind) as child:
            child.send(asked)
            more = True
            while more:
                answer = child.receive(asked, self.limit if room is None else len(room), room)
                if isinstance(answer, Exception):
                    break
                said, values = answer
                more = said.get("more", False)
                if room is not None:
                    room = room[values.nbytes :]
                    if values.dtype != into.dtype or (room and not more):
                        raise ValueError(f"{values.dtype} came for {into.dtype}, or too few")
                yield answer
        if isinstance(answer, Exception):
            raise answer

    def each(self, questions: Sequence[Question]) -> Iterator[Values | Exception]:
        """Answer questions in their order; the next ones are sent before they are due.

        What a file raises is yielded, not raised, so that the others follow it.
        """
        done = careful = 0
        while done < len(questions):
            sent = done
            try:
                with self._child(questions[done]["kind"]) as child:
                    while done < len(questions):
                        ahead = 1 if done < careful else LIMITS.ahead
                        if sent - done <= ahead // 2:
                            child.send(*questions[sent : sent + ahead])
                            sent = min(len(questions), sent + ahead)
                        answer = child.receive(questions[done], self.limit)
                        done += 1
                        yield answer
            except Exception as error:
                if sent - done > 1:  # it died at one of these, which are now sent one by one
                    careful = sent
                    continue
                done += 1
                yield error


def question(
    kind: str, do: str, path: Path, expected: int = 0, parts: int = 0, **details: Any
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
    return 0
