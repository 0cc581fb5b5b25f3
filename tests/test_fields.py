from types import SimpleNamespace

import numpy as np
import pytest

from tuckermix._fields import EVERY_ESTIMATOR, EVERY_MODEL, check_fields, is_positive, pair_of
from tuckermix._records import StopReason

FITTED = {
    "sample_shape_": (3, 2),
    "n_features_in_": 3,
    "n_clusters": 2,
    "labels_": np.array([0, 1, 1]),
    "memberships_": np.ones((3, 2)),
    "n_iter_": 0,
    "stop_reason_": StopReason.STALLED,
    "history_": [],
    "cost_": 1.5,
}


def test_what_fit_sets_passes_and_anything_else_does_not():
    check_fields(SimpleNamespace(**FITTED), EVERY_MODEL)
    for name, wrong in (
        ("sample_shape_", (3, True)),
        ("sample_shape_", ()),
        ("n_features_in_", 2),
        ("labels_", np.array([0, 2, 1])),
        ("labels_", np.array([0, -1, 1])),
        ("labels_", np.array([0.0, 1.0, 1.0])),
        ("labels_", np.array([1])),
        ("memberships_", None),
        ("n_iter_", -1),
        ("stop_reason_", "stalled"),
        ("history_", ()),
        ("cost_", "x"),
    ):
        with pytest.raises(ValueError, match=name):
            check_fields(SimpleNamespace(**{**FITTED, name: wrong}), EVERY_MODEL)
    outliers = {**FITTED, "outliers": "label", "labels_": np.array([0, -1, 1])}
    check_fields(SimpleNamespace(**outliers), EVERY_MODEL)


def test_nothing_may_be_missing():
    for name in EVERY_ESTIMATOR:
        left = {key: value for key, value in FITTED.items() if key != name}
        with pytest.raises(ValueError, match=f"it has no {name}"):
            check_fields(SimpleNamespace(**left), EVERY_ESTIMATOR)


def test_rules():
    assert is_positive(0.5)
    assert not any(map(is_positive, (0.0, -1.0, 1, float("inf"), float("nan"), "1")))
    rule = pair_of(float)
    assert rule((0.0, 1.0))
    assert not any(map(rule, ([0.0, 1.0], (0, 1), (0.0,), (0.0, float("nan")), None)))
