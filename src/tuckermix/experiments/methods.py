"""The columns of the tables: names, how each method is built, and what it costs.

What is declared of the columns stands in ``declared.toml``. A method is named by an import path or
given as a function, so that listing the columns imports nothing and a method that cannot be
imported costs its own cells only. Columns that are more than an estimator with its settings are
built here: those of other packages, and ablations, each of which replaces one part of our method by
another. A fingerprint of the code behind a method tells records of older code apart.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import io
import re
import textwrap
import tokenize
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from tuckermix._optional import require
from tuckermix._records import Record
from tuckermix._validation import check_option

__all__ = ["METHODS", "Method", "build", "code_fingerprint", "register_method", "select_methods"]

DECLARED: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("declared.toml").read_text(encoding="utf-8")
)


def declared(kind: str) -> dict[str, dict[str, Any]]:
    """Return what is declared of "columns", "tables" or "figures" by name; lists become tuples."""
    return {
        name: {key: tuple(fact) if isinstance(fact, list) else fact for key, fact in facts.items()}
        for name, facts in DECLARED[kind].items()
    }


ROLES = ("paper", "ours", "orientation", "extra")

CHEAP, MODERATE, LONG = 0, 1, 2
"""The order in which columns are filled: below a second, seconds, and up to minutes a cell."""
COSTS = ("cheap", "moderate", "long")


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
        an object with ``fit(X)`` and ``labels_``. For several processes the function must be
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
        Part of each record's parameters: a new value has all cells of the method computed anew.
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
    cost: int = MODERATE
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
    view: str = ""

    def __post_init__(self) -> None:
        check_option(self.role, "role", "Method", ROLES)
        if self.view:
            check_option(self.view, "view", "Method", VIEWS)

    def runs_in(self, asked: int) -> int:
        """Return the number of runs in a row that asks for so many; a single run stays one."""
        # A row of a single run has nothing that changes from run to run.
        return asked if asked == 1 or self.runs is None else max(asked, self.runs)


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


PCA_DIRECTIONS = 50
"""Principal directions before spectral clustering, a usual choice for images of this size."""

SPECTRAL_NEIGHBORS = 10
"""scikit-learn's default, said here because the columns are compared by it."""

UMAP_NEIGHBORS, UMAP_DIRECTIONS = 15, 10
"""The package's default neighbours, and as many directions as it advises for clustering."""

SCATTERING_DIRECTIONS = 500
"""Principal directions of scattering coefficients, as many as the authors of EnSC, SSC-OMP, A-DSSC
and AutoSC keep."""

SMALLEST_CLUSTER = 5
"""scikit-learn's default for HDBSCAN."""


def pixels(X: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return one row a sample."""
    return np.reshape(X, (len(X), -1))


def unit_rows(X: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return one row a sample, each divided by its norm."""
    from sklearn.preprocessing import normalize

    return normalize(pixels(X))


def whitened(X: np.ndarray, seed: int, count: int = PCA_DIRECTIONS) -> np.ndarray:
    """Return whitened principal components of the samples."""
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
    # Each path of each image in units of its largest cell, then principal directions.
    return leading(pixels(scattering(X, relative=True)), SCATTERING_DIRECTIONS)


def leading(rows: np.ndarray, count: int) -> np.ndarray:
    """Project rows on their leading directions, without taking the mean out."""
    # The smaller of the two Gram matrices has the directions.
    if rows.shape[0] < rows.shape[1]:
        values, vectors = np.linalg.eigh(rows @ rows.T)
        return vectors[:, -count:] * np.sqrt(np.maximum(values[-count:], 0.0))
    return rows @ np.linalg.eigh(rows.T @ rows)[1][:, -count:]


VIEWS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "pixels": pixels,
    "unit rows": unit_rows,
    "whitened": whitened,
    "scattering": scattering,
    "scattering directions": scattering_directions,
}
"""What columns can be given of the samples: functions of samples and seed."""


