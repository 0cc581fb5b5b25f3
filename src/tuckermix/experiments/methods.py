"""The columns of the tables: names, how each method is built, and what it costs.

A method is named by an import path or given as a function, so that listing the columns imports
nothing and a method that cannot be imported costs its own cells only. A fingerprint of the code
behind a method tells records of older code apart.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import inspect
import io
import re
import textwrap
import tokenize
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._declaration import describe
from tuckermix._records import Record
from tuckermix._validation import check_option

__all__ = [
    "METHODS",
    "Method",
    "build",
    "code_fingerprint",
    "register_method",
    "select_methods",
]

ROLES = ("paper", "ours", "orientation", "extra")

CHEAP, MODERATE, LONG = 0, 1, 2
"""The order in which columns are filled: below a second, seconds, and up to minutes a cell."""


@dataclass(frozen=True)
class Method(Record):
    """A column of a table.

    Attributes
    ----------
    name : str
        The heading.
    factory : str or callable
        "module:Class" of an estimator that takes ``n_clusters`` and ``random_state``, or a function
        ``factory(n_clusters, ranks, seed, **settings)`` that returns an object with ``fit(X)`` and
        ``labels_``. For several processes the function must be importable by its name.
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

    def __post_init__(self) -> None:
        check_option(self.role, "role", "Method", ROLES)

    def runs_in(self, asked: int) -> int:
        """Return the number of runs in a row that asks for so many; a single run stays one."""
        # A row of a single run has nothing that changes from run to run.
        return asked if asked == 1 or self.runs is None else max(asked, self.runs)


class _OnPixels:
    """A scikit-learn clusterer on flattened samples."""

    def __init__(self, clusterer: Any) -> None:
        self.clusterer = clusterer

    def fit(self, X: np.ndarray) -> _OnPixels:
        self.clusterer.fit(np.reshape(X, (X.shape[0], -1)))
        self.labels_ = self.clusterer.labels_
        self.n_iter_ = getattr(self.clusterer, "n_iter_", None)
        return self


def kmeans_on_pixels(n_clusters: int, ranks: Any, seed: int, **settings: Any) -> Any:
    """Build scikit-learn's k-means on flattened samples."""
    from sklearn.cluster import KMeans

    return _OnPixels(KMeans(n_clusters, random_state=seed, **settings))


def spectral_on_pixels(n_clusters: int, ranks: Any, seed: int, **settings: Any) -> Any:
    """Build scikit-learn's spectral clustering on flattened samples."""
    from sklearn.cluster import SpectralClustering

    return _OnPixels(SpectralClustering(n_clusters, random_state=seed, **settings))


class _OneStart:
    """The paper's method with labels from a single random start of k-means."""

    def __init__(self, model: Any, n_clusters: int, seed: int) -> None:
        self.model, self.n_clusters, self.seed = model, n_clusters, seed

    def fit(self, X: np.ndarray) -> _OneStart:
        from sklearn.cluster import KMeans

        self.model.fit(X)
        last = KMeans(self.n_clusters, init="random", n_init=1, random_state=self.seed)
        self.labels_ = last.fit(self.model.memberships_).labels_
        self.n_iter_, self.stop_reason_ = self.model.n_iter_, self.model.stop_reason_
        return self


def one_start(n_clusters: int, ranks: Any, seed: int, **settings: Any) -> Any:
    """Build the paper's method with a single random start of k-means at its end."""
    from tuckermix.baselines import PCAMultinomial

    model = PCAMultinomial(n_clusters, ranks=ranks, random_state=seed, **settings)
    return _OneStart(model, n_clusters, seed)


KMEANS_STARTS = 10
"""As many starts as the other methods give the k-means at their end."""

_BASELINES = "tuckermix.baselines"
_FEW_ITERATIONS = {"max_iter": 20}
_ALL_SWEEPS = {"tol": 0.0}
"""The paper fixes the number of sweeps, 250; the default tolerance would end after a few."""

METHODS: dict[str, Method] = {}
"""The methods by name."""


REGISTERED = """
Parameters
----------
replace : bool, default=False
    Whether it may take the place of another of that name.

Returns
-------
entry : object
    The same.
"""
"""What registrations share."""


def add_entry(registry: dict[str, Any], entry: Any, kind: str, replace: bool) -> Any:
    """Put an entry into a registry under its name; another of that name stays unless told so."""
    if entry.name in registry and not replace:
        raise ValueError(
            f"A {kind} called {entry.name!r} is already registered: choose another name or pass "
            "replace=True."
        )
    registry[entry.name] = entry
    return entry


@describe(REGISTERED)
def register_method(method: Method, *, replace: bool = False) -> Method:
    """Make a method known by its name.

    Parameters
    ----------
    method : Method
        The column.
    """
    return add_entry(METHODS, method, "method", replace)


_BASE: dict[str, Any] = {"role": "paper", "quick_settings": _FEW_ITERATIONS, "on": "pixels"}
_TENSOR: dict[str, Any] = _BASE | {"takes_ranks": True, "on": "tensors"}
_SWEEPS: dict[str, Any] = _BASE | {
    "takes_start": True,
    "settings": _ALL_SWEEPS,
    "cost": LONG,
    "on": "tensors",
    "slow_on": ("table4", "table5/YaleB, 10 persons", "table6", "beyond"),
}
_PIXELS: dict[str, Any] = {"role": "orientation", "cost": CHEAP, "on": "pixels"}
_SLOW: dict[str, Any] = {"cost": LONG, "slow_on": ("table4",)}
_RANDOM_START = "Starts at random, where the paper starts from its first HOSVD; at most 1000 steps."
_UNCHECKED = "K-means at the start. Own port from an abstract, not checked."
_NMF = "nonnegative matrix factorisation by"

