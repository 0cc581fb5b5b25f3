"""Where a run stands, and how much time is left."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tuckermix._records import Record
from tuckermix.experiments.cells import Cell
from tuckermix.experiments.store import RunRecord

__all__ = ["Progress", "RunReport", "TimeEstimate", "log_progress"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Progress(Record):
    """Where a run stands.

    Attributes
    ----------
    done, total : int
        Cells computed in this run, and cells that it has to compute.
    skipped : int
        Cells that were stored before.
    failed : int
        How many of `done` ended without a score.
    running : tuple of str
        The cells in flight.
    elapsed, left : float
        Seconds since the start, and the estimate of those to come (nan while nothing is known).
    last : RunRecord or None
        The record just stored; None when the display is merely refreshed.
    """

    done: int
    total: int
    skipped: int
    failed: int
    running: tuple[str, ...]
    elapsed: float
    left: float
    last: RunRecord | None = None


@dataclass(frozen=True)
class RunReport(Record):
    """What a run did.

    Attributes
    ----------
    db : Path
        The file with the records.
    computed, skipped, failed, missing : int
        Cells computed now, cells stored before, and how many of the former failed or lack data.
    seconds : float
        The time that it took.
    interrupted : bool
        Whether the user stopped it.
    """

    db: Path
    computed: int
    skipped: int
    failed: int
    missing: int
    seconds: float
    interrupted: bool = False


def log_progress(progress: Progress) -> None:
    """Report each finished cell through logging: the display where there is no terminal.

    Parameters
    ----------
    progress : Progress
        Where the run stands.
    """
    record = progress.last
    if record is None:
        return
    score = f"AC {record.ac:.4f} NMI {record.nmi:.4f}" if record.ac is not None else record.status
    left = "" if progress.left != progress.left else f", {progress.left / 60:.1f} min left"
    logger.info(
        "%d/%d%s · %s · %s · %s · run %d · %s · %.1f s",
        progress.done,
        progress.total,
        left,
        record.experiment,
        record.row,
        record.method,
        record.run,
        score,
        record.seconds or 0.0,
    )


class TimeEstimate:
    """Time left, from the mean times of cells like those still to come."""

    def __init__(self, known: Iterable[RunRecord]) -> None:
        self._times: dict[tuple[str, ...], list[float]] = defaultdict(list)
        for record in known:
            self.add(record)

    def add(self, record: RunRecord) -> None:
        """Take note of a cell's time."""
        if record.seconds is not None:
            for key in ((record.experiment, record.row, record.method), (record.method,), ()):
                self._times[key].append(record.seconds)

    def of(self, cell: Cell) -> float:
        """Return the seconds that a cell will take; nan while nothing is known."""
        for key in ((cell.experiment, cell.row.name, cell.method), (cell.method,), ()):
            if self._times[key]:
                return sum(self._times[key]) / len(self._times[key])
        return float("nan")

    def left(self, cells: Iterable[Cell], jobs: int) -> float:
        """Return the seconds that cells will take in so many processes."""
        return sum(self.of(cell) for cell in cells) / max(1, jobs)
