"""Saving and loading fitted models, without a way for a file to run code.

A model file is a zip archive: ``header.json`` with format version, class, parameters, fitted values
and package versions, and one ``.npy`` member for each array. Values are described by the small
grammar below; classes are looked up in fixed tables; nothing is ever unpickled.

====================================  =======================================================
value                                 how it is written
====================================  =======================================================
None, bool, int, str, finite float    as itself
float that is not finite              ``{"float": "nan"}``, ``"inf"``, ``"-inf"``
list                                  a list
tuple                                 ``{"tuple": [...]}``
dict with strings as keys             ``{"dict": {...}}``
dict of texts by number               ``{"texts": {...}}``
array of numbers, of any library      ``{"array": name}``
array of strings                      ``{"strings": [...]}``
stop reason                           ``{"stop_reason": value}``
record                                ``{"record": class name, "fields": {...}}``
labeller                              ``{"labeller": kind, "state": {...}}``
estimator within another              ``{"estimator": {"class": ..., "parameters": ..., ...}}``
====================================  =======================================================
"""

from __future__ import annotations

import json
import math
import numbers
import os
import re
import zipfile
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import SimpleNamespace
from typing import IO, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tuckermix._archives import NUMERIC_KINDS, open_archive, zip_entries
from tuckermix._array_api import is_array, is_dask, to_numpy
from tuckermix._files import atomic_open
from tuckermix._machine import default_limit
from tuckermix._reading import SAVE_AGAIN, ReadError, Refusal, check_fits, explained
from tuckermix._records import Record, StopReason
from tuckermix._validation import EVERY_ESTIMATOR, EVERY_MODEL, check_fields
from tuckermix._version import __version__
from tuckermix.features.registry import TRANSFORMERS
from tuckermix.summary import NUMERICAL, versions

__all__ = ["FORMAT_VERSION", "ModelFileError", "load", "save"]

FORMAT = "tuckermix model"
"""The mark by which a header is one of ours."""

FORMAT_VERSION = 3
"""Raised by one when older versions of the package can no longer read the files. A new field of the
header or of a model keeps the number if the field may be absent."""

OLDEST_VERSION = 2
"""The oldest format that is read. In format 2, of version 0.1.0, the labeller is stored beside the
model and not in it. Files of format 1 do not say in which directions labels compare samples."""

HEADER = "header.json"
"""The member with everything that is not an array."""

SMALL_HEADER = 16 * 2**20
"""Memory that a header may take for any `max_bytes`: a history of thousands of sweeps."""

PACKED_HEADER, MAX_RATIO = 2**20, 20
"""Bytes that a header may have in any file, and how many more for each byte of the file. `save`
does not pack; packing makes honest text ten times smaller, and a hostile one a thousand times."""

BASELINES = (
    "ADSSC ASIT AlternatingNMF AutoSC BayesianNMF DRCC EnSC LSR MultiplicativeNMF PCAB "
    "PCAMultinomial ProjectedGradientNMF SSCOMP TAGCSC TriONTD"
)

COMPOSED = dict.fromkeys(("AutoClustering", "MultiViewClustering"), "tuckermix.selection")
"""Estimators that hold others, with their modules."""

CLASSES = {
    "TuckerClustering": "tuckermix.clustering",
    **COMPOSED,
    **dict.fromkeys(BASELINES.split(), "tuckermix.baselines"),
}
"""The estimators that can be stored, with their modules. A file cannot name any other class."""

OPTIONS = {"GraphLabels": "tuckermix.labels"}
"""Classes of values of parameters, with their modules."""

PIPELINE = "Pipeline"
"""How a header calls a pipeline of scikit-learn; its steps are described like estimators."""

WHOLE = {**CLASSES, PIPELINE: "sklearn.pipeline"}

