"""What the tables and figures are made of: rows, columns, settings, and the paper's own numbers.

Nothing here computes. A :class:`Row` says which samples a run sees, an :class:`Experiment` is a
table of rows and methods, a :class:`Figure` points at the runs of a table whose course or centroids
it draws; a :class:`Cell` is one run of a method in a row, and has a digest of all that determines
it. Rows, columns, titles and notes stand in ``declared.toml``: a new table is data.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tuckermix._records import Record
from tuckermix._validation import check_option
from tuckermix_bench.draws import EVERYTHING, PARTS, seed_of
from tuckermix_bench.methods import DECLARED, METHODS, Method, declared, select_methods, tupled

PAPER, QUICK = "paper", "quick"
"""The two profiles: the paper's settings, and miniature ones for checks."""

FEW_RUNS, FEWEST_RUNS = 5, 3
"""Runs of methods that are slow on a row, most of which take more than 20 seconds per fit, and of
those that take minutes."""

REDRAWS = ("classes", "samples", "nothing")
FIGURE_KINDS = ("errors", "centroids", "curves")
CHANGES = ("noise", "missing", "side")
"""What can be done to the samples of a draw."""


@dataclass(frozen=True)
class Row(Record):
    """A row of a table: which samples each run sees, and at what core size they are clustered.

    Attributes
    ----------
    name : str
        The row's name within its table.
    dataset : str
        A name in the registry of datasets.
    ranks : tuple of int
        The core size along the feature modes.
    n_classes : int or None, default=None
        How many classes are drawn; None takes all.
    per_class : int or None, default=None
        How many samples of each class are drawn; None takes all.
    runs : int, default=5
        The number of runs; a method that is slow on the table gets at most `FEW_RUNS`.
    classes : tuple of int or None, default=None
        The classes, where they are fixed beforehand.
    redraw : {"classes", "samples", "nothing"}, default="samples"
        What changes from run to run: the classes and the samples, the samples of classes that are
        drawn once for the row, or nothing but the random start.
    part : {"all", "reporting", "tuning"}, default="all"
        The part of the dataset from which samples are drawn: all of it, what choices never look
        at, or what they look at.
    draw : str or None, default=None
        Rows of a table with the same value see the same samples; None means the row's own name,
        and "table/row" the samples of a row of another table.
    settings : mapping, default={}
        Parameters for every method that lets the row choose its start.
    keep : tuple of {"history", "components"}, default=()
        What else a record keeps, for the figures.
    change : mapping, default={}
        What is done to the samples after they are drawn: "noise" adds so many standard deviations
        of the samples, "missing" is the share of entries that become NaN, "side" the number of
        pixels of a side to which images are brought.
    without : tuple of str, default=()
        Columns of the table that are not run in this row, as they would take too long or take no
        samples of this kind.
    of : tuple of (str, str) or None, default=None
        The table and row whose draws and records these are, where a table shows a row of another.
    on : tuple of (str, float) or None, default=None
        The curve on which the row lies, and where.
    paper_row : str or None, default=None
        The row of the paper's table that stands beside it; None means the row's own name, "" none.
    paper_runs : int, default=5
        The number of runs behind the paper's means.
    comparable : bool, default=True
        Whether the data are those of the paper, so that a difference says something.
    note : str, default=""
        What a reader must know about the row.
    """

    name: str
    dataset: str
    ranks: tuple[int, ...]
    n_classes: int | None = None
    per_class: int | None = None
    runs: int = 5
    classes: tuple[int, ...] | None = None
    redraw: str = "samples"
    part: str = EVERYTHING
    draw: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    keep: tuple[str, ...] = ()
    change: Mapping[str, float] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    of: tuple[str, str] | None = None
    on: tuple[str, float] | None = None
    paper_row: str | None = None
    paper_runs: int = 5
    comparable: bool = True
    note: str = ""

    def __post_init__(self) -> None:
        check_option(self.redraw, "redraw", "Row", REDRAWS)
        check_option(self.part, "part", "Row", PARTS)
        for name in self.change:
            check_option(name, "change", "Row", CHANGES)
        if self.classes is not None and self.n_classes not in (None, len(self.classes)):
            raise ValueError(
                f"Row {self.name!r} fixes {len(self.classes)} classes but has "
                f"n_classes={self.n_classes}: leave n_classes out."
            )

    def parameters(self) -> dict[str, Any]:
        """Return what determines the numbers of the row, without the remarks on it."""
        names = ("dataset", "ranks", "per_class", "classes", "redraw", "settings", "keep")
        values = {name: self[name] for name in names}
        values["n_classes"] = len(self.classes) if self.classes else self.n_classes
        values["draw"] = self.draw or self.name
        # Records from before there were parts were drawn from everything and stay valid.
        if self.part != EVERYTHING:
            values["part"] = self.part
        if self.change:
            values["change"] = self.change
        return values


