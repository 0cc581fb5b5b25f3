"""Writing files so that a reader never sees half of one.

Everything is written to a temporary file in the folder of the target, flushed to the disk, and
renamed onto the target. A crash, a full disk or Ctrl-C leaves the old file, or none, in place.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

__all__ = ["atomic_open", "atomic_path", "write_bytes", "write_text"]

TOKEN_BYTES = 6
"""Random bytes in the name of a temporary file: two writers of one target never meet."""


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Hand out a temporary path that becomes `path` when the block ends without an error.

    The temporary file lies in the same folder and keeps the suffix, from which many writers read
    the format. It exists, empty, when the block starts, with the permissions that any new file
    gets. A symbolic link is followed: its target is replaced, and the link stays.

    Parameters
    ----------
    path : str or path
        The file to write.

    Yields
    ------
    temporary : Path
        Where to write.
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"Cannot write {path}: the folder {target.parent} does not exist. Create it first."
        )
    if target.is_dir():
        raise IsADirectoryError(f"Cannot write {path}: it is a folder. Name a file in it.")
    temporary = target.with_name(f".{target.stem}.{secrets.token_hex(TOKEN_BYTES)}{target.suffix}")
    # Not `tempfile`: its files are readable by their owner only, and stay so after the renaming.
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield temporary
        _flush(temporary, os.O_RDWR)
        os.replace(temporary, target)
    except BaseException:  # Ctrl-C as well: whatever happens, nothing half-written stays
        with suppress(OSError):
            temporary.unlink()
        raise
    if os.name == "posix":  # elsewhere a folder cannot be opened, nor need it be flushed
        with suppress(OSError):  # some network file systems refuse; the file itself is safe
            _flush(target.parent, os.O_RDONLY)


@contextmanager
def atomic_open(
    path: str | os.PathLike[str], mode: str = "wb", *, encoding: str | None = None
) -> Iterator[IO[Any]]:
    """Open `path` for writing; the content appears there when the block ends without an error.

    Parameters
    ----------
    path : str or path
        The file to write.
    mode : {"wb", "w"}, default="wb"
        Bytes or text. Text keeps its line ends as they are.
    encoding : str, default=None
        The encoding of text; None means UTF-8.

    Yields
    ------
    stream : file object
        The open temporary file.
    """
    if mode not in ("w", "wb"):
        raise ValueError(f"The mode of atomic_open must be 'w' or 'wb'. Got {mode!r} instead.")
    text = {} if mode == "wb" else {"encoding": encoding or "utf-8", "newline": ""}
    with atomic_path(path) as temporary, open(temporary, mode, **text) as stream:  # type: ignore[call-overload]
        yield stream


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write `content` to `path` atomically."""
    with atomic_open(path) as stream:
        stream.write(content)


def write_text(path: str | os.PathLike[str], content: str) -> None:
    """Write `content` to `path` atomically, as UTF-8 and with the line ends it has."""
    with atomic_open(path, "w") as stream:
        stream.write(content)


def _flush(path: Path, flags: int) -> None:
    """Force what was written to `path` onto the disk."""
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