RECORDS = {
    "Model": "tuckermix.model",
    "Tree": "tuckermix.labels.tree",
    "Selection": "tuckermix.selection.record",
    "Trial": "tuckermix.selection.record",
    "Filling": "tuckermix.decomposition.missing",
    "Summary": "tuckermix.decomposition.stream",
    "Step": "tuckermix.baselines._base",
    "SweepRecord": "tuckermix.decomposition.result",
}
"""Records that come back as what they were, with their modules; others as `StoredRecord`."""

AGAIN = "Save the model again"
"""The remedy for a file that is damaged."""

TIMESTAMP = (1980, 1, 1, 0, 0, 0)
"""The date of all members: equal models give equal files."""


class ModelFileError(ValueError):
    """A file that is not a model of this package, or is damaged; the message says which."""


def save(model: Any, path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
    """Save a fitted model.

    The file appears whole or not at all, and never in place of a symbolic link. Arrays on a GPU and
    Dask arrays are stored as NumPy arrays. A `random_state` that is not a number, such as a
    Generator, is stored as None. The weights of a network are not stored, see
    `tuckermix.features.Network`.

    Parameters
    ----------
    model : TuckerClustering, AutoClustering, MultiViewClustering, a baseline, or a Pipeline
        The fitted estimator, or a scikit-learn pipeline of transformers of `tuckermix.features`
        that ends in one.
    path : str or path
        The file to write, with any ending.
    overwrite : bool, default=True
        Whether a file that is there is replaced, as `numpy.save` and `joblib.dump` do too.

    Raises
    ------
    FileExistsError
        If there is a file already, with ``overwrite=False``.

    Examples
    --------
    >>> import tuckermix
    >>> tuckermix.save(model, "model.tuckermix")  # doctest: +SKIP
    >>> tuckermix.load("model.tuckermix").predict(X_new)  # doctest: +SKIP
    """
    if not overwrite and os.path.lexists(path):
        raise FileExistsError(
            f"{os.fspath(path)} is there already: name another file, or pass overwrite=True."
        )
    with atomic_open(path) as stream:
        write_model(model, stream)


def write_model(model: Any, stream: IO[bytes]) -> None:
    """Write a fitted model to an open file, see `save`."""
    encoder = Encoder(type(model).__name__)
    header = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        **encoder.estimator(model, WHOLE),
        "arrays": {
            key: {"shape": list(array.shape), "dtype": array.dtype.str}
            for key, array in encoder.arrays.items()
        },
        "versions": versions(NUMERICAL),
    }
    content = json.dumps(header, allow_nan=False, indent=1).encode()
    with _NewArchive(stream, "w") as archive:
        archive.writestr(zipfile.ZipInfo(HEADER, TIMESTAMP), content)
        for key, array in encoder.arrays.items():
            member = zipfile.ZipInfo(f"{key}.npy", TIMESTAMP)
            with archive.open(member, "w", force_zip64=True) as target:
                np.lib.format.write_array(target, array, allow_pickle=False)


class _NewArchive(zipfile.ZipFile):
    """An archive that is left unfinished when writing is cut short: it is deleted anyway.

    Ctrl-C may come after an entry is begun and before it is handed out. Closing the archive would
    then report the open entry instead of the interrupt.
    """

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if kind is None:
                self.close()
        finally:
            self.fp = None  # it is not closed when it is garbage-collected either


def load(path: str | os.PathLike[str], *, max_bytes: int | None = None) -> Any:
    """Load a model that `save` wrote. No code in the file is run.

    Parameters
    ----------
    path : str or path
        The file.
    max_bytes : int, default=None
        The most memory that the arrays may take, checked before any is read; and the header,
        which may have 16 MiB in any case. None means half of the machine's memory.

    Returns
    -------
    model : estimator
        The fitted estimator, with NumPy arrays.

    Raises
    ------
    ModelFileError
        If the file is damaged, foreign, hostile, or from a newer version; the message says which.
    """
    if not os.path.exists(path):
        raise FileNotFoundError(f"Cannot load {os.fspath(path)}: it does not exist.")
    try:
        with open_archive(path) as archive:
            limit = default_limit() if max_bytes is None else max_bytes
            header = _read_header(path, archive, limit)
            arrays = _read_arrays(path, archive, header, limit)
            return Decoder(arrays, header["version"]).estimator(header, WHOLE, fitted=True)
    except Exception as error:  # damaged bytes make the parsers raise nearly anything
        problem, remedy = _explained(error)
        raise ModelFileError(f"Cannot load {os.fspath(path)}: {problem}. {remedy}.") from error


