"""Hold the figures in README, CHANGELOG and docs to the stored results: ``docs/check_numbers.py``.

A figure that comes from a stored result has its source in a comment on the same line of Markdown,
or below its paragraph in reStructuredText, several separated by semicolons::

    4.6 times faster <!-- 4.6 = benchmarks/results/core.json: rows.1.ratio -->

    .. 2.1 = benchmarks/results/gpu.json: rows.1.fit_seconds

The source is a file and a place in it: in JSON a path of keys and numbers; in a table of Markdown
the first cell of a row, or ``first..last`` for the sum over several, and the heading of a column,
or ``first cell > second cell > … > heading`` where the first cell does not tell rows apart; in CSV
``column=value, … > column``. ``*100`` at the end multiplies. Of a text the first number counts. A
figure is right if the stored value rounds to it, and if it is where its comment says.

Tables named in `FULLY_CHECKED` must give a source for every figure. ``docs/results/front.md`` must
be what ``docs/front_table.py`` makes of the records.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import front_table  # beside this file

ROOT = Path(__file__).resolve().parent.parent

FULLY_CHECKED = {
    "README.md": ("| What | Result | Command |",),
    "docs/results/index.md": ("| | least |",),
}
"""Tables by their heading: in these a figure without a source is an error. The first column, in the
README also the last, says what was measured and holds no result."""

NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w]|\.\d)")
SOURCE = re.compile(
    r"(?P<figure>[-+]?[\d.,]+)\s*=\s*(?P<path>[\w./-]+\.(?:json|md|csv)):\s*(?P<place>[^;]+)"
)
FACTOR = re.compile(r"\*([\d.]+)\s*$")
COMMENT = re.compile(r"<!--(.*?)-->")
RST_COMMENT = re.compile(r"^\s*\.\. (?=[-+\d])(.*)$")


class WrongNumber(ValueError):
    """A figure that is not what is stored, or whose source cannot be found."""


def first_number(value: object) -> float:
    """Return a number, or the first one in a text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    found = NUMBER.search(str(value).replace("×", " "))
    if found is None:
        raise WrongNumber(f"{value!r} holds no number")
    return float(found.group().replace(",", ""))


def _from_json(path: Path, place: str) -> float:
    value = json.loads(path.read_text(encoding="utf-8"))
    for key in place.split("."):
        try:
            value = value[int(key) if isinstance(value, list) else key]
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise WrongNumber(f"{path.name} has no {place!r}") from error
    return first_number(value)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in COMMENT.sub("", line).strip().strip("|").split("|")]


def _from_cells(path: Path, place: str) -> float:
    *wanted, column = (part.strip() for part in place.split(">"))
    header: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        cells = _cells(line) if line.startswith("|") else []
        if not cells:
            header = []
        elif not header:
            header = cells
        elif cells[: len(wanted)] == wanted and column in header:
            return first_number(cells[header.index(column)])
    raise WrongNumber(f"{path.name} has no row {' > '.join(wanted)!r} with a column {column!r}")


def _from_markdown(path: Path, place: str) -> float:
    if ">" in place:
        return _from_cells(path, place)
    rows, _, column = place.partition(" ")
    first, _, last = rows.partition("..")
    header: list[str] = []
    total, found = 0.0, False
    for line in path.read_text(encoding="utf-8").splitlines():
        cells = _cells(line) if line.startswith("|") else []
        if not header:
            header = cells if column in cells else []
        elif not cells:
            break
        elif first <= cells[0] <= (last or first):
            total, found = total + first_number(cells[header.index(column)]), True
    if not found:
        raise WrongNumber(f"{path.name} has no row {rows!r} with a column {column!r}")
    return total


def _from_csv(path: Path, place: str) -> float:
    conditions, _, column = (part.strip() for part in place.rpartition(">"))
    # A comma may be part of a name: conditions begin with a column and "=".
    parts = re.split(r",\s*(?=\w+=)", conditions)
    wanted = dict(part.strip().split("=", 1) for part in parts)
    with path.open(newline="", encoding="utf-8") as stream:
        for line in csv.DictReader(stream):
            if all(line.get(key) == value for key, value in wanted.items()) and line.get(column):
                return first_number(line[column])
    raise WrongNumber(f"{path.name} has no line {conditions!r} with a column {column!r}")


