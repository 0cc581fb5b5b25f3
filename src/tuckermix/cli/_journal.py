"""A file that only this program can have written for this user: the journal of one run.

A journal is one regular file of signed records. The key of the signature lies in the user's own
state folder, so that a file that came with an archive or from another user is never believed. It
is opened without following links and is written at its end only. A file that is not a journal of
this user is left exactly as it is.

::

    magic, salt (16 bytes), signature of both (32 bytes)
    length of what follows up to the values (4 bytes), length of the values (8 bytes), head (JSON),
    values, signature of head and values (32 bytes)
    ...
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from tuckermix._files import atomic_path

MAGIC = b"tuckermix journal 1\n"
SECRET_BYTES, SALT_BYTES, LENGTH_BYTES, COUNT_BYTES = 32, 16, 4, 8
HEAD_BYTES, MOST_AT_ONCE = 2**16, 2**30  # of the head of a record; of one call of the system
SIGNATURE_BYTES = hashlib.sha256().digest_size

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
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._places: dict[str, tuple[int, int]] = {}
        self._key, self._end = b"", 0
        self._handle: int | None = None
        try:
            kind = _why_foreign(os.lstat(path))
        except FileNotFoundError:
            return
        if kind:
            raise JournalError(kind)
        self._open(0)
        try:
            self._scan()
        except BaseException:
            self.close()
            raise

    @property
    def size(self) -> int:
        """How many bytes the journal has."""
        return self._end

    def has(self, *first: str) -> bool:
        """Tell whether there is a record whose head, a list, begins with these words."""
        return any(text.startswith(json.dumps(first)[:-1]) for text in self._places)

    def read(self, head: list[Any]) -> bytes | None:
        """Return the values of the last record with this head, or None where it is damaged."""
        text = json.dumps(head)
        if self._handle is None or text not in self._places:
            return None
        start, length = self._places[text]
        try:
            os.lseek(self._handle, start, os.SEEK_SET)
            values = _read(self._handle, length)
            signature = _read(self._handle, SIGNATURE_BYTES)
        except OSError:
            return None
        return values if hmac.compare_digest(self._sign(text, values), signature) else None

    def append(self, head: list[Any], values: bytes) -> None:
        """Add a record at the end; what a killed run left of its last record is cut off first.

        Raises
        ------
        OSError, JournalError
            If it cannot be written; the records before it are as they were.
        """
        text = json.dumps(head)
        content = len(values).to_bytes(COUNT_BYTES, "little") + text.encode()
        record = len(content).to_bytes(LENGTH_BYTES, "little") + content
        if self._handle is None:
            self._open(os.O_CREAT | os.O_EXCL)
        handle = self._handle
        assert handle is not None
        if not self._end:
            salt = secrets.token_bytes(SALT_BYTES)
            self._key = _derived(salt)
            _write(handle, 0, MAGIC + salt + _signature(self._key, MAGIC + salt))
            self._end = len(MAGIC) + SALT_BYTES + SIGNATURE_BYTES
        try:
            os.ftruncate(handle, self._end)
            _write(handle, self._end, record, values, self._sign(text, values))
        except OSError:
            with suppress(OSError):
                os.ftruncate(handle, self._end)
            raise
        start = self._end + len(record)
        self._places[text] = (start, len(values))
        self._end = start + len(values) + SIGNATURE_BYTES

    def remove(self) -> None:
        """Delete the file, if it is the one that was opened."""
        if self._handle is None:
            return
        with suppress(OSError):
            if os.path.samestat(os.lstat(self.path), os.fstat(self._handle)):
                if os.name != "posix":  # where an open file cannot be deleted
                    self.close()
                self.path.unlink()
        self.close()

    def close(self) -> None:
        """Close the file and leave it."""
        handle, self._handle, self._places, self._end = self._handle, None, {}, 0
        if handle is not None:
            os.close(handle)

    def _sign(self, text: str, values: bytes) -> bytes:
        return _signature(self._key, text.encode() + b"\n" + values)

    def _open(self, flags: int) -> None:
        """Open the file without following links, and lock it for this run."""
        handle = os.open(self.path, os.O_RDWR | flags | SAFE_FLAGS, 0o600)
        kind = _why_foreign(os.fstat(handle)) or _lock(handle)
        if kind:
            os.close(handle)
            raise JournalError(kind)
        self._handle = handle

    def _scan(self) -> None:
        """Find the whole records; what follows the last of them is overwritten by the next."""
        handle = self._handle
        assert handle is not None
        size = os.fstat(handle).st_size
        start = len(MAGIC) + SALT_BYTES + SIGNATURE_BYTES
        if size == 0:
            return
        begin = _read(handle, start)
        signed, signature = begin[:-SIGNATURE_BYTES], begin[-SIGNATURE_BYTES:]
        if not begin.startswith(MAGIC) or len(begin) < start:
            raise JournalError("it is not a journal of tuckermix")
        key = _derived(signed[len(MAGIC) :])
        if not hmac.compare_digest(_signature(key, signed), signature):
            raise JournalError("it was not written by you on this machine")
        self._key, self._end = key, start
        while True:
            length = int.from_bytes(_read(handle, LENGTH_BYTES), "little")
            if not COUNT_BYTES < length <= HEAD_BYTES:
                return
            content = _read(handle, length)
            values = int.from_bytes(content[:COUNT_BYTES], "little")
            start = self._end + LENGTH_BYTES + length
            if start + values + SIGNATURE_BYTES > size:
                return
            with suppress(UnicodeDecodeError):  # a damaged record is not found, and harms nothing
                self._places[content[COUNT_BYTES:].decode()] = (start, values)
            self._end = os.lseek(handle, start + values + SIGNATURE_BYTES, os.SEEK_SET)


def _why_foreign(state: os.stat_result) -> str:
    """Return why a file cannot be a journal of this user, or an empty text."""
    if stat.S_ISLNK(state.st_mode):
        return "it is a link"
    if stat.S_ISDIR(state.st_mode):
        return "it is a folder"
    if not stat.S_ISREG(state.st_mode):
        return "it is not a plain file"
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
    try:
        import fcntl
    except ImportError:  # Windows
        return ""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return "another run is using it"
    except OSError:  # a file system without locks
        return ""
    return ""


def _read(handle: int, length: int) -> bytes:
    """Read as many bytes, or up to the end of the file."""
    parts = []
    while length > 0 and (part := os.read(handle, min(length, MOST_AT_ONCE))):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _write(handle: int, start: int, *parts: bytes) -> None:
    os.lseek(handle, start, os.SEEK_SET)
    for part in parts:
        view = memoryview(part)
        while len(view):
            view = view[os.write(handle, view[:MOST_AT_ONCE]) :]


def _signature(key: bytes, content: bytes) -> bytes:
    return hmac.digest(key, content, "sha256")


def _derived(salt: bytes) -> bytes:
    return _signature(_secret(), salt)


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
            path.chmod(0o600)
        return _secret_at(path)
    except (OSError, RuntimeError) as error:  # no home, or one that nobody may write to
        raise JournalError(f"its key cannot be kept ({error})") from error


def _secret_at(path: Path) -> bytes:
    handle = os.open(path, os.O_RDONLY | SAFE_FLAGS)
    try:
        state = os.fstat(handle)
        private = os.name != "posix" or not state.st_mode & 0o077
        found = _read(handle, SECRET_BYTES + 1)
        if not private or _why_foreign(state) or len(found) != SECRET_BYTES:
            raise JournalError(f"its key {path} is not a private file of yours")
        return found
    finally:
        os.close(handle)
