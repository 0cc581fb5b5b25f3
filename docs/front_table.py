"""Write the table of the front page from the published records: ``python docs/front_table.py``.

It goes to ``docs/results/front.md``, which the documentation includes and from which ``README.md``
quotes. ``--check`` writes nothing and fails if it differs; ``docs/check_numbers.py`` does the same,
so that no figure on the front page is older than the records.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean

from tuckermix_bench import EXPERIMENTS, METHODS, RunRecord
from tuckermix_bench.places import ON_REQUEST
from tuckermix_bench.store import read_records
from tuckermix_bench.summaries import Place, place, scores_of
from tuckermix_bench.tables import cells_of

ROOT = Path(__file__).resolve().parent.parent
RECORDS, PAGE = "docs/results/records.csv", "docs/results/front.md"

FRONT = (
    ("PIE, 24 persons under changing light", "beyond", "PIE, 24 persons"),
    ("PIE, 68 persons, 9 images of each", "table4", "K=68"),
    ("Yale B, 10 persons under strong light", "table5", "YaleB, 10 persons"),
    ("ORL, 10 persons, 10 images of each", "table5", "ORL"),
    ("Yale, 15 persons, 8 images of each", "beyond", "Yale, 15 persons"),
    ("CBCL, 600 faces, 600 other images", "table2", "CBCL"),
    ("COIL-20, 20 turning objects", "beyond", "COIL-20, 20 objects"),
    ("MNIST, 100 of each digit", "table3", "K=10"),
    ("MNIST, all 70,000", "beyond", "MNIST, 70,000"),
    ("scikit-learn's digits, 80 of each", "beyond", "digits, 10 × 80"),
    ("voxel models, 10 kinds", "beyond", "voxels, 10 × 40"),
    ("videos, 12 generated textures", "table6", "dynamic-texture stand-in, K=12"),
    ("Samson, spectra of three materials", "beyond", "Samson, 3 × 300"),
)
"""The rows: what they are called here, and the table and row whose records they show."""

OURS, AUTO = "TuckerClustering", "AutoClustering"
SECONDS_OF_AN_HOUR = 3600
SHOWN = ("k-means", "spectral")
METRICS = ("AC", "NMI")
GOOD = ("first", "tied first")
VERDICTS = (*GOOD, "behind", "single run")

LEGEND = (
    "AC / NMI, means over the draws, which all columns share. Bold: no rival is more than two "
    "standard errors of the paired difference ahead, by either measure. *Best other rival*: the "
    "largest mean AC among all other columns of the row, at one setting for all data. *Seconds*: "
    "processor time of a fit of either of ours. *For choices*: the share of the samples that "
    "tuning may look at, where a row needs more than the part that is kept for reports."
)

Columns = dict[str, list[RunRecord]]


def present(records: Iterable[RunRecord]) -> list[RunRecord]:
    """Leave out records of other draws than the tables ask for now: they compare with nothing."""
    today = {cell.key: cell.digest for cell in cells_of(EXPERIMENTS.values())}
    return [record for record in records if today.get(record.key, record.digest) == record.digest]


def by_row(records: Iterable[RunRecord]) -> dict[tuple[str, str], Columns]:
    """Sort records by table and row, then by column."""
    found: dict[tuple[str, str], Columns] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if record.profile == "paper":
            found[record.experiment, record.row][record.method].append(record)
    return found


def rivals(columns: Columns) -> Columns:
    """Leave out our own columns, variants of a column, and bounds that know the truth."""
    kept = {}
    for name, records in columns.items():
        method = METHODS.get(name)
        if method and method.role != "ours" and not method.variant_of and not method.uses_truth:
            kept[name] = records
    return kept


def _place(records: list[RunRecord], others: Columns, metric: str) -> Place | None:
    """Compare the runs of a column with those of others."""
    theirs = {name: scores_of(runs, metric) for name, runs in others.items()}
    return place(records, scores_of(records, metric), theirs, metric)


def _score(one: Place | None) -> str:
    return "–" if one is None else f"{one.mean:.3f}"


def _seconds(one: Place | None) -> str:
    if one is None or one.cpu_seconds is None:
        return "–"
    return f"{one.cpu_seconds:.0f}" if one.cpu_seconds >= 10 else f"{one.cpu_seconds:.2g}"


def _seen(records: list[RunRecord]) -> str:
    """Say which share of a row's samples belongs to the part that choices look at."""
    shares = [record.seen for record in records if record.seen]
    return f" ({fmean(shares):.0%} for choices)" if shares else ""


def _pair(columns: Columns, name: str) -> tuple[str, bool]:
    """Return AC and NMI of a column, and whether it is first or tied first in both."""
    found = [_place(columns.get(name, []), rivals(columns), metric) for metric in METRICS]
    text = " / ".join(map(_score, found))
    return text, all(one is not None and one.verdict in GOOD for one in found)


