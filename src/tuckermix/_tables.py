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

from tuckermix._reading import open_regular

DELIMITERS = (",", ";", "\t")
"""Signs between columns."""

LONGEST_LINE = 2**26
"""Characters of the first line, and bytes of a cell: one without an end must not fill the
memory."""


def rows_of_text(path: str | os.PathLike[str]) -> Iterator[list[str]]:
    """Yield the rows of a table, each a list of its cells, those without any left out.

    Parameters
    ----------
    path : str or path
        The file.

    Yields
    ------
    row : list of str
        The cells as they stand. Bytes that are not UTF-8 are kept as the system keeps them in the
        names of files, so that both agree.
    """
    with open_regular(path) as raw:
        start = raw.read(2)
        raw.seek(0)
        wide = start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        encoding, errors = ("utf-16", "strict") if wide else ("utf-8-sig", "surrogateescape")
        with io.TextIOWrapper(raw, encoding=encoding, errors=errors, newline="") as stream:
            first = ""
            while not first.strip():
                first = stream.readline(LONGEST_LINE)
                if not first:
                    return
            delimiter = max(DELIMITERS, key=first.count)
            before = csv.field_size_limit(LONGEST_LINE)
            try:
                for row in csv.reader(_lines(first, stream), delimiter=delimiter):
                    if row:
                        yield row
            finally:
                csv.field_size_limit(before)


def _lines(first: str, stream: io.TextIOWrapper) -> Iterator[str]:
    yield first
    while line := stream.readline(LONGEST_LINE):
        yield line
