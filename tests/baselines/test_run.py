"""Records of runs."""

import numpy as np
import pytest

from tuckermix._records import StopReason
from tuckermix.baselines._base import Run, Step, Trace, relative_change


def run(cost, reason=StopReason.TOLERANCE):
    return Run(np.eye(3), cost, 4, reason, [])


def test_the_better_run_is_kept():
    assert run(1.0).beats(None)
    assert run(1.0).beats(run(2.0))
    assert not run(2.0).beats(run(1.0))
    assert not run(1.0, StopReason.FAILED).beats(run(2.0))
    assert run(2.0).beats(run(1.0, StopReason.FAILED))
    assert run(1.0, StopReason.FAILED).beats(run(2.0, StopReason.FAILED))


def test_trace_of_zero_data():
    trace = Trace(0.0)
    trace.add(0.0)
    trace.add(0.0)
    assert trace.records[1].relative_error == 0.0
    assert relative_change(trace.records) == 0.0


def test_relative_change():
    steps = [Step(0, 2.0, 2.0, 0.0), Step(1, 1.0, 1.0, 0.0)]
    assert relative_change(steps) == relative_change(steps[::-1]) == 0.5


def test_trace_takes_cost_and_error_apart():
    """With penalties the cost is more than half the squared error."""
    trace = Trace(8.0)
    assert trace.add(7.0, 2.0) == pytest.approx(0.5)
    assert trace.add(1.0) == pytest.approx(0.5)
    assert [(step.iteration, step.cost) for step in trace.records] == [(0, 7.0), (1, 1.0)]
    assert trace.records[0].time <= trace.records[1].time


def test_trace_makes_records_of_a_given_kind():
    class Longer(Step):
        pass

    trace = Trace(1.0, Longer)
    trace.add(0.5, gap=0.25)
    assert isinstance(trace.records[0], Longer)
    assert trace.records[0].gap == 0.25
