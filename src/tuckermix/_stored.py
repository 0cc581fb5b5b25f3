"""The grammar in which values of a fitted model are written as JSON, with arrays kept aside.

====================================  =======================================================
value                                 how it is written
====================================  =======================================================
None, bool, int, str, finite float    as itself
float that is not finite              ``{"float": "nan"}``, ``"inf"``, ``"-inf"``
list                                  a list
tuple                                 ``{"tuple": [...]}``
dict with strings as keys             ``{"dict": {...}}``
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
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from tuckermix._archives import NUMERIC_KINDS
from tuckermix._array_api import is_array, is_dask, to_numpy
from tuckermix._records import Record, StopReason

RECORDS = {
    "Model": "tuckermix.model:Model",
    "Tree": "tuckermix.labels.tree:Tree",
    "Selection": "tuckermix.selection.record:Selection",
    "Trial": "tuckermix.selection.record:Trial",
    "Filling": "tuckermix.decomposition.missing:Filling",
    "Summary": "tuckermix.decomposition.stream:Summary",
    "Step": "tuckermix.baselines._base:Step",
    "SweepRecord": "tuckermix.decomposition.result:SweepRecord",
    "FittedModel": "tuckermix.model:Model",  # as version 0.1.0 called it
}
"""Records that come back as what they were, with their places; others as `StoredRecord`."""

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
    describe : callable, default=None
        ``describe(estimator, encoder)`` writes an estimator that another one holds.
    """

    owner: str
    describe: Callable[..., dict[str, Any]] | None = None
    arrays: dict[str, np.ndarray] = field(default_factory=dict, init=False)
    _names: dict[int, str] = field(default_factory=dict, init=False)
    _alive: list[Any] = field(default_factory=list, init=False)

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
        if is_array(value) or is_dask(value):
            return self._array(value, name)
        if hasattr(value, "to_arrays") and isinstance(getattr(value, "kind", None), str):
            return {"labeller": value.kind, "state": self._fields(value.to_arrays(), name)}
        if self.describe is not None and hasattr(value, "get_params"):
            return {"estimator": self.describe(value, self)}
        if isinstance(value, Record):
            return {"record": type(value).__name__, "fields": self._fields(value.to_dict(), name)}
        raise TypeError(
            f"{self.owner}.{name} holds a {type(value).__name__}, which cannot be stored: "
            "use numbers, strings, arrays, or lists and tuples of them."
        )

    def _fields(self, values: dict[str, Any], name: str) -> dict[str, Any]:
        return {key: self.encode(value, f"{name}.{key}") for key, value in values.items()}

    def _array(self, value: Any, name: str) -> dict[str, Any]:
        if id(value) in self._names:
            return {"array": self._names[id(value)]}
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
        self._names[id(value)] = key
        self._alive.append(value)  # an id stays taken as long as its object lives
        return {"array": key}


@dataclass
class Decoder:
    """Read values back.

    Parameters
    ----------
    arrays : dict
        The arrays by name.
    build : callable, default=None
        ``build(described, decoder)`` makes an estimator that another one holds.
    """

    arrays: dict[str, np.ndarray]
    build: Callable[..., Any] | None = None

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
            case {"strings": list(items), **rest} if not rest:
                return np.array([str(item) for item in items], dtype=object)
            case {"stop_reason": str(reason), **rest} if not rest:
                return StopReason(reason)
            case {"record": str(name), "fields": dict(fields), **rest} if not rest:
                return self._record(name, self._fields(fields, depth))
            case {"labeller": str(kind), "state": dict(fields), **rest} if not rest:
                from tuckermix.labels import labeller_from_arrays

                return labeller_from_arrays(kind, self._fields(fields, depth))
            case {"estimator": dict(described), **rest} if not rest and self.build is not None:
                return self.build(described, self)
        raise ValueError(f"a value with the keys {', '.join(sorted(value)) or 'none'} is unknown")

    def _fields(self, values: dict[str, Any], depth: int) -> dict[str, Any]:
        return {key: self.decode(item, depth + 1) for key, item in values.items()}

    def _record(self, name: str, fields: dict[str, Any]) -> Any:
        if name not in RECORDS:
            return StoredRecord(**fields)
        module, _, attribute = RECORDS[name].partition(":")
        return getattr(import_module(module), attribute)(**fields)
