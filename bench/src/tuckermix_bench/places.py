"""Methods of one's own: how one becomes a column, and where it stands among the published ones.

A method is named by the words ``module:object`` and imported where its cells are computed, in a
process of its own; nothing of it runs before. What may stand there: a class or a function that
takes the number of clusters and gives something with ``fit_predict``, such a thing ready made, or a
function of samples and number.

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
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass, replace
from functools import partial, reduce
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from statistics import fmean, median, variance
from typing import Any

import numpy as np

from tuckermix._array_api import to_numpy
from tuckermix._files import csv_text
from tuckermix._names import VIEWS
from tuckermix._records import Record
from tuckermix._validation import check_integer, check_option
from tuckermix.datasets import list_datasets
from tuckermix_bench import summaries
from tuckermix_bench.methods import (
    METHODS,
    Method,
    pixels,
    register_method,
    scattering,
)
from tuckermix_bench.runner import (
    Progress,
    RunReport,
    log_progress,
    published_records,
    run_cells,
)
from tuckermix_bench.store import OK, RunRecord, Store, read_records
from tuckermix_bench.summaries import (
    ROUNDING,
    SHOWN,
    Difference,
    judged,
    leads_of,
    mean_of,
    outdated,
    scores_of,
)
from tuckermix_bench.tables import LIBRARIES, PAPER, QUICK, Experiment, cells_of, source_of

__all__ = [
    "PLACES_DB",
    "PLACES_VERSION",
    "Benchmark",
    "Place",
    "benchmark",
    "own_method",
    "places_csv",
    "published_records",
]

NUMBERS = ("n_clusters", "n_components", "k")
"""How methods call the number of clusters, in the order in which the names are looked for."""
SEEDS = ("random_state", "seed")
"""How methods call the seed."""
EXAMPLE = "mymethod:cluster"
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
        What it is given: samples as they are, one row a sample, or the logarithm of their
        scattering coefficients. "auto" gives rows to what scikit-learn's tags say takes rows only,
        and the samples as they are to everything else.
    folder : path or None, default=None
        Where the module is looked for first; None means the current folder.

    Returns
    -------
    method : Method
        For ``methods=`` of :func:`tuckermix_bench.benchmark`. Its version is a digest of the
        module's file: when that changes, its cells are computed anew.
    """
    check_option(view, "view", "own_method", VIEWS)
    module, colon, wanted = path.rpartition(":")
    if not (colon and module and wanted):
        raise ValueError(
            f"A method must be named as module:object, such as {EXAMPLE}. Got {path!r} instead."
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
    spec: ModuleSpec | None = PathFinder.find_spec(top, [str(folder), *sys.path])
    if spec is None:
        raise ValueError(
            f"There is no module {top!r} in {str(folder)!r} nor among the installed packages: "
            "check its name, or go to its folder."
        )
    places = [Path(place) for place in spec.submodule_search_locations or ()]
    if not inner:
        file = Path(spec.origin or "")
        return file if file.suffix == PYTHON else None
    for place in places:
        base = place.joinpath(*inner)
        for file in (base.with_suffix(PYTHON), base / "__init__.py"):
            if file.is_file():
                return file
    return None


@dataclass(frozen=True)
class OwnMethod(Record):
    """What builds the runs of a method of one's own: names only, so that it reaches any process.

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

    def __call__(self, n_clusters: int, ranks: Any, seed: int) -> OwnRun:
        """Import the method and make it ready; what goes wrong becomes the outcome of the run."""
        try:
            with redirect_stdout(sys.stderr):  # results go to stdout, and nothing else
                cluster, rows = clusterer(self._imported(), n_clusters, seed)
        except (Exception, SystemExit) as error:
            return OwnRun(None, "", self.source, _told(error, self.source))
        view = self.view
        if view == "auto":
            view = "pixels" if rows else "tensors"
        elif view == "scattering" and rows:
            view = "rows of scattering"
        return OwnRun(cluster, view, self.source)

    def _imported(self) -> Any:
        if self.folder not in sys.path:
            sys.path.insert(0, self.folder)
        module = importlib.import_module(self.module)
        try:
            return reduce(getattr, self.wanted.split("."), module)
        except AttributeError:
            names = [
                name
                for name, value in vars(module).items()
                if callable(value) and getattr(value, "__module__", None) == self.module
            ]
            known = f" It has {', '.join(names)}." if names else ""
            raise AttributeError(
                f"{self.module} has no {self.wanted!r}: check the name.{known}"
            ) from None


class OwnRun:
    """One run of a method of one's own, with the interface of the other columns."""

    def __init__(
        self, cluster: Cluster | None, view: str, source: str, failure: str | None = None
    ) -> None:
        self.cluster, self.view, self.source = cluster, view, source
        if failure is not None:
            self._fail(failure)

    def _fail(self, failure: str) -> None:
        self.stop_reason_, self.failure_ = "failed", failure

    def fit(self, X: np.ndarray) -> OwnRun:
        """Cluster samples; an error is kept, not raised."""
        self.labels_ = np.zeros(len(X), dtype=int)
        if self.cluster is None:
            return self
        try:
            with redirect_stdout(sys.stderr):
                found = self.cluster(_seen(X, self.view))
            self.labels_ = checked_labels(found, len(X))
        except (Exception, SystemExit) as error:
            self._fail(_told(error, self.source))
        return self


def _seen(X: np.ndarray, view: str) -> np.ndarray:
    """Return what a method is given of the samples."""
    if "scattering" in view:
        X = scattering(X, log=True)
    return X if view in ("tensors", "scattering") else pixels(X)


def _told(error: BaseException, source: str) -> str:
    """Say what went wrong, and in which line of the user's file."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if source and frame.filename == source
    ]
    where = f" ({Path(source).name}, line {lines[-1]})" if lines else ""
    if isinstance(error, SystemExit):
        return f"The method ended the program by sys.exit.{where}"
    if isinstance(error, WrongLabels):
        return str(error)
    return f"{type(error).__name__}: {' '.join(str(error).split())}{where}"


class WrongLabels(ValueError):
    """What a method returned cannot be its labels."""


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
        One integer a sample.
    """
    rule = f"labels must be one whole number for each of the {n_samples} samples."
    if found is None:
        raise WrongLabels(f"{rule} The method returned None: let it return them.")
    try:
        labels = to_numpy(found) if hasattr(found, "shape") else np.asarray(found)
    except ValueError as error:
        raise WrongLabels(f"{rule} The method returned no array: {error}") from error
    if labels.ndim != 1 or labels.size != n_samples:
        hint = ": take argmax(axis=1) of memberships" if labels.ndim == 2 else ""
        raise WrongLabels(f"{rule} The method returned an array of shape {labels.shape}{hint}.")
    if labels.dtype.kind not in "biuf":
        raise WrongLabels(
            f"{rule} The method returned {labels.dtype.type.__name__} values such as "
            f"{labels.tolist()[0]!r}: number the clusters."
        )
    if labels.dtype.kind == "f":
        bad = ~np.isfinite(labels)
        if bad.any():
            raise WrongLabels(
                f"{rule} The method returned NaN or infinity for {bad.sum()} of them."
            )
        if (labels != np.round(labels)).any():
            raise WrongLabels(f"{rule} The method returned fractions such as {labels[0]:g}.")
    return labels.astype(int)


def _parameters(function: Any) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function or class; none where Python cannot tell."""
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return {}


def _arguments(
    function: Any, n_clusters: int, seed: int, *, before: int = 0
) -> tuple[list[int], dict[str, int]]:
    """Choose how a function is told the number of clusters and the seed.

    Parameters
    ----------
    function : callable
        A function or class.
    n_clusters, seed : int
        What to hand over.
    before : int, default=0
        How many arguments come first.

    Returns
    -------
    positional : list of int
        The number, where it has a name of its own but no default.
    named : dict of str to int
        What is handed over by name.
    """
    parameters = _parameters(function)
    kinds = {parameter.kind for parameter in parameters.values()}
    named = {name: seed for name in SEEDS if name in parameters}
    name = next((name for name in NUMBERS if name in parameters), None)
    if name is not None:
        return [], {name: n_clusters, **named}
    required = [
        parameter
        for parameter in parameters.values()
        if parameter.default is inspect.Parameter.empty
        and parameter.kind
        in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    ]
    if len(required) > before or (before and not parameters):
        return [n_clusters], named
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return [], {NUMBERS[0]: n_clusters, **named}
    return [], named  # it finds the number itself


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
    if not hasattr(model, "get_params"):
        model = copy.deepcopy(model)
        number = next((name for name in NUMBERS if hasattr(model, name)), None)
        if number is not None:
            setattr(model, number, n_clusters)
        return model
    from sklearn.base import clone

    model = clone(model)
    known = model.get_params(deep=True)
    # Steps of a pipeline are set as well; other names than the first mean other things there.
    wanted = {name: n_clusters for name in known if name.rpartition("__")[2] == NUMBERS[0]} or {
        name: n_clusters for name in NUMBERS if name in known
    }
    wanted |= {
        name: seed
        for name, value in known.items()
        if value is None and name.rpartition("__")[2] == SEEDS[0]
    }
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
        Whether it is known to take one row a sample only.
    """
    if not inspect.isclass(found) and _is_model(found):
        model = _copy_of(found, n_clusters, seed)
    elif not callable(found):
        raise TypeError(
            f"A method must be a class, a function or an object with fit_predict. Got a "
            f"{type(found).__name__} instead."
        )
    elif inspect.isclass(found) or next(iter(_parameters(found)), "") in NUMBERS:
        positional, named = _arguments(found, n_clusters, seed)
        model = found(*positional, **named)
        if not _is_model(model):
            raise TypeError(
                f"{found.__name__} must make an object with fit_predict or fit. Got a "
                f"{type(model).__name__} instead."
            )
    else:
        positional, named = _arguments(found, n_clusters, seed, before=1)
        return lambda X: found(X, *positional, **named), False
    return partial(_labels_of, model), _takes_rows(model)


PLACES_DB = "tuckermix-bench.jsonl"
"""A file of its own: methods of one's own do not become columns of the paper's tables."""

PLACES_VERSION = 1
"""Grows when a column of the CSV of places changes its meaning or goes."""

ON_REQUEST = ("table1", "sizes", "cores", "curves")
"""Tables that vary one setting on one dataset: run when they are named."""

BESIDE_QUICK = ("k-means", "spectral", "TuckerClustering")
"""Nothing is published of the quick setting, so these are computed there too; they take seconds."""

ALONE = "alone"
"""How a method stands in a row of which no other column has a record."""
VERDICTS = (*summaries.VERDICTS, ALONE)


@dataclass(frozen=True)
class Place(Record):
    """Where a method stands in one row, by one measure.

    Attributes
    ----------
    method : str
        Its name.
    table, row, dataset : str
        Where.
    n_samples, n_clusters : int
        The size of a draw.
    metric : str
        "AC", "NMI", …
    draws : int
        Runs with a score.
    mean : float
        The mean over them.
    error : float or None
        Its standard error; None for a single draw.
    rank, columns : int
        One more than the number of columns that are better on average over the common draws, and
        how many columns there are, this one included.
    verdict : {"first", "tied first", "behind", "single run", "alone"}
        "first" if more than two standard errors ahead of every column, "behind" if one of them is
        so far ahead, "tied first" otherwise; one run decides nothing.
    rival : str
        The column that it leads least, or that leads it most; empty if there is none.
    rival_mean : float or None
        The mean of that column over all its draws.
    lead : Difference or None
        This method minus that column, over the draws that both have.
    winners, ties : tuple of str
        The columns that are more than two standard errors ahead, and those that the draws cannot
        tell apart from it.
    seconds, cpu_seconds : float or None
        The mean time of a fit, by the clock and by the processor.
    """

    method: str
    table: str
    row: str
    dataset: str
    n_samples: int
    n_clusters: int
    metric: str
    draws: int
    mean: float
    error: float | None
    rank: int
    columns: int
    verdict: str
    rival: str
    rival_mean: float | None
    lead: Difference | None
    winners: tuple[str, ...]
    ties: tuple[str, ...]
    seconds: float | None
    cpu_seconds: float | None

    def line(self) -> dict[str, Any]:
        """Return the fields as the CSV and the JSON have them."""
        lead = self.lead
        values = self.to_dict() | {
            "lead": None if lead is None else lead.mean,
            "lead_error": None if lead is None else lead.error,
            "common_draws": 0 if lead is None else lead.pairs,
            "winners": list(self.winners),
            "ties": list(self.ties),
        }
        return {name: values[name] for name in PLACE_FIELDS}


PLACE_FIELDS = (
    *("method", "table", "row", "dataset", "n_samples", "n_clusters", "metric", "draws"),
    *("mean", "error", "rank", "columns", "verdict", "rival", "rival_mean"),
    *("lead", "lead_error", "common_draws", "winners", "ties", "seconds", "cpu_seconds"),
)
"""The columns of the CSV of places, after the number of its version."""


@dataclass(frozen=True)
class Benchmark(Record):
    """What came of running methods beside the published columns.

    Attributes
    ----------
    places : tuple of Place
        One for each method, row and measure.
    failures : tuple of RunRecord
        The runs of these methods without a score, each with its ``error``.
    missing : tuple of str
        The datasets that are not on this machine; their rows were left out.
    older : int
        How many published records belong to other draws or settings than today's and do not count.
    report : RunReport
        What was computed.
    """

    places: tuple[Place, ...]
    failures: tuple[RunRecord, ...]
    missing: tuple[str, ...]
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
        ranks = [one.rank for one in mine if one.verdict != ALONE]
        ahead = Counter(name for one in mine for name in one.winners)
        return {
            "rows": len(mine),
            **{verdict: verdicts[verdict] for verdict in VERDICTS},
            "median_rank": median(ranks) if ranks else None,
            "behind_whom": dict(ahead.most_common()),
        }


def _absent(data: str | os.PathLike[str] | None) -> set[str]:
    """Return the datasets that are known by name and not on this machine."""
    return {info.name for info in list_datasets(data) if info.state == "missing"}


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
    if wanted is None:
        wanted = [name for name in library if name not in ON_REQUEST]
    chosen: dict[str, set[str]] = defaultdict(set)
    for words in wanted:
        name, _, place = words.partition(":")
        if name in library:
            table = library[name]
            try:
                found = [(table, row) for row in ([table.row(place)] if place else table.rows)]
            except KeyError as error:
                raise ValueError(error.args[0]) from None
        else:
            everything = [(table, row) for table in library.values() for row in table.rows]
            found = [
                (table, row)
                for table, row in everything
                if row.dataset == words and table.name not in ON_REQUEST
            ]
            if not found:
                datasets = dict.fromkeys(row.dataset for _, row in everything)
                raise ValueError(
                    f"There are no rows {words!r}: name a table ({', '.join(library)}), a row as "
                    f"table:row, or a dataset ({', '.join(datasets)})."
                )
        for table, row in found:
            source, shown = source_of(table, row, library)
            chosen[source.name].add(shown.name)
    return [
        replace(table, rows=tuple(row for row in table.rows if row.name in chosen[name]))
        for name, table in library.items()
        if chosen[name]
    ]


def place(
    mine: Collection[RunRecord], others: Mapping[str, Collection[RunRecord]], metric: str
) -> Place | None:
    """Compare the runs of a method in a row with those of other columns.

    Parameters
    ----------
    mine : collection of RunRecord
        The runs of the method in one row.
    others : mapping of str to collection of RunRecord
        Those of the other columns in the same row, by name.
    metric : str
        The measure.

    Returns
    -------
    place : Place or None
        None if no run has a score.
    """
    scores = scores_of(mine, metric)
    if not scores:
        return None
    good = [record for record in mine if record.status == OK]
    theirs = {name: scores_of(records, metric) for name, records in others.items()}
    leads = leads_of(scores, theirs)
    stands = judged(leads) | ({} if leads else {"verdict": ALONE})
    values = list(scores.values())
    return Place(
        method=good[0].method,
        table=good[0].experiment,
        row=good[0].row,
        dataset=good[0].dataset,
        n_samples=good[0].n_samples or 0,
        n_clusters=len(good[0].classes),
        metric=metric,
        draws=len(values),
        mean=fmean(values),
        error=(variance(values) / len(values)) ** 0.5 if len(values) > 1 else None,
        rank=1 + sum(lead.mean < -ROUNDING for lead in leads.values()),
        columns=1 + len(leads),
        rival_mean=mean_of(theirs.get(stands["rival"], {}).values()),
        seconds=mean_of(record.seconds for record in good),
        cpu_seconds=mean_of(record.cpu_seconds for record in good),
        **stands,
    )


def _columns(
    records: Iterable[RunRecord], tables: Iterable[Experiment], profile: str
) -> tuple[list[RunRecord], int]:
    """Keep the records of today's draws and settings, and count the others of the same rows.

    Variants of a column and bounds that know the truth are no rivals.
    """
    rows = {(table.name, row.name) for table in tables for row in table.rows}
    rivals = {name for name, one in METHODS.items() if not (one.variant_of or one.uses_truth)}
    mine = [
        record
        for record in records
        if record.profile == profile
        and (record.experiment, record.row) in rows
        and record.method in rivals
    ]
    older = outdated(mine, tables, profile=profile)
    return [record for record in mine if record.key not in older], len(older)


def benchmark(
    methods: Method | Iterable[Method],
    *,
    rows: Iterable[str] | None = None,
    data: str | os.PathLike[str] | None = None,
    runs: int | None = None,
    beside: Iterable[str] | None = None,
    quick: bool = False,
    jobs: int | None = None,
    db: str | os.PathLike[str] = PLACES_DB,
    records: str | os.PathLike[str] | None = None,
    time_limit: float | None = None,
    retry_failed: bool = False,
    refresh: bool = False,
    progress: Callable[[Progress], None] | None = log_progress,
) -> Benchmark:
    """Run methods on the draws of the tables and compare them with the published columns.

    Parameters
    ----------
    methods : Method or iterable of Method
        From :func:`own_method`, or any other column that is not registered.
    rows : iterable of str or None, default=None
        Names of tables ("table5"), rows ("table5:ORL") and datasets ("mnist"); None means all but
        the tables that vary one setting. Rows whose dataset is not there are left out.
    data : path or None, default=None
        The folder of the datasets; None means what ``TUCKERMIX_DATA`` names.
    runs : int or None, default=None
        The number of draws of each row, in place of as many as the tables have.
    beside : iterable of str or None, default=None
        Published columns to compute here as well, in place of their records; for times that can be
        compared. None means none, or three cheap ones with `quick`.
    quick : bool, default=False
        Whether to use the tables in miniature, on data that everybody has.
    jobs : int or None, default=None
        The number of processes; None means one for each processor, 0 computes in this process.
    db : path, default="tuckermix-bench.jsonl"
        The file for the records; a run that was stopped continues.
    records : path or None, default=None
        The published records; None means those that come with the package.
    time_limit : float or None, default=None
        Seconds after which a run is given up.
    retry_failed : bool, default=False
        Whether runs that failed before are tried again.
    refresh : bool, default=False
        Whether everything is computed anew, as if nothing were stored.
    progress : callable or None, default=log_progress
        Called with a :class:`Progress` as the run proceeds.

    Returns
    -------
    result : Benchmark
        Places, failures, and what was left out.
    """
    if runs is not None:
        check_integer(runs, "runs", "benchmark")
    own = [methods] if isinstance(methods, Method) else list(methods)
    profile = QUICK if quick else PAPER
    tables = choose_rows(rows, LIBRARIES[profile])
    absent = _absent(data)
    missing = dict.fromkeys(
        row.dataset for table in tables for row in table.rows if row.dataset in absent
    )
    tables = [
        replace(table, rows=kept)
        for table in tables
        if (kept := tuple(row for row in table.rows if row.dataset not in absent))
    ]
    if not tables:
        raise FileNotFoundError(
            f"The rows need {', '.join(missing)}, which are not on this machine: see "
            "`tuckermix datasets`, or choose other rows."
        )
    together = list(beside) if beside is not None else list(BESIDE_QUICK if quick else ())
    published = read_records(published_records() if records is None else records)
    if quick:
        published = []
    with ExitStack() as known:
        for method in own:  # by their names, for a while
            register_method(method)
            known.callback(METHODS.pop, method.name)
        names = [method.name for method in own]
        cells = cells_of(tables, runs=runs, methods=[*names, *together], profile=profile)
        with Store(db) as store, store.writing():
            report = run_cells(
                cells,
                store,
                data=data,
                jobs=jobs,
                time_limit=time_limit,
                retry_failed=retry_failed,
                again=refresh,
                progress=progress,
            )
            keys = {cell.key: cell.digest for cell in cells}
            here = [one for one in store.records() if keys.get(one.key) == one.digest]
    columns, older = _columns(published, tables, profile)
    by_row: dict[tuple[str, str], dict[str, list[RunRecord]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for record in (*(one for one in columns if one.method not in together), *here):
        by_row[record.experiment, record.row][record.method].append(record)
    places = []
    for table in tables:
        for row in table.rows:
            found = by_row[table.name, row.name]
            rivals = {name: runs_of for name, runs_of in found.items() if name not in names}
            for name in names:
                for metric in SHOWN:
                    one = place(found.get(name, []), rivals, metric)
                    if one is not None:
                        places.append(one)
    failures = [one for one in here if one.method in names and one.status != OK]
    return Benchmark(tuple(places), tuple(failures), tuple(missing), older, report)


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
    rows: list[Iterable[Any]] = [["schema_version", *PLACE_FIELDS]]
    for one in places:
        line = one.line()
        for name in ("winners", "ties"):
            line[name] = "|".join(line[name])
        rows.append([PLACES_VERSION, *line.values()])
    return csv_text(rows)