def _explained(error: Exception) -> tuple[str, str]:
    """Say what is wrong with a file at which loading ended, and what to do about it."""
    if isinstance(error, ReadError) and not isinstance(error, Refusal):
        return str(error).rstrip("."), AGAIN
    if isinstance(error, zipfile.BadZipFile):
        return f"it is not a model file, or it is truncated ({error})", AGAIN
    problem, remedy = explained(error).args
    return problem, AGAIN if remedy == SAVE_AGAIN else remedy


def _class(name: str) -> Any:
    return getattr(import_module({**WHOLE, **TRANSFORMERS, **OPTIONS, **RECORDS}[name]), name, None)


def _read_header(
    path: str | os.PathLike[str], archive: zipfile.ZipFile, limit: int
) -> dict[str, Any]:
    """Read the header and check that it is ours, of a version that we know."""
    names = archive.namelist()
    if HEADER not in names:
        raise Refusal(f"it has no {HEADER}", "Name a file that tuckermix.save wrote")
    size = archive.getinfo(HEADER).file_size
    limit = max(limit, SMALL_HEADER)
    if size > min(limit, PACKED_HEADER + MAX_RATIO * os.path.getsize(path)):
        raise Refusal(f"its header claims {size} bytes", AGAIN)
    try:
        header = bounded_json(archive.read(HEADER), limit)
    except (ValueError, RecursionError) as error:
        raise Refusal(f"its header cannot be read ({error})", AGAIN) from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise Refusal("its header is not that of a model", "Name a file that tuckermix.save wrote")
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise Refusal(f"unknown format version {version!r}", AGAIN)
    if version > FORMAT_VERSION:
        raise Refusal(
            f"unknown format version {version}, and tuckermix {__version__} reads up to "
            f"{FORMAT_VERSION}",
            "Install a newer tuckermix",
        )
    if version < OLDEST_VERSION:
        raise Refusal(
            f"it has format version {version}, and tuckermix {__version__} reads {OLDEST_VERSION} "
            f"to {FORMAT_VERSION}",
            "Fit the model again",
        )
    for key in ("parameters", "state", "arrays"):
        if not isinstance(header.get(key), dict):
            raise Refusal(f"its header has no {key!r}", AGAIN)
    expected = {HEADER, *(f"{key}.npy" for key in header["arrays"])}
    if len(names) != len(expected) or set(names) != expected:
        strange = sorted(set(names) ^ expected)[:3] or ["a repeated name"]
        raise Refusal(f"its members are not those of its header ({strange[0]!r})", AGAIN)
    return header


def _read_arrays(
    path: str | os.PathLike[str], archive: zipfile.ZipFile, header: dict[str, Any], limit: int
) -> dict[str, np.ndarray]:
    """Read the arrays after comparing what they and the header claim with each other."""
    entries = zip_entries(path, archive)
    total = sum(entry.nbytes for entry in entries)
    check_fits("its arrays", total, limit)
    for entry in entries:
        claimed = header["arrays"][entry.name]
        actual = {"shape": list(entry.shape), "dtype": entry.dtype.str}
        if not entry.numeric or claimed != actual:
            raise Refusal(
                f"the array {entry.name!r} is {actual}, and the header says {claimed}", AGAIN
            )
    return {entry.name: entry.load() for entry in entries}


MAX_DEPTH = 50
"""Nesting of values: models have a handful of levels, a hostile file may have any number."""

JSON_DEPTH = 4 * MAX_DEPTH
"""Nesting of JSON: a value of ours takes up to three levels of it."""

MAX_VALUES = 2_000_000
"""Values in a header: a history of 100,000 sweeps has half as many, and to read them takes
seconds."""

