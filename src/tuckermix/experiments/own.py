"""A method of one's own as a column of the tables, from the words ``module:object``.

The object is imported where its cells are computed, in a process of its own; nothing of it runs
before. What may stand there: a class or a function that takes the number of clusters and gives
something with ``fit_predict``, such a thing ready made, or a function of samples and number.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial, reduce
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._array_api import to_numpy
from tuckermix._names import VIEWS
from tuckermix._records import Record
from tuckermix._validation import check_option
from tuckermix.experiments.methods import DIGITS, METHODS, MODERATE, Method

__all__ = ["own_method"]

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
        For ``methods=`` of :func:`tuckermix.experiments.benchmark`. Its version is a digest of the
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
        cost=MODERATE,
        version=hashlib.sha256(source.read_bytes()).hexdigest()[:DIGITS] if source else "1",
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
            names = [name for name, value in vars(module).items() if _of(value, self.module)]
            known = f" It has {', '.join(names)}." if names else ""
            raise AttributeError(
                f"{self.module} has no {self.wanted!r}: check the name.{known}"
            ) from None


def _of(value: Any, module: str) -> bool:
    """Say whether something callable is defined in a module."""
    return callable(value) and getattr(value, "__module__", None) == module


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
        from tuckermix.features import Scattering

        X = Scattering(log=True).fit_transform(X)
    return X if view in ("tensors", "scattering") else np.reshape(X, (len(X), -1))


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
