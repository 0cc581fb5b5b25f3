"""Settings: what is in use, for how long, and that defaults come back."""

from dataclasses import dataclass

import pytest

from tuckermix._settings import Settings


@dataclass(frozen=True)
class Tuning(Settings):
    """Two figures."""

    rounds: int = 3
    tol: float = 0.1


def test_the_innermost_settings_are_in_use_and_the_outer_ones_come_back():
    assert Tuning.current() == Tuning(3, 0.1)
    with Tuning(rounds=5).use() as outer, Tuning(tol=0.5).use():
        assert Tuning.current() == Tuning(3, 0.5)
    assert outer == Tuning(5, 0.1)
    with pytest.raises(RuntimeError), Tuning(rounds=7).use():
        raise RuntimeError
    assert Tuning.current() == Tuning()
