"""Cases that one test goes through in a loop, for checks that are too small to be counted each."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def each(names: str, cases: Iterable[Any]) -> Callable[[Any], Any]:
    """Call a test with each of some cases, as `pytest.mark.parametrize` does, but as one test.

    Parameters
    ----------
    names : str
        Names of arguments, separated by commas.
    cases : iterable
        A value for each case, or a tuple of values where there are several names.

    Returns
    -------
    decorator : callable
        A failure notes the case.
    """
    keys, cases = [name.strip() for name in names.split(",")], list(cases)

    def decorate(test: Any) -> Any:
        @functools.wraps(test)
        def loop(**fixtures: Any) -> None:
            for case in cases:
                given = dict(zip(keys, case if len(keys) > 1 else (case,), strict=True))
                try:
                    test(**fixtures, **given)
                except BaseException as error:
                    error.add_note(f"case: {given!r:.500}")
                    raise

        left = [p for p in inspect.signature(test).parameters.values() if p.name not in keys]
        loop.__signature__ = inspect.Signature(left)
        return loop

    return decorate
