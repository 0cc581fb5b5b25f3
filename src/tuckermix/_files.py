"""Writing files so that a reader never sees half of one.

Everything is written to a temporary file in the folder of the target, flushed to the disk, and
renamed onto the target. A crash, a full disk or Ctrl-C leaves the old file, or none, in place.
Several files that belong together are renamed together, when the last of them is on the disk.
"""

from __future__ import annotations

import csv
import errno
import hashlib
import os
import platform
import re
import secrets
import signal
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from operator import methodcaller
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

TOKEN_BYTES = 6
"""Random bytes in the name of a temporary file: two writers of one target never meet."""

FULL_DISK = frozenset(
    code
    for name in ("ENOSPC", "EDQUOT", "EFBIG")
    if (code := getattr(errno, name, None)) is not None
)
"""Codes of a system without room: a full disk, a spent quota, a file beyond the limit."""

FORMULA_STARTS = tuple("=+-@\t\r\n＝＋－＠")
"""A spreadsheet takes a cell that starts so for a formula, and runs it."""


def refuse_link(path: str | os.PathLike[str]) -> None:
    """Raise FileExistsError where a path is a symbolic link, wherever it leads."""
    if os.path.islink(path):
        raise FileExistsError(
            f"Cannot write {path}: it is a link to {os.readlink(path)}, and links are not "
            "followed. Delete it, or name another place."
        )


@contextmanager
def atomic_paths(*paths: str | os.PathLike[str]) -> Iterator[tuple[Path, ...]]:
    """Hand out temporary paths that become `paths` when the block ends without an error.

    The temporary files lie in the folders of the targets and keep the suffixes, from which many
    writers read the format. They exist, empty, when the block starts. A file that is replaced
    keeps its permissions, a new one gets those of any new file. A symbolic link is refused: who
    made it decides where it leads.

    Parameters
    ----------
    *paths : str or path
        The files to write.

    Yields
    ------
    temporaries : tuple of Path
        Where to write, one for each path.

    Raises
    ------
    FileNotFoundError, IsADirectoryError, PermissionError
        If a path cannot be written to; nothing has been changed then.
    FileExistsError
        If a path is a link, one that leads nowhere included.
    OSError
        If the disk is full: with its name, and without a trace of what did not fit.
    """
    targets = [_checked(path) for path in paths]
    temporaries = tuple(map(_temporary, targets))
    # The names are known before a file exists, so that Ctrl-C finds the `finally` at any moment.
    try:
        for path, temporary in zip(paths, temporaries, strict=True):
            _create(path, temporary)
        yield temporaries
        for temporary, target in zip(temporaries, targets, strict=True):
            _flush(temporary, os.O_RDWR)
            if target.exists():
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        _rename(temporaries, targets)
    except OSError as error:
        if error.errno not in FULL_DISK or error.filename not in (None, *map(str, temporaries)):
            raise
        # What is written to a stream fails without a name, and a temporary one says little.
        names = ", ".join(str(os.fspath(path)) for path in paths)
        raise OSError(error.errno, error.strerror, names) from error
    finally:
        for temporary in temporaries:
            with suppress(OSError):  # renamed, or never made
                temporary.unlink()
    if os.name == "posix":  # elsewhere a folder cannot be opened, nor need it be flushed
        for folder in {target.parent for target in targets}:
            with suppress(OSError):  # some network file systems refuse; the files are safe
                _flush(folder, os.O_RDONLY)


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Hand out one temporary path, see `atomic_paths`.

    Parameters
    ----------
    path : str or path
        The file to write.

    Yields
    ------
    temporary : Path
        Where to write.
    """
    with atomic_paths(path) as (temporary,):
        yield temporary


@contextmanager
def atomic_open(path: str | os.PathLike[str], mode: str = "wb") -> Iterator[IO[Any]]:
    """Open `path` for writing; the content appears there when the block ends without an error.

    Parameters
    ----------
    path : str or path
        The file to write.
    mode : {"wb", "w"}, default="wb"
        Bytes or text. Text is written in UTF-8, with its line ends as they are.

    Yields
    ------
    stream : file object
        The open temporary file.
    """
    if mode not in ("w", "wb"):
        raise ValueError(f"The mode of atomic_open must be 'w' or 'wb'. Got {mode!r} instead.")
    text = {} if mode == "wb" else {"encoding": "utf-8", "newline": ""}
    with atomic_path(path) as temporary, _held(partial(open, mode=mode, **text), temporary) as held:
        (stream,) = held
        with stream:  # writing out what is left may fail, and then there is no new file
            yield stream


@contextmanager
def _held(
    opens: Callable[[Path], Any], path: Path, closes: Callable[[Any], None] = methodcaller("close")
) -> Iterator[list[Any]]:
    """Open a file and close it again, wherever Ctrl-C strikes.

    A signal may be handled between the call that opens a file and the step that stores what it
    returns. Here both are one step of compiled code, within the block that closes; and that block
    calls nothing before it closes.
    """
    held: list[Any] = []
    try:
        held.extend(map(opens, (path,)))
        yield held
    finally:
        for one in held:
            closes(one)


def write_text(path: str | os.PathLike[str], content: str) -> None:
    """Write `content` to `path` atomically, as UTF-8 and with the line ends it has."""
    with atomic_open(path, "w") as stream:
        stream.write(content)


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Render rows as CSV that a spreadsheet can open without danger.

    Parameters
    ----------
    rows : iterable of iterables
        The cells. Texts that a spreadsheet would take for a formula, which may come from the name
        of a file or an error message, get an apostrophe in front; `from_csv_cell` takes it away.

    Returns
    -------
    text : str
        One line for each row.
    """
    lines: list[str] = []
    # Cells with a carriage return are put in quotes only where it is part of the line end.
    writer = csv.writer(SimpleNamespace(write=lines.append), lineterminator="\r\n")
    for row in rows:
        writer.writerow([f"'{cell}" if _like_formula(cell) else cell for cell in row])
    return "".join(line.removesuffix("\r\n") + "\n" for line in lines)


