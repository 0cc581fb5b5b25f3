"""Records that functions return, and the reasons for which a solver stops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any


class Record:
    """Give a dataclass reading by key (``record["cost"]``) beside reading by attribute."""

    def keys(self) -> list[str]:
        """Return the names of the fields."""
        return [field.name for field in fields(self)]  # type: ignore[arg-type]

    def __getitem__(self, key: str) -> Any:
        if isinstance(key, str) and key in self.keys():
            return getattr(self, key)
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return key in self.keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a plain dictionary, without copying the values."""
        return {key: getattr(self, key) for key in self.keys()}


class StopReason(StrEnum):
    """Why an iteration ended. `converged` tells whether that means success."""

    TOLERANCE = "tolerance"
    """The change from one iteration to the next fell below the tolerance."""
    GRADIENT = "gradient"
    """The norm of the gradient fell below the tolerance."""
    STABLE = "stable"
    """The discrete part of the solution (labels) no longer changes."""
    STALLED = "stalled"
    """No further progress is possible in floating-point arithmetic."""
    MAX_ITER = "max_iter"
    """The limit on the number of iterations was reached."""
    MAX_TIME = "max_time"
    """The limit on time was reached."""
    CALLBACK = "callback"
    """The caller's callback asked to stop."""
    INTERRUPTED = "interrupted"
    """The user interrupted the run; the best point so far is returned."""
    FAILED = "failed"
    """The result is meaningless (not finite, or degenerate); the message says why."""

    @property
    def converged(self) -> bool:
        """Whether this reason means that a solution was found."""
        return self in (
            StopReason.TOLERANCE,
            StopReason.GRADIENT,
            StopReason.STABLE,
            StopReason.STALLED,
        )

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class SolverResult(Record):
    """Result of a solver.

    Attributes
    ----------
    point : array
        The best point that was found.
    cost : float
        The objective at `point`.
    n_iter : int
        The number of iterations done.
    stop_reason : StopReason
        Why the iteration ended.
    history : list of Record
        One record per iteration, the start first.
    """

    point: Any
    cost: float
    n_iter: int
    stop_reason: StopReason
    history: list[Any]
