"""Asking an array for its library, and moving between libraries."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

from tuckermix import _array_api as arrays


def test_arrays_are_told_from_other_things(xp):
    assert arrays.is_array(xp.asarray([1.0]))
    assert not arrays.is_array([1.0])
    assert not arrays.is_array(1.0)
    assert arrays.is_numpy(np.zeros(2))


def test_dask_arrays_are_recognised_without_importing_dask():
    da = pytest.importorskip("dask.array")
    lazy = da.zeros((4, 3))
    assert arrays.is_dask(lazy)
    assert not arrays.is_array(lazy)
    assert not arrays.is_dask(np.zeros(2))


def test_namespace_ignores_none(xp):
    x = xp.asarray([1.0])
    assert arrays.get_namespace(None, x, None) is xp


def test_mixed_libraries_are_refused():
    strict = pytest.importorskip("array_api_strict")
    with pytest.raises(TypeError, match=r"one array library. Got array_api_strict.*numpy.ndarray"):
        arrays.get_namespace(np.zeros(2), strict.zeros(2))


def test_values_travel_to_the_library_and_type_of_the_model(xp, rng):
    values = rng.normal(size=(4, 3))
    for dtype in (xp.float32, xp.float64):
        like = xp.zeros((1,), dtype=dtype)
        moved = arrays.asarray_like(values, like)
        assert arrays.get_namespace(moved) is arrays.get_namespace(like)
        assert arrays.device(moved) == arrays.device(like)
        assert moved.dtype == dtype
        back = arrays.to_numpy(moved)
        assert isinstance(back, np.ndarray)
        np.testing.assert_array_equal(back, values.astype(back.dtype))
    integers = arrays.asarray_like([1, 2], like, dtype=xp.int64)
    assert integers.dtype == xp.int64
    np.testing.assert_array_equal(arrays.to_numpy(arrays.asarray_like(moved, like)), back)


@pytest.mark.torch
def test_tensors_with_gradient_come_to_the_host():
    torch = pytest.importorskip("torch")
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    np.testing.assert_array_equal(arrays.to_numpy(x), np.ones(3))


def test_floating_types(xp):
    single = xp.ones((2,), dtype=xp.float32)
    assert not arrays.is_double(single)
    assert arrays.is_double(arrays.double(single))
    assert arrays.epsilon(single) == np.finfo(np.float32).eps
    assert arrays.epsilon(arrays.double(single)) == np.finfo(np.float64).eps


def test_double_does_not_copy_what_is_double():
    x = np.ones(3)
    assert arrays.double(x) is x or np.shares_memory(arrays.double(x), x)


def test_blocks_cover_all_samples_once_within_the_budget():
    for n_samples, bytes_per_sample in itertools.product([1, 7, 100], [0, 1, 10, 1000]):
        budget = 55
        parts = list(arrays.blocks(n_samples, bytes_per_sample, budget))
        covered = [i for part in parts for i in range(part.start, part.stop)]
        assert covered == list(range(n_samples))
        sizes = [part.stop - part.start for part in parts]
        assert all(size == 1 or size * bytes_per_sample <= budget for size in sizes)


WITHOUT_SWITCH = """
import os, torch
from tuckermix import TuckerClustering

assert "SCIPY_ARRAY_API" not in os.environ
X = torch.rand(30, 4, 5)
for options in ({}, {"memberships": "archetypes"}, {"assign_labels": "memberships"}):
    model = TuckerClustering(3, random_state=0, **options).fit(X)
    assert isinstance(model.predict_proba(X), torch.Tensor)
TuckerClustering(3).fit(X[:, 0, :1])
"""


@pytest.mark.slow
@pytest.mark.torch
def test_users_need_no_switch_of_scipy():
    environment = {key: text for key, text in os.environ.items() if key != "SCIPY_ARRAY_API"}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SWITCH], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
