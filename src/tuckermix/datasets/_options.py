"""The options of `read`, checked once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._axes import ORDER, check_axes
from tuckermix._machine import default_limit
from tuckermix._names import AS_STORED, COLUMNS, CROP, FITS, ON_ERROR, SAMPLE, STOP
from tuckermix._reading import Refusal
from tuckermix._sandbox import Sandbox
from tuckermix._validation import check_integer

FOR_PICTURES = "These options are for images and videos; leave them out"
"""The remedy for options that do not concern stored arrays."""

OneReader = Callable[[Path, "Options"], tuple[np.ndarray, str]]
"""Reads one file of a folder, given its path and the options: the sample, and how it is drawn."""


@dataclass(frozen=True)
class Options:
    """The options of `tuckermix.datasets.read`, where they are described."""

    key: str | None = None
    label_key: str | bool | None = None
    sample_axis: int | None = None
    sample_shape: tuple[int, ...] | None = None
    size: tuple[int, int] | None = None
    whole: bool = False  # size="original"
    fit: str = CROP
    grey: bool | None = None
    frames: int | None = None
    channels: tuple[int | str, ...] | None = None
    axes: str | None = None
    scale: str | dict[str, Any] | None = None
    drop: tuple[str, ...] | None = None
    lazy: bool | str = False
    chunks: int | None = None
    on_error: str = STOP
    max_bytes: int = 0
    remember: Callable[[OneReader], OneReader] | None = None
    sandbox: Sandbox = field(default_factory=lambda: Sandbox(0), compare=False, repr=False)

    @classmethod
    def checked(cls, **given: Any) -> Options:
        """Check what the caller of `read` gave, and bring it into one form."""
        for name, (rule, obeys) in RULES.items():
            if given.get(name) is not None and not obeys(given[name]):
                raise _wrong(name, rule, given[name])
        given = {name: value for name, value in given.items() if value is not None}
        for name in ("frames", "chunks", "max_bytes"):
            if name in given:
                given[name] = check_integer(given[name], name, "read")
        if "axes" in given:
            given["axes"] = check_axes(given["axes"])
        if "channels" in given:
            given["channels"] = _as_tuple(given["channels"])
        if given.get("size") == "original":
            given |= {"size": None, "whole": True}
        elif "size" in given:
            given["size"] = check_pair(given["size"], "size", "read")
        if isinstance(given.get("drop"), str):
            given["drop"] = given["drop"].split(",")
        if "drop" in given:
            given["drop"] = tuple(given["drop"])
        if "sample_shape" in given:
            sizes = _as_tuple(given["sample_shape"])
            given["sample_shape"] = tuple(
                check_integer(size, "sample_shape", "read") for size in sizes
            )
        given.setdefault("max_bytes", default_limit())
        return cls(**given, sandbox=Sandbox(given["max_bytes"]))

    def refuse(self, names: Sequence[str], what: str, remedy: str) -> None:
        """Refuse those of the named options that were given: they cannot be applied to `what`."""
        given = [name for name in names if getattr(self, name) is not None]
        if given:
            raise Refusal(f"{' and '.join(given)} cannot be applied to {what}", remedy)


def check_pair(size: Any, name: str, owner: str) -> tuple[int, int]:
    """Return a size as height and width, given both or one for both."""
    values = tuple(size) if isinstance(size, tuple | list) else (size, size)
    if len(values) != 2:
        raise _wrong(name, "an integer or a pair (height, width)", size, owner)
    height, width = (check_integer(value, name, owner) for value in values)
    return height, width


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _is_integer(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_channels(value: Any) -> bool:
    one_by_one = _as_tuple(value)
    return bool(one_by_one) and all(isinstance(one, str) or _is_integer(one) for one in one_by_one)


def _wrong(name: str, rule: str, value: object, owner: str = "read") -> ValueError:
    return ValueError(f"The {name!r} parameter of {owner} must be {rule}. Got {value!r} instead.")


RULES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "key": ("None or the name of an array", lambda key: isinstance(key, str)),
    "label_key": (
        "None, False or the name of an array",
        lambda key: key is False or isinstance(key, str),
    ),
    "sample_axis": ("None or an integer", _is_integer),
    "axes": (
        f"some of the letters {ORDER}, one for each axis",
        lambda axes: isinstance(axes, str) and check_axes(axes) is not None,
    ),
    "channels": ("numbers or names of channels", _is_channels),
    "grey": ("None, True or False", lambda grey: grey in (True, False)),
    "fit": (f"one of {FITS}", lambda fit: fit in FITS),
    "scale": (
        f"None, {AS_STORED!r}, {SAMPLE!r}, {COLUMNS!r} or a mean and a deviation by column",
        lambda scale: isinstance(scale, dict) or scale in (AS_STORED, SAMPLE, COLUMNS),
    ),
    "lazy": ("True, False or 'auto'", lambda lazy: lazy in (True, False, "auto")),
    "remember": ("None or a function", callable),
    "on_error": ("'stop' or 'skip'", lambda action: action in ON_ERROR),
}
"""Rules for options that are given, in words and as a test."""
