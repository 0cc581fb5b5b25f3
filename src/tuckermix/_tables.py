"""Tables as text: with commas, semicolons or tabs, in UTF-8 or UTF-16, as spreadsheets write them.

Which sign separates columns is told by the first line; where the comma is the decimal sign,
spreadsheets write semicolons.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
from collections.abc import Iterator

from tuckermix._machine import default_limit
from tuckermix._reading import check_fits, open_regular

DELIMITERS = (",", ";", "\t")
"""Signs between columns."""

LETTER_BYTES, CELL_BYTES = 16, 128
"""Bytes that a letter takes at most, in several copies, and a cell beside its letters, while a line
is taken apart."""


def rows_of_text(path: str | os.PathLike[str], limit: int | None = None) -> Iterator[list[str]]:
    """Yield the rows of a table, each a list of its cells, those without any left out.

    Parameters
    ----------
    path : str or path
        The file.
    limit : int, default=None
        The most bytes that a row may take in memory. None means half of the memory.

    Yields
    ------
    row : list of str
        The cells as they stand. Bytes that are not UTF-8 are kept as the system keeps them in the
        names of files, so that both agree.
    """
    limit = default_limit() if limit is None else limit
    most = max(1, limit // LETTER_BYTES)
    with open_regular(path) as raw:
        start = raw.read(2)
        raw.seek(0)
        wide = start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        encoding, errors = ("utf-16", "strict") if wide else ("utf-8-sig", "surrogateescape")
        with io.TextIOWrapper(raw, encoding=encoding, errors=errors, newline="") as stream:
            first = ""
            while not first.strip():
                first = stream.readline(most)
                if not first:
                    return
            delimiter = max(DELIMITERS, key=first.count)
            held = 0

            def lines() -> Iterator[str]:
                """Yield lines. One row may have several, which together must not pass the limit."""
                nonlocal held
                line = first
                while line:
                    held += LETTER_BYTES * len(line) + CELL_BYTES * line.count(delimiter)
                    remedy = "Check how the table was written, or raise max_bytes"
                    check_fits("a row of it", held, limit, remedy)
                    yield line
                    line = stream.readline(most)

            before = csv.field_size_limit(min(most, 2**31 - 1))
            try:
                for row in csv.reader(lines(), delimiter=delimiter):
                    held = 0
                    if row:
                        yield row
            finally:
                csv.field_size_limit(before)