@dataclass(frozen=True)
class Experiment(Record):
    """A table: rows by methods.

    Attributes
    ----------
    name : str
        The name by which it is asked for.
    title : str
        The heading.
    rows : tuple of Row
        The rows.
    methods : tuple of str
        The columns, names in the registry of methods.
    order : int, default=0
        Tables with a smaller number run earlier.
    note : str, default=""
        What the paper leaves open and how it was settled here.
    spread : str, default=""
        A row whose best and worst runs are shown as well.
    quick_rows : tuple of str, default=()
        The rows of the quick setting; without any, the first and the last.
    quick : bool, default=True
        Whether the quick setting has the table; not where small open data lack what it is about.
    """

    name: str
    title: str
    rows: tuple[Row, ...]
    methods: tuple[str, ...]
    order: int = 0
    note: str = ""
    spread: str = ""
    quick_rows: tuple[str, ...] = ()
    quick: bool = True

    def row(self, name: str) -> Row:
        """Return the row called `name`."""
        rows = {row.name: row for row in self.rows}
        if name not in rows:
            names = ", ".join(map(repr, rows))
            raise ValueError(f"{self.name} has no row {name!r}: its rows are {names}.")
        return rows[name]

    def runs_of(self, row: Row, method: str) -> int:
        """Return how many runs of a row a method gets."""
        if method in row.without:
            return 0
        known = METHODS.get(method)
        if known is None:
            return row.runs
        names = {self.name, f"{self.name}/{row.name}"}
        if names & set(known.slowest_on):
            return min(row.runs, FEWEST_RUNS)
        if names & set(known.slow_on):
            return min(row.runs, FEW_RUNS)
        # A row of a single run has nothing that changes from run to run.
        return row.runs if row.runs == 1 else max(row.runs, known.runs or 0)


@dataclass(frozen=True)
class Figure(Record):
    """A figure, drawn from the records of a table.

    Attributes
    ----------
    name, title : str
        The name by which it is asked for, and the heading.
    experiment : str
        The table whose runs it shows.
    rows, methods : tuple of str
        Which rows and methods of that table; run 0 of each is drawn. "curves" has all rows, and the
        mean over all runs.
    kind : {"errors", "centroids", "curves"}
        What is drawn: the error of each iteration, the centres as pictures, or accuracy and time
        against what changes from row to row.
    note : str, default=""
        What a reader must know.
    """

    name: str
    title: str
    experiment: str
    rows: tuple[str, ...]
    methods: tuple[str, ...]
    kind: str
    note: str = ""

    def __post_init__(self) -> None:
        check_option(self.kind, "kind", "Figure", FIGURE_KINDS)


OURS, AUTO, PAPERS_OWN = "TuckerClustering", "AutoClustering", "PCA-Multinomial"


def columns_in(names: Iterable[str]) -> tuple[str, ...]:
    """Put the columns of a group in the place of its name behind an @."""
    groups = DECLARED["groups"]
    return tuple(
        column
        for name in names
        for column in (columns_in(groups[name[1:]]) if name.startswith("@") else (name,))
    )


def _declared_table(name: str, facts: dict[str, Any]) -> Experiment:
    same, columns = facts.pop("same", {}), columns_in(facts.pop("columns"))
    rows = (tupled(same | own) for own in facts.pop("rows"))
    made = [Row(**row | {"without": columns_in(row.get("without", ()))}) for row in rows]
    return Experiment(name, rows=tuple(made), methods=columns, **facts)


