"""What goes wrong with files, in one sentence shape: the file, the problem, the remedy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["DatasetNotFound", "ReadError", "needs", "read_error", "reading"]

QUOTED_LENGTH = 160
"""Characters of a foreign error message that are quoted: parsers may repeat whole headers."""


class ReadError(ValueError):
    """A file that cannot be read as samples; the message names the file and the remedy."""


class DatasetNotFound(FileNotFoundError):
    """A known dataset that is not on this machine; the message says what to get and where from."""


def read_error(path: str | os.PathLike[str], problem: str, remedy: str) -> ReadError:
    """Build the error for the file `path`."""
    return ReadError(f"Cannot read {os.fspath(path)}: {problem}. {remedy}.")


def needs(what: str, package: str, extra: str) -> ImportError:
    """Build the error for an optional package that is absent."""
    return ImportError(f"{what} needs {package}: install tuckermix[{extra}].")


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn whatever a parser stumbles over in `path` into a `ReadError`.

    Parsers of foreign formats, given damaged or hostile bytes, raise nearly every exception there
    is (`struct.error`, `KeyError`, `zlib.error`, `RecursionError` ...). This is the one place that
    catches them all; the original stays attached as the cause.
    """
    try:
        yield
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
        said = " ".join(str(error).split())[:QUOTED_LENGTH] or "no message"
        raise read_error(
            path,
            f"it is damaged or not what its name says ({type(error).__name__}: {said})",
            "Get the file anew, or open it in the program that made it and save it again",
        ) from error
