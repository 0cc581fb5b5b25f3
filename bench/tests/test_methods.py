"""The columns of the tables: each can be built, and gets what its row gives."""

import inspect
import sys
import warnings

import numpy as np
import pytest
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from tests.cases import each

from tuckermix import TuckerClustering
from tuckermix.baselines import DRCC
from tuckermix.baselines._base import KMEANS_STARTS
from tuckermix.baselines.drcc import penalty_grid
from tuckermix.features import Scattering
from tuckermix.metrics import clustering_accuracy
from tuckermix_bench import DATASETS, METHODS, Method
from tuckermix_bench.methods import (
    build,
    leading,
    register_method,
    select_methods,
)
from tuckermix_bench.runner import execute
from tuckermix_bench.tables import (
    EXPERIMENTS,
    QUICK,
    QUICK_EXPERIMENTS,
    cells_of,
    columns_in,
)

RIVALS, ABLATIONS = columns_in(["@rivals"]), columns_in(["@ablations"])
ON_SCATTERING, OURS_ON_SCATTERING = (
    columns_in(["@on scattering"]),
    columns_in(["@ours on scattering"]),
)
TRUER, ON_MM = ("B-NMF (multinomial)", "DRCC (searched)"), "MM (our labels)"

RANKS = (2, 3)


def test_every_method_is_built_with_seed_and_settings():
    for name, method in METHODS.items():
        settings = {**method.settings, **method.quick_settings}
        estimator = build(method, 3, RANKS, 7, settings)
        if hasattr(estimator, "get_params") and name != "HDBSCAN":
            parameters = estimator.get_params()
            number = "auto" if method.finds_number else 3
            assert (parameters["n_clusters"], parameters["random_state"]) == (number, 7), name
            assert {key: parameters[key] for key in settings} == settings, name
            assert (parameters.get("ranks") == RANKS) == method.takes_ranks, name
        assert "X" in inspect.signature(estimator.fit).parameters, name


def test_every_column_of_the_tables_is_known():
    for experiment in EXPERIMENTS.values():
        chosen = select_methods(experiment.methods)
        assert [method.name for method in chosen] == list(experiment.methods)


def test_chosen_columns_keep_their_order():
    names = ["k-means", "MM"]
    assert [method.name for method in select_methods(names)] == names


def test_unknown_columns_are_refused():
    with pytest.raises(ValueError, match=r"'methods' parameter of reproduce must be one of"):
        select_methods(["no-such-method"])


def test_a_function_gets_clusters_ranks_seed_and_settings():
    seen = {}

    def factory(n_clusters, ranks, seed, **settings):
        seen.update(n_clusters=n_clusters, ranks=ranks, seed=seed, **settings)
        return "estimator"

    assert build(Method("mine", factory), 4, RANKS, 1, {"depth": 2}) == "estimator"
    assert seen == {"n_clusters": 4, "ranks": RANKS, "seed": 1, "depth": 2}


def test_kmeans_on_pixels_has_as_many_starts_as_the_other_methods():
    assert METHODS["k-means"].settings["n_init"] == KMEANS_STARTS


def test_pixels_are_flattened_for_methods_that_need_vectors():
    X = np.concatenate([np.zeros((6, 2, 3, 2)), np.ones((6, 2, 3, 2))])
    model = build(METHODS["k-means"], 2, RANKS, 0, {"n_init": 1}).fit(X)
    assert len(set(model.labels_[:6])) == len(set(model.labels_[6:])) == 1
    assert model.labels_[0] != model.labels_[-1]


CORE = (4, 4)


@pytest.fixture(scope="module")
def digits():
    data = load_digits(n_class=3)
    return data.images[:90] / 16.0, data.target[:90]


# Few samples make graphs of several parts, and the quick setting stops early.
@pytest.mark.filterwarnings(
    "ignore:Graph is not fully connected", "ignore:.*stopped after max_iter"
)
@each("name", [*RIVALS, *TRUER, *ABLATIONS, ON_MM, "HDBSCAN", *ON_SCATTERING, *OURS_ON_SCATTERING])
def test_columns_give_a_label_to_each_sample(digits, name):
    X, y = digits
    if name in ON_SCATTERING:  # made for images of 28 × 28: of 8 × 8 a single cell is left
        X = np.kron(X, np.ones((1, 4, 4)))
    method = METHODS[name]
    settings = {**method.settings, **method.quick_settings}
    model = build(method, 3, CORE, 0, settings).fit(X, *([y] if method.uses_truth else []))
    assert len(model.labels_) == 90
    weak = {"HDBSCAN": 0.3, "SSC-OMP": 0.45, "PCA + spectral": 0.5}
    assert clustering_accuracy(y, model.labels_) > weak.get(name, 0.6)
    assert method.description
    assert method.on


def test_columns_are_in_the_tables_that_can_have_them():
    for name in (*RIVALS, *ABLATIONS, ON_MM, *TRUER):
        tables = ["table2", "table3", "table4", "table5"]
        if name not in (ON_MM, *TRUER) and "EnSC" not in name:
            tables.append("table6")
        assert all(name in EXPERIMENTS[table].methods for table in tables)
    for name in (*ON_SCATTERING, *OURS_ON_SCATTERING):
        for table in EXPERIMENTS.values():
            for row in table.rows:
                colour = row.ranks[2:] == (3,)
                if (len(row.ranks) != 2 and not colour) or row.dataset == "digits":
                    assert name not in set(table.methods) - set(row.without)


