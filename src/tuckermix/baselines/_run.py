"""Records of what a comparison method does and gives."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tuckermix._records import Record, StopReason


@dataclass(frozen=True)
class Step(Record):
    """One iteration of a method."""

    iteration: int  # zero for the start
    cost: float  # the objective of the method, in units of the data
    relative_error: float  # norm of the residual divided by the norm of the data
    time: float  # seconds since the start of the run
    # Distance to a known optimum; not a number, since these methods know none.
    gap: float = float("nan")


@dataclass
class Run(Record):
    """What one start of a method gives; the estimator keeps the run of least cost.

    Attributes
    ----------
    memberships : ndarray of shape (n_samples, n_clusters)
        The weights on which labels are based.
    cost : float
        The objective at the end.
    n_iter : int
        Iterations done.
    stop_reason : StopReason
        Why the run ended.
    history : list of Step
        One record an iteration, the start first.
    fitted : dict
        Further fitted attributes by name: arrays, lists of arrays or plain values.
    measure : str
        What `tol` is compared with, for the warning when `max_iter` is reached.
    residual : float
        The last value of that measure. Not a number: reaching `max_iter` is no failure.
    failure : str
        Why the result is meaningless, when `stop_reason` is `StopReason.FAILED`.
    """

    memberships: np.ndarray
    cost: float
    n_iter: int
    stop_reason: StopReason
    history: list[Any]
    fitted: dict[str, Any] = field(default_factory=dict)
    measure: str = "relative change of the cost"
    residual: float = float("nan")
    failure: str = ""

    def beats(self, other: Run | None) -> bool:
        """Tell whether this run is to be kept rather than `other`."""
        if other is None:
            return True
        failed, other_failed = (r.stop_reason is StopReason.FAILED for r in (self, other))
        return self.cost < other.cost if failed == other_failed else other_failed


class Trace:
    """Collect the records of a run.

    Parameters
    ----------
    squared_norm : float
        The squared norm of the data, for relative errors.
    step : callable, default=Step
        Makes a record of iteration, cost, relative error and time.
    """

    def __init__(self, squared_norm: float, step: Callable[..., Any] = Step) -> None:
        self.records: list[Any] = []
        self._squared_norm = squared_norm
        self._step = step
        self._begin = time.perf_counter()

    def add(self, cost: float, squared_error: float | None = None, **further: float) -> float:
        """Record one more iteration, the first time the start, and return the relative error.

        Parameters
        ----------
        cost : float
            The objective.
        squared_error : float, default=None
            The squared norm of the residual; None means twice the cost.
        further : float
            Further fields of the record.

        Returns
        -------
        relative_error : float
            Norm of the residual divided by the norm of the data; 0 for data that are all zero.
        """
        squared = 2.0 * cost if squared_error is None else max(0.0, squared_error)
        error = float(np.sqrt(squared / self._squared_norm)) if self._squared_norm > 0 else 0.0
        elapsed = time.perf_counter() - self._begin
        self.records.append(self._step(len(self.records), cost, error, elapsed, **further))
        return error


def relative_change(records: list[Step]) -> float:
    """Return the relative change of the error from the last record but one to the last.

    Parameters
    ----------
    records : list of Step
        At least two records.

    Returns
    -------
    change : float
        Not negative; zero when the error stays zero.
    """
    before, after = records[-2].relative_error, records[-1].relative_error
    change = abs(before - after)
    return change / max(before, after) if change > 0 else 0.0