def from_csv_cell(cell: str) -> str:
    """Return the text that `csv_text` wrote as `cell`."""
    return cell[1:] if cell.startswith("'") and _like_formula(cell) else cell


def _like_formula(cell: Any) -> bool:
    """Say whether a text starts like a formula, apostrophes in front of it or not."""
    return isinstance(cell, str) and cell.lstrip("'").startswith(FORMULA_STARTS)


@contextmanager
def made_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Make a folder, with those above it; take away again what was made and stayed empty.

    Parameters
    ----------
    path : str or path
        The folder, which may exist.

    Yields
    ------
    folder : Path
        The same.
    """
    folder = Path(path)
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
    finally:
        for place in missing:
            with suppress(OSError):  # not empty: there are results in it
                place.rmdir()


def _checked(path: str | os.PathLike[str]) -> Path:
    """Return the file that a path names, if it may be written."""
    refuse_link(path)
    target = Path(os.path.realpath(path))  # folders above it may be links
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"Cannot write {path}: the folder {target.parent} does not exist. Create it first."
        )
    if target.is_dir():
        raise IsADirectoryError(f"Cannot write {path}: it is a folder. Name a file in it.")
    if target.exists():
        # What nobody may write is meant to stay as it is, even where root may do all.
        allowed = target.stat().st_mode & 0o222 and os.access(target, os.W_OK)
        if not allowed:
            raise PermissionError(
                f"Cannot write {path}: the file is read-only. Make it writable, or name another."
            )
    return target


def _temporary(target: Path) -> Path:
    token = f"{_machine()}-{os.getpid():x}-{secrets.token_hex(TOKEN_BYTES)}"
    return target.with_name(f".{target.stem}.{token}{target.suffix}")


def _machine() -> str:
    """Return a short name for this machine: a number of a process is good on one machine only."""
    return hashlib.blake2b(platform.node().encode(), digest_size=4).hexdigest()


def remove_stale(folder: Path, names: Iterable[str]) -> None:
    """Delete temporary files of `atomic_paths` whose process was killed.

    Only plain files of this user go, with the pattern of a temporary name and the number of a
    process of this machine that does not run any more.

    Parameters
    ----------
    folder : Path
        Where to look.
    names : iterable of str
        The names of the files that were to be written.
    """
    if os.name != "posix":  # where nobody can be asked whether a process runs
        return
    stems = "|".join(re.escape(Path(name).stem) for name in names)
    token = rf"\.{_machine()}-([0-9a-f]+)-[0-9a-f]{{{2 * TOKEN_BYTES}}}"
    # A writer that is atomic itself makes a temporary file of a temporary file.
    ours = re.compile(rf"\.+(?:{stems})(?:{token})+\.\w+")
    with suppress(OSError):
        for entry in list(os.scandir(folder)):
            found = ours.fullmatch(entry.name)
            if found is None or not entry.is_file(follow_symlinks=False):
                continue
            owner = entry.stat(follow_symlinks=False).st_uid
            if owner == os.geteuid() and not _runs(int(found[1], 16)):
                with suppress(OSError):
                    os.unlink(entry.path)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _create(path: str | os.PathLike[str], temporary: Path) -> None:
    """Make an empty file that was not there."""
    try:
        # Not `tempfile`: its files are readable by their owner only, and stay so when renamed.
        with _held(partial(open, mode="xb"), temporary):
            pass
    except PermissionError as error:
        raise PermissionError(
            f"Cannot write {path}: permission is denied in the folder {temporary.parent}. "
            "Name another folder."
        ) from error


def _flush(path: Path, flags: int) -> None:
    """Force what was written to `path` onto the disk."""
    with _held(partial(os.open, flags=flags), path, os.close) as (handle,):
        os.fsync(handle)


def _rename(temporaries: tuple[Path, ...], targets: list[Path]) -> None:
    """Rename files in one go. Ctrl-C waits that long: results of two runs must not be mixed."""
    caught: list[int] = []
    before = None
    if threading.current_thread() is threading.main_thread():  # signals come nowhere else
        before = signal.getsignal(signal.SIGINT)
    try:
        if before is not None:  # None is a handler that is not Python's
            signal.signal(signal.SIGINT, lambda number, frame: caught.append(number))
        for temporary, target in zip(temporaries, targets, strict=True):
            os.replace(temporary, target)
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
    if caught:
        signal.raise_signal(signal.SIGINT)
