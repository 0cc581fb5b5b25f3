"""What every reader of files has in common: one error, one guard, one limit on memory.

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
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import IO, BinaryIO

QUOTED_LENGTH = 160
"""Characters of a foreign error message that are quoted: parsers may repeat whole headers."""

MEMORY_SHARE = 0.5
"""Share of the machine's memory that one file may unpack to: an estimator needs the rest."""

UNKNOWN_MEMORY = 8 * 2**30
"""Memory to assume, in bytes, where the system does not tell."""

GZIP_MAGIC = b"\x1f\x8b"
"""The first bytes of a gzipped file."""

UNCHECKED = 2**20
"""Bytes that may be asked for without a look at how many are left."""

LZMA_MEMORY = 2**26
"""The most memory, in bytes, that unpacking xz may take for its dictionary: its strongest usual
setting needs a little less."""

ANEW = "Get the file anew"
"""What helps with a file that lacks something."""

Path = str | os.PathLike[str]
Shape = tuple[int, ...]


class ReadError(ValueError):
    """A file that cannot be read as samples; the message names the file and the remedy."""

    shapes: tuple[Shape, ...] = ()
    """The shapes of two samples, where the problem is that they differ."""


class Refusal(ReadError):
    """Something that is not read: problem and remedy. `reading` puts the name of the file to it."""

    def __init__(self, problem: str, remedy: str = ANEW, shapes: tuple[Shape, ...] = ()) -> None:
        super().__init__(problem, remedy)
        self.shapes = shapes

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


def read_error(path: Path, problem: str, remedy: str = ANEW) -> ReadError:
    """Build the error for the file `path`."""
    return ReadError(f"Cannot read {os.fspath(path)}: {problem}. {remedy}.")


def damaged(path: Path, kind: str, message: str) -> ReadError:
    """Build the error for a file at which a parser stumbled, with what the parser said."""
    said = " ".join(message.split())[:QUOTED_LENGTH] or "no message"
    return read_error(
        path,
        f"it is damaged or not what its name says ({kind}: {said})",
        "Get the file anew, or open it in the program that made it and save it again",
    )


def total_memory() -> int:
    """Return the bytes of memory that this machine has; 0 where the system does not tell."""
    try:
        return max(0, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return 0


def default_limit() -> int:
    """Return the most bytes that a file may unpack to unless the caller says otherwise."""
    return int(MEMORY_SHARE * (total_memory() or UNKNOWN_MEMORY))


def stated(path: Path, field: str) -> str:
    """Return what a text such as /proc/cpuinfo states of a field; empty where it does not."""
    with suppress(OSError), open(path, encoding="utf-8") as stream:
        for line in stream:
            if line.startswith(field):
                return line.partition(":")[2].strip()
    return ""


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

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > UNCHECKED:
            left = os.fstat(self.fileno()).st_size - self.tell()
            size = max(0, min(size, left))
        return super().read(size)


def open_regular(path: Path) -> BinaryIO:
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
    return _Regular(io.FileIO(descriptor))


@contextmanager
def open_unpacked(path: Path) -> Iterator[IO[bytes]]:
    """Open a regular file, unpacking it on the way if it is gzipped."""
    with open_regular(path) as raw:
        packed = raw.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        raw.seek(0)
        with gzip.GzipFile(fileobj=raw) if packed else nullcontext(raw) as stream:
            yield stream  # type: ignore[misc]


def slack(nbytes: int) -> int:
    """Return the most bytes that `nbytes` can take packed: packing may lengthen what is random."""
    return nbytes + nbytes // 8 + 1024


def inflate(packed: bytes, limit: int, wbits: int = zlib.MAX_WBITS) -> bytes:
    """Unpack deflated bytes, and refuse to go beyond a length.

    Parameters
    ----------
    packed : bytes
        One stream, or several behind one another as gzip allows.
    limit : int
        The most bytes to unpack; a stream that gives more is refused at that point.
    wbits : int, default=zlib.MAX_WBITS
        The kind of header, as in `zlib.decompressobj`.

    Returns
    -------
    content : bytes
        What was packed.
    """
    pieces, left = [], limit + 1  # one more, to see whether it ends there
    while packed:
        unpacker = zlib.decompressobj(wbits)
        piece = unpacker.decompress(packed, left)
        pieces.append(piece)
        left -= len(piece)
        if left <= 0:
            raise ValueError(f"more than the expected {limit} bytes are packed")
        if not unpacker.eof:
            raise EOFError("the packed bytes end early")
        packed = unpacker.unused_data
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever a parser stumbles over in `path` into a `ReadError`.

    Parsers of foreign formats, given damaged or hostile bytes, raise nearly every exception there
    is (`struct.error`, `KeyError`, `zlib.error`, `RecursionError` ...). This is the one place that
    catches them all; the original stays attached as the cause.
    """
    try:
        yield
    except Refusal as error:
        named = read_error(path, *error.args)
        named.shapes = error.shapes
        raise named from error
    except (ReadError, ImportError):
        raise
    except FileNotFoundError as error:
        raise read_error(path, "it does not exist", "Check the path") from error
    except PermissionError as error:
        raise read_error(path, "permission is denied", "Check who may read it") from error
    except MemoryError as error:
        raise read_error(
            path,
            "its content does not fit into memory",
            "Store it as .npy, HDF5 or Zarr and pass lazy=True",
        ) from error
    except Exception as error:
        raise damaged(path, type(error).__name__, str(error)) from error
