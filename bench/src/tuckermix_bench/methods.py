"""The columns of the tables: names, how each method is built, and what it costs.

What is declared of the columns stands in ``declared.toml``. A method is named by an import path or
given as a function, so that listing the columns imports nothing and a method that cannot be
imported costs its own cells only. Columns that are more than an estimator with its settings are
built here: those of other packages, and ablations, each of which replaces one part of our method by
another. Each column has a `version`, which is raised by hand when its results change: see
``benchmarks/compare_versions.py``.
"""

from __future__ import annotations

import importlib
import inspect
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from tuckermix._records import Record
from tuckermix._validation import check_option

DECLARED: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("declared.toml").read_text(encoding="utf-8")
)


def declared(kind: str) -> dict[str, dict[str, Any]]:
    """Return what is declared of "columns", "tables" or "figures" by name; lists become tuples."""
    return {name: tupled(facts) for name, facts in DECLARED[kind].items()}


def tupled(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts with tuples in place of lists."""
    return {key: tuple(fact) if isinstance(fact, list) else fact for key, fact in facts.items()}


ROLES = ("paper", "ours", "orientation", "extra")

COSTS = ("cheap", "moderate", "long")
"""The order in which columns are filled: below a second, seconds, and up to minutes per cell."""


@dataclass(frozen=True)
class Method(Record):
    """A column of a table.

    Attributes
    ----------
    name : str
        The heading.
    factory : str or callable
        "module:Class" of an estimator that takes ``n_clusters`` and ``random_state``, or a function
        ``factory(n_clusters, ranks, seed, **settings)``, or "module:function" of one, that returns
        an object whose ``fit(X)`` gives it ``labels_``, or returns what has them. For several
        processes the function must be
        importable by its name.
    takes_ranks : bool, default=False
        Whether an estimator named by its path is also given ``ranks``.
    takes_start : bool, default=False
        Whether a row's settings, such as its choice of start, are handed on.
    settings : mapping, default={}
        Parameters other than the defaults.
    quick_settings : mapping, default={}
        Parameters for the quick setting, on top of `settings`.
    cost : int, default=1
        From 0 to 2: how early in the queue its cells stand.
    role : {"paper", "ours", "orientation", "extra"}, default="extra"
        Where the method comes from.
    runs : int or None, default=None
        Runs in rows that have more than one, where the method is cheap enough for more of them;
        None means as many as the row asks for.
    variant_of : str, default=""
        The column of the paper that it repeats with another choice; it is compared with that
        column's numbers, and is no rival of ours.
    version : str, default="1"
        Part of each record's parameters: a new value has all cells of the method computed again.
    description : str, default=""
        One sentence for the legend.
    on : str, default=""
        What the method is given: "tensors" as they are, "pixels" in one row a sample, and so on.
    notes : str, default=""
        What a reader must know to judge the column: starts, limits, what was searched, what the
        implementation was checked against.
    slow_on : tuple of str, default=()
        The tables, or rows as "table/row", where all fits together would be dear, most of them
        because one takes more than 20 seconds: there it gets five runs of a row.
    slowest_on : tuple of str, default=()
        Those where a fit takes minutes: there it gets three.
    uses_truth : bool, default=False
        Whether the true classes are handed to ``fit``: such a column is a bound, no method.
    finds_number : bool, default=False
        Whether an estimator named by its path finds the number of clusters: it is given "auto".
    was : str, default=""
        The name that it had when its first records were made: seeds follow from that one.
    view : str, default=""
        What is made of the samples first, a name in `VIEWS`; without any they are handed on as they
        are.
    """

    name: str
    factory: str | Callable[..., Any]
    takes_ranks: bool = False
    takes_start: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    quick_settings: Mapping[str, Any] = field(default_factory=dict)
    cost: int = 1
    role: str = "extra"
    runs: int | None = None
    variant_of: str = ""
    version: str = "1"
    description: str = ""
    on: str = ""
    notes: str = ""
    slow_on: tuple[str, ...] = ()
    slowest_on: tuple[str, ...] = ()
    uses_truth: bool = False
    finds_number: bool = False
    was: str = ""
    view: str = ""

    def __post_init__(self) -> None:
        check_option(self.role, "role", "Method", ROLES)
        if self.view:
            check_option(self.view, "view", "Method", VIEWS)


class MethodError(Exception):
    """What went wrong in a method, in words for its user."""


METHODS: dict[str, Method] = {}
"""The methods by name."""


def add_entry(registry: dict[str, Any], entry: Any, kind: str, replace: bool) -> Any:
    """Put an entry into a registry under its name; another of that name stays unless told so."""
    if entry.name in registry and not replace:
        raise ValueError(
            f"A {kind} called {entry.name!r} is already registered: choose another name or pass "
            "replace=True."
        )
    registry[entry.name] = entry
    return entry


def register_method(method: Method, *, replace: bool = False) -> Method:
    """Make a method known by its name.

    Parameters
    ----------
    method : Method
        The column.
    replace : bool, default=False
        Whether it may take the place of another of that name.

    Returns
    -------
    entry : object
        The same.
    """
    return add_entry(METHODS, method, "method", replace)


def pixels(X: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return one row a sample."""
    return np.reshape(X, (len(X), -1))


def unit_rows(X: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return one row a sample, each divided by its norm."""
    from sklearn.preprocessing import normalize

    return normalize(pixels(X))


def whitened(X: np.ndarray, seed: int, count: int = 50) -> np.ndarray:
    """Return whitened principal components of the samples: 50, a usual choice for small images."""
    from sklearn.decomposition import PCA

    rows = pixels(X)
    count = min(count, rows.shape[0] - 1, rows.shape[1])
    return PCA(count, whiten=True, random_state=seed).fit_transform(rows)


def scattering(X: np.ndarray, seed: int = 0, **options: Any) -> np.ndarray:
    """Return scattering coefficients of images, as options of the transform want them."""
    from tuckermix.features import Scattering

    return Scattering(**options).fit_transform(X)


def scattering_directions(X: np.ndarray, seed: int = 0) -> np.ndarray:
    """Prepare scattering coefficients as the authors of the rivals on them do."""
    # Each path of each image in units of its largest cell, then 500 principal directions.
    return leading(pixels(scattering(X, relative=True)), 500)


def leading(rows: np.ndarray, count: int) -> np.ndarray:
    """Project rows on their leading directions, without taking the mean out."""
    # The smaller of the two Gram matrices has the directions.
    if rows.shape[0] < rows.shape[1]:
        values, vectors = np.linalg.eigh(rows @ rows.T)
        return vectors[:, -count:] * np.sqrt(np.maximum(values[-count:], 0.0))
    return rows @ np.linalg.eigh(rows.T @ rows)[1][:, -count:]


def pooled(X: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return pooled vectors of norm 1 of a network, from the pictures that our candidates see."""
    from sklearn.base import clone

    from tuckermix.selection.candidates import built_in_candidates

    network = clone(built_in_candidates(X.shape[1:], "network")[0][1][0]).set_params(layer="pooled")
    vectors = network.fit_transform(X)
    return unit_rows(vectors.reshape(*vectors.shape[:2], -1).mean(axis=2))


VIEWS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "pixels": pixels,
    "unit rows": unit_rows,
    "whitened": whitened,
    "scattering": scattering,
    "scattering directions": scattering_directions,
    "pooled": pooled,
}
"""What columns can be given of the samples: functions of samples and seed."""


def fitted_by(function: Callable[..., Any]) -> SimpleNamespace:
    """Make a column of a function that fits samples and returns what has ``labels_``.

    It takes the samples, and the true classes where the column uses them.
    """
    return SimpleNamespace(fit=function)


def one_start(n_clusters: int, ranks: Any, seed: int, **settings: Any) -> Any:
    """Build the paper's method with labels from a single random start of k-means."""
    from sklearn.cluster import KMeans

    from tuckermix.baselines import PCAMultinomial

    def fit(X: np.ndarray) -> Any:
        model = PCAMultinomial(n_clusters, ranks=ranks, random_state=seed, **settings).fit(X)
        last = KMeans(n_clusters, init="random", n_init=1, random_state=seed)
        model.labels_ = last.fit(model.memberships_).labels_
        return model

    return fitted_by(fit)


def neighbor_spectral(n_clusters: int, ranks: Any, seed: int) -> Any:
    """Build scikit-learn's spectral clustering on the graph of nearest neighbours."""
    from sklearn.cluster import SpectralClustering

    graph: dict[str, Any] = {"affinity": "nearest_neighbors", "n_neighbors": 10}
    return SpectralClustering(n_clusters, random_state=seed, **graph)


def lsr_on_unit_rows(n_clusters: int, ranks: Any, seed: int, **settings: Any) -> Any:
    """Build LSR on samples of norm 1, all of their entries."""
    from tuckermix.baselines import LSR

    return LSR(n_clusters, directions_per_cluster=None, random_state=seed, **settings)


def umap_kmeans(n_clusters: int, ranks: Any, seed: int) -> Any:
    """Build k-means on an embedding by UMAP."""
    from sklearn.cluster import KMeans

    def fit(X: np.ndarray) -> Any:
        try:
            umap = importlib.import_module("umap")
        except ImportError as error:
            raise ImportError(
                "The column UMAP + k-means needs umap-learn: install tuckermix-bench[rivals]."
            ) from error
        # As many directions as the package advises for clustering, and its default neighbours. One
        # thread: a seed rules out more, and UMAP warns of it unless told.
        reducer = umap.UMAP(15, 10, min_dist=0.0, random_state=seed, n_jobs=1)
        rows = reducer.fit_transform(pixels(X))
        return KMeans(n_clusters, n_init=10, random_state=seed).fit(rows)

    return fitted_by(fit)


def hdbscan(n_clusters: int, ranks: Any, seed: int) -> Any:
    """Build scikit-learn's HDBSCAN, which finds a number of clusters of its own."""
    from sklearn.cluster import HDBSCAN

    return HDBSCAN(min_cluster_size=5, copy=True)


def _graph_labels(rows: np.ndarray, n_clusters: int, seed: int) -> SimpleNamespace:
    """Label rows as our method labels its points."""
    from sklearn.preprocessing import normalize

    from tuckermix.labels import fit_labels

    rows = normalize(rows)
    labeller = fit_labels("graph", rows, n_clusters, rng=np.random.default_rng(seed))
    return SimpleNamespace(labels_=np.argmax(labeller.predict_proba(rows), axis=1))


def our_labels_on_mm(n_clusters: int, ranks: Any, seed: int, **settings: Any) -> Any:
    """Build our labels on the coefficients of MM, with as many components as our model has."""
    from tuckermix.baselines import MultiplicativeNMF

    def fit(X: np.ndarray) -> Any:
        count = min(2 * n_clusters + 1, len(X))
        model = MultiplicativeNMF(count, random_state=seed, **settings).fit(X)
        return _graph_labels(model.memberships_, n_clusters, seed)

    return fitted_by(fit)


def our_labels_on_pca(n_clusters: int, ranks: Any, seed: int) -> Any:
    """Build our labels on whitened principal components, as many as our model has."""
    return fitted_by(lambda X: _graph_labels(whitened(X, seed, 2 * n_clusters), n_clusters, seed))


def ours_on_scattering(n_clusters: int, ranks: Any, seed: int, *, log: bool = False) -> Any:
    """Build our method on scattering coefficients, or on their logarithms."""
    from tuckermix.clustering import TuckerClustering

    model = TuckerClustering(n_clusters, random_state=seed)
    return fitted_by(lambda X: model.fit(scattering(X, log=log)))


def searched_drcc(
    n_clusters: int, ranks: Any, seed: int, *, n_settings: int = 0, **settings: Any
) -> Any:
    """Build DRCC at the setting of its authors' grid that scores best; 0 tries all settings."""
    from tuckermix.baselines import DRCC
    from tuckermix.baselines.drcc import penalty_grid
    from tuckermix.metrics import clustering_accuracy

    def fit(X: np.ndarray, y: np.ndarray) -> Any:
        tried = (
            DRCC(n_clusters, random_state=seed, **choice, **settings).fit(X)
            for choice in penalty_grid()[: n_settings or None]
        )
        return max(tried, key=lambda model: clustering_accuracy(y, model.labels_))

    return fitted_by(fit)


def select_methods(names: Iterable[str]) -> list[Method]:
    """Return the methods called `names`."""
    return [METHODS[check_option(name, "methods", "reproduce", METHODS)] for name in names]


def build(
    method: Method, n_clusters: int, ranks: tuple[int, ...], seed: int, settings: Mapping[str, Any]
) -> Any:
    """Build the estimator of a cell.

    Parameters
    ----------
    method : Method
        The column.
    n_clusters : int
        The number of clusters.
    ranks : tuple of int
        The core size of the row.
    seed : int
        The random state of the cell.
    settings : mapping
        Parameters beyond the defaults.

    Returns
    -------
    estimator : object
        With ``fit(X)``, after which it, or what is returned, has ``labels_``.
    """
    made: Any = method.factory
    if isinstance(made, str):
        module, _, name = made.partition(":")
        made = getattr(importlib.import_module(module), name)
    named_class = made is not method.factory and inspect.isclass(made)
    if named_class:
        given = {"ranks": ranks} if method.takes_ranks else {}
        number = "auto" if method.finds_number else n_clusters
        estimator = made(n_clusters=number, random_state=seed, **{**given, **settings})
    else:
        estimator = made(n_clusters, ranks, seed, **settings)
    if not method.view:
        return estimator
    look = VIEWS[method.view]
    return fitted_by(lambda X: estimator.fit(look(X, seed)))


_columns = declared("columns")
for _name, _own in _columns.items():
    # A column that is like another takes its facts.
    _facts = _columns.get(_own.pop("like", ""), {}) | _own
    _facts["cost"] = COSTS.index(_facts.get("cost", "moderate"))
    register_method(Method(_name, **_facts))
