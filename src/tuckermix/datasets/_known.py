"""Facts about the datasets of the paper and a few more, read from `known.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tuckermix.datasets import _layouts
from tuckermix.datasets._layouts import Layout


@dataclass(frozen=True)
class KnownDataset:
    """A dataset that can be asked for by name."""

    name: str  # the name to ask for
    title: str  # its full name
    n_samples: tuple[int, ...]  # the number of samples; several where there are variants
    sample_shape: tuple[int, ...]  # the shape of a sample
    n_classes: int  # the number of classes
    description: str  # what it shows
    terms: str  # what is known about its terms of use
    source: str  # where a person gets it
    layouts: tuple[Layout, ...] = ()  # the forms that are recognised
    sha256: dict[str, str] = field(default_factory=dict)  # checksums of known files, by file name
    class_names: tuple[str, ...] = ()  # the names of the classes by label, where they have names


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _layout(patterns: list[str], reader: str, says: str, arguments: Sequence[Any] = ()) -> Layout:
    reads = getattr(_layouts, reader)
    return Layout(tuple(patterns), partial(reads, *map(_frozen, arguments)), says)


def _known(name: str, layouts: Sequence[dict[str, Any]] = (), **stated: Any) -> KnownDataset:
    forms = tuple(_layout(**form) for form in layouts)
    plain = {key: _frozen(value) for key, value in stated.items()}
    return KnownDataset(name=name, layouts=forms, **plain)


_STATED = tomllib.loads(Path(__file__).with_name("known.toml").read_text(encoding="utf-8"))

KNOWN = {name: _known(name, **stated) for name, stated in _STATED.items()}
"""All known datasets by name, those of the paper first."""