# Name, class or function, description, and what differs from the defaults of `Method`.
for _name, _factory, _description, _options in (
    (
        "MM",
        "MultiplicativeNMF",
        f"{_NMF} multiplicative updates",
        _BASE | {"notes": _RANDOM_START},
    ),
    (
        "ALS",
        "AlternatingNMF",
        f"{_NMF} alternating nonnegative least squares",
        _BASE | _SLOW | {"notes": _RANDOM_START},
    ),
    (
        "B-NMF",
        "BayesianNMF",
        "Bayesian nonnegative matrix factorisation",
        _BASE
        | {
            "cost": LONG,
            "notes": "Always 1000 sweeps of the Gibbs sampler, from a random start.",
            "slow_on": ("table3", "table4", "table5"),
        },
    ),
    (
        "PGM",
        "ProjectedGradientNMF",
        f"{_NMF} projected gradients",
        _BASE
        | _SLOW
        | {
            "settings": {"tol": 1e-6},
            "notes": f"{_RANDOM_START} The toolbox's tolerance.",
            "slowest_on": ("table4",),
        },
    ),
    (
        "DRCC",
        "DRCC",
        "dual regularised co-clustering",
        _BASE
        | {
            "notes": "Its authors' step from k-means; penalties 1 and 5 neighbours for all data, "
            "where they search; at most 200 cycles.",
        },
    ),
    (
        "Tri-ONTD",
        "TriONTD",
        "orthogonal nonnegative tri-factor tensor decomposition",
        _TENSOR | {"cost": LONG, "notes": _UNCHECKED},
    ),
    (
        "PCA-B",
        "PCAB",
        "the same Tucker model with memberships that are nonnegative only",
        _TENSOR
        | {
            "settings": _ALL_SWEEPS,
            "notes": "At most 250 sweeps, as in the paper; a random start; ten starts of k-means.",
        },
    ),
    (
        "ASI-T",
        "ASIT",
        "adaptive subspace iteration on tensors",
        {
            "takes_ranks": True,
            "on": "tensors",
            "notes": f"Ten starts. {_UNCHECKED}",
        },
    ),
    (
        "PCA-Multinomial",
        "PCAMultinomial",
        "the paper's algorithm with the paper's settings",
        _SWEEPS
        | {
            "takes_ranks": True,
            "notes": "At most 250 sweeps from the first HOSVD; ten starts of k-means at the end.",
        },
    ),
    (
        "PCA-Multinomial-1",
        one_start,
        "the same with a single random start of k-means, the default of MATLAB",
        _SWEEPS
        | {
            "role": "extra",
            "variant_of": "PCA-Multinomial",
            "slow_on": ("table2", "table3", "table4", "table5"),
        },
    ),
    (
        "k-means",
        kmeans_on_pixels,
        "scikit-learn's k-means on pixels, ten starts",
        _PIXELS | {"settings": {"n_init": KMEANS_STARTS}},
    ),
    (
        "spectral",
        spectral_on_pixels,
        "scikit-learn's spectral clustering on pixels, nearest-neighbour graph",
        _PIXELS
        | {
            "settings": {"affinity": "nearest_neighbors"},
            "notes": "Pixels as they are, not scaled to unit rows.",
        },
    ),
    (
        "AutoClustering",
        "tuckermix:AutoClustering",
        "this package, which chooses the view of the samples by stability; K is given",
        {
            "cost": MODERATE,
            "role": "ours",
            "on": "tensors and, for images, their scattering transform",
            "notes": "No core size, no labels, no setting: everything else is its default.",
        },
    ),
    (
        "TuckerClustering",
        "tuckermix:TuckerClustering",
        "this package with its defaults; only the core size is given",
        {
            "takes_ranks": True,
            "takes_start": True,
            "cost": CHEAP,
            "role": "ours",
            "on": "tensors",
        },
    ),
):
    if isinstance(_factory, str) and ":" not in _factory:
        _factory = f"{_BASELINES}:{_factory}"
    register_method(Method(_name, _factory, description=_description, **_options))


def select_methods(names: Iterable[str] | None, columns: Iterable[str]) -> list[Method]:
    """Return the methods called `names`, or those of the table's own `columns` for None."""
    chosen = []
    for name in columns if names is None else names:
        check_option(name, "methods", "reproduce", METHODS)
        chosen.append(METHODS[name])
    return chosen


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
    if callable(method.factory):
        return method.factory(n_clusters, ranks, seed, **settings)
    estimator = _imported(method.factory)
    if method.takes_ranks:
        settings = {"ranks": ranks, **settings}
    return estimator(n_clusters=n_clusters, random_state=seed, **settings)


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
    root = importlib.util.find_spec(PACKAGE)
    if root is None or root.origin is None:
        return None
    base = Path(root.origin).parent.joinpath(*module.split(".")[1:])
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


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


def code_fingerprint(factory: str | Callable[..., Any]) -> str:
    """Return a digest of the code that a method runs, comments and docstrings left out.

    Parameters
    ----------
    factory : str or callable
        What builds the method: "module:Class" or a function.

    Returns
    -------
    digest : str
        For a class of this package, of its module and all modules of this package that it imports,
        directly or not; for a function, of its own source, of what it names in its own module, and
        of the modules of this package that these import inside; empty where there is none.
    """
    if isinstance(factory, str):
        try:
            return _module_fingerprint(_imported(factory).__module__)
        except (ImportError, AttributeError):
            return ""  # its cells will say why
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