class Fitted:
    """What a function fits to samples, with the interface of the other columns.

    Parameters
    ----------
    function : callable
        Takes the samples, and the true classes where the column uses them; returns what has
        ``labels_`` and, where it knows them, ``n_iter_`` and ``stop_reason_``.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def fit(self, X: np.ndarray, *truth: np.ndarray) -> Fitted:
        """Call the function, and keep what it says."""
        found = self.function(X, *truth)
        for name in ("labels_", "n_iter_", "stop_reason_"):
            setattr(self, name, getattr(found, name, None))
        return self


def one_start(n_clusters: int, ranks: Any, seed: int, **settings: Any) -> Any:
    """Build the paper's method with labels from a single random start of k-means."""
    from sklearn.cluster import KMeans

    from tuckermix.baselines import PCAMultinomial

    def fit(X: np.ndarray) -> Any:
        model = PCAMultinomial(n_clusters, ranks=ranks, random_state=seed, **settings).fit(X)
        last = KMeans(n_clusters, init="random", n_init=1, random_state=seed)
        model.labels_ = last.fit(model.memberships_).labels_
        return model

    return Fitted(fit)


def neighbor_spectral(n_clusters: int, ranks: Any, seed: int) -> Any:
    """Build scikit-learn's spectral clustering on the graph of nearest neighbours."""
    from sklearn.cluster import SpectralClustering

    return SpectralClustering(
        n_clusters,
        affinity="nearest_neighbors",
        n_neighbors=SPECTRAL_NEIGHBORS,
        random_state=seed,
    )


def umap_kmeans(n_clusters: int, ranks: Any, seed: int) -> Any:
    """Build k-means on an embedding by UMAP."""
    from sklearn.cluster import KMeans

    def fit(X: np.ndarray) -> Any:
        umap = require("umap", "The column UMAP + k-means", "rivals", package="umap-learn")
        # One thread: a seed rules out more, and UMAP warns of it unless told.
        reducer = umap.UMAP(
            UMAP_NEIGHBORS, UMAP_DIRECTIONS, min_dist=0.0, random_state=seed, n_jobs=1
        )
        rows = reducer.fit_transform(pixels(X))
        return KMeans(n_clusters, n_init=10, random_state=seed).fit(rows)

    return Fitted(fit)


def hdbscan(n_clusters: int, ranks: Any, seed: int) -> Any:
    """Build scikit-learn's HDBSCAN, which finds a number of clusters of its own."""
    from sklearn.cluster import HDBSCAN

    return HDBSCAN(min_cluster_size=SMALLEST_CLUSTER, copy=True)


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

    return Fitted(fit)


def our_labels_on_pca(n_clusters: int, ranks: Any, seed: int) -> Any:
    """Build our labels on whitened principal components, as many as our model has."""
    return Fitted(lambda X: _graph_labels(whitened(X, seed, 2 * n_clusters), n_clusters, seed))


def ours_on_scattering(n_clusters: int, ranks: Any, seed: int, *, log: bool = False) -> Any:
    """Build our method on scattering coefficients, or on their logarithms."""
    from tuckermix.clustering import TuckerClustering

    model = TuckerClustering(n_clusters, random_state=seed)
    return Fitted(lambda X: model.fit(scattering(X, log=log)))


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

    return Fitted(fit)


def select_methods(names: Iterable[str]) -> list[Method]:
    """Return the methods called `names`."""
    return [METHODS[check_option(name, "methods", "reproduce", METHODS)] for name in names]


