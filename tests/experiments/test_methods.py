"""The columns of the tables: each can be built, and gets what its row gives."""

import inspect

import numpy as np
import pytest

from tuckermix.baselines import _labels
from tuckermix.experiments import METHODS, Method
from tuckermix.experiments.methods import build, select_methods
from tuckermix.experiments.tables import EXPERIMENTS

RANKS = (2, 3)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_built_with_seed_and_settings(name):
    method = METHODS[name]
    settings = {**method.settings, **method.quick_settings}
    estimator = build(method, 3, RANKS, 7, settings)
    if isinstance(method.factory, str):
        parameters = estimator.get_params()
        assert parameters["n_clusters"] == 3
        assert parameters["random_state"] == 7
        assert {key: parameters[key] for key in settings} == settings
        assert (parameters.get("ranks") == RANKS) == method.takes_ranks
    assert "X" in inspect.signature(estimator.fit).parameters


@pytest.mark.parametrize("table", EXPERIMENTS)
def test_every_column_of_the_paper_is_known(table):
    experiment = EXPERIMENTS[table]
    chosen = select_methods(None, experiment.methods)
    assert [method.name for method in chosen] == list(experiment.methods)


def test_chosen_columns_keep_their_order():
    names = ["k-means", "MM"]
    assert [method.name for method in select_methods(names, ["DRCC"])] == names


def test_unknown_columns_are_refused():
    with pytest.raises(ValueError, match=r"'methods' parameter of reproduce must be one of"):
        select_methods(["no-such-method"], [])


def test_a_function_gets_clusters_ranks_seed_and_settings():
    seen = {}

    def factory(n_clusters, ranks, seed, **settings):
        seen.update(n_clusters=n_clusters, ranks=ranks, seed=seed, **settings)
        return "estimator"

    assert build(Method("mine", factory), 4, RANKS, 1, {"depth": 2}) == "estimator"
    assert seen == {"n_clusters": 4, "ranks": RANKS, "seed": 1, "depth": 2}


def test_kmeans_on_pixels_has_as_many_starts_as_the_other_methods():
    assert METHODS["k-means"].settings["n_init"] == _labels.KMEANS_STARTS


def test_pixels_are_flattened_for_methods_that_need_vectors():
    X = np.concatenate([np.zeros((6, 2, 3, 2)), np.ones((6, 2, 3, 2))])
    model = build(METHODS["k-means"], 2, RANKS, 0, {"n_init": 1}).fit(X)
    assert len(set(model.labels_[:6])) == len(set(model.labels_[6:])) == 1
    assert model.labels_[0] != model.labels_[-1]
