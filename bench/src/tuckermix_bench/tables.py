"""What the tables and figures are made of: rows, columns, settings, and the paper's own numbers.

Nothing here computes. A :class:`Row` says which samples a run sees, an :class:`Experiment` is a
table of rows and methods, a :class:`Figure` points at the runs of a table whose course or centroids
it draws; a :class:`Cell` is one run of a method in a row, and has a digest of all that determines
it. Titles and notes stand in ``declared.toml``. What a table shows besides is said in its
specification, so that a new table is data.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tuckermix._records import Record
from tuckermix._validation import check_option
from tuckermix_bench.draws import (
    EVERYTHING,
    PARTS,
    PLANTED_SHAPES,
    REPORTING,
    TUNING_CLASSES,
    seed_of,
)
from tuckermix_bench.methods import DECLARED, METHODS, Method, declared, select_methods

__all__ = [
    "EXPERIMENTS",
    "FIGURES",
    "LIBRARIES",
    "PAPER_SCORES",
    "QUICK_EXPERIMENTS",
    "Cell",
    "Experiment",
    "Figure",
    "PaperScore",
    "Row",
    "cells_of",
    "paper_score",
    "resolve_targets",
    "source_of",
]

PAPER, QUICK = "paper", "quick"
"""The two profiles: the paper's settings, and miniature ones for checks."""

DRAWS, FEW_RUNS, FEWEST_RUNS = 20, 5, 3
"""Runs of a row where a draw is cheap, of methods that are dear, most of which take more than 20
seconds a fit, and of those that take minutes."""

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
        Rows with the same value see the same samples; None means the row's own name.
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
        # Records from before there were parts were drawn from everything and stay valid.
        later: dict[str, Any] = {} if self.part == EVERYTHING else {"part": self.part}
        if self.change:
            later["change"] = dict(self.change)
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
            **later,
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
    spread : str, default=""
        A row whose best and worst runs are shown as well.
    quick_rows : tuple of str, default=()
        The rows of the quick setting; without any, the first and the last.
    """

    name: str
    title: str
    rows: tuple[Row, ...]
    methods: tuple[str, ...]
    order: int = 0
    note: str = ""
    spread: str = ""
    quick_rows: tuple[str, ...] = ()

    def row(self, name: str) -> Row:
        """Return the row called `name`."""
        for row in self.rows:
            if row.name == name:
                return row
        names = ", ".join(repr(row.name) for row in self.rows)
        raise KeyError(f"{self.name} has no row {name!r}: its rows are {names}.")

    def columns_of(self, row: Row) -> tuple[str, ...]:
        """Return the columns that are run in a row."""
        return tuple(name for name in self.methods if name not in row.without)

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
        return min(row.runs, FEW_RUNS) if names & set(known.slow_on) else known.runs_in(row.runs)


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


OURS = "TuckerClustering"
AUTO = "AutoClustering"
PAPERS_OWN = "PCA-Multinomial"
ORIENTATION = ("k-means", "spectral")
MATRIX_METHODS = ("MM", "ALS", "B-NMF", "PGM", "DRCC")
VECTOR_RIVALS = ("LSR", "LSR (tuned)", "AutoSC", "A-DSSC", "EnSC", "EnSC (tuned)", "SSC-OMP")
RIVALS = (*VECTOR_RIVALS, "PCA + spectral", "spectral, unit rows")
"""The columns of rivals. UMAP and HDBSCAN are asked for by ``--methods``: the first needs a package
that nothing else does, the second gives a number of clusters of its own."""
ON_SCATTERING = tuple(f"{name}, scattering" for name in VECTOR_RIVALS if "tuned" not in name)
"""The rivals that their authors run on scattering coefficients, and LSR beside them."""
OURS_ON_SCATTERING = ("TuckerClustering, scattering", "TuckerClustering, log-scattering")
"""Our method on two fixed views of images, between which AutoClustering chooses among others."""
ABLATIONS = ("ours on pixels", "ours, k-means", "PCA, our labels")
"""The columns that replace one part of our method by another."""
ON_MM = "MM, our labels"
"""One more, for data that are not negative."""
TRUER = ("B-NMF (multinomial)", "DRCC (searched)")
"""The paper's methods as it or their authors probably ran them."""
TENSOR_METHODS = ("PCA-B", "ASI-T", PAPERS_OWN, *ORIENTATION, *RIVALS, OURS, AUTO, *ABLATIONS)
ALL_METHODS = (*MATRIX_METHODS, *TRUER, "Tri-ONTD", *TENSOR_METHODS, ON_MM, *OURS_ON_SCATTERING)
SCATTERED_METHODS = (*ALL_METHODS, *ON_SCATTERING)
"""For images, with the rivals on scattering coefficients as well."""
ONE_START = "PCA-Multinomial-1"
SEARCHED = "DRCC (searched)"
FLATTENED = "ours on pixels"
SWEPT_METHODS = ("MM", "DRCC", "PCA-B", PAPERS_OWN, "k-means", OURS)
"""The columns of the sweeps over sizes and cores, which have twenty-two rows."""

