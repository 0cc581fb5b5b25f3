"""Methods of one's own: how one becomes a column, and where it stands among the published ones.

A method is named by the words ``module:object`` and imported where its cells are computed, in a
process of its own; nothing of it runs before. The object may be a class or a function that takes
the number of clusters and returns an estimator, an estimator ready made, or a function of samples
and number.

Every row of the tables has one set of draws, which follow from the names of table and row and the
number of the run. A new method is run on them and compared draw by draw with the records that the
package publishes: nothing of the other columns has to be computed again.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import inspect
import os
import sys
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from functools import partial, reduce
from importlib.machinery import PathFinder
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import numpy as np

from tuckermix._array_api import to_numpy
from tuckermix._files import csv_text
from tuckermix._names import VIEWS
from tuckermix._records import Record
from tuckermix._validation import check_option
from tuckermix_bench.methods import (
    METHODS,
    Method,
    MethodError,
    fitted_by,
    pixels,
    register_method,
    scattering,
)
from tuckermix_bench.runner import RunReport, published_records, run_cells
from tuckermix_bench.store import RunRecord, Store, read_records
from tuckermix_bench.summaries import VERDICTS, Place, is_rival, outdated, summarize
from tuckermix_bench.tables import LIBRARIES, PAPER, QUICK, Experiment, cells_of, source_of

NUMBERS = ("n_clusters", "n_components", "k")
"""How methods call the number of clusters, in the order in which the names are looked for."""
SEEDS = ("random_state", "seed")
"""How methods call the seed."""
PYTHON = ".py"

Cluster = Callable[[np.ndarray], Any]


def own_method(
    path: str,
    *,
    name: str | None = None,
    view: str = "auto",
    folder: str | os.PathLike[str] | None = None,
) -> Method:
    """Make a column of a method of one's own, without importing it.

    Parameters
    ----------
    path : str
        ``"module:object"``, or ``"file.py:object"``. The module is looked for in `folder` first,
        then among the installed ones.
    name : str or None, default=None
        The heading of the column; None means `path`.
    view : {"auto", "tensors", "pixels", "scattering"}, default="auto"
        What it is given: samples as they are, one row per sample, or the logarithm of their
        scattering coefficients. "auto" gives rows to what scikit-learn's tags say takes rows only,
        and the samples as they are to everything else.
    folder : path or None, default=None
        Where the module is looked for first; None means the current folder.

    Returns
    -------
    method : Method
        For ``methods=`` of :func:`tuckermix_bench.benchmark`. Its version is a digest of the
        module's file: when that changes, its cells are computed again.
    """
    check_option(view, "view", "own_method", VIEWS)
    module, colon, wanted = path.rpartition(":")
    if not (colon and module and wanted):
        raise ValueError(
            "A method must be named as module:object, such as mymethod:cluster. Got "
            f"{path!r} instead."
        )
    home = Path.cwd() if folder is None else Path(folder).resolve()
    if module.endswith(PYTHON):
        file = home / module
        if not file.is_file():
            raise ValueError(f"Method {path!r} names a file that is not there: check the path.")
        home, module = file.resolve().parent, file.stem
    source = _source(module, home)
    title = path if name is None else name
    if title in METHODS:
        raise ValueError(
            f"A column called {title!r} is already there: choose another name for your method."
        )
    return Method(
        title,
        OwnMethod(module, wanted, view, str(home), str(source or "")),
        version=hashlib.sha256(source.read_bytes()).hexdigest()[:12] if source else "1",
        description=f"{path}, a method of your own",
        on=view,
    )


def _source(module: str, folder: Path) -> Path | None:
    """Return the file of a module without running it; None for one that has no source."""
    top, *inner = module.split(".")
    spec = PathFinder.find_spec(top, [str(folder), *sys.path])
    if spec is None:
        raise ValueError(
            f"There is no module {top!r} in {str(folder)!r} nor among the installed packages: "
            "check its name, or go to its folder."
        )
    for name in inner:
        spec = spec and PathFinder.find_spec(name, spec.submodule_search_locations or [])
    file = Path((spec and spec.origin) or "")
    return file if file.suffix == PYTHON and file.is_file() else None


@dataclass(frozen=True)
class OwnMethod(Record):
    """The builder of the runs of a method of one's own: names only, so that it reaches any process.

    Attributes
    ----------
    module, wanted : str
        Where it is, and its name there.
    view : str
        One of `VIEWS`.
    folder, source : str
        The folder that is searched first, and the file, to say where an error comes from.
    """

    module: str
    wanted: str
    view: str
    folder: str
    source: str

    def __call__(self, n_clusters: int, ranks: Any, seed: int) -> SimpleNamespace:
        """Import the method and make it ready."""
        with self._explained():
            if self.folder not in sys.path:
                sys.path.insert(0, self.folder)
            found = reduce(getattr, self.wanted.split("."), importlib.import_module(self.module))
            cluster, rows = clusterer(found, n_clusters, seed)
        return fitted_by(partial(self._labelled, cluster, rows))

    def _labelled(self, cluster: Cluster, rows: bool, X: np.ndarray) -> SimpleNamespace:
        """Cluster samples."""
        flat = self.view == "pixels" or (rows and self.view != "tensors")
        with self._explained():
            seen = scattering(X, log=True) if self.view == "scattering" else X
            found = cluster(pixels(seen) if flat else seen)
            return SimpleNamespace(labels_=checked_labels(found, len(X)))

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say what goes wrong in the method, and in which line of the user's file."""
        try:
            with redirect_stdout(sys.stderr):  # results go to stdout, and nothing else
                yield
        except (Exception, SystemExit) as error:
            frames = traceback.extract_tb(error.__traceback__)
            lines = [one.lineno for one in frames if self.source and one.filename == self.source]
            where = f" ({Path(self.source).name}, line {lines[-1]})" if lines else ""
            text = f"{type(error).__name__}: {' '.join(str(error).split())}{where}"
            if isinstance(error, SystemExit):
                text = f"The method ended the program by sys.exit.{where}"
            raise MethodError(text) from error


