"""The child process: it limits itself, then answers questions about files to their end."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any, BinaryIO

from tuckermix._reading import Refusal, explained
from tuckermix._sandbox import LENGTHS, LIMITS, Question, no_memory

KINDS = {
    **dict.fromkeys(("hdf5", "zarr", "mat", "nifti", "parquet"), "arrays"),
    **dict.fromkeys(("picture", "tiff", "video"), "pictures"),
}
LONGEST_MESSAGE = 1000
NO_MEMORY = (
    *("memory allocation failed", "Cannot allocate memory", "realloc of size", "malloc of"),
    "can't start new thread",
)


def main(limit: int) -> None:
    """Run as a process whose standard streams are the pipes of questions and answers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    answers = os.fdopen(os.dup(1), "wb", LIMITS.buffer)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)  # what a library prints is no answer
    serve(limit, sys.stdin.buffer, answers)


def serve(limit: int, questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer questions within limits.

    Parameters
    ----------
    limit : int
        Bytes that a library may take, beside a fixed room.
    questions, answers : binary streams
        Where questions come from and answers go.
    """
    _restrict("RLIMIT_FSIZE", 0)
    _restrict("RLIMIT_CORE", 0)
    _restrict("RLIMIT_NOFILE", LIMITS.files)
    files = _Files(limit)
    warnings.simplefilter("ignore")
    for line in questions:
        if line == b"\n":
            answers.flush()
            continue
        asked = json.loads(line)
        try:
            for said, values in files.answer(asked):
                _send(answers, said, values)
        except Exception as error:
            _send(answers, told(error))


class _Files:
    """The file that was asked for last, which stays open for the next question."""

    def __init__(self, limit: int) -> None:
        self.limit, self.until = limit, 0
        self.kinds: dict[str, Callable[..., Any]] = {}
        self.place: tuple[str, str] | None = None
        self.opened: Any = None

    def answer(self, asked: Question) -> Iterator[tuple[dict[str, Any], Any]]:
        kind, do, path = (asked.pop(name) for name in ("kind", "do", "path"))
        seconds = asked.pop("seconds")
        if kind not in self.kinds:
            self.kinds[kind] = getattr(import_module(f"{__package__}.{KINDS[kind]}"), kind.title())
            self.kinds[kind].load()  # type: ignore[attr-defined]
            _limit_memory(self.limit + LIMITS.room)
        self._allow(seconds)
        if do == "load":
            yield {}, None
            return
        if (kind, path) != self.place:
            self.opened, self.place = None, None
            self.opened = self.kinds[kind](path, self.limit)
            self.place = (kind, path)
        for answer in getattr(self.opened, f"answer_{do}")(**asked):
            yield answer
            self._allow(seconds)

    def _allow(self, seconds: float) -> None:
        """Let this process work so long from now on; limits are set in larger steps than that."""
        until = time.process_time() + seconds + LIMITS.seconds
        if until > self.until:
            self.until = math.ceil(until + LIMITS.seconds)
            _restrict("RLIMIT_CPU", self.until)


def told(error: Exception) -> dict[str, Any]:
    """Say in an answer what went wrong."""
    message = str(error)[:LONGEST_MESSAGE]
    if isinstance(error, ImportError) and "install tuckermix" in message:
        return {"missing": message}
    full = isinstance(error, MemoryError) or any(words in message for words in NO_MEMORY)
    problem, remedy = (no_memory() if full else explained(error)).args
    return {"refusal": [problem[:LONGEST_MESSAGE], remedy]}


def _send(answers: BinaryIO, said: dict[str, Any], values: Any = None) -> None:
    content: Any = b""
    if values is not None:
        import numpy as np

        values = np.asarray(values)
        if values.flags.f_contiguous and not values.flags.c_contiguous and "more" not in said:
            said, values = {**said, "turned": True}, values.T  # no copy is made
        said = {**said, "values": [values.dtype.str, values.shape]}
        content = np.ascontiguousarray(values).reshape(-1).view("u1").data
    text = json.dumps(said).encode()
    if len(text) > LIMITS.said:
        refusal = Refusal("the names of its parts take too much memory", "Store fewer of them")
        text, content = json.dumps(told(refusal)).encode(), b""
    answers.write(LENGTHS.pack(len(text), len(content)))
    answers.write(text)
    answers.write(content)


def _restrict(name: str, most: int) -> None:
    """Set a soft limit of this process, where the system has it."""
    with suppress(ImportError, AttributeError, ValueError, OSError):
        import resource

        kind = getattr(resource, name)
        _, hard = resource.getrlimit(kind)
        soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (soft, hard))


def _limit_memory(more: int) -> None:
    """Let this process take `more` bytes from now on; the parent looks after it elsewhere."""
    if sys.platform == "linux":
        with open("/proc/self/statm") as stream:
            pages = int(stream.read().split()[0])
        _restrict("RLIMIT_AS", pages * os.sysconf("SC_PAGE_SIZE") + more)