FACE_CORE = (12, 12)
"""The paper's core for 32 × 32 faces; it names it for PIE and is silent on ORL and Yale B."""
CBCL_CORE = (8, 8)
"""The size at which the paper found its best results on CBCL."""
MNIST_CORE = (14, 14)
"""Half of each side. The paper does not give its core for MNIST."""
TEXTURE_CORE = (12, 12, 12)
"""The paper's 30 of 50 in each mode is 0.6 of the side: 12 of the stand-in's 20."""
VOXEL_CORE = (19, 19, 19)
"""0.6 of the voxel grid's 32, rounded."""

PIE_SAMPLES = {68: 9, 58: 11, 48: 13, 38: 16, 28: 21, 18: 33, 8: 42}
"""Images a person by number of persons, from the text of Experiment III."""
TEXTURE_SAMPLES = {2: 100, 3: 90, 4: 90, 6: 80, 8: 75, 10: 60, 12: 55}
"""Videos a class by number of classes: the totals of Experiment V divided by the classes."""
VOXEL_CLASSES = 10
PIE_REPORTING = 68 - TUNING_CLASSES["pie"]
"""Rows with more persons than the reporting part has are drawn from everybody."""
NOT_IN_TABLE_3: dict[int, tuple[str, ...]] = dict.fromkeys(range(3, 11), (SEARCHED, ONE_START)) | {
    4: (),
    10: (SEARCHED,),
}
NOT_IN_TABLE_4: dict[int, tuple[str, ...]] = dict.fromkeys(PIE_SAMPLES, (SEARCHED, ONE_START)) | {
    68: (SEARCHED,),
    38: (SEARCHED,),
    28: (ONE_START,),
    8: (SEARCHED,),
}
"""Two columns stand in a few rows only: DRCC at the best of 50 settings, an upper bound that takes
a minute, and the paper's method with one start of k-means, which is compared with its numbers only
where there are any."""
DEAR = ("AutoSC", "AutoSC, scattering", "EnSC, scattering", "A-DSSC, scattering")
"""Left out where there are more than two thousand samples: minutes a fit."""
_DRAWN: dict[str, Any] = {"runs": DRAWS, "part": REPORTING}
_UNSEEN: dict[str, Any] = _DRAWN | {"comparable": False}
_REDRAWN: dict[str, Any] = _UNSEEN | {"redraw": "classes"}
_WHOLE: dict[str, Any] = {"runs": 1, "redraw": "nothing", "comparable": False}


EXPERIMENTS: dict[str, Experiment] = {}
"""The paper's tables at its full settings, one of further data and rivals, the sweeps of its first
experiment, of which it prints no numbers, and the curves."""


def _add(name: str, rows: Iterable[Row], methods: tuple[str, ...]) -> None:
    """Add a table of these rows and columns, with what is declared of it."""
    facts = declared("tables")[name]
    EXPERIMENTS[name] = Experiment(name, rows=tuple(rows), methods=methods, **facts)


