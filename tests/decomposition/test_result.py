"""The record of a decomposition."""

import numpy as np

from tuckermix import decompose


def test_fields_read_by_name_and_by_key():
    fit = decompose(np.random.default_rng(0).standard_normal((15, 4, 5)), 3, (2, 3))
    assert fit["cost"] == fit.cost
    assert fit.ranks == (2, 3)
    assert fit.n_components == 3
    assert {"factors", "Q", "core", "cost", "gap", "history"} <= set(fit.keys())
    assert fit.history[0].iteration == 0
    assert fit.history[-1]["relative_error"] <= fit.history[0]["relative_error"]
