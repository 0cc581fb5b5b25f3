"""Output of the commands: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import logging
import re
import shutil
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import IntEnum
from typing import Any


class Exit(IntEnum):
    """Exit codes of commands."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_WHOLE = 3
    """Done and written, but the solver did not converge, or data were missing."""
    INTERRUPTED = 130
    """The code that shells report for a program that Ctrl-C ended."""


ERASE = "\r\x1b[K"
"""Empties the line of a terminal, so that another can be written there."""


def say(text: str, end: str = "\n") -> None:
    """Write a line to stderr. Where it is closed, nobody reads it, and the work goes on."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.write(text + end)
            sys.stderr.flush()


class UsageError(Exception):
    """The user asked for something that cannot be; the message is one line."""


class Console:
    """Progress and messages of one command.

    On a terminal one line, which changes, shows what is going on; elsewhere each stage writes a
    line when it is done. With `quiet` there are only errors.

    Parameters
    ----------
    quiet : bool, default=False
        Whether progress and notes are left out.
    as_json : bool, default=False
        Whether the result is written as JSON.
    """

    def __init__(self, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet, self.as_json = quiet, as_json
        self.live = not quiet and sys.stderr is not None and sys.stderr.isatty()
        self._begun = ""

    def note(self, text: str) -> None:
        """Say something on stderr."""
        if not self.quiet:
            say((ERASE if self.live else "") + visible(text))

    def show(self, text: str) -> None:
        """Say something that the next line replaces, on a terminal."""
        if self.live:
            say(ERASE + visible(text)[: shutil.get_terminal_size().columns - 1], end="")
        else:
            self.note(text)

    def begin(self, doing: str) -> None:
        """Show at once that something is going on, until the next stage begins."""
        self._begun = doing
        if not self.quiet:
            self.show(f"{doing} ...")

    @contextmanager
    def stage(self, doing: str) -> Iterator[None]:
        """Show that something is going on, say how long it took, and show warnings as notes.

        A line appears when the stage takes longer than a moment. It says how far the work has come,
        and on a terminal what the library logs at level INFO.
        """
        begun, self._begun = self._begun == doing, ""
        timer = threading.Timer(FIRST_LINE, self.show, [f"{doing} ..."])
        timer.daemon = True
        logger, progress = logging.getLogger("tuckermix"), _Progress(self, doing)
        level = logger.level
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            logger.addHandler(progress)
            logger.setLevel(logging.INFO)
            try:
                if not begun:
                    timer.start()
                start = time.perf_counter()
                yield
            finally:
                timer.cancel()
                logger.removeHandler(progress)
                logger.setLevel(level)
        self.note(f"{doing}: {time.perf_counter() - start:.2f} s")
        for warning in caught:
            if issubclass(warning.category, UserWarning | RuntimeWarning):
                self.note(f"warning: {' '.join(str(warning.message).split())}")

    def result(self, values: dict[str, Any], rows: Sequence[tuple[str, ...]]) -> None:
        """Write the result to stdout: all `values` as JSON, or `rows` as an aligned table."""
        if self.as_json:
            sys.stdout.write(json.dumps(values, indent=2) + "\n")
            return
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for line in rows:
            cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            sys.stdout.write("  ".join(cells).rstrip() + "\n")


FIRST_LINE, NEXT_LINE, REDRAWN = 0.5, 10.0, 0.1
"""Seconds after which a stage that goes on says so, says so again, and changes its line."""


class _Progress(logging.Handler):
    """Says how far a stage has come, by what the library logs at level INFO."""

    def __init__(self, console: Console, doing: str) -> None:
        super().__init__(logging.INFO)
        self.console, self.doing = console, doing
        self.start = self.said = time.monotonic()

    def emit(self, record: logging.LogRecord) -> None:
        """Say how far the work has come, and how long it will take."""
        share, now, live = getattr(record, "share", None), time.monotonic(), self.console.live
        if (share or live) and now - self.said >= (REDRAWN if live else NEXT_LINE):
            self.said = now
            done = f": {share:.0%}{left(share, now - self.start)}" if share else ""
            said = f" · {record.getMessage()}" if live else ""
            self.console.show(f"{self.doing}{done}{said}")


def left(share: float, seconds: float) -> str:
    """Say about how long work will take whose share is done, where that can be told."""
    if seconds < 2 or not 0.02 < share < 1:
        return ""
    more = seconds * (1 - share) / share
    words = f"{more:.0f} s" if more < 100 else f"{more / 60:.0f} min"
    return f", about {words} left"


def visible(text: str) -> str:
    """Return a text without what would steer a terminal: names of files may hold anything."""
    escaped = (one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
    return "".join(escaped)


def one_line(error: BaseException) -> str:
    """Return the message of an error on a single line."""
    return " ".join(str(error).split()) or type(error).__name__


WORDS = (
    (r"\bgrey=True\b", "--grey"),
    (r"\bsize=\(height, width\)", "--size HEIGHTxWIDTH"),
    (r"\bframes=\.\.\.", "--frames N"),
    (r"\bUse TuckerClustering with missing=", "Set missing="),
    (r"\b(size|fit|frames|scale|drop|axes|missing)=(?:'([^']*)'|(\d+))", r"--\1 \2\3"),
    (r"\bsample_shape=\((\d+), (\d+)\)", r"--sample-shape \1x\2"),
    (r"\bsample_(axis|shape)\b", r"--sample-\1"),
    (r"\blazy=True\b", "--chunk N"),
    (r", or pass label_key=False to read no labels|; label_key=False reads no labels", ""),
    (r"\bthe limit is max_bytes=", "the limit in bytes is "),
    (r"\b(raise|a larger) max_bytes\b", "read it in Python with a larger max_bytes"),
    (r"\bkey and label_key\b", "--key and --truth"),
    (r"\b(Set|set|with|Leave|out) (key|axes|channels|size|frames|grey)\b", r"\1 --\2"),
    (
        r"AutoClustering\.predict\(\) needs embeddings.*",
        "MODEL chose embeddings: add --embeddings.",
    ),
    (r"This Network has no network.*: give it (.*) by use\(\)", r"Add --network with \1"),
    (r"Input should be a valid integer, unable to parse.*", "it must be a whole number"),
    (r"Input should be a valid number, unable to parse.*", "it must be a number"),
    (r"The 'targets' parameter of (reproduce|show)", "TARGETS"),
    (r"The 'name' parameter of describe", "NAME"),
)
"""Names of arguments in the library, and of the same options at the command line."""

PARAMETER = re.compile(
    r"The '(\w+)' parameter of (?:TuckerClustering|AutoClustering|read|reproduce|show)\b"
)


def in_options(text: str) -> str:
    """Put a message of the library into the words of the command line."""
    for pattern, words in WORDS:
        text = re.sub(pattern, words, text)
    return PARAMETER.sub(lambda found: f"--{found[1].replace('_', '-')}", text)