def checked_labels(found: Any, n_samples: int) -> np.ndarray:
    """Return labels as integers, or raise with what is wrong with them.

    Parameters
    ----------
    found : array-like
        What the method returned.
    n_samples : int
        The number of samples.

    Returns
    -------
    labels : ndarray of shape (n_samples,)
        One integer per sample.
    """
    rule = f"labels must be one whole number for each of the {n_samples} samples. The method"
    if found is None:
        raise ValueError(f"{rule} returned None: let it return them.")
    labels = to_numpy(found) if hasattr(found, "shape") else np.asarray(found)
    if labels.shape != (n_samples,):
        hint = ": take argmax(axis=1) of memberships" if labels.ndim == 2 else ""
        raise ValueError(f"{rule} returned an array of shape {labels.shape}{hint}.")
    whole = np.full(n_samples, labels.dtype.kind in "biu")
    if labels.dtype.kind == "f":
        whole = np.isfinite(labels) & (labels == np.round(labels))
    if not whole.all():
        raise ValueError(f"{rule} returned {labels[~whole].tolist()[0]!r}: number the clusters.")
    return labels.astype(int)


def _told(function: Any, n_clusters: int, seed: int, *, after: int = 0) -> dict[str, int]:
    """Return what a function or class is told by name: the seed and the number of clusters.

    The number has a name of its own, or goes to the first parameter behind `after` others that has
    no default. A function without either finds the number itself.
    """
    parameters = _parameters(function)
    told = {name: seed for name in SEEDS if name in parameters}
    wanted = [name for name in NUMBERS if name in parameters]
    for name, one in [*parameters.items()][after:]:
        if one.kind is one.VAR_KEYWORD:
            wanted.append(NUMBERS[0])
        elif one.default is one.empty and one.kind is not one.VAR_POSITIONAL and name not in told:
            wanted.append(name)
    return told | dict.fromkeys(wanted[:1], n_clusters)


def _parameters(function: Any) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function or class; none where Python cannot tell."""
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return {}


def _is_model(found: Any) -> bool:
    return hasattr(found, "fit_predict") or hasattr(found, "fit")


def _labels_of(model: Any, X: np.ndarray) -> Any:
    """Fit a model and return its labels, by whichever of the usual ways it has."""
    if hasattr(model, "fit_predict"):
        return model.fit_predict(X)
    fitted = model.fit(X)
    model = model if fitted is None else fitted
    return model.labels_ if hasattr(model, "labels_") else model.predict(X)


def _copy_of(model: Any, n_clusters: int, seed: int) -> Any:
    """Return a fresh copy of a ready-made model with the number of clusters and the seed set."""
    model = copy.deepcopy(model)
    if not hasattr(model, "get_params"):
        for name in [name for name in NUMBERS if hasattr(model, name)][:1]:
            setattr(model, name, n_clusters)
        return model
    known = model.get_params(deep=True)
    # Steps of a pipeline are set as well; other names than the first mean other things there.
    wanted = {name: n_clusters for name in known if name.rpartition("__")[2] == NUMBERS[0]} or {
        name: n_clusters for name in NUMBERS if name in known
    }
    seeds = [name for name in known if name.rpartition("__")[2] == SEEDS[0]]
    wanted |= {name: seed for name in seeds if known[name] is None}
    return model.set_params(**wanted)


def _takes_rows(model: Any) -> bool:
    """Say whether scikit-learn's tags tell that a model takes rows of numbers only."""
    first = model.steps[0][1] if hasattr(model, "steps") else model
    if not hasattr(first, "__sklearn_tags__"):
        return False
    return not first.__sklearn_tags__().input_tags.three_d_array