@pytest.mark.parametrize("name", ["LSR", "DRCC (searched)", "PCA (our labels)"])
def test_quick_cells_succeed(name):
    cells = cells_of([QUICK_EXPERIMENTS["table2"]], methods=[name], runs=1, profile=QUICK)
    outcome = execute(cells[0], METHODS[name], DATASETS[cells[0].row.dataset], None)
    assert outcome["status"] == "ok", outcome.get("error")


@pytest.mark.parametrize("shape", [(20, 50), (50, 20)])
def test_leading_directions_keep_the_products_of_rows(shape):
    rows = np.random.default_rng(0).random(shape)
    np.testing.assert_allclose(leading(rows, 500) @ leading(rows, 500).T, rows @ rows.T)
    U, s, _ = np.linalg.svd(rows, full_matrices=False)
    found = leading(rows, 3)
    assert found.shape == (shape[0], 3)
    np.testing.assert_allclose(found @ found.T, (U[:, :3] * s[:3] ** 2) @ U[:, :3].T)


def test_ours_on_scattering_is_the_pipeline(digits):
    X, _ = digits
    for name, log in zip(OURS_ON_SCATTERING, (False, True), strict=True):
        found = build(METHODS[name], 3, CORE, 0, METHODS[name].settings).fit(X).labels_
        rows = Scattering(log=log).fit_transform(X)
        expected = TuckerClustering(3, random_state=0).fit(rows).labels_
        np.testing.assert_array_equal(found, expected)


@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
def test_whitened_components_go_to_scikit_learn(digits):
    X, _ = digits
    rows = PCA(50, whiten=True, random_state=0).fit_transform(X.reshape(90, -1))
    theirs = SpectralClustering(
        3, affinity="nearest_neighbors", n_neighbors=10, random_state=0
    ).fit(rows)
    ours = build(METHODS["PCA + spectral"], 3, CORE, 0, {}).fit(X)
    assert clustering_accuracy(theirs.labels_, ours.labels_) == 1


def test_ablations_change_one_part(digits):
    X, _ = digits
    flat = build(METHODS["ours on pixels"], 3, CORE, 0, {}).fit(X)
    np.testing.assert_array_equal(
        flat.labels_, TuckerClustering(3, random_state=0).fit_predict(X.reshape(90, -1))
    )
    method = METHODS["ours (k-means)"]
    model = build(method, 3, CORE, 0, method.settings)
    assert (model.assign_labels, model.ranks) == ("subspace", CORE)


def test_searched_setting_is_the_best_of_its_grid(digits):
    X, y = digits
    found = build(METHODS["DRCC (searched)"], 3, CORE, 0, {"max_iter": 5, "n_settings": 4})
    scores = [
        clustering_accuracy(y, DRCC(3, max_iter=5, random_state=0, **choice).fit_predict(X))
        for choice in penalty_grid()[:4]
    ]
    assert clustering_accuracy(y, found.fit(X, y).labels_) == max(scores)


def test_umap_is_asked_for_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(ImportError, match=r"needs umap-learn: install tuckermix-bench\[rivals\]"):
        build(METHODS["UMAP + k-means"], 3, CORE, 0, {}).fit(np.ones((4, 2, 2)))


def test_umap_goes_before_kmeans(monkeypatch, digits):
    X, y = digits

    class Reducer:
        def __init__(self, n_neighbors, n_components, min_dist, random_state, n_jobs):
            assert n_jobs == 1  # a seed rules out more
            self.settings = (n_neighbors, n_components, min_dist, random_state)

        def fit_transform(self, rows):
            assert self.settings == (15, 10, 0.0, 5)
            return PCA(10, random_state=0).fit_transform(rows)

    class Module:
        UMAP = Reducer

    monkeypatch.setitem(sys.modules, "umap", Module)
    model = build(METHODS["UMAP + k-means"], 3, CORE, 5, {}).fit(X)
    assert clustering_accuracy(y, model.labels_) > 0.8


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Tensorflow not installed:ImportWarning")
def test_umap_itself_separates_digits():
    """Neighbourhoods tell four digits apart; the same seed gives the same labels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImportWarning)
        pytest.importorskip("umap", reason="needs umap-learn: install tuckermix-bench[rivals]")
    data = load_digits(n_class=4)
    X, y = data.images / 16.0, data.target
    first, second = (build(METHODS["UMAP + k-means"], 4, CORE, 0, {}).fit(X) for _ in range(2))
    assert clustering_accuracy(y, first.labels_) > 0.95
    np.testing.assert_array_equal(first.labels_, second.labels_)


@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
@pytest.mark.parametrize("name", ["k-means", "spectral"])
def test_methods_on_pixels_cluster_planted_groups(fakes, name):
    blobs = fakes.load_blobs(None)
    model = build(METHODS[name], 5, (2, 2), 0, METHODS[name].settings).fit(blobs.X)
    groups = {tuple(np.unique(blobs.labels[model.labels_ == k])) for k in range(5)}
    assert groups == {(k,) for k in range(5)}


def test_the_papers_method_with_one_start_gives_labels(fakes):
    blobs = fakes.load_blobs(None)
    model = build(METHODS["PCA-Multinomial-1"], 5, (2, 2), 0, {"init": "hosvd"}).fit(blobs.X)
    assert set(model.labels_) == set(range(5))
    assert model.n_iter_ >= 1


def test_a_name_of_a_method_is_taken_once_and_its_role_is_known(fakes):
    with pytest.raises(ValueError, match="method called 'MM' is already registered"):
        register_method(Method("MM", fakes.Random))
    with pytest.raises(ValueError, match="'role' parameter of Method must be one of 'paper'"):
        Method("a", fakes.Random, role="guest")
    with pytest.raises(ValueError, match="'view' parameter of Method must be one of 'pixels'"):
        Method("a", fakes.Random, view="sideways")