def _best(columns: Columns) -> tuple[str, str]:
    """Return the rival with the largest mean accuracy, k-means and spectral clustering aside."""
    others = {name: found for name, found in rivals(columns).items() if name not in SHOWN}
    scored = {name: one for name in others if (one := _place(others[name], {}, "AC")) is not None}
    if not scored:
        return "", "–"
    name = max(scored, key=lambda name: scored[name].mean)
    return name, " / ".join(_score(_place(others[name], {}, metric)) for metric in METRICS)


def table(rows: dict[tuple[str, str], Columns]) -> list[str]:
    """Return the lines of the table: one for each row of `FRONT` that has records of ours."""
    head = ("data", "draws", *SHOWN, "best other rival", OURS, AUTO, "seconds")
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for title, name, row in FRONT:
        columns = rows.get((name, row), {})
        ours = _place(columns.get(OURS, []), {}, "AC")
        if ours is None:
            continue
        rival, score = _best(columns)
        cells = [title + _seen(columns[OURS]), str(ours.draws)]
        cells += [_pair(columns, column)[0] for column in SHOWN]
        cells.append(f"{score} {rival}".strip())
        for column in (OURS, AUTO):
            text, good = _pair(columns, column)
            cells.append(f"**{text}**" if good else text)
        chosen = _place(columns.get(AUTO, []), {}, "AC")
        cells.append(f"{_seconds(ours)} / {_seconds(chosen)}")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _standings(rows: dict[tuple[str, str], Columns], name: str) -> list[Place]:
    """Return how a column of ours stands in each row that has it, by accuracy and by NMI."""
    found = []
    for (experiment, _), columns in sorted(rows.items()):
        # Where one setting is varied there are no rivals to speak of.
        if experiment in ON_REQUEST or experiment not in EXPERIMENTS:
            continue
        for metric in METRICS:
            one = _place(columns.get(name, []), rivals(columns), metric)
            if one is not None and one.columns > 1:
                found.append(one)
    return found


def tally(places: list[Place], name: str) -> str:
    """Put into a sentence how often a column of ours is first."""
    counts = Counter(one.verdict for one in places)
    parts = ", ".join(f"{verdict} in {counts[verdict]}" for verdict in VERDICTS if counts[verdict])
    return f"`{name}`: {len(places)} comparisons, {parts}."


def losses(places: list[Place], rows: dict[tuple[str, str], Columns]) -> list[str]:
    """Name the rows in which a column of ours is behind, and the winner."""
    lines: dict[tuple[str, str], list[str]] = {}
    for one in places:
        if one.verdict == "behind":
            columns = rows[one.table, one.row]
            # The largest mean of all may be no winner, where it hangs on a few draws.
            found = [_place(columns[name], {}, one.metric) for name in one.winners]
            best = max((other for other in found if other), key=lambda other: other.mean)
            more = len(one.winners) - 1
            others = f" and {more} more" if more else ""
            text = f"{one.metric} {one.mean:.3f}, {best.method} {best.mean:.3f}{others}"
            lines.setdefault((one.table, one.row), []).append(text)
    return [f"- {table}, {row}: {'; '.join(texts)}" for (table, row), texts in lines.items()]


def render(records: list[RunRecord]) -> str:
    """Return the whole text for the front page."""
    rows = by_row(records)
    times = [one.cpu_seconds for one in records if one.cpu_seconds is not None]
    lines = [
        *table(rows),
        "",
        LEGEND,
        "",
    ]
    found = {name: _standings(rows, name) for name in (AUTO, OURS)}
    counted = [name for name, places in found.items() if places]
    lines.append(
        "In all rows of all tables, by AC and by NMI: "
        + " ".join(tally(found[name], name) for name in counted)
    )
    lost = losses(found[counted[0]], rows) if counted else []
    if lost:
        lines += ["", f"`{counted[0]}` is behind in:", "", *lost]
    hours = sum(times) / SECONDS_OF_AN_HOUR
    lines += [
        "",
        f"Behind all tables are {len(times):,} fits, {hours:.1f} hours of processor time.",
    ]
    return "\n".join(lines) + "\n"


def problems(root: Path = ROOT) -> list[str]:
    """Return what differs from the records, one sentence each."""
    block = render(present(read_records(root / RECORDS)))
    if (root / PAGE).is_file() and (root / PAGE).read_text(encoding="utf-8") == block:
        return []
    return [f"{PAGE} is not what {RECORDS} gives: run python docs/front_table.py."]


def main(arguments: list[str]) -> int:
    """Write the table, or check it."""
    if "--check" in arguments:
        found = problems()
        for problem in found:
            print(problem)
        return 1 if found else 0
    block = render(present(read_records(ROOT / RECORDS)))
    (ROOT / PAGE).write_text(block, encoding="utf-8")
    print(f"Wrote {PAGE}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