VALUE_BYTES = 256
"""Memory that a value takes at most once it is parsed: an empty dictionary under a name of its own
in another one."""

LETTER_BYTES = 8
"""Memory that a letter takes at most: four bytes in the text, and four in a string of it."""

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
"""A string in JSON, closed or not, so that each letter is looked at once."""

_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def bounded_json(content: bytes, limit: int) -> Any:
    """Parse JSON after counting how deep it is nested and how much memory it will take.

    Parameters
    ----------
    content : bytes
        The text, in UTF-8.
    limit : int
        The most memory that the parsed values may take.

    Returns
    -------
    value : object
        What it says. Numbers that JSON does not know, such as NaN, are refused.
    """
    bare = _STRING.sub(b"", content)
    n_values = 1 + sum(bare.count(sign) for sign in (b",", b"[", b"{"))
    if n_values > MAX_VALUES:
        raise ValueError(f"it holds {n_values} values, more than {MAX_VALUES}")
    needed = VALUE_BYTES * n_values + LETTER_BYTES * len(content)
    if needed > limit:
        raise ValueError(f"it takes up to {needed} bytes of memory, and the limit is {limit}")
    brackets = np.frombuffer(bare.translate(None, _NO_BRACKETS), dtype=np.uint8)
    steps = np.where((brackets == ord("[")) | (brackets == ord("{")), 1, -1)
    depth = int(np.cumsum(steps).max(initial=0))
    if depth > JSON_DEPTH:
        raise ValueError(f"it is nested {depth} deep, more than {JSON_DEPTH}")
    return json.loads(content, parse_constant=_no_constant)


def _no_constant(text: str) -> float:
    raise ValueError(f"JSON has no {text}")


class StoredRecord(Record, SimpleNamespace):
    """A record read from a file: the same fields, by attribute and by key."""

    def keys(self) -> list[str]:
        """Return the names of the fields."""
        return list(vars(self))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"This record has no field {name!r}, but {', '.join(vars(self))}.")