def clusterer(found: Any, n_clusters: int, seed: int) -> tuple[Cluster, bool]:
    """Turn what a module offers into a function from samples to labels.

    Parameters
    ----------
    found : object
        A class, a function or a model.
    n_clusters, seed : int
        What it is told, where it asks.

    Returns
    -------
    cluster : callable
        From samples to labels.
    rows : bool
        Whether it is known to take one row per sample only.
    """
    if not inspect.isclass(found) and _is_model(found):
        model = _copy_of(found, n_clusters, seed)
    elif not callable(found):
        raise TypeError(
            "A method must be a class, a function or an object with fit_predict. Got a "
            f"{type(found).__name__} instead."
        )
    elif inspect.isclass(found) or next(iter(_parameters(found)), "") in NUMBERS:
        model = found(**_told(found, n_clusters, seed))
        if not _is_model(model):
            raise TypeError(
                f"{found.__name__} must make an object with fit_predict or fit. Got a "
                f"{type(model).__name__} instead."
            )
    else:
        return partial(found, **_told(found, n_clusters, seed, after=1)), False
    return partial(_labels_of, model), _takes_rows(model)


PLACES_DB = "tuckermix-bench.jsonl"
"""A file of its own: methods of one's own do not become columns of the paper's tables."""

PLACES_VERSION = 1
"""Grows when a column of the CSV of places changes its meaning or goes."""

ON_REQUEST = ("table1", "sizes", "cores", "curves", "network", "open")
"""Tables that vary one setting, leave the number of clusters open, or show samples of other tables:
run when they are named."""

BESIDE_QUICK = ("k-means", "spectral", "TuckerClustering")
"""Nothing is published of the quick setting, so these are computed there too; they take seconds."""

PLACE_FIELDS = (
    *("method", "table", "row", "dataset", "n_samples", "n_clusters", "metric", "draws"),
    *("mean", "error", "rank", "columns", "verdict", "rival", "rival_mean"),
    *("lead", "lead_error", "common_draws", "winners", "ties", "seconds", "cpu_seconds"),
)
"""The columns of the CSV of places, after the number of its version."""


def place_line(one: Place) -> dict[str, Any]:
    """Return a place as the CSV and the JSON have it."""
    lead = one.lead
    values = one.to_dict() | {
        "lead": None if lead is None else lead.mean,
        "lead_error": None if lead is None else lead.error,
        "common_draws": 0 if lead is None else lead.pairs,
        "winners": list(one.winners),
        "ties": list(one.ties),
    }
    return {name: values[name] for name in PLACE_FIELDS}


def places_csv(places: Iterable[Place]) -> str:
    """Render places as CSV, one line each; lists have a bar between their names.

    Parameters
    ----------
    places : iterable of Place
        The places.

    Returns
    -------
    text : str
        With a heading. The first column is the version of the schema.
    """
    lines: list[list[Any]] = [["schema_version", *PLACE_FIELDS]]
    for one in places:
        joined = {"winners": "|".join(one.winners), "ties": "|".join(one.ties)}
        lines.append([PLACES_VERSION, *(place_line(one) | joined).values()])
    return csv_text(lines)


@dataclass(frozen=True)
class Benchmark(Record):
    """The result of running methods beside the published columns.

    Attributes
    ----------
    places : tuple of Place
        One for each method, row and measure.
    failures : tuple of RunRecord
        The runs of these methods without a score, each with its ``error``.
    older : int
        How many published records belong to other draws or settings than today's and do not count.
    report : RunReport
        What was computed; its `absent` names datasets whose rows were left out.
    """

    places: tuple[Place, ...]
    failures: tuple[RunRecord, ...]
    older: int
    report: RunReport

    def tally(self, method: str, metric: str) -> dict[str, Any]:
        """Count how a method stands over all rows.

        Parameters
        ----------
        method, metric : str
            Whose, and by which measure.

        Returns
        -------
        tally : dict
            ``rows``, how many there are; how many of them are "first", "tied first", "behind",
            "single run" and "alone"; ``median_rank``, over those with other columns; and
            ``behind_whom``, the columns that are ahead, with the number of rows, most often first.
        """
        mine = [one for one in self.places if (one.method, one.metric) == (method, metric)]
        verdicts = Counter(one.verdict for one in mine)
        ranks = [one.rank for one in mine if one.verdict != "alone"]
        ahead = Counter(name for one in mine for name in one.winners)
        return {
            "rows": len(mine),
            **{verdict: verdicts[verdict] for verdict in VERDICTS},
            "median_rank": median(ranks) if ranks else None,
            "behind_whom": dict(ahead.most_common()),
        }


