"""A file that only this program can have written for this user: the journal of one run.

A journal is one regular file of signed records. The key of the signature lies in the user's own
state folder, so that a file that came with an archive or from another user is never believed. It
is opened without following links and is written at its end only. A file that is not a journal of
this user is left exactly as it is.

::

    magic, signature of it (32 bytes)
    lengths of head and values (4 and 8 bytes), head (JSON), values, signature of both (32 bytes)
    ...
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import stat
import struct
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from tuckermix._files import atomic_path

MAGIC = b"tuckermix journal 2\n"
LENGTHS = struct.Struct("<IQ")
SIGNATURE_BYTES = SECRET_BYTES = hashlib.sha256().digest_size

# Where the system has them: no link is followed, and a pipe is not waited for.
SAFE_FLAGS = sum(
    getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
)


class JournalError(Exception):
    """A file that is not a journal of this user; the message says what it is instead."""


class Journal:
    """The records of one file, found by their heads.

    Parameters
    ----------
    path : Path
        The file. It is made when the first record is added.

    Raises
    ------
    JournalError
        If there is something at `path` that this user's program has not written.

    Attributes
    ----------
    size : int
        How many bytes the journal has.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._places: dict[bytes, tuple[int, int]] = {}
        self._key, self.size = b"", 0
        self._stream: BinaryIO | None = None
        try:
            kind = _why_foreign(os.lstat(path))
        except FileNotFoundError:
            return
        if kind:
            raise JournalError(kind)
        self._stream = self._opened(0)
        try:
            self._scan(self._stream)
        except BaseException:
            self.close()
            raise

    def read(self, head: list[Any]) -> bytes | None:
        """Return the values of the last record with this head, or None where it is damaged."""
        text = json.dumps(head).encode()
        if self._stream is None or text not in self._places:
            return None
        start, length = self._places[text]
        with suppress(OSError):
            self._stream.seek(start)
            values, signature = self._stream.read(length), self._stream.read(SIGNATURE_BYTES)
            if hmac.compare_digest(self._signature(text, values), signature):
                return values
        return None

    def append(self, head: list[Any], values: bytes) -> None:
        """Add a record at the end; what a killed run left of its last record is cut off first.

        Raises
        ------
        OSError, JournalError
            If it cannot be written; the records before it are as they were.
        """
        text = json.dumps(head).encode()
        if self._stream is None:
            self._stream = self._opened(os.O_CREAT | os.O_EXCL)
        record = LENGTHS.pack(len(text), len(values)) + text
        begin = self.size
        if not begin:
            self._key = _secret()
            record = MAGIC + self._signature(MAGIC) + record
        try:
            self._stream.truncate(begin)
            self._stream.seek(begin)
            for part in (record, values, self._signature(text, values)):
                view = memoryview(part)
                while len(view):  # the system takes no more than two gigabytes at a time
                    view = view[self._stream.write(view) :]
        except OSError:
            with suppress(OSError):
                self._stream.truncate(begin)
            raise
        start = begin + len(record)
        self._places[text] = (start, len(values))
        self.size = start + len(values) + SIGNATURE_BYTES

    def remove(self) -> None:
        """Delete the file, if it is the one that was opened."""
        if self._stream is None:
            return
        with suppress(OSError):
            if os.path.samestat(os.lstat(self.path), os.fstat(self._stream.fileno())):
                if os.name != "posix":  # where an open file cannot be deleted
                    self.close()
                self.path.unlink()
        self.close()

    def close(self) -> None:
        """Close the file and leave it."""
        stream, self._stream, self._places, self.size = self._stream, None, {}, 0
        if stream is not None:
            stream.close()

    def _signature(self, *parts: bytes) -> bytes:
        return hmac.digest(self._key, b"\n".join(parts), "sha256")

    def _opened(self, flags: int) -> BinaryIO:
        """Open the file without following links, and lock it for this run."""
        handle = os.open(self.path, os.O_RDWR | flags | SAFE_FLAGS, 0o600)
        kind = _why_foreign(os.fstat(handle)) or _lock(handle)
        if kind:
            os.close(handle)
            raise JournalError(kind)
        stream = os.fdopen(handle, "r+b", buffering=0)
        weakref.finalize(self, stream.close)  # what nobody closed ends with the journal
        return stream

    def _scan(self, stream: BinaryIO) -> None:
        """Find the whole records; what follows the last of them is overwritten by the next."""
        size = os.fstat(stream.fileno()).st_size
        if size == 0:
            return
        if stream.read(len(MAGIC)) != MAGIC:
            raise JournalError("it is not a journal of tuckermix")
        self._key = _secret()
        if not hmac.compare_digest(self._signature(MAGIC), stream.read(SIGNATURE_BYTES)):
            raise JournalError("it was not written by you on this machine")
        self.size = stream.tell()
        while len(lengths := stream.read(LENGTHS.size)) == LENGTHS.size:
            of_head, of_values = LENGTHS.unpack(lengths)
            start = stream.tell() + of_head
            if start + of_values + SIGNATURE_BYTES > size:
                return
            self._places[stream.read(of_head)] = (start, of_values)
            self.size = stream.seek(start + of_values + SIGNATURE_BYTES)


def _why_foreign(state: os.stat_result) -> str:
    """Return why a file cannot be a journal of this user, or an empty text."""
    if not stat.S_ISREG(state.st_mode):
        what = {stat.S_IFLNK: "it is a link", stat.S_IFDIR: "it is a folder"}
        return what.get(stat.S_IFMT(state.st_mode), "it is not a plain file")
    if hasattr(os, "geteuid"):
        if state.st_uid != os.geteuid():
            return "it belongs to another user"
        if state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return "other users can write to it"
    if state.st_nlink > 1:
        return "it has more than one name (a hard link)"
    return ""


def _lock(handle: int) -> str:
    """Lock the file, where the system can; return why that is not possible, or an empty text."""
    with suppress(ImportError, OSError):  # Windows, and file systems without locks
        import fcntl

        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return "another run is using it"
    return ""


def _secret() -> bytes:
    """Return the key of this user, made on first use.

    Raises
    ------
    JournalError
        If the key cannot be kept where only this user reads it.
    """
    home = os.environ.get("XDG_STATE_HOME")
    try:
        folder = Path(home) if home else Path.home() / ".local" / "state"
        path = folder / "tuckermix" / "journal.key"
        if not os.path.lexists(path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with atomic_path(path) as temporary:
                temporary.chmod(0o600)
                temporary.write_bytes(secrets.token_bytes(SECRET_BYTES))
        with os.fdopen(os.open(path, os.O_RDONLY | SAFE_FLAGS), "rb") as stream:
            state = os.fstat(stream.fileno())
            found = stream.read(SECRET_BYTES + 1)
    except (OSError, RuntimeError) as error:  # no home, or one that nobody may write to
        raise JournalError(f"its key cannot be kept ({error})") from error
    private = os.name != "posix" or not state.st_mode & 0o077
    if not private or _why_foreign(state) or len(found) != SECRET_BYTES:
        raise JournalError(f"its key {path} is not a private file of yours")
    return found
