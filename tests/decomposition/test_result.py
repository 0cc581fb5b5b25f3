"""The record of a decomposition."""

import logging

import numpy as np
import pytest

from tuckermix import decompose
from tuckermix.decomposition.result import Progress, cost_of, relative_error
from tuckermix.numerics.linalg import with_constant
from tuckermix.sources import as_source


def test_fields_read_by_name_and_by_key():
    fit = decompose(np.random.default_rng(0).standard_normal((15, 4, 5)), 3, (2, 3))
    assert fit["cost"] == fit.cost
    assert fit.ranks == (2, 3)
    assert fit.n_components == 3
    assert {"factors", "Q", "core", "cost", "gap", "history"} <= set(fit.keys())
    assert fit.history[0].iteration == 0
    assert fit.history[-1]["relative_error"] <= fit.history[0]["relative_error"]


def test_the_error_of_a_projection_follows_from_norms(seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(20)
    Q = np.linalg.qr(rng.standard_normal((20, 3)))[0]
    fit = Q @ Q.T @ x
    error = np.linalg.norm(x - fit) / np.linalg.norm(x)
    assert relative_error(x @ x, fit @ fit) == pytest.approx(error, rel=1e-9)


def test_rounding_makes_no_negative_error():
    assert relative_error(0.0, 0.0) == 0.0
    assert relative_error(1.0, 1.0 + 1e-16) == 0.0
    assert cost_of(as_source(np.ones((2, 2))), -1e-16) == 0.0


def test_costs_are_in_the_units_of_the_samples():
    X = np.full((3, 2), 1e-150)
    source = as_source(X)
    assert source.scale != 1.0
    assert cost_of(source, source.squared_norm) == pytest.approx(0.5 * np.sum(X**2), rel=1e-12)


def test_a_course_counts_its_records_logs_them_and_asks_until_it_is_stopped(caplog):
    asked = []
    progress = Progress(
        as_source(np.ones((3, 2))), lambda entry: asked.append(entry) or len(asked) > 1
    )
    with caplog.at_level(logging.INFO, logger="tuckermix"):
        assert [progress.record(explained) for explained in (0.0, 3.0)] == [False, True]
    progress.stop = progress.stop.CALLBACK
    assert progress.record(6.0) is False
    assert [entry.iteration for entry in progress.history] == [0, 1, 2]
    np.testing.assert_allclose([entry.cost for entry in progress.history], [3.0, 1.5, 0.0])
    assert asked == progress.history[:2]
    assert "sweep 1: relative error 0.707" in caplog.text


def test_the_constant_column_of_a_block_counts_all_samples(xp):
    Q = with_constant(xp.asarray(np.zeros((2, 1))), 16)
    np.testing.assert_array_equal(np.asarray(Q), [[0.25, 0.0], [0.25, 0.0]])
