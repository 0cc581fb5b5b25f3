"""Settings of single algorithms, which ablations and tests change for a while.

The tuning of an algorithm is a frozen dataclass beside it, with one field for each figure and the
reason for its value. Users never need it::

    with SpanSettings(dense_side=60).use():
        TuckerClustering(3).fit(X)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Self

_chosen: ContextVar[dict[type, Settings]] = ContextVar("_chosen", default={})  # noqa: B039


@cache
def _defaults(kind: type[Settings]) -> Settings:
    return kind()


class Settings:
    """The tuning of one algorithm: a frozen dataclass with a default for each field."""

    @classmethod
    def current(cls) -> Self:
        """Return the settings in use: those of the innermost `use`, or the defaults."""
        return _chosen.get().get(cls) or _defaults(cls)  # type: ignore[return-value, arg-type]

    @contextmanager
    def use(self) -> Iterator[Self]:
        """Take these settings within a ``with`` block, in this thread and those that it starts."""
        token = _chosen.set({**_chosen.get(), type(self): self})
        try:
            yield self
        finally:
            _chosen.reset(token)
