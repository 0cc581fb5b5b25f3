"""Parameters of estimators: inherited, keyword-only."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from tests.cases import each

from tuckermix import TuckerClustering, _estimators, baselines, decompose
from tuckermix._estimators import Settings, declare
from tuckermix.datasets import make_tensor_clusters
from tuckermix.persistence import CLASSES
from tuckermix.sources import source


@declare
class Base(BaseEstimator):
    """A base."""

    size: int = 3
    shape: str = "round"


@declare
class Derived(Base):
    """A class with another default and a parameter of its own."""

    size: int = 5
    tol: float = 0.1


def test_parameters_are_inherited_and_stored():
    model = Derived(shape="flat")
    assert clone(model).get_params() == {"shape": "flat", "size": 5, "tol": 0.1}
    with pytest.raises(TypeError):
        Derived(5)


@each("name", [name for name in CLASSES if hasattr(baselines, name)])
def test_docstrings_list_parameters_and_fitted_attributes(name):
    cls = getattr(baselines, name)
    parameters, attributes = inspect.getdoc(cls).split("\nAttributes\n")
    listed = re.findall(r"^(\w+) : ", parameters.split("\nParameters\n")[1], re.MULTILINE)
    assert set(listed) == set(inspect.signature(cls).parameters)
    found = set(re.findall(r"^(\w+) : ", attributes, re.MULTILINE))
    assert {"labels_", "memberships_", "n_iter_"} <= found


SAMPLES = make_tensor_clusters(60, (4, 5), 3, random_state=0).X


class OutOfMemoryError(RuntimeError):
    """Named as PyTorch names it."""


SHORTAGES = [
    OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nMore lines."),
    MemoryError(),
    np._core._exceptions._ArrayMemoryError((10**6, 10**6), np.dtype(float)),
    RuntimeError("[enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: can't allocate memory"),
    RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes."),
]


def failing(error):
    def fail(*args, **options):
        raise error

    return fail


@pytest.mark.parametrize("error", SHORTAGES, ids=lambda error: type(error).__name__)
def test_every_library_is_understood(error, monkeypatch):
    monkeypatch.setattr(source, "_sketch", failing(error))
    for call in (TuckerClustering(3).fit, lambda X: decompose(X, 3)):
        with pytest.raises(
            MemoryError, match=r"Memory ran out.*X of shape \(60, 4, 5\).*\(1\) pass X in float32"
        ) as caught:
            call(SAMPLES)
        assert caught.value.__cause__ is error


@pytest.mark.torch
def test_the_error_of_pytorch_itself(monkeypatch):
    torch = pytest.importorskip("torch")
    error = torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
    monkeypatch.setattr(source, "_sketch", failing(error))
    with pytest.raises(
        MemoryError, match=r"allocate 2.00 GiB\) with X .* GiB in torch.float32, on"
    ):
        decompose(torch.asarray(SAMPLES, dtype=torch.float32), 3)


def test_a_failed_fit_leaves_the_old_model(monkeypatch):
    model = TuckerClustering(3, random_state=0).fit(SAMPLES)
    labels = model.labels_
    monkeypatch.setattr(source, "_sketch", failing(SHORTAGES[0]))
    with pytest.raises(MemoryError, match="CUDA out of memory"):
        model.fit(SAMPLES[:, :2])
    np.testing.assert_array_equal(model.predict(SAMPLES), labels)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "transform", "score"])
def test_methods_after_fit(method, monkeypatch):
    model = TuckerClustering(3, random_state=0).fit(SAMPLES)
    monkeypatch.setattr("tuckermix.model.multi_mode_dot", failing(SHORTAGES[0]))
    with pytest.raises(MemoryError, match="a memory map or a Dask array"):
        getattr(model, method)(SAMPLES)
    with pytest.raises(MemoryError, match="a memory map or a Dask array"):
        model.inverse_transform(model.memberships_)


def test_arrays_on_a_device_may_stay_on_the_host(monkeypatch):
    strict = pytest.importorskip("array_api_strict")
    monkeypatch.setattr(source, "_sketch", failing(SHORTAGES[0]))
    with pytest.raises(MemoryError, match=r"on .*CPU_DEVICE.*leave the samples on the host in a"):
        decompose(strict.asarray(SAMPLES), 3)


def test_chunks_can_be_smaller(monkeypatch):
    da = pytest.importorskip("dask.array")
    monkeypatch.setattr(source, "_sketch", failing(SHORTAGES[0]))
    with pytest.raises(MemoryError, match=r"while a chunk was worked on.*smaller chunks"):
        TuckerClustering(3).fit(da.from_array(SAMPLES, chunks=(20, 4, 5)))


def test_other_errors_pass_through():
    for error in (RuntimeError("something else"), MemoryError("explained already")):
        with pytest.raises(type(error), match=str(error)) as caught:
            _estimators.explain_shortage(failing(error))(SAMPLES)
        assert caught.value is error


def test_without_an_array_the_advice_is_general():
    assert "Memory ran out. Either (1)" in _estimators._advice(None, MemoryError())


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