@dataclass
class Encoder:
    """Write values as JSON and collect the arrays, each once.

    Parameters
    ----------
    owner : str
        The name of the class whose values are written, for messages.
    """

    owner: str
    arrays: dict[str, np.ndarray] = field(default_factory=dict, init=False)
    # Its name by the id of an array, which stays taken as long as the array lives.
    _stored: dict[int, tuple[str, Any]] = field(default_factory=dict, init=False)

    def estimator(
        self, model: Any, classes: dict[str, str], *, fitted: bool = True
    ) -> dict[str, Any]:
        """Describe an estimator of one of `classes`: class, parameters and fitted values."""
        name = type(model).__name__
        if name not in classes or type(model) is not _class(name):
            raise TypeError(
                f"save takes {', '.join(classes)}. Got {type(model).__module__}.{name} instead."
            )
        outer, steps = self.owner, []
        if name == PIPELINE:
            for place, (label, step) in enumerate(model.steps):
                if step is None or step == "passthrough":
                    continue
                allowed = CLASSES if place == len(model.steps) - 1 else TRANSFORMERS
                steps.append({"name": label, **self.estimator(step, allowed, fitted=fitted)})
            given, state = {}, {key: one for key, one in vars(model).items() if key.endswith("_")}
        else:
            if fitted:
                check_is_fitted(model)
            given = model.get_params(deep=False)
            if hasattr(model, "_stored_parameters"):
                given = model._stored_parameters()
            state = {key: value for key, value in vars(model).items() if key not in given}
        self.owner = name
        described = {
            "class": name,
            "parameters": {key: self.parameter(key, value) for key, value in given.items()},
            "state": {key: self.encode(value, key) for key, value in state.items()},
            **({"steps": steps} if steps else {}),
        }
        self.owner = outer
        return described

    def parameter(self, name: str, value: Any) -> Any:
        """Write a parameter; sources of randomness that are no numbers become None."""
        random = np.random.Generator | np.random.RandomState | np.random.SeedSequence
        return None if isinstance(value, random) else self.encode(value, name)

    def encode(self, value: Any, name: str) -> Any:
        """Write a value; `name` says where it is, for messages."""
        if isinstance(value, StopReason):
            return {"stop_reason": value.value}
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, numbers.Integral):
            return int(value)
        if isinstance(value, numbers.Real):
            number = float(value)
            return number if math.isfinite(number) else {"float": str(number)}
        if isinstance(value, list):
            return [self.encode(item, name) for item in value]
        if isinstance(value, tuple):
            return {"tuple": [self.encode(item, name) for item in value]}
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {"dict": self._fields(value, name)}
        if isinstance(value, dict) and all(
            type(key) is int and isinstance(text, str) for key, text in value.items()
        ):
            return {"texts": {str(key): text for key, text in value.items()}}
        if is_array(value) or is_dask(value):
            return self._array(value, name)
        if hasattr(value, "to_arrays") and isinstance(getattr(value, "kind", None), str):
            return {"labeller": value.kind, "state": self._fields(value.to_arrays(), name)}
        if hasattr(value, "get_params"):
            fitted = type(value).__name__ != PIPELINE and any(key[-1] == "_" for key in vars(value))
            held = {**WHOLE, **OPTIONS}
            return {"estimator": self.estimator(value, held, fitted=fitted)}
        if isinstance(value, Record):
            return {"record": type(value).__name__, "fields": self._fields(value.to_dict(), name)}
        raise TypeError(
            f"{self.owner}.{name} holds a {type(value).__name__}, which cannot be stored: "
            "use numbers, strings, arrays, or lists and tuples of them."
        )

    def _fields(self, values: dict[str, Any], name: str) -> dict[str, Any]:
        return {key: self.encode(value, f"{name}.{key}") for key, value in values.items()}

    def _array(self, value: Any, name: str) -> dict[str, Any]:
        if id(value) in self._stored:
            return {"array": self._stored[id(value)][0]}
        array = np.asarray(value) if is_dask(value) else to_numpy(value)
        if array.dtype.kind in "OU":
            strings = array.tolist()
            if array.ndim == 1 and all(isinstance(item, str) for item in strings):
                return {"strings": strings}
        if array.dtype.kind not in NUMERIC_KINDS:
            raise TypeError(
                f"{self.owner}.{name} is an array of {array.dtype}, which cannot be stored: "
                "use real numbers."
            )
        key = f"array_{len(self.arrays)}"
        self.arrays[key] = np.asarray(array)
        self._stored[id(value)] = key, value
        return {"array": key}


