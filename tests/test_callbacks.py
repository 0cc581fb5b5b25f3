"""Progress reaches scikit-learn's callbacks, which may stop a fit."""

import builtins
import importlib.util

import numpy as np
import pytest

from tuckermix import TuckerClustering, _estimators
from tuckermix._records import StopReason

sklearn_callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9")


class Witness:
    """A callback that notes the tasks it is told of and may ask to stop."""

    def __init__(self, stop_at=None):
        self.tasks, self.stop_at, self.closed = [], stop_at, 0

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        self.closed += 1

    def on_fit_task_begin(self, estimator, context, **options):
        pass

    def on_fit_task_end(self, estimator, context, **options):
        self.tasks.append(context.task_name)
        return context.task_name == self.stop_at


@pytest.fixture
def X():
    return np.random.default_rng(0).standard_normal((60, 7, 8))


def test_every_sweep_is_reported_and_the_callback_is_closed(X):
    witness = Witness()
    model = TuckerClustering(3, ranks=2, random_state=0).set_callbacks(witness).fit(X)
    assert witness.tasks == [f"sweep {i}" for i in range(len(model.history_))] + ["fit"]
    assert witness.closed == 1


def test_a_callback_can_stop_the_fit(X):
    witness = Witness(stop_at="sweep 1")
    model = TuckerClustering(3, ranks=2, tol=0.0, random_state=0).set_callbacks(witness).fit(X)
    assert model.stop_reason_ is StopReason.CALLBACK
    assert len(model.labels_) == 60


def test_the_callback_is_closed_when_the_fit_fails_half_way(X):
    class Failing(Witness):
        def on_fit_task_end(self, estimator, context, **options):
            super().on_fit_task_end(estimator, context, **options)
            raise RuntimeError("the disk is full")

    witness = Failing()
    model = TuckerClustering(3, ranks=2).set_callbacks(witness)
    with pytest.raises(RuntimeError, match="the disk is full"):
        model.fit(X)
    assert witness.tasks == ["sweep 0"]
    assert witness.closed == 1
    assert not hasattr(model, "sample_shape_")


def test_what_is_refused_before_the_first_sweep_never_opens_the_callback(X):
    witness = Witness()
    with pytest.raises(ValueError, match="NaN"):
        TuckerClustering(3).set_callbacks(witness).fit(X * np.nan)
    model = TuckerClustering(3, ranks=(2, 99)).set_callbacks(witness)
    with pytest.raises(ValueError, match="larger than 8"):
        model.fit(X)
    assert witness.closed == 0
    assert witness.tasks == []


def test_older_scikit_learn_is_no_trouble(X, monkeypatch):
    original = builtins.__import__

    def without_callbacks(name, *args, **options):
        if name == "sklearn.callback":
            raise ImportError(name)
        return original(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without_callbacks)
    spec = importlib.util.spec_from_file_location("without_callbacks", _estimators.__file__)
    old = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(old)
    context = old.CallbackSupportMixin()._init_callback_context(max_subtasks=None)
    context.call_on_fit_task_begin(estimator=None, X=X)
    task = context.subcontext(task_name="sweep 0")
    assert task.call_on_fit_task_end(estimator=None, X=X) is False
    assert old.with_callbacks(len) is len