_TABLE_1_DRAW: dict[str, Any] = {
    "dataset": "pie",
    "ranks": FACE_CORE,
    "n_classes": 24,
    "per_class": 42,
    "redraw": "nothing",
    "part": REPORTING,
    "draw": "starts",
    "keep": ("history",),
}

_add(
    "table1",
    (
        Row("random", runs=20, paper_runs=20, settings={"init": "random"}, **_TABLE_1_DRAW),
        Row("HOSVD I", runs=1, settings={"init": "hosvd"}, **_TABLE_1_DRAW),
        Row("HOSVD II", runs=1, settings={"init": "hosvd-samples"}, **_TABLE_1_DRAW),
    ),
    (PAPERS_OWN, OURS),
)

_add(
    "table2",
    (Row("CBCL", "cbcl", CBCL_CORE, per_class=600, paper_runs=10, **_DRAWN),),
    (*SCATTERED_METHODS, ONE_START),
)

_add(
    "table3",
    (
        Row(
            f"K={count}",
            "mnist",
            MNIST_CORE,
            n_classes=count,
            per_class=100,
            classes=(2, 3, 7, 9) if count == 4 else None,
            keep=("components",) if count == 4 else (),
            comparable=count in (4, 10),
            without=NOT_IN_TABLE_3[count],
            note="" if count in (4, 10) else "The paper does not say which digits it drew.",
            **_DRAWN,
        )
        for count in range(3, 11)
    ),
    (*SCATTERED_METHODS, ONE_START),
)

_add(
    "table4",
    (
        Row(
            f"K={count}",
            "pie",
            FACE_CORE,
            n_classes=count,
            per_class=per_class,
            runs=DRAWS,
            part=REPORTING if count <= PIE_REPORTING else EVERYTHING,
            redraw="classes",
            without=NOT_IN_TABLE_4[count],
        )
        for count, per_class in PIE_SAMPLES.items()
    ),
    (*ALL_METHODS, ONE_START),
)

_add(
    "table5",
    (
        Row("ORL", "orl", FACE_CORE, n_classes=10, redraw="classes", **_DRAWN),
        Row("YaleB", "yaleb", FACE_CORE, runs=1, redraw="nothing", without=(SEARCHED, *DEAR)),
        Row(
            "YaleB, 10 persons",
            "yaleb",
            FACE_CORE,
            n_classes=10,
            redraw="classes",
            paper_row="",
            without=(SEARCHED, ONE_START),
            note="Not in the paper, which has one run on all persons: a run says nothing of noise.",
            **_DRAWN,
        ),
    ),
    (*SCATTERED_METHODS, ONE_START),
)

_add(
    "table6",
    (
        Row(
            f"{title}, K={count}",
            dataset,
            core,
            n_classes=count,
            per_class=per_class,
            runs=FEW_RUNS,
            paper_row=f"K={count}",
            comparable=False,
            note="Not DynTex++: the paper's numbers are for orientation only.",
        )
        for title, dataset, core in (
            ("dynamic-texture stand-in", "dynamic-textures", TEXTURE_CORE),
            ("ModelNet10 voxels", "modelnet10", VOXEL_CORE),
        )
        for count, per_class in TEXTURE_SAMPLES.items()
        if dataset != "modelnet10" or count <= VOXEL_CLASSES
    ),
    tuple(name for name in TENSOR_METHODS if not name.startswith("EnSC")),
)

