"""The processes that compute cells."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

from tuckermix.experiments.cells import Cell, execute
from tuckermix.experiments.draws import DatasetEntry
from tuckermix.experiments.methods import Method

__all__ = ["Worker"]

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
"""Read by the numerical libraries when they are loaded, hence set before a process starts."""
STOP_SECONDS = 5.0
"""How long a process may take to end after it was told to."""


@contextmanager
def _one_thread() -> Iterator[None]:
    """Have processes that start now use one thread each, so that jobs do not fight over cores."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _end_with_parent() -> None:
    """End this process as soon as the runner is gone, even if that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _serve(
    connection: Connection,
    data_home: str | None,
    methods: Mapping[str, Method],
    datasets: Mapping[str, DatasetEntry],
) -> None:
    """Compute cells as they arrive, until None arrives."""
    # Ctrl-C reaches every process of the terminal; only the runner acts on it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        while (cell := connection.recv()) is not None:
            connection.send(None)  # the clock of the time limit starts here, not with the imports
            connection.send(execute(cell, data_home=data_home, methods=methods, datasets=datasets))


class Worker:
    """A spawned process that computes one cell at a time.

    Parameters
    ----------
    data_home : str or None
        The folder of the datasets.
    methods, datasets : mapping
        The registries, handed over once.
    """

    def __init__(
        self,
        data_home: str | None,
        methods: Mapping[str, Method],
        datasets: Mapping[str, DatasetEntry],
    ) -> None:
        self.cell: Cell | None = None
        self.started: float | None = None
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(
            target=_serve, args=(theirs, data_home, dict(methods), dict(datasets)), daemon=True
        )
        with _one_thread():
            self.process.start()
        theirs.close()

    def submit(self, cell: Cell) -> None:
        """Hand over a cell."""
        self.cell, self.started = cell, None
        self.connection.send(cell)

    @property
    def elapsed(self) -> float:
        """Seconds since the process began to compute the present cell."""
        return 0.0 if self.started is None else time.monotonic() - self.started

    def collect(self) -> dict[str, Any] | None:
        """Take what the process says: None when it begins, then the outcome of the cell.

        A process that died is an outcome, too.
        """
        try:
            outcome = self.connection.recv()
            if outcome is None:
                self.started = time.monotonic()
        except (EOFError, OSError):
            self.process.join(STOP_SECONDS)
            outcome = {
                "status": "failed",
                "error": (
                    f"The process ended without a result (exit code {self.process.exitcode}): it "
                    "was killed, or ran out of memory."
                ),
            }
        return outcome

    @property
    def alive(self) -> bool:
        """Whether the process can take another cell."""
        return self.process.is_alive()

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self.process.kill()
        self.process.join(STOP_SECONDS)
        self.connection.close()
