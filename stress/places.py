"""Ctrl-C at every place of a file where Python handles signals, one after the other.

What happens at random moments in `stress.interrupts` is done here on purpose: a tracer raises
KeyboardInterrupt at the place with a given number. A loop over the numbers leaves none out.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

__all__ = ["Interrupts"]

HANDLED_AFTER = ("RESUME", "CALL", "CALL_FUNCTION_EX", "CALL_KW", "JUMP_BACKWARD")
"""Signals are handled on the way into a function, after a call and where a loop turns."""

ENTRY, NOWHERE = -1, -2  # in place of the offset of the step before


class Interrupts:
    """Raise KeyboardInterrupt at places of the source in a file.

    Parameters
    ----------
    file : str
        The path of the source, as in ``module.__file__``.
    place : int
        Where to strike, counted from 1 in the order in which places are passed. Once only: Python
        drops a tracer that has raised.

    Attributes
    ----------
    seen : int
        How many places have been passed; fewer than `place` if the work ended before.
    """

    def __init__(self, file: str, place: int) -> None:
        self.file, self.place, self.seen = file, place, 0
        self._steps: dict[CodeType, set[int]] = {}
        self._previous: dict[int, int] = {}

    def run(self, work: Callable[[], Any]) -> bool:
        """Do the work; return whether an interrupt ended it."""
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            work()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
        return False

    def _trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename != self.file:
            return None
        frame.f_trace_opcodes = True
        name = id(frame)  # and not the frame, which would keep alive what is in it
        if event == "call":
            self._previous[name] = ENTRY
        elif event == "exception":  # no signal is handled on the way to what catches it
            self._previous[name] = NOWHERE
        if event != "opcode":
            return self._trace
        previous, self._previous[name] = self._previous[name], frame.f_lasti
        if previous == ENTRY or previous in self._handling(frame.f_code):
            self.seen += 1
            if self.seen == self.place:
                raise KeyboardInterrupt
        return self._trace

    def _handling(self, code: CodeType) -> set[int]:
        """Return the offsets of the steps after which signals are handled."""
        if code not in self._steps:
            steps = dis.get_instructions(code)
            self._steps[code] = {step.offset for step in steps if step.opname in HANDLED_AFTER}
        return self._steps[code]