def build(
    method: Method,
    n_clusters: int,
    ranks: tuple[int, ...],
    seed: int,
    settings: Mapping[str, Any],
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
        With ``fit(X)`` and, afterwards, ``labels_``.
    """
    factory = method.factory
    made: Any = _imported(factory) if isinstance(factory, str) else factory
    named_class = isinstance(factory, str) and inspect.isclass(made)
    if named_class:
        given = {"ranks": ranks} if method.takes_ranks else {}
        estimator = made(n_clusters=n_clusters, random_state=seed, **{**given, **settings})
    else:
        estimator = made(n_clusters, ranks, seed, **settings)
    if not method.view:
        return estimator
    look = VIEWS[method.view]
    return Fitted(lambda X: estimator.fit(look(X, seed)))


def _imported(path: str) -> Any:
    """Return what "module:name" stands for."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


PACKAGE = "tuckermix"
DIGITS = 12
"""Hexadecimal digits of a fingerprint: far more than enough to tell versions of one file apart."""
HARNESS = f"{PACKAGE}.experiments"
"""The runner itself changes no number of a method, so it is left out."""


def _path_of(module: str) -> Path | None:
    """Return the source file of a module of this package, without importing it."""
    package, *inner = module.split(".")
    base = Path(__file__).parents[1].joinpath(*inner)
    paths = (base.with_suffix(".py"), base / "__init__.py")
    return next((path for path in paths if package == PACKAGE and path.is_file()), None)


def _code_alone(text: str, tree: ast.Module) -> str:
    """Return the code of a source file without comments, docstrings and blanks.

    It is cut from the text: what `ast.dump` and `tokenize` make of one text differs from one
    version of Python to the next, and records travel.
    """
    lines = text.splitlines(keepends=True)
    comments = [
        token
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    ]
    for token in comments:
        row, column = token.start
        lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            for row in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                lines[row - 1] = ""
    return "".join("".join(lines).split())


def _imports(tree: ast.Module) -> set[str]:
    """Return the modules of this package that a source file names in its imports."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name for name in found if name.startswith(f"{PACKAGE}.")}


@cache
def _module_fingerprint(module: str) -> str:
    """Digest the code of a module and of all modules of this package that it leads to."""
    pending, texts = [module], {}
    while pending:
        name = pending.pop()
        path = _path_of(name)
        if name in texts or path is None or name.startswith(HARNESS):
            continue
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        texts[name] = _code_alone(text, tree)
        pending.extend(_imports(tree))
    digest = hashlib.sha256()
    for name in sorted(texts):
        digest.update(f"{name}\n{texts[name]}\n".encode())
    return digest.hexdigest()[:DIGITS]


def code_fingerprint(factory: str | Callable[..., Any], view: str = "") -> str:
    """Return a digest of the code that a method runs, comments and docstrings left out.

    Parameters
    ----------
    factory : str or callable
        What builds the method: a class or function, or "module:name" of one.
    view : str, default=""
        What is made of the samples first, a name in `VIEWS`.

    Returns
    -------
    digest : str
        For a class of this package, of its module and all modules of this package that it imports,
        directly or not; for a function, of its own source, of what it names in its own module, and
        of the modules of this package that these import inside; empty where there is none.
    """
    if view:
        both = code_fingerprint(factory) + code_fingerprint(VIEWS[view])
        return hashlib.sha256(both.encode()).hexdigest()[:DIGITS]
    if isinstance(factory, str):
        try:
            factory = _imported(factory)
        except (ImportError, AttributeError):
            return ""  # its cells will say why
        if inspect.isclass(factory):
            return _module_fingerprint(factory.__module__)
    digest, sources = hashlib.sha256(), _sources(factory)
    for source in sources:
        digest.update(source.encode())
        try:
            found = _imports(ast.parse(textwrap.dedent(source)))
        except SyntaxError:  # a lambda within a longer expression
            continue
        for module in sorted(name for name in found if _path_of(name) is not None):
            digest.update(_module_fingerprint(module).encode())
    return digest.hexdigest()[:DIGITS] if sources else ""


def _sources(factory: Any) -> list[str]:
    """Return the source of a function or class and of what it names in its own module."""
    module = inspect.getmodule(factory)
    pending, texts = [factory], {}
    while pending:
        part = pending.pop(0)
        try:
            source = inspect.getsource(part)
        except (OSError, TypeError):
            continue
        texts[part.__qualname__] = source
        for name in dict.fromkeys(re.findall(r"[A-Za-z_]\w*", source)):
            other = getattr(module, name, None)
            if not (inspect.isfunction(other) or inspect.isclass(other)):
                continue
            if other.__module__ == factory.__module__ and other.__qualname__ not in texts:
                pending.append(other)
    return list(texts.values())


def _register_declared() -> None:
    """Register the declared columns; one that is like another takes its facts."""
    columns = declared("columns")
    for name, own in columns.items():
        facts = columns.get(own.get("like", ""), {}) | own
        facts.pop("like", None)
        facts["cost"] = COSTS.index(facts.get("cost", "moderate"))
        register_method(Method(name, **facts))


_register_declared()