READERS = {".json": _from_json, ".md": _from_markdown, ".csv": _from_csv}


def stored(source: str, place: str, root: Path = ROOT) -> float:
    """Return what is stored at a place of a file."""
    path = root / source
    if not path.is_file():
        raise WrongNumber(f"there is no {source}")
    found = FACTOR.search(place)
    factor = float(found.group(1)) if found else 1.0
    return READERS[path.suffix](path, FACTOR.sub("", place).strip()) * factor


def rounds_to(value: float, figure: str) -> bool:
    """Tell whether a stored value, rounded to the digits of a figure, is that figure."""
    plain = figure.replace(",", "")
    decimals = len(plain.partition(".")[2])
    # A stored text may be rounded already: half a unit either way, and a little for binary digits.
    return abs(value - float(plain)) <= 0.5 * 10.0**-decimals * (1 + 1e-9)


def _sources(lines: list[str], index: int, suffix: str) -> Iterator[re.Match[str]]:
    """Yield the sources that are given for the figures of a line."""
    if suffix == ".md":
        texts = COMMENT.findall(lines[index])
    else:
        texts = [found.group(1) for found in [RST_COMMENT.match(lines[index])] if found]
    for text in texts:
        yield from SOURCE.finditer(text)


def _paragraph_above(lines: list[str], index: int) -> str:
    """Return the paragraph above a comment, blank lines and other comments in between left out."""
    end = index
    while end and (not lines[end - 1].strip() or RST_COMMENT.match(lines[end - 1])):
        end -= 1
    start = end
    while start and lines[start - 1].strip():
        start -= 1
    return " ".join(lines[start:end])


def check_text(text: str, name: str, root: Path = ROOT) -> list[str]:
    """Return what is wrong with the figures of a page, one sentence each."""
    lines, problems = text.splitlines(), []
    suffix, headings, inside = Path(name).suffix, FULLY_CHECKED.get(name, ()), False
    for index, line in enumerate(lines):
        where = f"{name}, line {index + 1}"
        given = set()
        shown = COMMENT.sub(" ", line) if suffix == ".md" else _paragraph_above(lines, index)
        for source in _sources(lines, index, suffix):
            figure = source["figure"].rstrip(".,")
            given.add(figure)
            if figure not in [found.group().rstrip(",") for found in NUMBER.finditer(shown)]:
                problems.append(f"{where}: the figure {figure} has a source but is not there.")
                continue
            try:
                value = stored(source["path"], source["place"], root)
            except WrongNumber as error:
                problems.append(f"{where}: {error}.")
                continue
            if not rounds_to(value, figure):
                problems.append(
                    f"{where}: it says {figure}, but {source['path']} has {value:.6g} at "
                    f"{source['place'].strip()!r}."
                )
        if headings:
            inside = line.startswith(headings) or (inside and line.startswith("|"))
            if inside and not line.startswith((*headings, "|---")):
                results = _cells(line)[1:2] if name == "README.md" else _cells(line)[1:]
                # Addresses of links are no figures, nor are settings in code.
                plain = re.sub(r"\]\([^)]*\)|`[^`]*`", " ", " ".join(results))
                for found in NUMBER.finditer(plain):
                    if found.group().rstrip(",") not in given:
                        problems.append(f"{where}: the figure {found.group()} has no source.")
    return problems


def pages(root: Path = ROOT) -> list[Path]:
    """Return the pages that are checked."""
    texts = sorted(path for kind in ("md", "rst") for path in (root / "docs").rglob(f"*.{kind}"))
    kept = [path for path in texts if "_build" not in path.parts and "generated" not in path.parts]
    return [root / "README.md", root / "CHANGELOG.md", *kept]


def main() -> int:
    """Check all pages and print what is wrong."""
    problems, count = [], 0
    for path in pages():
        name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        problems += check_text(text, name)
        lines = text.splitlines()
        count += sum(len(list(_sources(lines, n, path.suffix))) for n in range(len(lines)))
    problems += front_table.problems(ROOT)
    for problem in problems:
        print(problem)
    print(f"{count} figures have a source; {len(problems)} problems.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