@dataclass
class Decoder:
    """Read values back.

    Parameters
    ----------
    arrays : dict
        The arrays by name.
    version : int, default=FORMAT_VERSION
        The version of the format.
    """

    arrays: dict[str, np.ndarray]
    version: int = FORMAT_VERSION

    def estimator(
        self,
        described: Any,
        classes: dict[str, str],
        what: str = "an estimator within it",
        *,
        fitted: bool = False,
    ) -> Any:
        """Make an estimator of one of `classes`, and set and check its fitted attributes.

        Only as a parameter of another estimator may it be without any state: not `fitted`.
        """
        if not isinstance(described, dict) or not all(
            isinstance(described.get(key), dict) for key in ("parameters", "state")
        ):
            raise Refusal(f"{what} is damaged", AGAIN)
        name = described.get("class")
        if not isinstance(name, str) or name not in classes:
            raise Refusal(f"its class {name!r} is not known", f"Known are {', '.join(classes)}")
        cls, state = _class(name), {} if name in OPTIONS else described["state"]
        if name == PIPELINE:
            model = cls(self._steps(described.get("steps"), fitted))
        else:
            parameters = self._fields(described["parameters"], 0)
            parameters = getattr(cls, "_in_new_spelling", dict)(parameters)
            unknown = sorted(set(parameters) - set(cls().get_params(deep=False)))
            if unknown:
                raise Refusal(f"{name} has no parameter {unknown[0]!r}", AGAIN)
            model = cls(**parameters)
        for key, value in state.items():
            named = key.isidentifier() and (key.endswith("_") or key.startswith("_"))
            if not named or key.startswith("__") or hasattr(cls, key):
                raise Refusal(f"{name} has no fitted attribute {key!r}", AGAIN)
            setattr(model, key, self.decode(value))
        if name != PIPELINE and (fitted or state):
            self._check(model, what)
        return model

    def _steps(self, described: Any, fitted: bool) -> list[tuple[str, Any]]:
        """Make the steps of a pipeline; what is fitted must fit together."""
        if not isinstance(described, list) or not described:
            raise Refusal("its pipeline has no steps", AGAIN)
        fitted = fitted or any(isinstance(step, dict) and step.get("state") for step in described)
        steps = []
        for place, step in enumerate(described):
            what = f"step {place} of its pipeline"
            if not isinstance(step, dict) or not isinstance(step.get("name"), str):
                raise Refusal(f"{what} is damaged", AGAIN)
            classes = CLASSES if place == len(described) - 1 else TRANSFORMERS
            steps.append((step["name"], self.estimator(step, classes, what, fitted=fitted)))
        return steps

    def _check(self, model: Any, what: str) -> None:
        """Raise where the fitted values of an estimator do not fit together."""
        if self.version == 2 and hasattr(model, "_labeller_"):
            model._model_ = replace(model._model_, labeller=vars(model).pop("_labeller_"))
        name = type(model).__name__
        try:
            if name in CLASSES:
                check_fields(model, EVERY_ESTIMATOR if name in COMPOSED else EVERY_MODEL)
            model._check_state()
        except ValueError as error:
            problem = str(error) if name in CLASSES else f"{what} is damaged: {error}"
            raise Refusal(problem.rstrip("."), AGAIN) from error
        except ImportError as error:
            problem, _, remedy = str(error).rstrip(".").partition(": ")
            raise Refusal(problem, remedy.capitalize()) from error

    def decode(self, value: Any, depth: int = 0) -> Any:
        """Read what `Encoder.encode` wrote."""
        if depth > MAX_DEPTH:
            raise ValueError(f"values are nested more than {MAX_DEPTH} deep")
        if isinstance(value, list):
            return [self.decode(item, depth + 1) for item in value]
        if not isinstance(value, dict):
            return value
        match value:
            case {"array": str(name), **rest} if not rest:
                return self.arrays[name]
            case {"float": "nan" | "inf" | "-inf" as number, **rest} if not rest:
                return float(number)
            case {"tuple": list(items), **rest} if not rest:
                return tuple(self.decode(item, depth + 1) for item in items)
            case {"dict": dict(fields), **rest} if not rest:
                return self._fields(fields, depth)
            case {"texts": dict(texts), **rest} if not rest:
                return {int(key): str(text) for key, text in texts.items()}
            case {"strings": list(items), **rest} if not rest:
                return np.array([str(item) for item in items], dtype=object)
            case {"stop_reason": str(reason), **rest} if not rest:
                return StopReason(reason)
            case {"record": str(name), "fields": dict(fields), **rest} if not rest:
                return self._record(name, self._fields(fields, depth))
            case {"labeller": str(kind), "state": dict(fields), **rest} if not rest:
                from tuckermix.labels import labeller_from_arrays

                return labeller_from_arrays(kind, self._fields(fields, depth))
            case {"estimator": dict(described), **rest} if not rest:
                return self.estimator(described, {**WHOLE, **OPTIONS})
        raise ValueError(f"a value with the keys {', '.join(sorted(value)) or 'none'} is unknown")

    def _fields(self, values: dict[str, Any], depth: int) -> dict[str, Any]:
        return {key: self.decode(item, depth + 1) for key, item in values.items()}

    def _record(self, name: str, fields: dict[str, Any]) -> Any:
        name = "Model" if name == "FittedModel" else name  # as version 0.1.0 called it
        return (_class(name) if name in RECORDS else StoredRecord)(**fields)