def choose_rows(
    wanted: Iterable[str] | None, library: Mapping[str, Experiment]
) -> list[Experiment]:
    """Return tables with the rows that are asked for.

    Parameters
    ----------
    wanted : iterable of str or None
        Names of tables ("table5"), of rows ("table5:ORL") and of datasets ("mnist"); None means
        all tables but those in `ON_REQUEST`.
    library : mapping of str to Experiment
        The tables.

    Returns
    -------
    tables : list of Experiment
        Each with the chosen rows only, those without any left out. A row that shows the records of
        another table stands for that one.
    """
    usual = [table for name, table in library.items() if name not in ON_REQUEST]
    chosen: dict[str, set[str]] = defaultdict(set)
    for words in [table.name for table in usual] if wanted is None else wanted:
        name, _, row = words.partition(":")
        if name in library:
            table = library[name]
            found = [(table, one) for one in ([table.row(row)] if row else table.rows)]
        else:
            found = [(table, row) for table in usual for row in table.rows if row.dataset == words]
        if not found:
            datasets = dict.fromkeys(row.dataset for table in usual for row in table.rows)
            raise ValueError(
                f"There are no rows {words!r}: name a table ({', '.join(library)}), a row as "
                f"table:row, or a dataset ({', '.join(datasets)})."
            )
        for table, one in found:
            source, shown = source_of(table, one, library)
            chosen[source.name].add(shown.name)
    return [
        replace(table, rows=tuple(row for row in table.rows if row.name in chosen[name]))
        for name, table in library.items()
        if chosen[name]
    ]


def benchmark(
    methods: Method | Iterable[Method],
    *,
    rows: Iterable[str] | None = None,
    runs: int | None = None,
    beside: Iterable[str] | None = None,
    quick: bool = False,
    db: str | os.PathLike[str] = PLACES_DB,
    records: str | os.PathLike[str] | None = None,
    **running: Any,
) -> Benchmark:
    """Run methods on the draws of the tables and compare them with the published columns.

    Parameters
    ----------
    methods : Method or iterable of Method
        From :func:`own_method`, or any other column that is not registered.
    rows : iterable of str or None, default=None
        Names of tables ("table5"), rows ("table5:ORL") and datasets ("mnist"); None means all but
        the tables that vary one setting. Rows whose dataset is not there are left out.
    runs : int or None, default=None
        The number of draws of each row, in place of as many as the tables have.
    beside : iterable of str or None, default=None
        Published columns to compute here as well, in place of their records; for times that can be
        compared. None means none, or three cheap ones with `quick`.
    quick : bool, default=False
        Whether to use the tables in miniature, on data that everybody has.
    db : path, default="tuckermix-bench.jsonl"
        The file for the records; a run that was stopped continues.
    records : path or None, default=None
        The published records; None means those that come with the package.
    **running
        How cells are computed: `data`, `jobs`, `time_limit`, `retry_failed`, `refresh` and
        `progress`, see :func:`reproduce`.

    Returns
    -------
    result : Benchmark
        Places, failures, and what was left out.
    """
    own = [methods] if isinstance(methods, Method) else list(methods)
    profile = QUICK if quick else PAPER
    tables = choose_rows(rows, LIBRARIES[profile])
    together = list(beside) if beside is not None else list(BESIDE_QUICK if quick else ())
    published = read_records(published_records() if records is None else records)
    with ExitStack() as known:
        for method in own:  # by their names, for a while
            register_method(method)
            known.callback(METHODS.pop, method.name)
        names = [method.name for method in own]
        cells = cells_of(tables, runs=runs, methods=[*names, *together], profile=profile)
        with Store(db) as store:
            report = run_cells(cells, store, **running)
            keys = {cell.key: cell.digest for cell in cells}
            here = [one for one in store.records() if keys.get(one.key) == one.digest]
    if report.absent and not here:
        raise FileNotFoundError(
            f"The rows need {', '.join(report.absent)}, which are not on this machine: see "
            "`tuckermix datasets`, or choose other rows."
        )
    where = {(table.name, row.name) for table in tables for row in table.rows}
    columns = [
        one
        for one in published
        if one.profile == profile and (one.experiment, one.row) in where and is_rival(one.method)
    ]
    older = outdated(columns, tables, profile=profile)
    kept = [one for one in columns if one.key not in older and one.method not in together]
    places: list[Place] = []
    for name in names:  # guests are no rivals of each other
        seen = [one for one in (*kept, *here) if one.method == name or one.method not in names]
        for table in tables:
            for row in summarize(table, seen, profile=profile).rows:
                places += row.cells[name].places.values() if name in row.cells else ()
    failures = [one for one in here if one.method in names and one.status != "ok"]
    return Benchmark(tuple(places), tuple(failures), len(older), report)
