"""The common part of all readers of files: one error, one guard, one limit on memory.

A file may come from a stranger. Whoever reads one opens it with `open_regular`, wraps the parsing
in `reading`, and compares each declared size with a limit before it allocates anything. What is not
read is a `Refusal`, or any error of a parser; `reading` turns both into a message with the path.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import IO, BinaryIO

from tuckermix._machine import address_limit

GZIP_MAGIC = b"\x1f\x8b"
"""The first bytes of a gzipped file."""

UNCHECKED = 2**20
"""Bytes that may be asked for without a look at how many are left."""

AGAIN = "Get the file again"
"""The remedy for a file that lacks something."""

SAVE_AGAIN = "Get the file again, or open it in the program that made it and save it again"
"""The remedy for a file that a parser does not take."""

Path = str | os.PathLike[str]


class ReadError(ValueError):
    """A file that cannot be read as samples; the message names the file and the remedy."""


class Refusal(ReadError):
    """Something that is not read: problem and remedy. `reading` puts the name of the file to it."""

    def __init__(self, problem: str, remedy: str = AGAIN) -> None:
        super().__init__(problem, remedy)

    def __str__(self) -> str:
        return "{}. {}.".format(*self.args)


def check_fits(
    what: str,
    nbytes: int,
    limit: int,
    remedy: str = "If you trust the file, raise max_bytes",
    *,
    verb: str = "would take",
) -> None:
    """Refuse what takes, or would take, more bytes in memory than the limit."""
    if nbytes > limit:
        raise Refusal(
            f"{what} {verb} {nbytes} bytes in memory, and the limit is max_bytes={limit}", remedy
        )


def read_error(path: Path, problem: str, remedy: str = AGAIN) -> ReadError:
    """Build the error for the file `path`."""
    return ReadError(f"Cannot read {os.fspath(path)}: {problem}. {remedy}.")


def explained(error: Exception) -> Refusal:
    """Say what is wrong with a file at which a parser stumbled, and what to do about it."""
    match error:
        case Refusal():
            return error
        case FileNotFoundError():
            return Refusal("it does not exist", "Check the path")
        case PermissionError():
            return Refusal("permission is denied", "Check who may read it")
    # Parsers may repeat whole headers.
    said = " ".join(str(error).split())[:160] or "no message"
    return Refusal(
        f"it is damaged or not what its name says ({type(error).__name__}: {said})",
        SAVE_AGAIN,
    )


def check_regular(path: Path, mode: int) -> None:
    """Refuse what is no regular file, given its mode from `os.stat` or `os.fstat`."""
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(mode):
        raise read_error(
            path,
            "it is no regular file",
            "Pipes, sockets and devices may block or never end; copy the content into a file",
        )


class _Regular(io.BufferedReader):
    """A file that takes memory for what is left of it, not for what a parser asks for.

    Python makes room for all the bytes that are asked for before it reads the first one, and
    parsers ask for as many as a damaged header claims.
    """

    longest: int | None = None
    """The most bytes that may be asked for at a time."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and self.longest is not None and size > self.longest:
            raise Refusal(
                f"its table of contents has {size} bytes, more than {self.longest}",
                "Store fewer arrays",
            )
        if size is not None and size > UNCHECKED:
            left = os.fstat(self.fileno()).st_size - self.tell()
            size = max(0, min(size, left))
        return super().read(size)


def open_regular(path: Path, longest: int | None = None) -> BinaryIO:
    """Open a file for reading, and refuse whatever is no regular file.

    A plain `open` waits at a pipe until somebody writes. This one does not wait, and looks at what
    it has opened, so that nobody can exchange it between the look and the opening.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0))
    try:
        check_regular(path, os.fstat(descriptor).st_mode)
    except BaseException:
        os.close(descriptor)
        raise
    stream = _Regular(io.FileIO(descriptor))
    stream.longest = longest
    return stream


@contextmanager
def open_unpacked(path: Path) -> Iterator[IO[bytes]]:
    """Open a regular file, unpacking it on the way if it is gzipped."""
    with open_regular(path) as raw:
        packed = raw.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        raw.seek(0)
        with gzip.GzipFile(fileobj=raw) if packed else nullcontext(raw) as stream:
            yield stream  # type: ignore[misc]


def _no_memory(path: Path) -> Refusal:
    """Return the refusal of a file for which the memory of this process does not suffice."""
    in_pieces = (".npy", ".h5", ".hdf5", ".hdf", ".zarr", ".tif", ".tiff")
    ends = os.fspath(path).lower().endswith(in_pieces)
    remedy = "Pass chunks=100" if ends else "Store it as .npy, HDF5 or Zarr and pass chunks=100"
    remedy += ", to read it in pieces"
    if address_limit():
        remedy += ", or raise the limit on memory that this process has (ulimit -v)"
    return Refusal("its content does not fit into memory", remedy)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever a parser stumbles over in `path` into a `ReadError`.

    Parsers of foreign formats, given damaged or hostile bytes, raise nearly every exception there
    is (`struct.error`, `KeyError`, `zlib.error`, `RecursionError` ...). This is the one place that
    catches them all; the original stays attached as the cause.
    """
    try:
        yield
    except ImportError:
        raise
    except Exception as error:
        if isinstance(error, ReadError) and not isinstance(error, Refusal):
            raise
        full = isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM
        found = _no_memory(path) if full else explained(error)
        raise read_error(path, *found.args) from error
