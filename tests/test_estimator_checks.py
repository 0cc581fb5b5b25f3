"""scikit-learn's own checks."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tuckermix import AutoClustering, MultiViewClustering, TuckerClustering


# Some checks set n_components=1, in which case the model cannot tell samples apart and says so.
@pytest.mark.filterwarnings("ignore:Only 1 of n_clusters")
@parametrize_with_checks(
    [
        TuckerClustering(),
        MultiViewClustering(
            [("one", TuckerClustering()), ("two", TuckerClustering(ridge_edge=2.0))]
        ),
        AutoClustering(),
        AutoClustering(3, features="pixels"),
    ]
)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "estimator",
    [TuckerClustering(), MultiViewClustering(), AutoClustering()],
    ids=lambda e: repr(e),
)
def test_both_orders_are_declared(estimator):
    tags = estimator.__sklearn_tags__().input_tags
    assert tags.two_d_array
    assert tags.three_d_array
