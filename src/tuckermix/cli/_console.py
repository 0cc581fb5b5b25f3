"""Output of the commands: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_NOT_WHOLE = 3
"""Done and written, but something is left: the solver did not converge, or data were missing."""

EXIT_INTERRUPTED = 130
"""The code that shells report for a program that Ctrl-C ended."""


def say(text: str) -> None:
    """Write a line to stderr. Where it is closed, nobody reads it, and the work goes on."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.write(text + "\n")
            sys.stderr.flush()


class UsageError(Exception):
    """The user asked for something that cannot be; the message is one line."""


class Console:
    """Progress and messages of one command.

    On a terminal a spinner shows what is going on; elsewhere each stage writes one line when it
    is done. With `quiet` there are only errors.

    Parameters
    ----------
    quiet : bool, default=False
        Whether progress and notes are left out.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.live = not quiet and sys.stderr is not None and sys.stderr.isatty()
        self._waiting = _Waiting(self, "")

    def note(self, text: str) -> None:
        """Say something on stderr."""
        if not self.quiet:
            say(visible(text))

    def begin(self, doing: str) -> None:
        """Show that something is going on, until the next stage begins."""
        if self._waiting.doing == doing:
            return
        self._waiting.cancel()
        if not self.quiet and not self.live:
            self._waiting = _Waiting(self, doing)

    @contextmanager
    def stage(self, doing: str) -> Iterator[None]:
        """Show that something is going on, say how long it took, and show warnings as notes.

        What the library logs at level INFO appears beside the spinner. Elsewhere a line appears
        when the stage takes longer than a moment, and now and then how far it has come.
        """
        self.begin(doing)
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                with _spinner(doing) if self.live else logging_to(self._waiting):
                    yield
            finally:
                self._waiting.cancel()
        self.note(f"{doing}: {time.perf_counter() - start:.2f} s")
        for warning in caught:
            if issubclass(warning.category, UserWarning | RuntimeWarning):
                self.note(f"warning: {' '.join(str(warning.message).split())}")

    def result(
        self, values: dict[str, Any], rows: Any, as_json: bool, head: tuple[str, ...] | None = None
    ) -> None:
        """Write the result to stdout: all `values` as JSON, or `rows` as a small table."""
        if as_json:
            sys.stdout.write(json.dumps(values, indent=2) + "\n")
        else:
            self.table(head, rows)

    def table(self, head: tuple[str, ...] | None, rows: Any) -> None:
        """Write a table to stdout: with rules on a terminal, aligned words elsewhere."""
        rows = [tuple(row) for row in rows]
        if not sys.stdout.isatty():
            lines = rows if head is None else [head, *rows]
            widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
            for line in lines:
                cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
                sys.stdout.write("  ".join(cells).rstrip() + "\n")
            return
        from rich import box
        from rich.console import Console as RichConsole
        from rich.table import Table
        from rich.text import Text

        table = Table(
            box=box.SIMPLE_HEAD, show_header=head is not None, pad_edge=False, header_style="bold"
        )
        columns = head or ("", "")
        for index, name in enumerate(columns):
            # Names are short and stay whole; only the last column may wrap.
            table.add_column(name, no_wrap=index < len(columns) - 1, overflow="fold")
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))  # names may hold what looks like markup
        RichConsole(file=sys.stdout, highlight=False).print(table)


FIRST_LINE, NEXT_LINE = 0.5, 10.0
"""Seconds after which a stage that goes on says so, where there is no spinner."""


class _Waiting(logging.Handler):
    """Lines for a stage that takes long, where there is no spinner."""

    def __init__(self, console: Console, doing: str) -> None:
        super().__init__(logging.INFO)
        self.console, self.doing = console, doing
        self.start = self.said = time.monotonic()
        self.timer = threading.Timer(FIRST_LINE, lambda: console.note(f"{doing} ..."))
        self.timer.daemon = True
        if doing:
            self.timer.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Say how far the work has come, and how long it will take."""
        share, now = getattr(record, "share", None), time.monotonic()
        if self.doing and share and now - self.said >= NEXT_LINE:
            self.said = now
            self.console.note(f"{self.doing}: {share:.0%}{left(share, now - self.start)}")

    def cancel(self) -> None:
        """Say nothing more."""
        self.timer.cancel()
        self.doing = ""


def left(share: float | None, seconds: float) -> str:
    """Say about how long work will take whose share is done, where that can be told."""
    if not share or seconds < 2:
        return ""
    more = seconds * (1 - share) / share
    words = f"{more:.0f} s" if more < 100 else f"{more / 60:.0f} min"
    return f", about {words} left"


@contextmanager
def _spinner(doing: str) -> Iterator[None]:
    """Show a spinner with what the library logs."""
    from rich.console import Console as RichConsole
    from rich.markup import escape

    start = time.monotonic()

    with RichConsole(stderr=True).status(escape(doing)) as status:

        class Handler(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                share = getattr(record, "share", None)
                text = f"{escape(doing)}{bar(share)}{left(share, time.monotonic() - start)}"
                status.update(f"{text} · {escape(record.getMessage())}")

        with logging_to(Handler(logging.INFO)):
            yield


def bar(share: float | None, width: int = 20) -> str:
    """Return a small bar for how much of the work is done, or "" where that is not known.

    With 20 letters it leaves room for words on a narrow terminal.
    """
    if share is None:
        return ""
    done = round(width * min(max(share, 0.0), 1.0))
    return f" {'━' * done}{'╌' * (width - done)} {share:.0%}"


@contextmanager
def logging_to(handler: logging.Handler) -> Iterator[None]:
    """Have a handler receive what the library logs at level INFO."""
    logger = logging.getLogger("tuckermix")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def visible(text: str) -> str:
    """Return a text without what would steer a terminal: names of files may hold anything."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def one_line(error: BaseException) -> str:
    """Return the message of an error on a single line."""
    text = " ".join(str(error).split())
    return text or type(error).__name__


WORDS = (
    (r"\bgrey=True\b", "--grey"),
    (r"\bgrey=False\b", "--colour"),
    (r"\bsize=\(height, width\)", "--size HEIGHTxWIDTH"),
    (r"\bframes=\.\.\.", "--frames N"),
    (r"\bframes=(\d+)\b", r"--frames \1"),
    (r"\b(size|fit|scale|drop)='([^']*)'", r"--\1 \2"),
    (r"\bsample_shape=\((\d+), (\d+)\)", r"--sample-shape \1x\2"),
    (r"\blazy=True\b", "--chunk N"),
    (r", or pass label_key=False to read no labels", ""),
    (r"; label_key=False reads no labels", ""),
    (r"\bthe limit is max_bytes=", "the limit in bytes is "),
    (r"\b(raise|a larger) max_bytes\b", "read it in Python with a larger max_bytes"),
    (r"\bwith key and label_key\b", "with --key and --truth"),
    (r"\bsample_axis\b", "--sample-axis"),
    (r"\bsample_shape\b", "--sample-shape"),
    (r"\b(Set|Leave out) key\b", r"\1 --key"),
    (r"\b(Set|Leave out) label_key\b", r"\1 --truth"),
    (r"\bkey and label_key\b", "--key and --truth"),
    (r"\b(set|Set|with|Leave|Leave out|out) (axes|channels|size|frames|grey)\b", r"\1 --\2"),
    (r"\baxes='(\w+)'", r"--axes \1"),
    (r"\bUse TuckerClustering with missing='impute'", "Set --missing impute"),
    (r"\bmissing='impute'", "--missing impute"),
    (r", or raise PIL\.Image\.MAX_IMAGE_PIXELS if you trust the file", ""),
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
