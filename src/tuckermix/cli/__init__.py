"""The command line: ``tuckermix demo``, ``cluster``, ``predict``, ``datasets`` and the others.

Importing this package loads neither typer nor anything numerical, so that a missing extra can be
told in one line and ``tuckermix --help`` comes at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]

EXIT_FAILED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, default=None
        The words after ``tuckermix``; None takes those of the process.

    Returns
    -------
    code : int
        0 done, 1 failed, 2 wrong use or unreadable input, 3 done but not converged or
        without some of the data, 130 interrupted.
    """
    try:
        import typer  # noqa: F401 - a missing one is told in one line
    except ImportError:
        sys.stderr.write("The tuckermix command needs typer: install tuckermix[cli].\n")
        return EXIT_FAILED
    from tuckermix.cli._app import run

    if arguments is None:
        # A name that the encoding of the terminal does not have must not end the program.
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
    return run(list(sys.argv[1:] if arguments is None else arguments))
