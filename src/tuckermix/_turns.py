"""Fits in several threads of one process take turns.

They wait for each other at every call of Python, so that many at the same time take longer than one
after the other. Few run at a time, and the others wait until one of them ends.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import wraps
from typing import Any

import joblib

from tuckermix._array_api import is_numpy

__all__ = ["in_turn"]

MOST_FITS = 4
"""Fits that run at the same time, each in a thread of its own; no more than there are processors.
They wait for each other at every call of Python: eight in eight threads take a third longer than in
a row on two processors, and a seventh on sixteen."""

TURN_PAUSE, TURN_PATIENCE = 1.0, 60.0
"""Seconds after which a fit that waits for others looks for itself whether one has ended, and the
most that it waits: fits may wait for each other in ways that nobody foresees."""

_fits: dict[object, threading.Thread] = {}
_waiting: deque[threading.Event] = deque()
_has_turn: ContextVar[bool] = ContextVar("_has_turn", default=False)


def in_turn(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a fit so that few of them run at the same time, see `MOST_FITS`; others wait.

    What is nested in a fit belongs to its turn. Fits that call back do not wait, because what they
    call may wait for another fit.

    Parameters
    ----------
    method : callable
        A method of an estimator that learns from samples, its first argument.

    Returns
    -------
    method : callable
        The same.
    """

    @wraps(method)
    def waiting(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if _has_turn.get() or not is_numpy(X) or hasattr(self, "_skl_callbacks"):
            return method(self, X, *args, **options)
        turn, thread = object(), threading.current_thread()
        latest = time.monotonic() + TURN_PATIENCE
        # It takes a while to count processors, and most fits are alone.
        most = min(MOST_FITS, joblib.cpu_count()) if _fits else MOST_FITS
        # No lock, which Ctrl-C might leave closed: if two come at once, one more runs.
        while len(_fits) >= most and time.monotonic() < latest:
            for other, its in list(_fits.items()):
                if its is thread or not its.is_alive():  # was left behind
                    _fits.pop(other, None)
            ended = threading.Event()
            _waiting.append(ended)
            if len(_fits) >= most:  # none has ended in the meantime
                ended.wait(TURN_PAUSE)
            with suppress(ValueError):  # whoever ended has taken it
                _waiting.remove(ended)
        before = _has_turn.set(True)
        try:
            _fits[turn] = thread
            return method(self, X, *args, **options)
        finally:
            _fits.pop(turn, None)
            _has_turn.reset(before)
            with suppress(IndexError):  # nobody waits
                _waiting.popleft().set()

    return waiting
