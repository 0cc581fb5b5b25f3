"""Common parts of the comparison methods: records, the loop over starts, labels."""

import inspect
import re
from typing import ClassVar

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.cases import each

from tuckermix import baselines
from tuckermix._records import StopReason
from tuckermix.baselines._base import (
    ComponentClustering,
    IterativeClustering,
    Run,
    Step,
    Trace,
    label_memberships,
    nearest_center,
    relative_change,
)


def run(cost, reason=StopReason.TOLERANCE, **settings):
    return Run(np.eye(3), cost, 4, reason, [], **settings)


class Scripted(IterativeClustering):
    """Returns prepared runs, one for each start."""

    script: ClassVar[list[Run]] = []

    def __init__(self, n_clusters=3, n_init=1, max_iter=4, tol=1e-3, random_state=0):
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.assign_labels = "argmax"

    def _run(self, data, rng):
        return self.script[self.turn]

    @property
    def turn(self):
        self.turns = getattr(self, "turns", -1) + 1
        return self.turns


def test_the_best_of_several_starts_is_stored(monkeypatch):
    script = [run(3.0), run(0.5, StopReason.FAILED), run(1.0, fitted={"extra_": [np.ones(2)]})]
    monkeypatch.setattr(Scripted, "script", script)
    model = Scripted(n_init=3).fit(np.ones((3, 2), dtype=np.float32))
    assert model.cost_ == 1.0
    assert model.failure_ == ""
    assert model.extra_[0].dtype == np.float32
    np.testing.assert_array_equal(model.labels_, [0, 1, 2])


def test_a_failure_is_reported_with_its_reason(monkeypatch):
    failed = run(1.0, StopReason.FAILED, failure="all memberships are equal.")
    monkeypatch.setattr(Scripted, "script", [failed])
    text = r"Scripted failed: all memberships are equal\. Its labels mean nothing\."
    with pytest.warns(ConvergenceWarning, match=text):
        model = Scripted().fit(np.ones((3, 2)))
    assert model.stop_reason_ is StopReason.FAILED
    assert model.failure_ == "all memberships are equal."


@pytest.mark.parametrize(("residual", "tol"), [(1e-4, 1e-3), (np.nan, 1e-3), (1.0, 0.0)])
def test_no_warning_without_reason(monkeypatch, residual, tol):
    done = run(1.0, StopReason.MAX_ITER, residual=residual)
    monkeypatch.setattr(Scripted, "script", [done])
    assert Scripted(tol=tol).fit(np.ones((3, 2))).stop_reason_ is StopReason.MAX_ITER


def test_warning_says_how_far_off(monkeypatch):
    done = run(1.0, StopReason.MAX_ITER, residual=0.0123, measure="change")
    monkeypatch.setattr(Scripted, "script", [done])
    text = r"Scripted stopped after max_iter=4 with change 1\.2e-02 > tol=0\.001\. Raise max_iter"
    with pytest.warns(ConvergenceWarning, match=text):
        Scripted().fit(np.ones((3, 2)))


def test_starts_do_not_depend_on_each_other():
    """The second start is the same whether or not the first one draws more numbers."""
    seen = []

    class Drawing(Scripted):
        def _run(self, data, rng):
            rng.random(self.max_iter)
            seen.append(rng.random())
            return run(1.0)

    Drawing(n_init=2, max_iter=1).fit(np.ones((3, 2)))
    Drawing(n_init=2, max_iter=1, random_state=np.random.default_rng(0)).fit(np.ones((3, 2)))
    assert seen[:2] == seen[2:]
    assert seen[0] != seen[1]


def test_components_of_any_sign_are_taken():
    """The base of the mixtures serves PCA-B too, whose components are not nonnegative."""

    class Mixture(ComponentClustering, Scripted):
        def _run(self, data, rng):
            components = np.array([[1.0, -1.0], [0.0, 2.0]])
            return Run(
                np.zeros((5, 2)), 1.0, 1, StopReason.TOLERANCE, [], {"components_": components}
            )

    weights = np.array([[1.0, 0], [2, 0], [0, 1], [0, 2], [1, 1]])
    X = weights @ np.array([[1.0, -1.0], [0.0, 2.0]])
    model = Mixture(n_clusters=2).fit(X)
    np.testing.assert_allclose(model.memberships_, weights, atol=1e-12)
    np.testing.assert_allclose(model.inverse_transform(weights), X)
    assert model.score(X) == pytest.approx(0, abs=1e-20)
    assert list(model.get_feature_names_out()) == ["mixture0", "mixture1"]


@pytest.mark.parametrize("scale", [1e-160, 1.0, 1e160])
def test_nearest_center(scale):
    rng = np.random.default_rng(0)
    rows, centers = rng.standard_normal((50, 4)), rng.standard_normal((6, 4))
    expected = np.argmin(np.linalg.norm(rows[:, None] - centers, axis=2), axis=1)
    np.testing.assert_array_equal(nearest_center(scale * rows, scale * centers), expected)


def test_the_better_run_is_kept():
    def run(cost, reason=StopReason.TOLERANCE):
        return Run(np.eye(3), cost, 4, reason, []).order

    assert run(1.0) < run(2.0)
    assert run(2.0) < run(1.0, StopReason.FAILED) < run(2.0, StopReason.FAILED)


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


@pytest.mark.parametrize("rule", ["kmeans", "argmax"])
def test_labels_of_clear_memberships(rule, seed):
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.repeat(np.arange(4), 5))
    memberships = np.eye(4)[truth] + 0.1 * rng.random((20, 4))
    labels, centers = label_memberships(memberships, 4, rule, rng)
    pairs = set(zip(labels.tolist(), truth.tolist(), strict=True))
    assert len(pairs) == 4
    assert labels.dtype == np.int64
    for k in range(4):
        np.testing.assert_allclose(centers[k], memberships[labels == k].mean(axis=0))


@each("rule", ["kmeans", "argmax"])
@each(
    "memberships",
    [np.zeros((9, 4)), np.ones((9, 4)), np.outer(np.arange(9.0), [1, 0, 0, 0]), np.eye(4)],
)
def test_every_label_occurs(rule, memberships):
    labels, centers = label_memberships(memberships, 4, rule, np.random.default_rng(0))
    np.testing.assert_array_equal(np.unique(labels), np.arange(4))
    assert np.all(np.isfinite(centers))


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_labels_do_not_depend_on_the_scale(scale):
    memberships = np.random.default_rng(0).random((30, 3))
    base, _ = label_memberships(memberships, 3, "kmeans", np.random.default_rng(1))
    labels, _ = label_memberships(scale * memberships, 3, "kmeans", np.random.default_rng(1))
    np.testing.assert_array_equal(labels, base)


METHODS = [name for name in baselines.__all__ if name not in ("BaselineClustering", "Run", "Trace")]


def test_docstrings_list_parameters_and_fitted_attributes():
    """Whole in the source: tools that read it see what `help` shows."""
    for name in METHODS:
        cls = getattr(baselines, name)
        parameters, _, rest = cls.__doc__.partition("    Attributes\n")
        listed = re.findall(r"^    (\w+) : .*default=", parameters, re.MULTILINE)
        assert sorted(listed) == sorted(inspect.signature(cls).parameters), name
        attributes = re.findall(r"^    (\w+_) : ", rest, re.MULTILINE)
        assert {"labels_", "memberships_", "n_iter_"} <= set(attributes), name
        assert len(set(attributes)) == len(attributes), name
