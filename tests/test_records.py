"""Records with reading by key, and stop reasons that know success."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, dataclass

import pytest
from tests.cases import each

from tuckermix._records import Record, SolverResult, StopReason

CONVERGED = {"tolerance", "gradient", "stable", "stalled"}


@dataclass(frozen=True)
class Pair(Record):
    left: int
    right: list


def test_a_record_reads_by_attribute_and_by_key():
    pair = Pair(1, [2])
    assert pair["left"] == pair.left == 1
    assert pair["right"] is pair.right
    assert list(pair) == pair.keys() == ["left", "right"]
    assert "left" in pair
    assert "middle" not in pair


def test_a_record_becomes_a_dictionary_without_copies():
    pair = Pair(1, [2])
    assert pair.to_dict() == {"left": 1, "right": [2]}
    assert pair.to_dict()["right"] is pair.right
    assert dict(**pair) == pair.to_dict()


@pytest.mark.parametrize("key", ["middle", "keys", "__class__", 0, None])
def test_only_fields_are_keys(key):
    with pytest.raises(KeyError):
        Pair(1, [2])[key]


@each("reason", list(StopReason))
def test_stop_reasons_know_whether_they_mean_success(reason):
    assert reason.converged == (reason.value in CONVERGED)
    assert str(reason) == f"{reason}" == reason.value
    assert reason == reason.value
    assert StopReason(reason.value) is reason
    assert pickle.loads(pickle.dumps(reason)) is reason


def test_a_solver_result_cannot_be_changed():
    result = SolverResult(None, 1.0, 3, StopReason.TOLERANCE, [])
    assert result["n_iter"] == 3
    with pytest.raises(FrozenInstanceError):
        result.cost = 0.0
