"""scikit-learn's own checks: of a few estimators in the fast suite, of all in `make test-all`."""

from typing import Any

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import check_estimator

from tuckermix import AutoClustering, MultiViewClustering, TuckerClustering, baselines
from tuckermix.features import Scale, Scattering
from tuckermix.labels import GraphLabels

NEGATIVE = {"check_clustering": "gives negative data; the tests of the method shift them"}
PLANE = {"check_clustering": "has blobs in a plane, where any two samples express a third exactly"}

# Estimators with the checks that are expected to fail.
FAST: list[tuple[BaseEstimator, dict[str, str]]] = [
    (TuckerClustering(), {}),
    (AutoClustering(3, features="pixels"), {}),
    (baselines.PCAB(max_iter=5, tol=1e-2), {}),
    (Scale(), {}),
]
SLOW: list[tuple[BaseEstimator, dict[str, str]]] = [
    (AutoClustering(), {}),
    (
        MultiViewClustering(
            [
                ("one", TuckerClustering()),
                ("two", TuckerClustering(assign_labels=GraphLabels(ridge_edge=2.0))),
            ]
        ),
        {},
    ),
    (baselines.PCAMultinomial(max_iter=5, tol=1e-2), {}),
    (baselines.MultiplicativeNMF(max_iter=100), NEGATIVE),
    (baselines.AlternatingNMF(max_iter=100), NEGATIVE),
    (baselines.BayesianNMF(max_iter=100), NEGATIVE),
    (baselines.ProjectedGradientNMF(max_iter=100), NEGATIVE),
    (baselines.DRCC(), {}),
    (baselines.TriONTD(), NEGATIVE),
    (baselines.ASIT(), {}),
    (baselines.LSR(), {}),
    (baselines.AutoSC(), {}),
    (baselines.ADSSC(), {}),
    (baselines.EnSC(), {}),
    (baselines.SSCOMP(), PLANE),
    (baselines.TAGCSC(), {}),
    (Scale("dataset", percentiles=(1, 99)), {}),
    (Scale("unit"), {}),
    (Scattering(), {}),
    (Scattering(J=2, order=1, log=True), {}),
    (Scattering(J=2, relative=True), {}),
]


# Some checks set n_components=1, in which case the model cannot tell samples apart and says so.
@pytest.mark.filterwarnings("ignore:Only 1 of n_clusters")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("estimator", "expected"),
    [*FAST, *(pytest.param(*one, marks=pytest.mark.slow) for one in SLOW)],
    ids=lambda value: "" if isinstance(value, dict) else type(value).__name__,
)
def test_scikit_learn_accepts_the_estimator(estimator: Any, expected: dict[str, str]):
    results = check_estimator(
        estimator, expected_failed_checks=expected, on_fail=None, on_skip=None
    )
    failed = {one["check_name"]: one["exception"] for one in results if one["status"] == "failed"}
    assert failed == {}
    assert sum(one["status"] == "passed" for one in results) > 30


def test_both_orders_are_declared():
    for estimator, _ in FAST + SLOW:
        tags = estimator.__sklearn_tags__().input_tags
        assert tags.two_d_array
        assert tags.three_d_array
