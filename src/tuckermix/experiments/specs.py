"""What a table or a figure is made of: data, draws, core sizes, methods and runs.

Nothing here computes. A :class:`Row` says which samples a run sees, an :class:`Experiment` is a
table of rows and methods, a :class:`Figure` points at the runs of a table whose course or centroids
it draws.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tuckermix._records import Record
from tuckermix._validation import check_option

__all__ = ["Experiment", "Figure", "Row"]

REDRAWS = ("classes", "samples", "nothing")


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
        The number of runs.
    classes : tuple of int or None, default=None
        The classes, where they are fixed beforehand.
    redraw : {"classes", "samples", "nothing"}, default="samples"
        What changes from run to run: the classes and the samples, the samples of classes that are
        drawn once for the row, or nothing but the random start.
    draw : str or None, default=None
        Rows with the same value see the same samples; None means the row's own name.
    settings : mapping, default={}
        Parameters for every method that lets the row choose its start.
    keep : tuple of {"history", "components"}, default=()
        What else a record keeps, for the figures.
    paper_row : str or None, default=None
        The row of the paper's table that stands beside it; None means the row's own name, "" none.
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
    draw: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    keep: tuple[str, ...] = ()
    paper_row: str | None = None
    comparable: bool = True
    note: str = ""

    def __post_init__(self) -> None:
        check_option(self.redraw, "redraw", "Row", REDRAWS)
        if self.classes is not None and self.n_classes not in (None, len(self.classes)):
            raise ValueError(
                f"Row {self.name!r} fixes {len(self.classes)} classes but has "
                f"n_classes={self.n_classes}: leave n_classes out."
            )

    def parameters(self) -> dict[str, Any]:
        """Return what determines the numbers of the row, without the remarks on it."""
        return {
            "dataset": self.dataset,
            "ranks": list(self.ranks),
            "n_classes": len(self.classes) if self.classes else self.n_classes,
            "per_class": self.per_class,
            "classes": list(self.classes) if self.classes else None,
            "redraw": self.redraw,
            "draw": self.draw or self.name,
            "settings": dict(self.settings),
            "keep": list(self.keep),
        }


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
    """

    name: str
    title: str
    rows: tuple[Row, ...]
    methods: tuple[str, ...]
    order: int = 0
    note: str = ""

    def row(self, name: str) -> Row:
        """Return the row called `name`."""
        for row in self.rows:
            if row.name == name:
                return row
        names = ", ".join(repr(row.name) for row in self.rows)
        raise KeyError(f"{self.name} has no row {name!r}: its rows are {names}.")


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
        Which rows and methods of that table; run 0 of each is drawn.
    note : str, default=""
        What a reader must know.
    """

    name: str
    title: str
    experiment: str
    rows: tuple[str, ...]
    methods: tuple[str, ...]
    note: str = ""