EXPERIMENTS = {name: _declared_table(name, facts) for name, facts in declared("tables").items()}
"""The paper's tables at its full settings, one of further data and rivals, the sweeps of its first
experiment, of which it prints no numbers, and the curves."""

FIGURES = {name: Figure(name, **facts) for name, facts in declared("figures").items()}
"""The paper's figures with numbers in them, and the curves."""


@dataclass(frozen=True)
class PaperScore(Record):
    """A cell of the paper.

    Attributes
    ----------
    mean : float
        What it prints, the mean over its runs.
    variance : float or None
        The variance over the runs; None for a single run.
    best, worst : float or None
        The best and the worst run, which the paper gives for its random starts only.
    """

    mean: float
    variance: float | None = None
    best: float | None = None
    worst: float | None = None


def _read_printed(text: str) -> dict[tuple[str, str, str], PaperScore]:
    """Read a printed table into scores by (row, method, metric)."""
    methods, *lines = (line.split() for line in text.strip().splitlines())
    found: dict[tuple[str, str, str], dict[str, float]] = {}
    for words in lines:
        *row, metric, statistic = words[: -len(methods)]
        for method, value in zip(methods, words[-len(methods) :], strict=True):
            score = found.setdefault((" ".join(row), method, metric), {})
            if statistic == "deviation":
                score["variance"] = float(value) ** 2
            else:
                score[statistic] = float(value)
    return {key: PaperScore(**values) for key, values in found.items()}


PAPER_SCORES = {name: _read_printed(text) for name, text in DECLARED["printed"].items()}
"""Scores by table, then by (row, method, "AC" or "NMI")."""


def paper_score(table: str, row: str, method: str, metric: str) -> PaperScore | None:
    """Return the paper's score for a cell, or None where the paper has none.

    Parameters
    ----------
    table : str
        "table1" … "table6".
    row : str
        The paper's row, such as "K=4" or "ORL".
    method : str
        The column, here or in the paper.
    metric : {"AC", "NMI"}
        The measure.

    Returns
    -------
    score : PaperScore or None
        Mean and variance as printed.
    """
    known = METHODS.get(method)
    column = known.variant_of if known is not None and known.variant_of else method
    return PAPER_SCORES.get(table, {}).get((row, column, metric))


def _quick(table: Experiment) -> Experiment:
    """Shrink a table to seconds, on data that everybody has, keeping its names and its form."""
    names = table.quick_rows or (table.rows[0].name, table.rows[-1].name)
    small = []
    for full in map(table.row, dict.fromkeys(names)):
        volumes = len(full.ranks) == 3
        small.append(
            replace(
                full,
                dataset="quick-videos" if volumes else "digits",
                ranks=(4,) * len(full.ranks),
                n_classes=None if full.classes else (4 if volumes else 3),
                per_class=20,
                runs=1 if full.runs == 1 else 2,
                paper_row="",
                comparable=False,
            )
        )
    return replace(
        table,
        title=f"{table.title} (quick setting)",
        rows=tuple(small),
        note="A check that everything runs. Its numbers say nothing about the paper.",
    )


QUICK_EXPERIMENTS: dict[str, Experiment] = {
    name: _quick(table) for name, table in EXPERIMENTS.items() if table.quick
}
"""The same tables in miniature, for continuous integration; they need no data."""


LIBRARIES = {PAPER: EXPERIMENTS, QUICK: QUICK_EXPERIMENTS}
"""The tables of each profile."""


def resolve_targets(
    targets: str | Experiment | Iterable[str | Experiment], *, quick: bool = False
) -> tuple[list[Experiment], list[Figure]]:
    """Turn names of tables and figures, or "all", into their specifications.

    Parameters
    ----------
    targets : str, Experiment, or iterable of them
        "all", names such as "table3" and "figure4", or experiments of one's own.
    quick : bool, default=False
        Whether the miniature tables are meant.

    Returns
    -------
    tables : list of Experiment
        The tables, the paper's in its order, one's own behind them.
    figures : list of Figure
        The figures.
    """
    asked = [targets] if isinstance(targets, str | Experiment) else list(targets)
    own = [target for target in asked if isinstance(target, Experiment)]
    names, known = [one for one in asked if isinstance(one, str)], [*EXPERIMENTS, *FIGURES]
    for name in names:
        check_option(name, "targets", "reproduce", [*known, "all"])
    if taken := [table.name for table in own if table.name in known]:
        raise ValueError(
            f"An experiment of your own cannot be called {taken[0]!r}, the name of a table or "
            "figure of the paper: choose another name."
        )
    chosen = known if "all" in names or not asked else names
    tables = LIBRARIES[QUICK if quick else PAPER]
    return (
        [table for name, table in tables.items() if name in chosen] + own,
        [figure for name, figure in FIGURES.items() if name in chosen],
    )