BEYOND_METHODS = (
    *("MM", "DRCC", "Tri-ONTD", "PCA-B", "ASI-T", PAPERS_OWN),
    *ORIENTATION,
    *RIVALS,
    *ON_SCATTERING,
    *(OURS, AUTO),
    *OURS_ON_SCATTERING,
    FLATTENED,
)
"""The columns beyond the paper's tables; its methods that take a minute and more are left out."""
SCALABLE = ("k-means", OURS, AUTO, *OURS_ON_SCATTERING, FLATTENED)
"""The columns that need no matrix with a row and a column for each sample."""
NOT_SCALABLE = tuple(name for name in BEYOND_METHODS if name not in SCALABLE)
NOT_ON_ALL_OF_PIE = (*DEAR, "MM", "DRCC", "Tri-ONTD", PAPERS_OWN)
ON_IMAGES = (*ON_SCATTERING, *OURS_ON_SCATTERING)
"""The columns that need images of at least 16 × 16 pixels."""
NOT_ON_VOLUMES = (*ON_IMAGES, "MM", "DRCC", "Tri-ONTD", "EnSC", "EnSC (tuned)")
"""Not run on volumes of up to 32,768 entries, where a fit takes minutes, or made for images."""
DIGITS_CORE, BANDS_CORE = (6, 6), (30,)
"""Three quarters of each side of the digits; of 156 bands as many as Samson's unmixing takes."""

_add(
    "beyond",
    (
        Row("PIE, 24 persons", "pie", FACE_CORE, n_classes=24, per_class=42, **_REDRAWN),
        Row("PIE, 68 persons", "pie", FACE_CORE, without=NOT_ON_ALL_OF_PIE, **_WHOLE),
        Row("ORL, 10 persons", "orl", FACE_CORE, of=("table5", "ORL")),
        Row("Yale B, 10 persons", "yaleb", FACE_CORE, of=("table5", "YaleB, 10 persons")),
        Row("CBCL, 2 × 600", "cbcl", CBCL_CORE, of=("table2", "CBCL")),
        Row("MNIST, 10 × 100", "mnist", MNIST_CORE, of=("table3", "K=10")),
        Row("MNIST, 70,000", "mnist", MNIST_CORE, without=NOT_SCALABLE, **_WHOLE),
        Row("COIL-20, 10 objects", "coil20", FACE_CORE, n_classes=10, **_REDRAWN),
        Row("COIL-20, 20 objects", "coil20", FACE_CORE, per_class=36, **_UNSEEN),
        Row("Yale, 10 persons", "yale", FACE_CORE, n_classes=10, **_REDRAWN),
        Row("Yale, 15 persons", "yale", FACE_CORE, per_class=8, **_UNSEEN),
        Row("digits, 10 × 80", "digits", DIGITS_CORE, per_class=80, without=ON_IMAGES, **_UNSEEN),
        Row(
            "voxels, 10 × 40",
            "modelnet10",
            VOXEL_CORE,
            per_class=40,
            without=NOT_ON_VOLUMES,
            **_UNSEEN | {"runs": FEW_RUNS},
        ),
        Row(
            "dynamic textures, 12 × 55",
            "dynamic-textures",
            TEXTURE_CORE,
            of=("table6", "dynamic-texture stand-in, K=12"),
            without=NOT_ON_VOLUMES,
        ),
        Row(
            "Samson, 3 × 300",
            "samson",
            BANDS_CORE,
            per_class=300,
            runs=DRAWS,
            comparable=False,
            without=ON_IMAGES,
            note="Spectra of pixels; the class of a pixel is the material that it has most of.",
        ),
    ),
    BEYOND_METHODS,
)

SWEPT_SIZES = range(200, 1601, 100)
"""Images of each class, from the text of Experiment I."""
SWEPT_CORES = range(4, 11)
"""Core sizes, from the text of Experiment I."""

_add(
    "sizes",
    (
        Row(f"{count} a class", "cbcl", CBCL_CORE, per_class=count, runs=FEW_RUNS, paper_row="")
        for count in SWEPT_SIZES
    ),
    SWEPT_METHODS,
)

_add(
    "cores",
    (
        Row(
            f"{size} × {size}",
            "cbcl",
            (size, size),
            per_class=600,
            runs=FEW_RUNS,
            part=REPORTING,
            draw="cores",
            paper_row="",
        )
        for size in SWEPT_CORES
    ),
    ("PCA-B", PAPERS_OWN, OURS),
)