@dataclass(frozen=True)
class Cell(Record):
    """A row, a method and the number of a run.

    Attributes
    ----------
    profile : {"paper", "quick"}
        The settings.
    experiment : str
        The table's name.
    row : Row
        The row.
    method : str
        The column.
    run : int
        The number of the run, from 0.
    seed : int
        The random state handed to the method.
    settings : mapping
        The method's parameters beyond its defaults.
    version : str
        The method's version.
    order : tuple
        Where the cell stands in the queue: cheap methods first, then run by run over all tables, so
        that every table fills evenly.
    """

    profile: str
    experiment: str
    row: Row
    method: str
    run: int
    seed: int
    settings: Mapping[str, Any]
    version: str
    order: tuple[int, ...]

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What identifies the cell's record in a store."""
        return (self.profile, self.experiment, self.row.name, self.method, self.run)

    def parameters(self) -> dict[str, Any]:
        """Return everything that determines the cell's numbers, but for the code."""
        own = {"settings": dict(self.settings), "seed": self.seed, "version": self.version}
        return self.row.parameters() | own

    @property
    def digest(self) -> str:
        """A digest of the parameters: a record with another one belongs to other settings."""
        text = json.dumps([*self.key, self.parameters()], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _cell(table: Experiment, row: Row, method: Method, run: int, profile: str) -> Cell:
    settings = dict(method.settings)
    if profile == QUICK:
        settings |= method.quick_settings
    if method.takes_start:
        settings |= row.settings
    order = (method.cost, run, table.order, table.rows.index(row))
    seed = seed_of(table.name, row.name, method.was or method.name, run)
    return Cell(profile, table.name, row, method.name, run, seed, settings, method.version, order)


def source_of(
    table: Experiment, row: Row, library: Mapping[str, Experiment]
) -> tuple[Experiment, Row]:
    """Return the table and row whose records a row shows: its own, or those that it names."""
    if row.of is None:
        return table, row
    name, place = row.of
    return library[name], library[name].row(place)


def cells_of(
    tables: Iterable[Experiment],
    figures: Iterable[Figure] = (),
    *,
    runs: int | None = None,
    methods: Iterable[str] | None = None,
    profile: str = PAPER,
) -> list[Cell]:
    """List the cells of tables and figures in the order in which they are to be computed.

    Parameters
    ----------
    tables : iterable of Experiment
        The tables.
    figures : iterable of Figure, default=()
        The figures; each adds the runs of a table that it shows.
    runs : int or None, default=None
        The number of runs in place of each row's own.
    methods : iterable of str or None, default=None
        The columns in place of each table's own.
    profile : {"paper", "quick"}, default="paper"
        The settings.

    Returns
    -------
    cells : list of Cell
        Each once, cheap methods first.
    """
    chosen, library = None if methods is None else list(methods), LIBRARIES[profile]
    cells: dict[tuple[str, str, str, str, int], Cell] = {}
    for shown in tables:
        for place in shown.rows:
            columns = [name for name in chosen or shown.methods if name not in place.without]
            table, row = source_of(shown, place, library)
            for method in select_methods(columns):
                # A row of a single run has nothing that changes from run to run.
                count = table.runs_of(row, method.name) if runs is None or row.runs == 1 else runs
                for run in range(count):
                    cell = _cell(table, row, method, run, profile)
                    cells[cell.key] = cell
    for figure in figures:
        table = library[figure.experiment]
        for name in figure.rows:
            for method in select_methods(figure.methods):
                if chosen is None or method.name in chosen:
                    cell = _cell(table, table.row(name), method, 0, profile)
                    cells.setdefault(cell.key, cell)
    return sorted(cells.values(), key=lambda cell: cell.order)