CURVE_PERSONS, CURVE_IMAGES = 20, 21
"""PIE for the curves: 420 images, half of those of each person."""
CURVE_RUNS = 10
NOISES = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Standard deviations of the noise, in those of the images."""
COUNTS = (3, 5, 10, 20, 40)
SIDES = (8, 16, 24, 32, 48)
GAPS = (0.0, 0.2, 0.4, 0.6, 0.8)
PLANTED_EACH = 20
"""Samples of each planted cluster in a draw."""
PLANTED_CORE = {2: (40,), 3: (8, 8), 4: (4, 4, 4)}

_FACES: dict[str, Any] = {
    "dataset": "pie",
    "ranks": FACE_CORE,
    "per_class": CURVE_IMAGES,
    "n_classes": CURVE_PERSONS,
    "redraw": "classes",
    "part": REPORTING,
    "runs": CURVE_RUNS,
    "comparable": False,
    "paper_row": "",
}


def _faces(curve: str, at: float, **options: Any) -> Row:
    """Return a point of a curve on PIE; all points of a curve see the same draws."""
    given: dict[str, Any] = _FACES | {"draw": curve} | options
    return Row(f"{curve}: {at:g}", on=(curve, at), **given)


_add(
    "curves",
    (
        *(_faces("noise", at, change={"noise": at} if at else {}) for at in NOISES),
        *(_faces("images a person", at, per_class=at) for at in COUNTS),
        *(
            _faces("pixels a side", at, change={"side": at}, ranks=(min(at, FACE_CORE[0]),) * 2)
            for at in SIDES
        ),
        *(
            _faces(
                "share missing",
                at,
                change={"missing": at} if at else {},
                settings={"missing": "impute"},
            )
            for at in GAPS
        ),
        *(
            Row(
                f"ways of the array: {ways}",
                f"planted-{ways}",
                PLANTED_CORE[ways],
                runs=CURVE_RUNS,
                comparable=False,
                paper_row="",
                per_class=PLANTED_EACH,
                on=("ways of the array", ways),
            )
            for ways in PLANTED_SHAPES
        ),
    ),
    (OURS, FLATTENED),
)

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
    name: _quick(table) for name, table in EXPERIMENTS.items()
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
    names = [target for target in asked if not isinstance(target, Experiment)]
    for name in names:
        check_option(name, "targets", "reproduce", [*EXPERIMENTS, *FIGURES, "all"])
    for table in own:
        if table.name in EXPERIMENTS or table.name in FIGURES:
            raise ValueError(
                f"An experiment of your own cannot be called {table.name!r}, the name of a table "
                "or figure of the paper: choose another name."
            )
    everything = "all" in names or not asked
    tables = LIBRARIES[QUICK if quick else PAPER]
    return (
        [table for name, table in tables.items() if everything or name in names] + own,
        [figure for name, figure in FIGURES.items() if everything or name in names],
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
    settings: Mapping[str, Any]
    version: str
    order: tuple[int, ...]

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What identifies the cell's record in a store."""
        return (self.profile, self.experiment, self.row.name, self.method, self.run)

    @property
    def seed(self) -> int:
        """The random state handed to the method."""
        return seed_of(self.experiment, self.row.name, self.method, self.run)

    def parameters(self) -> dict[str, Any]:
        """Return everything that determines the cell's numbers, but for the code."""
        return {
            **self.row.parameters(),
            "settings": dict(self.settings),
            "seed": self.seed,
            "version": self.version,
        }

    @property
    def digest(self) -> str:
        """A digest of the parameters: a record with another one belongs to other settings."""
        text = json.dumps([*self.key, self.parameters()], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return f"{self.experiment} · {self.row.name} · {self.method} · run {self.run}"


def _cell(table: Experiment, row: Row, method: Method, run: int, profile: str) -> Cell:
    settings = dict(method.settings)
    if profile == QUICK:
        settings |= method.quick_settings
    if method.takes_start:
        settings |= row.settings
    order = (method.cost, run, table.order, table.rows.index(row))
    return Cell(profile, table.name, row, method.name, run, settings, method.version, order)


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
